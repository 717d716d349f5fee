#include "runtime/restore_watch/restore_watch.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/cluster/cluster_record.h"

#define LOOK_MS_MAX 2000u

struct restore_watch {
    struct restore_watch_options options;
    struct loop_timer timer;
    struct etcd_call *call; /* In flight; NULL: none. */
    uint32_t quiet;         /* Timers since etcd was looked at. */
    uint64_t generation;    /* The highest that was read here, or in an earlier life. */
};

/* What mirrors said of the generation does not count: they may have said it of the older etcd,
 * before its age was noticed. */
static void look_at(struct restore_watch *watch, const struct etcd_kv *kv)
{
    const struct restore_watch_options *options = &watch->options;
    const char *cluster_id = options->cluster_id(options->user);
    struct cluster_record record;
    uint64_t before = watch->generation;

    if (cluster_record_decode(kv->value, &record, NULL) != ERR_OK)
        return;
    if (cluster_id != NULL && strcmp(cluster_id, record.cluster_id) != 0)
        return; /* Another cluster: never. */
    if (record.generation > before)
        watch->generation = record.generation;
    if (before != 0 && record.generation > before) {
        log_event(options->log, LOG_WARN, "etcd.restore_accepted",
                  LOG_N("generation", record.generation), LOG_N("generation_before", before));
        etcd_rollback_accept(options->etcd);
        options->accepted(options->user, record.generation);
    } else if (options->restored != NULL && etcd_rolled_back(options->etcd)) {
        options->restored(options->user, kv);
    }
}

static void on_read(void *context, err e, const struct etcd_range_result *result)
{
    struct restore_watch *watch = context;

    watch->call = NULL;
    if (e == ERR_OK && result->kv_count == 1)
        look_at(watch, &result->kvs[0]);
}

static void on_timer(void *user)
{
    struct restore_watch *watch = user;
    struct cluster_key key = cluster_key_cluster(watch->options.cluster);
    const struct etcd_range range = { .key = cluster_key_slice(&key) };

    if (watch->call != NULL)
        return;
    if (!etcd_rolled_back(watch->options.etcd) && ++watch->quiet < RESTORE_WATCH_QUIET)
        return;
    watch->quiet = 0;
    if (etcd_range(watch->options.etcd, &range, on_read,
                   &(struct etcd_wait){ LOOK_MS_MAX, watch, &watch->call }) != ERR_OK)
        watch->call = NULL; /* The next look will do. */
}

struct restore_watch *restore_watch_new(const struct restore_watch_options *options)
{
    struct restore_watch *watch = mem_zalloc(sizeof *watch);

    watch->options = *options;
    watch->generation = options->generation;
    watch->quiet = RESTORE_WATCH_QUIET;
    loop_timer_init(&watch->timer, options->loop, on_timer, watch);
    loop_timer_start_repeating(&watch->timer, RESTORE_WATCH_MS);
    return watch;
}

void restore_watch_free(struct restore_watch *watch)
{
    if (watch == NULL)
        return;
    loop_timer_stop(&watch->timer);
    if (watch->call != NULL)
        etcd_call_cancel(watch->call);
    free(watch);
}
