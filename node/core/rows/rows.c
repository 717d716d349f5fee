#include "node/core/rows/rows.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hex.h"

#define ROW_VERSION       1u
#define ROW_VERSION_STEPS 2u /* Items: made before their steps were counted, they have none. */

static void key_begin(struct row_key *key, enum table table)
{
    key->bytes[0] = (uint8_t)table;
    key->size = 1;
}

static void key_add(struct row_key *key, struct slice bytes)
{
    CHECK(bytes.size <= sizeof key->bytes - key->size);
    if (bytes.size > 0)
        memcpy(key->bytes + key->size, bytes.data, bytes.size);
    key->size += bytes.size;
}

static void key_add_be(struct row_key *key, uint64_t number, size_t bytes)
{
    CHECK(bytes <= sizeof key->bytes - key->size);
    for (size_t i = 0; i < bytes; i++)
        key->bytes[key->size + i] = (uint8_t)(number >> (8 * (bytes - 1 - i)));
    key->size += bytes;
}

static void key_add_entity(struct row_key *key, struct slice entity)
{
    CHECK(entity.size > 0 && entity.size <= ENTITY_BYTES_MAX);
    key_add(key, entity);
    key_add_be(key, 0, 1);
}

enum state_found row_find(struct state *state, const struct row_key *key, struct need *need,
                          struct slice *ret_value)
{
    enum state_found found = state_find(state, row_key_slice(key), ret_value);

    if (found == STATE_MISSING && need != NULL)
        need_add_key(need, row_key_slice(key));
    return found;
}

err row_found(enum state_found found, err decoded)
{
    if (found == STATE_MISSING)
        return ERR_NEED;
    return found == STATE_ABSENT ? ERR_OK : decoded;
}

void row_key_player(struct row_key *key, struct slice entity)
{
    key_begin(key, TABLE_PLAYER);
    key_add(key, entity);
}

void row_key_section(struct row_key *key, struct slice entity, struct slice name)
{
    key_begin(key, TABLE_SECTION);
    key_add_entity(key, entity);
    key_add(key, name);
}

void row_key_ledger(struct row_key *key, struct slice entity, uint64_t seq)
{
    key_begin(key, TABLE_LEDGER);
    key_add_entity(key, entity);
    key_add_be(key, seq, 8);
}

void row_key_operation(struct row_key *key, struct slice entity, const struct op_id *id)
{
    if (id->typed) {
        key_begin(key, TABLE_TYPED);
        key_add_entity(key, entity);
        key_add(key, id->text);
        return;
    }
    key_begin(key, TABLE_OPERATION);
    key_add(key, (struct slice){ id->uuid.bytes, sizeof id->uuid.bytes });
    key_add(key, entity);
}

void row_key_entity_prefix(struct row_key *key, enum table table, struct slice entity)
{
    key_begin(key, table);
    key_add_entity(key, entity);
}

void row_key_erasure_timer(struct row_key *key, uint64_t due_ms, struct slice entity,
                           uint64_t number)
{
    row_key_reservation_timer(key, due_ms, entity, ERASURE_TIMER_SEQ | number);
}

void row_key_erasure(struct row_key *key, struct slice entity)
{
    key_begin(key, TABLE_ERASURE);
    key_add(key, entity);
}

void row_key_timer(struct row_key *key, uint64_t due_ms, struct slice entity)
{
    key_begin(key, TABLE_TIMER);
    key_add_be(key, due_ms, 8);
    key_add(key, entity);
}

void row_key_definition(struct row_key *key, uint64_t number)
{
    key_begin(key, TABLE_DEFINITION);
    key_add_be(key, number, 8);
}

void row_key_names(struct row_key *key, enum row_names of)
{
    key_begin(key, TABLE_COLLECTION);
    key_add_be(key, (uint8_t)of, 1);
}

void row_key_rate_rules(struct row_key *key)
{
    key_begin(key, TABLE_RATE_RULES);
    key_add_be(key, 0, 1);
}

void row_key_rate(struct row_key *key, struct slice entity, uint64_t subject)
{
    key_begin(key, TABLE_RATE);
    key_add_entity(key, entity);
    key_add_be(key, subject, 8);
}

void row_key_favorites(struct row_key *key, struct slice entity, uint64_t collection)
{
    key_begin(key, TABLE_FAVORITES);
    key_add_entity(key, entity);
    key_add_be(key, collection, 8);
}

void row_key_favorite(struct row_key *key, struct slice entity, uint64_t collection,
                      struct slice target)
{
    key_begin(key, TABLE_FAVORITE);
    key_add_entity(key, entity);
    key_add_be(key, collection, 8);
    key_add(key, target);
}

void row_key_favored_prefix(struct row_key *key, struct slice entity, uint64_t collection,
                            char part)
{
    key_begin(key, TABLE_FAVORED);
    key_add_entity(key, entity);
    key_add_be(key, collection, 8);
    key_add_be(key, (uint8_t)part, 1);
}

void row_key_favored_add(struct row_key *key, char part, uint64_t at_ms, struct slice target)
{
    key_add_be(key, part == FAVORED_EDGES ? ~at_ms : at_ms, 8);
    key_add(key, target);
}

void row_key_favorer_prefix(struct row_key *key, uint64_t collection, struct slice target)
{
    key_begin(key, TABLE_FAVORER);
    key_add_be(key, collection, 8);
    key_add(key, target);
    key_add_be(key, 0, 1);
}

void row_key_favorer_add(struct row_key *key, struct slice entity)
{
    key_add(key, entity);
}

void row_key_review(struct row_key *key, uint64_t flagged_at_ms, struct slice entity,
                    uint64_t collection)
{
    key_begin(key, TABLE_REVIEW);
    key_add_be(key, flagged_at_ms, 8);
    key_add_entity(key, entity);
    key_add_be(key, collection, 8);
}

void row_key_review_add(struct row_key *key, struct slice target)
{
    key_add(key, target);
}

void row_key_partial(struct row_key *key, uint64_t collection, struct slice target)
{
    key_begin(key, TABLE_PARTIAL);
    key_add_be(key, collection, 8);
    key_add(key, target);
}

void row_key_added_prefix(struct row_key *key, struct slice entity, uint64_t counter)
{
    key_begin(key, TABLE_ADDED);
    key_add_entity(key, entity);
    key_add_be(key, counter, 8);
}

void row_key_added_add(struct row_key *key, struct slice target)
{
    key_add(key, target);
}

void row_key_adder_prefix(struct row_key *key, uint64_t counter, struct slice target)
{
    key_begin(key, TABLE_ADDER);
    key_add_be(key, counter, 8);
    key_add(key, target);
    key_add_be(key, 0, 1);
}

void row_key_adder_add(struct row_key *key, struct slice entity)
{
    key_add(key, entity);
}

void row_key_changed_prefix(struct row_key *key, uint32_t home)
{
    CHECK(home <= UINT16_MAX);
    key_begin(key, TABLE_CHANGED);
    key_add_be(key, home, 2);
}

void row_key_newest(struct row_key *key, uint32_t home)
{
    CHECK(home <= UINT16_MAX);
    key_begin(key, TABLE_NEWEST);
    key_add_be(key, home, 2);
}

void row_key_emptied_prefix(struct row_key *key, uint32_t home)
{
    CHECK(home <= UINT16_MAX);
    key_begin(key, TABLE_EMPTIED);
    key_add_be(key, home, 2);
}

void row_key_changed_add_dot(struct row_key *key, uint64_t epoch, uint64_t counter)
{
    key_add_be(key, epoch, 8);
    key_add_be(key, counter, 8);
}

void row_key_changed_add(struct row_key *key, uint64_t collection, struct slice target)
{
    key_add_be(key, collection, 8);
    key_add(key, target);
}

void row_key_pulled(struct row_key *key, uint32_t source)
{
    CHECK(source <= UINT16_MAX);
    key_begin(key, TABLE_PULLED);
    key_add_be(key, source, 2);
}

void row_key_share_prefix(struct row_key *key, uint64_t collection, struct slice target)
{
    key_begin(key, TABLE_SHARE);
    key_add_be(key, collection, 8);
    key_add(key, target);
    key_add_be(key, 0, 1);
}

void row_key_share_add(struct row_key *key, uint32_t source)
{
    CHECK(source <= UINT16_MAX);
    key_add_be(key, source, 2);
}

void row_key_tally(struct row_key *key, uint64_t collection, struct slice target)
{
    key_begin(key, TABLE_TALLY);
    key_add_be(key, collection, 8);
    key_add(key, target);
}

void row_key_metadata(struct row_key *key, uint64_t collection, struct slice target)
{
    key_begin(key, TABLE_METADATA);
    key_add_be(key, collection, 8);
    key_add(key, target);
}

void row_key_recount(struct row_key *key)
{
    key_begin(key, TABLE_RECOUNT);
    key_add_be(key, 0, 1);
}

void row_key_of_number(struct row_key *key, char table, uint64_t number)
{
    key_begin(key, (enum table)table);
    if (number > 0)
        key_add_be(key, number, 8);
}

void row_key_rank_prefix(struct row_key *key, uint64_t collection, char window)
{
    key_begin(key, TABLE_RANK);
    key_add_be(key, collection, 8);
    key_add_be(key, (uint8_t)window, 1);
}

void row_key_rank_add(struct row_key *key, uint64_t count, struct slice target)
{
    key_add_be(key, ~count, 8);
    key_add(key, target);
}

void row_key_keyed(struct row_key *key, uint64_t decided_at_ms, struct slice entity,
                   struct slice op_id)
{
    key_begin(key, TABLE_KEYED);
    key_add_be(key, decided_at_ms, 8);
    key_add_entity(key, entity);
    key_add(key, op_id);
}

void row_key_reservation_timer(struct row_key *key, uint64_t due_ms, struct slice entity,
                               uint64_t seq)
{
    key_begin(key, TABLE_TIMER);
    key_add_be(key, due_ms, 8);
    key_add_entity(key, entity);
    key_add_be(key, seq, 8);
}

void row_key_item_prefix(struct row_key *key, struct slice entity)
{
    key_begin(key, TABLE_ITEM);
    key_add_entity(key, entity);
}

void row_key_item(struct row_key *key, struct slice entity, const uint8_t uid[ITEM_UID_BYTES])
{
    row_key_item_prefix(key, entity);
    key_add(key, (struct slice){ uid, ITEM_UID_BYTES });
}

void row_key_mail_prefix(struct row_key *key, struct slice entity)
{
    key_begin(key, TABLE_MAIL);
    key_add_entity(key, entity);
}

void row_key_mail(struct row_key *key, struct slice entity, const uint8_t id[ITEM_UID_BYTES])
{
    row_key_mail_prefix(key, entity);
    key_add(key, (struct slice){ id, ITEM_UID_BYTES });
}

void row_key_mailbox(struct row_key *key, struct slice entity)
{
    key_begin(key, TABLE_MAILBOX);
    key_add(key, entity);
}

void row_key_channel(struct row_key *key, bool outgoing, uint32_t shard)
{
    key_begin(key, TABLE_CHANNEL);
    key_add_be(key, outgoing ? 'o' : 'i', 1);
    key_add_be(key, shard, 2);
}

void row_key_event(struct row_key *key, uint64_t epoch, uint64_t counter, uint32_t place)
{
    key_begin(key, TABLE_EVENT);
    key_add_be(key, epoch, 8);
    key_add_be(key, counter, 8);
    key_add_be(key, place, 4);
}

void row_key_consumer(struct row_key *key, struct slice entity)
{
    key_begin(key, TABLE_CONSUMER);
    key_add(key, entity);
}

void row_key_outbox(struct row_key *key, uint32_t destination, uint64_t seq)
{
    key_begin(key, TABLE_OUTBOX);
    key_add_be(key, destination, 2);
    key_add_be(key, seq, 8);
}

void row_key_inbox(struct row_key *key, uint32_t source, uint64_t seq)
{
    key_begin(key, TABLE_INBOX);
    key_add_be(key, source, 2);
    key_add_be(key, seq, 8);
}

void row_key_reservation(struct row_key *key, struct slice entity, uint64_t seq)
{
    key_begin(key, TABLE_RESERVATION);
    key_add_entity(key, entity);
    key_add_be(key, seq, 8);
}

void row_key_reversal(struct row_key *key, struct slice entity, uint64_t seq)
{
    key_begin(key, TABLE_REVERSAL);
    key_add_entity(key, entity);
    key_add_be(key, seq, 8);
}

void row_key_history_prefix(struct row_key *key, const uint8_t uid[ITEM_UID_BYTES])
{
    key_begin(key, TABLE_HISTORY);
    key_add(key, (struct slice){ uid, ITEM_UID_BYTES });
}

void row_key_history(struct row_key *key, const uint8_t uid[ITEM_UID_BYTES], uint32_t step)
{
    row_key_history_prefix(key, uid);
    key_add_be(key, step, 4);
}

void row_key_intent(struct row_key *key, struct slice entity)
{
    key_begin(key, TABLE_INTENT);
    key_add(key, entity);
}

void row_key_receipt(struct row_key *key, struct slice receipt)
{
    key_begin(key, TABLE_RECEIPT);
    key_add(key, receipt);
}

void row_key_txn(struct row_key *key, uint32_t destination, uint64_t seq)
{
    key_begin(key, TABLE_TXN);
    key_add_be(key, destination, 2);
    key_add_be(key, seq, 8);
}

void timer_row_encode(uint64_t fence, struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
    buf_put_u64(out, fence);
}

/* Entities hold no control characters, so a 0 there ends one. */
static uint64_t take_reservation_seq(struct slice *entity)
{
    const size_t tail = 1 + 8;
    uint64_t seq;

    if (entity->size <= tail || entity->data[entity->size - tail] != 0)
        return 0;
    struct reader reader =
        reader_from((struct slice){ entity->data + entity->size - tail + 1, tail - 1 });
    seq = read_u64_be(&reader);
    if (seq > 0)
        entity->size -= tail;
    return seq;
}

err timer_row_decode(struct slice key, struct slice value, struct timer_row *ret_timer)
{
    struct reader key_reader = reader_from(key);
    struct reader reader = reader_from(value);
    struct timer_row timer;

    bool known = read_u8(&key_reader) == TABLE_TIMER;
    known &= read_u8(&reader) == ROW_VERSION;
    timer.due_ms = read_u64_be(&key_reader);
    timer.entity = read_raw(&key_reader, reader_left(&key_reader));
    timer.reservation_seq = take_reservation_seq(&timer.entity);
    timer.fence = read_u64(&reader);
    if (!known || key_reader.bad || reader_finish(&reader) != ERR_OK ||
        timer.entity.size > ENTITY_BYTES_MAX || !entity_has_kind(timer.entity))
        return ERR_CORRUPT;
    *ret_timer = timer;
    return ERR_OK;
}

void keyed_row_encode(struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
}

err keyed_key_parse(struct slice key, struct keyed_row *ret_keyed)
{
    struct reader reader = reader_from(key);
    struct keyed_row keyed;
    struct op_id id;
    const char *why;

    bool known = read_u8(&reader) == TABLE_KEYED;
    keyed.decided_at_ms = read_u64_be(&reader);
    keyed.entity = row_entity(key);
    (void)read_raw(&reader, keyed.entity.size + 1);
    keyed.op_id = read_raw(&reader, reader_left(&reader));
    if (!known || reader_finish(&reader) != ERR_OK || keyed.entity.size > ENTITY_BYTES_MAX ||
        !entity_has_kind(keyed.entity) || op_id_parse(keyed.op_id, &id, &why) != ERR_OK ||
        !id.is_key)
        return ERR_CORRUPT;
    *ret_keyed = keyed;
    return ERR_OK;
}

err keyed_row_decode(struct slice key, struct slice value, struct keyed_row *ret_keyed)
{
    struct reader reader = reader_from(value);

    if (read_u8(&reader) != ROW_VERSION || reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    return keyed_key_parse(key, ret_keyed);
}

void reservation_row_encode(uint64_t expires_at_ms, struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
    buf_put_u64(out, expires_at_ms);
}

err reservation_row_decode(struct slice row, uint64_t *ret_expires_at_ms)
{
    struct reader reader = reader_from(row);

    if (read_u8(&reader) != ROW_VERSION)
        return ERR_CORRUPT;
    *ret_expires_at_ms = read_u64(&reader);
    return reader_finish(&reader) == ERR_OK ? ERR_OK : ERR_CORRUPT;
}

void reversal_row_encode(uint64_t undone_by, struct buf *out)
{
    buf_put_u64(out, undone_by);
}

err reversal_row_decode(struct slice row, uint64_t *ret_undone_by)
{
    struct reader reader = reader_from(row);

    *ret_undone_by = read_u64(&reader);
    return reader_finish(&reader) == ERR_OK ? ERR_OK : ERR_CORRUPT;
}

void item_uid_make(uint32_t shard, uint64_t epoch, uint64_t counter, uint32_t place,
                   uint8_t ret_uid[ITEM_UID_BYTES])
{
    struct row_key uid = { .size = 0 };

    CHECK(shard <= UINT16_MAX);
    CHECK(epoch < 1ull << 48);
    CHECK(counter < 1ull << 48);
    CHECK(place <= UINT16_MAX);
    key_add_be(&uid, shard, 2);
    key_add_be(&uid, epoch, 6);
    key_add_be(&uid, counter, 6);
    key_add_be(&uid, place, 2);
    CHECK(uid.size == ITEM_UID_BYTES);
    memcpy(ret_uid, uid.bytes, ITEM_UID_BYTES);
}

void item_uid_print(const uint8_t uid[ITEM_UID_BYTES], char ret_text[ITEM_UID_TEXT_SIZE])
{
    hex_print(uid, ITEM_UID_BYTES, ret_text);
}

err item_uid_parse(struct slice text, uint8_t ret_uid[ITEM_UID_BYTES])
{
    return hex_parse(text, ITEM_UID_BYTES, ret_uid);
}

void history_row_encode(const struct history_row *history, struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
    buf_put_u8(out, history->held);
    buf_put_u64(out, history->ledger_seq);
    buf_put_short(out, history->entity);
    buf_put_short(out, history->next);
}

err history_row_decode(struct slice key, struct slice value, struct history_row *ret_history)
{
    struct reader key_reader = reader_from(key);
    struct reader reader = reader_from(value);
    struct history_row history;

    bool known = read_u8(&key_reader) == TABLE_HISTORY;
    (void)read_raw(&key_reader, ITEM_UID_BYTES);
    history.step = (uint32_t)read_u16_be(&key_reader) << 16;
    history.step |= read_u16_be(&key_reader);
    known &= read_u8(&reader) == ROW_VERSION;
    history.held = read_u8(&reader) != 0;
    history.ledger_seq = read_u64(&reader);
    history.entity = read_raw(&reader, read_u8(&reader));
    history.next = read_raw(&reader, read_u8(&reader));
    known &= history.step > 0 && entity_has_kind(history.entity);
    known &= history.next.size == 0 || entity_has_kind(history.next);
    known &= history.entity.size <= ENTITY_BYTES_MAX && history.next.size <= ENTITY_BYTES_MAX;
    if (!known || reader_finish(&key_reader) != ERR_OK || reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    *ret_history = history;
    return ERR_OK;
}

void item_row_encode(const struct item_row *item, struct buf *out)
{
    buf_put_u8(out, item->step > 0 ? ROW_VERSION_STEPS : ROW_VERSION);
    if (item->step > 0)
        buf_put_u32(out, item->step);
    buf_put_u64(out, item->minted_at_ms);
    buf_put_bytes(out, item->kind);
    buf_append(out, item->attributes.data, item->attributes.size);
}

err item_row_decode(struct slice key, struct slice value, struct item_row *ret_item)
{
    struct reader reader = reader_from(value);
    struct item_row item;

    uint8_t version = read_u8(&reader);
    if (key.size <= ITEM_UID_BYTES || (version != ROW_VERSION && version != ROW_VERSION_STEPS))
        return ERR_CORRUPT;
    memcpy(item.uid, key.data + key.size - ITEM_UID_BYTES, ITEM_UID_BYTES);
    item.step = version == ROW_VERSION_STEPS ? read_u32(&reader) : 0;
    if (version == ROW_VERSION_STEPS && item.step == 0)
        return ERR_CORRUPT;
    item.minted_at_ms = read_u64(&reader);
    item.kind = read_bytes(&reader, UINT32_MAX);
    item.attributes = read_raw(&reader, reader_left(&reader));
    if (reader_finish(&reader) != ERR_OK || item.kind.size > ITEM_KIND_ROW_MAX ||
        item.attributes.size > ITEM_ATTRIBUTES_ROW_MAX)
        return ERR_CORRUPT;
    *ret_item = item;
    return ERR_OK;
}

/* ---- whose a row is, by its key ---- */

#define SEQ_BYTES  8u
#define UUID_BYTES 16u

static struct slice skip(struct slice key, size_t bytes)
{
    if (key.size <= bytes)
        return (struct slice){ 0 };
    return (struct slice){ key.data + bytes, key.size - bytes };
}

static struct slice first_of(struct slice rest)
{
    const uint8_t *end = rest.size > 0 ? memchr(rest.data, 0, rest.size) : NULL;

    if (end != NULL)
        rest.size = (size_t)(end - rest.data);
    return rest;
}

struct slice row_entity(struct slice key)
{
    switch (key.size > 0 ? (enum table_entity)table_of(key)->entity : TABLE_ENTITY_NONE) {
    case TABLE_ENTITY_NONE:
        break;
    case TABLE_ENTITY_REST:
        return skip(key, 1);
    case TABLE_ENTITY_FIRST:
        return first_of(skip(key, 1));
    case TABLE_ENTITY_UUID:
        return skip(key, 1 + UUID_BYTES);
    case TABLE_ENTITY_TIMER:
        return first_of(skip(key, 1 + SEQ_BYTES));
    }
    return (struct slice){ 0 };
}
