#include "idl/method.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/core/session/session_apply.h"
#include "node/rpc/methods.h"
#include "runtime/base/check.h"

#define MODE(name) HOLDFAST__V1__START_MODE__START_MODE_##name

static err session_start_session_check(struct check_context *context, ProtobufCMessage *message)
{
    Holdfast__V1__StartSessionRequest *request = (Holdfast__V1__StartSessionRequest *)message;
    struct slice text = slice_from_text(request->incarnation);
    struct incarnation incarnation;
    struct include include;

    if (incarnation_parse(text, &incarnation) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "incarnation",
                              "an incarnation that RegisterServer returned",
                              text_shorten(context->arena, text));
    if (request->mode < MODE(UNSPECIFIED) || request->mode > MODE(STEAL))
        return refuse_number(context->arena, context->refusal, "mode", "WAIT, FAIL or STEAL",
                             (int64_t)request->mode);
    if (request->grace_ms > SESSION_GRACE_MS_MAX)
        return refuse_number(context->arena, context->refusal, "grace_ms", "0 to 60000",
                             request->grace_ms);
    return include_parse(context->arena, context->refusal, request->n_include, request->include,
                         &include);
}

static err refuse_expired(struct apply_context *context, const char *incarnation)
{
    err e = refuse(context->arena, context->refusal, CODE(SERVER_EXPIRED), "incarnation",
                   "the registration of server %s has expired; register again", incarnation);
    context->refusal->value = incarnation;
    return e;
}

/* Another server's claim on the same player gives way to this request's. */
static void replace_claim(struct apply_context *context, const char *incarnation)
{
    struct refusal refusal;

    (void)refuse(context->arena, &refusal, CODE(SESSION_LOCKED), "",
                 "server %s asked for the player later, and is served first", incarnation);
    refusal.holder = incarnation;
    refusal.retry_after_ms = SESSION_RETRY_MS;
    claim_refuse(context, &refusal);
}

static void grant(struct apply_context *context, struct incarnation incarnation, bool stolen,
                  Holdfast__V1__StartSessionResponse *response)
{
    response->stolen = stolen;
    session_grant(context, incarnation, response);
}

static err refuse_held(struct apply_context *context, struct incarnation owner,
                       Holdfast__V1__StartMode mode)
{
    err e = refuse_locked(context, owner);
    context->refusal->transient = mode == MODE(WAIT);
    return e;
}

static err steal(struct apply_context *context, struct incarnation incarnation,
                 const Holdfast__V1__StartSessionRequest *request,
                 Holdfast__V1__StartSessionResponse *response)
{
    const struct session *session = &context->player->session;
    uint64_t grace_ms = request->grace_ms > 0 ? request->grace_ms : SESSION_GRACE_MS_DEFAULT;
    struct claim claim = {
        .incarnation = incarnation,
        .deadline_ms = context->owner_ms + grace_ms,
        .op_id = context->op->id.text,
        .attempt = context->op->attempt,
        .payload = context->op->payload,
    };

    if (session_has_claim(session)) {
        /* The holder was told once: later requests do not give it more time. */
        claim.deadline_ms = session->claim.deadline_ms;
        if (slice_equal(session->claim.op_id, claim.op_id))
            claim_clear(context);
        else
            replace_claim(context, request->incarnation);
    }
    if (claim.deadline_ms <= context->owner_ms) {
        grant(context, incarnation, true, response);
        return ERR_OK;
    }
    claim_set(context, &claim);
    context->pending = true;
    return ERR_OK;
}

/* The session is free, or its holder is dead, or its holder asks again. */
static err take(struct apply_context *context, struct incarnation incarnation,
                const Holdfast__V1__StartSessionRequest *request,
                Holdfast__V1__StartSessionResponse *response)
{
    const struct session *session = &context->player->session;
    bool restarts = session_is_live(session, context->meta);
    bool own = slice_equal(session->claim.op_id, context->op->id.text);

    if (session_has_claim(session) && own) {
        claim_clear(context);
    } else if (session_has_claim(session) && !restarts) {
        bool rival = !meta_is_expired(context->meta, session->claim.incarnation) &&
                     incarnation_compare(session->claim.incarnation, incarnation) != 0;
        if (rival && request->mode != MODE(STEAL))
            return refuse_held(context, session->claim.incarnation, request->mode);
        replace_claim(context, request->incarnation);
    }
    grant(context, incarnation, false, response);
    return ERR_OK;
}

static err session_start_session_handle(struct apply_context *context,
                                        const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const Holdfast__V1__StartSessionRequest *request =
        (const Holdfast__V1__StartSessionRequest *)message;
    Holdfast__V1__StartSessionResponse *response = (Holdfast__V1__StartSessionResponse *)reply;
    const struct session *session = &context->player->session;
    struct incarnation incarnation;

    CHECK(incarnation_parse(slice_from_text(request->incarnation), &incarnation) == ERR_OK);
    if (meta_is_expired(context->meta, incarnation))
        return refuse_expired(context, request->incarnation);
    if (!session_is_live(session, context->meta) ||
        incarnation_compare(session->incarnation, incarnation) == 0)
        return take(context, incarnation, request, response);
    if (request->mode == MODE(STEAL))
        return steal(context, incarnation, request, response);
    return refuse_held(context, session->incarnation, request->mode);
}

const struct handler session_start_session_handler = {
    .method = METHOD_START_SESSION,
    .check = session_start_session_check,
    .handle = session_start_session_handle,
};
