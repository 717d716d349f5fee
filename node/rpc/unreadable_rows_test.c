/*
 * Rows that cannot be read, of every table, at every replica: no call and no entry of the log stops
 * the shard, and other players go on. A world with something in every table is made, one row is
 * spoilt, and all that callers, owners and other shards may ask for is done to it.
 */
#include "node/rpc/fixture_shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/favorites.pb-c.h"
#include "holdfast/v1/inventory.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/rows/rows.h"
#include "node/rpc/fixture_consumer.h"
#include "node/rpc/fixture_counter.h"
#include "node/rpc/fixture_edges.h"
#include "node/rpc/fixture_metadata.h"
#include "node/rpc/fixture_nonsense.h"
#include "runtime/base/hash.h"
#include "runtime/base/hex.h"

struct world {
    struct fixture_shards shards;
    struct fixture *home;
    char ann[16], bob[16];   /* On the home shard: whose rows are spoilt, and who goes on. */
    char carl[16], dora[16]; /* On the next one: who deals with ann, and who does not. */
    char *uid;               /* An item of ann's. */
    char *token;
};

static struct fixture *on(struct world *w, uint32_t shard)
{
    return &w->shards.shards[shard];
}

/* ---- calls, whose outcome does not matter ---- */

static Holdfast__V1__CurrencyAmount **gold(struct world *w, int64_t amount)
{
    Holdfast__V1__CurrencyAmount **amounts =
        arena_messages(&w->shards.arena, &holdfast__v1__currency_amount__descriptor, 1);

    amounts[0]->currency = (char *)"gold";
    amounts[0]->amount = amount;
    return amounts;
}

static void *grant(struct world *w, struct fixture *f, const char *player, const char *op_id)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec sword = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &sword };

    sword.kind = (char *)"sword";
    request.player_id = text_lend(player);
    request.op_id = op_id != NULL ? text_lend(op_id) : fixture_op_id(f);
    request.authority = fixture_authority(f, "system:payments");
    request.n_currencies = 1;
    request.currencies = gold(w, 100);
    request.items = items;
    request.n_items = 1;
    return fixture_mutate(f, METHOD_GRANT, &request.base);
}

static void *spend(struct world *w, struct fixture *f, const char *player, const char *authority)
{
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, authority);
    request.n_currencies = 1;
    request.currencies = gold(w, 1);
    return fixture_mutate(f, METHOD_SPEND, &request.base);
}

static void edit_section(struct fixture *f, const char *player, const char *authority)
{
    Holdfast__V1__UpdateProfileRequest request = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT;
    Holdfast__V1__SectionEdit edit = HOLDFAST__V1__SECTION_EDIT__INIT;
    Holdfast__V1__SectionEdit *edits[] = { &edit };

    edit.name = (char *)"progression";
    edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_MERGE;
    edit.merge = (char *)"{\"xp\":1}";
    request.player_id = text_lend(player);
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, authority);
    request.edits = edits;
    request.n_edits = 1;
    (void)fixture_mutate(f, METHOD_UPDATE_PROFILE, &request.base);
}

static void reserve(struct world *w, struct fixture *f, const char *player, const char *op_id)
{
    Holdfast__V1__ReserveCurrenciesRequest request = HOLDFAST__V1__RESERVE_CURRENCIES_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = text_lend(op_id);
    request.authority = fixture_authority(f, "unheld");
    request.n_currencies = 1;
    request.currencies = gold(w, 5);
    request.expires_in_ms = 20000;
    (void)fixture_mutate(f, METHOD_RESERVE_CURRENCIES, &request.base);
}

static void close_reservation(struct fixture *f, const char *player, const char *op_id, bool post)
{
    Holdfast__V1__PostReservationRequest posted = HOLDFAST__V1__POST_RESERVATION_REQUEST__INIT;
    Holdfast__V1__VoidReservationRequest voided = HOLDFAST__V1__VOID_RESERVATION_REQUEST__INIT;

    posted.player_id = voided.player_id = text_lend(player);
    posted.reserve_op_id = voided.reserve_op_id = text_lend(op_id);
    posted.op_id = voided.op_id = fixture_op_id(f);
    posted.authority = voided.authority = fixture_authority(f, "unheld");
    if (post)
        (void)fixture_mutate(f, METHOD_POST_RESERVATION, &posted.base);
    else
        (void)fixture_mutate(f, METHOD_VOID_RESERVATION, &voided.base);
}

static void reverse(struct fixture *f, const char *player, const char *target)
{
    Holdfast__V1__ReverseEntryRequest request = HOLDFAST__V1__REVERSE_ENTRY_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = fixture_op_id(f);
    request.target_op_id = text_lend(target);
    request.reason = (char *)"a mistake";
    request.authority = fixture_authority(f, "system:payments");
    (void)fixture_mutate(f, METHOD_REVERSE_ENTRY, &request.base);
}

static void transfer(struct world *w, struct fixture *f, const char *from, const char *to)
{
    Holdfast__V1__TransferCurrenciesRequest request =
        HOLDFAST__V1__TRANSFER_CURRENCIES_REQUEST__INIT;

    request.player_id = text_lend(from);
    request.to_player_id = text_lend(to);
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.n_currencies = 1;
    request.currencies = gold(w, 3);
    (void)fixture_mutate(f, METHOD_TRANSFER_CURRENCIES, &request.base);
}

static void give_item(struct fixture *f, const char *from, const char *to, char *uid)
{
    Holdfast__V1__TransferItemsRequest request = HOLDFAST__V1__TRANSFER_ITEMS_REQUEST__INIT;

    request.player_id = text_lend(from);
    request.to_player_id = text_lend(to);
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.item_uids = &uid;
    request.n_item_uids = 1;
    (void)fixture_mutate(f, METHOD_TRANSFER_ITEMS, &request.base);
}

static void execute(struct world *w, struct fixture *f, const char *from, const char *to)
{
    Holdfast__Internal__V1__SwapGoodsRequest request =
        HOLDFAST__INTERNAL__V1__SWAP_GOODS_REQUEST__INIT;

    request.player_id = text_lend(from);
    request.authority = fixture_authority(f, "unheld");
    request.currencies = gold(w, 2);
    request.n_currencies = 1;
    request.other_player_id = text_lend(to);
    request.other_authority = fixture_authority(f, "unheld");
    request.other_currencies = gold(w, 1);
    request.n_other_currencies = 1;
    request.op_id = fixture_op_id(f);
    (void)fixture_mutate(f, METHOD_SWAP_GOODS, &request.base);
}

static void claim_mail(struct fixture *f, const char *player)
{
    Holdfast__V1__ListMailRequest list = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;
    Holdfast__V1__ClaimMailRequest claim = HOLDFAST__V1__CLAIM_MAIL_REQUEST__INIT;
    Holdfast__V1__ReturnExpiredMailRequest back = HOLDFAST__V1__RETURN_EXPIRED_MAIL_REQUEST__INIT;
    char *id = NULL;

    list.player_id = claim.player_id = back.player_id = text_lend(player);
    const Holdfast__V1__ListMailResponse *mails = fixture_read(f, METHOD_LIST_MAIL, &list.base);
    if (mails != NULL && mails->n_mails > 0)
        id = strdup(mails->mails[0]->mail_id);
    claim.op_id = fixture_op_id(f);
    claim.authority = fixture_authority(f, "unheld");
    claim.mail_ids = &id;
    claim.n_mail_ids = 1;
    if (id != NULL)
        (void)fixture_mutate(f, METHOD_CLAIM_MAIL, &claim.base);
    free(id);
    back.op_id = fixture_op_id(f);
    back.authority = fixture_authority(f, "unheld");
    (void)fixture_mutate(f, METHOD_RETURN_EXPIRED_MAIL, &back.base);
}

/* Every read about a player, and those of the whole shard. */
static void read_all(struct world *w, struct fixture *f, char *player)
{
    Holdfast__V1__GetProfileRequest profile = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;
    Holdfast__V1__GetBalancesRequest balances = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;
    Holdfast__V1__ListEntriesRequest entries = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;
    Holdfast__V1__ListReservationsRequest held = HOLDFAST__V1__LIST_RESERVATIONS_REQUEST__INIT;
    Holdfast__V1__ListItemsRequest items = HOLDFAST__V1__LIST_ITEMS_REQUEST__INIT;
    Holdfast__V1__GetSessionRequest session = HOLDFAST__V1__GET_SESSION_REQUEST__INIT;
    Holdfast__V1__ListPlayersRequest players = HOLDFAST__V1__LIST_PLAYERS_REQUEST__INIT;
    Holdfast__Internal__V1__ItemHistoryRequest history =
        HOLDFAST__INTERNAL__V1__ITEM_HISTORY_REQUEST__INIT;
    Holdfast__Internal__V1__RenewTokensRequest renew =
        HOLDFAST__INTERNAL__V1__RENEW_TOKENS_REQUEST__INIT;
    Holdfast__Internal__V1__RenewToken token = HOLDFAST__INTERNAL__V1__RENEW_TOKEN__INIT;
    Holdfast__Internal__V1__RenewToken *tokens[] = { &token };
    Holdfast__Internal__V1__AuditSearchRequest search =
        HOLDFAST__INTERNAL__V1__AUDIT_SEARCH_REQUEST__INIT;
    char *currencies[] = { (char *)"gold" };

    profile.player_id = balances.player_id = entries.player_id = held.player_id = player;
    items.player_id = session.player_id = token.player_id = player;
    history.item_uid = w->uid;
    history.limit = 10;
    renew.incarnation = (char *)SERVER_A;
    renew.tokens = tokens;
    renew.n_tokens = 1;
    token.fence = 1;
    search.currencies = currencies;
    search.n_currencies = 1;
    (void)fixture_read(f, METHOD_GET_PROFILE, &profile.base);
    (void)fixture_read(f, METHOD_GET_BALANCES, &balances.base);
    (void)fixture_read(f, METHOD_LIST_ENTRIES, &entries.base);
    entries.from_ms = (int64_t)FIXTURE_START_MS;
    (void)fixture_read(f, METHOD_LIST_ENTRIES, &entries.base);
    entries.from_ms = 0;
    entries.item_uid = w->uid;
    (void)fixture_read(f, METHOD_LIST_ENTRIES, &entries.base);
    (void)fixture_read(f, METHOD_LIST_RESERVATIONS, &held.base);
    (void)fixture_read(f, METHOD_LIST_ITEMS, &items.base);
    (void)fixture_read(f, METHOD_GET_SESSION, &session.base);
    assert_non_null(fixture_read(f, METHOD_ITEM_HISTORY, &history.base));
    /* Of the whole shard: other players are among them. */
    assert_non_null(fixture_read(f, METHOD_LIST_PLAYERS, &players.base));
    assert_non_null(fixture_read(f, METHOD_RENEW_TOKENS, &renew.base));
    assert_non_null(fixture_read(f, METHOD_AUDIT_SEARCH, &search.base));
}

static void read_operation(struct fixture *f, const char *entity, const char *op_id, bool seal)
{
    Holdfast__V1__GetOperationRequest get = HOLDFAST__V1__GET_OPERATION_REQUEST__INIT;
    Holdfast__V1__ResolveOperationRequest resolve = HOLDFAST__V1__RESOLVE_OPERATION_REQUEST__INIT;

    get.entity = resolve.entity = text_lend(entity);
    get.op_id = resolve.op_id = text_lend(op_id);
    resolve.seal = seal;
    (void)fixture_read(f, METHOD_GET_OPERATION, &get.base);
    (void)fixture_mutate(f, METHOD_RESOLVE_OPERATION, &resolve.base);
}

/* ---- the world ---- */

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    fixture_shards_init(&w->shards);
    w->home = on(w, 0);
    w->home->reads_once = true; /* Entries that find all but nothing in memory need many rounds. */
    fixture_name_on(0, "ann", w->ann);
    fixture_name_on(0, "bob", w->bob);
    fixture_name_on(1, "carl", w->carl);
    fixture_name_on(1, "dora", w->dora);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    fixture_shards_deinit(&w->shards);
    free(w->uid);
    free(w);
    return 0;
}

static void carry_twice(struct world *w)
{
    for (uint32_t i = 0; i < 2 * FIXTURE_SHARDS * FIXTURE_SHARDS; i++) {
        uint32_t pair = i % (FIXTURE_SHARDS * FIXTURE_SHARDS);
        uint32_t from = pair / FIXTURE_SHARDS, to = pair % FIXTURE_SHARDS;
        deliver_request *batch = from != to ? fixture_batch(&w->shards, from, to) : NULL;
        if (batch == NULL || batch->n_credits + batch->n_cancels == 0)
            continue;
        deliver_response *response =
            fixture_mutate(on(w, to), METHOD_CHANNEL_DELIVER, &batch->base);
        if (response != NULL) /* Refused: it is sent again. */
            fixture_settle(&w->shards, from, to, response);
    }
}

#define DEFINED 4u

/* In every shard; spans that begin at 0 are taken in wherever the shard stands. */
static void define(struct world *w, uint64_t revision)
{
    static const char *const names[DEFINED] = { "pearls", "favorites", "calm", "plays" };
    Holdfast__V1__CurrencyBody currency = HOLDFAST__V1__CURRENCY_BODY__INIT;
    Holdfast__V1__CollectionBody collection = HOLDFAST__V1__COLLECTION_BODY__INIT;
    Holdfast__V1__RateRuleBody rate = HOLDFAST__V1__RATE_RULE_BODY__INIT;
    Holdfast__V1__CounterBody counter = HOLDFAST__V1__COUNTER_BODY__INIT;
    Holdfast__Internal__V1__DefineRequest request = HOLDFAST__INTERNAL__V1__DEFINE_REQUEST__INIT;
    Holdfast__Internal__V1__Defined given[DEFINED], *list[DEFINED];
    Holdfast__V1__DefinitionBody bodies[DEFINED];

    for (uint32_t i = 0; i < DEFINED; i++) {
        holdfast__internal__v1__defined__init(&given[i]);
        holdfast__v1__definition_body__init(&bodies[i]);
        given[i].number = i + 1;
        given[i].version = given[i].revision = revision;
        given[i].name = text_lend(names[i]);
        given[i].body = &bodies[i];
        list[i] = &given[i];
    }
    bodies[0].kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY;
    bodies[0].currency = &currency;
    collection.conflict_policy = HOLDFAST__V1__CONFLICT_POLICY__CONFLICT_POLICY_HIGHEST_VERSION;
    bodies[1].kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_COLLECTION;
    bodies[1].collection = &collection;
    rate.subject = given[1].name;
    rate.limit = 1000;
    rate.period_ms = 60000;
    bodies[2].kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_RATE_RULE;
    bodies[2].rate_rule = &rate;
    bodies[3].kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER;
    bodies[3].counter = &counter;
    request.generation = 1;
    request.to_revision = revision;
    request.last = true;
    request.n_definitions = DEFINED;
    request.definitions = list;
    for (uint32_t shard = 0; shard < FIXTURE_SHARDS; shard++)
        assert_non_null(fixture_mutate(on(w, shard), METHOD_DEFINE, &request.base));
}

static void favorite(struct fixture *f, const char *player, const char *target, bool stands)
{
    if (stands)
        (void)fixture_favorite(f, player, target);
    else
        (void)fixture_unfavorite(f, player, target);
}

/* Of targets that no one else has to do with; what waits for a review from before is decided. */
static void favorite_all(struct fixture *f, const char *player)
{
    (void)fixture_decide(f, METHOD_ACCEPT_EDGES, player, "zork");
    (void)fixture_decide(f, METHOD_REJECT_EDGES, player, "doom");
    favorite(f, player, "tetris", true);
    favorite(f, player, "pong", true);
    favorite(f, player, "pong", false);
    favorite(f, player, "doom", false);
    favorite(f, player, "zork", true);
    favorite(f, player, "doom", true);
    (void)fixture_decide(f, METHOD_FLAG_EDGES, player, "zork");
    (void)fixture_decide(f, METHOD_FLAG_EDGES, player, "doom");
}

/* A target whose home is the shard. */
static void favorite_at_home(struct fixture *f, const char *player)
{
    char target[16];

    for (uint32_t i = 0;; i++) {
        snprintf(target, sizeof target, "home%u", i);
        if (target_home(2, slice_from_text(target), FIXTURE_SHARDS) != f->shard)
            continue;
        favorite(f, player, target, true);
        return;
    }
}

static void populate(struct world *w)
{
    struct fixture *f = w->home;

    define(w, 10);
    favorite_all(f, w->ann);
    favorite_at_home(f, w->ann);
    fixture_count_all(f, w->ann);
    fixture_consume_all(f);
    fixture_metadata_all(f);
    fixture_erase(f, w->ann, false);
    fixture_take_totals(f);
    fixture_rebuild_all(f, 2);
    assert_non_null(grant(w, f, w->bob, NULL));
    assert_non_null(grant(w, on(w, 1), w->carl, NULL));
    assert_non_null(grant(w, f, w->ann, "claim:first"));
    assert_non_null(grant(w, f, w->ann, "claim:second"));
    w->uid = strdup(fixture_items(f, w->ann)->items[0]->uid);
    assert_non_null(grant(w, f, w->ann, "key:first"));
    (void)grant(w, f, w->ann, "receipt:1");
    (void)grant(w, f, w->ann, "receipt:2");
    (void)grant(w, f, w->ann, "receipt:3");
    edit_section(f, w->ann, "unheld");
    reserve(w, f, w->ann, "claim:reserve");
    reserve(w, f, w->ann, "claim:closed");
    close_reservation(f, w->ann, "claim:closed", true);
    transfer(w, f, w->ann, w->bob); /* Mail to one beside her, ... */
    transfer(w, f, w->bob, w->ann);
    transfer(w, f, w->ann, w->carl); /* ... and to one elsewhere, back and forth. */
    transfer(w, on(w, 1), w->carl, w->ann);
    carry_twice(w);
    transfer(w, f, w->ann, w->carl);
    transfer(w, on(w, 1), w->carl, w->ann);
    execute(w, f, w->ann, w->carl); /* Open, and its members prepared or not. */
    /* Unused, so that it has a timer. */
    (void)fixture_start(f, w->ann, SERVER_A, HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                        fixture_op_id(f));
}

/* All that callers, owners and other shards may want of ann, who may be unreadable. */
static void want_everything(struct world *w)
{
    struct fixture *f = w->home;
    char entity[32];

    snprintf(entity, sizeof entity, "player:%s", w->ann);
    read_all(w, f, w->ann);
    read_operation(f, entity, "claim:first", false);
    read_operation(f, "receipt:1", "receipt:1", false);
    (void)grant(w, f, w->ann, "claim:first");
    (void)grant(w, f, w->ann, "key:first");
    (void)grant(w, f, w->ann, "receipt:1");
    (void)grant(w, f, w->ann, "receipt:7");
    (void)grant(w, f, w->ann, NULL);
    (void)spend(w, f, w->ann, "unheld");
    edit_section(f, w->ann, "unheld");
    favorite_all(f, w->ann);
    favorite(f, w->ann, "tetris", false);
    fixture_read_favorites(f, w->ann);
    fixture_count_all(f, w->ann);
    fixture_consume_all(f);
    fixture_metadata_all(f);
    fixture_erase(f, w->ann, true);
    fixture_read_favorites(f, w->ann);
    fixture_erase(f, w->ann, false);
    fixture_take_totals(f);
    fixture_rebuild_all(f, 4);
    reverse(f, w->ann, "claim:second");
    reverse(f, w->ann, "claim:closed");
    reserve(w, f, w->ann, "claim:again");
    close_reservation(f, w->ann, "claim:reserve", true);
    close_reservation(f, w->ann, "claim:reserve", false);
    close_reservation(f, w->ann, "claim:closed", false);
    transfer(w, f, w->ann, w->carl);
    transfer(w, f, w->ann, w->bob);
    transfer(w, f, w->bob, w->ann);
    transfer(w, on(w, 1), w->carl, w->ann);
    give_item(f, w->ann, w->carl, w->uid);
    give_item(f, w->ann, w->bob, w->uid);
    execute(w, f, w->ann, w->bob);
    execute(w, on(w, 1), w->carl, w->ann);
    claim_mail(f, w->ann);
    claim_mail(on(w, 1), w->carl);
    (void)fixture_start(f, w->ann, SERVER_B, HOLDFAST__V1__START_MODE__START_MODE_STEAL,
                        fixture_op_id(f));
    (void)fixture_end(f, w->ann, "1-100-1");
    carry_twice(w);
    read_operation(f, entity, "claim:never", true);
    read_operation(f, "receipt:9", "receipt:9", true);
    (void)fixture_pass(f, 30000);
    carry_twice(w);
    fixture_expire(f, SERVER_A, SERVER_B);
}

static void goes_on(struct world *w, struct fixture *f, char *player)
{
    Holdfast__V1__GetBalancesRequest balances = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;

    assert_non_null(grant(w, f, player, NULL));
    edit_section(f, player, "unheld");
    assert_null(f->error);
    assert_non_null(spend(w, f, player, "unheld"));
    favorite(f, player, player, true); /* Names of collections may be spoilt, and rules' limits. */
    assert_true(f->error == NULL || f->error->code == ERROR(NOT_FOUND) ||
                f->error->code == ERROR(THROTTLED));
    balances.player_id = player;
    assert_non_null(fixture_read(f, METHOD_GET_BALANCES, &balances.base));
}

static void others_go_on(struct world *w)
{
    goes_on(w, w->home, w->bob);
    goes_on(w, on(w, 1), w->dora);
}

/* ---- spoiling ---- */

/* From SCATTERED on, a few bytes anywhere become others: rows that can be read, and make no sense.
 * From NONSENSE on, one thing in it is past what any row holds (fixture_nonsense.h). */
enum spoiling {
    FIRST_BYTE,
    CUT_SHORT,
    EMPTY,
    ONES,
    SCATTERED,
    NONSENSE = SCATTERED + 24,
    SPOILINGS = NONSENSE + NONSENSE_WAYS_MAX
};

static void scatter(struct buf *row, uint64_t seed)
{
    for (int i = 0; i < 3; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        row->data[(seed >> 33) % row->size] = (uint8_t)(seed >> 25);
    }
}

/* False: there is no such way. */
static bool spoil_row(struct fixture *f, struct slice key, struct slice row, enum spoiling how)
{
    struct state *rows = applier_state(f->applier);
    struct buf spoilt = { 0 };

    if (how >= NONSENSE && !nonsense_make(key, row, how - NONSENSE, &spoilt))
        return false;
    if (how < NONSENSE)
        buf_append(&spoilt, row.data, row.size);
    if (how == FIRST_BYTE && spoilt.size > 0)
        spoilt.data[0] ^= 0x40;
    else if (how == CUT_SHORT)
        spoilt.size = spoilt.size * 2 / 3;
    else if (how == ONES)
        memset(spoilt.data, 0xff, spoilt.size);
    else if (how >= SCATTERED && how < NONSENSE && spoilt.size > 0)
        scatter(&spoilt, hash_u64(key) + (uint64_t)how);
    if (how == EMPTY || spoilt.size == 0) {
        buf_clear(&spoilt);
        buf_put_u8(&spoilt, 0);
    }
    /* As a fault of apply would: the sums of the audit follow. */
    assert_true(state_load(rows, state_load_generation(rows), key, &row));
    state_begin(rows);
    state_put(rows, key, buf_slice(&spoilt));
    state_commit(rows);
    buf_deinit(&spoilt);
    return true;
}

/* Every row of the table, with which ann may have to do; how many there were. */
static uint32_t spoil_table(struct world *w, char table, enum spoiling how)
{
    uint32_t count = 0;

    fixture_restart_all(&w->shards);
    for (uint32_t shard = 0; shard < FIXTURE_SHARDS; shard++) {
        struct fixture *f = on(w, shard);
        for (uint32_t i = 0; i < f->row_count; i++) {
            struct slice key = buf_slice(&f->rows[i].key);
            bool others = memmem(key.data, key.size, w->bob, strlen(w->bob)) != NULL ||
                          memmem(key.data, key.size, w->carl, strlen(w->carl)) != NULL ||
                          memmem(key.data, key.size, w->dora, strlen(w->dora)) != NULL;
            if (key.data[0] != (uint8_t)table || others)
                continue;
            count += spoil_row(f, key, buf_slice(&f->rows[i].value), how);
        }
    }
    return count;
}

/* ---- repaired ---- */

/* As docs/runbooks/HoldfastRowsUnreadable.md has it: held back, looked at, repaired, released. */
static void repair(struct world *w)
{
    struct fixture *f = w->home;
    struct fixture_unreadable rows;
    Holdfast__V1__RepairSection section = HOLDFAST__V1__REPAIR_SECTION__INIT;
    Holdfast__V1__RepairSection *sections[] = { &section };

    if (!fixture_is_quarantined(f, w->ann))
        fixture_contain(f, w->ann);
    section.name = (char *)"progression";
    while (fixture_check_player(f, w->ann, &rows) > 0) {
        Holdfast__V1__RepairPlayerRequest *request = fixture_repair_request(f, w->ann);
        request->rows = rows.keys;
        request->n_rows = rows.count < 64 ? rows.count : 64;
        request->rebuild = true;
        if (rows.player) {
            request->sections = sections;
            request->n_sections = 1;
        }
        if (fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base) == NULL)
            fail_msg("%s: %s", f->error->message, f->error->value);
        fixture_unreadable_free(&rows);
    }
    fixture_release(f, w->ann);
}

/* What is spoilt and can be read is carried on into other rows; and while a channel's rows cannot
 * be read, a transaction may hold its players for ever. */
static bool works_again(char table, enum spoiling how)
{
    static const char shards[] = {
        TABLE_CHANNEL,    TABLE_OUTBOX,     TABLE_INBOX,      TABLE_TXN,     TABLE_RECEIPT,
        TABLE_DEFINITION, TABLE_COLLECTION, TABLE_RATE_RULES, TABLE_FAVORER, TABLE_PARTIAL,
        TABLE_ADDER,      TABLE_CHANGED,    TABLE_EMPTIED,    TABLE_NEWEST,  TABLE_PULLED,
        TABLE_SHARE,      TABLE_TALLY,      TABLE_RANK,       TABLE_RECOUNT, TABLE_EVENT,
        TABLE_CONSUMER,   TABLE_METADATA,   TABLE_ERASURE, /* It is erased again. */
    };

    return memchr(shards, table, sizeof shards) == NULL && how < SCATTERED;
}

/* Over all shards what is held is what was made, wherever it is on its way. */
static void nothing_is_missing(struct world *w, char table, enum spoiling how)
{
    struct totals *sum = calloc(1, sizeof *sum);

    assert_non_null(sum);
    for (uint32_t i = 0; i < FIXTURE_SHARDS; i++)
        totals_add(sum, &applier_meta(on(w, i)->applier)->totals);
    if (!totals_are_zero(sum))
        fail_msg("table %c, spoilt by way %d: something is missing, or too much", table, (int)how);
    totals_deinit(sum);
    free(sum);
}

/* Goods that were in the spoilt row itself. */
static bool loses_goods(char table)
{
    return table == TABLE_MAIL || table == TABLE_INTENT || table == TABLE_LEDGER;
}

static void repaired_one_works(struct world *w, char table, enum spoiling how)
{
    struct fixture *f = w->home;
    struct fixture_sums sums;

    if (!works_again(table, how))
        return;
    repair(w);
    carry_twice(w);
    carry_twice(w);
    if (grant(w, f, w->ann, NULL) == NULL)
        fail_msg("table %c, spoilt by way %d: %s", table, (int)how, f->error->message);
    assert_non_null(spend(w, f, w->ann, "unheld"));
    edit_section(f, w->ann, "unheld");
    assert_null(f->error);
    favorite_all(f, w->ann);
    assert_null(f->error);
    fixture_count_all(f, w->ann);
    assert_null(f->error);
    transfer(w, f, w->ann, w->carl);
    assert_null(f->error);
    transfer(w, f, w->bob, w->ann);
    claim_mail(f, w->ann);
    assert_null(f->error);
    (void)fixture_pass(f, 30000);
    assert_false(fixture_is_quarantined(f, w->ann));
    if (!loses_goods(table))
        nothing_is_missing(w, table, how);
    if (table != TABLE_LEDGER && table != TABLE_ITEM) /* What is lost adds up to nothing. */
        fixture_audit(f, w->ann, "gold", &sums);
    assert_int_equal(fixture_check_player(f, w->ann, &(struct fixture_unreadable){ 0 }), 0);
}

static void table_spoilt(void **state, char table)
{
    teardown(state);
    for (int how = 0; how < SPOILINGS; how++) {
        setup(state);
        struct world *w = *state;
        populate(w);
        bool spoilt = spoil_table(w, table, (enum spoiling)how) > 0;
        assert_true(spoilt || how > NONSENSE);
        if (!spoilt)
            return;
        want_everything(w);
        others_go_on(w);
        define(w, 20);
        fixture_restart_all(&w->shards);
        want_everything(w);
        others_go_on(w);
        repaired_one_works(w, table, (enum spoiling)how);
        teardown(state);
    }
    fail_msg("a row has more ways to make no sense than NONSENSE_WAYS_MAX");
}

/* ... while ann could not be finished. */
static void a_decided_transaction_is_finished_by_the_repair(void **state)
{
    struct world *w = *state;
    struct fixture *f = w->home;
    struct slice row;

    populate(w);
    assert_true(spoil_table(w, TABLE_PLAYER, FIRST_BYTE) == 1);
    carry_twice(w);
    fixture_contain(f, w->ann);
    Holdfast__V1__RepairPlayerRequest *request = fixture_repair_request(f, w->ann);
    request->rebuild = true;
    request->dry_run = true;
    Holdfast__V1__RepairPlayerResponse *response =
        fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base);
    assert_non_null(response);
    assert_true(response->transaction_finished);
    request = fixture_repair_request(f, w->ann);
    request->rebuild = true;
    response = fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base);
    assert_non_null(response);
    assert_true(response->transaction_finished);
    fixture_restart_all(&w->shards);
    for (uint32_t i = 0; i < f->row_count; i++) { /* It is over. */
        row = buf_slice(&f->rows[i].key);
        assert_int_not_equal(row.data[0], TABLE_TXN);
        assert_int_not_equal(row.data[0], TABLE_INTENT);
    }
    fixture_release(f, w->ann);
    nothing_is_missing(w, TABLE_PLAYER, FIRST_BYTE);
    assert_non_null(grant(w, f, w->ann, NULL));
}

/* Its row is gone, and who took part in it is held for ever: what it took is given back. */
static void what_a_lost_transaction_took_is_given_back(void **state)
{
    struct world *w = *state;
    struct fixture *f = w->home;
    struct row_key key;
    char entity[32];
    char hex[128];
    char *rows[] = { hex };
    struct fixture_sums sums;

    snprintf(entity, sizeof entity, "player:%s", w->ann);
    populate(w);
    row_key_intent(&key, slice_from_text(entity));
    hex_print(key.bytes, key.size, hex);
    fixture_contain(f, w->ann);
    for (int lost = 0; lost < 3; lost++) { /* The second time nothing but a trial. */
        Holdfast__V1__RepairPlayerRequest *request = fixture_repair_request(f, w->ann);
        request->rows = rows;
        request->n_rows = 1;
        request->dry_run = lost == 1;
        bool done = fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base) != NULL;
        assert_int_equal(done, lost > 0); /* One that can still be decided is not given up. */
        if (lost == 0)
            assert_true(spoil_table(w, TABLE_TXN, CUT_SHORT) > 0);
    }
    fixture_release(f, w->ann);
    fixture_audit(f, w->ann, "gold", &sums);
    nothing_is_missing(w, TABLE_TXN, CUT_SHORT);
    assert_non_null(grant(w, f, w->ann, NULL));
}

#define TABLE_TEST_FUNCTION(NAME, ...)                                                             \
    static void a_spoilt_row_stops_its_player_alone_##NAME(void **state)                           \
    {                                                                                              \
        table_spoilt(state, (char)TABLE_##NAME);                                                   \
    }
TABLE_ROWS(TABLE_TEST_FUNCTION)

int main(void)
{
#define TABLE_TEST(NAME, ...)                                                                      \
    cmocka_unit_test_setup_teardown(a_spoilt_row_stops_its_player_alone_##NAME, setup, teardown),
    const struct CMUnitTest tests[] = {
        TABLE_ROWS(TABLE_TEST) cmocka_unit_test_setup_teardown(
            a_decided_transaction_is_finished_by_the_repair, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_lost_transaction_took_is_given_back, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
