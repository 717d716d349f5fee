#include "router/rpc/router.h"

#include "router/core/access.h"
#include "router/core/node_form.h"
#include "router/core/refusal.h"
#include "router/core/scatter.h"
#include "router/rpc/counts/count_gather.h"
#include "router/rpc/events/event_feed.h"
#include "router/rpc/metadata/metadata_gather.h"
#include "router/rpc/counts/top_gather.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/mint/mint_book.h"
#include "runtime/base/check.h"

#define PLACES_RETRY_MS 250u

void router_init(struct router *router, const struct router_options *options)
{
    static const struct session_secrets none; /* Then no token is given or taken. */

    *router = (struct router){ .options = *options, .random = options->trace_seed | 1 };
    router->guard.secrets = options->secrets != NULL ? options->secrets : &none;
    router->players = options->player_rate > 0 ? rate_table_new() : NULL;
    router->mint = mint_book_new(&(struct mint_book_options){ options->etcd, options->cluster });
    router->registrations = rate_table_new();
    router->places = caller_shares_new();
    router->large = large_reads_new();
    router->counts = counts_new(router);
    router->tops = tops_new(router);
    router->metas = metas_new(router);
    router->event_feed = event_feed_new(router);
    admission_init(&router->admission, options->in_flight_max);
}

void router_deinit(struct router *router)
{
    CHECK(router->admission.in_flight == 0 && router->watch_count == 0 &&
          router->subscriber_count == 0 && router->settings_wait_count == 0);
    rate_table_free(router->players);
    rate_table_free(router->registrations);
    mint_book_free(router->mint);
    caller_shares_free(router->places);
    large_reads_free(router->large);
    counts_free(router->counts);
    tops_free(router->tops);
    metas_free(router->metas);
    event_feed_free(router->event_feed);
}

uint32_t router_in_flight(const struct router *router)
{
    return router->admission.in_flight;
}

/* Of the methods that the router answers by itself, <service>_<name>_handle in the file of that
 * name, by number. */
static handle_fn *const own_handlers[METHOD_ID_MAX + 1] = {
#define HANDLER_ROW(number, enumerator, package, service, method, name, route, ...)                \
    OWN_##route([METHOD_##enumerator] = service##_##name##_handle, )
    METHOD_TABLE(HANDLER_ROW)
#undef HANDLER_ROW
};

/* NULL: no such method here. */
static handle_fn *find_handler(const struct method_info *method)
{
    if (method->internal)
        return NULL;
    switch (method->route) {
    case METHOD_ROUTER:
    case METHOD_STREAM:
    case METHOD_GATHER:
        return own_handlers[method->id];
    case METHOD_SCATTER:
        return batch_handle;
    case METHOD_READ:
        if (method->id == METHOD_LIST_FAVORITES)
            return listed_targets_handle;
        return method->most > 0 ? filled_page_handle : forward_handle;
    case METHOD_MUTATION:
    case METHOD_MEMBER_READ:
    case METHOD_MEMBER_WRITE:
        return forward_handle;
    case METHOD_SHARD:
    case METHOD_SHARD_WRITE:
    case METHOD_SHARD_VIEW:
        return forward_shard_handle;
    case METHOD_NODE:
    case METHOD_OWNER:
    case METHOD_COORDINATOR:
        break;
    }
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

bool router_takes_none(const struct router *router)
{
    return admission_takes_none(&router->admission);
}

/* False: answered. */
static bool take_places(struct router *router, struct request *request, uint32_t weight)
{
    uint32_t percent = router->options.in_flight_key_percent, limit = 0;
    Holdfast__V1__ErrorDetail detail;

    if (percent == 0 || request_take_places(request, weight, percent, &limit))
        return true;
    router->callers_throttled++;
    refusal_make(request->arena, &detail, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_THROTTLED,
                 "%s holds its share of the router's calls in flight, %u; nothing was done",
                 request->player != NULL ? "this player's token, or all of them together,"
                                         : "this caller",
                 limit);
    detail.limit = arena_printf(request->arena, "%u", limit);
    detail.retry_after_ms = PLACES_RETRY_MS;
    request_fail(request, &detail);
    return false;
}

static bool admit(struct router *router, struct request *request)
{
    Holdfast__V1__ErrorDetail detail;
    uint32_t weight = weigh(request);

    request->priority = admission_priority_of(request->method, request->message);
    if (!request_expect(request, &detail)) {
        request_fail(request, &detail);
        return false;
    }
    if (!take_places(router, request, weight))
        return false;
    holdfast__v1__error_detail__init(&detail);
    if (!admission_enter(&router->admission, request->priority, weight, &detail.retry_after_ms)) {
        static char message[] = "the router is at its limit of calls in flight; nothing was done";

        detail.code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_THROTTLED;
        detail.message = message;
        request_give_places(request, weight);
        request_fail(request, &detail);
        return false;
    }
    if (request->allowance != NULL && weight > 1)
        rate_charge(request->allowance, request->allowance_per_s, weight - 1,
                    loop_now_ms(router->options.loop));
    request->weight = weight;
    return true;
}

/* The form that nodes know, with what the message leaves out, and else its batch, a header or the
 * key says. Whether the key admits what they ask for, is asked of the whole. */
static err complete(struct request *request, Holdfast__V1__ErrorDetail *ret_detail)
{
    const ProtobufCMessage *given = request->message;
    err e = node_form_make(request->method, given, request->arena, &request->message, ret_detail);
    ProtobufCMessage *message = (ProtobufCMessage *)(uintptr_t)request->message;

    if (e != ERR_OK)
        return e;
    if (message != given)
        request->encoded = (struct slice){ 0 };

    if (scatter_limit(request->method) > 0)
        e = scatter_share(request->method, message, request->arena, ret_detail);
    if (e == ERR_OK)
        e = request_defaults_apply(&request->defaults, request->method, message, request->arena,
                                   ret_detail);
    if (e == ERR_OK && request->defaults.used)
        request->encoded = (struct slice){ 0 };
    return e;
}

/* What gives tokens out, or checks them one by one. */
static bool needs_secret(const struct method_info *method)
{
    return method->id == METHOD_START_SESSION || method->id == METHOD_BATCH_START_SESSION ||
           method->id == METHOD_RENEW_SESSIONS;
}

/* Session tokens in the form that nodes know. */
static err guard_tokens(struct request *request, Holdfast__V1__ErrorDetail *ret_detail)
{
    struct session_guard *guard = &request->router->guard;
    struct session_guard_found found = { 0 };

    if (needs_secret(request->method) && guard->secrets->count == 0) {
        refusal_make(request->arena, ret_detail, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE,
                     "the router has not read the secret of session tokens yet; nothing was done");
        return ERR_UNAVAILABLE;
    }
    err e = session_guard_message(guard, request->message, request->arena, &found, ret_detail);
    request->as_admin = found.admin;
    request->as_system = found.system;
    if (found.changed)
        request->encoded = (struct slice){ 0 };
    return e;
}

/* Whether the caller may call the method: by its key's scopes, or as the player of its token. */
static err check_caller(struct request *request, Holdfast__V1__ErrorDetail *ret_detail)
{
    ProtobufCMessage *message = (ProtobufCMessage *)(uintptr_t)request->message;
    struct access_player player = { .id = request->player };

    if (request->player == NULL)
        return access_check_method(request->method, request->scopes, request->arena, ret_detail);
    err e = access_check_player(request->method, &player, message, request->arena, ret_detail);
    if (e == ERR_OK && player.filled)
        request->encoded = (struct slice){ 0 };
    return e;
}

/* What a player's operation may be called. */
static err check_player_op(const struct request *request, Holdfast__V1__ErrorDetail *ret_detail)
{
    return request->player != NULL
               ? access_check_player_op(request->message, request->arena, ret_detail)
               : ERR_OK;
}

/* False: answered. */
static bool allow(struct request *request)
{
    Holdfast__V1__ErrorDetail detail;

    if (check_caller(request, &detail) == ERR_OK && complete(request, &detail) == ERR_OK &&
        check_player_op(request, &detail) == ERR_OK &&
        access_check_message(request->message, request->scopes, request->arena, &detail) ==
            ERR_OK &&
        mint_allow(request, &detail) == ERR_OK && guard_tokens(request, &detail) == ERR_OK)
        return true;
    request_fail(request, &detail);
    return false;
}

static void mint_step(struct request *request)
{
    mint_then(request, find_handler(request->method));
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
    request->holds_places = false;
    request->held_bytes = 0;
    request->large = (struct large_read){ 0 };
    request->attempts = 0;
    request->waited = false;
    request->as_admin = false;
    request->as_system = false;
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
        server_owner_then(request, mint_step);
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
    admin_watch_incidents_end_all(router);
    event_subscribe_end_all(router);
    definition_get_settings_end_all(router);
}

void router_settings_changed(struct router *router, const char *name)
{
    definition_get_settings_look(router, name);
}
