#include "node/rpc/fixture.h"

#include <string.h>

#include "holdfast/v1/inventory.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "runtime/base/check.h"

#define KIND(name) HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_##name

typedef Holdfast__Internal__V1__ItemHistoryRequest history_request;
typedef Holdfast__Internal__V1__ItemHistoryResponse history_response;

static history_response *history(struct fixture *f, char *uid, uint32_t after, uint32_t limit)
{
    history_request request = HOLDFAST__INTERNAL__V1__ITEM_HISTORY_REQUEST__INIT;

    request.item_uid = uid;
    request.after_step = after;
    request.limit = limit;
    return fixture_read(f, METHOD_ITEM_HISTORY, &request.base);
}

static char *mint(struct fixture *f, const char *op_id)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item };

    item.kind = (char *)"orb";
    request.player_id = (char *)"ann";
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(f, "system:match");
    request.reason = (char *)"prize";
    request.items = items;
    request.n_items = 1;
    Holdfast__V1__GrantResponse *response = fixture_mutate(f, METHOD_GRANT, &request.base);
    assert_non_null(response);
    return response->item_uids[0];
}

/* Returns the mail's id. */
static char *give(struct fixture *f, const char *from, const char *to, char *uid, const char *op_id)
{
    Holdfast__V1__TransferItemsRequest request = HOLDFAST__V1__TRANSFER_ITEMS_REQUEST__INIT;

    request.player_id = text_lend(from);
    request.to_player_id = text_lend(to);
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(f, "unheld");
    request.item_uids = &uid;
    request.n_item_uids = 1;
    Holdfast__V1__TransferItemsResponse *response =
        fixture_mutate(f, METHOD_TRANSFER_ITEMS, &request.base);
    assert_non_null(response);
    return response->mail_id;
}

static void claim(struct fixture *f, const char *player, char *mail_id, const char *op_id)
{
    Holdfast__V1__ClaimMailRequest request = HOLDFAST__V1__CLAIM_MAIL_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(f, "unheld");
    request.mail_ids = &mail_id;
    request.n_mail_ids = 1;
    assert_non_null(fixture_mutate(f, METHOD_CLAIM_MAIL, &request.base));
}

static void spend(struct fixture *f, const char *player, char *uid, const char *op_id)
{
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(f, "unheld");
    request.item_uids = &uid;
    request.n_item_uids = 1;
    assert_non_null(fixture_mutate(f, METHOD_SPEND, &request.base));
}

static void reverse(struct fixture *f, const char *player, const char *target, const char *op_id)
{
    Holdfast__V1__ReverseEntryRequest request = HOLDFAST__V1__REVERSE_ENTRY_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(f, "unheld");
    request.target_op_id = text_lend(target);
    request.reason = (char *)"support";
    assert_non_null(fixture_mutate(f, METHOD_REVERSE_ENTRY, &request.base));
}

static void text_keep(char ret_text[33], const char *text)
{
    memcpy(ret_text, text, 33);
}

/* One shard that has all players. */
static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);

    fixture_init_shard(f, 0, 1);
    *state = f;
    return 0;
}

static void every_holder_is_told_with_its_operation_in_order(void **state)
{
    static const struct {
        const char *player, *op_id, *to;
        int kind;
        bool held;
    } wanted[] = {
        { "ann", "claim:mint", "", KIND(GRANT), true },
        { "ann", "claim:send", "bob", KIND(TRANSFER), false },
        { "bob", "claim:take", "", KIND(CLAIM), true },
        { "bob", "claim:eat", "", KIND(SPEND), false },
        { "bob", "claim:undo", "", KIND(REVERSAL), true },
    };
    struct fixture *f = *state;
    char uid[33], mail[33];

    text_keep(uid, mint(f, "claim:mint"));
    text_keep(mail, give(f, "ann", "bob", uid, "claim:send"));
    claim(f, "bob", mail, "claim:take");
    spend(f, "bob", uid, "claim:eat");
    reverse(f, "bob", "claim:eat", "claim:undo");
    fixture_pass(f, 1000);
    fixture_restart(f);
    history_response *told = history(f, uid, 0, 200);
    assert_non_null(told);
    assert_int_equal(told->n_steps, ARRAY_SIZE(wanted));
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        const Holdfast__V1__TraceStep *step = told->steps[i];
        assert_int_equal(step->step, i + 1);
        assert_string_equal(step->player_id, wanted[i].player);
        assert_string_equal(step->op_id, wanted[i].op_id);
        assert_string_equal(step->to_player_id, wanted[i].to);
        assert_int_equal(step->kind, wanted[i].kind);
        assert_int_equal(step->held, wanted[i].held);
        assert_true(step->at_ms > 0);
        assert_true(step->ledger_seq > 0);
    }
    assert_string_equal(told->steps[0]->authority, "system:match");
    assert_string_equal(told->steps[0]->reason, "prize");
    assert_int_equal(fixture_items(f, "bob")->items[0]->step, 5);
}

static void pages_end_where_another_goes_on(void **state)
{
    struct fixture *f = *state;
    char uid[33];

    text_keep(uid, mint(f, "claim:mint"));
    spend(f, "ann", uid, "claim:eat");
    reverse(f, "ann", "claim:eat", "claim:undo");
    spend(f, "ann", uid, "claim:eat-2");
    history_response *page = history(f, uid, 0, 3);
    assert_int_equal(page->n_steps, 3);
    page = history(f, uid, 3, 3);
    assert_int_equal(page->n_steps, 1);
    assert_string_equal(page->steps[0]->op_id, "claim:eat-2");
    assert_int_equal(history(f, uid, 4, 3)->n_steps, 0);
    assert_int_equal(history(f, uid, UINT32_MAX, 3)->n_steps, 0);
}

static void what_is_on_another_shard_ends_a_page(void **state)
{
    struct fixture *f = *state;
    char uid[33], mail[33];

    text_keep(uid, mint(f, "claim:mint"));
    text_keep(mail, give(f, "ann", "bob", uid, "claim:send"));
    (void)mail;
    /* Step 3 does not exist yet: a request for what follows a later one gets nothing. */
    assert_int_equal(history(f, uid, 1, 200)->n_steps, 1);
    assert_int_equal(history(f, uid, 3, 200)->n_steps, 0);
}

static void unknown_items_have_no_steps_and_bad_requests_are_refused(void **state)
{
    struct fixture *f = *state;
    char unknown[] = "00000000000000010000000000090000";

    history_response *none = history(f, unknown, 0, 200);
    assert_non_null(none);
    assert_int_equal(none->n_steps, 0);
    assert_null(history(f, (char *)"orb", 0, 200));
    assert_string_equal(f->error->field, "item_uid");
    assert_null(history(f, unknown, 0, 0));
    assert_string_equal(f->error->field, "limit");
    assert_null(history(f, unknown, 0, 201));
    assert_string_equal(f->error->field, "limit");
}

#define TRACE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(every_holder_is_told_with_its_operation_in_order),
        TRACE_TEST(pages_end_where_another_goes_on),
        TRACE_TEST(what_is_on_another_shard_ends_a_page),
        TRACE_TEST(unknown_items_have_no_steps_and_bad_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
