/* Asks one member of each shard who is online, in one call a node; for what a node does not tell,
 * the shards' other members are asked. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/presence.pb-c.h"
#include "idl/error_code.h"
#include "idl/error_tell.h"
#include "router/core/online_merge.h"
#include "router/core/refusal.h"
#include "router/rpc/call/caller.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/request/list_page.h"
#include "router/rpc/call/said_refusal.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"
#include "runtime/codec/proto_codec.h"

#define ROUNDS_MAX  3u  /* So many members of a shard are asked, one after the other. */
#define MISSING_MAX 64u /* So many shards are named. */

typedef Holdfast__Internal__V1__ListNodeOnlineRequest node_request;
typedef Holdfast__Internal__V1__ListNodeOnlineResponse node_response;

struct online_list;

/* One call to a node. */
struct online_call {
    struct online_list *list;
    uint64_t replica_id;
    uint64_t call; /* 0: none is open. */
    uint32_t shard_count;
    uint32_t *shards;
};

struct online_list {
    struct request *request;
    uint32_t limit, shard_count;
    struct online_merge merge;
    bool *told;    /* By shard; of this merge. */
    bool *missing; /* Likewise, of the whole answer. */
    Holdfast__V1__ListOnlineResponse response;
    bool turned;               /* The page goes on upwards. */
    struct online_cursor turn; /* There. */
    uint32_t round, open, call_count;
    struct online_call *calls; /* Of this round. */
    bool failed;               /* By `detail`: no room for answers, or a node refused. */
    Holdfast__V1__ErrorDetail detail;
};

static void ask_round(struct online_list *list);

/* ---- the end ---- */

static void reply(struct online_list *list)
{
    Holdfast__V1__ListOnlineResponse *response = &list->response;

    response->missing_shards =
        arena_alloc(list->request->arena, MISSING_MAX * sizeof *response->missing_shards);
    for (uint32_t shard = 0; shard < list->shard_count; shard++) {
        if (!list->missing[shard])
            continue;
        response->stale = true;
        if (response->n_missing_shards < MISSING_MAX)
            response->missing_shards[response->n_missing_shards++] = shard;
    }
    request_reply(list->request, &response->base);
}

static void reply_more(struct online_list *list, const struct online_cursor *next)
{
    struct request *request = list->request;

    list->response.next_cursor = list_page_next(request, online_cursor_print(next, request->arena));
    reply(list);
}

static void take_rows(struct online_list *list)
{
    const struct online_merge *merge = &list->merge;
    Holdfast__V1__ListOnlineResponse *response = &list->response;

    for (size_t i = 0; i < merge->count; i++)
        response->players[response->n_players++] = merge->rows[i]->player;
    for (uint32_t shard = 0; shard < list->shard_count; shard++)
        list->missing[shard] |= !list->told[shard];
    if (merge->cursor.begun_ms > 0)
        return;
    response->count = merge->players;
    response->as_of_ms = merge->counted_ms;
}

/* Those who were set again since the list began, in what room the page has. */
static void turn(struct online_list *list)
{
    struct request *request = list->request;

    list->turned = true;
    online_merge_init(&list->merge, &list->turn, list->limit - (uint32_t)list->response.n_players,
                      request->arena);
    for (uint32_t shard = 0; shard < list->shard_count; shard++)
        list->told[shard] = false;
    list->round = 0;
    ask_round(list);
}

static void fail_silent(struct request *request)
{
    request_fail_text(request, CODE(UNAVAILABLE), "no node said in time who is online");
}

static void finish(struct online_list *list)
{
    struct online_cursor next;

    if (list->failed) {
        request_fail(list->request, &list->detail);
        return;
    }
    if (list->merge.now_ms == 0 && !list->turned) {
        fail_silent(list->request);
        return;
    }
    enum online_end end = online_merge_finish(&list->merge, &next);

    take_rows(list);
    if (list->merge.now_ms == 0) { /* Upwards: it can be asked for again. */
        reply_more(list, &list->turn);
    } else if (end == ONLINE_MORE) {
        reply_more(list, &next);
    } else if (end == ONLINE_TURN) {
        list->turn = next;
        turn(list);
    } else {
        reply(list);
    }
}

/* ---- what nodes say ---- */

static void take(const struct online_call *call, struct slice body)
{
    struct online_list *list = call->list;
    struct codec_scope scope = { .arena = list->request->arena };
    ProtobufCMessage *message;

    if (list->failed)
        return;
    if (!request_hold(list->request, body.size, &list->detail)) {
        list->failed = true;
        return;
    }
    if (proto_decode(&holdfast__internal__v1__list_node_online_response__descriptor, body, &scope,
                     &message) != ERR_OK)
        return;
    const node_response *said = (const void *)message;

    if (online_merge_add(&list->merge, said) != ERR_OK)
        return;
    for (uint32_t i = 0; i < call->shard_count; i++)
        list->told[call->shards[i]] = true;
    for (size_t i = 0; i < said->n_missing; i++) {
        if (said->missing[i] < list->shard_count)
            list->told[said->missing[i]] = false;
    }
}

/* A node that is asked too much refuses; others would be asked too much for it. */
static void take_refusal(struct online_list *list, struct slice body)
{
    const Holdfast__Internal__V1__Refusal *refusal = said_refusal(body, list->request->arena);

    if (refusal == NULL || said_refusal_passes(refusal) || list->failed)
        return;
    list->detail = error_tell(refusal, list->request->arena);
    list->failed = true;
}

static void go_on(struct online_list *list)
{
    bool whole = true;

    for (uint32_t shard = 0; shard < list->shard_count; shard++)
        whole &= list->told[shard];
    if (whole || list->failed || ++list->round == ROUNDS_MAX ||
        loop_now_ms(list->request->router->options.loop) >= list->request->answer_by_ms)
        finish(list);
    else
        ask_round(list);
}

static void answered(void *user, err result, const struct frame *response)
{
    struct online_call *call = user;
    struct online_list *list = call->list;

    call->call = 0;
    if (result == ERR_OK && response->status == WIRE_OK)
        take(call, response->body);
    else if (result == ERR_OK && response->status == WIRE_REFUSED)
        take_refusal(list, response->body);
    CHECK(list->open > 0);
    if (--list->open == 0)
        go_on(list);
}

/* ---- what is asked ---- */

static struct slice body_of(const struct online_call *call)
{
    const struct online_list *list = call->list;
    const struct online_cursor *cursor = &list->merge.cursor;
    node_request message = HOLDFAST__INTERNAL__V1__LIST_NODE_ONLINE_REQUEST__INIT;

    message.n_shards = call->shard_count;
    message.shards = call->shards;
    message.limit = list->merge.limit + 1;
    message.at = cursor->at;
    message.player_id = text_lend(cursor->player_id);
    message.upwards = cursor->upwards;
    message.count = cursor->begun_ms == 0;
    size_t size = protobuf_c_message_get_packed_size(&message.base);
    uint8_t *body = arena_alloc(list->request->arena, size + 1);

    return (struct slice){ body, protobuf_c_message_pack(&message.base, body) };
}

static void ask(struct online_call *call)
{
    struct online_list *list = call->list;
    struct request *request = list->request;
    const struct node_port *port = &request->router->options.port;
    const struct call_request asked = {
        .method = METHOD_LIST_NODE_ONLINE,
        .priority = (uint8_t)request->priority,
        .asker = request_asker(request),
        .deadline_ms = request_time_left(request, CALLER_MEMBER_MS),
        .trace = request->trace.trace_id,
        .body = body_of(call),
        .done = answered,
        .user = call,
    };

    request->attempts++;
    if (port->start(port->context, call->replica_id, &asked, &call->call) == ERR_OK)
        list->open++;
    else
        call->call = 0;
}

static struct online_call *call_of(struct online_list *list, uint64_t replica_id)
{
    for (uint32_t i = 0; i < list->call_count; i++) {
        if (list->calls[i].replica_id == replica_id)
            return &list->calls[i];
    }
    if (replica_id == 0 || list->call_count == CLUSTER_NODES_MAX)
        return NULL;
    struct online_call *call = &list->calls[list->call_count++];

    *call = (struct online_call){ .list = list, .replica_id = replica_id };
    call->shards = arena_alloc(list->request->arena, list->shard_count * sizeof *call->shards);
    return call;
}

static void ask_round(struct online_list *list)
{
    const struct router_options *options = &list->request->router->options;
    const struct route_reach reach = { options->port.reaches, options->port.context, list->round };

    list->call_count = 0;
    list->calls = arena_zalloc(list->request->arena, CLUSTER_NODES_MAX * sizeof *list->calls);
    for (uint32_t shard = 0; shard < list->shard_count; shard++) {
        if (list->told[shard])
            continue;
        struct online_call *call =
            call_of(list, route_find_member(options->map, shard, &reach).owner);

        if (call != NULL)
            call->shards[call->shard_count++] = shard;
    }
    for (uint32_t i = 0; i < list->call_count; i++)
        ask(&list->calls[i]);
    if (list->open == 0)
        go_on(list);
}

static void list_cancel(struct request *request)
{
    struct online_list *list = request->state;
    const struct node_port *port = &request->router->options.port;

    for (uint32_t i = 0; i < list->call_count; i++) {
        if (list->calls[i].call != 0)
            port->cancel(port->context, list->calls[i].call);
    }
    request_fail_text(request, CODE(CANCELED), "the caller has gone");
}

static bool begin(struct online_list *list)
{
    struct request *request = list->request;
    struct online_cursor cursor;
    struct list_page page;

    if (!list_page_begin(request, (struct list_limits){ ONLINE_LIMIT_DEFAULT, ONLINE_LIMIT_MAX },
                         &page))
        return false;
    if (online_cursor_parse(page.place, request->arena, &cursor) != ERR_OK) {
        list_page_refuse(request);
        return false;
    }
    list->limit = page.size;
    online_merge_init(&list->merge, &cursor, page.size, request->arena);
    return true;
}

void presence_list_online_handle(struct request *request)
{
    struct online_list *list = arena_zalloc(request->arena, sizeof *list);

    list->request = request;
    list->shard_count = shard_map_shard_count(request->router->options.map);
    if (!begin(list))
        return;
    if (list->shard_count == 0) {
        request_fail_text(request, CODE(UNAVAILABLE), "the router does not know the cluster yet");
        return;
    }
    list->told = arena_zalloc(request->arena, list->shard_count * sizeof *list->told);
    list->missing = arena_zalloc(request->arena, list->shard_count * sizeof *list->missing);
    holdfast__v1__list_online_response__init(&list->response);
    list->response.players =
        arena_alloc(request->arena, (list->limit + 1) * sizeof *list->response.players);
    request->state = list;
    request->cancel = list_cancel;
    ask_round(list);
}
