#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "idl/field_path.h"

static bool fits(const char *path)
{
    return field_path_fits(&holdfast__v1__batch_grant_request__descriptor, path);
}

static void a_field_is_found_where_it_stands(void **state)
{
    (void)state;
    assert_true(fits("op_id"));
    assert_true(fits("requests"));
    assert_true(fits("requests[0].player_id"));
    assert_true(fits("requests[12].currencies[\"gold\"]"));
    assert_true(fits("requests[12].currencies[\"a\"].b\"].c\"]"));
    assert_true(fits("requests[1].items[2].kind"));
    assert_true(fits("requests[1].items[2].attributes.colour[0]"));
}

static void what_the_message_has_not_does_not_fit(void **state)
{
    static const char *const bad[] = { "",
                                       ".",
                                       "no_such",
                                       "op_id.",
                                       "op_id ",
                                       "requests.",
                                       "requests[",
                                       "requests[]",
                                       "requests[a]",
                                       "requests[0]player_id",
                                       "requests[0].no_such",
                                       "requests[0].attempt.op_id",
                                       "requests[0].attempt[0]",
                                       "requests[0].currencies[\"gold]",
                                       "requests[0].currencies[\"",
                                       "at most 1000" };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (fits(bad[i]))
            fail_msg("\"%s\" fits", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_is_found_where_it_stands),
        cmocka_unit_test(what_the_message_has_not_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
