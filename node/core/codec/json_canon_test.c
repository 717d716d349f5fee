#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/codec/json_canon.h"
#include "node/core/codec/json_edit.h"
#include "runtime/base/check.h"

#define PATCH(kind) HOLDFAST__V1__PATCH_KIND__PATCH_KIND_##kind

static void assert_canonical(const char *text, const char *expected)
{
    struct buf out = { 0 };
    const char *why = NULL;

    assert_int_equal(json_canon(slice_from_text(text), &out, &why), ERR_OK);
    buf_put_u8(&out, 0);
    assert_string_equal((char *)out.data, expected);
    buf_deinit(&out);
}

static void one_value_has_one_text(void **state)
{
    (void)state;
    assert_canonical(" { \"b\" : [ 1 , 2 ] , \"a\" : { } } ", "{\"a\":{},\"b\":[1,2]}");
    assert_canonical("{\"a\":1,\"B\":2,\"aa\":3,\"\":4}", "{\"\":4,\"B\":2,\"a\":1,\"aa\":3}");
    assert_canonical("\"\\u0041\\/\\u00e9\\n\\u0001\\\"\"", "\"A/\xc3\xa9\\n\\u0001\\\"\"");
    assert_canonical("[true,false,null]", "[true,false,null]");
    assert_canonical("-0", "0");
    assert_canonical("9223372036854775807", "9223372036854775807");
}

static void doubles_get_the_shortest_text_that_reads_back(void **state)
{
    (void)state;
    assert_canonical("0.1", "0.1");
    assert_canonical("0.10000000000000000555", "0.1");
    assert_canonical("1.0", "1.0");
    assert_canonical("1e2", "100.0");
    assert_canonical("0.0", "0.0");
    assert_canonical("-12.50", "-12.5");
    assert_canonical("1e16", "10000000000000000.0");
    assert_canonical("1e17", "1e+17");
    assert_canonical("0.0000011", "0.0000011");
    assert_canonical("123456789.123", "123456789.123");
    assert_canonical("100.0", "100.0");
    assert_canonical("1.7976931348623157e308", "1.7976931348623157e+308");
    assert_canonical("5e-324", "5e-324");
    assert_canonical("0.30000000000000004", "0.30000000000000004");
}

static void what_has_no_one_form_is_refused_with_a_reason(void **state)
{
    const char *bad[] = { "",
                          "{",
                          "{\"a\":1,\"a\":2}",
                          "9223372036854775808",
                          "1e999",
                          "NaN",
                          "\"\\u0000\"",
                          "\"\xff\"",
                          "[1,]",
                          "{} {}",
                          "'a'" };
    struct buf out = { 0 };
    char deep[2 * 65 + 1];
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        const char *why = NULL;
        assert_int_equal(json_canon(slice_from_text(bad[i]), &out, &why), ERR_INVALID);
        assert_non_null(why);
    }
    memset(deep, '[', 65);
    memset(deep + 65, ']', 65);
    const char *why = NULL;
    assert_int_equal(json_canon((struct slice){ (uint8_t *)deep, 130 }, &out, &why), ERR_INVALID);
    assert_string_equal(why, "JSON nested at most 64 deep");
    buf_clear(&out);
    assert_int_equal(json_canon((struct slice){ (uint8_t *)deep + 1, 128 }, &out, &why), ERR_OK);
    buf_deinit(&out);
}

static void assert_json(json_t *value, const char *expected)
{
    struct buf out = { 0 };

    assert_int_equal(json_canon_write(value, &out), ERR_OK);
    buf_put_u8(&out, 0);
    assert_string_equal((char *)out.data, expected);
    buf_deinit(&out);
    json_decref(value);
}

static json_t *parse(const char *text)
{
    const char *why;
    json_t *value = json_canon_parse(slice_from_text(text), &why);
    assert_non_null(value);
    return value;
}

/* Examples of RFC 7396, appendix A. */
static void merges_follow_rfc_7396(void **state)
{
    static const char *const cases[][3] = {
        { "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
        { "{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}" },
        { "{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}" },
        { "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}" },
        { "{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}" },
        { "[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]" },
        { "{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]" },
        { "{\"a\":\"foo\"}", "null", "null" },
        { "{\"e\":null}", "{\"a\":1}", "{\"a\":1,\"e\":null}" },
        { "[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}" },
        { "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_t *patch = parse(cases[i][1]);
        assert_json(json_merge(parse(cases[i][0]), patch), cases[i][2]);
        json_decref(patch);
    }
    json_t *patch = parse("{\"a\":null,\"b\":1}");
    assert_json(json_merge(NULL, patch), "{\"b\":1}");
    json_decref(patch);
}

struct step_case {
    const char *document;
    Holdfast__V1__PatchKind kind;
    const char *path;
    const char *value;
    const char *expected; /* NULL: refused with `error`. */
    err error;
};

static void steps_do_what_their_kind_says(void **state)
{
    static const struct step_case cases[] = {
        { "{}", PATCH(SET), "/a/b/c", "1", "{\"a\":{\"b\":{\"c\":1}}}", ERR_OK },
        { "{\"a\":[1,2]}", PATCH(SET), "/a/1", "9", "{\"a\":[1,9]}", ERR_OK },
        { "{\"a\":[1,2]}", PATCH(SET), "/a/-", "9", "{\"a\":[1,2,9]}", ERR_OK },
        { "{\"a\":[1,2]}", PATCH(SET), "/a/3", "9", NULL, ERR_INVALID },
        { "{\"a\":[1,2]}", PATCH(SET), "/a/01", "9", NULL, ERR_INVALID },
        { "{\"a\":1}", PATCH(SET), "/a/b", "9", NULL, ERR_INVALID },
        { "{\"a\":1}", PATCH(SET), "", "[2]", "[2]", ERR_OK },
        { "{\"a\":1}", PATCH(SET), "a", "2", NULL, ERR_INVALID },
        { "{\"a\":1}", PATCH(SET), "/a~2", "2", NULL, ERR_INVALID },
        { "{\"a\":1}", PATCH(SET), "/a", NULL, NULL, ERR_INVALID },
        { "{}", PATCH(SET), "/a~1b~0", "1", "{\"a/b~\":1}", ERR_OK },
        { "{\"a\":{\"b\":1}}", PATCH(REMOVE), "/a/b", NULL, "{\"a\":{}}", ERR_OK },
        { "{\"a\":[1,2]}", PATCH(REMOVE), "/a/0", NULL, "{\"a\":[2]}", ERR_OK },
        { "{}", PATCH(REMOVE), "/x/y", NULL, "{}", ERR_OK },
        { "{\"n\":5}", PATCH(INCREMENT), "/n", "-7", "{\"n\":-2}", ERR_OK },
        { "{}", PATCH(INCREMENT), "/n", "3", "{\"n\":3}", ERR_OK },
        { "{\"n\":9223372036854775807}", PATCH(INCREMENT), "/n", "1", NULL, ERR_FULL },
        { "{\"n\":1.5}", PATCH(INCREMENT), "/n", "1", NULL, ERR_INVALID },
        { "{}", PATCH(APPEND), "/l", "{\"a\":1}", "{\"l\":[{\"a\":1}]}", ERR_OK },
        { "{\"l\":[1]}", PATCH(APPEND), "/l", "2", "{\"l\":[1,2]}", ERR_OK },
        { "{\"l\":{}}", PATCH(APPEND), "/l", "2", NULL, ERR_INVALID },
        { "{\"m\":4}", PATCH(MAX), "/m", "3", "{\"m\":4}", ERR_OK },
        { "{\"m\":4}", PATCH(MAX), "/m", "5", "{\"m\":5}", ERR_OK },
        { "{}", PATCH(MAX), "/m", "-5", "{\"m\":-5}", ERR_OK },
        { "{}", PATCH(ADD), "/a/l", "1", "{\"a\":{\"l\":[1]}}", ERR_OK },
        { "{\"l\":[1,2]}", PATCH(ADD), "/l", "1", "{\"l\":[1,2]}", ERR_OK },
        { "{\"l\":[1,2]}", PATCH(ADD), "/l", "\"1\"", "{\"l\":[1,2,\"1\"]}", ERR_OK },
        { "{\"l\":[1]}", PATCH(ADD), "/l", "1.0", "{\"l\":[1,1.0]}", ERR_OK },
        { "{\"l\":[0.0]}", PATCH(ADD), "/l", "-0.0", "{\"l\":[0.0,-0.0]}", ERR_OK },
        { "{\"l\":[{\"a\":1,\"b\":[2]}]}", PATCH(ADD), "/l", "{\"b\":[2],\"a\":1}",
          "{\"l\":[{\"a\":1,\"b\":[2]}]}", ERR_OK },
        { "{\"l\":{}}", PATCH(ADD), "/l", "2", NULL, ERR_INVALID },
        { "{\"l\":[1,2,1,[1]]}", PATCH(DISCARD), "/l", "1", "{\"l\":[2,[1]]}", ERR_OK },
        { "{\"l\":[-0.0,0.0]}", PATCH(DISCARD), "/l", "0.0", "{\"l\":[-0.0]}", ERR_OK },
        { "{\"l\":[1]}", PATCH(DISCARD), "/l", "1", "{\"l\":[]}", ERR_OK },
        { "{\"l\":[1]}", PATCH(DISCARD), "/l", "3", "{\"l\":[1]}", ERR_OK },
        { "[[1],[2,2]]", PATCH(DISCARD), "/1", "2", "[[1],[]]", ERR_OK },
        { "[[1]]", PATCH(DISCARD), "/-", "1", "[[1]]", ERR_OK },
        { "{\"n\":5}", PATCH(DISCARD), "/n/x", "1", "{\"n\":5}", ERR_OK },
        { "{}", PATCH(DISCARD), "/a/b", "1", "{}", ERR_OK },
        { "[1,2]", PATCH(DISCARD), "", "1", "[2]", ERR_OK },
        { "{}", PATCH(DISCARD), "", "1", NULL, ERR_INVALID },
        { "{\"l\":5}", PATCH(DISCARD), "/l", "5", NULL, ERR_INVALID },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_t *document = parse(cases[i].document);
        json_t *value = cases[i].value != NULL ? parse(cases[i].value) : NULL;
        const char *why = NULL;
        err e =
            json_patch_step(&document, cases[i].kind, slice_from_text(cases[i].path), value, &why);
        json_decref(value);
        assert_int_equal(e, cases[i].error);
        if (e == ERR_OK) {
            assert_json(document, cases[i].expected);
        } else {
            assert_non_null(why);
            json_decref(document);
        }
    }
}

static void pointers_are_checked(void **state)
{
    const char *good[] = { "", "/", "/a/b", "/a~0~1" };
    const char *bad[] = { "a", "/~", "/~2", "/a~" };
    char longest[515];
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_int_equal(json_pointer_check(slice_from_text(good[i])), ERR_OK);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(json_pointer_check(slice_from_text(bad[i])), ERR_INVALID);
    memset(longest, 'x', sizeof longest);
    longest[0] = '/';
    assert_int_equal(json_pointer_check((struct slice){ (uint8_t *)longest, 512 }), ERR_OK);
    assert_int_equal(json_pointer_check((struct slice){ (uint8_t *)longest, 513 }), ERR_INVALID);
    memset(longest, '/', 65);
    assert_int_equal(json_pointer_check((struct slice){ (uint8_t *)longest, 65 }), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_value_has_one_text),
        cmocka_unit_test(doubles_get_the_shortest_text_that_reads_back),
        cmocka_unit_test(what_has_no_one_form_is_refused_with_a_reason),
        cmocka_unit_test(merges_follow_rfc_7396),
        cmocka_unit_test(steps_do_what_their_kind_says),
        cmocka_unit_test(pointers_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
