#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/json_edit.h"
#include "node/core/document/call.h"

typedef Holdfast__V1__UpdateDocumentRequest update_request;

/* One update while it is made. */
struct update {
    struct document_context *context;
    const struct document_place *place;
    const update_request *request;
    struct value_edits *edits;
    bool whole;
};

static err wrong(struct update *update, const char *field, const char *limit)
{
    return refuse_invalid(update->context->arena, update->context->refusal, field, limit, "");
}

/* NULL: refused. Of a removal it is null. */
static json_t *operand(struct update *update, const Holdfast__V1__PatchStep *step)
{
    bool counts = step->kind == HOLDFAST__V1__PATCH_KIND__PATCH_KIND_INCREMENT ||
                  step->kind == HOLDFAST__V1__PATCH_KIND__PATCH_KIND_MAX;

    if (step->kind == HOLDFAST__V1__PATCH_KIND__PATCH_KIND_REMOVE) {
        if (step->json[0] == 0)
            return json_null();
        (void)wrong(update, "patch", "no value with REMOVE");
        return NULL;
    }
    json_t *value = document_parse(update->context, "patch", step->json);

    if (value == NULL || !counts || json_is_integer(value))
        return value;
    json_decref(value);
    (void)wrong(update, "patch", "an integer for INCREMENT and MAX");
    return NULL;
}

/* ---- merge: leaves ---- */

static err merge_patch(struct update *update, const json_t *patch)
{
    if (value_leaves(update->edits, (struct slice){ 0 }, patch, true) != ERR_OK)
        return wrong(update, "merge", update->edits->why);
    return update->edits->count > 0 ? ERR_OK : wrong(update, "merge", "a patch that names a leaf");
}

/* Steps are carried out one after the other: what an earlier one gave within the path goes, and so
 * does a value of which this step makes an object. */
static void undo_earlier(struct update *update, struct slice path, bool gives)
{
    for (uint32_t i = 0; i < update->edits->count; i++) {
        struct merge_edit *edit = &update->edits->list[i];

        if (merge_path_is_inside(edit->path, path) ||
            (gives && merge_path_is_inside(path, edit->path)))
            *edit = (struct merge_edit){ .path = edit->path, .remove = true };
    }
}

/* What is there goes, and what the value has comes: an object by its leaves. */
static err set_leaf(struct update *update, struct slice path, const json_t *value)
{
    err e = ERR_OK;

    if (json_is_object(value) && json_object_size(value) > 0)
        e = value_add(update->edits, &(struct merge_edit){ .path = path, .remove = true });
    if (e == ERR_OK)
        e = value_leaves(update->edits, path, value, false);
    return e == ERR_OK ? e : wrong(update, "patch", update->edits->why);
}

static err merge_step(struct update *update, const Holdfast__V1__PatchStep *step,
                      const json_t *value)
{
    struct slice path = slice_from_text(step->path);

    if (path.size < 2 || json_pointer_check(path) != ERR_OK)
        return wrong(update, "patch", "JSON Pointers of at least one name");
    path = (struct slice){ path.data + 1, path.size - 1 };
    undo_earlier(update, path, step->kind == HOLDFAST__V1__PATCH_KIND__PATCH_KIND_SET);
    if (step->kind == HOLDFAST__V1__PATCH_KIND__PATCH_KIND_SET)
        return set_leaf(update, path, value);
    if (step->kind != HOLDFAST__V1__PATCH_KIND__PATCH_KIND_REMOVE)
        return wrong(update, "patch",
                     "the steps set and remove, since the collection's policy is merge");
    if (value_add(update->edits, &(struct merge_edit){ .path = path, .remove = true }) != ERR_OK)
        return wrong(update, "patch", update->edits->why);
    return ERR_OK;
}

/* ---- set, counter ---- */

static err set_step(struct update *update, const Holdfast__V1__PatchStep *step, const json_t *value)
{
    bool discard = step->kind == HOLDFAST__V1__PATCH_KIND__PATCH_KIND_DISCARD;

    if ((!discard && step->kind != HOLDFAST__V1__PATCH_KIND__PATCH_KIND_ADD) || step->path[0] != 0)
        return wrong(update, "patch",
                     "add or discard with the path \"\", of a collection whose policy is set");
    if (!json_is_string(value) || json_string_length(value) == 0)
        return wrong(update, "patch", "strings of at least a byte");
    const struct merge_edit edit = {
        .path = arena_copy(
            update->context->arena,
            (struct slice){ (const uint8_t *)json_string_value(value), json_string_length(value) }),
        .remove = discard,
    };
    if (value_add(update->edits, &edit) != ERR_OK)
        return wrong(update, "patch", update->edits->why);
    return ERR_OK;
}

static err counter_step(struct update *update, const Holdfast__V1__PatchStep *step,
                        const json_t *value)
{
    struct slice path = slice_from_text(step->path);

    if (step->kind != HOLDFAST__V1__PATCH_KIND__PATCH_KIND_INCREMENT)
        return wrong(update, "patch",
                     "the step increment, since the collection's policy is counter");
    if (path.size < 2 || path.data[0] != '/' || memchr(path.data + 1, '/', path.size - 1) != NULL ||
        memchr(path.data, '~', path.size) != NULL)
        return wrong(update, "patch", "paths of a slash and one name without / and ~");
    const struct merge_edit edit = { .path = { path.data + 1, path.size - 1 },
                                     .delta = json_integer_value(value) };
    if (value_add(update->edits, &edit) != ERR_OK)
        return wrong(update, "patch", update->edits->why);
    return ERR_OK;
}

/* ---- last write: the whole that comes of it ---- */

static json_t *read_stored(struct update *update)
{
    struct merge_record record;

    document_stored(update->context, update->place, &record);
    json_t *json = value_json(&record, update->context->now_ms);
    merge_record_deinit(&record);
    return json;
}

static err write_whole(struct update *update, json_t *json)
{
    update->whole = true;
    if (json != NULL && value_whole(update->edits, json) != ERR_OK)
        return wrong(update, "patch", update->edits->why);
    return ERR_OK;
}

static err whole_step(struct update *update, json_t **json, const Holdfast__V1__PatchStep *step,
                      json_t *value)
{
    const char *why = NULL;

    if (json_pointer_check(slice_from_text(step->path)) != ERR_OK)
        return wrong(update, "patch", "JSON Pointers of at most 512 bytes");
    if (*json == NULL)
        *json = json_object();
    err e = json_patch_step(json, step->kind, slice_from_text(step->path), value, &why);

    if (e == ERR_OK)
        return ERR_OK;
    return wrong(update, "patch", e == ERR_FULL ? "integers of 64 bits" : why);
}

/* ---- all ---- */

static err one_step(struct update *update, json_t **json, const Holdfast__V1__PatchStep *step)
{
    json_t *value = operand(update, step);
    err e = ERR_INVALID;

    if (value == NULL)
        return e;
    switch (update->place->rule->policy) {
    case MERGE_POLICY_MERGE:
        e = merge_step(update, step, value);
        break;
    case MERGE_POLICY_SET:
        e = set_step(update, step, value);
        break;
    case MERGE_POLICY_COUNTER:
        e = counter_step(update, step, value);
        break;
    case MERGE_POLICY_LWW:
        e = whole_step(update, json, step, value);
        break;
    default:
        e = wrong(update, "patch",
                  "a collection whose policy is not vector: its documents are written whole");
        break;
    }
    json_decref(value);
    return e;
}

static err take_steps(struct update *update)
{
    const Holdfast__V1__PatchList *patch = update->request->patch;
    bool whole = update->place->rule->policy == MERGE_POLICY_LWW;
    json_t *json = whole ? read_stored(update) : NULL;
    err e = patch->n_steps > 0 && patch->n_steps <= MERGE_EDITS_MAX
                ? ERR_OK
                : wrong(update, "patch", "1 to 64 steps");

    for (size_t i = 0; i < patch->n_steps && e == ERR_OK; i++)
        e = one_step(update, &json, patch->steps[i]);
    if (e == ERR_OK && whole)
        e = write_whole(update, json);
    json_decref(json);
    return e;
}

static err take_merge(struct update *update)
{
    json_t *patch = document_parse(update->context, "merge", update->request->merge);
    err e = ERR_INVALID;

    if (patch == NULL)
        return e;
    if (update->place->rule->policy == MERGE_POLICY_MERGE) {
        e = merge_patch(update, patch);
    } else if (update->place->rule->policy == MERGE_POLICY_LWW) {
        json_t *json = json_merge(read_stored(update), patch);
        e = write_whole(update, json);
        json_decref(json);
    } else {
        e = wrong(update, "merge", "a collection whose policy is merge or last_write");
    }
    json_decref(patch);
    return e;
}

/* A first attempt stands: its steps may not fit what they left. */
static err leave_stored(struct update *update)
{
    json_t *json = read_stored(update);
    err e = write_whole(update, json);

    json_decref(json);
    return e;
}

static struct slice content_of(const struct update *update)
{
    const update_request *request = update->request;

    if (request->edit_case == HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__EDIT_PATCH)
        return arena_pack(update->context->arena, &request->patch->base);
    if (request->edit_case == HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__EDIT_MERGE)
        return slice_from_text(request->merge);
    return (struct slice){ 0 };
}

static err take_edit(struct update *update)
{
    switch (update->request->edit_case) {
    case HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__EDIT_MERGE:
        return take_merge(update);
    case HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__EDIT_PATCH:
        return take_steps(update);
    default:
        return wrong(update, "edit", "merge or patch");
    }
}

static err update_place(struct update *update, struct document_begun *ret_begun)
{
    const update_request *request = update->request;
    const struct document_write write = { .op_id = request->op_id,
                                          .durability = request->durability,
                                          .has_ttl = request->_ttl_ms_case != 0,
                                          .ttl_ms = request->ttl_ms,
                                          .content = content_of(update) };
    err e = document_expiry(update->context, update->place, &write, &update->edits->expires_ms);

    if (e == ERR_OK)
        e = update->place->rule->policy == MERGE_POLICY_LWW &&
                    document_stands(update->context, update->place, &write)
                ? leave_stored(update)
                : take_edit(update);
    if (e != ERR_OK)
        return e;
    return document_commit(update->context, update->place, &write,
                           &(struct document_change){ update->edits, update->whole, true },
                           ret_begun);
}

static err begin(struct document_context *context, struct slice bytes,
                 struct document_begun *ret_begun)
{
    const update_request *request =
        document_unpack(context, &holdfast__v1__update_document_request__descriptor, bytes);
    struct update update = { .context = context, .request = request };
    struct document_place place;

    if (request == NULL)
        return ERR_INVALID;
    err e = document_find(
        context, &(struct document_name){ request->entity, request->collection, request->key },
        request->context, &place);

    if (e != ERR_OK)
        return e;
    update.place = &place;
    update.edits = arena_zalloc(context->arena, sizeof *update.edits);
    update.edits->arena = context->arena;
    e = update_place(&update, ret_begun);
    merge_key_unref(place.key);
    return e;
}

const struct document_method document_update_document_method = { begin };
