#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/codec/op.h"
#include "runtime/base/check.h"

#define UUID_TEXT "01970000-0000-7abc-8abc-0123456789ab"

static struct op_id parsed(const char *text)
{
    struct op_id id;
    const char *why;
    assert_int_equal(op_id_parse(slice_from_text(text), &id, &why), ERR_OK);
    return id;
}

static void an_operation_reads_back_as_it_was_written(void **state)
{
    const struct authority authorities[] = {
        { .kind = AUTHORITY_NONE },
        { .kind = AUTHORITY_UNHELD },
        { .kind = AUTHORITY_SYSTEM, .scope = SLICE_LITERAL("payments") },
        { .kind = AUTHORITY_SESSION, .incarnation = { 2, 77 }, .fence = 5 },
    };
    const char *ids[] = { UUID_TEXT, "receipt:GPA.1" };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(authorities) * ARRAY_SIZE(ids); i++) {
        struct op op = {
            .method = 20,
            .attempt = 3,
            .id = parsed(ids[i % 2]),
            .entity = SLICE_LITERAL("player:42"),
            .authority = authorities[i / 2],
            .cut_id = 9,
            .request = SLICE_LITERAL("request"),
        };
        struct buf bytes = { 0 };
        struct op read;
        op_encode(&op, &bytes);
        assert_int_equal(op_decode(buf_slice(&bytes), &read), ERR_OK);
        assert_int_equal(read.method, 20);
        assert_int_equal(read.attempt, 3);
        assert_int_equal(read.cut_id, 9);
        assert_int_equal(read.id.typed, i % 2);
        assert_true(slice_equal(read.id.text, op.id.text));
        assert_true(slice_equal(read.entity, op.entity));
        assert_true(slice_equal(read.request, op.request));
        assert_int_equal(read.authority.kind, op.authority.kind);
        assert_int_equal(read.authority.fence, op.authority.fence);
        assert_true(slice_equal(read.authority.scope, op.authority.scope));
        for (size_t cut = 0; cut < bytes.size; cut++)
            assert_int_equal(op_decode((struct slice){ bytes.data, cut }, &read), ERR_CORRUPT);
        buf_deinit(&bytes);
    }
}

static void an_operation_tells_who_asked_beside_its_request(void **state)
{
    static const uint8_t blank[] = { 1, ' ' };
    struct op op = {
        .method = 20,
        .id = parsed("claim:a"),
        .entity = SLICE_LITERAL("player:42"),
        .authority = { .kind = AUTHORITY_SYSTEM, .scope = SLICE_LITERAL("mail") },
        .request = SLICE_LITERAL("request"),
    };
    struct buf plain = { 0 }, called = { 0 };
    struct op read;
    (void)state;

    op_encode(&op, &plain);
    op.caller = SLICE_LITERAL("0a1b2c3d4e5f");
    op_encode(&op, &called);
    assert_int_equal(op_decode(buf_slice(&called), &read), ERR_OK);
    assert_true(slice_equal(read.caller, op.caller));
    assert_true(slice_equal(read.authority.caller, op.caller));
    assert_true(slice_equal(read.request, op.request));
    for (size_t cut = 0; cut < called.size; cut++)
        assert_int_equal(op_decode((struct slice){ called.data, cut }, &read), ERR_CORRUPT);
    struct hash128 payload = read.payload;
    assert_int_equal(op_decode(buf_slice(&plain), &read), ERR_OK);
    assert_int_equal(read.caller.size, 0);
    assert_int_equal(read.authority.caller.size, 0);
    assert_true(hash128_equal(read.payload, payload));
    /* Not the authority's of another kind: in a transaction, that of another player. */
    op.authority = (struct authority){ .kind = AUTHORITY_UNHELD };
    buf_clear(&called);
    op_encode(&op, &called);
    assert_int_equal(op_decode(buf_slice(&called), &read), ERR_OK);
    assert_int_equal(read.authority.caller.size, 0);
    assert_int_equal(read.caller.size, 12);
    /* No good name, and no name at all. */
    called.size -= 13;
    buf_append(&called, blank, sizeof blank);
    assert_int_equal(op_decode(buf_slice(&called), &read), ERR_CORRUPT);
    called.size -= sizeof blank;
    buf_put_u8(&called, 0);
    assert_int_equal(op_decode(buf_slice(&called), &read), ERR_CORRUPT);
    buf_deinit(&plain);
    buf_deinit(&called);
}

static void the_payload_covers_method_and_request_but_not_attempt_or_authority(void **state)
{
    struct slice request = SLICE_LITERAL("request");
    (void)state;

    assert_true(hash128_equal(op_payload(20, request), op_payload(20, request)));
    assert_false(hash128_equal(op_payload(20, request), op_payload(21, request)));
    assert_false(hash128_equal(op_payload(20, request), op_payload(20, SLICE_LITERAL("r"))));
}

static void op_ids_are_uuid_v7_or_typed_keys_of_known_kinds(void **state)
{
    const char *good[] = { UUID_TEXT,     "receipt:a",   "claim:daily/7",
                           "match:m-1:3", "match:a:b:2", "admin:ticket#9",
                           "season:3",    "key:a",       "key:order:17" };
    const char *bad[] = { "",
                          "receipt:",
                          "match:m",
                          "match::1",
                          "match:m:",
                          "gift:1",
                          "key:",
                          "key:a b",
                          "season:",
                          "receipt:a b",
                          "receipt:\x7f",
                          "Receipt:a",
                          "01970000-0000-4abc-8abc-0123456789ab",
                          UUID_TEXT "0" };
    struct op_id id;
    const char *why;
    char longest[8 + 151 + 1] = "receipt:";
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_int_equal(op_id_parse(slice_from_text(good[i]), &id, &why), ERR_OK);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        why = NULL;
        assert_int_equal(op_id_parse(slice_from_text(bad[i]), &id, &why), ERR_INVALID);
        /* It stands behind "expected", so it names what is expected, and is no sentence. */
        assert_non_null(why);
        assert_null(strstr(why, " has "));
        assert_null(strstr(why, " is "));
        assert_null(strstr(why, " must "));
    }
    memset(longest + 8, 'x', 150);
    assert_int_equal(op_id_parse(slice_from_text(longest), &id, &why), ERR_OK);
    longest[158] = 'x';
    assert_int_equal(op_id_parse((struct slice){ (uint8_t *)longest, 159 }, &id, &why),
                     ERR_INVALID);
}

static void tokens_read_back_and_malformed_ones_do_not(void **state)
{
    const char *bad[] = { "",      "1",      "1-2",     "1-2-",  "1-2-0",
                          "0-2-3", "1-2-03", "1-2-3-4", "a-2-3", "1-2-99999999999999999999" };
    struct incarnation incarnation = { 3, UINT64_MAX };
    struct incarnation read;
    uint64_t fence;
    char text[TOKEN_TEXT_SIZE];
    (void)state;

    token_print(incarnation, UINT64_MAX, text);
    assert_int_equal(token_parse(slice_from_text(text), &read, &fence), ERR_OK);
    assert_int_equal(incarnation_compare(incarnation, read), 0);
    assert_true(fence == UINT64_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(token_parse(slice_from_text(bad[i]), &read, &fence), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_reads_back_as_it_was_written),
        cmocka_unit_test(an_operation_tells_who_asked_beside_its_request),
        cmocka_unit_test(the_payload_covers_method_and_request_but_not_attempt_or_authority),
        cmocka_unit_test(op_ids_are_uuid_v7_or_typed_keys_of_known_kinds),
        cmocka_unit_test(tokens_read_back_and_malformed_ones_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
