/* A decision in the inbox that cannot be read: record_repair.h. */
#include <string.h>

#include "node/core/channel/channel_row.h"
#include "node/core/channel/channel_out.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/repair/record_repair.h"
#include "runtime/cluster/placement.h"

#define DECISION(name) HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_##name
#define UNKNOWN_MAIL   "00000000000000000000000000000000"

static err refuse_record(struct apply_context *context, const char *field, const char *limit,
                         const char *value)
{
    return refuse_invalid(context->arena, context->refusal, field, limit, value);
}

static bool is_here(const struct apply_context *context, const char *player_id)
{
    uint32_t shard_count = context->op->shard_count;

    return shard_count == 0 ||
           channel_shard_of(context->arena, player_id, shard_count) == context->shard;
}

/* Another shard's rows would say that it was not applied. */
static err sent_check(struct apply_context *context, const struct record_repair *repair)
{
    const channel_record_told *sent = repair->stated;
    const char *field = sent == NULL ? "record" : record_sent_unsound(sent);
    uint32_t shard_count = context->op->shard_count;

    if (field == NULL && sent->transaction != NULL &&
        sent->transaction->home_shard != repair->other)
        field = "record.transaction.home_shard";
    if (field == NULL && sent->to_player_id[0] != 0 && !is_here(context, sent->to_player_id))
        field = "record.to_player_id";
    for (size_t i = 0; field == NULL && i < sent->n_player_ids; i++) {
        if (!is_here(context, sent->player_ids[i]))
            field = "record.player_ids";
    }
    if (field == NULL && (int)sent->kind == RECORD_KIND(RECEIPT) && shard_count > 0 &&
        shard_of_entity(slice_from_text(sent->op_id), shard_count) != context->shard)
        field = "record.op_id";
    if (field == NULL)
        return ERR_OK;
    return refuse_record(context, field, "what GetChannel of the sender tells of the record", "");
}

/* What other rows prove counts; a person says only what none does. */
static err decision_choose(struct apply_context *context, const channel_record_told *sent,
                           struct record_receiver *found)
{
    bool applied = found->decision == RECORD_DECISION(APPLIED);

    if (found->unreadable != NULL)
        return refuse_record(context, "record.decision",
                             arena_printf(context->arena,
                                          "rows that can be read: %s cannot, and could tell; "
                                          "repair that first",
                                          found->unreadable),
                             "");
    if ((int)found->decision != RECORD_DECISION(UNSPECIFIED)) {
        if ((int)sent->decision == RECORD_DECISION(UNSPECIFIED) ||
            sent->decision == found->decision)
            return ERR_OK;
        return refuse_record(context, "record.decision",
                             applied
                                 ? "APPLIED: the receiver's rows prove it"
                                 : "CANCELLED: the receiver's rows prove that it was not applied",
                             found->mail_id);
    }
    if ((int)sent->decision != RECORD_DECISION(APPLIED) &&
        (int)sent->decision != RECORD_DECISION(CANCELLED))
        return refuse_record(context, "record.decision",
                             "APPLIED or CANCELLED: no row of the receiver tells", "");
    found->decision = sent->decision;
    found->mail_id = sent->mail_id;
    return ERR_OK;
}

/* An answer without a mail id is one that a sender of mail cannot settle by. */
static void decision_store(struct apply_context *context, const struct record_repair *repair,
                           struct record_receiver *found)
{
    Holdfast__Internal__V1__ChannelResult result = HOLDFAST__INTERNAL__V1__CHANNEL_RESULT__INIT;
    Holdfast__Internal__V1__InboxRow row = HOLDFAST__INTERNAL__V1__INBOX_ROW__INIT;
    bool applied = found->decision == RECORD_DECISION(APPLIED);

    if (applied && found->mail_id[0] == 0)
        found->mail_id = UNKNOWN_MAIL;
    result.seq = repair->seq;
    result.decision = applied ? DECISION(APPLIED) : DECISION(CANCELLED);
    result.mail_id = text_lend(found->mail_id);
    result.vote = found->vote;
    row.result = &result;
    inbox_store(context, repair->other, &row);
}

bool decision_is_repaired(struct arena *arena, struct slice value)
{
    const Holdfast__Internal__V1__InboxRow *row = inbox_decode(arena, value);

    return row != NULL && row->payload_hash.len == 0 && row->result->decision == DECISION(APPLIED);
}

err decision_repair(struct apply_context *context, struct record_repair *repair)
{
    const struct record_look look = { context->arena, context->state, context->need,
                                      context->shard, repair->other,  repair->seq };
    Holdfast__Internal__V1__ChannelInRow *stands = NULL;
    struct record_receiver decided;
    struct row_key key;

    enum state_found found =
        channel_in_find(context->state, context->arena, repair->other, context->need, &stands);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_PRESENT && stands == NULL)
        return refuse_record(context, "key", RECORD_CHANNEL_LIMIT, "");
    repair->told->seq = repair->seq;
    if (stands == NULL || repair->seq <= stands->watermark ||
        (context->meta->inboxes_told && repair->seq > stands->decided)) {
        row_key_inbox(&key, repair->other, repair->seq);
        state_delete(context->state, row_key_slice(&key));
        repair->dropped = true; /* It is asked about no more, or was never decided. */
        return ERR_OK;
    }
    err e = sent_check(context, repair);
    if (e == ERR_OK)
        e = record_receiver_find(&look, repair->stated, &decided);
    if (e == ERR_OK)
        e = decision_choose(context, repair->stated, &decided);
    if (e != ERR_OK)
        return e;
    decision_store(context, repair, &decided);
    repair->told->kind = repair->stated->kind;
    repair->told->player_id = repair->stated->player_id;
    repair->told->op_id = repair->stated->op_id;
    repair->told->decision = decided.decision;
    repair->told->mail_id = text_lend(decided.mail_id);
    return ERR_OK;
}
