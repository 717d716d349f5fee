/* The largest record that the sides of a cut can make of one document: it comes to a member that
 * was away and to a disk, and nothing makes it larger. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "node/core/mergeable/absorb.h"
#include "node/core/mergeable/pair.h"
#include "node/core/mergeable/policy.h"

#define PATH_BYTES 8u
#define CELL_BYTES (MERGE_BYTES_WRITTEN_MAX / MERGE_CELLS_WRITTEN_MAX)
/* What a log of the shell and a message take (node/store/merge_db.h), less all besides a record. */
#define CARRIED_BYTES_MAX (47u * 1024u * 1024u)

static int setup(void **state)
{
    static struct pair pair;

    pair_init(&pair);
    *state = &pair;
    return 0;
}

static int teardown(void **state)
{
    pair_deinit(*state);
    return 0;
}

/* What one side leaves at most, each cell as costly beside its bytes as cells get. */
static void make_side(struct merge_record *record, uint32_t side)
{
    static uint8_t value[CELL_BYTES];
    char path[PATH_BYTES + 1];

    *record = (struct merge_record){ .policy = MERGE_POLICY_MERGE };
    for (uint32_t i = 0; i < MERGE_CELLS_WRITTEN_MAX; i++) {
        (void)snprintf(path, sizeof path, "%08u", i);
        merge_record_add(record, merge_cell_new(&(struct merge_cell_form){
                                     .path = { (const uint8_t *)path, PATH_BYTES },
                                     .value = { value, CELL_BYTES - PATH_BYTES },
                                     .dot = { merge_actor_make(0, 1000000000 + side), 1 + i },
                                     .hlc = (1750000000000ull << 16) | 0xffff,
                                     .expires_ms = UINT64_MAX,
                                     .op = UINT64_MAX }));
    }
}

static err take_side(struct pair *pair, uint32_t side)
{
    struct merge_record record;

    make_side(&record, side);
    err e = merge_absorb_logged(pair->replicas[0],
                                &(struct merge_incoming){ .key = pair->key, .record = &record });
    merge_record_deinit(&record);
    pair_drain(pair, 0);
    return e;
}

static void what_all_sides_wrote_comes_to_a_member_that_was_away(void **state)
{
    struct pair *pair = *state;

    pair->cut = true;
    for (uint32_t side = 0; side < MERGE_SIDES_MAX; side++) {
        buf_clear(&pair->logs[0]); /* Its last record has all. */
        assert_int_equal(take_side(pair, side), ERR_OK);
    }
    const struct merge_record *stored = merge_store_find(&pair->replicas[0]->store, pair->key);

    assert_int_equal(merge_record_bytes(stored), MERGE_BYTES_MAX);
    assert_int_equal(stored->count, MERGE_CELLS_MAX);
    pair->cut = false;
    pair->message_bytes_max = 0;
    for (uint32_t i = 0; i < 3; i++)
        pair_round(pair);
    const struct merge_record *pulled = merge_store_find(&pair->replicas[1]->store, pair->key);

    assert_true(merge_record_equal(stored, pulled, false));
    assert_in_range(pair->message_bytes_max, MERGE_BYTES_MAX, CARRIED_BYTES_MAX);
    /* Its log brings it back. */
    assert_in_range(pair->logs[1].size, MERGE_BYTES_MAX, CARRIED_BYTES_MAX);
    pair_start(pair, 1, true);
    assert_true(
        merge_record_equal(stored, merge_store_find(&pair->replicas[1]->store, pair->key), false));
}

static void nothing_makes_it_larger(void **state)
{
    struct pair *pair = *state;

    pair->cut = true;
    for (uint32_t side = 0; side < MERGE_SIDES_MAX; side++)
        assert_int_equal(take_side(pair, side), ERR_OK);
    assert_int_equal(take_side(pair, MERGE_SIDES_MAX), ERR_FULL);
    assert_int_equal(take_side(pair, 0), ERR_OK); /* It has that one. */
    assert_int_equal(merge_record_bytes(merge_store_find(&pair->replicas[0]->store, pair->key)),
                     MERGE_BYTES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_all_sides_wrote_comes_to_a_member_that_was_away, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nothing_makes_it_larger, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
