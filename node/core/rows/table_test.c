/* The list of tables: its facts fit together, as the code that reads them relies on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/rows/rows.h"
#include "node/core/rows/table.h"
#include "runtime/base/check.h"

#define ANN SLICE_LITERAL("player:ann")

#define LETTER(NAME, name, letter, ...) letter,
static const uint8_t rows[] = { TABLE_ROWS(LETTER) };
static const uint8_t all[] = { TABLE_LIST(LETTER) };

static void letters_are_distinct(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof all; i++) {
        assert_null(memchr(all, all[i], i));
        assert_true((all[i] >= 'a' && all[i] <= 'z') || (all[i] >= 'A' && all[i] <= 'Z'));
    }
}

/* They are on every disk. */
static void letters_do_not_change(void **state)
{
    static const char letters[] = "pslkibhoyecxnvrqzRdCMVfFgGBPJQHNZUSTKLXEDOtmw";

    (void)state;
    assert_int_equal(sizeof all, sizeof letters - 1);
    assert_memory_equal(all, letters, sizeof all);
}

/* A letter of no table is of the shard's rows without any rule of their own. */
static void unknown_letters_have_no_facts(void **state)
{
    static const struct table_facts none;

    (void)state;
    for (uint32_t letter = 0; letter < 256; letter++) {
        if (memchr(all, (int)letter, sizeof all) == NULL)
            assert_memory_equal(&table_facts[letter], &none, sizeof none);
    }
}

/* Trees and runs have places of their own, and none is without its table. */
static void places_are_distinct(void **state)
{
    uint32_t trees = 0, runs = 0;

    (void)state;
    for (size_t i = 0; i < sizeof all; i++) {
        const struct table_facts *facts = &table_facts[all[i]];
        bool whole = facts->order == TABLE_ORDER_ALWAYS || facts->order == TABLE_ORDER_ASKED;
        assert_int_equal(facts->tree, whole ? ++trees : 0);
        if (facts->run > 0)
            assert_int_equal(facts->run, ++runs);
    }
    assert_int_equal(trees, TABLE_TREES);
    assert_int_equal(runs, TABLE_RUNS);
}

/* state.h keeps one floor of time, which rows that leave by age raise. */
static void one_table_goes_by_age(void **state)
{
    uint32_t aged = 0;

    (void)state;
    for (size_t i = 0; i < sizeof rows; i++) {
        const struct table_facts *facts = &table_facts[rows[i]];
        bool ages = facts->drop == TABLE_DROP_AGE;
        assert_int_equal(ages, facts->miss == TABLE_MISS_ABOVE);
        assert_int_equal(ages, facts->carried == TABLE_CARRIED_DATED);
        assert_int_equal(ages, facts->entity == TABLE_ENTITY_UUID);
        aged += ages;
    }
    assert_int_equal(aged, 1);
}

/* What is never dropped is what need not be asked for, and is read as it comes. */
static void what_stays_in_memory_is_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows; i++) {
        const struct table_facts *facts = &table_facts[rows[i]];
        assert_int_equal(facts->drop == TABLE_DROP_NEVER, facts->miss == TABLE_MISS_ABSENT);
        assert_int_equal(facts->drop == TABLE_DROP_NEVER, facts->carried == TABLE_CARRIED_READ);
    }
}

static void every_table_of_rows_is_carried(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows; i++) {
        assert_int_not_equal(table_facts[rows[i]].carried, TABLE_CARRIED_APART);
        assert_int_not_equal(table_facts[rows[i]].carried, TABLE_CARRIED_NOWHERE);
    }
    assert_int_equal(table_facts[TABLE_META].carried, TABLE_CARRIED_APART);
    assert_int_equal(table_facts[TABLE_NOTE].carried, TABLE_CARRIED_NOWHERE);
}

/* Ranges of an entity, and tails, need its end in the key. */
static void keys_say_where_their_entity_ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows; i++) {
        const struct table_facts *facts = &table_facts[rows[i]];
        if (facts->order == TABLE_ORDER_ENTITY || facts->tail != TABLE_TAIL_NONE)
            assert_int_equal(facts->entity, TABLE_ENTITY_FIRST);
    }
}

static void entities_are_found_in_keys(void **state)
{
    static const uint8_t uid[ITEM_UID_BYTES] = { 1, 0, 3 };
    struct op_id id = { .uuid = { { 1, 2, 0, 4 } } };
    struct row_key keys[9];

    (void)state;
    row_key_player(&keys[0], ANN);
    row_key_item(&keys[1], ANN, uid);
    row_key_ledger(&keys[2], ANN, 7);
    row_key_operation(&keys[3], ANN, &id);
    row_key_timer(&keys[4], 1000, ANN);
    row_key_reservation_timer(&keys[5], 1000, ANN, 7);
    row_key_intent(&keys[6], ANN);
    row_key_history(&keys[7], uid, 1);
    row_key_outbox(&keys[8], 1, 2);
    for (size_t i = 0; i < 7; i++)
        assert_true(slice_equal(row_entity(row_key_slice(&keys[i])), ANN));
    for (size_t i = 7; i < ARRAY_SIZE(keys); i++)
        assert_int_equal(row_entity(row_key_slice(&keys[i])).size, 0);
}

static void a_row_that_is_not_in_memory_is_needed_before_it_is_anything(void **state)
{
    (void)state;

    assert_int_equal(row_found(STATE_MISSING, ERR_CORRUPT), ERR_NEED);
    assert_int_equal(row_found(STATE_ABSENT, ERR_CORRUPT),
                     ERR_OK); /* There was nothing to decode. */
    assert_int_equal(row_found(STATE_PRESENT, ERR_CORRUPT), ERR_CORRUPT);
    assert_int_equal(row_found(STATE_PRESENT, ERR_OK), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_are_distinct),
        cmocka_unit_test(letters_do_not_change),
        cmocka_unit_test(unknown_letters_have_no_facts),
        cmocka_unit_test(places_are_distinct),
        cmocka_unit_test(one_table_goes_by_age),
        cmocka_unit_test(what_stays_in_memory_is_known),
        cmocka_unit_test(every_table_of_rows_is_carried),
        cmocka_unit_test(keys_say_where_their_entity_ends),
        cmocka_unit_test(entities_are_found_in_keys),
        cmocka_unit_test(a_row_that_is_not_in_memory_is_needed_before_it_is_anything),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
