#include <stdlib.h>

#include "router/rpc/servers/servers.h"
#include "router/rpc/servers/servers_private.h"
#include "runtime/base/check.h"
#include "runtime/cluster/cluster_key.h"

#define UNREGISTER_ROUNDS_MAX 4u
#define COUNT_MS              1000u

/* What is left of the task's time; at least 1. */
static uint64_t time_left_ms(const struct server_task *task)
{
    uint64_t now_ms = loop_now_ms(task->servers->loop);

    return task->give_up_ms > now_ms ? task->give_up_ms - now_ms : 1;
}

static void end_registration(struct server_task *task, enum servers_register_outcome outcome)
{
    servers_registered *done = task->registered;
    void *user = task->user;
    struct incarnation incarnation = task->incarnation;
    uint32_t ttl_ms = task->record.ttl_ms;

    server_task_free(task);
    done(user, outcome, incarnation, ttl_ms);
}

/* A lease that is not needed any more. If the call is lost, it lapses by itself. */
static void drop_lease(struct servers *servers, int64_t lease_id)
{
    if (etcd_lease_revoke(servers->etcd, lease_id, 0, etcd_lease_ignored, NULL) != ERR_OK)
        log_event(servers->log, LOG_DEBUG, "server.lease_left", LOG_N("lease", lease_id));
}

/* Step 3's ELSE branch read known: is it what we put? */
static bool is_own_registration(const struct etcd_txn_result *result,
                                const struct server_task *task)
{
    struct server_record found;
    const struct etcd_range_result *range;

    if (result->op_count != 1)
        return false;
    range = &result->ops[0].range;
    return range->kv_count == 1 &&
           server_record_decode(range->kvs[0].value, &found, NULL) == ERR_OK &&
           found.lease_id == task->record.lease_id;
}

static void registration_written(void *context, err e, const struct etcd_txn_result *result)
{
    struct server_task *task = context;
    struct servers *servers = task->servers;

    task->call = NULL;
    if (e == ERR_OK && (result->succeeded || is_own_registration(result, task))) {
        servers->stats.registered++;
        servers_remember(servers, task->incarnation, &task->record);
        end_registration(task, SERVERS_REGISTERED);
        return;
    }
    servers->stats.failures++;
    uint64_t more = 0;
    if (log_gate_pass(&servers->unregistered, loop_now_ms(servers->loop), &more))
        log_event(servers->log, LOG_WARN, "server.not_registered",
                  LOG_S("server", task->record.name), LOG_S("key", task->record.key),
                  LOG_S("error", e == ERR_OK ? "the incarnation is taken" : err_name(e)),
                  LOG_N("more", more));
    if (e != ERR_OK && err_retry(e) == RETRY_UNKNOWN_OUTCOME) {
        end_registration(task, SERVERS_REGISTER_UNKNOWN);
        return;
    }
    drop_lease(servers, task->record.lease_id);
    end_registration(task, SERVERS_NOT_REGISTERED);
}

static err write_registration(struct server_task *task)
{
    const char *cluster = task->servers->cluster;
    struct cluster_key live = cluster_key_server_live(cluster, task->incarnation);
    struct cluster_key known = cluster_key_server_known(cluster, task->incarnation);
    struct etcd_txn *txn = etcd_txn_new();
    struct buf value = { 0 };
    err e;

    server_record_encode(&task->record, &value);
    etcd_txn_compare(txn, cluster_key_slice(&known), ETCD_CREATE_REVISION, ETCD_EQUAL, 0);
    etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&live), buf_slice(&value),
                 task->record.lease_id);
    etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&known), buf_slice(&value), 0);
    etcd_txn_get(txn, ETCD_ELSE, cluster_key_slice(&known));
    e = etcd_txn_until_definite(task->servers->etcd, txn, registration_written,
                                &(struct etcd_wait){ time_left_ms(task), task, &task->call });
    etcd_txn_free(txn);
    buf_deinit(&value);
    return e;
}

/* Counts that are a second old will do: the limit leaves room for what comes in between. */
static bool is_crowded(struct servers *servers, const struct etcd_txn_result *result)
{
    if (result->op_count == 2) {
        servers->counted = result->ops[1].range.total;
        servers->counted_ms = loop_now_ms(servers->loop);
    }
    return servers->counted >= servers->servers_max;
}

/* Step 2's answer: its revision is the incarnation's. */
static void sequence_written(void *context, err e, const struct etcd_txn_result *result)
{
    struct server_task *task = context;

    task->call = NULL;
    if (e == ERR_OK && is_crowded(task->servers, result)) {
        drop_lease(task->servers, task->record.lease_id);
        end_registration(task, SERVERS_TOO_MANY);
        return;
    }
    if (e == ERR_OK) {
        task->incarnation =
            (struct incarnation){ task->generation, (uint64_t)result->header.revision };
        e = write_registration(task);
    }
    if (e == ERR_OK)
        return;
    task->servers->stats.failures++;
    drop_lease(task->servers, task->record.lease_id);
    end_registration(task, SERVERS_NOT_REGISTERED);
}

static err write_sequence(struct server_task *task)
{
    const struct servers *servers = task->servers;
    struct cluster_key sequence = cluster_key_server_sequence(servers->cluster);
    struct cluster_key known = cluster_key_servers_known_prefix(servers->cluster);
    struct etcd_txn *txn = etcd_txn_new();

    etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&sequence), slice_from_text(task->record.name),
                 0);
    if (servers->counted_ms == 0 || loop_now_ms(servers->loop) - servers->counted_ms >= COUNT_MS)
        etcd_txn_count(txn, ETCD_THEN, cluster_key_slice(&known));
    err e = etcd_txn(servers->etcd, txn, sequence_written,
                     &(struct etcd_wait){ time_left_ms(task), task, &task->call });
    etcd_txn_free(txn);
    return e;
}

static void lease_granted(void *context, err e, const struct etcd_lease_result *result)
{
    struct server_task *task = context;
    struct servers *servers = task->servers;

    task->call = NULL;
    if (e == ERR_OK && result->ttl_s <= 0)
        e = ERR_UNAVAILABLE;
    if (e == ERR_OK) {
        task->record.lease_id = result->lease_id;
        e = write_sequence(task);
    }
    if (e == ERR_OK)
        return;
    servers->stats.failures++;
    end_registration(task, SERVERS_NOT_REGISTERED);
}

err servers_register(struct servers *servers, const struct servers_newcomer *newcomer,
                     servers_registered *done, void *user)
{
    struct server_task *task = server_task_new(servers, newcomer->timeout_ms);
    err e;

    task->record = *newcomer->record;
    task->record.state = SERVER_LIVE;
    task->generation = newcomer->generation;
    task->registered = done;
    task->user = user;
    e = etcd_lease_grant(servers->etcd, 0, (newcomer->record->ttl_ms + 999) / 1000, lease_granted,
                         &(struct etcd_wait){ time_left_ms(task), task, &task->call });
    if (e != ERR_OK)
        server_task_free(task);
    return e;
}

/* ---- the end of a registration ---- */

static void end_unregistration(struct server_task *task, err e)
{
    servers_unregistered *done = task->unregistered;
    void *user = task->user;

    servers_forget(task->servers, task->incarnation);
    server_task_free(task);
    done(user, e);
}

static err read_known(struct server_task *task);

static void mark_written(void *context, err e, const struct etcd_txn_result *result)
{
    struct server_task *task = context;

    task->call = NULL;
    if (e == ERR_OK && result->succeeded) {
        drop_lease(task->servers, task->record.lease_id);
        end_unregistration(task, ERR_OK);
        return;
    }
    /* Re-attached, or marked, in between: look again. */
    if (e == ERR_OK)
        e = task->rounds < UNREGISTER_ROUNDS_MAX ? read_known(task) : ERR_UNAVAILABLE;
    if (e != ERR_OK)
        end_unregistration(task, e);
}

/* Marks known as EXPIRING and takes live away in one transaction, so that nothing re-attaches. */
static err mark_expiring(struct server_task *task)
{
    const char *cluster = task->servers->cluster;
    struct cluster_key live = cluster_key_server_live(cluster, task->incarnation);
    struct cluster_key known = cluster_key_server_known(cluster, task->incarnation);
    struct etcd_txn *txn = etcd_txn_new();
    struct buf value = { 0 };
    err e;

    task->record.state = SERVER_EXPIRING;
    server_record_encode(&task->record, &value);
    etcd_txn_compare(txn, cluster_key_slice(&known), ETCD_MOD_REVISION, ETCD_EQUAL,
                     task->known_revision);
    etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&known), buf_slice(&value), 0);
    etcd_txn_delete(txn, ETCD_THEN, cluster_key_slice(&live));
    e = etcd_txn(task->servers->etcd, txn, mark_written,
                 &(struct etcd_wait){ time_left_ms(task), task, &task->call });
    etcd_txn_free(txn);
    buf_deinit(&value);
    return e;
}

static void known_read(void *context, err e, const struct etcd_range_result *result)
{
    struct server_task *task = context;

    task->call = NULL;
    if (e == ERR_OK && result->kv_count == 0) {
        end_unregistration(task, ERR_OK);
        return;
    }
    if (e == ERR_OK)
        e = server_record_decode(result->kvs[0].value, &task->record, NULL);
    if (e == ERR_OK && task->record.state == SERVER_EXPIRING) {
        end_unregistration(task, ERR_OK);
        return;
    }
    if (e == ERR_OK) {
        task->known_revision = result->kvs[0].mod_revision;
        e = mark_expiring(task);
    }
    if (e != ERR_OK)
        end_unregistration(task, e);
}

static err read_known(struct server_task *task)
{
    struct cluster_key known = cluster_key_server_known(task->servers->cluster, task->incarnation);

    task->rounds++;
    return etcd_range(task->servers->etcd, &(struct etcd_range){ .key = cluster_key_slice(&known) },
                      known_read, &(struct etcd_wait){ time_left_ms(task), task, &task->call });
}

err servers_unregister(struct servers *servers, struct incarnation incarnation, uint64_t timeout_ms,
                       servers_unregistered *done, void *user)
{
    struct server_task *task = server_task_new(servers, timeout_ms);
    err e;

    task->incarnation = incarnation;
    task->unregistered = done;
    task->user = user;
    e = read_known(task);
    if (e != ERR_OK)
        server_task_free(task);
    return e;
}
