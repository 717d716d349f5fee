#include "node/rpc/ledger_filter.h"

#include <string.h>

#include "node/core/codec/text_rule.h"
#include "node/core/goods/ledger.h"
#include "node/core/handler/refusal.h"
#include "runtime/base/check.h"

#define KINDS_MAX 16u
/* Entries looked at together when a time is searched for: five rounds for a million entries. */
#define SEARCH_WIDTH 15u
/* Steps of an item on this shard that are listed at once; with more, all entries are looked at. */
#define ITEM_STEPS_MAX 4096u
/* Entries that were lost one after another, and that a time is searched for beyond. */
#define LOST_RUN_MAX 4096u

static err kinds_read(struct read_context *context, const Holdfast__V1__ListEntriesRequest *request,
                      struct ledger_filter *filter)
{
    if (request->n_kinds > KINDS_MAX)
        return refuse_number(context->arena, context->refusal, "kinds", "at most 16",
                             (int64_t)request->n_kinds);
    for (size_t i = 0; i < request->n_kinds; i++) {
        int kind = (int)request->kinds[i];
        if (kind <= 0 || protobuf_c_enum_descriptor_get_value(
                             &holdfast__v1__ledger_kind__descriptor, kind) == NULL)
            return refuse_number(context->arena, context->refusal,
                                 arena_printf(context->arena, "kinds[%zu]", i),
                                 "a kind of ledger entry", kind);
    }
    filter->kinds = request->kinds;
    filter->kind_count = request->n_kinds;
    return ERR_OK;
}

static err times_read(struct read_context *context, const Holdfast__V1__ListEntriesRequest *request,
                      struct ledger_filter *filter)
{
    struct arena *arena = context->arena;

    if (request->from_ms < 0)
        return refuse_number(arena, context->refusal, "from_ms", "0, or milliseconds since 1970",
                             request->from_ms);
    if (request->to_ms < 0)
        return refuse_number(arena, context->refusal, "to_ms", "0, or milliseconds since 1970",
                             request->to_ms);
    if (request->to_ms > 0 && request->to_ms <= request->from_ms)
        return refuse_number(arena, context->refusal, "to_ms", "a time later than from_ms",
                             request->to_ms);
    filter->from_ms = (uint64_t)request->from_ms;
    filter->to_ms = (uint64_t)request->to_ms;
    return ERR_OK;
}

static err names_read(struct read_context *context, const Holdfast__V1__ListEntriesRequest *request,
                      struct ledger_filter *filter)
{
    struct slice item = slice_from_text(request->item_uid);
    struct arena *arena = context->arena;
    uint8_t uid[ITEM_UID_BYTES];
    struct op_id id;
    const char *why;

    filter->currency = slice_from_text(request->currency);
    filter->op_id = slice_from_text(request->op_id);
    if (filter->currency.size > CURRENCY_NAME_BYTES_MAX)
        return refuse_invalid(arena, context->refusal, "currency", "at most 32 bytes",
                              text_shorten(arena, filter->currency));
    if (item.size > 0 && item_uid_parse(item, uid) != ERR_OK)
        return refuse_invalid(arena, context->refusal, "item_uid", "32 hex digits, lower case",
                              text_shorten(arena, item));
    filter->item_uid = item.size > 0 ? request->item_uid : NULL;
    if (filter->op_id.size == 0)
        return ERR_OK;
    if (op_id_parse(filter->op_id, &id, &why) != ERR_OK)
        return refuse_invalid(arena, context->refusal, "op_id", why,
                              text_shorten(arena, filter->op_id));
    if (!id.typed) { /* Entries have the canonical form. */
        char *text = arena_alloc(arena, UUID_TEXT_SIZE);
        uuid_print(&id.uuid, text);
        filter->op_id = slice_from_text(text);
    }
    return ERR_OK;
}

err ledger_filter_read(struct read_context *context,
                       const Holdfast__V1__ListEntriesRequest *request,
                       struct ledger_filter *ret_filter)
{
    struct ledger_filter filter = { 0 };

    err e = kinds_read(context, request, &filter);
    if (e == ERR_OK)
        e = names_read(context, request, &filter);
    if (e == ERR_OK)
        e = times_read(context, request, &filter);
    if (e == ERR_OK)
        *ret_filter = filter;
    return e;
}

/* In the order of time: an entry that was lost has the time of its repair, and takes that of the
 * last one before it that was not; 0: there is none. ERR_NEED; ERR_CONFLICT: a row cannot be read,
 * so the search cannot go on. */
static err entry_time(struct read_context *context, uint64_t seq, uint64_t *ret_at_ms)
{
    uint64_t first = seq > LOST_RUN_MAX ? seq - LOST_RUN_MAX : 1;
    Holdfast__V1__LedgerKind kind;
    struct slice row;

    *ret_at_ms = 0;
    for (; seq >= first; seq--) {
        err e = ledger_row_find(context->state, context->entity, seq, context->need, &row);
        if (e == ERR_NEED)
            return e;
        if (e == ERR_OK && ledger_row_is_lost(row))
            continue;
        if (e == ERR_OK)
            e = ledger_row_peek(row, &kind, ret_at_ms);
        return e == ERR_CORRUPT ? read_damaged(context, LEDGER_DAMAGE) : e;
    }
    return first > 1 ? read_damaged(context, LEDGER_DAMAGE) : ERR_OK;
}

/* One round: so many entries between them, and on to the part that holds the answer. */
static err search_round(struct read_context *context, uint64_t ms, uint64_t *low, uint64_t *high)
{
    uint64_t step = (*high - *low) / (SEARCH_WIDTH + 1) + 1;
    uint64_t from = *low, to = *high;
    err result = ERR_OK;

    for (uint64_t seq = *low; seq < *high; seq += step) {
        uint64_t at_ms = 0;
        err e = entry_time(context, seq, &at_ms);
        if (e != ERR_OK && e != ERR_NEED)
            return e;
        if (e == ERR_NEED) {
            result = e; /* Go on, so that every missing row is noted. */
            continue;
        }
        if (at_ms < ms) {
            from = seq + 1;
        } else {
            to = seq;
            break;
        }
    }
    *low = from;
    *high = to;
    return result;
}

/* The first entry of that time or later; head + 1: none. Times never go back (entry_time).
 * ERR_NEED.
 */
static err search(struct read_context *context, uint64_t head, uint64_t ms, uint64_t *ret_seq)
{
    uint64_t low = 1, high = head + 1;

    while (low < high) {
        err e = search_round(context, ms, &low, &high);
        if (e != ERR_OK)
            return e;
    }
    *ret_seq = low;
    return ERR_OK;
}

struct item_steps {
    struct damage *damage;
    struct slice entity;
    uint64_t *seqs;
    uint32_t count, seen;
};

static bool take_step(void *steps_context, struct slice key, struct slice value)
{
    struct item_steps *steps = steps_context;
    struct history_row row;

    steps->seen++;
    if (history_row_decode(key, value, &row) != ERR_OK) {
        damage_note(steps->damage, steps->entity, HISTORY_DAMAGE);
        return true;
    }
    if (slice_equal(row.entity, steps->entity))
        steps->seqs[steps->count++] = row.ledger_seq;
    return true;
}

/* The entries that moved the item, from its history. ERR_NEED. */
static err item_narrow(struct read_context *context, struct ledger_filter *filter)
{
    struct item_steps steps = { .damage = context->damage, .entity = context->entity };
    uint8_t uid[ITEM_UID_BYTES];
    struct row_key prefix;

    CHECK(item_uid_parse(slice_from_text(filter->item_uid), uid) == ERR_OK);
    row_key_history_prefix(&prefix, uid);
    struct state_range range = {
        .prefix = row_key_slice(&prefix),
        .after = row_key_slice(&prefix),
        .limit = ITEM_STEPS_MAX,
    };
    steps.seqs = arena_alloc(context->arena, sizeof *steps.seqs * ITEM_STEPS_MAX);
    err e = state_range_visit(context->state, &range, context->need, take_step, &steps);
    if (e != ERR_OK)
        return e;
    if (steps.seen < ITEM_STEPS_MAX) {
        filter->seqs = steps.seqs;
        filter->seq_count = steps.count;
    }
    return ERR_OK;
}

err ledger_filter_narrow(struct read_context *context, struct ledger_filter *filter, uint64_t head)
{
    err e = ERR_OK;

    filter->low = 1;
    filter->high = head;
    if (head > 0 && filter->from_ms > 0)
        e = search(context, head, filter->from_ms, &filter->low);
    if (e == ERR_OK && head > 0 && filter->to_ms > 0) {
        e = search(context, head, filter->to_ms, &filter->high);
        filter->high -= e == ERR_OK;
    }
    if (e == ERR_OK && filter->item_uid != NULL)
        e = item_narrow(context, filter);
    return e;
}

bool ledger_filter_is_open(const struct ledger_filter *filter)
{
    return filter->kind_count == 0 && filter->currency.size == 0 && filter->op_id.size == 0 &&
           filter->item_uid == NULL;
}

static bool changes_currency(const Holdfast__V1__LedgerEntry *entry, struct slice currency)
{
    for (size_t i = 0; i < entry->n_changes; i++) {
        if (slice_equal(slice_from_text(entry->changes[i]->currency), currency))
            return true;
    }
    return false;
}

static bool moves_item(const Holdfast__V1__LedgerEntry *entry, const char *uid)
{
    for (size_t i = 0; i < entry->n_items; i++) {
        if (strcmp(entry->items[i]->uid, uid) == 0)
            return true;
    }
    return false;
}

static bool is_of_kind(const struct ledger_filter *filter, Holdfast__V1__LedgerKind kind)
{
    for (size_t i = 0; i < filter->kind_count; i++) {
        if (filter->kinds[i] == kind)
            return true;
    }
    return filter->kind_count == 0;
}

bool ledger_filter_matches(const struct ledger_filter *filter, struct slice row,
                           struct arena *arena, Holdfast__V1__LedgerEntry **ret_entry)
{
    Holdfast__V1__LedgerKind kind;
    uint64_t at_ms;

    *ret_entry = NULL;
    if (ledger_row_peek(row, &kind, &at_ms) != ERR_OK)
        return true;
    if (!is_of_kind(filter, kind))
        return false;
    if (ledger_row_decode(row, arena, ret_entry) != ERR_OK)
        return true;
    const Holdfast__V1__LedgerEntry *entry = *ret_entry;
    if (filter->currency.size > 0 && !changes_currency(entry, filter->currency))
        return false;
    if (filter->item_uid != NULL && !moves_item(entry, filter->item_uid))
        return false;
    return filter->op_id.size == 0 || slice_equal(slice_from_text(entry->op_id), filter->op_id);
}
