#include "node/core/top/drift.h"

#include <stdlib.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/base/check.h"
#include "runtime/codec/proto_codec.h"

#define PART_COUNTS HOLDFAST__V1__REBUILD_PART__REBUILD_PART_COUNTS
#define PART_TOTALS HOLDFAST__V1__REBUILD_PART__REBUILD_PART_TOTALS

struct found {
    uint64_t different, largest;
};

struct shard {
    bool owned;
    struct found last, now; /* Of the last pass, and of the one under way. */
};

struct drift {
    uint32_t shard_count, at; /* The shard that is compared. */
    struct shard *shards;
    bool counts_done; /* Of that one: its totals are next. */
    struct buf place, request;
    bool out;
    bool begun;
    uint64_t next_ms;
    struct drift_stats stats;
};

struct drift *drift_new(uint32_t shard_count)
{
    struct drift *drift = mem_zalloc(sizeof *drift);

    CHECK(shard_count > 0);
    drift->shard_count = shard_count;
    drift->shards = mem_zalloc(shard_count * sizeof *drift->shards);
    return drift;
}

void drift_free(struct drift *drift)
{
    if (drift == NULL)
        return;
    buf_deinit(&drift->place);
    buf_deinit(&drift->request);
    free(drift->shards);
    free(drift);
}

static void shard_begin(struct drift *drift)
{
    drift->shards[drift->at].now = (struct found){ 0 };
    drift->counts_done = false;
    buf_clear(&drift->place);
    drift->begun = true;
}

/* What another node owns is its to tell. False: none is owned. */
static bool take_owned(struct drift *drift, const bool *owned)
{
    for (uint32_t i = 0; i < drift->shard_count; i++) {
        drift->shards[i].owned = owned[i];
        if (!owned[i])
            drift->shards[i].last = drift->shards[i].now = (struct found){ 0 };
    }
    for (uint32_t i = 0; i < drift->shard_count && !owned[drift->at]; i++) {
        drift->at = (drift->at + 1) % drift->shard_count;
        drift->begun = false;
    }
    return owned[drift->at];
}

bool drift_next(struct drift *drift, uint64_t now_ms, const bool *owned, uint32_t *ret_shard,
                struct slice *ret_request)
{
    Holdfast__Internal__V1__CheckCountsRequest request =
        HOLDFAST__INTERNAL__V1__CHECK_COUNTS_REQUEST__INIT;

    if (drift->out || now_ms < drift->next_ms)
        return false;
    drift->next_ms = now_ms + DRIFT_EVERY_MS;
    if (!take_owned(drift, owned))
        return false;
    if (!drift->begun)
        shard_begin(drift);
    request.shard = drift->at;
    request.part = drift->counts_done ? PART_TOTALS : PART_COUNTS;
    request.rows = DRIFT_ROWS;
    request.place = (ProtobufCBinaryData){ drift->place.size, drift->place.data };
    buf_clear(&drift->request);
    proto_encode(&request.base, &drift->request);
    drift->out = true;
    *ret_shard = drift->at;
    *ret_request = buf_slice(&drift->request);
    return true;
}

static void pass_end(struct drift *drift)
{
    drift->shards[drift->at].last = drift->shards[drift->at].now;
    drift->stats.passes++;
    drift->at = (drift->at + 1) % drift->shard_count;
    drift->begun = false;
}

static void take(struct drift *drift, const Holdfast__Internal__V1__CheckCountsResponse *response)
{
    struct found *now = &drift->shards[drift->at].now;

    now->different += response->different;
    drift->stats.targets += response->targets;
    for (size_t i = 0; i < response->n_differences; i++) {
        uint64_t kept = response->differences[i]->kept;
        uint64_t computed = response->differences[i]->computed;
        uint64_t by = kept > computed ? kept - computed : computed - kept;
        now->largest = by > now->largest ? by : now->largest;
    }
    buf_clear(&drift->place);
    buf_append(&drift->place, response->place.data, response->place.len);
    if (drift->place.size > 0)
        return;
    if (drift->counts_done)
        pass_end(drift);
    else
        drift->counts_done = true;
}

void drift_answered(struct drift *drift, bool ok, struct slice body)
{
    struct arena arena = { 0 };
    struct codec_scope scope = { .arena = &arena };
    ProtobufCMessage *message = NULL;

    CHECK(drift->out);
    drift->out = false;
    if (ok && proto_decode(&holdfast__internal__v1__check_counts_response__descriptor, body, &scope,
                           &message) == ERR_OK) {
        take(drift, (const void *)message);
    } else {
        drift->stats.failed++;
        drift->at = (drift->at + 1) % drift->shard_count;
        drift->begun = false;
    }
    arena_deinit(&arena);
}

struct drift_stats drift_stats(const struct drift *drift)
{
    struct drift_stats stats = drift->stats;

    for (uint32_t i = 0; i < drift->shard_count; i++) {
        const struct shard *shard = &drift->shards[i];
        if (!shard->owned)
            continue;
        uint64_t different = shard->last.different > shard->now.different ? shard->last.different
                                                                          : shard->now.different;
        uint64_t largest =
            shard->last.largest > shard->now.largest ? shard->last.largest : shard->now.largest;
        stats.different += different;
        stats.largest = largest > stats.largest ? largest : stats.largest;
    }
    return stats;
}
