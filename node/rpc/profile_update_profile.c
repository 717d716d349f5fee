#include "idl/method.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/section_edit.h"
#include "node/rpc/methods.h"

static err profile_update_profile_check(struct check_context *context, ProtobufCMessage *message)
{
    Holdfast__V1__UpdateProfileRequest *request = (Holdfast__V1__UpdateProfileRequest *)message;

    if (request->n_edits == 0)
        return refuse_invalid(context->arena, context->refusal, "edits", "1 to 32 edits", "");
    return section_edits_check(context, request->n_edits, request->edits);
}

static void profile_update_profile_footprint(const struct op *op, const ProtobufCMessage *message,
                                             struct need *keys)
{
    const Holdfast__V1__UpdateProfileRequest *request =
        (const Holdfast__V1__UpdateProfileRequest *)message;
    section_edits_footprint(op, request->n_edits, request->edits, keys);
}

static err profile_update_profile_handle(struct apply_context *context,
                                         const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const Holdfast__V1__UpdateProfileRequest *request =
        (const Holdfast__V1__UpdateProfileRequest *)message;
    Holdfast__V1__UpdateProfileResponse *response = (Holdfast__V1__UpdateProfileResponse *)reply;

    response->n_sections = request->n_edits;
    return section_edits_apply(context, request->n_edits, request->edits, &response->sections);
}

const struct handler profile_update_profile_handler = {
    .method = METHOD_UPDATE_PROFILE,
    .admits = ADMITS_SESSION | ADMITS_UNHELD,
    .check = profile_update_profile_check,
    .footprint = profile_update_profile_footprint,
    .handle = profile_update_profile_handle,
};
