#include "coordinator/io/coordinator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "coordinator/io/coordinator_metrics.h"
#include "coordinator/io/nodes.h"
#include "coordinator/io/registry.h"
#include "coordinator/io/seed.h"
#include "holdfast/internal/v1/node.pb-c.h"
#include "runtime/base/check.h"
#include "runtime/metrics/metrics_turnstile.h"
#include "runtime/metrics_http/metrics_http.h"
#include "runtime/tls_watch/tls_watch.h"

#define TICK_MS   20u
#define RESIGN_MS 1000u /* For etcd to hear that we resign; else our lease lapses. */
#define CLOSE_MS  20u   /* For close callbacks. */

struct coordinator {
    const struct coordinator_config *config;
    const struct log *log;
    const char *version;
    struct loop *loop;
    struct metrics *metrics;
    struct coordinator_metrics *core_metrics;
    struct metrics_http *http;
    struct metrics_turnstile link_figures;
    struct tls_watch *tls; /* NULL: plain. */
    enum link_names names;
    struct coord *core;
    struct coord_out out;
    struct registry *registry;
    struct nodes *nodes;
    struct loop_timer tick;
    bool stopping;
    bool failed;
};

static void fail(struct coordinator *c, const char *what, const char *why)
{
    log_event(c->log, LOG_ERROR, "coordinator.cannot_go_on", LOG_S("what", what),
              LOG_S("why", why));
    c->failed = true;
    loop_stop(c->loop);
}

/* ---- the core ---- */
static void on_event(void *user, struct coord_event *event)
{
    struct coordinator *c = user;

    if (c->stopping)
        return;
    event->now_ms = loop_now_ms(c->loop);
    event->wall_ms = loop_wall_ms();
    coord_step(c->core, event, &c->out);
    for (uint32_t i = 0; i < c->out.txn_count; i++)
        registry_txn(c->registry, &c->out.txns[i]);
    for (uint32_t i = 0; i < c->out.call_count; i++) {
        CHECK(c->nodes != NULL); /* No election is won before. */
        nodes_call(c->nodes, &c->out.calls[i]);
    }
    for (uint32_t i = 0; i < c->out.answer_count && c->nodes != NULL; i++)
        nodes_answer(c->nodes, &c->out.answers[i]);
    coord_out_clear(&c->out);
}

static void on_status(void *user, struct buf *out)
{
    const struct coordinator *c = user;
    Holdfast__Internal__V1__GetCoordinatorStatusResponse response =
        HOLDFAST__INTERNAL__V1__GET_COORDINATOR_STATUS_RESPONSE__INIT;
    Holdfast__V1__ProcessStatus process = HOLDFAST__V1__PROCESS_STATUS__INIT;
    char role[] = "coordinator", balanced[] = "balanced", imbalanced[] = "imbalanced";
    struct coord_stats stats;

    coord_stats_get(c->core, &stats);
    process.role = role;
    process.name = text_lend(c->config->name);
    process.answered = true;
    process.version = text_lend(c->version);
    process.clock_ms = (int64_t)loop_wall_ms();
    process.cluster_certificate_expires_ms = (int64_t)tls_watch_expires_ms(c->tls);
    process.halted = coord_is_halted(c->core);
    if (stats.audit_imbalance != 0)
        process.audit = imbalanced;
    else if (stats.audit_cuts > 0)
        process.audit = balanced;
    response.process = &process;
    size_t size =
        holdfast__internal__v1__get_coordinator_status_response__get_packed_size(&response);
    holdfast__internal__v1__get_coordinator_status_response__pack(&response,
                                                                  buf_reserve(out, size));
    out->size += size;
}

/* "host:port" of the listener with the port it really has. */
static void advertised(const struct coordinator *c, char *ret_address, size_t size)
{
    const char *text = c->config->advertise[0] != '\0' ? c->config->advertise : c->config->listen;
    const char *colon = strrchr(text, ':');

    if (colon != NULL && strcmp(colon, ":0") == 0)
        snprintf(ret_address, size, "%.*s:%u", (int)(colon - text), text, nodes_port(c->nodes));
    else
        snprintf(ret_address, size, "%s", text);
}

/* Links need the cluster's id, and the campaign the listener's address. */
static void begin_work(struct coordinator *c)
{
    const struct tls_watch *tls = c->tls;
    struct coordinator_record self = { 0 };
    struct record_error why;
    err e =
        nodes_new(&(struct nodes_options){ .loop = c->loop,
                                           .log = c->log,
                                           .core = c->core,
                                           .name = c->config->name,
                                           .cluster_id = coord_cluster(c->core)->cluster_id,
                                           .cluster = c->config->cluster,
                                           .names = c->names,
                                           .metrics = c->metrics,
                                           .listen = c->config->listen,
                                           .tls_client = tls != NULL ? tls_watch_client(tls) : NULL,
                                           .tls_server = tls != NULL ? tls_watch_server(tls) : NULL,
                                           .limits = { LINK_HUB_CONFIG(c->config) },
                                           .event = on_event,
                                           .status = on_status,
                                           .user = c },
                  &c->nodes);

    if (e != ERR_OK) {
        fail(c, "listen", err_text(e));
        return;
    }
    snprintf(self.name, sizeof self.name, "%s", c->config->name);
    advertised(c, self.address, sizeof self.address);
    if (coordinator_record_validate(&self, &why) != ERR_OK) {
        fail(c, "advertise", why.text);
        return;
    }
    log_event(c->log, LOG_INFO, "coordinator.listening", LOG_S("address", self.address));
    registry_campaign(c->registry, &self);
}

static void on_tick(void *user)
{
    struct coordinator *c = user;

    if (c->stopping)
        return;
    if (c->nodes == NULL && registry_is_synced(c->registry) && coord_cluster(c->core) != NULL)
        begin_work(c);
    if (c->failed)
        return;
    if (c->nodes != NULL)
        nodes_follow(c->nodes);
    on_event(c, &(struct coord_event){ .type = COORD_TICK });
}

static bool on_ready(void *context, char ret_reason[128])
{
    struct coordinator *c = context;
    const char *reason = NULL;

    if (!registry_is_synced(c->registry))
        reason = "etcd has not been read yet";
    else if (c->nodes == NULL)
        reason = "the cluster has no record yet";
    else if (coord_is_halted(c->core))
        reason = "etcd was restored from a backup: holdfast admin accept-etcd-restore";
    else if (!registry_has_leader(c->registry))
        reason = "no coordinator is elected";
    if (reason != NULL)
        snprintf(ret_reason, 128, "%s", reason);
    return reason == NULL;
}

/* ---- starting ---- */
static struct coord_limits limits_from(const struct coordinator_config *config)
{
    struct coord_limits limits = coord_limits_default();

    limits.rebalance = config->rebalance;
    limits.rebalance_period_ms = (uint32_t)config->rebalance_period;
    limits.rebalance_up_ms = (uint32_t)config->rebalance_up;
    limits.load_exchange_ms = (uint32_t)config->rebalance_load;
    limits.load_floor = config->rebalance_load_floor;
    if (limits.load_exchange_ms > 0 && limits.load_exchange_ms < limits.load_ask_ms)
        limits.load_ask_ms = limits.load_exchange_ms < 100 ? 100 : limits.load_exchange_ms;
    limits.claim_closed_ms = (uint32_t)config->claim_closed;
    limits.claim_silent_ms = (uint32_t)config->claim_silent;
    limits.audit_interval_ms = (uint32_t)config->audit_interval;
    limits.claim_calm_ms = (uint32_t)config->claim_calm;
    limits.server_wait_ms = (uint32_t)config->server_wait;
    limits.server_hold_percent = config->server_hold_percent;
    limits.server_hold_min = config->server_hold_min;
    limits.server_hold_ms_max = (uint32_t)config->server_hold_max;
    return limits;
}

static err make_core(struct coordinator *c)
{
    struct coord_limits limits = limits_from(c->config);
    struct seed_error why;
    struct seed seed;
    uint8_t random[10];

    if (!cluster_name_valid(c->config->cluster)) {
        fail(c, "cluster", "a name is 1 to 63 of a-z, 0-9 and dash");
        return ERR_INVALID;
    }
    CHECK(getrandom(random, sizeof random, 0) == (ssize_t)sizeof random);
    err e = seed_init(c->config, uuid_v7_make(loop_wall_ms(), random), &seed, &why);

    if (e != ERR_OK) {
        fail(c, "configuration", why.text);
        return e;
    }
    c->core = coord_new(&(struct coord_options){ .cluster = c->config->cluster,
                                                 .limits = &limits,
                                                 .initial = &seed.cluster,
                                                 .initial_policy = buf_slice(&seed.policy),
                                                 .placement_nodes = c->config->placement_nodes,
                                                 .log = c->log });
    seed_deinit(&seed);
    return ERR_OK;
}

static void on_tls_changed(void *user)
{
    struct coordinator *c = user;

    if (c->nodes != NULL)
        nodes_set_tls(c->nodes, tls_watch_client(c->tls), tls_watch_server(c->tls));
}

static err watch_tls(struct coordinator *c)
{
    struct tls_error why = { "" };
    const struct tls_watch_cluster options = {
        .loop = c->loop,
        .log = c->log,
        .metrics = c->metrics,
        TLS_WATCH_CONFIG(c->config),
        .changed = on_tls_changed,
        .user = c,
    };

    if (!link_names_find(c->config->tls_names, &c->names)) {
        fail(c, "tls_names", "is require or accept-unnamed");
        return ERR_INVALID;
    }
    if (c->config->insecure)
        log_event(c->log, LOG_WARN, "coordinator.insecure",
                  LOG_S("what", "plain TCP between processes; for tests only"));
    err e = tls_watch_new_cluster(&options, &c->tls, &why);
    if (e != ERR_OK)
        fail(c, "TLS", why.text);
    return e;
}

static const char *path_or_null(const char *path)
{
    return path[0] != '\0' ? path : NULL;
}

static const struct cluster_record *cluster_of(void *user)
{
    const struct coordinator *c = user;

    return coord_cluster(c->core);
}

static err connect_etcd(struct coordinator *c)
{
    err e = registry_new(
        &(struct registry_options){ .loop = c->loop,
                                    .log = c->log,
                                    .cluster = c->config->cluster,
                                    .endpoints = (const char *const *)c->config->etcd.items,
                                    .endpoint_count = c->config->etcd.count,
                                    .ca_file = path_or_null(c->config->etcd_ca),
                                    .cert_file = path_or_null(c->config->etcd_cert),
                                    .key_file = path_or_null(c->config->etcd_key),
                                    .lease_ttl_ms = c->config->lease_ttl,
                                    .event = on_event,
                                    .cluster_of = cluster_of,
                                    .user = c },
        &c->registry);

    if (e != ERR_OK)
        fail(c, "etcd", err_text(e));
    return e;
}

static const struct turnstile_stats *link_turnstile(void *user)
{
    const struct coordinator *c = user;

    return c->nodes != NULL ? nodes_turnstile(c->nodes) : NULL;
}

static err serve_metrics(struct coordinator *c, const char *version)
{
    c->link_figures = (struct metrics_turnstile){ .read = link_turnstile, .user = c };
    metrics_turnstile_register(&c->link_figures, c->metrics, "links", true);
    metrics_process_register(c->metrics, version);
    c->core_metrics = coordinator_metrics_new(c->metrics, c->core, c->loop);
    err e = metrics_http_start(
        &(struct metrics_http_options){ .loop = loop_uv(c->loop),
                                        .metrics = c->metrics,
                                        .host = c->config->metrics_host,
                                        .port = (uint16_t)c->config->metrics_port,
                                        .connections_max = c->config->metrics_connections_max,
                                        .log = c->log,
                                        .ready = on_ready,
                                        .context = c },
        &c->http);

    if (e != ERR_OK)
        fail(c, "metrics_host, metrics_port", metrics_http_why(e));
    else
        log_event(c->log, LOG_INFO, "metrics.listening", LOG_N("port", metrics_http_port(c->http)));
    return e;
}

err coordinator_new(const struct coordinator_options *options, struct coordinator **ret_coordinator)
{
    struct coordinator *c = mem_zalloc(sizeof *c);

    c->config = options->config;
    c->log = options->log;
    c->version = options->version;
    c->loop = options->loop;
    c->metrics = metrics_new();
    loop_timer_init(&c->tick, c->loop, on_tick, c);
    err e = make_core(c);
    if (e == ERR_OK)
        e = watch_tls(c);
    if (e == ERR_OK)
        e = connect_etcd(c);
    if (e == ERR_OK)
        e = serve_metrics(c, options->version);
    if (e != ERR_OK) {
        coordinator_free(c);
        return e;
    }
    loop_timer_start_repeating(&c->tick, TICK_MS);
    *ret_coordinator = c;
    return ERR_OK;
}

static bool has_resigned(void *user)
{
    return registry_has_resigned(user);
}

static bool never(void *user)
{
    (void)user;
    return false;
}

void coordinator_free(struct coordinator *c)
{
    if (c == NULL)
        return;
    c->stopping = true; /* The timer goes on, so that every wait below ends. */
    if (!loop_timer_is_running(&c->tick))
        loop_timer_start_repeating(&c->tick, TICK_MS);
    if (c->http != NULL)
        metrics_http_stop(c->http);
    if (c->registry != NULL) {
        registry_resign(c->registry);
        (void)loop_run_until(c->loop, has_resigned, c->registry, RESIGN_MS);
    }
    nodes_free(c->nodes);
    c->nodes = NULL;
    registry_free(c->registry);
    (void)loop_run_until(c->loop, never, NULL, CLOSE_MS);
    loop_timer_stop(&c->tick);
    coordinator_metrics_free(c->core_metrics);
    if (c->metrics != NULL)
        metrics_free(c->metrics);
    coord_free(c->core);
    coord_out_deinit(&c->out);
    tls_watch_free(c->tls);
    free(c);
}

bool coordinator_failed(const struct coordinator *c)
{
    return c->failed;
}
