#include "node/io/cluster/registry.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd_lease.h"
#include "runtime/etcd/etcd_mirror.h"
#include "runtime/restore_watch/restore_watch.h"

enum mirrored { MIRROR_CLUSTER, MIRROR_NODES, MIRROR_SHARDS, MIRROR_ELECTION, MIRROR_COUNT };

#define PUT_RETRY_MS    200u
#define WITHDRAW_MS_MAX 1000u

struct registry {
    struct registry_options options;
    struct etcd *etcd;
    struct etcd_mirror *mirrors[MIRROR_COUNT];
    struct etcd_lease *lease;
    struct loop_timer put_timer;
    struct restore_watch *restore;
    struct shard_map *map;
    struct node_record record;
    bool announced;
    bool registered;
    int64_t announced_revision; /* Of etcd when this process first registered; 0: it did not yet. */
    int64_t synced_revision;    /* As of which the shards' records are all known. */
    bool putting;               /* The record; `changed` since then: once more. */
    bool changed;
    bool cluster_told;
};

static void put_record(void *user);

static int compare_ids(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    return (*x > *y) - (*x < *y);
}

static struct rep_record rep_record_of(const struct shard_record *record)
{
    struct rep_record out = {
        .generation = record->generation,
        .epoch = record->epoch,
        .owner = record->owner,
        .membership = { .config = record->config,
                        .count = record->member_count,
                        .new_count = record->new_member_count,
                        .learner = record->learner },
    };

    for (uint32_t i = 0; i < record->member_count; i++)
        out.membership.members[i] = record->members[i];
    for (uint32_t i = 0; i < record->new_member_count; i++)
        out.membership.new_members[i] = record->new_members[i];
    qsort(out.membership.members, out.membership.count, sizeof(uint64_t), compare_ids);
    qsort(out.membership.new_members, out.membership.new_count, sizeof(uint64_t), compare_ids);
    return out;
}

/* As of the registration the record was this one, or an earlier one than this. */
static bool is_confirmed(const struct registry *registry, const struct shard_entry *entry)
{
    int64_t begun = registry->announced_revision;

    return begun > 0 && (entry->mod_revision > begun || registry->synced_revision >= begun);
}

static void tell_shard(struct registry *registry, uint32_t shard)
{
    const struct shard_entry *entry = shard_map_find(registry->map, shard);

    if (entry == NULL)
        return;
    struct rep_record record = rep_record_of(&entry->record);
    record.confirmed = is_confirmed(registry, entry);
    registry->options.shard_changed(registry->options.user, shard, &record);
}

/* A put without an answer may come later than one that was sent after it. */
static void look_at_own(struct registry *registry, const struct node_record *own)
{
    bool same_life = own->started_at_ms == registry->record.started_at_ms;

    if (registry->registered && same_life && !node_record_finds_same(own, &registry->record))
        loop_timer_start(&registry->put_timer, PUT_RETRY_MS);
}

static void tell(struct registry *registry, const struct cluster_key_parts *changed)
{
    const struct node_record *node;

    switch (changed->kind) {
    case CLUSTER_KEY_CLUSTER:
        if (shard_map_cluster(registry->map) != NULL && !registry->cluster_told) {
            registry->cluster_told = true;
            registry->options.cluster_known(registry->options.user,
                                            shard_map_cluster(registry->map));
        }
        break;
    case CLUSTER_KEY_NODE:
        node = shard_map_find_node(registry->map, changed->replica_id);
        if (node != NULL && node->replica_id == registry->record.replica_id)
            look_at_own(registry, node);
        if (node != NULL)
            registry->options.node_changed(registry->options.user, node);
        break;
    case CLUSTER_KEY_SHARD:
        tell_shard(registry, changed->shard);
        break;
    default:
        break;
    }
}

static void apply(struct registry *registry, const struct shard_map_event *event)
{
    struct cluster_key_parts changed;
    struct record_error why;

    if (shard_map_apply(registry->map, event, &changed, &why) == ERR_OK)
        tell(registry, &changed);
    else
        log_event(registry->options.log, LOG_ERROR, "registry.bad_record", LOG_S("why", why.text));
}

static void on_put(void *context, const struct etcd_kv *kv)
{
    apply(context, &(struct shard_map_event){
                       .key = kv->key,
                       .value = kv->value,
                       .create_revision = kv->create_revision,
                       .mod_revision = kv->mod_revision,
                   });
}

static void on_deleted(void *context, struct slice key, int64_t revision)
{
    apply(context,
          &(struct shard_map_event){ .deleted = true, .key = key, .mod_revision = revision });
}

/* What a damaged replica may trust is told once more (rep_record). */
static void on_synced(void *context, int64_t revision)
{
    struct registry *registry = context;
    bool news = registry->announced_revision > 0 &&
                registry->synced_revision < registry->announced_revision &&
                revision >= registry->announced_revision;

    registry->synced_revision = revision;
    if (news)
        registry_replay(registry);
}

static void on_other_synced(void *context, int64_t revision)
{
    (void)context;
    (void)revision;
}

uint64_t registry_generation(const struct registry *registry)
{
    const struct cluster_record *cluster = shard_map_cluster(registry->map);
    uint64_t known = registry->options.generation_known;

    return cluster != NULL && cluster->generation > known ? cluster->generation : known;
}

static void put_record(void *user);

static void on_rolled_back(void *context, const struct etcd_rollback *rollback)
{
    struct registry *registry = context;

    registry->record.doubts = registry_generation(registry);
    loop_timer_start(&registry->put_timer, 0);

    log_event(registry->options.log, LOG_ERROR, "etcd.rolled_back",
              LOG_N("revision_known", rollback->revision_known),
              LOG_N("revision_seen", rollback->revision_seen),
              LOG_S("what", "etcd was restored or replaced; ownership stays as it was known"));
}

/* Nothing of the restored etcd is followed; but the cluster's own record never changes but for its
 * generation, and a node that starts needs it to tell what it knows. */
static void on_restored(void *user, const struct etcd_kv *kv)
{
    struct registry *registry = user;

    if (!registry->cluster_told)
        on_put(registry, kv);
}

static const char *cluster_id_of(void *user)
{
    const struct registry *registry = user;
    const struct cluster_record *cluster = shard_map_cluster(registry->map);

    return cluster != NULL ? cluster->cluster_id : NULL;
}

/* Mirrors tell everything again. */
static void on_accepted(void *user, uint64_t generation)
{
    struct registry *registry = user;

    registry->options.generation_known = generation;
    registry->record.doubts = 0;
    shard_map_reset(registry->map);
    loop_timer_start(&registry->put_timer, 0);
}

static err start_mirrors(struct registry *registry)
{
    const char *cluster = registry->options.cluster;
    const struct cluster_key keys[MIRROR_COUNT] = {
        [MIRROR_CLUSTER] = cluster_key_cluster(cluster),
        [MIRROR_NODES] = cluster_key_nodes_prefix(cluster),
        [MIRROR_SHARDS] = cluster_key_shards_prefix(cluster),
        [MIRROR_ELECTION] = cluster_key_election_prefix(cluster),
    };

    for (int i = 0; i < MIRROR_COUNT; i++) {
        struct etcd_mirror_options options = {
            .prefix = cluster_key_slice(&keys[i]),
            .put = on_put,
            .deleted = on_deleted,
            .synced = i == MIRROR_SHARDS ? on_synced : on_other_synced,
            .context = registry,
        };
        err e = etcd_mirror_start(registry->etcd, &options, &registry->mirrors[i]);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

static void set_registered(struct registry *registry, bool held)
{
    if (registry->registered == held)
        return;
    registry->registered = held;
    log_event(registry->options.log, held ? LOG_INFO : LOG_WARN,
              held ? "node.registered" : "node.registration_lost",
              LOG_N("replica", registry->record.replica_id));
    registry->options.registered(registry->options.user, held);
}

static void on_record_put(void *context, err e, const struct etcd_txn_result *result)
{
    struct registry *registry = context;

    registry->putting = false;
    if (e == ERR_OK && registry->announced_revision == 0)
        registry->announced_revision = result->header.revision;
    if (e == ERR_OK)
        set_registered(registry, true);
    if (e != ERR_OK || registry->changed)
        loop_timer_start(&registry->put_timer, e != ERR_OK ? PUT_RETRY_MS : 0);
}

/* A put of the same record under the same lease: repeating it does no harm. */
static void put_record(void *user)
{
    struct registry *registry = user;
    struct buf value = { 0 };

    if (!registry->announced || registry->lease == NULL || etcd_lease_id(registry->lease) == 0)
        return;
    if (registry->putting) {
        registry->changed = true;
        return;
    }
    struct cluster_key key =
        cluster_key_node(registry->options.cluster, registry->record.replica_id);

    node_record_encode(&registry->record, &value);
    struct etcd_kv kv = { .key = cluster_key_slice(&key),
                          .value = buf_slice(&value),
                          .lease = etcd_lease_id(registry->lease) };
    registry->changed = false;
    registry->putting = etcd_put(registry->etcd, &kv, on_record_put,
                                 &(struct etcd_wait){ 0, registry, NULL }) == ERR_OK;
    if (!registry->putting)
        loop_timer_start(&registry->put_timer, PUT_RETRY_MS);
    buf_deinit(&value);
}

static void start_lease(struct registry *registry);

static void on_lease(void *context, struct etcd_lease *lease, enum etcd_lease_state state)
{
    struct registry *registry = context;

    switch (state) {
    case ETCD_LEASE_GRANTING:
        break;
    case ETCD_LEASE_HELD:
        put_record(registry);
        break;
    case ETCD_LEASE_UNCERTAIN:
        set_registered(registry, false);
        break;
    case ETCD_LEASE_LOST:
        set_registered(registry, false);
        etcd_lease_stop(lease, false);
        registry->lease = NULL;
        start_lease(registry);
        break;
    }
}

static void start_lease(struct registry *registry)
{
    struct etcd_lease_options options = { .ttl_ms = registry->options.lease_ttl_ms,
                                          .changed = on_lease,
                                          .context = registry };

    CHECK(etcd_lease_start(registry->etcd, &options, &registry->lease) == ERR_OK);
}

err registry_new(const struct registry_options *options, struct registry **ret_registry)
{
    struct registry *registry = mem_zalloc(sizeof *registry);
    struct etcd_options etcd = {
        .loop = loop_uv(options->loop),
        .endpoints = options->endpoints,
        .endpoint_count = options->endpoint_count,
        .ca_file = options->ca_file,
        .cert_file = options->cert_file,
        .key_file = options->key_file,
        .log = options->log,
        .cluster_id_known = options->etcd_cluster_id_known,
        .revision_known = (int64_t)options->etcd_revision_known,
        .rolled_back = on_rolled_back,
        .context = registry,
    };

    registry->options = *options;
    registry->map = shard_map_new(options->cluster);
    loop_timer_init(&registry->put_timer, options->loop, put_record, registry);
    err e = etcd_new(&etcd, &registry->etcd);
    if (e == ERR_OK)
        e = start_mirrors(registry);
    if (e == ERR_OK)
        registry->restore = restore_watch_new(&(struct restore_watch_options){
            .loop = options->loop,
            .log = options->log,
            .etcd = registry->etcd,
            .cluster = options->cluster,
            .generation = options->generation_known,
            .cluster_id = cluster_id_of,
            .restored = on_restored,
            .accepted = on_accepted,
            .user = registry,
        });
    if (e != ERR_OK) {
        registry_free(registry);
        return e;
    }
    *ret_registry = registry;
    return ERR_OK;
}

static bool nothing_pending(void *user)
{
    const struct registry *registry = user;
    return etcd_calls_pending(registry->etcd) == 0;
}

void registry_withdraw(struct registry *registry)
{
    if (registry == NULL || registry->lease == NULL)
        return;
    loop_timer_stop(&registry->put_timer);
    etcd_lease_stop(registry->lease, true);
    registry->lease = NULL;
    (void)loop_run_until(registry->options.loop, nothing_pending, registry, WITHDRAW_MS_MAX);
}

void registry_free(struct registry *registry)
{
    if (registry == NULL)
        return;
    restore_watch_free(registry->restore);
    loop_timer_stop(&registry->put_timer);
    if (registry->lease != NULL)
        etcd_lease_stop(registry->lease, false);
    for (int i = 0; i < MIRROR_COUNT; i++) {
        if (registry->mirrors[i] != NULL)
            etcd_mirror_stop(registry->mirrors[i]);
    }
    if (registry->etcd != NULL)
        etcd_free(registry->etcd);
    shard_map_free(registry->map);
    free(registry);
}

void registry_announce(struct registry *registry, const struct node_record *record)
{
    CHECK(!registry->announced);
    uint64_t doubts = registry->record.doubts;

    registry->announced = true;
    registry->record = *record;
    registry->record.doubts = doubts;
    start_lease(registry);
}

void registry_update(struct registry *registry, const struct node_record *record)
{
    CHECK(registry->announced && record->replica_id == registry->record.replica_id);
    registry->record = *record;
    put_record(registry);
}

void registry_replay(struct registry *registry)
{
    uint32_t count = shard_map_shard_count(registry->map);

    for (uint32_t shard = 0; shard < count; shard++)
        tell_shard(registry, shard);
}

const struct shard_map *registry_map(const struct registry *registry)
{
    return registry->map;
}

bool registry_is_registered(const struct registry *registry)
{
    return registry->registered;
}

struct etcd *registry_etcd_use(struct registry *registry)
{
    return registry->etcd;
}

const struct etcd *registry_etcd(const struct registry *registry)
{
    return registry->etcd;
}
