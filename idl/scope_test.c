#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "idl/scope.h"

static void what_is_printed_is_parsed_again(void **state)
{
    char text[SCOPES_TEXT_SIZE];
    uint32_t scopes = 0;
    struct slice bad;
    (void)state;

    for (uint32_t all = 1; all <= SCOPES_ALL; all++) {
        scopes_print(all, text);
        assert_int_equal(scopes_parse(slice_from_text(text), &scopes, &bad), ERR_OK);
        assert_int_equal(scopes, all);
    }
    scopes_print(SCOPE_GAME | SCOPE_READ, text);
    assert_string_equal(text, "game, read");
}

static void a_name_that_is_none_is_told(void **state)
{
    uint32_t scopes = 7;
    struct slice bad;
    (void)state;

    assert_int_equal(scopes_parse(SLICE_LITERAL("game,root"), &scopes, &bad), ERR_INVALID);
    assert_true(slice_equal(bad, SLICE_LITERAL("root")));
    assert_int_equal(scopes_parse(SLICE_LITERAL(""), &scopes, &bad), ERR_INVALID);
    assert_int_equal(scopes_parse(SLICE_LITERAL("game,"), &scopes, &bad), ERR_INVALID);
    assert_int_equal(scopes, 7);
    assert_int_equal(scope_find(SLICE_LITERAL("Game")), 0);
}

static void every_scope_is_one_bit_of_all(void **state)
{
    size_t count;
    uint32_t sum = 0;
    const struct scope_info *all = scope_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        assert_int_equal(all[i].scope & (all[i].scope - 1), 0);
        assert_int_equal(sum & all[i].scope, 0);
        sum |= all[i].scope;
    }
    assert_int_equal(sum, SCOPES_ALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_is_parsed_again),
        cmocka_unit_test(a_name_that_is_none_is_told),
        cmocka_unit_test(every_scope_is_one_bit_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
