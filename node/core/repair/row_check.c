#include "node/core/repair/row_check.h"

#include <string.h>

#include "idl/method.h"
#include "node/core/channel/channel_row.h"
#include "node/core/codec/json_canon.h"
#include "node/core/consumer/consumer_row.h"
#include "node/core/counter/counter_row.h"
#include "node/core/definition/collection.h"
#include "node/core/definition/counter_rule.h"
#include "node/core/definition/definition.h"
#include "node/core/definition/player_rate.h"
#include "node/core/favorite/erasure_row.h"
#include "node/core/favorite/metadata_row.h"
#include "node/core/favorite/recount_row.h"
#include "node/core/goods/goods.h"
#include "node/core/goods/ledger.h"
#include "node/core/goods/mailbox.h"
#include "node/core/handler/event_row.h"
#include "node/core/handler/outcome_row.h"
#include "node/core/handler/player_row.h"
#include "node/core/profile/profile.h"
#include "node/core/receipt/receipt.h"
#include "node/core/rows/rows.h"
#include "node/core/top/top_row.h"
#include "node/core/transaction/txn_row.h"
#include "runtime/base/check.h"

#define SHARD_BYTES 2u

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
    struct channel_ref ref;

    bool readable = outcome_row_decode(look->value, &row) == ERR_OK &&
                    outcome_row_body_is_sound(&row, look->arena);
    if (readable && row.state == OUTCOME_ROW_PENDING && row.method != METHOD_START_SESSION)
        readable = channel_ref_decode(row.body, &ref);
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

static bool check_definition(struct look *look)
{
    return is(look, definition_row_is_sound(look->arena, look->key, look->value),
              DEFINITION_DAMAGE);
}

static bool check_collection(struct look *look)
{
    struct row_key counters;

    row_key_names(&counters, ROW_NAMES_COUNTERS);
    if (slice_equal(look->key, row_key_slice(&counters)))
        return is(look, counter_names_are_sound(look->key, look->value), COUNTER_NAMES_DAMAGE);
    return is(look, collection_row_is_sound(look->key, look->value), COLLECTION_DAMAGE);
}

static bool check_rate_rules(struct look *look)
{
    return is(look, rate_rules_row_is_sound(look->key, look->value), RATE_RULE_DAMAGE);
}

static bool check_rate(struct look *look)
{
    struct rate_row row;
    return is(look, rate_row_decode(look->value, &row) == ERR_OK, RATE_DAMAGE);
}

/* Of these tables what the key names counts, too. */
static bool has_favorite_key(const struct look *look)
{
    struct favorite_key unused;
    return favorite_key_parse(look->key, &unused) == ERR_OK;
}

static bool check_favorite(struct look *look)
{
    struct favorite_row row;
    return is(look, favorite_row_decode(look->value, &row) == ERR_OK && has_favorite_key(look),
              FAVORITE_DAMAGE);
}

static bool check_favorites(struct look *look)
{
    struct favorites_row row;
    return is(look, favorites_row_decode(look->value, &row) == ERR_OK && has_favorite_key(look),
              FAVORITES_DAMAGE);
}

static bool check_favored(struct look *look)
{
    struct favorite_key key;
    uint64_t ver;
    return is(look, favored_row_decode(look->key, look->value, &key, &ver) == ERR_OK,
              FAVORED_DAMAGE);
}

static bool check_favorer(struct look *look)
{
    struct favorite_key key;
    uint64_t at_ms;
    return is(look, favorer_row_decode(look->key, look->value, &key, &at_ms) == ERR_OK,
              FAVORER_DAMAGE);
}

static bool check_review(struct look *look)
{
    struct review_row row;
    return is(look, review_row_decode(look->key, look->value, &row) == ERR_OK, REVIEW_DAMAGE);
}

static bool check_partial(struct look *look)
{
    struct partial_row row;
    return is(look, partial_row_decode(look->value, &row) == ERR_OK && has_favorite_key(look),
              PARTIAL_DAMAGE);
}

static bool check_added(struct look *look)
{
    struct added_row row;
    return is(look, added_row_decode(look->value, &row) == ERR_OK && has_favorite_key(look),
              ADDED_DAMAGE);
}

static bool check_adder(struct look *look)
{
    struct added_row row;
    return is(look, added_row_decode(look->value, &row) == ERR_OK && has_favorite_key(look),
              ADDER_DAMAGE);
}

static bool check_changed(struct look *look)
{
    struct changed_row row;
    return is(look, changed_row_decode(look->key, look->value, &row) == ERR_OK, CHANGED_DAMAGE);
}

static bool check_emptied(struct look *look)
{
    return check_changed(look);
}

static bool check_newest(struct look *look)
{
    struct source_dot dot;
    return is(look, newest_row_decode(look->key, look->value, &dot) == ERR_OK, CHANGED_DAMAGE);
}

static bool check_pulled(struct look *look)
{
    uint32_t source;
    struct source_dot dot;
    return is(look, pulled_row_decode(look->key, look->value, &source, &dot) == ERR_OK,
              PULLED_DAMAGE);
}

static bool has_top_key(const struct look *look)
{
    struct top_key unused;
    return top_key_parse(look->key, &unused) == ERR_OK;
}

static bool check_share(struct look *look)
{
    struct share_row row;
    return is(look, share_row_decode(look->value, &row) == ERR_OK && has_top_key(look),
              SHARE_DAMAGE);
}

static bool check_tally(struct look *look)
{
    struct tally_row row;
    return is(look, tally_row_decode(look->value, &row) == ERR_OK && has_top_key(look),
              TALLY_DAMAGE);
}

static bool check_rank(struct look *look)
{
    struct top_key key;
    return is(look, rank_row_decode(look->key, look->value, &key) == ERR_OK, RANK_DAMAGE);
}

static bool check_recount(struct look *look)
{
    struct recount_row row;
    struct row_key key;

    row_key_recount(&key);
    return is(look,
              recount_row_decode(look->value, &row) == ERR_OK &&
                  slice_equal(look->key, row_key_slice(&key)),
              RECOUNT_DAMAGE);
}

static bool check_erasure(struct look *look)
{
    struct erasure_row row;
    return is(look, erasure_row_decode(look->key, look->value, &row) == ERR_OK, ERASURE_DAMAGE);
}

static bool check_event(struct look *look)
{
    return is(look, event_row_is_sound(look->arena, look->key, look->value), EVENT_DAMAGE);
}

static bool check_consumer(struct look *look)
{
    return is(look, consumer_row_is_sound(look->arena, look->key, look->value), CONSUMER_DAMAGE);
}

static bool check_metadata(struct look *look)
{
    return is(look, metadata_row_is_sound(look->key, look->value), METADATA_DAMAGE);
}

static bool check_timer(struct look *look)
{
    struct timer_row timer;
    return is(look, timer_row_decode(look->key, look->value, &timer) == ERR_OK, TIMER_DAMAGE);
}

static bool check_keyed(struct look *look)
{
    struct keyed_row keyed;
    return is(look, keyed_row_decode(look->key, look->value, &keyed) == ERR_OK, KEYED_DAMAGE);
}

static bool check_operation(struct look *look)
{
    return check_outcome(look);
}

static bool check_typed(struct look *look)
{
    return check_outcome(look);
}

/* By letter; TABLE_META has its own decoder (meta_decode). */
#define CHECK_OF_TABLE(NAME, name, ...) [TABLE_##NAME] = check_##name,
static bool (*const checks[256])(struct look *look) = { TABLE_ROWS(CHECK_OF_TABLE) };

void row_check(struct arena *arena, struct slice key, struct slice value,
               struct row_check *ret_check)
{
    bool (*check)(struct look * look) = key.size > 0 ? checks[key.data[0]] : NULL;
    struct look look = { .arena = arena, .key = key, .value = value, .entity = row_entity(key) };

    *ret_check = (struct row_check){ .why = "a row of no known table", .entity = look.entity };
    if (check == NULL)
        return;
    ret_check->readable = check(&look);
    ret_check->why = ret_check->readable ? NULL : look.why;
}
