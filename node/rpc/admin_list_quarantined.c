#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/profile/profile.h"
#include "node/rpc/methods.h"
#include "node/rpc/quarantined.h"

static err admin_list_quarantined_read(struct read_context *context,
                                       const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    Holdfast__V1__ListQuarantinedResponse *response =
        (Holdfast__V1__ListQuarantinedResponse *)reply;
    const struct meta *meta = context->meta;

    (void)message;
    response->players = arena_alloc(context->arena, sizeof(void *) * (meta->quarantine_count + 1u));
    for (uint32_t i = 0; i < meta->quarantine_count; i++)
        response->players[response->n_players++] =
            quarantined_message(context->arena, &meta->quarantine[i]);
    response->as_of = dot_message(context->arena, context->as_of);
    return ERR_OK;
}

const struct handler admin_list_quarantined_handler = {
    .method = METHOD_LIST_QUARANTINED,
    .read = admin_list_quarantined_read,
};
