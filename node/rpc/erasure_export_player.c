#include "holdfast/v1/erasure.pb-c.h"
#include "idl/method.h"
#include "node/core/erasure/erasure.h"
#include "node/core/erasure/erasure_export.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/rpc/methods.h"

static err erasure_export_player_read(struct read_context *context, const ProtobufCMessage *message,
                                      ProtobufCMessage *reply)
{
    const Holdfast__V1__ExportPlayerRequest *request = (const void *)message;
    Holdfast__V1__ExportPlayerResponse *response = (void *)reply;
    struct erasure_row row;
    struct player player;

    err e = player_row_read(context, &player);
    if (e != ERR_OK)
        return e;
    e = erasure_find(context->state, context->entity, context->need, &row);
    if (e == ERR_CORRUPT)
        return read_damaged(context, ERASURE_DAMAGE);
    if (e == ERR_OK)
        e = erasure_export(context, request, response);
    if (e != ERR_OK)
        return e;
    if (row.number > 0)
        response->erasure = erasure_told(context->arena, &row);
    response->created_at_ms = (int64_t)player.created_at_ms;
    response->as_of = as_of_text(context);
    return ERR_OK;
}

const struct handler erasure_export_player_handler = {
    .method = METHOD_EXPORT_PLAYER,
    .read = erasure_export_player_read,
};
