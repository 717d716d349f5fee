#include "node/core/repair/row_repair.h"

#include <inttypes.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/definition/player_rate.h"
#include "node/core/erasure/erasure.h"
#include "node/core/goods/audit.h"
#include "node/core/goods/ledger.h"
#include "node/core/goods/mailbox.h"
#include "node/core/handler/outcome_row.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/core/repair/counter_repair.h"
#include "node/core/repair/favorite_repair.h"
#include "node/core/repair/row_check.h"
#include "node/core/transaction/txn_row.h"
#include "runtime/base/check.h"
#include "runtime/base/hex.h"

#define KIND(name)           HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_##name
#define OUTCOME(name)        HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_##name
#define SEQ_BYTES            8u
#define REPAIR_REASON_MAX    64u
#define REPAIR_APPLY_VERSION 2u /* Replicas of an earlier one do not know these entries. */
#define LOOK_AHEAD           256u
#define UNDOER_FAR_MAX       4096u
#define MAIL_PAGE            1000u

typedef Holdfast__Internal__V1__TxnIntent txn_intent;
typedef Holdfast__Internal__V1__TxnRow txn_row;

err row_key_parse(struct slice text, struct row_key *ret_key)
{
    size_t size = text.size / 2;

    if (text.size % 2 != 0 || size < 2 || size > sizeof ret_key->bytes)
        return ERR_INVALID;
    ret_key->size = size;
    return hex_parse(text, size, ret_key->bytes);
}

char *bytes_hex(struct arena *arena, struct slice bytes, size_t bytes_max)
{
    size_t size = bytes.size < bytes_max ? bytes.size : bytes_max;
    char *text = arena_zalloc(arena, 2 * size + 1);

    if (size > 0)
        hex_print(bytes.data, size, text);
    return text;
}

Holdfast__V1__RepairedRow *repaired_row(struct arena *arena, struct slice key, struct slice value)
{
    Holdfast__V1__RepairedRow *told =
        (Holdfast__V1__RepairedRow *)arena_message(arena, &holdfast__v1__repaired_row__descriptor);

    told->table = arena_printf(arena, "%c", key.data[0]);
    told->key = bytes_hex(arena, key, STATE_KEY_BYTES_MAX);
    told->bytes = bytes_hex(arena, value, REPAIR_ROW_BYTES_TOLD);
    told->size_bytes = (uint32_t)value.size;
    return told;
}

/* One repair while it is applied. */
struct step {
    struct apply_context *context;
    struct row_repair *repair;
    struct slice key, value, entity;
};

err row_repair_check_version(struct check_context *context, uint32_t needed)
{
    if (context->meta->apply_version >= needed)
        return ERR_OK;
    return refuse(context->arena, context->refusal, CODE(UNIMPLEMENTED), "",
                  "shard %u goes by apply version %u, and repairs need %u: run this build on all "
                  "its nodes, then let another node own it",
                  context->shard, context->meta->apply_version, needed);
}

err row_repair_check(struct check_context *context, const char *reason)
{
    struct slice text = slice_from_text(reason);

    err e = row_repair_check_version(context, REPAIR_APPLY_VERSION);
    if (e != ERR_OK)
        return e;
    if (text.size == 0 || text.size > REPAIR_REASON_MAX || !text_is_clean(text))
        return refuse_invalid(context->arena, context->refusal, "reason",
                              "1 to 64 bytes of UTF-8 without control characters",
                              text_shorten(context->arena, text));
    return ERR_OK;
}

static err refuse_row(struct step *step, const char *limit)
{
    return refuse_invalid(step->context->arena, step->context->refusal, "rows", limit,
                          bytes_hex(step->context->arena, step->key, 32));
}

static uint64_t seq_of(struct slice key)
{
    struct reader reader =
        reader_from((struct slice){ key.data + key.size - SEQ_BYTES, SEQ_BYTES });
    return read_u64_be(&reader);
}

static err drop(struct step *step)
{
    state_delete(step->context->state, step->key);
    step->repair->told->outcome = OUTCOME(DROPPED);
    return ERR_OK;
}

/* Of keys of an entity, a 0 and a text. */
static struct slice behind_entity(const struct step *step)
{
    size_t head = 1 + step->entity.size + 1;
    size_t at = head < step->key.size ? head : step->key.size;

    return (struct slice){ step->key.data + at, step->key.size - at };
}

static bool is_of_key(const struct step *step)
{
    struct op_id id;
    const char *why;

    return step->key.data[0] == TABLE_TYPED &&
           op_id_parse(behind_entity(step), &id, &why) == ERR_OK && id.is_key;
}

static err drop_section(struct step *step)
{
    struct apply_context *context = step->context;
    struct slice name = behind_entity(step);

    if (!context->unreadable && player_sections(context->player, context->arena) == ERR_OK) {
        struct section_info *section = player_find_section(context->player, name);
        if (section != NULL)
            player_remove_section(context->player, section);
    }
    return drop(step);
}

/* The audit counts it as used up, so that it is not missed for ever. */
static err drop_item(struct step *step)
{
    struct apply_context *context = step->context;
    Holdfast__Internal__V1__TxnDelta gone = HOLDFAST__INTERNAL__V1__TXN_DELTA__INIT;
    char *uid = bytes_hex(
        context->arena,
        (struct slice){ step->key.data + step->key.size - ITEM_UID_BYTES, ITEM_UID_BYTES },
        ITEM_UID_BYTES);

    gone.removed = &uid;
    gone.n_removed = 1;
    audit_made(context, &gone);
    if (context->player->item_count > 0)
        context->player->item_count--;
    return drop(step);
}

static err replace_entry(struct step *step)
{
    struct apply_context *context = step->context;
    uint64_t seq = seq_of(step->key);
    uint8_t previous[LEDGER_HASH_BYTES];

    if (seq == 0)
        return refuse_row(step, "an entry of the ledger");
    err e = ledger_hash_find(context->state, step->entity, seq - 1, context->need, previous);
    if (e == ERR_NEED)
        return e;
    if (e != ERR_OK)
        return refuse_row(step, "an entry with one before it");
    ledger_lose(context, seq, previous, step->repair->reason);
    step->repair->told->outcome = OUTCOME(REPLACED);
    if (context->unreadable || seq != context->player->ledger_seq)
        return ERR_OK;
    return ledger_hash_find(context->state, step->entity, seq, context->need,
                            context->player->ledger_hash);
}

/* What came of it is not known: it is never carried out again, and its caller is told that. */
static err replace_outcome(struct step *step)
{
    struct apply_context *context = step->context;
    struct refusal lost = { 0 };

    (void)refuse(context->arena, &lost, CODE(OPERATION_EXPIRED), "op_id",
                 "the outcome of the operation was lost with a damaged row; whether it was carried "
                 "out stands in the ledger; it is not applied now");
    lost.final = true;
    const struct outcome_row row = {
        .state = OUTCOME_ROW_REFUSED,
        .attempt = UINT32_MAX,
        .dot = context->dot,
        .decided_at_ms = context->owner_ms,
        .keyed = context->version >= KEYS_APPLY_VERSION && is_of_key(step),
        .body = refusal_pack(&lost, context->arena),
    };
    buf_clear(context->scratch);
    outcome_row_encode(&row, context->scratch);
    state_put(context->state, step->key, buf_slice(context->scratch));
    if (row.keyed)
        outcome_row_date(context, step->entity, behind_entity(step), row.decided_at_ms);
    step->repair->told->outcome = OUTCOME(REPLACED);
    return ERR_OK;
}

/* All that it says stands in its key. */
static err make_date(struct step *step)
{
    struct apply_context *context = step->context;
    struct keyed_row keyed;

    if (keyed_key_parse(step->key, &keyed) != ERR_OK) {
        damage_count_down(context->damage, &context->meta->key_count, 1);
        return drop(step);
    }
    buf_clear(context->scratch);
    keyed_row_encode(context->scratch);
    state_put(context->state, step->key, buf_slice(context->scratch));
    step->repair->told->outcome = OUTCOME(MADE_AGAIN);
    return ERR_OK;
}

static err drop_mail(struct step *step)
{
    struct apply_context *context = step->context;
    uint32_t count;

    err e = mailbox_count(context->state, step->entity, context->need, &count);
    if (e == ERR_NEED)
        return e;
    if (e == ERR_OK && count > 0)
        mailbox_count_store(context, step->entity, count - 1);
    return drop(step);
}

struct counting {
    struct arena *arena;
    uint32_t count;
    struct slice last;
};

static bool count_row(void *user, struct slice key, struct slice value)
{
    struct counting *counting = user;

    (void)value;
    counting->count++;
    counting->last = arena_copy(counting->arena, key);
    return true;
}

static err count_mail(struct step *step)
{
    struct apply_context *context = step->context;
    struct counting counting = { .arena = context->arena };
    struct row_key prefix;
    uint32_t before;

    row_key_mail_prefix(&prefix, step->entity);
    do {
        const struct state_range range = {
            .prefix = row_key_slice(&prefix),
            .after = counting.last,
            .limit = MAIL_PAGE,
        };
        before = counting.count;
        err e = state_range_visit(context->state, &range, context->need, count_row, &counting);
        if (e != ERR_OK)
            return e;
    } while (counting.count == before + MAIL_PAGE);
    mailbox_count_store(context, step->entity, counting.count);
    step->repair->told->outcome = OUTCOME(MADE_AGAIN);
    return ERR_OK;
}

/* ERR_NEED, with those that will be asked for next. */
static err need_entries(struct step *step, uint64_t seq, uint64_t last)
{
    struct slice row;

    for (uint64_t i = seq; i <= last && i < seq + LOOK_AHEAD; i++)
        (void)!ledger_row_find(step->context->state, step->entity, i, step->context->need, &row);
    return ERR_NEED;
}

/* The op_id of a reservation's post to another player; NULL: the entry is none, or cannot be read.
 * ERR_NEED. */
static err post_find(struct step *step, uint64_t seq, const char **ret_op_id)
{
    struct apply_context *context = step->context;
    Holdfast__V1__LedgerEntry *entry = NULL;
    struct slice row;

    *ret_op_id = NULL;
    err e = ledger_row_find(context->state, step->entity, seq, context->need, &row);
    if (e == ERR_OK && ledger_row_decode(row, context->arena, &entry) == ERR_OK &&
        (int)entry->kind == KIND(TRANSFER) && entry->refers_to > 0)
        *ret_op_id = entry->op_id;
    return e == ERR_NEED ? ERR_NEED : ERR_OK;
}

/* Which entry undid or closed another says so itself; what gave back a post has its op_id. */
static err make_reversal(struct step *step)
{
    struct apply_context *context = step->context;
    uint64_t undone = seq_of(step->key), head;
    const char *post_op_id = NULL;

    err e = ledger_head_find(context->state, step->entity, context->need, &head);
    err post = post_find(step, undone, &post_op_id);
    if (post != ERR_OK)
        return post;
    if (e != ERR_OK)
        return e;
    if (undone > head)
        return drop(step);
    uint64_t last = head - undone > UNDOER_FAR_MAX ? undone + UNDOER_FAR_MAX : head;
    bool sure = last == head;
    for (uint64_t seq = undone + 1; seq <= last; seq++) {
        Holdfast__V1__LedgerEntry *entry = NULL;
        struct slice row;
        e = ledger_row_find(context->state, step->entity, seq, context->need, &row);
        if (e == ERR_NEED)
            return need_entries(step, seq, last);
        if (e != ERR_OK || ledger_row_decode(row, context->arena, &entry) != ERR_OK ||
            (int)entry->kind == KIND(LOST)) {
            sure = false;
            continue;
        }
        if (post_op_id == NULL
                ? entry->refers_to != undone
                : (int)entry->kind != KIND(REFUND) || strcmp(entry->op_id, post_op_id) != 0)
            continue;
        buf_clear(context->scratch);
        reversal_row_encode(seq, context->scratch);
        state_put(context->state, step->key, buf_slice(context->scratch));
        step->repair->told->outcome = OUTCOME(MADE_AGAIN);
        return ERR_OK;
    }
    if (!sure) /* Nothing more is undone: the safe side. */
        return refuse_row(step, "an entry whose undoing the readable ledger tells or excludes");
    return drop(step);
}

/* Whether the entry that it is of is open, as the ledger tells. */
static err reservation_state(struct step *step, uint64_t seq, bool *ret_reserve, bool *ret_closed)
{
    struct apply_context *context = step->context;
    Holdfast__V1__LedgerEntry *entry = NULL;
    struct slice row, undone;
    struct row_key key;

    err e = ledger_row_find(context->state, step->entity, seq, context->need, &row);
    row_key_reversal(&key, step->entity, seq);
    enum state_found closed = state_find(context->state, row_key_slice(&key), &undone);
    if (closed == STATE_MISSING)
        need_add_key(context->need, row_key_slice(&key));
    if (e == ERR_NEED || closed == STATE_MISSING)
        return ERR_NEED;
    *ret_closed = closed == STATE_PRESENT;
    *ret_reserve = e == ERR_OK && ledger_row_decode(row, context->arena, &entry) == ERR_OK &&
                   (int)entry->kind == KIND(RESERVE);
    return ERR_OK;
}

/* Its time is lost, and has come: what it held is in the balance again. */
static err make_reservation(struct step *step)
{
    struct apply_context *context = step->context;
    bool reserve, closed;

    err e = reservation_state(step, seq_of(step->key), &reserve, &closed);
    if (e != ERR_OK)
        return e;
    if (step->repair->readable && (reserve || closed))
        return refuse_row(step, "rows that cannot be read, or of entries that cannot");
    if (reserve && !closed) {
        buf_clear(context->scratch);
        reservation_row_encode(context->owner_ms, context->scratch);
        state_put(context->state, step->key, buf_slice(context->scratch));
        step->repair->told->outcome = OUTCOME(REPLACED);
        return ERR_OK;
    }
    if (!closed && !step->repair->rebuilt)
        return refuse_row(step, "with `rebuild`: what the reservation held is lost with its entry");
    if (context->player->reservation_count > 0 && !closed)
        context->player->reservation_count--;
    return drop(step);
}

/* An intent that can be read is given up only if its transaction is lost. */
static err give_up_intent(struct step *step)
{
    struct apply_context *context = step->context;
    const txn_intent *intent = intent_decode(context->arena, step->value);
    txn_row *row = NULL;

    if (intent == NULL) {
        context->player->txn = (struct txn_ref){ 0 };
        return drop(step);
    }
    struct txn_ref ref = txn_ref_of(intent->txn);
    if (ref.home != context->shard)
        return refuse_row(step, "a row that cannot be read; its transaction is another shard's");
    enum state_found found = txn_find(context->state, context->arena, ref, context->need, &row);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (row != NULL)
        return refuse_row(step, "a row that cannot be read; `rebuild` finishes its transaction");
    step->repair->orphan = true;
    step->repair->told->outcome = OUTCOME(DROPPED);
    return ERR_OK;
}

static err make_favorite(struct step *step)
{
    struct edge_repair repair;

    err e = step->key.data[0] == TABLE_ADDED ? counter_repair(step->context, step->key, &repair)
                                             : favorite_repair(step->context, step->key, &repair);
    if (e != ERR_OK)
        return e;
    if (repair.wants != NULL)
        return refuse_row(step, repair.wants);
    step->repair->told->outcome = repair.dropped ? OUTCOME(DROPPED) : OUTCOME(MADE_AGAIN);
    return ERR_OK;
}

/* Whether the player is erased is not known any more: it is, and a person may undo that. */
static err erase_again(struct step *step)
{
    erasure_begin_again(step->context);
    step->repair->told->outcome = OUTCOME(REPLACED);
    return ERR_OK;
}

struct rule {
    uint32_t rank;                    /* Lower ones first. */
    err (*repair)(struct step *step); /* NULL: not a row to be repaired alone. */
};

static struct rule rule_of(struct slice key)
{
    switch ((enum table)key.data[0]) {
    case TABLE_LEDGER:
        return (struct rule){ 0, replace_entry };
    case TABLE_REVERSAL:
        return (struct rule){ 1, make_reversal };
    case TABLE_RESERVATION:
        return (struct rule){ 2, make_reservation };
    case TABLE_SECTION:
        return (struct rule){ 3, drop_section };
    case TABLE_ITEM:
        return (struct rule){ 3, drop_item };
    case TABLE_OPERATION:
    case TABLE_TYPED:
        return (struct rule){ 3, replace_outcome };
    case TABLE_KEYED:
        return (struct rule){ 3, make_date };
    case TABLE_MAIL:
        return (struct rule){ 3, drop_mail };
    case TABLE_INTENT:
        return (struct rule){ 3, give_up_intent };
    case TABLE_TIMER:
    case TABLE_RATE: /* The player's windows begin again. */
        return (struct rule){ 3, drop };
    case TABLE_FAVORITE:
    case TABLE_ADDED:
        return (struct rule){ 3, make_favorite };
    case TABLE_ERASURE:
        return (struct rule){ 3, erase_again };
    case TABLE_FAVORED:
    case TABLE_REVIEW:
        return (struct rule){ 4, make_favorite };
    case TABLE_FAVORITES:
        return (struct rule){ 5, make_favorite };
    case TABLE_MAILBOX:
        return (struct rule){ 4, count_mail };
    case TABLE_PLAYER: /* Rebuilt from the others. */
    case TABLE_HISTORY:
    case TABLE_CHANNEL:
    case TABLE_OUTBOX:
    case TABLE_INBOX:
    case TABLE_TXN:
    case TABLE_RECEIPT:
    case TABLE_DEFINITION:
    case TABLE_COLLECTION:
    case TABLE_RATE_RULES:
    case TABLE_FAVORER:
    case TABLE_PARTIAL:
    case TABLE_ADDER:
    case TABLE_CHANGED:
    case TABLE_EMPTIED:
    case TABLE_NEWEST:
    case TABLE_PULLED:
    case TABLE_SHARE:
    case TABLE_TALLY:
    case TABLE_RANK:
    case TABLE_RECOUNT:
    case TABLE_EVENT:
    case TABLE_CONSUMER:
    case TABLE_METADATA:
    case TABLE_META:
    case TABLE_NOTE:
        break;
    }
    return (struct rule){ UINT32_MAX, NULL };
}

int row_repair_compare(const void *a, const void *b)
{
    struct slice one = ((const struct row_repair *)a)->key;
    struct slice other = ((const struct row_repair *)b)->key;
    uint32_t first = rule_of(one).rank, second = rule_of(other).rank;

    return first != second ? (first < second ? -1 : 1) : slice_compare(one, other);
}

/* Long enough that what follows its entity is there. */
static bool key_is_whole(struct slice key, struct slice entity)
{
    size_t tail = key.size - 1 - entity.size;

    switch ((enum table_tail)table_of(key)->tail) {
    case TABLE_TAIL_NONE:
        break;
    case TABLE_TAIL_TEXT:
        return tail >= 1;
    case TABLE_TAIL_SEQ:
        return tail == 1 + SEQ_BYTES;
    case TABLE_TAIL_UID:
        return tail == 1 + ITEM_UID_BYTES;
    }
    return true;
}

/* A row that can be read may still be lost with those that it relies on. */
static bool relies_on_others(struct slice key)
{
    return key.data[0] == TABLE_INTENT || key.data[0] == TABLE_RESERVATION;
}

/* Replicas of an earlier apply version refuse it. */
static bool is_known(const struct apply_context *context, struct slice key)
{
    switch ((int)key.data[0]) {
    case TABLE_KEYED:
        return context->version >= KEYS_APPLY_VERSION;
    case TABLE_FAVORITE:
    case TABLE_FAVORITES:
    case TABLE_FAVORED:
        return context->version >= FAVORITE_REPAIR_VERSION;
    case TABLE_RATE:
        return context->version >= RATE_APPLY_VERSION;
    case TABLE_REVIEW:
        return context->version >= FLAG_APPLY_VERSION;
    case TABLE_ADDED:
        return context->version >= COUNTER_REPAIR_VERSION;
    case TABLE_ERASURE:
        return context->version >= ERASURE_APPLY_VERSION;
    default:
        return true;
    }
}

err row_repair(struct apply_context *context, struct row_repair *repair)
{
    struct step step = { .context = context, .repair = repair, .key = repair->key };
    struct rule rule = rule_of(repair->key);
    struct row_check check;

    step.entity = row_entity(repair->key);
    if (!is_known(context, repair->key) || !slice_equal(step.entity, context->op->entity) ||
        !key_is_whole(repair->key, step.entity))
        return refuse_row(&step, "keys of rows of this player");
    if (rule.repair == NULL)
        return refuse_row(&step, "other rows than the player's own, which `rebuild` makes again");
    enum state_found found = state_find(context->state, repair->key, &step.value);
    if (found == STATE_MISSING) {
        need_add_key(context->need, repair->key);
        return ERR_NEED;
    }
    if (found == STATE_ABSENT)
        return refuse_row(&step, "keys of rows that are there");
    step.value = arena_copy(context->arena, step.value);
    row_check(context->arena, step.key, step.value, &check);
    if (check.readable && !relies_on_others(repair->key))
        return refuse_row(&step, "rows that cannot be read");
    repair->readable = check.readable;
    repair->told = repaired_row(context->arena, step.key, step.value);
    return rule.repair(&step);
}
