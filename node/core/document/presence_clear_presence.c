#include "node/core/document/presence.h"

static err clear(struct document_context *context, const struct document_place *place,
                 const Holdfast__V1__ClearPresenceRequest *request,
                 struct document_begun *ret_begun)
{
    const struct document_write write = { .op_id = request->op_id };
    struct value_edits *edits = arena_zalloc(context->arena, sizeof *edits);
    bool whole = request->connection[0] == 0;
    const struct merge_edit edit = { .path = slice_from_text(request->connection),
                                     .remove = true,
                                     .exact = true };
    err e = ERR_OK;

    if (!whole)
        e = presence_check_connection(context, request->connection);
    if (e == ERR_OK && !whole)
        e = value_add(edits, &edit);
    if (e != ERR_OK)
        return e;
    return document_commit(context, place, &write, &(struct document_change){ edits, whole, false },
                           ret_begun);
}

static err begin(struct document_context *context, struct slice bytes,
                 struct document_begun *ret_begun)
{
    const Holdfast__V1__ClearPresenceRequest *request =
        document_unpack(context, &holdfast__v1__clear_presence_request__descriptor, bytes);
    struct document_place place;

    if (request == NULL)
        return ERR_INVALID;
    err e = presence_find(context, request->player_id, "", &place);

    if (e != ERR_OK)
        return e;
    e = clear(context, &place, request, ret_begun);
    merge_key_unref(place.key);
    return e;
}

const struct document_method presence_clear_presence_method = { begin };
