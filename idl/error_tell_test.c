#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "idl/error_code.h"
#include "idl/error_tell.h"

#define FACT(name) HOLDFAST__V1__ERROR_DETAIL__ABOUT__FACT_##name

static unsigned fact_of(const Holdfast__V1__ErrorDetail *told)
{
    return told->about != NULL ? told->about->fact_case : FACT(_NOT_SET);
}

static char *text(const char *literal)
{
    return text_lend(literal); /* Read only. */
}

/* The bytes of a refusal as version 1 of the program stored them: owner = 7, final = 8. */
static void a_refusal_of_before_is_told_with_its_holder(void **state)
{
    static const uint8_t stored[] = { 0x08, 3, 0x12, 2,   'n', 'o', 0x30, 0xe8, 0x07,
                                      0x3a, 5, '1',  '-', '1', '0', '0',  0x40, 1 };
    Holdfast__Internal__V1__Refusal *refusal =
        holdfast__internal__v1__refusal__unpack(NULL, sizeof stored, stored);
    struct arena arena = { 0 };
    (void)state;

    assert_non_null(refusal);
    Holdfast__V1__ErrorDetail told = error_tell(refusal, &arena);
    assert_int_equal(told.code, CODE(SESSION_LOCKED));
    assert_string_equal(told.message, "no");
    assert_int_equal(told.outcome, HOLDFAST__V1__OUTCOME__OUTCOME_REFUSED);
    assert_int_equal(told.action, HOLDFAST__V1__ACTION__ACTION_RAISE_ATTEMPT);
    assert_int_equal(told.retry_after_ms, 1000);
    assert_int_equal(fact_of(&told), FACT(HOLDER));
    assert_string_equal(told.about->holder->incarnation, "1-100");
    holdfast__internal__v1__refusal__free_unpacked(refusal, NULL);
    arena_deinit(&arena);
}

static void facts_are_told_by_code(void **state)
{
    static const struct {
        Holdfast__V1__ErrorCode code;
        const char *value;
        unsigned fact;
    } cases[] = {
        { CODE(VERSION_CONFLICT), "18446744073709551615", FACT(VERSION) },
        { CODE(VERSION_CONFLICT), "18446744073709551616", FACT(_NOT_SET) },
        { CODE(VERSION_CONFLICT), "", FACT(_NOT_SET) },
        { CODE(ALREADY_REVERSED), "7", FACT(ENTRY) },
        { CODE(RESERVATION_CLOSED), "7", FACT(ENTRY) },
        { CODE(RESERVATION_CLOSED), "7x", FACT(_NOT_SET) },
        { CODE(ITEM_NOT_HELD), "0190-uid", FACT(ITEM) },
        { CODE(ITEM_NOT_HELD), "", FACT(_NOT_SET) },
        { CODE(SESSION_LOCKED), "7", FACT(_NOT_SET) },
        { CODE(NOT_FOUND), "7", FACT(_NOT_SET) },
        { CODE(INSUFFICIENT_FUNDS), "-7", FACT(_NOT_SET) }, /* Of before version 3. */
        { CODE(CAPACITY_FULL), "7", FACT(_NOT_SET) },
    };
    struct arena arena = { 0 };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Holdfast__Internal__V1__Refusal refusal = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;
        refusal.code = cases[i].code;
        refusal.value = text(cases[i].value);
        refusal.final = true;
        Holdfast__V1__ErrorDetail told = error_tell(&refusal, &arena);
        assert_int_equal(fact_of(&told), cases[i].fact);
        if (fact_of(&told) == FACT(VERSION))
            assert_true(told.about->version->current == UINT64_MAX);
        if (fact_of(&told) == FACT(ENTRY))
            assert_int_equal(told.about->entry->ledger_seq, 7);
        if (fact_of(&told) == FACT(ITEM))
            assert_string_equal(told.about->item->item_uid, "0190-uid");
    }
    arena_deinit(&arena);
}

static void stored_facts_are_told_as_they_are(void **state)
{
    Holdfast__Internal__V1__Refusal refusal = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;
    Holdfast__V1__ErrorDetail__Funds funds = HOLDFAST__V1__ERROR_DETAIL__FUNDS__INIT;
    Holdfast__V1__ErrorDetail__Capacity capacity = HOLDFAST__V1__ERROR_DETAIL__CAPACITY__INIT;
    struct arena arena = { 0 };
    (void)state;

    refusal.code = CODE(INSUFFICIENT_FUNDS);
    refusal.funds = &funds;
    Holdfast__V1__ErrorDetail told = error_tell(&refusal, &arena);
    assert_int_equal(fact_of(&told), FACT(FUNDS));
    assert_ptr_equal(told.about->funds, &funds);
    assert_int_equal(told.outcome, HOLDFAST__V1__OUTCOME__OUTCOME_NOT_APPLIED);
    refusal.code = CODE(CAPACITY_FULL);
    refusal.capacity = &capacity;
    told = error_tell(&refusal, &arena);
    assert_int_equal(fact_of(&told), FACT(CAPACITY));
    assert_ptr_equal(told.about->capacity, &capacity);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_of_before_is_told_with_its_holder),
        cmocka_unit_test(facts_are_told_by_code),
        cmocka_unit_test(stored_facts_are_told_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
