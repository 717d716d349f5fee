/*
 * shard_view: what others than its worker may know of a shard: status, claims, metrics. A worker
 * publishes its shards about every SHARD_VIEW_PERIOD_MS, and at once when a role changes; readers
 * see a state that was true then, each shard by itself consistent. The table's lock is taken by
 * publishing and reading only, never by a call's way through a shard (DESIGN section 9).
 */
#ifndef NODE_IO_VIEW_SHARD_VIEW_H
#define NODE_IO_VIEW_SHARD_VIEW_H

#include "node/core/shard/shard.h"
#include "node/io/view/erasures.h"

#define SHARD_VIEW_PERIOD_MS 100u

/* Another member, as the owner knows it. */
struct member_view {
    bool known;
    uint64_t matched_index;
    uint64_t heard_ms;   /* Since it was heard. */
    uint64_t stalled_ms; /* rep_member_stalled_ms. */
};

struct shard_view {
    uint32_t shard;
    bool held;    /* False: nothing else is set. */
    bool removed; /* Another node took the place: nothing is left but a promise. */
    bool mute;    /* rep_is_mute. */
    bool serving;
    bool open;        /* shard_is_open. */
    bool quarantined; /* Its outcomes differ from those of a majority (rep.h). */
    bool wants_rows;  /* rep_wants_rows. */
    enum rep_role role;
    uint64_t owner;           /* 0: unknown. */
    uint64_t owner_silent_ms; /* Since the owner was heard of this shard; 0 for the owner itself. */
    bool declines;            /* rep_declines. */
    bool outgrown;            /* rep_is_outgrown. */
    bool clock_ahead;         /* rep_clock_is_ahead. */
    uint64_t epoch;
    uint64_t generation;
    uint32_t apply_version; /* Of what it applied last. */
    uint64_t config;        /* The greatest that it knows of (rep_config). */
    struct membership membership;
    struct member_view members[MEMBERS_MAX]; /* As in membership.members. */
    struct dot last_dot;
    uint64_t last_index, commit_index, applied_index;
    uint64_t owner_commit_index; /* What the owner said last; 0: it was not heard yet. */
    bool follows;                /* Our log goes on from a part that is the owner's too. */
    bool wants_snapshot;         /* The others' logs no longer reach back to ours. */
    struct hash128 outcome_hash;
    uint64_t sessions;
    uint64_t events;  /* Kept. */
    uint64_t reviews; /* Edges that wait for a review; and since when the first does, by the */
    uint64_t reviews_since_ms;               /* clock of the owner that flagged it; 0: none. */
    uint64_t events_written, events_trimmed; /* Since the shard was loaded. */
    uint64_t checkpoints;                    /* Written since the start. */
    uint64_t replayed; /* Entries found in the log behind the checkpoint, at the start. */
    struct shard_stats stats;
};

struct shard_views;

struct shard_views *shard_views_new(uint32_t shard_count);
/* NULL is allowed. */
void shard_views_free(struct shard_views *views);
uint32_t shard_views_count(const struct shard_views *views);

/* On the thread of the shard's worker. `checkpoints` and `replayed` as in the view. */
void shard_views_publish(struct shard_views *views, const struct shard *shard, uint64_t checkpoints,
                         uint64_t replayed);

/* Held, but damaged and so not loaded: role is REP_DAMAGED, nothing else is known. */
void shard_views_publish_damaged(struct shard_views *views, uint32_t shard);

/* Any thread, without the lock: puller_pulled_ms of a shard (node/core/top/puller.h). */
void shard_views_set_pulled(struct shard_views *views, uint32_t shard, int64_t pulled_ms);
int64_t shard_views_pulled(const struct shard_views *views, uint32_t shard);
/* Any thread, without the lock: a top list of some shard here was asked for; how often so far. */
void shard_views_count_top(struct shard_views *views);
uint64_t shard_views_tops(const struct shard_views *views);
/* Any thread, without the lock. False: the shard was not seen here yet. *ret_generation is 1 for
 * one that was never restored from a backup, else it names the backup
 * (shard_views_restore_generation); *ret_restoring: it serves no caller until that is over. */
bool shard_views_restored(const struct shard_views *views, uint32_t shard, uint64_t *ret_generation,
                          bool *ret_restoring);
/* Which generation of documents a restore begins. Above 1. */
uint64_t shard_views_restore_generation(struct hash128 restore_id);
/* Any thread: who is erased; as long as the views. */
struct erasures *shard_views_erasures(const struct shard_views *views);
/* Any thread: the shard is served here. */
bool shard_views_serves(struct shard_views *views, uint32_t shard);

/* Any thread. False: not held, `ret_view` is untouched. */
bool shard_views_find(struct shard_views *views, uint32_t shard, struct shard_view *ret_view);
/* Any thread: visits every held shard, by number, under the lock: no call into this module. */
void shard_views_visit(struct shard_views *views,
                       void (*visit)(void *user, const struct shard_view *view), void *user);

#endif
