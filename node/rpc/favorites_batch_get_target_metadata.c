/* Of those of the targets that live here: a router asks each shard for its own. */
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/favorite/favorite.h"
#include "node/core/favorite/metadata.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"
#include "runtime/cluster/placement.h"

typedef Holdfast__V1__BatchGetTargetMetadataRequest get_request;
typedef Holdfast__V1__BatchGetTargetMetadataResponse get_response;

static err check_homes(struct read_context *context, const get_request *request)
{
    for (size_t i = 0; i < request->n_target_ids; i++) {
        struct slice id = slice_from_text(request->target_ids[i]);
        if (context->shard_count > 0 && shard_of_target(id, context->shard_count) != context->shard)
            return refuse_invalid(context->arena, context->refusal, "target_ids",
                                  "targets of this shard", text_shorten(context->arena, id));
    }
    return ERR_OK;
}

/* Operators are told; the others' metadata is no worse for it. */
static void leave_out(struct read_context *context, get_response *response)
{
    damage_note(context->damage, (struct slice){ 0 }, METADATA_DAMAGE);
    response->metadata_incomplete = true;
    response->metadata_reason = arena_text(context->arena, SLICE_LITERAL(METADATA_DAMAGE));
}

static err favorites_batch_get_target_metadata_read(struct read_context *context,
                                                    const ProtobufCMessage *message,
                                                    ProtobufCMessage *reply)
{
    const get_request *request = (const void *)message;
    get_response *response = (void *)reply;
    struct collection collection = { 0 };
    err result = ERR_OK;

    err e = favorite_targets_check(context->arena, context->refusal, request->n_target_ids,
                                   request->target_ids);
    if (e == ERR_OK)
        e = check_homes(context, request);
    if (e == ERR_OK)
        e = collection_read(context, request->collection, &collection);
    if (e != ERR_OK)
        return e;
    response->as_of = as_of_text(context);
    response->metadata =
        arena_alloc(context->arena, request->n_target_ids * sizeof *response->metadata);
    for (size_t i = 0; i < request->n_target_ids; i++) {
        struct metadata metadata = { .collection = collection.number,
                                     .target = slice_from_text(request->target_ids[i]) };
        e = metadata_find(context->state, context->arena, context->need, &metadata);
        if (e == ERR_NEED)
            result = e; /* Go on, so that every missing row is noted. */
        else if (e != ERR_OK)
            leave_out(context, response);
        else if (metadata.exists)
            response->metadata[response->n_metadata++] = metadata_tell(context->arena, &metadata);
    }
    return result;
}

const struct handler favorites_batch_get_target_metadata_handler = {
    .method = METHOD_BATCH_GET_TARGET_METADATA,
    .read = favorites_batch_get_target_metadata_read,
};
