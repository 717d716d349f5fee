#include "node/store/halt_note.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/test_directory.h"

static int setup(void **state)
{
    char *path = malloc(TEST_DIRECTORY_BYTES);

    assert_non_null(path);
    test_directory_make("halt-note", path);
    *state = path;
    return 0;
}

static int teardown(void **state)
{
    test_directory_remove(*state);
    free(*state);
    return 0;
}

static void a_note_is_read_back_by_the_same_program(void **state)
{
    struct halt_note note;
    char program[HALT_PROGRAM_SIZE];

    assert_int_equal(halt_note_read(*state, 7, &note), ERR_NOT_FOUND);
    halt_note_write(*state, 7, 1234, "a.c:5: balance != NULL");
    halt_note_program(program);
    assert_int_equal(halt_note_read(*state, 7, &note), ERR_OK);
    assert_true(note.index == 1234);
    assert_string_equal(note.reason, "a.c:5: balance != NULL");
    assert_string_equal(note.program, program);
    assert_int_equal(halt_note_read(*state, 8, &note), ERR_NOT_FOUND);
    halt_note_remove(*state, 7);
    assert_int_equal(halt_note_read(*state, 7, &note), ERR_NOT_FOUND);
}

static void the_newest_note_counts_and_long_reasons_are_cut(void **state)
{
    struct halt_note note;
    char reason[1000];

    memset(reason, 'x', sizeof reason - 1);
    reason[sizeof reason - 1] = 0;
    halt_note_write(*state, 3, 1, "first");
    halt_note_write(*state, 3, 2, reason);
    assert_int_equal(halt_note_read(*state, 3, &note), ERR_OK);
    assert_true(note.index == 2);
    assert_int_equal(strlen(note.reason), HALT_REASON_SIZE - 1);
}

static void what_is_no_note_is_told(void **state)
{
    struct halt_note note;
    char path[1200];

    (void)snprintf(path, sizeof path, "%s/halted-1", (const char *)*state);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("nothing\n", file);
    (void)fclose(file);
    assert_int_equal(halt_note_read(*state, 1, &note), ERR_CORRUPT);
}

int main(void)
{
#define NOTE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        NOTE_TEST(a_note_is_read_back_by_the_same_program),
        NOTE_TEST(the_newest_note_counts_and_long_reasons_are_cut),
        NOTE_TEST(what_is_no_note_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
