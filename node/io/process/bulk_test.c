#include "node/io/process/bulk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void hold(struct bulk *bulk, uint64_t id)
{
    const struct bulk_call call = { .id = id, .method = 7, .shard = 3, .deadline_ms = 99 };

    assert_true(bulk_wait(bulk, &call, SLICE_LITERAL("save")));
}

static uint64_t take(struct bulk *bulk, uint64_t now_ms)
{
    struct bulk_call *call = bulk_take(bulk, now_ms);
    uint64_t id = call != NULL ? call->id : 0;

    free(call);
    return id;
}

static void those_above_the_limit_wait_and_pass_in_order(void **state)
{
    struct bulk bulk;

    (void)state;
    bulk_init(&bulk, 2);
    assert_true(bulk_pass(&bulk, 10));
    assert_true(bulk_pass(&bulk, 10));
    assert_false(bulk_pass(&bulk, 10));
    hold(&bulk, 1);
    hold(&bulk, 2);
    assert_int_equal(take(&bulk, 11), 0);
    bulk_answered(&bulk, 12);
    assert_false(bulk_pass(&bulk, 12)); /* Others were here before. */
    assert_int_equal(take(&bulk, 12), 1);
    assert_int_equal(take(&bulk, 12), 0);
    bulk_answered(&bulk, 13);
    bulk_answered(&bulk, 13);
    assert_int_equal(take(&bulk, 13), 2);
    assert_true(bulk_pass(&bulk, 13));
    assert_false(bulk_pass(&bulk, 13));
    bulk_deinit(&bulk);
}

static void a_call_keeps_its_request_while_it_waits(void **state)
{
    struct bulk bulk;

    (void)state;
    bulk_init(&bulk, 1);
    hold(&bulk, 5);
    struct bulk_call *call = bulk_take(&bulk, 10);
    assert_non_null(call);
    assert_int_equal(call->method, 7);
    assert_int_equal(call->shard, 3);
    assert_int_equal(call->deadline_ms, 99);
    assert_memory_equal(call->bytes, "save", 4);
    assert_int_equal(bulk.bytes, 0);
    free(call);
    bulk_deinit(&bulk);
}

static void when_none_is_answered_as_many_again_may_pass(void **state)
{
    struct bulk bulk;

    (void)state;
    bulk_init(&bulk, 1);
    assert_true(bulk_pass(&bulk, 10));
    hold(&bulk, 1);
    hold(&bulk, 2);
    hold(&bulk, 3);
    assert_int_equal(take(&bulk, 10 + BULK_STALLED_MS - 1), 0);
    assert_int_equal(take(&bulk, 10 + BULK_STALLED_MS), 1);
    assert_int_equal(take(&bulk, 10 + BULK_STALLED_MS), 0);
    assert_int_equal(take(&bulk, 10 + 2 * BULK_STALLED_MS), 2);
    /* Once all but the stalled ones could have been answered, the limit is what it was. */
    for (uint32_t i = 0; i < 3; i++)
        bulk_answered(&bulk, 300);
    assert_int_equal(take(&bulk, 300), 3);
    assert_false(bulk_pass(&bulk, 301));
    bulk_deinit(&bulk);
}

static void only_so_many_bytes_may_wait(void **state)
{
    const struct bulk_call call = { .id = 1 };
    struct slice large = { NULL, BULK_BYTES_MAX };
    struct bulk bulk;

    (void)state;
    bulk_init(&bulk, 1);
    hold(&bulk, 1);
    assert_false(bulk_wait(&bulk, &call, large));
    assert_int_equal(bulk.count, 1);
    bulk_deinit(&bulk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_above_the_limit_wait_and_pass_in_order),
        cmocka_unit_test(a_call_keeps_its_request_while_it_waits),
        cmocka_unit_test(when_none_is_answered_as_many_again_may_pass),
        cmocka_unit_test(only_so_many_bytes_may_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
