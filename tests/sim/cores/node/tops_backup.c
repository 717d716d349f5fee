/*
 * A backup of a few shards, and the cluster that is restored from it. Each shard is cut at a moment
 * of its own, and no call of a puller carries a cut (docs/backup.md): a home may be cut after it
 * logged what its source has only after the cut, or before what its source has told and forgotten.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "tests/sim/cores/node/tops.h"

#define BEGINS_IN 4u /* One turn in so many. */

struct tops_cut {
    bool taken;
    struct fixture_backup of;
    struct tops_spot *spots; /* What the shard had then, by target and collection. */
};

struct tops_backup {
    struct tops_cut cuts[TOPS_SHARDS];
    uint32_t taken;
};

static struct tops_spot *spot_of(struct tops *t, uint32_t place, uint32_t shard)
{
    return &t->targets[place / TOPS_COLLECTIONS].spots[place % TOPS_COLLECTIONS][shard];
}

static void cut(struct tops *t, uint32_t shard)
{
    struct tops_cut *cut = &t->backup->cuts[shard];
    uint32_t count = t->target_count * TOPS_COLLECTIONS;

    fixture_back_up(tops_shard(t, shard), &cut->of);
    cut->spots = mem_zalloc(count * sizeof *cut->spots);
    for (uint32_t i = 0; i < count; i++)
        cut->spots[i] = *spot_of(t, i, shard);
    cut->taken = true;
    t->backup->taken++;
}

static void restore_shard(struct tops *t, uint32_t shard)
{
    struct tops_cut *cut = &t->backup->cuts[shard];
    struct fixture *f = &t->shards[shard];

    fixture_deinit(f);
    fixture_init_shard(f, shard, t->shard_count);
    fixture_rise_above(f, &cut->of);
    f = tops_shard(t, shard);
    tops_define(t, shard);
    PROMISE(t->sim, fixture_restore(f, &cut->of), "a restore is refused: %s", f->error->message);
    for (uint32_t i = 0; i < t->target_count * TOPS_COLLECTIONS; i++) {
        struct tops_spot *spot = spot_of(t, i, shard);
        *spot = cut->spots[i];
        if (!spot->kept) /* It was forgotten: homes of the new cluster are told of no change. */
            *spot = (struct tops_spot){ 0 };
    }
}

/* Homes of the new cluster have logged nothing. */
static void restore(struct tops *t)
{
    for (uint32_t i = 0; i < t->shard_count; i++)
        restore_shard(t, i);
    for (uint32_t i = 0; i < t->target_count; i++)
        memset(t->targets[i].shares, 0, sizeof t->targets[i].shares);
    memset(t->logged, 0, sizeof t->logged);
    tops_begin_nodes(t);
    t->restored = true;
    t->sim->counts.tops_restored++;
}

void tops_back_up(struct tops *t)
{
    if (t->restored || rsim_between(t->sim, 1, BEGINS_IN) > (t->backup == NULL ? 1 : BEGINS_IN - 1))
        return;
    if (t->backup == NULL)
        t->backup = mem_zalloc(sizeof *t->backup);
    if (t->backup->taken == t->shard_count) {
        restore(t);
        return;
    }
    for (uint64_t i = rsim_between(t->sim, 1, t->shard_count); i > 0; i--) {
        uint32_t shard = (uint32_t)rsim_between(t->sim, 0, t->shard_count - 1);
        while (t->backup->taken < t->shard_count && t->backup->cuts[shard].taken)
            shard = (shard + 1) % t->shard_count;
        if (!t->backup->cuts[shard].taken)
            cut(t, shard);
    }
}

void tops_backup_free(struct tops *t)
{
    for (uint32_t i = 0; t->backup != NULL && i < TOPS_SHARDS; i++) {
        fixture_backup_deinit(&t->backup->cuts[i].of);
        free(t->backup->cuts[i].spots);
    }
    free(t->backup);
    t->backup = NULL;
}
