#include "runtime/cluster/session_token.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void make_secrets(struct session_secrets *secrets, const char *cluster, uint8_t current,
                         uint8_t previous)
{
    struct token_secret_record record = { 0 };

    memset(record.current, current, sizeof record.current);
    memset(record.previous, previous, sizeof record.previous);
    session_secrets_init(secrets, cluster, &record);
}

static bool is_good(const struct session_secrets *secrets, const char *player, const char *text)
{
    struct session_token token;

    return session_token_parse(slice_from_text(text), &token) == ERR_OK &&
           session_token_is_genuine(secrets, slice_from_text(player), &token);
}

static void print(const struct session_secrets *secrets, const char *player, const char *plain,
                  char ret_text[SESSION_TOKEN_TEXT_SIZE])
{
    struct session_token token;

    assert_int_equal(session_token_parse(slice_from_text(plain), &token), ERR_OK);
    session_token_print(secrets, slice_from_text(player), &token, ret_text);
}

static void a_token_is_good_for_its_session_alone(void **state)
{
    struct session_secrets secrets, other;
    char text[SESSION_TOKEN_TEXT_SIZE], bad[SESSION_TOKEN_TEXT_SIZE + 1];

    (void)state;
    make_secrets(&secrets, "production", 7, 0);
    print(&secrets, "ada", "1-77-3", text);
    assert_int_equal(strlen(text), strlen("1-77-3-") + SESSION_TOKEN_MAC_CHARS);
    assert_true(is_good(&secrets, "ada", text));
    assert_false(is_good(&secrets, "adb", text));
    assert_false(is_good(&secrets, "", text));
    assert_false(is_good(&secrets, "ada", "1-77-3"));
    for (size_t i = 0; i < strlen(text); i++) { /* Each character counts. */
        memcpy(bad, text, strlen(text) + 1);
        bad[i] = bad[i] == '4' ? '5' : '4';
        assert_false(is_good(&secrets, "ada", bad));
    }
    make_secrets(&other, "staging", 7, 0); /* The same secret, another cluster. */
    assert_false(is_good(&other, "ada", text));
    make_secrets(&other, "production", 8, 0);
    assert_false(is_good(&other, "ada", text));
}

static void a_rotation_keeps_the_tokens_of_before_good_until_the_next(void **state)
{
    struct session_secrets first, second, third;
    char old[SESSION_TOKEN_TEXT_SIZE], new[SESSION_TOKEN_TEXT_SIZE];

    (void)state;
    make_secrets(&first, "c", 1, 0);
    make_secrets(&second, "c", 2, 1);
    make_secrets(&third, "c", 3, 2);
    print(&first, "ada", "1-1-1", old);
    print(&second, "ada", "1-1-1", new);
    assert_string_not_equal(old, new);
    assert_true(is_good(&second, "ada", old));
    assert_true(is_good(&third, "ada", new));
    assert_false(is_good(&third, "ada", old));
    assert_false(is_good(&first, "ada", new));
}

static void what_is_no_token_is_refused(void **state)
{
    static const char *const bad[] = { "",
                                       "-",
                                       "1",
                                       "1-2",
                                       "1-2-",
                                       "1-2-0",
                                       "0-2-3",
                                       "1-0-3",
                                       "01-2-3",
                                       "1-2-3-",
                                       "1-2-3-4",
                                       "1-2-3-aaaaaaaaaaaaaaaaaaaaa",
                                       "1-2-3-aaaaaaaaaaaaaaaaaaaaaaa",
                                       "1-2-3-aaaaaaaaaaaaaaaaaaaaa=",
                                       "1-2-3-aaaaaaaaaaaaaaaaaaaaa ",
                                       " 1-2-3",
                                       "1-2-18446744073709551616" };
    struct session_token token = { .fence = 99 };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(session_token_parse(slice_from_text(bad[i]), &token), ERR_INVALID);
        assert_int_equal(token.fence, 99);
    }
    assert_int_equal(session_token_parse((struct slice){ NULL, 0 }, &token), ERR_INVALID);
    assert_int_equal(session_token_parse(slice_from_text("1-2-3"), &token), ERR_OK);
    assert_int_equal(token.mac.size, 0);
    /* A MAC may have dashes, at its ends too. */
    assert_int_equal(session_token_parse(slice_from_text("1-2-3--------_--------------"), &token),
                     ERR_OK);
    assert_int_equal(token.mac.size, SESSION_TOKEN_MAC_CHARS);
    assert_true(slice_equal(token.plain, SLICE_LITERAL("1-2-3")));
}

static void a_record_comes_back_and_its_errors_repeat_no_secret(void **state)
{
    struct token_secret_record record = { .rotated_at_ms = 5 }, back;
    struct record_error why;
    struct buf json = { 0 };

    (void)state;
    memset(record.current, 0xab, sizeof record.current);
    memset(record.next, 0xcd, sizeof record.next);
    token_secret_record_encode(&record, &json);
    assert_int_equal(token_secret_record_decode(buf_slice(&json), &back, &why), ERR_OK);
    assert_memory_equal(&back, &record, sizeof record);
    buf_deinit(&json);
    assert_int_equal(token_secret_record_decode(SLICE_LITERAL("{}"), &back, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "current"));
    assert_int_equal(
        token_secret_record_decode(SLICE_LITERAL("{\"current\":\"cafe\"}"), &back, &why),
        ERR_INVALID);
    assert_null(strstr(why.text, "cafe"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_good_for_its_session_alone),
        cmocka_unit_test(a_rotation_keeps_the_tokens_of_before_good_until_the_next),
        cmocka_unit_test(what_is_no_token_is_refused),
        cmocka_unit_test(a_record_comes_back_and_its_errors_repeat_no_secret),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
