/*
 * row_fuzz: rows as the database keeps them. The first byte picks the table; rows with keys have
 * the key's length in the second byte, then the key.
 */
#include <string.h>

#include "holdfast/internal/v1/channel.pb-c.h"
#include "node/core/apply/apply.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/goods/ledger.h"
#include "node/core/handler/outcome_row.h"
#include "node/core/player/player.h"
#include "node/core/rows/rows.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"
#include "tests/fuzz/fuzz.h"

enum kind {
    KIND_META,
    KIND_PLAYER,
    KIND_OUTCOME,
    KIND_TIMER,
    KIND_ITEM,
    KIND_LEDGER,
    KIND_MAIL,
    KIND_OUTBOX,
    KIND_INBOX,
    KIND_CHANNEL_OUT,
    KIND_CHANNEL_IN,
    KIND_END
};

/* Rows of earlier programs may have sums of nothing, which are dropped: no row but those changes.
 */
static void check_meta_again(struct meta *meta, struct slice row)
{
    struct buf encoded = { 0 }, again = { 0 };

    meta_encode(meta, &encoded);
    CHECK(encoded.size < row.size || slice_equal(buf_slice(&encoded), row));
    CHECK(meta_decode(buf_slice(&encoded), meta) == ERR_OK);
    meta_encode(meta, &again);
    CHECK(slice_equal(buf_slice(&again), buf_slice(&encoded)));
    buf_deinit(&encoded);
    buf_deinit(&again);
}

static void check_meta(struct slice row)
{
    struct meta meta;

    meta_init(&meta);
    if (meta_decode(row, &meta) == ERR_OK) {
        check_meta_again(&meta, row);
        (void)meta_is_expired(&meta, (struct incarnation){ 1, 1 });
        (void)policy_find_currency(&meta.policy, SLICE_LITERAL("gold"));
        struct applier *applier = applier_new(1, node_handlers());
        (void)!applier_restore(applier, row);
        applier_free(applier);
    }
    meta_deinit(&meta);
}

/* A row of an older version is written as one of the newest; that one stays as it is. */
static void check_player_again(struct slice row, struct arena *arena)
{
    struct player player;
    struct buf encoded = { 0 };

    CHECK(player_decode(row, SLICE_LITERAL("player:42"), arena, &player) == ERR_OK);
    player_encode(&player, &encoded);
    CHECK(slice_equal(buf_slice(&encoded), row));
    buf_deinit(&encoded);
}

static void check_player(struct slice bytes, struct arena *arena)
{
    struct player player;
    struct buf encoded = { 0 };
    struct buf newest = { 0 };

    if (player_decode(bytes, SLICE_LITERAL("player:42"), arena, &player) != ERR_OK)
        return;
    player_encode(&player, &newest);
    struct slice row = buf_slice(&newest);
    CHECK(bytes.data[0] != row.data[0] || slice_equal(row, bytes));
    check_player_again(row, arena);
    (void)player_find_balance(&player, SLICE_LITERAL("gold"));
    if (player_sections(&player, arena) == ERR_OK) {
        buf_clear(&encoded);
        player_encode(&player, &encoded);
        CHECK(slice_equal(buf_slice(&encoded), row));
        (void)player_find_section(&player, SLICE_LITERAL("progress"));
        (void)player_sections_bytes(&player);
    }
    buf_deinit(&encoded);
    buf_deinit(&newest);
}

static void check_outcome(struct slice row, struct arena *arena)
{
    struct outcome_row outcome;
    struct buf encoded = { 0 };
    struct meta meta;

    if (outcome_row_decode(row, &outcome) != ERR_OK)
        return;
    outcome_row_encode(&outcome, &encoded);
    CHECK(slice_equal(buf_slice(&encoded), row));
    buf_deinit(&encoded);
    meta_init(&meta);
    CHECK(outcome_row_status(&outcome, &(struct outcome_teller){ &meta, 0, AS_OF_APPLY_VERSION },
                             arena) != NULL);
    meta_deinit(&meta);
}

static void check_timer(struct slice key, struct slice row)
{
    struct timer_row timer;
    struct buf encoded = { 0 };
    struct row_key again;

    if (timer_row_decode(key, row, &timer) != ERR_OK)
        return;
    timer_row_encode(timer.fence, &encoded);
    CHECK(slice_equal(buf_slice(&encoded), row));
    if (timer.reservation_seq > 0)
        row_key_reservation_timer(&again, timer.due_ms, timer.entity, timer.reservation_seq);
    else
        row_key_timer(&again, timer.due_ms, timer.entity);
    CHECK(slice_equal(row_key_slice(&again), key));
    buf_deinit(&encoded);
}

static void check_item(struct slice key, struct slice row)
{
    struct item_row item;
    struct buf encoded = { 0 };

    if (item_row_decode(key, row, &item) != ERR_OK)
        return;
    item_row_encode(&item, &encoded);
    CHECK(slice_equal(buf_slice(&encoded), row));
    buf_deinit(&encoded);
}

static void check_ledger(struct slice row, struct arena *arena)
{
    Holdfast__V1__LedgerEntry *entry;

    if (ledger_row_decode(row, arena, &entry) != ERR_OK)
        return;
    uint8_t *packed = arena_alloc(arena, protobuf_c_message_get_packed_size(&entry->base) + 1);
    (void)protobuf_c_message_pack(&entry->base, packed);
}

static const ProtobufCMessageDescriptor *message_of(enum kind kind)
{
    switch (kind) {
    case KIND_MAIL:
        return &holdfast__v1__mail__descriptor;
    case KIND_OUTBOX:
        return &holdfast__internal__v1__outbox_row__descriptor;
    case KIND_INBOX:
        return &holdfast__internal__v1__inbox_row__descriptor;
    case KIND_CHANNEL_OUT:
        return &holdfast__internal__v1__channel_out_row__descriptor;
    default:
        return &holdfast__internal__v1__channel_in_row__descriptor;
    }
}

/* Holds a field with number 0, somewhere: protobuf-c reads one whose tag has two bytes, writes it
 * with one, and refuses that. We write none. */
static bool has_field_0(const ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->n_unknown_fields; i++) {
        if (message->unknown_fields[i].tag == 0)
            return true;
    }
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        const char *place = (const char *)message + field->offset;
        bool list = field->label == PROTOBUF_C_LABEL_REPEATED;
        size_t count = 1;
        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (list)
            memcpy(&count, (const char *)message + field->quantifier_offset, sizeof count);
        else if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
                 memcmp((const char *)message + field->quantifier_offset, &field->id,
                        sizeof field->id) != 0)
            continue;
        const ProtobufCMessage *const *parts = NULL;
        if (list)
            memcpy(&parts, place, sizeof parts);
        else
            parts = (const ProtobufCMessage *const *)(const void *)place;
        for (size_t j = 0; j < count; j++) {
            if (parts[j] != NULL && has_field_0(parts[j]))
                return true;
        }
    }
    return false;
}

/* Rows of mail and of the channel are messages: what is read is written as one that stays. */
static void check_message(const ProtobufCMessageDescriptor *type, struct slice row,
                          struct arena *arena)
{
    const ProtobufCMessage *message = arena_unpack(arena, type, row);

    if (message == NULL || has_field_0(message))
        return;
    struct slice first = arena_pack(arena, message);
    message = arena_unpack(arena, type, first);
    CHECK(message != NULL);
    CHECK(slice_equal(arena_pack(arena, message), first));
}

void fuzz_one(struct slice input)
{
    struct reader reader = reader_from(input);
    struct arena arena = { 0 };
    unsigned kind = read_u8(&reader) % KIND_END;
    bool keyed = kind == KIND_TIMER || kind == KIND_ITEM;
    struct slice key = keyed ? read_raw(&reader, read_u8(&reader)) : (struct slice){ 0 };
    struct slice row = read_raw(&reader, reader_left(&reader));

    if (!reader.bad && kind == KIND_META)
        check_meta(row);
    else if (!reader.bad && kind == KIND_PLAYER)
        check_player(row, &arena);
    else if (!reader.bad && kind == KIND_OUTCOME)
        check_outcome(row, &arena);
    else if (!reader.bad && kind == KIND_TIMER)
        check_timer(key, row);
    else if (!reader.bad && kind == KIND_ITEM)
        check_item(key, row);
    else if (!reader.bad && kind == KIND_LEDGER)
        check_ledger(row, &arena);
    else if (!reader.bad)
        check_message(message_of(kind), row, &arena);
    arena_deinit(&arena);
}

static void seed_keyed(struct fuzz_seeds *seeds, const char *name, uint8_t kind,
                       const struct row_key *key, const struct buf *row)
{
    struct buf bytes = { 0 };

    buf_put_u8(&bytes, (uint8_t)key->size);
    buf_append(&bytes, key->bytes, key->size);
    buf_append(&bytes, row->data, row->size);
    fuzz_seed_add_kind(seeds, name, kind, buf_slice(&bytes));
    buf_deinit(&bytes);
}

static void seed_meta(struct fuzz_seeds *seeds)
{
    struct meta meta;
    struct buf row = { 0 };

    meta_init(&meta);
    meta_encode(&meta, &row);
    fuzz_seed_add_kind(seeds, "meta-new", KIND_META, buf_slice(&row));
    buf_clear(&row);
    meta.applied_index = 7;
    meta.vector = (struct vector){ .count = 1, .items = { { 2, 1, 7 } } };
    meta.membership = (struct membership){ .config = 1, .count = 3, .members = { 1, 2, 3 } };
    meta.policy.currency_count = 1;
    meta.policy.currencies[0] = (struct currency){ .name = "gold", .max_balance = 100 };
    meta_encode(&meta, &row);
    fuzz_seed_add_kind(seeds, "meta", KIND_META, buf_slice(&row));
    buf_deinit(&row);
    meta_deinit(&meta);
}

static void seed_player(struct fuzz_seeds *seeds)
{
    struct arena arena = { 0 };
    struct player player;
    struct buf row = { 0 };

    player_init(&player, SLICE_LITERAL("player:42"));
    player.version = 3;
    player.ledger_seq = 2;
    player.session = (struct session){ .state = SESSION_HELD,
                                       .fence = 2,
                                       .incarnation = { 1, 100 },
                                       .claim = { .incarnation = { 1, 200 },
                                                  .deadline_ms = 9000,
                                                  .op_id = SLICE_LITERAL("claim:x"),
                                                  .attempt = 1 } };
    player_get_balance(&player, &arena, SLICE_LITERAL("gold"))->amount = 500;
    CHECK(player_sections(&player, &arena) == ERR_OK);
    player_add_section(&player, SLICE_LITERAL("progress"))->version = 3;
    player_encode(&player, &row);
    fuzz_seed_add_kind(seeds, "player", KIND_PLAYER, buf_slice(&row));
    buf_deinit(&row);
    arena_deinit(&arena);
}

/* Its encoder is inside ledger_append: version, seq, kind, time, dot, three texts, changes, items,
 * hash. */
static void seed_ledger(struct fuzz_seeds *seeds)
{
    struct buf row = { 0 };

    buf_put_u8(&row, 1);
    buf_put_u64(&row, 1);
    buf_put_u8(&row, 1);
    for (unsigned i = 0; i < 4; i++)
        buf_put_u64(&row, i + 1);
    buf_append(&row, "\x05id:42\x0fsystem:payments\x01r", 24);
    buf_append(&row, "\x01\x04gold", 6);
    buf_put_u64(&row, 5);
    buf_put_u64(&row, 505);
    buf_put_u8(&row, 1);
    buf_append(&row, "0123456789abcdef\x05sword", 22);
    buf_put_bytes(&row, SLICE_LITERAL("{}"));
    buf_append(&row, "0123456789abcdef0123456789abcdef", LEDGER_HASH_BYTES);
    fuzz_seed_add_kind(seeds, "ledger", KIND_LEDGER, buf_slice(&row));
    buf_deinit(&row);
}

static void seed_message(struct fuzz_seeds *seeds, const char *name, enum kind kind,
                         const ProtobufCMessage *message)
{
    struct arena arena = { 0 };

    fuzz_seed_add_kind(seeds, name, (uint8_t)kind, arena_pack(&arena, message));
    arena_deinit(&arena);
}

static void seed_channel(struct fuzz_seeds *seeds)
{
    Holdfast__V1__Item item = HOLDFAST__V1__ITEM__INIT;
    Holdfast__V1__Item *items[] = { &item };
    Holdfast__V1__Mail mail = HOLDFAST__V1__MAIL__INIT;
    Holdfast__Internal__V1__ChannelCredit credit = HOLDFAST__INTERNAL__V1__CHANNEL_CREDIT__INIT;
    Holdfast__Internal__V1__OutboxRow outbox = HOLDFAST__INTERNAL__V1__OUTBOX_ROW__INIT;
    Holdfast__Internal__V1__ChannelResult result = HOLDFAST__INTERNAL__V1__CHANNEL_RESULT__INIT;
    Holdfast__Internal__V1__InboxRow inbox = HOLDFAST__INTERNAL__V1__INBOX_ROW__INIT;
    Holdfast__Internal__V1__ChannelOutRow out = HOLDFAST__INTERNAL__V1__CHANNEL_OUT_ROW__INIT;
    Holdfast__Internal__V1__ChannelInRow in = HOLDFAST__INTERNAL__V1__CHANNEL_IN_ROW__INIT;

    item.uid = mail.mail_id = text_lend("00010000000000010000000000050000");
    mail.from_player_id = text_lend("42");
    mail.n_items = 1;
    mail.items = items;
    credit.seq = result.seq = out.last_seq = in.watermark = 3;
    credit.mail = &mail;
    outbox.credit = &credit;
    inbox.result = &result;
    seed_message(seeds, "mail", KIND_MAIL, &mail.base);
    seed_message(seeds, "outbox", KIND_OUTBOX, &outbox.base);
    seed_message(seeds, "inbox", KIND_INBOX, &inbox.base);
    seed_message(seeds, "channel-out", KIND_CHANNEL_OUT, &out.base);
    seed_message(seeds, "channel-in", KIND_CHANNEL_IN, &in.base);
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    struct buf row = { 0 };
    struct row_key key;
    const struct outcome_row outcome = { .state = OUTCOME_ROW_COMMITTED,
                                         .method = 20,
                                         .attempt = 1,
                                         .dot = { 1, 1, 5 },
                                         .version = 2,
                                         .body = SLICE_LITERAL("\x12\x02\x08\x01") };
    const struct item_row item = { .kind = SLICE_LITERAL("sword"),
                                   .attributes = SLICE_LITERAL("{}") };

    seed_meta(seeds);
    seed_player(seeds);
    seed_ledger(seeds);
    seed_channel(seeds);
    outcome_row_encode(&outcome, &row);
    fuzz_seed_add_kind(seeds, "outcome", KIND_OUTCOME, buf_slice(&row));
    buf_clear(&row);
    timer_row_encode(3, &row);
    row_key_timer(&key, 99, SLICE_LITERAL("player:42"));
    seed_keyed(seeds, "timer", KIND_TIMER, &key, &row);
    buf_clear(&row);
    item_row_encode(&item, &row);
    row_key_item(&key, SLICE_LITERAL("player:42"), (const uint8_t *)"0123456789abcdef");
    seed_keyed(seeds, "item", KIND_ITEM, &key, &row);
    buf_deinit(&row);
}
