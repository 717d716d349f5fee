/*
 * top_view: what `holdfast top` shows: rates and percentiles from the facts of two instants, put in
 * order. Pure.
 */
#ifndef CLIENT_CLI_TOP_TOP_VIEW_H
#define CLIENT_CLI_TOP_TOP_VIEW_H

#include "client/cli/top/top_facts.h"

#define TOP_HOT_MAX    16u
#define TOP_ALERTS_MAX 32u

enum top_sort { TOP_BY_NAME, TOP_BY_RATE, TOP_BY_LATENCY, TOP_SORT_COUNT };
const char *top_sort_text(enum top_sort sort);

/* Below 0: unknown. Rates are a second, times in ms. */
struct top_node_row {
    const struct top_node *node; /* Of the later facts. */
    double calls, commit_p50, commit_p99, fsync;
};

struct top_method_row {
    const char *name;
    double rate, p50, p99, refused, unknown;
};

struct top_shard_row {
    uint32_t shard;
    uint64_t owner;
    const char *owner_name;
    double writes, reads;
};

/* `alert` is that of charts/holdfast/rules, and of the runbook. */
struct top_alert {
    const char *alert;
    char what[96];
};

/* Points into the facts. */
struct top_view {
    const struct top_facts *facts;
    double requests, failed, p50, p99; /* Of the router. */
    uint64_t sessions, transfers_open, transfers_oldest_ms, players_quarantined;
    struct top_node_row nodes[TOP_NODES_MAX];
    uint32_t node_count;
    struct top_method_row methods[TOP_METHODS_MAX];
    uint32_t method_count;
    struct top_shard_row shards[TOP_HOT_MAX]; /* The hottest first; none that is idle. */
    uint32_t shard_count;
    struct top_alert alerts[TOP_ALERTS_MAX];
    uint32_t alert_count;
};

/* All but the alerts: top_alerts_find. */
void top_view_make(const struct top_facts *before, const struct top_facts *after,
                   enum top_sort sort, struct top_view *ret_view);

#endif
