#include "node/io/report/state_metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/check.h"

#define SHARD_TEXT_SIZE 11

struct shard_series {
    struct state_metrics *metrics;
    uint32_t shard;
};

struct state_metrics {
    struct shard_views *views; /* NULL: cleared. */
    struct db *db;
    struct shard_series *series;
};

/* False: another node serves it, or none. */
static bool find_owned(const struct shard_series *series, struct shard_view *ret_view)
{
    struct shard_views *views = series->metrics->views;

    return views != NULL && shard_views_find(views, series->shard, ret_view) && ret_view->serving;
}

static double read_epoch(void *context)
{
    struct shard_view view;

    return find_owned(context, &view) ? (double)view.epoch : 0;
}

static double read_lag(void *context)
{
    struct shard_view view;
    uint64_t lag = 0;

    if (!find_owned(context, &view))
        return 0;
    for (uint32_t i = 0; i < view.membership.count; i++) {
        const struct member_view *member = &view.members[i];
        uint64_t matched = member->known ? member->matched_index : 0;
        if (matched < view.commit_index && view.commit_index - matched > lag)
            lag = view.commit_index - matched;
    }
    return (double)lag;
}

/* clang-format off */
/*    name           property                                  metric                                     help */
#define DB_FIGURES(X)                                                                                                          \
    X(file_bytes,    "rocksdb.live-sst-files-size",               "holdfast_node_db_bytes",                    "Bytes in the database's files.") \
    X(unmerged,      "rocksdb.num-files-at-level0",               "holdfast_node_db_unmerged_files",           "Files of the database that no merge has taken in yet.") \
    X(write_buffer,  "rocksdb.cur-size-all-mem-tables",           "holdfast_node_db_write_buffer_bytes",       "Rows that wait in the database's memory.") \
    X(block_cache,   "rocksdb.block-cache-usage",                 "holdfast_node_db_block_cache_bytes",        "Blocks of its files held in memory.") \
    X(merge_pending, "rocksdb.estimate-pending-compaction-bytes", "holdfast_node_db_compaction_pending_bytes", "Bytes that are still to be merged.") \
    X(merges,        "rocksdb.num-running-compactions",           "holdfast_node_db_merges_running",           "Merges of the database's files under way.") \
    X(write_stopped, "rocksdb.is-write-stopped",                  "holdfast_node_db_write_stopped",            "1 while the database takes no more rows.")
/* clang-format on */

#define DB_FUNCTIONS(name, property, metric, help)                                                 \
    static double read_##name(void *context)                                                       \
    {                                                                                              \
        const struct state_metrics *m = context;                                                   \
        return m->db != NULL ? (double)db_property(m->db, property) : 0;                           \
    }
DB_FIGURES(DB_FUNCTIONS)
#undef DB_FUNCTIONS

static void register_shard(struct metrics *metrics, struct shard_series *series)
{
    char text[SHARD_TEXT_SIZE];
    const struct metric_label labels[] = { { "shard", text }, { NULL, NULL } };

    snprintf(text, sizeof text, "%" PRIu32, series->shard);
    metrics_gauge_callback(metrics,
                           &(struct metric_info){ "holdfast_node_shard_epoch",
                                                  "Epoch under which this node serves the shard; "
                                                  "0: it does not.",
                                                  labels },
                           read_epoch, series);
    metrics_gauge_callback(metrics,
                           &(struct metric_info){ "holdfast_node_shard_lag_entries",
                                                  "Committed entries that the last of the members "
                                                  "of a shard served here has not acknowledged.",
                                                  labels },
                           read_lag, series);
}

struct state_metrics *state_metrics_new(struct metrics *metrics, struct shard_views *views,
                                        struct db *db)
{
    struct state_metrics *m = mem_zalloc(sizeof *m);
    uint32_t count = shard_views_count(views);

    m->views = views;
    m->db = db;
    m->series = mem_zalloc(sizeof *m->series * count);
    for (uint32_t i = 0; i < count; i++) {
        m->series[i] = (struct shard_series){ m, i };
        register_shard(metrics, &m->series[i]);
    }
#define DB_REGISTER(name, property, metric, help)                                                  \
    metrics_gauge_callback(metrics, &(struct metric_info){ metric, help, NULL }, read_##name, m);
    DB_FIGURES(DB_REGISTER)
#undef DB_REGISTER
    return m;
}

void state_metrics_clear(struct state_metrics *metrics)
{
    if (metrics == NULL)
        return;
    metrics->views = NULL;
    metrics->db = NULL;
}

void state_metrics_free(struct state_metrics *metrics)
{
    if (metrics == NULL)
        return;
    free(metrics->series);
    free(metrics);
}
