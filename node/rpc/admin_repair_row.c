#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/event.h"
#include "node/core/handler/event_row.h"
#include "node/core/handler/refusal.h"
#include "node/core/channel/channel_row.h"
#include "node/core/favorite/metadata.h"
#include "node/core/favorite/recount_row.h"
#include "node/core/repair/channel_repair.h"
#include "node/core/repair/counter_repair.h"
#include "node/core/repair/favorite_repair.h"
#include "node/core/repair/record_repair.h"
#include "node/core/repair/row_check.h"
#include "node/core/repair/row_repair.h"
#include "node/core/repair/top_repair.h"
#include "node/rpc/methods.h"

typedef Holdfast__V1__RepairRowRequest repair_request;

/* Without them the shard goes on, and nothing is done twice: history, receipts (one that is gone
 * can be paid once more), timers, transactions. */
static bool may_go(const struct row_key *key)
{
    switch ((enum table)key->bytes[0]) {
    case TABLE_HISTORY:
    case TABLE_RECEIPT:
    case TABLE_TIMER:
    case TABLE_TXN:
    case TABLE_CHANNEL: /* It is made again: without it records would be carried out twice. */
    case TABLE_OUTBOX:  /* These two likewise: record_repair.h. */
    case TABLE_INBOX:
    case TABLE_FAVORER: /* These two are made again of what can be read: favorite_repair.h. */
    case TABLE_PARTIAL:
    case TABLE_ADDER:   /* And this one: counter_repair.h. */
    case TABLE_CHANGED: /* And these seven, of totals: top_repair.h. */
    case TABLE_EMPTIED:
    case TABLE_NEWEST:
    case TABLE_PULLED:
    case TABLE_SHARE:
    case TABLE_TALLY:
    case TABLE_RANK:
    case TABLE_RECOUNT:  /* Its rebuild begins again. */
    case TABLE_EVENT:    /* Replaced by one that tells of a gap. */
    case TABLE_CONSUMER: /* Whose it was creates it again, from a cursor that it knows. */
    case TABLE_METADATA: /* It is written again. */
        return true;
    case TABLE_PLAYER: /* RepairPlayer. */
    case TABLE_SECTION:
    case TABLE_LEDGER:
    case TABLE_ITEM:
    case TABLE_MAIL:
    case TABLE_MAILBOX:
    case TABLE_OPERATION:
    case TABLE_TYPED:
    case TABLE_KEYED:
    case TABLE_REVERSAL:
    case TABLE_RESERVATION:
    case TABLE_INTENT:
    case TABLE_FAVORITE:
    case TABLE_FAVORITES:
    case TABLE_FAVORED:
    case TABLE_REVIEW:
    case TABLE_ADDED:
    case TABLE_ERASURE:
    case TABLE_DEFINITION: /* The coordinator brings it again: node_define.c. */
    case TABLE_RATE:
    case TABLE_COLLECTION: /* The next DEFINE makes these two again. */
    case TABLE_RATE_RULES:
    case TABLE_META:
    case TABLE_NOTE:
        break;
    }
    return false;
}

static bool is_record(const struct row_key *key)
{
    return key->bytes[0] == TABLE_OUTBOX || key->bytes[0] == TABLE_INBOX;
}

/* Of a channel's row, and of no other: what the other shard knows. */
static err end_check(struct check_context *context, const repair_request *request,
                     const struct row_key *key)
{
    const Holdfast__V1__ChannelEnd *end = request->other_end;
    struct slice text = slice_from_text(request->key);
    bool outgoing;
    uint32_t shard;

    if (key->bytes[0] != TABLE_CHANNEL)
        return end == NULL ? ERR_OK
                           : refuse_invalid(context->arena, context->refusal, "other_end",
                                            "no value, but for a row of table c", "");
    if (!channel_key_parse(key, &outgoing, &shard) || shard >= context->shard_count ||
        shard == context->shard)
        return refuse_invalid(context->arena, context->refusal, "key",
                              "63, 6f (to) or 69 (from), and another shard as 4 hex digits",
                              text_shorten(context->arena, text));
    if (end == NULL || (end->unreadable && !outgoing))
        return refuse_invalid(context->arena, context->refusal, "other_end",
                              "what GetChannel of the other shard tells; of a channel that "
                              "neither end can read, the sender's row is repaired first",
                              "");
    if (outgoing && end->uncounted && !end->unreadable)
        return refuse_invalid(context->arena, context->refusal, "other_end",
                              "what GetChannel of the other shard tells, if it is not uncounted",
                              "");
    if (end->last_seq > CHANNEL_REPAIR_SEQ_MAX)
        return refuse_unsigned(context->arena, context->refusal, "other_end.last_seq", "below 2^62",
                               end->last_seq);
    if (end->watermark > end->last_seq)
        return refuse_unsigned(context->arena, context->refusal, "other_end.watermark",
                               "at most last_seq", end->watermark);
    if (end->last_seq - end->watermark > CHANNEL_REPAIR_SPAN_MAX)
        return refuse_unsigned(context->arena, context->refusal, "other_end.last_seq",
                               "at most 1048576 above watermark", end->last_seq);
    return row_repair_check_version(context, end->unreadable ? RECORD_REPAIR_VERSION
                                                             : CHANNEL_REPAIR_VERSION);
}

static bool is_of_edges(const struct row_key *key)
{
    return key->bytes[0] == TABLE_FAVORER || key->bytes[0] == TABLE_PARTIAL;
}

static bool is_of_totals(const struct row_key *key)
{
    switch ((int)key->bytes[0]) {
    case TABLE_CHANGED:
    case TABLE_EMPTIED:
    case TABLE_NEWEST:
    case TABLE_PULLED:
    case TABLE_SHARE:
    case TABLE_TALLY:
    case TABLE_RANK:
        return true;
    default:
        return false;
    }
}

/* Of a record or of a decision on one, and of no other row. */
static err record_check(struct check_context *context, const repair_request *request,
                        const struct row_key *key)
{
    uint32_t other;
    uint64_t seq;

    if (!is_record(key)) {
        if (request->record == NULL && !request->give_up && is_of_totals(key))
            return row_repair_check_version(context, TOP_REPAIR_VERSION);
        if (request->record == NULL && !request->give_up && key->bytes[0] == TABLE_EVENT)
            return row_repair_check_version(context, EVENT_APPLY_VERSION);
        if (request->record == NULL && !request->give_up && key->bytes[0] == TABLE_CONSUMER)
            return row_repair_check_version(context, CONSUMER_APPLY_VERSION);
        if (request->record == NULL && !request->give_up && key->bytes[0] == TABLE_METADATA)
            return row_repair_check_version(context, METADATA_APPLY_VERSION);
        if (request->record == NULL && !request->give_up && key->bytes[0] == TABLE_ADDER)
            return row_repair_check_version(context, COUNTER_REPAIR_VERSION);
        if (request->record == NULL && !request->give_up && key->bytes[0] == TABLE_RECOUNT)
            return row_repair_check_version(context, RECOUNT_APPLY_VERSION);
        if (request->record == NULL && !request->give_up)
            return is_of_edges(key) ? row_repair_check_version(context, FAVORITE_REPAIR_VERSION)
                                    : ERR_OK;
        return refuse_invalid(context->arena, context->refusal,
                              request->give_up ? "give_up" : "record",
                              "no value, but for a row of table x or n", "");
    }
    if (!record_key_parse(key, &other, &seq) || other >= context->shard_count ||
        other == context->shard)
        return refuse_invalid(context->arena, context->refusal, "key",
                              "78 or 6e, another shard as 4 hex digits, and a record as 16",
                              text_shorten(context->arena, slice_from_text(request->key)));
    if (request->give_up && key->bytes[0] == TABLE_INBOX)
        return refuse_invalid(context->arena, context->refusal, "give_up",
                              "false, but for a row of table x", "true");
    err e = request->record != NULL ? record_goods_check(context->arena, context->refusal,
                                                         &context->meta->policy, request->record)
                                    : ERR_OK;
    bool decides = key->bytes[0] == TABLE_OUTBOX && request->record != NULL &&
                   (int)request->record->decision != RECORD_DECISION(UNSPECIFIED);
    return e == ERR_OK ? row_repair_check_version(context, decides ? DECISION_STATED_APPLY_VERSION
                                                                   : RECORD_REPAIR_VERSION)
                       : e;
}

static err admin_repair_row_check(struct check_context *context, ProtobufCMessage *message)
{
    const repair_request *request = (const repair_request *)message;
    struct slice text = slice_from_text(request->key);
    struct row_key key;

    err e = row_repair_check(context, request->reason);
    if (e != ERR_OK)
        return e;
    if (row_key_parse(text, &key) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "key",
                              "a key in hex digits, lower case",
                              text_shorten(context->arena, text));
    if (!may_go(&key))
        return refuse_invalid(
            context->arena, context->refusal, "key",
            "a row of a table k, R, t, z, c, x, n, G, P, H, U, S, T, K, L, E, D or O; others see "
            "docs/runbooks/HoldfastRowsUnreadable.md",
            text_shorten(context->arena, text));
    e = end_check(context, request, &key);
    return e == ERR_OK ? record_check(context, request, &key) : e;
}

/* Replicas of an earlier apply version refuse it; and no entry of the log may meet a CHECK. */
static bool can_repair(const struct apply_context *context, const struct row_key *key,
                       const repair_request *request)
{
    uint32_t other;
    uint64_t seq;

    if (!may_go(key))
        return false;
    if (is_record(key))
        return context->version >= RECORD_REPAIR_VERSION && record_key_parse(key, &other, &seq);
    if (is_of_edges(key))
        return context->version >= FAVORITE_REPAIR_VERSION;
    if (is_of_totals(key))
        return context->version >= TOP_REPAIR_VERSION;
    if (key->bytes[0] == TABLE_ADDER)
        return context->version >= COUNTER_REPAIR_VERSION;
    if (key->bytes[0] == TABLE_EVENT)
        return context->version >= EVENT_APPLY_VERSION;
    if (key->bytes[0] == TABLE_RECOUNT)
        return context->version >= RECOUNT_APPLY_VERSION;
    if (key->bytes[0] == TABLE_CONSUMER)
        return context->version >= CONSUMER_APPLY_VERSION;
    if (key->bytes[0] == TABLE_METADATA)
        return context->version >= METADATA_APPLY_VERSION;
    if (key->bytes[0] != TABLE_CHANNEL)
        return true;
    if (context->version < CHANNEL_REPAIR_VERSION || !channel_repair_sound(key, request->other_end))
        return false;
    return context->version < RECORD_REPAIR_VERSION ||
           request->other_end->last_seq - request->other_end->watermark <= CHANNEL_REPAIR_SPAN_MAX;
}

/* What stands there can be read, but for what a repair has made of a decision before. */
static bool is_sound(const struct apply_context *context, const struct row_key *key,
                     struct slice value)
{
    struct row_check check;

    row_check(context->arena, row_key_slice(key), value, &check);
    return check.readable &&
           !(key->bytes[0] == TABLE_INBOX && context->version >= RECORD_REPAIR_VERSION &&
             decision_is_repaired(context->arena, value));
}

static err record_make_again(struct apply_context *context, const struct row_key *key,
                             const repair_request *request,
                             Holdfast__V1__RepairRowResponse *response)
{
    struct record_repair repair = {
        .stated = request->record,
        .give_up = request->give_up,
        .reason = request->reason,
    };

    response->record = (Holdfast__V1__ChannelRecord *)arena_message(
        context->arena, &holdfast__v1__channel_record__descriptor);
    repair.told = response->record;
    if (!record_key_parse(key, &repair.other, &repair.seq)) /* can_repair looked. */
        return refuse_invalid(context->arena, context->refusal, "key", "a record's", "");
    err e = key->bytes[0] == TABLE_OUTBOX ? record_repair(context, &repair)
                                          : decision_repair(context, &repair);
    response->row->outcome = repair.dropped
                                 ? HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_DROPPED
                                 : HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_MADE_AGAIN;
    return e;
}

static err make_again(struct apply_context *context, const struct row_key *key,
                      const repair_request *request, Holdfast__V1__RepairRowResponse *response)
{
    response->channel = (Holdfast__V1__ChannelEnd *)arena_message(
        context->arena, &holdfast__v1__channel_end__descriptor);
    response->row->outcome = HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_MADE_AGAIN;
    return channel_repair(context, key, request->other_end, response->channel);
}

static err edges_make_again(struct apply_context *context, const struct row_key *key,
                            Holdfast__V1__RepairRowResponse *response)
{
    struct edge_repair repair;

    err e = is_of_totals(key)              ? top_repair(context, row_key_slice(key), &repair)
            : key->bytes[0] == TABLE_ADDER ? counter_repair(context, row_key_slice(key), &repair)
                                           : favorite_repair(context, row_key_slice(key), &repair);
    if (e != ERR_OK)
        return e;
    if (repair.wants != NULL)
        return refuse_invalid(context->arena, context->refusal, "key", repair.wants, "");
    response->row->outcome = repair.dropped
                                 ? HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_DROPPED
                                 : HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_MADE_AGAIN;
    return ERR_OK;
}

/* Readers are told that something is missing there. */
static err event_replace(struct apply_context *context, const struct row_key *key,
                         Holdfast__V1__RepairRowResponse *response)
{
    struct event_place place;

    if (event_key_parse(row_key_slice(key), &place) != ERR_OK) {
        state_delete(context->state, row_key_slice(key));
        response->row->outcome = HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_DROPPED;
        return ERR_OK;
    }
    buf_clear(context->scratch);
    event_lost_encode(context->scratch);
    state_put(context->state, row_key_slice(key), buf_slice(context->scratch));
    response->row->outcome = HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_REPLACED;
    return ERR_OK;
}

static err admin_repair_row_handle(struct apply_context *context, const ProtobufCMessage *message,
                                   ProtobufCMessage *reply)
{
    const repair_request *request = (const repair_request *)message;
    Holdfast__V1__RepairRowResponse *response = (Holdfast__V1__RepairRowResponse *)reply;
    struct arena *arena = context->arena;
    struct row_key key;
    struct slice value;

    if (row_key_parse(slice_from_text(request->key), &key) != ERR_OK ||
        !can_repair(context, &key, request))
        return refuse_invalid(arena, context->refusal, "key", "a key in hex digits", "");
    enum state_found found = state_find(context->state, row_key_slice(&key), &value);
    if (found == STATE_MISSING) {
        need_add_key(context->need, row_key_slice(&key));
        return ERR_NEED;
    }
    if (found == STATE_ABSENT || is_sound(context, &key, value))
        return refuse_invalid(arena, context->refusal, "key",
                              "a row that is there and cannot be read",
                              text_shorten(arena, slice_from_text(request->key)));
    response->row = repaired_row(arena, row_key_slice(&key), value);
    if (is_record(&key))
        return record_make_again(context, &key, request, response);
    if (is_of_edges(&key) || is_of_totals(&key) || key.bytes[0] == TABLE_ADDER)
        return edges_make_again(context, &key, response);
    if (key.bytes[0] == TABLE_EVENT)
        return event_replace(context, &key, response);
    if (key.bytes[0] == TABLE_CHANNEL)
        return make_again(context, &key, request, response);
    response->row->outcome = HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_DROPPED;
    state_delete(context->state, row_key_slice(&key));
    return ERR_OK;
}

const struct handler admin_repair_row_handler = {
    .method = METHOD_REPAIR_ROW,
    .check = admin_repair_row_check,
    .handle = admin_repair_row_handle,
};
