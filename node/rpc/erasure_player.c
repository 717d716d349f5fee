#include "node/rpc/erasure_player.h"

err erasure_authority(struct apply_context *context)
{
    if (slice_equal(context->op->authority.scope, SLICE_LITERAL("admin")))
        return ERR_OK;
    return refuse(context->arena, context->refusal, CODE(PERMISSION_DENIED), "authority",
                  "an erasure needs the scope admin");
}

void erasure_footprint(const struct op *op, const ProtobufCMessage *message, struct need *keys)
{
    struct row_key key;

    (void)message;
    row_key_erasure(&key, op->entity);
    need_add_key(keys, row_key_slice(&key));
}
