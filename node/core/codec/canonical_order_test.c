#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "node/core/codec/canonical_order.h"

static char gold[] = "gold", gems[] = "gems", debt[] = "debt", quests[] = "quests",
            progress[] = "progress";

static void amount_init(Holdfast__V1__CurrencyAmount *amount, char *currency, int64_t number)
{
    holdfast__v1__currency_amount__init(amount);
    amount->currency = currency;
    amount->amount = number;
}

static void currencies_are_sorted_and_items_are_not(void **state)
{
    Holdfast__V1__GrantRequest grant = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amounts[4];
    Holdfast__V1__CurrencyAmount *list[] = { &amounts[0], &amounts[1], &amounts[2], &amounts[3] };
    Holdfast__V1__ItemSpec sword = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec axe = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &sword, &axe };
    (void)state;

    amount_init(&amounts[0], gold, 1);
    amount_init(&amounts[1], gems, 2);
    amount_init(&amounts[2], gold, 3); /* It will be refused; but its place is the same. */
    amount_init(&amounts[3], debt, 4);
    grant.currencies = list;
    grant.n_currencies = 4;
    sword.kind = (char *)"sword";
    axe.kind = (char *)"axe";
    grant.items = items;
    grant.n_items = 2;
    canonical_order(&grant.base);
    assert_int_equal(list[0]->amount, 4);
    assert_int_equal(list[1]->amount, 2);
    assert_int_equal(list[2]->amount, 1);
    assert_int_equal(list[3]->amount, 3);
    assert_string_equal(items[0]->kind, "sword");
}

static void edits_are_sorted_by_name(void **state)
{
    Holdfast__V1__EndSessionRequest end = HOLDFAST__V1__END_SESSION_REQUEST__INIT;
    Holdfast__V1__SectionEdit one = HOLDFAST__V1__SECTION_EDIT__INIT;
    Holdfast__V1__SectionEdit two = HOLDFAST__V1__SECTION_EDIT__INIT;
    Holdfast__V1__SectionEdit *edits[] = { &one, &two };
    (void)state;

    one.name = quests;
    two.name = progress;
    end.edits = edits;
    end.n_edits = 2;
    canonical_order(&end.base);
    assert_ptr_equal(edits[0], &two);
    assert_ptr_equal(edits[1], &one);
}

/* The member of a oneof that is set, and no other, which shares its memory. */
static void what_is_nested_is_sorted_and_changes_keep_their_order(void **state)
{
    Holdfast__V1__ExecuteTransactionRequest execute =
        HOLDFAST__V1__EXECUTE_TRANSACTION_REQUEST__INIT;
    Holdfast__V1__TransactionChange changes[2];
    Holdfast__V1__TransactionChange *list[] = { &changes[0], &changes[1] };
    Holdfast__V1__TransactionMove move = HOLDFAST__V1__TRANSACTION_MOVE__INIT;
    Holdfast__V1__TransactionSpend spend = HOLDFAST__V1__TRANSACTION_SPEND__INIT;
    Holdfast__V1__CurrencyAmount amounts[3];
    Holdfast__V1__CurrencyAmount *moved[] = { &amounts[0], &amounts[1] };
    Holdfast__V1__CurrencyAmount *taken[] = { &amounts[2] };
    (void)state;

    holdfast__v1__transaction_change__init(&changes[0]);
    holdfast__v1__transaction_change__init(&changes[1]);
    amount_init(&amounts[0], gold, 1);
    amount_init(&amounts[1], gems, 2);
    amount_init(&amounts[2], debt, 3);
    move.currencies = moved;
    move.n_currencies = 2;
    spend.currencies = taken;
    spend.n_currencies = 1;
    changes[0].change_case = HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_MOVE;
    changes[0].move = &move;
    changes[1].change_case = HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_SPEND;
    changes[1].spend = &spend;
    execute.changes = list;
    execute.n_changes = 2;
    canonical_order(&execute.base);
    assert_ptr_equal(list[0], &changes[0]);
    assert_int_equal(moved[0]->amount, 2);
    assert_int_equal(moved[1]->amount, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(currencies_are_sorted_and_items_are_not),
        cmocka_unit_test(edits_are_sorted_by_name),
        cmocka_unit_test(what_is_nested_is_sorted_and_changes_keep_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
