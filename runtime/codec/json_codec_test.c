#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/admin.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/operation_service.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "runtime/codec/json_codec.h"
#include "runtime/codec/proto_codec.h"

#define GRANT (&holdfast__v1__grant_request__descriptor)

struct fixture {
    struct json_codec codec;
    struct arena arena;
    struct codec_scope scope;
    struct buf out;
};

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){ .scope = { .arena = &fixture.arena } };
    json_codec_init(&fixture.codec);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    json_codec_deinit(&fixture->codec);
    arena_deinit(&fixture->arena);
    buf_deinit(&fixture->out);
    return 0;
}

static err decode(struct fixture *f, const ProtobufCMessageDescriptor *type, const char *json,
                  ProtobufCMessage **ret_message)
{
    arena_reset(&f->arena);
    return json_decode(&f->codec, type, slice_from_text(json), &f->scope, ret_message);
}

/* JSON in, JSON out. */
static void assert_becomes(struct fixture *f, const ProtobufCMessageDescriptor *type,
                           const char *json, const char *expected)
{
    ProtobufCMessage *message = NULL;

    if (decode(f, type, json, &message) != ERR_OK)
        fail_msg("%s: %s at %s", json, f->scope.error.message, f->scope.error.field);
    buf_clear(&f->out);
    json_encode(&f->codec, JSON_CANONICAL, message, &f->out);
    buf_put_u8(&f->out, 0);
    assert_string_equal((char *)f->out.data, expected);
}

static void assert_refused(struct fixture *f, const ProtobufCMessageDescriptor *type,
                           const char *json, const char *field, const char *message)
{
    ProtobufCMessage *untouched = NULL;

    if (decode(f, type, json, &untouched) == ERR_OK)
        fail_msg("accepted: %s", json);
    assert_null(untouched);
    assert_string_equal(f->scope.error.field, field);
    assert_string_equal(f->scope.error.message, message);
}

static void a_grant_is_decoded_field_by_field(void **state)
{
    ProtobufCMessage *message;
    assert_int_equal(
        decode(*state, GRANT,
               "{\"playerId\":\"p1\",\"op_id\":\"x\",\"attempt\":2,"
               "\"authority\":\"system:payments\","
               "\"currencies\":[{\"currency\":\"gold\",\"amount\":\"9007199254740993\"},"
               "{\"currency\":\"gem\",\"amount\":5}],\"reason\":\"a\\u00e9\\ud83d\\ude00\\n\"}",
               &message),
        ERR_OK);
    const Holdfast__V1__GrantRequest *grant = (const Holdfast__V1__GrantRequest *)message;

    assert_string_equal(grant->player_id, "p1");
    assert_string_equal(grant->op_id, "x");
    assert_int_equal(grant->attempt, 2);
    assert_string_equal(grant->authority, "system:payments");
    assert_int_equal(grant->n_currencies, 2);
    assert_true(grant->currencies[0]->amount == 9007199254740993);
    assert_string_equal(grant->currencies[1]->currency, "gem");
    assert_string_equal(grant->reason, "a\xC3\xA9\xF0\x9F\x98\x80\n");
}

static void output_is_camel_case_without_defaults(void **state)
{
    assert_becomes(*state, GRANT, "", "{}");
    assert_becomes(*state, GRANT, " { } ", "{}");
    assert_becomes(*state, GRANT, "{\"player_id\":\"\",\"attempt\":0,\"items\":[]}", "{}");
    assert_becomes(*state, GRANT, "{\"player_id\":null,\"authority\":null,\"items\":null}", "{}");
    assert_becomes(*state, GRANT, "{\"op_id\":\"\\u0001\\\"\\\\\\/\"}",
                   "{\"opId\":\"\\u0001\\\"\\\\/\"}");
    assert_becomes(*state, GRANT, "{\"items\":[{},{\"kind\":\"a\"}]}",
                   "{\"items\":[{},{\"kind\":\"a\"}]}");
    assert_becomes(*state, &holdfast__v1__start_session_request__descriptor,
                   "{\"mode\":\"START_MODE_STEAL\",\"include\":[\"a\",\"\"]}",
                   "{\"mode\":\"START_MODE_STEAL\",\"include\":[\"a\",\"\"]}");
    assert_becomes(*state, &holdfast__v1__start_session_request__descriptor, "{\"mode\":3}",
                   "{\"mode\":\"START_MODE_STEAL\"}");
    assert_becomes(*state, &holdfast__v1__start_session_request__descriptor, "{\"mode\":77}",
                   "{\"mode\":77}");
}

static void a_set_oneof_is_printed_even_when_empty(void **state)
{
    const ProtobufCMessageDescriptor *edit = &holdfast__v1__section_edit__descriptor;

    assert_becomes(*state, edit, "{\"delete\":{}}", "{\"delete\":{}}");
    assert_becomes(*state, edit, "{\"delete\":[]}", "{\"delete\":{}}");
    assert_becomes(*state, edit, "{\"replace\":\"\"}", "{\"replace\":\"\"}");
    assert_becomes(*state, edit, "{\"replace\":null,\"delete\":{}}", "{\"delete\":{}}");
    assert_refused(*state, edit, "{\"replace\":\"\",\"delete\":{}}", "delete",
                   "two fields of which only one may be set");
}

static void integers_are_exact(void **state)
{
    static const struct {
        const char *text;
        const char *expected; /* NULL: refused. */
    } cases[] = {
        { "9223372036854775807", "9223372036854775807" },
        { "\"9223372036854775807\"", "9223372036854775807" },
        { "-9223372036854775808", "-9223372036854775808" },
        { "9223372036854775808", NULL },
        { "-9223372036854775809", NULL },
        { "1e3", "1000" },
        { "1.5e1", "15" },
        { "100e-2", "1" },
        { "12.000", "12" },
        { "922337203685477580.7e1", "9223372036854775807" },
        { "1e19", NULL },
        { "1e999999999999999999999", NULL },
        { "5e-1", NULL },
        { "1.0000000000000000000000001", NULL },
        { "10000000000000000000000e-22", "1" },
        { "01", NULL },
        { "+1", NULL },
        { ".5", NULL },
        { "1.", NULL },
        { "1e", NULL },
        { "-", NULL },
        { "\"\"", NULL },
        { "\" 1\"", NULL },
        { "\"1 \"", NULL },
        { "0x10", NULL },
        { "1a", NULL },
        { "true", NULL },
        { "{}", NULL },
        { "NaN", NULL },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[80];
        char expected[80];
        ProtobufCMessage *message;
        snprintf(json, sizeof json, "{\"amount\":%s}", cases[i].text);
        if (cases[i].expected == NULL) {
            if (decode(f, &holdfast__v1__currency_amount__descriptor, json, &message) == ERR_OK)
                fail_msg("accepted: %s", json);
            continue;
        }
        snprintf(expected, sizeof expected, "{\"amount\":\"%s\"}", cases[i].expected);
        assert_becomes(f, &holdfast__v1__currency_amount__descriptor, json, expected);
    }
}

static void ranges_differ_by_type(void **state)
{
    assert_becomes(*state, GRANT, "{\"attempt\":4294967295}", "{\"attempt\":4294967295}");
    assert_refused(*state, GRANT, "{\"attempt\":4294967296}", "attempt", "a number out of range");
    assert_refused(*state, GRANT, "{\"attempt\":-1}", "attempt", "a number out of range");
    assert_becomes(*state, GRANT, "{\"attempt\":-0}", "{}");
    assert_becomes(*state, &holdfast__v1__dot__descriptor, "{\"epoch\":18446744073709551615}",
                   "{\"epoch\":\"18446744073709551615\"}");
    assert_refused(*state, &holdfast__v1__dot__descriptor, "{\"epoch\":18446744073709551616}",
                   "epoch", "a number out of range");
}

static void bytes_are_base64_of_either_alphabet(void **state)
{
    const ProtobufCMessageDescriptor *type = &holdfast__v1__ledger_entry__descriptor;

    assert_becomes(*state, type, "{\"hash\":\"-_-_\"}", "{\"hash\":\"+/+/\"}");
    assert_becomes(*state, type, "{\"hash\":\"AQ\"}", "{\"hash\":\"AQ==\"}");
    assert_becomes(*state, type, "{\"hash\":\"AQI=\"}", "{\"hash\":\"AQI=\"}");
    assert_becomes(*state, type, "{\"hash\":\"\"}", "{}");
    assert_refused(*state, type, "{\"hash\":\"A\"}", "hash", "not base64");
    assert_refused(*state, type, "{\"hash\":\"AQ=\"}", "hash", "not base64");
    assert_refused(*state, type, "{\"hash\":\"A Q=\"}", "hash", "not base64");
}

static void malformed_input_is_refused_with_the_path(void **state)
{
    static const struct {
        const char *json;
        const char *field;
        const char *message;
    } cases[] = {
        { "[1]", "", "an array where a message belongs" },
        { "null", "", "not an object" },
        { "1", "", "not an object" },
        { "{", "", "expected a field name" },
        { "{\"reason\"", "reason", "expected : behind a field name" },
        { "{\"reason\":", "reason", "not a string" },
        { "{\"reason\":\"a\"", "", "expected , or }" },
        { "{\"reason\":\"a\",}", "", "expected a field name" },
        { "{\"reason\":\"a\"} x", "", "more text behind the message" },
        { "{\"reason\":\"a\"}{}", "", "more text behind the message" },
        { "{'reason':1}", "", "expected a field name" },
        { "{\"raeson\":1}", "raeson", "no such field; did you mean reason?" },
        { "{\"palyer_id\":1}", "palyer_id", "no such field; did you mean player_id?" },
        { "{\"palyerId\":1}", "palyerId", "no such field; did you mean playerId?" },
        { "{\"currencies\":[{\"curency\":1}]}", "currencies[0].curency",
          "no such field; did you mean currency?" },
        { "{\"\xe2\x80\xaereason\":1}", "?reason", "no such field; did you mean reason?" },
        { "{\"\\u009b31m\":1}", "?31m", "no such field" },
        { "{\"\xc2\x9b\":1}", "?", "no such field" },
        { "{\"color\":1}", "color", "no such field" },
        { "{\"\":1}", "", "no such field" },
        { "{\"reason\":\"a\",\"reason\":\"b\"}", "reason", "the field is there twice" },
        { "{\"op_id\":\"a\",\"opId\":\"b\"}", "opId", "the field is there twice" },
        { "{\"reason\":1}", "reason", "not a string" },
        { "{\"playerId\":1}", "player_id", "not a string" },
        { "{\"player_id\":1}", "player_id", "not a string" },
        { "{\"items\":{}}", "items", "not an array" },
        { "{\"items\":[{}", "items", "expected , or ]" },
        { "{\"items\":[{},]}", "items[1]", "not an object" },
        { "{\"items\":[null]}", "items[0]", "not an object" },
        { "{\"currencies\":[{},{\"amount\":true}]}", "currencies[1].amount", "not a number" },
        { "{\"reason\":\"\\ud800\"}", "reason", "a lone surrogate" },
        { "{\"reason\":\"\\udc00\"}", "reason", "a lone surrogate" },
        { "{\"reason\":\"\\ud800\\u0041\"}", "reason", "a lone surrogate" },
        { "{\"reason\":\"\\u00\"}", "reason", "\\u needs four hex digits" },
        { "{\"reason\":\"\\u0000\"}", "reason", "a string may not hold U+0000" },
        { "{\"reason\":\"\\x\"}", "reason", "an unknown escape in a string" },
        { "{\"reason\":\"a\nb\"}", "reason", "a control character in a string" },
        { "{\"reason\":\"abc", "reason", "a string without its end" },
        { "{\"reason\":\"abc\\", "reason", "a control character in a string" },
        { "{\"reason\":\"\xC0\xAF\"}", "reason", "a string that is not UTF-8" },
        { "{\"reason\":\"\xED\xA0\x80\"}", "reason", "a string that is not UTF-8" },
        { "{\"reason\":\"\xF4\x90\x80\x80\"}", "reason", "a string that is not UTF-8" },
        { "{\"reason\":\"\xE2\x82\"}", "reason", "a string that is not UTF-8" },
        { "\xEF\xBB\xBF{}", "", "not an object" },
        { "{\"items\":[{\"kin\":1}]}", "items[0].kin", "no such field; did you mean kind?" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(*state, GRANT, cases[i].json, cases[i].field, cases[i].message);
    assert_refused(*state, &holdfast__v1__start_session_request__descriptor, "{\"mode\":\"STEAL\"}",
                   "mode", "an unknown enum name");
    assert_refused(*state, &holdfast__v1__start_session_request__descriptor,
                   "{\"mode\":\"START_MODE_STAEL\"}", "mode",
                   "an unknown enum name; did you mean START_MODE_STEAL?");
    assert_refused(*state, &holdfast__v1__resolve_operation_request__descriptor,
                   "{\"seal\":\"true\"}", "seal", "not a boolean");
    assert_refused(*state, &holdfast__v1__resolve_operation_request__descriptor, "{\"seal\":truex}",
                   "seal", "not a boolean");
}

/* Of what stands behind it, which may be a token, nothing is shown. */
static void the_value_in_an_error_is_that_of_the_field_alone(void **state)
{
    static const struct {
        const char *json, *value;
    } cases[] = {
        { "{\"mode\":\"START_MODE_STAEL\",\"token\":\"s3cret\"}", "\"START_MODE_STAEL\"" },
        { "{\"mode\":\"a\\\"b\\\\\" , \"token\":\"s3cret\"}", "\"a\\\"b\\\\\"" },
        { "{\"mode\":true,\"token\":\"s3cret\"}", "true" },
        { "{\"mode\":{\"token\":\"s3cret\"}}", "{" },
        { "{\"mode\":[\"s3cret\"]}", "[" },
        { "{\"mode\":x \"s3cret\"}", "x" },
        { "{\"mode\":\"hf_5ec4e7\"}", "\"hf_..." },
    };
    struct fixture *f = *state;
    ProtobufCMessage *message;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(
            decode(f, &holdfast__v1__start_session_request__descriptor, cases[i].json, &message),
            ERR_INVALID);
        assert_string_equal(f->scope.error.value, cases[i].value);
    }
}

/* The shown value must itself be printable in an error answer. */
static void the_value_in_an_error_is_short_and_printable(void **state)
{
    struct fixture *f = *state;
    char json[400] = "{\"attempt\":\"";
    ProtobufCMessage *message;

    memset(json + strlen(json), 'z', 300);
    assert_int_equal(decode(f, GRANT, json, &message), ERR_INVALID);
    assert_true(strlen(f->scope.error.value) < 72);
    assert_int_equal(decode(f, GRANT, "{\"attempt\":\xFF\x01}", &message), ERR_INVALID);
    assert_string_equal(f->scope.error.value, "??");
}

static void sizes_and_memory_are_limited(void **state)
{
    struct fixture *f = *state;
    struct buf json = { 0 };
    ProtobufCMessage *message = NULL;

    buf_printf(&json, "{\"requests\":[{}");
    for (int i = 0; i < 100000; i++)
        buf_printf(&json, ",{}");
    buf_printf(&json, "]}");
    assert_int_equal(json_decode(&f->codec, &holdfast__v1__batch_grant_request__descriptor,
                                 buf_slice(&json), &f->scope, &message),
                     ERR_TOO_LARGE);
    assert_string_equal(f->scope.error.message, "the message needs too much memory");
    f->scope.size_bytes_max = 1000;
    assert_int_equal(json_decode(&f->codec, GRANT, buf_slice(&json), &f->scope, &message),
                     ERR_TOO_LARGE);
    assert_string_equal(f->scope.error.limit, "1000");
    assert_null(message);
    buf_deinit(&json);
}

static void binary_strings_are_checked_before_they_are_cut(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *field;
        const char *message;
    } cases[] = {
        { "\x0A\x02\xC0\xAF", 4, "player_id", "a string that is not UTF-8" },
        { "\x0A\x03p\0q", 5, "player_id", "a string may not hold U+0000" },
        { "\x5A\x00\x5A\x04\x0A\x02p\0", 8, "items[1].kind", "a string may not hold U+0000" },
        { "\x52\x06\x0A\x04gold\x52\x06\x10\x01\x0A\x02p\0", 16, "currencies[1].currency",
          "a string may not hold U+0000" },
        { "\x52\x09\x12\x01p\x0A\x04gold", 11, "currencies[\"gold\"].amount",
          "not protobuf: another type of value" },
        { "\x0A\x05p", 3, "player_id", "not protobuf: a value runs past the end" },
        { "\x08\x01", 2, "player_id", "not protobuf: another type of value" },
        { "\x52\x02\x0A\x07", 4, "currencies[0].currency",
          "not protobuf: a value runs past the end" },
        { "\x00\x01", 2, "", "not protobuf: a broken tag" },
        { "\x0B", 1, "player_id", "not protobuf: a value runs past the end" },
        { "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 11, "", "not protobuf: a broken tag" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct slice bytes = { (const uint8_t *)cases[i].bytes, cases[i].size };
        ProtobufCMessage *message = NULL;
        assert_int_equal(proto_decode(GRANT, bytes, &f->scope, &message), ERR_INVALID);
        assert_null(message);
        assert_string_equal(f->scope.error.field, cases[i].field);
        assert_string_equal(f->scope.error.message, cases[i].message);
    }
}

static void binary_and_json_agree(void **state)
{
    struct fixture *f = *state;
    const char *json = "{\"playerId\":\"p\",\"attempt\":7,\"authority\":\"session:t\","
                       "\"currencies\":[{\"currency\":\"gold\",\"amount\":\"-3\"}],"
                       "\"items\":[{\"kind\":\"k\"},{}]}";
    ProtobufCMessage *message;
    ProtobufCMessage *again;
    struct buf bytes = { 0 };

    assert_int_equal(decode(f, GRANT, json, &message), ERR_OK);
    proto_encode(message, &bytes);
    assert_int_equal(proto_decode(GRANT, buf_slice(&bytes), &f->scope, &again), ERR_OK);
    json_encode(&f->codec, JSON_CANONICAL, again, &f->out);
    buf_put_u8(&f->out, 0);
    assert_string_equal((char *)f->out.data, json);
    buf_deinit(&bytes);
}

static void binary_memory_is_limited(void **state)
{
    struct fixture *f = *state;
    struct buf bytes = { 0 };
    ProtobufCMessage *message = NULL;

    for (int i = 0; i < 100000; i++)
        buf_append(&bytes, "\x0A\x00", 2);
    assert_int_equal(proto_decode(&holdfast__v1__batch_grant_request__descriptor, buf_slice(&bytes),
                                  &f->scope, &message),
                     ERR_TOO_LARGE);
    assert_null(message);
    buf_deinit(&bytes);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_grant_is_decoded_field_by_field),
        TEST(output_is_camel_case_without_defaults),
        TEST(a_set_oneof_is_printed_even_when_empty),
        TEST(integers_are_exact),
        TEST(ranges_differ_by_type),
        TEST(bytes_are_base64_of_either_alphabet),
        TEST(malformed_input_is_refused_with_the_path),
        TEST(the_value_in_an_error_is_that_of_the_field_alone),
        TEST(the_value_in_an_error_is_short_and_printable),
        TEST(sizes_and_memory_are_limited),
        TEST(binary_strings_are_checked_before_they_are_cut),
        TEST(binary_and_json_agree),
        TEST(binary_memory_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
