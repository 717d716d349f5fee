/*
 * What operators and the audit see of a shard's players: who is held back and released
 * (docs/containment.md), all players, and what an audit looks for, by pages of any size; and which
 * policies a shard takes (idl/policy_limit.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/inventory.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "idl/error_code.h"
#include "idl/limit.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/player/totals.h"
#include "node/core/rows/rows.h"
#include "node/rpc/fixture.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define PLAYERS   40u
#define ITEMS_MAX 400u
#define TURNS     50u
#define PAGES_MAX 100u

struct ward_player {
    char id[8]; /* Sorted. */
    uint64_t version, entries;
    uint32_t mails; /* None of them is claimed. */
    int64_t gold;
    int64_t surplus; /* Of gold, by damage: no entry tells of it. */
    char *last_op;
    const char *held_for; /* NULL: not held back. */
    uint64_t held_ms;
};

struct ward_item {
    char uid[33];
    uint32_t player; /* In whose hands, or mailbox. */
};

struct wards {
    struct rsim *sim;
    struct fixture f;
    struct ward_player players[PLAYERS];
    struct ward_item items[ITEMS_MAX];
    uint32_t item_count, given; /* given: the place of the one that was given last. */
};

static bool chance(struct wards *w, uint32_t per_hundred)
{
    return rsim_chance(w->sim, per_hundred);
}

static uint32_t any_player(struct wards *w)
{
    return (uint32_t)rsim_between(w->sim, 0, PLAYERS - 1);
}

static char *fresh_op(struct wards *w)
{
    return arena_text(&w->sim->arena, slice_from_text(fixture_op_id(&w->f)));
}

/* ---- what players do ---- */

static void grant(struct wards *w)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item, &item };
    uint32_t place = any_player(w);
    struct ward_player *player = &w->players[place];

    item.kind = text_lend("orb");
    amount.currency = text_lend("gold");
    amount.amount = (int64_t)rsim_between(w->sim, 1, 9);
    request.player_id = player->id;
    request.op_id = fresh_op(w);
    request.authority = text_lend("unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    request.items = items;
    request.n_items = w->item_count + 2 <= ITEMS_MAX ? rsim_between(w->sim, 0, 2) : 0;
    const Holdfast__V1__GrantResponse *told = fixture_mutate(&w->f, METHOD_GRANT, &request.base);
    if (player->held_for != NULL) {
        PROMISE(w->sim, told == NULL && w->f.error->code == CODE(QUARANTINED),
                "a player who is held back is given something");
        return;
    }
    PROMISE(w->sim, told != NULL, "a grant is refused: %s", w->f.error->message);
    player->version++;
    player->entries++;
    player->gold += amount.amount;
    player->surplus = 0; /* The entry tells of the balance as it is. */
    player->last_op = request.op_id;
    for (size_t i = 0; i < told->n_item_uids; i++) {
        struct ward_item *made = &w->items[w->item_count++];
        memcpy(made->uid, told->item_uids[i], sizeof made->uid);
        made->player = place;
    }
}

/* An item into another player's mailbox. */
static void give(struct wards *w)
{
    Holdfast__V1__TransferItemsRequest request = HOLDFAST__V1__TRANSFER_ITEMS_REQUEST__INIT;
    uint32_t to = any_player(w);

    if (w->item_count == 0)
        return;
    struct ward_item *item = &w->items[rsim_between(w->sim, 0, w->item_count - 1)];
    char *uid = item->uid;
    struct ward_player *player = &w->players[item->player];
    if (to == item->player || player->held_for != NULL || w->players[to].held_for != NULL)
        return;
    request.player_id = player->id;
    request.to_player_id = w->players[to].id;
    request.op_id = fresh_op(w);
    request.authority = text_lend("unheld");
    request.item_uids = &uid;
    request.n_item_uids = 1;
    bool done = fixture_mutate(&w->f, METHOD_TRANSFER_ITEMS, &request.base) != NULL;
    player->version += done;
    player->entries += done;
    if (done) {
        item->player = to;
        w->players[to].mails++;
        w->given = (uint32_t)(item - w->items);
    } else { /* It lies in the mailbox already. */
        PROMISE(w->sim, w->f.error->code == CODE(ITEM_NOT_HELD), "%s", w->f.error->message);
    }
}

/* What no operation can do: a balance that no entry tells of. */
static void damage(struct wards *w)
{
    struct state *rows = applier_state(w->f.applier);
    struct ward_player *player = &w->players[any_player(w)];
    struct slice entity = slice_from_text(arena_printf(&w->sim->arena, "player:%s", player->id)),
                 stored;
    struct buf row = { 0 };
    struct row_key key;
    struct player stands;

    row_key_player(&key, entity);
    if (player->last_op == NULL ||
        state_find(rows, row_key_slice(&key), &stored) != STATE_PRESENT ||
        player_decode(arena_copy(&w->sim->arena, stored), entity, &w->sim->arena, &stands) !=
            ERR_OK)
        return;
    int64_t more = (int64_t)rsim_between(w->sim, 1, 5);
    stands.balances[0].amount += more;
    player->gold += more;
    player->surplus += more;
    player_encode(&stands, &row);
    state_begin(rows);
    state_put(rows, row_key_slice(&key), buf_slice(&row));
    state_commit(rows);
    buf_deinit(&row);
}

/* ---- who is held back ---- */

static void contain(struct wards *w)
{
    static const char *const reasons[] = { "a step is missing", "an item has two holders" };
    Holdfast__Internal__V1__ContainPlayerRequest request =
        HOLDFAST__INTERNAL__V1__CONTAIN_PLAYER_REQUEST__INIT;
    struct ward_player *player = &w->players[any_player(w)];
    char *longest = arena_zalloc(&w->sim->arena, 66);

    memset(longest, 'r', chance(w, 50) ? 64 : 65);
    request.player_id = player->id;
    request.reason = chance(w, 20) ? longest : text_lend(RSIM_PICK(w->sim, reasons));
    if (chance(w, 5))
        request.reason = text_lend("");
    size_t size = strlen(request.reason);
    const Holdfast__Internal__V1__ContainPlayerResponse *told =
        fixture_mutate(&w->f, METHOD_CONTAIN_PLAYER, &request.base);

    PROMISE(w->sim, (told != NULL) == (size >= 1 && size <= 64), "a reason of %zu bytes", size);
    if (told == NULL)
        return;
    PROMISE(w->sim, (told->contained != 0) == (player->held_for == NULL), "contained twice");
    if (player->held_for != NULL)
        return;
    player->held_for = request.reason;
    player->held_ms = w->f.now_ms;
    w->sim->counts.wards_held++;
}

static void release(struct wards *w)
{
    static char *const authorities[] = { (char *)(uintptr_t) "system:admin",
                                         (char *)(uintptr_t) "system:moderation",
                                         (char *)(uintptr_t) "system:payments" };
    Holdfast__V1__ReleaseQuarantineRequest request = HOLDFAST__V1__RELEASE_QUARANTINE_REQUEST__INIT;
    struct ward_player *player = &w->players[any_player(w)];
    uint64_t who = rsim_between(w->sim, 0, 2);

    for (uint32_t i = 0; i < PLAYERS && player->held_for == NULL; i++)
        player = &w->players[any_player(w)];
    request.player_id = player->id;
    request.op_id = fresh_op(w);
    request.authority = authorities[who];
    request.reason = text_lend(chance(w, 90) ? "looked at" : "");
    const Holdfast__V1__ReleaseQuarantineResponse *told =
        fixture_mutate(&w->f, METHOD_RELEASE_QUARANTINE, &request.base);
    if (request.reason[0] == 0 || who == 2 || player->held_for == NULL) {
        PROMISE(w->sim, told == NULL, "a release is done that has to be refused");
        Holdfast__V1__ErrorCode code = request.reason[0] == 0 ? CODE(INVALID_ARGUMENT)
                                       : who == 2             ? CODE(PERMISSION_DENIED)
                                                              : CODE(NOT_FOUND);
        PROMISE(w->sim, w->f.error->code == code, "refused with %d", (int)w->f.error->code);
        return;
    }
    PROMISE(w->sim, told != NULL, "a release is refused: %s", w->f.error->message);
    PROMISE(w->sim, strcmp(told->was_for, player->held_for) == 0, "held for \"%s\"", told->was_for);
    player->held_for = NULL;
    player->version++;
}

static void same_ward(struct wards *w, const struct ward_player *player,
                      const Holdfast__V1__Quarantined *told)
{
    PROMISE(w->sim,
            strcmp(told->player_id, player->id) == 0 &&
                strcmp(told->reason, player->held_for) == 0 &&
                (uint64_t)told->at_ms == player->held_ms,
            "%s is told to be held for \"%s\"", told->player_id, told->reason);
}

static void tell_one(struct wards *w)
{
    Holdfast__V1__GetQuarantineRequest request = HOLDFAST__V1__GET_QUARANTINE_REQUEST__INIT;
    const struct ward_player *player = &w->players[any_player(w)];

    request.player_id = text_lend(player->id);
    const Holdfast__V1__GetQuarantineResponse *told =
        fixture_read(&w->f, METHOD_GET_QUARANTINE, &request.base);
    PROMISE(w->sim, told != NULL && (told->quarantined != NULL) == (player->held_for != NULL),
            "%s is held back, or not", player->id);
    if (told->quarantined != NULL)
        same_ward(w, player, told->quarantined);
}

static void tell_held(struct wards *w)
{
    Holdfast__V1__ListQuarantinedRequest request = HOLDFAST__V1__LIST_QUARANTINED_REQUEST__INIT;
    uint32_t at = 0, pages = 0;

    request.shard = w->f.shard;
    request.page_size = chance(w, 20) ? 1024 : (uint32_t)rsim_between(w->sim, 0, 5);
    for (;;) {
        const Holdfast__V1__ListQuarantinedResponse *told =
            fixture_read(&w->f, METHOD_LIST_QUARANTINED, &request.base);
        PROMISE(w->sim, told != NULL, "a page of %u is refused", request.page_size);
        PROMISE(w->sim, request.page_size == 0 || told->n_players <= request.page_size,
                "a page of %zu", told->n_players);
        for (size_t i = 0; i < told->n_players; i++, at++) {
            while (at < PLAYERS && w->players[at].held_for == NULL)
                at++;
            PROMISE(w->sim, at < PLAYERS, "a player is told that is not held");
            same_ward(w, &w->players[at], told->players[i]);
        }
        PROMISE(w->sim, ++pages < PAGES_MAX, "a list never ends");
        if (told->next_cursor[0] == 0)
            break;
        PROMISE(w->sim, request.page_size > 0, "1024 are one page");
        request.cursor = told->next_cursor;
    }
    for (; at < PLAYERS; at++)
        PROMISE(w->sim, w->players[at].held_for == NULL, "%s is held and not told",
                w->players[at].id);
    request.page_size = 1025;
    PROMISE(w->sim, fixture_read(&w->f, METHOD_LIST_QUARANTINED, &request.base) == NULL,
            "a page of 1025");
}

static void tell_players(struct wards *w)
{
    Holdfast__V1__ListPlayersRequest request = HOLDFAST__V1__LIST_PLAYERS_REQUEST__INIT;
    uint32_t at = 0, pages = 0;

    request.shard = w->f.shard;
    request.page_size = chance(w, 20) ? 1000 : (uint32_t)rsim_between(w->sim, 0, 9);
    for (;;) {
        const Holdfast__V1__ListPlayersResponse *told =
            fixture_read(&w->f, METHOD_LIST_PLAYERS, &request.base);
        PROMISE(w->sim, told != NULL, "a page of %u is refused", request.page_size);
        PROMISE(w->sim, request.page_size == 0 || told->n_players <= request.page_size,
                "a page of %zu", told->n_players);
        for (size_t i = 0; i < told->n_players; i++, at++) {
            const Holdfast__V1__PlayerHead *head = told->players[i];
            while (at < PLAYERS && w->players[at].version == 0 && w->players[at].mails == 0)
                at++;
            PROMISE(w->sim,
                    at < PLAYERS && strcmp(head->player_id, w->players[at].id) == 0 &&
                        head->version == w->players[at].version &&
                        head->ledger_seq == w->players[at].entries &&
                        head->mail_count == w->players[at].mails,
                    "%s is told with version %" PRIu64 ", entry %" PRIu64 " and %" PRIu32 " mails",
                    head->player_id, head->version, head->ledger_seq, head->mail_count);
        }
        PROMISE(w->sim, ++pages < PAGES_MAX, "a list never ends");
        if (told->next_cursor[0] == 0)
            break;
        PROMISE(w->sim, told->n_players > 0, "an empty page goes on");
        request.cursor = told->next_cursor;
    }
    for (; at < PLAYERS; at++)
        PROMISE(w->sim, w->players[at].version == 0 && w->players[at].mails == 0, "%s is not told",
                w->players[at].id);
    request.page_size = 1001;
    PROMISE(w->sim, fixture_read(&w->f, METHOD_LIST_PLAYERS, &request.base) == NULL,
            "a page of 1001");
}

/* ---- the audit ---- */

struct found {
    uint32_t items, wallets, pages;
};

static void check_found(struct wards *w, const Holdfast__Internal__V1__AuditSearchResponse *told,
                        struct found *found, uint32_t bucket)
{
    for (size_t i = 0; i < told->n_items; i++, found->items++) {
        const Holdfast__Internal__V1__FoundItem *one = told->items[i];
        const struct ward_item *item = NULL;
        uint8_t uid[ITEM_UID_BYTES];
        for (uint32_t k = 0; k < w->item_count; k++)
            item = strcmp(w->items[k].uid, one->item_uid) == 0 ? &w->items[k] : item;
        PROMISE(w->sim,
                item != NULL && strcmp(w->players[item->player].id, one->player_id) == 0 &&
                    item_uid_parse(slice_from_text(one->item_uid), uid) == ERR_OK &&
                    totals_bucket_of(uid) == bucket,
                "an item is found in %s", one->player_id);
    }
    for (size_t i = 0; i < told->n_wallets; i++, found->wallets++) {
        const Holdfast__Internal__V1__FoundWallet *one = told->wallets[i];
        const struct ward_player *player = NULL;
        for (uint32_t k = 0; k < PLAYERS; k++)
            player = strcmp(w->players[k].id, one->player_id) == 0 ? &w->players[k] : player;
        PROMISE(w->sim,
                player != NULL && player->surplus == one->too_many && player->surplus != 0 &&
                    strcmp(one->currency, "gold") == 0 && strcmp(one->op_id, player->last_op) == 0,
                "%s is told to have %" PRId64 " too many", one->player_id, one->too_many);
    }
}

static void search(struct wards *w)
{
    Holdfast__Internal__V1__AuditSearchRequest request =
        HOLDFAST__INTERNAL__V1__AUDIT_SEARCH_REQUEST__INIT;
    char *gold = text_lend("gold");
    struct found found = { 0 };
    uint32_t bucket = 0, wanted = 0, wallets = 0;
    uint8_t uid[ITEM_UID_BYTES];

    if (w->item_count > 0) {
        uint64_t place = rsim_between(w->sim, 0, w->item_count - 1);
        const char *text = w->items[chance(w, 60) ? w->given : place].uid;
        CHECK(item_uid_parse(slice_from_text(text), uid) == ERR_OK);
        bucket = totals_bucket_of(uid);
    }
    for (uint32_t i = 0; i < w->item_count; i++)
        wanted += item_uid_parse(slice_from_text(w->items[i].uid), uid) == ERR_OK &&
                  totals_bucket_of(uid) == bucket;
    for (uint32_t i = 0; i < PLAYERS; i++)
        wallets += w->players[i].surplus != 0;
    request.shard = w->f.shard;
    request.buckets = &bucket;
    request.n_buckets = 1;
    request.currencies = &gold;
    request.n_currencies = chance(w, 70);
    for (;;) {
        const Holdfast__Internal__V1__AuditSearchResponse *told =
            fixture_read(&w->f, METHOD_AUDIT_SEARCH, &request.base);
        PROMISE(w->sim, told != NULL, "a search is refused: %s", w->f.error->message);
        PROMISE(w->sim, told->undecided <= PLAYERS, "%u are undecided", told->undecided);
        check_found(w, told, &found, bucket);
        PROMISE(w->sim, ++found.pages < PAGES_MAX, "a search never ends");
        if (told->next_cursor[0] == 0)
            break;
        request.cursor = told->next_cursor;
    }
    PROMISE(w->sim, found.items == wanted, "%u items are found, not %u", found.items, wanted);
    PROMISE(w->sim, found.wallets == (request.n_currencies > 0 ? wallets : 0),
            "%u wallets are found, not %u", found.wallets, wallets);
    w->sim->counts.wards_searched++;
}

/* ---- policies ---- */

static void policies(struct wards *w)
{
    static const struct {
        uint64_t window_ms, operations;
        uint32_t items, mails;
        int64_t min, max;
        bool good;
    } all[] = {
        { 900000, 1000, 1, 1, 0, 0, true },
        { 604800000, 100000000, 1000000, 100000, -LIMIT_AMOUNT, LIMIT_AMOUNT, true },
        { 899999, 0, 0, 0, 0, 0, false },
        { 604800001, 0, 0, 0, 0, 0, false },
        { 0, 999, 0, 0, 0, 0, false },
        { 0, 100000001, 0, 0, 0, 0, false },
        { 0, 0, 1000001, 0, 0, 0, false },
        { 0, 0, 0, 100001, 0, 0, false },
        { 0, 0, 0, 0, 1, 0, false },
        { 0, 0, 0, 0, -LIMIT_AMOUNT - 1, 0, false },
        { 0, 0, 0, 0, 0, -1, false },
        { 0, 0, 0, 0, 0, LIMIT_AMOUNT + 1, false },
    };
    Holdfast__Internal__V1__ApplyPolicyRequest request =
        HOLDFAST__INTERNAL__V1__APPLY_POLICY_REQUEST__INIT;
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;
    Holdfast__V1__CurrencyPolicy **currencies =
        arena_messages(&w->sim->arena, &holdfast__v1__currency_policy__descriptor, 65);
    uint64_t place = rsim_between(w->sim, 0, ARRAY_SIZE(all) - 1);
    uint64_t before = applier_meta(w->f.applier)->policy.version;
    bool good = all[place].good;

    for (uint32_t i = 0; i < 65; i++)
        currencies[i]->name = i == 0 ? text_lend("gold") : arena_printf(&w->sim->arena, "c%02u", i);
    currencies[0]->min_balance = all[place].min;
    currencies[0]->max_balance = all[place].max;
    policy.version = before + 1;
    policy.operation_window_ms = all[place].window_ms;
    policy.operations_max = all[place].operations;
    policy.items_max = all[place].items;
    policy.mailbox_max = all[place].mails;
    policy.currencies = currencies;
    policy.n_currencies = good ? 64 : 3;
    if (good && chance(w, 30)) {
        policy.n_currencies = 65;
        good = false;
    } else if (good && chance(w, 30)) {
        currencies[2]->name = text_lend(chance(w, 50) ? "c01" : "Gold");
        good = false;
    }
    request.policy = &policy;
    bool done = fixture_mutate(&w->f, METHOD_APPLY_POLICY, &request.base) != NULL;
    PROMISE(w->sim, done == good, "a policy is %s", done ? "taken" : "refused");
    PROMISE(w->sim, applier_meta(w->f.applier)->policy.version == before + good, "another policy");
    if (good) /* The one of before. */
        fixture_policy(&w->f, 0, 0);
    w->sim->counts.wards_policies++;
}

/* ---- turns ---- */

static void turn(struct wards *w)
{
    static void (*const deeds[])(struct wards *) = { grant,   grant,    give,      give,
                                                     contain, contain,  release,   damage,
                                                     search,  tell_one, tell_held, tell_players };

    w->f.now_ms += rsim_between(w->sim, 1, 30);
    RSIM_PICK(w->sim, deeds)(w);
    if (chance(w, 5))
        fixture_checkpoint(&w->f);
    if (chance(w, 8))
        fixture_evict(&w->f, 0);
    if (chance(w, 5))
        fixture_restart(&w->f);
}

void room_wardens(struct rsim *sim)
{
    struct wards *w = mem_zalloc(sizeof *w);

    w->sim = sim;
    fixture_init_shard(&w->f, 0, 1);
    for (uint32_t i = 0; i < PLAYERS; i++)
        (void)snprintf(w->players[i].id, sizeof w->players[i].id, "p%02u", i);
    for (uint32_t i = 0; i < 60; i++)
        grant(w);
    for (uint32_t i = 0; i < TURNS; i++)
        turn(w);
    search(w);
    policies(w);
    fixture_deinit(&w->f);
    free(w);
}
