#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "router/core/metadata_wire.h"
#include "runtime/base/check.h"

/* About "tetris", "p\"ong" and "chess". */
static struct metadata_question asked(void)
{
    static struct slice targets[3];

    targets[0] = SLICE_LITERAL("tetris");
    targets[1] = SLICE_LITERAL("p\"ong");
    targets[2] = SLICE_LITERAL("chess");
    return (struct metadata_question){ SLICE_LITERAL("favorites"), targets, 3 };
}

static err read_answer(struct arena *arena, const char *json, struct metadata_answer *ret_answer)
{
    const struct metadata_question question = asked();
    const char *why;

    err e = metadata_answer_read(&question, slice_from_text(json), arena, ret_answer, &why);
    assert_int_equal(e == ERR_OK, why == NULL);
    return e;
}

static void the_question_names_collection_and_targets(void **state)
{
    const struct metadata_question question = asked();
    struct buf out = { 0 };
    (void)state;

    metadata_question_print(&question, &out);
    assert_true(slice_equal(
        buf_slice(&out),
        slice_from_text("{\"collection\":\"favorites\",\"targetIds\":[\"tetris\",\"p\\\"ong\","
                        "\"chess\"]}")));
    buf_deinit(&out);
}

static void entries_find_their_targets_in_any_order(void **state)
{
    struct arena arena = { 0 };
    struct metadata_answer answer;
    (void)state;

    assert_int_equal(
        read_answer(&arena,
                    "{\"more\":1,\"metadata\":[{\"targetId\":\"other\",\"title\":7},"
                    "{\"targetId\":\"p\\\"ong\",\"title\":\"Pong\",\"version\":\"9\"},"
                    "{\"targetId\":\"tetris\",\"title\":\"Tetris\",\"thumbnailUrl\":"
                    "\"https://i.example/t.png\",\"attributes\":{\"b\":1,\"a\":[2]}}]}",
                    &answer),
        ERR_OK);
    assert_int_equal(answer.left_out, 0);
    assert_string_equal(answer.told[0]->title, "Tetris");
    assert_string_equal(answer.told[0]->thumbnail_url, "https://i.example/t.png");
    assert_string_equal(answer.told[0]->attributes, "{\"a\":[2],\"b\":1}");
    assert_string_equal(answer.told[1]->title, "Pong");
    assert_int_equal(answer.told[1]->version, 0);
    assert_string_equal(answer.told[1]->attributes, "{}");
    assert_null(answer.told[2]);
    assert_int_equal(read_answer(&arena, "{}", &answer), ERR_OK);
    assert_null(answer.told[0]);
    arena_deinit(&arena);
}

static void entries_that_break_a_rule_are_left_out_alone(void **state)
{
    static const char *const entries[] = {
        "7",
        "{\"targetId\":7}",
        "{\"targetId\":\"tetris\",\"title\":7}",
        "{\"targetId\":\"tetris\",\"title\":\"a\\u0007b\"}",
        "{\"targetId\":\"tetris\",\"thumbnailUrl\":\"http://i.example/t.png\"}",
        "{\"targetId\":\"tetris\",\"thumbnailUrl\":\"javascript:alert(1)\"}",
        "{\"targetId\":\"tetris\",\"attributes\":[]}",
    };
    struct arena arena = { 0 };
    struct metadata_answer answer;
    char json[512], long_title[400];
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        snprintf(json, sizeof json,
                 "{\"metadata\":[%s,{\"targetId\":\"chess\",\"title\":\"Chess\"}]}", entries[i]);
        assert_int_equal(read_answer(&arena, json, &answer), ERR_OK);
        if (answer.left_out != 1 || answer.told[0] != NULL || answer.told[2] == NULL)
            fail_msg("%s", entries[i]);
    }
    memset(long_title, 'x', sizeof long_title - 1);
    long_title[sizeof long_title - 1] = '\0';
    snprintf(json, sizeof json, "{\"metadata\":[{\"targetId\":\"tetris\",\"title\":\"%s\"}]}",
             long_title);
    assert_int_equal(read_answer(&arena, json, &answer), ERR_OK);
    assert_int_equal(answer.left_out, 1);
    arena_deinit(&arena);
}

static void what_is_no_answer_is_said_to_be_none(void **state)
{
    static const char *const texts[] = { "",
                                         "nonsense",
                                         "[]",
                                         "7",
                                         "{",
                                         "\"a\"",
                                         "{\"metadata\":{}}",
                                         "{\"metadata\":[]}x",
                                         "{\"a\":1,\"a\":2}" };
    struct arena arena = { 0 };
    struct metadata_answer answer;
    struct buf many = { 0 };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        if (read_answer(&arena, texts[i], &answer) != ERR_INVALID)
            fail_msg("%s is taken", texts[i]);
    }
    buf_put_text(&many, "{\"metadata\":[0");
    for (uint32_t i = 0; i < 1000; i++)
        buf_put_text(&many, ",0");
    buf_put_text(&many, "]}");
    buf_put_u8(&many, 0);
    assert_int_equal(read_answer(&arena, (const char *)many.data, &answer), ERR_INVALID);
    for (uint32_t i = 0; i < 5000; i++) { /* Deep: jansson has a bound of its own. */
        if (i == 0)
            buf_clear(&many);
        buf_put_text(&many, "[");
    }
    buf_put_u8(&many, 0);
    assert_int_equal(read_answer(&arena, (const char *)many.data, &answer), ERR_INVALID);
    buf_deinit(&many);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_question_names_collection_and_targets),
        cmocka_unit_test(entries_find_their_targets_in_any_order),
        cmocka_unit_test(entries_that_break_a_rule_are_left_out_alone),
        cmocka_unit_test(what_is_no_answer_is_said_to_be_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
