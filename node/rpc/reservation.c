#include "node/rpc/reservation.h"

#include <inttypes.h>

#include "idl/method.h"
#include "node/core/codec/text_rule.h"
#include "node/core/delivery/channel_settle.h"
#include "node/core/handler/outcome_row.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

#define KIND(name) HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_##name

static void row_put(struct apply_context *context, uint64_t seq, uint64_t expires_at_ms)
{
    struct row_key key;

    buf_clear(context->scratch);
    reservation_row_encode(expires_at_ms, context->scratch);
    row_key_reservation(&key, context->player->entity, seq);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
}

void reservation_open(struct apply_context *context, uint64_t expires_at_ms)
{
    struct player *player = context->player;
    struct row_key key;

    CHECK(player->reservation_count < RESERVATIONS_MAX);
    player->reservation_count++;
    row_put(context, player->ledger_seq, expires_at_ms);
    row_key_reservation_timer(&key, expires_at_ms, player->entity, player->ledger_seq);
    buf_clear(context->scratch);
    timer_row_encode(0, context->scratch);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
}

/* *ret_open false: there is none, or no more. ERR_NEED. */
static err closing_find(struct apply_context *context, uint64_t seq, uint64_t *ret_expires_at_ms,
                        bool *ret_open)
{
    struct row_key key;
    struct slice row;

    row_key_reservation(&key, context->player->entity, seq);
    enum state_found found = state_find(context->state, row_key_slice(&key), &row);
    if (found == STATE_MISSING) {
        need_add_key(context->need, row_key_slice(&key));
        return ERR_NEED;
    }
    *ret_open = found == STATE_PRESENT;
    if (!*ret_open)
        return ERR_OK;
    if (reservation_row_decode(row, ret_expires_at_ms) != ERR_OK)
        return apply_damaged(context, context->player->entity, RESERVATION_DAMAGE);
    return ERR_OK;
}

static err refuse_expired(struct apply_context *context, const struct entry_target *target)
{
    err e = refuse(context->arena, context->refusal, CODE(RESERVATION_EXPIRED), target->op_id_field,
                   "the reservation has expired; what it held comes back");

    context->refusal->value = target->op_id;
    return e;
}

/* What became of what entry `by` posted to another player. The entry that gave it back stands
 * beside `by` (channel_settle.c); where that is missing, the operation's outcome says. An id `key:`
 * may stand for a later operation by now, so its refusal says nothing. ERR_NEED; ERR_CONFLICT. */
static err posted_fate(struct apply_context *context, const Holdfast__V1__LedgerEntry *by,
                       bool *ret_came_back, bool *ret_on_its_way)
{
    struct outcome_row row;
    uint64_t back_by = 0;
    struct op_id id;
    const char *why;

    *ret_came_back = *ret_on_its_way = false;
    if (op_id_parse(slice_from_text(by->op_id), &id, &why) != ERR_OK)
        return apply_damaged(context, context->player->entity, LEDGER_DAMAGE);
    enum state_found found =
        outcome_row_find(context->state, context->player->entity, &id, context->need, &row);
    err e = entry_undone_read(context, by->seq, &back_by);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (e != ERR_OK)
        return e;
    *ret_came_back = back_by > 0;
    if (*ret_came_back)
        return ERR_OK;
    if (found == STATE_PRESENT && row.state == OUTCOME_ROW_UNREADABLE)
        return apply_damaged(context, context->player->entity, OUTCOME_DAMAGE);
    /* One that was made again after damage tells nothing of what it had been. */
    bool refused = found == STATE_PRESENT && row.method == METHOD_POST_RESERVATION &&
                   (row.state == OUTCOME_ROW_REFUSED || row.state == OUTCOME_ROW_ABORTED);
    *ret_came_back = refused && !id.is_key;
    *ret_on_its_way = !*ret_came_back && found == STATE_PRESENT && row.state == OUTCOME_ROW_PENDING;
    return ERR_OK;
}

/* Which entry closed it, and how. ERR_NEED. */
static err refuse_closed(struct apply_context *context, const struct entry_target *target,
                         uint64_t closed_by)
{
    Holdfast__V1__LedgerEntry *by = NULL;
    const char *how = "posted", *fate = "";
    bool came_back = false, on_its_way = false;

    err e = entry_read(context, closed_by, &by);
    if (e == ERR_OK && (int)by->kind == KIND(TRANSFER) &&
        context->version >= CAME_BACK_APPLY_VERSION)
        e = posted_fate(context, by, &came_back, &on_its_way);
    if (e != ERR_OK)
        return e;
    if ((int)by->kind == KIND(EXPIRY))
        return refuse_expired(context, target);
    if ((int)by->kind == KIND(VOID))
        how = "voided";
    if (came_back)
        fate = ", and what it posted is in the balance again: reserve again";
    else if (on_its_way)
        fate = "; whether what it posted has arrived is not logged yet";
    e = refuse(context->arena, context->refusal, CODE(RESERVATION_CLOSED), target->op_id_field,
               "the reservation was %s by entry %" PRIu64 "%s", how, closed_by, fate);
    context->refusal->came_back = came_back;
    context->refusal->on_its_way = on_its_way;
    context->refusal->value = arena_printf(context->arena, "%" PRIu64, closed_by);
    return e;
}

/* What it holds is in the player's balances. */
static bool fits_player(const struct player *player, const Holdfast__V1__LedgerEntry *entry)
{
    for (size_t i = 0; i < entry->n_changes; i++) {
        const Holdfast__V1__LedgerChange *change = entry->changes[i];
        const struct balance *balance =
            player_find_balance(player, slice_from_text(change->currency));
        if (balance == NULL || change->reserved < 0 || balance->reserved < change->reserved)
            return false;
    }
    return player->reservation_count > 0;
}

err reservation_find(struct apply_context *context, const struct entry_target *target,
                     struct reservation *ret_reservation)
{
    Holdfast__V1__LedgerEntry *entry = NULL;
    uint64_t closed_by = 0, expires_at_ms = 0;
    bool open = false;

    err e = entry_target_read(context, target, &entry, &closed_by);
    if (e != ERR_OK)
        return e;
    if ((int)entry->kind != KIND(RESERVE)) {
        e = refuse(context->arena, context->refusal, CODE(NOT_FOUND), target->op_id_field,
                   "that operation reserved nothing");
        context->refusal->value = target->op_id;
        return e;
    }
    if (closed_by > 0)
        return refuse_closed(context, target, closed_by);
    e = closing_find(context, entry->seq, &expires_at_ms, &open);
    if (e != ERR_OK)
        return e;
    if (!open || !fits_player(context->player, entry))
        return apply_damaged(context, context->player->entity, RESERVATION_DAMAGE);
    if (expires_at_ms <= context->owner_ms)
        return refuse_expired(context, target);
    *ret_reservation = (struct reservation){ .entry = entry, .expires_at_ms = expires_at_ms };
    return ERR_OK;
}

err reservation_find_due(struct apply_context *context, uint64_t seq,
                         struct reservation *ret_reservation, bool *ret_due)
{
    Holdfast__V1__LedgerEntry *entry = NULL;
    uint64_t expires_at_ms = 0;
    bool open = false;

    *ret_due = false;
    err e = closing_find(context, seq, &expires_at_ms, &open);
    if (e != ERR_OK || !open || expires_at_ms > context->owner_ms)
        return e;
    e = entry_read(context, seq, &entry);
    if (e != ERR_OK)
        return e;
    if (!fits_player(context->player, entry))
        return apply_damaged(context, context->player->entity, RESERVATION_DAMAGE);
    *ret_due = true;
    *ret_reservation = (struct reservation){ .entry = entry, .expires_at_ms = expires_at_ms };
    return ERR_OK;
}

static void rows_delete(struct apply_context *context, const struct reservation *reservation)
{
    struct player *player = context->player;
    struct row_key key;

    row_key_reservation(&key, player->entity, reservation->entry->seq);
    state_delete(context->state, row_key_slice(&key));
    row_key_reservation_timer(&key, reservation->expires_at_ms, player->entity,
                              reservation->entry->seq);
    state_delete(context->state, row_key_slice(&key));
    CHECK(player->reservation_count > 0);
    player->reservation_count--;
}

void reservation_close(struct apply_context *context, const struct reservation *reservation,
                       const struct reservation_end *end, struct ledger_change *ret_changes)
{
    const Holdfast__V1__LedgerEntry *opened = reservation->entry;

    for (size_t i = 0; i < opened->n_changes; i++) {
        struct slice name = slice_from_text(opened->changes[i]->currency);
        int64_t held = opened->changes[i]->reserved;
        int64_t back = held - (end->posted != NULL ? end->posted[i] : 0);
        struct balance *balance = player_find_balance(context->player, name);
        CHECK(balance != NULL); /* It stands since it was reserved. */
        CHECK(back >= 0 && balance->reserved >= held);
        /* See goods.h for why this fits. */
        CHECK(!__builtin_add_overflow(balance->amount, back, &balance->amount));
        balance->reserved -= held;
        ret_changes[i] = (struct ledger_change){
            .currency = name,
            .amount = back,
            .balance_after = balance->amount,
            .reserved = -held,
            .reserved_after = balance->reserved,
        };
    }
    rows_delete(context, reservation);
    const struct ledger_entry entry = {
        .kind = end->kind,
        .reason = slice_from_text(end->reason),
        .change_count = (uint32_t)opened->n_changes,
        .changes = ret_changes,
        .refers_to = opened->seq,
        .counterpart_count = end->to_player_id != NULL ? 1 : 0,
        .counterparts = &end->to_player_id,
    };
    ledger_append(context, &entry);
    entry_target_mark(context, opened->seq);
}
