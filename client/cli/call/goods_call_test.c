#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "client/cli/call/goods_call.h"

static void what_is_reserved_stands_beside_its_balance(void **state)
{
    json_t *answer = json_loads("{\"balances\":[{\"currency\":\"gems\",\"amount\":\"5\"},"
                                "{\"currency\":\"gold\"}],"
                                "\"reserved\":[{\"currency\":\"gold\",\"amount\":\"70\"}]}",
                                0, NULL);
    json_t *rows = goods_balance_rows(answer);
    (void)state;

    assert_int_equal(json_array_size(rows), 2);
    assert_null(json_object_get(json_array_get(rows, 0), "reserved"));
    const json_t *reserved = json_object_get(json_array_get(rows, 1), "reserved");
    assert_string_equal(json_string_value(reserved), "70");
    json_decref(rows);
    json_decref(answer);
}

static void an_answer_without_balances_has_no_rows(void **state)
{
    json_t *answer = json_object();
    json_t *rows = goods_balance_rows(answer);
    (void)state;

    assert_int_equal(json_array_size(rows), 0);
    json_decref(rows);
    json_decref(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_reserved_stands_beside_its_balance),
        cmocka_unit_test(an_answer_without_balances_has_no_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
