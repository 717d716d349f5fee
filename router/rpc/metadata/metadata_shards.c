/* Metadata from the shards that keep it: each is asked once for those of the targets that live
 * there. Calls for one node go together (runtime/link). */
#include "idl/error_code.h"
#include "router/rpc/call/caller.h"
#include "router/rpc/metadata/metadata_batch.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"
#include "runtime/codec/proto_codec.h"

typedef Holdfast__V1__BatchGetTargetMetadataRequest get_request;
typedef Holdfast__V1__BatchGetTargetMetadataResponse get_response;

struct metadata_part {
    struct metadata_batch *batch;
    struct caller_call call;
    bool open;
    size_t count;
    uint16_t places[METADATA_BATCH_MAX]; /* Of its targets in the batch. */
};

/* In the order of the question; one that is missing has none, unless something was left out. */
static void take(struct metadata_part *part, const get_response *answer)
{
    struct metadata_batch *batch = part->batch;
    size_t at = 0;

    if (answer->metadata_incomplete)
        batch->reason = arena_printf(&batch->arena, "%s", answer->metadata_reason);
    for (size_t i = 0; i < part->count; i++) {
        size_t place = part->places[i];
        bool told =
            at < answer->n_metadata &&
            slice_equal(batch->targets[place], slice_from_text(answer->metadata[at]->target_id));
        if (told || !answer->metadata_incomplete)
            batch->owner->learn(batch, place, told ? answer->metadata[at] : NULL);
        at += told;
    }
}

static void answered(struct caller_call *call, const struct caller_result *result)
{
    struct metadata_part *part = call->user;
    struct metadata_batch *batch = part->batch;
    struct arena arena = { 0 };
    struct codec_scope scope = { .arena = &arena };
    ProtobufCMessage *message;

    part->open = false;
    batch->open--;
    if (result->detail != NULL) {
        batch->reason = arena_printf(&batch->arena, "shard %u: %s", (unsigned)call->shard,
                                     result->detail->message);
        batch->code = result->detail->code;
    } else if (proto_decode(&holdfast__v1__batch_get_target_metadata_response__descriptor,
                            result->body, &scope, &message) != ERR_OK) {
        batch->reason = "a node's answer cannot be read";
    } else {
        take(part, (const get_response *)(const void *)message);
    }
    arena_deinit(&arena);
    if (batch->open == 0)
        batch->owner->end(batch);
}

static struct slice request_bytes(const struct metadata_part *part)
{
    struct metadata_batch *batch = part->batch;
    get_request ask = HOLDFAST__V1__BATCH_GET_TARGET_METADATA_REQUEST__INIT;
    char **targets = arena_alloc(&batch->arena, part->count * sizeof *targets);

    for (size_t i = 0; i < part->count; i++) /* With a NUL behind: metadata_gather.c. */
        targets[i] = (char *)(uintptr_t)batch->targets[part->places[i]].data;
    ask.target_ids = targets;
    ask.n_target_ids = part->count;
    ask.collection = batch->source->collection;
    size_t size = holdfast__v1__batch_get_target_metadata_request__get_packed_size(&ask);
    uint8_t *bytes = arena_alloc(&batch->arena, size + 1);
    holdfast__v1__batch_get_target_metadata_request__pack(&ask, bytes);
    return (struct slice){ bytes, size };
}

static struct metadata_part *part_of(struct metadata_batch *batch, uint32_t shard)
{
    for (uint32_t i = 0; i < batch->part_count; i++) {
        if (batch->parts[i].call.shard == shard)
            return &batch->parts[i];
    }
    struct metadata_part *part = &batch->parts[batch->part_count++];
    *part = (struct metadata_part){ .batch = batch, .call = { .shard = shard } };
    return part;
}

/* How many shards the targets live in, at most. */
static size_t parts_max(const struct metadata_batch *batch, uint32_t shard_count)
{
    return batch->count < shard_count ? batch->count : shard_count;
}

bool metadata_shards_begin(struct metadata_batch *batch)
{
    const struct router *router = batch->router;
    uint32_t shard_count = shard_map_shard_count(router->options.map);

    if (shard_count == 0) {
        batch->reason = "the router does not know the cluster yet";
        return false;
    }
    batch->parts =
        arena_zalloc(&batch->arena, parts_max(batch, shard_count) * sizeof *batch->parts);
    for (size_t i = 0; i < batch->count; i++) {
        struct metadata_part *part =
            part_of(batch, shard_of_target(batch->targets[i], shard_count));
        part->places[part->count++] = (uint16_t)i;
    }
    for (uint32_t i = 0; i < batch->part_count; i++) {
        struct metadata_part *part = &batch->parts[i];
        part->open = true;
        part->call = (struct caller_call){
            .method = METHOD_BATCH_GET_TARGET_METADATA,
            .asker = batch->asker,
            .priority = METHOD_PRIORITY_BULK,
            .shard = part->call.shard,
            .deadline_ms = batch->begun_ms + router->options.metadata_timeout_ms,
            .started_ns = loop_clock_ns(),
            .body = request_bytes(part),
            .done = answered,
            .user = part,
        };
        batch->open++;
        caller_start(router->options.caller, &part->call);
    }
    CHECK(batch->open > 0);
    return true;
}

void metadata_shards_cancel(struct metadata_batch *batch)
{
    for (uint32_t i = 0; i < batch->part_count; i++) {
        if (batch->parts[i].open)
            caller_cancel(&batch->parts[i].call);
        batch->parts[i].open = false;
    }
    batch->open = 0;
}
