#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "node/io/view/erasures.h"

static struct shard_erasure made(const char *entity, uint64_t number, bool hides, bool purges)
{
    struct shard_erasure erasure = {
        .number = number, .hides = hides, .purges = purges, .entity_size = (uint8_t)strlen(entity)
    };

    memcpy(erasure.entity, entity, erasure.entity_size);
    return erasure;
}

static void the_latest_of_each_entity_is_found_whatever_came_in_between(void **state)
{
    struct erasures *erasures = erasures_new(2);
    struct shard_erasure found;
    char name[32];

    (void)state;
    for (uint32_t i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "player:%u", i * 37 % 200);
        const struct shard_erasure one = made(name, i + 1, true, false);
        erasures_set(erasures, 1, &one);
    }
    const struct shard_erasure undone = made("player:7", 500, false, false);
    const struct shard_erasure older = made("player:7", 499, true, true);

    erasures_set(erasures, 1, &undone);
    erasures_set(erasures, 1, &older);
    assert_true(erasures_find(erasures, 1, slice_from_text("player:7"), &found));
    assert_int_equal(found.number, 500);
    assert_false(found.hides);
    assert_true(erasures_find(erasures, 1, slice_from_text("player:199"), &found));
    assert_true(found.hides);
    assert_false(erasures_find(erasures, 1, slice_from_text("player:200"), &found));
    assert_false(erasures_find(erasures, 0, slice_from_text("player:7"), &found));
    erasures_free(erasures);
}

static void a_walk_meets_each_change_once_and_none_that_is_no_news(void **state)
{
    const struct shard_erasure steps[] = { made("player:a", 3, true, false),
                                           made("player:a", 3, true, false),
                                           made("player:b", 1, true, false),
                                           made("player:a", 3, true, true) };
    struct erasures *erasures = erasures_new(1);
    struct shard_erasure found;
    uint64_t stamp = 0;

    (void)state;
    assert_false(erasures_next(erasures, 0, &stamp, &found));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        erasures_set(erasures, 0, &steps[i]);
    assert_true(erasures_next(erasures, 0, &stamp, &found));
    assert_true(erasures_next(erasures, 0, &stamp, &found));
    assert_int_equal(found.number, 1);
    assert_true(erasures_next(erasures, 0, &stamp, &found));
    assert_true(found.purges);
    assert_false(erasures_next(erasures, 0, &stamp, &found));
    erasures_free(erasures);
}

static void what_is_kept_does_not_grow_with_changes_of_one_entity(void **state)
{
    struct erasures *erasures = erasures_new(1);
    struct shard_erasure found;
    uint64_t early = 0, late = 0;
    uint32_t met = 0;

    (void)state;
    const struct shard_erasure other = made("player:b", 1, true, false);
    erasures_set(erasures, 0, &other);
    assert_true(erasures_next(erasures, 0, &early, &found));
    for (uint32_t i = 1; i <= 10000; i++) {
        const struct shard_erasure one = made("player:a", i, i % 2 == 0, false);
        erasures_set(erasures, 0, &one);
        assert_true(erasures_next(erasures, 0, &late, &found));
        while (erasures_next(erasures, 0, &late, &found))
            continue;
    }
    while (erasures_next(erasures, 0, &early, &found)) {
        met++;
        assert_true(found.number == 1 || found.number > 9000);
    }
    assert_in_range(met, 1, 100);
    assert_true(erasures_find(erasures, 0, slice_from_text("player:a"), &found));
    assert_int_equal(found.number, 10000);
    assert_false(erasures_next(erasures, 0, &early, &found));
    assert_false(erasures_next(erasures, 0, &late, &found));
    erasures_free(erasures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_latest_of_each_entity_is_found_whatever_came_in_between),
        cmocka_unit_test(a_walk_meets_each_change_once_and_none_that_is_no_news),
        cmocka_unit_test(what_is_kept_does_not_grow_with_changes_of_one_entity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
