#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/profile/profile.h"
#include "node/rpc/methods.h"
#include "node/rpc/quarantined.h"

static err admin_get_quarantine_read(struct read_context *context, const ProtobufCMessage *message,
                                     ProtobufCMessage *reply)
{
    const Holdfast__V1__GetQuarantineRequest *request =
        (const Holdfast__V1__GetQuarantineRequest *)message;
    Holdfast__V1__GetQuarantineResponse *response = (Holdfast__V1__GetQuarantineResponse *)reply;
    const struct quarantined *held =
        meta_find_quarantined(context->meta, slice_from_text(request->player_id));

    if (held != NULL)
        response->quarantined = quarantined_message(context->arena, held);
    response->as_of = as_of_text(context);
    return ERR_OK;
}

const struct handler admin_get_quarantine_handler = {
    .method = METHOD_GET_QUARANTINE,
    .read = admin_get_quarantine_read,
};
