#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/cli/console/answer.h"
#include "client/cli/console/output.h"

static void columns_are_as_wide_as_their_widest_value(void **state)
{
    static const struct column columns[] = { { .title = "ID", .path = "id" },
                                             { .title = "OWNER", .path = "at.node" },
                                             { .title = NULL } };
    json_t *rows = json_loads("[{\"id\":\"12345\",\"at\":{\"node\":7}},{\"at\":{}}]", 0, NULL);
    struct buf out = { 0 };
    (void)state;

    table_format(rows, columns, &out);
    buf_put_u8(&out, 0);
    assert_string_equal((char *)out.data, "ID     OWNER\n12345  7\n       \n");
    buf_deinit(&out);
    json_decref(rows);
}

static void cells_say_what_people_would(void **state)
{
    static const struct column columns[] = {
        { .title = "SHARD", .path = "shard", .otherwise = "0" },
        { .title = "KIND", .path = "kind", .prefix = "LEDGER_KIND_" },
        { .title = "CHANGES", .path = "changes" },
        { .title = NULL }
    };
    json_t *rows =
        json_loads("[{\"kind\":\"LEDGER_KIND_SPEND\",\"changes\":[{\"currency\":\"gold\","
                   "\"amount\":\"-5\"},{\"currency\":\"gems\",\"amount\":\"3\"}]}]",
                   0, NULL);
    struct buf out = { 0 };
    (void)state;

    table_format(rows, columns, &out);
    buf_put_u8(&out, 0);
    assert_string_equal((char *)out.data,
                        "SHARD  KIND   CHANGES\n0      SPEND  gold -5, gems +3\n");
    buf_deinit(&out);
    json_decref(rows);
}

static void an_error_is_one_line(void **state)
{
    static const char body[] =
        "{\"code\":\"aborted\",\"message\":\"held\",\"details\":[{\"debug\":{\"code\":"
        "\"ERROR_CODE_SESSION_LOCKED\",\"about\":{\"holder\":{\"incarnation\":\"east\"}},"
        "\"retryAfterMs\":250}}"
        "]}";
    struct buf out = { 0 };
    (void)state;

    assert_true(error_format(SLICE_LITERAL(body), &out));
    buf_put_u8(&out, 0);
    assert_string_equal((char *)out.data,
                        "SESSION_LOCKED: held (held by east) (retry after 250 ms)");
    static const char plain[] = "{\"code\":\"aborted\",\"message\":\"held\",\"error\":{\"code\":"
                                "\"session_locked\",\"about\":{\"holder\":{\"incarnation\":"
                                "\"east\"}},\"retryAfterMs\":250}}";
    buf_clear(&out);
    assert_true(error_format(SLICE_LITERAL(plain), &out));
    buf_put_u8(&out, 0);
    assert_string_equal((char *)out.data,
                        "SESSION_LOCKED: held (held by east) (retry after 250 ms)");
    assert_false(error_format(SLICE_LITERAL("no JSON"), &out));
    buf_deinit(&out);
}

static void no_rows_leave_the_titles(void **state)
{
    static const struct column columns[] = { { .title = "ID", .path = "id" }, { .title = NULL } };
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
        cmocka_unit_test(cells_say_what_people_would),
        cmocka_unit_test(an_error_is_one_line),
        cmocka_unit_test(no_rows_leave_the_titles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
