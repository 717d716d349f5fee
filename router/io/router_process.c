#include "router/io/router_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "router/io/coordinator_link.h"
#include "router/io/gatekeeper.h"
#include "router/io/map_feed.h"
#include "router/io/metadata_http.h"
#include "router/io/native_door.h"
#include "router/io/node_links.h"
#include "router/io/player_gate.h"
#include "router/io/public_door.h"
#include "router/io/router_metrics.h"
#include "router/io/settings_feed.h"
#include "router/io/token_feed.h"
#include "router/rpc/metadata/metadata_gather.h"
#include "runtime/base/check.h"
#include "runtime/cluster/link_right.h"
#include "runtime/metrics/metrics_turnstile.h"
#include "runtime/memory/heap.h"
#include "runtime/memory/machine.h"
#include "runtime/metrics/budget_metrics.h"
#include "runtime/metrics_http/metrics_http.h"
#include "runtime/restore_watch/restore_watch.h"
#include "runtime/tls_watch/tls_watch.h"

#define DRAIN_POLL_MS 20u
/* The heap is trimmed on the loop, which takes some milliseconds: seldom, and after many bytes. */
#define TRIM_PERIOD_MS      5000u
#define TRIM_SENT_BYTES     (64u * 1024u * 1024u)
#define TRIM_HELD_BYTES     (1024u * 1024u)
#define TRIM_RESIDENT_BYTES (32u * 1024u * 1024u)

struct router_process {
    struct router_process_options options;
    const struct router_config *config;
    const struct log *log;
    struct loop *loop;
    struct metrics *metrics;
    struct router_metrics *router_metrics;
    struct metrics_http *metrics_http;
    struct metrics_turnstile public_figures;
    struct metrics_turnstile link_figures;
    enum link_transport transport; /* Of links to nodes. */
    enum link_names names;
    struct tls_watch *tls; /* Of links; NULL: plain. */
    struct etcd *etcd;
    struct map_feed *feed;
    struct restore_watch *restore;
    struct key_feed *keys; /* NULL: anybody may call. */
    struct token_feed *tokens;
    struct settings_feed *settings;
    struct player_keys *player_keys; /* NULL: players' tokens are not taken, as the next. */
    struct player_gate *players;
    struct gatekeeper *gatekeeper;
    struct metadata_http *metadata; /* Endpoints of metadata. */
    struct servers *servers;
    struct caller *caller;
    struct router router;
    struct consumer_watch *consumers;
    struct budget answers;
    struct loop_timer trim_timer;
    uint64_t trimmed_at_bytes; /* Sent to callers when the heap was trimmed last. */
    struct native_door *native;
    struct link_hub *hub; /* From here on: once the cluster is known. */
    struct calls *calls;
    struct node_links *links;
    struct coordinator_link *coordinator;
    struct public_door *door;
    struct loop_timer start_timer;
    struct loop_timer drain_timer;
    uint64_t drain_until_ms;
    bool draining;
    bool failed;
};

static void fail(struct router_process *process, const char *what, const char *why)
{
    log_event(process->log, LOG_ERROR, "router.cannot_go_on", LOG_S("what", what),
              LOG_S("why", why));
    process->failed = true;
}

/* ---- the way to nodes: before the cluster is known there are no links ---- */

static err start_call(void *context, uint64_t replica_id, const struct call_request *request,
                      uint64_t *ret_call)
{
    struct router_process *process = context;
    struct node_port port;

    if (process->links == NULL)
        return ERR_UNAVAILABLE;
    if (replica_id == NODE_PORT_COORDINATOR)
        return coordinator_link_call(process->coordinator, request, ret_call);
    port = node_links_port(process->links);
    return port.start(port.context, replica_id, request, ret_call);
}

static void cancel_call(void *context, uint64_t call)
{
    struct router_process *process = context;

    if (process->calls != NULL)
        (void)call_cancel(process->calls, call);
}

static bool takes_callers(void *context, uint64_t replica_id)
{
    const struct router_process *process = context;

    if (process->links == NULL || replica_id == NODE_PORT_COORDINATOR)
        return false;
    const struct node_port port = node_links_port(process->links);
    return port.takes_callers(port.context, replica_id);
}

static bool reaches(void *context, uint64_t replica_id)
{
    const struct router_process *process = context;

    if (process->links == NULL)
        return false;
    const struct node_port port = node_links_port(process->links);
    return port.reaches(port.context, replica_id);
}

/* ---- what the parts tell each other ---- */

static void on_link_ready(void *user, uint64_t replica_id)
{
    struct router_process *process = user;

    caller_node_ready(process->caller, replica_id);
}

static void on_node_changed(void *user, uint64_t replica_id, const struct node_record *record)
{
    struct router_process *process = user;

    if (process->links != NULL)
        node_links_set(process->links, replica_id, record);
}

static void on_shard_changed(void *user, uint32_t shard)
{
    struct router_process *process = user;

    if (process->caller != NULL)
        caller_shard_changed(process->caller, shard);
}

/* Listening and dialling are not for etcd's callback. */
static void on_cluster_known(void *user)
{
    struct router_process *process = user;

    loop_timer_start(&process->start_timer, 0);
}

static void on_rolled_back(void *context, const struct etcd_rollback *rollback)
{
    struct router_process *process = context;

    log_event(process->log, LOG_ERROR, "etcd.rolled_back",
              LOG_N("revision_known", rollback->revision_known),
              LOG_N("revision_seen", rollback->revision_seen),
              LOG_S("what", "etcd was restored or replaced; the map stays as it was known"));
}

static const char *cluster_id_of(void *user)
{
    const struct router_process *process = user;
    const struct cluster_record *cluster = shard_map_cluster(map_feed_map(process->feed));

    return cluster != NULL ? cluster->cluster_id : NULL;
}

/* The map begins again with its mirrors. */
static void on_restore_accepted(void *user, uint64_t generation)
{
    (void)user;
    (void)generation;
}

bool router_process_is_ready(const struct router_process *process)
{
    return process->links != NULL && !process->draining && !process->failed &&
           shard_map_complete(map_feed_map(process->feed)) &&
           node_links_ready(process->links) > 0 && token_feed_known(process->tokens) &&
           (process->keys == NULL || key_feed_complete(process->keys));
}

static bool on_health(void *user)
{
    return router_process_is_ready(user);
}

static bool on_ready(void *context, char ret_reason[128])
{
    const struct router_process *process = context;
    const char *reason = "";

    if (router_process_is_ready(process))
        return true;
    if (process->draining)
        reason = "stopping";
    else if (process->links == NULL)
        reason = "waiting for the cluster's record in etcd";
    else if (!shard_map_complete(map_feed_map(process->feed)))
        reason = "waiting for the shards' records in etcd";
    else if (process->keys != NULL && !key_feed_complete(process->keys))
        reason = "waiting for the API keys in etcd";
    else if (!token_feed_known(process->tokens))
        reason = "waiting for the secret of session tokens in etcd";
    else
        reason = "no link to any node";
    (void)snprintf(ret_reason, 128, "%s", reason);
    return false;
}

/* ---- starting ---- */

static err open_links(struct router_process *process, const struct cluster_record *cluster)
{
    struct link_hub_options hub = {
        .loop = process->loop,
        .log = process->log,
        .self = { .role = ROLE_ROUTER },
        .cluster = process->config->cluster,
        .names = process->names,
        .admits = link_right,
        .metrics = process->metrics,
        .tls_client = process->tls != NULL ? tls_watch_client(process->tls) : NULL,
        .tls_server = process->tls != NULL ? tls_watch_server(process->tls) : NULL,
        LINK_HUB_CONFIG(process->config),
        .answers = &process->answers,
    };
    struct calls_options calls = { .loop = process->loop,
                                   .request = native_door_request,
                                   .user = process->native };
    struct node_links_options links = {
        .log = process->log,
        .transport = process->transport,
        .ready = on_link_ready,
        .user = process,
    };
    err e;

    (void)snprintf(hub.self.cluster_id, sizeof hub.self.cluster_id, "%s", cluster->cluster_id);
    (void)snprintf(hub.self.name, sizeof hub.self.name, "%s", process->config->name);
    e = link_hub_new(&hub, &process->hub);
    if (e != ERR_OK)
        return e;
    calls.hub = process->hub;
    e = calls_new(&calls, &process->calls);
    if (e != ERR_OK)
        return e;
    native_door_set_calls(process->native, process->calls);
    if (process->config->native_listen[0] != 0)
        e = native_door_listen(process->native, process->hub, process->calls,
                               process->config->native_listen);
    if (e != ERR_OK)
        return e;
    links.hub = process->hub;
    links.calls = process->calls;
    process->links = node_links_new(&links);
    process->coordinator = coordinator_link_new(
        &(struct coordinator_link_options){ .loop = process->loop,
                                            .hub = process->hub,
                                            .calls = process->calls,
                                            .log = process->log,
                                            .map = map_feed_map(process->feed) });
    router_metrics_watch_links(process->router_metrics, process->links);
    consumer_watch_start(process->consumers);
    return ERR_OK;
}

static void start(void *user)
{
    struct router_process *process = user;
    const struct shard_map *map = map_feed_map(process->feed);
    const struct cluster_record *cluster = shard_map_cluster(map);
    uint32_t count;
    const struct node_record *nodes = shard_map_nodes(map, &count);
    err e = open_links(process, cluster);

    if (e != ERR_OK) {
        fail(process, "links", err_text(e));
        process->options.stopped(process->options.user);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        node_links_set(process->links, nodes[i].replica_id, &nodes[i]);
    log_event(process->log, LOG_INFO, "router.cluster_known",
              LOG_S("cluster_id", cluster->cluster_id), LOG_N("shards", cluster->shard_count),
              LOG_N("native_port", native_door_port(process->native)));
}

static void on_tls_changed(void *user)
{
    struct router_process *process = user;

    if (process->hub != NULL)
        link_hub_set_tls(process->hub, tls_watch_client(process->tls),
                         tls_watch_server(process->tls));
}

static err watch_tls(struct router_process *process)
{
    struct tls_error why = { "" };
    const struct tls_watch_cluster options = {
        .loop = process->loop,
        .log = process->log,
        .metrics = process->metrics,
        TLS_WATCH_CONFIG(process->config),
        .changed = on_tls_changed,
        .user = process,
    };
    err e = tls_watch_new_cluster(&options, &process->tls, &why);
    if (e != ERR_OK)
        fail(process, "TLS", why.text);
    return e;
}

static err find_transport(struct router_process *process)
{
    if (!link_transport_find(process->config->node_transport, &process->transport)) {
        fail(process, "node_transport", "is nng or peer");
        return ERR_INVALID;
    }
    if (!link_names_find(process->config->tls_names, &process->names)) {
        fail(process, "tls_names", "is require or accept-unnamed");
        return ERR_INVALID;
    }
    return ERR_OK;
}

static err start_etcd(struct router_process *process)
{
    const struct router_config *config = process->config;
    const struct etcd_options options = {
        .loop = loop_uv(process->loop),
        .endpoints = (const char *const *)config->etcd.items,
        .endpoint_count = config->etcd.count,
        .ca_file = text_or_null(config->etcd_ca),
        .cert_file = text_or_null(config->etcd_cert),
        .key_file = text_or_null(config->etcd_key),
        .log = process->log,
        .rolled_back = on_rolled_back,
        .context = process,
    };
    err e;

    if (!cluster_name_valid(config->cluster)) {
        fail(process, "cluster", "the name may have 1 to 63 of a-z, 0-9 and dash");
        return ERR_INVALID;
    }
    e = etcd_new(&options, &process->etcd);
    if (e == ERR_OK)
        e = map_feed_new(&(struct map_feed_options){ .etcd = process->etcd,
                                                     .cluster = config->cluster,
                                                     .log = process->log,
                                                     .cluster_known = on_cluster_known,
                                                     .node_changed = on_node_changed,
                                                     .shard_changed = on_shard_changed,
                                                     .user = process },
                         &process->feed);
    if (e == ERR_OK)
        process->restore =
            restore_watch_new(&(struct restore_watch_options){ .loop = process->loop,
                                                               .log = process->log,
                                                               .etcd = process->etcd,
                                                               .cluster = config->cluster,
                                                               .cluster_id = cluster_id_of,
                                                               .accepted = on_restore_accepted,
                                                               .user = process });
    if (e == ERR_OK)
        e = token_feed_new(&(struct token_feed_options){ .loop = process->loop,
                                                         .etcd = process->etcd,
                                                         .cluster = config->cluster,
                                                         .log = process->log },
                           &process->tokens);
    if (e == ERR_OK)
        e = settings_feed_new(&(struct settings_feed_options){ .etcd = process->etcd,
                                                               .cluster = config->cluster,
                                                               .log = process->log,
                                                               .router = &process->router },
                              &process->settings);
    if (e != ERR_OK)
        fail(process, "etcd", err_text(e));
    return e;
}

static err start_players(struct router_process *process)
{
    const struct router_config *config = process->config;
    const struct player_keys_options keys = { .loop = process->loop,
                                              .log = process->log,
                                              .source = config->player_keys,
                                              .ca = config->player_keys_ca };

    if (config->player_keys[0] == 0)
        return ERR_OK;
    if (config->player_audience[0] == 0) {
        fail(process, "player_audience",
             "is required with player_keys: tokens for other services may have the same keys");
        return ERR_INVALID;
    }
    err e = player_keys_new(&keys, &process->player_keys);
    if (e != ERR_OK) {
        fail(process, "player_keys", "no key could be read");
        return e;
    }
    process->players = player_gate_new(config, process->player_keys, loop_thread_ns);
    return ERR_OK;
}

static err start_gatekeeper(struct router_process *process)
{
    const struct router_config *config = process->config;
    struct key_feed_options keys = { .etcd = process->etcd,
                                     .cluster = config->cluster,
                                     .log = process->log };
    bool open = strcmp(config->access, "open") == 0;
    err e = ERR_OK;

    if (!open && strcmp(config->access, "keys") != 0) {
        fail(process, "access", "is keys or open");
        return ERR_INVALID;
    }
    if (open)
        log_event(process->log, LOG_WARN, "public.open", LOG_S("listen", config->listen),
                  LOG_S("what", "anyone who reaches this port may do anything: access is open"));
    CHECK(getrandom(&keys.seed, sizeof keys.seed, 0) == (ssize_t)sizeof keys.seed);
    if (!open)
        e = key_feed_new(&keys, &process->keys);
    if (e != ERR_OK) {
        fail(process, "API keys", err_text(e));
        return e;
    }
    e = start_players(process);
    if (e == ERR_OK)
        process->gatekeeper =
            gatekeeper_new(&(struct gatekeeper_options){ .config = config,
                                                         .keys = process->keys,
                                                         .players = process->players,
                                                         .log = process->log });
    return e;
}

static err start_metadata(struct router_process *process)
{
    const struct router_config *config = process->config;
    const struct metadata_http_options options = { .loop = process->loop,
                                                   .ca = config->metadata_ca,
                                                   .hosts = config->metadata_hosts,
                                                   .plain_hosts = config->metadata_plain_hosts };
    err e = metadata_http_new(&options, &process->metadata);

    if (e != ERR_OK)
        fail(process, "metadata", err_text(e));
    return e;
}

static uint64_t cluster_certificate_ms(void *context)
{
    const struct router_process *process = context;

    return tls_watch_expires_ms(process->tls);
}

static uint64_t public_certificate_ms(void *context)
{
    const struct router_process *process = context;

    return process->door != NULL ? public_door_expires_ms(process->door) : 0;
}

static bool consumers_behind(void *context, uint32_t *ret_percent)
{
    const struct router_process *process = context;
    const struct consumer_lag lag = consumer_watch_lag(process->consumers);
    double percent = 100 * consumer_lag_ratio(&lag);

    *ret_percent = percent < UINT32_MAX ? (uint32_t)percent : UINT32_MAX;
    return lag.kept_ms > 0;
}

static void make_dispatcher(struct router_process *process)
{
    const struct node_port port = { start_call, cancel_call, takes_callers, reaches, process };
    const struct router_config *config = process->config;
    struct caller_options caller = { .loop = process->loop,
                                     .map = map_feed_map(process->feed),
                                     .port = port };
    struct router_options router = {
        .loop = process->loop,
        .log = process->log,
        .cluster = config->cluster,
        .map = caller.map,
        .port = port,
        .etcd = process->etcd,
        .secrets = token_feed_secrets(process->tokens),
        .settings = settings_feed_table(process->settings),
        .in_flight_max = config->in_flight_max,
        .in_flight_key_percent = config->in_flight_key_share,
        .player_rate = config->player_rate,
        .register_rate = config->register_rate,
        .count_age_ms = (uint32_t)config->count_age,
        .count_memo_bytes = config->count_memo_size,
        .metadata_port = metadata_http_port(process->metadata),
        .metadata_age_ms = config->metadata_age,
        .metadata_timeout_ms = (uint32_t)config->metadata_timeout,
        .metadata_memo_bytes = config->metadata_memo_size,
        .self = { config->name, process->options.version, cluster_certificate_ms,
                  public_certificate_ms, consumers_behind, process },
        .observer = { router_metrics_finished, process->router_metrics },
        .load = { router_metrics_load, process->router_metrics },
    };

    CHECK(getrandom(&caller.seed, sizeof caller.seed, 0) == (ssize_t)sizeof caller.seed);
    CHECK(getrandom(&router.trace_seed, sizeof router.trace_seed, 0) ==
          (ssize_t)sizeof router.trace_seed);
    process->caller = caller_new(&caller);
    process->servers = servers_new(&(struct servers_options){ .loop = process->loop,
                                                              .etcd = process->etcd,
                                                              .cluster = config->cluster,
                                                              .log = process->log });
    router.answers = &process->answers;
    router.caller = process->caller;
    router.servers = process->servers;
    router_init(&process->router, &router);
    process->consumers = consumer_watch_new(&process->router);
    router_metrics_watch_consumers(process->router_metrics, process->consumers);
    process->native = native_door_new(&(struct native_door_options){
        .loop = process->loop,
        .log = process->log,
        .router = &process->router,
        .key_rate = config->key_rate,
        .bodies_bytes_max = config->bodies_size_max / 100 * config->bodies_key_share,
        .deadline_default_ms = (uint32_t)config->deadline_default,
        .deadline_max_ms = (uint32_t)config->deadline_max });
}

static const struct turnstile_stats *public_turnstile(void *user)
{
    const struct router_process *process = user;

    return process->door != NULL ? public_door_turnstile(process->door) : NULL;
}

static const struct turnstile_stats *link_turnstile(void *user)
{
    const struct router_process *process = user;

    return process->hub != NULL ? link_hub_turnstile(process->hub) : NULL;
}

static void watch_turnstiles(struct router_process *process)
{
    process->public_figures =
        (struct metrics_turnstile){ .read = public_turnstile, .user = process };
    process->link_figures = (struct metrics_turnstile){ .read = link_turnstile, .user = process };
    metrics_turnstile_register(&process->public_figures, process->metrics, "public", true);
    metrics_turnstile_register(&process->link_figures, process->metrics, "links", true);
}

static err open_doors(struct router_process *process)
{
    const struct metrics_http_options http = {
        .loop = loop_uv(process->loop),
        .metrics = process->metrics,
        .host = process->config->metrics_host,
        .port = (uint16_t)process->config->metrics_port,
        .connections_max = process->config->metrics_connections_max,
        .log = process->log,
        .ready = on_ready,
        .context = process,
    };
    err e = metrics_http_start(&http, &process->metrics_http);

    if (e != ERR_OK) {
        fail(process, "metrics port", metrics_http_why(e));
        return e;
    }
    e = public_door_new(&(struct public_door_options){ .loop = process->loop,
                                                       .log = process->log,
                                                       .config = process->config,
                                                       .router = &process->router,
                                                       .gatekeeper = process->gatekeeper,
                                                       .answers = &process->answers,
                                                       .is_ready = on_health,
                                                       .user = process },
                        &process->door);
    if (e != ERR_OK) {
        fail(process, "public endpoint", err_text(e));
        return e;
    }
    router_metrics_watch_door(process->router_metrics, process->door, process->gatekeeper);
    router_metrics_watch_players(process->router_metrics, process->players, process->player_keys);
    log_event(process->log, LOG_INFO, "router.listening", LOG_S("listen", process->config->listen),
              LOG_N("port", router_process_port(process)),
              LOG_N("metrics_port", router_process_metrics_port(process)));
    return ERR_OK;
}

static void look_if_drained(void *user);

#define ANSWERS_BYTES_MIN (1024u * 1024u)
/* Large answers leave gaps in the heap. They are given back once those answers have gone. */
static void on_trim(void *user)
{
    struct router_process *process = user;
    uint64_t sent = process->door != NULL ? public_door_stats(process->door)->bytes_sent : 0;

    if (sent < process->trimmed_at_bytes + TRIM_SENT_BYTES ||
        budget_held(&process->answers) > TRIM_HELD_BYTES)
        return;
    process->trimmed_at_bytes = sent;
    (void)heap_trim_above(TRIM_RESIDENT_BYTES);
}

static err set_budget(struct router_process *process)
{
    uint64_t configured = process->config->answers_size_max;

    if (configured > 0 && configured < ANSWERS_BYTES_MIN) {
        fail(process, "answers_size_max", "is 0, or at least 1MiB");
        return ERR_INVALID;
    }
    budget_init(&process->answers, memory_share(configured));
    budget_metrics_register(process->metrics, &process->answers,
                            &(struct budget_metric_names){
                                "holdfast_router_answers_bytes",
                                "holdfast_router_answers_max_bytes",
                                "holdfast_router_answers_refused_total",
                                "Answers to reads that were refused for their bytes, by what was "
                                "full.",
                            });
    loop_timer_start_repeating(&process->trim_timer, TRIM_PERIOD_MS);
    return ERR_OK;
}

err router_process_new(const struct router_process_options *options,
                       struct router_process **ret_process)
{
    struct router_process *process = mem_zalloc(sizeof *process);
    err e;

    process->options = *options;
    process->config = options->config;
    process->log = options->log;
    process->loop = options->loop;
    loop_timer_init(&process->start_timer, process->loop, start, process);
    loop_timer_init(&process->drain_timer, process->loop, look_if_drained, process);
    loop_timer_init(&process->trim_timer, process->loop, on_trim, process);
    process->metrics = metrics_new();
    metrics_process_register(process->metrics, options->version);
    watch_turnstiles(process);
    process->router_metrics = router_metrics_new(
        &(struct router_metrics_options){ .metrics = process->metrics,
                                          .log = process->log,
                                          .router = &process->router,
                                          .slow_ms = options->config->slow_request,
                                          .name = options->config->name });
    e = find_transport(process);
    if (e == ERR_OK)
        e = set_budget(process);
    if (e == ERR_OK)
        e = watch_tls(process);
    if (e == ERR_OK)
        e = start_etcd(process);
    if (e == ERR_OK)
        e = start_gatekeeper(process);
    if (e == ERR_OK)
        e = start_metadata(process);
    if (e == ERR_OK) {
        make_dispatcher(process);
        e = open_doors(process);
    }
    if (e != ERR_OK) {
        router_process_free(process);
        return e;
    }
    *ret_process = process;
    return ERR_OK;
}

/* ---- stopping ---- */

/* With native clients, what is on the socket has left. */
static bool is_drained(const struct router_process *process)
{
    uint64_t open = router_in_flight(&process->router) + budget_held(&process->answers);

    return open == 0 && public_door_is_drained(process->door);
}

static void look_if_drained(void *user)
{
    struct router_process *process = user;

    if (loop_now_ms(process->loop) < process->drain_until_ms && !is_drained(process))
        return;
    loop_timer_stop(&process->drain_timer);
    process->options.stopped(process->options.user);
}

void router_process_drain(struct router_process *process)
{
    uint64_t now_ms = loop_now_ms(process->loop);

    if (process->draining) {
        process->drain_until_ms = now_ms;
        return;
    }
    process->draining = true;
    process->drain_until_ms = now_ms + process->config->drain_timeout;
    log_event(process->log, LOG_INFO, "router.draining",
              LOG_N("in_flight", router_in_flight(&process->router)));
    public_door_drain(process->door);
    native_door_drain(process->native);
    router_end_streams(&process->router);
    loop_timer_start_repeating(&process->drain_timer, DRAIN_POLL_MS);
}

void router_process_free(struct router_process *process)
{
    if (process == NULL)
        return;
    loop_timer_stop(&process->start_timer);
    loop_timer_stop(&process->drain_timer);
    loop_timer_stop(&process->trim_timer);
    /* First whatever waits is ended, then what it waited for. */
    public_door_free(process->door);
    process->door = NULL;
    router_metrics_watch_door(process->router_metrics, NULL, NULL);
    router_metrics_watch_players(process->router_metrics, NULL, NULL);
    gatekeeper_free(process->gatekeeper);
    player_gate_free(process->players);
    player_keys_free(process->player_keys);
    if (process->native != NULL) {
        native_door_drain(process->native);
        native_door_cancel(process->native);
    }
    servers_free(process->servers);
    router_metrics_watch_consumers(process->router_metrics, NULL);
    consumer_watch_free(process->consumers);
    if (process->caller != NULL)
        metas_stop(process->router.metas);
    metadata_http_free(process->metadata);
    caller_free(process->caller);
    key_feed_free(process->keys);
    token_feed_free(process->tokens);
    settings_feed_free(process->settings);
    restore_watch_free(process->restore);
    map_feed_free(process->feed);
    if (process->etcd != NULL)
        etcd_free(process->etcd);
    if (process->metrics_http != NULL)
        metrics_http_stop(process->metrics_http);
    coordinator_link_free(process->coordinator);
    node_links_free(process->links);
    process->links = NULL;
    link_hub_free(process->hub);
    process->hub = NULL;
    calls_free(process->calls);
    native_door_free(process->native);
    if (process->caller != NULL)
        router_deinit(&process->router);
    router_metrics_free(process->router_metrics);
    metrics_free(process->metrics);
    tls_watch_free(process->tls);
    free(process);
}

bool router_process_failed(const struct router_process *process)
{
    return process->failed;
}

uint16_t router_process_port(const struct router_process *process)
{
    return public_door_port(process->door);
}

uint16_t router_process_native_port(const struct router_process *process)
{
    return native_door_port(process->native);
}

uint16_t router_process_metrics_port(const struct router_process *process)
{
    return metrics_http_port(process->metrics_http);
}
