#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "idl/error_code.h"
#include "router/core/member_plan.h"
#include "router/core/refusal.h"
#include "router/rpc/admin/admin_members.h"
#include "runtime/base/check.h"
#include "runtime/cluster/cluster_key.h"

#define WRITES_IN_TXN_MAX 50u

static void fail_etcd(struct change *change, err e)
{
    bool unknown = e == ERR_OK || err_retry(e) == RETRY_UNKNOWN_OUTCOME;

    if (unknown || change->written > 0)
        request_fail_text(change->request, CODE(OUTCOME_UNKNOWN),
                          "etcd did not answer; repeat the call");
    else
        request_fail_text(change->request, CODE(UNAVAILABLE),
                          "etcd could not be reached; nothing was done");
}

static void write_some(struct change *change);

/* An attempt without an answer was ours if all is as it wanted. */
static bool is_as_wanted(const struct change *change, const struct etcd_txn_result *result)
{
    for (uint32_t i = 0; i < change->open; i++) {
        const struct wish_write *write = &change->writes[change->written + i];

        if (!etcd_txn_shows(result, i, write->value))
            return false;
    }
    return true;
}

static void on_written(void *context, err e, const struct etcd_txn_result *result)
{
    struct change *change = context;

    change->call = NULL;
    if (e != ERR_OK) {
        fail_etcd(change, e);
        return;
    }
    if (!result->succeeded && !is_as_wanted(change, result)) {
        if (change->written > 0 || etcd_txn_is_unknown(result)) {
            request_fail_text(change->request, CODE(OUTCOME_UNKNOWN), ETCD_CHANGED_SINCE);
            return;
        }
        request_fail_text(change->request, CODE(VERSION_CONFLICT),
                          "something else was asked of it at the same time; repeat the call");
        return;
    }
    change->written += change->open;
    if (change->written < change->write_count)
        write_some(change);
    else
        request_reply(change->request, change->response);
}

static void write_some(struct change *change)
{
    const struct router_options *options = &change->request->router->options;
    uint64_t now_ms = loop_now_ms(options->loop);
    uint64_t by_ms = change->request->answer_by_ms;
    struct etcd_txn *txn = etcd_txn_new();

    change->open = change->write_count - change->written;
    if (change->open > WRITES_IN_TXN_MAX)
        change->open = WRITES_IN_TXN_MAX;
    for (uint32_t i = 0; i < change->open; i++) {
        const struct wish_write *write = &change->writes[change->written + i];

        etcd_txn_compare(txn, write->key, ETCD_MOD_REVISION, ETCD_EQUAL, write->revision);
        etcd_txn_make(txn, write->key, write->value);
    }
    err e = etcd_txn_until_definite(
        options->etcd, txn, on_written,
        &(struct etcd_wait){ by_ms > now_ms ? by_ms - now_ms : 1, change, &change->call });
    etcd_txn_free(txn);
    if (e != ERR_OK)
        request_fail_text(change->request, CODE(UNAVAILABLE), "too many calls to etcd");
}

static void on_read(void *context, err e, const struct etcd_range_result *result)
{
    struct change *change = context;
    const struct router_options *options = &change->request->router->options;
    struct member_plan plan = { .map = options->map,
                                .wishes = change->wishes,
                                .arena = change->request->arena,
                                .ret_detail = &change->detail };

    change->call = NULL;
    if (e != ERR_OK) {
        request_fail_text(change->request, CODE(UNAVAILABLE),
                          "etcd could not be read; nothing was done");
        return;
    }
    for (size_t i = 0; i < result->kv_count; i++)
        member_wishes_take(change->wishes, options->cluster, result->kvs[i].key,
                           result->kvs[i].value, result->kvs[i].mod_revision);
    if (change->plan(change, &plan) != ERR_OK)
        request_fail(change->request, &change->detail);
    else if (change->write_count > 0)
        write_some(change);
    else
        request_reply(change->request, change->response);
}

static void cancel(struct request *request)
{
    struct change *change = request->state;

    if (change->call != NULL)
        etcd_call_cancel(change->call);
    request_fail_text(request, CODE(OUTCOME_UNKNOWN), "the caller has gone");
}

void change_start(struct request *request,
                  err (*plan)(struct change *change, const struct member_plan *plan))
{
    const struct router_options *options = &request->router->options;
    struct change *change = arena_zalloc(request->arena, sizeof *change);
    struct cluster_key prefix = cluster_key_wishes_prefix(options->cluster);

    change->request = request;
    change->plan = plan;
    change->wishes = arena_zalloc(request->arena, sizeof *change->wishes);
    request->state = change;
    request->cancel = cancel;
    if (etcd_range(options->etcd,
                   &(struct etcd_range){ .key = cluster_key_slice(&prefix), .prefix = true },
                   on_read,
                   &(struct etcd_wait){ request_time_left(request, ROUTER_STATUS_MS_MAX), change,
                                        &change->call }) != ERR_OK)
        request_fail_text(request, CODE(UNAVAILABLE), "too many calls to etcd");
}

struct slice change_keep(struct change *change, struct cluster_key key)
{
    return arena_copy(change->request->arena, cluster_key_slice(&key));
}

struct slice change_keep_value(struct change *change, struct buf *value)
{
    struct slice kept = arena_copy(change->request->arena, buf_slice(value));

    buf_deinit(value);
    return kept;
}

void change_add_move(struct change *change, const struct member_move *move, bool write)
{
    struct buf value = { 0 };

    if (!write)
        return;
    shard_wish_encode(&move->wish, &value);
    change->writes[change->write_count++] = (struct wish_write){
        .key = change_keep(
            change, cluster_key_shard_wish(change->request->router->options.cluster, move->shard)),
        .value = change_keep_value(change, &value),
    };
}

Holdfast__V1__ShardMove *change_tell_move(struct change *change, const struct member_move *move)
{
    struct arena *arena = change->request->arena;
    const struct shard_entry *entry =
        shard_map_find(change->request->router->options.map, move->shard);
    Holdfast__V1__ShardMove *told = arena_alloc(arena, sizeof *told);
    size_t size = CLUSTER_MEMBERS_MAX * sizeof(uint64_t);

    CHECK(entry != NULL); /* It was planned with. */
    holdfast__v1__shard_move__init(told);
    told->shard = move->shard;
    told->members = arena_alloc(arena, size);
    told->members_now = arena_alloc(arena, size);
    memcpy(told->members, move->wish.members, size);
    memcpy(told->members_now, entry->record.members, size);
    told->n_members = move->wish.member_count;
    told->n_members_now = entry->record.member_count;
    return told;
}
