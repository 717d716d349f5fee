#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/channel.pb-c.h"
#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/profile.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "idl/as_of.h"
#include "idl/method.h"
#include "node/core/rows/rows.h"
#include "node/core/shard/shard_internal.h"
#include "node/rpc/fixture_one_shard.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"
#include "runtime/base/id.h"

struct fixture {
    struct one_shard one;
    struct shard_out out;
    uint64_t last_call; /* The call whose reply was seen last, */
    enum reply_status last_status;
    struct buf last_body;
    uint32_t replies;
    struct incident told; /* The last incident. */
    struct budget answers;
};

#define ANSWERS_BYTES 400000u

static void take_replies(void *user, const struct shard_out *out)
{
    struct fixture *f = user;

    for (uint32_t i = 0; i < out->reply_count; i++) {
        f->last_call = out->replies[i].call;
        f->last_status = out->replies[i].status;
        buf_clear(&f->last_body);
        buf_append(&f->last_body, out->bytes.data + out->replies[i].offset, out->replies[i].size);
        f->replies++;
        budget_give(&f->answers, out->replies[i].held);
    }
    if (out->incident_count > 0)
        f->told = out->incidents[out->incident_count - 1];
}

static void step(struct fixture *f, struct shard_event event)
{
    one_shard_step(&f->one, event);
}

static void call(struct fixture *f, uint32_t method, const ProtobufCMessage *request)
{
    one_shard_call(&f->one, method, request);
}

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    struct shard_image image = { .number = 3,
                                 .rep = { .votes = true, .log_first_index = 1 },
                                 .answers = &f->answers };
    struct shard_limits limits = shard_limits_default();
    struct rep_record record = {
        .generation = 1, .epoch = 1, .owner = 7, .membership = { .config = 1, .count = 1 }
    };

    f->one.taken = take_replies;
    f->one.user = f;
    budget_init(&f->answers, ANSWERS_BYTES);
    record.membership.members[0] = 7;
    assert_int_equal(shard_new(7, &limits, node_handlers(), &image, &f->one.shard), ERR_OK);
    assert_false(shard_serves(f->one.shard));
    step(f, (struct shard_event){ .type = SHARD_RECORD, .record = &record });
    assert_true(shard_serves(f->one.shard));
    one_shard_policy(&f->one);
    assert_int_equal(f->last_status, REPLY_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    shard_free(f->one.shard);
    budget_deinit(&f->answers); /* Whatever a test did, everything was given back. */
    buf_deinit(&f->last_body);
    free(f);
    return 0;
}

static Holdfast__V1__GrantResponse *grant(struct fixture *f, char *id, int64_t amount)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *currencies[] = { &gold };

    gold.currency = "gold";
    gold.amount = amount;
    request.player_id = "42";
    request.op_id = id;
    request.authority = "system:payments";
    request.n_currencies = 1;
    request.currencies = currencies;
    call(f, METHOD_GRANT, &request.base);
    if (f->last_status != REPLY_OK)
        return NULL;
    return holdfast__v1__grant_response__unpack(NULL, f->last_body.size, f->last_body.data);
}

static void grant_is_applied_once_and_a_retry_gets_the_same_answer(void **state)
{
    struct fixture *f = *state;
    char id[UUID_TEXT_SIZE];

    one_shard_op_id(&f->one, id);
    for (int i = 0; i < 2; i++) {
        Holdfast__V1__GrantResponse *response = grant(f, id, 5);
        assert_non_null(response);
        assert_int_equal(response->ledger_seq, 1);
        assert_int_equal(response->balances[0]->amount, 5);
        assert_int_equal(response->write->duplicate, i == 1);
        assert_true(response->write->replicas_fsynced == 1);
        holdfast__v1__grant_response__free_unpacked(response, NULL);
    }
}

static void other_payload_under_the_same_id_is_refused(void **state)
{
    struct fixture *f = *state;
    char id[UUID_TEXT_SIZE];

    one_shard_op_id(&f->one, id);
    holdfast__v1__grant_response__free_unpacked(grant(f, id, 5), NULL);
    assert_null(grant(f, id, 6));
    Holdfast__Internal__V1__Refusal *why =
        holdfast__internal__v1__refusal__unpack(NULL, f->last_body.size, f->last_body.data);
    assert_int_equal(why->code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OPERATION_ID_MISMATCH);
    holdfast__internal__v1__refusal__free_unpacked(why, NULL);
}

static uint64_t start_session_as(struct fixture *f, const char *incarnation, int mode, char *id)
{
    Holdfast__V1__StartSessionRequest request = HOLDFAST__V1__START_SESSION_REQUEST__INIT;

    request.player_id = "42";
    request.op_id = id;
    request.incarnation = text_lend(incarnation);
    request.mode = (Holdfast__V1__StartMode)mode;
    call(f, METHOD_START_SESSION, &request.base);
    return f->one.calls;
}

static uint64_t start_session(struct fixture *f, const char *incarnation, int mode)
{
    char id[UUID_TEXT_SIZE];

    one_shard_op_id(&f->one, id);
    return start_session_as(f, incarnation, mode, id);
}

static uint64_t fence_of_last(struct fixture *f, char token[64])
{
    assert_int_equal(f->last_status, REPLY_OK);
    Holdfast__V1__StartSessionResponse *response =
        holdfast__v1__start_session_response__unpack(NULL, f->last_body.size, f->last_body.data);
    assert_non_null(response);
    assert_non_null(response->profile);
    assert_false(response->write->duplicate); /* Asked once, however long it took. */
    uint64_t fence = response->fence;
    snprintf(token, 64, "%s", response->token);
    holdfast__v1__start_session_response__free_unpacked(response, NULL);
    return fence;
}

static void tick_until(struct fixture *f, uint64_t ms)
{
    for (uint64_t end = f->one.now_ms + ms; f->one.now_ms < end; f->one.now_ms += 20)
        step(f, (struct shard_event){ .type = SHARD_TICK });
}

static void steal_waits_for_the_grace_period(void **state)
{
    struct fixture *f = *state;
    char first[64], second[64];

    start_session(f, "1-10", HOLDFAST__V1__START_MODE__START_MODE_FAIL);
    assert_int_equal(fence_of_last(f, first), 1);
    uint32_t replies = f->replies;
    uint64_t thief = start_session(f, "1-11", HOLDFAST__V1__START_MODE__START_MODE_STEAL);
    tick_until(f, 4900);
    assert_int_equal(f->replies, replies);
    tick_until(f, 300);
    assert_int_equal(f->last_call, thief);
    assert_int_equal(fence_of_last(f, second), 2);
}

static void end_session(struct fixture *f, char *token)
{
    Holdfast__V1__EndSessionRequest end = HOLDFAST__V1__END_SESSION_REQUEST__INIT;
    char authority[80];
    char id[UUID_TEXT_SIZE];

    (void)snprintf(authority, sizeof authority, "session:%s", token);
    one_shard_op_id(&f->one, id);
    end.player_id = "42";
    end.op_id = id;
    end.authority = authority;
    call(f, METHOD_END_SESSION, &end.base);
}

static void waiter_gets_the_session_when_the_holder_ends_it(void **state)
{
    struct fixture *f = *state;
    char token[64];

    start_session(f, "1-10", HOLDFAST__V1__START_MODE__START_MODE_FAIL);
    fence_of_last(f, token);
    uint32_t replies = f->replies;
    uint64_t waiter = start_session(f, "1-11", HOLDFAST__V1__START_MODE__START_MODE_WAIT);
    assert_int_equal(f->replies, replies);
    end_session(f, token);
    assert_int_equal(f->replies, replies + 2);
    assert_int_equal(f->last_call, waiter);
    assert_int_equal(fence_of_last(f, token), 2);
}

/* Else the session would be granted to a caller that has gone, and the next one would wait. */
static void waiter_that_was_cancelled_loses_its_place(void **state)
{
    struct fixture *f = *state;
    char token[64];

    start_session(f, "1-10", HOLDFAST__V1__START_MODE__START_MODE_FAIL);
    fence_of_last(f, token);
    uint64_t gone = start_session(f, "1-11", HOLDFAST__V1__START_MODE__START_MODE_WAIT);
    uint64_t next = start_session(f, "1-12", HOLDFAST__V1__START_MODE__START_MODE_WAIT);
    step(f, (struct shard_event){ .type = SHARD_CANCEL, .call = gone });
    end_session(f, token);
    assert_int_equal(f->last_call, next);
    assert_int_equal(fence_of_last(f, token), 2);
}

/* The disk is full as soon as the end of the session is in the log. */
static void take_replies_and_fill(void *user, const struct shard_out *out)
{
    struct fixture *f = user;

    take_replies(user, out);
    if (out->rep.write_count > 0)
        shard_set_full(f->one.shard, "no space left");
}

/* Else those behind the first would sleep while the session is free. */
static void waiters_that_cannot_propose_are_all_sent_to_ask_again(void **state)
{
    struct fixture *f = *state;
    char token[64];

    start_session(f, "1-10", HOLDFAST__V1__START_MODE__START_MODE_FAIL);
    fence_of_last(f, token);
    start_session(f, "1-11", HOLDFAST__V1__START_MODE__START_MODE_WAIT);
    uint64_t next = start_session(f, "1-12", HOLDFAST__V1__START_MODE__START_MODE_WAIT);
    uint32_t replies = f->replies;
    f->one.taken = take_replies_and_fill;
    end_session(f, token);
    assert_int_equal(f->replies, replies + 3);
    assert_int_equal(f->last_call, next);
    assert_int_equal(f->last_status, REPLY_NOT_OWNER);
}

static void expire_server(struct fixture *f, char *incarnation)
{
    Holdfast__Internal__V1__ExpireServerRequest request =
        HOLDFAST__INTERNAL__V1__EXPIRE_SERVER_REQUEST__INIT;

    request.incarnation = incarnation;
    call(f, METHOD_EXPIRE_SERVER, &request.base);
    assert_int_equal(f->last_status, REPLY_OK);
}

/* Else the session would stay free while others wait for it until their time is over. */
static void waiter_that_is_refused_leaves_the_session_to_the_next(void **state)
{
    struct fixture *f = *state;
    char token[64], expired[] = "1-11";

    start_session(f, "1-10", HOLDFAST__V1__START_MODE__START_MODE_FAIL);
    fence_of_last(f, token);
    start_session(f, expired, HOLDFAST__V1__START_MODE__START_MODE_WAIT);
    uint64_t next = start_session(f, "1-12", HOLDFAST__V1__START_MODE__START_MODE_WAIT);
    expire_server(f, expired);
    end_session(f, token);
    assert_int_equal(f->last_call, next);
    assert_int_equal(f->last_status, REPLY_OK);
    assert_int_equal(fence_of_last(f, token), 2);
}

/* A router that lost its link asks again; the first call may still stand in the queue. */
static void waiter_that_asks_twice_under_one_id_is_answered_twice(void **state)
{
    struct fixture *f = *state;
    char token[64], id[UUID_TEXT_SIZE];

    start_session(f, "1-10", HOLDFAST__V1__START_MODE__START_MODE_FAIL);
    fence_of_last(f, token);
    uint32_t replies = f->replies;
    one_shard_op_id(&f->one, id);
    start_session_as(f, "1-11", HOLDFAST__V1__START_MODE__START_MODE_WAIT, id);
    uint64_t again = start_session_as(f, "1-11", HOLDFAST__V1__START_MODE__START_MODE_WAIT, id);
    end_session(f, token);
    assert_int_equal(f->replies, replies + 3);
    assert_int_equal(f->last_call, again);
    assert_int_equal(f->last_status, REPLY_OK);
}

/* Changes the time that a ledger entry says. */
static void spoil_entry(struct fixture *f, uint64_t seq)
{
    struct state *rows = applier_state(f->one.shard->applier);
    struct buf spoilt = { 0 };
    struct row_key key;
    struct slice row;

    row_key_ledger(&key, SLICE_LITERAL("player:42"), seq);
    assert_int_equal(state_find(rows, row_key_slice(&key), &row), STATE_PRESENT);
    buf_append(&spoilt, row.data, row.size);
    spoilt.data[12] ^= 1;
    state_begin(rows);
    state_put(rows, row_key_slice(&key), buf_slice(&spoilt));
    state_commit(rows);
    buf_deinit(&spoilt);
}

static void a_ledger_that_does_not_chain_is_contained_by_a_logged_entry(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ListEntriesRequest list = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;
    char id[UUID_TEXT_SIZE];

    for (int64_t i = 1; i <= 3; i++) {
        one_shard_op_id(&f->one, id);
        holdfast__v1__grant_response__free_unpacked(grant(f, id, i), NULL);
    }
    list.player_id = "42";
    call(f, METHOD_LIST_ENTRIES, &list.base);
    assert_int_equal(shard_meta(f->one.shard)->quarantine_count, 0);
    spoil_entry(f, 2);
    call(f, METHOD_LIST_ENTRIES, &list.base);
    assert_int_equal(f->last_status, REPLY_OK); /* The record is kept, and shown. */
    assert_non_null(meta_find_quarantined(shard_meta(f->one.shard), SLICE_LITERAL("42")));
    assert_int_equal(f->told.kind, INCIDENT_CONTAINED);
    assert_string_equal(f->told.player, "42");
    assert_string_equal(f->told.what, "a ledger entry does not chain");
    uint64_t entries = shard_applied_index(f->one.shard);
    call(f, METHOD_LIST_ENTRIES, &list.base);
    assert_int_equal(shard_applied_index(f->one.shard), entries); /* Once. */
}

static void reads_see_what_was_acknowledged(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetBalancesRequest request = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;
    char id[UUID_TEXT_SIZE];

    one_shard_op_id(&f->one, id);
    holdfast__v1__grant_response__free_unpacked(grant(f, id, 5), NULL);
    request.player_id = "42";
    call(f, METHOD_GET_BALANCES, &request.base);
    assert_int_equal(f->last_status, REPLY_OK);
    Holdfast__V1__GetBalancesResponse *response =
        holdfast__v1__get_balances_response__unpack(NULL, f->last_body.size, f->last_body.data);
    assert_int_equal(response->n_balances, 1);
    assert_int_equal(response->balances[0]->amount, 5);
    holdfast__v1__get_balances_response__free_unpacked(response, NULL);
}

#define SECTION_BYTES 100000u

static void save_large_section(struct fixture *f)
{
    Holdfast__V1__UpdateProfileRequest request = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT;
    Holdfast__V1__SectionEdit edit = HOLDFAST__V1__SECTION_EDIT__INIT;
    Holdfast__V1__SectionEdit *edits[] = { &edit };
    char *json = mem_zalloc(SECTION_BYTES + 1);
    char id[UUID_TEXT_SIZE];

    one_shard_op_id(&f->one, id);
    memset(json, 'x', SECTION_BYTES);
    json[0] = json[SECTION_BYTES - 1] = '"';
    edit.name = (char *)"a";
    edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    edit.replace = json;
    request.player_id = (char *)"42";
    request.op_id = id;
    request.authority = (char *)"unheld";
    request.edits = edits;
    request.n_edits = 1;
    call(f, METHOD_UPDATE_PROFILE, &request.base);
    assert_int_equal(f->last_status, REPLY_OK);
    free(json);
}

static void get_profile(struct fixture *f, Holdfast__V1__ReadOptions *options)
{
    Holdfast__V1__GetProfileRequest request = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;

    request.player_id = (char *)"42";
    request.read = options;
    call(f, METHOD_GET_PROFILE, &request.base);
}

static void get_balances(struct fixture *f)
{
    Holdfast__V1__GetBalancesRequest request = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;

    request.player_id = (char *)"42";
    call(f, METHOD_GET_BALANCES, &request.base);
}

static void assert_throttled(struct fixture *f)
{
    assert_int_equal(f->last_status, REPLY_REFUSED);
    Holdfast__Internal__V1__Refusal *why =
        holdfast__internal__v1__refusal__unpack(NULL, f->last_body.size, f->last_body.data);
    assert_int_equal(why->code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_THROTTLED);
    assert_true(why->retry_after_ms > 0);
    assert_non_null(strstr(why->message, "answers_size_max"));
    holdfast__internal__v1__refusal__free_unpacked(why, NULL);
}

static void a_large_answer_without_room_is_refused_and_small_ones_and_writes_are_not(void **state)
{
    struct fixture *f = *state;
    char id[UUID_TEXT_SIZE];

    save_large_section(f);
    budget_take(&f->answers, ANSWERS_BYTES);
    for (int i = 0; i < 2; i++) { /* The second time its size is known. */
        get_profile(f, NULL);
        assert_throttled(f);
    }
    assert_int_equal(budget_refused(&f->answers), 2);
    get_balances(f);
    assert_int_equal(f->last_status, REPLY_OK);
    one_shard_op_id(&f->one, id);
    holdfast__v1__grant_response__free_unpacked(grant(f, id, 5), NULL);
    assert_int_equal(f->last_status, REPLY_OK);
    budget_give(&f->answers, ANSWERS_BYTES);
    get_profile(f, NULL);
    assert_int_equal(f->last_status, REPLY_OK);
    assert_true(f->last_body.size > SECTION_BYTES);
    assert_int_equal(budget_held(&f->answers), 0);
}

static void a_session_waits_for_room_for_its_profile(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__StartSessionRequest request = HOLDFAST__V1__START_SESSION_REQUEST__INIT;
    char *include[] = { (char *)"sections" };
    char id[UUID_TEXT_SIZE];

    save_large_section(f);
    one_shard_op_id(&f->one, id);
    request.player_id = (char *)"42";
    request.op_id = id;
    request.incarnation = (char *)"1-7";
    request.include = include;
    request.n_include = 1;
    budget_take(&f->answers, ANSWERS_BYTES);
    uint32_t replies = f->replies;
    call(f, METHOD_START_SESSION, &request.base);
    step(f, (struct shard_event){ .type = SHARD_TICK });
    assert_int_equal(f->replies, replies);
    budget_give(&f->answers, ANSWERS_BYTES);
    step(f, (struct shard_event){ .type = SHARD_TICK });
    assert_int_equal(f->replies, replies + 1);
    assert_int_equal(f->last_status, REPLY_OK);
    assert_true(f->last_body.size > SECTION_BYTES);
}

static void large_reads_take_turns_with_their_bytes_reserved_and_small_ones_pass(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ReadOptions options = HOLDFAST__V1__READ_OPTIONS__INIT;

    save_large_section(f);
    f->one.shard->limits.answers_round_bytes = SECTION_BYTES;
    options.stale = true; /* Answered in the step that it comes in, without a flush. */
    step(f, (struct shard_event){ .type = SHARD_TICK });
    get_profile(f, &options);
    assert_int_equal(f->last_status, REPLY_OK);
    uint32_t replies = f->replies;
    get_profile(f, &options);
    get_profile(f, &options);
    assert_int_equal(f->replies, replies);
    assert_true(budget_held(&f->answers) > 2 * SECTION_BYTES);
    get_profile(f, &options); /* There is no room to wait in: reads have three quarters. */
    assert_throttled(f);
    step(f, (struct shard_event){ .type = SHARD_TICK });
    assert_int_equal(f->replies, replies + 2);
    assert_int_equal(f->last_status, REPLY_OK);
    step(f, (struct shard_event){ .type = SHARD_TICK });
    assert_int_equal(f->replies, replies + 3);
    assert_int_equal(budget_held(&f->answers), 0);
    get_profile(f, &options);
    uint64_t held = budget_held(&f->answers);
    step(f, (struct shard_event){ .type = SHARD_CANCEL, .call = f->one.calls });
    assert_true(held > SECTION_BYTES);
    assert_int_equal(budget_held(&f->answers), 0); /* A caller that has gone frees its room. */
    get_profile(f, &options);
    f->one.now_ms += 20000;
    f->one.shard->limits.answers_round_bytes = 1;
    step(f, (struct shard_event){ .type = SHARD_TICK });
    assert_int_equal(budget_held(&f->answers), 0);
}

static Holdfast__Internal__V1__Refusal *read_with(struct fixture *f,
                                                  Holdfast__V1__ReadOptions *options)
{
    Holdfast__V1__GetBalancesRequest request = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;

    request.player_id = "42";
    request.read = options;
    call(f, METHOD_GET_BALANCES, &request.base);
    if (f->last_status == REPLY_OK)
        return NULL;
    return holdfast__internal__v1__refusal__unpack(NULL, f->last_body.size, f->last_body.data);
}

static void refused_options(struct fixture *f, Holdfast__V1__ReadOptions *options,
                            const char *field)
{
    Holdfast__Internal__V1__Refusal *why = read_with(f, options);
    assert_non_null(why);
    assert_int_equal(why->code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INVALID_ARGUMENT);
    assert_string_equal(why->field, field);
    holdfast__internal__v1__refusal__free_unpacked(why, NULL);
}

static void refused_read(struct fixture *f, char *at_least, bool stale, const char *field)
{
    Holdfast__V1__ReadOptions options = HOLDFAST__V1__READ_OPTIONS__INIT;

    options.at_least = at_least;
    options.stale = stale;
    refused_options(f, &options, field);
}

static uint64_t rounds_of_read(struct fixture *f, uint32_t max_age_ms)
{
    Holdfast__V1__ReadOptions options = HOLDFAST__V1__READ_OPTIONS__INIT;
    struct shard_stats before, after;

    options.max_age_ms = max_age_ms;
    shard_stats_get(f->one.shard, &before);
    assert_null(read_with(f, &options));
    shard_stats_get(f->one.shard, &after);
    assert_int_equal(after.rounds - before.rounds + after.reads_aged - before.reads_aged, 1);
    return after.rounds - before.rounds;
}

static void a_read_with_an_age_asks_the_others_when_that_is_too_long_ago(void **state)
{
    struct fixture *f = *state;

    f->one.now_ms += 60000;
    assert_int_equal(rounds_of_read(f, 60000 - 1), 1); /* None yet, or none so lately. */
    assert_int_equal(rounds_of_read(f, 1), 0);
    f->one.now_ms += 100;
    assert_int_equal(rounds_of_read(f, 100), 0); /* It is no round itself, */
    assert_int_equal(rounds_of_read(f, 99), 1);  /* so this is 100 ms after the last one. */
    assert_int_equal(rounds_of_read(f, 99), 0);
    assert_int_equal(rounds_of_read(f, 0), 1); /* Linearizable. */
}

static void an_age_is_of_both_clocks(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(rounds_of_read(f, 0), 1);
    f->one.wall_ms += 1000; /* The loop's clock was read before the process stood still. */
    assert_int_equal(rounds_of_read(f, 999), 1);
    assert_int_equal(rounds_of_read(f, 1), 0);
    f->one.wall_ms -= 500; /* Set back. */
    assert_int_equal(rounds_of_read(f, 60000), 1);
}

static void an_age_has_a_limit_and_stands_alone(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ReadOptions options = HOLDFAST__V1__READ_OPTIONS__INIT;

    options.max_age_ms = 60001;
    refused_options(f, &options, "read.max_age_ms");
    options.max_age_ms = 5;
    options.stale = true;
    refused_options(f, &options, "read.stale");
    options.stale = false;
    options.at_least = (char *)"c1.";
    refused_options(f, &options, "read.max_age_ms");
}

static void at_least_needs_a_token_of_this_shard_and_is_not_silently_strict(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ReadOptions options = HOLDFAST__V1__READ_OPTIONS__INIT;
    struct as_of as_of = { .shard = 3, .epoch = 1, .owner = 7, .counter = 1 };
    char text[AS_OF_TEXT_SIZE], other[AS_OF_TEXT_SIZE], mistyped[AS_OF_TEXT_SIZE];

    as_of_print(&as_of, text);
    as_of.shard++;
    as_of_print(&as_of, other);
    memcpy(mistyped, text, sizeof mistyped);
    mistyped[5] = mistyped[5] == 'A' ? 'B' : 'A';
    refused_read(f, (char *)"1.7.1", false, "read.at_least");
    refused_read(f, (char *)"c1.", false, "read.at_least");
    refused_read(f, other, false, "read.at_least");
    refused_read(f, mistyped, false, "read.at_least");
    refused_read(f, text, true, "read.stale");
    options.at_least = text;
    assert_null(read_with(f, &options));
    options.at_least = (char *)"";
    options.stale = true;
    assert_null(read_with(f, &options));
}

static void an_armed_shard_stops_before_the_entry_that_takes_the_cut(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__TakeCutRequest cut = HOLDFAST__INTERNAL__V1__TAKE_CUT_REQUEST__INIT;
    struct shard_checkpoint checkpoint;
    char id[UUID_TEXT_SIZE];

    shard_arm(f->one.shard, 10);
    cut.cut = 9;
    call(f, METHOD_TAKE_CUT, &cut.base);
    assert_false(shard_at_cut(f->one.shard));
    uint64_t before = shard_applied_index(f->one.shard);
    cut.cut = 12;
    call(f, METHOD_TAKE_CUT, &cut.base);
    uint32_t replies = f->replies;
    one_shard_op_id(&f->one, id);
    (void)grant(f, id, 5);
    assert_true(shard_at_cut(f->one.shard));
    assert_int_equal(f->replies, replies);
    assert_int_equal(shard_applied_index(f->one.shard), before);
    assert_true(shard_checkpoint_begin(f->one.shard, &checkpoint));
    assert_int_equal(checkpoint.index, before);
    shard_pass_cut(f->one.shard);
    step(f, (struct shard_event){ .type = SHARD_TICK });
    assert_false(shard_at_cut(f->one.shard));
    assert_int_equal(shard_applied_index(f->one.shard), before + 2);
    assert_int_equal(f->replies, replies + 2);
    assert_int_equal(shard_meta(f->one.shard)->cut_id, 12);
    shard_checkpoint_end(f->one.shard, true);
    buf_deinit(&checkpoint.meta_row);
}

static void a_cut_that_comes_with_goods_stops_an_armed_shard_too(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__DeliverRequest deliver = HOLDFAST__INTERNAL__V1__DELIVER_REQUEST__INIT;

    shard_arm(f->one.shard, 10);
    deliver.source = 1;
    deliver.cut = 10;
    call(f, METHOD_CHANNEL_DELIVER, &deliver.base);
    assert_true(shard_at_cut(f->one.shard));
    shard_arm(f->one.shard, 0);
    step(f, (struct shard_event){ .type = SHARD_TICK });
    assert_int_equal(shard_meta(f->one.shard)->cut_id, 10);
}

static void log_settle(struct fixture *f, const Holdfast__Internal__V1__SettleRequest *settle)
{
    struct buf body = { 0 };

    owner_op_encode(METHOD_CHANNEL_SETTLE, (struct slice){ 0 }, &settle->base, &body);
    one_shard_propose(&f->one, buf_slice(&body));
    buf_deinit(&body);
}

/* A settle has decisions of several destinations, each with the cut that it has taken. */
static void a_cut_that_comes_with_decisions_stops_an_armed_shard_too(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__SettleRequest settle = HOLDFAST__INTERNAL__V1__SETTLE_REQUEST__INIT;
    Holdfast__Internal__V1__SettleRequest other = HOLDFAST__INTERNAL__V1__SETTLE_REQUEST__INIT;
    Holdfast__Internal__V1__SettleRequest *more[] = { &other };

    settle.destination = 1;
    settle.cut = 8;
    settle.more = more;
    settle.n_more = 1;
    other.destination = 2;
    for (uint64_t cut = 9; cut <= 10; cut++) {
        shard_arm(f->one.shard, 10);
        other.cut = cut;
        log_settle(f, &settle);
        assert_int_equal(shard_at_cut(f->one.shard), cut == 10);
    }
    assert_int_equal(shard_meta(f->one.shard)->cut_id, 9);
    shard_arm(f->one.shard, 0);
    step(f, (struct shard_event){ .type = SHARD_TICK });
    assert_int_equal(shard_meta(f->one.shard)->cut_id, 10);
    shard_arm(f->one.shard, 11);
    other.cut = 0;
    settle.cut = 11;
    log_settle(f, &settle);
    assert_true(shard_at_cut(f->one.shard));
    shard_arm(f->one.shard, 0);
}

static void deposed_owner_says_where_to_go(void **state)
{
    struct fixture *f = *state;
    struct rep_record record = {
        .generation = 1, .epoch = 9, .owner = 8, .membership = { .config = 1, .count = 1 }
    };
    char id[UUID_TEXT_SIZE];

    record.membership.members[0] = 8;
    step(f, (struct shard_event){ .type = SHARD_RECORD, .record = &record });
    one_shard_op_id(&f->one, id);
    assert_null(grant(f, id, 5));
    assert_int_equal(f->last_status, REPLY_NOT_OWNER);
}

static void data_of_a_later_apply_version_is_refused(void **state)
{
    struct shard_limits limits = shard_limits_default();
    struct shard_image image = { .number = 3, .rep = { .votes = true, .log_first_index = 1 } };
    struct meta meta;
    struct buf row = { 0 };
    struct shard *shard = NULL;
    (void)state;

    meta_init(&meta);
    meta.apply_version = APPLY_VERSION + 1;
    meta_encode(&meta, &row);
    image.meta_row = buf_slice(&row);
    assert_int_equal(shard_new(7, &limits, node_handlers(), &image, &shard), ERR_TOO_NEW);
    assert_null(shard);
    limits.apply_version_max = APPLY_VERSION + 1;
    assert_int_equal(shard_new(7, &limits, node_handlers(), &image, &shard), ERR_OK);
    shard_free(shard);
    buf_deinit(&row);
    meta_deinit(&meta);
}

int main(void)
{
#define SHARD_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        SHARD_TEST(grant_is_applied_once_and_a_retry_gets_the_same_answer),
        SHARD_TEST(other_payload_under_the_same_id_is_refused),
        SHARD_TEST(steal_waits_for_the_grace_period),
        SHARD_TEST(waiter_gets_the_session_when_the_holder_ends_it),
        SHARD_TEST(waiter_that_was_cancelled_loses_its_place),
        SHARD_TEST(waiters_that_cannot_propose_are_all_sent_to_ask_again),
        SHARD_TEST(waiter_that_is_refused_leaves_the_session_to_the_next),
        SHARD_TEST(waiter_that_asks_twice_under_one_id_is_answered_twice),
        SHARD_TEST(a_ledger_that_does_not_chain_is_contained_by_a_logged_entry),
        SHARD_TEST(reads_see_what_was_acknowledged),
        SHARD_TEST(a_read_with_an_age_asks_the_others_when_that_is_too_long_ago),
        SHARD_TEST(an_age_is_of_both_clocks),
        SHARD_TEST(an_age_has_a_limit_and_stands_alone),
        SHARD_TEST(a_large_answer_without_room_is_refused_and_small_ones_and_writes_are_not),
        SHARD_TEST(a_session_waits_for_room_for_its_profile),
        SHARD_TEST(large_reads_take_turns_with_their_bytes_reserved_and_small_ones_pass),
        SHARD_TEST(at_least_needs_a_token_of_this_shard_and_is_not_silently_strict),
        SHARD_TEST(an_armed_shard_stops_before_the_entry_that_takes_the_cut),
        SHARD_TEST(a_cut_that_comes_with_goods_stops_an_armed_shard_too),
        SHARD_TEST(a_cut_that_comes_with_decisions_stops_an_armed_shard_too),
        SHARD_TEST(deposed_owner_says_where_to_go),
        cmocka_unit_test(data_of_a_later_apply_version_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
