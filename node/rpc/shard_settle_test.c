/* What other shards answer on its way into the log: whatever its size and whatever is damaged, it
 * holds up nothing else, and every transfer ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/channel.pb-c.h"
#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "holdfast/v1/operation_service.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/mailbox.h"
#include "node/core/rows/rows.h"
#include "node/core/shard/shard_internal.h"
#include "node/rpc/fixture_one_shard.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

#define DECISION(name) HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_##name
#define SHARDS         4u
#define DELIVERIES_MAX 16u
#define MAIL_ID        "00112233445566778899aabbccddeeff"

typedef Holdfast__Internal__V1__DeliverRequest deliver_request;
typedef Holdfast__Internal__V1__DeliverResponse deliver_response;
typedef Holdfast__Internal__V1__ChannelResult channel_result;

struct delivery {
    uint32_t to;
    uint64_t token;
    struct buf request;
};

/* Ann is of shard 0, which is here. The test answers for the others: bob's 1 and cy's 2. */
struct fixture {
    struct one_shard one;
    struct arena arena;
    struct delivery waiting[DELIVERIES_MAX];
    uint32_t waiting_count;
    enum reply_status last_status;
    char ann[16], bob[16], cy[16];
    char told[512];
    size_t refusal_bytes; /* Of what shard 1 answers to each record; 0: it applies mail. */
    size_t frame_max;     /* A larger answer of shard 1 cannot leave. */
    uint64_t breach_seq;  /* Of this record shard 1 says nothing; 0: none. */
    bool holds;           /* Shard 1 decides nothing until a person has repaired a row. */
    uint32_t first_sent;  /* How often the first record was sent there. */
    bool votes;           /* The others vote for what they are asked. */
    uint32_t records_max; /* The most that were sent at once. */
};

static void take_out(void *user, const struct shard_out *out)
{
    struct fixture *f = user;

    for (uint32_t i = 0; i < out->reply_count; i++)
        f->last_status = out->replies[i].status;
    for (uint32_t i = 0; i < out->incident_count; i++) {
        size_t used = strlen(f->told);
        (void)snprintf(f->told + used, sizeof f->told - used, "%s;", out->incidents[i].what);
    }
    for (uint32_t i = 0; i < out->delivery_count; i++) {
        assert_true(f->waiting_count < DELIVERIES_MAX);
        struct delivery *delivery = &f->waiting[f->waiting_count++];
        *delivery = (struct delivery){ .to = out->deliveries[i].destination,
                                       .token = out->deliveries[i].token };
        buf_append(&delivery->request, out->bytes.data + out->deliveries[i].offset,
                   out->deliveries[i].size);
    }
}

static void name_on(uint32_t shard, const char *stem, char ret_name[16])
{
    char entity[32];

    for (int i = 0; i < 100; i++) {
        snprintf(ret_name, 16, "%s%d", stem, i);
        snprintf(entity, sizeof entity, "player:%s", ret_name);
        if (shard_of_entity(slice_from_text(entity), SHARDS) == shard)
            return;
    }
    CHECK(false);
}

static Holdfast__V1__CurrencyAmount **gold_of(struct fixture *f, int64_t amount)
{
    Holdfast__V1__CurrencyAmount **list =
        arena_messages(&f->arena, &holdfast__v1__currency_amount__descriptor, 1);

    list[0]->currency = (char *)"gold";
    list[0]->amount = amount;
    return list;
}

static void grant(struct fixture *f, char *player, int64_t amount)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    char id[UUID_TEXT_SIZE];

    one_shard_op_id(&f->one, id);
    request.player_id = player;
    request.op_id = id;
    request.authority = (char *)"unheld";
    request.currencies = gold_of(f, amount);
    request.n_currencies = 1;
    one_shard_call(&f->one, METHOD_GRANT, &request.base);
    assert_int_equal(f->last_status, REPLY_OK);
}

static void pay(struct fixture *f, char *to, uint32_t number)
{
    Holdfast__V1__TransferCurrenciesRequest request =
        HOLDFAST__V1__TRANSFER_CURRENCIES_REQUEST__INIT;

    request.player_id = f->ann;
    request.to_player_id = to;
    request.op_id = arena_printf(&f->arena, "claim:%s:%u", to, number);
    request.authority = (char *)"unheld";
    request.currencies = gold_of(f, 1);
    request.n_currencies = 1;
    one_shard_call(&f->one, METHOD_TRANSFER_CURRENCIES, &request.base);
}

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    struct shard_image image = { .rep = { .votes = true, .log_first_index = 1 } };
    struct shard_limits limits = shard_limits_default();
    struct rep_record record = {
        .generation = 1, .epoch = 1, .owner = 7, .membership = { .config = 1, .count = 1 }
    };

    f->one.taken = take_out;
    f->one.user = f;
    f->frame_max = SIZE_MAX;
    limits.shard_count = SHARDS;
    limits.watermark_tell_ms = 500;
    record.membership.members[0] = 7;
    assert_int_equal(shard_new(7, &limits, node_handlers(), &image, &f->one.shard), ERR_OK);
    one_shard_step(&f->one, (struct shard_event){ .type = SHARD_RECORD, .record = &record });
    one_shard_policy(&f->one);
    name_on(0, "ann", f->ann);
    name_on(1, "bob", f->bob);
    name_on(2, "cy", f->cy);
    grant(f, f->ann, 10000);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    for (uint32_t i = 0; i < f->waiting_count; i++)
        buf_deinit(&f->waiting[i].request);
    shard_free(f->one.shard);
    arena_deinit(&f->arena);
    free(f);
    return 0;
}

/* ---- the other shards ---- */

static void reject(struct fixture *f, channel_result *result)
{
    char *text = arena_zalloc(&f->arena, f->refusal_bytes + 1);

    memset(text, 'a', f->refusal_bytes);
    result->decision = DECISION(REJECTED);
    result->refusal = (Holdfast__Internal__V1__Refusal *)arena_message(
        &f->arena, &holdfast__internal__v1__refusal__descriptor);
    result->refusal->code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_CAPACITY_FULL;
    result->refusal->message = text;
}

static void vote(struct fixture *f, const Holdfast__Internal__V1__TxnPrepare *prepare,
                 channel_result *result)
{
    result->vote = (Holdfast__Internal__V1__TxnVote *)arena_message(
        &f->arena, &holdfast__internal__v1__txn_vote__descriptor);
    result->vote->n_taken = prepare->n_parts;
    result->vote->taken =
        arena_messages(&f->arena, &holdfast__internal__v1__txn_taken__descriptor, prepare->n_parts);
    for (size_t i = 0; i < prepare->n_parts; i++)
        result->vote->taken[i]->player_id = prepare->parts[i]->player_id;
}

static void decide_credit(struct fixture *f, uint32_t shard,
                          const Holdfast__Internal__V1__ChannelCredit *credit,
                          channel_result *result)
{
    bool refused = credit->prepare != NULL ? !f->votes : shard == 1 && f->refusal_bytes > 0;

    result->seq = credit->seq;
    f->first_sent += shard == 1 && credit->seq == 1;
    if (shard == 1 && (f->holds || credit->seq == f->breach_seq)) {
        result->decision = f->holds ? DECISION(HELD) : DECISION(UNSPECIFIED);
        return;
    }
    if (refused) {
        reject(f, result);
        return;
    }
    result->decision = DECISION(APPLIED);
    if (credit->prepare != NULL)
        vote(f, credit->prepare, result);
    else
        result->mail_id = (char *)MAIL_ID;
}

static deliver_response *decide(struct fixture *f, const deliver_request *request)
{
    size_t count = request->n_credits + request->n_cancels;
    deliver_response *response = (deliver_response *)arena_message(
        &f->arena, &holdfast__internal__v1__deliver_response__descriptor);

    if (count > f->records_max)
        f->records_max = (uint32_t)count;
    response->watermark = request->watermark;
    response->n_results = count;
    response->results =
        arena_messages(&f->arena, &holdfast__internal__v1__channel_result__descriptor, count);
    for (size_t i = 0; i < count; i++) {
        channel_result *result = response->results[i];
        if (i < request->n_credits) {
            decide_credit(f, request->shard, request->credits[i], result);
        } else {
            result->seq = request->cancels[i - request->n_credits];
            result->decision = DECISION(CANCELLED);
        }
    }
    return response;
}

static void answer_one(struct fixture *f)
{
    struct delivery delivery = f->waiting[0];

    f->waiting_count--;
    memmove(f->waiting, f->waiting + 1, sizeof *f->waiting * f->waiting_count);
    const deliver_request *request =
        (const void *)arena_unpack(&f->arena, &holdfast__internal__v1__deliver_request__descriptor,
                                   buf_slice(&delivery.request));
    assert_non_null(request);
    struct slice body = arena_pack(&f->arena, &decide(f, request)->base);
    bool leaves = delivery.to != 1 || body.size <= f->frame_max;
    one_shard_step(&f->one, (struct shard_event){ .type = SHARD_DELIVERED,
                                                  .call = delivery.token,
                                                  .status = leaves ? REPLY_OK : REPLY_REFUSED,
                                                  .request = leaves ? body : (struct slice){ 0 } });
    buf_deinit(&delivery.request);
}

/* Time goes by, and all that is sent is answered. */
static void run(struct fixture *f, uint64_t ms)
{
    for (uint64_t end = f->one.now_ms + ms; f->one.now_ms < end; f->one.now_ms += 20) {
        one_shard_step(&f->one, (struct shard_event){ .type = SHARD_TICK });
        while (f->waiting_count > 0)
            answer_one(f);
        arena_reset(&f->arena);
    }
}

static uint64_t open_count(struct fixture *f)
{
    struct shard_stats stats;

    shard_stats_get(f->one.shard, &stats);
    return stats.transfers_open;
}

/* ---- size ---- */

#define SWAPS      8u
#define SWAP_ITEMS 40u

/* Bob is to give a player of this shard as many items. */
static void swap_open(struct fixture *f, char *player)
{
    Holdfast__Internal__V1__SwapGoodsRequest request =
        HOLDFAST__INTERNAL__V1__SWAP_GOODS_REQUEST__INIT;
    char *uids[SWAP_ITEMS];

    grant(f, player, 1);
    for (uint32_t i = 0; i < SWAP_ITEMS; i++)
        uids[i] = arena_printf(&f->arena, "%032x", i + 1);
    request.player_id = player;
    request.op_id = (char *)"claim:swap";
    request.authority = request.other_authority = (char *)"unheld";
    request.other_player_id = f->bob;
    request.currencies = gold_of(f, 1);
    request.n_currencies = 1;
    request.other_item_uids = uids;
    request.n_other_item_uids = SWAP_ITEMS;
    one_shard_call(&f->one, METHOD_SWAP_GOODS, &request.base);
}

static void seal(struct fixture *f, const char *player)
{
    Holdfast__V1__ResolveOperationRequest request = HOLDFAST__V1__RESOLVE_OPERATION_REQUEST__INIT;

    request.entity = arena_printf(&f->arena, "player:%s", player);
    request.op_id = (char *)"claim:swap";
    request.seal = true;
    one_shard_call(&f->one, METHOD_RESOLVE_OPERATION, &request.base);
}

/* The first leaves alone, and the others together once it is answered. */
static void pay_many(struct fixture *f, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        pay(f, f->bob, i);
    assert_int_equal(open_count(f), count);
}

static void an_answer_larger_than_an_entry_holds_up_no_other_shard(void **state)
{
    struct fixture *f = *state;

    f->refusal_bytes = 4500;
    pay_many(f, 257);
    answer_one(f);
    pay(f, f->cy, 0);
    run(f, 10000);
    assert_int_equal(f->records_max, 256);
    assert_int_equal(open_count(f), 0);
    assert_string_equal(f->told, "");
}

/* Each may be answered by a vote that was cast before: with all that bob gives for it. */
static void cancels_that_votes_may_answer_are_sent_a_few_at_once(void **state)
{
    struct fixture *f = *state;
    char players[SWAPS][16], stem[8];

    for (uint32_t i = 0; i < SWAPS; i++) {
        snprintf(stem, sizeof stem, "eve%u-", i);
        name_on(0, stem, players[i]);
        swap_open(f, players[i]);
    }
    assert_int_equal(open_count(f), SWAPS);
    for (uint32_t i = 0; i < SWAPS; i++)
        seal(f, players[i]);
    run(f, 1000);
    assert_int_equal(open_count(f), 0);
    assert_in_range(f->records_max, 2, 6);
}

static void an_answer_that_cannot_leave_comes_in_pieces(void **state)
{
    struct fixture *f = *state;

    f->refusal_bytes = 60000;
    f->frame_max = 4u << 20;
    pay_many(f, 257);
    run(f, 20000);
    assert_int_equal(open_count(f), 0);
}

static void a_decision_that_is_too_large_holds_up_its_own_record_alone(void **state)
{
    struct fixture *f = *state;

    f->refusal_bytes = 300000;
    pay_many(f, 3);
    pay(f, f->cy, 0);
    run(f, 1000);
    assert_int_equal(open_count(f), 3);
    assert_string_equal(f->told, "another shard answered a record with what cannot be logged;");
    f->refusal_bytes = 1000; /* The other shard's program is another one now. */
    run(f, 11000);
    assert_int_equal(open_count(f), 0);
}

/* Links fail meanwhile, so that batches are small. */
static void a_record_that_is_never_decided_holds_up_no_other(void **state)
{
    struct fixture *f = *state;

    f->breach_seq = 1;
    f->frame_max = 0;
    pay_many(f, 50);
    run(f, 10000);
    assert_int_equal(open_count(f), 50);
    f->frame_max = SIZE_MAX;
    run(f, 30000);
    assert_int_equal(open_count(f), 1);
}

static void what_is_held_is_asked_for_again_however_much_is_sent(void **state)
{
    struct fixture *f = *state;

    f->holds = true;
    for (uint32_t i = 0; i < 8; i++) {
        pay(f, f->bob, i);
        run(f, 5000);
    }
    assert_in_range(f->first_sent, 4, 5);
    f->holds = false;
    run(f, 11000);
    assert_int_equal(open_count(f), 0);
}

/* ---- damage at the source ---- */

static void put_row(struct fixture *f, const struct row_key *key, struct slice value)
{
    struct state *rows = applier_state(f->one.shard->applier);

    state_begin(rows);
    state_put(rows, row_key_slice(key), value);
    state_commit(rows);
}

/* Until the row is as it was, nothing ends that needs it; then all does. */
static void damage_and_repair(struct fixture *f, const struct row_key *key)
{
    struct slice found;
    struct buf stood = { 0 };

    assert_int_equal(state_find(applier_state(f->one.shard->applier), row_key_slice(key), &found),
                     STATE_PRESENT);
    buf_append(&stood, found.data, found.size);
    put_row(f, key, SLICE_LITERAL("\xff\xfe"));
    run(f, 30000);
    assert_true(open_count(f) > 0);
    put_row(f, key, buf_slice(&stood));
    buf_deinit(&stood);
    run(f, 60000);
    assert_int_equal(open_count(f), 0);
}

/* Two pieces of mail of bob's, which expire. */
static void mail_arrives(struct fixture *f)
{
    Holdfast__Internal__V1__ChannelCredit credits[2], *list[2];
    deliver_request request = HOLDFAST__INTERNAL__V1__DELIVER_REQUEST__INIT;
    Holdfast__V1__Mail mails[2];
    uint8_t hash[16] = { 1 };

    for (uint32_t i = 0; i < 2; i++) {
        holdfast__internal__v1__channel_credit__init(&credits[i]);
        holdfast__v1__mail__init(&mails[i]);
        mails[i].from_player_id = f->bob;
        mails[i].op_id = credits[i].op_id = (char *)"claim:mail";
        mails[i].currencies = gold_of(f, 5);
        mails[i].n_currencies = 1;
        mails[i].expires_at_ms = i == 0 ? (int64_t)ONE_SHARD_UNIX_MS + 1000 : 0;
        credits[i].seq = i + 1;
        credits[i].to_player_id = f->ann;
        credits[i].payload_hash = (ProtobufCBinaryData){ sizeof hash, hash };
        credits[i].mail = &mails[i];
        list[i] = &credits[i];
    }
    request.source = 1;
    request.credits = list;
    request.n_credits = 2;
    one_shard_call(&f->one, METHOD_CHANNEL_DELIVER, &request.base);
    assert_int_equal(f->last_status, REPLY_OK);
}

static void mail_that_comes_back_waits_for_its_mailbox_to_be_repaired(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ReturnExpiredMailRequest request =
        HOLDFAST__V1__RETURN_EXPIRED_MAIL_REQUEST__INIT;
    struct need need = { 0 };
    struct row_key key;
    uint32_t count;

    mail_arrives(f);
    f->one.now_ms += 2000;
    request.player_id = f->ann;
    request.op_id = (char *)"claim:return";
    request.authority = (char *)"system:payments";
    one_shard_call(&f->one, METHOD_RETURN_EXPIRED_MAIL, &request.base);
    assert_int_equal(open_count(f), 1);
    f->refusal_bytes = 10; /* Bob's mailbox is full. */
    row_key_mailbox(&key, entity_of_player(&f->arena, f->ann));
    damage_and_repair(f, &key);
    assert_int_equal(mailbox_count(applier_state(f->one.shard->applier),
                                   entity_of_player(&f->arena, f->ann), &need, &count),
                     ERR_OK);
    assert_int_equal(count, 2);
}

/* The decision has to be sent to cy's shard, too, and its channel cannot be read. */
static void a_transaction_waits_for_the_channel_to_another_member(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ExecuteTransactionRequest request =
        HOLDFAST__V1__EXECUTE_TRANSACTION_REQUEST__INIT;
    Holdfast__V1__TransactionPlayer others[2], *other_list[2];
    Holdfast__V1__TransactionGrant grants[2];
    Holdfast__V1__TransactionChange changes[2], *change_list[2];
    char *players[] = { f->bob, f->cy };
    struct row_key key;

    for (uint32_t i = 0; i < 2; i++) {
        holdfast__v1__transaction_player__init(&others[i]);
        holdfast__v1__transaction_grant__init(&grants[i]);
        holdfast__v1__transaction_change__init(&changes[i]);
        others[i].player_id = grants[i].player_id = players[i];
        others[i].authority = (char *)"unheld";
        grants[i].currencies = gold_of(f, 1);
        grants[i].n_currencies = 1;
        changes[i].change_case = HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_GRANT;
        changes[i].grant = &grants[i];
        other_list[i] = &others[i];
        change_list[i] = &changes[i];
    }
    request.player_id = f->ann;
    request.op_id = (char *)"claim:both";
    request.authority = (char *)"unheld";
    request.others = other_list;
    request.changes = change_list;
    request.n_others = request.n_changes = 2;
    one_shard_call(&f->one, METHOD_EXECUTE_TRANSACTION, &request.base);
    assert_int_equal(f->waiting_count, 2);
    f->votes = true;
    if (f->waiting[0].to == 1) { /* Cy's vote is settled first. */
        const struct delivery first = f->waiting[0];
        f->waiting[0] = f->waiting[1];
        f->waiting[1] = first;
    }
    answer_one(f);
    assert_int_equal(open_count(f), 1);
    row_key_channel(&key, true, 2);
    damage_and_repair(f, &key);
}

int main(void)
{
#define SETTLE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        SETTLE_TEST(an_answer_larger_than_an_entry_holds_up_no_other_shard),
        SETTLE_TEST(cancels_that_votes_may_answer_are_sent_a_few_at_once),
        SETTLE_TEST(an_answer_that_cannot_leave_comes_in_pieces),
        SETTLE_TEST(a_decision_that_is_too_large_holds_up_its_own_record_alone),
        SETTLE_TEST(a_record_that_is_never_decided_holds_up_no_other),
        SETTLE_TEST(what_is_held_is_asked_for_again_however_much_is_sent),
        SETTLE_TEST(mail_that_comes_back_waits_for_its_mailbox_to_be_repaired),
        SETTLE_TEST(a_transaction_waits_for_the_channel_to_another_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
