#include "node/core/codec/text_rule.h"
#include "node/core/document/call.h"

static bool is_empty_object(const json_t *value)
{
    return json_is_object(value) && json_object_size(value) == 0;
}

/* An array of strings, each once. Plain JSON takes [] for {}, so either is the set of nothing. */
static err put_set(struct value_edits *edits, const json_t *value)
{
    if (is_empty_object(value))
        return ERR_OK;
    if (!json_is_array(value)) {
        edits->why = "an array of strings";
        return ERR_INVALID;
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *element = json_array_get(value, i);
        const struct merge_edit edit = { .path = { (const uint8_t *)json_string_value(element),
                                                   json_string_length(element) } };

        if (!json_is_string(element) || edit.path.size == 0) {
            edits->why = "an array of strings of at least a byte";
            return ERR_INVALID;
        }
        for (size_t j = 0; j < i; j++) {
            if (slice_equal(edits->list[j].path, edit.path)) {
                edits->why = "strings that differ";
                edits->given = edit.path;
                return ERR_INVALID;
            }
        }
        if (value_add(edits, &edit) != ERR_OK)
            return ERR_INVALID;
    }
    return ERR_OK;
}

static err make_edits(const struct document_rule *rule, const json_t *value,
                      struct value_edits *edits)
{
    switch (rule->policy) {
    case MERGE_POLICY_LWW:
    case MERGE_POLICY_VECTOR:
        return value_whole(edits, value);
    case MERGE_POLICY_MERGE:
        if (!json_is_object(value)) {
            edits->why = "an object";
            return ERR_INVALID;
        }
        return value_leaves(edits, (struct slice){ 0 }, value, false);
    case MERGE_POLICY_SET:
        return put_set(edits, value);
    default:
        edits->why = "a collection whose policy is not counter: UpdateDocument alone changes those";
        return ERR_INVALID;
    }
}

static err put(struct document_context *context, const struct document_place *place,
               const Holdfast__V1__PutDocumentRequest *request, struct document_begun *ret_begun)
{
    struct document_write write = { .op_id = request->op_id,
                                    .durability = request->durability,
                                    .has_ttl = request->_ttl_ms_case != 0,
                                    .ttl_ms = request->ttl_ms };
    struct value_edits *edits = arena_zalloc(context->arena, sizeof *edits);
    err e = document_expiry(context, place, &write, &edits->expires_ms);
    json_t *json = e == ERR_OK ? document_parse(context, "json", request->json) : NULL;

    if (json == NULL)
        return ERR_INVALID;
    edits->arena = context->arena;
    if (make_edits(place->rule, json, edits) != ERR_OK)
        e = refuse_invalid(context->arena, context->refusal, "json", edits->why,
                           text_shorten(context->arena, edits->given));
    if (e == ERR_OK) {
        bool whole = place->rule->policy != MERGE_POLICY_VECTOR;
        if (edits->count > 0) /* Else it takes away, as a delete does: each attempt writes. */
            write.content = slice_from_text(request->json);
        e = document_commit(context, place, &write,
                            &(struct document_change){ edits, whole, false }, ret_begun);
    }
    json_decref(json);
    return e;
}

static err begin(struct document_context *context, struct slice bytes,
                 struct document_begun *ret_begun)
{
    const Holdfast__V1__PutDocumentRequest *request =
        document_unpack(context, &holdfast__v1__put_document_request__descriptor, bytes);
    struct document_place place;

    if (request == NULL)
        return ERR_INVALID;
    err e = document_find(
        context, &(struct document_name){ request->entity, request->collection, request->key },
        request->context, &place);

    if (e != ERR_OK)
        return e;
    e = put(context, &place, request, ret_begun);
    merge_key_unref(place.key);
    return e;
}

const struct document_method document_put_document_method = { begin };
