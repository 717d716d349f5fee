#include "runtime/etcd/etcd_mirror.h"

#include <stdlib.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd_client.h"
#include "runtime/etcd/etcd_watch.h"
#include "runtime/etcd/mirror_index.h"

enum { RETRY_MS_MIN = 100, RETRY_MS_MAX = 2000 };

struct etcd_mirror {
    struct etcd *etcd;
    struct etcd_mirror_options options;
    struct buf prefix;
    struct mirror_index index;
    struct etcd_watch *watch;
    struct etcd_call *range; /* The page on its way; NULL: none, or its keys are being told. */
    int64_t range_revision;  /* Of the first page, and so of all; 0: it has not come. */
    struct buf range_after;  /* The last key of the page before. */
    size_t range_changes;    /* That the watch had not told. */
    bool ranging;            /* From the first page's request to the last page's end. */
    struct etcd_timer timer; /* The next range, or the restart. */
    uint64_t retry_ms;
    uint64_t round;
    bool restart; /* A rollback was accepted. */
    bool busy;    /* In callbacks: free later. */
    bool stopped;
    struct etcd_follower follower;
};

static void mirror_free(struct etcd_mirror *mirror)
{
    mirror_index_deinit(&mirror->index);
    buf_deinit(&mirror->prefix);
    buf_deinit(&mirror->range_after);
    free(mirror);
}

/* ---- Changes, one key at a time ---- */

static void take_put(struct etcd_mirror *mirror, const struct etcd_kv *kv)
{
    struct mirror_entry *entry = mirror_index_find(&mirror->index, kv->key);

    if (entry == NULL && mirror->index.count >= mirror->options.keys_max) {
        log_event(mirror->etcd->log, LOG_ERROR, "etcd.mirror_full",
                  LOG_N("keys_max", mirror->options.keys_max));
        return;
    }
    entry = mirror_index_get(&mirror->index, kv->key);
    if (entry->revision >= kv->mod_revision)
        return;
    entry->revision = kv->mod_revision;
    entry->deleted = false;
    entry->round = mirror->round;
    mirror->options.put(mirror->options.context, kv);
}

static void take_delete(struct etcd_mirror *mirror, struct slice key, int64_t revision)
{
    struct mirror_entry *entry = mirror_index_find(&mirror->index, key);

    if (entry == NULL || entry->revision >= revision) {
        /* Not known, or made again since; but a range on its way may still show the old one. */
        if (entry == NULL && mirror->ranging) {
            entry = mirror_index_get(&mirror->index, key);
            entry->revision = revision;
            entry->deleted = true;
        }
        return;
    }
    bool told = !entry->deleted;
    entry->revision = revision;
    entry->deleted = true;
    if (!mirror->ranging)
        mirror_index_remove(&mirror->index, (size_t)(entry - mirror->index.entries));
    if (told)
        mirror->options.deleted(mirror->options.context, key, revision);
}

/* ---- The watch ---- */

static void watch_events(void *context, const struct etcd_event *events, size_t count,
                         int64_t revision)
{
    struct etcd_mirror *mirror = context;
    (void)revision;

    if (mirror->etcd->rolled_back)
        return;
    mirror->busy = true;
    for (size_t i = 0; i < count && !mirror->stopped; i++) {
        if (events[i].deleted)
            take_delete(mirror, events[i].kv.key, events[i].kv.mod_revision);
        else
            take_put(mirror, &events[i].kv);
    }
    mirror->busy = false;
    if (mirror->stopped)
        mirror_free(mirror);
}

static void watch_reset(void *context, int64_t compact_revision)
{
    struct etcd_mirror *mirror = context;

    log_event(mirror->etcd->log, LOG_WARN, "etcd.watch_compacted",
              LOG_N("compact_revision", compact_revision));
    etcd_watch_stop(mirror->watch);
    mirror->watch = NULL;
    etcd_mirror_refresh(mirror);
}

static void watch_begin(struct etcd_mirror *mirror, int64_t revision)
{
    struct etcd_watch_options options = { .key = buf_slice(&mirror->prefix),
                                          .prefix = true,
                                          .start_revision = revision,
                                          .events = watch_events,
                                          .reset = watch_reset,
                                          .context = mirror };

    CHECK(etcd_watch_start(mirror->etcd, &options, &mirror->watch) == ERR_OK);
}

/* ---- The range ---- */

/* Live keys as of `revision` which this round's range did not show are gone. Also forgets deletes.
 * Returns how many it told of. */
static size_t sweep(struct etcd_mirror *mirror, int64_t revision)
{
    size_t told = 0;

    for (size_t i = mirror->index.count; i > 0 && !mirror->stopped; i--) {
        struct mirror_entry entry = mirror->index.entries[i - 1];
        if (entry.deleted) {
            mirror_index_remove(&mirror->index, i - 1);
            continue;
        }
        if (entry.round == mirror->round || entry.revision > revision)
            continue;
        mirror->index.entries[i - 1].key = NULL; /* Kept for the callback. */
        mirror_index_remove(&mirror->index, i - 1);
        struct slice key = { entry.key, entry.key_size };
        mirror->options.deleted(mirror->options.context, key, revision);
        free(entry.key);
        told++;
    }
    return told;
}

static void range_failed(struct etcd_mirror *mirror, err e)
{
    mirror->ranging = false;
    log_event(mirror->etcd->log, LOG_WARN, "etcd.mirror_range_failed", LOG_S("error", err_name(e)));
    if (mirror->watch != NULL)
        etcd_watch_reconnect(mirror->watch, 0);
    etcd_timer_start(&mirror->etcd->timers, &mirror->timer, mirror->retry_ms);
    if (mirror->retry_ms * 2 <= RETRY_MS_MAX)
        mirror->retry_ms *= 2;
}

static void apply_page(struct etcd_mirror *mirror, const struct etcd_range_result *page)
{
    for (size_t i = 0; i < page->kv_count && !mirror->stopped; i++) {
        const struct etcd_kv *kv = &page->kvs[i];
        struct mirror_entry *entry = mirror_index_get(&mirror->index, kv->key);
        entry->round = mirror->round;
        mirror->range_changes += entry->revision < kv->mod_revision ? 1u : 0u;
        take_put(mirror, kv);
    }
}

static void range_ended(struct etcd_mirror *mirror)
{
    int64_t revision = mirror->range_revision;

    mirror->range_changes += sweep(mirror, revision);
    if (mirror->stopped)
        return;
    mirror->ranging = false;
    mirror->retry_ms = RETRY_MS_MIN;
    etcd_timer_start(&mirror->etcd->timers, &mirror->timer, mirror->options.refresh_ms);
    if (mirror->watch == NULL)
        watch_begin(mirror, revision + 1);
    else if (mirror->range_changes > 0) /* It should have told; perhaps it is dead. */
        etcd_watch_reconnect(mirror->watch, revision + 1);
    mirror->options.synced(mirror->options.context, revision);
}

/* Of the first page: how many keys there are is known before any is told. */
static err range_begun(struct etcd_mirror *mirror, const struct etcd_range_result *page)
{
    if (page->total > 0 && (uint64_t)page->total > mirror->options.keys_max)
        return ERR_TOO_LARGE;
    mirror->round++;
    mirror->range_revision = page->header.revision;
    return ERR_OK;
}

static void range_page(struct etcd_mirror *mirror);

static void range_next(struct etcd_mirror *mirror, const struct etcd_range_result *page)
{
    struct slice last = page->kvs[page->kv_count - 1].key;

    buf_clear(&mirror->range_after);
    buf_append(&mirror->range_after, last.data, last.size);
    range_page(mirror);
}

static void range_done(void *context, err e, const struct etcd_range_result *range)
{
    struct etcd_mirror *mirror = context;

    mirror->range = NULL;
    if (mirror->etcd->rolled_back) {
        mirror->ranging = false;
        return; /* Until it is accepted, which restarts the mirror. */
    }
    if (e == ERR_OK && mirror->range_revision == 0)
        e = range_begun(mirror, range);
    if (e != ERR_OK) {
        range_failed(mirror, e);
        return;
    }
    mirror->busy = true;
    apply_page(mirror, range);
    if (!mirror->stopped && range->more && range->kv_count > 0)
        range_next(mirror, range);
    else if (!mirror->stopped)
        range_ended(mirror);
    mirror->busy = false;
    if (mirror->stopped)
        mirror_free(mirror);
}

static void range_page(struct etcd_mirror *mirror)
{
    struct etcd_range range = { .key = buf_slice(&mirror->prefix),
                                .prefix = true,
                                .after = buf_slice(&mirror->range_after),
                                .limit = ETCD_MIRROR_PAGE_KEYS,
                                .revision = mirror->range_revision };
    err e = etcd_range(mirror->etcd, &range, range_done,
                       &(struct etcd_wait){ 0, mirror, &mirror->range });

    if (e != ERR_OK)
        range_failed(mirror, e);
}

static void mirror_range(struct etcd_mirror *mirror)
{
    if (mirror->ranging || mirror->etcd->rolled_back)
        return;
    mirror->ranging = true;
    mirror->range_revision = 0;
    mirror->range_changes = 0;
    buf_clear(&mirror->range_after);
    range_page(mirror);
}

static void mirror_timer(struct etcd_timer *timer)
{
    struct etcd_mirror *mirror = CONTAINER_OF(timer, struct etcd_mirror, timer);

    if (mirror->restart) {
        mirror->restart = false;
        if (mirror->range != NULL)
            etcd_call_cancel(mirror->range);
        mirror->range = NULL;
        mirror->ranging = false;
        if (mirror->watch != NULL)
            etcd_watch_stop(mirror->watch);
        mirror->watch = NULL;
        mirror_index_deinit(&mirror->index);
        mirror->busy = true;
        if (mirror->options.reset != NULL)
            mirror->options.reset(mirror->options.context);
        mirror->busy = false;
        if (mirror->stopped) {
            mirror_free(mirror);
            return;
        }
    }
    mirror_range(mirror);
}

static void mirror_restart(struct etcd_follower *follower)
{
    struct etcd_mirror *mirror = CONTAINER_OF(follower, struct etcd_mirror, follower);

    mirror->restart = true;
    etcd_mirror_refresh(mirror);
}

/* ---- Public ---- */

err etcd_mirror_start(struct etcd *etcd, const struct etcd_mirror_options *options,
                      struct etcd_mirror **ret_mirror)
{
    if (options->prefix.size > ETCD_KEY_MAX)
        return ERR_INVALID;
    struct etcd_mirror *mirror = mem_zalloc(sizeof *mirror);
    mirror->etcd = etcd;
    mirror->options = *options;
    if (mirror->options.refresh_ms == 0)
        mirror->options.refresh_ms = ETCD_MIRROR_REFRESH_MS;
    if (mirror->options.keys_max == 0)
        mirror->options.keys_max = ETCD_MIRROR_KEYS_MAX;
    buf_append(&mirror->prefix, options->prefix.data, options->prefix.size);
    mirror->retry_ms = RETRY_MS_MIN;
    mirror->timer.fire = mirror_timer;
    mirror->follower.restart = mirror_restart;
    etcd_follow(etcd, &mirror->follower);
    etcd->users++;
    mirror_range(mirror);
    *ret_mirror = mirror;
    return ERR_OK;
}

void etcd_mirror_stop(struct etcd_mirror *mirror)
{
    struct etcd *etcd = mirror->etcd;

    CHECK(!mirror->stopped);
    mirror->stopped = true;
    if (mirror->range != NULL)
        etcd_call_cancel(mirror->range);
    if (mirror->watch != NULL)
        etcd_watch_stop(mirror->watch);
    etcd_timer_stop(&etcd->timers, &mirror->timer);
    etcd_unfollow(etcd, &mirror->follower);
    etcd->users--;
    if (!mirror->busy)
        mirror_free(mirror);
}

void etcd_mirror_refresh(struct etcd_mirror *mirror)
{
    etcd_timer_start(&mirror->etcd->timers, &mirror->timer, 0);
}
