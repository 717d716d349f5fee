/* RebuildCounts and CheckCounts: counts computed again while they change, step by step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/core/erasure/erasure.h"
#include "node/core/favorite/recount_row.h"
#include "node/core/repair/recount.h"
#include "node/core/top/top.h"
#include "node/rpc/fixture_counter.h"
#include "node/rpc/fixture_edges.h"

#define COLLECTION 7u /* Of "favorites". */
#define PLAYS      9u /* Of "plays". */
#define STEPS_MAX  1000u
#define CHANGES    60u /* More of them than rows that the steps look at meanwhile. */
#define COUNTS     HOLDFAST__V1__REBUILD_PART__REBUILD_PART_COUNTS
#define TOTALS     HOLDFAST__V1__REBUILD_PART__REBUILD_PART_TOTALS

typedef Holdfast__V1__RebuildCountsRequest rebuild_request;
typedef Holdfast__V1__RebuildCountsResponse rebuild_response;
typedef Holdfast__Internal__V1__CheckCountsRequest check_request;
typedef Holdfast__Internal__V1__CheckCountsResponse check_response;

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    fixture_init_shard(f, 0, 1);
    fixture_define_favorites(f);
    fixture_define_haste(f);
    fixture_define_plays(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    fixture_deinit(f);
    free(f);
    return 0;
}

/* Of tests without counters: whose rows are no edges'. */
static int teardown_edges(void **state)
{
    fixture_check_edges(*state);
    return teardown(state);
}

/* Of tests without edges. */
static int teardown_counters(void **state)
{
    fixture_check_counters(*state);
    return teardown(state);
}

#define REBUILD_TEST(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)
#define EDGES_TEST(name)    cmocka_unit_test_setup_teardown(name, setup, teardown_edges)
#define COUNTERS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown_counters)

static rebuild_request asking(const char *id, Holdfast__V1__RebuildPart part)
{
    rebuild_request request = HOLDFAST__V1__REBUILD_COUNTS_REQUEST__INIT;

    request.rebuild_id = text_lend(id);
    request.part = part;
    return request;
}

static const rebuild_response *step(struct fixture *f, const rebuild_request *request)
{
    return fixture_mutate(f, METHOD_REBUILD_COUNTS, &request->base);
}

/* What all its steps told. */
struct told {
    uint64_t targets, different, left_alone, kept, computed, differences;
    uint32_t steps;
    bool windows;
};

static struct told run(struct fixture *f, rebuild_request request)
{
    struct told told = { 0 };

    for (;;) {
        const rebuild_response *response = step(f, &request);
        assert_non_null(response);
        told.steps++;
        assert_true(told.steps < STEPS_MAX);
        for (size_t i = 0; i < response->n_differences; i++) {
            told.kept += response->differences[i]->kept;
            told.computed += response->differences[i]->computed;
            told.windows |= response->differences[i]->windows;
            told.differences++;
        }
        told.targets = response->targets;
        told.different = response->different;
        told.left_alone = response->left_alone;
        if (response->done)
            return told;
        assert_int_equal(response->next_step, request.step + 1);
        request.step = response->next_step;
    }
}

static struct told rebuild(struct fixture *f, const char *id, Holdfast__V1__RebuildPart part,
                           uint32_t rows)
{
    rebuild_request request = asking(id, part);

    request.rows = rows;
    return run(f, request);
}

static const char *player(uint32_t n)
{
    static char names[16][16];
    static uint32_t next;
    char *name = names[next++ % 16];

    snprintf(name, sizeof names[0], "p%03u", n);
    return name;
}

static void favorite_many(struct fixture *f, const char *target, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        assert_non_null(fixture_favorite(f, player(i), target));
}

static void put(struct fixture *f, const struct row_key *key, const struct buf *value)
{
    struct state *state = applier_state(f->applier);

    state_begin(state);
    if (value == NULL)
        state_delete(state, row_key_slice(key));
    else
        state_put(state, row_key_slice(key), buf_slice(value));
    state_commit(state);
}

/* The row is there, and says something else. */
static void plant(struct fixture *f, uint64_t number, const char *target, uint64_t count)
{
    const struct favorite_key edge = { .collection = number, .target = slice_from_text(target) };
    struct partial_row row;
    struct row_key key;
    struct buf value = { 0 };

    (void)fixture_partial(f, NULL, target); /* Loads it. */
    assert_int_equal(partial_find(applier_state(f->applier), &edge, NULL, &row), ERR_OK);
    row.count = count;
    row.hours = (struct hours){ 0 };
    row_key_partial(&key, number, edge.target);
    partial_row_encode(&row, &value);
    put(f, &key, &value);
    buf_deinit(&value);
}

static uint64_t count_of(struct fixture *f, const char *target)
{
    return fixture_partial(f, "favorites", target);
}

/* ---- counts ---- */
static void what_is_right_is_left_as_it_is(void **state)
{
    struct fixture *f = *state;

    favorite_many(f, "pong", 0, 5);
    favorite_many(f, "tetris", 2, 9);
    assert_non_null(fixture_unfavorite(f, "p003", "tetris"));
    assert_int_equal(fixture_add(f, "ann", "pong", 5), 5);
    assert_int_equal(fixture_add(f, "bob", "pong", 7), 7);
    for (uint32_t rows = 1; rows < 20; rows++) {
        char id[16];
        snprintf(id, sizeof id, "r%u", rows);
        struct told told = rebuild(f, id, COUNTS, rows);
        assert_int_equal(told.different, 0);
        assert_int_equal(told.left_alone, 0);
        assert_int_equal(told.targets, 3);
    }
    assert_int_equal(count_of(f, "pong"), 5);
    assert_int_equal(count_of(f, "tetris"), 6);
    assert_int_equal(fixture_part(f, "plays", "pong"), 12);
}

static void a_wrong_count_is_told_and_stored_as_it_is_computed(void **state)
{
    struct fixture *f = *state;

    favorite_many(f, "pong", 0, 5);
    favorite_many(f, "tetris", 0, 3);
    assert_int_equal(fixture_add(f, "ann", "go", 40), 40);
    plant(f, COLLECTION, "pong", 8);
    plant(f, PLAYS, "go", 41);
    rebuild_request request = asking("dry", COUNTS);
    request.dry_run = true;
    request.rows = 2;
    struct told told = run(f, request);
    assert_int_equal(told.different, 2);
    assert_int_equal(told.kept, 8 + 41);
    assert_int_equal(told.computed, 5 + 40);
    assert_int_equal(count_of(f, "pong"), 8);
    told = rebuild(f, "wet", COUNTS, 2);
    assert_int_equal(told.different, 2);
    assert_true(told.windows);
    assert_int_equal(count_of(f, "pong"), 5);
    assert_int_equal(fixture_part(f, "plays", "go"), 40);
    assert_int_equal(rebuild(f, "again", COUNTS, 2).different, 0);
    fixture_restart(f);
    assert_int_equal(count_of(f, "pong"), 5);
}

/* With one row a step a target is under way for long. */
static void what_changes_meanwhile_is_neither_lost_nor_counted_twice(void **state)
{
    struct fixture *f = *state;
    rebuild_request request = asking("slow", COUNTS);
    uint32_t steps = 0;

    favorite_many(f, "pong", 10, 20);
    assert_int_equal(fixture_add(f, "p010", "zork", 3), 3);
    assert_int_equal(fixture_add(f, "p020", "zork", 4), 4);
    request.rows = 1;
    for (;;) {
        const rebuild_response *response = step(f, &request);
        assert_non_null(response);
        assert_int_equal(response->different, 0);
        if (response->done)
            break;
        request.step = response->next_step;
        steps++;
        assert_true(steps < STEPS_MAX);
        if (steps > CHANGES)
            continue;
        /* Before the place, behind it, and of targets that are passed or still to come. */
        assert_non_null(fixture_favorite(f, player(steps), "pong"));
        assert_non_null(fixture_favorite(f, player(100 - steps), "pong"));
        assert_non_null(fixture_unfavorite(f, player(9 + steps), "pong"));
        assert_non_null(fixture_favorite(f, player(steps), "a"));
        assert_non_null(fixture_favorite(f, player(steps), "z"));
        assert_true(fixture_add(f, player(5 + steps), "zork", 2) > 0);
        f->now_ms += HOUR_MS / 4;
    }
    assert_true(steps > CHANGES);
    assert_int_equal(rebuild(f, "fast", COUNTS, 0).different, 0);
}

/* Players are taken out of counts and put back before the place, at it and behind it; one of their
 * edges is flagged. */
static void players_are_erased_meanwhile_and_it_follows(void **state)
{
    struct fixture *f = *state;
    rebuild_request request = asking("slow", COUNTS);
    uint32_t steps = 0, erased = 0;

    favorite_many(f, "pong", 0, 12);
    favorite_many(f, "zaxxon", 0, 12);
    for (uint32_t i = 0; i < 12; i++)
        assert_int_equal(fixture_add(f, player(i), "zork", 3), 3);
    assert_non_null(fixture_decide(f, METHOD_FLAG_EDGES, player(2), "pong"));
    request.rows = 1;
    for (;;) {
        const rebuild_response *response = step(f, &request);
        assert_non_null(response);
        assert_int_equal(response->different, 0);
        if (response->done)
            break;
        request.step = response->next_step;
        assert_true(++steps < STEPS_MAX);
        fixture_erase(f, player(steps * 5 % 12), steps % 3 == 0);
        erased++;
        (void)fixture_pass(f, ERASURE_PACE_MS / 2);
    }
    assert_true(erased > 20);
    assert_int_equal(rebuild(f, "fast", COUNTS, 0).different, 0);
}

static void a_step_that_comes_twice_is_carried_out_once(void **state)
{
    struct fixture *f = *state;
    rebuild_request request = asking("one", COUNTS);

    favorite_many(f, "pong", 0, 6);
    request.rows = 2;
    assert_int_equal(step(f, &request)->next_step, 1);
    assert_int_equal(step(f, &request)->next_step, 1);
    fixture_next_epoch(f); /* Another owner goes on. */
    fixture_restart(f);
    request.step = 1;
    assert_int_equal(step(f, &request)->next_step, 2);
    assert_int_equal(step(f, &request)->next_step, 2);
    struct told told =
        run(f, (rebuild_request){ request.base, 0, request.rebuild_id, 2, COUNTS, 0,
                                  request.collection, request.counter, request.target_id, 2 });
    assert_int_equal(told.different, 0);
    assert_int_equal(told.targets, 1);
}

static void another_rebuild_takes_its_place(void **state)
{
    struct fixture *f = *state;
    rebuild_request request = asking("one", COUNTS);

    favorite_many(f, "pong", 0, 6);
    request.rows = 2;
    assert_non_null(step(f, &request));
    assert_int_equal(rebuild(f, "two", COUNTS, 3).different, 0);
    request.step = 1;
    assert_null(step(f, &request));
    assert_string_equal(f->error->field, "step");
    assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
    request = asking("three", COUNTS);
    request.step = 4;
    assert_null(step(f, &request));
    assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
}

static void one_target_alone_is_told_to_its_home_again(void **state)
{
    struct fixture *f = *state;
    rebuild_request request = asking("one", COUNTS);

    favorite_many(f, "t1", 0, 3);
    favorite_many(f, "t10", 0, 4);
    fixture_take_totals(f);
    plant(f, COLLECTION, "t1", 1);
    plant(f, COLLECTION, "t10", 1);
    request.collection = text_lend("favorites");
    request.target_id = text_lend("t1");
    request.rows = 2;
    struct told told = run(f, request);
    assert_int_equal(told.targets, 1);
    assert_int_equal(told.different, 1);
    assert_int_equal(count_of(f, "t1"), 3);
    assert_int_equal(count_of(f, "t10"), 1);
    request.rebuild_id = text_lend("other");
    request.target_id = text_lend("t10");
    assert_int_equal(run(f, request).different, 1);
    request.rebuild_id = text_lend("none");
    request.target_id = text_lend("t");
    assert_int_equal(run(f, request).different, 0);
    assert_int_equal(count_of(f, "t"), 0);
}

static void a_count_of_nothing_goes_and_a_lost_one_comes_back(void **state)
{
    struct fixture *f = *state;
    struct row_key key;

    favorite_many(f, "pong", 0, 3);
    assert_non_null(fixture_favorite(f, "ann", "chess"));
    assert_non_null(fixture_unfavorite(f, "ann", "chess"));
    plant(f, COLLECTION, "chess", 9);
    (void)count_of(f, "pong");
    row_key_partial(&key, COLLECTION, slice_from_text("pong"));
    put(f, &key, NULL);
    struct told told = rebuild(f, "one", COUNTS, 1);
    assert_int_equal(told.different, 2);
    assert_int_equal(count_of(f, "pong"), 3);
    assert_int_equal(count_of(f, "chess"), 0);
}

static void a_target_with_a_row_that_cannot_be_read_is_left_alone(void **state)
{
    struct fixture *f = *state;
    struct buf value = { 0 }, was = { 0 };
    struct row_key key;

    assert_int_equal(fixture_add(f, "ann", "pong", 5), 5);
    assert_int_equal(fixture_add(f, "bob", "pong", 5), 5);
    row_key_adder_prefix(&key, PLAYS, slice_from_text("pong"));
    row_key_adder_add(&key, SLICE_LITERAL("player:bob"));
    buf_put_u8(&value, 0xff);
    put(f, &key, &value);
    assert_int_equal(rebuild(f, "one", COUNTS, 1).left_alone, 1);
    assert_int_equal(fixture_part(f, "plays", "pong"), 10);
    added_row_encode(&(struct added_row){ .value = 5, .at_ms = f->now_ms }, &was);
    put(f, &key, &was);
    buf_deinit(&value);
    buf_deinit(&was);
}

/* ---- totals ---- */
static const struct tally_row *tally(struct fixture *f, const char *target)
{
    static struct tally_row row;
    const struct top_key of = { .collection = COLLECTION, .target = slice_from_text(target) };

    assert_int_equal(tally_find(applier_state(f->applier), &of, NULL, &row), ERR_OK);
    return &row;
}

static void plant_total(struct fixture *f, const char *target, uint64_t count)
{
    struct tally_row row = *tally(f, target);
    struct buf value = { 0 };
    struct row_key key;

    row.count = count;
    row_key_tally(&key, COLLECTION, slice_from_text(target));
    tally_row_encode(&row, &value);
    put(f, &key, &value);
    buf_deinit(&value);
}

static void totals_and_places_are_made_again_of_shares(void **state)
{
    struct fixture *f = *state;
    struct row_key key;
    struct buf value = { 0 };

    favorite_many(f, "pong", 0, 3);
    favorite_many(f, "tetris", 0, 5);
    favorite_many(f, "zork", 0, 2);
    fixture_take_totals(f);
    assert_int_equal(rebuild(f, "right", TOTALS, 1).different, 0);
    plant_total(f, "pong", 77);
    row_key_rank_prefix(&key, COLLECTION, TOP_ALL); /* A place is lost, and one is of no total. */
    row_key_rank_add(&key, 5, slice_from_text("tetris"));
    put(f, &key, NULL);
    row_key_rank_prefix(&key, COLLECTION, TOP_DAY);
    row_key_rank_add(&key, 99, slice_from_text("zork"));
    rank_row_encode(&value);
    put(f, &key, &value);
    buf_deinit(&value);
    rebuild_request request = asking("dry", TOTALS);
    request.dry_run = true;
    struct told told = run(f, request);
    assert_int_equal(told.different, 4); /* The place of what pong had is of no total, too. */
    assert_int_equal(tally(f, "pong")->count, 77);
    told = rebuild(f, "wet", TOTALS, 1);
    assert_int_equal(tally(f, "pong")->count, 3);
    assert_true(told.different >= 3);
    assert_int_equal(rebuild(f, "again", TOTALS, 2).different, 0);
    request = asking("target", TOTALS);
    plant_total(f, "tetris", 6);
    request.collection = text_lend("favorites");
    request.target_id = text_lend("tetris");
    assert_int_equal(run(f, request).different, 1);
    assert_int_equal(tally(f, "tetris")->count, 5);
    assert_int_equal(rebuild(f, "last", TOTALS, 0).different, 0);
}

/* ---- checks ---- */
static const check_response *check(struct fixture *f, Holdfast__V1__RebuildPart part, uint32_t rows,
                                   ProtobufCBinaryData place)
{
    check_request request = HOLDFAST__INTERNAL__V1__CHECK_COUNTS_REQUEST__INIT;

    request.part = part;
    request.rows = rows;
    request.place = place;
    return fixture_read(f, METHOD_CHECK_COUNTS, &request.base);
}

static uint64_t check_all(struct fixture *f, Holdfast__V1__RebuildPart part, bool changes)
{
    struct buf place = { 0 };
    uint64_t different = 0;
    uint32_t steps = 0;

    do {
        const check_response *response =
            check(f, part, 1, (ProtobufCBinaryData){ place.size, place.data });
        assert_non_null(response);
        different += response->different;
        buf_clear(&place);
        buf_append(&place, response->place.data, response->place.len);
        steps++;
        assert_true(steps < STEPS_MAX);
        if (changes && steps < 20)
            assert_non_null(fixture_favorite(f, player(steps), "pong"));
    } while (place.size > 0);
    buf_deinit(&place);
    return different;
}

static void a_check_finds_what_is_wrong_and_changes_nothing(void **state)
{
    struct fixture *f = *state;

    favorite_many(f, "pong", 20, 30);
    favorite_many(f, "tetris", 0, 2);
    fixture_take_totals(f);
    assert_int_equal(check_all(f, COUNTS, false), 0);
    assert_int_equal(check_all(f, TOTALS, false), 0);
    assert_int_equal(check_all(f, COUNTS, true), 0); /* What changes meanwhile is no drift. */
    plant(f, COLLECTION, "tetris", 1);
    plant_total(f, "tetris", 9);
    assert_int_equal(check_all(f, COUNTS, false), 1);
    assert_int_equal(check_all(f, TOTALS, false), 2);
    assert_int_equal(count_of(f, "tetris"), 1);
    assert_int_equal(rebuild(f, "one", COUNTS, 0).different, 1);
    assert_int_equal(rebuild(f, "one more", TOTALS, 0).different,
                     1); /* Its place is right again. */
    assert_int_equal(check_all(f, TOTALS, false), 0);
}

/* ---- refusals ---- */
static void refused(struct fixture *f, const rebuild_request *request, const char *field)
{
    assert_null(step(f, request));
    assert_string_equal(f->error->field, field);
    assert_false(f->recorded);
}

static void what_makes_no_sense_is_refused(void **state)
{
    struct fixture *f = *state;
    rebuild_request request = asking("", COUNTS);

    refused(f, &request, "rebuild_id");
    request =
        asking("0123456789012345678901234567890123456789012345678901234567890123456789", COUNTS);
    refused(f, &request, "rebuild_id");
    request = asking("one", HOLDFAST__V1__REBUILD_PART__REBUILD_PART_UNSPECIFIED);
    refused(f, &request, "part");
    request = asking("one", COUNTS);
    request.rows = RECOUNT_ROWS_MAX + 1;
    refused(f, &request, "rows");
    request = asking("one", COUNTS);
    request.target_id = text_lend("pong");
    refused(f, &request, "target_id");
    request.collection = text_lend("favorites");
    request.counter = text_lend("plays");
    refused(f, &request, "counter");
    request.counter = text_lend("");
    request.target_id = text_lend("a\nb");
    refused(f, &request, "target_id");
    request = asking("one", COUNTS);
    request.collection = text_lend("nothing");
    assert_null(step(f, &request));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    const uint8_t nonsense[] = { 9, 9 };
    assert_null(check(f, COUNTS, 1, (ProtobufCBinaryData){ 2, (uint8_t *)(uintptr_t)nonsense }));
    assert_string_equal(f->error->field, "place");
    assert_null(check(f, COUNTS, 0, (ProtobufCBinaryData){ 0, NULL }));
    assert_string_equal(f->error->field, "rows");
    assert_null(check(f, HOLDFAST__V1__REBUILD_PART__REBUILD_PART_UNSPECIFIED, 1,
                      (ProtobufCBinaryData){ 0, NULL }));
    assert_string_equal(f->error->field, "part");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REBUILD_TEST(what_is_right_is_left_as_it_is),
        REBUILD_TEST(a_wrong_count_is_told_and_stored_as_it_is_computed),
        REBUILD_TEST(what_changes_meanwhile_is_neither_lost_nor_counted_twice),
        REBUILD_TEST(players_are_erased_meanwhile_and_it_follows),
        EDGES_TEST(a_step_that_comes_twice_is_carried_out_once),
        EDGES_TEST(another_rebuild_takes_its_place),
        EDGES_TEST(one_target_alone_is_told_to_its_home_again),
        EDGES_TEST(a_count_of_nothing_goes_and_a_lost_one_comes_back),
        COUNTERS_TEST(a_target_with_a_row_that_cannot_be_read_is_left_alone),
        EDGES_TEST(totals_and_places_are_made_again_of_shares),
        EDGES_TEST(a_check_finds_what_is_wrong_and_changes_nothing),
        REBUILD_TEST(what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
