/* What one shard knows of its channels with another: for the repair of a row (channel_repair.h,
 * record_repair.h). */
#include <inttypes.h>

#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/channel/channel_row.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/proto_scan.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/core/repair/channel_repair.h"
#include "node/core/rows/rows.h"
#include "node/core/transaction/txn_row.h"
#include "node/rpc/methods.h"

#define LOOKED_AT_MAX       4096u
#define UNREADABLE_MAX      64u
#define OUTBOX_CREDIT_FIELD 1u /* OutboxRow.credit */
#define OUTBOX_PLAYER_FIELD 2u /* OutboxRow.player_id */
#define CREDIT_OP_FIELD     2u /* ChannelCredit.op_id */

typedef Holdfast__V1__ChannelEnd channel_end;
typedef Holdfast__V1__ChannelRecord channel_record_message;

struct tell {
    struct read_context *context;
    const Holdfast__V1__GetChannelRequest *request;
    Holdfast__V1__GetChannelResponse *response;
};

static void *message_new(const struct tell *tell, const ProtobufCMessageDescriptor *type)
{
    return arena_message(tell->context->arena, type);
}

static struct record_look look_of(const struct tell *tell)
{
    return (struct record_look){
        .arena = tell->context->arena,
        .state = tell->context->state,
        .need = tell->context->need,
        .shard = tell->request->shard,
        .other = tell->request->other_shard,
        .seq = tell->request->seq,
    };
}

/* ---- where a channel stands ---- */

/* Whether a record's own row stands, and cannot be read. */
static enum state_found record_look_at(const struct tell *tell, bool outgoing, uint64_t seq,
                                       bool *ret_unreadable)
{
    struct read_context *context = tell->context;
    Holdfast__Internal__V1__OutboxRow *record = NULL;
    Holdfast__Internal__V1__InboxRow *decision = NULL;
    struct channel_ref ref = { tell->request->other_shard, seq };
    enum state_found found =
        outgoing ? outbox_find(context->state, context->arena, ref, context->need, &record)
                 : inbox_find(context->state, context->arena, ref, context->need, &decision);

    *ret_unreadable = found == STATE_PRESENT && record == NULL && decision == NULL;
    return found;
}

/* ERR_NEED: all that are missing are noted. */
static err unreadable_tell(const struct tell *tell, bool outgoing, channel_end *end)
{
    uint64_t last = end->last_seq - end->watermark > LOOKED_AT_MAX ? end->watermark + LOOKED_AT_MAX
                                                                   : end->last_seq;
    err result = ERR_OK;

    end->unreadable_seqs =
        arena_alloc(tell->context->arena, sizeof *end->unreadable_seqs * UNREADABLE_MAX);
    for (uint64_t seq = end->watermark + 1; seq <= last; seq++) {
        bool unreadable;
        if (record_look_at(tell, outgoing, seq, &unreadable) == STATE_MISSING)
            result = ERR_NEED;
        if (unreadable && end->n_unreadable_seqs < UNREADABLE_MAX)
            end->unreadable_seqs[end->n_unreadable_seqs++] = seq;
    }
    return result;
}

static err end_tell(const struct tell *tell, bool outgoing, enum state_found found,
                    channel_end *end)
{
    const struct record_look look = look_of(tell);

    if (found == STATE_MISSING)
        return ERR_NEED;
    if (end->unreadable)
        return channel_rows_span(&look, outgoing, &end->lowest_record, &end->highest_record);
    return end->watermark < end->last_seq ? unreadable_tell(tell, outgoing, end) : ERR_OK;
}

static err outgoing_tell(const struct tell *tell, channel_end *end)
{
    struct read_context *context = tell->context;
    Holdfast__Internal__V1__ChannelOutRow *row = NULL;
    enum state_found found = channel_out_find(context->state, context->arena,
                                              tell->request->other_shard, context->need, &row);

    end->unreadable = found == STATE_PRESENT && row == NULL;
    end->last_seq = row != NULL ? row->last_seq : 0;
    end->watermark = row != NULL ? row->watermark : 0;
    return end_tell(tell, true, found, end);
}

static err incoming_tell(const struct tell *tell, channel_end *end)
{
    struct read_context *context = tell->context;
    Holdfast__Internal__V1__ChannelInRow *row = NULL;
    enum state_found found = channel_in_find(context->state, context->arena,
                                             tell->request->other_shard, context->need, &row);

    end->uncounted = !context->meta->inboxes_told;
    end->unreadable = found == STATE_PRESENT && row == NULL;
    end->last_seq = row != NULL ? row->decided : 0;
    end->watermark = row != NULL ? row->watermark : 0;
    return end_tell(tell, false, found, end);
}

/* ---- one record ---- */

static void transaction_tell(const struct tell *tell, const Holdfast__Internal__V1__TxnRef *ref,
                             channel_record_message *told)
{
    told->transaction = message_new(tell, &holdfast__v1__transaction_ref__descriptor);
    told->transaction->home_shard = ref->home;
    told->transaction->destination = ref->destination;
    told->transaction->seq = ref->seq;
}

static void players_tell(const struct tell *tell, size_t count, channel_record_message *told)
{
    told->player_ids = arena_alloc(tell->context->arena, sizeof *told->player_ids * (count + 1));
}

/* A record that can be read. Mail that comes back is known by the operation that sent it once. */
static void record_tell(const struct tell *tell, const Holdfast__Internal__V1__OutboxRow *row,
                        channel_record_message *told)
{
    const Holdfast__Internal__V1__ChannelCredit *credit = row->credit;
    const Holdfast__Internal__V1__TxnPrepare *prepare = credit->prepare;
    const Holdfast__Internal__V1__TxnFinish *finish = credit->finish;

    told->player_id = row->player_id;
    told->op_id = row->mail_return ? credit->mail->op_id : credit->op_id;
    told->to_player_id = credit->to_player_id;
    told->kind = prepare != NULL           ? RECORD_KIND(PREPARE)
                 : finish != NULL          ? RECORD_KIND(FINISH)
                 : credit->receipt != NULL ? RECORD_KIND(RECEIPT)
                 : row->mail_return        ? RECORD_KIND(RETURNED_MAIL)
                                           : RECORD_KIND(MAIL);
    if (credit->mail != NULL) {
        told->n_currencies = credit->mail->n_currencies;
        told->currencies = credit->mail->currencies;
        told->n_items = credit->mail->n_items;
        told->items = credit->mail->items;
    }
    if (prepare != NULL) {
        transaction_tell(tell, prepare->txn, told);
        players_tell(tell, prepare->n_parts, told);
        for (size_t i = 0; i < prepare->n_parts; i++)
            told->player_ids[told->n_player_ids++] = prepare->parts[i]->player_id;
    }
    if (finish != NULL) {
        transaction_tell(tell, finish->txn, told);
        players_tell(tell, finish->n_gives, told);
        for (size_t i = 0; i < finish->n_gives; i++)
            told->player_ids[told->n_player_ids++] = finish->gives[i]->player_id;
    }
}

/* What is left of a row that cannot be read may still name its operation; that counts only if the
 * operation waits for this record. */
static err record_guess(const struct tell *tell, channel_record_message *told)
{
    const struct record_look look = look_of(tell);
    struct arena *arena = tell->context->arena;
    struct record_sender found;
    struct slice row, credit, text;
    struct row_key key;

    row_key_outbox(&key, look.other, look.seq);
    if (state_find(look.state, row_key_slice(&key), &row) != STATE_PRESENT)
        return ERR_OK;
    row = arena_copy(arena, row);
    if (proto_scan_bytes(row, OUTBOX_PLAYER_FIELD, &text) && text_is_clean(text))
        told->player_id = arena_text(arena, text);
    if (proto_scan_bytes(row, OUTBOX_CREDIT_FIELD, &credit) &&
        proto_scan_bytes(credit, CREDIT_OP_FIELD, &text) && text_is_clean(text))
        told->op_id = arena_text(arena, text);
    err e = record_sender_find(&look, told, &found);
    if (e == ERR_OK)
        record_sender_tell(&look, &found, told);
    return e;
}

static err sent_tell(const struct tell *tell)
{
    struct read_context *context = tell->context;
    Holdfast__Internal__V1__OutboxRow *row = NULL;
    channel_record_message *told = message_new(tell, &holdfast__v1__channel_record__descriptor);
    struct channel_ref ref = { tell->request->other_shard, tell->request->seq };
    enum state_found found = outbox_find(context->state, context->arena, ref, context->need, &row);

    tell->response->sent = told;
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_ABSENT)
        return ERR_OK;
    told->seq = tell->request->seq;
    told->unreadable = row == NULL;
    if (row == NULL)
        return record_guess(tell, told);
    record_tell(tell, row, told);
    return ERR_OK;
}

static err received_tell(const struct tell *tell)
{
    struct read_context *context = tell->context;
    Holdfast__Internal__V1__InboxRow *row = NULL;
    channel_record_message *told = message_new(tell, &holdfast__v1__channel_record__descriptor);
    struct channel_ref ref = { tell->request->other_shard, tell->request->seq };
    enum state_found found = inbox_find(context->state, context->arena, ref, context->need, &row);

    tell->response->received = told;
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_ABSENT)
        return ERR_OK;
    told->seq = tell->request->seq;
    told->unreadable = row == NULL;
    if (row == NULL)
        return ERR_OK;
    if (row->result->decision <=
        HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_CANCELLED)
        told->decision = (Holdfast__V1__RecordDecision)row->result->decision;
    told->mail_id = row->result->mail_id;
    return ERR_OK;
}

/* ---- what holds a player ---- */

static err held_tell(const struct tell *tell)
{
    struct read_context *context = tell->context;
    const char *player = tell->request->held_player_id;
    Holdfast__Internal__V1__TxnIntent *intent = NULL;
    channel_record_message told = HOLDFAST__V1__CHANNEL_RECORD__INIT;

    if (player_id_check(slice_from_text(player)) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "held_player_id",
                              "1 to 100 bytes of UTF-8 without control characters",
                              text_shorten(context->arena, slice_from_text(player)));
    enum state_found found =
        intent_find(context->state, context->arena, entity_of_player(context->arena, player),
                    context->need, &intent);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (intent == NULL || intent->txn->home != tell->request->other_shard)
        return ERR_OK;
    transaction_tell(tell, intent->txn, &told);
    tell->response->held_by = told.transaction;
    tell->response->held_op_id = intent->op_id;
    return ERR_OK;
}

static err worse(err a, err b)
{
    return a == ERR_OK ? b : a;
}

static err other_shard_check(const struct tell *tell)
{
    struct read_context *context = tell->context;
    uint32_t other = tell->request->other_shard;

    if (context->shard_count == 0)
        return refuse(context->arena, context->refusal, CODE(UNAVAILABLE), "",
                      "the node does not know the cluster yet; nothing was done");
    if (other < context->shard_count && other != tell->request->shard)
        return ERR_OK;
    return refuse_number(context->arena, context->refusal, "other_shard",
                         arena_printf(context->arena, "0 to %" PRIu32 " but the shard itself",
                                      context->shard_count - 1),
                         other);
}

static err admin_get_channel_read(struct read_context *context, const ProtobufCMessage *message,
                                  ProtobufCMessage *reply)
{
    const struct tell tell = {
        .context = context,
        .request = (const Holdfast__V1__GetChannelRequest *)message,
        .response = (Holdfast__V1__GetChannelResponse *)reply,
    };

    err known = other_shard_check(&tell);
    if (known != ERR_OK)
        return known;
    tell.response->outgoing = message_new(&tell, &holdfast__v1__channel_end__descriptor);
    tell.response->incoming = message_new(&tell, &holdfast__v1__channel_end__descriptor);
    err e = outgoing_tell(&tell, tell.response->outgoing);
    e = worse(e, incoming_tell(&tell, tell.response->incoming));
    if (tell.request->seq != 0) {
        e = worse(e, sent_tell(&tell));
        e = worse(e, received_tell(&tell));
    }
    if (tell.request->held_player_id[0] != 0)
        e = worse(e, held_tell(&tell));
    tell.response->as_of = as_of_text(context);
    return e;
}

const struct handler admin_get_channel_handler = {
    .method = METHOD_GET_CHANNEL,
    .read = admin_get_channel_read,
};
