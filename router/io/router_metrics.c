#include "router/io/router_metrics.h"

#include <stdlib.h>
#include <string.h>

#include "router/io/action_log.h"
#include "router/io/slow_log.h"
#include "router/rpc/counts/count_gather.h"
#include "router/rpc/metadata/metadata_gather.h"
#include "runtime/base/check.h"

#define CODES_MAX 64 /* Above every ErrorCode; 0 is success. */

/* What reads one reason's count. */
struct refusal_reader {
    const struct router_metrics *metrics;
    enum gatekeeper_reason reason;
};

struct token_reader {
    const struct router_metrics *metrics;
    enum session_guard_reason reason;
};

struct player_reader {
    const struct router_metrics *metrics;
    enum jwt_fault fault;
};

/* The same of those that the endpoint refuses by itself. */
struct http_refusal_reader {
    const struct router_metrics *metrics;
    enum http_refused why;
};

struct router_metrics {
    struct router_metrics_options options;
    struct slow_log slow;
    struct action_log actions;
    uint64_t life; /* Another one after each start. */
    const struct public_door *door;
    const struct gatekeeper *gatekeeper;
    const struct player_gate *players; /* NULL: their tokens are not taken, as the next. */
    const struct player_keys *player_keys;
    struct player_reader player_refusals[JWT_FAULT_COUNT];
    struct refusal_reader refusals[GATEKEEPER_REASON_COUNT];
    struct token_reader tokens[SESSION_GUARD_REASONS];
    struct http_refusal_reader http_refusals[HTTP_REFUSED_COUNT];
    const struct node_links *links;
    const struct consumer_watch *consumers;
    struct counter *requests[METHOD_ID_MAX + 1][CODES_MAX]; /* Made when first seen. */
    struct histogram *latency[METHOD_ID_MAX + 1];
};

static struct counter *requests_counter(struct router_metrics *metrics,
                                        const struct method_info *method,
                                        Holdfast__V1__ErrorCode code)
{
    uint32_t place = (uint32_t)code < CODES_MAX ? (uint32_t)code : CODES_MAX - 1;
    struct counter **counter = &metrics->requests[method->id][place];
    char text[ACTION_CODE_TEXT_SIZE];

    if (*counter != NULL)
        return *counter;
    action_code_text(code, text);
    const struct metric_label labels[] = { { "method", method->name },
                                           { "code", text },
                                           { NULL, NULL } };
    *counter = metrics_counter(metrics->options.metrics,
                               &(struct metric_info){ "holdfast_router_requests_total",
                                                      "Requests answered, by outcome.", labels });
    return *counter;
}

void router_metrics_finished(void *context, const struct request *request,
                             Holdfast__V1__ErrorCode code, uint64_t latency_us)
{
    struct router_metrics *metrics = context;
    char text[ACTION_CODE_TEXT_SIZE];

    counter_add_owned(requests_counter(metrics, request->method, code), 1);
    action_code_text(code, text);
    action_log_finished(&metrics->actions, request, code, text,
                        loop_now_ms(metrics->options.router->options.loop));
    if (request->method->route == METHOD_STREAM || request->waited) /* That is no latency. */
        return;
    if (metrics->latency[request->method->id] != NULL) /* NULL: an internal method was asked for. */
        histogram_observe_owned(metrics->latency[request->method->id], latency_us);
    bool failed = request_is_failure(code);
    if (latency_us / 1000 < metrics->options.slow_ms && !failed)
        return;
    slow_log_request(&metrics->slow, request,
                     &(struct slow_end){ text, failed, latency_us * 1000 });
}

/* The alert HoldfastRequestsFailing counts the same. */
static bool is_failure(uint32_t code)
{
    return code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN ||
           code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE ||
           code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INTERNAL;
}

static void add_method(const struct router_metrics *metrics, uint32_t method,
                       Holdfast__V1__RouterLoad *load)
{
    uint64_t buckets[METRICS_BUCKETS_MAX + 1];

    for (uint32_t code = 0; code < CODES_MAX; code++) {
        const struct counter *counter = metrics->requests[method][code];
        uint64_t count = counter != NULL ? counter_get(counter) : 0;

        load->answered += count;
        if (is_failure(code))
            load->failed += count;
    }
    /* Joins may wait for the player's holder: the alert on slow requests leaves them out. */
    if (metrics->latency[method] == NULL || method == METHOD_START_SESSION ||
        method == METHOD_BATCH_START_SESSION)
        return;
    size_t used = histogram_copy(metrics->latency[method], buckets, ARRAY_SIZE(buckets));
    for (size_t i = 0; i < used; i++)
        load->buckets[i] += buckets[i];
    if (used > load->n_buckets)
        load->n_buckets = used;
}

void router_metrics_load(void *context, struct arena *arena, Holdfast__V1__RouterLoad *load)
{
    const struct router_metrics *metrics = context;

    load->name = text_lend(metrics->options.name);
    load->life = metrics->life;
    load->at_us = loop_clock_ns() / 1000;
    load->in_flight = router_in_flight(metrics->options.router);
    load->buckets = arena_zalloc(arena, (METRICS_BUCKETS_MAX + 1) * sizeof *load->buckets);
    for (uint32_t method = 0; method <= METHOD_ID_MAX; method++)
        add_method(metrics, method, load);
}

/* ---- read at each scrape ---- */

static struct caller_stats caller_now(const void *context)
{
    const struct router_metrics *metrics = context;

    return metrics->options.router->options.caller != NULL
               ? caller_stats(metrics->options.router->options.caller)
               : (struct caller_stats){ 0 };
}

static struct servers_stats servers_now(const void *context)
{
    const struct router_metrics *metrics = context;

    return metrics->options.router->options.servers != NULL
               ? servers_stats(metrics->options.router->options.servers)
               : (struct servers_stats){ 0 };
}

static struct counts_stats counts_now(const void *context)
{
    const struct router_metrics *metrics = context;

    return metrics->options.router->counts != NULL ? counts_stats(metrics->options.router->counts)
                                                   : (struct counts_stats){ 0 };
}

static struct metas_stats metas_now(const void *context)
{
    const struct router_metrics *metrics = context;

    return metrics->options.router->metas != NULL ? metas_stats(metrics->options.router->metas)
                                                  : (struct metas_stats){ 0 };
}

static struct http_stats http_now(const void *context)
{
    const struct router_metrics *metrics = context;

    return metrics->door != NULL ? *public_door_stats(metrics->door) : (struct http_stats){ 0 };
}

static double read_refused(void *context)
{
    const struct refusal_reader *reader = context;
    const struct gatekeeper *gatekeeper = reader->metrics->gatekeeper;

    return gatekeeper != NULL ? (double)gatekeeper_refused(gatekeeper, reader->reason) : 0;
}

static double read_token(void *context)
{
    const struct token_reader *reader = context;

    return (double)reader->metrics->options.router->guard.refused[reader->reason];
}

static void register_tokens(struct router_metrics *metrics)
{
    static const char *const reasons[SESSION_GUARD_REASONS] = { "no_mac", "wrong_mac" };

    for (enum session_guard_reason i = 0; i < SESSION_GUARD_REASONS; i++) {
        const struct metric_label labels[] = { { "reason", reasons[i] }, { NULL, NULL } };

        metrics->tokens[i] = (struct token_reader){ metrics, i };
        metrics_counter_callback(
            metrics->options.metrics,
            &(struct metric_info){ "holdfast_router_tokens_refused_total",
                                   "Session tokens that no router of this cluster gave.", labels },
            read_token, &metrics->tokens[i]);
    }
}

static double read_player_refused(void *context)
{
    const struct player_reader *reader = context;
    const struct player_gate *players = reader->metrics->players;

    return players != NULL ? (double)player_gate_refused(players, reader->fault) : 0;
}

static void register_players(struct router_metrics *metrics)
{
    for (enum jwt_fault i = JWT_OK + 1; i < JWT_FAULT_COUNT; i++) {
        const struct metric_label labels[] = { { "reason", jwt_fault_text(i) }, { NULL, NULL } };

        metrics->player_refusals[i] = (struct player_reader){ metrics, i };
        metrics_counter_callback(
            metrics->options.metrics,
            &(struct metric_info){ "holdfast_router_player_tokens_refused_total",
                                   "Requests with a player's token that is refused.", labels },
            read_player_refused, &metrics->player_refusals[i]);
    }
}

static struct player_keys_stats player_keys_now(const struct router_metrics *metrics)
{
    return metrics->player_keys != NULL ? player_keys_stats(metrics->player_keys)
                                        : (struct player_keys_stats){ 0 };
}

static struct consumer_lag consumers_now(const struct router_metrics *metrics)
{
    return metrics->consumers != NULL ? consumer_watch_lag(metrics->consumers)
                                      : (struct consumer_lag){ 0 };
}

static double consumer_ratio(const struct router_metrics *metrics)
{
    const struct consumer_lag lag = consumers_now(metrics);

    return consumer_lag_ratio(&lag);
}

static double read_http_refused(void *context)
{
    const struct http_refusal_reader *reader = context;

    return (double)http_now(reader->metrics).refused[reader->why];
}

/* clang-format off */
/*    kind     name                                    figure                                 help */
#define FIGURES(X)                                                                                 \
    X(gauge,   in_flight,                   router_in_flight(metrics->options.router),             \
      "Calls admitted and not answered yet.")                                                      \
    X(gauge,   incident_watches,               metrics->options.router->watch_count,                  \
      "Streams of incidents that are open.")                                                       \
    X(gauge,   event_streams,               metrics->options.router->subscriber_count,             \
      "Streams of events that are open.")                                                          \
    X(counter, events_streamed_total,       metrics->options.router->events_streamed,              \
      "Events told by streams.")                                                                   \
    X(counter, event_gaps_total,            metrics->options.router->event_gaps,                   \
      "Gaps told by streams: events that were gone, or could not be read.")                        \
    X(gauge,   event_consumers,             consumers_now(metrics).consumers,                      \
      "Consumers of events in the cluster.")                                                       \
    X(gauge,   event_consumer_lag_seconds,  (double)consumers_now(metrics).lag_ms / 1e3,           \
      "How far back the consumer of events stands that is furthest behind.")                       \
    X(gauge,   event_consumer_retention_ratio, consumer_ratio(metrics),                            \
      "That, of the time for which events are kept: at 1 the consumer loses events.")              \
    X(gauge,   links_ready,                 metrics->links ? node_links_ready(metrics->links) : 0, \
      "Nodes with a working link.")                                                                \
    X(gauge,   nodes_known,                 metrics->links ? node_links_count(metrics->links) : 0, \
      "Nodes that have a record or a link.")                                                       \
    X(counter, calls_total,                 caller_now(metrics).calls,                             \
      "Calls routed to the owner of a shard.")                                                     \
    X(counter, attempts_total,              caller_now(metrics).attempts,                          \
      "Attempts sent to nodes, repeats included.")                                                 \
    X(counter, waits_total,                 caller_now(metrics).waits,                             \
      "Pauses before a call was tried again.")                                                     \
    X(counter, outcomes_unknown_total,      caller_now(metrics).unknown,                           \
      "Calls that ended without a known outcome.")                                                 \
    X(counter, throttled_bulk_total,        metrics->options.router->admission.refused[0],         \
      "Requests refused by admission: bulk.")                                                      \
    X(counter, throttled_ordinary_total,    metrics->options.router->admission.refused[1],         \
      "Requests refused by admission: ordinary.")                                                  \
    X(counter, throttled_urgent_total,      metrics->options.router->admission.refused[2],         \
      "Requests refused by admission: urgent.")                                                    \
    X(counter, servers_registered_total,    servers_now(metrics).registered,                       \
      "Game servers registered here.")                                                             \
    X(counter, servers_reattached_total,    servers_now(metrics).reattached,                       \
      "Game servers whose lapsed lease was replaced.")                                             \
    X(counter, server_keep_alives_total,    servers_now(metrics).keep_alives,                      \
      "Leases of game servers kept alive in etcd.")                                                \
    X(counter, server_etcd_failures_total,  servers_now(metrics).failures,                         \
      "Registrations and renewals that etcd did not answer.")                                      \
    X(counter, players_throttled_total,     metrics->options.router->players_throttled,            \
      "Calls refused: too many for one player.")                                                   \
    X(counter, callers_throttled_total,     metrics->options.router->callers_throttled,            \
      "Calls refused: their key, client or player holds its share of the calls in flight.")        \
    X(counter, mints_refused_total,         metrics->options.router->mints_refused,                \
      "Calls refused: more new goods than their API key may make.")                                \
    X(counter, foreign_incarnations_total,  metrics->options.router->foreign_incarnations,         \
      "Requests refused: another API key registered the incarnation that they name.")              \
    X(gauge,   api_keys,                    metrics->gatekeeper ? gatekeeper_keys(metrics->gatekeeper) : 0, \
      "API keys known; 0 where access is open.")                                                   \
    X(gauge,   player_keys,                 metrics->players ? player_gate_keys(metrics->players) : 0, \
      "Keys of players' tokens; 0 where none are taken.")                                          \
    X(counter, player_signatures_total,     metrics->players ? player_gate_signatures(metrics->players) : 0, \
      "Signatures of players' tokens that were checked; one that is remembered is not.")           \
    X(counter, player_keys_reads_total,     player_keys_now(metrics).reads,                        \
      "Times that the keys of players' tokens were read.")                                         \
    X(counter, player_keys_failures_total,  player_keys_now(metrics).failures,                     \
      "Times that the keys of players' tokens could not be read.")                                 \
    X(counter, count_hits_total,            counts_now(metrics).memo.hits,                         \
      "Counts of favorites, and totals of counters, told from memory.")                            \
    X(counter, count_misses_total,          counts_now(metrics).memo.misses,                       \
      "Counts of favorites for which the shards were asked.")                                      \
    X(counter, count_evictions_total,       counts_now(metrics).memo.evictions,                    \
      "Counts of favorites that were forgotten to make room.")                                     \
    X(gauge,   count_memo_bytes,            counts_now(metrics).memo.bytes,                        \
      "Memory of the counts of favorites that are kept.")                                          \
    X(counter, count_gathers_total,         counts_now(metrics).gathers,                           \
      "Times that all shards were asked for counts of favorites.")                                 \
    X(counter, count_gathers_failed_total,  counts_now(metrics).gathers_failed,                    \
      "Of these, those that some shard did not answer.")                                           \
    X(counter, count_shared_total,          counts_now(metrics).shared,                            \
      "Counts of favorites that waited for another request's gather.")                             \
    X(counter, count_stale_total,           counts_now(metrics).stale,                             \
      "Counts of favorites told as stale, since some shard did not answer.")                       \
    X(counter, metadata_hits_total,         metas_now(metrics).memo.hits,                          \
      "Metadata of targets told from memory.")                                                     \
    X(counter, metadata_old_total,          metas_now(metrics).memo.stale,                         \
      "Metadata of targets told from memory while it was asked for again.")                        \
    X(counter, metadata_misses_total,       metas_now(metrics).memo.misses,                        \
      "Metadata of targets that a list had to wait for.")                                          \
    X(gauge,   metadata_memo_bytes,         metas_now(metrics).memo.bytes,                         \
      "Memory of the metadata that is kept.")                                                      \
    X(counter, metadata_incomplete_total,   metas_now(metrics).incomplete,                         \
      "Lists that went out without some metadata, since it could not be had.")                     \
    X(counter, metadata_fetches_total,      metas_now(metrics).fetches,                            \
      "Answers of metadata endpoints that were taken.")                                            \
    X(counter, metadata_failures_total,     metas_now(metrics).failures,                           \
      "Times that a metadata endpoint did not answer as it should.")                               \
    X(counter, metadata_left_out_total,     metas_now(metrics).left_out,                           \
      "Entries of metadata endpoints' answers that break a rule.")                                 \
    X(gauge,   metadata_endpoints_resting,  metas_now(metrics).resting,                            \
      "Metadata endpoints that failed several times in a row, and are tried now and then alone.")  \
    X(gauge,   public_certificate_expires_seconds, metrics->door ? public_door_expires_s(metrics->door) : 0, \
      "When the public certificate expires, in seconds since 1970; 0: plain.")                     \
    X(gauge,   http_connections,            http_now(metrics).connections,                         \
      "Public connections.")                                                                       \
    X(counter, http_connections_refused_total, http_now(metrics).connections_refused,              \
      "Public connections above the limit.")                                                       \
    X(counter, http_bad_messages_total,     http_now(metrics).bad_messages,                        \
      "Public requests refused by a parser, codec or limit.")                                      \
    X(counter, http_timeouts_total,         http_now(metrics).timeouts,                            \
      "Public clients that sent or read too slowly.")                                              \
    X(counter, http_floods_total,           http_now(metrics).floods,                              \
      "Public connections ended for too many resets or control frames.")                           \
    X(counter, http_slow_readers_total,     http_now(metrics).slow_readers,                        \
      "Public connections closed since unread answers filled their memory.")                       \
    X(counter, http_evicted_total,          http_now(metrics).evicted,                             \
      "Idle public connections closed to make room for new ones.")                                 \
    X(gauge,   http_waiting_bytes,          http_now(metrics).waiting_bytes,                       \
      "Answers not read by their callers yet.")                                                    \
    X(gauge,   http_buffered_bytes,         http_now(metrics).buffered_bytes,                      \
      "Bodies of requests being received, or with nodes.")                                                        \
    X(gauge,   http_head_bytes,             http_now(metrics).head_bytes,                          \
      "Heads of requests being received, or with nodes.")                                          \
    X(counter, http_trims_total,            http_now(metrics).trims,                               \
      "Times that much freed memory was given back to the system.")                                \
    X(counter, http_received_bytes_total,   http_now(metrics).bytes_received,                      \
      "Bytes received on the public endpoint.")                                                    \
    X(counter, http_sent_bytes_total,       http_now(metrics).bytes_sent,                          \
      "Bytes sent on the public endpoint.")

#define FIGURE_READ(kind, name, figure, help)                                                      \
    static double read_##name(void *context)                                                      \
    {                                                                                              \
        const struct router_metrics *metrics = context;                                           \
        return (double)(figure);                                                                  \
    }
/* clang-format on */
FIGURES(FIGURE_READ)
#undef FIGURE_READ

static void register_refusals(struct router_metrics *metrics)
{
    for (enum gatekeeper_reason i = 0; i < GATEKEEPER_REASON_COUNT; i++) {
        const struct metric_label labels[] = { { "reason", gatekeeper_reason_text(i) },
                                               { NULL, NULL } };

        metrics->refusals[i] = (struct refusal_reader){ metrics, i };
        metrics_counter_callback(metrics->options.metrics,
                                 &(struct metric_info){ "holdfast_router_refused_total",
                                                        "Public requests refused before they were "
                                                        "read: keys, scopes and rate limits.",
                                                        labels },
                                 read_refused, &metrics->refusals[i]);
    }
    for (enum http_refused i = 0; i < HTTP_REFUSED_COUNT; i++) {
        const struct metric_label labels[] = { { "reason", http_refused_text(i) }, { NULL, NULL } };

        metrics->http_refusals[i] = (struct http_refusal_reader){ metrics, i };
        metrics_counter_callback(metrics->options.metrics,
                                 &(struct metric_info){ "holdfast_router_http_refused_total",
                                                        "Public requests refused by the endpoint "
                                                        "itself: grammar, sizes and budgets.",
                                                        labels },
                                 read_http_refused, &metrics->http_refusals[i]);
    }
}

struct router_metrics *router_metrics_new(const struct router_metrics_options *options)
{
    struct router_metrics *metrics = mem_zalloc(sizeof *metrics);
    size_t count;
    const struct method_info *methods = method_all(&count);

    metrics->options = *options;
    metrics->life = loop_wall_ms();
    metrics->actions.log = options->log;
    metrics->slow = (struct slow_log){ .log = options->log,
                                       .slow = { .slow_ns = options->slow_ms * 1000000u },
                                       .failed = { .slow_ns = 1 } };
    for (size_t i = 0; i < count; i++) {
        const struct metric_label labels[] = { { "method", methods[i].name }, { NULL, NULL } };

        if (methods[i].internal)
            continue;
        metrics->latency[methods[i].id] =
            metrics_histogram(options->metrics,
                              &(struct metric_info){ "holdfast_router_request_duration_seconds",
                                                     "Time from a request's arrival at the router "
                                                     "to its answer.",
                                                     labels },
                              &histogram_latency_us);
        (void)requests_counter(metrics, &methods[i],
                               HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNSPECIFIED);
    }
    register_refusals(metrics);
    register_tokens(metrics);
    register_players(metrics);
#define FIGURE_REGISTER(kind, name, figure, help)                                                  \
    metrics_##kind##_callback(options->metrics,                                                    \
                              &(struct metric_info){ "holdfast_router_" #name, help, NULL },       \
                              read_##name, metrics);
    FIGURES(FIGURE_REGISTER)
#undef FIGURE_REGISTER
    return metrics;
}

void router_metrics_free(struct router_metrics *metrics)
{
    free(metrics);
}

void router_metrics_watch_door(struct router_metrics *metrics, const struct public_door *door,
                               const struct gatekeeper *gatekeeper)
{
    metrics->gatekeeper = gatekeeper;
    metrics->door = door;
}

void router_metrics_watch_players(struct router_metrics *metrics, const struct player_gate *players,
                                  const struct player_keys *keys)
{
    metrics->players = players;
    metrics->player_keys = keys;
}

void router_metrics_watch_consumers(struct router_metrics *metrics,
                                    const struct consumer_watch *consumers)
{
    metrics->consumers = consumers;
}

void router_metrics_watch_links(struct router_metrics *metrics, const struct node_links *links)
{
    metrics->links = links;
}
