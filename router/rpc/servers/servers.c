#include "router/rpc/servers/servers.h"

#include <stdlib.h>

#include "router/rpc/servers/servers_private.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/cluster/cluster_key.h"

#define RENEW_ROUNDS_MAX 4u
#define SWEEP_PERIOD_MS  10000u

static struct server_entry **bucket_of(struct servers *servers, struct incarnation incarnation)
{
    uint64_t mixed = (incarnation.revision ^ incarnation.generation << 48) * 0x9e3779b97f4a7c15u;

    return &servers->buckets[mixed >> 52];
}

struct server_entry *servers_find(struct servers *servers, struct incarnation incarnation)
{
    struct server_entry *entry = *bucket_of(servers, incarnation);

    while (entry != NULL && incarnation_compare(entry->incarnation, incarnation) != 0)
        entry = entry->next;
    return entry;
}

/* NULL: too many are remembered. */
static struct server_entry *get_entry(struct servers *servers, struct incarnation incarnation)
{
    struct server_entry *entry = servers_find(servers, incarnation);
    struct server_entry **bucket = bucket_of(servers, incarnation);

    if (entry != NULL || servers->stats.remembered >= SERVERS_KNOWN_MAX)
        return entry;
    entry = mem_zalloc(sizeof *entry);
    entry->servers = servers;
    entry->incarnation = incarnation;
    entry->asked_ms = loop_now_ms(servers->loop);
    entry->waits.next = &entry->waits;
    entry->waits.previous = &entry->waits;
    entry->next = *bucket;
    *bucket = entry;
    servers->stats.remembered++;
    return entry;
}

uint64_t servers_owner_of(const char *key)
{
    return key != NULL && key[0] != 0 ? hash_u64(slice_from_text(key)) | 1 : 0;
}

bool servers_has_room(const struct servers *servers, const char *key)
{
    uint64_t owner = servers_owner_of(key);

    return owner == 0 || caller_share_held(servers->keys, owner) < SERVERS_KEY_MAX;
}

static void disown(struct server_entry *entry)
{
    if (entry->owner != 0)
        caller_share_give(entry->servers->keys, entry->owner, 1);
    entry->owner = 0;
}

static void remove_entry(struct server_entry *entry)
{
    struct servers *servers = entry->servers;
    struct server_entry **at = bucket_of(servers, entry->incarnation);

    CHECK(!entry->busy && entry->waits.next == &entry->waits);
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    servers->stats.remembered--;
    disown(entry);
    free(entry);
}

void servers_remember(struct servers *servers, struct incarnation incarnation,
                      const struct server_record *record)
{
    struct server_entry *entry = get_entry(servers, incarnation);

    if (entry == NULL)
        return;
    if (!entry->busy) /* A renewal in flight has read it. */
        entry->record = *record;
    entry->lease_id = record->lease_id;
    entry->renewed_ms = 0;
    disown(entry);
    entry->owner = servers_owner_of(record->key);
    if (entry->owner != 0) /* servers_has_room was asked: by then others were on their way. */
        (void)caller_share_take(servers->keys, entry->owner, 1, SERVERS_KNOWN_MAX);
}

void servers_learn(struct servers *servers, struct incarnation incarnation,
                   const struct server_record *record)
{
    struct server_entry *entry = get_entry(servers, incarnation);

    if (entry != NULL && !entry->busy)
        entry->record = *record;
}

void servers_forget(struct servers *servers, struct incarnation incarnation)
{
    struct server_entry *entry = servers_find(servers, incarnation);

    if (entry == NULL)
        return;
    entry->lease_id = 0;
    entry->renewed_ms = 0;
    if (!entry->busy)
        remove_entry(entry);
}

static void sweep(void *user)
{
    struct servers *servers = user;
    uint64_t now_ms = loop_now_ms(servers->loop);

    for (size_t i = 0; i < SERVERS_BUCKETS; i++) {
        struct server_entry *entry = servers->buckets[i];

        while (entry != NULL) {
            struct server_entry *next = entry->next;
            if (!entry->busy && now_ms - entry->asked_ms >= SERVERS_FORGET_MS)
                remove_entry(entry);
            entry = next;
        }
    }
}

struct servers *servers_new(const struct servers_options *options)
{
    struct servers *servers = mem_zalloc(sizeof *servers);

    servers->loop = options->loop;
    servers->etcd = options->etcd;
    servers->cluster = options->cluster;
    servers->servers_max =
        options->servers_max > 0 ? options->servers_max : CLUSTER_SERVERS_REGISTERED_MAX;
    servers->log = options->log;
    servers->keys = caller_shares_new();
    servers->claims = caller_shares_new();
    servers->tasks.next = &servers->tasks;
    servers->tasks.previous = &servers->tasks;
    loop_timer_init(&servers->sweep, servers->loop, sweep, servers);
    loop_timer_start_repeating(&servers->sweep, SWEEP_PERIOD_MS);
    return servers;
}

static void entry_abandon(struct server_entry *entry)
{
    while (entry->waits.next != &entry->waits)
        servers_wait_cancel(entry->waits.next);
    if (entry->call != NULL)
        etcd_call_cancel(entry->call);
    disown(entry);
    free(entry);
}

static void abandon_task(struct server_task *task)
{
    if (task->call != NULL)
        etcd_call_cancel(task->call);
    server_task_free(task);
}

void servers_cancel(struct servers *servers, const void *user)
{
    struct server_task *task = servers->tasks.next;

    while (task != &servers->tasks && task->user != user)
        task = task->next;
    if (task != &servers->tasks)
        abandon_task(task);
}

void servers_free(struct servers *servers)
{
    if (servers == NULL)
        return;
    loop_timer_stop(&servers->sweep);
    for (size_t i = 0; i < SERVERS_BUCKETS; i++) {
        struct server_entry *entry = servers->buckets[i];

        while (entry != NULL) {
            struct server_entry *next = entry->next;
            entry_abandon(entry);
            entry = next;
        }
    }
    while (servers->tasks.next != &servers->tasks)
        abandon_task(servers->tasks.next);
    caller_shares_free(servers->keys);
    caller_shares_free(servers->claims);
    free(servers);
}

/* ---- renewal ---- */

void servers_wait_cancel(struct servers_wait *wait)
{
    if (wait->previous == NULL)
        return;
    wait->previous->next = wait->next;
    wait->next->previous = wait->previous;
    wait->previous = NULL;
}

static void end_renewal(struct server_entry *entry, enum servers_state state)
{
    struct servers *servers = entry->servers;
    struct servers_wait *wait;

    CHECK(state != SERVERS_PENDING);
    entry->busy = false;
    entry->call = NULL;
    servers->failing = state == SERVERS_UNSURE;
    if (state == SERVERS_UNSURE)
        servers->stats.failures++;
    if (state == SERVERS_ALIVE)
        entry->renewed_ms = entry->sent_ms;
    if (state == SERVERS_GONE)
        entry->lease_id = 0;
    while ((wait = entry->waits.next) != &entry->waits) {
        servers_wait_cancel(wait);
        wait->done(wait->user, state);
    }
    if (state == SERVERS_GONE && !entry->busy)
        remove_entry(entry);
}

static err keep_alive(struct server_entry *entry);
static err read_registration(struct server_entry *entry);

static void kept_alive(void *context, err e, const struct etcd_lease_result *result)
{
    struct server_entry *entry = context;

    entry->call = NULL;
    if (e == ERR_OK && result->ttl_s > 0) {
        end_renewal(entry, SERVERS_ALIVE);
        return;
    }
    if (e == ERR_OK || e == ERR_NOT_FOUND) {
        entry->lease_id = 0;
        e = read_registration(entry);
    }
    if (e != ERR_OK)
        end_renewal(entry, SERVERS_UNSURE);
}

static err keep_alive(struct server_entry *entry)
{
    struct servers *servers = entry->servers;

    if (entry->rounds++ >= RENEW_ROUNDS_MAX)
        return ERR_UNAVAILABLE;
    servers->stats.keep_alives++;
    entry->sent_ms = loop_now_ms(servers->loop);
    return etcd_lease_keep_alive(
        servers->etcd, entry->lease_id, kept_alive,
        &(struct etcd_wait){ SERVERS_ETCD_TIMEOUT_MS, entry, &entry->call });
}

static void reattached(void *context, err e, const struct etcd_txn_result *result)
{
    struct server_entry *entry = context;
    char text[INCARNATION_TEXT_SIZE];
    struct server_record found;
    bool own = false;

    entry->call = NULL;
    if (e == ERR_OK) {
        own = result->succeeded;
        if (!own && result->op_count == 1 && result->ops[0].range.kv_count == 1)
            own = server_record_decode(result->ops[0].range.kvs[0].value, &found, NULL) == ERR_OK &&
                  found.lease_id == entry->record.lease_id;
    }
    if (own) {
        incarnation_print(entry->incarnation, text);
        log_event(entry->servers->log, LOG_INFO, "server.reattached",
                  LOG_S("server", entry->record.name), LOG_S("incarnation", text));
        entry->lease_id = entry->record.lease_id;
        entry->servers->stats.reattached++;
        end_renewal(entry, SERVERS_ALIVE);
        return;
    }
    /* Somebody else was first: marked it, or re-attached it. */
    if (e == ERR_OK)
        e = read_registration(entry);
    if (e != ERR_OK)
        end_renewal(entry, SERVERS_UNSURE);
}

static err write_reattachment(struct server_entry *entry)
{
    struct servers *servers = entry->servers;
    struct cluster_key live = cluster_key_server_live(servers->cluster, entry->incarnation);
    struct cluster_key known = cluster_key_server_known(servers->cluster, entry->incarnation);
    struct etcd_txn *txn = etcd_txn_new();
    struct buf value = { 0 };
    err e;

    server_record_encode(&entry->record, &value);
    etcd_txn_compare(txn, cluster_key_slice(&known), ETCD_MOD_REVISION, ETCD_EQUAL,
                     entry->known_revision);
    etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&live), buf_slice(&value),
                 entry->record.lease_id);
    etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&known), buf_slice(&value), 0);
    etcd_txn_get(txn, ETCD_ELSE, cluster_key_slice(&known));
    e = etcd_txn_until_definite(
        servers->etcd, txn, reattached,
        &(struct etcd_wait){ SERVERS_ETCD_TIMEOUT_MS, entry, &entry->call });
    etcd_txn_free(txn);
    buf_deinit(&value);
    return e;
}

static void new_lease_granted(void *context, err e, const struct etcd_lease_result *result)
{
    struct server_entry *entry = context;

    entry->call = NULL;
    if (e == ERR_OK) {
        entry->record.lease_id = result->lease_id;
        e = write_reattachment(entry);
    }
    if (e != ERR_OK)
        end_renewal(entry, SERVERS_UNSURE);
}

/* known is there and LIVE; `live` NULL: its lease has lapsed. */
static err take_registration(struct server_entry *entry, const struct etcd_kv *known,
                             const struct etcd_kv *live)
{
    if (live != NULL && live->lease != 0) {
        entry->lease_id = live->lease;
        return keep_alive(entry);
    }
    entry->known_revision = known->mod_revision;
    entry->record.held_since_ms = 0; /* It is back. */
    entry->sent_ms = loop_now_ms(entry->servers->loop);
    return etcd_lease_grant(entry->servers->etcd, 0, (entry->record.ttl_ms + 999) / 1000,
                            new_lease_granted,
                            &(struct etcd_wait){ SERVERS_ETCD_TIMEOUT_MS, entry, &entry->call });
}

static void registration_read(void *context, err e, const struct etcd_txn_result *result)
{
    struct server_entry *entry = context;
    const struct etcd_range_result *known;
    const struct etcd_range_result *live;

    entry->call = NULL;
    if (e == ERR_OK && result->op_count != 2)
        e = ERR_CORRUPT;
    /* An older etcd knows nothing of a newer registration: that is no proof of its end. */
    if (etcd_rolled_back(entry->servers->etcd))
        e = ERR_UNAVAILABLE;
    if (e != ERR_OK) {
        end_renewal(entry, SERVERS_UNSURE);
        return;
    }
    known = &result->ops[0].range;
    live = &result->ops[1].range;
    if (known->kv_count == 0) {
        end_renewal(entry, SERVERS_GONE);
        return;
    }
    e = server_record_decode(known->kvs[0].value, &entry->record, NULL);
    if (e == ERR_OK && entry->record.state == SERVER_EXPIRING) {
        end_renewal(entry, SERVERS_GONE);
        return;
    }
    if (e == ERR_OK)
        e = take_registration(entry, &known->kvs[0], live->kv_count > 0 ? &live->kvs[0] : NULL);
    if (e != ERR_OK)
        end_renewal(entry, SERVERS_UNSURE);
}

static err read_registration(struct server_entry *entry)
{
    struct servers *servers = entry->servers;
    struct cluster_key live = cluster_key_server_live(servers->cluster, entry->incarnation);
    struct cluster_key known = cluster_key_server_known(servers->cluster, entry->incarnation);
    struct etcd_txn *txn;
    err e;

    if (entry->rounds++ >= RENEW_ROUNDS_MAX)
        return ERR_UNAVAILABLE;
    txn = etcd_txn_new();
    etcd_txn_get(txn, ETCD_THEN, cluster_key_slice(&known));
    etcd_txn_get(txn, ETCD_THEN, cluster_key_slice(&live));
    e = etcd_txn(servers->etcd, txn, registration_read,
                 &(struct etcd_wait){ SERVERS_ETCD_TIMEOUT_MS, entry, &entry->call });
    etcd_txn_free(txn);
    return e;
}

enum servers_state servers_renew(struct servers *servers, struct incarnation incarnation,
                                 struct servers_wait *wait)
{
    struct server_entry *entry = get_entry(servers, incarnation);
    uint64_t now_ms = loop_now_ms(servers->loop);
    bool was_failing = servers->failing;

    wait->previous = NULL;
    if (entry == NULL)
        return SERVERS_UNSURE;
    entry->asked_ms = now_ms;
    if (entry->renewed_ms != 0 && now_ms - entry->renewed_ms < SERVERS_KEEP_ALIVE_MS)
        return SERVERS_ALIVE;
    if (!entry->busy) {
        err e;

        entry->rounds = 0;
        entry->busy = true;
        e = entry->lease_id != 0 ? keep_alive(entry) : read_registration(entry);
        if (e != ERR_OK) {
            end_renewal(entry, SERVERS_UNSURE);
            return SERVERS_UNSURE;
        }
    }
    if (was_failing)
        return SERVERS_UNSURE;
    wait->next = &entry->waits;
    wait->previous = entry->waits.previous;
    wait->previous->next = wait;
    entry->waits.previous = wait;
    return SERVERS_PENDING;
}

const char *servers_name(struct servers *servers, struct incarnation incarnation)
{
    const struct server_entry *entry = servers_find(servers, incarnation);

    return entry != NULL ? entry->record.name : "";
}

struct servers_stats servers_stats(const struct servers *servers)
{
    return servers->stats;
}
