#include "idl/method.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/user_flags.h"
#include "node/rpc/methods.h"

typedef Holdfast__V1__SetUserFlagsRequest set_request;

static err user_set_user_flags_check(struct check_context *context, ProtobufCMessage *message)
{
    return user_flags_check(context, (const set_request *)message);
}

static void user_set_user_flags_footprint(const struct op *op, const ProtobufCMessage *message,
                                          struct need *keys)
{
    (void)message;
    user_flags_footprint(op, keys);
}

/* Payments may say what was paid for, and give no role. */
static err authority_check(struct apply_context *context, const set_request *request)
{
    struct slice scope = context->op->authority.scope;
    bool roles = request->n_add_roles + request->n_remove_roles > 0;

    if (slice_equal(scope, SLICE_LITERAL("admin")) ||
        (!roles && slice_equal(scope, SLICE_LITERAL("payments"))))
        return ERR_OK;
    return refuse(context->arena, context->refusal, CODE(PERMISSION_DENIED), "authority",
                  "roles need the scope admin, flags that or payments");
}

static err user_set_user_flags_handle(struct apply_context *context,
                                      const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const set_request *request = (const set_request *)message;
    err e = authority_check(context, request);

    return e == ERR_OK ? user_flags_change(context, request, (void *)reply) : e;
}

const struct handler user_set_user_flags_handler = {
    .method = METHOD_SET_USER_FLAGS,
    .admits = ADMITS_SYSTEM,
    .check = user_set_user_flags_check,
    .footprint = user_set_user_flags_footprint,
    .handle = user_set_user_flags_handle,
};
