#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "router/core/count_ask.h"
#include "runtime/base/check.h"

static struct arena arena;
static Holdfast__V1__ErrorDetail detail;

static int tear_down(void **state)
{
    (void)state;
    arena_deinit(&arena);
    arena = (struct arena){ 0 };
    return 0;
}

static err check(const char *collection, const char *const *targets, size_t count, bool is_one)
{
    const struct count_ask ask = { collection, targets, count, is_one, false };

    return count_ask_check(&ask, &arena, &detail);
}

static void assert_refused(const char *collection, const char *target, const char *field)
{
    assert_int_equal(check(collection, &target, 1, true), ERR_INVALID);
    assert_string_equal(detail.field, field);
    assert_true(detail.limit[0] != 0);
}

static void ids_and_names_have_the_shape_that_shards_take(void **state)
{
    char long_id[COUNT_TARGET_BYTES + 2], long_name[COUNT_COLLECTION_BYTES + 2];
    const char *target = long_id;
    (void)state;

    memset(long_id, 'x', sizeof long_id);
    memset(long_name, 'x', sizeof long_name);
    long_id[COUNT_TARGET_BYTES + 1] = 0;
    long_name[COUNT_COLLECTION_BYTES + 1] = 0;
    assert_refused("", "", "target_id");
    assert_refused("", long_id, "target_id");
    assert_refused("", "a\nb", "target_id");
    assert_refused("", "a\x7f", "target_id");
    assert_refused("", "a\xc2\x85", "target_id");
    assert_refused("", "a\xff", "target_id");
    assert_refused("Likes", "g", "collection");
    assert_refused("a-b", "g", "collection");
    assert_refused(long_name, "g", "collection");
    long_id[COUNT_TARGET_BYTES] = 0;
    long_name[COUNT_COLLECTION_BYTES] = 0;
    assert_int_equal(check(long_name, &target, 1, true), ERR_OK);
    target = "ö\xc2\xa0 1";
    assert_int_equal(check("likes_2", &target, 1, true), ERR_OK);
}

static void there_are_1_to_200_targets_each_once(void **state)
{
    const char *targets[COUNT_TARGETS_MAX + 1];
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
        targets[i] = arena_printf(&arena, "g%zu", i);
    assert_int_equal(check("", targets, COUNT_TARGETS_MAX, false), ERR_OK);
    assert_int_equal(check("", targets, 0, false), ERR_INVALID);
    assert_string_equal(detail.value, "0");
    assert_int_equal(check("", targets, COUNT_TARGETS_MAX + 1, false), ERR_INVALID);
    assert_string_equal(detail.field, "target_ids");
    assert_string_equal(detail.value, "201");
    targets[7] = "g3";
    assert_int_equal(check("", targets, 10, false), ERR_INVALID);
    assert_string_equal(detail.field, "target_ids[7]");
}

static void no_collection_is_favorites(void **state)
{
    const struct count_ask none = { .collection = "" }, likes = { .collection = "likes" };
    (void)state;

    assert_true(slice_equal(count_ask_collection(&none), SLICE_LITERAL("favorites")));
    assert_true(slice_equal(count_ask_collection(&likes), SLICE_LITERAL("likes")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(ids_and_names_have_the_shape_that_shards_take, tear_down),
        cmocka_unit_test_teardown(there_are_1_to_200_targets_each_once, tear_down),
        cmocka_unit_test(no_collection_is_favorites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
