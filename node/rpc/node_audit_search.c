/*
 * A page of players, looked through for what the audit has too much of: items of some buckets, in
 * inventories, mailboxes and the escrow of transactions; balances that are not what the ledger
 * says. A player who only got mail has a mailbox and no row beside it. Outboxes are left out: a
 * cut counts once everything that was in them is settled.
 *
 * A page ends with the player that made it long enough, so it is one step of bounded length.
 */
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/internal/v1/transaction.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/ledger.h"
#include "node/core/goods/mailbox.h"
#include "node/core/handler/refusal.h"
#include "node/core/player/totals.h"
#include "node/core/profile/profile.h"
#include "node/core/rows/rows.h"
#include "node/core/transaction/txn_row.h"
#include "node/rpc/methods.h"
#include "runtime/base/check.h"

#define BUCKETS_MAX    64u
#define CURRENCIES_ASK 16u
#define PLAYERS_MAX    128u   /* Of a page. */
#define RANGES_MAX     24u    /* Likewise: the state remembers only so many. */
#define LEDGERS_MAX    16u    /* Likewise: ledgers looked back into. */
#define FOUND_MAX      4096u  /* Likewise; the last player may bring no more than it holds. */
#define HELD_MAX       65536u /* Rows of one player. */
#define BACK_MAX       64u    /* Entries of one ledger. */
#define PLAYER_PREFIX  "player:"
#define KIND(name)     HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_##name

typedef Holdfast__Internal__V1__AuditSearchRequest search_request;
typedef Holdfast__Internal__V1__AuditSearchResponse search_response;

struct search {
    struct read_context *context;
    const search_request *request;
    search_response *response;
    struct player *players; /* In the order of their ids; room for PLAYERS_MAX. */
    uint32_t player_count;
    struct slice *mailboxes; /* Likewise: whose they are. */
    uint32_t mailbox_count;
    uint32_t ranges, ledgers;
    size_t item_room, wallet_room;
    const struct player *player; /* Whose goods are looked at. */
};

static bool take_player(void *user, struct slice key, struct slice value)
{
    struct search *search = user;
    struct arena *arena = search->context->arena;
    struct slice entity = arena_copy(arena, (struct slice){ key.data + 1, key.size - 1 });
    struct player *player = &search->players[search->player_count++];

    /* The call that needs an unreadable one contains it; its name is for the cursor. */
    if (player_decode(arena_copy(arena, value), entity, arena, player) != ERR_OK)
        player_init(player, entity);
    return true;
}

static bool take_mailbox(void *user, struct slice key, struct slice value)
{
    struct search *search = user;

    (void)value;
    search->mailboxes[search->mailbox_count++] =
        arena_copy(search->context->arena, (struct slice){ key.data + 1, key.size - 1 });
    return true;
}

static void add_item(struct search *search, const uint8_t uid[ITEM_UID_BYTES])
{
    struct arena *arena = search->context->arena;
    search_response *response = search->response;
    uint32_t bucket = totals_bucket_of(uid);
    size_t place = 0;

    while (place < search->request->n_buckets && search->request->buckets[place] != bucket)
        place++;
    if (place == search->request->n_buckets)
        return;
    if (response->n_items == search->item_room) {
        size_t room = search->item_room > 0 ? search->item_room * 2 : 64;
        void *items = arena_alloc(arena, sizeof *response->items * room);
        if (response->n_items > 0)
            memcpy(items, response->items, sizeof *response->items * response->n_items);
        response->items = items;
        search->item_room = room;
    }
    Holdfast__Internal__V1__FoundItem *found =
        (void *)arena_message(arena, &holdfast__internal__v1__found_item__descriptor);
    found->item_uid = arena_alloc(arena, ITEM_UID_TEXT_SIZE);
    item_uid_print(uid, found->item_uid);
    found->player_id = arena_text(arena, player_id(search->player));
    response->items[response->n_items++] = found;
}

static void add_texts(struct search *search, size_t count, Holdfast__V1__Item *const *items)
{
    uint8_t uid[ITEM_UID_BYTES];

    for (size_t i = 0; i < count; i++) {
        if (item_uid_parse(slice_from_text(items[i]->uid), uid) == ERR_OK)
            add_item(search, uid);
    }
}

static bool take_item(void *user, struct slice key, struct slice value)
{
    (void)value;
    add_item(user, key.data + key.size - ITEM_UID_BYTES);
    return true;
}

static bool take_mail(void *user, struct slice key, struct slice value)
{
    struct search *search = user;
    const Holdfast__V1__Mail *mail =
        (const void *)arena_unpack(search->context->arena, &holdfast__v1__mail__descriptor, value);

    (void)key;
    if (mail != NULL)
        add_texts(search, mail->n_items, mail->items);
    return true;
}

static err visit(struct search *search, const struct row_key *prefix,
                 bool (*take)(void *, struct slice, struct slice))
{
    struct state_range range = { row_key_slice(prefix), row_key_slice(prefix), HELD_MAX };

    search->ranges++;
    return state_range_visit(search->context->state, &range, search->context->need, take, search);
}

/* ERR_NEED, with all that is missing noted. */
static err search_goods(struct search *search)
{
    struct read_context *context = search->context;
    struct slice entity = search->player->entity;
    Holdfast__Internal__V1__TxnIntent *intent = NULL;
    struct row_key prefix;
    uint32_t mails;
    err result = ERR_OK;

    if (search->player->item_count > 0) {
        row_key_item_prefix(&prefix, entity);
        result = visit(search, &prefix, take_item);
    }
    err e = mailbox_count(context->state, entity, context->need, &mails);
    if (e == ERR_OK && mails > 0) {
        row_key_mail_prefix(&prefix, entity);
        e = visit(search, &prefix, take_mail);
    }
    if (e == ERR_NEED)
        result = e; /* A count that cannot be read is told by who reads the mailbox. */
    if (search->player->txn.seq > 0 && intent_find(context->state, context->arena, entity,
                                                   context->need, &intent) == STATE_MISSING)
        result = ERR_NEED;
    if (intent != NULL && intent->taken != NULL)
        add_texts(search, intent->taken->n_items, intent->taken->items);
    return result;
}

static const Holdfast__V1__LedgerChange *change_of(const Holdfast__V1__LedgerEntry *entry,
                                                   const char *currency)
{
    for (size_t i = entry->n_changes; i > 0; i--) {
        if (strcmp(entry->changes[i - 1]->currency, currency) == 0)
            return entry->changes[i - 1]; /* The last one of it. */
    }
    return NULL;
}

static void add_wallet(struct search *search, const char *currency, int64_t too_many, char *op_id)
{
    struct arena *arena = search->context->arena;
    search_response *response = search->response;
    Holdfast__Internal__V1__FoundWallet *found =
        (void *)arena_message(arena, &holdfast__internal__v1__found_wallet__descriptor);

    if (response->wallets == NULL)
        response->wallets = arena_alloc(arena, sizeof *response->wallets * search->wallet_room);
    CHECK(response->n_wallets < search->wallet_room);
    found->player_id = arena_text(arena, player_id(search->player));
    found->currency = arena_text(arena, slice_from_text(currency));
    found->too_many = too_many;
    if (op_id != NULL)
        found->op_id = op_id;
    response->wallets[response->n_wallets++] = found;
}

/* The newest entries of the player's ledger, the newest first. ERR_NEED: all missing are noted. */
static err entries_read(struct search *search, Holdfast__V1__LedgerEntry **entries,
                        uint32_t *ret_count)
{
    struct read_context *context = search->context;
    const struct player *player = search->player;
    err result = ERR_OK;

    *ret_count = 0;
    for (uint64_t seq = player->ledger_seq; seq > 0 && *ret_count < BACK_MAX; seq--) {
        struct row_key key;
        struct slice value;
        Holdfast__V1__LedgerEntry *entry = NULL;
        row_key_ledger(&key, player->entity, seq);
        enum state_found found = state_find(context->state, row_key_slice(&key), &value);
        if (found == STATE_MISSING) {
            need_add_key(context->need, row_key_slice(&key));
            result = ERR_NEED;
        }
        /* What is damaged otherwise is found by who reads the ledger. */
        if (found == STATE_PRESENT &&
            ledger_row_decode(arena_copy(context->arena, value), context->arena, &entry) != ERR_OK)
            entry = NULL;
        entries[(*ret_count)++] = entry;
    }
    return result;
}

static void compare(struct search *search, Holdfast__V1__LedgerEntry *const *entries,
                    uint32_t count, const char *currency)
{
    const struct player *player = search->player;
    const struct balance *balance = player_find_balance(player, slice_from_text(currency));
    int64_t held = balance != NULL ? balance->amount + balance->reserved : 0;

    for (uint32_t i = 0; i < count; i++) {
        if (entries[i] == NULL || entries[i]->kind == KIND(LOST))
            return; /* What it told is lost: the wallet is not judged. */
        /* Mail from the system changes no balance, and did not tell of reservations once. */
        bool told_of = entries[i]->kind != KIND(MAIL);
        const Holdfast__V1__LedgerChange *change = told_of ? change_of(entries[i], currency) : NULL;
        if (change == NULL)
            continue;
        int64_t told = change->balance_after + change->reserved_after;
        if (held != told)
            add_wallet(search, currency, held - told, entries[i]->op_id);
        return;
    }
    if (player->ledger_seq > count)
        search->response->undecided++;
    else if (held != 0)
        add_wallet(search, currency, held, NULL);
}

static err search_wallet(struct search *search)
{
    const search_request *request = search->request;
    Holdfast__V1__LedgerEntry *entries[BACK_MAX];
    uint32_t count;

    if (request->n_currencies == 0 || search->player->balance_count == 0)
        return ERR_OK;
    search->ledgers++;
    err e = entries_read(search, entries, &count);
    for (size_t i = 0; i < request->n_currencies && e == ERR_OK; i++)
        compare(search, entries, count, request->currencies[i]);
    return e;
}

static err check(struct read_context *context, const search_request *request)
{
    if (request->n_buckets > BUCKETS_MAX)
        return refuse_number(context->arena, context->refusal, "buckets", "at most 64",
                             (int64_t)request->n_buckets);
    if (request->n_currencies > CURRENCIES_ASK)
        return refuse_number(context->arena, context->refusal, "currencies", "at most 16",
                             (int64_t)request->n_currencies);
    if (request->cursor[0] != 0 && player_id_check(slice_from_text(request->cursor)) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "cursor",
                              "next_cursor of the page before", "");
    return ERR_OK;
}

/* Both lists in one; what is behind the first PLAYERS_MAX is of the next page. */
static void join_mailboxes(struct search *search)
{
    struct player *joined = arena_alloc(search->context->arena, sizeof *joined * PLAYERS_MAX);
    uint32_t count = 0, row = 0, box = 0;

    while (count < PLAYERS_MAX && (row < search->player_count || box < search->mailbox_count)) {
        int order = row == search->player_count ? 1
                    : box == search->mailbox_count
                        ? -1
                        : slice_compare(search->players[row].entity, search->mailboxes[box]);
        if (order > 0) {
            player_init(&joined[count++], search->mailboxes[box++]);
            continue;
        }
        joined[count++] = search->players[row++];
        box += order == 0;
    }
    search->players = joined;
    search->player_count = count;
}

/* All rows of one table from the cursor on, at most PLAYERS_MAX. */
static err range_read(struct search *search,
                      void (*row_key)(struct row_key *ret_key, struct slice entity),
                      bool (*take)(void *, struct slice, struct slice))
{
    struct read_context *context = search->context;
    struct row_key prefix, after;

    row_key(&prefix, SLICE_LITERAL(PLAYER_PREFIX));
    after = prefix;
    if (search->request->cursor[0] != 0)
        row_key(&after, entity_of_player(context->arena, search->request->cursor));
    struct state_range range = { row_key_slice(&prefix), row_key_slice(&after), PLAYERS_MAX };
    return state_range_visit(context->state, &range, context->need, take, search);
}

static err players_read(struct search *search)
{
    struct arena *arena = search->context->arena;

    search->players = arena_alloc(arena, sizeof *search->players * PLAYERS_MAX);
    search->mailboxes = arena_alloc(arena, sizeof *search->mailboxes * PLAYERS_MAX);
    err rows = range_read(search, row_key_player, take_player);
    if (search->request->n_buckets == 0)
        return rows;
    err boxes = range_read(search, row_key_mailbox, take_mailbox);
    if (rows == ERR_OK && boxes == ERR_OK)
        join_mailboxes(search);
    return rows != ERR_OK ? rows : boxes;
}

static bool page_is_full(const struct search *search)
{
    return search->ranges >= RANGES_MAX || search->ledgers >= LEDGERS_MAX ||
           search->response->n_items >= FOUND_MAX;
}

static err node_audit_search_read(struct read_context *context, const ProtobufCMessage *message,
                                  ProtobufCMessage *reply)
{
    struct search search = {
        .context = context,
        .request = (const search_request *)message,
        .response = (search_response *)reply,
        .wallet_room = (size_t)LEDGERS_MAX * CURRENCIES_ASK,
    };
    uint32_t done = 0;

    err e = check(context, search.request);
    if (e == ERR_OK)
        e = players_read(&search);
    if (e != ERR_OK)
        return e;
    err result = ERR_OK;
    while (done < search.player_count && !page_is_full(&search)) {
        search.player = &search.players[done++];
        if (search.request->n_buckets > 0 && (e = search_goods(&search)) != ERR_OK)
            result = e; /* Go on, so that every missing row is noted. */
        if ((e = search_wallet(&search)) != ERR_OK)
            result = e;
    }
    if (done == PLAYERS_MAX || done < search.player_count)
        search.response->next_cursor =
            arena_text(context->arena, player_id(&search.players[done - 1]));
    return result;
}

const struct handler node_audit_search_handler = {
    .method = METHOD_AUDIT_SEARCH,
    .read = node_audit_search_read,
};
