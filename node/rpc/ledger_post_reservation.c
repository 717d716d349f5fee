#include <inttypes.h>
#include <string.h>

#include "idl/method.h"
#include "node/core/channel/channel_out.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"
#include "node/rpc/reservation.h"
#include "node/rpc/transfer.h"
#include "node/rpc/wallet.h"
#include "runtime/base/check.h"

#define KIND(name) HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_##name

/* From here on the system may post, as it may void: the player gave up what is set aside. */
#define SYSTEM_POST_APPLY_VERSION 10u

typedef Holdfast__V1__PostReservationRequest post_request;
typedef Holdfast__V1__PostReservationResponse post_response;

static struct entry_target target_of(const post_request *request)
{
    return (struct entry_target){
        .op_id = request->reserve_op_id,
        .seq = request->reserve_seq,
        .op_id_field = "reserve_op_id",
        .seq_field = "reserve_seq",
    };
}

static struct transfer transfer_of(const post_request *request)
{
    return (struct transfer){
        .player_id = request->player_id,
        .to_player_id = request->to_player_id,
        .currency_count = request->n_currencies,
        .currencies = request->currencies,
        .text = "",
        .reason = request->reason,
    };
}

static err ledger_post_reservation_check(struct check_context *context, ProtobufCMessage *message)
{
    post_request *request = (post_request *)message;
    struct transfer transfer = transfer_of(request);

    err e = entry_target_check(context, "reserve_op_id", &request->reserve_op_id);
    if (e == ERR_OK && request->to_player_id[0] != 0)
        return transfer_check(context, &transfer);
    if (e == ERR_OK)
        e = wallet_amounts_check(context, request->n_currencies, request->currencies);
    return e == ERR_OK ? wallet_reason_check(context, request->reason) : e;
}

static void ledger_post_footprint(const struct op *op, const ProtobufCMessage *message,
                                  struct need *keys)
{
    const post_request *request = (const post_request *)message;
    struct entry_target target = target_of(request);
    struct transfer transfer = transfer_of(request);

    entry_target_footprint(op, &target, keys);
    if (request->to_player_id[0] != 0)
        transfer_footprint(op, &transfer, keys);
}

static err refuse_more(struct apply_context *context, size_t place,
                       const Holdfast__V1__CurrencyAmount *posted, int64_t held)
{
    int64_t amount = posted->amount;
    err e = refuse(context->arena, context->refusal, CODE(INSUFFICIENT_FUNDS),
                   entry_field_applied(context, "currencies", place, posted->currency, "amount"),
                   "%" PRId64 " of it are reserved", held);

    context->refusal->limit = arena_printf(context->arena, "%" PRId64, held);
    context->refusal->value = arena_printf(context->arena, "%" PRId64, amount);
    refusal_tell_funds(context, posted->currency, held, amount);
    return e;
}

/* How much of each reserved currency leaves. ERR_CONFLICT: more than is reserved. */
static err posted_of(struct apply_context *context, const post_request *request,
                     const Holdfast__V1__LedgerEntry *reserved, int64_t *ret_posted)
{
    for (size_t i = 0; i < reserved->n_changes; i++)
        ret_posted[i] = request->n_currencies == 0 ? reserved->changes[i]->reserved : 0;
    for (size_t i = 0; i < request->n_currencies; i++) {
        const Holdfast__V1__CurrencyAmount *wanted = request->currencies[i];
        size_t at = 0;
        while (at < reserved->n_changes &&
               strcmp(reserved->changes[at]->currency, wanted->currency) != 0)
            at++;
        int64_t held = at < reserved->n_changes ? reserved->changes[at]->reserved : 0;
        if (wanted->amount > held)
            return refuse_more(context, i, wanted, held);
        ret_posted[at] = wanted->amount;
    }
    return ERR_OK;
}

/* To another player: what is posted, in the order of the reservation. */
static err send(struct apply_context *context, const post_request *request,
                const Holdfast__V1__LedgerEntry *reserved, const int64_t *posted,
                post_response *response)
{
    Holdfast__V1__CurrencyAmount **amounts = arena_messages(
        context->arena, &holdfast__v1__currency_amount__descriptor, reserved->n_changes);
    struct transfer transfer = transfer_of(request);
    struct transfer_taken taken = { .ledger_seq = context->player->ledger_seq };

    transfer.currency_count = 0;
    transfer.currencies = amounts;
    for (size_t i = 0; i < reserved->n_changes; i++) {
        if (posted[i] == 0)
            continue;
        amounts[transfer.currency_count]->currency = reserved->changes[i]->currency;
        amounts[transfer.currency_count++]->amount = posted[i];
    }
    return transfer_send(context, &transfer, &taken, &response->base, &response->mail_id);
}

static err ledger_post_handle(struct apply_context *context, const ProtobufCMessage *message,
                              ProtobufCMessage *reply)
{
    const post_request *request = (const post_request *)message;
    post_response *response = (post_response *)reply;
    struct entry_target target = target_of(request);
    struct ledger_change changes[LEDGER_CHANGES_MAX];
    int64_t posted[LEDGER_CHANGES_MAX];
    struct reservation reservation;
    bool sends = request->to_player_id[0] != 0;

    err e = reservation_find(context, &target, &reservation);
    if (e == ERR_OK)
        e = posted_of(context, request, reservation.entry, posted);
    if (e != ERR_OK)
        return e;
    struct reservation_end end = {
        .kind = sends ? KIND(TRANSFER) : KIND(POST),
        .reason = request->reason,
        .posted = posted,
    };
    if (sends)
        end.to_player_id = request->to_player_id;
    reservation_close(context, &reservation, &end, changes);
    response->ledger_seq = context->player->ledger_seq;
    response->reserve_seq = reservation.entry->seq;
    WALLET_TELL(context, reservation.entry->n_changes, changes, response);
    return sends ? send(context, request, reservation.entry, posted, response) : ERR_OK;
}

const struct handler ledger_post_reservation_handler = {
    .method = METHOD_POST_RESERVATION,
    .admits = ADMITS_SESSION | ADMITS_SYSTEM | ADMITS_UNHELD,
    .system_since = SYSTEM_POST_APPLY_VERSION,
    .check = ledger_post_reservation_check,
    .footprint = ledger_post_footprint,
    .handle = ledger_post_handle,
};
