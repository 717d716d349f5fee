#include "node/rpc/fixture.h"

#include <stdio.h>
#include <string.h>

#include "node/core/apply/apply.h"
#include "node/core/apply/apply_internal.h"
#include "node/core/rows/rows.h"
#include "node/rpc/fixture_shards.h"
#include "runtime/base/hex.h"

static const struct meta *meta(struct fixture *f)
{
    return applier_meta(f->applier);
}

static void outcomes_are_forgotten_after_the_window_and_their_ids_expire(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };

    gold.currency = (char *)"gold";
    gold.amount = 5;
    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_int_equal(fixture_pass(f, 23ull * 3600 * 1000), 0);
    request.authority = fixture_authority(f, "unheld");
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_true(f->outcome.duplicate);
    assert_int_equal(fixture_pass(f, 2ull * 3600 * 1000), 1);
    assert_int_equal(meta(f)->operation_count, 0);
    assert_true(meta(f)->floor_ms >= FIXTURE_START_MS);
    request.authority = fixture_authority(f, "unheld");
    assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_int_equal(f->error->code, ERROR(OPERATION_EXPIRED));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 5);
}

/* Also those that are only in the database. One entry more finds out how old the oldest is. */
static void many_are_forgotten_a_page_at_a_time(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 1200; i++) {
        f->now_ms += 10;
        assert_non_null(fixture_grant(f, "ann", "unheld", 1));
        arena_reset(&f->arena);
    }
    fixture_checkpoint(f);
    fixture_evict(f, 0);
    assert_int_equal(meta(f)->operation_count, 1200);
    assert_int_equal(fixture_pass(f, 25ull * 3600 * 1000), 1 + 3);
    assert_true(f->need_rounds > 0);
    assert_int_equal(meta(f)->operation_count, 0);
    fixture_checkpoint(f);
    for (uint32_t i = 0; i < f->row_count; i++)
        assert_int_not_equal(f->rows[i].key.data[0], TABLE_OPERATION);
}

static void a_crowded_shard_forgets_sooner_but_never_the_last_quarter_hour(void **state)
{
    struct fixture *f = *state;

    fixture_policy(f, 0, 1000);
    for (int i = 0; i < 1100; i++) {
        assert_non_null(fixture_grant(f, "ann", "unheld", 1));
        arena_reset(&f->arena);
        f->now_ms += 1;
    }
    fixture_pass(f, 14 * 60 * 1000);
    assert_int_equal(meta(f)->operation_count, 1100);
    fixture_pass(f, 2 * 60 * 1000);
    assert_int_equal(meta(f)->operation_count, 1000);
    assert_true(meta(f)->floor_ms <= f->now_ms - OPERATION_WINDOW_MS_MIN);
    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
}

static void beyond_that_mutations_are_throttled_before_the_log(void **state)
{
    struct fixture *f = *state;
    uint64_t count;

    fixture_policy(f, 0, 1000);
    do {
        count = meta(f)->operation_count;
        arena_reset(&f->arena);
        f->now_ms += 1;
    } while (fixture_grant(f, "ann", "unheld", 1) != NULL);
    assert_int_equal(f->error->code, ERROR(THROTTLED));
    assert_false(f->recorded);
    assert_false(f->error->final);
    assert_true(f->error->retry_after_ms > 0);
    assert_string_equal(f->error->limit, "1000");
    assert_int_equal(count, 1250);
    fixture_pass(f, 20 * 60 * 1000);
    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
}

static void an_idle_shard_writes_nothing(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(fixture_pass(f, 48ull * 3600 * 1000), 0);
    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    assert_int_equal(fixture_pass(f, 23ull * 3600 * 1000), 0);
    fixture_restart(f);
    assert_int_equal(fixture_pass(f, 48ull * 3600 * 1000), 2);
    assert_int_equal(fixture_pass(f, 48ull * 3600 * 1000), 0);
}

/* ---- ids of kind `key:` ---- */

static void *grant_key(struct fixture *f, const char *op_id, int64_t amount)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };

    gold.currency = (char *)"gold";
    gold.amount = amount;
    request.player_id = (char *)"ann";
    request.op_id = (char *)(uintptr_t)op_id;
    request.authority = fixture_authority(f, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    return fixture_mutate(f, METHOD_GRANT, &request.base);
}

/* Of the database, after a checkpoint. */
static uint32_t rows_of(struct fixture *f, enum table table)
{
    uint32_t count = 0;

    fixture_checkpoint(f);
    for (uint32_t i = 0; i < f->row_count; i++)
        count += f->rows[i].key.data[0] == (uint8_t)table;
    return count;
}

static void key_name(int number, char ret_name[32])
{
    (void)snprintf(ret_name, 32, "key:order-%d", number);
}

static void keys_are_forgotten_a_day_after_they_were_decided(void **state)
{
    struct fixture *f = *state;

    assert_non_null(grant_key(f, "key:order-17", 5));
    assert_non_null(grant_key(f, "claim:daily", 5));
    fixture_pass(f, 12ull * 3600 * 1000);
    assert_non_null(grant_key(f, "key:order-18", 5));
    assert_int_equal(meta(f)->key_count, 2);
    fixture_pass(f, 12ull * 3600 * 1000 - 1000);
    assert_int_equal(rows_of(f, TABLE_TYPED), 3);
    fixture_pass(f, 120000);
    assert_int_equal(meta(f)->key_count, 1);
    assert_int_equal(rows_of(f, TABLE_TYPED), 2); /* Of the claim, and of the later key. */
    assert_int_equal(rows_of(f, TABLE_KEYED), 1);
    assert_non_null(grant_key(f, "key:order-18", 5));
    assert_true(f->outcome.duplicate);
    fixture_restart(f);
    fixture_pass(f, 13ull * 3600 * 1000);
    assert_int_equal(rows_of(f, TABLE_TYPED), 1);
    assert_int_equal(rows_of(f, TABLE_KEYED), 0);
    assert_int_equal(meta(f)->key_count, 0);
    assert_non_null(grant_key(f, "claim:daily", 5));
    assert_true(f->outcome.duplicate);
    assert_int_equal(fixture_pass(f, 48ull * 3600 * 1000), 0);
}

/* Also those that are only in the database. */
static void many_keys_are_forgotten_a_page_at_a_time(void **state)
{
    struct fixture *f = *state;
    char name[32];

    for (int i = 0; i < 1200; i++) {
        f->now_ms += 10;
        key_name(i, name);
        assert_non_null(grant_key(f, name, 1));
        arena_reset(&f->arena);
    }
    fixture_checkpoint(f);
    fixture_evict(f, 0);
    uint64_t rounds = f->need_rounds;
    /* One that looks, one for the first that are over, and a minute later the others'. */
    assert_int_equal(fixture_pass(f, 25ull * 3600 * 1000), 1 + 1 + 3);
    assert_true(f->need_rounds > rounds);
    assert_int_equal(rows_of(f, TABLE_KEYED), 0);
    assert_int_equal(rows_of(f, TABLE_TYPED), 0);
    assert_int_equal(meta(f)->key_count, 0);
}

/* A refusal may be evaluated again, by a greater attempt: the day begins with what stands now. */
static void a_key_that_is_decided_again_stands_another_day(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__SpendRequest spend = HOLDFAST__V1__SPEND_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };

    gold.currency = (char *)"gold";
    gold.amount = 5;
    spend.player_id = (char *)"ann";
    spend.op_id = (char *)"key:lunch";
    spend.authority = fixture_authority(f, "unheld");
    spend.currencies = amounts;
    spend.n_currencies = 1;
    assert_null(fixture_mutate(f, METHOD_SPEND, &spend.base));
    assert_true(f->error->final);
    fixture_pass(f, 20ull * 3600 * 1000);
    assert_non_null(fixture_grant(f, "ann", "unheld", 8));
    spend.attempt = 1;
    spend.authority = fixture_authority(f, "unheld");
    assert_non_null(fixture_mutate(f, METHOD_SPEND, &spend.base));
    assert_int_equal(rows_of(f, TABLE_KEYED), 1);
    fixture_pass(f, 20ull * 3600 * 1000);
    spend.authority = fixture_authority(f, "unheld");
    assert_non_null(fixture_mutate(f, METHOD_SPEND, &spend.base));
    assert_true(f->outcome.duplicate);
    /* Sealed, which changes nothing of what was done; and then forgotten. */
    assert_int_equal(fixture_seal(f, "ann", "key:lunch")->state, OPERATION(COMMITTED));
    assert_int_equal(fixture_seal(f, "ann", "key:never")->state, OPERATION(ABORTED));
    assert_int_equal(meta(f)->key_count, 2);
    fixture_pass(f, 5ull * 3600 * 1000);
    assert_int_equal(rows_of(f, TABLE_KEYED), 1);
    fixture_pass(f, 20ull * 3600 * 1000);
    assert_int_equal(rows_of(f, TABLE_KEYED), 0);
    assert_int_equal(rows_of(f, TABLE_TYPED), 0);
}

static void more_keys_than_the_policy_allows_are_throttled_and_other_ids_are_not(void **state)
{
    struct fixture *f = *state;
    char name[32], again[32];
    int count = 0;

    fixture_policy(f, 0, 1000);
    do {
        arena_reset(&f->arena);
        f->now_ms += 1;
        key_name(count++, name);
    } while (grant_key(f, name, 1) != NULL);
    assert_int_equal(count, 1001);
    assert_int_equal(f->error->code, ERROR(THROTTLED));
    assert_false(f->recorded);
    assert_string_equal(f->error->field, "op_id");
    assert_string_equal(f->error->limit, "1000");
    assert_string_equal(f->error->value, "1000");
    key_name(0, again);
    assert_non_null(grant_key(f, again, 1)); /* It takes no more room. */
    assert_true(f->outcome.duplicate);
    assert_null(grant_key(f, again, 2));
    assert_int_equal(f->error->code, ERROR(THROTTLED));
    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    assert_non_null(grant_key(f, "claim:mine", 1));
    fixture_pass(f, 25ull * 3600 * 1000);
    assert_non_null(grant_key(f, name, 1));
}

/* A date whose value was spoilt says what it did: its key does. */
static void a_date_that_cannot_be_read_is_made_again_and_goes_in_its_time(void **state)
{
    struct fixture *f = *state;
    struct state *rows = applier_state(f->applier);
    struct row_key key;
    char hex[2 * STATE_KEY_BYTES_MAX + 1];
    char *keys[] = { hex };

    uint64_t at_ms = f->now_ms;
    assert_non_null(grant_key(f, "key:order-1", 1));
    row_key_keyed(&key, at_ms, SLICE_LITERAL("player:ann"), SLICE_LITERAL("key:order-1"));
    hex_print(key.bytes, key.size, hex);
    for (int i = 0; i < 2; i++) {
        state_begin(rows);
        state_put(rows, row_key_slice(&key), SLICE_LITERAL("?"));
        state_commit(rows);
        if (i == 1)
            break;
        fixture_contain(f, "ann");
        Holdfast__V1__RepairPlayerRequest *request = fixture_repair_request(f, "ann");
        request->rows = keys;
        request->n_rows = 1;
        if (fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base) == NULL)
            fail_msg("%s: %s", f->error->message, f->error->value);
        request->op_id = fixture_op_id(f);
        request->authority = fixture_authority(f, "system:admin");
        assert_null(fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base)); /* It can be read. */
        fixture_release(f, "ann");
    }
    fixture_pass(f, 25ull * 3600 * 1000);
    assert_int_equal(rows_of(f, TABLE_KEYED), 0);
    assert_int_equal(rows_of(f, TABLE_TYPED), 0);
    assert_int_equal(meta(f)->key_count, 0);
}

/* What a shard wrote before apply version 5 has no date: it is over after a day, and stays. */
static void replicas_of_before_forget_no_keys(void **state)
{
    struct fixture *f = *state;

    applier_set_version_max(f->applier, 4);
    assert_non_null(grant_key(f, "key:early", 5));
    assert_int_equal(meta(f)->key_count, 0);
    fixture_pass(f, 25ull * 3600 * 1000);
    applier_set_version_max(f->applier, APPLY_VERSION);
    fixture_pass(f, 25ull * 3600 * 1000);
    assert_int_equal(rows_of(f, TABLE_TYPED), 1);
    assert_int_equal(rows_of(f, TABLE_KEYED), 0);
    assert_non_null(grant_key(f, "key:early", 5)); /* Met: from here on it has one. */
    assert_false(f->outcome.duplicate);
    assert_int_equal(rows_of(f, TABLE_TYPED), 1);
    fixture_pass(f, 25ull * 3600 * 1000);
    assert_int_equal(rows_of(f, TABLE_TYPED), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(outcomes_are_forgotten_after_the_window_and_their_ids_expire),
        FIXTURE_TEST(many_are_forgotten_a_page_at_a_time),
        FIXTURE_TEST(a_crowded_shard_forgets_sooner_but_never_the_last_quarter_hour),
        FIXTURE_TEST(beyond_that_mutations_are_throttled_before_the_log),
        FIXTURE_TEST(an_idle_shard_writes_nothing),
        FIXTURE_TEST(keys_are_forgotten_a_day_after_they_were_decided),
        FIXTURE_TEST(many_keys_are_forgotten_a_page_at_a_time),
        FIXTURE_TEST(a_key_that_is_decided_again_stands_another_day),
        FIXTURE_TEST(more_keys_than_the_policy_allows_are_throttled_and_other_ids_are_not),
        FIXTURE_TEST(a_date_that_cannot_be_read_is_made_again_and_goes_in_its_time),
        FIXTURE_TEST(replicas_of_before_forget_no_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
