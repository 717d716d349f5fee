/* AddToCounter: what a player added, and the shard's part of the total, change together. */
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/favorite/favorite.h"
#include "node/core/repair/row_repair.h"
#include "node/rpc/fixture_counter.h"
#include "node/rpc/fixture_edges.h"
#include "runtime/base/hex.h"

#define NUMBER 9u /* Of "plays". */

static int setup(void **state)
{
    int failed = fixture_setup(state);

    if (failed == 0)
        fixture_define_plays(*state);
    return failed;
}

static int teardown(void **state)
{
    fixture_check_counters(*state);
    return fixture_teardown(state);
}

#define COUNTER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void a_value_and_its_part_of_the_total_change_together(void **state)
{
    struct fixture *f = *state;
    const Holdfast__V1__AddToCounterResponse *told =
        fixture_addition(f, &(struct fixture_addition){ "ann", "pong", 5, NULL, NULL, NULL });

    assert_non_null(told);
    assert_int_equal(told->value, 5);
    assert_int_equal(told->targets, 1);
    assert_int_equal(fixture_part(f, "plays", "pong"), 5);
    assert_int_equal(fixture_add(f, "bob", "pong", 7), 7);
    assert_int_equal(fixture_add(f, "ann", "pong", 1), 6);
    assert_int_equal(fixture_part(f, "plays", "pong"), 13);
    told = fixture_addition(f, &(struct fixture_addition){ "ann", "chess", 2, NULL, NULL, NULL });
    assert_int_equal(told->value, 2);
    assert_int_equal(told->targets, 2);
    fixture_restart(f);
    assert_int_equal(fixture_value(f, "ann", "pong"), 6);
    assert_int_equal(fixture_value(f, "ann", "go"), 0);
    assert_int_equal(fixture_part(f, "plays", "pong"), 13);
    assert_int_equal(fixture_part(f, "plays", "go"), 0);
}

static void a_repetition_adds_nothing(void **state)
{
    struct fixture *f = *state;
    struct fixture_addition addition = { .player = "ann", .target = "pong", .amount = 5 };

    addition.op_id = fixture_op_id(f);
    assert_non_null(fixture_addition(f, &addition));
    assert_int_equal(fixture_add(f, "ann", "pong", 1), 6);
    assert_int_equal(fixture_addition(f, &addition)->value, 5); /* As it was told then. */
    assert_true(f->outcome.duplicate);
    assert_int_equal(fixture_part(f, "plays", "pong"), 6);
    addition.amount = 6;
    assert_null(fixture_addition(f, &addition));
    assert_int_equal(f->error->code, ERROR(OPERATION_ID_MISMATCH));
    assert_int_equal(fixture_part(f, "plays", "pong"), 6);
}

/* Also when the rule has changed since: it was carried out. */
static void a_repetition_under_a_stricter_rule_finds_the_outcome(void **state)
{
    struct fixture *f = *state;
    struct fixture_addition addition = { .player = "ann", .target = "pong", .amount = 500 };

    addition.op_id = fixture_op_id(f);
    assert_non_null(fixture_addition(f, &addition));
    fixture_define_counter(f, &(struct fixture_counter){ NUMBER, 30, "plays", 10, 10, false });
    assert_int_equal(fixture_addition(f, &addition)->value, 500);
    assert_true(f->outcome.duplicate);
    assert_int_equal(fixture_add(f, "ann", "pong", 1), -1); /* It is above its maximum as it is. */
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    assert_int_equal(fixture_value(f, "ann", "pong"), 500);
}

static void a_value_stops_at_its_maximum(void **state)
{
    struct fixture *f = *state;

    fixture_define_counter(f, &(struct fixture_counter){ NUMBER, 30, "plays", 100, 60, false });
    assert_int_equal(fixture_add(f, "ann", "pong", 60), 60);
    assert_int_equal(fixture_add(f, "ann", "pong", 41), -1);
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    assert_int_equal(f->outcome.kind, OUTCOME_REFUSED);
    assert_string_equal(f->error->field, "amount");
    assert_string_equal(f->error->limit, "100");
    assert_string_equal(f->error->value, "41");
    assert_string_equal(f->error->capacity->what, "the player's value");
    assert_int_equal(f->error->capacity->max, 100);
    assert_int_equal(fixture_add(f, "ann", "pong", 40), 100);
    assert_int_equal(fixture_add(f, "ann", "pong", 1), -1);
    assert_int_equal(fixture_add(f, "bob", "pong", 60), 60); /* Another player's. */
    assert_int_equal(fixture_part(f, "plays", "pong"), 160);
    assert_int_equal(fixture_add(f, "bob", "chess", 61), -1);
    assert_string_equal(f->error->limit, "60");
    assert_string_equal(f->error->capacity->what, "one addition");
    assert_int_equal(fixture_part(f, "plays", "chess"), 0);
}

static void the_greatest_amount_is_exact_in_every_json_reader(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(fixture_add(f, "ann", "pong", COUNTER_VALUE_MAX), COUNTER_VALUE_MAX);
    assert_int_equal(fixture_add(f, "ann", "pong", 1), -1);
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    assert_int_equal(fixture_add(f, "bob", "pong", COUNTER_VALUE_MAX), COUNTER_VALUE_MAX);
    assert_int_equal(fixture_part(f, "plays", "pong"), 2 * (uint64_t)COUNTER_VALUE_MAX);
    fixture_restart(f);
    assert_int_equal(fixture_part(f, "plays", "pong"), 2 * (uint64_t)COUNTER_VALUE_MAX);
}

/* So that the sum of all shards' parts has room in 63 bits. */
static void a_part_stops_at_its_share_of_the_greatest_total(void **state)
{
    struct fixture *f = *state;
    struct state *rows = applier_state(f->applier);
    struct partial_row partial = { .count = partial_max(f->shard_count) - 10, .changed = { 1, 1 } };
    struct buf bytes = { 0 };
    struct row_key key;

    partial_row_encode(&partial, &bytes);
    row_key_partial(&key, NUMBER, SLICE_LITERAL("pong"));
    state_begin(rows);
    state_put(rows, row_key_slice(&key), buf_slice(&bytes));
    state_commit(rows);
    buf_deinit(&bytes);
    assert_int_equal(fixture_add(f, "ann", "pong", 11), -1);
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    assert_string_equal(f->error->capacity->what, "the shard's part of the total");
    assert_int_equal(fixture_value(f, "ann", "pong"), 0);
    assert_int_equal(fixture_add(f, "ann", "pong", 10), 10);
    assert_int_equal(fixture_part(f, "plays", "pong"), partial_max(f->shard_count));
    assert_true(partial_max(1) == INT64_MAX && partial_max(0) == INT64_MAX);
    assert_true(partial_max(65536) <= (uint64_t)INT64_MAX / 65536);
}

static void a_player_adds_to_only_so_many_targets(void **state)
{
    struct fixture *f = *state;
    const struct favorites_row own = { .edges = COUNTER_TARGETS_MAX - 1 };
    struct state *rows = applier_state(f->applier);
    struct buf bytes = { 0 };
    struct row_key key;

    favorites_row_encode(&own, &bytes);
    row_key_favorites(&key, SLICE_LITERAL("player:ann"), NUMBER);
    state_begin(rows);
    state_put(rows, row_key_slice(&key), buf_slice(&bytes));
    state_commit(rows);
    buf_deinit(&bytes);
    assert_int_equal(fixture_add(f, "ann", "pong", 1), 1);
    assert_int_equal(fixture_add(f, "ann", "chess", 1), -1);
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    assert_string_equal(f->error->field, "target_id");
    assert_string_equal(f->error->limit, "10000");
    assert_int_equal(fixture_part(f, "plays", "chess"), 0);
    assert_int_equal(fixture_add(f, "ann", "pong", 1), 2); /* One that is counted already. */
}

static void bad_fields_are_refused_before_the_log(void **state)
{
    static const char long_id[] =
        "0123456789012345678901234567890123456789012345678901234567890123"
        "01234567890123456789012345678901234567890123456789012345678901234";
    static const char *const targets[] = { "", long_id, "\xff", "a\nb" };
    static const int64_t amounts[] = { 0, -1, INT64_MIN, COUNTER_VALUE_MAX + 1, INT64_MAX };
    struct fixture *f = *state;
    struct fixture_addition addition = { .player = "ann", .target = "pong", .amount = 1 };

    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(fixture_add(f, "ann", targets[i], 1), -1);
        assert_false(f->recorded);
        assert_string_equal(f->error->field, "target_id");
        assert_int_equal(fixture_value(f, "ann", targets[i]), -1);
        assert_string_equal(f->error->field, "target_ids[0]");
    }
    assert_int_equal(fixture_add(f, "ann", long_id + 1, 1), 1);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(fixture_add(f, "ann", "pong", amounts[i]), -1);
        assert_false(f->recorded);
        assert_string_equal(f->error->field, "amount");
        assert_string_equal(f->error->limit, "1 to 9007199254740991");
    }
    addition.counter = "";
    assert_null(fixture_addition(f, &addition));
    assert_string_equal(f->error->field, "counter");
    assert_string_equal(f->error->limit, "1 to 64 of a-z, 0-9 and _");
    addition.counter = "Plays";
    assert_null(fixture_addition(f, &addition));
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    addition.counter = NULL;
    addition.authority = "";
    assert_null(fixture_addition(f, &addition));
    assert_string_equal(f->error->field, "authority");
    assert_false(f->recorded);
}

static void an_unknown_counter_is_refused_before_the_log(void **state)
{
    struct fixture *f = *state;
    struct fixture_addition addition = { "ann", "pong", 1, "play", NULL, NULL };

    fixture_define(f, &(struct fixture_collection){ 11, 30, "likes", POLICY_HIGHEST, 0, false });
    assert_null(fixture_addition(f, &addition));
    assert_false(f->recorded);
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    assert_string_equal(f->error->field, "counter");
    assert_non_null(strstr(f->error->message, "did you mean plays?"));
    addition.counter = "likes"; /* Of another kind. */
    assert_null(fixture_addition(f, &addition));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    assert_int_equal(fixture_part(f, "likes", "pong"), UINT64_MAX);
    assert_int_equal(fixture_partial(f, "plays", "pong"), UINT64_MAX);
    assert_int_equal(fixture_partial(f, "likes", "pong"), 0);
}

static void a_counter_that_is_deleted_meanwhile_refuses_at_apply(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__AddToCounterRequest request = HOLDFAST__V1__ADD_TO_COUNTER_REQUEST__INIT;
    struct buf body = { 0 };

    request.player_id = text_lend("ann");
    request.op_id = fixture_op_id(f);
    request.authority = text_lend("unheld");
    request.counter = text_lend("plays");
    request.target_id = text_lend("pong");
    request.amount = 1;
    assert_true(fixture_prepare(f, METHOD_ADD_TO_COUNTER, &request.base, &body));
    fixture_define_counter(f, &(struct fixture_counter){ NUMBER, 30, "plays", 0, 0, true });
    fixture_commit(f, buf_slice(&body));
    assert_int_equal(f->outcome.kind, OUTCOME_REFUSED);
    const Holdfast__Internal__V1__Refusal *refusal = (const void *)arena_unpack(
        &f->arena, &holdfast__internal__v1__refusal__descriptor, f->outcome.body);
    assert_int_equal(refusal->code, ERROR(NOT_FOUND));
    assert_true(refusal->final);
    buf_deinit(&body);
}

/* In memory, and after a restart, when only the database knows the outcome. */
static void a_repetition_gets_its_answer_after_the_counter_is_deleted(void **state)
{
    struct fixture *f = *state;
    const struct fixture_addition first = {
        .player = "ann", .target = "pong", .amount = 3, .op_id = "season:1"
    };
    const struct fixture_addition other = {
        .player = "ann", .target = "pong", .amount = 3, .op_id = "season:2"
    };

    assert_int_equal(fixture_add(f, "bob", "pong", 1), 1);
    assert_non_null(fixture_addition(f, &first));
    fixture_define_counter(f, &(struct fixture_counter){ NUMBER, 30, "plays", 0, 0, true });
    for (uint32_t i = 0; i < 2; i++) {
        const Holdfast__V1__AddToCounterResponse *again = fixture_addition(f, &first);
        assert_non_null(again);
        assert_true(f->outcome.duplicate);
        assert_int_equal(again->value, 3);
        fixture_restart(f);
    }
    assert_null(fixture_addition(f, &other));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    f->now_ms++;
    assert_int_equal(fixture_add(f, "ann", "pong", 1), -1);
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    assert_false(f->recorded); /* No outcome of a new UUIDv7 can stand. */
}

static void a_name_made_again_meets_nothing_of_its_former_life(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(fixture_add(f, "ann", "pong", 5), 5);
    fixture_define_counter(f, &(struct fixture_counter){ NUMBER, 30, "plays", 0, 0, true });
    assert_int_equal(fixture_add(f, "ann", "pong", 1), -1);
    fixture_define_counter(f, &(struct fixture_counter){ 12, 40, "plays", 0, 0, false });
    assert_int_equal(fixture_value(f, "ann", "pong"), 0);
    assert_int_equal(fixture_part(f, "plays", "pong"), 0);
    assert_int_equal(fixture_add(f, "ann", "pong", 2), 2);
    assert_int_equal(fixture_part(f, "plays", "pong"), 2);
}

/* Replicas of an earlier program could not apply it. */
static void shards_of_an_earlier_version_do_not_add(void **state)
{
    struct fixture *f = *state;
    struct meta *meta = (struct meta *)(uintptr_t)applier_meta(f->applier);
    struct state *rows = applier_state(f->applier);
    struct row_key names;
    struct slice value;

    state_begin(rows);
    row_key_names(&names, ROW_NAMES_COUNTERS);
    state_delete(rows, row_key_slice(&names));
    state_commit(rows);
    meta->apply_version = COUNTER_APPLY_VERSION - 1;
    fixture_define_counter(f, &(struct fixture_counter){ 12, 30, "wins", 0, 0, false });
    assert_int_equal(state_find(rows, row_key_slice(&names), &value), STATE_ABSENT);
    assert_int_equal(fixture_add(f, "ann", "pong", 5), -1);
    assert_int_equal(f->error->code, ERROR(UNAVAILABLE));
    assert_false(f->recorded);
    meta->apply_version = COUNTER_APPLY_VERSION;
    fixture_restart(f);
    assert_int_equal(fixture_add(f, "ann", "pong", 5), 5); /* Definitions are looked through. */
    assert_int_equal(fixture_part(f, "wins", "pong"), 0);
    assert_int_equal(fixture_part(f, "win", "pong"), UINT64_MAX);
    assert_non_null(strstr(f->error->message, "did you mean wins?"));
}

/* ---- repairs ---- */
static void spoil(struct fixture *f, const struct row_key *key)
{
    struct state *rows = applier_state(f->applier);

    state_begin(rows);
    state_put(rows, row_key_slice(key), SLICE_LITERAL("?"));
    state_commit(rows);
}

static const Holdfast__V1__RepairRowResponse *repair(struct fixture *f, const struct row_key *key)
{
    Holdfast__V1__RepairRowRequest request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;
    char hex[2 * STATE_KEY_BYTES_MAX + 1];

    hex_print(key->bytes, key->size, hex);
    request.key = hex;
    request.reason = text_lend("rot");
    return fixture_mutate(f, METHOD_REPAIR_ROW, &request.base);
}

static void sums_and_who_added_are_made_again(void **state)
{
    struct fixture *f = *state;
    struct row_key partial, adder;

    assert_int_equal(fixture_add(f, "ann", "pong", 5), 5);
    assert_int_equal(fixture_add(f, "bob", "pong", 7), 7);
    row_key_partial(&partial, NUMBER, SLICE_LITERAL("pong"));
    spoil(f, &partial);
    assert_int_equal(fixture_part(f, "plays", "pong"), UINT64_MAX);
    assert_int_equal(fixture_add(f, "ann", "pong", 1), -1);
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
    row_key_adder_prefix(&adder, NUMBER, SLICE_LITERAL("pong"));
    row_key_adder_add(&adder, SLICE_LITERAL("player:ann"));
    spoil(f, &adder);
    assert_null(repair(f, &partial)); /* What it is the sum of comes first. */
    assert_non_null(strstr(f->error->limit, "table Q"));
    assert_int_equal(repair(f, &adder)->row->outcome,
                     HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_MADE_AGAIN);
    assert_non_null(repair(f, &partial));
    assert_int_equal(fixture_part(f, "plays", "pong"), 12);
    assert_int_equal(fixture_add(f, "ann", "pong", 1), 6);
    assert_null(repair(f, &adder)); /* It can be read. */
    row_key_adder_prefix(&adder, NUMBER, SLICE_LITERAL("chess"));
    row_key_adder_add(&adder, SLICE_LITERAL("player:ann"));
    spoil(f, &adder); /* There is nothing that it could be of. */
    assert_int_equal(repair(f, &adder)->row->outcome,
                     HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_DROPPED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        COUNTER_TEST(a_value_and_its_part_of_the_total_change_together),
        COUNTER_TEST(a_repetition_adds_nothing),
        COUNTER_TEST(a_repetition_under_a_stricter_rule_finds_the_outcome),
        COUNTER_TEST(a_value_stops_at_its_maximum),
        COUNTER_TEST(the_greatest_amount_is_exact_in_every_json_reader),
        cmocka_unit_test_setup_teardown(a_part_stops_at_its_share_of_the_greatest_total, setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_player_adds_to_only_so_many_targets, setup,
                                        fixture_teardown),
        COUNTER_TEST(bad_fields_are_refused_before_the_log),
        COUNTER_TEST(an_unknown_counter_is_refused_before_the_log),
        COUNTER_TEST(a_counter_that_is_deleted_meanwhile_refuses_at_apply),
        COUNTER_TEST(a_repetition_gets_its_answer_after_the_counter_is_deleted),
        COUNTER_TEST(a_name_made_again_meets_nothing_of_its_former_life),
        COUNTER_TEST(shards_of_an_earlier_version_do_not_add),
        COUNTER_TEST(sums_and_who_added_are_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
