#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/erasure/erasure.h"
#include "node/core/goods/audit.h"
#include "node/core/goods/ledger.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/core/session/timers.h"
#include "node/rpc/methods.h"
#include "node/rpc/wallet.h"

#define REASON_MAX     64u
#define TIMERS_VERSION 2u /* Of apply: a release sets the timers that damage had dropped. */

typedef Holdfast__V1__ReleaseQuarantineRequest release_request;

static err made_check(struct check_context *context, const release_request *request)
{
    uint8_t uid[ITEM_UID_BYTES];

    if (request->n_made_items > LEDGER_ITEMS_MAX)
        return refuse_number(context->arena, context->refusal, "made_items", "at most 64",
                             (int64_t)request->n_made_items);
    if (request->n_made_amounts > LEDGER_CHANGES_MAX)
        return refuse_number(context->arena, context->refusal, "made_amounts", "at most 16",
                             (int64_t)request->n_made_amounts);
    for (size_t i = 0; i < request->n_made_items; i++) {
        struct slice text = slice_from_text(request->made_items[i]);
        if (item_uid_parse(text, uid) != ERR_OK)
            return refuse_invalid(context->arena, context->refusal, "made_items",
                                  "32 hex digits, lower case", text_shorten(context->arena, text));
    }
    for (size_t i = 0; i < request->n_made_amounts; i++) {
        const Holdfast__V1__CurrencyAmount *each = request->made_amounts[i];
        if (policy_find_currency(&context->meta->policy, slice_from_text(each->currency)) == NULL) {
            err e = refuse_invalid(context->arena, context->refusal, "made_amounts",
                                   "a currency of the policy",
                                   text_shorten(context->arena, slice_from_text(each->currency)));
            wallet_currency_hint(context, each->currency);
            return e;
        }
        if (each->amount > AMOUNT_MAX || each->amount < -AMOUNT_MAX)
            return refuse_invalid(context->arena, context->refusal, "made_amounts",
                                  "-9007199254740991 to 9007199254740991", "");
    }
    return ERR_OK;
}

static err admin_release_quarantine_check(struct check_context *context, ProtobufCMessage *message)
{
    const Holdfast__V1__ReleaseQuarantineRequest *request =
        (const Holdfast__V1__ReleaseQuarantineRequest *)message;
    struct slice reason = slice_from_text(request->reason);

    if (reason.size == 0 || reason.size > REASON_MAX || !text_is_clean(reason))
        return refuse_invalid(context->arena, context->refusal, "reason",
                              "1 to 64 bytes of UTF-8 without control characters",
                              text_shorten(context->arena, reason));
    return made_check(context, request);
}

/* Counted as made, so that what is held too much is held rightly from now on. */
static void regard_as_made(struct apply_context *context, const release_request *request)
{
    Holdfast__Internal__V1__TxnDelta made = HOLDFAST__INTERNAL__V1__TXN_DELTA__INIT;

    made.n_amounts = request->n_made_amounts;
    made.amounts = request->made_amounts;
    made.n_added = request->n_made_items;
    made.added = request->made_items;
    audit_made(context, &made);
}

static err admin_release_quarantine_handle(struct apply_context *context,
                                           const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    Holdfast__V1__ReleaseQuarantineResponse *response =
        (Holdfast__V1__ReleaseQuarantineResponse *)reply;
    struct slice scope = context->op->authority.scope;
    const struct quarantined *held =
        meta_find_quarantined(context->meta, player_id(context->player));

    if (!slice_equal(scope, SLICE_LITERAL("admin")) &&
        !slice_equal(scope, SLICE_LITERAL("moderation")))
        return refuse(context->arena, context->refusal, CODE(PERMISSION_DENIED), "authority",
                      "a release needs the scope admin or moderation");
    if (held == NULL)
        return refuse(context->arena, context->refusal, CODE(NOT_FOUND), "player_id",
                      "the player is not quarantined");
    if (context->unreadable)
        return apply_damaged(context, context->op->entity, PLAYER_DAMAGE);
    if (context->version >= TIMERS_VERSION) {
        err e = timers_renew(context);
        err erasure = erasure_timer_renew(context);
        if (e != ERR_OK || erasure != ERR_OK)
            return e != ERR_OK ? e : erasure;
    }
    response->was_for = arena_text(context->arena, slice_from_text(held->reason));
    meta_release(context->meta, held);
    regard_as_made(context, (const release_request *)message);
    return ERR_OK;
}

const struct handler admin_release_quarantine_handler = {
    .method = METHOD_RELEASE_QUARANTINE,
    .admits = ADMITS_SYSTEM,
    .check = admin_release_quarantine_check,
    .handle = admin_release_quarantine_handle,
};
