/* Transactions across shards, step by step: what is carried, what is lost, who dies in between. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/transaction.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/rows/rows.h"
#include "node/rpc/fixture_shards.h"
#include "runtime/base/check.h"

typedef Holdfast__Internal__V1__SwapGoodsRequest swap_request;
typedef Holdfast__V1__SwapResponse swap_response;
typedef Holdfast__V1__CurrencyAmount amount_message;

/* ann and amy live on shard 0, bob on 1, cat on 2. ann has 100 gold, the others 100 gems. */
struct world {
    struct fixture_shards s;
    char ann[16], amy[16], bob[16], cat[16];
};

#define HOME(w) (&(w)->s.shards[0])

static void give_gems(struct world *w, uint32_t shard, const char *player, int64_t gems)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    amount_message amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    amount_message *amounts[] = { &amount };

    amount.currency = (char *)"gems";
    amount.amount = gems;
    request.player_id = text_lend(player);
    request.op_id = fixture_op_id(&w->s.shards[shard]);
    request.authority = fixture_authority(&w->s.shards[shard], "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    assert_non_null(fixture_mutate(&w->s.shards[shard], METHOD_GRANT, &request.base));
}

static int setup(void **state)
{
    struct world *w = mem_zalloc(sizeof *w);

    fixture_shards_init(&w->s);
    fixture_name_on(0, "ann", w->ann);
    fixture_name_on(0, "amy", w->amy);
    fixture_name_on(1, "bob", w->bob);
    fixture_name_on(2, "cat", w->cat);
    assert_non_null(fixture_grant(HOME(w), w->ann, "unheld", 100));
    give_gems(w, 0, w->amy, 100);
    give_gems(w, 1, w->bob, 100);
    give_gems(w, 2, w->cat, 100);
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

static amount_message **amount_of(struct world *w, const char *currency, int64_t amount)
{
    amount_message **list =
        arena_messages(&w->s.arena, &holdfast__v1__currency_amount__descriptor, 1);

    list[0]->currency = text_lend(currency);
    list[0]->amount = amount;
    return list;
}

static swap_request *swap_make(struct world *w, const char *other, const char *op_id)
{
    swap_request *request = (swap_request *)arena_message(
        &w->s.arena, &holdfast__internal__v1__swap_goods_request__descriptor);

    request->player_id = w->ann;
    request->op_id = text_lend(op_id);
    request->authority = fixture_authority(HOME(w), "unheld");
    request->other_player_id = text_lend(other);
    request->other_authority = fixture_authority(HOME(w), "unheld");
    request->currencies = amount_of(w, "gold", 30);
    request->n_currencies = 1;
    request->other_currencies = amount_of(w, "gems", 10);
    request->n_other_currencies = 1;
    return request;
}

/* 30 gold of ann's for 10 gems. NULL: pending or refused. */
static swap_response *swap(struct world *w, const char *other, const char *op_id)
{
    return fixture_mutate(HOME(w), METHOD_SWAP_GOODS, &swap_make(w, other, op_id)->base);
}

static void swap_pending(struct world *w, const char *other, const char *op_id)
{
    assert_null(swap(w, other, op_id));
    assert_int_equal(HOME(w)->outcome.kind, OUTCOME_PENDING);
}

static int state_of(struct world *w, const char *op_id)
{
    return (int)fixture_operation(HOME(w), w->ann, op_id)->state;
}

static int64_t gold(struct world *w, uint32_t shard, const char *player)
{
    return fixture_balance(&w->s.shards[shard], player, "gold");
}

static int64_t gems(struct world *w, uint32_t shard, const char *player)
{
    return fixture_balance(&w->s.shards[shard], player, "gems");
}

/* All are as they were before any transaction, and free. */
static void assert_nothing_moved(struct world *w)
{
    assert_int_equal(gold(w, 0, w->ann), 100);
    assert_int_equal(gems(w, 0, w->ann), 0);
    assert_int_equal(gems(w, 1, w->bob), 100);
    assert_int_equal(gold(w, 1, w->bob), 0);
    assert_int_equal(fixture_open_records(&w->s), 0);
    assert_non_null(fixture_grant(HOME(w), w->ann, "unheld", 1));
    assert_non_null(fixture_grant(&w->s.shards[1], w->bob, "unheld", 1));
}

static void assert_swapped(struct world *w)
{
    assert_int_equal(gold(w, 0, w->ann), 70);
    assert_int_equal(gems(w, 0, w->ann), 10);
    assert_int_equal(gems(w, 1, w->bob), 90);
    assert_int_equal(gold(w, 1, w->bob), 30);
    assert_int_equal(fixture_open_records(&w->s), 0);
    assert_non_null(fixture_grant(HOME(w), w->ann, "unheld", 1));
    assert_non_null(fixture_grant(&w->s.shards[1], w->bob, "unheld", 1));
}

static void a_swap_is_pending_until_both_sides_have_voted(void **state)
{
    struct world *w = *state;

    swap_pending(w, w->bob, "claim:a");
    assert_int_equal(gold(w, 0, w->ann), 70);
    assert_int_equal(gems(w, 0, w->ann), 0);
    assert_int_equal(state_of(w, "claim:a"), OPERATION(PENDING));
    deliver_response *votes = fixture_deliver(&w->s, 1, fixture_batch(&w->s, 0, 1));
    assert_int_equal(votes->results[0]->decision, DECISION(APPLIED));
    assert_int_equal(gems(w, 1, w->bob), 90);
    assert_int_equal(gold(w, 1, w->bob), 0);
    assert_int_equal(state_of(w, "claim:a"), OPERATION(PENDING));
    fixture_settle(&w->s, 0, 1, votes);
    assert_int_equal(state_of(w, "claim:a"), OPERATION(COMMITTED));
    assert_int_equal(gems(w, 0, w->ann), 10);
    assert_int_equal(gold(w, 1, w->bob), 0); /* On its way. */
    fixture_carry_all(&w->s);
    assert_swapped(w);
}

static void the_answer_says_how_the_transaction_leaves_each_player(void **state)
{
    struct world *w = *state;

    swap_pending(w, w->bob, "claim:a");
    fixture_carry_all(&w->s);
    swap_response *told = swap(w, w->bob, "claim:a");
    assert_non_null(told);
    assert_true(told->write->duplicate);
    assert_int_equal(told->n_players, 2);
    assert_string_equal(told->players[0]->player_id, w->ann);
    assert_int_equal(told->players[0]->n_balances, 2);
    assert_string_equal(told->players[0]->balances[0]->currency, "gold");
    assert_int_equal(told->players[0]->balances[0]->amount, 70);
    assert_int_equal(told->players[0]->balances[1]->amount, 10);
    assert_string_equal(told->players[1]->player_id, w->bob);
    assert_int_equal(told->players[1]->balances[0]->amount, 90);
    assert_int_equal(told->players[1]->balances[1]->amount, 30);
    assert_swapped(w);
}

static void what_is_refused_there_moves_nothing_here(void **state)
{
    struct world *w = *state;
    swap_request *request = swap_make(w, w->bob, "claim:a");

    request->other_currencies = amount_of(w, "gems", 101);
    assert_null(fixture_mutate(HOME(w), METHOD_SWAP_GOODS, &request->base));
    fixture_carry_all(&w->s);
    Holdfast__Internal__V1__OperationRecord *status = fixture_operation(HOME(w), w->ann, "claim:a");
    assert_int_equal(status->state, OPERATION(REFUSED));
    assert_int_equal(status->refusal->code, ERROR(INSUFFICIENT_FUNDS));
    assert_true(status->refusal->final);
    assert_non_null(strstr(status->refusal->message, w->bob));
    assert_nothing_moved(w);
}

static void every_step_survives_the_death_of_every_owner(void **state)
{
    struct world *w = *state;

    swap_pending(w, w->bob, "claim:a");
    fixture_restart_all(&w->s);
    deliver_response *votes = fixture_deliver(&w->s, 1, fixture_batch(&w->s, 0, 1));
    fixture_restart_all(&w->s);
    fixture_settle(&w->s, 0, 1, votes);
    fixture_restart_all(&w->s);
    (void)fixture_deliver(&w->s, 1, fixture_batch(&w->s, 0, 1)); /* FINISH; its answer is lost. */
    fixture_restart_all(&w->s);
    fixture_carry_all(&w->s);
    assert_swapped(w);
}

static void a_prepare_and_a_finish_that_come_twice_are_done_once(void **state)
{
    struct world *w = *state;

    swap_pending(w, w->bob, "claim:a");
    deliver_request *prepare = fixture_batch(&w->s, 0, 1);
    (void)fixture_deliver(&w->s, 1, prepare);
    fixture_settle(&w->s, 0, 1, fixture_deliver(&w->s, 1, prepare));
    deliver_request *finish = fixture_batch(&w->s, 0, 1);
    (void)fixture_deliver(&w->s, 1, finish);
    fixture_settle(&w->s, 0, 1, fixture_deliver(&w->s, 1, finish));
    (void)fixture_deliver(&w->s, 1, prepare);
    (void)fixture_deliver(&w->s, 1, finish);
    assert_swapped(w);
}

static void a_writer_that_meets_an_intent_is_told_to_come_back(void **state)
{
    struct world *w = *state;
    struct fixture *there = &w->s.shards[1];
    char *op_id = text_lend("claim:later");
    Holdfast__V1__GrantRequest grant = HOLDFAST__V1__GRANT_REQUEST__INIT;

    swap_pending(w, w->bob, "claim:a");
    assert_null(fixture_grant(HOME(w), w->ann, "unheld", 5));
    assert_int_equal(HOME(w)->error->code, ERROR(TXN_CONFLICT));
    (void)fixture_deliver(&w->s, 1, fixture_batch(&w->s, 0, 1));
    grant.player_id = w->bob;
    grant.op_id = op_id;
    grant.authority = fixture_authority(there, "unheld");
    grant.currencies = amount_of(w, "gems", 5);
    grant.n_currencies = 1;
    assert_null(fixture_mutate(there, METHOD_GRANT, &grant.base));
    assert_int_equal(there->error->code, ERROR(TXN_CONFLICT));
    assert_in_range(there->error->retry_after_ms, 1, 1000);
    assert_false(there->error->final);
    assert_null(fixture_start(there, w->bob, SERVER_A, 0, fixture_op_id(there)));
    assert_int_equal(there->error->code, ERROR(TXN_CONFLICT));
    fixture_carry_all(&w->s);
    assert_non_null(fixture_mutate(there, METHOD_GRANT, &grant.base));
    assert_int_equal(gems(w, 1, w->bob), 95);
}

static void plain_reads_pass_and_settled_ones_do_not(void **state)
{
    struct world *w = *state;
    Holdfast__V1__GetProfileRequest request = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;

    swap_pending(w, w->bob, "claim:a");
    request.player_id = w->ann;
    assert_non_null(fixture_read(HOME(w), METHOD_GET_PROFILE, &request.base));
    request.settled = true;
    assert_null(fixture_read(HOME(w), METHOD_GET_PROFILE, &request.base));
    assert_int_equal(HOME(w)->error->code, ERROR(TXN_CONFLICT));
    fixture_carry_all(&w->s);
    assert_non_null(fixture_read(HOME(w), METHOD_GET_PROFILE, &request.base));
}

static void two_that_meet_both_end_and_one_may_try_again(void **state)
{
    struct world *w = *state;
    struct fixture *there = &w->s.shards[1];
    swap_request *back = swap_make(w, w->ann, "claim:b");

    swap_pending(w, w->bob, "claim:a");
    back->player_id = w->bob;
    back->currencies = amount_of(w, "gems", 1);
    back->other_currencies = amount_of(w, "gold", 1);
    assert_null(fixture_mutate(there, METHOD_SWAP_GOODS, &back->base));
    deliver_response *of_a = fixture_deliver(&w->s, 1, fixture_batch(&w->s, 0, 1));
    deliver_response *of_b = fixture_deliver(&w->s, 0, fixture_batch(&w->s, 1, 0));
    assert_int_equal(of_a->results[0]->refusal->code, ERROR(TXN_CONFLICT));
    assert_int_equal(of_b->results[0]->refusal->code, ERROR(TXN_CONFLICT));
    fixture_settle(&w->s, 0, 1, of_a);
    fixture_settle(&w->s, 1, 0, of_b);
    /* Nothing is recorded: the same attempt may be made again. */
    assert_int_equal(state_of(w, "claim:a"), OPERATION(UNKNOWN));
    assert_int_equal(fixture_operation(there, w->bob, "claim:b")->state, OPERATION(UNKNOWN));
    assert_int_equal(gold(w, 0, w->ann), 100);
    assert_int_equal(gems(w, 1, w->bob), 100);
    swap_pending(w, w->bob, "claim:a");
    fixture_carry_all(&w->s);
    assert_swapped(w);
}

/* Else a packet of the refused attempt, which was late, would be carried out. */
static void a_conflict_leaves_how_an_earlier_attempt_was_refused(void **state)
{
    struct world *w = *state;
    swap_request *request = swap_make(w, w->bob, "claim:a");
    swap_request *meanwhile = swap_make(w, w->bob, "claim:h");

    request->other_currencies = amount_of(w, "gems", 101);
    assert_null(fixture_mutate(HOME(w), METHOD_SWAP_GOODS, &request->base));
    fixture_carry_all(&w->s);
    assert_int_equal(state_of(w, "claim:a"), OPERATION(REFUSED));
    give_gems(w, 1, w->bob, 100);
    meanwhile->player_id = w->amy;
    meanwhile->currencies = amount_of(w, "gems", 2);
    meanwhile->other_currencies = amount_of(w, "gems", 1);
    assert_null(fixture_mutate(HOME(w), METHOD_SWAP_GOODS, &meanwhile->base));
    (void)fixture_deliver(&w->s, 1, fixture_batch(&w->s, 0, 1)); /* Its answer is lost. */
    request->attempt = 1;
    assert_null(fixture_mutate(HOME(w), METHOD_SWAP_GOODS, &request->base));
    assert_int_equal(state_of(w, "claim:a"), OPERATION(PENDING));
    fixture_restart_all(&w->s);
    fixture_carry(&w->s, 0, 1);
    assert_int_equal(state_of(w, "claim:a"), OPERATION(REFUSED));
    fixture_carry_all(&w->s);
    assert_int_equal(fixture_operation(HOME(w), w->amy, "claim:h")->state, OPERATION(COMMITTED));
    request->attempt = 0;
    assert_null(fixture_mutate(HOME(w), METHOD_SWAP_GOODS, &request->base));
    assert_int_equal(HOME(w)->outcome.kind, OUTCOME_REFUSED);
    assert_int_equal(HOME(w)->error->code, ERROR(INSUFFICIENT_FUNDS));
    assert_true(HOME(w)->outcome.duplicate);
    request->currencies = amount_of(w, "gold", 31);
    assert_null(fixture_mutate(HOME(w), METHOD_SWAP_GOODS, &request->base));
    assert_int_equal(HOME(w)->error->code, ERROR(OPERATION_ID_MISMATCH));
    request->currencies = amount_of(w, "gold", 30);
    request->attempt = 1;
    assert_null(fixture_mutate(HOME(w), METHOD_SWAP_GOODS, &request->base));
    fixture_carry_all(&w->s);
    assert_int_equal(state_of(w, "claim:a"), OPERATION(COMMITTED));
}

static Holdfast__Internal__V1__OperationRecord *seal(struct world *w, const char *op_id)
{
    return fixture_seal(HOME(w), w->ann, op_id);
}

static void a_seal_before_the_vote_aborts_and_poisons_the_prepare(void **state)
{
    struct world *w = *state;

    swap_pending(w, w->bob, "claim:a");
    deliver_request *late = fixture_batch(&w->s, 0, 1);
    assert_int_equal(seal(w, "claim:a")->state, OPERATION(ABORTED));
    assert_int_equal(gold(w, 0, w->ann), 100);
    fixture_restart_all(&w->s);
    deliver_response *response = fixture_deliver(&w->s, 1, fixture_batch(&w->s, 0, 1));
    assert_int_equal(response->results[0]->decision, DECISION(CANCELLED));
    assert_int_equal(fixture_deliver(&w->s, 1, late)->results[0]->decision, DECISION(CANCELLED));
    fixture_settle(&w->s, 0, 1, response);
    assert_int_equal(fixture_deliver(&w->s, 1, late)->results[0]->decision, DECISION(CANCELLED));
    assert_null(swap(w, w->bob, "claim:a"));
    assert_int_equal(HOME(w)->error->code, ERROR(OPERATION_ABORTED));
    assert_nothing_moved(w);
}

/* From the newest on. */
static Holdfast__V1__LedgerEntry **entries_of(struct world *w, uint32_t shard, const char *player,
                                              size_t least)
{
    Holdfast__V1__ListEntriesRequest request = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;

    request.player_id = text_lend(player);
    Holdfast__V1__ListEntriesResponse *told =
        fixture_read(&w->s.shards[shard], METHOD_LIST_ENTRIES, &request.base);
    assert_non_null(told);
    assert_true(told->n_entries >= least);
    return told->entries;
}

static void a_seal_after_the_vote_gives_everything_back(void **state)
{
    struct world *w = *state;

    swap_pending(w, w->bob, "claim:a");
    (void)fixture_deliver(&w->s, 1, fixture_batch(&w->s, 0, 1)); /* Its answer is lost. */
    assert_int_equal(gems(w, 1, w->bob), 90);
    assert_int_equal(seal(w, "claim:a")->state, OPERATION(ABORTED));
    fixture_carry_all(&w->s);
    assert_int_equal(state_of(w, "claim:a"), OPERATION(ABORTED));
    Holdfast__V1__LedgerEntry *back = entries_of(w, 0, w->ann, 1)[0];
    assert_int_equal(back->n_counterparts, 1);
    assert_string_equal(back->counterparts[0], w->bob);
    assert_nothing_moved(w);
}

static void a_seal_after_the_decision_tells_it(void **state)
{
    struct world *w = *state;

    swap_pending(w, w->bob, "claim:a");
    fixture_carry(&w->s, 0, 1);
    assert_int_equal(seal(w, "claim:a")->state, OPERATION(COMMITTED));
    fixture_carry_all(&w->s);
    assert_swapped(w);
}

static void fences_are_checked_where_the_player_is_prepared(void **state)
{
    struct world *w = *state;
    struct fixture *there = &w->s.shards[1];
    char *old = fixture_start(there, w->bob, SERVER_A, 0, fixture_op_id(there));
    swap_request *request = swap_make(w, w->bob, "claim:a");

    request->other_authority = fixture_authority(there, old);
    assert_non_null(fixture_end(there, w->bob, old));
    assert_non_null(fixture_start(there, w->bob, SERVER_B, 0, fixture_op_id(there)));
    assert_null(fixture_mutate(HOME(w), METHOD_SWAP_GOODS, &request->base));
    fixture_carry_all(&w->s);
    assert_int_equal(fixture_operation(HOME(w), w->ann, "claim:a")->refusal->code,
                     ERROR(SESSION_LOST));
    assert_int_equal(gold(w, 0, w->ann), 100);
    assert_int_equal(gems(w, 1, w->bob), 100);
}

static void a_steal_waits_until_the_transaction_is_through(void **state)
{
    struct world *w = *state;
    struct fixture *there = &w->s.shards[1];
    char *token = fixture_start(there, w->bob, SERVER_A, 0, fixture_op_id(there));
    swap_request *request = swap_make(w, w->bob, "claim:a");

    assert_non_null(fixture_grant(there, w->bob, token, 1));
    assert_null(fixture_start(there, w->bob, SERVER_B, HOLDFAST__V1__START_MODE__START_MODE_STEAL,
                              "claim:steal"));
    request->other_authority = fixture_authority(there, token);
    assert_null(fixture_mutate(HOME(w), METHOD_SWAP_GOODS, &request->base));
    (void)fixture_deliver(&w->s, 1, fixture_batch(&w->s, 0, 1));
    (void)fixture_pass(there, 20000);
    assert_string_equal(fixture_session(there, w->bob)->incarnation, SERVER_A);
    for (uint32_t i = 0; i < FIXTURE_SHARDS; i++)
        w->s.shards[i].now_ms = there->now_ms;
    fixture_carry_all(&w->s);
    assert_true(fixture_pass(there, 1000) > 0);
    assert_string_equal(fixture_session(there, w->bob)->incarnation, SERVER_B);
    assert_int_equal(gems(w, 1, w->bob), 90);
}

static Holdfast__V1__ExecuteTransactionRequest *three(struct world *w, const char *op_id)
{
    struct arena *arena = &w->s.arena;
    Holdfast__V1__ExecuteTransactionRequest *request =
        (Holdfast__V1__ExecuteTransactionRequest *)arena_message(
            arena, &holdfast__v1__execute_transaction_request__descriptor);
    const char *from[] = { w->ann, w->bob, w->cat };
    const char *currency[] = { "gold", "gems", "gems" };

    request->player_id = w->ann;
    request->op_id = text_lend(op_id);
    request->authority = fixture_authority(HOME(w), "unheld");
    request->n_others = 2;
    request->others = arena_messages(arena, &holdfast__v1__transaction_player__descriptor, 2);
    request->n_changes = 3;
    request->changes = arena_messages(arena, &holdfast__v1__transaction_change__descriptor, 3);
    for (size_t i = 0; i < 3; i++) {
        Holdfast__V1__TransactionMove *move = (Holdfast__V1__TransactionMove *)arena_message(
            arena, &holdfast__v1__transaction_move__descriptor);
        move->from_player_id = text_lend(from[i]);
        move->to_player_id = text_lend(from[(i + 1) % 3]);
        move->currencies = amount_of(w, currency[i], 7);
        move->n_currencies = 1;
        request->changes[i]->change_case = HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_MOVE;
        request->changes[i]->move = move;
    }
    for (size_t i = 0; i < 2; i++) {
        request->others[i]->player_id = text_lend(from[i + 1]);
        request->others[i]->authority = fixture_authority(HOME(w), "unheld");
    }
    return request;
}

static void three_shards_decide_once_all_have_voted(void **state)
{
    struct world *w = *state;

    assert_null(fixture_mutate(HOME(w), METHOD_EXECUTE_TRANSACTION, &three(w, "claim:a")->base));
    fixture_carry(&w->s, 0, 1);
    assert_int_equal(state_of(w, "claim:a"), OPERATION(PENDING));
    fixture_restart_all(&w->s);
    fixture_carry(&w->s, 0, 2);
    assert_int_equal(state_of(w, "claim:a"), OPERATION(COMMITTED));
    fixture_carry_all(&w->s);
    assert_int_equal(gold(w, 0, w->ann), 93);
    assert_int_equal(gems(w, 0, w->ann), 7);
    assert_int_equal(gold(w, 1, w->bob), 7);
    assert_int_equal(gems(w, 1, w->bob), 93);
    assert_int_equal(gems(w, 2, w->cat), 100);
}

static void spoil_player(struct fixture *f, const char *player)
{
    struct state *rows = applier_state(f->applier);
    struct slice entity = entity_of_player(&f->arena, player), row;
    struct row_key key;

    row_key_player(&key, entity);
    assert_int_equal(row_find(rows, &key, &f->need, &row), STATE_PRESENT);
    state_begin(rows);
    state_put(rows, row_key_slice(&key), SLICE_LITERAL("\xff\xff"));
    state_commit(rows);
}

/* By what was applied last; the owner holds back who is named. */
static void assert_damaged(struct fixture *f, const char *player)
{
    const struct damage *damage = applier_take_damage(f->applier);

    assert_non_null(damage);
    assert_string_equal(damage->player, player);
}

/* It is told again and again, since another player of it cannot be finished: by then the one who
 * was may be in a later transaction. */
static void a_finish_that_comes_again_leaves_a_later_transaction_alone(void **state)
{
    struct world *w = *state;
    struct fixture *there = &w->s.shards[1];
    swap_request *later = swap_make(w, w->bob, "claim:b");

    fixture_name_on(1, "ben", w->cat); /* Both others are on one shard. */
    give_gems(w, 1, w->cat, 100);
    assert_null(fixture_mutate(HOME(w), METHOD_EXECUTE_TRANSACTION, &three(w, "claim:a")->base));
    fixture_carry(&w->s, 0, 1);
    assert_int_equal(state_of(w, "claim:a"), OPERATION(COMMITTED));
    spoil_player(there, w->cat);
    fixture_carry(&w->s, 0, 1);
    assert_damaged(there, w->cat);
    assert_int_equal(gems(w, 1, w->bob), 93);
    later->player_id = w->amy;
    later->currencies = amount_of(w, "gems", 2);
    assert_null(fixture_mutate(HOME(w), METHOD_SWAP_GOODS, &later->base));
    (void)fixture_deliver(&w->s, 1, fixture_batch(&w->s, 0, 1)); /* Its answer is lost. */
    assert_damaged(there, w->cat);
    fixture_carry(&w->s, 0, 1);
    assert_damaged(there, w->cat);
    fixture_carry(&w->s, 0, 1);
    assert_int_equal(fixture_operation(HOME(w), w->amy, "claim:b")->state, OPERATION(COMMITTED));
    assert_int_equal(gems(w, 1, w->bob), 85);
}

static void one_that_refuses_undoes_the_others(void **state)
{
    struct world *w = *state;
    Holdfast__V1__ExecuteTransactionRequest *request = three(w, "claim:a");

    request->changes[2]->move->currencies = amount_of(w, "gems", 101);
    assert_null(fixture_mutate(HOME(w), METHOD_EXECUTE_TRANSACTION, &request->base));
    (void)fixture_deliver(&w->s, 1, fixture_batch(&w->s, 0, 1)); /* Prepared, unknown elsewhere. */
    fixture_carry(&w->s, 0, 2);
    assert_int_equal(state_of(w, "claim:a"), OPERATION(REFUSED));
    assert_int_equal(gold(w, 0, w->ann), 100);
    fixture_restart_all(&w->s);
    fixture_carry_all(&w->s);
    assert_nothing_moved(w);
    assert_int_equal(gems(w, 2, w->cat), 100);
    assert_non_null(fixture_grant(&w->s.shards[2], w->cat, "unheld", 1));
}

static char *mint(struct world *w, uint32_t shard, const char *player, const char *kind)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item };

    item.kind = text_lend(kind);
    item.attributes = (char *)"{\"n\":1}";
    request.player_id = text_lend(player);
    request.op_id = fixture_op_id(&w->s.shards[shard]);
    request.authority = fixture_authority(&w->s.shards[shard], "unheld");
    request.items = items;
    request.n_items = 1;
    Holdfast__V1__GrantResponse *response =
        fixture_mutate(&w->s.shards[shard], METHOD_GRANT, &request.base);
    assert_non_null(response);
    return response->item_uids[0];
}

static Holdfast__V1__ListItemsResponse *items_of(struct world *w, uint32_t shard,
                                                 const char *player)
{
    Holdfast__V1__ListItemsRequest request = HOLDFAST__V1__LIST_ITEMS_REQUEST__INIT;

    request.player_id = text_lend(player);
    return fixture_read(&w->s.shards[shard], METHOD_LIST_ITEMS, &request.base);
}

static void items_keep_their_uids_and_attributes_across_shards(void **state)
{
    struct world *w = *state;
    char *sword = mint(w, 0, w->ann, "sword");
    char *hat = mint(w, 1, w->bob, "hat");
    swap_request *request = swap_make(w, w->bob, "claim:a");

    request->item_uids = &sword;
    request->n_item_uids = 1;
    request->other_item_uids = &hat;
    request->n_other_item_uids = 1;
    assert_null(fixture_mutate(HOME(w), METHOD_SWAP_GOODS, &request->base));
    assert_int_equal(items_of(w, 0, w->ann)->n_items, 0);
    fixture_carry_all(&w->s);
    Holdfast__V1__ListItemsResponse *mine = items_of(w, 0, w->ann);
    Holdfast__V1__ListItemsResponse *other = items_of(w, 1, w->bob);
    assert_int_equal(mine->n_items, 1);
    assert_string_equal(mine->items[0]->uid, hat);
    assert_string_equal(mine->items[0]->kind, "hat");
    assert_string_equal(mine->items[0]->attributes, "{\"n\":1}");
    assert_int_equal(other->n_items, 1);
    assert_string_equal(other->items[0]->uid, sword);
}

static void each_ledger_names_who_else_took_part(void **state)
{
    struct world *w = *state;
    Holdfast__V1__ExecuteTransactionRequest *request = three(w, "claim:a");
    char *sword = mint(w, 0, w->ann, "sword");

    request->changes[0]->move->to_player_id = w->cat;
    request->changes[0]->move->item_uids = &sword;
    request->changes[0]->move->n_item_uids = 1;
    assert_null(fixture_mutate(HOME(w), METHOD_EXECUTE_TRANSACTION, &request->base));
    fixture_restart_all(&w->s);
    fixture_carry_all(&w->s);
    Holdfast__V1__LedgerEntry *took = entries_of(w, 0, w->ann, 2)[1];
    assert_int_equal(took->n_counterparts, 2);
    assert_string_equal(took->counterparts[0], w->cat); /* Who gets the sword. */
    assert_string_equal(took->counterparts[1], w->bob);
    Holdfast__V1__LedgerEntry *got = entries_of(w, 2, w->cat, 2)[0];
    assert_string_equal(got->items[0]->uid, sword);
    assert_string_equal(got->op_id, "claim:a");
    assert_int_equal(got->n_counterparts, 2);
    assert_string_equal(got->counterparts[0], w->ann);
}

static void below_its_apply_version_a_ledger_names_no_other(void **state)
{
    struct world *w = *state;

    for (uint32_t i = 0; i < 3; i++) {
        struct fixture *f = &w->s.shards[i];
        applier_set_version_max(f->applier, 9);
        ((struct meta *)(uintptr_t)applier_meta(f->applier))->apply_version = 9;
    }
    swap_pending(w, w->bob, "claim:a");
    fixture_carry_all(&w->s);
    assert_swapped(w);
    assert_int_equal(entries_of(w, 0, w->ann, 3)[1]->n_counterparts, 0);
}

static void what_is_in_escrow_is_not_there_to_be_sent(void **state)
{
    struct world *w = *state;
    char *sword = mint(w, 0, w->ann, "sword");
    swap_request *request = swap_make(w, w->bob, "claim:a");
    swap_request *again = swap_make(w, w->cat, "claim:b");

    request->item_uids = &sword;
    request->n_item_uids = 1;
    again->item_uids = &sword;
    again->n_item_uids = 1;
    assert_null(fixture_mutate(HOME(w), METHOD_SWAP_GOODS, &request->base));
    assert_null(fixture_mutate(HOME(w), METHOD_SWAP_GOODS, &again->base));
    assert_int_equal(HOME(w)->error->code, ERROR(TXN_CONFLICT));
    fixture_carry_all(&w->s);
    assert_null(fixture_mutate(HOME(w), METHOD_SWAP_GOODS, &again->base));
    assert_int_equal(HOME(w)->error->code, ERROR(ITEM_NOT_HELD));
    assert_int_equal(gold(w, 0, w->ann), 70);
}

static void a_retry_with_a_new_session_is_the_same_operation(void **state)
{
    struct world *w = *state;
    swap_request *request = swap_make(w, w->bob, "claim:a");

    swap_pending(w, w->bob, "claim:a");
    fixture_carry_all(&w->s);
    request->other_authority = fixture_authority(HOME(w), "1-2-3");
    swap_response *told = fixture_mutate(HOME(w), METHOD_SWAP_GOODS, &request->base);
    assert_non_null(told);
    assert_true(told->write->duplicate);
    request->currencies = amount_of(w, "gold", 31);
    assert_null(fixture_mutate(HOME(w), METHOD_SWAP_GOODS, &request->base));
    assert_int_equal(HOME(w)->error->code, ERROR(OPERATION_ID_MISMATCH));
    assert_swapped(w);
}

static void goods_that_come_back_meanwhile_do_not_break_the_promise(void **state)
{
    struct world *w = *state;
    Holdfast__V1__TransferCurrenciesRequest pay = HOLDFAST__V1__TRANSFER_CURRENCIES_REQUEST__INIT;
    Holdfast__V1__ResolveOperationRequest resolve = HOLDFAST__V1__RESOLVE_OPERATION_REQUEST__INIT;

    /* ann has room for 1000 gems: 995 after a payment that will be cancelled. */
    give_gems(w, 0, w->ann, 1000);
    pay.player_id = w->ann;
    pay.to_player_id = w->cat;
    pay.op_id = (char *)"claim:pay";
    pay.authority = fixture_authority(HOME(w), "unheld");
    pay.currencies = amount_of(w, "gems", 15);
    pay.n_currencies = 1;
    assert_null(fixture_mutate(HOME(w), METHOD_TRANSFER_CURRENCIES, &pay.base));
    swap_pending(w, w->bob, "claim:a");
    char entity[32];
    snprintf(entity, sizeof entity, "player:%s", w->ann);
    resolve.entity = entity;
    resolve.op_id = pay.op_id;
    resolve.seal = true;
    assert_null(fixture_mutate(HOME(w), METHOD_RESOLVE_OPERATION, &resolve.base));
    fixture_carry(&w->s, 0, 2);
    assert_int_equal(gems(w, 0, w->ann), 1000);
    fixture_carry_all(&w->s);
    assert_int_equal(gems(w, 0, w->ann), 1010);
    assert_int_equal(gems(w, 1, w->bob), 90);
}

static void assert_held_back(struct world *w)
{
    assert_int_equal(HOME(w)->error->code, ERROR(QUARANTINED));
    assert_false(HOME(w)->error->final);
}

static void nobody_trades_with_a_player_held_back(void **state)
{
    struct world *w = *state;

    fixture_contain(&w->s.shards[1], w->bob);
    fixture_contain(HOME(w), w->amy);
    assert_null(swap(w, w->amy, "claim:here"));
    assert_held_back(w);
    swap_pending(w, w->bob, "claim:there");
    fixture_carry_all(&w->s);
    assert_int_equal(state_of(w, "claim:there"), OPERATION(UNKNOWN));
    assert_int_equal(gold(w, 0, w->ann), 100);
    assert_int_equal(gems(w, 1, w->bob), 100);
    fixture_contain(HOME(w), w->ann);
    assert_null(swap(w, w->cat, "claim:self"));
    assert_held_back(w);
    fixture_release(HOME(w), w->ann);
    fixture_release(HOME(w), w->amy);
    fixture_release(&w->s.shards[1], w->bob);
    assert_non_null(swap(w, w->amy, "claim:here"));
    swap_pending(w, w->bob, "claim:there");
    fixture_carry_all(&w->s);
    assert_int_equal(state_of(w, "claim:there"), OPERATION(COMMITTED));
}

static void a_transaction_that_was_prepared_is_finished_though_held_back(void **state)
{
    struct world *w = *state;

    swap_pending(w, w->bob, "claim:a");
    fixture_settle(&w->s, 0, 1, fixture_deliver(&w->s, 1, fixture_batch(&w->s, 0, 1)));
    fixture_contain(&w->s.shards[1], w->bob);
    fixture_carry_all(&w->s);
    assert_int_equal(state_of(w, "claim:a"), OPERATION(COMMITTED));
    assert_int_equal(gems(w, 1, w->bob), 90);
}

int main(void)
{
#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_swap_is_pending_until_both_sides_have_voted),
        WORLD_TEST(the_answer_says_how_the_transaction_leaves_each_player),
        WORLD_TEST(what_is_refused_there_moves_nothing_here),
        WORLD_TEST(every_step_survives_the_death_of_every_owner),
        WORLD_TEST(a_prepare_and_a_finish_that_come_twice_are_done_once),
        WORLD_TEST(a_writer_that_meets_an_intent_is_told_to_come_back),
        WORLD_TEST(plain_reads_pass_and_settled_ones_do_not),
        WORLD_TEST(two_that_meet_both_end_and_one_may_try_again),
        WORLD_TEST(a_conflict_leaves_how_an_earlier_attempt_was_refused),
        WORLD_TEST(a_finish_that_comes_again_leaves_a_later_transaction_alone),
        WORLD_TEST(a_seal_before_the_vote_aborts_and_poisons_the_prepare),
        WORLD_TEST(a_seal_after_the_vote_gives_everything_back),
        WORLD_TEST(a_seal_after_the_decision_tells_it),
        WORLD_TEST(fences_are_checked_where_the_player_is_prepared),
        WORLD_TEST(a_steal_waits_until_the_transaction_is_through),
        WORLD_TEST(three_shards_decide_once_all_have_voted),
        WORLD_TEST(one_that_refuses_undoes_the_others),
        WORLD_TEST(items_keep_their_uids_and_attributes_across_shards),
        WORLD_TEST(each_ledger_names_who_else_took_part),
        WORLD_TEST(below_its_apply_version_a_ledger_names_no_other),
        WORLD_TEST(what_is_in_escrow_is_not_there_to_be_sent),
        WORLD_TEST(a_retry_with_a_new_session_is_the_same_operation),
        WORLD_TEST(goods_that_come_back_meanwhile_do_not_break_the_promise),
        WORLD_TEST(nobody_trades_with_a_player_held_back),
        WORLD_TEST(a_transaction_that_was_prepared_is_finished_though_held_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
