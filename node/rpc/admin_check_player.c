#include <inttypes.h>
#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/favorite/favorite_row.h"
#include "node/core/goods/ledger.h"
#include "node/core/handler/player_row.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/core/repair/row_check.h"
#include "node/core/repair/row_repair.h"
#include "node/core/transaction/txn_row.h"
#include "node/rpc/methods.h"
#include "runtime/base/hex.h"
#include "runtime/cluster/incarnation.h"

#define PAGE_SIZE_MAX   64u
#define RANGE_ROWS_MAX  512u
#define LEDGER_ROWS_MAX 128u
#define SEQ_BYTES       8u

typedef Holdfast__V1__CheckPlayerRequest check_request;
typedef Holdfast__V1__CheckPlayerResponse check_response;

/* One page: of the rows that keys name, or of a range, or of the ledger. A cursor says which, and
 * behind which row: a letter, then the hex digits of the last key's end, or the next entry. */
struct check {
    struct read_context *context;
    check_response *response;
    uint32_t size;
    bool missing;
    uint32_t ranged;   /* Of a range: how many rows, ... */
    struct slice last; /* ... and the last key. */
};

/* The tables of which a player may have many rows in order, as they are looked at. */
#define RANGE_NONE(letter)
#define RANGE_ALWAYS(letter)
#define RANGE_ASKED(letter)
#define RANGE_ENTITY(letter)                                letter,
#define RANGE(NAME, name, letter, entity, tail, order, ...) RANGE_##order(letter)
static const char ranges[] = { TABLE_ROWS(RANGE) };
#define STAGE_LEDGER 'l'

static void add(struct check *c, struct slice key, struct slice value, const char *why)
{
    struct arena *arena = c->context->arena;
    Holdfast__V1__UnreadableRow *row = (Holdfast__V1__UnreadableRow *)arena_message(
        arena, &holdfast__v1__unreadable_row__descriptor);

    row->table = arena_printf(arena, "%c", key.data[0]);
    row->key = bytes_hex(arena, key, STATE_KEY_BYTES_MAX);
    for (size_t i = 0; i < c->response->n_rows; i++) {
        if (strcmp(c->response->rows[i]->key, row->key) == 0)
            return; /* Two entries of one operation name its outcome. */
    }
    row->why = text_lend(why);
    row->bytes = bytes_hex(arena, value, REPAIR_ROW_BYTES_TOLD);
    row->size_bytes = (uint32_t)value.size;
    c->response->rows[c->response->n_rows++] = row;
}

static bool is_full(const struct check *c)
{
    return c->response->n_rows >= c->size;
}

static void look(struct check *c, struct slice key, struct slice value)
{
    struct row_check check;

    c->response->looked_at++;
    row_check(c->context->arena, key, value, &check);
    if (!check.readable)
        add(c, key, value, check.why);
}

/* `absent` says what is wrong if there is no such row; NULL: nothing is. */
static enum state_found look_key(struct check *c, const struct row_key *key, const char *absent)
{
    struct slice value = { 0 };
    enum state_found found = state_find(c->context->state, row_key_slice(key), &value);

    if (found == STATE_MISSING) {
        need_add_key(c->context->need, row_key_slice(key));
        c->missing = true;
    } else if (found == STATE_PRESENT) {
        look(c, row_key_slice(key), value);
    } else if (absent != NULL) {
        add(c, row_key_slice(key), value, absent);
    }
    return found;
}

static void look_sections(struct check *c, struct player *player)
{
    struct row_key key;

    if (player_sections(player, c->context->arena) != ERR_OK)
        return; /* Told of the player's own row. */
    for (uint32_t i = 0; i < player->section_count; i++) {
        if (!text_is_name(player->sections[i].name, SECTION_NAME_BYTES_MAX))
            continue;
        row_key_section(&key, c->context->entity, player->sections[i].name);
        (void)look_key(c, &key, NULL);
    }
}

/* The player's own row and what a transaction holds name one another. */
static void look_intent(struct check *c, const struct player *player)
{
    Holdfast__Internal__V1__TxnIntent *intent = NULL;
    struct row_key key;

    row_key_intent(&key, c->context->entity);
    if (look_key(c, &key, NULL) == STATE_MISSING || player == NULL)
        return;
    enum state_found found = intent_find(c->context->state, c->context->arena, c->context->entity,
                                         c->context->need, &intent);
    bool held = player->txn.seq != 0;
    bool same = intent != NULL && txn_ref_equal(txn_ref_of(intent->txn), player->txn);
    row_key_player(&key, c->context->entity);
    if ((found == STATE_ABSENT && held) || (intent != NULL && !same))
        add(c, row_key_slice(&key), (struct slice){ 0 },
            "the player's row and what a transaction holds of it differ: it wants a rebuild");
}

static err look_singles(struct check *c)
{
    struct read_context *context = c->context;
    struct player player;
    struct row_key key;

    row_key_player(&key, context->entity);
    (void)look_key(c, &key, NULL);
    row_key_mailbox(&key, context->entity);
    (void)look_key(c, &key, NULL);
    err e =
        player_row_load(context->state, context->arena, context->entity, context->need, &player);
    look_intent(c, e == ERR_OK ? &player : NULL);
    if (e == ERR_OK)
        look_sections(c, &player);
    return c->missing || e == ERR_NEED ? ERR_NEED : ERR_OK;
}

/* An open reservation is nothing without its entry. */
static void look_reserve(struct check *c, struct slice key, struct slice value)
{
    struct read_context *context = c->context;
    struct slice end = { key.data + key.size - SEQ_BYTES, SEQ_BYTES };
    struct reader reader = reader_from(end);
    Holdfast__V1__LedgerEntry *entry = NULL;
    uint64_t expires_at_ms;
    struct slice row;

    if (reservation_row_decode(value, &expires_at_ms) != ERR_OK)
        return; /* Told as it is. */
    err e =
        ledger_row_find(context->state, context->entity, read_u64_be(&reader), context->need, &row);
    c->missing |= e == ERR_NEED;
    if (e == ERR_NEED)
        return;
    if (e != ERR_OK || ledger_row_decode(row, context->arena, &entry) != ERR_OK ||
        entry->kind != HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_RESERVE)
        add(c, key, value, "what the reservation holds is lost with its entry: it wants a rebuild");
}

/* What is listed has a row of its own, and is counted. */
static void look_edge(struct check *c, struct slice listed)
{
    struct favorite_key edge;
    struct row_key key;

    if (favorite_key_parse(listed, &edge) != ERR_OK)
        return; /* Told as it is. */
    if (listed.data[0] == TABLE_FAVORED) {
        row_key_favorite(&key, edge.entity, edge.collection, edge.target);
        (void)look_key(c, &key, NULL);
    }
    row_key_favorites(&key, edge.entity, edge.collection);
    (void)look_key(c, &key, NULL);
}

static bool take_row(void *user, struct slice key, struct slice value)
{
    struct check *c = user;

    c->ranged++;
    look(c, key, value);
    if (key.data[0] == TABLE_RESERVATION)
        look_reserve(c, key, value);
    if (key.data[0] == TABLE_FAVORED || key.data[0] == TABLE_ADDED)
        look_edge(c, key);
    c->last = arena_copy(c->context->arena, key);
    return !is_full(c);
}

static void range_prefix(char table, struct slice entity, struct row_key *key)
{
    row_key_item_prefix(key, entity);
    key->bytes[0] = (uint8_t)table; /* Keys of these tables are alike so far. */
}

/* *ret_next: the cursor behind this page; empty: the range is through. */
static err look_range(struct check *c, char table, struct slice after, char **ret_next)
{
    struct row_key prefix, from;

    range_prefix(table, c->context->entity, &prefix);
    from = prefix;
    if (after.size > 0 && (after.size % 2 != 0 || after.size / 2 > sizeof from.bytes - from.size ||
                           hex_parse(after, after.size / 2, from.bytes + from.size) != ERR_OK))
        return refuse_invalid(c->context->arena, c->context->refusal, "cursor",
                              "next_cursor of the page before",
                              text_shorten(c->context->arena, after));
    from.size += after.size / 2;
    const struct state_range range = {
        .prefix = row_key_slice(&prefix),
        .after = after.size > 0 ? row_key_slice(&from) : (struct slice){ 0 },
        .limit = RANGE_ROWS_MAX,
    };
    err e = state_range_visit(c->context->state, &range, c->context->need, take_row, c);
    if (e != ERR_OK || c->missing)
        return e != ERR_OK ? e : ERR_NEED;
    if (is_full(c) || c->ranged == RANGE_ROWS_MAX) {
        struct slice end = { c->last.data + prefix.size, c->last.size - prefix.size };
        *ret_next = arena_printf(c->context->arena, "%c%s", table,
                                 bytes_hex(c->context->arena, end, end.size));
    }
    return ERR_OK;
}

/* An entry, what undid it, and the outcome of its operation. */
static void look_entry(struct check *c, uint64_t seq)
{
    struct read_context *context = c->context;
    Holdfast__V1__LedgerEntry *entry = NULL;
    struct row_key key;
    struct slice row;
    struct op_id id;
    const char *why;

    row_key_ledger(&key, context->entity, seq);
    (void)look_key(c, &key, "an entry of the ledger is not there, though ledgers have no gaps");
    row_key_reversal(&key, context->entity, seq);
    (void)look_key(c, &key, NULL);
    if (ledger_row_find(context->state, context->entity, seq, context->need, &row) != ERR_OK ||
        ledger_row_decode(row, context->arena, &entry) != ERR_OK ||
        op_id_parse(slice_from_text(entry->op_id), &id, &why) != ERR_OK)
        return;
    row_key_operation(&key, context->entity, &id);
    (void)look_key(c, &key, NULL);
}

static err look_ledger(struct check *c, struct slice from, char **ret_next)
{
    struct read_context *context = c->context;
    uint64_t seq = 0;

    if (from.size > 0 && decimal_parse(from, &seq) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "cursor",
                              "next_cursor of the page before", text_shorten(context->arena, from));
    if (from.size == 0) {
        err e = ledger_head_find(context->state, context->entity, context->need, &seq);
        if (e != ERR_OK)
            return e;
    }
    /* Three rows an entry may be told of. */
    for (uint32_t i = 0; i < LEDGER_ROWS_MAX && seq > 0 && c->response->n_rows < c->size; i++)
        look_entry(c, seq--);
    if (seq > 0)
        *ret_next = arena_printf(context->arena, "%c%" PRIu64, STAGE_LEDGER, seq);
    return c->missing ? ERR_NEED : ERR_OK;
}

/* The stage behind a range of `table`; 0: behind the rows that keys name. */
static char stage_after(char table)
{
    if (table == 0)
        return ranges[0];
    for (size_t i = 0; i + 1 < sizeof ranges; i++) {
        if (ranges[i] == table)
            return ranges[i + 1];
    }
    return STAGE_LEDGER;
}

static err look_stage(struct check *c, struct slice cursor)
{
    struct read_context *context = c->context;
    char stage = cursor.size > 0 ? (char)cursor.data[0] : 0;
    struct slice rest = { cursor.data + 1, cursor.size - 1 };
    char *next = NULL;
    err e;

    if (stage == 0) {
        e = look_singles(c);
    } else if (stage == STAGE_LEDGER) {
        e = look_ledger(c, rest, &next);
    } else if (memchr(ranges, stage, sizeof ranges) != NULL) {
        e = look_range(c, stage, rest, &next);
    } else {
        e = refuse_invalid(context->arena, context->refusal, "cursor",
                           "next_cursor of the page before", text_shorten(context->arena, cursor));
    }
    if (e == ERR_OK && next == NULL && stage != STAGE_LEDGER)
        next = arena_printf(context->arena, "%c", stage_after(stage));
    if (next != NULL)
        c->response->next_cursor = next;
    return e;
}

static err admin_check_player_read(struct read_context *context, const ProtobufCMessage *message,
                                   ProtobufCMessage *reply)
{
    const check_request *request = (const check_request *)message;
    check_response *response = (check_response *)reply;
    struct check c = { .context = context, .response = response };

    if (request->page_size > PAGE_SIZE_MAX)
        return refuse_number(context->arena, context->refusal, "page_size", "1 to 64, or 0",
                             request->page_size);
    c.size = request->page_size > 0 ? request->page_size : PAGE_SIZE_MAX;
    /* The rows that keys name are told at once, whatever their number. */
    response->rows =
        arena_alloc(context->arena, sizeof(void *) * (PAGE_SIZE_MAX + SECTIONS_MAX + 8u));
    response->as_of = as_of_text(context);
    return look_stage(&c, slice_from_text(request->cursor));
}

const struct handler admin_check_player_handler = {
    .method = METHOD_CHECK_PLAYER,
    .read = admin_check_player_read,
};
