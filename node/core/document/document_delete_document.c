#include "node/core/document/call.h"

static err begin(struct document_context *context, struct slice bytes,
                 struct document_begun *ret_begun)
{
    const Holdfast__V1__DeleteDocumentRequest *request =
        document_unpack(context, &holdfast__v1__delete_document_request__descriptor, bytes);
    struct value_edits *edits = arena_zalloc(context->arena, sizeof *edits);
    struct document_place place;

    if (request == NULL)
        return ERR_INVALID;
    const struct document_write write = { .op_id = request->op_id,
                                          .durability = request->durability };
    err e = document_find(
        context, &(struct document_name){ request->entity, request->collection, request->key },
        request->context, &place);

    if (e != ERR_OK)
        return e;
    e = document_commit(context, &place, &write, &(struct document_change){ edits, true, false },
                        ret_begun);
    merge_key_unref(place.key);
    return e;
}

const struct document_method document_delete_document_method = { begin };
