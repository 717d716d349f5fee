/*
 * metadata_batch: up to METADATA_BATCH_MAX targets of one collection that are asked for together,
 * from the shards that keep their metadata or from an endpoint. Private to the files metadata_*.c.
 */
#ifndef ROUTER_RPC_METADATA_METADATA_BATCH_H
#define ROUTER_RPC_METADATA_METADATA_BATCH_H

#include "router/core/metadata_memo.h"
#include "router/rpc/request/metadata_port.h"
#include "router/rpc/metadata/metadata_source.h"

#define METADATA_BATCH_MAX 200u

struct metadata_batch;
struct metadata_part;
struct metadata_wait;
struct metas;

/* Who has the batch made: metadata_gather.c. */
struct metadata_owner {
    /* What is known of the target at that place; `told` NULL: there is none. */
    void (*learn)(struct metadata_batch *batch, size_t place,
                  const Holdfast__V1__TargetMetadata *told);
    /* The endpoint did not answer as it should; or it did, but for some entries. */
    void (*failed)(struct metadata_batch *batch, const char *why);
    void (*fetched)(struct metadata_batch *batch, uint32_t left_out);
    /* All that was asked for has come, or will not. The batch is gone after it. */
    void (*end)(struct metadata_batch *batch);
};

struct metadata_batch {
    struct metadata_batch *next;
    struct metas *metas; /* The owner's. */
    const struct metadata_owner *owner;
    const struct router *router;
    struct metadata_source *source;
    uint16_t asker;     /* request_asker of the question that made it. */
    struct arena arena; /* Of its texts and parts. */
    struct slice targets[METADATA_BATCH_MAX];
    uint64_t hashes[METADATA_BATCH_MAX];
    size_t count;
    struct metadata_wait *waits;
    bool begun;
    uint64_t begun_ms;
    /* Why some of it could not be had; NULL: all was. In the arena, or static. */
    const char *reason;
    Holdfast__V1__ErrorCode code; /* Of the shard that refused; 0: none did. */
    /* Of shards. */
    struct metadata_part *parts;
    uint32_t part_count, open;
    /* Of an endpoint. */
    struct metadata_fetch fetch;
    bool fetching;
};

/* Begin to ask; owner->end is called later, from the loop. False: nothing is asked, as
 * `reason` says. */
bool metadata_shards_begin(struct metadata_batch *batch);
bool metadata_endpoint_begin(struct metadata_batch *batch);
/* Nothing more will be told. */
void metadata_shards_cancel(struct metadata_batch *batch);
void metadata_endpoint_cancel(struct metadata_batch *batch);

#endif
