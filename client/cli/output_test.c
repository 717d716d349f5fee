#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/cli/output.h"

static void columns_are_as_wide_as_their_widest_value(void **state)
{
    static const struct column columns[] = { { "ID", "id" },
                                             { "OWNER", "at.node" },
                                             { NULL, NULL } };
    json_t *rows = json_loads("[{\"id\":\"12345\",\"at\":{\"node\":7}},{\"at\":{}}]", 0, NULL);
    struct buf out = { 0 };
    (void)state;

    table_format(rows, columns, &out);
    buf_put_u8(&out, 0);
    assert_string_equal((char *)out.data, "ID     OWNER\n12345  7\n       \n");
    buf_deinit(&out);
    json_decref(rows);
}

static void no_rows_leave_the_titles(void **state)
{
    static const struct column columns[] = { { "ID", "id" }, { NULL, NULL } };
    struct buf out = { 0 };
    (void)state;

    table_format(NULL, columns, &out);
    assert_true(slice_equal(buf_slice(&out), SLICE_LITERAL("ID\n")));
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_as_wide_as_their_widest_value),
        cmocka_unit_test(no_rows_leave_the_titles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
