#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/profile/profile.h"
#include "node/core/session/session_apply.h"
#include "node/rpc/methods.h"

static char *state_text(const struct session *session, bool live)
{
    static char texts[][8] = { "free", "granted", "held" };
    return texts[live ? session->state : SESSION_FREE];
}

static err admin_get_session_read(struct read_context *context, const ProtobufCMessage *message,
                                  ProtobufCMessage *reply)
{
    Holdfast__V1__GetSessionResponse *response = (Holdfast__V1__GetSessionResponse *)reply;
    struct player player;

    (void)message;
    err e = player_row_read(context, &player);
    if (e != ERR_OK)
        return e;
    const struct session *session = &player.session;
    bool live = session_is_live(session, context->meta);
    response->state = state_text(session, live);
    response->fence = session->fence;
    if (live) {
        response->incarnation = text_lend(incarnation_text(context->arena, session->incarnation));
        response->acquired_at_ms = (int64_t)session->acquired_at_ms;
    }
    if (session_has_claim(session) && !meta_is_expired(context->meta, session->claim.incarnation))
        response->claimant =
            text_lend(incarnation_text(context->arena, session->claim.incarnation));
    response->shard = context->shard;
    response->as_of = as_of_text(context);
    return ERR_OK;
}

const struct handler admin_get_session_handler = {
    .method = METHOD_GET_SESSION,
    .read = admin_get_session_read,
};
