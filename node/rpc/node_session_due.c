#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/session/session_apply.h"
#include "node/core/session/timers.h"
#include "node/rpc/methods.h"

#define HELD_AGAIN_MS 200u

static bool claim_is_due(const struct apply_context *context)
{
    const struct session *session = &context->player->session;
    return session_has_claim(session) && session->claim.deadline_ms <= context->owner_ms;
}

static bool grant_is_unused(const struct apply_context *context)
{
    const struct session *session = &context->player->session;
    return session->state == SESSION_GRANTED &&
           session->acquired_at_ms + SESSION_UNUSED_MS <= context->owner_ms;
}

/* A timer that asks for what is not due, though nothing changed since, would ask for ever. */
static void drop_wrong_timer(struct apply_context *context, uint64_t fence)
{
    const struct timer_row wrong = { .fence = fence };

    if (timers_forget(context, context->op->entity, &wrong) == 0)
        return;
    damage_note(context->damage, context->op->entity, "a timer of the player's session is wrong");
    if (context->player->session.state != SESSION_FREE)
        session_defer(context, session_due_ms(&context->player->session));
}

/* Looks again whether it is due: what the owner saw may have changed before the entry. */
static err node_session_due_handle(struct apply_context *context, const ProtobufCMessage *message,
                                   ProtobufCMessage *reply)
{
    const Holdfast__Internal__V1__SessionDueRequest *request =
        (const Holdfast__Internal__V1__SessionDueRequest *)message;
    const struct session *session = &context->player->session;

    (void)reply;
    bool is_due = claim_is_due(context) || grant_is_unused(context);
    if (session->state == SESSION_FREE || session->fence != request->fence || !is_due) {
        drop_wrong_timer(context, request->fence);
        return ERR_OK;
    }
    if (context->player->txn.seq != 0) {
        session_defer(context, context->owner_ms + HELD_AGAIN_MS);
        return ERR_OK;
    }
    if (claim_is_due(context) && claim_grant(context))
        return ERR_OK;
    if (grant_is_unused(context))
        session_release(context);
    return ERR_OK;
}

const struct handler node_session_due_handler = {
    .method = METHOD_SESSION_DUE,
    .handle = node_session_due_handle,
};
