/*
 * What the floor of op_ids means to operations that are PENDING for long: it passes them, their
 * rows are told below it, and what was settled late goes in the end (operation_floor.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/channel.pb-c.h"
#include "node/core/apply/apply.h"
#include "node/core/handler/operation_floor.h"
#include "node/core/rows/rows.h"
#include "node/rpc/fixture_shards.h"
#include "runtime/base/check.h"

#define MINUTE_MS 60000ull
#define DAY_MS    (1440 * MINUTE_MS)
#define FROM      0u
#define TO        1u

struct world {
    struct fixture_shards s;
    struct fixture *f; /* Of the shard that pays. */
    char ann[16], bob[16];
    char op_id[UUID_TEXT_SIZE]; /* Of the payment. */
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    fixture_shards_init(&w->s);
    w->f = &w->s.shards[FROM];
    fixture_name_on(FROM, "ann", w->ann);
    fixture_name_on(TO, "bob", w->bob);
    assert_non_null(fixture_grant(w->f, w->ann, "unheld", 100));
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

static const struct meta *meta(const struct world *w)
{
    return applier_meta(w->f->applier);
}

/* What the shard counts is what it has, and below the floor stands only what may. Returns how many
 * rows stand at or below it. */
static uint32_t check_rows(struct world *w)
{
    uint32_t count = 0, below = 0;
    struct outcome_row row;

    fixture_checkpoint(w->f);
    for (uint32_t i = 0; i < w->f->row_count; i++) {
        struct slice key = buf_slice(&w->f->rows[i].key);
        if (key.data[0] != TABLE_OPERATION)
            continue;
        count++;
        if (row_operation_ms(key) > meta(w)->floor_ms)
            continue;
        below++;
        assert_int_equal(outcome_row_decode(buf_slice(&w->f->rows[i].value), &row), ERR_OK);
    }
    assert_int_equal(count, meta(w)->operation_count);
    return below;
}

static void *pay(struct world *w, int64_t gold)
{
    Holdfast__V1__TransferCurrenciesRequest request =
        HOLDFAST__V1__TRANSFER_CURRENCIES_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };

    amount.currency = (char *)"gold";
    amount.amount = gold;
    request.player_id = w->ann;
    request.to_player_id = w->bob;
    request.op_id = w->op_id;
    request.authority = fixture_authority(w->f, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    return fixture_mutate(w->f, METHOD_TRANSFER_CURRENCIES, &request.base);
}

static void pay_and_lose(struct world *w)
{
    snprintf(w->op_id, sizeof w->op_id, "%s", fixture_op_id(w->f));
    assert_null(pay(w, 30));
    assert_int_equal(w->f->outcome.kind, OUTCOME_PENDING);
}

static int told(struct world *w)
{
    return (int)fixture_operation(w->f, w->ann, w->op_id)->state;
}

/* The other shard is there again. */
static void carry(struct world *w)
{
    w->s.shards[TO].now_ms = w->f->now_ms;
    fixture_carry(&w->s, FROM, TO);
}

static void grants(struct world *w, int count, uint64_t every_ms)
{
    for (int i = 0; i < count; i++) {
        w->f->now_ms += every_ms;
        arena_reset(&w->f->arena);
        if (fixture_grant(w->f, w->ann, "unheld", 1) == NULL)
            fail_msg("grant %d: %s", i, w->f->error->message);
        (void)fixture_pass(w->f, 0);
    }
}

static void is_pending_for_all(struct world *w)
{
    assert_int_equal(told(w), OPERATION(PENDING));
    assert_null(pay(w, 30));
    assert_int_equal(w->f->outcome.kind, OUTCOME_PENDING);
    assert_true(w->f->outcome.duplicate);
}

static void ends_as_committed_and_is_forgotten(struct world *w)
{
    is_pending_for_all(w);
    carry(w);
    assert_int_equal(told(w), OPERATION(COMMITTED));
    assert_non_null(pay(w, 30));
    assert_true(w->f->outcome.duplicate);
    (void)fixture_pass(w->f, 9 * MINUTE_MS);
    assert_int_equal(told(w), OPERATION(COMMITTED)); /* Those who waited can learn it. */
    (void)fixture_pass(w->f, meta(w)->policy.operation_window_ms + 30 * MINUTE_MS);
    assert_int_equal(told(w), OPERATION(EXPIRED));
    assert_null(pay(w, 30));
    assert_int_equal(w->f->error->code, ERROR(OPERATION_EXPIRED));
    assert_int_equal(check_rows(w), 0);
}

static void one_that_is_pending_for_long_stops_nothing(void **state)
{
    struct world *w = *state;

    fixture_policy(w->f, 15 * MINUTE_MS, 1000);
    pay_and_lose(w);
    grants(w, 2600, 1400); /* An hour. */
    assert_true(meta(w)->operation_count < 1100);
    assert_int_equal(check_rows(w), 1);
    ends_as_committed_and_is_forgotten(w);
}

static void seal(struct world *w)
{
    Holdfast__V1__ResolveOperationRequest request = HOLDFAST__V1__RESOLVE_OPERATION_REQUEST__INIT;
    char entity[32];

    snprintf(entity, sizeof entity, "player:%s", w->ann);
    request.entity = entity;
    request.op_id = w->op_id;
    request.seal = true;
    (void)fixture_mutate(w->f, METHOD_RESOLVE_OPERATION, &request.base);
}

static void a_page_that_ends_within_its_millisecond_forgets_it_not(void **state)
{
    struct world *w = *state;

    fixture_policy(w->f, DAY_MS, 1000);
    (void)fixture_pass(w->f, 1000);
    assert_non_null(fixture_grant(w->f, w->ann, "unheld", 1));
    pay_and_lose(w);    /* Of the same millisecond. */
    grants(w, 1000, 1); /* What is PENDING does not crowd the shard. */
    assert_int_equal(meta(w)->operation_count, 1003);
    (void)fixture_pass(w->f, 16 * MINUTE_MS);
    assert_true(meta(w)->floor_ms > FIXTURE_START_MS);
    is_pending_for_all(w);
    seal(w);
    assert_int_equal(w->f->outcome.kind, OUTCOME_PENDING);
    carry(w); /* It asks for its end where that is decided. */
    assert_int_equal(told(w), OPERATION(ABORTED));
    assert_int_equal(fixture_balance(w->f, w->ann, "gold"), 100 + 1 + 1000);
    (void)check_rows(w);
}

/* However many are on their way, others find room. */
static void what_is_pending_takes_no_room(void **state)
{
    struct world *w = *state;

    fixture_policy(w->f, DAY_MS, 1000);
    (void)fixture_pass(w->f, 1000);
    for (int i = 0; i < 60; i++) {
        w->f->now_ms++;
        assert_non_null(fixture_grant(w->f, w->ann, "unheld", 40));
        pay_and_lose(w);
        arena_reset(&w->f->arena);
    }
    grants(w, 938 + 250, 1);
    assert_int_equal(meta(w)->operation_count, 1059 + 250);
    assert_non_null(fixture_grant(w->f, w->ann, "unheld", 1));
    assert_null(fixture_grant(w->f, w->ann, "unheld", 1)); /* And a quarter. */
    assert_int_equal(w->f->error->code, ERROR(THROTTLED));
    assert_string_equal(w->f->error->value, "1250");
}

/* Under an apply version whose floor passes nothing that is PENDING. */
static void a_crowded_shard_is_not_pruned_in_vain_all_the_time(void **state)
{
    struct world *w = *state;

    struct meta *shard = (struct meta *)(uintptr_t)meta(w);

    shard->apply_version = FLOOR_APPLY_VERSION - 1;
    fixture_policy(w->f, DAY_MS, 1000);
    (void)fixture_pass(w->f, 1000);
    pay_and_lose(w);
    grants(w, 995, 1);
    w->f->now_ms += 16 * MINUTE_MS;
    grants(w, 20, 1);
    assert_true(meta(w)->operation_count > 1000);
    assert_true(fixture_pass(w->f, MINUTE_MS) <= 13); /* Each 5 s. */
    shard->apply_version = APPLY_VERSION;
}

static void a_longer_window_passes_it(void **state)
{
    struct world *w = *state;

    fixture_policy(w->f, 15 * MINUTE_MS, 0);
    pay_and_lose(w);
    w->f->now_ms += 20 * MINUTE_MS;
    fixture_policy(w->f, DAY_MS, 0);
    assert_true(meta(w)->floor_ms > FIXTURE_START_MS);
    is_pending_for_all(w);
    ends_as_committed_and_is_forgotten(w);
}

/* More of one millisecond than a page has: pages go on within it. */
static void many_of_one_millisecond_hold_up_no_page(void **state)
{
    struct world *w = *state;

    fixture_policy(w->f, 15 * MINUTE_MS, 0);
    (void)fixture_pass(w->f, 1000);
    for (int i = 0; i < 700; i++) {
        if (i % 3 == 0 && i < 90)
            pay_and_lose(w);
        else
            assert_non_null(fixture_grant(w->f, w->ann, "unheld", 40));
        arena_reset(&w->f->arena);
    }
    grants(w, 100, 1000);
    fixture_checkpoint(w->f);
    fixture_evict(w->f, 0);
    (void)fixture_pass(w->f, 60 * MINUTE_MS);
    assert_int_equal(check_rows(w), 30);
    assert_int_equal(meta(w)->operation_count, 30);
    fixture_restart(w->f);
    uint32_t entries = fixture_pass(w->f, 60 * MINUTE_MS);
    assert_true(entries <= 8); /* It looks now and then, not each minute. */
    is_pending_for_all(w);
    while (fixture_open_records(&w->s) > 0)
        carry(w);
    (void)fixture_pass(w->f, 60 * MINUTE_MS);
    assert_int_equal(meta(w)->operation_count, 0);
    assert_int_equal(check_rows(w), 0);
}

/* A steal that waits for its holder, under an id that the floor passes meanwhile. */
static void a_steal_is_granted_below_the_floor(void **state)
{
    struct world *w = *state;

    fixture_policy(w->f, 15 * MINUTE_MS, 0);
    (void)fixture_pass(w->f, MINUTE_MS);
    assert_non_null(fixture_start(w->f, w->ann, SERVER_A, HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                                  fixture_op_id(w->f)));
    snprintf(w->op_id, sizeof w->op_id, "%s",
             fixture_op_id_at(w->f, w->f->now_ms - 15 * MINUTE_MS + 5000));
    assert_null(fixture_start(w->f, w->ann, SERVER_B, HOLDFAST__V1__START_MODE__START_MODE_STEAL,
                              w->op_id));
    assert_int_equal(w->f->outcome.kind, OUTCOME_PENDING);
    w->f->now_ms += 6000;
    fixture_policy(w->f, DAY_MS, 0);
    assert_int_equal(told(w), OPERATION(PENDING));
    fixture_checkpoint(w->f);
    fixture_evict(w->f, 0);
    (void)fixture_pass(w->f, 2 * MINUTE_MS);
    assert_int_equal(told(w), OPERATION(COMMITTED));
    (void)check_rows(w);
}

/* An attempt that would be forgotten at once is not carried out. */
static void what_was_refused_is_not_tried_again_below_the_floor(void **state)
{
    struct world *w = *state;
    Holdfast__V1__SpendRequest spend = HOLDFAST__V1__SPEND_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };

    fixture_policy(w->f, 15 * MINUTE_MS, 0);
    gold.currency = (char *)"gold";
    gold.amount = 5000;
    spend.player_id = w->ann;
    spend.op_id = fixture_op_id(w->f);
    spend.authority = fixture_authority(w->f, "unheld");
    spend.currencies = amounts;
    spend.n_currencies = 1;
    snprintf(w->op_id, sizeof w->op_id, "%s", spend.op_id);
    assert_null(fixture_mutate(w->f, METHOD_SPEND, &spend.base));
    w->f->now_ms += 20 * MINUTE_MS;
    fixture_policy(w->f, DAY_MS, 0);
    assert_int_equal(told(w), OPERATION(REFUSED)); /* It stands until PRUNE comes. */
    assert_non_null(fixture_grant(w->f, w->ann, "unheld", 9000));
    spend.attempt = 1;
    spend.op_id = w->op_id;
    spend.authority = fixture_authority(w->f, "unheld");
    assert_null(fixture_mutate(w->f, METHOD_SPEND, &spend.base));
    assert_int_equal(w->f->error->code, ERROR(OPERATION_EXPIRED));
    assert_int_equal(fixture_balance(w->f, w->ann, "gold"), 9100);
}

/* What replicas of before do with the same log: the floor stops at the first that is PENDING; but a
 * longer window passes it, and a retry is refused. */
static void replicas_of_before_stop_at_it(void **state)
{
    struct world *w = *state;
    struct fixture *f = w->f;
    Holdfast__Internal__V1__PruneOperationsRequest request =
        HOLDFAST__INTERNAL__V1__PRUNE_OPERATIONS_REQUEST__INIT;
    struct buf body = { 0 };

    applier_set_version_max(f->applier, FLOOR_APPLY_VERSION - 1);
    fixture_policy(f, 15 * MINUTE_MS, 0);
    f->now_ms += 1000;
    pay_and_lose(w);
    uint64_t paid_ms = f->now_ms;
    grants(w, 3, 1000);
    f->now_ms += 20 * MINUTE_MS;
    request.floor_ms = f->now_ms - 15 * MINUTE_MS;
    request.rows_max = 100;
    owner_op_encode(METHOD_PRUNE_OPERATIONS, (struct slice){ 0 }, &request.base, &body);
    fixture_commit(f, buf_slice(&body));
    buf_deinit(&body);
    assert_int_equal(meta(w)->floor_ms, paid_ms - 1);
    assert_int_equal(meta(w)->operation_count, 4);
    assert_int_equal(told(w), OPERATION(PENDING));
    fixture_policy(f, DAY_MS, 0);
    assert_true(meta(w)->floor_ms > paid_ms);
    assert_null(pay(w, 30));
    assert_int_equal(f->error->code, ERROR(OPERATION_EXPIRED));
    assert_int_equal(fixture_seal(f, w->ann, w->op_id)->state, OPERATION(EXPIRED));
    assert_int_equal(told(w), OPERATION(PENDING)); /* Reads stand in no log. */
    applier_set_version_max(f->applier, APPLY_VERSION);
    ends_as_committed_and_is_forgotten(w);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* The floor passes what is expired, and nothing where no id can be that old. */
static void a_longer_window_begins_where_the_one_before_ended(void **state)
{
    static const struct {
        uint64_t now_ms, floor_ms;
    } cases[] = { { 999, 0 }, { 1000, 0 }, { 1001, 0 }, { 1005, 4 } };
    struct meta *meta = calloc(1, sizeof *meta);
    struct apply_context context = { .meta = meta, .version = APPLY_VERSION };

    (void)state;
    meta->use.kind = USE_SERVING;
    meta->policy.operation_window_ms = 1000;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        context.owner_ms = cases[i].now_ms;
        operation_floor_keep(&context, 1000);
        assert_int_equal(meta->floor_ms, 0);
        operation_floor_keep(&context, 1001);
        assert_int_equal(meta->floor_ms, cases[i].floor_ms);
    }
    free(meta);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_that_is_pending_for_long_stops_nothing),
        TEST(a_page_that_ends_within_its_millisecond_forgets_it_not),
        TEST(what_is_pending_takes_no_room),
        TEST(a_crowded_shard_is_not_pruned_in_vain_all_the_time),
        TEST(a_longer_window_passes_it),
        TEST(many_of_one_millisecond_hold_up_no_page),
        TEST(a_steal_is_granted_below_the_floor),
        TEST(what_was_refused_is_not_tried_again_below_the_floor),
        TEST(replicas_of_before_stop_at_it),
        cmocka_unit_test(a_longer_window_begins_where_the_one_before_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
