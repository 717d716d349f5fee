#include "node/core/row_check.h"

#include <string.h>

#include "idl/method.h"
#include "node/core/channel_row.h"
#include "node/core/goods.h"
#include "node/core/json_canon.h"
#include "node/core/ledger.h"
#include "node/core/mailbox.h"
#include "node/core/outcome_row.h"
#include "node/core/player_row.h"
#include "node/core/profile.h"
#include "node/core/receipt.h"
#include "node/core/rows.h"
#include "node/core/txn_row.h"
#include "runtime/base/check.h"

#define SEQ_BYTES   8u
#define SHARD_BYTES 2u
#define UUID_BYTES  16u

/* One row that is looked at. */
struct look {
    struct arena *arena;
    struct slice key, value, entity;
    const char *why;
};

static bool is(struct look *look, bool readable, const char *why)
{
    look->why = why;
    return readable;
}

static bool check_player(struct look *look)
{
    struct player player;

    if (player_decode(look->value, look->entity, look->arena, &player) != ERR_OK)
        return is(look, false, PLAYER_DAMAGE);
    return is(look, player_sections(&player, look->arena) == ERR_OK, SECTIONS_DAMAGE);
}

static bool check_section(struct look *look)
{
    const char *why;
    json_t *document = json_canon_parse(look->value, &why);

    json_decref(document);
    return is(look, document != NULL, SECTION_DAMAGE);
}

static bool check_item(struct look *look)
{
    struct item_row item;
    return is(look, item_row_decode(look->key, look->value, &item) == ERR_OK, ITEM_DAMAGE);
}

static bool check_ledger(struct look *look)
{
    Holdfast__V1__LedgerEntry *entry;
    return is(look, ledger_row_decode(look->value, look->arena, &entry) == ERR_OK, LEDGER_DAMAGE);
}

static bool check_outcome(struct look *look)
{
    struct outcome_row row;
    uint32_t destination;
    uint64_t seq;

    bool readable = outcome_row_decode(look->value, &row) == ERR_OK &&
                    outcome_row_body_is_sound(&row, look->arena);
    if (readable && row.state == OUTCOME_ROW_PENDING && row.method != METHOD_START_SESSION)
        readable = channel_ref_decode(row.body, &destination, &seq);
    return is(look, readable, OUTCOME_DAMAGE);
}

static bool check_mail(struct look *look)
{
    return is(look, mail_decode(look->arena, look->value) != NULL, MAIL_DAMAGE);
}

static bool check_mailbox(struct look *look)
{
    uint32_t count;
    return is(look, mailbox_row_decode(look->value, &count) == ERR_OK, MAILBOX_DAMAGE);
}

static bool check_channel(struct look *look)
{
    if (look->key.size < 2)
        return is(look, false, "the key of a channel's row makes no sense");
    if (look->key.data[1] == 'o')
        return is(look, channel_out_decode(look->arena, look->value) != NULL,
                  "the row of a channel to another shard cannot be read");
    return is(look, channel_in_decode(look->arena, look->value) != NULL,
              "the row of a channel from another shard cannot be read");
}

static bool check_outbox(struct look *look)
{
    struct reader reader = reader_from(look->key);

    (void)read_raw(&reader, 1 + SHARD_BYTES);
    uint64_t seq = read_u64_be(&reader);
    return is(look,
              reader_finish(&reader) == ERR_OK &&
                  outbox_decode(look->arena, look->value, seq) != NULL,
              OUTBOX_DAMAGE);
}

static bool check_inbox(struct look *look)
{
    return is(look, inbox_decode(look->arena, look->value) != NULL, INBOX_DAMAGE);
}

static bool check_reversal(struct look *look)
{
    uint64_t undone_by;
    return is(look, reversal_row_decode(look->value, &undone_by) == ERR_OK, REVERSAL_DAMAGE);
}

static bool check_history(struct look *look)
{
    struct history_row history;
    return is(look, history_row_decode(look->key, look->value, &history) == ERR_OK, HISTORY_DAMAGE);
}

static bool check_reservation(struct look *look)
{
    uint64_t expires_at_ms;
    return is(look, reservation_row_decode(look->value, &expires_at_ms) == ERR_OK,
              RESERVATION_DAMAGE);
}

static bool check_intent(struct look *look)
{
    return is(look, intent_decode(look->arena, look->value) != NULL, INTENT_DAMAGE);
}

static bool check_txn(struct look *look)
{
    return is(look, txn_decode(look->arena, look->value) != NULL, TXN_DAMAGE);
}

static bool check_receipt(struct look *look)
{
    return is(look, receipt_decode(look->arena, look->value) != NULL, RECEIPT_DAMAGE);
}

static bool check_timer(struct look *look)
{
    struct timer_row timer;
    return is(look, timer_row_decode(look->key, look->value, &timer) == ERR_OK, TIMER_DAMAGE);
}

/* Where the entity stands in a key, behind the table's letter. */
enum entity_place {
    ENTITY_NONE,
    ENTITY_ALL,     /* The rest of the key. */
    ENTITY_FIRST,   /* Up to a 0. */
    ENTITY_OF_UUID, /* Behind 16 bytes. */
    ENTITY_OF_TIMER /* Behind 8 bytes, perhaps up to a 0. */
};

struct table_row {
    enum table table;
    enum entity_place place;
    bool (*check)(struct look *look);
};

/* Every table that has rows in the database, but TABLE_META (meta_decode). */
static const struct table_row tables[] = {
    { TABLE_PLAYER, ENTITY_ALL, check_player },
    { TABLE_SECTION, ENTITY_FIRST, check_section },
    { TABLE_ITEM, ENTITY_FIRST, check_item },
    { TABLE_LEDGER, ENTITY_FIRST, check_ledger },
    { TABLE_OPERATION, ENTITY_OF_UUID, check_outcome },
    { TABLE_TYPED, ENTITY_FIRST, check_outcome },
    { TABLE_MAIL, ENTITY_FIRST, check_mail },
    { TABLE_MAILBOX, ENTITY_ALL, check_mailbox },
    { TABLE_CHANNEL, ENTITY_NONE, check_channel },
    { TABLE_OUTBOX, ENTITY_NONE, check_outbox },
    { TABLE_INBOX, ENTITY_NONE, check_inbox },
    { TABLE_REVERSAL, ENTITY_FIRST, check_reversal },
    { TABLE_HISTORY, ENTITY_NONE, check_history },
    { TABLE_RESERVATION, ENTITY_FIRST, check_reservation },
    { TABLE_INTENT, ENTITY_ALL, check_intent },
    { TABLE_TXN, ENTITY_NONE, check_txn },
    { TABLE_RECEIPT, ENTITY_NONE, check_receipt },
    { TABLE_TIMER, ENTITY_OF_TIMER, check_timer },
};

static const struct table_row *table_of(struct slice key)
{
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        if (key.size > 0 && (uint8_t)tables[i].table == key.data[0])
            return &tables[i];
    }
    return NULL;
}

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
    const struct table_row *table = table_of(key);

    switch (table != NULL ? table->place : ENTITY_NONE) {
    case ENTITY_NONE:
        break;
    case ENTITY_ALL:
        return skip(key, 1);
    case ENTITY_FIRST:
        return first_of(skip(key, 1));
    case ENTITY_OF_UUID:
        return skip(key, 1 + UUID_BYTES);
    case ENTITY_OF_TIMER:
        return first_of(skip(key, 1 + SEQ_BYTES));
    }
    return (struct slice){ 0 };
}

void row_check(struct arena *arena, struct slice key, struct slice value,
               struct row_check *ret_check)
{
    const struct table_row *table = table_of(key);
    struct look look = { .arena = arena, .key = key, .value = value, .entity = row_entity(key) };

    *ret_check = (struct row_check){ .why = "a row of no known table", .entity = look.entity };
    if (table == NULL)
        return;
    ret_check->readable = table->check(&look);
    ret_check->why = ret_check->readable ? NULL : look.why;
}
