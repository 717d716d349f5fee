#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "router/core/form_fixture.h"
#include "router/core/scatter.h"
#include "runtime/base/check.h"

typedef Holdfast__Internal__V1__DeliverToPlayersRequest deliver_all;
typedef Holdfast__Internal__V1__SwapGoodsRequest swap_goods;

static char *text(const char *constant)
{
    return text_lend(constant);
}

static void what_has_one_form_stays_as_it_is(void **state)
{
    Holdfast__V1__SendMailRequest mail = HOLDFAST__V1__SEND_MAIL_REQUEST__INIT;

    assert_ptr_equal(form_make(*state, METHOD_SEND_MAIL, &mail.base), &mail.base);
}

static void both_sides_of_a_swap_stand_in_one_message(void **state)
{
    Holdfast__V1__SwapRequest swap = HOLDFAST__V1__SWAP_REQUEST__INIT;
    Holdfast__V1__SwapSide a = HOLDFAST__V1__SWAP_SIDE__INIT, b = HOLDFAST__V1__SWAP_SIDE__INIT;
    Holdfast__V1__Goods item = HOLDFAST__V1__GOODS__INIT, gems = HOLDFAST__V1__GOODS__INIT;
    Holdfast__V1__CurrencyAmount five = HOLDFAST__V1__CURRENCY_AMOUNT__INIT, *amounts[] = { &five };
    char *uids[] = { text("00010000000000010000000000010000") };

    item.item_uids = uids;
    item.n_item_uids = 1;
    gems.currencies = amounts;
    gems.n_currencies = 1;
    a.player_id = text("ann");
    a.authority = text("session:1-2-3");
    a.gives = &item;
    b.player_id = text("bob");
    b.authority = text("unheld");
    b.gives = &gems;
    swap.op_id = text("claim:a");
    swap.attempt = 2;
    swap.a = &a;
    swap.b = &b;
    swap.reason = text("trade");
    const swap_goods *flat = (const swap_goods *)form_make(*state, METHOD_SWAP, &swap.base);
    assert_ptr_equal(flat->base.descriptor, method_find(METHOD_SWAP_GOODS)->request);
    assert_string_equal(flat->player_id, "ann");
    assert_string_equal(flat->op_id, "claim:a");
    assert_int_equal(flat->attempt, 2);
    assert_string_equal(flat->authority, "session:1-2-3");
    assert_string_equal(flat->other_player_id, "bob");
    assert_string_equal(flat->other_authority, "unheld");
    assert_int_equal(flat->n_currencies, 0);
    assert_int_equal(flat->n_item_uids, 1);
    assert_ptr_equal(flat->item_uids[0], uids[0]);
    assert_int_equal(flat->n_other_currencies, 1);
    assert_ptr_equal(flat->other_currencies[0], &five);
    assert_int_equal(flat->n_other_item_uids, 0);
    assert_string_equal(flat->reason, "trade");
}

static void a_side_that_is_left_out_is_empty(void **state)
{
    Holdfast__V1__SwapRequest swap = HOLDFAST__V1__SWAP_REQUEST__INIT;

    const swap_goods *flat = (const swap_goods *)form_make(*state, METHOD_SWAP, &swap.base);
    assert_string_equal(flat->player_id, "");
    assert_string_equal(flat->other_player_id, "");
    assert_int_equal(flat->n_currencies + flat->n_other_currencies, 0);
}

static void a_delivery_is_a_request_for_each_recipient(void **state)
{
    Holdfast__V1__DeliverMailRequest mail = HOLDFAST__V1__DELIVER_MAIL_REQUEST__INIT;
    Holdfast__V1__ItemSpec crate = HOLDFAST__V1__ITEM_SPEC__INIT, *items[] = { &crate };
    char *players[] = { text("bob"), text("cat") };

    mail.to_player_ids = players;
    mail.n_to_player_ids = 2;
    mail.op_id = text("claim:season-3");
    mail.attempt = 1;
    mail.authority = text("system:mail");
    mail.items = items;
    mail.n_items = 1;
    mail.text = text("gl");
    mail.reason = text("season");
    const deliver_all *all =
        (const deliver_all *)form_make(*state, METHOD_DELIVER_MAIL, &mail.base);
    assert_int_equal(all->n_requests, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_ptr_equal(all->requests[i]->base.descriptor,
                         method_find(METHOD_DELIVER_TO_PLAYER)->request);
        assert_string_equal(all->requests[i]->player_id, players[i]);
        assert_string_equal(all->requests[i]->op_id, "claim:season-3");
        assert_int_equal(all->requests[i]->attempt, 1);
        assert_string_equal(all->requests[i]->authority, "system:mail");
        assert_ptr_equal(all->requests[i]->items[0], &crate);
        assert_string_equal(all->requests[i]->text, "gl");
        assert_string_equal(all->requests[i]->reason, "season");
    }
}

static void a_delivery_has_1_to_1000_recipients_and_is_not_large(void **state)
{
    Holdfast__V1__DeliverMailRequest mail = HOLDFAST__V1__DELIVER_MAIL_REQUEST__INIT;
    struct form_fixture *f = *state;
    static char large[9000];
    char *players[1001];

    for (size_t i = 0; i < ARRAY_SIZE(players); i++)
        players[i] = arena_printf(&f->arena, "p%zu", i);
    mail.to_player_ids = players;
    assert_null(form_make(f, METHOD_DELIVER_MAIL, &mail.base));
    assert_string_equal(f->detail.field, "to_player_ids");
    assert_string_equal(f->detail.limit, "1 to 1000");
    assert_string_equal(f->detail.value, "0");
    mail.n_to_player_ids = 1001;
    assert_null(form_make(f, METHOD_DELIVER_MAIL, &mail.base));
    assert_string_equal(f->detail.value, "1001");
    mail.n_to_player_ids = 1000;
    assert_non_null(form_make(f, METHOD_DELIVER_MAIL, &mail.base));
    memset(large, 'x', sizeof large - 1);
    mail.text = large;
    assert_null(form_make(f, METHOD_DELIVER_MAIL, &mail.base));
    assert_string_equal(f->detail.limit, "at most 8192 bytes");
}

static void each_recipient_is_named_once(void **state)
{
    Holdfast__V1__DeliverMailRequest mail = HOLDFAST__V1__DELIVER_MAIL_REQUEST__INIT;
    char *players[] = { text("bob"), text("cat"), text("bob") };
    const struct method_info *method = method_find(METHOD_DELIVER_MAIL);
    struct scatter_elements elements;
    struct form_fixture *f = *state;

    mail.to_player_ids = players;
    mail.n_to_player_ids = 3;
    mail.op_id = text("claim:season-3");
    const ProtobufCMessage *all = form_make(f, METHOD_DELIVER_MAIL, &mail.base);
    assert_int_equal(scatter_split(method, all, &f->arena, &elements, &f->detail), ERR_OK);
    assert_int_equal(elements.count, 3);
    assert_int_equal(scatter_check_distinct(method, &elements, &f->arena, &f->detail), ERR_INVALID);
    assert_string_equal(f->detail.field, "to_player_ids[2]");
    assert_string_equal(f->detail.limit, "each recipient once");
    assert_string_equal(f->detail.value, "bob");
}

static void errors_name_fields_as_callers_know_them(void **state)
{
    struct form_fixture *f = *state;
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;

    detail.field = text("player_id");
    detail.message = text("player_id: expected 1 to 100 bytes");
    node_form_tell(method_find(METHOD_SWAP), NULL, &f->arena, &detail);
    assert_string_equal(detail.field, "a.player_id");
    assert_string_equal(detail.message, "a.player_id: expected 1 to 100 bytes");
    node_form_tell(method_find(METHOD_SWAP), NULL, &f->arena, &detail);
    assert_string_equal(detail.field, "a.player_id");
    detail.field = text("player_id");
    node_form_tell(method_find(METHOD_GRANT), NULL, &f->arena, &detail);
    assert_string_equal(detail.field, "player_id");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, form_setup, form_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_has_one_form_stays_as_it_is),
        TEST(both_sides_of_a_swap_stand_in_one_message),
        TEST(a_side_that_is_left_out_is_empty),
        TEST(a_delivery_is_a_request_for_each_recipient),
        TEST(a_delivery_has_1_to_1000_recipients_and_is_not_large),
        TEST(each_recipient_is_named_once),
        TEST(errors_name_fields_as_callers_know_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
