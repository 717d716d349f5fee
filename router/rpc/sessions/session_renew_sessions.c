#include "router/core/renew.h"
#include "router/rpc/request/handlers.h"
#include "runtime/base/check.h"
#include "runtime/codec/proto_codec.h"

/* A heartbeat on its way: to etcd for the lease, and in parallel to the shards for the tokens. It
 * waits for neither longer than ROUTER_RENEW_MS_MAX: a game server must not take our trouble for
 * the loss of its sessions. */
struct renewal {
    struct request *request;
    struct renew_plan plan;
    struct renewal_part *parts;
    uint32_t open; /* Shards that have not answered. */
    struct servers_wait wait;
    enum servers_state state;
    struct loop_timer timer; /* Bounds the wait for etcd. */
};

struct renewal_part {
    struct caller_call call;
    struct renewal *renewal;
    bool open;
};

static void answer_if_done(struct renewal *renewal)
{
    struct request *request = renewal->request;

    if (renewal->state == SERVERS_PENDING || (renewal->open > 0 && renewal->state != SERVERS_GONE))
        return;
    loop_timer_stop(&renewal->timer);
    for (uint32_t i = 0; i < renewal->plan.group_count; i++) {
        if (renewal->parts[i].open)
            caller_cancel(&renewal->parts[i].call);
    }
    if (renewal->state == SERVERS_GONE)
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_SERVER_EXPIRED,
                          "this registration has expired; register again, its sessions are lost");
    else
        request_reply(request, &renew_join(&renewal->plan, request->arena)->base);
}

static void server_renewed(void *user, enum servers_state state)
{
    struct renewal *renewal = user;

    renewal->state = state;
    answer_if_done(renewal);
}

static void waited_enough(void *user)
{
    struct renewal *renewal = user;

    servers_wait_cancel(&renewal->wait);
    renewal->state = SERVERS_UNSURE;
    answer_if_done(renewal);
}

static void part_done(struct caller_call *call, const struct caller_result *result)
{
    struct renewal_part *part = CONTAINER_OF(call, struct renewal_part, call);
    struct renewal *renewal = part->renewal;
    struct codec_scope scope = { .arena = renewal->request->arena };
    uint32_t group = (uint32_t)(part - renewal->parts);
    ProtobufCMessage *answer;

    part->open = false;
    renewal->open--;
    renewal->request->attempts += call->retry.sent;
    if (result->detail == NULL &&
        proto_decode(&holdfast__internal__v1__renew_tokens_response__descriptor, result->body,
                     &scope, &answer) == ERR_OK)
        renew_take(&renewal->plan, group,
                   (const Holdfast__Internal__V1__RenewTokensResponse *)(const void *)answer);
    answer_if_done(renewal);
}

static void start_part(struct renewal *renewal, uint32_t group, uint64_t deadline_ms)
{
    const Holdfast__Internal__V1__RenewTokensRequest *message =
        &renewal->plan.groups[group].request;
    struct request *request = renewal->request;
    struct renewal_part *part = &renewal->parts[group];
    size_t size = holdfast__internal__v1__renew_tokens_request__get_packed_size(message);
    uint8_t *data = arena_alloc(request->arena, size + 1);

    holdfast__internal__v1__renew_tokens_request__pack(message, data);
    part->renewal = renewal;
    part->open = true;
    part->call = (struct caller_call){
        .method = METHOD_RENEW_TOKENS,
        .priority = (uint8_t)request->priority,
        .asker = request_asker(request),
        .shard = renewal->plan.groups[group].shard,
        .deadline_ms = deadline_ms,
        .trace = request->trace.trace_id,
        .body = { data, size },
        .done = part_done,
    };
    renewal->open++;
    caller_start(request->router->options.caller, &part->call);
}

static void renewal_cancel(struct request *request)
{
    struct renewal *renewal = request->state;

    loop_timer_stop(&renewal->timer);
    servers_wait_cancel(&renewal->wait);
    for (uint32_t i = 0; i < renewal->plan.group_count; i++) {
        if (renewal->parts[i].open)
            caller_cancel(&renewal->parts[i].call);
    }
    request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_CANCELED,
                      "the caller has gone");
}

static void start(struct renewal *renewal)
{
    struct request *request = renewal->request;
    const struct router_options *options = &request->router->options;
    uint64_t now_ms = loop_now_ms(options->loop);
    uint64_t until_ms = now_ms + ROUTER_RENEW_MS_MAX;

    if (until_ms > request->answer_by_ms)
        until_ms = request->answer_by_ms;
    request->state = renewal;
    request->cancel = renewal_cancel;
    loop_timer_init(&renewal->timer, options->loop, waited_enough, renewal);
    renewal->wait = (struct servers_wait){ .done = server_renewed, .user = renewal };
    for (uint32_t i = 0; i < renewal->plan.group_count; i++)
        start_part(renewal, i, until_ms);
    renewal->state = servers_renew(options->servers, renewal->plan.incarnation, &renewal->wait);
    if (renewal->state == SERVERS_PENDING)
        loop_timer_start(&renewal->timer, until_ms > now_ms ? until_ms - now_ms : 0);
    else
        answer_if_done(renewal);
}

void session_renew_sessions_handle(struct request *request)
{
    const Holdfast__V1__RenewSessionsRequest *message =
        (const Holdfast__V1__RenewSessionsRequest *)(const void *)request->message;
    struct renewal *renewal = arena_zalloc(request->arena, sizeof *renewal);
    uint32_t shard_count = shard_map_shard_count(request->router->options.map);
    Holdfast__V1__ErrorDetail detail;

    if (shard_count == 0) {
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE,
                          "the router does not know the cluster yet");
        return;
    }
    const struct renew_call call = { message, shard_count, &request->router->guard };
    if (renew_split(&call, request->arena, &renewal->plan, &detail) != ERR_OK) {
        request_fail(request, &detail);
        return;
    }
    renewal->request = request;
    renewal->parts =
        arena_zalloc(request->arena, (renewal->plan.group_count + 1) * sizeof *renewal->parts);
    start(renewal);
}
