#include "node/core/delivery/channel_in.h"

#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/audit.h"
#include "node/core/goods/mailbox.h"
#include "node/core/handler/refusal.h"
#include "node/core/receipt/receipt.h"
#include "node/core/rows/rows.h"
#include "node/core/transaction/txn_member.h"

#define DECISION(name) HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_##name

void channel_deliver_footprint(const Holdfast__Internal__V1__DeliverRequest *request,
                               struct need *keys)
{
    struct arena arena = { 0 };
    struct row_key key;

    row_key_channel(&key, false, request->source);
    need_add_key(keys, row_key_slice(&key));
    /* The inbox is left out: what comes for the first time, which is nearly all, has no row there,
     * and the channel's row says so. */
    for (size_t i = 0; i < request->n_credits; i++) {
        txn_member_footprint(request->credits[i], keys);
        receipt_footprint(request->credits[i], keys);
        if (request->credits[i]->mail == NULL)
            continue;
        row_key_mailbox(&key, entity_of_player(&arena, request->credits[i]->to_player_id));
        need_add_key(keys, row_key_slice(&key));
    }
    arena_deinit(&arena);
}

/* A batch while it is applied. */
struct delivery {
    struct apply_context *context;
    uint32_t source;
    uint64_t watermark;
    uint64_t decided; /* The greatest seq decided so far. */
    Holdfast__Internal__V1__DeliverResponse *response;
};

static bool same_payload(const ProtobufCBinaryData *a, const ProtobufCBinaryData *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

/* A decision that a person's repair made again does not know the record's payload. */
static bool is_repaired(const struct delivery *d, const Holdfast__Internal__V1__InboxRow *stored)
{
    return d->context->version >= RECORD_REPAIR_VERSION && stored->payload_hash.len == 0;
}

/* Decided already. A record that means something else now is a breach: nothing is said of it, so
 * that nothing is settled by it. A cancelled one never said what it was. */
static void repeat(const struct delivery *d, const Holdfast__Internal__V1__InboxRow *stored,
                   const Holdfast__Internal__V1__ChannelCredit *credit,
                   Holdfast__Internal__V1__ChannelResult *result)
{
    if (credit != NULL && stored->result->decision != DECISION(CANCELLED) &&
        !is_repaired(d, stored) && !same_payload(&stored->payload_hash, &credit->payload_hash))
        return;
    result->decision = stored->result->decision;
    result->mail_id = stored->result->mail_id;
    result->refusal = stored->result->refusal;
    result->vote = stored->result->vote;
    result->decided_cut = stored->result->decided_cut;
}

static void record(struct delivery *d, const ProtobufCBinaryData *payload_hash,
                   Holdfast__Internal__V1__ChannelResult *result)
{
    Holdfast__Internal__V1__InboxRow row = HOLDFAST__INTERNAL__V1__INBOX_ROW__INIT;

    row.result = result;
    if (payload_hash != NULL)
        row.payload_hash = *payload_hash;
    inbox_add(d->context, d->source, &row);
    if (result->seq > d->decided)
        d->decided = result->seq;
}

/* What was decided before. What is above all that was is new: no row is looked for. */
static enum state_found stored_find(struct delivery *d, uint64_t seq,
                                    Holdfast__Internal__V1__InboxRow **ret_row)
{
    if (d->context->meta->inboxes_told && seq > d->decided)
        return STATE_ABSENT;
    struct channel_ref ref = { d->source, seq };
    return inbox_find(d->context->state, d->context->arena, ref, d->context->need, ret_row);
}

static err mail_decide(struct delivery *d, uint32_t place,
                       Holdfast__Internal__V1__ChannelCredit *credit,
                       Holdfast__Internal__V1__ChannelResult *result)
{
    struct apply_context *context = d->context;
    struct slice entity = entity_of_player(context->arena, credit->to_player_id);

    err e = mailbox_put(context, entity, credit->mail, place, context->meta->policy.mailbox_max);
    if (e == ERR_NEED)
        return e;
    if (e == ERR_OK) {
        result->decision = DECISION(APPLIED);
        result->mail_id = credit->mail->mail_id;
    } else {
        result->decision = DECISION(REJECTED);
        result->refusal = (Holdfast__Internal__V1__Refusal *)arena_unpack(
            context->arena, &holdfast__internal__v1__refusal__descriptor,
            refusal_pack(context->refusal, context->arena));
    }
    return ERR_OK;
}

static err credit_decide(struct delivery *d, uint32_t place,
                         Holdfast__Internal__V1__ChannelCredit *credit,
                         Holdfast__Internal__V1__ChannelResult *result)
{
    err e = ERR_OK;

    result->decided_cut = d->context->meta->cut_id;
    if (credit->prepare != NULL)
        e = txn_member_prepare(d->context, place, credit, result);
    else if (credit->finish != NULL)
        e = txn_member_finish(d->context, credit, result);
    else if (credit->receipt != NULL)
        e = receipt_decide(d->context, credit, result);
    else
        e = mail_decide(d, place, credit, result);
    if (e == ERR_OK && result->decision != DECISION(HELD))
        record(d, &credit->payload_hash, result);
    return e;
}

/* What cannot be refused, and meets a row that cannot be read, is not decided until a person has
 * repaired that: its sender keeps it, and asks again from time to time. */
static err credit_decide_or_hold(struct delivery *d, uint32_t place,
                                 Holdfast__Internal__V1__ChannelCredit *credit,
                                 Holdfast__Internal__V1__ChannelResult *result)
{
    uint32_t mark = state_mark(d->context->state);
    err e = credit_decide(d, place, credit, result);

    if (e == ERR_OK || e == ERR_NEED)
        return e;
    state_rollback_to(d->context->state, mark);
    result->decision = DECISION(HELD);
    return ERR_OK;
}

static bool is_empty(const Holdfast__Internal__V1__ChannelCredit *credit)
{
    return credit->mail == NULL && credit->prepare == NULL && credit->finish == NULL &&
           credit->receipt == NULL;
}

static void hold_unreadable(struct delivery *d, uint64_t seq,
                            Holdfast__Internal__V1__ChannelResult *result)
{
    (void)apply_damaged(d->context, (struct slice){ 0 },
                        arena_printf(d->context->arena,
                                     "decision %llu of the inbox from shard %u cannot be read",
                                     (unsigned long long)seq, d->source));
    result->decision = DECISION(HELD);
}

/* `credit` NULL: a cancel. */
static err decide(struct delivery *d, uint64_t seq, uint32_t place,
                  Holdfast__Internal__V1__ChannelCredit *credit)
{
    Holdfast__Internal__V1__ChannelResult *result = d->response->results[d->response->n_results++];
    Holdfast__Internal__V1__InboxRow *stored = NULL;

    result->seq = seq;
    if (seq <= d->watermark) {
        result->decision = DECISION(SETTLED);
        return ERR_OK;
    }
    switch (stored_find(d, seq, &stored)) {
    case STATE_MISSING:
        return ERR_NEED;
    case STATE_PRESENT:
        if (stored != NULL)
            repeat(d, stored, credit, result);
        else
            hold_unreadable(d, seq, result);
        return ERR_OK;
    case STATE_ABSENT:
        break;
    }
    if (credit != NULL && is_empty(credit)) {
        result->decision = DECISION(HELD);
        return ERR_OK;
    }
    if (credit != NULL)
        return credit_decide_or_hold(d, place, credit, result);
    result->decision = DECISION(CANCELLED);
    record(d, NULL, result);
    return ERR_OK;
}

/* Drops what the source will never ask about again, so many at a time. */
static void watermark_take(struct delivery *d, uint64_t watermark,
                           Holdfast__Internal__V1__ChannelInRow *stands)
{
    uint64_t end = stands->watermark;
    struct row_key key;

    if (watermark > end)
        end = watermark - end > CHANNEL_DROP_MAX ? end + CHANNEL_DROP_MAX : watermark;
    for (uint64_t seq = stands->watermark + 1; seq <= end; seq++) {
        row_key_inbox(&key, d->source, seq);
        state_forget(d->context->state, row_key_slice(&key));
    }
    stands->watermark = end;
    d->watermark = end;
}

static err decide_all(struct delivery *d, const Holdfast__Internal__V1__DeliverRequest *request)
{
    err result = ERR_OK;

    for (size_t i = 0; i < request->n_credits; i++) {
        err e = decide(d, request->credits[i]->seq, (uint32_t)i, request->credits[i]);
        if (e != ERR_OK)
            result = e; /* Go on, so that every missing row is noted. */
    }
    for (size_t i = 0; i < request->n_cancels; i++) {
        err e = decide(d, request->cancels[i], 0, NULL);
        if (e != ERR_OK)
            result = e;
    }
    return result;
}

err channel_deliver(struct apply_context *context,
                    const Holdfast__Internal__V1__DeliverRequest *request,
                    Holdfast__Internal__V1__DeliverResponse *response)
{
    Holdfast__Internal__V1__ChannelInRow fresh = HOLDFAST__INTERNAL__V1__CHANNEL_IN_ROW__INIT;
    Holdfast__Internal__V1__ChannelInRow *stands = NULL;
    struct delivery d = { .context = context, .source = request->source, .response = response };

    audit_cut(context->meta, request->cut);
    enum state_found found =
        channel_in_find(context->state, context->arena, d.source, context->need, &stands);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_PRESENT && stands == NULL)
        return channel_damaged(context, false, d.source);
    if (found == STATE_ABSENT)
        stands = &fresh;
    const Holdfast__Internal__V1__ChannelInRow before = *stands;
    d.decided = stands->decided;
    watermark_take(&d, request->watermark, stands);
    response->results =
        arena_messages(context->arena, &holdfast__internal__v1__channel_result__descriptor,
                       request->n_credits + request->n_cancels);
    err result = decide_all(&d, request);
    stands->decided = d.decided;
    if (stands->watermark != before.watermark || stands->decided != before.decided)
        channel_in_store(context, d.source, stands);
    response->cut = context->meta->cut_id;
    response->watermark = d.watermark;
    return result;
}
