#include "coordinator/io/registry.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd_election.h"
#include "runtime/etcd/etcd_mirror.h"
#include "runtime/restore_watch/restore_watch.h"

#define TXN_TIMEOUT_MS 3000u

/* One transaction on its way, or one that could not be sent and waits to be told so. */
struct pending {
    struct registry *registry;
    struct pending *next;
    struct pending **at;
    uint64_t ticket;
    uint32_t write_count;
    bool unsent;
};

struct registry {
    struct registry_options options;
    char cluster[CLUSTER_NAME_MAX + 1];
    struct etcd *etcd;
    struct etcd_mirror *mirror;
    struct restore_watch *restore;
    struct etcd_election *election;
    struct pending *pendings;
    struct loop_hook unsent;
    char name[sizeof((struct coordinator_record *)0)->name];
    struct buf self;         /* What the election key says. */
    struct buf election_key; /* In etcd, as far as the mirror knows; empty: none. */
    bool synced;
    bool led;
};

static void tell(struct registry *registry, struct coord_event event)
{
    registry->options.event(registry->options.user, &event);
}

/* ---- mirror ---- */
static void on_put(void *context, const struct etcd_kv *kv)
{
    struct registry *registry = context;

    if (registry->self.size > 0 && slice_equal(kv->value, buf_slice(&registry->self))) {
        buf_clear(&registry->election_key);
        buf_append(&registry->election_key, kv->key.data, kv->key.size);
    }
    tell(context, (struct coord_event){ .type = COORD_PUT,
                                        .key = kv->key,
                                        .value = kv->value,
                                        .create_revision = kv->create_revision,
                                        .mod_revision = kv->mod_revision });
}

static void on_deleted(void *context, struct slice key, int64_t revision)
{
    struct registry *registry = context;

    if (slice_equal(key, buf_slice(&registry->election_key)))
        buf_clear(&registry->election_key);
    tell(context,
         (struct coord_event){ .type = COORD_DELETED, .key = key, .mod_revision = revision });
}

static void on_synced(void *context, int64_t revision)
{
    struct registry *registry = context;

    if (!registry->synced)
        log_event(registry->options.log, LOG_INFO, "etcd.synced", LOG_N("revision", revision));
    registry->synced = true;
    tell(registry, (struct coord_event){ .type = COORD_SYNCED });
}

/* It is not known which of the two histories the nodes hold: the operator who restored etcd has
 * to say so (DESIGN section 4). */
static void on_rolled_back(void *context, const struct etcd_rollback *rollback)
{
    struct registry *registry = context;

    log_event(registry->options.log, LOG_ERROR, "etcd.rolled_back",
              LOG_N("cluster_id_known", rollback->cluster_id_known),
              LOG_N("cluster_id_seen", rollback->cluster_id_seen),
              LOG_N("revision_known", rollback->revision_known),
              LOG_N("revision_seen", rollback->revision_seen),
              LOG_S("what", "etcd was restored from a backup or replaced; writing stops"));
    tell(registry, (struct coord_event){ .type = COORD_HALT });
}

static const char *cluster_id_of(void *context)
{
    const struct registry *registry = context;
    const struct cluster_record *cluster = registry->options.cluster_of(registry->options.user);

    return cluster != NULL ? cluster->cluster_id : NULL;
}

/* The mirror says so too, when it begins again. */
static void on_accepted(void *context, uint64_t generation)
{
    (void)context;
    (void)generation;
}

static void on_reset(void *context)
{
    struct registry *registry = context;

    buf_clear(&registry->election_key);
    registry->synced = false;
    tell(registry, (struct coord_event){ .type = COORD_RESET });
}

/* ---- election ---- */
static void on_elected(void *context, struct slice key, int64_t create_revision)
{
    tell(context, (struct coord_event){
                      .type = COORD_ELECTED, .key = key, .create_revision = create_revision });
}

static void on_lost(void *context)
{
    tell(context, (struct coord_event){ .type = COORD_LOST });
}

static void on_leader_changed(void *context, const struct etcd_kv *kv)
{
    struct registry *registry = context;
    struct coordinator_record leader = { .name = "none" };

    registry->led = kv != NULL;
    if (kv != NULL && coordinator_record_decode(kv->value, &leader, NULL) != ERR_OK)
        leader = (struct coordinator_record){ .name = "unreadable" };
    log_event(registry->options.log, LOG_INFO, "coordinator.leader", LOG_S("name", leader.name),
              LOG_S("address", leader.address));
}

/* Each coordinator has a name of its own, so this one's was ours, in an earlier life. */
static bool on_is_predecessor(void *context, const struct etcd_kv *kv)
{
    struct registry *registry = context;
    struct coordinator_record record;

    return coordinator_record_decode(kv->value, &record, NULL) == ERR_OK &&
           strcmp(record.name, registry->name) == 0;
}

void registry_campaign(struct registry *registry, const struct coordinator_record *self)
{
    struct cluster_key prefix = cluster_key_election_prefix(registry->cluster);

    CHECK(registry->election == NULL && registry->self.size == 0);
    coordinator_record_encode(self, &registry->self);
    memcpy(registry->name, self->name, sizeof registry->name);
    struct etcd_election_options options = {
        .prefix = cluster_key_slice(&prefix),
        .value = buf_slice(&registry->self),
        .ttl_ms = registry->options.lease_ttl_ms,
        .elected = on_elected,
        .lost = on_lost,
        .leader_changed = on_leader_changed,
        .is_predecessor = on_is_predecessor,
        .context = registry,
    };

    CHECK(etcd_election_start(registry->etcd, &options, &registry->election) == ERR_OK);
}

void registry_resign(struct registry *registry)
{
    if (registry->election != NULL)
        etcd_election_stop(registry->election);
    registry->election = NULL;
}

bool registry_has_resigned(const struct registry *registry)
{
    return registry->election_key.size == 0;
}

/* ---- transactions ---- */
static struct pending *pending_new(struct registry *registry, const struct coord_txn *txn)
{
    struct pending *pending = mem_zalloc(sizeof *pending);

    pending->registry = registry;
    pending->ticket = txn->ticket;
    pending->write_count = txn->write_count;
    pending->next = registry->pendings;
    pending->at = &registry->pendings;
    if (pending->next != NULL)
        pending->next->at = &pending->next;
    registry->pendings = pending;
    return pending;
}

static void pending_free(struct pending *pending)
{
    *pending->at = pending->next;
    if (pending->next != NULL)
        pending->next->at = pending->at;
    free(pending);
}

static void on_txn(void *context, err e, const struct etcd_txn_result *result)
{
    struct pending *pending = context;
    struct registry *registry = pending->registry;
    bool written[COORD_TXN_WRITES_MAX] = { false };
    struct coord_event event = { .type = COORD_TXN_DONE,
                                 .ticket = pending->ticket,
                                 .outcome = COORD_TXN_UNKNOWN,
                                 .written = written };

    if (e != ERR_OK) {
        log_event(registry->options.log, LOG_WARN, "etcd.transaction_unknown",
                  LOG_S("error", err_name(e)));
    } else if (!result->succeeded) {
        event.outcome = COORD_TXN_DEPOSED;
    } else {
        CHECK(result->op_count == pending->write_count);
        event.outcome = COORD_TXN_ANSWERED;
        event.mod_revision = result->header.revision;
        for (size_t i = 0; i < result->op_count; i++)
            written[i] = result->ops[i].txn->succeeded;
    }
    pending_free(pending);
    tell(registry, event);
}

static void on_unsent(void *user)
{
    struct registry *registry = user;
    struct pending *next;

    for (struct pending *pending = registry->pendings; pending != NULL; pending = next) {
        next = pending->next;
        if (pending->unsent)
            on_txn(pending, ERR_UNAVAILABLE, NULL);
    }
}

static struct etcd_txn *write_make(const struct coord_write *write)
{
    struct etcd_txn *txn = etcd_txn_new();

    etcd_txn_compare(txn, write->key, ETCD_MOD_REVISION, ETCD_EQUAL, write->mod_revision);
    if (write->absent_key.size > 0)
        etcd_txn_compare(txn, write->absent_key, ETCD_CREATE_REVISION, ETCD_EQUAL, 0);
    if (write->after_key.size > 0)
        etcd_txn_compare(txn, write->after_key, ETCD_MOD_REVISION, ETCD_EQUAL,
                         write->after_revision);
    if (write->remove)
        etcd_txn_delete(txn, ETCD_THEN, write->key);
    else
        etcd_txn_put(txn, ETCD_THEN, write->key, write->value, 0);
    return txn;
}

void registry_txn(struct registry *registry, const struct coord_txn *txn)
{
    struct etcd_txn *outer = etcd_txn_new();
    struct pending *pending = pending_new(registry, txn);

    if (txn->election_key.size > 0)
        etcd_txn_compare(outer, txn->election_key, ETCD_CREATE_REVISION, ETCD_EQUAL,
                         txn->election_revision);
    for (uint32_t i = 0; i < txn->write_count; i++)
        etcd_txn_nest(outer, ETCD_THEN, write_make(&txn->writes[i]));
    if (etcd_txn(registry->etcd, outer, on_txn,
                 &(struct etcd_wait){ TXN_TIMEOUT_MS, pending, NULL }) != ERR_OK) {
        pending->unsent = true;
        loop_hook_arm(&registry->unsent);
    }
    etcd_txn_free(outer);
}

/* ---- life ---- */
static err connect_etcd(struct registry *registry)
{
    const struct registry_options *options = &registry->options;
    struct cluster_key prefix = cluster_key_prefix(registry->cluster);
    struct etcd_options etcd = {
        .loop = loop_uv(options->loop),
        .endpoints = options->endpoints,
        .endpoint_count = options->endpoint_count,
        .ca_file = options->ca_file,
        .cert_file = options->cert_file,
        .key_file = options->key_file,
        .log = options->log,
        .rolled_back = on_rolled_back,
        .context = registry,
    };
    err e = etcd_new(&etcd, &registry->etcd);

    if (e != ERR_OK)
        return e;
    registry->restore =
        restore_watch_new(&(struct restore_watch_options){ .loop = options->loop,
                                                           .log = options->log,
                                                           .etcd = registry->etcd,
                                                           .cluster = registry->cluster,
                                                           .cluster_id = cluster_id_of,
                                                           .accepted = on_accepted,
                                                           .user = registry });
    return etcd_mirror_start(registry->etcd,
                             &(struct etcd_mirror_options){ .prefix = cluster_key_slice(&prefix),
                                                            .keys_max = CLUSTER_KEYS_MAX,
                                                            .put = on_put,
                                                            .deleted = on_deleted,
                                                            .synced = on_synced,
                                                            .reset = on_reset,
                                                            .context = registry },
                             &registry->mirror);
}

err registry_new(const struct registry_options *options, struct registry **ret_registry)
{
    struct registry *registry = mem_zalloc(sizeof *registry);

    CHECK(cluster_name_valid(options->cluster));
    registry->options = *options;
    memcpy(registry->cluster, options->cluster, strlen(options->cluster) + 1);
    registry->options.cluster = registry->cluster;
    loop_hook_init(&registry->unsent, options->loop, on_unsent, registry);
    err e = connect_etcd(registry);

    if (e != ERR_OK) {
        registry_free(registry);
        return e;
    }
    *ret_registry = registry;
    return ERR_OK;
}

void registry_free(struct registry *registry)
{
    if (registry == NULL)
        return;
    loop_hook_disarm(&registry->unsent);
    registry_resign(registry);
    restore_watch_free(registry->restore);
    if (registry->mirror != NULL)
        etcd_mirror_stop(registry->mirror);
    if (registry->etcd != NULL)
        etcd_free(registry->etcd);
    while (registry->pendings != NULL)
        pending_free(registry->pendings);
    buf_deinit(&registry->self);
    buf_deinit(&registry->election_key);
    free(registry);
}

bool registry_is_synced(const struct registry *registry)
{
    return registry->synced;
}

bool registry_has_leader(const struct registry *registry)
{
    return registry->led;
}
