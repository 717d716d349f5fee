#include "node/io/report/document_metrics.h"

#include <stdlib.h>

#include "runtime/base/check.h"

struct policy_series {
    struct document_metrics *metrics;
    enum merge_policy policy;
};

struct document_metrics {
    struct mergers *mergers; /* NULL: cleared. */
    struct policy_series policies[MERGE_POLICY_COUNT];
};

static struct mergers_stats stats_of(const struct document_metrics *m)
{
    struct mergers_stats stats = { 0 };

    if (m->mergers != NULL)
        mergers_stats_get(m->mergers, &stats);
    return stats;
}

/* clang-format off */
/*    name      metric                                          kind     value                             help */
#define DOCUMENT_FIGURES(X)                                                                                          \
    X(replicas, "holdfast_node_documents_shards",               gauge,   stats.replicas,                   "Shards of which this node holds documents, or follows others that do.") \
    X(syncing,  "holdfast_node_documents_syncing",              gauge,   stats.syncing,                    "Of these shards, those in which this member takes everything in first, and serves nothing.") \
    X(held,     "holdfast_node_documents_bytes",                gauge,   (double)stats.record_bytes,       "Bytes of paths and values of documents in memory.") \
    X(siblings, "holdfast_node_documents_siblings",             gauge,   (double)stats.siblings,           "Documents with several siblings.") \
    X(apart,    "holdfast_node_documents_apart_seconds",        gauge,   (double)stats.apart_ms / 1000,    "Since the latest moment of which all members of a shard have all documents; 0: they are equal.") \
    X(leaving,  "holdfast_node_documents_departing",            gauge,   stats.departing,                  "Removed members that have not said that they hold nothing of their own any more.") \
    X(repair,   "holdfast_node_documents_repair_bytes_total",   counter, (double)stats.repair_bytes,       "Bytes taken in because a member had missed them.") \
    X(dropped,  "holdfast_node_documents_dropped_total",        counter, (double)stats.messages_dropped,   "Messages between members that were dropped since too much waited here.") \
    X(syncs,    "holdfast_node_documents_syncs_total",          counter, (double)stats.disk_writes,        "Batches of documents written and synced.") \
    X(written,  "holdfast_node_documents_written_bytes_total",  counter, (double)stats.disk_bytes,         "Bytes of these batches.") \
    X(servers,  "holdfast_node_game_servers",                   gauge,   stats.servers,                    "Game servers that this node knows to live.") \
    X(sync_s,   "holdfast_node_documents_sync_seconds_total",   counter, (double)stats.disk_ns / 1e9,      "Time spent on these batches.")
/* clang-format on */

#define FIGURE_READ(name, metric, kind, value, help)                                               \
    static double read_##name(void *context)                                                       \
    {                                                                                              \
        const struct mergers_stats stats = stats_of(context);                                      \
        return value;                                                                              \
    }
DOCUMENT_FIGURES(FIGURE_READ)
#undef FIGURE_READ

static double read_records(void *context)
{
    const struct policy_series *series = context;

    return (double)stats_of(series->metrics).records[series->policy];
}

static void register_policies(struct metrics *metrics, struct document_metrics *m)
{
    static const char *const names[MERGE_POLICY_COUNT] = { [MERGE_POLICY_LWW] = "last_write",
                                                           [MERGE_POLICY_MERGE] = "merge",
                                                           [MERGE_POLICY_SET] = "set",
                                                           [MERGE_POLICY_VECTOR] = "vector",
                                                           [MERGE_POLICY_COUNTER] = "counter" };

    for (enum merge_policy policy = MERGE_POLICY_LWW; policy < MERGE_POLICY_COUNT; policy++) {
        const struct metric_label labels[] = { { "policy", names[policy] }, { NULL, NULL } };

        m->policies[policy] = (struct policy_series){ m, policy };
        metrics_gauge_callback(
            metrics,
            &(struct metric_info){ "holdfast_node_documents", "Documents that are there.", labels },
            read_records, &m->policies[policy]);
    }
}

struct document_metrics *document_metrics_new(struct metrics *metrics, struct mergers *mergers)
{
    struct document_metrics *m = mem_zalloc(sizeof *m);

    m->mergers = mergers;
    register_policies(metrics, m);
#define FIGURE_REGISTER(name, metric, kind, value, help)                                           \
    metrics_##kind##_callback(metrics, &(struct metric_info){ metric, help, NULL }, read_##name, m);
    DOCUMENT_FIGURES(FIGURE_REGISTER)
#undef FIGURE_REGISTER
    return m;
}

void document_metrics_clear(struct document_metrics *metrics)
{
    if (metrics != NULL)
        metrics->mergers = NULL;
}

void document_metrics_free(struct document_metrics *metrics)
{
    free(metrics);
}
