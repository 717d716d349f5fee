/* A home's part of a top list: a router merges those of all shards. */
#include <inttypes.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/handler/refusal.h"
#include "node/core/top/top.h"
#include "node/rpc/count_subject.h"
#include "node/rpc/methods.h"

typedef Holdfast__Internal__V1__GetShardTopRequest top_request;
typedef Holdfast__Internal__V1__GetShardTopResponse top_response;

static char window_of(Holdfast__V1__TopWindow window)
{
    switch ((int)window) {
    case HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_24H:
        return TOP_DAY;
    case HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_7D:
        return TOP_WEEK;
    default:
        return TOP_ALL;
    }
}

static err check(struct read_context *context, const top_request *request)
{
    if (context->meta->apply_version < TOP_APPLY_VERSION) {
        err e = refuse(context->arena, context->refusal, CODE(UNAVAILABLE), "",
                       "shard %" PRIu32 " applies version %" PRIu32 "; totals begin with %u, once "
                       "all its replicas are updated",
                       context->shard, context->meta->apply_version, TOP_APPLY_VERSION);
        context->refusal->retry_after_ms = 1000;
        return e;
    }
    if (request->limit == 0 || request->limit > TOP_LIMIT_MAX)
        return refuse_number(context->arena, context->refusal, "limit", "1 to 1000",
                             request->limit);
    return ERR_OK;
}

static void tell(struct arena *arena, const struct top_entry *entries, uint32_t count,
                 top_response *response)
{
    response->entries = arena_alloc(arena, sizeof(void *) * (count + 1));
    for (uint32_t i = 0; i < count; i++) {
        Holdfast__V1__TopEntry *told =
            (void *)arena_message(arena, &holdfast__v1__top_entry__descriptor);
        told->target_id = arena_text(arena, entries[i].target);
        told->count = entries[i].count;
        response->entries[response->n_entries++] = told;
    }
}

static err node_get_shard_top_read(struct read_context *context, const ProtobufCMessage *message,
                                   ProtobufCMessage *reply)
{
    const top_request *request = (const void *)message;
    top_response *response = (void *)reply;
    uint64_t number;
    uint32_t count = 0;

    err e = check(context, request);
    if (e == ERR_OK)
        e = count_subject_read(context, request->collection, request->is_counter, &number);
    if (e != ERR_OK)
        return e;
    struct top_entry *entries = arena_alloc(context->arena, request->limit * sizeof *entries);
    const struct top_ask ask = { number, window_of(request->window), request->limit };
    e = top_list(context, &ask, entries, &count);
    if (e != ERR_OK)
        return e;
    tell(context->arena, entries, count, response);
    response->as_of = as_of_text(context);
    response->at_ms = (int64_t)context->now_unix_ms;
    response->pulled_ms = context->pulled_ms;
    response->collection_number = number;
    return ERR_OK;
}

const struct handler node_get_shard_top_handler = {
    .method = METHOD_GET_SHARD_TOP,
    .read = node_get_shard_top_read,
};
