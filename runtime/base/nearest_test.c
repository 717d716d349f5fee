/* The nearest name is near, and found as the table of distances would find it. */
#include "runtime/base/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/base/utf8.h"

static uint32_t distance(const char *given, const char *name)
{
    struct nearest nearest;

    nearest_init(&nearest, slice_from_text(given));
    return nearest_distance(&nearest, slice_from_text(name));
}

static void distances_count_edits_and_swaps(void **state)
{
    static const struct {
        const char *given, *name;
        uint32_t distance;
    } cases[] = {
        { "grant", "grant", 0 },  { "Grnat", "Grant", 1 },      { "grat", "grant", 1 },
        { "grrant", "grant", 1 }, { "grint", "grant", 1 },      { "GRANT", "grant", 0 },
        { "ab", "ba", 1 },        { "ca", "abc", 3 },           { "kitten", "sitting", 3 },
        { "a", "b", 1 },          { "opid", "retryAfter", 10 }, { "abcd", "badc", 2 },
        { "op-id", "op_id", 0 },  { "opid", "op_id", 1 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(distance(cases[i].given, cases[i].name), cases[i].distance);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The textbook's table, to compare with. */
static uint32_t slow_distance(struct slice a, struct slice b)
{
    static uint32_t table[NEAREST_BYTES_MAX + 1][NEAREST_BYTES_MAX + 1];

    for (uint32_t i = 0; i <= a.size; i++)
        table[i][0] = i;
    for (uint32_t k = 0; k <= b.size; k++)
        table[0][k] = k;
    for (size_t i = 1; i <= a.size; i++) {
        for (size_t k = 1; k <= b.size; k++) {
            uint32_t other = a.data[i - 1] != b.data[k - 1];
            uint32_t best = least(table[i - 1][k] + 1, table[i][k - 1] + 1);
            best = least(best, table[i - 1][k - 1] + other);
            if (i > 1 && k > 1 && a.data[i - 1] == b.data[k - 2] && a.data[i - 2] == b.data[k - 1])
                best = least(best, table[i - 2][k - 2] + 1);
            table[i][k] = best;
        }
    }
    return table[a.size][b.size];
}

static uint32_t step(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*random >> 33);
}

static void distances_are_those_of_the_table(void **state)
{
    uint64_t random = 7;
    (void)state;

    for (int round = 0; round < 20000; round++) {
        uint8_t a[NEAREST_BYTES_MAX], b[NEAREST_BYTES_MAX];
        struct slice given = { a, 1 + step(&random) % NEAREST_BYTES_MAX };
        struct slice name = { b, 1 + step(&random) % NEAREST_BYTES_MAX };
        uint32_t letters = 1 + step(&random) % 5;
        struct nearest nearest;

        for (size_t i = 0; i < given.size; i++)
            a[i] = (uint8_t)('a' + step(&random) % letters);
        for (size_t i = 0; i < name.size; i++)
            b[i] = (uint8_t)('a' + step(&random) % letters);
        nearest_init(&nearest, given);
        assert_int_equal(nearest_distance(&nearest, name), slow_distance(given, name));
    }
}

/* NULL: none. */
static const char *suggested(const char *given)
{
    static const char *const names[] = { "gold", "gems", "goods", "silver_coins", "dev", "a" };
    struct nearest nearest;

    nearest_init(&nearest, slice_from_text(given));
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        nearest_offer_text(&nearest, names[i]);
    return (const char *)nearest.name.data;
}

static void only_what_is_near_is_suggested(void **state)
{
    (void)state;

    assert_string_equal(suggested("glod"), "gold");
    assert_string_equal(suggested("GOLD"), "gold");
    assert_string_equal(suggested("gme"), "gems");
    assert_string_equal(suggested("good"), "gold"); /* As near as "goods": the first. */
    assert_string_equal(suggested("goodz"), "goods");
    assert_string_equal(suggested("sliver_coin"), "silver_coins");
    assert_string_equal(suggested("dve"), "dev");
    assert_null(suggested("euro"));
    assert_null(suggested("sil"));
    assert_null(suggested("xyz"));
    assert_null(suggested("b")); /* One byte, and that is wrong: nothing of it is left. */
    assert_null(suggested(""));
}

static void names_of_any_bytes_and_sizes_are_taken(void **state)
{
    char text[130];
    (void)state;

    memset(text, 'g', sizeof text);
    text[NEAREST_BYTES_MAX] = 0;
    assert_int_equal(distance(text, text), 0);
    assert_int_equal(distance(text, "g"), NEAREST_BYTES_MAX - 1);
    text[NEAREST_BYTES_MAX] = 'g';
    text[NEAREST_BYTES_MAX + 1] = 0;
    assert_int_equal(distance(text, "gold"), UINT32_MAX);
    assert_int_equal(distance("gold", text), UINT32_MAX);
    assert_null(suggested(text));
    text[129] = 0;
    assert_null(suggested(text));
    assert_int_equal(distance("g\xff\x01ld", "gold"), 2);
}

static const char *shown(struct slice given)
{
    static char text[NEAREST_SHOWN_BYTES + 1];

    text[NEAREST_SHOWN_BYTES] = '~';
    assert_ptr_equal(nearest_show(given, text), text);
    assert_int_equal(text[NEAREST_SHOWN_BYTES], '~');
    return text;
}

static void what_was_given_is_shown_short_and_printable(void **state)
{
    static const struct {
        const char *given, *shown;
    } cases[] = {
        { "stauts", "stauts" },
        { "", "" },
        { "gr\xc3\xb6\xc3\x9f"
          "e",
          "gr\xc3\xb6\xc3\x9f"
          "e" },
        { "\x1b[31m\xff\n\t\x7f", "?[31m????" },
        { "\xc2\x9b"
          "0;31m\xe2\x80\xae",
          "?0;31m?" },
        { "\xed\xa0\x80", "???" },
        { "01234567890123456789012345678901234567890123456789012345678901",
          "01234567890123456789012345678901234567890123456789012345678901" },
        { "01234567890123456789012345678901234567890123456789012345678901234",
          "0123456789012345678901234567890123456789012345678901234567890..." },
        { "012345678901234567890123456789012345678901234567890123456789\xc3\xb6\xc3\xb6\xc3\xb6",
          "012345678901234567890123456789012345678901234567890123456789..." },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(shown(slice_from_text(cases[i].given)), cases[i].shown);
    assert_string_equal(shown((struct slice){ (const uint8_t *)"a\0b", 3 }), "a?b");
    assert_string_equal(shown((struct slice){ NULL, 0 }), "");
}

static void no_secret_is_shown(void **state)
{
    static const struct {
        const char *given, *shown;
    } cases[] = {
        { "--kye=s3cret", "--kye=..." },
        { "password=s3cret", "password=..." },
        { "hf_5ec4e7", "hf_..." },
        { "key:hf_5ec4e7", "key:hf_..." },
        { "https://user:s3cret@host", "https://..." },
        { "a=", "a=" },
        { "0123456789012345678901234567890123456789012345678901234567=s3cret",
          "0123456789012345678901234567890123456789012345678901234567=..." },
        { "01234567890123456789012345678901234567890123456789012345678901=s3cret",
          "0123456789012345678901234567890123456789012345678901234567..." },
        { "012345678901234567890123456789012345678901234567890123456\xc3\xb6\xc3\xb6=s3cret",
          "012345678901234567890123456789012345678901234567890123456..." },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(shown(slice_from_text(cases[i].given)), cases[i].shown);
}

/* Of any bytes: at most 64 of them, valid as text, and nothing of what follows a mark. */
static void whatever_is_given_is_shown_within_bounds(void **state)
{
    static const char letters[] = "a=:/hf_\x1b\xc3\xb6\xff\n";
    uint64_t random = 11;
    (void)state;

    for (int round = 0; round < 20000; round++) {
        uint8_t bytes[130];
        struct slice given = { bytes, step(&random) % sizeof bytes };

        for (size_t i = 0; i < given.size; i++)
            bytes[i] = (uint8_t)letters[step(&random) % (sizeof letters - 1)];
        const char *text = shown(given);
        struct slice result = slice_from_text(text);
        assert_true(result.size < NEAREST_SHOWN_BYTES);
        assert_true(utf8_valid(result));
        for (size_t i = 0; i < result.size; i++)
            assert_true(result.data[i] >= 0x20 && result.data[i] != 0x7f);
        const char *mark = strchr(text, '=');
        assert_true(mark == NULL || mark[1] == 0 || strcmp(mark + 1, "...") == 0);
        mark = strstr(text, "hf_");
        assert_true(mark == NULL || mark[3] == 0 || strcmp(mark + 3, "...") == 0);
    }
}

static void a_hint_names_only_what_was_meant(void **state)
{
    char hint[NEAREST_HINT_BYTES], name[200];
    (void)state;

    assert_string_equal(nearest_hint(slice_from_text("--seal"), hint), "; did you mean --seal?");
    assert_string_equal(nearest_hint((struct slice){ 0 }, hint), "");
    memset(name, 'x', sizeof name);
    nearest_hint((struct slice){ (const uint8_t *)name, sizeof name }, hint);
    assert_int_equal(strlen(hint), NEAREST_HINT_BYTES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_count_edits_and_swaps),
        cmocka_unit_test(distances_are_those_of_the_table),
        cmocka_unit_test(only_what_is_near_is_suggested),
        cmocka_unit_test(names_of_any_bytes_and_sizes_are_taken),
        cmocka_unit_test(what_was_given_is_shown_short_and_printable),
        cmocka_unit_test(no_secret_is_shown),
        cmocka_unit_test(whatever_is_given_is_shown_within_bounds),
        cmocka_unit_test(a_hint_names_only_what_was_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
