#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/session/session_apply.h"
#include "node/rpc/methods.h"

static err node_session_hold_handle(struct apply_context *context, const ProtobufCMessage *message,
                                    ProtobufCMessage *reply)
{
    const Holdfast__Internal__V1__SessionHoldRequest *request =
        (const Holdfast__Internal__V1__SessionHoldRequest *)message;
    const struct session *session = &context->player->session;

    (void)reply;
    if (session->state == SESSION_GRANTED && session->fence == request->fence)
        session_hold(context);
    return ERR_OK;
}

const struct handler node_session_hold_handler = {
    .method = METHOD_SESSION_HOLD,
    .handle = node_session_hold_handle,
};
