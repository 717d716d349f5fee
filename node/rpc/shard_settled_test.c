/* Reads and writes of players that wait for each other at the owner: for a transaction's end, and
 * for a read's. */
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
#include "idl/method.h"
#include "node/core/shard/shard_internal.h"
#include "node/rpc/fixture_one_shard.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"
#include "runtime/base/id.h"

#define ERROR(name)    HOLDFAST__V1__ERROR_CODE__ERROR_CODE_##name
#define DECISION(name) HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_##name
#define READER         77u
#define READS_MAX      3u
#define WRITES_MAX     2u

typedef Holdfast__Internal__V1__ReadSettledRequest settled_request;
typedef Holdfast__Internal__V1__ReadSettledResponse settled_response;
typedef Holdfast__Internal__V1__DeliverRequest deliver_request;
typedef Holdfast__Internal__V1__DeliverResponse deliver_response;

struct fixture {
    struct one_shard one;
    struct shard_out out;
    uint64_t last_call; /* The call whose reply was seen last, */
    enum reply_status last_status;
    struct buf last_body;
    uint32_t replies;
    uint64_t delivery_call; /* The last delivery, */
    enum reply_status delivery_status;
    struct buf delivery;                    /* and what it was answered. */
    Holdfast__Internal__V1__Refusal *error; /* Of the last reply, if it is one. */
    settled_response *read;                 /* The last answer to a read, */
    deliver_response *delivered;            /* and to a delivery. */
};

static void take_replies(void *user, const struct shard_out *out)
{
    struct fixture *f = user;

    for (uint32_t i = 0; i < out->reply_count; i++) {
        f->replies++;
        if (out->replies[i].call == f->delivery_call) {
            f->delivery_status = out->replies[i].status;
            buf_clear(&f->delivery);
            buf_append(&f->delivery, out->bytes.data + out->replies[i].offset,
                       out->replies[i].size);
            continue;
        }
        f->last_call = out->replies[i].call;
        f->last_status = out->replies[i].status;
        buf_clear(&f->last_body);
        buf_append(&f->last_body, out->bytes.data + out->replies[i].offset, out->replies[i].size);
    }
}

static void step(struct fixture *f, struct shard_event event)
{
    one_shard_step(&f->one, event);
}

static void call(struct fixture *f, uint32_t method, const ProtobufCMessage *request)
{
    if (method == METHOD_CHANNEL_DELIVER)
        f->delivery_call = f->one.calls + 1;
    one_shard_call(&f->one, method, request);
}

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    struct shard_image image = { .number = 3, .rep = { .votes = true, .log_first_index = 1 } };
    struct shard_limits limits = shard_limits_default();

    f->one.taken = take_replies;
    f->one.user = f;
    limits.reads_waiting_max = READS_MAX;
    limits.writes_waiting_max = WRITES_MAX;
    struct rep_record record = {
        .generation = 1, .epoch = 1, .owner = 7, .membership = { .config = 1, .count = 1 }
    };

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

static void forget(struct fixture *f);

static int teardown(void **state)
{
    struct fixture *f = *state;

    shard_free(f->one.shard);
    buf_deinit(&f->last_body);
    buf_deinit(&f->delivery);
    forget(f);
    free(f);
    return 0;
}

static void forget(struct fixture *f)
{
    if (f->error != NULL)
        holdfast__internal__v1__refusal__free_unpacked(f->error, NULL);
    if (f->read != NULL)
        holdfast__internal__v1__read_settled_response__free_unpacked(f->read, NULL);
    if (f->delivered != NULL)
        holdfast__internal__v1__deliver_response__free_unpacked(f->delivered, NULL);
    f->error = NULL;
    f->read = NULL;
    f->delivered = NULL;
}

static struct shard_stats stats(const struct fixture *f)
{
    struct shard_stats told;

    shard_stats_get(f->one.shard, &told);
    return told;
}

static void tick(struct fixture *f, uint64_t ms)
{
    f->one.now_ms += ms;
    step(f, (struct shard_event){ .type = SHARD_TICK });
}

/* ---- transactions of another shard ---- */

static deliver_response *deliver(struct fixture *f, Holdfast__Internal__V1__ChannelCredit **credits,
                                 size_t count)
{
    deliver_request request = HOLDFAST__INTERNAL__V1__DELIVER_REQUEST__INIT;
    uint32_t replies = f->replies;

    request.shard = 3;
    request.source = 5;
    request.credits = credits;
    request.n_credits = count;
    call(f, METHOD_CHANNEL_DELIVER, &request.base);
    /* Others may have been answered, too, and before. */
    assert_true(f->replies > replies);
    forget(f);
    assert_int_equal(f->delivery_status, REPLY_OK);
    f->delivered =
        holdfast__internal__v1__deliver_response__unpack(NULL, f->delivery.size, f->delivery.data);
    assert_non_null(f->delivered);
    assert_int_equal(f->delivered->n_results, count);
    return f->delivered;
}

static int prepare_of(struct fixture *f, uint64_t seq, const char *player)
{
    Holdfast__Internal__V1__ChannelCredit credit = HOLDFAST__INTERNAL__V1__CHANNEL_CREDIT__INIT;
    Holdfast__Internal__V1__ChannelCredit *credits[] = { &credit };
    Holdfast__Internal__V1__TxnPrepare prepare = HOLDFAST__INTERNAL__V1__TXN_PREPARE__INIT;
    Holdfast__Internal__V1__TxnRef ref = HOLDFAST__INTERNAL__V1__TXN_REF__INIT;
    Holdfast__Internal__V1__TxnPart part = HOLDFAST__INTERNAL__V1__TXN_PART__INIT;
    Holdfast__Internal__V1__TxnPart *parts[] = { &part };
    Holdfast__Internal__V1__StoredAuthority authority =
        HOLDFAST__INTERNAL__V1__STORED_AUTHORITY__INIT;
    Holdfast__Internal__V1__StoredUnheld unheld = HOLDFAST__INTERNAL__V1__STORED_UNHELD__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *golds[] = { &gold };
    uint8_t hash[16] = { (uint8_t)seq };
    char op_id_text[32];

    (void)snprintf(op_id_text, sizeof op_id_text, "claim:%u", (unsigned)seq);
    ref.home = 5;
    ref.destination = 3;
    ref.seq = seq;
    authority.kind_case = HOLDFAST__INTERNAL__V1__STORED_AUTHORITY__KIND_UNHELD;
    authority.unheld = &unheld;
    gold.currency = (char *)"gold";
    gold.amount = 3;
    part.player_id = text_lend(player);
    part.authority = &authority;
    part.give = golds;
    part.n_give = 1;
    prepare.txn = &ref;
    prepare.player_id = (char *)"home";
    prepare.parts = parts;
    prepare.n_parts = 1;
    credit.seq = seq;
    credit.op_id = op_id_text;
    credit.payload_hash = (ProtobufCBinaryData){ sizeof hash, hash };
    credit.to_player_id = part.player_id;
    credit.prepare = &prepare;
    return (int)deliver(f, credits, 1)->results[0]->decision;
}

static int prepare(struct fixture *f, uint64_t seq)
{
    return prepare_of(f, seq, "42");
}

/* In a record of its own, of the number after. */
static void finish(struct fixture *f, uint64_t seq)
{
    Holdfast__Internal__V1__ChannelCredit credit = HOLDFAST__INTERNAL__V1__CHANNEL_CREDIT__INIT;
    Holdfast__Internal__V1__ChannelCredit *credits[] = { &credit };
    Holdfast__Internal__V1__TxnFinish message = HOLDFAST__INTERNAL__V1__TXN_FINISH__INIT;
    Holdfast__Internal__V1__TxnRef ref = HOLDFAST__INTERNAL__V1__TXN_REF__INIT;
    Holdfast__Internal__V1__TxnGive give = HOLDFAST__INTERNAL__V1__TXN_GIVE__INIT;
    Holdfast__Internal__V1__TxnGive *gives[] = { &give };
    uint8_t hash[16] = { (uint8_t)seq, 1 };

    ref.home = 5;
    ref.destination = 3;
    ref.seq = seq;
    give.player_id = (char *)"42";
    message.txn = &ref;
    message.commit = true;
    message.gives = gives;
    message.n_gives = 1;
    credit.seq = seq + 1;
    credit.op_id = (char *)"claim:finish";
    credit.payload_hash = (ProtobufCBinaryData){ sizeof hash, hash };
    credit.to_player_id = (char *)"42";
    credit.finish = &message;
    assert_int_equal(deliver(f, credits, 1)->results[0]->decision, DECISION(APPLIED));
}

/* ---- reads and writes of player 42 ---- */

static settled_request read_make(bool wait, bool hold)
{
    settled_request request = HOLDFAST__INTERNAL__V1__READ_SETTLED_REQUEST__INIT;

    request.player_id = (char *)"42";
    request.reader = READER;
    request.wait = wait;
    request.hold = hold;
    return request;
}

static uint64_t read_begin(struct fixture *f, bool wait, bool hold)
{
    const settled_request request = read_make(wait, hold);

    call(f, METHOD_READ_SETTLED, &request.base);
    return f->one.calls;
}

static void release(struct fixture *f)
{
    settled_request request = read_make(false, false);

    request.release = true;
    call(f, METHOD_READ_SETTLED, &request.base);
}

/* The last reply is the answer of that read. */
static const settled_response *read_told(struct fixture *f, uint64_t number)
{
    assert_int_equal(f->last_call, number);
    assert_int_equal(f->last_status, REPLY_OK);
    forget(f);
    f->read = holdfast__internal__v1__read_settled_response__unpack(NULL, f->last_body.size,
                                                                    f->last_body.data);
    assert_non_null(f->read);
    return f->read;
}

static void assert_error(struct fixture *f, uint64_t number, Holdfast__V1__ErrorCode code)
{
    assert_int_equal(f->last_call, number);
    assert_int_equal(f->last_status, REPLY_REFUSED);
    forget(f);
    f->error = holdfast__internal__v1__refusal__unpack(NULL, f->last_body.size, f->last_body.data);
    assert_non_null(f->error);
    assert_int_equal(f->error->code, code);
}

static void assert_refused(struct fixture *f, uint64_t number)
{
    assert_error(f, number, ERROR(TXN_CONFLICT));
    assert_true(f->error->retry_after_ms > 0);
}

static uint64_t grant(struct fixture *f, const char *player)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *golds[] = { &gold };
    char id[UUID_TEXT_SIZE];

    one_shard_op_id(&f->one, id);
    gold.currency = (char *)"gold";
    gold.amount = 1;
    request.player_id = text_lend(player);
    request.op_id = id;
    request.authority = (char *)"unheld";
    request.currencies = golds;
    request.n_currencies = 1;
    call(f, METHOD_GRANT, &request.base);
    return f->one.calls;
}

static bool is_answered(const struct fixture *f, uint64_t number)
{
    return f->last_call == number && f->last_status == REPLY_OK;
}

/* ---- a read waits for a transaction ---- */

static void a_read_waits_for_the_end_of_a_transaction(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(prepare(f, 1), DECISION(APPLIED));
    uint64_t number = read_begin(f, true, false);
    assert_int_not_equal(f->last_call, number);
    tick(f, 100);
    assert_int_not_equal(f->last_call, number);
    assert_int_equal(stats(f).reads_waiting, 1);
    finish(f, 1);
    const settled_response *told = read_told(f, number);
    assert_int_equal(told->profile->version, 1);
    assert_int_equal(told->profile->balances[0]->amount, 3);
    assert_int_equal(stats(f).reads_waiting, 0);
    assert_int_equal(stats(f).reads_waited, 1);
}

static void who_holds_the_player_is_told_to_a_read_that_does_not_wait(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(prepare(f, 1), DECISION(APPLIED));
    uint64_t number = read_begin(f, false, false);
    const settled_response *told = read_told(f, number);
    assert_null(told->profile);
    assert_int_equal(told->holder->home, 5);
    assert_int_equal(told->holder->seq, 1);
    assert_true(told->may_hold);
    assert_false(told->held);
}

static void a_read_that_waited_in_vain_is_refused_before_its_deadline(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(prepare(f, 1), DECISION(APPLIED));
    uint64_t number = read_begin(f, true, false);
    tick(f, 9000);
    assert_int_not_equal(f->last_call, number);
    tick(f, 960); /* Its caller has some moments left. */
    assert_refused(f, number);
    assert_int_equal(stats(f).reads_timed_out, 1);
    assert_int_equal(stats(f).reads_waiting, 0);
}

static void so_many_reads_may_wait_and_no_more(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(prepare(f, 1), DECISION(APPLIED));
    for (uint32_t i = 0; i < READS_MAX; i++)
        (void)read_begin(f, true, false);
    assert_refused(f, read_begin(f, true, false));
    assert_int_equal(stats(f).reads_waiting, READS_MAX);
    assert_int_equal(stats(f).reads_turned_away, 1);
    step(f, (struct shard_event){ .type = SHARD_CANCEL, .call = f->one.calls - 1 });
    assert_int_equal(stats(f).reads_waiting, READS_MAX - 1);
    (void)read_begin(f, true, false);
    assert_int_equal(stats(f).reads_waiting, READS_MAX);
}

static void a_deposed_owner_keeps_no_read_waiting(void **state)
{
    struct fixture *f = *state;
    struct rep_record record = {
        .generation = 1, .epoch = 2, .owner = 8, .membership = { .config = 2, .count = 2 }
    };

    record.membership.members[0] = 7;
    record.membership.members[1] = 8;
    assert_int_equal(prepare(f, 1), DECISION(APPLIED));
    uint64_t number = read_begin(f, true, false);
    step(f, (struct shard_event){ .type = SHARD_RECORD, .record = &record });
    assert_false(shard_serves(f->one.shard));
    assert_int_equal(f->last_call, number);
    assert_int_equal(f->last_status, REPLY_NOT_OWNER);
}

/* ---- writes wait for a read ---- */

static void writes_wait_until_the_read_is_done(void **state)
{
    struct fixture *f = *state;

    assert_true(read_told(f, read_begin(f, false, true))->held);
    uint64_t mine = grant(f, "42");
    assert_false(is_answered(f, mine));
    assert_true(is_answered(f, grant(f, "43"))); /* Another's do not. */
    const settled_response *told = read_told(f, read_begin(f, true, true));
    assert_int_equal(told->profile->version, 0);
    assert_int_equal(stats(f).writes_waiting, 1);
    release(f);
    assert_true(is_answered(f, mine));
    assert_int_equal(stats(f).writes_waiting, 0);
    assert_int_equal(read_told(f, read_begin(f, true, false))->profile->version, 1);
}

static void a_read_that_never_lets_go_is_not_waited_for_for_long(void **state)
{
    struct fixture *f = *state;

    (void)read_begin(f, false, true);
    uint64_t number = grant(f, "42");
    tick(f, 199);
    assert_false(is_answered(f, number));
    tick(f, 1);
    assert_true(is_answered(f, number));
    assert_false(read_told(f, read_begin(f, false, true))->held); /* It rests. */
    assert_true(is_answered(f, grant(f, "42")));
}

static void so_many_writes_wait_and_the_next_does_not(void **state)
{
    struct fixture *f = *state;

    (void)read_begin(f, false, true);
    for (uint32_t i = 0; i < WRITES_MAX; i++)
        assert_false(is_answered(f, grant(f, "42")));
    assert_true(is_answered(f, grant(f, "42")));
    assert_int_equal(stats(f).writes_waiting, WRITES_MAX);
}

#define SECTIONS      5u
#define SECTION_BYTES 220000u

/* The next try would meet the same. */
static void a_write_that_no_entry_takes_is_refused_and_does_not_wait(void **state)
{
    static const char *const names[SECTIONS] = { "a", "b", "c", "d", "e" };
    struct fixture *f = *state;
    Holdfast__V1__UpdateProfileRequest request = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT;
    Holdfast__V1__SectionEdit edits[SECTIONS], *list[SECTIONS];
    char *text = mem_alloc(SECTION_BYTES + 1);

    memset(text, ' ', SECTION_BYTES);
    text[0] = '"';
    text[SECTION_BYTES - 1] = '"';
    text[SECTION_BYTES] = 0;
    for (uint32_t i = 0; i < SECTIONS; i++) {
        holdfast__v1__section_edit__init(&edits[i]);
        edits[i].name = text_lend(names[i]);
        edits[i].edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
        edits[i].replace = text;
        list[i] = &edits[i];
    }
    request.player_id = (char *)"42";
    request.op_id = (char *)"claim:large";
    request.authority = (char *)"unheld";
    request.edits = list;
    request.n_edits = SECTIONS;
    (void)read_begin(f, false, true);
    call(f, METHOD_UPDATE_PROFILE, &request.base);
    free(text);
    assert_error(f, f->one.calls, ERROR(INVALID_ARGUMENT));
    assert_int_equal(stats(f).writes_waiting, 0);
}

static void a_transaction_waits_in_its_outbox_unless_the_read_waits_for_it(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__TxnRef ref = HOLDFAST__INTERNAL__V1__TXN_REF__INIT;
    Holdfast__Internal__V1__TxnRef *pass[] = { &ref };
    settled_request request = read_make(true, true);

    (void)read_begin(f, false, true);
    assert_int_equal(prepare(f, 1), DECISION(UNSPECIFIED));
    assert_int_equal(f->delivered->n_later, 1);
    assert_int_equal(f->delivered->later[0], 1);
    assert_int_equal(prepare_of(f, 2, "43"), DECISION(APPLIED)); /* Of another player. */
    assert_int_equal(f->delivered->n_later, 0);
    ref.home = 5;
    ref.destination = 3;
    ref.seq = 1;
    request.pass = pass;
    request.n_pass = 1;
    call(f, METHOD_READ_SETTLED, &request.base);
    assert_int_equal(prepare(f, 1), DECISION(APPLIED));
    request.n_pass = 0;
    call(f, METHOD_READ_SETTLED, &request.base);
    assert_int_equal(prepare(f, 1), DECISION(APPLIED)); /* It came in before: only told again. */
    assert_int_equal(stats(f).prepares_later, 1);
}

/* The rest of a batch is decided, and each result stands in its place. */
static void what_is_left_out_of_a_batch_keeps_its_place(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__ChannelCredit credits[3];
    Holdfast__Internal__V1__ChannelCredit *list[3];
    Holdfast__Internal__V1__TxnFinish finishes[3];
    Holdfast__Internal__V1__TxnPrepare message = HOLDFAST__INTERNAL__V1__TXN_PREPARE__INIT;
    Holdfast__Internal__V1__TxnRef ref = HOLDFAST__INTERNAL__V1__TXN_REF__INIT;
    Holdfast__Internal__V1__TxnPart part = HOLDFAST__INTERNAL__V1__TXN_PART__INIT;
    Holdfast__Internal__V1__TxnPart *parts[] = { &part };
    uint8_t hash[16] = { 9 };

    (void)read_begin(f, false, true);
    ref.home = 5;
    ref.destination = 3;
    ref.seq = 8;
    part.player_id = (char *)"42";
    message.txn = &ref;
    message.parts = parts;
    message.n_parts = 1;
    for (uint32_t i = 0; i < 3; i++) {
        holdfast__internal__v1__channel_credit__init(&credits[i]);
        holdfast__internal__v1__txn_finish__init(&finishes[i]);
        finishes[i].txn = &ref; /* Of no transaction: there is nothing to finish. */
        credits[i].seq = 7 + i;
        credits[i].op_id = (char *)"claim:x";
        credits[i].payload_hash = (ProtobufCBinaryData){ sizeof hash, hash };
        credits[i].to_player_id = (char *)"42";
        credits[i].finish = &finishes[i];
        list[i] = &credits[i];
    }
    credits[1].finish = NULL;
    credits[1].prepare = &message;
    const deliver_response *told = deliver(f, list, 3);
    assert_int_equal(told->results[0]->decision, DECISION(APPLIED));
    assert_int_equal(told->results[1]->decision, DECISION(UNSPECIFIED));
    assert_int_equal(told->results[2]->decision, DECISION(APPLIED));
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(told->results[i]->seq, 7 + i);
    assert_int_equal(told->n_later, 1);
    assert_int_equal(told->later[0], 8);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_read_waits_for_the_end_of_a_transaction),
        TEST(who_holds_the_player_is_told_to_a_read_that_does_not_wait),
        TEST(a_read_that_waited_in_vain_is_refused_before_its_deadline),
        TEST(so_many_reads_may_wait_and_no_more),
        TEST(a_deposed_owner_keeps_no_read_waiting),
        TEST(writes_wait_until_the_read_is_done),
        TEST(a_read_that_never_lets_go_is_not_waited_for_for_long),
        TEST(so_many_writes_wait_and_the_next_does_not),
        TEST(a_write_that_no_entry_takes_is_refused_and_does_not_wait),
        TEST(a_transaction_waits_in_its_outbox_unless_the_read_waits_for_it),
        TEST(what_is_left_out_of_a_batch_keeps_its_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
