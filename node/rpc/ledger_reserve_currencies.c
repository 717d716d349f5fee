#include <inttypes.h>

#include "idl/limit.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"
#include "node/rpc/reservation.h"
#include "node/rpc/wallet.h"

#define EXPIRES_MS_MIN 1000ull
#define EXPIRES_MS_MAX LIMIT_RESERVATION_MS

static err ledger_reserve_currencies_check(struct check_context *context, ProtobufCMessage *message)
{
    const Holdfast__V1__ReserveCurrenciesRequest *request =
        (const Holdfast__V1__ReserveCurrenciesRequest *)message;

    if (request->n_currencies == 0)
        return refuse_invalid(context->arena, context->refusal, "currencies", "1 to 16 currencies",
                              "");
    if (request->expires_in_ms < EXPIRES_MS_MIN || request->expires_in_ms > EXPIRES_MS_MAX)
        return refuse_invalid(context->arena, context->refusal, "expires_in_ms",
                              "1000 to 2592000000",
                              arena_printf(context->arena, "%" PRIu64, request->expires_in_ms));
    err e = wallet_amounts_check(context, request->n_currencies, request->currencies);
    return e == ERR_OK ? wallet_reason_check(context, request->reason) : e;
}

static err refuse_full(struct apply_context *context)
{
    err e = refuse(context->arena, context->refusal, CODE(CAPACITY_FULL), "",
                   "the player has %u open reservations already", RESERVATIONS_MAX);

    context->refusal->limit = arena_printf(context->arena, "%u", RESERVATIONS_MAX);
    refusal_tell_capacity(context, "reservations", RESERVATIONS_MAX);
    return e;
}

/* Out of the balances, which wallet_change has lowered, into what is set aside. */
static err set_aside(struct apply_context *context, uint32_t count, struct ledger_change *changes)
{
    for (uint32_t i = 0; i < count; i++) {
        int64_t amount = -changes[i].amount;
        struct balance *balance = player_find_balance(context->player, changes[i].currency);
        if (balance->reserved > AMOUNT_MAX - amount) {
            err e = refuse(context->arena, context->refusal, CODE(CAPACITY_FULL),
                           entry_field_applied(context, "currencies", i,
                                               arena_text(context->arena, changes[i].currency),
                                               "amount"),
                           "%" PRId64 " are reserved already", balance->reserved);
            context->refusal->limit = arena_printf(context->arena, "%lld", AMOUNT_MAX);
            context->refusal->value = arena_printf(context->arena, "%" PRId64, amount);
            refusal_tell_capacity(context, "reserved", AMOUNT_MAX);
            return e;
        }
        balance->reserved += amount;
        changes[i].reserved = amount;
        changes[i].reserved_after = balance->reserved;
    }
    return ERR_OK;
}

static err ledger_reserve_handle(struct apply_context *context, const ProtobufCMessage *message,
                                 ProtobufCMessage *reply)
{
    const Holdfast__V1__ReserveCurrenciesRequest *request =
        (const Holdfast__V1__ReserveCurrenciesRequest *)message;
    Holdfast__V1__ReserveCurrenciesResponse *response =
        (Holdfast__V1__ReserveCurrenciesResponse *)reply;
    struct ledger_change changes[LEDGER_CHANGES_MAX];
    uint32_t count = (uint32_t)request->n_currencies;

    if (context->player->reservation_count == RESERVATIONS_MAX)
        return refuse_full(context);
    err e = wallet_change(context, count, request->currencies, -1, changes);
    if (e == ERR_OK)
        e = set_aside(context, count, changes);
    if (e != ERR_OK)
        return e;
    const struct ledger_entry entry = {
        .kind = HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_RESERVE,
        .reason = slice_from_text(request->reason),
        .change_count = count,
        .changes = changes,
    };
    ledger_append(context, &entry);
    reservation_open(context, context->owner_ms + request->expires_in_ms);
    response->ledger_seq = context->player->ledger_seq;
    response->expires_at_ms = (int64_t)(context->owner_ms + request->expires_in_ms);
    WALLET_TELL(context, count, changes, response);
    return ERR_OK;
}

const struct handler ledger_reserve_currencies_handler = {
    .method = METHOD_RESERVE_CURRENCIES,
    .admits = ADMITS_SESSION | ADMITS_UNHELD,
    .check = ledger_reserve_currencies_check,
    .handle = ledger_reserve_handle,
};
