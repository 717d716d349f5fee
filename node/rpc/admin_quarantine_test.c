#include "node/rpc/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/inventory.pb-c.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

static bool contain(struct fixture *f, const char *player)
{
    Holdfast__Internal__V1__ContainPlayerRequest request =
        HOLDFAST__INTERNAL__V1__CONTAIN_PLAYER_REQUEST__INIT;

    request.shard = f->shard;
    request.player_id = text_lend(player);
    request.reason = (char *)"two holders";
    const Holdfast__Internal__V1__ContainPlayerResponse *response =
        fixture_mutate(f, METHOD_CONTAIN_PLAYER, &request.base);
    assert_non_null(response);
    return response->contained;
}

static Holdfast__V1__ReleaseQuarantineResponse *release(struct fixture *f, const char *player,
                                                        const char *authority, const char *reason)
{
    Holdfast__V1__ReleaseQuarantineRequest request = HOLDFAST__V1__RELEASE_QUARANTINE_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, authority);
    request.reason = text_lend(reason);
    return fixture_mutate(f, METHOD_RELEASE_QUARANTINE, &request.base);
}

static Holdfast__V1__Quarantined *held(struct fixture *f, const char *player)
{
    Holdfast__V1__GetQuarantineRequest request = HOLDFAST__V1__GET_QUARANTINE_REQUEST__INIT;

    request.player_id = text_lend(player);
    Holdfast__V1__GetQuarantineResponse *response =
        fixture_read(f, METHOD_GET_QUARANTINE, &request.base);
    assert_non_null(response);
    return response->quarantined;
}

static void a_quarantined_player_is_read_and_not_written(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ListQuarantinedRequest list = HOLDFAST__V1__LIST_QUARANTINED_REQUEST__INIT;

    assert_non_null(fixture_grant(f, "ann", "unheld", 5));
    assert_null(held(f, "ann"));
    assert_true(contain(f, "ann"));
    assert_false(contain(f, "ann"));
    fixture_restart(f);
    assert_null(fixture_grant(f, "ann", "unheld", 5));
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
    assert_false(f->error->final);
    assert_null(fixture_start(f, "ann", SERVER_A, HOLDFAST__V1__START_MODE__START_MODE_WAIT,
                              fixture_op_id(f)));
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
    assert_false(f->outcome.waits);
    assert_non_null(fixture_grant(f, "bob", "unheld", 5));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 5);
    assert_string_equal(held(f, "ann")->reason, "two holders");
    const Holdfast__V1__ListQuarantinedResponse *all =
        fixture_read(f, METHOD_LIST_QUARANTINED, &list.base);
    assert_int_equal(all->n_players, 1);
    assert_string_equal(all->players[0]->player_id, "ann");
}

static void what_stood_before_is_still_answered_and_sealed(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };

    gold.currency = (char *)"gold";
    gold.amount = 5;
    request.player_id = (char *)"ann";
    request.op_id = (char *)"claim:a";
    request.authority = fixture_authority(f, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_true(contain(f, "ann"));
    request.authority = fixture_authority(f, "unheld");
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_true(f->outcome.duplicate);
    assert_int_equal(fixture_seal(f, "ann", "claim:b")->state, OPERATION(ABORTED));
}

static void only_who_may_releases_and_says_why(void **state)
{
    struct fixture *f = *state;

    assert_true(contain(f, "ann"));
    assert_null(release(f, "ann", "system:admin", ""));
    assert_string_equal(f->error->field, "reason");
    assert_null(release(f, "ann", "unheld", "looked at"));
    assert_int_equal(f->error->code, ERROR(PERMISSION_DENIED));
    assert_null(release(f, "ann", "system:payments", "looked at"));
    assert_int_equal(f->error->code, ERROR(PERMISSION_DENIED));
    assert_non_null(held(f, "ann"));
    assert_string_equal(release(f, "ann", "system:moderation", "looked at")->was_for,
                        "two holders");
    assert_null(held(f, "ann"));
    assert_non_null(fixture_grant(f, "ann", "unheld", 5));
    assert_null(release(f, "ann", "system:admin", "again"));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
}

static int64_t net_of(struct fixture *f, const char *currency)
{
    const struct totals *totals = &applier_meta(f->applier)->totals;

    for (uint32_t i = 0; i < totals->currency_count; i++) {
        if (strcmp(totals->currencies[i].name, currency) == 0)
            return totals->currencies[i].net;
    }
    return 0;
}

static void a_release_may_say_what_shall_be_regarded_as_made(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ReleaseQuarantineRequest request = HOLDFAST__V1__RELEASE_QUARANTINE_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    char *items[] = { (char *)"no uid" };
    const struct totals *totals = &applier_meta(f->applier)->totals;

    assert_true(contain(f, "ann"));
    int64_t count = totals->count, net = net_of(f, "gold");
    gold.currency = (char *)"gold";
    gold.amount = 7;
    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "system:admin");
    request.reason = (char *)"looked at";
    request.made_amounts = amounts;
    request.n_made_amounts = 1;
    request.made_items = items;
    request.n_made_items = 1;
    assert_null(fixture_mutate(f, METHOD_RELEASE_QUARANTINE, &request.base));
    assert_string_equal(f->error->field, "made_items");
    items[0] = (char *)"00010000000000010000000000070000";
    gold.currency = (char *)"pearls";
    request.authority = fixture_authority(f, "system:admin");
    assert_null(fixture_mutate(f, METHOD_RELEASE_QUARANTINE, &request.base));
    assert_string_equal(f->error->field, "made_amounts");
    assert_int_equal(totals->count, count);
    gold.currency = (char *)"gold";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "system:admin");
    assert_non_null(fixture_mutate(f, METHOD_RELEASE_QUARANTINE, &request.base));
    assert_null(held(f, "ann"));
    assert_int_equal(totals->count, count - 1);
    assert_int_equal(net_of(f, "gold"), net - 7);
}

/* Changes a row behind the rules' back. */
static void spoil(struct fixture *f, const struct row_key *key, size_t at)
{
    struct state *rows = applier_state(f->applier);
    struct buf spoilt = { 0 };
    struct slice row;

    assert_int_equal(state_find(rows, row_key_slice(key), &row), STATE_PRESENT);
    buf_append(&spoilt, row.data, row.size);
    spoilt.data[at] ^= 0x40;
    state_begin(rows);
    state_put(rows, row_key_slice(key), buf_slice(&spoilt));
    state_commit(rows);
    buf_deinit(&spoilt);
}

static void an_item_that_cannot_be_read_is_damage_and_stops_nothing_else(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest grant = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__SpendRequest spend = HOLDFAST__V1__SPEND_REQUEST__INIT;
    Holdfast__V1__ItemSpec sword = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &sword };
    uint8_t uid[ITEM_UID_BYTES];
    struct row_key key;

    sword.kind = (char *)"sword";
    grant.player_id = (char *)"ann";
    grant.op_id = fixture_op_id(f);
    grant.authority = fixture_authority(f, "unheld");
    grant.items = items;
    grant.n_items = 1;
    Holdfast__V1__GrantResponse *minted = fixture_mutate(f, METHOD_GRANT, &grant.base);
    char *uids[] = { strdup(minted->item_uids[0]) };
    assert_int_equal(item_uid_parse(slice_from_text(uids[0]), uid), ERR_OK);
    row_key_item(&key, SLICE_LITERAL("player:ann"), uid);
    spoil(f, &key, 0);
    spend.player_id = (char *)"ann";
    spend.item_uids = uids;
    spend.n_item_uids = 1;
    spend.op_id = fixture_op_id(f);
    spend.authority = fixture_authority(f, "unheld");
    assert_null(fixture_mutate(f, METHOD_SPEND, &spend.base));
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
    /* No one has asked what was found: it is still no other player's. */
    assert_non_null(fixture_grant(f, "bob", "unheld", 5));
    const struct damage *damage = applier_take_damage(f->applier);
    assert_non_null(damage);
    assert_string_equal(damage->player, "ann");
    assert_null(applier_take_damage(f->applier));
    free(uids[0]);
}

static void a_ledger_entry_that_does_not_chain_is_damage(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ListEntriesRequest list = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;
    struct row_key key;

    for (int i = 1; i <= 4; i++)
        assert_non_null(fixture_grant(f, "ann", "unheld", i));
    list.player_id = (char *)"ann";
    for (int ascending = 0; ascending < 2; ascending++) {
        list.ascending = ascending;
        assert_non_null(fixture_read(f, METHOD_LIST_ENTRIES, &list.base));
        assert_null(applier_take_damage(f->applier));
    }
    row_key_ledger(&key, SLICE_LITERAL("player:ann"), 3);
    spoil(f, &key, 12); /* Its time. */
    for (int ascending = 0; ascending < 2; ascending++) {
        list.ascending = ascending;
        assert_non_null(fixture_read(f, METHOD_LIST_ENTRIES, &list.base));
        assert_string_equal(applier_take_damage(f->applier)->player, "ann");
    }
}

/* The sign bit of the balance of a player who has but one. */
static void a_debt_that_no_policy_allowed_is_damage(void **state)
{
    struct fixture *f = *state;
    struct state *rows = applier_state(f->applier);
    struct player player;
    struct buf row = { 0 };
    struct row_key key;
    struct slice stored;

    assert_non_null(fixture_grant(f, "ann", "unheld", 5));
    row_key_player(&key, SLICE_LITERAL("player:ann"));
    assert_int_equal(state_find(rows, row_key_slice(&key), &stored), STATE_PRESENT);
    assert_int_equal(player_decode(arena_copy(&f->arena, stored), SLICE_LITERAL("player:ann"),
                                   &f->arena, &player),
                     ERR_OK);
    player.balances[0].amount = -1;
    player_encode(&player, &row);
    state_begin(rows);
    state_put(rows, row_key_slice(&key), buf_slice(&row));
    state_commit(rows);
    buf_deinit(&row);
    assert_null(fixture_grant(f, "ann", "unheld", 5));
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
    assert_string_equal(applier_take_damage(f->applier)->player, "ann");
    assert_int_equal(fixture_balance(f, "ann", "gold"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_quarantined_player_is_read_and_not_written),
        FIXTURE_TEST(what_stood_before_is_still_answered_and_sealed),
        FIXTURE_TEST(only_who_may_releases_and_says_why),
        FIXTURE_TEST(a_release_may_say_what_shall_be_regarded_as_made),
        FIXTURE_TEST(an_item_that_cannot_be_read_is_damage_and_stops_nothing_else),
        FIXTURE_TEST(a_ledger_entry_that_does_not_chain_is_damage),
        FIXTURE_TEST(a_debt_that_no_policy_allowed_is_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
