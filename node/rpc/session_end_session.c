#include "holdfast/v1/session.pb-c.h"
#include "idl/method.h"
#include "node/core/profile/section_edit.h"
#include "node/core/session/session_apply.h"
#include "node/rpc/methods.h"

static err session_end_session_check(struct check_context *context, ProtobufCMessage *message)
{
    Holdfast__V1__EndSessionRequest *request = (Holdfast__V1__EndSessionRequest *)message;
    return section_edits_check(context, request->n_edits, request->edits);
}

static void session_end_session_footprint(const struct op *op, const ProtobufCMessage *message,
                                          struct need *keys)
{
    const Holdfast__V1__EndSessionRequest *request =
        (const Holdfast__V1__EndSessionRequest *)message;
    section_edits_footprint(op, request->n_edits, request->edits, keys);
}

static err session_end_session_handle(struct apply_context *context,
                                      const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const Holdfast__V1__EndSessionRequest *request =
        (const Holdfast__V1__EndSessionRequest *)message;
    Holdfast__V1__EndSessionResponse *response = (Holdfast__V1__EndSessionResponse *)reply;

    err e = section_edits_apply(context, request->n_edits, request->edits, &response->sections);
    if (e != ERR_OK)
        return e;
    response->n_sections = request->n_edits;
    session_release(context);
    return ERR_OK;
}

const struct handler session_end_session_handler = {
    .method = METHOD_END_SESSION,
    .admits = ADMITS_SESSION,
    .check = session_end_session_check,
    .footprint = session_end_session_footprint,
    .handle = session_end_session_handle,
};
