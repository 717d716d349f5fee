#include "node/rpc/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "holdfast/internal/v1/channel.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "idl/error_tell.h"
#include "node/core/channel/channel_out.h"
#include "node/core/goods/goods.h"
#include "node/core/goods/mailbox.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

#define ACTION(name)   HOLDFAST__V1__ACTION__ACTION_##name
#define DECISION(name) HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_##name

typedef Holdfast__Internal__V1__DeliverRequest deliver_request;
typedef Holdfast__Internal__V1__DeliverResponse deliver_response;

/* A cluster of two shards; ann lives on the first, bob on the second. What travels between them
 * is carried by hand, so that a test says when. */
struct pair {
    struct fixture first, second;
    char ann[16], bob[16];
};

static void name_on(uint32_t shard, const char *stem, char ret_name[16])
{
    char entity[32];

    for (int i = 0; i < 100; i++) {
        snprintf(ret_name, 16, "%s%d", stem, i);
        snprintf(entity, sizeof entity, "player:%s", ret_name);
        if (shard_of_entity(slice_from_text(entity), 2) == shard)
            return;
    }
    CHECK(false);
}

static int setup(void **state)
{
    struct pair *p = mem_zalloc(sizeof *p);

    fixture_init_shard(&p->first, 0, 2);
    fixture_init_shard(&p->second, 1, 2);
    name_on(0, "ann", p->ann);
    name_on(1, "bob", p->bob);
    assert_non_null(fixture_grant(&p->first, p->ann, "unheld", 100));
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct pair *p = *state;

    fixture_deinit(&p->first);
    fixture_deinit(&p->second);
    free(p);
    return 0;
}

/* Attempt 0 unless said otherwise. Returns the answer, or NULL: pending or refused. */
static void *pay_attempt(struct pair *p, int64_t gold, const char *op_id, uint32_t attempt)
{
    Holdfast__V1__TransferCurrenciesRequest request =
        HOLDFAST__V1__TRANSFER_CURRENCIES_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };

    amount.currency = (char *)"gold";
    amount.amount = gold;
    request.player_id = p->ann;
    request.to_player_id = p->bob;
    request.op_id = text_lend(op_id);
    request.attempt = attempt;
    request.authority = fixture_authority(&p->first, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    return fixture_mutate(&p->first, METHOD_TRANSFER_CURRENCIES, &request.base);
}

static void pay(struct pair *p, int64_t gold, const char *op_id)
{
    assert_null(pay_attempt(p, gold, op_id, 0));
    assert_int_equal(p->first.outcome.kind, OUTCOME_PENDING);
}

static Holdfast__Internal__V1__OutboxRow *record(struct pair *p, uint64_t seq)
{
    Holdfast__Internal__V1__OutboxRow *row = NULL;

    if (outbox_find(applier_state(p->first.applier), &p->first.arena,
                    (struct channel_ref){ 1, seq }, NULL, &row) != STATE_PRESENT)
        return NULL;
    return row;
}

/* What the owner of the first shard would send now: what is open, and its watermark. */
static deliver_request *batch(struct pair *p)
{
    Holdfast__Internal__V1__ChannelOutRow *stands = NULL;
    deliver_request *request = arena_alloc(&p->first.arena, sizeof *request);

    holdfast__internal__v1__deliver_request__init(request);
    assert_int_equal(
        channel_out_find(applier_state(p->first.applier), &p->first.arena, 1, NULL, &stands),
        STATE_PRESENT);
    request->shard = 1;
    request->watermark = stands->watermark;
    request->credits = arena_alloc(&p->first.arena, sizeof *request->credits * 16);
    request->cancels = arena_alloc(&p->first.arena, sizeof *request->cancels * 16);
    for (uint64_t seq = stands->watermark + 1; seq <= stands->last_seq; seq++) {
        Holdfast__Internal__V1__OutboxRow *row = record(p, seq);
        if (row != NULL && row->cancel)
            request->cancels[request->n_cancels++] = seq;
        else if (row != NULL)
            request->credits[request->n_credits++] = row->credit;
    }
    return request;
}

static deliver_response *deliver(struct pair *p, const deliver_request *request)
{
    deliver_response *response = fixture_mutate(&p->second, METHOD_CHANNEL_DELIVER, &request->base);

    assert_non_null(response);
    assert_int_equal(response->n_results, request->n_credits + request->n_cancels);
    return response;
}

/* The owner of the first shard logs what it was told. */
static void settle(struct pair *p, const deliver_response *response)
{
    Holdfast__Internal__V1__SettleRequest request = HOLDFAST__INTERNAL__V1__SETTLE_REQUEST__INIT;
    Holdfast__Internal__V1__SettleItem *items[16];
    struct buf body = { 0 };

    request.destination = 1;
    request.items = items;
    for (size_t i = 0; i < response->n_results; i++) {
        Holdfast__Internal__V1__OutboxRow *row = record(p, response->results[i]->seq);
        items[request.n_items] = arena_alloc(&p->first.arena, sizeof **items);
        holdfast__internal__v1__settle_item__init(items[request.n_items]);
        items[request.n_items]->result = response->results[i];
        items[request.n_items]->player_id = p->ann;
        if (row != NULL)
            items[request.n_items]->op_id = row->credit->op_id;
        request.n_items++;
    }
    owner_op_encode(METHOD_CHANNEL_SETTLE, (struct slice){ 0 }, &request.base, &body);
    fixture_commit(&p->first, buf_slice(&body));
    assert_int_equal(p->first.outcome.method, METHOD_CHANNEL_SETTLE);
    buf_deinit(&body);
}

static uint32_t mail_count(struct pair *p)
{
    Holdfast__V1__ListMailRequest request = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;

    request.player_id = p->bob;
    Holdfast__V1__ListMailResponse *response =
        fixture_read(&p->second, METHOD_LIST_MAIL, &request.base);
    assert_non_null(response);
    assert_int_equal(response->total, response->n_mails);
    return response->total;
}

static int64_t gold_of_ann(struct pair *p)
{
    return fixture_balance(&p->first, p->ann, "gold");
}

static uint64_t open_records(struct pair *p)
{
    return applier_meta(p->first.applier)->outbox_open;
}

static int state_of(struct pair *p, const char *op_id)
{
    return (int)fixture_operation(&p->first, p->ann, op_id)->state;
}

static void a_transfer_is_pending_until_it_is_decided_where_it_goes(void **state)
{
    struct pair *p = *state;

    pay(p, 30, "claim:a");
    assert_int_equal(gold_of_ann(p), 70);
    assert_int_equal(state_of(p, "claim:a"), OPERATION(PENDING));
    assert_int_equal(open_records(p), 1);
    deliver_response *response = deliver(p, batch(p));
    assert_int_equal(response->results[0]->decision, DECISION(APPLIED));
    assert_int_equal(mail_count(p), 1);
    assert_int_equal(state_of(p, "claim:a"), OPERATION(PENDING));
    settle(p, response);
    assert_int_equal(open_records(p), 0);
    Holdfast__Internal__V1__OperationRecord *status =
        fixture_operation(&p->first, p->ann, "claim:a");
    assert_int_equal(status->state, OPERATION(COMMITTED));
    Holdfast__V1__TransferCurrenciesResponse *told =
        holdfast__v1__transfer_currencies_response__unpack(NULL, status->result.len,
                                                           status->result.data);
    assert_non_null(told);
    assert_string_equal(told->mail_id, response->results[0]->mail_id);
    assert_int_equal(told->balances[0]->amount, 70);
    assert_int_equal(told->write->version, 2);
    holdfast__v1__transfer_currencies_response__free_unpacked(told, NULL);
}

static void a_retry_of_a_pending_transfer_opens_no_second_record(void **state)
{
    struct pair *p = *state;

    pay(p, 30, "claim:a");
    pay(p, 30, "claim:a");
    assert_true(p->first.outcome.duplicate);
    assert_int_equal(p->first.outcome.channel.opened_seq, 1);
    assert_int_equal(open_records(p), 1);
    settle(p, deliver(p, batch(p)));
    Holdfast__V1__TransferCurrenciesResponse *again = pay_attempt(p, 30, "claim:a", 0);
    assert_non_null(again);
    assert_true(again->write->duplicate);
    assert_int_equal(gold_of_ann(p), 70);
}

static void a_credit_that_comes_twice_is_applied_once(void **state)
{
    struct pair *p = *state;

    pay(p, 30, "claim:a");
    deliver_request *request = batch(p);
    deliver_response *first = deliver(p, request);
    fixture_restart(&p->second);
    deliver_response *again = deliver(p, request);
    assert_int_equal(again->results[0]->decision, DECISION(APPLIED));
    assert_string_equal(again->results[0]->mail_id, first->results[0]->mail_id);
    assert_int_equal(mail_count(p), 1);
    settle(p, first);
    settle(p, again);
    assert_int_equal(gold_of_ann(p), 70);
}

static void what_comes_for_the_first_time_is_not_looked_for(void **state)
{
    struct pair *p = *state;

    pay(p, 10, "claim:a");
    settle(p, deliver(p, batch(p)));
    uint64_t rounds = p->second.need_rounds;
    pay(p, 20, "claim:b");
    deliver_request *request = batch(p);
    assert_int_equal(deliver(p, request)->results[0]->decision, DECISION(APPLIED));
    assert_int_equal(p->second.need_rounds, rounds);
    fixture_restart(&p->second);
    assert_int_equal(deliver(p, request)->results[0]->decision, DECISION(APPLIED));
    assert_true(p->second.need_rounds > rounds);
    assert_int_equal(mail_count(p), 2);
}

/* A record that could not be read for a while comes after later ones. */
static void what_is_new_below_what_was_decided_is_applied_once(void **state)
{
    struct pair *p = *state;

    pay(p, 1, "claim:a");
    pay(p, 2, "claim:b");
    pay(p, 3, "claim:c");
    deliver_request *all = batch(p);
    deliver_request last = *all;
    last.credits = &all->credits[1];
    last.n_credits = 2;
    deliver(p, &last);
    fixture_restart(&p->second);
    deliver_response *response = deliver(p, all);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(response->results[i]->decision, DECISION(APPLIED));
    assert_int_equal(mail_count(p), 3);
    deliver(p, all);
    assert_int_equal(mail_count(p), 3);
}

/* It has decisions of which the channel's row says nothing. */
static void nothing_is_taken_for_new_in_data_of_an_earlier_build(void **state)
{
    struct pair *p = *state;
    struct fixture *second = &p->second;

    pay(p, 10, "claim:a");
    deliver_request *request = batch(p);
    deliver(p, request);
    fixture_checkpoint(second);
    for (uint32_t i = 0; i < second->row_count; i++) {
        if (second->rows[i].key.data[0] == TABLE_CHANNEL)
            buf_clear(&second->rows[i].value);
    }
    second->meta_row.data[0] = 5;
    second->meta_row.size--;
    fixture_reopen(second);
    assert_int_equal(deliver(p, request)->results[0]->decision, DECISION(APPLIED));
    assert_int_equal(mail_count(p), 1);
}

static void a_credit_below_the_watermark_is_ignored(void **state)
{
    struct pair *p = *state;

    pay(p, 10, "claim:a");
    deliver_request *late = batch(p);
    settle(p, deliver(p, late));
    pay(p, 20, "claim:b");
    deliver_response *response = deliver(p, batch(p));
    assert_int_equal(response->watermark, 1);
    fixture_restart(&p->second); /* Its inbox record is gone from everywhere. */
    response = deliver(p, late);
    assert_int_equal(response->results[0]->decision, DECISION(SETTLED));
    assert_int_equal(mail_count(p), 2);
    deliver_request cancel = HOLDFAST__INTERNAL__V1__DELIVER_REQUEST__INIT;
    uint64_t seq = 1;
    cancel.shard = 1;
    cancel.cancels = &seq;
    cancel.n_cancels = 1;
    assert_int_equal(deliver(p, &cancel)->results[0]->decision, DECISION(SETTLED));
}

static void the_watermark_never_passes_an_open_record(void **state)
{
    struct pair *p = *state;

    pay(p, 1, "claim:a");
    pay(p, 2, "claim:b");
    pay(p, 3, "claim:c");
    deliver_request *all = batch(p);
    deliver_request last = *all;
    last.credits = &all->credits[1];
    last.n_credits = 2;
    settle(p, deliver(p, &last));
    assert_int_equal(batch(p)->watermark, 0);
    fixture_restart(&p->first);
    settle(p, deliver(p, all));
    assert_int_equal(batch(p)->watermark, 3);
    assert_int_equal(mail_count(p), 3);
}

static void fill_mailbox_of_bob(struct pair *p)
{
    Holdfast__Internal__V1__DeliverToPlayerRequest mail =
        HOLDFAST__INTERNAL__V1__DELIVER_TO_PLAYER_REQUEST__INIT;

    mail.player_id = p->bob;
    mail.authority = fixture_authority(&p->second, "system:mail");
    mail.text = (char *)"hi";
    for (uint32_t i = 0; i < 300; i++) {
        mail.op_id = fixture_op_id(&p->second);
        assert_non_null(fixture_mutate(&p->second, METHOD_DELIVER_TO_PLAYER, &mail.base));
    }
}

static void what_is_rejected_is_refunded(void **state)
{
    struct pair *p = *state;

    fill_mailbox_of_bob(p);
    pay(p, 30, "claim:a");
    deliver_response *response = deliver(p, batch(p));
    assert_int_equal(response->results[0]->decision, DECISION(REJECTED));
    assert_int_equal(response->results[0]->refusal->code, ERROR(CAPACITY_FULL));
    fixture_restart(&p->first);
    settle(p, response);
    assert_int_equal(gold_of_ann(p), 100);
    Holdfast__Internal__V1__OperationRecord *status =
        fixture_operation(&p->first, p->ann, "claim:a");
    assert_int_equal(status->state, OPERATION(REFUSED));
    assert_int_equal(status->refusal->code, ERROR(CAPACITY_FULL));
    /* The same attempt gets the refusal back; a higher one is carried out again. */
    assert_null(pay_attempt(p, 30, "claim:a", 0));
    assert_int_equal(p->first.error->code, ERROR(CAPACITY_FULL));
    assert_null(pay_attempt(p, 30, "claim:a", 1));
    assert_int_equal(p->first.outcome.kind, OUTCOME_PENDING);
    assert_int_equal(gold_of_ann(p), 70);
    Holdfast__V1__ListEntriesRequest entries = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;
    entries.player_id = p->ann;
    Holdfast__V1__ListEntriesResponse *ledger =
        fixture_read(&p->first, METHOD_LIST_ENTRIES, &entries.base);
    assert_int_equal(ledger->n_entries, 4);
    assert_int_equal(ledger->entries[1]->kind, HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_REFUND);
    assert_string_equal(ledger->entries[1]->op_id, "claim:a");
    assert_int_equal(ledger->entries[1]->changes[0]->balance_after, 100);
    assert_int_equal(ledger->entries[1]->n_counterparts, 1);
    assert_string_equal(ledger->entries[1]->counterparts[0], p->bob);
}

static void seal(struct pair *p, const char *op_id)
{
    Holdfast__V1__ResolveOperationRequest request = HOLDFAST__V1__RESOLVE_OPERATION_REQUEST__INIT;
    char entity[32];

    snprintf(entity, sizeof entity, "player:%s", p->ann);
    request.entity = entity;
    request.op_id = text_lend(op_id);
    request.seal = true;
    (void)fixture_mutate(&p->first, METHOD_RESOLVE_OPERATION, &request.base);
}

static void a_seal_of_a_pending_transfer_is_decided_where_it_goes(void **state)
{
    struct pair *p = *state;

    pay(p, 30, "claim:a");
    deliver_request *late = batch(p);
    seal(p, "claim:a");
    assert_int_equal(p->first.outcome.kind, OUTCOME_PENDING);
    assert_int_equal(gold_of_ann(p), 70);
    deliver_response *response = deliver(p, batch(p));
    assert_int_equal(response->results[0]->decision, DECISION(CANCELLED));
    settle(p, response);
    assert_int_equal(gold_of_ann(p), 100);
    assert_int_equal(state_of(p, "claim:a"), OPERATION(ABORTED));
    /* The credit, late, and the caller's retry, later still: never again. */
    assert_int_equal(deliver(p, late)->results[0]->decision, DECISION(CANCELLED));
    assert_int_equal(mail_count(p), 0);
    assert_null(pay_attempt(p, 30, "claim:a", 7));
    assert_int_equal(p->first.error->code, ERROR(OPERATION_ABORTED));
    assert_int_equal(gold_of_ann(p), 100);
}

static void a_seal_that_comes_too_late_finds_it_committed(void **state)
{
    struct pair *p = *state;

    pay(p, 30, "claim:a");
    (void)deliver(p, batch(p)); /* Its answer is lost. */
    seal(p, "claim:a");
    deliver_response *response = deliver(p, batch(p));
    assert_int_equal(response->results[0]->decision, DECISION(APPLIED));
    settle(p, response);
    assert_int_equal(state_of(p, "claim:a"), OPERATION(COMMITTED));
    assert_int_equal(gold_of_ann(p), 70);
    assert_int_equal(mail_count(p), 1);
}

static void a_record_that_means_something_else_decides_nothing(void **state)
{
    struct pair *p = *state;

    pay(p, 30, "claim:a");
    deliver_request *request = batch(p);
    (void)deliver(p, request);
    request->credits[0]->payload_hash.data[0] ^= 1;
    deliver_response *response = deliver(p, request);
    assert_int_equal(response->results[0]->decision, DECISION(UNSPECIFIED));
    settle(p, response);
    assert_int_equal(open_records(p), 1);
    assert_int_equal(state_of(p, "claim:a"), OPERATION(PENDING));
}

static void pruning_leaves_what_is_on_its_way(void **state)
{
    struct pair *p = *state;
    char op_id[UUID_TEXT_SIZE];

    fixture_policy(&p->first, 900000, 0);
    snprintf(op_id, sizeof op_id, "%s", fixture_op_id(&p->first));
    pay(p, 30, op_id);
    p->first.now_ms += 1;
    assert_non_null(fixture_grant(&p->first, p->ann, "unheld", 1));
    (void)fixture_pass(&p->first, 2000000);
    assert_int_equal(state_of(p, op_id), OPERATION(PENDING));
    p->second.now_ms = p->first.now_ms;
    settle(p, deliver(p, batch(p)));
    assert_int_equal(state_of(p, op_id), OPERATION(COMMITTED));
    (void)fixture_pass(&p->first, 500000);
    assert_int_equal(state_of(p, op_id), OPERATION(COMMITTED)); /* For those who waited. */
    (void)fixture_pass(&p->first, 2000000);
    assert_int_equal(state_of(p, op_id), OPERATION(EXPIRED));
}

static void expired_mail_goes_back_across_shards(void **state)
{
    struct pair *p = *state;
    Holdfast__V1__SendMailRequest mail = HOLDFAST__V1__SEND_MAIL_REQUEST__INIT;
    Holdfast__V1__ReturnExpiredMailRequest back = HOLDFAST__V1__RETURN_EXPIRED_MAIL_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };

    gold.currency = (char *)"gold";
    gold.amount = 30;
    mail.player_id = p->ann;
    mail.to_player_id = p->bob;
    mail.op_id = (char *)"claim:a";
    mail.authority = fixture_authority(&p->first, "unheld");
    mail.currencies = amounts;
    mail.n_currencies = 1;
    mail.expires_in_ms = 60000;
    assert_null(fixture_mutate(&p->first, METHOD_SEND_MAIL, &mail.base));
    settle(p, deliver(p, batch(p)));
    p->second.now_ms += 60000;
    back.player_id = p->bob;
    back.op_id = fixture_op_id(&p->second);
    back.authority = fixture_authority(&p->second, "system:mail");
    Holdfast__V1__ReturnExpiredMailResponse *response =
        fixture_mutate(&p->second, METHOD_RETURN_EXPIRED_MAIL, &back.base);
    assert_non_null(response);
    assert_int_equal(response->returned, 1);
    assert_int_equal(mail_count(p), 0);
    assert_int_equal(applier_meta(p->second.applier)->outbox_open, 1);
}

static void refunds_fit_because_too_much_is_never_on_its_way(void **state)
{
    struct pair *p = *state;

    assert_non_null(fixture_grant(&p->first, p->ann, "unheld", AMOUNT_MAX - 100));
    pay(p, AMOUNT_MAX, "claim:all");
    assert_non_null(fixture_grant(&p->first, p->ann, "unheld", AMOUNT_MAX));
    /* A large one would not fit beside it; a small one does. */
    assert_null(pay_attempt(p, GOODS_LARGE + 1, "claim:large", 0));
    assert_int_equal(p->first.error->code, ERROR(THROTTLED));
    assert_string_equal(p->first.error->field, "currencies[\"gold\"].amount");
    assert_int_equal(gold_of_ann(p), AMOUNT_MAX);
    pay(p, GOODS_LARGE, "claim:small");
    assert_non_null(fixture_grant(&p->first, p->ann, "unheld", GOODS_LARGE));
    seal(p, "claim:all");
    seal(p, "claim:small");
    settle(p, deliver(p, batch(p)));
    assert_int_equal(gold_of_ann(p), 2 * AMOUNT_MAX + GOODS_LARGE);
    /* Nothing is on its way any more. */
    pay(p, AMOUNT_MAX, "claim:again");
    settle(p, deliver(p, batch(p)));
    assert_int_equal(state_of(p, "claim:again"), OPERATION(COMMITTED));
    pay(p, AMOUNT_MAX, "claim:and-again");
}

static void reserve(struct pair *p, int64_t gold, const char *op_id)
{
    Holdfast__V1__ReserveCurrenciesRequest request = HOLDFAST__V1__RESERVE_CURRENCIES_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };

    amount.currency = (char *)"gold";
    amount.amount = gold;
    request.player_id = p->ann;
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(&p->first, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    request.expires_in_ms = 5000;
    assert_non_null(fixture_mutate(&p->first, METHOD_RESERVE_CURRENCIES, &request.base));
}

static void *post_attempt(struct pair *p, const char *reserve_op_id, const char *op_id,
                          uint32_t attempt)
{
    Holdfast__V1__PostReservationRequest request = HOLDFAST__V1__POST_RESERVATION_REQUEST__INIT;

    request.player_id = p->ann;
    request.to_player_id = p->bob;
    request.op_id = text_lend(op_id);
    request.attempt = attempt;
    request.authority = fixture_authority(&p->first, "unheld");
    request.reserve_op_id = text_lend(reserve_op_id);
    return fixture_mutate(&p->first, METHOD_POST_RESERVATION, &request.base);
}

static void post(struct pair *p, const char *reserve_op_id, const char *op_id)
{
    assert_null(post_attempt(p, reserve_op_id, op_id, 0));
    assert_int_equal(p->first.outcome.kind, OUTCOME_PENDING);
}

static void a_post_to_another_shard_is_decided_there(void **state)
{
    struct pair *p = *state;

    reserve(p, 60, "claim:bid");
    post(p, "claim:bid", "claim:sold");
    deliver_response *response = deliver(p, batch(p));
    fixture_restart(&p->first);
    settle(p, response);
    assert_int_equal(state_of(p, "claim:sold"), OPERATION(COMMITTED));
    assert_int_equal(mail_count(p), 1);
    assert_int_equal(gold_of_ann(p), 40);
    assert_int_equal(fixture_pass(&p->first, 20000), 0);
    assert_int_equal(gold_of_ann(p), 40);
}

static void a_post_that_is_cancelled_gives_back_to_the_balance(void **state)
{
    struct pair *p = *state;

    reserve(p, 60, "claim:bid");
    post(p, "claim:bid", "claim:sold");
    seal(p, "claim:sold");
    settle(p, deliver(p, batch(p)));
    assert_int_equal(state_of(p, "claim:sold"), OPERATION(ABORTED));
    assert_int_equal(mail_count(p), 0);
    assert_int_equal(gold_of_ann(p), 100);
    assert_int_equal(fixture_pass(&p->first, 20000), 0);
    assert_int_equal(gold_of_ann(p), 100);
}

/* What the client of ann's last call is told. */
static void check_told(struct pair *p, int code, int action)
{
    struct arena arena = { 0 };

    assert_non_null(p->first.error);
    Holdfast__V1__ErrorDetail told = error_tell(p->first.error, &arena);
    assert_int_equal(told.code, code);
    assert_int_equal(told.outcome, HOLDFAST__V1__OUTCOME__OUTCOME_REFUSED);
    assert_int_equal(told.action, action);
    arena_deinit(&arena);
}

static void a_post_that_came_back_is_never_told_as_done(void **state)
{
    struct pair *p = *state;

    fill_mailbox_of_bob(p);
    reserve(p, 60, "claim:bid");
    post(p, "claim:bid", "claim:sold");
    assert_null(post_attempt(p, "claim:bid", "claim:again", 0));
    check_told(p, ERROR(RESERVATION_CLOSED), ACTION(RAISE_ATTEMPT)); /* It is not decided yet. */
    assert_true(p->first.error->on_its_way);
    settle(p, deliver(p, batch(p)));
    assert_int_equal(gold_of_ann(p), 100);
    fixture_restart(&p->first);
    assert_null(post_attempt(p, "claim:bid", "claim:sold", 0));
    check_told(p, ERROR(CAPACITY_FULL), ACTION(REREAD));
    assert_non_null(strstr(p->first.error->message, "reserve again"));
    assert_null(post_attempt(p, "claim:bid", "claim:sold", 1));
    check_told(p, ERROR(RESERVATION_CLOSED), ACTION(REREAD));
    assert_string_equal(p->first.error->value, "3");
    assert_non_null(strstr(p->first.error->message, "in the balance again"));
    assert_null(post_attempt(p, "claim:bid", "claim:again", 1));
    check_told(p, ERROR(RESERVATION_CLOSED), ACTION(REREAD));
    assert_int_equal(gold_of_ann(p), 100);
}

static void a_post_that_arrived_is_told_as_done(void **state)
{
    struct pair *p = *state;

    reserve(p, 60, "claim:bid");
    post(p, "claim:bid", "claim:sold");
    settle(p, deliver(p, batch(p)));
    assert_null(post_attempt(p, "claim:bid", "claim:again", 0));
    check_told(p, ERROR(RESERVATION_CLOSED), ACTION(NEVER));
    assert_false(p->first.error->came_back || p->first.error->on_its_way);
}

/* The id of the post stands for a later operation, and its ledger entry still tells. */
static void a_post_that_was_sealed_came_back_too(void **state)
{
    struct pair *p = *state;

    reserve(p, 60, "claim:bid");
    post(p, "claim:bid", "key:sold");
    seal(p, "key:sold");
    settle(p, deliver(p, batch(p)));
    assert_int_equal(gold_of_ann(p), 100);
    assert_null(post_attempt(p, "claim:bid", "claim:again", 0));
    check_told(p, ERROR(RESERVATION_CLOSED), ACTION(REREAD));
}

static void a_record_that_cannot_be_read_stays_and_holds_nothing_up(void **state)
{
    struct pair *p = *state;
    struct row_key key;

    pay(p, 10, "claim:a");
    pay(p, 20, "claim:b");
    deliver_response *response = deliver(p, batch(p));
    row_key_outbox(&key, 1, 1);
    state_begin(applier_state(p->first.applier));
    state_put(applier_state(p->first.applier), row_key_slice(&key), SLICE_LITERAL("\377\377"));
    state_commit(applier_state(p->first.applier));
    settle(p, response);
    assert_int_equal(open_records(p), 1);
    assert_int_equal(state_of(p, "claim:a"), OPERATION(PENDING));
    assert_int_equal(state_of(p, "claim:b"), OPERATION(COMMITTED));
    seal(p, "claim:a");
    assert_int_equal(state_of(p, "claim:a"), OPERATION(PENDING));
    assert_int_equal(applier_meta(p->first.applier)->unread_rows, 1);
}

int main(void)
{
#define PAIR_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        PAIR_TEST(a_transfer_is_pending_until_it_is_decided_where_it_goes),
        PAIR_TEST(a_retry_of_a_pending_transfer_opens_no_second_record),
        PAIR_TEST(a_credit_that_comes_twice_is_applied_once),
        PAIR_TEST(what_comes_for_the_first_time_is_not_looked_for),
        PAIR_TEST(what_is_new_below_what_was_decided_is_applied_once),
        PAIR_TEST(nothing_is_taken_for_new_in_data_of_an_earlier_build),
        PAIR_TEST(a_credit_below_the_watermark_is_ignored),
        PAIR_TEST(the_watermark_never_passes_an_open_record),
        PAIR_TEST(what_is_rejected_is_refunded),
        PAIR_TEST(a_seal_of_a_pending_transfer_is_decided_where_it_goes),
        PAIR_TEST(a_seal_that_comes_too_late_finds_it_committed),
        PAIR_TEST(a_record_that_means_something_else_decides_nothing),
        PAIR_TEST(pruning_leaves_what_is_on_its_way),
        PAIR_TEST(expired_mail_goes_back_across_shards),
        PAIR_TEST(refunds_fit_because_too_much_is_never_on_its_way),
        PAIR_TEST(a_post_to_another_shard_is_decided_there),
        PAIR_TEST(a_post_that_came_back_is_never_told_as_done),
        PAIR_TEST(a_post_that_arrived_is_told_as_done),
        PAIR_TEST(a_post_that_was_sealed_came_back_too),
        PAIR_TEST(a_post_that_is_cancelled_gives_back_to_the_balance),
        PAIR_TEST(a_record_that_cannot_be_read_stays_and_holds_nothing_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
