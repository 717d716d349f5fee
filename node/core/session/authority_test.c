#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/session/authority.h"

static void each_kind_is_read_from_its_text(void **state)
{
    struct arena arena = { 0 };
    struct authority_fault fault;
    struct authority authority;
    (void)state;

    assert_int_equal(authority_parse(&arena, SLICE_LITERAL("unheld"), &authority, &fault), ERR_OK);
    assert_int_equal(authority.kind, AUTHORITY_UNHELD);
    assert_int_equal(authority_parse(&arena, SLICE_LITERAL("system:mail"), &authority, &fault),
                     ERR_OK);
    assert_int_equal(authority.kind, AUTHORITY_SYSTEM);
    assert_true(slice_equal(authority.scope, SLICE_LITERAL("mail")));
    assert_int_equal(authority_parse(&arena, SLICE_LITERAL("session:2-77-5"), &authority, &fault),
                     ERR_OK);
    assert_int_equal(authority.kind, AUTHORITY_SESSION);
    assert_int_equal(authority.incarnation.generation, 2);
    assert_int_equal(authority.incarnation.revision, 77);
    assert_int_equal(authority.fence, 5);
    arena_deinit(&arena);
}

static void assert_refused(const char *text, const char *limit, const char *value)
{
    struct arena arena = { 0 };
    struct authority authority = { .fence = 99 };
    struct authority_fault fault;

    assert_int_equal(authority_parse(&arena, slice_from_text(text), &authority, &fault),
                     ERR_INVALID);
    assert_string_equal(fault.limit, limit);
    assert_string_equal(fault.value, value);
    assert_int_equal(authority.fence, 99);
    arena_deinit(&arena);
}

/* A token is a secret, and a text without a kind may be one. */
static void another_text_is_refused_without_repeating_a_token(void **state)
{
    static const char *const kinds = "session:<token>, system:<scope> or unheld";
    static const char *const token =
        "session: and a token that StartSession returned, at most 64 bytes";
    static const char *const scopes =
        "system:payments, system:mail, system:match, system:moderation or system:admin";
    (void)state;

    assert_refused("", kinds, "");
    assert_refused("2-77-5", kinds, "6 other bytes");
    assert_refused("Unheld", kinds, "6 other bytes");
    assert_refused("unheld ", kinds, "7 other bytes");
    assert_refused("system", kinds, "6 other bytes");
    assert_refused("session:", token, "session: and 0 bytes");
    assert_refused("session:2-77", token, "session: and 4 bytes");
    assert_refused("session: 2-77-5", token, "session: and 7 bytes");
    assert_refused("system:", scopes, "system:");
    assert_refused("system:root", scopes, "system:root");
    assert_refused("system:game", scopes, "system:game");
    /* A ledger tells it so; a caller does not say whose key it has. */
    assert_refused("system:admin/0a1b2c3d4e5f", scopes, "system:admin/0a1b2c3d4e5f");
    assert_refused("system:admin/", scopes, "system:admin/");
}

/* Before the field was a string it was a message: these are its bytes as a log has them. A NUL
 * ended the text: the length of `unheld {}`. */
static void the_old_form_is_read_from_the_log_alone(void **state)
{
    static const char unheld[] = "\x1a";
    static const char mail[] = "\x12\x06\x0a\x04mail";
    static const char session[] = "\x0a\x08\x0a\x06"
                                  "2-77-5";
    struct authority authority;
    (void)state;

    assert_int_equal(authority_parse_logged(slice_from_text(unheld), &authority), ERR_OK);
    assert_int_equal(authority.kind, AUTHORITY_UNHELD);
    assert_int_equal(authority_parse_logged(slice_from_text(mail), &authority), ERR_OK);
    assert_int_equal(authority.kind, AUTHORITY_SYSTEM);
    assert_true(slice_equal(authority.scope, SLICE_LITERAL("mail")));
    assert_int_equal(authority_parse_logged(slice_from_text(session), &authority), ERR_OK);
    assert_int_equal(authority.kind, AUTHORITY_SESSION);
    assert_int_equal(authority.incarnation.revision, 77);
    assert_int_equal(authority.fence, 5);
    assert_int_equal(authority_parse_logged(SLICE_LITERAL("system:mail"), &authority), ERR_OK);
    assert_int_equal(authority_parse_logged(SLICE_LITERAL("session:2-77-5"), &authority), ERR_OK);
    assert_refused(unheld, "session:<token>, system:<scope> or unheld", "1 other bytes");
    assert_refused(mail, "session:<token>, system:<scope> or unheld", "8 other bytes");
    assert_refused(session, "session:<token>, system:<scope> or unheld", "10 other bytes");
}

static void the_longest_of_all_is_told_whole(void **state)
{
    static const char name[] = "cert:0123456789012345678901234567890123456789-.x";
    struct arena arena = { 0 };
    const struct authority longest = { .kind = AUTHORITY_SYSTEM,
                                       .scope = SLICE_LITERAL("moderation"),
                                       .caller = slice_from_text(name) };
    const struct authority session = { .kind = AUTHORITY_SESSION,
                                       .incarnation = { UINT64_MAX, UINT64_MAX } };
    (void)state;

    struct slice text = authority_text(&arena, &longest);
    assert_int_equal(text.size, strlen("system:moderation/") + CALLER_NAME_BYTES_MAX);
    assert_memory_equal(text.data, "system:moderation/cert:", 23);
    assert_true(text.size <= AUTHORITY_TOLD_BYTES_MAX);
    assert_true(authority_text(&arena, &session).size <= AUTHORITY_TOLD_BYTES_MAX);
    arena_deinit(&arena);
}

static void no_other_bytes_are_read_from_the_log(void **state)
{
    static const char *const broken[] = {
        "",
        "unheld\x1a",
        "\x1a\x01",
        "\x12",
        "\x12\x06\x0a\x04",
        "\x12\x06\x0a\x04mai",
        "\x12\x06\x0a\x04mails",
        "\x12\x06\x12\x04mail",
        "\x12\x06\x0a\x05mail",
        "\x12\x06\x0a\x04root",
        "\x0a\x06\x0a\x04mail",
        "\x22\x06\x0a\x04mail",
    };
    struct authority authority;
    (void)state;

    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        assert_int_equal(authority_parse_logged(slice_from_text(broken[i]), &authority),
                         ERR_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_read_from_its_text),
        cmocka_unit_test(another_text_is_refused_without_repeating_a_token),
        cmocka_unit_test(the_old_form_is_read_from_the_log_alone),
        cmocka_unit_test(the_longest_of_all_is_told_whole),
        cmocka_unit_test(no_other_bytes_are_read_from_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
