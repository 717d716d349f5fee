/* json_plain_test: plain JSON, the form of people and game servers (json_shape.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/profile.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "runtime/base/check.h"
#include "runtime/codec/json_codec.h"
#include "runtime/codec/json_shape.h"
#include "runtime/codec/json_type.h"
#include "runtime/codec/proto_codec.h"

#define TYPE(name) (&holdfast__v1__##name##__descriptor)
#define GRANT      TYPE(grant_request)
#define UPDATE     TYPE(update_profile_request)
#define EDIT       TYPE(section_edit)
#define STEP       TYPE(patch_step)

struct fixture {
    struct json_codec codec;
    struct arena arena;
    struct codec_scope scope;
    struct buf out;
};

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){ .scope = { .arena = &fixture.arena, .form = JSON_PLAIN } };
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

static ProtobufCMessage *decode(struct fixture *f, const ProtobufCMessageDescriptor *type,
                                enum json_form form, const char *json)
{
    ProtobufCMessage *message = NULL;

    f->scope.form = form;
    if (json_decode(&f->codec, type, slice_from_text(json), &f->scope, &message) != ERR_OK)
        fail_msg("%s: %s at %s", json, f->scope.error.message, f->scope.error.field);
    f->scope.form = JSON_PLAIN;
    return message;
}

static const char *encode(struct fixture *f, enum json_form form, const ProtobufCMessage *message)
{
    buf_clear(&f->out);
    json_encode(&f->codec, form, message, &f->out);
    buf_put_u8(&f->out, 0);
    return (const char *)f->out.data;
}

/* The two forms of one message, each read and written. */
static void assert_is(struct fixture *f, const ProtobufCMessageDescriptor *type, const char *plain,
                      const char *canonical)
{
    arena_reset(&f->arena);
    ProtobufCMessage *message = decode(f, type, JSON_PLAIN, plain);
    assert_string_equal(encode(f, JSON_CANONICAL, message), canonical);
    assert_string_equal(encode(f, JSON_PLAIN, message), plain);
    message = decode(f, type, JSON_CANONICAL, canonical);
    assert_string_equal(encode(f, JSON_PLAIN, message), plain);
}

/* Taken in plain JSON, and the same as another text there. */
static void assert_same(struct fixture *f, const ProtobufCMessageDescriptor *type, const char *json,
                        const char *plain)
{
    arena_reset(&f->arena);
    ProtobufCMessage *message = decode(f, type, JSON_PLAIN, json);
    assert_string_equal(encode(f, JSON_PLAIN, message), plain);
}

static void assert_refused(struct fixture *f, const ProtobufCMessageDescriptor *type,
                           const char *json, const char *field, const char *message)
{
    ProtobufCMessage *untouched = NULL;

    arena_reset(&f->arena);
    if (json_decode(&f->codec, type, slice_from_text(json), &f->scope, &untouched) == ERR_OK)
        fail_msg("accepted: %s", json);
    assert_null(untouched);
    assert_string_equal(f->scope.error.message, message);
    assert_string_equal(f->scope.error.field, field);
}

static void numbers_are_numbers_as_far_as_a_double_holds_them(void **state)
{
    const ProtobufCMessageDescriptor *type = TYPE(ledger_change);

    assert_is(*state, type, "{\"amount\":9007199254740992}", "{\"amount\":\"9007199254740992\"}");
    assert_is(*state, type, "{\"amount\":-9007199254740992}", "{\"amount\":\"-9007199254740992\"}");
    assert_is(*state, type, "{\"amount\":\"9007199254740993\"}",
              "{\"amount\":\"9007199254740993\"}");
    assert_is(*state, type, "{\"amount\":\"-9223372036854775808\"}",
              "{\"amount\":\"-9223372036854775808\"}");
    assert_is(*state, TYPE(dot), "{\"epoch\":\"18446744073709551615\",\"counter\":7}",
              "{\"epoch\":\"18446744073709551615\",\"counter\":\"7\"}");
    assert_same(*state, type, "{\"amount\":\"5\"}", "{\"amount\":5}");
}

static void a_number_that_may_have_been_rounded_is_refused(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < 2; i++) {
        assert_refused(f, TYPE(ledger_change),
                       i == 0 ? "{\"amount\":9007199254740993}" : "{\"amount\":-1e16}", "amount",
                       "a number beyond 2^53 may have been rounded on its way: put it in quotes");
        assert_string_equal(f->scope.error.limit, "-9007199254740992 to 9007199254740992");
        assert_string_equal(f->scope.error.value, i == 0 ? "9007199254740993" : "-1e16");
    }
    assert_refused(f, TYPE(dot), "{\"epoch\":9007199254740993}", "epoch",
                   "a number beyond 2^53 may have been rounded on its way: put it in quotes");
}

static void enums_have_short_names(void **state)
{
    const ProtobufCMessageDescriptor *start = TYPE(start_session_request);

    assert_is(*state, start, "{\"mode\":\"steal\"}", "{\"mode\":\"START_MODE_STEAL\"}");
    assert_is(*state, TYPE(error_detail), "{\"code\":\"session_lost\"}",
              "{\"code\":\"ERROR_CODE_SESSION_LOST\"}");
    assert_is(*state, TYPE(list_entries_request), "{\"kinds\":[\"grant\",\"txn_take\",77]}",
              "{\"kinds\":[\"LEDGER_KIND_GRANT\",\"LEDGER_KIND_TXN_TAKE\",77]}");
    assert_same(*state, start, "{\"mode\":\"START_MODE_STEAL\"}", "{\"mode\":\"steal\"}");
    assert_same(*state, start, "{\"mode\":3}", "{\"mode\":\"steal\"}");
    assert_refused(*state, start, "{\"mode\":\"stael\"}", "mode",
                   "an unknown enum name; did you mean steal?");
    assert_refused(*state, start, "{\"mode\":\"START_MODE_STAEL\"}", "mode",
                   "an unknown enum name; did you mean START_MODE_STEAL?");
    assert_refused(*state, start, "{\"mode\":\"take\"}", "mode", "an unknown enum name");
}

static void documents_stand_inline(void **state)
{
    assert_is(*state, EDIT, "{\"merge\":{\"level\": 12, \"a\":[1,{}]}}",
              "{\"merge\":\"{\\\"level\\\": 12, \\\"a\\\":[1,{}]}\"}");
    assert_is(*state, EDIT, "{\"replace\":[1]}", "{\"replace\":\"[1]\"}");
    assert_is(*state, EDIT, "{\"replace\":7.5}", "{\"replace\":\"7.5\"}");
    assert_is(*state, TYPE(item_spec), "{\"kind\":\"sword\",\"attributes\":{\"level\":1}}",
              "{\"kind\":\"sword\",\"attributes\":\"{\\\"level\\\":1}\"}");
    assert_same(*state, EDIT, "{\"merge\": \"{\\\"level\\\":12}\"}", "{\"merge\":{\"level\":12}}");
    assert_same(*state, EDIT, "{\"merge\": [ ]}", "{\"merge\":{}}");
    assert_same(*state, EDIT, "{\"merge\":null}", "{}");
    assert_same(*state, EDIT, "{\"merge\":  {\"a\" : null }  }", "{\"merge\":{\"a\" : null }}");
}

/* Text that would be read back as something else stays a string. */
static void a_document_that_is_none_is_a_string(void **state)
{
    static const char *const cases[] = {
        "",     "{",     " {}", "{} ",  "\\\"text\\\"", "null",  "[ ]", "{}{}",
        "nope", "{'a'}", "01",  "[1,]", "[]",           "[\\n]", "tru", "{\\\"a\\\":}"
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char json[80];
        snprintf(json, sizeof json, "{\"replace\":\"%s\"}", cases[i]);
        assert_is(*state, EDIT, json, json);
    }
}

static void malformed_documents_are_refused_with_the_path(void **state)
{
    static const struct {
        const char *document;
        const char *message;
    } cases[] = {
        { "{\"a\":}", "not a JSON value" },
        { "{\"a\" 1}", "expected : behind a member's name" },
        { "{a:1}", "expected a member's name" },
        { "{\"a\":1,}", "expected a member's name" },
        { "[1,]", "not a JSON value" },
        { "[1 2]", "expected , or ]" },
        { "{\"a\":1]", "expected , or }" },
        { "{\"a\":01}", "not a JSON value" },
        { "{\"a\":truex}", "not a JSON value" },
        { "{\"a\":\"\xC0\xAF\"}", "a string that is not UTF-8" },
        { "{\"a\":\"\\x\"}", "an unknown escape in a string" },
        { "{\"a\":\"\n\"}", "a control character in a string" },
        { "{\"a\":\"", "a string without its end" },
        { "[[", "not a JSON value" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char json[120];
        snprintf(json, sizeof json, "{\"edits\":{\"progression\":{\"merge\":%s}}}",
                 cases[i].document);
        assert_refused(*state, UPDATE, json, "edits[\"progression\"].merge", cases[i].message);
    }
}

/* What a document may say is judged where it is stored, in all forms alike. */
static void what_a_document_says_passes(void **state)
{
    assert_is(*state, EDIT, "{\"merge\":{\"a\":\"\\u0000\"}}",
              "{\"merge\":\"{\\\"a\\\":\\\"\\\\u0000\\\"}\"}");
    assert_is(*state, EDIT, "{\"merge\":{\"\\ud800\":1}}", "{\"merge\":\"{\\\"\\\\ud800\\\":1}\"}");
}

/* {"merge":{"a":[{"a":[...1...]}]}} */
static const char *nested(size_t depth, struct buf *json)
{
    buf_clear(json);
    buf_printf(json, "{\"merge\":");
    for (size_t i = 0; i < depth; i++)
        buf_printf(json, "%s", i % 2 == 0 ? "{\"a\":" : "[");
    buf_printf(json, "1");
    for (size_t i = depth; i-- > 0;)
        buf_put_u8(json, i % 2 == 0 ? '}' : ']');
    buf_put_u8(json, '}');
    buf_put_u8(json, 0);
    return (const char *)json->data;
}

static void a_document_ends_where_its_brackets_do(void **state)
{
    static const size_t depths[] = { 1, 2, 63, 64, 65, 127, 128, 129, CODEC_DOCUMENT_DEPTH_MAX };
    struct buf json = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(depths); i++) {
        const char *text = nested(depths[i], &json);
        assert_same(*state, EDIT, text, text);
    }
    assert_refused(*state, EDIT, nested(CODEC_DOCUMENT_DEPTH_MAX + 1, &json), "merge",
                   "a document nested too deeply");
    nested(130, &json);
    *strchr((char *)json.data, ']') = '}';
    assert_refused(*state, EDIT, (const char *)json.data, "merge", "expected , or ]");
    buf_deinit(&json);
}

static void lists_of_named_things_are_objects(void **state)
{
    assert_is(
        *state, GRANT, "{\"currencies\":{\"gold\":5,\"gems\":0}}",
        "{\"currencies\":[{\"currency\":\"gold\",\"amount\":\"5\"},{\"currency\":\"gems\"}]}");
    assert_is(*state, UPDATE,
              "{\"edits\":{\"progression\":{\"schemaVersion\":1,\"merge\":{\"a\":1}},"
              "\"old\":{\"delete\":{}}}}",
              "{\"edits\":[{\"name\":\"progression\",\"schemaVersion\":1,"
              "\"merge\":\"{\\\"a\\\":1}\"},{\"name\":\"old\",\"delete\":{}}]}");
    assert_is(*state, TYPE(profile),
              "{\"sections\":{\"progression\":{\"version\":3,\"json\":{\"xp\":40}}},"
              "\"balances\":{\"gold\":50}}",
              "{\"sections\":[{\"name\":\"progression\",\"version\":\"3\","
              "\"json\":\"{\\\"xp\\\":40}\"}],"
              "\"balances\":[{\"currency\":\"gold\",\"amount\":\"50\"}]}");
    assert_is(*state, TYPE(update_profile_response), "{\"sections\":{\"a\":{\"version\":2}}}",
              "{\"sections\":[{\"name\":\"a\",\"version\":\"2\"}]}");
}

static void a_map_takes_the_other_forms_too(void **state)
{
    const char *plain = "{\"currencies\":{\"gold\":5}}";

    assert_same(*state, GRANT, "{\"currencies\":[{\"currency\":\"gold\",\"amount\":\"5\"}]}",
                plain);
    assert_same(*state, GRANT, "{\"currencies\":{\"gold\":\"5\"}}", plain);
    assert_same(*state, GRANT, "{\"currencies\":{\"gold\":{\"amount\":5}}}", plain);
    assert_same(*state, GRANT, "{\"currencies\":{\"gold\":{\"currency\":\"gold\",\"amount\":5}}}",
                plain);
    assert_same(*state, GRANT, "{ \"currencies\" : { \"go\\u006cd\" : 5 } }", plain);
    assert_same(*state, GRANT, "{\"currencies\":[]}", "{}");
    assert_same(*state, GRANT, "{\"currencies\":{}}", "{}");
    assert_same(*state, GRANT, "{\"currencies\":null}", "{}");
    assert_same(*state, GRANT, "{\"currencies\":{\"gold\":[]}}", "{\"currencies\":{\"gold\":0}}");
    assert_same(*state, UPDATE, "{\"edits\":{\"a\":[]}}", "{\"edits\":{\"a\":{}}}");
}

static void a_map_that_contradicts_itself_is_refused(void **state)
{
    assert_refused(*state, GRANT, "{\"currencies\":{\"gold\":5,\"gems\":1,\"gold\":5}}",
                   "currencies[\"gold\"]", "the name is there twice");
    assert_refused(*state, GRANT,
                   "{\"currencies\":{\"gold\":{\"currency\":\"gems\",\"amount\":5}}}",
                   "currencies[\"gold\"]", "its name is not the one under which it stands");
    assert_refused(*state, GRANT, "{\"currencies\":{\"gold\":null}}", "currencies[\"gold\"].amount",
                   "not a number");
    assert_refused(*state, GRANT, "{\"currencies\":{\"gold\":5", "currencies", "expected , or }");
    assert_refused(*state, GRANT, "{\"currencies\":5}", "currencies", "not an object");
    assert_refused(*state, GRANT, "{\"currencies\":{gold:5}}", "currencies", "expected a name");
    assert_refused(*state, UPDATE, "{\"edits\":{\"a\":{\"replce\":{}}}}", "edits[\"a\"].replce",
                   "no such field; did you mean replace?");
    assert_refused(*state, UPDATE, "{\"edits\":{\"a\":7}}", "edits[\"a\"]", "not an object");
}

/* In every form an entry has its key, wherever in its text that stands. */
static void an_entry_is_named_by_its_key(void **state)
{
    static const char *const currencies[] = {
        "{\"gems\":1,\"gold\":true}",
        "{\"gold\":{\"amount\":true}}",
        "[{},{\"currency\":\"gold\",\"amount\":true}]",
        "[{\"amount\":true,\"currency\":\"gold\"}]",
        "[ { \"amount\" : true , \"currency\" : \"g\\u006fld\" } ]",
        "[{\"amount\":true,\"x\":[{\"currency\":\"a\"}],\"currency\":\"gold\"}]",
    };

    for (size_t i = 0; i < ARRAY_SIZE(currencies); i++) {
        char json[120];
        snprintf(json, sizeof json, "{\"currencies\":%s}", currencies[i]);
        assert_refused(*state, GRANT, json, "currencies[\"gold\"].amount", "not a number");
    }
    assert_refused(*state, UPDATE,
                   "{\"edits\":{\"a\":{\"patch\":[{\"path\":\"\"},{\"set\":1,\"max\":2}]}}}",
                   "edits[\"a\"].patch.steps[1].max", "the step says twice what it does");
}

static void an_entry_without_a_key_has_its_place(void **state)
{
    static const char *const currencies[] = {
        "[{},{\"amount\":true}]",
        "[{},{\"amount\":true,\"currency\":\"\"}]",
        "[{},{\"amount\":true,\"currency\":7}]",
        "[{},{\"amount\":true,\"currency\":\"\\u0000\"}]",
        "[{},{\"amount\":true,\"currency\":\"gold",
        "[{},{\"amount\":true,:\"currency\":\"gold\"}]",
        "{\"gems\":1,\"\":true}",
    };

    for (size_t i = 0; i < ARRAY_SIZE(currencies); i++) {
        char json[120];
        snprintf(json, sizeof json, "{\"currencies\":%s}", currencies[i]);
        assert_refused(*state, GRANT, json, "currencies[1].amount", "not a number");
    }
}

/* Not even as far as it can be read: what lies there was never written. */
static void a_key_that_breaks_off_is_not_shown(void **state)
{
    static const char *const currencies[] = {
        "{\"go\\u0000ld\":1}",
        "[{\"currency\":\"go\\u0000ld\"}]",
        "{\"go\\xld\":1}",
    };

    for (size_t i = 0; i < ARRAY_SIZE(currencies); i++) {
        char json[120];
        snprintf(json, sizeof json, "{\"currencies\":%s}", currencies[i]);
        assert_refused(*state, GRANT, json, "currencies[0].currency",
                       i < 2 ? "a string may not hold U+0000" : "an unknown escape in a string");
    }
}

/* A list in which a name stands twice can come as protobuf: it stays an array. */
static void a_list_with_a_name_twice_is_an_array(void **state)
{
    const char *plain = "{\"currencies\":[{\"currency\":\"gold\",\"amount\":5},"
                        "{\"currency\":\"gold\",\"amount\":6}]}";

    assert_same(*state, GRANT, plain, plain);
}

static void long_maps_are_looked_through(void **state)
{
    struct fixture *f = *state;
    struct buf json = { 0 };
    ProtobufCMessage *message;

    for (int twin = 0; twin < 2; twin++) {
        buf_clear(&json);
        buf_printf(&json, "{\"currencies\":{\"c0\":1");
        for (int i = 1; i < 20000; i++)
            buf_printf(&json, ",\"c%d\":1", twin == 1 && i >= 19990 ? i - 10000 : i);
        buf_printf(&json, "}}");
        arena_reset(&f->arena);
        err e = json_decode(&f->codec, GRANT, buf_slice(&json), &f->scope, &message);
        assert_int_equal(e, twin == 1 ? ERR_INVALID : ERR_OK);
    }
    assert_string_equal(f->scope.error.field, "currencies[\"c9990\"]");
    buf_deinit(&json);
}

static void a_patch_is_an_array_of_steps(void **state)
{
    assert_is(*state, EDIT,
              "{\"patch\":[{\"path\":\"/xp\",\"increment\":40},{\"path\":\"/a\",\"remove\":true},"
              "{\"path\":\"/b\",\"set\":\"text\"},{\"path\":\"/c\",\"append\":[]},"
              "{\"path\":\"/d\",\"set\":null},{\"path\":\"/e\",\"max\":3}]}",
              "{\"patch\":{\"steps\":["
              "{\"kind\":\"PATCH_KIND_INCREMENT\",\"path\":\"/xp\",\"json\":\"40\"},"
              "{\"kind\":\"PATCH_KIND_REMOVE\",\"path\":\"/a\"},"
              "{\"kind\":\"PATCH_KIND_SET\",\"path\":\"/b\",\"json\":\"\\\"text\\\"\"},"
              "{\"kind\":\"PATCH_KIND_APPEND\",\"path\":\"/c\",\"json\":\"[]\"},"
              "{\"kind\":\"PATCH_KIND_SET\",\"path\":\"/d\",\"json\":\"null\"},"
              "{\"kind\":\"PATCH_KIND_MAX\",\"path\":\"/e\",\"json\":\"3\"}]}}");
    assert_is(*state, EDIT,
              "{\"patch\":[{\"path\":\"/l\",\"add\":\"gold\"},{\"path\":\"/l\",\"discard\":[1]}]}",
              "{\"patch\":{\"steps\":["
              "{\"kind\":\"PATCH_KIND_ADD\",\"path\":\"/l\",\"json\":\"\\\"gold\\\"\"},"
              "{\"kind\":\"PATCH_KIND_DISCARD\",\"path\":\"/l\",\"json\":\"[1]\"}]}}");
    assert_is(*state, EDIT, "{\"patch\":[]}", "{\"patch\":{}}");
    assert_same(*state, EDIT, "{\"patch\":{\"steps\":[{\"set\":1}]}}", "{\"patch\":[{\"set\":1}]}");
}

static void a_merge_has_its_paths_beside_it(void **state)
{
    assert_is(*state, EDIT, "{\"merge\":{\"music\":false},\"remove\":[\"/video/legacy\"]}",
              "{\"merge\":\"{\\\"music\\\":false}\",\"remove\":[\"/video/legacy\"]}");
}

static void a_step_takes_the_canonical_members_too(void **state)
{
    assert_same(*state, STEP, "{\"kind\":\"PATCH_KIND_SET\",\"json\":\"\\\"text\\\"\"}",
                "{\"set\":\"text\"}");
    assert_same(*state, STEP, "{\"kind\":\"set\",\"json\":5}", "{\"set\":5}");
    assert_same(*state, STEP, "{\"kind\":\"set\",\"json\":[]}", "{\"set\":[]}");
    assert_same(*state, STEP, "{\"kind\":\"set\",\"set\":5}", "{\"set\":5}");
    assert_same(*state, STEP, "{\"set\":5,\"kind\":\"set\"}", "{\"set\":5}");
    /* No step that reads back from the short form. */
    assert_same(*state, STEP, "{\"kind\":\"set\"}", "{\"kind\":\"set\"}");
    assert_same(*state, STEP, "{\"kind\":\"set\",\"json\":\" 5\"}",
                "{\"kind\":\"set\",\"json\":\" 5\"}");
    assert_same(*state, STEP, "{\"kind\":\"remove\",\"json\":\"5\"}",
                "{\"kind\":\"remove\",\"json\":\"5\"}");
    assert_same(*state, STEP, "{\"kind\":77,\"json\":\"5\"}", "{\"kind\":77,\"json\":\"5\"}");
}

static void a_step_that_contradicts_itself_is_refused(void **state)
{
    static const char *const twice[] = {
        "{\"set\":5,\"max\":5}",          "{\"set\":5,\"set\":5}",
        "{\"kind\":\"max\",\"set\":5}",   "{\"set\":5,\"kind\":\"max\"}",
        "{\"set\":5,\"json\":\"5\"}",     "{\"json\":\"5\",\"set\":5}",
        "{\"remove\":true,\"json\":\"\"}"
    };

    for (size_t i = 0; i < ARRAY_SIZE(twice); i++) {
        ProtobufCMessage *message;
        struct fixture *f = *state;
        assert_int_equal(
            json_decode(&f->codec, STEP, slice_from_text(twice[i]), &f->scope, &message),
            ERR_INVALID);
        assert_string_equal(f->scope.error.message, "the step says twice what it does");
    }
    assert_refused(*state, STEP, "{\"remove\":false}", "remove", "not true");
    assert_refused(*state, STEP, "{\"incremnt\":1}", "incremnt",
                   "no such field; did you mean increment?");
    assert_refused(*state, STEP, "{\"unspecified\":1}", "unspecified", "no such field");
    assert_refused(*state, STEP, "{\"set\"}", "set", "expected : behind a field name");
}

/* Nothing of plain JSON is taken for canonical. */
static void canonical_json_knows_no_shapes(void **state)
{
    static const struct {
        const ProtobufCMessageDescriptor *type;
        const char *json;
    } cases[] = {
        { &holdfast__v1__grant_request__descriptor, "{\"currencies\":{\"gold\":5}}" },
        { &holdfast__v1__section_edit__descriptor, "{\"merge\":{}}" },
        { &holdfast__v1__section_edit__descriptor, "{\"patch\":[{}]}" },
        { &holdfast__v1__patch_step__descriptor, "{\"set\":5}" },
        { &holdfast__v1__start_session_request__descriptor, "{\"mode\":\"steal\"}" },
    };
    struct fixture *f = *state;
    ProtobufCMessage *message;

    f->scope.form = JSON_CANONICAL;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(json_decode(&f->codec, cases[i].type, slice_from_text(cases[i].json),
                                     &f->scope, &message),
                         ERR_INVALID);
    assert_int_equal(json_decode(&f->codec, TYPE(ledger_change),
                                 SLICE_LITERAL("{\"amount\":9007199254740993}"), &f->scope,
                                 &message),
                     ERR_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(numbers_are_numbers_as_far_as_a_double_holds_them),
        TEST(a_number_that_may_have_been_rounded_is_refused),
        TEST(enums_have_short_names),
        TEST(documents_stand_inline),
        TEST(a_document_that_is_none_is_a_string),
        TEST(malformed_documents_are_refused_with_the_path),
        TEST(what_a_document_says_passes),
        TEST(a_document_ends_where_its_brackets_do),
        TEST(lists_of_named_things_are_objects),
        TEST(a_map_takes_the_other_forms_too),
        TEST(a_map_that_contradicts_itself_is_refused),
        TEST(an_entry_is_named_by_its_key),
        TEST(an_entry_without_a_key_has_its_place),
        TEST(a_key_that_breaks_off_is_not_shown),
        TEST(a_list_with_a_name_twice_is_an_array),
        TEST(long_maps_are_looked_through),
        TEST(a_patch_is_an_array_of_steps),
        TEST(a_merge_has_its_paths_beside_it),
        TEST(a_step_takes_the_canonical_members_too),
        TEST(a_step_that_contradicts_itself_is_refused),
        TEST(canonical_json_knows_no_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
