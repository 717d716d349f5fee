#include "node/core/document/presence.h"

typedef Holdfast__V1__SetPresenceRequest set_request;

static err set(struct document_context *context, const struct document_place *place,
               const set_request *request, struct document_begun *ret_begun)
{
    const struct document_write write = { .op_id = request->op_id };
    const struct presence_setting setting = { request->connection, request->status,
                                              request->incarnation, request->ttl_ms };
    struct value_edits *edits = arena_zalloc(context->arena, sizeof *edits);

    err e = presence_set_edits(context, place, &setting, edits);

    if (e != ERR_OK)
        return e;
    return document_commit(context, place, &write, &(struct document_change){ edits, false, false },
                           ret_begun);
}

static err begin(struct document_context *context, struct slice bytes,
                 struct document_begun *ret_begun)
{
    const set_request *request =
        document_unpack(context, &holdfast__v1__set_presence_request__descriptor, bytes);
    struct document_place place;

    if (request == NULL)
        return ERR_INVALID;
    err e = presence_find(context, request->player_id, "", &place);

    if (e != ERR_OK)
        return e;
    e = set(context, &place, request, ret_begun);
    merge_key_unref(place.key);
    return e;
}

const struct document_method presence_set_presence_method = { begin };
