#include "node/io/report/peer_metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/io/cluster/peers.h"
#include "runtime/base/check.h"

#define ID_TEXT_SIZE 24

struct series {
    struct peer_metrics *metrics;
    uint64_t replica;
};

struct peer_metrics {
    struct metrics *metrics;
    struct shard_views *views; /* NULL: cleared. */
    const struct shard_map *map;
    struct series *series; /* PEERS_MAX of them: their addresses are registered. */
    uint32_t count;
};

/* Of the shards served here, the one that is worst off. */
struct worst {
    uint64_t replica;
    uint64_t lag, stalled_ms;
};

static void look(void *user, const struct shard_view *view)
{
    struct worst *worst = user;

    if (!view->serving)
        return;
    for (uint32_t i = 0; i < view->membership.count; i++) {
        const struct member_view *member = &view->members[i];
        uint64_t lag =
            view->last_index > member->matched_index ? view->last_index - member->matched_index : 0;

        if (view->membership.members[i] != worst->replica || !member->known)
            continue;
        worst->lag = lag > worst->lag ? lag : worst->lag;
        if (member->stalled_ms > worst->stalled_ms)
            worst->stalled_ms = member->stalled_ms;
    }
}

/* Zeros of a node without a lease: that is missed as such. */
static struct worst worst_of(const struct series *series)
{
    const struct peer_metrics *m = series->metrics;
    struct worst worst = { .replica = series->replica };

    if (m->views != NULL && shard_map_find_node(m->map, series->replica) != NULL)
        shard_views_visit(m->views, look, &worst);
    return worst;
}

static double read_lag(void *context)
{
    return (double)worst_of(context).lag;
}

static double read_stalled(void *context)
{
    return (double)worst_of(context).stalled_ms / 1000;
}

struct peer_metrics *peer_metrics_new(struct metrics *metrics, struct shard_views *views,
                                      const struct shard_map *map)
{
    struct peer_metrics *m = mem_zalloc(sizeof *m);

    m->metrics = metrics;
    m->views = views;
    m->map = map;
    m->series = mem_zalloc(sizeof *m->series * PEERS_MAX);
    return m;
}

void peer_metrics_know(struct peer_metrics *metrics, const struct node_record *record)
{
    char id[ID_TEXT_SIZE];
    const struct metric_label labels[] = { { "peer", record->name },
                                           { "replica", id },
                                           { NULL, NULL } };

    for (uint32_t i = 0; i < metrics->count; i++) {
        if (metrics->series[i].replica == record->replica_id)
            return;
    }
    if (metrics->count == PEERS_MAX)
        return;
    struct series *series = &metrics->series[metrics->count++];

    *series = (struct series){ metrics, record->replica_id };
    snprintf(id, sizeof id, "%" PRIu64, record->replica_id);
    metrics_gauge_callback(metrics->metrics,
                           &(struct metric_info){ "holdfast_node_peer_lag_entries",
                                                  "Entries that this peer has not acknowledged, of "
                                                  "the shard served here where it lacks most.",
                                                  labels },
                           read_lag, series);
    metrics_gauge_callback(
        metrics->metrics,
        &(struct metric_info){ "holdfast_node_peer_stalled_seconds",
                               "For how long this peer has acknowledged nothing of a shard served "
                               "here, though there is something; 0: it follows, or has no lease.",
                               labels },
        read_stalled, series);
}

void peer_metrics_clear(struct peer_metrics *metrics)
{
    if (metrics == NULL)
        return;
    metrics->views = NULL;
    metrics->map = NULL;
}

void peer_metrics_free(struct peer_metrics *metrics)
{
    if (metrics == NULL)
        return;
    free(metrics->series);
    free(metrics);
}
