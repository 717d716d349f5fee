#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/admin.pb-c.h"
#include "idl/error_code.h"
#include "idl/policy_limit.h"
#include "router/core/policy_rules.h"
#include "router/core/refusal.h"
#include "router/rpc/definitions/definition_call.h"
#include "router/rpc/request/handlers.h"
#include "runtime/base/check.h"
#include "runtime/cluster/cluster_key.h"
#include "runtime/cluster/cluster_record.h"

/*
 * Writes the policy to etcd, if its version is the stored one plus one, it leaves out no currency
 * but those that the caller names, and shards have room for the currencies that it adds to those of
 * definitions, and then asks every shard to log it. The coordinator does the latter too, whatever
 * becomes of this call. Repeating the same call is harmless: the same policy at the same version
 * only waits for the shards. The generation is read and compared with the policy, so that shards
 * are never told one with the generation of another etcd.
 */
struct policy_change {
    struct request *request;
    Holdfast__V1__Policy *policy; /* As it will be stored: defaults filled in. */
    struct policy_drops drops;
    struct slice packed;
    int64_t revision;         /* Of the policy that stands; 0: none. */
    int64_t cluster_revision; /* Of the cluster's record, ... */
    uint64_t generation;      /* ... and what it says. */
    struct etcd_call *call;   /* In flight; NULL: none. */
    struct policy_part *parts;
    uint32_t part_count;
    uint32_t open;
    uint32_t failed;
    const char *refused; /* What a shard said that will not take it as it is; NULL: none did. */
};

struct policy_part {
    struct caller_call call;
    struct policy_change *change;
    bool open;
};

static void answer(struct policy_change *change)
{
    Holdfast__V1__SetPolicyResponse response;
    Holdfast__V1__ErrorDetail detail;

    if (change->failed == 0) {
        holdfast__v1__set_policy_response__init(&response);
        response.policy = change->policy;
        request_reply(change->request, &response.base);
        return;
    }
    if (change->refused != NULL)
        refusal_make(change->request->arena, &detail, CODE(OUTCOME_UNKNOWN),
                     "the policy is stored, but %u of %u shards do not take it: %s; mend that, or "
                     "set the next version",
                     change->failed, change->part_count, change->refused);
    else
        refusal_make(change->request->arena, &detail, CODE(OUTCOME_UNKNOWN),
                     "the policy is stored, but %u of %u shards have not confirmed it yet; repeat "
                     "the call to wait for them",
                     change->failed, change->part_count);
    request_fail(change->request, &detail);
}

/* A shard that does not say what is in force has taken it. */
static bool is_in_force(const struct policy_change *change, struct slice body)
{
    Holdfast__Internal__V1__ApplyPolicyResponse *response =
        holdfast__internal__v1__apply_policy_response__unpack(NULL, body.size, body.data);
    bool stands = response != NULL &&
                  (response->generation == 0 || (response->generation == change->generation &&
                                                 response->version >= change->policy->version));

    holdfast__internal__v1__apply_policy_response__free_unpacked(response, NULL);
    return stands;
}

static void part_done(struct caller_call *call, const struct caller_result *result)
{
    struct policy_change *change = CONTAINER_OF(call, struct policy_part, call)->change;

    CONTAINER_OF(call, struct policy_part, call)->open = false;
    change->request->attempts += call->retry.sent;
    if (result->detail != NULL || !is_in_force(change, result->body))
        change->failed++;
    if (result->detail != NULL && result->detail->code == CODE(CAPACITY_FULL))
        change->refused = arena_printf(change->request->arena, "%s", result->detail->message);
    if (--change->open == 0)
        answer(change);
}

static void start_part(struct policy_change *change, uint32_t shard)
{
    struct request *request = change->request;
    struct policy_part *part = &change->parts[shard];
    Holdfast__Internal__V1__ApplyPolicyRequest message;
    uint8_t *data;
    size_t size;

    holdfast__internal__v1__apply_policy_request__init(&message);
    message.shard = shard;
    message.policy = change->policy;
    message.generation = change->generation;
    size = holdfast__internal__v1__apply_policy_request__get_packed_size(&message);
    data = arena_alloc(request->arena, size + 1);
    holdfast__internal__v1__apply_policy_request__pack(&message, data);
    part->change = change;
    part->open = true;
    part->call = (struct caller_call){
        .method = METHOD_APPLY_POLICY,
        .priority = (uint8_t)request->priority,
        .shard = shard,
        .deadline_ms = request->answer_by_ms,
        .trace = request->trace.trace_id,
        .body = { data, size },
        .done = part_done,
    };
    change->open++;
    caller_start(request->router->options.caller, &part->call);
}

static void ask_shards(struct policy_change *change)
{
    struct request *request = change->request;

    change->part_count = shard_map_shard_count(request->router->options.map);
    change->parts = arena_zalloc(request->arena, (change->part_count + 1) * sizeof *change->parts);
    if (change->part_count == 0) {
        answer(change);
        return;
    }
    for (uint32_t shard = 0; shard < change->part_count; shard++)
        start_part(change, shard);
}

/* A transaction's operations 0 and 1 read the policy and the cluster's record. */
static void read_both(const struct policy_change *change, struct etcd_txn *txn,
                      enum etcd_branch branch)
{
    const char *cluster = change->request->router->options.cluster;
    struct cluster_key policy_key = cluster_key_policy(cluster);
    struct cluster_key cluster_key = cluster_key_cluster(cluster);

    etcd_txn_get(txn, branch, cluster_key_slice(&policy_key));
    etcd_txn_get(txn, branch, cluster_key_slice(&cluster_key));
}

/* Of an operation that read one key; NULL: it is absent. */
static const struct etcd_kv *key_read(const struct etcd_txn_result *result, size_t op)
{
    if (op >= result->op_count || result->ops[op].range.kv_count != 1)
        return NULL;
    return &result->ops[op].range.kvs[0];
}

static err note_cluster(struct policy_change *change, const struct etcd_txn_result *result)
{
    const struct etcd_kv *kv = key_read(result, 1);
    struct cluster_record record;
    struct record_error why;

    if (kv == NULL)
        return ERR_NOT_FOUND;
    err e = cluster_record_decode(kv->value, &record, &why);
    if (e != ERR_OK)
        return e;
    change->cluster_revision = kv->mod_revision;
    change->generation = record.generation;
    return ERR_OK;
}

/* Another call was faster: what it wrote, if etcd showed it, says which version stands. */
static void fail_conflict(struct policy_change *change, const struct etcd_txn_result *result)
{
    struct arena *arena = change->request->arena;
    const struct etcd_kv *stored = key_read(result, 0);
    Holdfast__V1__Policy *current = NULL;
    Holdfast__V1__ErrorDetail detail;

    refusal_make(arena, &detail, CODE(VERSION_CONFLICT),
                 "another policy was set at the same time, or etcd was restored");
    if (stored != NULL)
        current = holdfast__v1__policy__unpack(NULL, stored->value.size, stored->value.data);
    if (current != NULL)
        refusal_tell_version(arena, &detail, current->version);
    holdfast__v1__policy__free_unpacked(current, NULL);
    request_fail(change->request, &detail);
}

static void policy_written(void *context, err e, const struct etcd_txn_result *result)
{
    struct policy_change *change = context;

    change->call = NULL;
    if (e != ERR_OK) {
        bool unknown = err_retry(e) == RETRY_UNKNOWN_OUTCOME;
        request_fail_text(change->request, unknown ? CODE(OUTCOME_UNKNOWN) : CODE(UNAVAILABLE),
                          unknown ? "etcd did not answer; repeat the call"
                                  : "etcd could not be reached; nothing was done");
        return;
    }
    bool own = !result->succeeded && etcd_txn_shows(result, 0, change->packed) &&
               note_cluster(change, result) == ERR_OK;
    if (result->succeeded || own)
        ask_shards(change);
    else if (etcd_txn_is_unknown(result))
        request_fail_text(change->request, CODE(OUTCOME_UNKNOWN), ETCD_CHANGED_SINCE);
    else
        fail_conflict(change, result);
}

static err write_policy(struct policy_change *change)
{
    struct request *request = change->request;
    const struct router_options *options = &request->router->options;
    struct cluster_key key = cluster_key_policy(options->cluster);
    struct cluster_key cluster = cluster_key_cluster(options->cluster);
    uint64_t now_ms = loop_now_ms(options->loop);
    struct etcd_txn *txn = etcd_txn_new();
    err e;

    etcd_txn_compare(txn, cluster_key_slice(&key), ETCD_MOD_REVISION, ETCD_EQUAL, change->revision);
    etcd_txn_compare(txn, cluster_key_slice(&cluster), ETCD_MOD_REVISION, ETCD_EQUAL,
                     change->cluster_revision);
    etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&key), change->packed, 0);
    read_both(change, txn, ETCD_ELSE);
    e = etcd_txn_until_definite(
        options->etcd, txn, policy_written,
        &(struct etcd_wait){ request->answer_by_ms > now_ms ? request->answer_by_ms - now_ms : 1,
                             change, &change->call });
    etcd_txn_free(txn);
    return e;
}

static bool adds_currencies(const Holdfast__V1__Policy *policy, const Holdfast__V1__Policy *current)
{
    for (size_t i = 0; i < policy->n_currencies; i++) {
        if (!policy_declares(current, policy->currencies[i]->name))
            return true;
    }
    return false;
}

static void unread(struct policy_change *change)
{
    request_fail_text(change->request, CODE(UNAVAILABLE),
                      "etcd could not be read; nothing was done");
}

/* A shard that has no room refuses the stored policy for ever, so it is not stored. */
static void currencies_told(struct request *request, const ProtobufCMessage *answer)
{
    const Holdfast__Internal__V1__FindDefinitionsResponse *found =
        (const Holdfast__Internal__V1__FindDefinitionsResponse *)(const void *)answer;
    struct policy_change *change = request->state;
    size_t count = change->policy->n_currencies;
    Holdfast__V1__ErrorDetail detail;

    for (size_t i = 0; i < found->n_definitions; i++) {
        const Holdfast__Internal__V1__DefinitionVersion *version = found->definitions[i]->version;
        count += version != NULL && !policy_declares(change->policy, version->name);
    }
    if (count > POLICY_CURRENCIES_MAX) {
        refusal_make(request->arena, &detail, CODE(CAPACITY_FULL),
                     "the policy and the definitions together would declare %zu currencies", count);
        detail.field = text_lend("policy.currencies");
        detail.limit = arena_printf(request->arena, "%u", POLICY_CURRENCIES_MAX);
        detail.value = arena_printf(request->arena, "%zu", count);
        request_fail(request, &detail);
    } else if (write_policy(change) != ERR_OK) {
        unread(change);
    }
}

static void count_currencies(struct policy_change *change)
{
    Holdfast__Internal__V1__FindDefinitionsRequest find;

    holdfast__internal__v1__find_definitions_request__init(&find);
    find.kind = text_lend("currency");
    find.limit = DEFINITION_PAGE_MAX;
    definition_find_ask(change->request, &find, currencies_told);
}

/* `current` NULL: there is none. */
static err check_against(struct policy_change *change, const Holdfast__V1__Policy *current,
                         Holdfast__V1__ErrorDetail *ret_detail)
{
    struct arena *arena = change->request->arena;
    err e = policy_check_successor(change->policy, current, arena, ret_detail);

    if (e != ERR_OK)
        return e;
    return policy_check_drops(change->policy, current, &change->drops, arena, ret_detail);
}

static void policy_read(void *context, err e, const struct etcd_txn_result *result)
{
    struct policy_change *change = context;
    struct request *request = change->request;
    Holdfast__V1__Policy *current = NULL;
    Holdfast__V1__ErrorDetail detail;
    bool same = false, adds = false;

    change->call = NULL;
    if (e == ERR_OK)
        e = note_cluster(change, result);
    const struct etcd_kv *kv = e == ERR_OK ? key_read(result, 0) : NULL;
    if (kv != NULL) {
        change->revision = kv->mod_revision;
        same = slice_equal(kv->value, change->packed);
        current = holdfast__v1__policy__unpack(NULL, kv->value.size, kv->value.data);
        if (current == NULL)
            e = ERR_CORRUPT;
    }
    if (e == ERR_OK && same) {
        holdfast__v1__policy__free_unpacked(current, NULL);
        ask_shards(change);
        return;
    }
    if (e == ERR_OK && check_against(change, current, &detail) != ERR_OK) {
        holdfast__v1__policy__free_unpacked(current, NULL);
        request_fail(request, &detail);
        return;
    }
    adds = e == ERR_OK && adds_currencies(change->policy, current);
    holdfast__v1__policy__free_unpacked(current, NULL);
    if (adds)
        count_currencies(change);
    else if (e != ERR_OK || write_policy(change) != ERR_OK)
        unread(change);
}

static void policy_cancel(struct request *request)
{
    struct policy_change *change = request->state;

    if (change->call != NULL)
        etcd_call_cancel(change->call);
    for (uint32_t i = 0; i < change->part_count; i++) {
        if (change->parts[i].open)
            caller_cancel(&change->parts[i].call);
    }
    request_fail_text(request, CODE(OUTCOME_UNKNOWN), "the caller has gone");
}

void admin_set_policy_handle(struct request *request)
{
    const Holdfast__V1__SetPolicyRequest *message =
        (const Holdfast__V1__SetPolicyRequest *)(const void *)request->message;
    struct policy_change *change = arena_zalloc(request->arena, sizeof *change);
    Holdfast__V1__ErrorDetail detail;
    uint8_t *data;
    size_t size;

    change->request = request;
    change->drops = (struct policy_drops){ message->drop_currencies, message->n_drop_currencies };
    if (policy_complete(message->policy, request->arena, &change->policy, &detail) != ERR_OK) {
        request_fail(request, &detail);
        return;
    }
    size = holdfast__v1__policy__get_packed_size(change->policy);
    data = arena_alloc(request->arena, size + 1);
    holdfast__v1__policy__pack(change->policy, data);
    change->packed = (struct slice){ data, size };
    request->state = change;
    request->cancel = policy_cancel;
    struct etcd_txn *txn = etcd_txn_new();

    read_both(change, txn, ETCD_THEN);
    err e = etcd_txn(request->router->options.etcd, txn, policy_read,
                     &(struct etcd_wait){ request_time_left(request, ROUTER_STATUS_MS_MAX), change,
                                          &change->call });
    etcd_txn_free(txn);
    if (e != ERR_OK)
        request_fail_text(request, CODE(UNAVAILABLE), "too many calls to etcd");
}
