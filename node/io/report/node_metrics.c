#include "node/io/report/node_metrics.h"

#include <stdlib.h>
#include <string.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/metrics/budget_metrics.h"

#define STATUS_COUNT 4

static const char *const status_names[STATUS_COUNT] = {
    [REPLY_OK] = "ok",
    [REPLY_REFUSED] = "refused",
    [REPLY_NOT_OWNER] = "not_owner",
    [REPLY_UNKNOWN] = "unknown",
};

struct node_metrics {
    struct metrics *metrics;
    struct shard_views *views; /* NULL, and the log too: no sources. */
    struct node_log *store_log;
    struct incidents *incidents;
    const struct space *space;
    const struct scrub *scrub;
    const struct pulls *pulls;
    const struct etcd *etcd;
    struct counter *calls[METHOD_ID_MAX + 1][STATUS_COUNT];
    struct histogram *latency[METHOD_ID_MAX + 1];
    struct histogram *commits;
    struct counter *unread;
    struct counter *throttled[2]; /* Of askers: for answers, for places. */
};

#define REFUSED_FAMILY "holdfast_node_answers_refused_total"
#define REFUSED_HELP   "Answers to reads that were refused for their bytes, by what was full."

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
        if (methods[i].route >= METHOD_MUTATION && methods[i].route <= METHOD_SHARD_VIEW)
            register_method(m, &methods[i]);
    }
    m->commits = metrics_histogram(
        metrics,
        &(struct metric_info){ "holdfast_node_commit_duration_seconds",
                               "Time from the hand-over of a write to the log until a majority of "
                               "replicas had it.",
                               NULL },
        &histogram_latency_us);
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

struct histogram *node_metrics_commits(const struct node_metrics *metrics)
{
    return metrics->commits;
}

static struct counter *throttled_counter(struct node_metrics *m, const char *of)
{
    const struct metric_label labels[] = { { "share", of }, { NULL, NULL } };

    return metrics_counter(
        m->metrics,
        &(struct metric_info){ "holdfast_node_callers_throttled_total",
                               "Calls refused: their key or client holds its share of that, over "
                               "all routers.",
                               labels });
}

void node_metrics_set_answers(struct node_metrics *m, struct budget *answers)
{
    const struct metric_label labels[] = { { "reason", "link" }, { NULL, NULL } };

    budget_metrics_register(m->metrics, answers,
                            &(struct budget_metric_names){ "holdfast_node_answers_bytes",
                                                           "holdfast_node_answers_max_bytes",
                                                           REFUSED_FAMILY, REFUSED_HELP });
    m->throttled[0] = throttled_counter(m, "answers");
    m->throttled[1] = throttled_counter(m, "calls");
    m->unread =
        metrics_counter(m->metrics, &(struct metric_info){ REFUSED_FAMILY, REFUSED_HELP, labels });
}

void node_metrics_asker_throttled(struct node_metrics *m, bool places)
{
    counter_add_owned(m->throttled[places], 1);
}

void node_metrics_answer_unread(struct node_metrics *m)
{
    counter_add_owned(m->unread, 1);
}

void node_metrics_visit(const struct node_metrics *metrics,
                        void (*visit)(void *user, const struct node_calls *calls), void *user)
{
    size_t count;
    const struct method_info *methods = method_all(&count);

    for (size_t i = 0; i < count; i++) {
        struct node_calls calls = { .method = &methods[i],
                                    .latency = metrics->latency[methods[i].id] };
        uint64_t all = 0;

        if (calls.latency == NULL)
            continue;
        for (int status = 0; status < STATUS_COUNT; status++) {
            calls.answered[status] = counter_get(metrics->calls[methods[i].id][status]);
            all += calls.answered[status];
        }
        if (all > 0)
            visit(user, &calls);
    }
}

/* ---- sums over the shards, read at each scrape ---- */

typedef uint64_t shard_figure(const struct shard_view *view);

struct sum {
    shard_figure *figure;
    uint64_t value;
};

static void sum_add(void *user, const struct shard_view *view)
{
    struct sum *sum = user;
    sum->value += sum->figure(view);
}

static double sum_of(const struct node_metrics *m, shard_figure *figure)
{
    struct sum sum = { .figure = figure };

    if (m->views != NULL)
        shard_views_visit(m->views, sum_add, &sum);
    return (double)sum.value;
}

static void oldest_take(void *user, const struct shard_view *view)
{
    uint64_t *oldest_ms = user;

    if (view->serving && view->stats.transfers_oldest_ms > *oldest_ms)
        *oldest_ms = view->stats.transfers_oldest_ms;
}

static double read_oldest(void *context)
{
    const struct node_metrics *m = context;
    uint64_t oldest_ms = 0;

    if (m->views != NULL)
        shard_views_visit(m->views, oldest_take, &oldest_ms);
    return (double)oldest_ms / 1e3;
}

static void first_review_take(void *user, const struct shard_view *view)
{
    uint64_t *first_ms = user;

    if (view->serving && view->reviews_since_ms > 0 && view->reviews_since_ms < *first_ms)
        *first_ms = view->reviews_since_ms;
}

static double read_first_review(void *context)
{
    const struct node_metrics *m = context;
    uint64_t first_ms = loop_wall_ms(), now_ms = first_ms;

    if (m->views != NULL)
        shard_views_visit(m->views, first_review_take, &first_ms);
    return (double)(now_ms - first_ms) / 1e3;
}

/* clang-format off */
/*    name            metric                                        kind     expression                            help */
#define SHARD_FIGURES(X)                                                                                                     \
    X(owned,          "holdfast_node_shards_owned",                  gauge,   view->serving,                            "Shards this node owns and serves.") \
    X(clock_ahead,    "holdfast_node_shards_clock_ahead",            gauge,   view->clock_ahead,                        "Shards this node owns whose members refuse its clock: it is ahead of theirs.") \
    X(held,           "holdfast_node_shards_held",                   gauge,   view->removed ? 0 : 1,                     "Shards this node has a replica of.") \
    X(sessions,       "holdfast_node_sessions",                      gauge,   view->serving ? view->sessions : 0,       "Sessions in the shards this node owns.") \
    X(events,         "holdfast_node_events",                        gauge,   view->serving ? view->events : 0,         "Events kept in the shards this node owns.") \
    X(reviews,        "holdfast_node_reviews_waiting",               gauge,   view->serving ? view->reviews : 0,        "Flagged edges that wait for a review, in the shards this node owns.") \
    X(events_written, "holdfast_node_events_written_total",          counter, view->events_written,                     "Events written by the log entries that were applied here.") \
    X(events_trimmed, "holdfast_node_events_trimmed_total",          counter, view->events_trimmed,                     "Events that retention removed here.") \
    X(lag,            "holdfast_node_unapplied_entries",             gauge,   view->last_index - view->applied_index,   "Log entries not applied yet.") \
    X(waiting,        "holdfast_node_calls_waiting",                 gauge,   view->stats.waiting_calls,                "Calls waiting inside shards.") \
    X(row_bytes,      "holdfast_node_rows_memory_bytes",             gauge,   view->stats.state.bytes,                  "Rows held in memory.") \
    X(dirty_rows,     "holdfast_node_rows_dirty",                    gauge,   view->stats.state.dirty_rows,             "Rows not yet in a checkpoint.") \
    X(applied,        "holdfast_node_entries_applied_total",         counter, view->stats.applied,                      "Log entries applied.") \
    X(proposed,       "holdfast_node_entries_proposed_total",        counter, view->stats.proposed,                     "Log entries proposed by this node.") \
    X(refused,        "holdfast_node_operations_refused_total",      counter, view->stats.refused,                      "Operations refused by the rules.") \
    X(duplicates,     "holdfast_node_operations_duplicate_total",    counter, view->stats.duplicates,                   "Repeated operations answered from their stored outcome.") \
    X(stale,          "holdfast_node_stale_writes_refused_total",    counter, view->stats.stale_writes_refused,         "Writes refused because another session fences them.") \
    X(rates,          "holdfast_node_rate_rules_refused_total",      counter, view->stats.rates_refused,                "Operations refused because their player passed a rate rule.") \
    X(steals,         "holdfast_node_sessions_stolen_total",         counter, view->stats.steals,                       "Sessions taken after their grace period.") \
    X(promotions,     "holdfast_node_promotions_total",              counter, view->stats.promotions,                   "Times a shard of this node began to serve.") \
    X(diverged,       "holdfast_node_replica_divergence_total",      counter, view->stats.diverged,                     "Times a replica's outcome hash differed.") \
    X(wrong,          "holdfast_node_shards_quarantined",            gauge,   view->quarantined,                        "Shards whose replica here differs from a majority: it serves nothing.") \
    X(rows_wanting,   "holdfast_node_shards_rows_wanting",           gauge,   view->wants_rows,                         "Shards that cannot be owned here: only quarantined replicas have the rows that are missing.") \
    X(hits,           "holdfast_node_row_hits_total",                counter, view->stats.state.hits,                   "Row look-ups answered from memory.") \
    X(misses,         "holdfast_node_row_misses_total",              counter, view->stats.state.misses,                 "Row look-ups that needed the database.") \
    X(transfers_open, "holdfast_node_transfers_in_flight",           gauge,   view->serving ? view->stats.transfers_open : 0, "Transfers to other shards that are not settled yet.") \
    X(transfers_sent, "holdfast_node_transfers_sent_total",          counter, view->stats.transfers_sent,               "Records sent to other shards, repeats included.") \
    X(transfers_again, "holdfast_node_transfers_retried_total",      counter, view->stats.transfers_retried,            "Records sent to other shards again.") \
    X(transfers_done, "holdfast_node_transfers_settled_total",       counter, view->stats.transfers_settled,            "Transfers that arrived, as their source has logged.") \
    X(transfers_back, "holdfast_node_transfers_refunded_total",      counter, view->stats.transfers_refunded,           "Transfers that were refused or cancelled, as their source has logged.") \
    X(reads_waiting,  "holdfast_node_reads_waiting",                 gauge,   view->stats.reads_waiting,                "Reads of several players that wait for a transaction's end now.") \
    X(reads_waited,   "holdfast_node_reads_waited_total",            counter, view->stats.reads_waited,                 "Reads of several players that met a transaction, and waited.") \
    X(reads_late,     "holdfast_node_reads_timed_out_total",         counter, view->stats.reads_timed_out,              "Reads that waited for a transaction until their deadline.") \
    X(reads_away,     "holdfast_node_reads_turned_away_total",       counter, view->stats.reads_turned_away,            "Reads that met a transaction while too many waited already.") \
    X(writes_waiting, "holdfast_node_writes_waiting",                gauge,   view->stats.writes_waiting,               "Writes that wait for reads of their players now.") \
    X(writes_waited,  "holdfast_node_writes_waited_total",           counter, view->stats.writes_yielded,               "Writes that waited for reads of their players.") \
    X(prepares_later, "holdfast_node_prepares_put_off_total",        counter, view->stats.prepares_later,               "Parts of transactions that were put off for reads, and sent again.") \
    X(read_holds,     "holdfast_node_read_holds_total",              counter, view->stats.read_holds,                   "Times that a read made writes of a player wait.") \
    X(quarantined,    "holdfast_node_players_quarantined",           gauge,   view->serving ? view->stats.quarantined : 0, "Players held back in the shards this node owns.") \
    X(unreadable,     "holdfast_node_rows_unreadable_total",          counter, view->stats.rows_unreadable,             "Times that a row was met which cannot be read; its player is held back, and operators are told.") \
    X(unapplied,      "holdfast_node_entries_unapplied_total",        counter, view->stats.entries_unapplied,           "Entries of the log that were skipped, since this program cannot make sense of them.") \
    X(unread,         "holdfast_node_rows_unread",                   gauge,   view->serving ? view->stats.unread_rows : 0, "Changes of rows that could not be decoded, and so are not in the audit's sums.") \
    X(snap_given,     "holdfast_node_snapshots_given_total",         counter, view->stats.snapshot.given,               "Snapshots begun for a replica that is behind.") \
    X(snap_parts,     "holdfast_node_snapshot_parts_total",          counter, view->stats.snapshot.parts,               "Parts of snapshots sent, repeats included.") \
    X(snap_taken,     "holdfast_node_snapshots_installed_total",     counter, view->stats.snapshot.taken,               "Snapshots that replaced a shard that was behind.") \
    X(snap_dropped,   "holdfast_node_replicas_dropped_total",        counter, view->stats.snapshot.dropped,             "Shards whose rows were dropped, since another node took the place.") \
    X(refused_full,   "holdfast_node_writes_refused_full_total",     counter, view->stats.refused_full,                 "Writes refused for want of disk.") \
    X(checkpoints,    "holdfast_node_checkpoints_total",             counter, view->checkpoints,                        "Shard checkpoints written.") \
    X(replayed,       "holdfast_node_entries_replayed_total",        counter, view->replayed,                           "Log entries behind the checkpoints when the node started.")
/* clang-format on */

#define FIGURE_FUNCTIONS(name, metric, kind, expression, help)                                     \
    static uint64_t figure_##name(const struct shard_view *view)                                   \
    {                                                                                              \
        (void)view;                                                                                \
        return (uint64_t)(expression);                                                             \
    }                                                                                              \
    static double read_##name(void *context)                                                       \
    {                                                                                              \
        return sum_of(context, figure_##name);                                                     \
    }
SHARD_FIGURES(FIGURE_FUNCTIONS)
#undef FIGURE_FUNCTIONS

static uint64_t figure_read_held_ms(const struct shard_view *view)
{
    return view->stats.read_held_ms;
}

static double read_held_seconds(void *context)
{
    return sum_of(context, figure_read_held_ms) / 1e3;
}

/* clang-format off */
/*    name            metric                                        kind     figure              help */
#define LOG_FIGURES(X)                                                                                                       \
    X(log_bytes,      "holdfast_node_log_bytes",                     gauge,   log_bytes,          "Disk that the log takes.") \
    X(log_segments,   "holdfast_node_log_segments",                  gauge,   segments,           "Log files with entries that are still needed, or not yet freed.") \
    X(log_recycled,   "holdfast_node_log_segments_recycled_total",   counter, recycled,           "Log files cut off and written again.") \
    X(log_entries,    "holdfast_node_log_entries_total",             counter, entries,            "Entries written to the log.") \
    X(log_written,    "holdfast_node_log_written_bytes_total",       counter, written_bytes,      "Bytes written to the log.") \
    X(log_sync_s,     "holdfast_node_log_sync_seconds_total",        counter, sync_ns / 1e9,      "Time spent in syncs of the log.") \
    X(log_synced,     "holdfast_node_log_syncs_total",               counter, syncs,              "Times the log was fsynced.") \
    X(log_waits,      "holdfast_node_log_space_waits_total",         counter, space_waits,        "Times the log waited for disk.")
/* clang-format on */

#define LOG_FUNCTIONS(name, metric, kind, figure, help)                                            \
    static double read_##name(void *context)                                                       \
    {                                                                                              \
        const struct node_metrics *m = context;                                                    \
        struct node_log_stats stats = { 0 };                                                       \
        if (m->store_log != NULL)                                                                  \
            node_log_stats_get(m->store_log, &stats);                                              \
        return (double)stats.figure;                                                               \
    }
LOG_FIGURES(LOG_FUNCTIONS)
#undef LOG_FUNCTIONS

void node_metrics_clear_sources(struct node_metrics *m)
{
    m->views = NULL;
    m->store_log = NULL;
    m->incidents = NULL;
    m->space = NULL;
    m->scrub = NULL;
    m->pulls = NULL;
    m->etcd = NULL;
}

static double read_etcd_back(void *context)
{
    const struct node_metrics *m = context;

    return m->etcd != NULL && etcd_rolled_back(m->etcd);
}

void node_metrics_set_etcd(struct node_metrics *m, const struct etcd *etcd)
{
    m->etcd = etcd;
    metrics_gauge_callback(m->metrics,
                           &(struct metric_info){ "holdfast_node_etcd_rolled_back",
                                                  "1 when etcd is older than this node knows.",
                                                  NULL },
                           read_etcd_back, m);
}

static double read_disk_free(void *context)
{
    const struct node_metrics *m = context;

    return (double)space_free_bytes(m->space);
}

static double read_disk_low(void *context)
{
    const struct node_metrics *m = context;

    return space_state(m->space) != SPACE_OK;
}

static double read_disk_full(void *context)
{
    const struct node_metrics *m = context;

    return space_state(m->space) == SPACE_FULL;
}

/* clang-format off */
#define SPACE_FIGURES(X)                                                                                                     \
    X(disk_free,      "holdfast_node_disk_free_bytes",               "Free disk under log and database: of the fuller one.") \
    X(disk_low,       "holdfast_node_disk_low",                      "1 while less than twice --disk-free-min is free: others get this node's shards.") \
    X(disk_full,      "holdfast_node_disk_full",                     "1 while this node refuses writes for want of disk.")
/* clang-format on */

void node_metrics_set_space(struct node_metrics *m, const struct space *space)
{
    m->space = space;
#define SPACE_REGISTER(name, metric, help)                                                         \
    metrics_gauge_callback(m->metrics, &(struct metric_info){ metric, help, NULL }, read_##name, m);
    SPACE_FIGURES(SPACE_REGISTER)
#undef SPACE_REGISTER
}

/* clang-format off */
/*    name            metric                                             kind     expression                help */
#define SCRUB_FIGURES(X)                                                                                                     \
    X(scrub_bytes,    "holdfast_node_scrub_bytes_total",                 counter, stats.bytes,              "Bytes of rows and of the log that were read to find damage.") \
    X(scrub_passes,   "holdfast_node_scrub_passes_total",                counter, stats.passes,             "Times that all of it was read, and found whole.") \
    X(scrub_last,     "holdfast_node_scrub_last_pass_timestamp_seconds", gauge,   (double)stats.last_pass_ms / 1e3, "When that was last, since 1970; 0: not since the node started.") \
    X(scrub_period,   "holdfast_node_scrub_period_seconds",              gauge,   (double)stats.period_ms / 1e3,    "How often that is to be done; 0: never.") \
    X(scrub_damage,   "holdfast_node_scrub_damage_total",                counter, stats.damage,             "Times that it was not: the node stops then, to be salvaged or repaired.")
/* clang-format on */

#define SCRUB_FUNCTION(name, metric, kind, expression, help)                                       \
    static double read_##name(void *context)                                                       \
    {                                                                                              \
        const struct node_metrics *m = context;                                                    \
        struct scrub_stats stats;                                                                  \
        scrub_stats_get(m->scrub, &stats);                                                         \
        return (double)(expression);                                                               \
    }
SCRUB_FIGURES(SCRUB_FUNCTION)
#undef SCRUB_FUNCTION

void node_metrics_set_scrub(struct node_metrics *m, const struct scrub *scrub)
{
    m->scrub = scrub;
#define SCRUB_REGISTER(name, metric, kind, expression, help)                                       \
    metrics_##kind##_callback(m->metrics, &(struct metric_info){ metric, help, NULL },             \
                              read_##name, m);
    SCRUB_FIGURES(SCRUB_REGISTER)
#undef SCRUB_REGISTER
}

/* clang-format off */
/*    name            metric                                        kind     expression                         help */
#define PULL_FIGURES(X)                                                                                                      \
    X(totals_behind,  "holdfast_node_totals_behind_seconds",        gauge,   (double)stats.behind_ms / 1e3,     "How old the counts of some shard are in this node's totals of targets, at the worst.") \
    X(pull_rounds,    "holdfast_node_totals_rounds_total",          counter, stats.puller.rounds,               "Times this node asked all shards which counts of targets changed.") \
    X(pull_failed,    "holdfast_node_totals_calls_failed_total",    counter, stats.puller.failed,               "Calls for that which were not answered.") \
    X(pull_items,     "holdfast_node_totals_counts_total",          counter, stats.puller.items,                "Counts of targets that were logged in this node's totals.") \
    X(pull_asked,     "holdfast_node_totals_asked_bytes_total",     counter, stats.puller.asked_bytes,          "Bytes in which this node asked them.") \
    X(pull_bytes,     "holdfast_node_totals_pulled_bytes_total",    counter, stats.puller.bytes,                "Bytes in which shards told them.") \
    X(pull_unchanged, "holdfast_node_totals_unchanged_total",       counter, stats.puller.unchanged,            "Answers of shards that had no change for this node's totals.") \
    X(pull_forgotten, "holdfast_node_totals_forgotten_total",       counter, stats.puller.forgotten,            "Targets without edges that a shard removed, since this node's totals know of it.") \
    X(drift_targets,  "holdfast_node_counts_compared_total",        counter, stats.drift.targets,               "Targets whose kept count was compared with what it counts, in shards that this node owns.") \
    X(drift_passes,   "holdfast_node_counts_passes_total",          counter, stats.drift.passes,                "Shards that were compared from end to end.") \
    X(drift_found,    "holdfast_node_counts_different",             gauge,   stats.drift.different,             "Targets found with another count, or other windows, than what they count.") \
    X(drift_largest,  "holdfast_node_counts_drift",                 gauge,   stats.drift.largest,               "By how much a kept count was off, at the most.")
/* clang-format on */

#define PULL_FUNCTION(name, metric, kind, expression, help)                                        \
    static double read_##name(void *context)                                                       \
    {                                                                                              \
        const struct node_metrics *m = context;                                                    \
        struct pulls_stats stats = { 0 };                                                          \
        if (m->pulls != NULL)                                                                      \
            pulls_stats_get(m->pulls, &stats);                                                     \
        return (double)(expression);                                                               \
    }
PULL_FIGURES(PULL_FUNCTION)
#undef PULL_FUNCTION

void node_metrics_set_pulls(struct node_metrics *m, const struct pulls *pulls)
{
    m->pulls = pulls;
#define PULL_REGISTER(name, metric, kind, expression, help)                                        \
    metrics_##kind##_callback(m->metrics, &(struct metric_info){ metric, help, NULL },             \
                              read_##name, m);
    PULL_FIGURES(PULL_REGISTER)
#undef PULL_REGISTER
}

/* clang-format off */
#define INCIDENT_FIGURES(X)                                                                        \
    X(duplicate_attempt,   INCIDENT_DUPLICATE_ATTEMPT)                                             \
    X(reconciled,          INCIDENT_RECONCILED)                                                    \
    X(stale_write_refused, INCIDENT_STALE_WRITE_REFUSED)                                           \
    X(contained,           INCIDENT_CONTAINED)                                                     \
    X(released,            INCIDENT_RELEASED)
/* clang-format on */

#define INCIDENT_FUNCTION(name, kind)                                                              \
    static double read_incident_##name(void *context)                                              \
    {                                                                                              \
        const struct node_metrics *m = context;                                                    \
        return m->incidents == NULL ? 0 : (double)incidents_count(m->incidents, kind);             \
    }
INCIDENT_FIGURES(INCIDENT_FUNCTION)
#undef INCIDENT_FUNCTION

void node_metrics_set_incidents(struct node_metrics *m, struct incidents *incidents)
{
    m->incidents = incidents;
#define INCIDENT_REGISTER(name, incident_kind)                                                     \
    metrics_counter_callback(                                                                      \
        m->metrics,                                                                                \
        &(struct metric_info){                                                                     \
            "holdfast_node_incidents_total", "What is out of the ordinary, by kind.",              \
            (const struct metric_label[]){ { "kind", #name }, { NULL, NULL } } },                  \
        read_incident_##name, m);
    INCIDENT_FIGURES(INCIDENT_REGISTER)
#undef INCIDENT_REGISTER
}

void node_metrics_set_sources(struct node_metrics *m, struct shard_views *views,
                              struct node_log *store_log)
{
    m->views = views;
    m->store_log = store_log;
#define FIGURE_REGISTER(name, metric, kind, expression, help)                                      \
    metrics_##kind##_callback(m->metrics, &(struct metric_info){ metric, help, NULL },             \
                              read_##name, m);
    SHARD_FIGURES(FIGURE_REGISTER)
    LOG_FIGURES(FIGURE_REGISTER)
#undef FIGURE_REGISTER
    metrics_gauge_callback(m->metrics,
                           &(struct metric_info){ "holdfast_node_transfers_oldest_seconds",
                                                  "Since the oldest transfer in flight was made.",
                                                  NULL },
                           read_oldest, m);
    metrics_gauge_callback(
        m->metrics,
        &(struct metric_info){ "holdfast_node_reviews_oldest_seconds",
                               "Since the first of the flagged edges was flagged.", NULL },
        read_first_review, m);
    metrics_counter_callback(
        m->metrics,
        &(struct metric_info){ "holdfast_node_read_held_seconds_total",
                               "Time that players' writes had to wait for reads.", NULL },
        read_held_seconds, m);
}
