#include "router/rpc/router.h"

#include "router/core/access.h"
#include "router/core/scatter.h"
#include "router/rpc/handlers.h"
#include "runtime/base/check.h"

void router_init(struct router *router, const struct router_options *options)
{
    *router = (struct router){ .options = *options, .random = options->trace_seed | 1 };
    admission_init(&router->admission, options->in_flight_max);
}

void router_deinit(struct router *router)
{
    CHECK(router->admission.in_flight == 0 && router->watch_count == 0);
    buf_deinit(&router->scratch);
}

uint32_t router_in_flight(const struct router *router)
{
    return router->admission.in_flight;
}

void router_finish(struct router *router, struct request *request, Holdfast__V1__ErrorCode code)
{
    uint64_t latency_us = (loop_clock_ns() - request->started_ns) / 1000u;

    admission_leave(&router->admission, request->weight);
    request->weight = 0;
    request->cancel = NULL;
    if (router->options.observer.finished != NULL)
        router->options.observer.finished(router->options.observer.context, request, code,
                                          latency_us);
}

typedef void handle_fn(struct request *request);

/* NULL: no such method here. */
static handle_fn *find_handler(const struct method_info *method)
{
    if (method->internal)
        return NULL;
    switch (method->id) {
    case METHOD_REGISTER_SERVER:
        return session_register_server_handle;
    case METHOD_UNREGISTER_SERVER:
        return session_unregister_server_handle;
    case METHOD_RENEW_SESSIONS:
        return session_renew_sessions_handle;
    case METHOD_TRACE:
        return inventory_trace_handle;
    case METHOD_ACCEPT_ETCD_RESTORE:
        return admin_accept_etcd_restore_handle;
    case METHOD_GET_CLUSTER:
        return admin_get_cluster_handle;
    case METHOD_LIST_SHARDS:
        return admin_list_shards_handle;
    case METHOD_LIST_SERVERS:
        return admin_list_servers_handle;
    case METHOD_LIST_PROCESSES:
        return admin_list_processes_handle;
    case METHOD_LIST_EVENTS:
        return admin_list_events_handle;
    case METHOD_PREPARE_RESTORE:
        return backup_prepare_restore_handle;
    case METHOD_WATCH_EVENTS:
        return admin_watch_events_handle;
    case METHOD_SET_POLICY:
        return admin_set_policy_handle;
    case METHOD_MOVE_SHARD:
        return admin_move_shard_handle;
    case METHOD_CHANGE_NODE:
        return admin_change_node_handle;
    case METHOD_REBALANCE:
        return admin_rebalance_handle;
    case METHOD_GET_LOAD:
        return admin_get_load_handle;
    case METHOD_LIST_ENTRIES:
    case METHOD_LIST_ITEMS:
        return filled_page_handle;
    case METHOD_TRANSACTION_READ:
        return transaction_read_handle;
    default:
        break;
    }
    if (method->route == METHOD_MUTATION || method->route == METHOD_READ)
        return forward_handle;
    if (method->route == METHOD_SHARD || method->route == METHOD_SHARD_WRITE ||
        method->route == METHOD_SHARD_VIEW)
        return forward_shard_handle;
    if (scatter_limit(method) > 0)
        return batch_handle;
    return NULL;
}

/* What a request weighs in admission: the calls that it makes. */
static uint32_t weigh(const struct request *request)
{
    struct scatter_elements elements = { 0 };
    Holdfast__V1__ErrorDetail detail;

    if (scatter_limit(request->method) == 0 ||
        scatter_split(request->method, request->message, request->arena, &elements, &detail) !=
            ERR_OK ||
        elements.count == 0)
        return 1;
    return elements.count;
}

bool router_is_full(struct router *router, const struct method_info *method,
                    uint32_t *ret_retry_after_ms)
{
    return admission_is_full(&router->admission, admission_priority_max(method),
                             ret_retry_after_ms);
}

static bool admit(struct router *router, struct request *request)
{
    Holdfast__V1__ErrorDetail detail;
    uint32_t weight = weigh(request);

    request->priority = admission_priority_of(request->method, request->message);
    holdfast__v1__error_detail__init(&detail);
    if (!admission_enter(&router->admission, request->priority, weight, &detail.retry_after_ms)) {
        static char message[] = "the router is at its limit of calls in flight; nothing was done";

        detail.code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_THROTTLED;
        detail.message = message;
        request_fail(request, &detail);
        return false;
    }
    if (request->allowance != NULL && weight > 1)
        rate_charge(request->allowance, request->allowance_per_s, weight - 1,
                    loop_now_ms(router->options.loop));
    request->weight = weight;
    return true;
}

/* False: answered. */
static bool allow(struct request *request)
{
    Holdfast__V1__ErrorDetail detail;

    if (access_check_method(request->method, request->scopes, request->arena, &detail) == ERR_OK &&
        access_check_message(request->message, request->scopes, request->arena, &detail) == ERR_OK)
        return true;
    request_fail(request, &detail);
    return false;
}

void router_dispatch(struct router *router, struct request *request)
{
    handle_fn *handle = find_handler(request->method);
    uint64_t now_ms = loop_now_ms(router->options.loop);
    uint64_t left_ms = request->deadline_ms > now_ms ? request->deadline_ms - now_ms : 0;
    uint64_t margin_ms = left_ms / 20;

    request->router = router;
    request->started_ns = loop_clock_ns();
    request->weight = 0;
    request->attempts = 0;
    request->last_call = NULL;
    if (!trace_is_set(request->trace.trace_id))
        trace_id_init(request->trace.trace_id, &router->random);
    request->state = NULL;
    request->cancel = NULL;
    request->writable = NULL;
    if (margin_ms > ROUTER_ANSWER_MARGIN_MS)
        margin_ms = ROUTER_ANSWER_MARGIN_MS;
    request->answer_by_ms = now_ms + left_ms - margin_ms;
    if (handle == NULL) {
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNIMPLEMENTED,
                          "no such method");
        return;
    }
    if (request->method->route == METHOD_STREAM && request->door->stream_send == NULL) {
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNIMPLEMENTED,
                          "streams are for the public endpoint");
        return;
    }
    if (router->draining) {
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE,
                          "the router is stopping; nothing was done");
        return;
    }
    if (allow(request) && admit(router, request))
        handle(request);
}

void router_cancel(struct router *router, struct request *request)
{
    CHECK(request->router == router && request->cancel != NULL);
    request->cancel(request);
}

void router_writable(struct router *router, struct request *request)
{
    CHECK(request->router == router && request->writable != NULL);
    request->writable(request);
}

void router_end_streams(struct router *router)
{
    router->streams_ended = true;
    admin_watch_events_end_all(router);
}
