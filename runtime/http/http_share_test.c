#include "runtime/http/http_share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_share_lives_while_it_is_held(void **state)
{
    struct http_shares shares = { 0 };
    (void)state;

    struct http_share *first = http_share_hold(&shares, 7);
    assert_ptr_equal(http_share_hold(&shares, 7), first);
    assert_ptr_equal(http_share_join(first), first);
    /* The same slot, another name. */
    struct http_share *other = http_share_hold(&shares, 7 + HTTP_SHARE_SLOTS);
    assert_ptr_not_equal(other, first);
    assert_int_equal(shares.count, 2);
    first->body_bytes = 5;
    for (int i = 0; i < 2; i++)
        http_share_release(&shares, first);
    assert_int_equal(http_share_hold(&shares, 7)->body_bytes, 5);
    http_share_release(&shares, first);
    first->body_bytes = 0;
    http_share_release(&shares, first);
    assert_int_equal(shares.count, 1);
    http_share_release(&shares, other);
    http_share_release(&shares, NULL);
    assert_int_equal(shares.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_share_lives_while_it_is_held) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
