/* Ledgers, by docs/ledger.md said again: every entry of the log that changes what a player has
 * leaves entries there, chained, each with the balances that follow from the one before. Part of
 * the model: it reads the stored bytes by itself, and makes their hashes by itself. */
#include <inttypes.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/crypto/sha256.h"
#include "tests/sim/model/model.h"
#include "tests/sim/servers/request.h"

#define KIND(name) HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_##name
#define BIT(name)  (1ull << KIND_PLACE(KIND(name)))
/* TXN_TAKE and TXN_GIVE are 90 and 91. */
#define KIND_PLACE(kind) ((kind) >= 90 ? (kind)-60 : (kind))
#define GENESIS_TEXT     "holdfast.ledger.1:"

/* An entry while it is looked at. */
struct look {
    const struct change *c;
    uint32_t player;
    struct player_model *model;
    struct slice row;
    struct entry_model entry;
};

static void fail(const struct look *look, const char *what, uint64_t number)
{
    sim_fail(look->c->sim, look->c->number,
             "entry %" PRIu64 ": entry %" PRIu64 " of p%u's ledger: %s (%" PRIu64 ")",
             look->c->entry->index, look->entry.seq, look->player, what, number);
}

/* ---- the chain ---- */
static void check_chain(struct look *look)
{
    struct player_model *model = look->model;
    struct slice bytes = { look->row.data, look->row.size - SHA256_BYTES };
    uint8_t hash[SHA256_BYTES];
    char entity[32];

    if (model->entry_count == 0) {
        player_entity(look->player, entity);
        sha256_pair(SLICE_LITERAL(GENESIS_TEXT), slice_from_text(entity), model->entry_hash);
    }
    sha256_pair((struct slice){ model->entry_hash, SHA256_BYTES }, bytes, hash);
    if (memcmp(hash, bytes.data + bytes.size, sizeof hash) != 0)
        fail(look, "does not chain to the one before it", 0);
    memcpy(model->entry_hash, hash, sizeof hash);
    memcpy(look->entry.hash, hash, sizeof hash);
}

/* ---- what it says ---- */
static struct slice read_text(struct reader *reader)
{
    return read_raw(reader, read_u8(reader));
}

static uint32_t currency_of(struct slice name)
{
    uint32_t currency = 0;

    while (currency < SIM_CURRENCIES &&
           !slice_equal(slice_from_text(request_currency(currency)), name))
        currency++;
    return currency;
}

/* Each balance follows from the one before; a MAIL entry changes none. */
static void read_change(struct look *look, struct reader *reader, bool extended)
{
    struct player_model *model = look->model;
    struct entry_model *entry = &look->entry;
    uint32_t currency = currency_of(read_text(reader));
    int64_t amount = (int64_t)read_u64(reader);
    int64_t after = (int64_t)read_u64(reader);
    int64_t reserved = extended ? (int64_t)read_u64(reader) : 0;
    int64_t reserved_after = extended ? (int64_t)read_u64(reader) : 0;

    if (currency == SIM_CURRENCIES || (entry->changed >> currency & 1) > 0) {
        fail(look, "changes a currency that there is not, or one twice", currency);
        return;
    }
    entry->changed |= 1u << currency;
    entry->amounts[currency] = amount;
    entry->reserved[currency] = reserved;
    if (amount == 0 && reserved == 0)
        fail(look, "changes a currency by nothing", currency);
    if (entry->kind != KIND(MAIL))
        model->entry_balances[currency] += amount;
    model->entry_reserved[currency] += reserved;
    if (model->entry_balances[currency] != after)
        fail(look, "its balance is not the sum", currency);
    if (extended && model->entry_reserved[currency] != reserved_after)
        fail(look, "what is reserved after it is not the sum", currency);
    entry->balances[currency] = after;
}

static void read_item(struct look *look, struct reader *reader, bool extended)
{
    struct slice uid = read_raw(reader, ITEM_UID_BYTES);
    struct slice kind = read_text(reader);
    struct slice attributes = read_bytes(reader, UINT32_MAX);
    uint64_t minted_ms = extended ? read_u64(reader) : 0;
    uint32_t step = extended ? read_u32(reader) : 0;
    char text[ITEM_UID_TEXT_SIZE];

    if (uid.size != ITEM_UID_BYTES || look->entry.item_count == ENTRY_ITEMS)
        return;
    item_uid_print(uid.data, text);
    uint32_t place = goods_item_find(&look->c->sim->oracle->book, text);
    if (place == 0) {
        fail(look, "names an item that never was", 0);
        return;
    }
    struct item_model *item = &look->c->sim->oracle->book.items[place - 1];
    look->entry.items[look->entry.item_count++] = place;
    if (!item_is_like(item, kind, attributes, extended ? minted_ms : item->minted_ms))
        fail(look, "names an item of another kind, or with other attributes", step);
    if (extended && (step == 0 || step > item->steps))
        fail(look, "names a step that an item has not taken", step);
}

/* What entries of a method may be; 0: it leaves none. */
static uint64_t kinds_of(uint32_t method)
{
    switch (method) {
    case METHOD_GRANT:
        return BIT(GRANT);
    case METHOD_SPEND:
        return BIT(SPEND);
    case METHOD_TRANSFER_CURRENCIES:
    case METHOD_TRANSFER_ITEMS:
    case METHOD_SEND_MAIL:
        return BIT(TRANSFER);
    case METHOD_CLAIM_MAIL:
        return BIT(CLAIM);
    case METHOD_DELIVER_TO_PLAYER:
        return BIT(MAIL);
    case METHOD_REVERSE_ENTRY:
        return BIT(REVERSAL);
    case METHOD_RESERVE_CURRENCIES:
        return BIT(RESERVE);
    case METHOD_POST_RESERVATION:
        return BIT(POST) | BIT(TRANSFER);
    case METHOD_VOID_RESERVATION:
        return BIT(VOID);
    case METHOD_RESERVATION_DUE:
        return BIT(EXPIRY);
    case METHOD_EXECUTE_TRANSACTION:
    case METHOD_SWAP_GOODS:
    case METHOD_CHANNEL_DELIVER:
    case METHOD_RESOLVE_OPERATION:
        return BIT(TXN_TAKE) | BIT(TXN_GIVE) | BIT(REFUND);
    case METHOD_CHANNEL_SETTLE: /* Receipts are paid there. */
        return BIT(TXN_TAKE) | BIT(TXN_GIVE) | BIT(REFUND) | BIT(GRANT) | BIT(MAIL);
    default:
        return 0;
    }
}

static bool is_of_method(const struct look *look)
{
    uint32_t place = KIND_PLACE((uint32_t)look->entry.kind);

    return place < 64 && (kinds_of(look->c->op.method) >> place & 1) > 0;
}

/* Goods come by some kinds, and leave by others. */
static void check_direction(const struct look *look)
{
    const struct entry_model *entry = &look->entry;
    bool takes = entry->kind == KIND(SPEND) || entry->kind == KIND(TXN_TAKE);
    bool gives = entry->kind == KIND(GRANT) || entry->kind == KIND(REFUND) ||
                 entry->kind == KIND(CLAIM) || entry->kind == KIND(MAIL) ||
                 entry->kind == KIND(TXN_GIVE) || entry->kind == KIND(VOID);

    for (uint32_t i = 0; i < SIM_CURRENCIES; i++) {
        if ((takes && entry->amounts[i] > 0) || (gives && entry->amounts[i] < 0))
            fail(look, "moves a currency the wrong way", i);
    }
    if (entry->item_count > 0 &&
        ((takes && entry->extended && !entry->items_taken) || (gives && entry->items_taken)))
        fail(look, "moves items the wrong way", entry->item_count);
}

/* The entry that a request's field names by its operation; 0: it has no such field. */
static uint64_t named_by(const struct look *look, const char *name)
{
    const ProtobufCMessage *request = look->c->request;
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(request->descriptor, name);

    if (field == NULL)
        return 0;
    const char *id = *(char *const *)(const void *)((const uint8_t *)request + field->offset);
    return model_target(look->c, id)->entry_seq;
}

static void check_reference(const struct look *look)
{
    const Holdfast__Internal__V1__ReservationDueRequest *due = (const void *)look->c->request;
    uint64_t wanted = 0;

    if (look->c->op.method == METHOD_RESERVATION_DUE)
        wanted = due->ledger_seq;
    else if (look->model == look->c->player && look->c->op.id.text.size > 0)
        wanted = named_by(look, "target_op_id") + named_by(look, "reserve_op_id");
    if (look->entry.refers_to != wanted)
        fail(look, "refers to another entry", look->entry.refers_to);
}

/* Of the player's own operation: what its request says. */
static void check_own(const struct look *look, struct slice op_id, struct slice authority,
                      struct slice reason)
{
    const struct change *c = look->c;
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(c->request->descriptor, "reason");
    static const char *const kinds[] = { [AUTHORITY_SESSION] = "session:",
                                         [AUTHORITY_SYSTEM] = "system:",
                                         [AUTHORITY_UNHELD] = "unheld" };

    if (!slice_equal(op_id, c->op.id.text))
        fail(look, "has another op_id than its operation", op_id.size);
    const char *kind = kinds[c->op.authority.kind];
    if (authority.size < strlen(kind) || memcmp(authority.data, kind, strlen(kind)) != 0)
        fail(look, "has another authority than its operation", authority.size);
    if (field == NULL || look->entry.kind == KIND(CLAIM))
        return; /* A CLAIM has the mail's. */
    const char *wanted =
        *(char *const *)(const void *)((const uint8_t *)c->request + field->offset);
    if (!slice_equal(reason, slice_from_text(wanted)))
        fail(look, "has another reason than its operation", reason.size);
}

static void check_time(const struct look *look, uint64_t at_ms, struct dot dot)
{
    const struct entry *entry = look->c->entry;

    if (at_ms != entry->owner_ms)
        fail(look, "is of another time", at_ms);
    if (dot.owner != entry->dot.owner || dot_compare(dot, entry->dot) != 0)
        fail(look, "names another entry of the log", dot.counter);
}

static void note_op(const struct look *look, struct slice op_id)
{
    char entity[32];

    player_entity(look->player, entity);
    struct op_model *op = model_op(look->c->sim->oracle, slice_from_text(entity), op_id);
    if (look->entry.kind != KIND(REFUND) && look->entry.kind != KIND(EXPIRY))
        op->entry_seq = look->entry.seq;
}

/* Each of the other players once, and not the player itself. */
static void read_other_side(struct look *look, struct reader *reader)
{
    uint32_t count = read_u8(reader);
    struct slice names[7];
    char entity[32];

    player_entity(look->player, entity);
    if (count > 7 || (count == 0 && look->entry.kind != KIND(CLAIM))) {
        fail(look, "names another number of other players", count);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        names[i] = read_text(reader);
        if (names[i].size == 0 ||
            slice_equal(names[i], slice_from_text(entity + strlen("player:"))))
            fail(look, "names its own player as the other side", i);
        for (uint32_t j = 0; j < i; j++) {
            if (slice_equal(names[i], names[j]))
                fail(look, "names another player twice", j);
        }
    }
    if (count > 1 && look->entry.kind < KIND(TXN_TAKE) && look->entry.kind != KIND(REFUND))
        fail(look, "names several players as the other side", count);
    if ((read_text(reader).size > 0) != (look->entry.kind == KIND(CLAIM)))
        fail(look, "names the operation of mail", 0);
}

/* Goods that go from player to player name the other one, from the apply version on that has it. */
static void check_nameless(const struct look *look)
{
    int kind = look->entry.kind;

    if (applier_meta(look->c->shard->applier)->apply_version >= 10 &&
        (kind == KIND(TRANSFER) || kind == KIND(CLAIM)))
        fail(look, "does not name the other side", 0);
}

static void look_at(struct look *look)
{
    const struct change *c = look->c;
    struct entry_model *entry = &look->entry;
    struct reader reader = reader_from(look->row);
    uint32_t version = read_u8(&reader);
    uint64_t seq = read_u64(&reader);

    entry->kind = (int)read_u8(&reader);
    uint64_t at_ms = read_u64(&reader);
    struct dot dot = { .epoch = read_u64(&reader) };
    dot.owner = read_u64(&reader);
    dot.counter = read_u64(&reader);
    struct slice op_id = read_text(&reader);
    struct slice authority = read_text(&reader);
    struct slice reason = read_text(&reader);
    entry->extended = version >= 2;
    entry->refers_to = entry->extended ? read_u64(&reader) : 0;
    entry->items_taken = entry->extended && read_u8(&reader) > 0;
    entry->at_ms = at_ms;
    entry->op_hash = hash_u64(op_id);
    if (version < 1 || version > 3 || seq != entry->seq)
        fail(look, "is numbered otherwise", seq);
    if (!is_of_method(look))
        fail(look, "is of a kind that such an operation does not leave", (uint64_t)entry->kind);
    check_time(look, at_ms, dot);
    if (look->model == c->player && c->op.id.text.size > 0 && c->rule->plans == NULL &&
        c->op.method != METHOD_RESOLVE_OPERATION)
        check_own(look, op_id, authority, reason);
    for (uint32_t left = read_u8(&reader); left > 0 && !reader.bad; left--)
        read_change(look, &reader, entry->extended);
    for (uint32_t left = read_u8(&reader); left > 0 && !reader.bad; left--)
        read_item(look, &reader, entry->extended);
    if (version == 3)
        read_other_side(look, &reader);
    else
        check_nameless(look);
    (void)read_raw(&reader, SHA256_BYTES);
    if (reader_finish(&reader) != ERR_OK) {
        fail(look, "has other bytes than docs/ledger.md says", look->row.size);
        return;
    }
    check_direction(look);
    check_reference(look);
    note_op(look, op_id);
}

static void keep(struct look *look)
{
    struct player_model *model = look->model;

    if (model->entry_count == model->entry_capacity) {
        model->entry_capacity = model->entry_capacity * 2 + 64;
        model->entries =
            mem_realloc(model->entries, sizeof *model->entries * model->entry_capacity);
    }
    look->entry.index = look->c->entry->index;
    model->entries[model->entry_count++] = look->entry;
}

void entries_check(const struct change *c, uint32_t player, uint64_t head,
                   const uint8_t head_hash[SHA256_BYTES])
{
    struct player_model *model = &c->sim->oracle->players[player];
    struct state *state = applier_state(c->shard->applier);
    char entity[32];

    player_entity(player, entity);
    while (model->entry_count < head && c->sim->failure[0] == '\0') {
        struct look look = { .c = c, .player = player, .model = model };
        struct row_key key;
        look.entry.seq = model->entry_count + 1;
        row_key_ledger(&key, slice_from_text(entity), look.entry.seq);
        if (state_find(state, row_key_slice(&key), &look.row) != STATE_PRESENT ||
            look.row.size < SHA256_BYTES) {
            fail(&look, "is not there", head);
            return;
        }
        check_chain(&look);
        look_at(&look);
        keep(&look);
    }
    if (model->entry_count != head)
        model_fail(c, "a ledger has become shorter", head);
    if (head > 0 && memcmp(head_hash, model->entry_hash, SHA256_BYTES) != 0)
        model_fail(c, "a player's row ends its ledger otherwise", player);
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++) {
        if (model->entry_balances[i] != model->now.balances[i] ||
            model->entry_reserved[i] != model->now.reserved[i])
            model_fail(c, "a ledger does not come to what the player has", player);
    }
}
