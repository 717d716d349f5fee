/* What is known of the homes for which counts changed, as far back as it is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/favorite/recent_changes.h"

#define HOMES 1024u

static const struct source_dot begin = { 1, 0 };

/* How many homes it tells of; -1: it does not know. */
static int homes_since(const struct recent_changes *recent, struct source_dot since, uint8_t *bits)
{
    int count = 0;

    memset(bits, 0, HOMES / 8);
    if (!recent_changes_since(recent, since, HOMES, bits))
        return -1;
    for (uint32_t i = 0; i < HOMES; i++)
        count += bits[i / 8] >> i % 8 & 1;
    return count;
}

static void it_tells_the_homes_of_later_entries(void **state)
{
    struct recent_changes recent = { 0 };
    uint8_t bits[HOMES / 8];

    (void)state;
    assert_int_equal(homes_since(&recent, begin, bits), 0);
    recent_changes_note(&recent, (struct source_dot){ 1, 5 }, 9);
    recent_changes_note(&recent, (struct source_dot){ 1, 5 }, 1023);
    recent_changes_note(&recent, (struct source_dot){ 2, 1 }, 8);
    assert_int_equal(homes_since(&recent, begin, bits), 3);
    assert_int_equal(bits[1], 3);
    assert_int_equal(bits[127], 128);
    assert_int_equal(homes_since(&recent, (struct source_dot){ 1, 5 }, bits), 1);
    assert_int_equal(bits[1], 1);
    assert_int_equal(homes_since(&recent, (struct source_dot){ 2, 1 }, bits), 0);
    recent_changes_deinit(&recent);
}

/* An entry that is applied a second time, since rows were missing, notes the same. */
static void an_entry_is_noted_once_for_a_home(void **state)
{
    struct recent_changes recent = { 0 };

    (void)state;
    for (uint32_t i = 0; i < 40; i++)
        recent_changes_note(&recent, (struct source_dot){ 1, 5 }, i % 2);
    assert_int_equal(recent.count, 2);
    recent_changes_deinit(&recent);
}

/* The oldest go; since before them, every home may have changed. */
static void what_is_kept_no_more_may_be_of_any_home(void **state)
{
    struct recent_changes recent = { 0 };
    uint8_t bits[HOMES / 8];

    (void)state;
    for (uint32_t i = 1; i <= RECENT_CHANGES_MAX; i++)
        recent_changes_note(&recent, (struct source_dot){ 1, i }, i);
    assert_int_equal(homes_since(&recent, begin, bits), RECENT_CHANGES_MAX);
    recent_changes_note(&recent, (struct source_dot){ 1, 1000 }, 0);
    assert_int_equal(recent.room, RECENT_CHANGES_MAX);
    assert_int_equal(homes_since(&recent, begin, bits), HOMES);
    assert_int_equal(homes_since(&recent, (struct source_dot){ 1, 1 }, bits), RECENT_CHANGES_MAX);
    recent_changes_deinit(&recent);
}

static void before_rows_were_put_nothing_is_known(void **state)
{
    struct recent_changes recent = { 0 };
    uint8_t bits[HOMES / 8];

    (void)state;
    recent_changes_note(&recent, (struct source_dot){ 1, 5 }, 9);
    recent_changes_forget(&recent, (struct source_dot){ 1, 7 });
    assert_int_equal(homes_since(&recent, (struct source_dot){ 1, 6 }, bits), -1);
    assert_int_equal(homes_since(&recent, (struct source_dot){ 1, 7 }, bits), 0);
    recent_changes_note(&recent, (struct source_dot){ 1, 8 }, 3);
    assert_int_equal(homes_since(&recent, (struct source_dot){ 1, 7 }, bits), 1);
    recent_changes_deinit(&recent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_tells_the_homes_of_later_entries),
        cmocka_unit_test(an_entry_is_noted_once_for_a_home),
        cmocka_unit_test(what_is_kept_no_more_may_be_of_any_home),
        cmocka_unit_test(before_rows_were_put_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
