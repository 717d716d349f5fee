#include "router/core/player_writes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "router/core/rate_limit.h"

#define ADDRESS 11u
#define DEVICE  22u
#define NOW_MS  6000000u

static int setup(void **state)
{
    *state = player_writes_new();
    return 0;
}

static int teardown(void **state)
{
    player_writes_free(*state);
    return 0;
}

static struct player_write a_write(uint64_t address, uint64_t device, uint64_t now_ms)
{
    return (struct player_write){ address, device, 6, 3, now_ms };
}

static uint32_t taken(struct player_writes *writes, const struct player_write *write,
                      enum player_writes_told *ret_told, uint32_t *ret_retry_ms)
{
    uint32_t count = 0;

    while (count < 100 &&
           (*ret_told = player_writes_take(writes, write, ret_retry_ms)) == PLAYER_WRITES_OK)
        count++;
    return count;
}

static void a_device_has_a_minutes_worth_and_then_waits(void **state)
{
    struct player_write write = a_write(ADDRESS, DEVICE, NOW_MS);
    enum player_writes_told told;
    uint32_t retry_ms = 0;

    assert_int_equal(taken(*state, &write, &told, &retry_ms), 3);
    assert_int_equal(told, PLAYER_WRITES_DEVICE);
    assert_in_range(retry_ms, 20000, 20060);
    write.now_ms += retry_ms;
    assert_int_equal(taken(*state, &write, &told, &retry_ms), 1);
    write.now_ms += 600000;
    assert_int_equal(taken(*state, &write, &told, &retry_ms), 3);
}

static void an_address_counts_all_its_devices(void **state)
{
    enum player_writes_told told;
    uint32_t retry_ms = 0, count = 0;

    for (uint64_t device = 1; device <= 3; device++) {
        struct player_write write = a_write(ADDRESS, device, NOW_MS);
        count += taken(*state, &write, &told, &retry_ms);
    }
    assert_int_equal(count, 6);
    assert_int_equal(told, PLAYER_WRITES_ADDRESS);
    assert_in_range(retry_ms, 10000, 10060);
    struct player_write other = a_write(ADDRESS + 1, 7, NOW_MS);
    assert_int_equal(taken(*state, &other, &told, &retry_ms), 3);
}

static void what_the_device_is_refused_does_not_count_for_its_address(void **state)
{
    struct player_write write = a_write(ADDRESS, DEVICE, NOW_MS);
    enum player_writes_told told;
    uint32_t retry_ms;

    assert_int_equal(taken(*state, &write, &told, &retry_ms), 3);
    for (uint32_t i = 0; i < 50; i++)
        assert_int_equal(player_writes_take(*state, &write, &retry_ms), PLAYER_WRITES_DEVICE);
    write.device = 0; /* A caller that names none has its address's limit alone. */
    assert_int_equal(taken(*state, &write, &told, &retry_ms), 3);
    assert_int_equal(told, PLAYER_WRITES_ADDRESS);
}

static void no_limit_is_no_limit(void **state)
{
    const struct player_write write = { ADDRESS, DEVICE, 0, 0, NOW_MS };
    uint32_t retry_ms;

    for (uint32_t i = 0; i < 5000; i++)
        assert_int_equal(player_writes_take(*state, &write, &retry_ms), PLAYER_WRITES_OK);
}

/* More devices than there is room for: one that is held back stays it. */
static void the_table_is_bounded_and_keeps_those_that_are_held_back(void **state)
{
    struct player_write write = { ADDRESS, DEVICE, 0, 3, NOW_MS };
    enum player_writes_told told;
    uint32_t retry_ms;

    assert_int_equal(taken(*state, &write, &told, &retry_ms), 3);
    for (uint64_t device = 1000; device < 1000 + 2 * RATE_TABLE_BUCKETS; device++) {
        write.device = device;
        assert_int_equal(player_writes_take(*state, &write, &retry_ms), PLAYER_WRITES_OK);
    }
    write.device = DEVICE;
    assert_int_equal(player_writes_take(*state, &write, &retry_ms), PLAYER_WRITES_DEVICE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_device_has_a_minutes_worth_and_then_waits, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_address_counts_all_its_devices, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_device_is_refused_does_not_count_for_its_address,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(no_limit_is_no_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(the_table_is_bounded_and_keeps_those_that_are_held_back,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
