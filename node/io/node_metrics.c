#include "node/io/node_metrics.h"

#include <stdlib.h>
#include <string.h>

#include "idl/method.h"
#include "node/io/worker.h"
#include "runtime/base/check.h"

#define STATUS_COUNT 4

static const char *const status_names[STATUS_COUNT] = {
    [REPLY_OK] = "ok",
    [REPLY_REFUSED] = "refused",
    [REPLY_NOT_OWNER] = "not_owner",
    [REPLY_UNKNOWN] = "unknown",
};

struct node_metrics {
    struct metrics *metrics;
    const struct worker *worker;
    struct counter *calls[METHOD_ID_MAX + 1][STATUS_COUNT];
    struct histogram *latency[METHOD_ID_MAX + 1];
};

static void register_method(struct node_metrics *m, const struct method_info *method)
{
    const struct metric_label latency_labels[] = { { "method", method->name }, { NULL, NULL } };

    for (int status = 0; status < STATUS_COUNT; status++) {
        const struct metric_label labels[] = { { "method", method->name },
                                               { "status", status_names[status] },
                                               { NULL, NULL } };
        m->calls[method->id][status] = metrics_counter(
            m->metrics, &(struct metric_info){ "holdfast_node_calls_total",
                                               "Calls answered by this node.", labels });
    }
    m->latency[method->id] = metrics_histogram(
        m->metrics,
        &(struct metric_info){ "holdfast_node_call_duration_seconds",
                               "Time from a call's arrival at the node to its answer.",
                               latency_labels },
        &histogram_latency_us);
}

struct node_metrics *node_metrics_new(struct metrics *metrics)
{
    struct node_metrics *m = mem_zalloc(sizeof *m);
    size_t count;
    const struct method_info *methods = method_all(&count);

    m->metrics = metrics;
    for (size_t i = 0; i < count; i++) {
        if (methods[i].route >= METHOD_MUTATION && methods[i].route <= METHOD_SHARD_WRITE)
            register_method(m, &methods[i]);
    }
    return m;
}

void node_metrics_free(struct node_metrics *metrics)
{
    free(metrics);
}

void node_metrics_call(struct node_metrics *metrics, uint32_t method, enum reply_status status,
                       uint64_t latency_us)
{
    if (method > METHOD_ID_MAX || metrics->latency[method] == NULL)
        return;
    counter_add_owned(metrics->calls[method][status], 1);
    histogram_observe_owned(metrics->latency[method], latency_us);
}

/* ---- sums over the shards, read at each scrape ---- */

typedef uint64_t shard_figure(const struct shard *shard, const struct shard_stats *stats);

static double sum_of(const struct node_metrics *m, shard_figure *figure)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; m->worker != NULL && i < worker_shard_count(m->worker); i++) {
        const struct shard *shard = worker_shard(m->worker, i);
        struct shard_stats stats;
        if (shard == NULL)
            continue;
        shard_stats_get(shard, &stats);
        sum += figure(shard, &stats);
    }
    return (double)sum;
}

/* clang-format off */
/*    name            metric                                        kind     expression                            help */
#define SHARD_FIGURES(X)                                                                                                     \
    X(owned,          "holdfast_node_shards_owned",                 gauge,   shard_serves(shard),                  "Shards this node owns and serves.") \
    X(held,           "holdfast_node_shards_held",                  gauge,   1,                                    "Shards this node has a replica of.") \
    X(sessions,       "holdfast_node_sessions",                     gauge,   shard_serves(shard) ? shard_meta(shard)->session_count : 0, "Sessions in the shards this node owns.") \
    X(lag,            "holdfast_node_unapplied_entries",            gauge,   rep_last_index(shard_rep(shard)) - shard_applied_index(shard), "Log entries not applied yet.") \
    X(waiting,        "holdfast_node_calls_waiting",                gauge,   stats->waiting_calls,                 "Calls waiting inside shards.") \
    X(row_bytes,      "holdfast_node_rows_memory_bytes",            gauge,   stats->state.bytes,                   "Rows held in memory.") \
    X(dirty_rows,     "holdfast_node_rows_dirty",                   gauge,   stats->state.dirty_rows,              "Rows not yet in a checkpoint.") \
    X(applied,        "holdfast_node_entries_applied_total",        counter, stats->applied,                       "Log entries applied.") \
    X(proposed,       "holdfast_node_entries_proposed_total",       counter, stats->proposed,                      "Log entries proposed by this node.") \
    X(refused,        "holdfast_node_operations_refused_total",     counter, stats->refused,                       "Operations refused by the rules.") \
    X(duplicates,     "holdfast_node_operations_duplicate_total",   counter, stats->duplicates,                    "Repeated operations answered from their stored outcome.") \
    X(stale,          "holdfast_node_stale_writes_refused_total",   counter, stats->stale_writes_refused,          "Writes refused because another session fences them.") \
    X(steals,         "holdfast_node_sessions_stolen_total",        counter, stats->steals,                        "Sessions taken after their grace period.") \
    X(promotions,     "holdfast_node_promotions_total",             counter, stats->promotions,                    "Times a shard of this node began to serve.") \
    X(diverged,       "holdfast_node_replica_divergence_total",     counter, stats->diverged,                      "Times a replica's outcome hash differed.") \
    X(hits,           "holdfast_node_row_hits_total",               counter, stats->state.hits,                    "Row look-ups answered from memory.") \
    X(misses,         "holdfast_node_row_misses_total",             counter, stats->state.misses,                  "Row look-ups that needed the database.")
/* clang-format on */

#define FIGURE_FUNCTIONS(name, metric, kind, expression, help)                                     \
    static uint64_t figure_##name(const struct shard *shard, const struct shard_stats *stats)      \
    {                                                                                              \
        (void)shard;                                                                               \
        (void)stats;                                                                               \
        return (uint64_t)(expression);                                                             \
    }                                                                                              \
    static double read_##name(void *context)                                                       \
    {                                                                                              \
        return sum_of(context, figure_##name);                                                     \
    }
SHARD_FIGURES(FIGURE_FUNCTIONS)
#undef FIGURE_FUNCTIONS

static double read_checkpoints(void *context)
{
    const struct node_metrics *m = context;
    struct worker_stats stats = { 0 };

    if (m->worker != NULL)
        worker_stats_get(m->worker, &stats);
    return (double)stats.checkpoints;
}

void node_metrics_clear_worker(struct node_metrics *metrics)
{
    metrics->worker = NULL;
}

void node_metrics_set_worker(struct node_metrics *m, const struct worker *worker)
{
    m->worker = worker;
#define FIGURE_REGISTER(name, metric, kind, expression, help)                                      \
    metrics_##kind##_callback(m->metrics, &(struct metric_info){ metric, help, NULL },             \
                              read_##name, m);
    SHARD_FIGURES(FIGURE_REGISTER)
#undef FIGURE_REGISTER
    metrics_counter_callback(m->metrics,
                             &(struct metric_info){ "holdfast_node_checkpoints_total",
                                                    "Shard checkpoints written.", NULL },
                             read_checkpoints, m);
}
