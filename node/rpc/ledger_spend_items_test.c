#include "node/rpc/fixture.h"

#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/goods/ledger.h"
#include "runtime/base/check.h"

static char *mint(struct fixture *f, const char *player)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item };

    item.kind = (char *)"orb";
    item.attributes = (char *)"{\"level\":2}";
    request.player_id = text_lend(player);
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.items = items;
    request.n_items = 1;
    Holdfast__V1__GrantResponse *response = fixture_mutate(f, METHOD_GRANT, &request.base);
    assert_non_null(response);
    return response->item_uids[0];
}

static Holdfast__V1__SpendRequest spend_of(struct fixture *f, size_t count, char **uids)
{
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;

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
    struct fixture_sums sums;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    char *uids[] = { mint(f, "ann"), mint(f, "ann"), mint(f, "ann") };

    assert_non_null(fixture_grant(f, "ann", "unheld", 10));
    fixture_pass(f, 1000);
    fixture_restart(f);
    Holdfast__V1__SpendRequest request = spend_of(f, 2, uids);
    gold.currency = (char *)"gold";
    gold.amount = 4;
    request.currencies = amounts;
    request.n_currencies = 1;
    Holdfast__V1__SpendResponse *response = fixture_mutate(f, METHOD_SPEND, &request.base);
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
    assert_int_equal(page->entries[0]->kind, HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_SPEND);
    assert_true(page->entries[0]->items_taken);
    assert_int_equal(page->entries[0]->n_items, 2);
    assert_string_equal(page->entries[0]->items[0]->uid, uids[0]);
    assert_int_equal(page->entries[0]->items[0]->minted_at_ms, FIXTURE_START_MS);
    assert_int_equal(page->entries[0]->items[0]->step, 2);
    assert_int_equal(page->entries[0]->changes[0]->amount, -4);
    fixture_audit(f, "ann", "gold", &sums);
    assert_int_equal(sums.spent, -4);
    assert_int_equal(sums.items, 1);
    /* Again: the stored answer. */
    response = fixture_mutate(f, METHOD_SPEND, &request.base);
    assert_true(response->write->duplicate);
    assert_int_equal(fixture_items(f, "ann")->total, 1);
}

static void an_item_that_is_not_held_stops_all_of_it(void **state)
{
    struct fixture *f = *state;
    char *uids[] = { mint(f, "ann"), mint(f, "bob") };

    fixture_restart(f);
    Holdfast__V1__SpendRequest request = spend_of(f, 2, uids);
    assert_null(fixture_mutate(f, METHOD_SPEND, &request.base));
    assert_int_equal(f->error->code, ERROR(ITEM_NOT_HELD));
    assert_string_equal(f->error->field, "item_uids[1]");
    assert_string_equal(f->error->value, uids[1]);
    assert_true(f->error->final);
    assert_int_equal(fixture_items(f, "ann")->total, 1);
    assert_int_equal(fixture_items(f, "bob")->total, 1);
    /* Twice is once too often. */
    request = spend_of(f, 1, uids);
    assert_non_null(fixture_mutate(f, METHOD_SPEND, &request.base));
    request = spend_of(f, 1, uids);
    assert_null(fixture_mutate(f, METHOD_SPEND, &request.base));
    assert_int_equal(f->error->code, ERROR(ITEM_NOT_HELD));
    assert_int_equal(fixture_items(f, "ann")->total, 0);
}

static void funds_that_lack_leave_the_items_where_they_are(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    char *uids[] = { mint(f, "ann") };
    Holdfast__V1__SpendRequest request = spend_of(f, 1, uids);

    gold.currency = (char *)"gold";
    gold.amount = 1;
    request.currencies = amounts;
    request.n_currencies = 1;
    assert_null(fixture_mutate(f, METHOD_SPEND, &request.base));
    assert_int_equal(f->error->code, ERROR(INSUFFICIENT_FUNDS));
    assert_int_equal(fixture_items(f, "ann")->total, 1);
}

/* An owner of an earlier version logged the field as it came, without a look. */
static void items_that_no_owner_checked_are_left_alone(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    char *uid = mint(f, "ann"), *twice[] = { uid, uid }, *wrong[] = { (char *)"x" };
    char *many[LEDGER_ITEMS_MAX + 1];
    const struct {
        size_t count;
        char **uids;
    } cases[] = { { 2, twice }, { 1, wrong }, { ARRAY_SIZE(many), many } };

    for (size_t i = 0; i < ARRAY_SIZE(many); i++)
        many[i] = uid;
    assert_non_null(fixture_grant(f, "ann", "unheld", 10));
    gold.currency = (char *)"gold";
    gold.amount = 2;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Holdfast__V1__SpendRequest request = spend_of(f, cases[i].count, cases[i].uids);
        struct op op = { .method = METHOD_SPEND, .entity = SLICE_LITERAL("player:ann") };
        struct buf body = { 0 };
        const char *why;
        request.currencies = amounts;
        request.n_currencies = 1;
        request.authority = (char *)"";
        op.authority.kind = AUTHORITY_UNHELD;
        op.request = arena_pack(&f->arena, &request.base);
        assert_int_equal(op_id_parse(slice_from_text(request.op_id), &op.id, &why), ERR_OK);
        op_encode(&op, &body);
        fixture_commit(f, buf_slice(&body));
        assert_int_equal(f->outcome.kind, OUTCOME_COMMITTED);
        assert_int_equal(fixture_balance(f, "ann", "gold"), 8 - 2 * (int)i);
        assert_int_equal(fixture_items(f, "ann")->total, 1);
        buf_deinit(&body);
    }
}

static void wrong_requests_are_refused_before_the_log(void **state)
{
    struct fixture *f = *state;
    char *uid = mint(f, "ann");
    char *twice[] = { uid, uid };
    static const char *const wrong[] = { "", "x", "00", "0000000000000000000000000000000G",
                                         "ABCDEFABCDEFABCDEFABCDEFABCDEFAB" };
    char *many[LEDGER_ITEMS_MAX + 1];
    Holdfast__V1__SpendRequest request = spend_of(f, 0, NULL);

    assert_null(fixture_mutate(f, METHOD_SPEND, &request.base));
    assert_string_equal(f->error->field, "currencies");
    assert_string_equal(f->error->limit, "at least one currency or item");
    request = spend_of(f, 2, twice);
    assert_null(fixture_mutate(f, METHOD_SPEND, &request.base));
    assert_string_equal(f->error->field, "item_uids[1]");
    assert_string_equal(f->error->limit, "each item once");
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        char *one[] = { text_lend(wrong[i]) };
        request = spend_of(f, 1, one);
        assert_null(fixture_mutate(f, METHOD_SPEND, &request.base));
        assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
        assert_string_equal(f->error->field, "item_uids[0]");
        assert_false(f->error->final);
    }
    for (size_t i = 0; i < ARRAY_SIZE(many); i++)
        many[i] = uid;
    request = spend_of(f, ARRAY_SIZE(many), many);
    assert_null(fixture_mutate(f, METHOD_SPEND, &request.base));
    assert_string_equal(f->error->limit, "at most 64");
    request = spend_of(f, 1, twice);
    request.authority = fixture_authority(f, "system:mail");
    assert_null(fixture_mutate(f, METHOD_SPEND, &request.base));
    assert_int_equal(f->error->code, ERROR(PERMISSION_DENIED));
    assert_int_equal(fixture_items(f, "ann")->total, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(items_and_currencies_leave_in_one_entry_and_the_ledger_says_so),
        FIXTURE_TEST(an_item_that_is_not_held_stops_all_of_it),
        FIXTURE_TEST(funds_that_lack_leave_the_items_where_they_are),
        FIXTURE_TEST(items_that_no_owner_checked_are_left_alone),
        FIXTURE_TEST(wrong_requests_are_refused_before_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
