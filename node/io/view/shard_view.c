#include "node/io/view/shard_view.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/base/check.h"

#define NEVER_RESTORED 1u
#define RESTORING      (1ull << 63)

struct shard_views {
    pthread_mutex_t lock;
    uint32_t count;
    _Atomic int64_t *pulled; /* By shard. */
    _Atomic uint64_t tops;
    /* By shard: a generation, and RESTORING; 0: it was not seen yet. */
    _Atomic uint64_t *restored;
    struct erasures *erasures;
    struct shard_view views[];
};

struct shard_views *shard_views_new(uint32_t shard_count)
{
    struct shard_views *views =
        mem_zalloc(sizeof *views + sizeof views->views[0] * (size_t)shard_count);

    CHECK(pthread_mutex_init(&views->lock, NULL) == 0);
    views->count = shard_count;
    views->erasures = erasures_new(shard_count);
    views->pulled = mem_zalloc(sizeof *views->pulled * ((size_t)shard_count + 1));
    views->restored = mem_zalloc(sizeof *views->restored * ((size_t)shard_count + 1));
    return views;
}

void shard_views_free(struct shard_views *views)
{
    if (views == NULL)
        return;
    pthread_mutex_destroy(&views->lock);
    free(views->pulled);
    free(views->restored);
    erasures_free(views->erasures);
    free(views);
}

uint32_t shard_views_count(const struct shard_views *views)
{
    return views->count;
}

void shard_views_set_pulled(struct shard_views *views, uint32_t shard, int64_t pulled_ms)
{
    CHECK(shard < views->count);
    atomic_store_explicit(&views->pulled[shard], pulled_ms, memory_order_relaxed);
}

int64_t shard_views_pulled(const struct shard_views *views, uint32_t shard)
{
    CHECK(shard < views->count);
    return atomic_load_explicit(&views->pulled[shard], memory_order_relaxed);
}

void shard_views_count_top(struct shard_views *views)
{
    atomic_fetch_add_explicit(&views->tops, 1, memory_order_relaxed);
}

uint64_t shard_views_tops(const struct shard_views *views)
{
    return atomic_load_explicit(&views->tops, memory_order_relaxed);
}

uint64_t shard_views_restore_generation(struct hash128 restore_id)
{
    uint64_t generation = load_u64(restore_id.bytes) & ~RESTORING;

    return generation > NEVER_RESTORED ? generation : NEVER_RESTORED + 1;
}

bool shard_views_restored(const struct shard_views *views, uint32_t shard, uint64_t *ret_generation,
                          bool *ret_restoring)
{
    CHECK(shard < views->count);
    uint64_t restored = atomic_load_explicit(&views->restored[shard], memory_order_relaxed);

    *ret_generation = restored & ~RESTORING;
    *ret_restoring = (restored & RESTORING) != 0;
    return restored != 0;
}

static uint64_t restored_of(const struct shard_use *use)
{
    static const struct hash128 none = { { 0 } };

    if (hash128_equal(use->restore_id, none))
        return NEVER_RESTORED;
    return shard_views_restore_generation(use->restore_id) |
           (use->kind == USE_RESTORING ? RESTORING : 0);
}

struct erasures *shard_views_erasures(const struct shard_views *views)
{
    return views->erasures;
}

bool shard_views_serves(struct shard_views *views, uint32_t shard)
{
    CHECK(shard < views->count);
    CHECK(pthread_mutex_lock(&views->lock) == 0);
    bool serves = views->views[shard].held && views->views[shard].serving;
    CHECK(pthread_mutex_unlock(&views->lock) == 0);
    return serves;
}

static struct shard_view view_of(const struct shard *shard)
{
    const struct rep *rep = shard_rep(shard);
    struct shard_view view = {
        .shard = shard_number(shard),
        .held = true,
        .removed = rep_is_removed(rep),
        .mute = rep_is_mute(rep),
        .serving = shard_serves(shard),
        .open = shard_is_open(shard),
        .quarantined = rep_is_quarantined(rep),
        .wants_rows = rep_wants_rows(rep),
        .role = rep_role(rep),
        .owner = rep_owner(rep),
        .owner_silent_ms = rep_owner_silent_ms(rep),
        .declines = rep_declines(rep),
        .outgrown = rep_is_outgrown(rep),
        .clock_ahead = rep_clock_is_ahead(rep),
        .epoch = rep_epoch(rep),
        .generation = rep_generation(rep),
        .apply_version = shard_meta(shard)->apply_version,
        .config = rep_config(rep),
        .membership = *rep_membership(rep),
        .last_dot = rep_last_dot(rep),
        .last_index = rep_last_index(rep),
        .commit_index = rep_commit_index(rep),
        .owner_commit_index = rep_owner_commit_index(rep),
        .follows = rep_verified_index(rep) != 0,
        .wants_snapshot = rep_snapshot_source(rep) != 0,
        .applied_index = shard_applied_index(shard),
        .outcome_hash = shard_meta(shard)->outcome_hash,
        .sessions = shard_meta(shard)->session_count,
        .events = shard_meta(shard)->events.count,
        .reviews = shard_meta(shard)->review_count,
        .reviews_since_ms = shard_meta(shard)->review_since_ms,
        .events_written = shard_meta(shard)->events.written,
        .events_trimmed = shard_meta(shard)->events.removed,
    };

    for (uint32_t i = 0; i < view.membership.count; i++) {
        struct member_view *member = &view.members[i];
        member->known = rep_member_state(rep, view.membership.members[i], &member->matched_index,
                                         &member->heard_ms);
        member->stalled_ms = rep_member_stalled_ms(rep, view.membership.members[i]);
    }
    shard_stats_get(shard, &view.stats);
    return view;
}

static void publish(struct shard_views *views, const struct shard_view *view)
{
    CHECK(view->shard < views->count);
    pthread_mutex_lock(&views->lock);
    views->views[view->shard] = *view;
    pthread_mutex_unlock(&views->lock);
}

void shard_views_publish(struct shard_views *views, const struct shard *shard, uint64_t checkpoints,
                         uint64_t replayed)
{
    struct shard_view view = view_of(shard);

    view.checkpoints = checkpoints;
    view.replayed = replayed;
    atomic_store_explicit(&views->restored[view.shard], restored_of(&shard_meta(shard)->use),
                          memory_order_relaxed);
    publish(views, &view);
}

void shard_views_publish_damaged(struct shard_views *views, uint32_t shard)
{
    publish(views, &(struct shard_view){
                       .shard = shard, .held = true, .role = REP_DAMAGED, .mute = true });
}

bool shard_views_find(struct shard_views *views, uint32_t shard, struct shard_view *ret_view)
{
    CHECK(shard < views->count);
    pthread_mutex_lock(&views->lock);
    bool held = views->views[shard].held;
    if (held)
        *ret_view = views->views[shard];
    pthread_mutex_unlock(&views->lock);
    return held;
}

void shard_views_visit(struct shard_views *views,
                       void (*visit)(void *user, const struct shard_view *view), void *user)
{
    pthread_mutex_lock(&views->lock);
    for (uint32_t i = 0; i < views->count; i++) {
        if (views->views[i].held)
            visit(user, &views->views[i]);
    }
    pthread_mutex_unlock(&views->lock);
}
