#include "client/cli/top/top_alerts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* As in charts/holdfast/rules/holdfast.yaml. */
#define FAILED_SHARE_MAX       0.001
#define FAILING_REQUESTS_MIN   1.0
#define REQUEST_P99_MS_MAX     100.0
#define UNAPPLIED_MAX          20000u
#define FSYNC_MS_MAX           10.0
#define TRANSFER_OLDEST_MS_MAX 10000u

__attribute__((format(printf, 3, 4))) static void add(struct top_view *view, const char *alert,
                                                      const char *format, ...)
{
    va_list list;

    if (view->alert_count == TOP_ALERTS_MAX)
        return;
    struct top_alert *to = &view->alerts[view->alert_count++];
    to->alert = alert;
    va_start(list, format);
    vsnprintf(to->what, sizeof to->what, format, list);
    va_end(list);
}

static void look_at_cluster(struct top_view *view)
{
    const struct top_facts *facts = view->facts;

    if (facts->shards_serving < facts->shard_count)
        add(view, "HoldfastShardsUnserved", "%u of %u shards are not served",
            facts->shard_count - facts->shards_serving, facts->shard_count);
    if (facts->coordinator[0] == 0)
        add(view, "HoldfastNoCoordinator", "no coordinator is elected");
    if (strcmp(facts->audit, "imbalanced") == 0)
        add(view, "HoldfastAuditImbalance", "goods were doubled or lost");
    if (view->transfers_oldest_ms > TRANSFER_OLDEST_MS_MAX)
        add(view, "HoldfastTransfersStuck", "a transfer waits for %.1f s",
            (double)view->transfers_oldest_ms / 1e3);
    if (view->requests > FAILING_REQUESTS_MIN && view->failed > FAILED_SHARE_MAX * view->requests)
        add(view, "HoldfastRequestsFailing", "%.1f of %.0f requests a second fail", view->failed,
            view->requests);
    if (view->p99 > REQUEST_P99_MS_MAX)
        add(view, "HoldfastSlowRequests", "p99 is %.0f ms", view->p99);
}

static void look_at_node(struct top_view *view, const struct top_node_row *row)
{
    const struct top_node *node = row->node;

    if (!node->live || !node->answered)
        add(view, "HoldfastNodeMissing", "%s %s", node->name,
            node->live ? "does not tell of itself" : "is away");
    if (strcmp(node->disk_state, "full") == 0)
        add(view, "HoldfastDiskFull", "%s takes no writes", node->name);
    else if (strcmp(node->disk_state, "low") == 0)
        add(view, "HoldfastDiskLow", "%s has little disk left", node->name);
    if (node->shards_quarantined > 0)
        add(view, "HoldfastReplicaQuarantined", "%s differs from a majority", node->name);
    if (node->unapplied > UNAPPLIED_MAX)
        add(view, "HoldfastApplyBehind", "%s has %llu entries to apply", node->name,
            (unsigned long long)node->unapplied);
    if (row->fsync > FSYNC_MS_MAX)
        add(view, "HoldfastSlowDisk", "%s needs %.0f ms a sync", node->name, row->fsync);
}

void top_alerts_find(struct top_view *view)
{
    view->alert_count = 0;
    look_at_cluster(view);
    for (uint32_t i = 0; i < view->node_count; i++)
        look_at_node(view, &view->nodes[i]);
}
