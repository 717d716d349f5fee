/* Records of an outbox that cannot be read: of every kind, in every state, they are repaired, and
 * nothing is lost or there twice. */
#include "node/rpc/fixture_records.h"
#include "runtime/base/check.h"

/* ---- a record that cannot be read ---- */

static void undelivered(struct record_world *w, const struct record_kind *kind, bool restart)
{
    kind->open(w, OP);
    deliver_request *late = fixture_batch(&w->s, 0, 1);
    records_spoil(w, true, 1);
    if (restart)
        fixture_restart_all(&w->s);
    assert_int_equal(fixture_batch(&w->s, 0, 1)->n_credits, 0);
    repair_response *response =
        records_repair_sent(w, 1, records_stated(w, records_op_of(w, kind)));
    assert_non_null(response);
    assert_int_equal(response->record->kind, kind->kind);
    fixture_carry_all(&w->s);
    if (kind->kind != RECORD_KIND(RECEIPT)) {
        assert_int_equal(records_state_of(w, OP), OPERATION(ABORTED));
        /* A copy of what was sent before is too late. */
        int decision = (int)fixture_deliver(&w->s, 1, late)->results[0]->decision;
        assert_true(decision == DECISION(CANCELLED) || decision == DECISION(SETTLED));
    }
    records_assert_as_before(w);
    records_try_again(w, kind);
}

static void decided_and_the_answer_lost(struct record_world *w, const struct record_kind *kind)
{
    kind->open(w, OP);
    assert_int_equal(records_deliver(w)->results[0]->decision, DECISION(APPLIED));
    records_spoil(w, true, 1);
    assert_non_null(records_repair_sent(w, 1, records_stated(w, records_op_of(w, kind))));
    fixture_carry_all(&w->s);
    records_try_again(w, kind);
    if (kind->kind == RECORD_KIND(RECEIPT))
        return;
    assert_int_equal(records_state_of(w, OP), OPERATION(COMMITTED));
    records_assert_all_is_there(w, 0);
    const struct record_wealth bob = records_wealth_of(w, 1);
    assert_int_equal(bob.mails, kind->kind == RECORD_KIND(MAIL));
    assert_true(bob.gold + (int64_t)bob.orbs > 0 || kind->open == records_text);
}

/* The answer comes after the damage, and before the repair: by then it has no effect. */
static void answered_while_it_could_not_be_read(struct record_world *w,
                                                const struct record_kind *kind)
{
    kind->open(w, OP);
    (void)records_deliver(w);
    records_spoil(w, true, 1);
    fixture_settle(&w->s, 0, 1, w->decided);
    assert_non_null(records_repair_sent(w, 1, records_stated(w, records_op_of(w, kind))));
    fixture_settle(&w->s, 0, 1, w->decided);
    fixture_carry_all(&w->s);
    records_try_again(w, kind);
    records_assert_all_is_there(w, kind->kind == RECORD_KIND(RECEIPT) ? PAID : 0);
}

static void settled(struct record_world *w, const struct record_kind *kind)
{
    kind->open(w, OP);
    fixture_carry_all(&w->s);
    assert_null(records_repair_sent(w, 1, records_stated(w, records_op_of(w, kind))));
    records_refused(w, 0, "key");
    records_spoil(w, true, 1); /* A row where there was none: it means nothing. */
    repair_response *response =
        records_repair_sent(w, 1, records_stated(w, records_op_of(w, kind)));
    assert_non_null(response);
    assert_int_equal(response->row->outcome, OUTCOME(DROPPED));
    assert_int_equal(records_state_of(w, records_op_of(w, kind)), OPERATION(COMMITTED));
    records_assert_all_is_there(w, kind->kind == RECORD_KIND(RECEIPT) ? PAID : 0);
}

static void undelivered_in_memory(struct record_world *w, const struct record_kind *kind)
{
    undelivered(w, kind, false);
}

static void undelivered_on_disk(struct record_world *w, const struct record_kind *kind)
{
    undelivered(w, kind, true);
}

static void what_was_not_delivered_comes_back(void **state)
{
    records_of_each_kind(state, undelivered_in_memory);
}

static void rows_that_are_not_in_memory_are_asked_for(void **state)
{
    records_of_each_kind(state, undelivered_on_disk);
}

static void what_was_applied_is_not_given_back(void **state)
{
    records_of_each_kind(state, decided_and_the_answer_lost);
}

static void an_answer_meanwhile_has_no_effect(void **state)
{
    records_of_each_kind(state, answered_while_it_could_not_be_read);
}

static void what_is_settled_stays_so(void **state)
{
    records_of_each_kind(state, settled);
}

/* ---- what only a person knows ---- */

static void spoil_ledger(struct record_world *w, uint64_t seq)
{
    struct state *state = applier_state(records_on(w, 0)->applier);
    struct row_key key;

    row_key_ledger(&key, entity_of_player(&w->s.arena, w->ann), seq);
    struct slice stood;
    assert_int_equal(state_find(state, row_key_slice(&key), &stood), STATE_PRESENT);
    state_begin(state);
    state_put(state, row_key_slice(&key), SLICE_LITERAL("\xff\xfe"));
    state_commit(state);
}

static void what_no_ledger_tells_a_person_states_within_limits(void **state)
{
    struct record_world *w = *state;
    record_message *record = records_stated(w, OP);

    records_pay(w, OP);
    records_spoil(w, true, 1);
    record->currencies = records_amount_of(w, "gold", 30);
    record->n_currencies = 1;
    assert_null(records_repair_sent(w, 1, record)); /* The ledger tells. */
    records_refused(w, 0, "record.currencies");
    assert_true(records_on(w, 0)->recorded);
    spoil_ledger(w, 2);
    assert_null(records_repair_sent(w, 1, records_stated(w, OP)));
    records_refused(w, 0, "record.currencies");
    record->currencies = records_amount_of(w, "shells", 30);
    assert_null(records_repair_sent(w, 1, record));
    records_refused(w, 0, "record.currencies[\"shells\"].currency");
    record->currencies = records_amount_of(w, "gold", (1ll << 46) + 1);
    assert_null(records_repair_sent(w, 1, record));
    records_refused(w, 0, "record.currencies[\"gold\"].amount");
    assert_false(records_on(w, 0)->recorded);
    record->currencies = records_amount_of(w, "gold", 30);
    assert_non_null(records_repair_sent(w, 1, record));
    fixture_carry_all(&w->s);
    assert_int_equal(records_state_of(w, OP), OPERATION(ABORTED));
    records_assert_as_before(w);
}

static void items_are_stated_as_their_histories_tell_them(void **state)
{
    struct record_world *w = *state;
    record_message *record = records_stated(w, OP);
    Holdfast__V1__Item orb = HOLDFAST__V1__ITEM__INIT;
    Holdfast__V1__Item *orbs[] = { &orb };

    orb.uid = w->orb;
    orb.kind = (char *)"orb";
    record->items = orbs;
    record->n_items = 1;
    records_give(w, OP);
    records_spoil(w, true, 1);
    spoil_ledger(w, 2);
    assert_null(records_repair_sent(w, 1, record));
    records_refused(w, 0, "record.items[0].step");
    orb.step = 2;
    orb.attributes = (char *)"[1]";
    assert_null(records_repair_sent(w, 1, record));
    records_refused(w, 0, "record.items[0].attributes");
    orb.attributes = (char *)"{}";
    assert_non_null(records_repair_sent(w, 1, record));
    fixture_carry_all(&w->s);
    records_assert_as_before(w);
}

static void what_is_given_up_does_not_come_back(void **state)
{
    struct record_world *w = *state;
    repair_request request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;

    records_pay(w, OP);
    records_spoil(w, true, 1);
    request.record = records_stated(w, OP);
    request.give_up = true;
    assert_null(records_repair(w, true, 1, &request));
    records_refused(w, 0, "give_up"); /* The ledger tells. */
    spoil_ledger(w, 2);
    assert_non_null(records_repair(w, true, 1, &request));
    fixture_carry_all(&w->s);
    assert_int_equal(records_state_of(w, OP), OPERATION(ABORTED));
    assert_int_equal(records_wealth_of(w, 0).gold, 70);
    assert_int_equal(records_wealth_of(w, 1).mails, 0);
}

static void a_record_of_no_known_operation_is_given_up_as_it_is(void **state)
{
    struct record_world *w = *state;
    repair_request request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;

    records_pay(w, OP);
    records_pay(w, AGAIN);
    records_spoil(w, true, 1);
    request.record = records_stated(w, AGAIN);
    assert_null(records_repair(w, true, 1, &request));
    records_refused(w, 0, "record.op_id"); /* It waits for another record. */
    request.record = NULL;
    request.give_up = true;
    repair_response *response = records_repair(w, true, 1, &request);
    assert_non_null(response);
    assert_int_equal(response->row->outcome, OUTCOME(DROPPED));
    fixture_carry_all(&w->s);
    assert_int_equal(records_state_of(w, AGAIN), OPERATION(COMMITTED));
    assert_int_equal(records_wealth_of(w, 0).gold, 40);
    assert_int_equal(records_channel(w, 0, 0, "")->outgoing->watermark, 2);
}

#define TEN        "0123456789"
#define EIGHTY     TEN TEN TEN TEN TEN TEN TEN TEN
#define LONG_OP_ID "claim:" EIGHTY EIGHTY

static void returned_mail_is_stated(void **state)
{
    struct record_world *w = *state;
    Holdfast__V1__ReturnExpiredMailRequest back = HOLDFAST__V1__RETURN_EXPIRED_MAIL_REQUEST__INIT;
    repair_request request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;
    Holdfast__V1__RecordKind kind = RECORD_KIND(RETURNED_MAIL);
    struct row_key key;

    records_pay(w, AGAIN);
    records_mail(w, OP);
    fixture_carry_all(&w->s);
    records_on(w, 1)->now_ms += 60000;
    back.player_id = w->bob;
    back.op_id = fixture_op_id(records_on(w, 1));
    back.authority = fixture_authority(records_on(w, 1), "system:mail");
    assert_non_null(fixture_mutate(records_on(w, 1), METHOD_RETURN_EXPIRED_MAIL, &back.base));
    row_key_outbox(&key, 0, 1);
    struct state *rows = applier_state(records_on(w, 1)->applier);
    state_begin(rows);
    state_put(rows, row_key_slice(&key), SLICE_LITERAL("\xff\xfe"));
    state_commit(rows);
    request.shard = 1;
    request.key = bytes_hex(&w->s.arena, row_key_slice(&key), STATE_KEY_BYTES_MAX);
    request.reason = (char *)"ticket 118";
    request.record = records_stated(w, "");
    request.record->player_id = w->bob;
    request.record->kind = kind;
    assert_null(fixture_mutate(records_on(w, 1), METHOD_REPAIR_ROW, &request.base));
    records_refused(w, 1, "record.to_player_id");
    request.record->to_player_id = w->ann;
    char *op_id = request.record->op_id;
    request.record->op_id = (char *)LONG_OP_ID; /* No replica could read the row. */
    assert_null(fixture_mutate(records_on(w, 1), METHOD_REPAIR_ROW, &request.base));
    records_refused(w, 1, "record.op_id");
    request.record->op_id = op_id;
    assert_null(fixture_mutate(records_on(w, 1), METHOD_REPAIR_ROW, &request.base));
    records_refused(w, 1, "record.currencies");
    Holdfast__V1__Item orb = HOLDFAST__V1__ITEM__INIT;
    Holdfast__V1__Item *orbs[] = { &orb };
    orb.uid = w->orb;
    orb.kind = (char *)"orb";
    orb.step = 2;
    request.record->items = orbs;
    request.record->n_items = 1;
    request.record->currencies = records_amount_of(w, "gold", 20);
    request.record->n_currencies = 1;
    assert_non_null(fixture_mutate(records_on(w, 1), METHOD_REPAIR_ROW, &request.base));
    fixture_carry_all(&w->s);
    records_assert_all_is_there(w, 0);
    assert_int_equal(records_wealth_of(w, 1).mails, 2);
}

/* ---- entries of the log ---- */

/* As another program might have logged it: no check stood before it. */
static void commit_unchecked(struct record_world *w, uint32_t shard, const repair_request *request)
{
    struct op op = { .method = METHOD_REPAIR_ROW };
    struct buf body = { 0 };

    op.request = arena_pack(&records_on(w, shard)->arena, &request->base);
    op_encode(&op, &body);
    fixture_commit(records_on(w, shard), buf_slice(&body));
    assert_int_equal(records_on(w, shard)->outcome.kind, OUTCOME_REFUSED);
    buf_deinit(&body);
}

static void an_entry_that_makes_no_sense_is_refused(void **state)
{
    struct record_world *w = *state;
    repair_request request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;
    Holdfast__V1__TransactionRef ref = HOLDFAST__V1__TRANSACTION_REF__INIT;

    records_pay(w, OP);
    records_pay(w, AGAIN);
    (void)records_deliver(w);
    records_spoil(w, true, 1);
    spoil_ledger(w, 2);
    records_spoil(w, false, 2);
    static const char *const keys[] = { "78",
                                        "7800010000",
                                        "78000100000000000000",
                                        "ffff",
                                        "7800010000000000000001",
                                        "6e00000000000000000002",
                                        "6e00000000000000000000" };
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        uint32_t shard = keys[i][0] == '6';
        request.key = text_lend(keys[i]);
        request.record = NULL;
        commit_unchecked(w, shard, &request);
        for (int kind = 0; kind <= 9; kind++) {
            request.record = records_stated(w, OP);
            request.record->kind = (Holdfast__V1__RecordKind)kind;
            request.record->currencies = records_amount_of(w, "gold", INT64_MIN);
            request.record->n_currencies = 1;
            commit_unchecked(w, shard, &request);
            request.record->transaction = &ref;
            ref.home_shard = ref.destination = UINT32_MAX;
            request.record->decision = (Holdfast__V1__RecordDecision)kind;
            request.record->player_id = text_lend("");
            commit_unchecked(w, shard, &request);
        }
    }
}

static void replicas_that_do_not_know_the_repair_are_waited_for(void **state)
{
    struct record_world *w = *state;
    struct meta *meta = (struct meta *)(uintptr_t)applier_meta(records_on(w, 0)->applier);

    records_pay(w, OP);
    records_spoil(w, true, 1);
    meta->apply_version = 4;
    assert_null(records_repair_sent(w, 1, records_stated(w, OP)));
    assert_int_equal(records_on(w, 0)->error->code, ERROR(UNIMPLEMENTED));
    assert_false(records_on(w, 0)->recorded);
    meta->apply_version = APPLY_VERSION;
    assert_non_null(records_repair_sent(w, 1, records_stated(w, OP)));
}

static void spoil_channel(struct record_world *w, uint32_t shard)
{
    struct state *state = applier_state(records_on(w, shard)->applier);
    struct row_key key;

    row_key_channel(&key, shard == 0, 1 - shard);
    state_begin(state);
    state_put(state, row_key_slice(&key), SLICE_LITERAL("\xff\xfe"));
    state_commit(state);
}

static void where_the_channel_stands_is_repaired_first(void **state)
{
    struct record_world *w = *state;

    records_pay(w, OP);
    (void)records_deliver(w);
    records_spoil(w, true, 1);
    records_spoil(w, false, 1);
    spoil_channel(w, 0);
    spoil_channel(w, 1);
    assert_null(records_repair_sent(w, 1, records_stated(w, OP)));
    records_refused(w, 0, "key");
    assert_null(records_repair_decision(w, 1, RECORD_DECISION(APPLIED)));
    records_refused(w, 1, "key");
}

static void a_record_that_can_be_read_is_never_touched(void **state)
{
    struct record_world *w = *state;

    records_pay(w, OP);
    assert_null(records_repair_sent(w, 1, records_stated(w, OP)));
    records_refused(w, 0, "key");
    (void)records_deliver(w);
    assert_null(records_repair_decision(w, 1, RECORD_DECISION(CANCELLED)));
    records_refused(w, 1, "key");
    fixture_carry_all(&w->s);
    records_assert_all_is_there(w, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, records_setup, records_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_was_not_delivered_comes_back),
        TEST(rows_that_are_not_in_memory_are_asked_for),
        TEST(what_was_applied_is_not_given_back),
        TEST(an_answer_meanwhile_has_no_effect),
        TEST(what_is_settled_stays_so),
        TEST(what_no_ledger_tells_a_person_states_within_limits),
        TEST(items_are_stated_as_their_histories_tell_them),
        TEST(what_is_given_up_does_not_come_back),
        TEST(a_record_of_no_known_operation_is_given_up_as_it_is),
        TEST(returned_mail_is_stated),
        TEST(an_entry_that_makes_no_sense_is_refused),
        TEST(replicas_that_do_not_know_the_repair_are_waited_for),
        TEST(where_the_channel_stands_is_repaired_first),
        TEST(a_record_that_can_be_read_is_never_touched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
