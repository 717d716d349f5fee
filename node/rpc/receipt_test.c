/* Receipts across shards, step by step: who may have one, what is carried, what is lost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/inventory.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "node/rpc/fixture_shards.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

#define ITEMS 2u

/* ann and amy live on shard 0, bob on 1. The receipt's own shard is 2; `near` is one of shard 0. */
struct world {
    struct fixture_shards s;
    char ann[16], amy[16], bob[16];
    char receipt[32], near[32];
};

#define HOME(w) (&(w)->s.shards[0])

static void receipt_on(uint32_t shard, char ret_receipt[32])
{
    for (int i = 0; i < 100; i++) {
        snprintf(ret_receipt, 32, "receipt:GPA.%d", i);
        if (shard_of_entity(slice_from_text(ret_receipt), FIXTURE_SHARDS) == shard)
            return;
    }
    CHECK(false);
}

static int setup(void **state)
{
    struct world *w = mem_zalloc(sizeof *w);

    fixture_shards_init(&w->s);
    fixture_name_on(0, "ann", w->ann);
    fixture_name_on(0, "amy", w->amy);
    fixture_name_on(1, "bob", w->bob);
    receipt_on(2, w->receipt);
    receipt_on(0, w->near);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    fixture_shards_deinit(&w->s);
    free(w);
    return 0;
}

static Holdfast__V1__ItemSpec **hats(struct world *w, uint32_t count)
{
    Holdfast__V1__ItemSpec **list =
        arena_messages(&w->s.arena, &holdfast__v1__item_spec__descriptor, count);

    for (uint32_t i = 0; i < count; i++)
        list[i]->kind = (char *)"hat";
    return list;
}

struct purchase {
    uint32_t shard;
    const char *player, *receipt, *authority;
    int64_t gold;
    uint32_t attempt;
};

/* NULL: pending or refused. */
static Holdfast__V1__GrantResponse *buy(struct world *w, const struct purchase *p)
{
    struct fixture *f = &w->s.shards[p->shard];
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };

    amount.currency = (char *)"gold";
    amount.amount = p->gold > 0 ? p->gold : 50;
    request.player_id = text_lend(p->player);
    request.op_id = text_lend(p->receipt != NULL ? p->receipt : w->receipt);
    request.attempt = p->attempt;
    request.authority =
        fixture_authority(f, p->authority != NULL ? p->authority : "system:payments");
    request.currencies = amounts;
    request.n_currencies = 1;
    request.items = hats(w, ITEMS);
    request.n_items = ITEMS;
    return fixture_mutate(f, METHOD_GRANT, &request.base);
}

static void buy_pending(struct world *w, const struct purchase *p)
{
    assert_null(buy(w, p));
    assert_int_equal(w->s.shards[p->shard].outcome.kind, OUTCOME_PENDING);
}

static Holdfast__Internal__V1__OperationRecord *status(struct world *w, uint32_t shard,
                                                       const char *player)
{
    return fixture_operation(&w->s.shards[shard], player, w->receipt);
}

static int64_t gold(struct world *w, uint32_t shard, const char *player)
{
    return fixture_balance(&w->s.shards[shard], player, "gold");
}

/* What the receipt's own shard says. */
static Holdfast__Internal__V1__OperationRecord *binding(struct world *w, uint32_t shard,
                                                        const char *receipt)
{
    Holdfast__V1__GetOperationRequest request = HOLDFAST__V1__GET_OPERATION_REQUEST__INIT;

    request.entity = request.op_id = text_lend(receipt);
    Holdfast__Internal__V1__OperationAnswer *response =
        fixture_read(&w->s.shards[shard], METHOD_GET_OPERATION, &request.base);
    assert_non_null(response);
    return response->operation;
}

static Holdfast__Internal__V1__OperationRecord *resolve(struct world *w, uint32_t shard,
                                                        const char *entity, const char *op_id)
{
    Holdfast__V1__ResolveOperationRequest request = HOLDFAST__V1__RESOLVE_OPERATION_REQUEST__INIT;

    request.entity = text_lend(entity);
    request.op_id = text_lend(op_id);
    request.seal = true;
    Holdfast__Internal__V1__OperationAnswer *response =
        fixture_mutate(&w->s.shards[shard], METHOD_RESOLVE_OPERATION, &request.base);
    return response != NULL ? response->operation : NULL;
}

static Holdfast__Internal__V1__OperationRecord *seal(struct world *w, uint32_t shard,
                                                     const char *player)
{
    return resolve(w, shard, arena_printf(&w->s.arena, "player:%s", player), w->receipt);
}

static void a_purchase_is_paid_once_its_receipt_is_bound(void **state)
{
    struct world *w = *state;
    const struct purchase p = { .player = w->ann };

    buy_pending(w, &p);
    assert_int_equal(status(w, 0, w->ann)->state, OPERATION(PENDING));
    assert_int_equal(gold(w, 0, w->ann), 0);
    assert_int_equal(binding(w, 2, w->receipt)->state, OPERATION(UNKNOWN));
    deliver_response *told = fixture_deliver(&w->s, 2, fixture_batch(&w->s, 0, 2));
    assert_int_equal(told->results[0]->decision, DECISION(APPLIED));
    assert_string_equal(binding(w, 2, w->receipt)->bound_player_id, w->ann);
    assert_int_equal(gold(w, 0, w->ann), 0);
    fixture_settle(&w->s, 0, 2, told);
    assert_int_equal(status(w, 0, w->ann)->state, OPERATION(COMMITTED));
    assert_int_equal(gold(w, 0, w->ann), 50);
    assert_int_equal(fixture_open_records(&w->s), 0);
    Holdfast__V1__GrantResponse *again = buy(w, &p);
    assert_non_null(again);
    assert_true(HOME(w)->outcome.duplicate);
    assert_int_equal(again->n_item_uids, ITEMS);
    assert_int_equal(again->balances[0]->amount, 50);
    assert_int_equal(gold(w, 0, w->ann), 50);
}

static void what_carries_it_out_is_the_entry_that_settles_it(void **state)
{
    struct world *w = *state;

    buy_pending(w, &(struct purchase){ .player = w->ann });
    uint64_t opened = HOME(w)->counter;
    assert_non_null(fixture_grant(HOME(w), w->ann, "unheld", 7));
    fixture_carry_all(&w->s);
    Holdfast__Internal__V1__OperationRecord *done = status(w, 0, w->ann);
    assert_true(done->dot->counter > opened);
    Holdfast__V1__GrantResponse *again = buy(w, &(struct purchase){ .player = w->ann });
    assert_int_equal(again->balances[0]->amount, 57);
    assert_int_equal(again->ledger_seq, 2);
    assert_int_equal(HOME(w)->outcome.version, 2);
}

static void a_replay_for_another_player_is_a_mismatch(void **state)
{
    struct world *w = *state;

    buy_pending(w, &(struct purchase){ .player = w->ann });
    buy_pending(w, &(struct purchase){ .player = w->amy });
    buy_pending(w, &(struct purchase){ .shard = 1, .player = w->bob });
    fixture_carry_all(&w->s);
    fixture_restart_all(&w->s);
    assert_int_equal(gold(w, 0, w->ann), 50);
    assert_int_equal(gold(w, 0, w->amy), 0);
    assert_int_equal(gold(w, 1, w->bob), 0);
    assert_int_equal(status(w, 0, w->amy)->state, OPERATION(REFUSED));
    assert_int_equal(status(w, 1, w->bob)->refusal->code, ERROR(OPERATION_ID_MISMATCH));
    assert_true(status(w, 1, w->bob)->refusal->final);
    assert_null(buy(w, &(struct purchase){ .shard = 1, .player = w->bob }));
    assert_int_equal(w->s.shards[1].error->code, ERROR(OPERATION_ID_MISMATCH));
    buy_pending(w, &(struct purchase){ .shard = 1, .player = w->bob, .attempt = 9 });
    fixture_carry_all(&w->s);
    assert_int_equal(gold(w, 1, w->bob), 0);
    assert_int_equal(status(w, 1, w->bob)->state, OPERATION(REFUSED));
}

static void on_one_shard_it_is_one_entry(void **state)
{
    struct world *w = *state;

    assert_non_null(buy(w, &(struct purchase){ .player = w->ann, .receipt = w->near }));
    assert_int_equal(fixture_open_records(&w->s), 0);
    assert_string_equal(binding(w, 0, w->near)->bound_player_id, w->ann);
    assert_null(buy(w, &(struct purchase){ .player = w->amy, .receipt = w->near }));
    assert_int_equal(HOME(w)->error->code, ERROR(OPERATION_ID_MISMATCH));
    assert_true(HOME(w)->error->final);
    buy_pending(w, &(struct purchase){ .shard = 1, .player = w->bob, .receipt = w->near });
    fixture_carry_all(&w->s);
    assert_int_equal(gold(w, 0, w->ann), 50);
    assert_int_equal(gold(w, 0, w->amy), 0);
    assert_int_equal(gold(w, 1, w->bob), 0);
}

static void every_owner_may_die_between(void **state)
{
    struct world *w = *state;

    buy_pending(w, &(struct purchase){ .player = w->ann });
    fixture_restart_all(&w->s);
    deliver_response *lost = fixture_deliver(&w->s, 2, fixture_batch(&w->s, 0, 2));
    assert_int_equal(lost->n_results, 1);
    fixture_restart_all(&w->s);
    deliver_response *told = fixture_deliver(&w->s, 2, fixture_batch(&w->s, 0, 2));
    fixture_restart_all(&w->s);
    fixture_settle(&w->s, 0, 2, told);
    fixture_restart_all(&w->s);
    fixture_settle(&w->s, 0, 2, told);
    assert_int_equal(gold(w, 0, w->ann), 50);
    assert_int_equal(fixture_open_records(&w->s), 0);
    assert_string_equal(binding(w, 2, w->receipt)->bound_player_id, w->ann);
}

static void a_seal_before_it_is_bound_leaves_the_receipt_free(void **state)
{
    struct world *w = *state;

    buy_pending(w, &(struct purchase){ .player = w->ann });
    assert_null(seal(w, 0, w->ann));
    assert_int_equal(HOME(w)->outcome.kind, OUTCOME_PENDING);
    deliver_request *late = fixture_batch(&w->s, 0, 2);
    assert_int_equal(late->n_cancels, 1);
    fixture_carry_all(&w->s);
    assert_int_equal(status(w, 0, w->ann)->state, OPERATION(ABORTED));
    assert_int_equal(binding(w, 2, w->receipt)->state, OPERATION(UNKNOWN));
    buy_pending(w, &(struct purchase){ .shard = 1, .player = w->bob });
    fixture_carry_all(&w->s);
    assert_int_equal(gold(w, 1, w->bob), 50);
    assert_null(buy(w, &(struct purchase){ .player = w->ann, .attempt = 9 }));
    assert_int_equal(HOME(w)->error->code, ERROR(OPERATION_ABORTED));
    assert_int_equal(gold(w, 0, w->ann), 0);
}

static void a_seal_after_it_is_bound_finds_it_paid(void **state)
{
    struct world *w = *state;

    buy_pending(w, &(struct purchase){ .player = w->ann });
    (void)fixture_deliver(&w->s, 2, fixture_batch(&w->s, 0, 2));
    assert_null(seal(w, 0, w->ann));
    fixture_carry_all(&w->s);
    assert_int_equal(seal(w, 0, w->ann)->state, OPERATION(COMMITTED));
    assert_int_equal(gold(w, 0, w->ann), 50);
}

static void a_credit_that_comes_after_its_cancel_binds_nothing(void **state)
{
    struct world *w = *state;

    buy_pending(w, &(struct purchase){ .player = w->ann });
    deliver_request *late = fixture_batch(&w->s, 0, 2);
    assert_null(seal(w, 0, w->ann));
    (void)fixture_deliver(&w->s, 2, fixture_batch(&w->s, 0, 2));
    assert_int_equal(fixture_deliver(&w->s, 2, late)->results[0]->decision, DECISION(CANCELLED));
    assert_int_equal(binding(w, 2, w->receipt)->state, OPERATION(UNKNOWN));
    fixture_carry_all(&w->s);
    assert_int_equal(gold(w, 0, w->ann), 0);
}

static void a_session_that_is_gone_is_refused_and_the_receipt_kept(void **state)
{
    struct world *w = *state;
    char *token = fixture_start(HOME(w), w->ann, SERVER_A,
                                HOLDFAST__V1__START_MODE__START_MODE_WAIT, fixture_op_id(HOME(w)));

    token = arena_printf(&w->s.arena, "%s", token);
    buy_pending(w, &(struct purchase){ .player = w->ann, .authority = token });
    assert_non_null(fixture_end(HOME(w), w->ann, token));
    fixture_carry_all(&w->s);
    assert_int_equal(status(w, 0, w->ann)->state, OPERATION(REFUSED));
    assert_int_equal(status(w, 0, w->ann)->refusal->code, ERROR(SESSION_LOST));
    assert_string_equal(binding(w, 2, w->receipt)->bound_player_id, w->ann);
    buy_pending(w, &(struct purchase){ .shard = 1, .player = w->bob });
    buy_pending(w, &(struct purchase){ .player = w->ann, .attempt = 1 });
    fixture_carry_all(&w->s);
    assert_int_equal(gold(w, 0, w->ann), 50);
    assert_int_equal(gold(w, 1, w->bob), 0);
}

static void a_refusal_on_one_shard_keeps_the_receipt_too(void **state)
{
    struct world *w = *state;
    struct fixture *f = HOME(w);
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gems = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gems };

    gems.currency = (char *)"gems";
    gems.amount = 1001;
    request.player_id = w->ann;
    request.op_id = w->near;
    request.authority = fixture_authority(f, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_true(f->error->final);
    assert_int_not_equal(f->error->code, ERROR(OPERATION_ID_MISMATCH));
    assert_string_equal(binding(w, 0, w->near)->bound_player_id, w->ann);
    assert_null(buy(w, &(struct purchase){ .player = w->amy, .receipt = w->near }));
    assert_int_equal(f->error->code, ERROR(OPERATION_ID_MISMATCH));
}

static void a_player_held_back_meanwhile_is_paid_after_the_release(void **state)
{
    struct world *w = *state;

    buy_pending(w, &(struct purchase){ .player = w->ann });
    fixture_contain(HOME(w), w->ann);
    fixture_carry_all(&w->s);
    assert_int_equal(gold(w, 0, w->ann), 0);
    assert_int_equal(status(w, 0, w->ann)->state, OPERATION(UNKNOWN));
    assert_null(buy(w, &(struct purchase){ .player = w->ann }));
    assert_int_equal(HOME(w)->error->code, ERROR(QUARANTINED));
    fixture_release(HOME(w), w->ann);
    buy_pending(w, &(struct purchase){ .player = w->ann });
    fixture_carry_all(&w->s);
    assert_int_equal(gold(w, 0, w->ann), 50);
}

/* Else a packet of the refused attempt, which was late, would be paid. */
static void what_is_put_off_leaves_how_an_earlier_attempt_was_refused(void **state)
{
    struct world *w = *state;
    struct purchase purchase = { .player = w->ann };

    purchase.authority = arena_printf(&w->s.arena, "%s",
                                      fixture_start(HOME(w), w->ann, SERVER_A,
                                                    HOLDFAST__V1__START_MODE__START_MODE_WAIT,
                                                    fixture_op_id(HOME(w))));
    buy_pending(w, &purchase);
    assert_non_null(fixture_end(HOME(w), w->ann, purchase.authority));
    fixture_carry_all(&w->s);
    assert_int_equal(status(w, 0, w->ann)->state, OPERATION(REFUSED));
    buy_pending(w, &(struct purchase){ .player = w->ann, .attempt = 1 });
    fixture_contain(HOME(w), w->ann);
    fixture_carry_all(&w->s);
    assert_int_equal(status(w, 0, w->ann)->state, OPERATION(REFUSED));
    fixture_release(HOME(w), w->ann);
    assert_null(buy(w, &purchase));
    assert_int_equal(HOME(w)->error->code, ERROR(SESSION_LOST));
    assert_true(HOME(w)->outcome.duplicate);
    buy_pending(w, &(struct purchase){ .player = w->ann, .attempt = 1 });
    fixture_carry_all(&w->s);
    assert_int_equal(gold(w, 0, w->ann), 50);
}

static void a_seal_of_what_is_held_back_is_never(void **state)
{
    struct world *w = *state;

    buy_pending(w, &(struct purchase){ .player = w->ann });
    (void)fixture_deliver(&w->s, 2, fixture_batch(&w->s, 0, 2));
    fixture_contain(HOME(w), w->ann);
    assert_null(seal(w, 0, w->ann));
    fixture_carry_all(&w->s);
    assert_int_equal(status(w, 0, w->ann)->state, OPERATION(ABORTED));
    fixture_release(HOME(w), w->ann);
    assert_null(buy(w, &(struct purchase){ .player = w->ann, .attempt = 5 }));
    assert_int_equal(HOME(w)->error->code, ERROR(OPERATION_ABORTED));
    buy_pending(w, &(struct purchase){ .shard = 1, .player = w->bob });
    fixture_carry_all(&w->s);
    assert_int_equal(gold(w, 1, w->bob), 0); /* It was bound: no player is paid. */
}

static void a_receipt_sealed_by_itself_pays_nobody(void **state)
{
    struct world *w = *state;

    buy_pending(w, &(struct purchase){ .player = w->ann });
    assert_int_equal(resolve(w, 2, w->receipt, w->receipt)->state, OPERATION(ABORTED));
    fixture_carry_all(&w->s);
    assert_int_equal(gold(w, 0, w->ann), 0);
    assert_int_equal(status(w, 0, w->ann)->state, OPERATION(REFUSED));
    assert_int_equal(status(w, 0, w->ann)->refusal->code, ERROR(OPERATION_ABORTED));
    assert_int_equal(binding(w, 2, w->receipt)->state, OPERATION(ABORTED));
}

static void one_that_is_bound_is_not_sealed_by_itself(void **state)
{
    struct world *w = *state;

    buy_pending(w, &(struct purchase){ .player = w->ann });
    fixture_carry_all(&w->s);
    Holdfast__Internal__V1__OperationRecord *told = resolve(w, 2, w->receipt, w->receipt);
    assert_int_equal(told->state, OPERATION(BOUND));
    assert_string_equal(told->bound_player_id, w->ann);
    assert_null(resolve(w, 2, w->receipt, w->near));
    assert_int_equal(w->s.shards[2].error->code, ERROR(INVALID_ARGUMENT));
}

static bool has(char *const *uids, size_t count, const char *uid)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(uids[i], uid) == 0)
            return true;
    }
    return false;
}

static void items_of_one_entry_have_each_a_uid_of_their_own(void **state)
{
    struct world *w = *state;
    char receipts[4][32], *uids[4 * ITEMS];
    size_t count = 0;
    int number = 0;

    for (size_t i = 0; i < ARRAY_SIZE(receipts); number++) {
        snprintf(receipts[i], sizeof receipts[i], "receipt:many.%d", number);
        if (shard_of_entity(slice_from_text(receipts[i]), FIXTURE_SHARDS) != 2)
            continue;
        buy_pending(w, &(struct purchase){ .player = w->ann, .receipt = receipts[i++] });
    }
    fixture_carry(&w->s, 0, 2);
    for (size_t i = 0; i < ARRAY_SIZE(receipts); i++) {
        const struct purchase p = { .player = w->ann, .receipt = receipts[i] };
        Holdfast__V1__GrantResponse *done = buy(w, &p);
        assert_non_null(done);
        for (size_t j = 0; j < done->n_item_uids; j++) {
            assert_false(has(uids, count, done->item_uids[j]));
            uids[count++] = arena_printf(&w->s.arena, "%s", done->item_uids[j]);
        }
    }
    assert_int_equal(count, ARRAY_SIZE(uids));
    assert_int_equal(gold(w, 0, w->ann), 200);
}

static void mail_from_the_system_goes_by_receipts_too(void **state)
{
    struct world *w = *state;
    Holdfast__Internal__V1__DeliverToPlayerRequest mail =
        HOLDFAST__INTERNAL__V1__DELIVER_TO_PLAYER_REQUEST__INIT;
    Holdfast__V1__GrantRequest grant = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ListMailRequest list = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;

    mail.player_id = w->ann;
    mail.op_id = w->receipt;
    mail.authority = fixture_authority(HOME(w), "system:payments");
    mail.items = hats(w, ITEMS);
    mail.n_items = ITEMS;
    assert_null(fixture_mutate(HOME(w), METHOD_DELIVER_TO_PLAYER, &mail.base));
    assert_int_equal(HOME(w)->outcome.kind, OUTCOME_PENDING);
    grant.player_id = w->bob;
    grant.op_id = w->receipt;
    grant.authority = fixture_authority(&w->s.shards[1], "unheld");
    grant.items = hats(w, ITEMS);
    grant.n_items = ITEMS;
    fixture_carry_all(&w->s);
    assert_null(fixture_mutate(&w->s.shards[1], METHOD_GRANT, &grant.base));
    fixture_carry_all(&w->s);
    list.player_id = w->ann;
    Holdfast__V1__ListMailResponse *mails = fixture_read(HOME(w), METHOD_LIST_MAIL, &list.base);
    assert_int_equal(mails->total, 1);
    assert_int_equal(status(w, 1, w->bob)->refusal->code, ERROR(OPERATION_ID_MISMATCH));
}

static void what_pays_nothing_new_goes_by_other_ids(void **state)
{
    struct world *w = *state;
    struct fixture *f = HOME(w);
    Holdfast__V1__SpendRequest spend = HOLDFAST__V1__SPEND_REQUEST__INIT;
    Holdfast__Internal__V1__SwapGoodsRequest swap =
        HOLDFAST__INTERNAL__V1__SWAP_GOODS_REQUEST__INIT;
    Holdfast__V1__SendMailRequest mail = HOLDFAST__V1__SEND_MAIL_REQUEST__INIT;

    spend.player_id = swap.player_id = mail.player_id = w->ann;
    spend.op_id = swap.op_id = mail.op_id = w->receipt;
    spend.authority = swap.authority = mail.authority = fixture_authority(f, "unheld");
    const struct {
        uint32_t method;
        const ProtobufCMessage *request;
    } calls[] = { { METHOD_SPEND, &spend.base },
                  { METHOD_SWAP_GOODS, &swap.base },
                  { METHOD_SEND_MAIL, &mail.base } };
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        assert_null(fixture_mutate(f, calls[i].method, calls[i].request));
        assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
        assert_string_equal(f->error->field, "op_id");
        assert_false(f->recorded);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_purchase_is_paid_once_its_receipt_is_bound),
        TEST(what_carries_it_out_is_the_entry_that_settles_it),
        TEST(a_replay_for_another_player_is_a_mismatch),
        TEST(on_one_shard_it_is_one_entry),
        TEST(every_owner_may_die_between),
        TEST(a_seal_before_it_is_bound_leaves_the_receipt_free),
        TEST(a_seal_after_it_is_bound_finds_it_paid),
        TEST(a_credit_that_comes_after_its_cancel_binds_nothing),
        TEST(a_session_that_is_gone_is_refused_and_the_receipt_kept),
        TEST(a_refusal_on_one_shard_keeps_the_receipt_too),
        TEST(a_player_held_back_meanwhile_is_paid_after_the_release),
        TEST(what_is_put_off_leaves_how_an_earlier_attempt_was_refused),
        TEST(a_seal_of_what_is_held_back_is_never),
        TEST(a_receipt_sealed_by_itself_pays_nobody),
        TEST(one_that_is_bound_is_not_sealed_by_itself),
        TEST(items_of_one_entry_have_each_a_uid_of_their_own),
        TEST(mail_from_the_system_goes_by_receipts_too),
        TEST(what_pays_nothing_new_goes_by_other_ids),
    };

    return cmocka_run_group_tests_name("receipt", tests, NULL, NULL);
}
