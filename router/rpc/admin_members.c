#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "router/core/member_plan.h"
#include "router/core/refusal.h"
#include "router/rpc/handlers.h"
#include "runtime/base/check.h"
#include "runtime/cluster/cluster_key.h"

#define CODE(name)        HOLDFAST__V1__ERROR_CODE__ERROR_CODE_##name
#define WRITES_IN_TXN_MAX 50u

/*
 * What operators ask of nodes and shards: reads the wishes that stand, holds the request against
 * them and the map (router/core/member_plan.h), and writes wishes that nobody has changed since.
 * The coordinator carries them out, whatever becomes of this call.
 */
struct wish_write {
    struct slice key;
    struct slice value; /* Empty: the wish is taken back. */
    int64_t revision;   /* That it has now; 0: there is none. */
};

struct change {
    struct request *request;
    /* Fills writes and response, or detail. */
    err (*plan)(struct change *change, const struct member_plan *plan);
    struct member_wishes *wishes;
    struct wish_write *writes;
    uint32_t write_count;
    uint32_t written; /* Of them, so far; `open` more are on their way. */
    uint32_t open;
    ProtobufCMessage *response;
    Holdfast__V1__ErrorDetail detail;
    struct etcd_call *call; /* In flight; NULL: none. */
};

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

/* An attempt that nobody heard of was ours if all is as it wanted. */
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
    err e = etcd_txn_until_definite(options->etcd, txn, by_ms > now_ms ? by_ms - now_ms : 1,
                                    on_written, change, &change->call);
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

static void change_start(struct request *request,
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
                   ROUTER_STATUS_MS_MAX, on_read, change, &change->call) != ERR_OK)
        request_fail_text(request, CODE(UNAVAILABLE), "too many calls to etcd");
}

static struct slice keep(struct change *change, struct cluster_key key)
{
    return arena_copy(change->request->arena, cluster_key_slice(&key));
}

static struct slice keep_value(struct change *change, struct buf *value)
{
    struct slice kept = arena_copy(change->request->arena, buf_slice(value));

    buf_deinit(value);
    return kept;
}

/* ---- moves ---- */
static void add_move(struct change *change, const struct member_move *move, bool write)
{
    struct buf value = { 0 };

    if (!write)
        return;
    shard_wish_encode(&move->wish, &value);
    change->writes[change->write_count++] = (struct wish_write){
        .key = keep(change,
                    cluster_key_shard_wish(change->request->router->options.cluster, move->shard)),
        .value = keep_value(change, &value),
    };
}

static Holdfast__V1__ShardMove *tell_move(struct change *change, const struct member_move *move)
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

static err plan_move(struct change *change, const struct member_plan *plan)
{
    const Holdfast__V1__MoveShardRequest *message = (const void *)change->request->message;
    Holdfast__V1__MoveShardResponse *response = arena_alloc(plan->arena, sizeof *response);
    struct member_move move = { .shard = message->shard };
    uint64_t from, to;

    err e = member_plan_node(plan, "from", message->from, &from);
    if (e == ERR_OK)
        e = member_plan_node(plan, "to", message->to, &to);
    if (e == ERR_OK)
        e = member_plan_move(plan, message->shard, from, to, &move.wish);
    if (e != ERR_OK)
        return e;
    holdfast__v1__move_shard_response__init(response);
    response->move = tell_move(change, &move);
    change->response = &response->base;
    change->writes = arena_zalloc(plan->arena, sizeof *change->writes);
    add_move(change, &move, true);
    return ERR_OK;
}

void admin_move_shard_handle(struct request *request)
{
    change_start(request, plan_move);
}

static err plan_rebalance(struct change *change, const struct member_plan *plan)
{
    const Holdfast__V1__RebalanceRequest *message = (const void *)change->request->message;
    Holdfast__V1__RebalanceResponse *response = arena_alloc(plan->arena, sizeof *response);
    struct member_move *moves;
    uint32_t count;

    err e = member_plan_rebalance(plan, &moves, &count);
    if (e != ERR_OK)
        return e;
    holdfast__v1__rebalance_response__init(response);
    response->moves = arena_alloc(plan->arena, (count + 1) * sizeof(void *));
    change->writes = arena_zalloc(plan->arena, (count + 1) * sizeof *change->writes);
    for (uint32_t i = 0; i < count; i++) {
        response->moves[response->n_moves++] = tell_move(change, &moves[i]);
        add_move(change, &moves[i], !message->dry_run);
    }
    change->response = &response->base;
    return ERR_OK;
}

void admin_rebalance_handle(struct request *request)
{
    change_start(request, plan_rebalance);
}

/* ---- nodes ---- */
static err plan_wish(const struct member_plan *plan, const char *want, uint64_t replica_id,
                     struct buf *value)
{
    struct node_wish wish = { NODE_DRAIN };
    err e;

    if (strcmp(want, "undrain") == 0)
        return member_plan_undrain(plan, replica_id);
    if (strcmp(want, "drain") == 0) {
        e = member_plan_drain(plan, replica_id);
    } else if (strcmp(want, "remove") == 0) {
        wish.kind = NODE_REMOVE;
        e = member_plan_remove(plan, replica_id);
    } else {
        refusal_make_field(
            plan->arena, plan->ret_detail,
            &(struct refusal_field){ "want", "drain, undrain or remove", slice_from_text(want) },
            "not something that a node can be asked for");
        return ERR_INVALID;
    }
    if (e == ERR_OK)
        node_wish_encode(&wish, value);
    return e;
}

static err plan_node(struct change *change, const struct member_plan *plan)
{
    const Holdfast__V1__ChangeNodeRequest *message = (const void *)change->request->message;
    Holdfast__V1__ChangeNodeResponse *response = arena_alloc(plan->arena, sizeof *response);
    struct buf value = { 0 };
    uint64_t id;

    err e = member_plan_node(plan, "node", message->node, &id);
    if (e == ERR_OK)
        e = plan_wish(plan, message->want, id, &value);
    if (e != ERR_OK)
        return e;
    const struct member_wish *now = member_wishes_find(plan->wishes, id);

    change->writes = arena_zalloc(plan->arena, sizeof *change->writes);
    change->writes[change->write_count++] = (struct wish_write){
        .key = keep(change, cluster_key_node_wish(change->request->router->options.cluster, id)),
        .value = keep_value(change, &value),
        .revision = now != NULL ? now->mod_revision : 0,
    };
    holdfast__v1__change_node_response__init(response);
    response->replica_id = id;
    member_plan_count(plan, id, &response->shards_owned, &response->shards_held);
    change->response = &response->base;
    return ERR_OK;
}

void admin_change_node_handle(struct request *request)
{
    change_start(request, plan_node);
}
