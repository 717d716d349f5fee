#include "node/core/goods/ledger.h"

#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/handler/event.h"
#include "runtime/crypto/sha256.h"
#include "runtime/base/check.h"

#define LEDGER_VERSION          1u
#define LEDGER_VERSION_EXTENDED 2u
#define LEDGER_VERSION_NAMED    3u  /* As 2, and behind it whom it was with. */
#define HEAD_BITS               48u /* No ledger is that long. */
#define GENESIS_TEXT            "holdfast.ledger.1:"

void ledger_hash(const uint8_t previous[LEDGER_HASH_BYTES], struct slice bytes,
                 uint8_t ret_hash[LEDGER_HASH_BYTES])
{
    sha256_pair((struct slice){ previous, LEDGER_HASH_BYTES }, bytes, ret_hash);
}

void ledger_genesis(struct slice entity, uint8_t ret_hash[LEDGER_HASH_BYTES])
{
    CHECK(entity.size <= ENTITY_BYTES_MAX);
    sha256_pair(SLICE_LITERAL(GENESIS_TEXT), entity, ret_hash);
}

/* What says more than the first kinds did has bytes of its own form (docs/ledger.md). */
static uint8_t version_of(const struct apply_context *context, const struct ledger_entry *entry)
{
    bool spends_items =
        entry->kind == HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_SPEND && entry->item_count > 0;
    bool extended = spends_items || entry->refers_to > 0 ||
                    entry->kind >= HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_CONSUME;

    if (context->version >= COUNTERPART_APPLY_VERSION &&
        (entry->counterpart_count > 0 || entry->mail_op_id != NULL))
        return LEDGER_VERSION_NAMED;
    return extended ? LEDGER_VERSION_EXTENDED : LEDGER_VERSION;
}

static void put_changes(const struct ledger_entry *entry, bool extended, struct buf *out)
{
    buf_put_u8(out, (uint8_t)entry->change_count);
    for (uint32_t i = 0; i < entry->change_count; i++) {
        const struct ledger_change *change = &entry->changes[i];
        buf_put_short(out, change->currency);
        buf_put_u64(out, (uint64_t)change->amount);
        buf_put_u64(out, (uint64_t)change->balance_after);
        if (extended) {
            buf_put_u64(out, (uint64_t)change->reserved);
            buf_put_u64(out, (uint64_t)change->reserved_after);
        }
    }
}

static void put_items(const struct ledger_entry *entry, bool extended, struct buf *out)
{
    buf_put_u8(out, (uint8_t)entry->item_count);
    for (uint32_t i = 0; i < entry->item_count; i++) {
        buf_append(out, entry->items[i].uid, ITEM_UID_BYTES);
        buf_put_short(out, entry->items[i].kind);
        buf_put_bytes(out, entry->items[i].attributes);
        if (extended) {
            buf_put_u64(out, entry->items[i].minted_at_ms);
            buf_put_u32(out, entry->items[i].step);
        }
    }
}

static void put_other_side(const struct ledger_entry *entry, struct buf *out)
{
    CHECK(entry->counterpart_count <= COUNTERPARTS_MAX);
    buf_put_u8(out, (uint8_t)entry->counterpart_count);
    for (uint32_t i = 0; i < entry->counterpart_count; i++)
        buf_put_short(out, slice_from_text(entry->counterparts[i]));
    buf_put_short(out, slice_from_text(entry->mail_op_id != NULL ? entry->mail_op_id : ""));
}

static void put_entry(const struct apply_context *context, const struct ledger_entry *entry,
                      struct buf *out)
{
    uint8_t version = version_of(context, entry);
    bool extended = version != LEDGER_VERSION;

    buf_put_u8(out, version);
    buf_put_u64(out, context->player->ledger_seq);
    buf_put_u8(out, (uint8_t)entry->kind);
    buf_put_u64(out, context->owner_ms);
    buf_put_u64(out, context->dot.epoch);
    buf_put_u64(out, context->dot.owner);
    buf_put_u64(out, context->dot.counter);
    buf_put_short(out, context->op->id.text);
    buf_put_short(out, context->authority_text);
    buf_put_short(out, entry->reason);
    if (extended) {
        buf_put_u64(out, entry->refers_to);
        buf_put_u8(out, entry->items_taken);
    }
    put_changes(entry, extended, out);
    put_items(entry, extended, out);
    if (version == LEDGER_VERSION_NAMED)
        put_other_side(entry, out);
}

/* Wherever an item comes or goes there is a ledger entry, so an item's history is complete. */
static void history_append(struct apply_context *context, const struct ledger_entry *entry)
{
    bool mailed = entry->kind == HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_MAIL;
    const struct history_row history = {
        .held = !entry->items_taken && !mailed,
        .ledger_seq = context->player->ledger_seq,
        .entity = context->player->entity,
        .next = entry->next,
    };
    struct row_key key;

    if (entry->item_count == 0)
        return;
    buf_clear(context->scratch);
    history_row_encode(&history, context->scratch);
    for (uint32_t i = 0; i < entry->item_count; i++) {
        row_key_history(&key, entry->items[i].uid, entry->items[i].step);
        state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
    }
}

void ledger_append(struct apply_context *context, const struct ledger_entry *entry)
{
    struct player *player = context->player;
    struct buf *row = context->scratch;
    struct row_key key;

    CHECK(entry->change_count <= LEDGER_CHANGES_MAX);
    CHECK(entry->item_count <= LEDGER_ITEMS_MAX);
    if (player->ledger_seq == 0)
        ledger_genesis(player->entity, player->ledger_hash);
    player->ledger_seq++;
    buf_clear(row);
    put_entry(context, entry, row);
    ledger_hash(player->ledger_hash, buf_slice(row), player->ledger_hash);
    buf_append(row, player->ledger_hash, LEDGER_HASH_BYTES);
    row_key_ledger(&key, player->entity, player->ledger_seq);
    state_put(context->state, row_key_slice(&key), buf_slice(row));
    history_append(context, entry);
    event_add_entry(context, player->ledger_seq);
}

err ledger_row_find(struct state *state, struct slice entity, uint64_t seq, struct need *need,
                    struct slice *ret_row)
{
    struct row_key key;

    row_key_ledger(&key, entity, seq);
    enum state_found found = row_find(state, &key, need, ret_row);
    return found == STATE_MISSING ? ERR_NEED : found == STATE_ABSENT ? ERR_CORRUPT : ERR_OK;
}

/* PRESENT; ABSENT; MISSING, and noted. */
static enum state_found entry_look(struct state *state, struct slice entity, uint64_t seq,
                                   struct need *need)
{
    struct row_key key;
    struct slice row;

    row_key_ledger(&key, entity, seq);
    return row_find(state, &key, need, &row);
}

err ledger_head_find(struct state *state, struct slice entity, struct need *need, uint64_t *ret_seq)
{
    uint64_t stands = 0, beyond = 1; /* Entry `stands` is there, or 0; `beyond` is not. */
    bool missing = false;

    for (uint32_t i = 0; i < HEAD_BITS; i++) { /* All at once: one turn instead of many. */
        enum state_found found = entry_look(state, entity, 1ull << i, need);
        missing |= found == STATE_MISSING;
        if (found != STATE_PRESENT)
            continue;
        stands = 1ull << i;
        beyond = stands << 1;
    }
    if (missing)
        return ERR_NEED;
    while (beyond - stands > 1) {
        uint64_t middle = stands + (beyond - stands) / 2;
        enum state_found found = entry_look(state, entity, middle, need);
        if (found == STATE_MISSING)
            return ERR_NEED;
        if (found == STATE_PRESENT)
            stands = middle;
        else
            beyond = middle;
    }
    *ret_seq = stands;
    return ERR_OK;
}

err ledger_hash_find(struct state *state, struct slice entity, uint64_t seq, struct need *need,
                     uint8_t ret_hash[LEDGER_HASH_BYTES])
{
    struct slice row;

    if (seq == 0) {
        ledger_genesis(entity, ret_hash);
        return ERR_OK;
    }
    err e = ledger_row_find(state, entity, seq, need, &row);
    if (e == ERR_OK && row.size < LEDGER_HASH_BYTES)
        e = ERR_CORRUPT;
    if (e == ERR_OK)
        memcpy(ret_hash, row.data + row.size - LEDGER_HASH_BYTES, LEDGER_HASH_BYTES);
    return e;
}

void ledger_lose(struct apply_context *context, uint64_t seq,
                 const uint8_t previous[LEDGER_HASH_BYTES], struct slice reason)
{
    const struct ledger_entry lost = {
        .kind = HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_LOST,
        .reason = reason,
    };
    struct player at = { .ledger_seq = seq };
    struct apply_context place = *context;
    struct buf *row = context->scratch;
    uint8_t hash[LEDGER_HASH_BYTES];
    struct row_key key;

    place.player = &at;
    buf_clear(row);
    put_entry(&place, &lost, row);
    ledger_hash(previous, buf_slice(row), hash);
    buf_append(row, hash, LEDGER_HASH_BYTES);
    row_key_ledger(&key, context->op->entity, seq);
    state_put(context->state, row_key_slice(&key), buf_slice(row));
}

err ledger_row_peek(struct slice row, Holdfast__V1__LedgerKind *ret_kind, uint64_t *ret_at_ms)
{
    struct reader reader = reader_from(row);

    (void)read_u8(&reader);  /* Version. */
    (void)read_u64(&reader); /* Seq. */
    *ret_kind = (Holdfast__V1__LedgerKind)read_u8(&reader);
    *ret_at_ms = read_u64(&reader);
    return reader.bad ? ERR_CORRUPT : ERR_OK;
}

err ledger_row_peek_op_id(struct slice row, struct slice *ret_op_id)
{
    struct reader reader = reader_from(row);

    (void)read_u8(&reader);  /* Version. */
    (void)read_u64(&reader); /* Seq. */
    (void)read_u8(&reader);  /* Kind. */
    (void)read_u64(&reader); /* Time. */
    (void)read_u64(&reader); /* Epoch, */
    (void)read_u64(&reader); /* owner, */
    (void)read_u64(&reader); /* counter. */
    *ret_op_id = read_raw(&reader, read_u8(&reader));
    return reader.bad ? ERR_CORRUPT : ERR_OK;
}

bool ledger_row_is_lost(struct slice row)
{
    Holdfast__V1__LedgerKind kind;
    uint64_t at_ms;

    return ledger_row_peek(row, &kind, &at_ms) == ERR_OK &&
           (int)kind == HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_LOST;
}

static char *read_text(struct reader *reader, struct arena *arena)
{
    return arena_text(arena, read_raw(reader, read_u8(reader)));
}

/* It may be reversed, or tell a balance that is made again from it. */
static bool change_is_sound(const Holdfast__V1__LedgerChange *change)
{
    return balance_is_sound(change->amount) && balance_is_sound(change->balance_after) &&
           balance_is_sound(change->reserved) && balance_is_sound(change->reserved_after);
}

static void read_changes(struct reader *reader, struct arena *arena, bool extended,
                         Holdfast__V1__LedgerEntry *entry)
{
    entry->n_changes = read_u8(reader);
    reader->bad |= entry->n_changes > LEDGER_CHANGES_MAX;
    entry->changes =
        arena_messages(arena, &holdfast__v1__ledger_change__descriptor, entry->n_changes);
    for (size_t i = 0; i < entry->n_changes; i++) {
        entry->changes[i]->currency = read_text(reader, arena);
        entry->changes[i]->amount = (int64_t)read_u64(reader);
        entry->changes[i]->balance_after = (int64_t)read_u64(reader);
        if (extended) {
            entry->changes[i]->reserved = (int64_t)read_u64(reader);
            entry->changes[i]->reserved_after = (int64_t)read_u64(reader);
        }
        reader->bad |= !change_is_sound(entry->changes[i]);
    }
}

/* Other kinds move items that were minted some time before. */
static bool mints(Holdfast__V1__LedgerKind kind)
{
    return kind == HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_GRANT ||
           kind == HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_MINT ||
           kind == HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_MAIL;
}

static void read_items(struct reader *reader, struct arena *arena, bool extended,
                       Holdfast__V1__LedgerEntry *entry)
{
    entry->n_items = read_u8(reader);
    reader->bad |= entry->n_items > LEDGER_ITEMS_MAX;
    entry->items = arena_messages(arena, &holdfast__v1__item__descriptor, entry->n_items);
    for (size_t i = 0; i < entry->n_items; i++) {
        struct slice uid = read_raw(reader, ITEM_UID_BYTES);
        if (uid.size != ITEM_UID_BYTES)
            return;
        entry->items[i]->uid = arena_alloc(arena, ITEM_UID_TEXT_SIZE);
        item_uid_print(uid.data, entry->items[i]->uid);
        entry->items[i]->kind = read_text(reader, arena);
        entry->items[i]->attributes =
            arena_text(arena, read_bytes(reader, ITEM_ATTRIBUTES_ROW_MAX));
        if (extended) {
            entry->items[i]->minted_at_ms = (int64_t)read_u64(reader);
            entry->items[i]->step = read_u32(reader);
        } else if (mints(entry->kind)) {
            entry->items[i]->minted_at_ms = entry->at_ms;
        }
    }
}

static void read_other_side(struct reader *reader, struct arena *arena,
                            Holdfast__V1__LedgerEntry *entry)
{
    entry->n_counterparts = read_u8(reader);
    reader->bad |= entry->n_counterparts > COUNTERPARTS_MAX;
    if (reader->bad)
        return;
    entry->counterparts =
        arena_alloc(arena, sizeof *entry->counterparts * (entry->n_counterparts + 1));
    for (size_t i = 0; i < entry->n_counterparts; i++)
        entry->counterparts[i] = read_text(reader, arena);
    entry->mail_op_id = read_text(reader, arena);
}

err ledger_row_decode(struct slice row, struct arena *arena, Holdfast__V1__LedgerEntry **ret_entry)
{
    struct reader reader = reader_from(row);
    Holdfast__V1__LedgerEntry *entry =
        (Holdfast__V1__LedgerEntry *)arena_message(arena, &holdfast__v1__ledger_entry__descriptor);

    uint8_t version = read_u8(&reader);
    bool extended = version != LEDGER_VERSION;
    if (version < LEDGER_VERSION || version > LEDGER_VERSION_NAMED)
        return ERR_CORRUPT;
    entry->seq = read_u64(&reader);
    entry->kind = (Holdfast__V1__LedgerKind)read_u8(&reader);
    entry->at_ms = (int64_t)read_u64(&reader);
    entry->dot = (Holdfast__V1__Dot *)arena_message(arena, &holdfast__v1__dot__descriptor);
    entry->dot->epoch = read_u64(&reader);
    entry->dot->owner = read_u64(&reader);
    entry->dot->counter = read_u64(&reader);
    entry->op_id = read_text(&reader, arena);
    entry->authority = read_text(&reader, arena);
    entry->reason = read_text(&reader, arena);
    if (extended) {
        entry->refers_to = read_u64(&reader);
        entry->items_taken = read_u8(&reader) != 0;
    }
    read_changes(&reader, arena, extended, entry);
    read_items(&reader, arena, extended, entry);
    if (version == LEDGER_VERSION_NAMED)
        read_other_side(&reader, arena, entry);
    if (entry->kind == HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_TRANSFER)
        entry->items_taken = entry->n_items > 0;
    struct slice hash = arena_copy(arena, read_raw(&reader, LEDGER_HASH_BYTES));
    entry->hash = (ProtobufCBinaryData){ hash.size, (uint8_t *)(uintptr_t)hash.data };
    if (reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    *ret_entry = entry;
    return ERR_OK;
}

static void skip_short(struct reader *reader)
{
    (void)read_raw(reader, read_u8(reader));
}

static void visit_changes(struct reader *reader, bool extended,
                          const struct ledger_visitor *visitor)
{
    uint32_t count = read_u8(reader);

    for (uint32_t i = 0; i < count; i++) {
        struct slice currency = read_raw(reader, read_u8(reader));
        int64_t amount = (int64_t)read_u64(reader);
        int64_t reserved = 0;
        (void)read_u64(reader);
        if (extended) {
            reserved = (int64_t)read_u64(reader);
            (void)read_u64(reader);
        }
        if (reader->bad)
            return;
        visitor->amount(visitor->context, currency, amount, reserved);
    }
}

static void visit_items(struct reader *reader, bool extended, bool taken,
                        const struct ledger_visitor *visitor)
{
    uint32_t count = read_u8(reader);

    for (uint32_t i = 0; i < count; i++) {
        struct slice uid = read_raw(reader, ITEM_UID_BYTES);
        skip_short(reader);
        (void)read_bytes(reader, UINT32_MAX);
        if (extended) {
            (void)read_u64(reader);
            (void)read_u32(reader);
        }
        if (reader->bad)
            return;
        visitor->item(visitor->context, uid.data, taken);
    }
}

static void skip_other_side(struct reader *reader)
{
    uint32_t count = read_u8(reader);

    for (uint32_t i = 0; i < count && !reader->bad; i++)
        skip_short(reader);
    skip_short(reader); /* The operation that sent what was claimed. */
}

err ledger_row_visit(struct slice row, const struct ledger_visitor *visitor)
{
    struct reader reader = reader_from(row);
    bool taken = false;
    uint8_t version = read_u8(&reader);
    bool extended = version != LEDGER_VERSION;

    if (version < LEDGER_VERSION || version > LEDGER_VERSION_NAMED)
        return ERR_CORRUPT;
    (void)read_u64(&reader);                       /* Seq. */
    (void)read_u8(&reader);                        /* Kind. */
    (void)read_raw(&reader, sizeof(uint64_t) * 4); /* Time, dot. */
    for (int i = 0; i < 3; i++)                    /* Operation, authority, reason. */
        skip_short(&reader);
    if (extended) {
        (void)read_u64(&reader);
        taken = read_u8(&reader) != 0;
    }
    visit_changes(&reader, extended, visitor);
    visit_items(&reader, extended, taken, visitor);
    if (version == LEDGER_VERSION_NAMED)
        skip_other_side(&reader);
    (void)read_raw(&reader, LEDGER_HASH_BYTES);
    return reader_finish(&reader) == ERR_OK ? ERR_OK : ERR_CORRUPT;
}
