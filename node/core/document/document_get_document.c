#include "node/core/document/call.h"
#include "node/core/mergeable/pending.h"
#include "node/core/mergeable/read.h"

/* What the context has seen comes with it, unless that is with none of this majority. */
static err ask_majority(struct document_context *context, const struct document_place *place,
                        struct document_begun *ret_begun)
{
    struct merge_refusal refusal = { .field = context->no_disk ? "disk" : "majority" };
    err e = context->no_disk ? ERR_UNAVAILABLE
                             : merge_read_majority(context->replica, context->now_ms, place->key,
                                                   place->token, &ret_begun->ticket);

    if (e == ERR_INVALID)
        refusal.field = "token";
    if (e == ERR_FULL)
        refusal.field = merge_pending_full(context->replica, UINT64_MAX / 2, &refusal.limit);
    return e == ERR_OK ? e : document_refuse(context, e, &refusal);
}

static err read_here(struct document_context *context, const struct document_place *place,
                     struct slice request, struct document_begun *ret_begun)
{
    struct merge_refusal refusal = { .field = "token" };
    struct merge_record record;
    err e = merge_read(context->replica, place->key, place->token, &record);

    if (e == ERR_UNAVAILABLE && context->replica->syncing)
        refusal.field = "syncing";
    if (e != ERR_OK)
        return document_refuse(context, e, &refusal);
    e = document_told(context, request, &record, &ret_begun->answer);
    merge_record_deinit(&record);
    return e;
}

static err begin(struct document_context *context, struct slice bytes,
                 struct document_begun *ret_begun)
{
    const Holdfast__V1__GetDocumentRequest *request =
        document_unpack(context, &holdfast__v1__get_document_request__descriptor, bytes);
    struct document_place place;

    if (request == NULL)
        return ERR_INVALID;
    err e = document_find(
        context, &(struct document_name){ request->entity, request->collection, request->key },
        request->context, &place);

    if (e != ERR_OK)
        return e;
    if (context->erased)
        ret_begun->answer = document_hidden(context);
    else if (request->consistency ==
             HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_MAJORITY)
        e = ask_majority(context, &place, ret_begun);
    else
        e = read_here(context, &place, bytes, ret_begun);
    merge_key_unref(place.key);
    return e;
}

const struct document_method document_get_document_method = { begin };
