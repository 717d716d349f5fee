/* The dispatcher with nodes of the test's making, and an etcd that is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/operation.pb-c.h"
#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/admin.pb-c.h"
#include "holdfast/v1/inventory.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/operation_service.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "holdfast/v1/user.pb-c.h"
#include "idl/error_code.h"
#include "idl/method_errors.h"
#include "router/rpc/fake/fake_router.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

#define SHARDS FAKE_SHARDS

/* As its owner has it. */
static void whole_token(const struct fixture *f, const char *player, const char *plain,
                        char ret_text[SESSION_TOKEN_TEXT_SIZE])
{
    struct session_token token;

    CHECK(session_token_parse(slice_from_text(plain), &token) == ERR_OK);
    session_token_print(&f->secrets, slice_from_text(player), &token, ret_text);
}

static void dispatch(struct fixture *f, uint32_t method, const ProtobufCMessage *message)
{
    fake_router_call(f, method, message, 5000, NULL);
}

static bool is_answered(void *user)
{
    return ((struct fixture *)user)->answers > 0;
}

static void make_grant(Holdfast__V1__GrantRequest *grant, char *player)
{
    static char op_id[] = "admin:1";

    holdfast__v1__grant_request__init(grant);
    grant->player_id = player;
    grant->op_id = op_id;
}

static void a_grant_reaches_the_owner_and_its_answer_comes_back_unread(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest grant, *arrived;
    char player[] = "42";

    make_grant(&grant, player);
    dispatch(f, METHOD_GRANT, &grant.base);
    assert_int_equal(f->fake->call_count, 1);
    assert_int_equal(f->fake->calls[0].method, METHOD_GRANT);
    assert_int_equal(f->fake->calls[0].priority, ADMISSION_ORDINARY);
    arrived = holdfast__v1__grant_request__unpack(NULL, f->fake->calls[0].body.size,
                                                  f->fake->calls[0].body.data);
    assert_string_equal(arrived->player_id, "42");
    holdfast__v1__grant_request__free_unpacked(arrived, NULL);
    assert_int_equal(router_in_flight(&f->router), 1);
    fake_cluster_answer(f->fake, 0, WIRE_OK, SLICE_LITERAL("opaque"));
    assert_int_equal(f->answers, 1);
    assert_memory_equal(f->response.data, "opaque", 6);
    assert_int_equal(router_in_flight(&f->router), 0);
}

static void a_player_reads_what_is_its_own_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetBalancesRequest read = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT, *arrived;
    Holdfast__V1__GrantRequest grant;
    char player[] = "ada", other[] = "eve";

    read.player_id = other;
    fake_router_call(f, METHOD_GET_BALANCES, &read.base, 5000, "ada");
    assert_int_equal(f->code, CODE(PERMISSION_DENIED));
    assert_string_equal(f->field, "player_id");
    make_grant(&grant, player);
    fake_router_call(f, METHOD_GRANT, &grant.base, 5000, "ada");
    assert_int_equal(f->code, CODE(PERMISSION_DENIED));
    assert_string_equal(f->field, "authorization");
    assert_int_equal(f->fake->call_count, 0);
    holdfast__v1__get_balances_request__init(&read);
    fake_router_call(f, METHOD_GET_BALANCES, &read.base, 5000, "ada");
    assert_int_equal(f->fake->call_count, 1);
    arrived = holdfast__v1__get_balances_request__unpack(NULL, f->fake->calls[0].body.size,
                                                         f->fake->calls[0].body.data);
    assert_string_equal(arrived->player_id, "ada");
    holdfast__v1__get_balances_request__free_unpacked(arrived, NULL);
    fake_cluster_answer(f->fake, 0, WIRE_OK, SLICE_LITERAL(""));
}

static void a_bad_envelope_never_leaves_the_router(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest grant;
    char empty[] = "";

    make_grant(&grant, empty);
    dispatch(f, METHOD_GRANT, &grant.base);
    assert_int_equal(f->code, CODE(INVALID_ARGUMENT));
    assert_string_equal(f->field, "player_id");
    assert_int_equal(f->fake->call_count, 0);
}

static void answer_steps(struct fixture *f, uint32_t place, const char *const (*steps)[3],
                         uint32_t first, uint32_t count)
{
    Holdfast__Internal__V1__ItemHistoryResponse answer =
        HOLDFAST__INTERNAL__V1__ITEM_HISTORY_RESPONSE__INIT;
    Holdfast__V1__TraceStep list[4], *pointers[4];
    uint8_t bytes[512];

    for (uint32_t i = 0; i < count; i++) {
        holdfast__v1__trace_step__init(&list[i]);
        list[i].step = first + i;
        list[i].player_id = text_lend(steps[i][0]);
        list[i].to_player_id = text_lend(steps[i][1]);
        list[i].op_id = text_lend(steps[i][2]);
        pointers[i] = &list[i];
    }
    answer.steps = pointers;
    answer.n_steps = count;
    size_t size = holdfast__internal__v1__item_history_response__pack(&answer, bytes);
    fake_cluster_answer(f->fake, place, WIRE_OK, (struct slice){ bytes, size });
}

static void check_history_call(struct fixture *f, uint32_t place, uint32_t shard, uint32_t after)
{
    const struct fake_call *call = &f->fake->calls[place];
    Holdfast__Internal__V1__ItemHistoryRequest *ask =
        holdfast__internal__v1__item_history_request__unpack(NULL, call->body.size,
                                                             call->body.data);

    assert_int_equal(f->fake->call_count, place + 1);
    assert_int_equal(call->method, METHOD_ITEM_HISTORY);
    assert_non_null(ask);
    assert_int_equal(ask->shard, shard);
    assert_int_equal(ask->after_step, after);
    holdfast__internal__v1__item_history_request__free_unpacked(ask, NULL);
}

static void name_on_shard(uint32_t shard, char ret_name[16])
{
    char entity[32];

    for (int i = 0; i < 1000; i++) {
        (void)snprintf(ret_name, 16, "p%d", i);
        (void)snprintf(entity, sizeof entity, "player:%s", ret_name);
        if (shard_of_entity(slice_from_text(entity), SHARDS) == shard)
            return;
    }
    CHECK(false);
}

static void a_trace_follows_the_item_from_shard_to_shard(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__TraceItemRequest trace = HOLDFAST__V1__TRACE_ITEM_REQUEST__INIT;
    char ann[16], bob[16];

    name_on_shard(1, ann);
    name_on_shard(3, bob);
    const char *const minted[][3] = { { ann, "", "claim:mint" }, { ann, bob, "claim:send" } };
    const char *const taken[][3] = { { bob, "", "claim:take" }, { bob, ann, "claim:back" } };
    trace.item_uid = (char *)"00010000000000010000000000070000";
    trace.page_size = 10;
    dispatch(f, METHOD_TRACE_ITEM, &trace.base);
    check_history_call(f, 0, 1, 0);
    answer_steps(f, 0, minted, 1, 2);
    check_history_call(f, 1, 3, 2);
    answer_steps(f, 1, taken, 3, 2);
    check_history_call(f, 2, 1, 4);
    assert_int_equal(f->answers, 0);
    answer_steps(f, 2, NULL, 0, 0); /* It waits in the mailbox. */
    assert_int_equal(f->answers, 1);
    Holdfast__V1__TraceItemResponse *told =
        holdfast__v1__trace_item_response__unpack(NULL, f->response.size, f->response.data);
    assert_int_equal(told->n_steps, 4);
    assert_string_equal(told->steps[3]->op_id, "claim:back");
    assert_string_equal(told->next_cursor, "");
    holdfast__v1__trace_item_response__free_unpacked(told, NULL);
    assert_int_equal(router_in_flight(&f->router), 0);
}

static void a_full_page_of_a_trace_goes_on_where_it_ended(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__TraceItemRequest trace = HOLDFAST__V1__TRACE_ITEM_REQUEST__INIT;
    char ann[16], bob[16];

    name_on_shard(1, ann);
    name_on_shard(3, bob);
    const char *const minted[][3] = { { ann, "", "claim:mint" }, { ann, bob, "claim:send" } };
    trace.item_uid = (char *)"00010000000000010000000000070000";
    trace.page_size = 2;
    const char *const taken[][3] = { { bob, "", "claim:take" } };
    dispatch(f, METHOD_TRACE_ITEM, &trace.base);
    answer_steps(f, 0, minted, 1, 2);
    assert_int_equal(f->answers, 0); /* Is there another step? */
    check_history_call(f, 1, 1, 2);
    answer_steps(f, 1, NULL, 0, 0);
    check_history_call(f, 2, 3, 2);
    answer_steps(f, 2, taken, 3, 1);
    assert_int_equal(f->answers, 1);
    Holdfast__V1__TraceItemResponse *told =
        holdfast__v1__trace_item_response__unpack(NULL, f->response.size, f->response.data);
    assert_int_equal(told->n_steps, 2);
    trace.cursor = told->next_cursor;
    dispatch(f, METHOD_TRACE_ITEM, &trace.base);
    holdfast__v1__trace_item_response__free_unpacked(told, NULL);
    check_history_call(f, 3, 3, 2);
    answer_steps(f, 3, taken, 3, 1);
    assert_int_equal(f->answers, 2);
    assert_int_equal(f->code, CODE(UNSPECIFIED));
}

static void the_last_page_of_a_trace_has_no_cursor_though_it_is_full(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__TraceItemRequest trace = HOLDFAST__V1__TRACE_ITEM_REQUEST__INIT;
    char ann[16];

    name_on_shard(1, ann);
    const char *const minted[][3] = { { ann, "", "claim:mint" } };
    trace.item_uid = (char *)"00010000000000010000000000070000";
    trace.page_size = 1;
    dispatch(f, METHOD_TRACE_ITEM, &trace.base);
    answer_steps(f, 0, minted, 1, 1);
    check_history_call(f, 1, 1, 1);
    answer_steps(f, 1, NULL, 0, 0);
    Holdfast__V1__TraceItemResponse *told =
        holdfast__v1__trace_item_response__unpack(NULL, f->response.size, f->response.data);
    assert_int_equal(told->n_steps, 1);
    assert_string_equal(told->next_cursor, "");
    holdfast__v1__trace_item_response__free_unpacked(told, NULL);
}

static void a_trace_of_nothing_is_refused(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__TraceItemRequest trace = HOLDFAST__V1__TRACE_ITEM_REQUEST__INIT;

    trace.item_uid = (char *)"00010000000000010000000000070000";
    dispatch(f, METHOD_TRACE_ITEM, &trace.base);
    answer_steps(f, 0, NULL, 0, 0);
    assert_int_equal(f->code, CODE(NOT_FOUND));
    trace.item_uid = (char *)"ffff0000000000010000000000070000"; /* No such shard. */
    dispatch(f, METHOD_TRACE_ITEM, &trace.base);
    assert_int_equal(f->code, CODE(NOT_FOUND));
    trace.item_uid = (char *)"sword";
    dispatch(f, METHOD_TRACE_ITEM, &trace.base);
    assert_int_equal(f->code, CODE(INVALID_ARGUMENT));
    assert_string_equal(f->field, "item_uid");
    trace.item_uid = (char *)"00010000000000010000000000070000";
    trace.page_size = 201;
    dispatch(f, METHOD_TRACE_ITEM, &trace.base);
    assert_string_equal(f->field, "page_size");
    assert_int_equal(f->fake->call_count, 1);
}

static void a_trace_whose_caller_goes_away_is_cancelled(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__TraceItemRequest trace = HOLDFAST__V1__TRACE_ITEM_REQUEST__INIT;

    trace.item_uid = (char *)"00010000000000010000000000070000";
    dispatch(f, METHOD_TRACE_ITEM, &trace.base);
    router_cancel(&f->router, &f->request);
    assert_true(f->fake->calls[0].cancelled);
    assert_int_equal(router_in_flight(&f->router), 0);
}

static void internal_methods_are_not_offered(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__ExpireServerRequest expire;

    holdfast__internal__v1__expire_server_request__init(&expire);
    dispatch(f, METHOD_EXPIRE_SERVER, &expire.base);
    assert_int_equal(f->code, CODE(UNIMPLEMENTED));
    assert_int_equal(f->fake->call_count, 0);
}

static void a_caller_that_goes_away_cancels_its_call(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest grant;
    char player[] = "42";

    make_grant(&grant, player);
    dispatch(f, METHOD_GRANT, &grant.base);
    router_cancel(&f->router, &f->request);
    assert_true(f->fake->calls[0].cancelled);
    assert_int_equal(f->code, CODE(OUTCOME_UNKNOWN));
    assert_int_equal(router_in_flight(&f->router), 0);
}

/* What is unknown is a write alone, also one that nodes know by another name. */
static void a_read_that_is_given_up_has_no_outcome(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetBalancesRequest balances = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;
    Holdfast__V1__ReleaseNameRequest release = HOLDFAST__V1__RELEASE_NAME_REQUEST__INIT;
    Holdfast__V1__FindByNameRequest find = HOLDFAST__V1__FIND_BY_NAME_REQUEST__INIT;

    balances.player_id = text_lend("42");
    release.player_id = text_lend("42");
    release.op_id = text_lend("claim:1");
    release.authority = text_lend("unheld");
    release.number = 1;
    release.name = find.name = text_lend("Ada");
    release.tag = find.tag = text_lend("1");
    dispatch(f, METHOD_GET_BALANCES, &balances.base);
    router_cancel(&f->router, &f->request);
    assert_int_equal(f->code, CODE(CANCELED));
    dispatch(f, METHOD_FIND_BY_NAME, &find.base);
    router_cancel(&f->router, &f->request);
    assert_int_equal(f->code, CODE(CANCELED));
    dispatch(f, METHOD_RELEASE_NAME, &release.base);
    router_cancel(&f->router, &f->request);
    assert_int_equal(f->code, CODE(OUTCOME_UNKNOWN));
    assert_int_equal(f->fake->call_count, 3);
    assert_int_equal(router_in_flight(&f->router), 0);
}

static void an_error_names_the_entity_and_the_operation_of_its_request(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__Refusal refused = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;
    Holdfast__V1__GrantRequest grant;
    char player[] = "42", control[] = "4\n2";
    uint8_t refusal[32];

    make_grant(&grant, player);
    dispatch(f, METHOD_GRANT, &grant.base);
    refused.code = CODE(SESSION_LOST);
    refused.final = true;
    size_t size = holdfast__internal__v1__refusal__pack(&refused, refusal);
    fake_cluster_answer(f->fake, 0, WIRE_REFUSED, (struct slice){ refusal, size });
    assert_int_equal(f->code, CODE(SESSION_LOST));
    assert_string_equal(f->entity, "player:42");
    assert_string_equal(f->op_id, "admin:1");
    make_grant(&grant, control); /* What is malformed is not repeated. */
    dispatch(f, METHOD_GRANT, &grant.base);
    assert_int_equal(f->code, CODE(INVALID_ARGUMENT));
    assert_string_equal(f->entity, "");
    assert_string_equal(f->op_id, "admin:1");
}

static void a_stored_outcome_is_readable(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__OperationAnswer answer = HOLDFAST__INTERNAL__V1__OPERATION_ANSWER__INIT;
    Holdfast__Internal__V1__OperationRecord record = HOLDFAST__INTERNAL__V1__OPERATION_RECORD__INIT;
    Holdfast__V1__GetOperationRequest request = HOLDFAST__V1__GET_OPERATION_REQUEST__INIT;
    char entity[] = "player:42", op_id[] = "admin:1", method[] = "holdfast.v1.LedgerService/Grant";
    uint8_t grant[] = { 0x10, 3 }, bytes[64]; /* ledger_seq: 3 */

    request.entity = entity;
    request.op_id = op_id;
    dispatch(f, METHOD_GET_OPERATION, &request.base);
    record.state = HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_COMMITTED;
    record.method = method;
    record.result = (ProtobufCBinaryData){ sizeof grant, grant };
    answer.operation = &record;
    size_t size = holdfast__internal__v1__operation_answer__pack(&answer, bytes);
    assert_true(size <= sizeof bytes);
    fake_cluster_answer(f->fake, 0, WIRE_OK, (struct slice){ bytes, size });
    Holdfast__V1__GetOperationResponse *told =
        holdfast__v1__get_operation_response__unpack(NULL, f->response.size, f->response.data);
    assert_int_equal(told->operation->result_case, HOLDFAST__V1__OPERATION_STATUS__RESULT_GRANT);
    assert_int_equal(told->operation->grant->ledger_seq, 3);
    holdfast__v1__get_operation_response__free_unpacked(told, NULL);

    dispatch(f, METHOD_GET_OPERATION, &request.base);
    fake_cluster_answer(f->fake, 1, WIRE_OK, SLICE_LITERAL("opaque"));
    assert_int_equal(f->code, CODE(INTERNAL));
    request.base.descriptor = &holdfast__v1__resolve_operation_request__descriptor;
    dispatch(f, METHOD_RESOLVE_OPERATION, &request.base);
    fake_cluster_answer(f->fake, 2, WIRE_OK, SLICE_LITERAL("opaque"));
    assert_int_equal(f->code, CODE(OUTCOME_UNKNOWN));
}

static void beyond_the_limit_calls_are_throttled_and_nothing_is_sent(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest grant;
    Holdfast__V1__GrantRequest *eight[8];
    Holdfast__V1__BatchGrantRequest batch;
    char player[] = "42";
    struct request second;

    make_grant(&grant, player);
    dispatch(f, METHOD_GRANT, &grant.base);
    holdfast__v1__batch_grant_request__init(&batch);
    for (int i = 0; i < 8; i++)
        eight[i] = &grant;
    batch.requests = eight;
    batch.n_requests = 8;
    second = f->request;
    second.method = method_find(METHOD_BATCH_GRANT);
    second.message = &batch.base;
    router_dispatch(&f->router, &second); /* 1 + 8 is above 60 % of 10. */
    assert_int_equal(f->code, CODE(THROTTLED));
    assert_int_equal(f->fake->call_count, 1);
    fake_cluster_answer(f->fake, 0, WIRE_OK, (struct slice){ 0 });
    assert_int_equal(f->answers, 2);
}

static void a_draining_router_takes_nothing_new(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest grant;
    char player[] = "42";

    make_grant(&grant, player);
    f->router.draining = true;
    dispatch(f, METHOD_GRANT, &grant.base);
    assert_int_equal(f->code, CODE(UNAVAILABLE));
    assert_int_equal(f->fake->call_count, 0);
    /* What fails names its trace; what is refused does not. */
    assert_int_equal(strlen(f->trace), 32);
    f->router.draining = false;
    player[0] = 0;
    dispatch(f, METHOD_GRANT, &grant.base);
    assert_int_equal(f->code, CODE(INVALID_ARGUMENT));
    assert_string_equal(f->trace, "");
}

/* etcd's outage must not kill sessions: the tokens are still answered. */
static void a_heartbeat_is_answered_from_the_shards_when_etcd_is_down(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__RenewSessionsRequest renew;
    Holdfast__V1__RenewSessionsResponse *answer;
    Holdfast__V1__SessionRef session, *list[] = { &session };
    Holdfast__Internal__V1__RenewTokensRequest *asked;
    Holdfast__Internal__V1__RenewTokensResponse told;
    char incarnation[] = "1-9", player[] = "42", token[SESSION_TOKEN_TEXT_SIZE];
    uint32_t lost[] = { 0 };
    uint8_t packed[16];
    size_t size;

    holdfast__v1__renew_sessions_request__init(&renew);
    holdfast__v1__session_ref__init(&session);
    session.player_id = player;
    whole_token(f, player, "1-9-7", token);
    session.token = token;
    renew.incarnation = incarnation;
    renew.sessions = list;
    renew.n_sessions = 1;
    dispatch(f, METHOD_RENEW_SESSIONS, &renew.base);
    assert_int_equal(f->fake->call_count, 1);
    assert_int_equal(f->fake->calls[0].method, METHOD_RENEW_TOKENS);
    asked = holdfast__internal__v1__renew_tokens_request__unpack(NULL, f->fake->calls[0].body.size,
                                                                 f->fake->calls[0].body.data);
    assert_int_equal(asked->shard, shard_of_entity(SLICE_LITERAL("player:42"), SHARDS));
    assert_int_equal(asked->tokens[0]->fence, 7);
    holdfast__internal__v1__renew_tokens_request__free_unpacked(asked, NULL);

    holdfast__internal__v1__renew_tokens_response__init(&told);
    told.lost = lost;
    told.n_lost = 1;
    size = holdfast__internal__v1__renew_tokens_response__pack(&told, packed);
    fake_cluster_answer(f->fake, 0, WIRE_OK, (struct slice){ packed, size });
    assert_true(loop_run_until(f->loop, is_answered, f, 10000));
    assert_int_equal(f->code, CODE(UNSPECIFIED));
    answer =
        holdfast__v1__renew_sessions_response__unpack(NULL, f->response.size, f->response.data);
    assert_int_equal(answer->n_lost, 1);
    assert_string_equal(answer->lost[0]->player_id, "42");
    holdfast__v1__renew_sessions_response__free_unpacked(answer, NULL);
}

static void a_shard_that_does_not_answer_leaves_its_tokens_unknown(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__RenewSessionsRequest renew;
    Holdfast__V1__RenewSessionsResponse *answer;
    Holdfast__V1__SessionRef session, *list[] = { &session };
    char incarnation[] = "1-9", player[] = "42", token[SESSION_TOKEN_TEXT_SIZE];

    f->fake->down[1] = true;
    holdfast__v1__renew_sessions_request__init(&renew);
    holdfast__v1__session_ref__init(&session);
    session.player_id = player;
    whole_token(f, player, "1-9-7", token);
    session.token = token;
    renew.incarnation = incarnation;
    renew.sessions = list;
    renew.n_sessions = 1;
    dispatch(f, METHOD_RENEW_SESSIONS, &renew.base);
    assert_true(loop_run_until(f->loop, is_answered, f, 10000));
    answer =
        holdfast__v1__renew_sessions_response__unpack(NULL, f->response.size, f->response.data);
    assert_int_equal(answer->n_lost, 0);
    assert_int_equal(answer->n_unknown, 1);
    holdfast__v1__renew_sessions_response__free_unpacked(answer, NULL);
}

static void the_cluster_is_told_from_the_map_and_the_nodes_without_etcd(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetClusterRequest get;
    Holdfast__V1__GetClusterResponse *answer;
    Holdfast__Internal__V1__GetNodeStatusResponse status;
    Holdfast__V1__ShardStatus shard, *shards[] = { &shard };
    uint8_t packed[64];
    size_t size;

    holdfast__v1__get_cluster_request__init(&get);
    dispatch(f, METHOD_GET_CLUSTER, &get.base);
    assert_int_equal(f->fake->call_count, 3);
    holdfast__internal__v1__get_node_status_response__init(&status);
    holdfast__v1__shard_status__init(&shard);
    shard.shard = 2;
    shard.serving = true;
    status.shards = shards;
    status.n_shards = 1;
    size = holdfast__internal__v1__get_node_status_response__pack(&status, packed);
    fake_cluster_answer(f->fake, 0, WIRE_OK, (struct slice){ packed, size });
    fake_cluster_fail(f->fake, 1, ERR_TIMEOUT);
    fake_cluster_answer(f->fake, 2, WIRE_OK, (struct slice){ 0 });
    assert_true(loop_run_until(f->loop, is_answered, f, 10000));
    answer = holdfast__v1__get_cluster_response__unpack(NULL, f->response.size, f->response.data);
    assert_int_equal(answer->shard_count, SHARDS);
    assert_int_equal(answer->n_nodes, 3);
    assert_true(answer->nodes[0]->live);
    assert_int_equal(answer->nodes[0]->shards_owned, SHARDS);
    assert_int_equal(answer->nodes[1]->shards_held, SHARDS);
    assert_int_equal(answer->shards_serving, 1);
    holdfast__v1__get_cluster_response__free_unpacked(answer, NULL);
}

static void fill_load(void *context, struct arena *arena, Holdfast__V1__RouterLoad *load)
{
    (void)context;
    (void)arena;
    load->answered = 7;
}

static void the_load_of_nodes_that_answer_is_told_and_the_others_are_named(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetLoadRequest get;
    Holdfast__V1__GetLoadResponse *answer;
    Holdfast__Internal__V1__GetNodeLoadResponse said;
    Holdfast__V1__NodeLoad node;
    uint8_t packed[64];

    holdfast__v1__get_load_request__init(&get);
    f->router.options.load.fill = fill_load;
    dispatch(f, METHOD_GET_LOAD, &get.base);
    assert_int_equal(f->fake->call_count, 3);
    assert_int_equal(f->fake->calls[0].method, METHOD_GET_NODE_LOAD);
    holdfast__internal__v1__get_node_load_response__init(&said);
    holdfast__v1__node_load__init(&node);
    node.replica_id = 1;
    node.sessions = 4;
    said.load = &node;
    size_t size = holdfast__internal__v1__get_node_load_response__pack(&said, packed);
    fake_cluster_answer(f->fake, 0, WIRE_OK, (struct slice){ packed, size });
    fake_cluster_fail(f->fake, 1, ERR_TIMEOUT);
    fake_cluster_answer(f->fake, 2, WIRE_REFUSED, (struct slice){ 0 }); /* An older node. */
    assert_true(loop_run_until(f->loop, is_answered, f, 10000));
    answer = holdfast__v1__get_load_response__unpack(NULL, f->response.size, f->response.data);
    assert_int_equal(answer->router->answered, 7);
    assert_int_equal(answer->n_nodes, 1);
    assert_int_equal(answer->nodes[0]->sessions, 4);
    assert_int_equal(answer->n_unreachable, 2);
    assert_int_equal(answer->unreachable[0], 2);
    holdfast__v1__get_load_response__free_unpacked(answer, NULL);
}

static void shards_are_listed_in_pages(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ListShardsRequest list;
    Holdfast__V1__ListShardsResponse *answer;
    char nonsense[] = "3";

    holdfast__v1__list_shards_request__init(&list);
    list.page_size = 3;
    f->fake->down[1] = f->fake->down[2] = f->fake->down[3] = true;
    dispatch(f, METHOD_LIST_SHARDS, &list.base);
    answer = holdfast__v1__list_shards_response__unpack(NULL, f->response.size, f->response.data);
    assert_int_equal(answer->n_shards, 3);
    assert_int_equal(answer->shards[2]->owner, 1);
    assert_string_equal(answer->shards[2]->phase, "stable");
    assert_string_equal(answer->shards[2]->replicas[0]->state, "unreachable");

    list.cursor = answer->next_cursor;
    dispatch(f, METHOD_LIST_SHARDS, &list.base);
    holdfast__v1__list_shards_response__free_unpacked(answer, NULL);
    answer = holdfast__v1__list_shards_response__unpack(NULL, f->response.size, f->response.data);
    assert_int_equal(answer->n_shards, 1);
    assert_string_equal(answer->next_cursor, "");
    holdfast__v1__list_shards_response__free_unpacked(answer, NULL);

    list.cursor = nonsense;
    dispatch(f, METHOD_LIST_SHARDS, &list.base);
    assert_int_equal(f->code, CODE(INVALID_ARGUMENT));
}

/* While the third is silent, what the others have said is kept. */
static void what_nodes_say_of_themselves_counts_until_it_is_told(void **state)
{
    enum { SAID = 9000 };
    static char version[SAID + 1];
    static uint8_t packed[SAID + 16];
    Holdfast__Internal__V1__GetNodeStatusResponse said =
        HOLDFAST__INTERNAL__V1__GET_NODE_STATUS_RESPONSE__INIT;
    Holdfast__V1__NodeStatus node = HOLDFAST__V1__NODE_STATUS__INIT;
    const Holdfast__V1__ListShardsRequest list = HOLDFAST__V1__LIST_SHARDS_REQUEST__INIT;
    struct fixture *f = *state;
    struct budget answers;

    memset(version, 'v', SAID);
    node.version = version;
    said.node = &node;
    const struct slice body = { packed, holdfast__internal__v1__get_node_status_response__pack(
                                            &said, packed) };
    budget_init(&answers, 4 * SAID); /* Three quarters of it are for reads. */
    f->router.options.answers = &answers;
    dispatch(f, METHOD_LIST_SHARDS, &list.base);
    fake_cluster_answer(f->fake, 0, WIRE_OK, body);
    fake_cluster_answer(f->fake, 1, WIRE_OK, body);
    assert_int_equal(budget_held(&answers), 2 * body.size);
    fake_cluster_fail(f->fake, 2, ERR_TIMEOUT);
    assert_int_equal(f->code, CODE(UNSPECIFIED));
    assert_int_equal(budget_held(&answers), 0);
    budget_take(&answers, 2 * SAID);
    dispatch(f, METHOD_LIST_SHARDS, &list.base);
    for (uint32_t place = 3; place < 6; place++)
        fake_cluster_answer(f->fake, place, WIRE_OK, body);
    assert_int_equal(f->answers, 2);
    assert_int_equal(f->code, CODE(THROTTLED));
    budget_give(&answers, 2 * SAID);
    budget_deinit(&answers);
}

static void registering_without_etcd_is_unavailable(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__RegisterServerRequest message;
    char name[] = "server";

    holdfast__v1__register_server_request__init(&message);
    dispatch(f, METHOD_REGISTER_SERVER, &message.base);
    assert_int_equal(f->code, CODE(INVALID_ARGUMENT));
    assert_string_equal(f->field, "name");
    message.name = name;
    message.ttl_ms = 60000;
    dispatch(f, METHOD_REGISTER_SERVER, &message.base);
    assert_string_equal(f->field, "ttl_ms");
    message.ttl_ms = 0;
    f->answers = f->finished = 0;
    dispatch(f, METHOD_REGISTER_SERVER, &message.base);
    assert_true(loop_run_until(f->loop, is_answered, f, 10000));
    assert_int_equal(f->code, CODE(UNAVAILABLE));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_router_setup, fake_router_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_grant_reaches_the_owner_and_its_answer_comes_back_unread),
        TEST(a_player_reads_what_is_its_own_and_nothing_else),
        TEST(a_bad_envelope_never_leaves_the_router),
        TEST(a_trace_follows_the_item_from_shard_to_shard),
        TEST(a_full_page_of_a_trace_goes_on_where_it_ended),
        TEST(the_last_page_of_a_trace_has_no_cursor_though_it_is_full),
        TEST(a_trace_of_nothing_is_refused),
        TEST(a_trace_whose_caller_goes_away_is_cancelled),
        TEST(internal_methods_are_not_offered),
        TEST(a_caller_that_goes_away_cancels_its_call),
        TEST(a_read_that_is_given_up_has_no_outcome),
        TEST(an_error_names_the_entity_and_the_operation_of_its_request),
        TEST(a_stored_outcome_is_readable),
        TEST(beyond_the_limit_calls_are_throttled_and_nothing_is_sent),
        TEST(a_draining_router_takes_nothing_new),
        TEST(a_heartbeat_is_answered_from_the_shards_when_etcd_is_down),
        TEST(a_shard_that_does_not_answer_leaves_its_tokens_unknown),
        TEST(the_cluster_is_told_from_the_map_and_the_nodes_without_etcd),
        TEST(the_load_of_nodes_that_answer_is_told_and_the_others_are_named),
        TEST(shards_are_listed_in_pages),
        TEST(what_nodes_say_of_themselves_counts_until_it_is_told),
        TEST(registering_without_etcd_is_unavailable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
