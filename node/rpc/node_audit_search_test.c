#include "node/rpc/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/inventory.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "node/core/player/totals.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

typedef Holdfast__Internal__V1__AuditSearchRequest search_request;
typedef Holdfast__Internal__V1__AuditSearchResponse search_response;

static void mint(struct fixture *f, const char *player, uint8_t ret_uid[ITEM_UID_BYTES])
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec sword = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &sword };

    sword.kind = (char *)"sword";
    request.player_id = text_lend(player);
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.items = items;
    request.n_items = 1;
    const Holdfast__V1__GrantResponse *minted = fixture_mutate(f, METHOD_GRANT, &request.base);
    assert_non_null(minted);
    assert_int_equal(item_uid_parse(slice_from_text(minted->item_uids[0]), ret_uid), ERR_OK);
}

/* What no operation can do: changes ann's row, and gives it another player's item. */
static void damage(struct fixture *f, const uint8_t *uid, int64_t gold)
{
    struct state *rows = applier_state(f->applier);
    struct buf row = { 0 };
    struct row_key key;
    struct player player;
    struct slice stored;

    row_key_player(&key, SLICE_LITERAL("player:ann"));
    assert_int_equal(state_find(rows, row_key_slice(&key), &stored), STATE_PRESENT);
    assert_int_equal(player_decode(arena_copy(&f->arena, stored), SLICE_LITERAL("player:ann"),
                                   &f->arena, &player),
                     ERR_OK);
    player.balances[0].amount += gold;
    player.item_count += uid != NULL;
    player_encode(&player, &row);
    state_begin(rows);
    state_put(rows, row_key_slice(&key), buf_slice(&row));
    if (uid != NULL) {
        struct item_row item = { .step = 1, .kind = SLICE_LITERAL("sword") };
        memcpy(item.uid, uid, ITEM_UID_BYTES);
        item.attributes = SLICE_LITERAL("{}");
        buf_clear(&row);
        item_row_encode(&item, &row);
        row_key_item(&key, SLICE_LITERAL("player:ann"), uid);
        state_put(rows, row_key_slice(&key), buf_slice(&row));
    }
    state_commit(rows);
    buf_deinit(&row);
}

static void an_item_of_a_bad_bucket_is_found_with_all_its_holders(void **state)
{
    struct fixture *f = *state;
    search_request request = HOLDFAST__INTERNAL__V1__AUDIT_SEARCH_REQUEST__INIT;
    uint8_t sword[ITEM_UID_BYTES], other[ITEM_UID_BYTES];
    char text[ITEM_UID_TEXT_SIZE];

    assert_non_null(fixture_grant(f, "ann", "unheld", 5));
    mint(f, "bob", sword);
    mint(f, "bob", other);
    damage(f, sword, 0);
    uint32_t bucket = totals_bucket_of(sword);
    request.shard = f->shard;
    request.buckets = &bucket;
    request.n_buckets = 1;
    item_uid_print(sword, text);
    for (int restarted = 0; restarted < 2; restarted++) {
        const search_response *found = fixture_read(f, METHOD_AUDIT_SEARCH, &request.base);
        assert_non_null(found);
        assert_int_equal(found->n_items, 2);
        assert_string_equal(found->items[0]->item_uid, text);
        assert_string_equal(found->items[0]->player_id, "ann");
        assert_string_equal(found->items[1]->player_id, "bob");
        assert_int_equal(found->n_wallets, 0);
        assert_string_equal(found->next_cursor, "");
        fixture_checkpoint(f); /* Then everything has to be loaded. */
        fixture_evict(f, 0);
    }
}

static void a_balance_that_its_ledger_did_not_leave_is_found(void **state)
{
    struct fixture *f = *state;
    search_request request = HOLDFAST__INTERNAL__V1__AUDIT_SEARCH_REQUEST__INIT;
    char *currencies[] = { (char *)"gold" };

    for (int i = 0; i < 3; i++) {
        assert_non_null(fixture_grant(f, "ann", "unheld", 5));
        assert_non_null(fixture_grant(f, "bob", "unheld", 5));
    }
    request.shard = f->shard;
    request.currencies = currencies;
    request.n_currencies = 1;
    const search_response *found = fixture_read(f, METHOD_AUDIT_SEARCH, &request.base);
    assert_int_equal(found->n_wallets, 0);
    damage(f, NULL, 7);
    found = fixture_read(f, METHOD_AUDIT_SEARCH, &request.base);
    assert_int_equal(found->n_wallets, 1);
    assert_string_equal(found->wallets[0]->player_id, "ann");
    assert_string_equal(found->wallets[0]->currency, "gold");
    assert_int_equal(found->wallets[0]->too_many, 7);
    assert_true(strlen(found->wallets[0]->op_id) > 0);
    assert_int_equal(found->undecided, 0);
}

static void pages_together_name_every_player_once(void **state)
{
    struct fixture *f = *state;
    search_request request = HOLDFAST__INTERNAL__V1__AUDIT_SEARCH_REQUEST__INIT;
    uint32_t buckets[60];
    char cursor[128] = "", player[16];
    uint8_t uid[ITEM_UID_BYTES];
    size_t found_count = 0;
    int pages = 0;

    for (uint32_t i = 0; i < 60; i++) {
        (void)snprintf(player, sizeof player, "p%02u", i);
        mint(f, player, uid);
        buckets[i] = totals_bucket_of(uid);
    }
    fixture_checkpoint(f);
    fixture_evict(f, 0);
    request.shard = f->shard;
    request.buckets = buckets;
    request.n_buckets = 60;
    do {
        request.cursor = cursor;
        const search_response *found = fixture_read(f, METHOD_AUDIT_SEARCH, &request.base);
        assert_non_null(found);
        found_count += found->n_items;
        (void)snprintf(cursor, sizeof cursor, "%s", found->next_cursor);
        assert_true(++pages < 10);
    } while (cursor[0] != 0);
    assert_int_equal(found_count, 60);
    assert_int_equal(pages, 3);
}

/* Who only got mail has no row beside the mailbox. */
static void an_item_in_the_mailbox_of_a_player_who_did_nothing_is_found(void **state)
{
    Holdfast__V1__TransferItemsRequest give = HOLDFAST__V1__TRANSFER_ITEMS_REQUEST__INIT;
    search_request request = HOLDFAST__INTERNAL__V1__AUDIT_SEARCH_REQUEST__INIT;
    static const char *const others[] = { "ann", "zoe" };
    struct fixture one, *f = &one;
    uint8_t uids[2][ITEM_UID_BYTES];
    uint32_t buckets[2];

    (void)state;
    fixture_init_shard(f, 0, 1);
    for (int i = 0; i < 2; i++) {
        char text[ITEM_UID_TEXT_SIZE], *uid = text;
        mint(f, "bob", uids[i]);
        item_uid_print(uids[i], text);
        buckets[i] = totals_bucket_of(uids[i]);
        give.player_id = text_lend("bob");
        give.to_player_id = text_lend(others[i]);
        give.op_id = fixture_op_id(f);
        give.authority = text_lend("unheld");
        give.item_uids = &uid;
        give.n_item_uids = 1;
        assert_non_null(fixture_mutate(f, METHOD_TRANSFER_ITEMS, &give.base));
    }
    request.buckets = buckets;
    request.n_buckets = 2;
    for (int restarted = 0; restarted < 2; restarted++) {
        const search_response *found = fixture_read(f, METHOD_AUDIT_SEARCH, &request.base);
        assert_non_null(found);
        assert_int_equal(found->n_items, 2);
        for (int i = 0; i < 2; i++)
            assert_string_equal(found->items[i]->player_id, others[i]);
        assert_string_equal(found->next_cursor, "");
        fixture_restart(f);
    }
    fixture_deinit(f);
}

/* Players with a row of their own and players with a mailbox alone, in one order. */
static void pages_go_through_mailboxes_and_rows_together(void **state)
{
    Holdfast__V1__SendMailRequest mail = HOLDFAST__V1__SEND_MAIL_REQUEST__INIT;
    search_request request = HOLDFAST__INTERNAL__V1__AUDIT_SEARCH_REQUEST__INIT;
    struct fixture one, *f = &one;
    uint32_t bucket = 0;
    char cursor[128] = "", last[16] = "";
    int pages = 0;

    (void)state;
    fixture_init_shard(f, 0, 1);
    for (uint32_t i = 0; i < 300; i++) {
        char player[16];
        (void)snprintf(player, sizeof player, "p%03u", i);
        mail.player_id = text_lend("a");
        mail.to_player_id = player;
        mail.op_id = fixture_op_id(f);
        mail.authority = text_lend("unheld");
        mail.text = text_lend("hello");
        if (i % 3 == 0)
            assert_non_null(fixture_grant(f, player, "unheld", 1));
        if (i % 3 != 1)
            assert_non_null(fixture_mutate(f, METHOD_SEND_MAIL, &mail.base));
    }
    request.buckets = &bucket;
    request.n_buckets = 1;
    do {
        fixture_checkpoint(f);
        fixture_evict(f, 0);
        request.cursor = cursor;
        const search_response *found = fixture_read(f, METHOD_AUDIT_SEARCH, &request.base);
        assert_non_null(found);
        assert_true(found->next_cursor[0] == 0 || strcmp(last, found->next_cursor) < 0);
        (void)snprintf(cursor, sizeof cursor, "%s", found->next_cursor);
        (void)snprintf(last, sizeof last, "%s", found->next_cursor);
        assert_true(++pages < 40);
    } while (cursor[0] != 0);
    assert_true(pages >= 200 / 24); /* A page looks into so many mailboxes. */
    fixture_deinit(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(an_item_of_a_bad_bucket_is_found_with_all_its_holders),
        FIXTURE_TEST(a_balance_that_its_ledger_did_not_leave_is_found),
        FIXTURE_TEST(pages_together_name_every_player_once),
        cmocka_unit_test(an_item_in_the_mailbox_of_a_player_who_did_nothing_is_found),
        cmocka_unit_test(pages_go_through_mailboxes_and_rows_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
