/* PullPartials of a node that owns very many homes: more than memory keeps ranges apart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idl/method.h"
#include "node/core/top/pull_item.h"
#include "node/rpc/fixture_edges.h"

#define HOMES   1024u
#define TARGETS 300u

struct world {
    struct fixture f;
    struct source_dot after[HOMES];
    uint32_t first; /* Home that is asked for first. */
    uint32_t items, more, parts;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    char target[16];

    fixture_init_shard(&w->f, 0, HOMES);
    fixture_define_favorites(&w->f);
    fixture_define_haste(&w->f);
    for (uint32_t i = 0; i < TARGETS; i++) {
        snprintf(target, sizeof target, "t%u", i);
        assert_non_null(fixture_favorite(&w->f, "ann", target));
    }
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    fixture_deinit(&w->f);
    free(w);
    return 0;
}

/* All homes ask, and log what they are told. */
static void pull(struct world *w)
{
    Holdfast__Internal__V1__PullPartialsRequest request =
        HOLDFAST__INTERNAL__V1__PULL_PARTIALS_REQUEST__INIT;
    struct buf homes = { 0 };
    struct pull_part part;
    struct pull_item item;

    for (uint32_t i = 0; i < HOMES; i++) {
        uint32_t home = (w->first + i) % HOMES;
        pull_home_encode(&(struct pull_home){ home, w->after[home] }, &homes);
    }
    request.homes = (ProtobufCBinaryData){ homes.size, homes.data };
    const Holdfast__Internal__V1__PullPartialsResponse *response =
        fixture_read(&w->f, METHOD_PULL_PARTIALS, &request.base);
    buf_deinit(&homes);
    assert_non_null(response);
    w->items = w->more = w->parts = 0;
    struct reader reader = reader_from((struct slice){ response->parts.data, response->parts.len });
    while (pull_part_next(&reader, &part)) {
        struct reader items = reader_from(part.items);
        w->parts++;
        w->more += part.more;
        while (pull_item_next(&items, &item)) {
            assert_int_equal(target_home(item.collection, item.target, HOMES), part.home);
            assert_true(source_dot_is_above(item.dot, w->after[part.home]));
            w->items++;
        }
        assert_false(items.bad);
        w->after[part.home] = part.to;
    }
    assert_false(reader.bad);
    w->first = (w->first + PULL_LOOKS_MAX) % HOMES;
}

static void every_home_is_told_in_the_end(void **state)
{
    struct world *w = *state;
    uint32_t items = 0, rounds = 0;

    do {
        pull(w);
        assert_int_equal(w->parts, HOMES);
        items += w->items;
        rounds++;
        assert_true(rounds <= TARGETS);
    } while (w->more > 0);
    assert_int_equal(items, TARGETS);
    pull(w);
    uint64_t loads = w->f.need_rounds;
    pull(w);
    assert_int_equal(w->items, 0);
    assert_int_equal(w->f.need_rounds, loads); /* Where nothing changed, nothing is loaded. */
    assert_non_null(fixture_favorite(&w->f, "bob", "t7"));
    assert_non_null(fixture_unfavorite(&w->f, "ann", "t8"));
    pull(w);
    assert_int_equal(w->items, 2);
    assert_int_equal(w->more, 0);
}

/* A row that cannot be read, or one that a repair has made again, hides nothing. */
static void what_cannot_be_read_of_a_home_hides_no_change(void **state)
{
    struct world *w = *state;
    uint32_t home = target_home(7, slice_from_text("t7"), HOMES);
    const uint8_t nonsense = 0;
    struct row_key key;
    uint32_t rounds = 0;

    do
        pull(w);
    while (w->more > 0 && rounds++ < TARGETS);
    assert_non_null(fixture_favorite(&w->f, "bob", "t7"));
    row_key_newest(&key, home);
    state_begin(applier_state(w->f.applier));
    state_put(applier_state(w->f.applier), row_key_slice(&key), (struct slice){ &nonsense, 1 });
    state_commit(applier_state(w->f.applier));
    pull(w);
    assert_int_equal(w->items, 1);
}

/* ---- what is new ---- */
/* What is asked of all homes, of which none says how far it is. */
static const Holdfast__Internal__V1__PullPartialsResponse *
ask_since(struct world *w, struct source_dot since, size_t wanted_size)
{
    Holdfast__Internal__V1__PullPartialsRequest request =
        HOLDFAST__INTERNAL__V1__PULL_PARTIALS_REQUEST__INIT;
    uint8_t wanted[HOMES / 8 + 1];

    memset(wanted, 0xff, sizeof wanted);
    request.since_epoch = since.epoch;
    request.since_owner = 1;
    request.since_counter = since.counter;
    request.wanted = (ProtobufCBinaryData){ wanted_size, wanted };
    const Holdfast__Internal__V1__PullPartialsResponse *response =
        fixture_read(&w->f, METHOD_PULL_PARTIALS, &request.base);
    assert_non_null(response);
    return response;
}

static struct source_dot as_of(const Holdfast__Internal__V1__PullPartialsResponse *response)
{
    return (struct source_dot){ response->as_of_epoch, response->as_of_counter };
}

static uint32_t parts_of(const Holdfast__Internal__V1__PullPartialsResponse *response,
                         uint32_t *ret_home)
{
    struct reader reader = reader_from((struct slice){ response->parts.data, response->parts.len });
    struct pull_part part;
    uint32_t count = 0;

    while (pull_part_next(&reader, &part)) {
        *ret_home = part.home;
        count++;
    }
    assert_false(reader.bad);
    return count;
}

/* Whatever else it has applied: each shard logs a cut a second. */
static void a_source_tells_of_homes_with_something_new_alone(void **state)
{
    struct world *w = *state;
    uint32_t home = 0;

    const Holdfast__Internal__V1__PullPartialsResponse *first =
        ask_since(w, (struct source_dot){ 0 }, 0);
    assert_true(first->follows);
    struct source_dot since = as_of(first);
    fixture_next_epoch(&w->f);
    assert_non_null(fixture_favorite(&w->f, "ann", "t9")); /* As it was. */
    const Holdfast__Internal__V1__PullPartialsResponse *quiet = ask_since(w, since, HOMES / 8);
    assert_true(quiet->follows);
    assert_int_equal(quiet->parts.len, 0);
    since = as_of(quiet);
    assert_non_null(fixture_favorite(&w->f, "bob", "t9"));
    const Holdfast__Internal__V1__PullPartialsResponse *news = ask_since(w, since, HOMES / 8);
    assert_true(news->follows);
    assert_int_equal(parts_of(news, &home), 1);
    assert_int_equal(home, target_home(7, slice_from_text("t9"), HOMES));
    assert_int_equal(ask_since(w, as_of(news), HOMES / 8)->parts.len, 0);
}

/* More than is remembered one by one: each home is looked at, and some are put off. */
static void a_source_that_was_not_asked_for_long_leaves_no_home_out(void **state)
{
    struct world *w = *state;
    uint32_t home = 0;

    const Holdfast__Internal__V1__PullPartialsResponse *all =
        ask_since(w, (struct source_dot){ 1, 1 }, HOMES / 8);
    bool changed[HOMES] = { false };
    uint32_t homes = 0;
    for (uint32_t i = 0; i < TARGETS; i++) {
        char target[16];
        snprintf(target, sizeof target, "t%u", i);
        uint32_t of = target_home(7, slice_from_text(target), HOMES);
        homes += !changed[of];
        changed[of] = true;
    }
    assert_true(all->follows);
    assert_in_range(parts_of(all, &home), homes, HOMES);
}

/* Then how far each home is has to be said. */
static void a_source_that_cannot_tell_what_is_new_says_so(void **state)
{
    struct world *w = *state;
    const struct source_dot now = as_of(ask_since(w, (struct source_dot){ 0 }, 0));

    assert_false(
        ask_since(w, (struct source_dot){ now.epoch, now.counter + 1 }, HOMES / 8)->follows);
    assert_false(ask_since(w, now, HOMES / 8 - 1)->follows);
    assert_true(ask_since(w, now, HOMES / 8)->follows);
    fixture_checkpoint(&w->f);
    fixture_restart(&w->f);
    assert_true(ask_since(w, now, HOMES / 8)->follows);
    assert_false(
        ask_since(w, (struct source_dot){ now.epoch, now.counter - 1 }, HOMES / 8)->follows);
}

/* ---- what one entry changes ---- */
/* One home's page, which the caller takes over: how many items it has, and whether there are more.
 */
static uint32_t page_after(struct fixture *f, struct pull_home home, struct buf *ret_items,
                           struct pull_part *ret_part)
{
    Holdfast__Internal__V1__PullPartialsRequest request =
        HOLDFAST__INTERNAL__V1__PULL_PARTIALS_REQUEST__INIT;
    struct buf homes = { 0 };
    struct pull_item item;
    uint32_t count = 0;

    pull_home_encode(&home, &homes);
    request.homes = (ProtobufCBinaryData){ homes.size, homes.data };
    const Holdfast__Internal__V1__PullPartialsResponse *response =
        fixture_read(f, METHOD_PULL_PARTIALS, &request.base);
    buf_deinit(&homes);
    assert_non_null(response);
    struct reader reader = reader_from((struct slice){ response->parts.data, response->parts.len });
    assert_true(pull_part_next(&reader, ret_part));
    buf_clear(ret_items);
    buf_append(ret_items, ret_part->items.data, ret_part->items.size);
    struct reader items = reader_from(buf_slice(ret_items));
    while (pull_item_next(&items, &item))
        count++;
    return count;
}

/* How many counts a home takes of a page. */
static uint64_t take(struct fixture *f, struct source_dot after, const struct buf *items,
                     const struct pull_part *told)
{
    Holdfast__Internal__V1__TakePartialsRequest request =
        HOLDFAST__INTERNAL__V1__TAKE_PARTIALS_REQUEST__INIT;
    Holdfast__Internal__V1__PulledPart part = HOLDFAST__INTERNAL__V1__PULLED_PART__INIT;
    Holdfast__Internal__V1__PulledPart *parts[] = { &part };

    part.items = (ProtobufCBinaryData){ items->size, items->data };
    part.after_epoch = after.epoch;
    part.after_counter = after.counter;
    part.to_epoch = told->to.epoch;
    part.to_counter = told->to.counter;
    request.parts = parts;
    request.n_parts = 1;
    const Holdfast__Internal__V1__TakePartialsResponse *response =
        fixture_mutate(f, METHOD_TAKE_PARTIALS, &request.base);
    assert_non_null(response);
    return response->taken;
}

/* 250 changes, then one entry that changes 16 counts: no page ends inside it, and all are taken. */
static void what_one_entry_changes_is_told_and_taken_together(void **state)
{
    const struct fixture_review flag = { .method = METHOD_FLAG_EDGES,
                                         .player = "bob",
                                         .all = true };
    struct source_dot none = { 0 };
    struct fixture f;
    struct buf items = { 0 };
    struct pull_part first, second;
    char target[16];

    (void)state;
    fixture_init_shard(&f, 0, 1);
    fixture_define_favorites(&f);
    fixture_define_haste(&f);
    for (uint32_t i = 0; i < 250; i++) {
        snprintf(target, sizeof target, "t%u", i);
        assert_non_null(fixture_favorite(&f, "ann", target));
    }
    for (uint32_t i = 0; i < ENTRY_COUNTS_MAX; i++) {
        snprintf(target, sizeof target, "u%u", i);
        assert_non_null(fixture_favorite(&f, "bob", target));
    }
    assert_int_equal(fixture_review(&f, &flag)->edges, ENTRY_COUNTS_MAX);
    assert_int_equal(page_after(&f, (struct pull_home){ 0 }, &items, &first), 250);
    assert_true(first.more);
    assert_int_equal(take(&f, none, &items, &first), 250);
    assert_int_equal(page_after(&f, (struct pull_home){ 0, first.to }, &items, &second),
                     ENTRY_COUNTS_MAX);
    assert_false(second.more);
    assert_int_equal(take(&f, first.to, &items, &second), ENTRY_COUNTS_MAX);
    assert_int_equal(take(&f, first.to, &items, &second), 0);
    buf_deinit(&items);
    fixture_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_home_is_told_in_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_of_a_home_hides_no_change, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_source_tells_of_homes_with_something_new_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_source_that_was_not_asked_for_long_leaves_no_home_out,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_source_that_cannot_tell_what_is_new_says_so, setup,
                                        teardown),
        cmocka_unit_test(what_one_entry_changes_is_told_and_taken_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
