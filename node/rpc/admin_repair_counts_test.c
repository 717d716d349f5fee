/* METHOD_REPAIR_ROW and METHOD_REPAIR_PLAYER where they count: how many rows, and what the shard
 * counts beside them. */
#include <stdio.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/repair/edge_repair.h"
#include "node/core/repair/row_repair.h"
#include "node/rpc/fixture_edges.h"
#include "node/rpc/fixture_shards.h"
#include "runtime/base/check.h"
#include "runtime/base/hex.h"

#define ANN  SLICE_LITERAL("player:ann")
#define PONG SLICE_LITERAL("pong")

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof *f);

    fixture_init_shard(f, 0, 1);
    fixture_define_favorites(f);
    fixture_define_haste(f);
    *state = f;
    return 0;
}

#define COUNTS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

/* ---- rows ---- */
static void put_row(struct fixture *f, const struct row_key *key, struct slice value)
{
    struct state *state = applier_state(f->applier);

    state_begin(state);
    state_put(state, row_key_slice(key), value);
    state_commit(state);
}

static void spoil(struct fixture *f, const struct row_key *key)
{
    put_row(f, key, SLICE_LITERAL("\xff\xff"));
}

/* Who favorited pong: so many players. */
static void put_favorers(struct fixture *f, uint32_t count)
{
    struct buf value = { 0 };
    struct row_key key;
    char player[32];

    favorer_row_encode(&(struct favorite_row){ .favorited = true, .at_ms = f->now_ms }, &value);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(player, sizeof player, "player:p%05u", i);
        row_key_favorer_prefix(&key, 7, PONG);
        row_key_favorer_add(&key, slice_from_text(player));
        put_row(f, &key, buf_slice(&value));
    }
    buf_deinit(&value);
}

/* An edge of ann's, which is flagged or not, and one of another player's that is. */
static void put_edge(struct fixture *f, uint32_t number, bool flagged)
{
    struct favorite_row row = { .favorited = true, .ver = 1, .at_ms = f->now_ms };
    char target[16], player[32];
    struct buf value = { 0 };
    struct row_key key;

    snprintf(target, sizeof target, "t%05u", number);
    snprintf(player, sizeof player, "player:p%05u", number);
    row_key_favored_prefix(&key, ANN, 7, FAVORED_EDGES);
    row_key_favored_add(&key, FAVORED_EDGES, row.at_ms, slice_from_text(target));
    favored_row_encode(row.ver, &value);
    put_row(f, &key, buf_slice(&value));
    row.flag = flagged ? FLAG_MODERATION : FLAG_NONE;
    row.flagged_at_ms = flagged ? f->now_ms : 0;
    row_key_favorite(&key, ANN, 7, slice_from_text(target));
    buf_clear(&value);
    favorite_row_encode(&row, &value);
    put_row(f, &key, buf_slice(&value));
    const struct favorite_key other = { slice_from_text(player), 7, 0, 0, PONG };
    row.flag = FLAG_MODERATION;
    review_key(&key, &other, f->now_ms);
    buf_clear(&value);
    review_row_encode(&row, &value);
    put_row(f, &key, buf_slice(&value));
    buf_deinit(&value);
}

/* From here on rows are read from the database. */
static void forget_memory(struct fixture *f)
{
    fixture_checkpoint(f);
    fixture_evict(f, 0);
    f->need_rounds = 0;
}

/* ---- repairs ---- */
static char *hex_of(struct fixture *f, const struct row_key *key)
{
    char *text = arena_alloc(&f->arena, 2 * key->size + 1);

    hex_print(key->bytes, key->size, text);
    return text;
}

static const Holdfast__V1__RepairRowResponse *repair_row(struct fixture *f,
                                                         const struct row_key *key)
{
    Holdfast__V1__RepairRowRequest request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;

    request.shard = f->shard;
    request.key = hex_of(f, key);
    request.reason = text_lend("spoilt");
    return fixture_mutate(f, METHOD_REPAIR_ROW, &request.base);
}

static const Holdfast__V1__RepairPlayerResponse *
repair_player(struct fixture *f, const struct row_key *key, bool dry_run)
{
    Holdfast__V1__RepairPlayerRequest *request = fixture_repair_request(f, "ann");
    char *row = hex_of(f, key);

    request->rows = &row;
    request->n_rows = 1;
    request->dry_run = dry_run;
    return fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base);
}

/* ---- how many rows ---- */
static void a_count_of_many_rows_is_left_to_a_rebuild(void **state)
{
    struct fixture *f = *state;
    struct row_key key;

    put_favorers(f, REPAIR_TARGET_ROWS_MAX + 1);
    row_key_partial(&key, 7, PONG);
    spoil(f, &key);
    forget_memory(f);
    assert_null(repair_row(f, &key));
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    assert_non_null(strstr(f->error->message, "rebuild counters --target"));
    assert_true(f->need_rounds <= 3);
}

static void a_count_is_made_again_of_rows_that_are_loaded_at_once(void **state)
{
    struct fixture *f = *state;
    struct row_key key;

    put_favorers(f, REPAIR_TARGET_ROWS_MAX);
    row_key_partial(&key, 7, PONG);
    spoil(f, &key);
    forget_memory(f);
    assert_non_null(repair_row(f, &key));
    assert_true(f->need_rounds <= 3);
    assert_int_equal(fixture_partial(f, "", "pong"), REPAIR_TARGET_ROWS_MAX);
}

static void edges_of_a_player_are_counted_not_those_of_the_shard(void **state)
{
    struct fixture *f = *state;
    const struct favorite_key of = { .entity = ANN, .collection = 7 };
    struct favorites_row own;
    struct row_key key;

    for (uint32_t i = 0; i < COLLECTION_EDGES_DEFAULT; i++)
        put_edge(f, i, i < 3);
    row_key_favorites(&key, ANN, 7);
    spoil(f, &key);
    fixture_contain(f, "ann");
    forget_memory(f);
    assert_non_null(repair_player(f, &key, false));
    assert_true(f->need_rounds <= 5);
    assert_int_equal(favorites_find(applier_state(f->applier), &of, &f->need, &own), ERR_OK);
    assert_int_equal(own.edges, COLLECTION_EDGES_DEFAULT);
    assert_int_equal(own.flagged, 3);
}

static void a_player_with_too_many_edges_is_not_counted(void **state)
{
    struct fixture *f = *state;
    struct row_key key;

    for (uint32_t i = 0; i <= REPAIR_PLAYER_ROWS_MAX; i++)
        put_edge(f, i, false);
    row_key_favorites(&key, ANN, 7);
    spoil(f, &key);
    fixture_contain(f, "ann");
    forget_memory(f);
    assert_null(repair_player(f, &key, false));
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    assert_non_null(strstr(f->error->message, "release and erase the player"));
    assert_true(f->need_rounds <= 3);
}

/* ---- what the shard counts ---- */

/* Two edges wait since different moments; the first one's rows are gone but for its place among
 * what waits, which cannot be read. */
static void spoil_first_review(struct fixture *f, struct row_key *ret_review)
{
    const struct favorite_key edge = { .entity = ANN, .collection = 7, .target = PONG };
    struct favorite_row row = { .favorited = true, .ver = 1, .at_ms = f->now_ms };
    struct buf value = { 0 };
    struct row_key key;

    assert_non_null(fixture_favorite(f, "ann", "pong"));
    assert_non_null(fixture_favorite(f, "ann", "chess"));
    assert_non_null(fixture_decide(f, METHOD_FLAG_EDGES, "ann", "pong"));
    review_key(ret_review, &edge, f->now_ms);
    f->now_ms += 1000;
    assert_non_null(fixture_decide(f, METHOD_FLAG_EDGES, "ann", "chess"));
    row_key_favorite(&key, ANN, 7, PONG);
    favorite_row_encode(&row, &value);
    put_row(f, &key, buf_slice(&value)); /* It does not wait. */
    spoil(f, ret_review);
    buf_deinit(&value);
    fixture_contain(f, "ann");
}

static void the_first_that_waits_is_known_after_a_repair(void **state)
{
    struct fixture *f = *state;
    const struct meta *meta = applier_meta(f->applier);
    struct row_key review;

    spoil_first_review(f, &review);
    assert_int_equal(meta->review_since_ms, f->now_ms - 1000);
    forget_memory(f);
    assert_non_null(repair_player(f, &review, false));
    assert_int_equal(meta->review_count, 1);
    assert_int_equal(meta->review_since_ms, f->now_ms);
}

static void check_trial(struct fixture *f, const struct row_key *key)
{
    const struct meta *meta = applier_meta(f->applier);
    struct meta_counts before = meta_counts_take(meta);

    assert_non_null(repair_player(f, key, true));
    struct meta_counts after = meta_counts_take(meta);
    assert_int_equal(after.operation_count, before.operation_count + 1); /* The trial's own. */
    after.operation_count = before.operation_count;
    after.operation_ms_max = before.operation_ms_max;
    assert_memory_equal(&after, &before, sizeof after);
}

static void a_trial_changes_no_count_of_the_shard(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    struct row_key review, outcome;
    struct op_id id;
    const char *why;

    gold.currency = text_lend("gold");
    gold.amount = 5;
    request.player_id = text_lend("ann");
    request.op_id = text_lend("key:order");
    request.authority = text_lend("unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_int_equal(op_id_parse(slice_from_text(request.op_id), &id, &why), ERR_OK);
    row_key_operation(&outcome, ANN, &id);
    spoil(f, &outcome);
    spoil_first_review(f, &review);
    check_trial(f, &outcome);
    check_trial(f, &review);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        COUNTS_TEST(a_count_of_many_rows_is_left_to_a_rebuild),
        COUNTS_TEST(a_count_is_made_again_of_rows_that_are_loaded_at_once),
        COUNTS_TEST(edges_of_a_player_are_counted_not_those_of_the_shard),
        COUNTS_TEST(a_player_with_too_many_edges_is_not_counted),
        COUNTS_TEST(the_first_that_waits_is_known_after_a_repair),
        COUNTS_TEST(a_trial_changes_no_count_of_the_shard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
