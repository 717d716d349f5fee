#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/rpc/methods.h"
#include "node/rpc/quarantined.h"

static err admin_list_quarantined_read(struct read_context *context,
                                       const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const Holdfast__V1__ListQuarantinedRequest *request =
        (const Holdfast__V1__ListQuarantinedRequest *)message;
    Holdfast__V1__ListQuarantinedResponse *response =
        (Holdfast__V1__ListQuarantinedResponse *)reply;
    const struct meta *meta = context->meta;
    uint32_t size = request->page_size > 0 ? request->page_size : QUARANTINE_MAX;

    if (request->page_size > QUARANTINE_MAX)
        return refuse_number(context->arena, context->refusal, "page_size", "1 to 1024, or 0",
                             request->page_size);
    response->players = arena_alloc(context->arena, sizeof(void *) * (meta->quarantine_count + 1u));
    for (uint32_t i = 0; i < meta->quarantine_count; i++) {
        const struct quarantined *held = &meta->quarantine[i];
        if (strcmp(held->player, request->cursor) <= 0)
            continue;
        if (response->n_players == size) {
            response->next_cursor = response->players[size - 1]->player_id;
            break;
        }
        response->players[response->n_players++] = quarantined_message(context->arena, held);
    }
    response->as_of = as_of_text(context);
    return ERR_OK;
}

const struct handler admin_list_quarantined_handler = {
    .method = METHOD_LIST_QUARANTINED,
    .read = admin_list_quarantined_read,
};
