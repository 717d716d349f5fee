/* Cuts of four shards while goods are on their way: all parts together come to zero. */
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "node/rpc/fixture_shards.h"

typedef Holdfast__Internal__V1__TakeCutResponse cut_response;

/* ann on shard 0 has 100 gold; bob is on shard 1. */
struct world {
    struct fixture_shards s;
    char ann[16], bob[16];
    uint64_t cut;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    fixture_shards_init(&w->s);
    fixture_name_on(0, "ann", w->ann);
    fixture_name_on(1, "bob", w->bob);
    assert_non_null(fixture_grant(&w->s.shards[0], w->ann, "unheld", 100));
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

static const cut_response *cut_one(struct world *w, uint32_t shard, uint64_t cut)
{
    Holdfast__Internal__V1__TakeCutRequest request = HOLDFAST__INTERNAL__V1__TAKE_CUT_REQUEST__INIT;

    request.shard = shard;
    request.cut = cut;
    const cut_response *response =
        fixture_mutate(&w->s.shards[shard], METHOD_TAKE_CUT, &request.base);
    assert_non_null(response);
    return response;
}

/* What all shards held at a cut; *ret_open: records that were open then. */
static int64_t gold_at(struct world *w, uint64_t cut, uint64_t *ret_open)
{
    int64_t gold = 0;
    uint32_t parts = 0;

    *ret_open = 0;
    for (uint32_t i = 0; i < FIXTURE_SHARDS; i++) {
        const cut_response *response = cut_one(w, i, 0);
        for (size_t j = 0; j < response->n_totals; j++) {
            const Holdfast__Internal__V1__CutTotals *part = response->totals[j];
            if (part->cut != cut)
                continue;
            parts++;
            *ret_open += part->open;
            for (size_t k = 0; k < part->n_amounts; k++)
                gold += part->amounts[k]->amount;
        }
    }
    assert_int_equal(parts, FIXTURE_SHARDS);
    return gold;
}

static void pay(struct world *w, int64_t gold, const char *op_id)
{
    Holdfast__V1__TransferCurrenciesRequest request =
        HOLDFAST__V1__TRANSFER_CURRENCIES_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };

    amount.currency = (char *)"gold";
    amount.amount = gold;
    request.player_id = w->ann;
    request.to_player_id = w->bob;
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(&w->s.shards[0], "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    (void)fixture_mutate(&w->s.shards[0], METHOD_TRANSFER_CURRENCIES, &request.base);
}

static void what_arrived_before_the_cut_counts_once(void **state)
{
    struct world *w = *state;
    uint64_t open;

    pay(w, 30, "claim:a");
    deliver_response *told = fixture_deliver(&w->s, 1, fixture_batch(&w->s, 0, 1));
    for (uint32_t i = 0; i < FIXTURE_SHARDS; i++)
        (void)cut_one(w, i, 1);
    assert_int_equal(gold_at(w, 1, &open), 30); /* Twice, so far: the cut is not final. */
    assert_int_equal(open, 1);
    fixture_settle(&w->s, 0, 1, told);
    assert_int_equal(gold_at(w, 1, &open), 0);
    assert_int_equal(open, 0);
    fixture_restart_all(&w->s);
    assert_int_equal(gold_at(w, 1, &open), 0);
}

static void what_arrives_after_the_cut_counts_where_it_was(void **state)
{
    struct world *w = *state;
    uint64_t open;

    pay(w, 30, "claim:a");
    for (uint32_t i = 0; i < FIXTURE_SHARDS; i++)
        (void)cut_one(w, i, 1);
    assert_int_equal(gold_at(w, 1, &open), 0);
    assert_int_equal(open, 1);
    fixture_carry_all(&w->s);
    assert_int_equal(gold_at(w, 1, &open), 0);
    assert_int_equal(open, 0);
}

static void a_message_brings_the_cut_along(void **state)
{
    struct world *w = *state;
    uint64_t open;

    (void)cut_one(w, 0, 1);
    pay(w, 30, "claim:a"); /* After the cut: bob's shard must not have it before. */
    fixture_carry_all(&w->s);
    assert_int_equal(applier_meta(w->s.shards[1].applier)->cut_id, 1);
    for (uint32_t i = 1; i < FIXTURE_SHARDS; i++)
        (void)cut_one(w, i, 1);
    assert_int_equal(gold_at(w, 1, &open), 0);
    assert_int_equal(open, 0);
}

static void an_answer_brings_the_cut_along(void **state)
{
    struct world *w = *state;
    uint64_t open;

    pay(w, 30, "claim:a");
    for (uint32_t i = 1; i < FIXTURE_SHARDS; i++)
        (void)cut_one(w, i, 1);
    fixture_carry_all(&w->s);
    assert_int_equal(applier_meta(w->s.shards[0].applier)->cut_id, 1);
    assert_int_equal(gold_at(w, 1, &open), 0);
    assert_int_equal(open, 0);
}

int main(void)
{
#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        WORLD_TEST(what_arrived_before_the_cut_counts_once),
        WORLD_TEST(what_arrives_after_the_cut_counts_where_it_was),
        WORLD_TEST(a_message_brings_the_cut_along),
        WORLD_TEST(an_answer_brings_the_cut_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
