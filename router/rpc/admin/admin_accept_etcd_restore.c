#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "idl/error_code.h"
#include "router/core/restore_plan.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/admin/node_survey.h"
#include "runtime/base/check.h"

#define WRITES_IN_TXN_MAX 40u
#define READ_MS_MAX       10000u

/*
 * Asks every node what it knows, reads all that etcd has after that, makes the plan
 * (router/core/restore_plan.h), and writes it, unless it was only asked what would be done. The
 * cluster's record comes last and alone: until it is written no process goes on, and the call can
 * be repeated.
 */
struct acceptance {
    struct request *request;
    const struct node_survey *survey;
    struct restore_plan plan;
    Holdfast__V1__AcceptEtcdRestoreResponse response;
    Holdfast__V1__ErrorDetail detail;
    uint32_t written; /* Of the plan's writes, so far; `open` more are on their way. */
    uint32_t open;
    struct etcd_call *call; /* In flight; NULL: none. */
};

/* ---- writing ---- */
static bool is_as_wanted(const struct acceptance *acceptance, const struct etcd_txn_result *result)
{
    for (uint32_t i = 0; i < acceptance->open; i++) {
        const struct restore_write *write = &acceptance->plan.writes[acceptance->written + i];

        if (!etcd_txn_shows(result, i, write->value))
            return false;
    }
    return true;
}

/* Its game server is told at the next heartbeat. If the call is lost, the shards tell it. */
static void revoke_leases(struct acceptance *acceptance)
{
    const struct router_options *options = &acceptance->request->router->options;

    for (uint32_t i = 0; i < acceptance->open; i++) {
        const struct restore_write *write = &acceptance->plan.writes[acceptance->written + i];

        if (write->lease_id != 0 && etcd_lease_revoke(options->etcd, write->lease_id, 0,
                                                      etcd_lease_ignored, NULL) != ERR_OK)
            log_event(options->log, LOG_DEBUG, "server.lease_left",
                      LOG_N("lease", write->lease_id));
    }
}

static void write_some(struct acceptance *acceptance);

static void on_written(void *context, err e, const struct etcd_txn_result *result)
{
    struct acceptance *acceptance = context;
    struct request *request = acceptance->request;

    acceptance->call = NULL;
    if (e != ERR_OK) {
        request_fail_text(request, CODE(OUTCOME_UNKNOWN), "etcd did not answer; repeat the call");
        return;
    }
    if (!result->succeeded && !is_as_wanted(acceptance, result)) {
        if (acceptance->written > 0 || etcd_txn_is_unknown(result)) {
            request_fail_text(request, CODE(OUTCOME_UNKNOWN), ETCD_CHANGED_SINCE);
            return;
        }
        request_fail_text(request, CODE(VERSION_CONFLICT),
                          "records were changed at the same time; repeat the call");
        return;
    }
    revoke_leases(acceptance);
    acceptance->written += acceptance->open;
    if (acceptance->written < acceptance->plan.write_count) {
        write_some(acceptance);
        return;
    }
    log_event(request->router->options.log, LOG_WARN, "etcd.restore_accepted_here",
              LOG_N("generation", acceptance->plan.next.generation),
              LOG_N("epoch_floor", acceptance->plan.next.epoch_floor),
              LOG_S("peer", request->peer != NULL ? request->peer : ""));
    request_reply(request, &acceptance->response.base);
}

static void write_some(struct acceptance *acceptance)
{
    const struct router_options *options = &acceptance->request->router->options;
    uint64_t now_ms = loop_now_ms(options->loop);
    uint64_t by_ms = acceptance->request->answer_by_ms;
    uint32_t left = acceptance->plan.write_count - acceptance->written;
    struct etcd_txn *txn = etcd_txn_new();

    if (left > 1)
        left--; /* The last one by itself. */
    acceptance->open = left < WRITES_IN_TXN_MAX ? left : WRITES_IN_TXN_MAX;
    for (uint32_t i = 0; i < acceptance->open; i++) {
        const struct restore_write *write = &acceptance->plan.writes[acceptance->written + i];

        if (write->revision >= 0)
            etcd_txn_compare(txn, write->key, ETCD_MOD_REVISION, ETCD_EQUAL, write->revision);
        etcd_txn_make(txn, write->key, write->value);
    }
    err e = etcd_txn_until_definite(
        options->etcd, txn, on_written,
        &(struct etcd_wait){ by_ms > now_ms ? by_ms - now_ms : 1, acceptance, &acceptance->call });
    etcd_txn_free(txn);
    if (e != ERR_OK)
        request_fail_text(acceptance->request,
                          acceptance->written > 0 ? CODE(OUTCOME_UNKNOWN) : CODE(UNAVAILABLE),
                          "too many calls to etcd; repeat the call");
}

/* ---- telling ---- */
static uint64_t *copy_ids(struct arena *arena, const uint64_t *ids, size_t count)
{
    return (uint64_t *)(void *)(uintptr_t)arena_copy(
               arena, (struct slice){ (const uint8_t *)ids, count * sizeof *ids })
        .data;
}

static Holdfast__V1__RestoredShard *tell_shard(struct arena *arena,
                                               const struct restore_shard *shard, uint32_t number)
{
    Holdfast__V1__RestoredShard *told = arena_alloc(arena, sizeof *told);
    const struct shard_record *next = &shard->next;

    holdfast__v1__restored_shard__init(told);
    told->shard = number;
    told->epoch_known = shard->epoch_known;
    told->config_known = shard->config_known;
    told->members_differ = shard->members_differ;
    told->members = copy_ids(arena, next->members, next->member_count);
    told->n_members = next->member_count;
    told->new_members = copy_ids(arena, next->new_members, next->new_member_count);
    told->n_new_members = next->new_member_count;
    if (shard->mod_revision == 0)
        return told;
    told->epoch_etcd = shard->record.epoch;
    told->config_etcd = shard->record.config;
    told->members_etcd = copy_ids(arena, shard->record.members, shard->record.member_count);
    told->n_members_etcd = shard->record.member_count;
    return told;
}

static void tell(struct acceptance *acceptance)
{
    const struct restore_plan *plan = &acceptance->plan;
    Holdfast__V1__AcceptEtcdRestoreResponse *response = &acceptance->response;
    struct arena *arena = acceptance->request->arena;

    holdfast__v1__accept_etcd_restore_response__init(response);
    response->generation_before = plan->cluster.generation;
    response->generation = plan->next.generation;
    response->epoch_floor = plan->next.epoch_floor;
    response->servers = plan->servers;
    response->nodes_doubting = plan->nodes_doubting;
    response->nodes_silent = copy_ids(arena, plan->silent, plan->silent_count);
    response->n_nodes_silent = plan->silent_count;
    response->shards_behind =
        arena_alloc(arena, (plan->shards_behind + 1) * sizeof *response->shards_behind);
    for (uint32_t i = 0; i < plan->cluster.shard_count; i++) {
        const struct restore_shard *shard = &plan->shards[i];

        response->shards += shard->next.member_count > 0;
        response->shards_unknown += shard->next.member_count == 0;
        if (restore_shard_is_behind(plan, shard))
            response->shards_behind[response->n_shards_behind++] = tell_shard(arena, shard, i);
    }
}

/* ---- asking ---- */
static uint32_t answers_of(const struct acceptance *acceptance, struct restore_answer *answers)
{
    const struct node_survey *survey = acceptance->survey;
    uint32_t count = 0;

    for (uint32_t i = 0; i < survey->count; i++) {
        uint64_t replica_id = survey->answers[i].replica_id;
        const Holdfast__Internal__V1__GetNodeStatusResponse *status =
            node_survey_find(survey, replica_id);

        if (status != NULL)
            answers[count++] = (struct restore_answer){ replica_id, status };
    }
    return count;
}

static void on_read(void *context, err e, const struct etcd_range_result *result)
{
    struct acceptance *acceptance = context;
    struct request *request = acceptance->request;
    const Holdfast__V1__AcceptEtcdRestoreRequest *wanted = (const void *)request->message;

    acceptance->call = NULL;
    if (e != ERR_OK) {
        request_fail_text(request, CODE(UNAVAILABLE), "etcd could not be read; nothing was done");
        return;
    }
    struct restore_key *keys = arena_alloc(request->arena, (result->kv_count + 1) * sizeof *keys);
    struct restore_answer *answers =
        arena_alloc(request->arena, (acceptance->survey->count + 1) * sizeof *answers);

    for (size_t i = 0; i < result->kv_count; i++)
        keys[i] = (struct restore_key){ result->kvs[i].key, result->kvs[i].value,
                                        result->kvs[i].mod_revision };
    const struct restore_input input = {
        .cluster = request->router->options.cluster,
        .keys = keys,
        .key_count = result->kv_count,
        .answers = answers,
        .answer_count = answers_of(acceptance, answers),
        .force = wanted->force,
        .arena = request->arena,
    };

    if (restore_plan_make(&input, &acceptance->plan, &acceptance->detail) != ERR_OK) {
        request_fail(request, &acceptance->detail);
        return;
    }
    tell(acceptance);
    acceptance->response.nodes = input.answer_count;
    if (wanted->dry_run)
        request_reply(request, &acceptance->response.base);
    else
        write_some(acceptance);
}

static void cancel(struct request *request)
{
    struct acceptance *acceptance = request->state;

    if (acceptance->call != NULL)
        etcd_call_cancel(acceptance->call);
    request_fail_text(request, CODE(OUTCOME_UNKNOWN), "the caller has gone");
}

/* What nodes know they heard from etcd, or from each other, before it is read now. */
static void surveyed(struct node_survey *survey)
{
    struct acceptance *acceptance = survey->user;
    const struct router_options *options = &survey->request->router->options;
    struct cluster_key prefix = cluster_key_prefix(options->cluster);

    acceptance->survey = survey;
    survey->request->state = acceptance;
    survey->request->cancel = cancel;
    if (etcd_range(options->etcd,
                   &(struct etcd_range){ .key = cluster_key_slice(&prefix), .prefix = true },
                   on_read,
                   &(struct etcd_wait){ request_time_left(survey->request, READ_MS_MAX), acceptance,
                                        &acceptance->call }) != ERR_OK)
        request_fail_text(survey->request, CODE(UNAVAILABLE), "too many calls to etcd");
}

static struct slice known_body(struct node_survey *survey, uint64_t replica_id)
{
    Holdfast__Internal__V1__GetNodeStatusRequest message;
    uint8_t *body = arena_alloc(survey->request->arena, 16);

    (void)replica_id;
    holdfast__internal__v1__get_node_status_request__init(&message);
    message.known = true;
    CHECK(holdfast__internal__v1__get_node_status_request__get_packed_size(&message) <= 16);
    return (struct slice){ body,
                           holdfast__internal__v1__get_node_status_request__pack(&message, body) };
}

void admin_accept_etcd_restore_handle(struct request *request)
{
    static const struct node_question question = {
        .method = METHOD_GET_NODE_STATUS,
        .response = &holdfast__internal__v1__get_node_status_response__descriptor,
        .body = known_body,
    };
    struct acceptance *acceptance = arena_zalloc(request->arena, sizeof *acceptance);

    acceptance->request = request;
    node_survey_ask(request, &question, surveyed, acceptance);
}
