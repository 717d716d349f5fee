#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/goods/balance_list.h"
#include "runtime/base/check.h"

static void fill(struct balance_list *list, struct arena *arena, uint32_t version)
{
    const struct ledger_change changes[] = {
        { .currency = SLICE_LITERAL("gold"), .balance_after = 30, .reserved_after = 300 },
        { .currency = SLICE_LITERAL("debt"), .balance_after = -5 },
    };
    const struct ledger_change more = { .currency = SLICE_LITERAL("gold"),
                                        .balance_after = 31,
                                        .reserved_after = 300 };

    balance_list_init(list, arena, 2, version);
    balance_list_note(list, 2, changes);
    balance_list_note(list, 1, &more);
}

static void what_is_reserved_stands_in_a_list_of_its_own(void **state)
{
    struct arena arena = { 0 };
    struct balance_list list;
    Holdfast__V1__GetBalancesResponse answer = HOLDFAST__V1__GET_BALANCES_RESPONSE__INIT;
    const uint32_t versions[] = { 4, BALANCE_LIST_READ };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
        fill(&list, &arena, versions[i]);
        assert_true(balance_list_has(&list, "debt"));
        assert_false(balance_list_has(&list, "gems"));
        BALANCE_LIST_TELL(&list, &answer);
        assert_int_equal(answer.n_balances, 2);
        assert_string_equal(answer.balances[0]->currency, "gold");
        assert_int_equal(answer.balances[0]->amount, 31);
        assert_int_equal(answer.balances[1]->amount, -5);
        assert_int_equal(answer.n_reserved, 1);
        assert_string_equal(answer.reserved[0]->currency, "gold");
        assert_int_equal(answer.reserved[0]->amount, 300);
        assert_int_equal(answer.balances[0]->base.n_unknown_fields, 0);
    }
    arena_deinit(&arena);
}

/* Replicas of both programs serve together: their outcomes are the same bytes. */
static void earlier_rules_give_the_bytes_that_they_gave(void **state)
{
    static const uint8_t gold[] = "\x0A\x04gold\x10\x1F\x18\xAC\x02";
    struct arena arena = { 0 };
    struct balance_list list;
    (void)state;

    fill(&list, &arena, 3);
    assert_int_equal(list.reserved_count, 0);
    struct slice packed = arena_pack(&arena, &list.balances[0]->base);
    assert_int_equal(packed.size, sizeof gold - 1);
    assert_memory_equal(packed.data, gold, packed.size);
    packed = arena_pack(&arena, &list.balances[1]->base);
    const Holdfast__V1__CurrencyAmount *debt =
        (const void *)arena_unpack(&arena, &holdfast__v1__currency_amount__descriptor, packed);
    assert_int_equal(debt->amount, -5);
    assert_int_equal(debt->base.n_unknown_fields, 0);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_reserved_stands_in_a_list_of_its_own),
        cmocka_unit_test(earlier_rules_give_the_bytes_that_they_gave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
