/* Decisions of an inbox that cannot be read, and decisions of transactions: they are repaired, and
 * nothing is lost or there twice. */
#include "node/rpc/fixture_records.h"

/* ---- a decision that cannot be read ---- */

static void decision_applied(struct record_world *w, const struct record_kind *kind)
{
    kind->open(w, OP);
    (void)records_deliver(w);
    records_spoil(w, false, 1);
    assert_int_equal(records_channel(w, 1, 1, "")->incoming->unreadable_seqs[0], 1);
    assert_int_equal(records_deliver(w)->results[0]->decision, DECISION(HELD));
    if (kind->kind != RECORD_KIND(RECEIPT)) {
        assert_null(records_repair_decision(w, 1, RECORD_DECISION(CANCELLED)));
        records_refused(w, 1, "record.decision");
    }
    repair_response *response = records_repair_decision(w, 1, RECORD_DECISION(UNSPECIFIED));
    assert_non_null(response);
    assert_int_equal(response->record->decision, RECORD_DECISION(APPLIED));
    fixture_carry_all(&w->s);
    assert_int_equal(records_state_of(w, records_op_of(w, kind)), OPERATION(COMMITTED));
    records_assert_all_is_there(w, kind->kind == RECORD_KIND(RECEIPT) ? PAID : 0);
}

/* Both rows: the record first, since only it knows the operation. */
static void both_applied(struct record_world *w, const struct record_kind *kind)
{
    kind->open(w, OP);
    (void)records_deliver(w);
    records_spoil(w, true, 1);
    records_spoil(w, false, 1);
    assert_non_null(records_repair_sent(w, 1, records_stated(w, records_op_of(w, kind))));
    if (kind->kind == RECORD_KIND(RECEIPT)) {
        records_try_again(w, kind);
        return;
    }
    assert_int_equal(records_deliver(w)->results[0]->decision, DECISION(HELD));
    repair_request request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;
    char *bob = w->bob;
    record_message record = *records_channel(w, 0, 1, "")->sent;
    assert_int_equal(record.kind, kind->kind);
    record.to_player_id = w->bob;
    record.player_ids = &bob;
    record.n_player_ids = 1;
    request.record =
        (record_message *)arena_unpack(&w->s.arena, &holdfast__v1__channel_record__descriptor,
                                       arena_pack(&w->s.arena, &record.base));
    assert_non_null(records_repair(w, false, 1, &request));
    fixture_carry_all(&w->s);
    assert_int_equal(records_state_of(w, OP), OPERATION(COMMITTED));
    records_assert_all_is_there(w, 0);
}

/* It waits for the receiver, but for a transaction. */
static void seal(struct record_world *w, const char *op_id)
{
    Holdfast__V1__ResolveOperationRequest request = HOLDFAST__V1__RESOLVE_OPERATION_REQUEST__INIT;

    request.entity = arena_printf(&w->s.arena, "player:%s", w->ann);
    request.op_id = text_lend(op_id);
    request.seal = true;
    (void)fixture_mutate(records_on(w, 0), METHOD_RESOLVE_OPERATION, &request.base);
}

static void decision_cancelled(struct record_world *w, const struct record_kind *kind)
{
    kind->open(w, OP);
    seal(w, records_op_of(w, kind));
    assert_int_equal(records_deliver(w)->results[0]->decision, DECISION(CANCELLED));
    records_spoil(w, false, 1);
    assert_int_equal(records_deliver(w)->results[0]->decision, DECISION(HELD));
    int decision = RECORD_DECISION(UNSPECIFIED);
    if (kind->kind == RECORD_KIND(MAIL)) { /* No row proves that mail never came. */
        assert_null(records_repair_decision(w, 1, decision));
        records_refused(w, 1, "record.decision");
        decision = RECORD_DECISION(CANCELLED);
    }
    repair_response *response = records_repair_decision(w, 1, decision);
    assert_non_null(response);
    assert_int_equal(response->record->decision, RECORD_DECISION(CANCELLED));
    fixture_carry_all(&w->s);
    assert_int_equal(records_state_of(w, records_op_of(w, kind)), OPERATION(ABORTED));
    records_assert_as_before(w);
}

static void decision_settled(struct record_world *w, const struct record_kind *kind)
{
    kind->open(w, OP);
    (void)records_deliver(w);
    fixture_settle(&w->s, 0, 1, w->decided);
    records_spoil(w, false, 1);
    assert_null(records_repair_decision(w, 1, RECORD_DECISION(APPLIED)));
    records_refused(w, 1, "record.kind"); /* The sender knows it no more. */
    records_pay(w, AGAIN);                /* The watermark comes with it. */
    (void)records_deliver(w);
    assert_int_equal(records_channel(w, 1, 1, "")->received->seq, 0);
    fixture_carry_all(&w->s);
    records_assert_all_is_there(w, kind->kind == RECORD_KIND(RECEIPT) ? PAID : 0);
}

static void a_decision_is_made_again_from_the_receivers_rows(void **state)
{
    records_of_each_kind(state, decision_applied);
}

static void both_rows_of_one_record_are_made_again(void **state)
{
    records_of_each_kind(state, both_applied);
}

static void what_was_cancelled_stays_so(void **state)
{
    records_of_each_kind(state, decision_cancelled);
}

static void a_decision_that_is_settled_goes_by_itself(void **state)
{
    records_of_each_kind(state, decision_settled);
}

static void claim(struct record_world *w, char *mail_id)
{
    Holdfast__V1__ClaimMailRequest request = HOLDFAST__V1__CLAIM_MAIL_REQUEST__INIT;

    request.player_id = w->bob;
    request.op_id = (char *)"claim:mail";
    request.authority = fixture_authority(records_on(w, 1), "unheld");
    request.mail_ids = &mail_id;
    request.n_mail_ids = 1;
    assert_non_null(fixture_mutate(records_on(w, 1), METHOD_CLAIM_MAIL, &request.base));
}

static void a_person_says_what_became_of_mail_that_was_claimed(void **state)
{
    struct record_world *w = *state;

    records_mail(w, OP);
    claim(w, text_lend(records_deliver(w)->results[0]->mail_id));
    records_spoil(w, false, 1);
    assert_null(records_repair_decision(w, 1, RECORD_DECISION(UNSPECIFIED)));
    records_refused(w, 1, "record.decision");
    assert_null(records_repair_decision(w, 1, RECORD_DECISION(REJECTED)));
    records_refused(w, 1, "record.decision");
    assert_non_null(records_repair_decision(w, 1, RECORD_DECISION(APPLIED)));
    fixture_carry_all(&w->s);
    assert_int_equal(records_state_of(w, OP), OPERATION(COMMITTED));
    records_assert_all_is_there(w, 0);
    assert_int_equal(records_wealth_of(w, 1).gold, 20);
}

/* ---- how a transaction was decided ---- */

static repair_response *repair_finish(struct record_world *w, uint64_t seq, const char *player)
{
    return records_repair_sent(w, seq, records_finish_stated(w, player, NULL));
}

static void finish_open(struct record_world *w)
{
    records_swap(w, OP);
    fixture_settle(&w->s, 0, 1, records_deliver(w));
    assert_int_equal(records_state_of(w, OP), OPERATION(COMMITTED));
    assert_string_equal(records_channel(w, 1, 0, w->bob)->held_op_id, OP);
}

static void a_lost_decision_is_told_again(void **state)
{
    struct record_world *w = *state;

    finish_open(w);
    records_spoil(w, true, 2);
    assert_null(records_repair_sent(w, 2, records_stated(w, OP)));
    records_refused(w, 0,
                    "record.op_id"); /* No operation waits for it, and the kind is not said. */
    assert_null(repair_finish(w, 2, w->ann));
    records_refused(w, 0, "record.player_ids");
    assert_non_null(repair_finish(w, 2, w->bob));
    fixture_carry_all(&w->s);
    records_assert_all_is_there(w, 0);
    assert_int_equal(records_wealth_of(w, 0).gems, 10);
    assert_int_equal(records_wealth_of(w, 1).gold, 30);
    assert_int_equal(records_wealth_of(w, 1).orbs, 1);
    assert_null(records_channel(w, 1, 0, w->bob)->held_by);
}

static void a_lost_decision_that_was_carried_out_does_nothing_again(void **state)
{
    struct record_world *w = *state;

    finish_open(w);
    Holdfast__V1__TransactionRef ref = *records_channel(w, 1, 0, w->bob)->held_by;
    (void)records_deliver(w);
    records_spoil(w, true, 2);
    assert_non_null(records_repair_sent(w, 2, records_finish_stated(w, w->bob, &ref)));
    fixture_carry_all(&w->s);
    records_assert_all_is_there(w, 0);
    assert_int_equal(records_wealth_of(w, 1).gold, 30);
}

static void a_transaction_that_was_aborted_is_told_so_again(void **state)
{
    struct record_world *w = *state;

    records_swap(w, OP);
    (void)records_deliver(w);
    assert_int_equal(fixture_seal(records_on(w, 0), w->ann, OP)->state, OPERATION(ABORTED));
    fixture_settle(&w->s, 0, 1, records_deliver(w));
    records_spoil(w, true, 2);
    assert_non_null(repair_finish(w, 2, w->bob));
    fixture_carry_all(&w->s);
    records_assert_as_before(w);
}

/* ---- ... and no outcome tells it ---- */

/* Ann, bob and cy of shard 2, whom another transaction holds. */
static void conflict(struct record_world *w)
{
    Holdfast__V1__ExecuteTransactionRequest request =
        HOLDFAST__V1__EXECUTE_TRANSACTION_REQUEST__INIT;
    Holdfast__V1__TransactionPlayer others[2], *other_list[2];
    Holdfast__V1__TransactionGrant grants[2];
    Holdfast__V1__TransactionMove move = HOLDFAST__V1__TRANSACTION_MOVE__INIT;
    Holdfast__V1__TransactionChange changes[3], *change_list[3];
    char cy[16], *players[] = { cy, w->bob };

    fixture_name_on(2, "cy", cy);
    for (uint32_t i = 0; i < 3; i++) {
        holdfast__v1__transaction_change__init(&changes[i]);
        change_list[i] = &changes[i];
    }
    for (uint32_t i = 0; i < 2; i++) {
        holdfast__v1__transaction_player__init(&others[i]);
        holdfast__v1__transaction_grant__init(&grants[i]);
        others[i].player_id = grants[i].player_id = players[i];
        others[i].authority = fixture_authority(records_on(w, 0), "unheld");
        grants[i].currencies = records_amount_of(w, "gems", 1);
        grants[i].n_currencies = 1;
        changes[i].change_case = HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_GRANT;
        changes[i].grant = &grants[i];
        other_list[i] = &others[i];
    }
    move.from_player_id = w->ann;
    move.to_player_id = w->bob;
    move.currencies = records_amount_of(w, "gold", 30);
    move.n_currencies = 1;
    changes[2].change_case = HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_MOVE;
    changes[2].move = &move;
    request.player_id = w->ann;
    request.authority = others[0].authority;
    request.others = other_list;
    request.changes = change_list;
    request.op_id = (char *)AGAIN; /* Cy alone, of another home. */
    request.n_others = request.n_changes = 1;
    char dee[16];
    fixture_name_on(3, "dee", dee);
    request.player_id = dee;
    assert_null(fixture_mutate(records_on(w, 3), METHOD_EXECUTE_TRANSACTION, &request.base));
    (void)fixture_deliver(&w->s, 2, fixture_batch(&w->s, 3, 2));
    request.player_id = w->ann;
    request.op_id = (char *)OP;
    request.n_others = 2;
    request.n_changes = 3;
    assert_null(fixture_mutate(records_on(w, 0), METHOD_EXECUTE_TRANSACTION, &request.base));
    fixture_settle(&w->s, 0, 1, records_deliver(w));
    fixture_carry(&w->s, 0, 2);
    assert_int_equal(records_state_of(w, OP), OPERATION(UNKNOWN));
    assert_string_equal(records_channel(w, 1, 0, w->bob)->held_op_id, OP);
}

static repair_response *repair_decided(struct record_world *w, int decision)
{
    record_message *record = records_finish_stated(w, w->bob, NULL);

    record->decision = (Holdfast__V1__RecordDecision)decision;
    return records_repair_sent(w, 2, record);
}

static void a_person_says_that_a_transaction_was_aborted_which_left_no_outcome(void **state)
{
    struct record_world *w = *state;
    struct meta *meta = (struct meta *)(uintptr_t)applier_meta(records_on(w, 0)->applier);

    conflict(w);
    records_spoil(w, true, 2);
    assert_null(repair_decided(w, RECORD_DECISION(UNSPECIFIED)));
    records_refused(w, 0, "record.op_id");
    assert_null(repair_decided(w, RECORD_DECISION(CANCELLED)));
    records_refused(w, 0, "record.decision");
    meta->apply_version = DECISION_STATED_APPLY_VERSION - 1;
    assert_null(repair_decided(w, RECORD_DECISION(ABORTED)));
    assert_int_equal(records_on(w, 0)->error->code, ERROR(UNIMPLEMENTED));
    meta->apply_version = APPLY_VERSION;
    seal(w, OP); /* A seal says nothing of what was before it. */
    assert_non_null(repair_decided(w, RECORD_DECISION(ABORTED)));
    fixture_carry_all(&w->s);
    assert_null(records_channel(w, 1, 0, w->bob)->held_by);
    records_assert_as_before(w);
}

static void a_person_says_that_a_transaction_was_committed_whose_outcome_was_pruned(void **state)
{
    struct record_world *w = *state;
    Holdfast__V1__Item orb = HOLDFAST__V1__ITEM__INIT;
    Holdfast__V1__Item *orbs[] = { &orb };

    finish_open(w);
    records_spoil(w, true, 2);
    assert_null(repair_decided(w, RECORD_DECISION(ABORTED))); /* The outcome tells. */
    records_refused(w, 0, "record.decision");
    records_prune(w, OP);
    record_message *record = records_finish_stated(w, w->bob, NULL);
    record->decision = RECORD_DECISION(COMMITTED);
    record->currencies = records_amount_of(w, "gold", 30);
    record->n_currencies = 1;
    assert_null(records_repair_sent(w, 2, record));
    records_refused(w, 0, "record.currencies");
    record->n_currencies = 0;
    orb.uid = w->orb;
    orb.kind = (char *)"orb";
    record->items = orbs;
    record->n_items = 1;
    assert_null(records_repair_sent(w, 2, record));
    records_refused(w, 0, "record.items[0].step");
    orb.step = 2;
    assert_non_null(records_repair_sent(w, 2, record));
    fixture_carry_all(&w->s);
    records_assert_all_is_there(w, 0);
    assert_int_equal(records_wealth_of(w, 1).gold, 30);
    assert_int_equal(records_wealth_of(w, 1).orbs, 1);
}

static void no_person_decides_a_transaction_that_is_open(void **state)
{
    struct record_world *w = *state;

    records_pay(w, AGAIN);
    records_swap(w, OP);
    (void)records_deliver(w);
    records_spoil(w, true, 1);
    records_prune(w, OP);
    record_message *record = records_finish_stated(w, w->bob, NULL);
    record->decision = RECORD_DECISION(ABORTED);
    assert_null(records_repair_sent(w, 1, record));
    records_refused(w, 0, "record.op_id");
}

/* Nothing says who takes part; it is aborted, as every vote on such a transaction is. */
static void lost_with_its_transaction(struct record_world *w, bool delivered)
{
    struct state *state = applier_state(records_on(w, 0)->applier);
    struct row_key key;

    records_swap(w, OP);
    if (delivered)
        (void)records_deliver(w);
    records_spoil(w, true, 1);
    row_key_txn(&key, 1, 1);
    state_begin(state);
    state_put(state, row_key_slice(&key), SLICE_LITERAL("\xff\xfe"));
    state_commit(state);
    assert_null(records_repair_sent(w, 1, records_stated(w, AGAIN)));
    records_refused(w, 0, "record.op_id");
    repair_response *response = records_repair_sent(w, 1, records_stated(w, OP));
    assert_non_null(response);
    assert_int_equal(response->record->kind, RECORD_KIND(PREPARE));
    fixture_carry_all(&w->s);
    records_assert_as_before(w);
    assert_int_equal(records_state_of(w, OP), OPERATION(PENDING)); /* Until a person ends it. */
}

static void a_request_is_lost_with_its_transaction(void **state)
{
    lost_with_its_transaction(*state, false);
}

static void a_request_that_was_voted_for_is_lost_with_its_transaction(void **state)
{
    lost_with_its_transaction(*state, true);
}

static void a_decision_on_it_is_made_again(void **state)
{
    struct record_world *w = *state;

    finish_open(w);
    (void)records_deliver(w);
    records_spoil(w, false, 2);
    assert_int_equal(records_deliver(w)->results[0]->decision, DECISION(HELD));
    assert_non_null(records_repair_decision(w, 2, RECORD_DECISION(UNSPECIFIED)));
    fixture_carry_all(&w->s);
    records_assert_all_is_there(w, 0);
    assert_int_equal(records_wealth_of(w, 1).gold, 30);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, records_setup, records_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_decision_is_made_again_from_the_receivers_rows),
        TEST(both_rows_of_one_record_are_made_again),
        TEST(what_was_cancelled_stays_so),
        TEST(a_decision_that_is_settled_goes_by_itself),
        TEST(a_person_says_what_became_of_mail_that_was_claimed),
        TEST(a_lost_decision_is_told_again),
        TEST(a_lost_decision_that_was_carried_out_does_nothing_again),
        TEST(a_transaction_that_was_aborted_is_told_so_again),
        TEST(a_person_says_that_a_transaction_was_aborted_which_left_no_outcome),
        TEST(a_person_says_that_a_transaction_was_committed_whose_outcome_was_pruned),
        TEST(no_person_decides_a_transaction_that_is_open),
        TEST(a_request_is_lost_with_its_transaction),
        TEST(a_request_that_was_voted_for_is_lost_with_its_transaction),
        TEST(a_decision_on_it_is_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
