#include "coordinator/io/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/admin.pb-c.h"

static err make(char **currencies, uint32_t count, struct seed *ret_seed, struct seed_error *why)
{
    char name[] = "a";
    struct coordinator_config config = {
        .name = name,
        .shard_count = 8,
        .replication_factor = 3,
        .currencies = { currencies, count },
    };

    return seed_init(&config, (struct uuid){ { 1 } }, ret_seed, why);
}

static void first_policy_declares_the_currencies_in_order(void **state)
{
    char gems[] = "gems:-5:1000", gold[] = "gold", coins[] = "coins";
    char *list[] = { gems, gold, coins };
    struct seed seed;
    struct seed_error why;

    (void)state;
    assert_int_equal(make(list, 3, &seed, &why), ERR_OK);
    Holdfast__V1__Policy *policy =
        holdfast__v1__policy__unpack(NULL, seed.policy.size, seed.policy.data);

    assert_non_null(policy);
    assert_int_equal(policy->version, 1);
    assert_int_equal(policy->n_currencies, 3);
    assert_string_equal(policy->currencies[0]->name, "coins");
    assert_string_equal(policy->currencies[1]->name, "gems");
    assert_int_equal(policy->currencies[1]->min_balance, -5);
    assert_int_equal(policy->currencies[1]->max_balance, 1000);
    assert_non_null(strstr(seed.cluster.policy_seed, "\"gems\""));
    holdfast__v1__policy__free_unpacked(policy, NULL);
    seed_deinit(&seed);
}

static void without_currencies_there_is_no_first_policy(void **state)
{
    struct seed seed;
    struct seed_error why;

    (void)state;
    assert_int_equal(make(NULL, 0, &seed, &why), ERR_OK);
    assert_int_equal(seed.policy.size, 0);
    assert_int_equal(seed.cluster.shard_count, 8);
    seed_deinit(&seed);
}

static void bad_currencies_are_named(void **state)
{
    char *bad[] = { "Gold",
                    "",
                    "gold:1:2",
                    "gold:0",
                    "gold:0:1x",
                    "gold:0:-1",
                    "gold:0: 1",
                    "gold:0:9223372036854775807", /* No shard takes it. */
                    "gold:-9223372036854775807:0",
                    "gold:0:99999999999999999999" };
    char *twice[] = { "gold", "gold:0:5" };
    struct seed seed;
    struct seed_error why;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(make(&bad[i], 1, &seed, &why), ERR_INVALID);
        assert_non_null(strstr(why.text, "currencies"));
    }
    assert_int_equal(make(twice, 2, &seed, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "twice"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_policy_declares_the_currencies_in_order),
        cmocka_unit_test(without_currencies_there_is_no_first_policy),
        cmocka_unit_test(bad_currencies_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
