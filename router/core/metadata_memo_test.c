#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "router/core/metadata_memo.h"
#include "runtime/base/check.h"

#define YOUNG_MS 5000u
#define OLD_MS   60000u

static struct metadata_name name_of(const char *collection, const char *target)
{
    return (struct metadata_name){ slice_from_text(collection), slice_from_text(target) };
}

static enum metadata_age age_at(struct metadata_memo *memo, const char *target, uint64_t now_ms,
                                struct slice *ret_packed)
{
    const struct metadata_name name = name_of("favorites", target);
    const struct metadata_ages ages = { now_ms - YOUNG_MS, now_ms - OLD_MS };

    return metadata_memo_find(memo, &name, &ages, ret_packed);
}

static void put(struct metadata_memo *memo, const char *target, const char *text, uint64_t at_ms)
{
    const struct metadata_name name = name_of("favorites", target);

    metadata_memo_put(memo, &name, slice_from_text(text), at_ms);
    metadata_memo_check(memo);
}

static void what_is_known_ages_and_is_no_longer_told(void **state)
{
    struct metadata_memo *memo = metadata_memo_new(65536);
    const struct metadata_name other = name_of("likes", "tetris");
    const struct metadata_ages any = { 0, 0 };
    struct slice packed;
    (void)state;

    assert_int_equal(age_at(memo, "tetris", 100000, &packed), METADATA_UNKNOWN);
    put(memo, "tetris", "Tetris", 100000);
    assert_int_equal(age_at(memo, "tetris", 100000 + YOUNG_MS, &packed), METADATA_YOUNG);
    assert_true(slice_equal(packed, slice_from_text("Tetris")));
    assert_int_equal(age_at(memo, "tetris", 100001 + YOUNG_MS, &packed), METADATA_OLD);
    assert_int_equal(age_at(memo, "tetris", 100000 + OLD_MS, &packed), METADATA_OLD);
    assert_int_equal(age_at(memo, "tetris", 100001 + OLD_MS, &packed), METADATA_UNKNOWN);
    assert_int_equal(metadata_memo_find(memo, &other, &any, &packed), METADATA_UNKNOWN);
    const struct metadata_memo_stats stats = metadata_memo_stats(memo);
    assert_int_equal(stats.hits, 1);
    assert_int_equal(stats.stale, 2);
    assert_int_equal(stats.misses, 3);
    metadata_memo_free(memo);
}

static void that_there_is_none_is_known_too(void **state)
{
    struct metadata_memo *memo = metadata_memo_new(65536);
    struct slice packed = { (const uint8_t *)"x", 1 };
    (void)state;

    put(memo, "pong", "", 100000);
    assert_int_equal(age_at(memo, "pong", 100001, &packed), METADATA_YOUNG);
    assert_int_equal(packed.size, 0);
    metadata_memo_free(memo);
}

static void the_newest_answer_stands(void **state)
{
    struct metadata_memo *memo = metadata_memo_new(65536);
    struct slice packed;
    (void)state;

    put(memo, "tetris", "second", 100010);
    put(memo, "tetris", "first", 100000); /* It was long under way. */
    assert_int_equal(age_at(memo, "tetris", 100020, &packed), METADATA_YOUNG);
    assert_true(slice_equal(packed, slice_from_text("second")));
    put(memo, "tetris", "third and longer", 100020);
    assert_int_equal(age_at(memo, "tetris", 100020, &packed), METADATA_YOUNG);
    assert_true(slice_equal(packed, slice_from_text("third and longer")));
    assert_int_equal(metadata_memo_stats(memo).entries, 1);
    metadata_memo_free(memo);
}

static void it_never_holds_more_than_it_may(void **state)
{
    struct metadata_memo *memo = metadata_memo_new(8192);
    char target[24], large[3000];
    struct slice packed;
    (void)state;

    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    for (uint32_t i = 0; i < 500; i++) {
        snprintf(target, sizeof target, "target-%u", i);
        put(memo, target, i % 7 == 0 ? large : "small", 100000 + i);
        assert_int_equal(age_at(memo, target, 100000 + i, &packed), METADATA_YOUNG);
    }
    assert_true(metadata_memo_stats(memo).evictions > 400);
    metadata_memo_free(memo);
    memo = metadata_memo_new(1024); /* Nothing so large is kept. */
    put(memo, "tetris", large, 100000);
    assert_int_equal(age_at(memo, "tetris", 100000, &packed), METADATA_UNKNOWN);
    metadata_memo_free(memo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_known_ages_and_is_no_longer_told),
        cmocka_unit_test(that_there_is_none_is_known_too),
        cmocka_unit_test(the_newest_answer_stands),
        cmocka_unit_test(it_never_holds_more_than_it_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
