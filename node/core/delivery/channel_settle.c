#include "node/core/delivery/channel_settle.h"

#include <string.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "idl/method.h"
#include "node/core/channel/channel_out.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/audit.h"
#include "node/core/goods/goods.h"
#include "node/core/goods/mailbox.h"
#include "node/core/handler/outcome_row.h"
#include "node/core/handler/player_row.h"
#include "node/core/handler/refusal.h"
#include "node/core/receipt/receipt.h"
#include "node/core/rows/rows.h"
#include "node/core/transaction/txn_home.h"
#include "runtime/base/check.h"

#define LOOK_AHEAD 256u

static bool op_id_of(const char *text, struct op_id *ret_id)
{
    const char *why;

    return text[0] != 0 && op_id_parse(slice_from_text(text), ret_id, &why) == ERR_OK;
}

static void footprint_one(const Holdfast__Internal__V1__SettleRequest *request, struct need *keys)
{
    struct arena arena = { 0 };
    struct row_key key;
    struct op_id id;

    row_key_channel(&key, true, request->destination);
    need_add_key(keys, row_key_slice(&key));
    for (size_t i = 0; i < request->n_items; i++) {
        const Holdfast__Internal__V1__SettleItem *item = request->items[i];
        struct slice entity = entity_of_player(&arena, item->player_id);
        row_key_outbox(&key, request->destination, item->result->seq);
        need_add_key(keys, row_key_slice(&key));
        if (item->txn != NULL) {
            row_key_txn(&key, item->txn->destination, item->txn->seq);
            need_add_key(keys, row_key_slice(&key));
        }
        if (op_id_of(item->op_id, &id)) {
            row_key_operation(&key, entity, &id);
            need_add_key(keys, row_key_slice(&key));
        }
        bool applied = item->result->decision ==
                       HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_APPLIED;
        if (applied != item->receipt)
            continue;
        row_key_player(&key, entity);
        need_add_key(keys, row_key_slice(&key));
    }
    arena_deinit(&arena);
}

void channel_settle_footprint(const Holdfast__Internal__V1__SettleRequest *request,
                              struct need *keys)
{
    footprint_one(request, keys);
    for (size_t i = 0; i < request->n_more; i++)
        footprint_one(request->more[i], keys);
}

/* One record on its way out of the outbox. */
struct settlement {
    struct apply_context context; /* As if the entry were its operation's own. */
    struct op op;
    const Holdfast__Internal__V1__OutboxRow *row;
    const Holdfast__Internal__V1__ChannelResult *result;
    uint32_t place; /* In the entry. */
    struct settled *settled;
    /* What a refused Post of a reservation was to answer; NULL: it is something else. */
    const Holdfast__V1__PostReservationResponse *posted;
    bool told; /* `settled` is for the waiting caller. */
};

/* A Post of a reservation closed it for good, unlike what others took: beside its ledger entry
 * stands which entry gave it back, or the entry itself if mail did. */
static void post_note_back(struct settlement *s, uint64_t back_by)
{
    const Holdfast__V1__PostReservationResponse *response = s->posted;
    struct row_key key;

    if (response == NULL)
        return;
    row_key_reversal(&key, s->op.entity, response->ledger_seq);
    buf_clear(s->context.scratch);
    reversal_row_encode(back_by > 0 ? back_by : response->ledger_seq, s->context.scratch);
    state_put(s->context.state, row_key_slice(&key), buf_slice(s->context.scratch));
}

/* A player whose row cannot be read gets its goods back as mail, which it claims once the row is
 * repaired. */
static err refund_as_mail(struct settlement *s)
{
    Holdfast__V1__Mail *mail = s->row->credit->mail;

    mail->returned = true;
    mail->expires_at_ms = 0;
    if (s->context.version >= CAME_BACK_APPLY_VERSION && s->row->credit->to_player_id[0] != 0)
        mail->from_player_id = s->row->credit->to_player_id; /* As of mail that was refused. */
    post_note_back(s, 0);
    return mailbox_put(&s->context, s->op.entity, mail, s->place, UINT32_MAX);
}

/* Its goods come back, if they were refused; large ones are on their way no more. */
static err player_follow(struct settlement *s, bool applied)
{
    const Holdfast__V1__Mail *mail = s->row->credit->mail;
    struct player player;
    struct row_key key;

    if (goods_are_none(mail) || (applied && !goods_are_large(mail)))
        return ERR_OK;
    err e = player_row_apply(&s->context, s->op.entity, &player);
    if (e == ERR_CONFLICT)
        return applied ? ERR_OK : refund_as_mail(s);
    if (e != ERR_OK)
        return e;
    s->context.player = &player;
    goods_forget_sent(&player, mail);
    if (!applied) {
        player.version++;
        goods_refund(&s->context, mail, s->row->credit->to_player_id[0] != 0,
                     (const char *const *)&s->row->credit->to_player_id);
        post_note_back(s, player.ledger_seq);
    }
    buf_clear(s->context.scratch);
    player_encode(&player, s->context.scratch);
    row_key_player(&key, s->op.entity);
    state_put(s->context.state, row_key_slice(&key), buf_slice(s->context.scratch));
    s->context.player = NULL;
    return ERR_OK;
}

/* Expired mail that its sender's mailbox has no room for lies on where it was, as ever. */
static err refund_to_mailbox(struct settlement *s)
{
    Holdfast__V1__Mail *mail = s->row->credit->mail;

    mail->from_player_id = s->row->credit->to_player_id;
    mail->returned = false;
    mail->expires_at_ms = (int64_t)s->context.owner_ms;
    return mailbox_put(&s->context, s->op.entity, mail, s->place, UINT32_MAX);
}

/* Its caller learns that no further attempt can post what came back. */
static void tell_came_back(struct settlement *s, Holdfast__Internal__V1__Refusal *refusal)
{
    if (s->posted == NULL)
        return;
    refusal->came_back = true;
    refusal->message =
        arena_printf(s->context.arena, "%s; what was posted is in the balance again: reserve again",
                     refusal->message);
}

static struct slice refused_body(struct settlement *s)
{
    struct refusal refusal = { 0 };

    if (s->result->refusal != NULL) {
        s->result->refusal->final = true;
        tell_came_back(s, s->result->refusal);
        return arena_pack(s->context.arena, &s->result->refusal->base);
    }
    (void)refuse(s->context.arena, &refusal, CODE(OPERATION_ABORTED), "op_id",
                 "the operation was sealed before it was carried out; it never will be");
    refusal.final = true;
    return refusal_pack(&refusal, s->context.arena);
}

/* NULL: it cannot be read, and then no entry is told by it. */
static const Holdfast__V1__PostReservationResponse *posted_of(struct settlement *s)
{
    struct slice bytes = { s->row->response.data, s->row->response.len };
    const Holdfast__V1__PostReservationResponse *response =
        (const Holdfast__V1__PostReservationResponse *)arena_unpack(
            s->context.arena, &holdfast__v1__post_reservation_response__descriptor, bytes);

    return response != NULL && response->ledger_seq > 0 ? response : NULL;
}

/* The operation's one outcome, and for the caller that waits for it. */
static err outcome_settle(struct settlement *s, bool applied)
{
    struct outcome_row row;
    bool cancelled =
        s->result->decision == HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_CANCELLED;

    (void)op_id_of(s->row->credit->op_id, &s->op.id); /* It was checked when the row was read. */
    enum state_found found =
        outcome_row_find(s->context.state, s->op.entity, &s->op.id, s->context.need, &row);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (!applied && s->row->method == METHOD_POST_RESERVATION &&
        s->context.version >= CAME_BACK_APPLY_VERSION)
        s->posted = posted_of(s);
    /* Not pruned while it is PENDING; so it is damaged, and the answer says that. */
    if (found == STATE_ABSENT || row.state != OUTCOME_ROW_PENDING) {
        damage_note(s->context.damage, s->op.entity, OUTCOME_DAMAGE);
        return ERR_OK;
    }
    struct slice body = applied ? channel_answer_body(s->context.arena, s->row, s->result->mail_id)
                                : refused_body(s);
    s->told = true;
    *s->settled = (struct settled){
        .destination = s->context.channel->destination,
        .seq = s->result->seq,
        .refused = !applied,
        .body = body,
        .dot = row.dot,
        .version = row.version,
        .method = row.method,
        .cancelled = cancelled,
        .entity = s->op.entity,
        .op_id = s->op.id.text,
    };
    row.state = applied     ? OUTCOME_ROW_COMMITTED
                : cancelled ? OUTCOME_ROW_ABORTED
                            : OUTCOME_ROW_REFUSED;
    if (!applied && s->row->cancel)
        row.attempt = UINT32_MAX; /* Sealed. */
    row.decided_at_ms = s->context.owner_ms;
    row.body = cancelled ? (struct slice){ 0 } : body;
    outcome_row_store(&s->context, &s->op.id, false, &row);
    return ERR_OK;
}

static err settle(struct settlement *s)
{
    bool applied =
        s->result->decision == HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_APPLIED;
    err e = ERR_OK;

    if (s->row->credit->prepare != NULL)
        return txn_vote(&s->context, s->row, s->result, s->settled, &s->told);
    if (s->row->credit->finish != NULL) /* Those who voted for it cannot refuse. */
        return applied ? ERR_OK
                       : apply_damaged(&s->context, (struct slice){ 0 },
                                       "a member refused to finish what it voted for");
    if (s->row->credit->receipt != NULL) {
        e = receipt_settle(&s->context, s->row, s->result, s->place, s->settled);
        s->told = e == ERR_OK && s->settled->method != 0;
        return e;
    }
    s->op.entity = entity_of_player(s->context.arena, s->row->player_id);
    s->op.id.text = slice_from_text(s->row->credit->op_id);
    s->context.op = &s->op;
    s->context.authority_text = slice_from_text(s->row->authority);
    if (!s->row->mail_return)
        e = outcome_settle(s, applied);
    if (e == ERR_OK && !s->row->mail_return)
        e = player_follow(s, applied);
    else if (e == ERR_OK && !applied)
        e = refund_to_mailbox(s);
    return e;
}

bool channel_result_decides(const Holdfast__Internal__V1__ChannelResult *result)
{
    switch (result->decision) {
    case HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_APPLIED:
    case HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_REJECTED:
    case HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_CANCELLED:
        return true;
    default:
        return false;
    }
}

/* Everything up to here has left the outbox. Each seq is passed once, so this is cheap in sum. */
static err watermark_follow(struct apply_context *context, uint32_t destination,
                            Holdfast__Internal__V1__ChannelOutRow *stands)
{
    while (stands->watermark < stands->last_seq) {
        struct channel_ref next = { destination, stands->watermark + 1 };
        enum state_found found = outbox_look(context->state, next, NULL);
        if (found == STATE_PRESENT)
            break;
        if (found == STATE_MISSING) {
            uint64_t end = stands->watermark + LOOK_AHEAD;
            for (uint64_t seq = stands->watermark + 1; seq <= end && seq <= stands->last_seq; seq++)
                (void)outbox_look(context->state, (struct channel_ref){ destination, seq },
                                  context->need);
            return ERR_NEED;
        }
        stands->watermark++;
    }
    return ERR_OK;
}

/* It leaves the outbox. The watermark passes the first of those that were open without looking for
 * it again; of later ones it must be seen that they are gone. */
static void record_remove(struct apply_context *context, uint32_t destination, uint64_t seq,
                          Holdfast__Internal__V1__ChannelOutRow *stands)
{
    struct row_key key;

    row_key_outbox(&key, destination, seq);
    if (seq == stands->watermark + 1) {
        state_forget(context->state, row_key_slice(&key));
        stands->watermark++;
    } else {
        state_delete(context->state, row_key_slice(&key));
    }
    damage_count_down(context->damage, &context->meta->outbox_open, 1);
}

err channel_record_drop(struct apply_context *context, uint32_t destination, uint64_t seq)
{
    Holdfast__Internal__V1__ChannelOutRow *stands = NULL;

    enum state_found found =
        channel_out_find(context->state, context->arena, destination, context->need, &stands);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (stands == NULL)
        return channel_damaged(context, true, destination);
    record_remove(context, destination, seq, stands);
    err e = watermark_follow(context, destination, stands);
    if (e == ERR_OK)
        channel_out_store(context, destination, stands);
    return e;
}

static err settle_item(struct apply_context *context, uint32_t place,
                       Holdfast__Internal__V1__ChannelOutRow *stands,
                       const Holdfast__Internal__V1__SettleItem *item)
{
    uint32_t destination = context->channel->destination;
    Holdfast__Internal__V1__OutboxRow *row = NULL;
    struct channel_effect *effect = context->channel;

    if (!channel_result_decides(item->result) || item->result->seq <= stands->watermark)
        return ERR_OK;
    struct channel_ref ref = { destination, item->result->seq };
    enum state_found found = outbox_find(context->state, context->arena, ref, context->need, &row);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (row == NULL) /* The same decision was logged before; or the row cannot be read. */
        return ERR_OK;
    struct settlement s = {
        .context = *context,
        .row = row,
        .result = item->result,
        .place = place,
        .settled = &effect->settled[effect->settled_count],
    };
    err e = settle(&s);
    if (e != ERR_OK)
        return e;
    effect->settled_count += s.told;
    audit_settled(context, row, item->result);
    record_remove(context, destination, item->result->seq, stands);
    return ERR_OK;
}

static void note_left(struct channel_effect *effect)
{
    if (effect->left_count == 0 || effect->left[effect->left_count - 1] != effect->destination)
        effect->left[effect->left_count++] = effect->destination;
}

/* One that meets a row which cannot be read has no effect: its record stays open, to be asked for
 * again, and the others are settled. ERR_NEED: nor has it then, since the next item may be another
 * vote on the same transaction. */
static err settle_or_leave(struct apply_context *context, uint32_t place,
                           Holdfast__Internal__V1__ChannelOutRow *stands,
                           const Holdfast__Internal__V1__SettleItem *item)
{
    uint32_t mark = state_mark(context->state);
    struct channel_effect effect = *context->channel;
    uint64_t open = context->meta->outbox_open;
    uint64_t operations = context->meta->operation_count;
    uint64_t keys = context->meta->key_count;
    uint64_t watermark = stands->watermark;

    err e = settle_item(context, place, stands, item);
    if (e == ERR_OK)
        return ERR_OK;
    state_rollback_to(context->state, mark);
    *context->channel = effect;
    context->meta->outbox_open = open;
    context->meta->operation_count = operations;
    context->meta->key_count = keys;
    stands->watermark = watermark;
    if (e == ERR_NEED)
        return e;
    note_left(context->channel);
    return ERR_OK;
}

/* One channel's decisions; *place numbers the items of the whole entry. */
static err settle_one(struct apply_context *context, uint32_t *place,
                      const Holdfast__Internal__V1__SettleRequest *request)
{
    Holdfast__Internal__V1__ChannelOutRow *stands = NULL;
    uint32_t destination = request->destination;
    err result = ERR_OK;

    enum state_found found =
        channel_out_find(context->state, context->arena, destination, context->need, &stands);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (stands == NULL) { /* Nothing can leave the channel; what else the entry settles can. */
        (void)channel_damaged(context, true, destination);
        *place += (uint32_t)request->n_items;
        return ERR_OK;
    }
    context->channel->destination = destination;
    for (size_t i = 0; i < request->n_items; i++) {
        err e = settle_or_leave(context, (*place)++, stands, request->items[i]);
        if (e != ERR_OK)
            result = e; /* Go on, so that every missing row is noted. */
    }
    /* A decision opens records, to this destination too. */
    uint64_t watermark = stands->watermark;
    if (result == ERR_OK)
        (void)channel_out_find(context->state, context->arena, destination, NULL, &stands);
    stands->watermark = watermark;
    if (result == ERR_OK)
        result = watermark_follow(context, destination, stands);
    if (result == ERR_OK)
        channel_out_store(context, destination, stands);
    return result;
}

err channel_settle(struct apply_context *context,
                   const Holdfast__Internal__V1__SettleRequest *request)
{
    struct channel_effect *effect = context->channel;
    uint64_t cut = request->cut;
    size_t items = request->n_items;
    uint32_t place = 0;

    for (size_t i = 0; i < request->n_more; i++) {
        items += request->more[i]->n_items;
        cut = request->more[i]->cut > cut ? request->more[i]->cut : cut;
    }
    audit_cut(context->meta, cut);
    effect->touched = true;
    effect->settled_count = 0;
    effect->left_count = 0;
    effect->left = arena_alloc(context->arena, sizeof *effect->left * (request->n_more + 1));
    effect->settled = arena_alloc(context->arena, sizeof *effect->settled * (items + 1));
    err result = settle_one(context, &place, request);
    for (size_t i = 0; i < request->n_more; i++) {
        err e = settle_one(context, &place, request->more[i]);
        if (e != ERR_OK)
            result = e; /* As above. */
    }
    return result;
}
