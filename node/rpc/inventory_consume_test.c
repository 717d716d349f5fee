#include "node/rpc/fixture.h"

#include <string.h>

#include "node/core/goods/ledger.h"
#include "runtime/base/check.h"

static char *mint(struct fixture *f, const char *player)
{
    Holdfast__V1__MintRequest request = HOLDFAST__V1__MINT_REQUEST__INIT;
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item };

    item.kind = (char *)"orb";
    item.attributes = (char *)"{\"level\":2}";
    request.player_id = (char *)(uintptr_t)player;
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.items = items;
    request.n_items = 1;
    Holdfast__V1__MintResponse *response = fixture_mutate(f, METHOD_MINT, &request.base);
    assert_non_null(response);
    return response->items[0]->uid;
}

static Holdfast__V1__ConsumeRequest consume_of(struct fixture *f, size_t count, char **uids)
{
    Holdfast__V1__ConsumeRequest request = HOLDFAST__V1__CONSUME_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.reason = (char *)"crafting";
    request.item_uids = uids;
    request.n_item_uids = count;
    return request;
}

static void items_and_currencies_leave_in_one_entry_and_the_ledger_says_so(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ListEntriesRequest list = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    char *uids[] = { mint(f, "ann"), mint(f, "ann"), mint(f, "ann") };

    assert_non_null(fixture_grant(f, "ann", "unheld", 10));
    fixture_pass(f, 1000);
    fixture_restart(f);
    Holdfast__V1__ConsumeRequest request = consume_of(f, 2, uids);
    gold.currency = (char *)"gold";
    gold.amount = 4;
    request.currencies = amounts;
    request.n_currencies = 1;
    Holdfast__V1__ConsumeResponse *response = fixture_mutate(f, METHOD_CONSUME, &request.base);
    assert_non_null(response);
    assert_int_equal(response->ledger_seq, 5);
    assert_int_equal(response->n_items, 2);
    assert_string_equal(response->items[1]->uid, uids[1]);
    assert_string_equal(response->items[1]->attributes, "{\"level\":2}");
    assert_int_equal(response->balances[0]->amount, 6);
    assert_int_equal(fixture_items(f, "ann")->total, 1);
    list.player_id = (char *)"ann";
    list.page_size = 1;
    Holdfast__V1__ListEntriesResponse *page = fixture_read(f, METHOD_LIST_ENTRIES, &list.base);
    assert_int_equal(page->entries[0]->kind, HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_CONSUME);
    assert_true(page->entries[0]->items_taken);
    assert_int_equal(page->entries[0]->n_items, 2);
    assert_string_equal(page->entries[0]->items[0]->uid, uids[0]);
    assert_int_equal(page->entries[0]->items[0]->minted_at_ms, FIXTURE_START_MS);
    assert_int_equal(page->entries[0]->changes[0]->amount, -4);
    /* Again: the stored answer. */
    response = fixture_mutate(f, METHOD_CONSUME, &request.base);
    assert_true(response->write->duplicate);
    assert_int_equal(fixture_items(f, "ann")->total, 1);
}

static void an_item_that_is_not_held_stops_all_of_it(void **state)
{
    struct fixture *f = *state;
    char *uids[] = { mint(f, "ann"), mint(f, "bob") };

    fixture_restart(f);
    Holdfast__V1__ConsumeRequest request = consume_of(f, 2, uids);
    assert_null(fixture_mutate(f, METHOD_CONSUME, &request.base));
    assert_int_equal(f->error->code, ERROR(ITEM_NOT_HELD));
    assert_string_equal(f->error->field, "item_uids[1]");
    assert_string_equal(f->error->value, uids[1]);
    assert_true(f->error->final);
    assert_int_equal(fixture_items(f, "ann")->total, 1);
    assert_int_equal(fixture_items(f, "bob")->total, 1);
    /* Twice is once too often. */
    request = consume_of(f, 1, uids);
    assert_non_null(fixture_mutate(f, METHOD_CONSUME, &request.base));
    request = consume_of(f, 1, uids);
    assert_null(fixture_mutate(f, METHOD_CONSUME, &request.base));
    assert_int_equal(f->error->code, ERROR(ITEM_NOT_HELD));
    assert_int_equal(fixture_items(f, "ann")->total, 0);
}

static void funds_that_lack_leave_the_items_where_they_are(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    char *uids[] = { mint(f, "ann") };
    Holdfast__V1__ConsumeRequest request = consume_of(f, 1, uids);

    gold.currency = (char *)"gold";
    gold.amount = 1;
    request.currencies = amounts;
    request.n_currencies = 1;
    assert_null(fixture_mutate(f, METHOD_CONSUME, &request.base));
    assert_int_equal(f->error->code, ERROR(INSUFFICIENT_FUNDS));
    assert_int_equal(fixture_items(f, "ann")->total, 1);
}

static void wrong_requests_are_refused_before_the_log(void **state)
{
    struct fixture *f = *state;
    char *uid = mint(f, "ann");
    char *twice[] = { uid, uid };
    static const char *const wrong[] = { "", "x", "00", "0000000000000000000000000000000G",
                                         "ABCDEFABCDEFABCDEFABCDEFABCDEFAB" };
    char *many[LEDGER_ITEMS_MAX + 1];
    Holdfast__V1__ConsumeRequest request = consume_of(f, 0, NULL);

    assert_null(fixture_mutate(f, METHOD_CONSUME, &request.base));
    assert_string_equal(f->error->field, "item_uids");
    request = consume_of(f, 2, twice);
    assert_null(fixture_mutate(f, METHOD_CONSUME, &request.base));
    assert_string_equal(f->error->field, "item_uids[1]");
    assert_string_equal(f->error->limit, "each item once");
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        char *one[] = { (char *)(uintptr_t)wrong[i] };
        request = consume_of(f, 1, one);
        assert_null(fixture_mutate(f, METHOD_CONSUME, &request.base));
        assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
        assert_string_equal(f->error->field, "item_uids[0]");
        assert_false(f->error->final);
    }
    for (size_t i = 0; i < ARRAY_SIZE(many); i++)
        many[i] = uid;
    request = consume_of(f, ARRAY_SIZE(many), many);
    assert_null(fixture_mutate(f, METHOD_CONSUME, &request.base));
    assert_string_equal(f->error->limit, "at most 64");
    request = consume_of(f, 1, twice);
    request.authority = fixture_authority(f, "system:mail");
    assert_null(fixture_mutate(f, METHOD_CONSUME, &request.base));
    assert_int_equal(f->error->code, ERROR(PERMISSION_DENIED));
    assert_int_equal(fixture_items(f, "ann")->total, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(items_and_currencies_leave_in_one_entry_and_the_ledger_says_so),
        FIXTURE_TEST(an_item_that_is_not_held_stops_all_of_it),
        FIXTURE_TEST(funds_that_lack_leave_the_items_where_they_are),
        FIXTURE_TEST(wrong_requests_are_refused_before_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
