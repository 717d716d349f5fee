/* What goes by itself, by writes of the owner: what expired, the presence that dead servers left,
 * the documents of deleted collections. Each walk is taken up where it was left. */
#include "node/core/document/presence.h"
#include "node/core/mergeable/write.h"
#include "node/io/mergeable/mergers_internal.h"

/* In one tick. */
#define SWEEPS_MAX         128u
#define SWEEPS_DEAD_MAX    128u
#define SWEEPS_DELETED_MAX 128u
/* Between two walks for what came under deleted collections. */
#define DELETED_MS 30000u

/* What has expired goes by a write of the owner's, which is a write like any other. */
static void sweep_expired(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];

    for (uint32_t i = 0; i < SWEEPS_MAX; i++) {
        struct merge_written written;
        struct merge_key *key = NULL;
        err e = merge_sweep(merger->replica, loop_wall_ms(), merger->swept, &key, &written);

        merge_key_unref(merger->swept);
        merger->swept = e == ERR_OK ? key : NULL;
        mergers->drain(mergers, shard);
        if (e != ERR_OK)
            return;
    }
}

/* The presence that servers left behind when they ended is not shown; it goes like what expired. */
static void sweep_dead(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];
    uint64_t ended = mergers->options.living != NULL ? mergers->options.living->ended : 0;
    struct refusal refusal;

    if (merger->mourned == ended)
        return;
    if (merger->swept_dead == NULL)
        merger->mourning = ended;
    for (uint32_t i = 0; i < SWEEPS_DEAD_MAX; i++) {
        struct merge_key *key = NULL;

        arena_reset(&mergers->arena);
        struct document_context context =
            mergers_context(mergers, shard, (struct slice){ 0 }, &refusal);
        err e = presence_sweep(&context, merger->swept_dead, &key);

        if (e != ERR_OK && e != ERR_NOT_FOUND)
            return;
        merge_key_unref(merger->swept_dead);
        merger->swept_dead = key;
        mergers->drain(mergers, shard);
        if (e == ERR_NOT_FOUND) {
            merger->mourned = merger->mourning;
            return;
        }
    }
}

/* A member that has not heard of the deletion may still write there. */
static void sweep_deleted(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];
    uint64_t now_ms = loop_now_ms(mergers->options.loop);
    struct refusal refusal;

    if (mergers->rules.deleted_count == 0 || now_ms < merger->deleted_due_ms)
        return;
    for (uint32_t i = 0; i < SWEEPS_DELETED_MAX; i++) {
        struct merge_key *key = NULL;

        arena_reset(&mergers->arena);
        struct document_context context =
            mergers_context(mergers, shard, (struct slice){ 0 }, &refusal);
        err e = document_sweep_deleted(&context, merger->swept_deleted, &key);

        merge_key_unref(merger->swept_deleted);
        merger->swept_deleted = e == ERR_OK ? key : NULL;
        mergers->drain(mergers, shard);
        if (e != ERR_OK) {
            merger->deleted_due_ms = now_ms + DELETED_MS;
            return;
        }
    }
}

void mergers_sweep(struct mergers *mergers, uint32_t shard, bool looks)
{
    if (looks || mergers->shards[shard].swept != NULL)
        sweep_expired(mergers, shard);
    if (looks)
        sweep_dead(mergers, shard);
    sweep_deleted(mergers, shard);
}
