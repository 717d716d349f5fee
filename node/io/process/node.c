#include "node/io/process/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "node/core/codec/proto_scan.h"
#include "node/core/player/meta.h"
#include "node/io/cluster/claims.h"
#include "node/io/cluster/deliveries.h"
#include "node/io/cluster/etcd_note.h"
#include "node/io/cluster/peers.h"
#include "node/io/cluster/registry.h"
#include "node/io/disk/caches.h"
#include "node/io/disk/scrub.h"
#include "node/io/process/earlier_life.h"
#include "node/io/process/node_documents.h"
#include "node/io/process/node_limits.h"
#include "node/io/process/node_text.h"
#include "node/io/process/service.h"
#include "node/io/process/stores.h"
#include "node/io/report/node_load.h"
#include "node/io/report/node_metrics.h"
#include "node/io/report/node_ready.h"
#include "node/io/report/node_status.h"
#include "node/io/report/peer_metrics.h"
#include "node/io/report/state_metrics.h"
#include "node/io/worker/workers.h"
#include "node/store/datadir.h"
#include "runtime/base/check.h"
#include "runtime/cluster/link_right.h"
#include "runtime/metrics/metrics_turnstile.h"
#include "runtime/memory/machine.h"
#include "runtime/metrics_http/metrics_http.h"
#include "runtime/tls_watch/tls_watch.h"

struct node {
    struct node_options options;
    const struct node_config *config;
    struct caches caches;
    struct budget answers;
    const struct log *log;
    struct loop *loop;
    struct metrics *metrics;
    struct node_metrics *node_metrics;
    struct state_metrics *state_metrics;
    struct peer_metrics *peer_metrics;
    struct metrics_http *http;
    struct metrics_turnstile link_figures;
    struct tls_watch *tls;         /* NULL: plain. */
    enum link_transport transport; /* Of what routers dial. */
    enum link_names names;
    struct registry *registry;
    struct earlier_life earlier;
    struct loop_timer begin_timer, start_timer;
    struct datadir *datadir;
    struct node_log *store_log;
    struct db *db;
    struct link_hub *hub;
    struct service *service;
    struct peers *peers;
    struct shard_views *views;
    struct incidents *incidents;
    struct space *space;
    struct scrub *scrub; /* NULL: off. */
    struct etcd_note *etcd_note;
    struct workers *workers;
    struct node_documents *documents;
    struct claims *claims;
    struct deliveries *deliveries;
    struct node_record self;
    uint64_t life; /* Another one after each start. */
    bool failed;
};

static void fail(struct node *node, const char *what, const char *why)
{
    log_event(node->log, LOG_ERROR, "node.cannot_go_on", LOG_S("what", what), LOG_S("why", why));
    node->failed = true;
    loop_stop(node->loop);
}

/* ---- what the parts tell each other ---- */

static void on_send(void *user, uint64_t replica, const struct rep_message *message,
                    const uint8_t *trace)
{
    struct node *node = user;
    peers_send(node->peers, replica, message, trace);
}

static void on_send_encoded(void *user, uint64_t replica, struct slice bytes, const uint8_t *trace)
{
    struct node *node = user;
    peers_send_encoded(node->peers, replica, bytes, trace);
}

static void on_answer(void *user, uint64_t call, const struct shard_reply *reply, struct slice body)
{
    struct node *node = user;

    if (!deliveries_answer(node->deliveries, call, reply, body))
        service_answer(node->service, call, reply, body);
    budget_give(&node->answers, reply->held); /* The link counts what it has taken. */
}

static void on_deliver(void *user, uint32_t from, const struct shard_delivery *delivery,
                       struct slice request)
{
    struct node *node = user;
    deliveries_send(node->deliveries, from, delivery, request);
}

/* What was damaged and is repaired now is not named any more; what was found to differ is. */
static void follow_damage(struct node *node)
{
    struct node_record known = node->self;

    node_status_mark_unfit(node->views, &node->self);
    if (!node_record_finds_same(&node->self, &known))
        registry_update(node->registry, &node->self);
}

static void on_role_changed(void *user, uint32_t shard)
{
    struct node *node = user;
    struct shard_view changed;

    bool found = shard_views_find(node->views, shard, &changed);
    bool quarantined = found && changed.quarantined && changed.role != REP_DAMAGED;
    bool told = node->self.replica_id != 0; /* Else announce tells it. */

    if (told && (node->self.damaged_shards > 0 ||
                 quarantined != node_record_is_quarantined(&node->self, shard)))
        follow_damage(node);
    if (found)
        log_event(node->log, LOG_INFO, "shard.role", LOG_N("shard", shard),
                  LOG_N("epoch", changed.epoch), LOG_N("owner", changed.owner),
                  LOG_N("serving", changed.serving));
}

/* What the database cannot read: the next start salvages the rest of it. */
static bool note_damage(struct node *node)
{
    char text[DB_TEXT_BYTES];

    if (!db_damage(node->db, text))
        return false;
    if (datadir_note_damage(node->datadir) != ERR_OK)
        log_event(node->log, LOG_ERROR, "node.damage_not_noted", LOG_S("damage", text));
    return true;
}

static void on_damaged(void *user, uint32_t shard, const char *text)
{
    struct node *node = user;

    (void)shard;
    note_damage(node);
    fail(node, "storage", text);
}

static void on_peer_message(void *user, uint64_t from, struct slice bytes, const uint8_t *trace)
{
    struct node *node = user;

    if (node->workers != NULL &&
        workers_message(node->workers, from, bytes, trace_is_set(trace) ? trace : NULL) != ERR_OK)
        log_event(node->log, LOG_ERROR, "peer.malformed_message", LOG_N("replica", from));
}

static void on_peer_document(void *user, uint64_t from, struct slice bytes)
{
    struct node *node = user;
    node_documents_message(node->documents, from, bytes);
}

static void on_status(void *user, struct slice request, struct buf *out)
{
    struct node *node = user;
    uint64_t shards = 0, known = 0;

    (void)proto_scan_varint(request, 1, &shards);
    (void)proto_scan_varint(request, 2, &known);
    node_status_append(
        &(struct node_status_sources){
            .self = &node->self,
            .views = node->views,
            .space = node->space,
            .disk_free_min_bytes = node->config->disk_free_min,
            .certificate_expires_ms = tls_watch_expires_ms(node->tls),
            .live = registry_is_registered(node->registry),
            .generation = registry_generation(node->registry),
            .pulls = deliveries_pulls(node->deliveries),
        },
        &(struct node_status_wanted){ .shards = shards != 0, .known = known != 0 }, out);
}

static void on_load(void *user, struct buf *out)
{
    struct node *node = user;

    node_load_append(&(struct node_load_sources){ .replica_id = node->self.replica_id,
                                                  .life = node->life,
                                                  .metrics = node->node_metrics,
                                                  .views = node->views,
                                                  .store_log = node->store_log,
                                                  .space = node->space },
                     out);
}

static bool on_incidents(void *user, struct slice request, struct buf *out)
{
    struct node *node = user;

    if (node->incidents == NULL)
        return true;
    incidents_arm(node->incidents);
    return incidents_append(node->incidents, request, out);
}

static void on_node(void *user, const struct node_record *record)
{
    struct node *node = user;

    if (node->peers == NULL || record->replica_id == node->self.replica_id)
        return;
    peers_set_address(node->peers, record->replica_id, record->name, record->peer_address);
    if (node->peer_metrics != NULL)
        peer_metrics_know(node->peer_metrics, record);
}

static void on_shard(void *user, uint32_t shard, const struct rep_record *record)
{
    struct node *node = user;

    if (node->workers == NULL || shard >= shard_views_count(node->views))
        return;
    node_documents_record(node->documents, shard, record);
    workers_record(node->workers, shard, record);
}

static void on_registered(void *user, bool held)
{
    (void)user;
    (void)held;
}

/* Starting takes disk time, so it happens outside etcd's callback. */
static void on_cluster(void *user, const struct cluster_record *record)
{
    struct node *node = user;

    (void)record;
    loop_timer_start(&node->start_timer, 0);
}

static bool on_ready(void *context, char ret_reason[128])
{
    struct node *node = context;

    if (node->registry != NULL && etcd_rolled_back(registry_etcd(node->registry))) {
        snprintf(ret_reason, 128,
                 "etcd is older than this node knows: restored from a backup? "
                 "holdfast admin accept-etcd-restore");
        return false;
    }
    if (node->workers == NULL) {
        snprintf(ret_reason, 128, "%s",
                 node->earlier.why[0] != 0 ? node->earlier.why
                                           : "waiting for the cluster's record in etcd");
        return false;
    }
    if (!registry_is_registered(node->registry)) {
        snprintf(ret_reason, 128, "not registered in etcd");
        return false;
    }
    return node_ready(node->views, node->self.replica_id, ret_reason);
}

/* ---- starting ---- */

static err open_datadir(struct node *node, const struct cluster_record *cluster)
{
    char text[DATADIR_ERROR_BYTES] = "";
    struct datadir_config config = {
        .path = node->config->data_dir,
        .cluster_id = cluster->cluster_id,
        .shard_count = cluster->shard_count,
    };

    while (config.new_replica_id == 0)
        CHECK(getrandom(&config.new_replica_id, sizeof config.new_replica_id, 0) ==
              (ssize_t)sizeof config.new_replica_id);
    /* Ids stay below 2^53, so that every JSON reader shows them exactly. */
    config.new_replica_id = (config.new_replica_id >> 11) | 1;
    err e = datadir_open(&config, &node->datadir, text);
    if (e == ERR_CONFLICT && earlier_life_wait(&node->earlier, &node->start_timer, text))
        return e;
    earlier_life_end(&node->earlier);
    if (e != ERR_OK)
        fail(node, "data directory", text);
    return e;
}

static err open_store(struct node *node, const struct cluster_record *cluster)
{
    struct stores stores = { 0 };
    char text[STORES_TEXT_BYTES] = "";
    err e = stores_open(&(struct stores_options){ .config = node->config,
                                                  .log = node->log,
                                                  .datadir = node->datadir,
                                                  .shard_count = cluster->shard_count,
                                                  .block_cache_bytes = node->caches.block_bytes },
                        &stores, text);

    node->db = stores.db;
    node->store_log = stores.log;
    if (e != ERR_OK)
        fail(node, "storage", text);
    return e;
}

static const struct turnstile_stats *link_turnstile(void *user)
{
    const struct node *node = user;

    return node->hub != NULL ? link_hub_turnstile(node->hub) : NULL;
}

static err open_links(struct node *node, const struct cluster_record *cluster)
{
    struct link_hub_options hub = {
        .loop = node->loop,
        .log = node->log,
        .self = { .role = ROLE_NODE,
                  .replica_id = datadir_identity_get(node->datadir)->replica_id,
                  .life = node->life,
                  .abilities = HELLO_TAKES_CALLERS | HELLO_TAKES_DOCUMENTS },
        .cluster = node->config->cluster,
        .names = node->names,
        .admits = link_right,
        .metrics = node->metrics,
        .tls_client = node->tls != NULL ? tls_watch_client(node->tls) : NULL,
        .tls_server = node->tls != NULL ? tls_watch_server(node->tls) : NULL,
        LINK_HUB_CONFIG(node->config),
        .answers = &node->answers,
    };

    snprintf(hub.self.cluster_id, sizeof hub.self.cluster_id, "%s", cluster->cluster_id);
    snprintf(hub.self.name, sizeof hub.self.name, "%s", node->config->name);
    err e = link_hub_new(&hub, &node->hub);
    if (e == ERR_OK)
        e = service_new(&(struct service_options){ .loop = node->loop,
                                                   .hub = node->hub,
                                                   .log = node->log,
                                                   .metrics = node->node_metrics,
                                                   .config = node->config,
                                                   .answers = &node->answers,
                                                   .transport = node->transport,
                                                   .shard_count = cluster->shard_count,
                                                   .status = on_status,
                                                   .load = on_load,
                                                   .incidents = on_incidents,
                                                   .user = node },
                        &node->service);
    if (e == ERR_OK)
        e = peers_new(&(struct peers_options){ .loop = node->loop,
                                               .hub = node->hub,
                                               .log = node->log,
                                               .self = hub.self.replica_id,
                                               .listen = node->config->peer_listen,
                                               .calls = service_calls(node->service),
                                               .message = on_peer_message,
                                               .document = on_peer_document,
                                               .user = node },
                      &node->peers);
    if (e != ERR_OK) {
        fail(node, "links", err_text(e));
        return e;
    }
    node->deliveries =
        deliveries_new(&(struct deliveries_options){ .loop = node->loop,
                                                     .registry = node->registry,
                                                     .peers = node->peers,
                                                     .calls = service_calls(node->service),
                                                     .self = hub.self.replica_id });
    node_metrics_set_pulls(node->node_metrics, deliveries_pulls(node->deliveries));
    return ERR_OK;
}

#define IDLE_BYTES (32u * 1024 * 1024)

/* What is configured, and what an idle node takes. */
static uint64_t resident_max(const struct node *node)
{
    return node->caches.row_bytes + node->caches.block_bytes + 2 * node->config->write_buffer_size +
           node->answers.bytes_max / 4 + IDLE_BYTES;
}

static bool log_has_room(void *user)
{
    struct node *node = user;

    return node_log_space_ok(node->store_log);
}

static void on_database_rests(void *user, bool rests)
{
    struct node *node = user;

    db_rest(node->db, rests);
}

static err make_workers(struct node *node, const struct cluster_record *cluster)
{
    struct worker_options options = {
        .loop = node->loop,
        .log = node->log,
        .store_log = node->store_log,
        .log_path = datadir_log_path(node->datadir),
        .db = node->db,
        .handlers = node->options.handlers,
        .self = datadir_identity_get(node->datadir)->replica_id,
        .shard_count = cluster->shard_count,
        .limits = shard_limits_default(),
        .answers = &node->answers,
        .cache_bytes = node->caches.row_bytes,
        .resident_max_bytes = resident_max(node),
        .checkpoint_interval_ms = node->config->checkpoint_interval,
        .tick_ms = (uint32_t)node->config->tick,
        .loads_max = node->config->loads_max,
        .slow_ms = node->config->slow_request,
        .commits = node_metrics_commits(node->node_metrics),
        .ops = { .send = on_send,
                 .answer = on_answer,
                 .deliver = on_deliver,
                 .role_changed = on_role_changed,
                 .damaged = on_damaged },
        .user = node,
    };
    struct workers_options pool = {
        .send_encoded = on_send_encoded,
        .count = node->config->workers,
        .calls_max = node->config->calls_max,
    };
    bool damaged = false;

    options.limits.shard_count = cluster->shard_count;
#ifdef HOLDFAST_DEBUG_INJECT
    options.limits.apply_version_max = node->config->apply_version_max;
#endif
    options.limits.rep.lag_ms_max = (uint32_t)node->config->log_lag_max;
    options.limits.snapshot_bytes_per_s = (uint32_t)node->config->snapshot_rate;
    node->views = shard_views_new(cluster->shard_count);
    options.views = node->views;
    node->incidents = incidents_new(loop_wall_ms(), options.self);
    incidents_set_listener(node->incidents, service_incidents_added, node->service);
    options.incidents = node->incidents;
    options.event_news = service_event_news(node->service);
    node->space = space_new(&(struct space_options){ .loop = node->loop,
                                                     .log = node->log,
                                                     .log_path = datadir_log_path(node->datadir),
                                                     .db_path = datadir_db_path(node->datadir),
                                                     .free_min = node->config->disk_free_min,
                                                     .log_has_room = log_has_room,
                                                     .database_rests = on_database_rests,
                                                     .user = node });
    options.space = node->space;
    pool.worker = options;
    err e = workers_new(&pool, &node->workers, &damaged);
    if (e == ERR_OK && note_damage(node)) {
        fail(node, "storage", "the database is damaged: the next start salvages what it can");
        e = ERR_CORRUPT;
    } else if (e != ERR_OK) {
        fail(node, "workers", err_text(e));
    } else if (damaged)
        log_event(node->log, LOG_ERROR, "node.shards_damaged",
                  LOG_S("what", "damaged shards are not served from here"));
    return e;
}

static err make_documents(struct node *node)
{
    char text[MERGERS_TEXT_BYTES] = "";
    err e = node_documents_new(
        &(struct node_documents_options){ .loop = node->loop,
                                          .log = node->log,
                                          .data_dir = node->config->data_dir,
                                          .cluster = node->config->cluster,
                                          .registry = node->registry,
                                          .peers = node->peers,
                                          .service = node->service,
                                          .metrics = node->metrics,
                                          .space = node->space,
                                          .self = datadir_identity_get(node->datadir)->replica_id,
                                          .boot = node->life,
                                          .views = node->views },
        &node->documents, text);

    if (e != ERR_OK)
        fail(node, "documents", text);
    return e;
}

static void announce(struct node *node)
{
    struct node_record *self = &node->self;

    self->replica_id = datadir_identity_get(node->datadir)->replica_id;
    snprintf(self->name, sizeof self->name, "%s", node->config->name);
    snprintf(self->zone, sizeof self->zone, "%s", node->config->zone);
    snprintf(self->version, sizeof self->version, "%s", node->options.version);
    address_of(node->config->advertise, node->config->listen, service_port(node->service),
               self->address);
    address_of(node->config->peer_advertise, node->config->peer_listen, peers_port(node->peers),
               self->peer_address);
    self->started_at_ms = loop_wall_ms();
    node_status_mark_unfit(node->views, self);
    registry_announce(node->registry, self);
}

static void start_scrub(struct node *node)
{
    if (node->config->scrub_period == 0)
        return;
    node->scrub = scrub_new(&(struct scrub_options){ .loop = node->loop,
                                                     .log = node->log,
                                                     .db = node->db,
                                                     .store_log = node->store_log,
                                                     .period_ms = node->config->scrub_period,
                                                     .rate_bytes_per_s = node->config->scrub_rate,
                                                     .damaged = on_damaged,
                                                     .user = node });
    node_metrics_set_scrub(node->node_metrics, node->scrub);
}

static void learn_nodes(struct node *node)
{
    uint32_t count;
    const struct node_record *nodes = shard_map_nodes(registry_map(node->registry), &count);

    for (uint32_t i = 0; i < count; i++)
        on_node(node, &nodes[i]);
}

static void start(void *user)
{
    struct node *node = user;
    const struct cluster_record *cluster = shard_map_cluster(registry_map(node->registry));

    if (node->workers != NULL || node->failed)
        return;
    if (open_datadir(node, cluster) != ERR_OK || open_store(node, cluster) != ERR_OK ||
        open_links(node, cluster) != ERR_OK || make_workers(node, cluster) != ERR_OK ||
        make_documents(node) != ERR_OK)
        return;
    service_set_workers(node->service, node->workers);
    deliveries_set_workers(node->deliveries, node->workers, node->views);
    node_metrics_set_sources(node->node_metrics, node->views, node->store_log);
    node->state_metrics = state_metrics_new(node->metrics, node->views, node->db);
    node->peer_metrics = peer_metrics_new(node->metrics, node->views, registry_map(node->registry));
    node_metrics_set_space(node->node_metrics, node->space);
    node_metrics_set_incidents(node->node_metrics, node->incidents);
    node->claims = claims_new(&(struct claims_options){
        .loop = node->loop,
        .hub = node->hub,
        .log = node->log,
        .registry = node->registry,
        .peers = node->peers,
        .views = node->views,
        .space = node->space,
        .self = datadir_identity_get(node->datadir)->replica_id,
        .closed_ms = node->config->report_closed,
        .silent_ms = node->config->report_silent,
    });
    node->self.replica_id = datadir_identity_get(node->datadir)->replica_id;
    node->etcd_note = etcd_note_new(&(struct etcd_note_options){ .loop = node->loop,
                                                                 .log = node->log,
                                                                 .registry = node->registry,
                                                                 .datadir = node->datadir });
    learn_nodes(node);
    registry_replay(node->registry);
    announce(node);
    start_scrub(node);
    log_event(node->log, LOG_INFO, "node.started", LOG_N("replica", node->self.replica_id),
              LOG_S("listen", node->self.address), LOG_S("peer_listen", node->self.peer_address));
}

static void on_tls_changed(void *user)
{
    struct node *node = user;

    if (node->hub != NULL)
        link_hub_set_tls(node->hub, tls_watch_client(node->tls), tls_watch_server(node->tls));
}

static err watch_tls(struct node *node)
{
    struct tls_error why = { "" };
    const struct tls_watch_cluster options = {
        .loop = node->loop,
        .log = node->log,
        .metrics = node->metrics,
        TLS_WATCH_CONFIG(node->config),
        .changed = on_tls_changed,
        .user = node,
    };
    err e = tls_watch_new_cluster(&options, &node->tls, &why);
    if (e != ERR_OK)
        fail(node, "TLS", why.text);
    return e;
}

/* What the options say of links and of memory. */
static err find_options(struct node *node)
{
    const struct node_config *config = node->config;
    char why[NODE_LIMITS_TEXT_BYTES];
    const char *wrong = node_links_find(config, &node->transport, &node->names, why);

    if (wrong == NULL)
        wrong = node_limits_check(config, why);

    if (wrong != NULL) {
        fail(node, wrong, why);
        return ERR_INVALID;
    }
    node->caches = caches_of(config->cache_size, config->block_cache_size, memory_machine_bytes());
    budget_init(&node->answers, memory_share(config->answers_size_max));
    node_metrics_set_answers(node->node_metrics, &node->answers);
    log_event(node->log, LOG_INFO, "node.caches", LOG_N("rows_bytes", node->caches.row_bytes),
              LOG_N("blocks_bytes", node->caches.block_bytes),
              LOG_N("answers_bytes", node->answers.bytes_max));
    return ERR_OK;
}

static err start_registry(struct node *node)
{
    const struct node_config *config = node->config;
    struct datadir_identity known = { .etcd_revision = 0 };

    (void)datadir_peek(config->data_dir, &known);
    struct registry_options options = {
        .etcd_cluster_id_known = known.etcd_cluster_id,
        .etcd_revision_known = known.etcd_revision,
        .generation_known = known.generation,
        .loop = node->loop,
        .log = node->log,
        .cluster = config->cluster,
        .endpoints = (const char *const *)config->etcd.items,
        .endpoint_count = config->etcd.count,
        .ca_file = text_or_null(config->etcd_ca),
        .cert_file = text_or_null(config->etcd_cert),
        .key_file = text_or_null(config->etcd_key),
        .lease_ttl_ms = config->lease_ttl,
        .cluster_known = on_cluster,
        .node_changed = on_node,
        .shard_changed = on_shard,
        .registered = on_registered,
        .user = node,
    };

    if (!cluster_name_valid(config->cluster)) {
        fail(node, "cluster", "the name may have 1 to 63 of a-z, 0-9 and dash");
        return ERR_INVALID;
    }
    err e = registry_new(&options, &node->registry);
    if (e != ERR_OK)
        fail(node, "etcd", err_text(e));
    else
        node_metrics_set_etcd(node->node_metrics, registry_etcd(node->registry));
    return e;
}

/* False: it failed, or begins again later. */
static bool serve_metrics(struct node *node)
{
    const struct node_config *config = node->config;
    err e = metrics_http_start(
        &(struct metrics_http_options){ .loop = loop_uv(node->loop),
                                        .metrics = node->metrics,
                                        .host = config->metrics_host,
                                        .port = (uint16_t)config->metrics_port,
                                        .connections_max = config->metrics_connections_max,
                                        .log = node->log,
                                        .ready = on_ready,
                                        .context = node },
        &node->http);

    if (e == ERR_CONFLICT && earlier_life_wait_for_port(&node->earlier, &node->begin_timer,
                                                        config->data_dir, "metrics port"))
        return false;
    if (e != ERR_OK)
        fail(node, "metrics port", metrics_http_why(e));
    return e == ERR_OK;
}

/* Its ports, and then what asks etcd: a node that cannot be watched does not join. */
static void begin(void *user)
{
    struct node *node = user;

    if (!serve_metrics(node) || start_registry(node) != ERR_OK)
        return;
    log_event(node->log, LOG_INFO, "node.starting", LOG_S("name", node->config->name),
              LOG_N("metrics_port", metrics_http_port(node->http)));
}

err node_new(const struct node_options *options, struct node **ret_node)
{
    struct node *node = mem_zalloc(sizeof *node);

    node->options = *options;
    node->config = options->config;
    node->life = loop_wall_ms();
    node->log = options->log;
    node->loop = options->loop;
    node->earlier = (struct earlier_life){ .log = node->log, .loop = node->loop };
    loop_timer_init(&node->begin_timer, node->loop, begin, node);
    loop_timer_init(&node->start_timer, node->loop, start, node);
    node->metrics = metrics_new();
    node->link_figures = (struct metrics_turnstile){ .read = link_turnstile, .user = node };
    metrics_turnstile_register(&node->link_figures, node->metrics, "links", true);
    metrics_process_register(node->metrics, options->version);
    node->node_metrics = node_metrics_new(node->metrics);
    err e = find_options(node);
    if (e == ERR_OK)
        e = watch_tls(node);
    if (e == ERR_OK)
        begin(node);
    if (node->failed) {
        node_free(node);
        return e == ERR_OK ? ERR_IO : e;
    }
    *ret_node = node;
    return ERR_OK;
}

void node_free(struct node *node)
{
    if (node == NULL)
        return;
    loop_timer_stop(&node->begin_timer);
    loop_timer_stop(&node->start_timer);
    claims_free(node->claims);
    node->claims = NULL;
    etcd_note_free(node->etcd_note);
    node->etcd_note = NULL;
    registry_withdraw(node->registry);
    if (node->workers != NULL && !node->failed)
        workers_checkpoint_all(node->workers);
    node_documents_stop(node->documents);
    if (node->service != NULL)
        service_set_workers(node->service, NULL);
    if (node->deliveries != NULL)
        deliveries_set_workers(node->deliveries, NULL, NULL);
    node_metrics_clear_sources(node->node_metrics);
    state_metrics_clear(node->state_metrics);
    peer_metrics_clear(node->peer_metrics);
    scrub_free(node->scrub);
    workers_free(node->workers);
    node->workers = NULL; /* space_free runs the loop, and peers may still send. */
    space_free(node->space);
    shard_views_free(node->views);
    incidents_free(node->incidents);
    registry_free(node->registry);
    peers_free(node->peers);
    service_free(node->service);
    deliveries_free(node->deliveries);
    link_hub_free(node->hub);
    node->hub = NULL;
    if (node->store_log != NULL)
        node_log_close(node->store_log);
    if (node->db != NULL)
        db_close(node->db);
    if (node->datadir != NULL)
        datadir_close(node->datadir);
    if (node->http != NULL)
        metrics_http_stop(node->http);
    tls_watch_free(node->tls);
    node_metrics_free(node->node_metrics);
    state_metrics_free(node->state_metrics);
    peer_metrics_free(node->peer_metrics);
    node_documents_free(node->documents);
    metrics_free(node->metrics);
    free(node);
}

bool node_failed(const struct node *node)
{
    return node->failed;
}
