#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/inventory.pb-c.h"
#include "router/core/refusal.h"
#include "router/core/route.h"
#include "router/core/trace_cursor.h"
#include "router/rpc/forward/forward.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/request/list_page.h"
#include "runtime/cluster/shard_map.h"
#include "runtime/codec/proto_codec.h"

#define PAGE_SIZE_DEFAULT 50u
#define PAGE_SIZE_MAX     200u
/* Calls for one page: a page of an item that goes round among shards may be short. */
#define HOPS_MAX 32u

/* One page on its way: from shard to shard, as the item went. The steps of an item are numbered
 * over all shards, so the next one is where the last one was, or where it sent the item. */
struct trace {
    struct request *request;
    struct caller_call call;
    struct trace_cursor at;
    uint32_t size;
    uint32_t hops;
    bool probes; /* The page is full: is there another step? */
    bool found;  /* There is, on at.shard. */
    Holdfast__V1__TraceItemResponse response;
};

static void trace_call(struct trace *trace);

static void answer(struct trace *trace, bool more)
{
    static char none[] = "";

    trace->response.next_cursor = none;
    if (more)
        trace->response.next_cursor =
            list_page_next(trace->request, trace_cursor_print(&trace->at, trace->request->arena));
    request_reply(trace->request, &trace->response.base);
}

static void refuse_unknown(struct trace *trace)
{
    static char field[] = "item_uid";
    const Holdfast__V1__TraceItemRequest *message = (const void *)trace->request->message;
    Holdfast__V1__ErrorDetail detail;

    refusal_make(trace->request->arena, &detail, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_NOT_FOUND,
                 "no item %s was ever minted", message->item_uid);
    detail.field = field;
    detail.value = message->item_uid;
    request_fail(trace->request, &detail);
}

static void take_steps(struct trace *trace,
                       const Holdfast__Internal__V1__ItemHistoryResponse *history)
{
    Holdfast__V1__TraceItemResponse *response = &trace->response;

    if (trace->probes) {
        trace->found = history->n_steps > 0;
        return;
    }
    for (size_t i = 0; i < history->n_steps && response->n_steps < trace->size; i++)
        response->steps[response->n_steps++] = history->steps[i];
    if (history->n_steps == 0)
        return;
    const Holdfast__V1__TraceStep *last = response->steps[response->n_steps - 1];
    trace->at.step = last->step;
    trace->at.other = trace->at.shard;
    if (last->to_player_id[0] == 0)
        return;
    struct slice to = slice_from_text(last->to_player_id);
    if (to.size > ROUTE_PLAYER_BYTES_MAX)
        return;
    struct route_entity entity = route_entity_of_player(to);
    (void)shard_map_find_shard_of(trace->request->router->options.map,
                                  (struct slice){ (const uint8_t *)entity.text, entity.size },
                                  &trace->at.other);
}

static void go_on(struct trace *trace)
{
    const bool full = trace->response.n_steps == trace->size;

    if (trace->found || (full && trace->hops >= HOPS_MAX)) {
        answer(trace, true);
        return;
    }
    if (full && !trace->probes) {
        trace->probes = true;
        trace_call(trace);
        return;
    }
    if (trace->at.other == trace->at.shard) {
        if (trace->at.step == 0)
            refuse_unknown(trace);
        else
            answer(trace, false);
        return;
    }
    trace->at.shard = trace->at.other;
    if (trace->hops >= HOPS_MAX)
        answer(trace, true);
    else
        trace_call(trace);
}

static void shard_answered(struct caller_call *call, const struct caller_result *result)
{
    struct trace *trace = call->user;
    struct codec_scope scope = { .arena = trace->request->arena };
    Holdfast__V1__ErrorDetail detail;
    ProtobufCMessage *history;

    forward_count(trace->request, call);
    if (result->detail != NULL) {
        request_fail(trace->request, result->detail);
        return;
    }
    if (!request_hold(trace->request, result->body.size, &detail)) {
        request_fail(trace->request, &detail);
        return;
    }
    if (proto_decode(&holdfast__internal__v1__item_history_response__descriptor, result->body,
                     &scope, &history) != ERR_OK) {
        request_fail_text(trace->request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INTERNAL,
                          "a node's answer cannot be read");
        return;
    }
    take_steps(trace, (const void *)history);
    go_on(trace);
}

static void trace_call(struct trace *trace)
{
    const Holdfast__V1__TraceItemRequest *message = (const void *)trace->request->message;
    Holdfast__Internal__V1__ItemHistoryRequest ask =
        HOLDFAST__INTERNAL__V1__ITEM_HISTORY_REQUEST__INIT;
    struct request *request = trace->request;

    ask.shard = trace->at.shard;
    ask.item_uid = message->item_uid;
    ask.after_step = trace->at.step;
    ask.limit = trace->probes ? 1 : trace->size - (uint32_t)trace->response.n_steps;
    size_t size = holdfast__internal__v1__item_history_request__get_packed_size(&ask);
    uint8_t *body = arena_alloc(request->arena, size + 1);
    holdfast__internal__v1__item_history_request__pack(&ask, body);
    trace->hops++;
    trace->call = (struct caller_call){
        .method = METHOD_ITEM_HISTORY,
        .priority = (uint8_t)request->priority,
        .asker = request_asker(request),
        .shard = trace->at.shard,
        .deadline_ms = request->answer_by_ms,
        .trace = request->trace.trace_id,
        .started_ns = request->started_ns,
        .body = { body, size },
        .done = shard_answered,
        .user = trace,
    };
    caller_start(request->router->options.caller, &trace->call);
}

static void trace_cancel(struct request *request)
{
    struct trace *trace = request->state;

    caller_cancel(&trace->call);
    request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_CANCELED,
                      "the caller has gone");
}

/* Where to begin, and how much. False: the request has been ended. */
static bool trace_begin(struct trace *trace, uint32_t shard_count)
{
    struct request *request = trace->request;
    Holdfast__V1__TraceItemRequest message;
    Holdfast__V1__ErrorDetail detail;
    struct list_page page;

    if (!list_page_begin(request, (struct list_limits){ PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX }, &page))
        return false;
    memcpy(&message, request->message, sizeof message);
    message.cursor = page.place;
    trace->size = page.size;
    if (trace_cursor_begin(&message, shard_count, request->arena, &trace->at, &detail) == ERR_OK)
        return true;
    request_fail(request, &detail);
    return false;
}

void inventory_trace_item_handle(struct request *request)
{
    struct trace *trace = arena_zalloc(request->arena, sizeof *trace);
    uint32_t shard_count = shard_map_shard_count(request->router->options.map);

    trace->request = request;
    holdfast__v1__trace_item_response__init(&trace->response);
    if (shard_count == 0) {
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE,
                          "the router does not know the cluster yet");
        return;
    }
    if (!trace_begin(trace, shard_count))
        return;
    if (trace->at.shard >= shard_count) {
        refuse_unknown(trace);
        return;
    }
    trace->response.steps =
        arena_zalloc(request->arena, sizeof *trace->response.steps * (trace->size + 1));
    request->state = trace;
    request->cancel = trace_cancel;
    trace_call(trace);
}
