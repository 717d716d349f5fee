#include "node/rpc/fixture.h"

#include <string.h>

#include "runtime/base/check.h"

static Holdfast__V1__GrantResponse *grant(struct fixture *f, const char *op_id, const char *by,
                                          int64_t gold, size_t items)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *specs[] = { &item, &item };

    amount.currency = (char *)"gold";
    amount.amount = gold;
    item.kind = (char *)"sword";
    request.player_id = (char *)"ann";
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(f, by);
    request.currencies = amounts;
    request.n_currencies = gold > 0;
    request.items = specs;
    request.n_items = items;
    Holdfast__V1__GrantResponse *response = fixture_mutate(f, METHOD_GRANT, &request.base);
    assert_non_null(response);
    return response;
}

static Holdfast__V1__ReverseEntryRequest reverse_of(struct fixture *f, const char *target)
{
    Holdfast__V1__ReverseEntryRequest request = HOLDFAST__V1__REVERSE_ENTRY_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.target_op_id = text_lend(target);
    request.reason = (char *)"chargeback";
    return request;
}

static Holdfast__V1__ReverseEntryResponse *reverse(struct fixture *f, const char *target)
{
    Holdfast__V1__ReverseEntryRequest request = reverse_of(f, target);
    return fixture_mutate(f, METHOD_REVERSE_ENTRY, &request.base);
}

static char *spend(struct fixture *f, int64_t gold)
{
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };

    amount.currency = (char *)"gold";
    amount.amount = gold;
    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    assert_non_null(fixture_mutate(f, METHOD_SPEND, &request.base));
    return request.op_id;
}

static char *spend_item(struct fixture *f, char *uid)
{
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;
    char *uids[] = { uid };

    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.item_uids = uids;
    request.n_item_uids = 1;
    assert_non_null(fixture_mutate(f, METHOD_SPEND, &request.base));
    return request.op_id;
}

static Holdfast__V1__LedgerEntry *newest_entry(struct fixture *f)
{
    Holdfast__V1__ListEntriesRequest request = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;

    request.player_id = (char *)"ann";
    Holdfast__V1__ListEntriesResponse *page = fixture_read(f, METHOD_LIST_ENTRIES, &request.base);
    return page->entries[0];
}

static void a_grant_is_taken_back_once_and_both_entries_stand(void **state)
{
    struct fixture *f = *state;

    grant(f, "receipt:1", "system:payments", 30, 2);
    grant(f, "claim:1", "unheld", 5, 0);
    fixture_restart(f);
    Holdfast__V1__ReverseEntryResponse *response = reverse(f, "receipt:1");
    assert_non_null(response);
    assert_int_equal(response->reversed_seq, 1);
    assert_int_equal(response->ledger_seq, 3);
    assert_int_equal(response->balances[0]->amount, 5);
    assert_int_equal(fixture_items(f, "ann")->total, 0);
    Holdfast__V1__LedgerEntry *entry = newest_entry(f);
    assert_int_equal(entry->kind, HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_REVERSAL);
    assert_int_equal(entry->refers_to, 1);
    assert_int_equal(entry->changes[0]->amount, -30);
    assert_int_equal(entry->n_items, 2);
    assert_true(entry->items_taken);
    assert_string_equal(entry->reason, "chargeback");
    fixture_restart(f);
    assert_null(reverse(f, "receipt:1"));
    assert_int_equal(f->error->code, ERROR(ALREADY_REVERSED));
    assert_string_equal(f->error->value, "3");
    assert_true(f->error->final);
    assert_int_equal(fixture_balance(f, "ann", "gold"), 5);
}

static void what_was_spent_comes_back_as_it_was(void **state)
{
    struct fixture *f = *state;
    char *uid = grant(f, "claim:1", "unheld", 30, 1)->item_uids[0];

    fixture_pass(f, 5000);
    char *spent = spend(f, 12);
    char *item = spend_item(f, uid);
    fixture_pass(f, 5000);
    assert_non_null(reverse(f, spent));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 30);
    assert_int_equal(fixture_items(f, "ann")->total, 0);
    assert_non_null(reverse(f, item));
    assert_false(newest_entry(f)->items_taken);
    Holdfast__V1__ListItemsResponse *page = fixture_items(f, "ann");
    assert_int_equal(page->total, 1);
    assert_string_equal(page->items[0]->uid, uid);
    assert_int_equal(page->items[0]->minted_at_ms, FIXTURE_START_MS);
    /* The same item can go the same way again. */
    item = spend_item(f, uid);
    assert_non_null(reverse(f, item));
    assert_int_equal(fixture_items(f, "ann")->total, 1);
}

static void a_reversal_never_overdraws_unless_debts_are_declared(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount debt = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &debt };
    char *uid = grant(f, "claim:1", "unheld", 30, 1)->item_uids[0];

    spend(f, 1);
    assert_null(reverse(f, "claim:1"));
    assert_int_equal(f->error->code, ERROR(INSUFFICIENT_FUNDS));
    assert_int_equal(fixture_items(f, "ann")->total, 1);
    grant(f, "claim:2", "unheld", 1, 0);
    spend_item(f, uid);
    assert_null(reverse(f, "claim:1"));
    assert_int_equal(f->error->code, ERROR(ITEM_NOT_HELD));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 30);
    debt.currency = (char *)"debt";
    debt.amount = 60;
    request.player_id = (char *)"ann";
    request.authority = fixture_authority(f, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    request.op_id = (char *)"claim:debt";
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    Holdfast__V1__SpendRequest spent = HOLDFAST__V1__SPEND_REQUEST__INIT;
    spent.player_id = (char *)"ann";
    spent.authority = fixture_authority(f, "unheld");
    spent.op_id = fixture_op_id(f);
    spent.currencies = amounts;
    spent.n_currencies = 1;
    debt.amount = 40;
    assert_non_null(fixture_mutate(f, METHOD_SPEND, &spent.base));
    assert_non_null(reverse(f, "claim:debt"));
    assert_int_equal(fixture_balance(f, "ann", "debt"), -40);
}

static void what_cannot_be_reversed_is_said_precisely(void **state)
{
    struct fixture *f = *state;
    char *token =
        fixture_start(f, "ann", SERVER_A, HOLDFAST__V1__START_MODE__START_MODE_FAIL, "claim:start");

    assert_non_null(token);
    assert_non_null(fixture_end(f, "ann", token));
    assert_null(reverse(f, "claim:none"));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    assert_string_equal(f->error->field, "target_op_id");
    assert_null(reverse(f, "claim:start"));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    grant(f, "claim:1", "unheld", 10, 0);
    Holdfast__V1__ReverseEntryRequest request = reverse_of(f, "claim:1");
    request.op_id = (char *)"admin:undo";
    assert_non_null(fixture_mutate(f, METHOD_REVERSE_ENTRY, &request.base));
    assert_null(reverse(f, "admin:undo"));
    assert_int_equal(f->error->code, ERROR(NOT_REVERSIBLE));
    assert_string_equal(f->error->value, "REVERSAL");
    assert_non_null(strstr(f->error->message, "again, under a new op_id"));
    request = reverse_of(f, "claim:1");
    request.target_seq = 99;
    assert_null(fixture_mutate(f, METHOD_REVERSE_ENTRY, &request.base));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    assert_string_equal(f->error->field, "target_seq");
    request.op_id = fixture_op_id(f);
    request.target_seq = 2;
    assert_null(fixture_mutate(f, METHOD_REVERSE_ENTRY, &request.base));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    assert_string_equal(f->error->value, "admin:undo");
}

static void bad_requests_are_refused_before_the_log(void **state)
{
    struct fixture *f = *state;
    static const char *const wrong[] = { "", "x",
                                         "claim:", "7d444840-9dc0-41d1-b245-5ffdce74fad2" };
    Holdfast__V1__ReverseEntryRequest request;

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        request = reverse_of(f, wrong[i]);
        assert_null(fixture_mutate(f, METHOD_REVERSE_ENTRY, &request.base));
        assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
        assert_string_equal(f->error->field, "target_op_id");
    }
    request = reverse_of(f, "claim:1");
    request.reason = (char *)"";
    assert_null(fixture_mutate(f, METHOD_REVERSE_ENTRY, &request.base));
    assert_string_equal(f->error->field, "reason");
    assert_false(f->recorded);
}

static void system_takes_back_only_what_system_gave(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ReverseEntryRequest request;

    grant(f, "claim:1", "unheld", 20, 0);
    grant(f, "receipt:1", "system:payments", 20, 0);
    char *spent = spend(f, 15);
    request = reverse_of(f, "claim:1");
    request.authority = fixture_authority(f, "system:payments");
    assert_null(fixture_mutate(f, METHOD_REVERSE_ENTRY, &request.base));
    assert_int_equal(f->error->code, ERROR(PERMISSION_DENIED));
    request = reverse_of(f, spent);
    request.authority = fixture_authority(f, "system:moderation");
    assert_non_null(fixture_mutate(f, METHOD_REVERSE_ENTRY, &request.base));
    request = reverse_of(f, "receipt:1");
    request.authority = fixture_authority(f, "system:payments");
    assert_non_null(fixture_mutate(f, METHOD_REVERSE_ENTRY, &request.base));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 20);
}

/* Outcomes under UUIDs are forgotten after a day, ledger entries never. */
static void
an_entry_whose_outcome_is_forgotten_is_reversed_while_it_is_among_the_newest(void **state)
{
    struct fixture *f = *state;
    char id[UUID_TEXT_SIZE];

    memcpy(id, fixture_op_id(f), sizeof id);
    grant(f, id, "unheld", 20, 0);
    fixture_pass(f, 25u * 3600u * 1000u);
    for (int i = 1; i < 64; i++)
        grant(f, fixture_op_id(f), "unheld", 1, 0);
    fixture_restart(f);
    assert_non_null(reverse(f, id));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 63);
}

static void an_older_entry_whose_outcome_is_forgotten_is_reversed_by_its_seq(void **state)
{
    struct fixture *f = *state;
    char id[UUID_TEXT_SIZE];

    memcpy(id, fixture_op_id(f), sizeof id);
    grant(f, id, "unheld", 20, 0);
    fixture_pass(f, 25u * 3600u * 1000u);
    for (int i = 0; i < 64; i++)
        grant(f, fixture_op_id(f), "unheld", 1, 0);
    fixture_restart(f);
    assert_null(reverse(f, id));
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    assert_string_equal(f->error->field, "target_seq");
    assert_non_null(strstr(f->error->message, id));
    Holdfast__V1__ReverseEntryRequest request = reverse_of(f, id);
    request.target_seq = 1;
    assert_non_null(fixture_mutate(f, METHOD_REVERSE_ENTRY, &request.base));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 64);
}

/* `key:` ids are used again after a day. What is known of the last use is what is meant. */
static void a_refused_operation_has_no_entry_of_an_earlier_life(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };

    grant(f, "key:quest", "unheld", 20, 0);
    fixture_pass(f, 25u * 3600u * 1000u);
    for (int i = 0; i < 20; i++)
        grant(f, fixture_op_id(f), "unheld", 1, 0);
    fixture_restart(f);
    amount.currency = (char *)"gold";
    amount.amount = 1000;
    request.player_id = (char *)"ann";
    request.op_id = (char *)"key:quest";
    request.authority = fixture_authority(f, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    assert_null(fixture_mutate(f, METHOD_SPEND, &request.base));
    assert_int_equal(f->error->code, ERROR(INSUFFICIENT_FUNDS));
    assert_null(reverse(f, "key:quest"));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_grant_is_taken_back_once_and_both_entries_stand),
        FIXTURE_TEST(what_was_spent_comes_back_as_it_was),
        FIXTURE_TEST(a_reversal_never_overdraws_unless_debts_are_declared),
        FIXTURE_TEST(what_cannot_be_reversed_is_said_precisely),
        FIXTURE_TEST(bad_requests_are_refused_before_the_log),
        FIXTURE_TEST(system_takes_back_only_what_system_gave),
        FIXTURE_TEST(an_entry_whose_outcome_is_forgotten_is_reversed_while_it_is_among_the_newest),
        FIXTURE_TEST(an_older_entry_whose_outcome_is_forgotten_is_reversed_by_its_seq),
        FIXTURE_TEST(a_refused_operation_has_no_entry_of_an_earlier_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
