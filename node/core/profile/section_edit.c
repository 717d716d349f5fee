#include "node/core/profile/section_edit.h"

#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/json_canon.h"
#include "node/core/codec/json_edit.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

typedef Holdfast__V1__SectionEdit Edit;
typedef Holdfast__V1__PatchStep Step;

#define EDIT(kind)  HOLDFAST__V1__SECTION_EDIT__EDIT_##kind
#define PATCH(kind) HOLDFAST__V1__PATCH_KIND__PATCH_KIND_##kind

/* Of an edit in a list of them, or of the only one: `edit` is what the request calls it. */
static const char *edit_field(struct arena *arena, const char *edit, const char *name)
{
    return arena_printf(arena, "%s.%s", edit, name);
}

static err check_name(struct check_context *context, const char *called, const char *name)
{
    static const char *const reserved[] = { "wallet", "inventory", "ledger", USER_FLAGS_SECTION };
    struct slice text = slice_from_text(name);
    const char *field = edit_field(context->arena, called, "name");

    if (!text_is_name(text, SECTION_NAME_BYTES_MAX))
        return refuse_invalid(context->arena, context->refusal, field, "1 to 64 of [a-z0-9_]",
                              text_shorten(context->arena, text));
    for (size_t i = 0; i < ARRAY_SIZE(reserved); i++) {
        if (strcmp(name, reserved[i]) == 0)
            return refuse_invalid(
                context->arena, context->refusal, field,
                "another name than wallet, inventory, ledger and " USER_FLAGS_SECTION
                ": these are typed",
                name);
    }
    return ERR_OK;
}

/* Puts the canonical form in place of *text. */
static err make_canonical(struct check_context *context, const char *field, char **text)
{
    struct slice given = slice_from_text(*text);
    struct buf canonical = { 0 };
    const char *why = NULL;
    err e = ERR_OK;

    if (given.size > SECTION_BYTES_MAX)
        return refuse_number(context->arena, context->refusal, field, "at most 262144 bytes",
                             (int64_t)given.size);
    e = json_canon(given, &canonical, &why);
    if (e != ERR_OK)
        e = refuse_invalid(context->arena, context->refusal, field, why,
                           text_shorten(context->arena, given));
    else if (canonical.size > SECTION_BYTES_MAX)
        e = refuse_number(context->arena, context->refusal, field,
                          "at most 262144 bytes in canonical form", (int64_t)canonical.size);
    else
        *text = arena_text(context->arena, buf_slice(&canonical));
    buf_deinit(&canonical);
    return e;
}

static bool takes_integer(Holdfast__V1__PatchKind kind)
{
    return kind == PATCH(INCREMENT) || kind == PATCH(MAX);
}

static bool is_integer_text(const char *json)
{
    return strchr("-0123456789", json[0]) != NULL && strpbrk(json, ".eE") == NULL;
}

static err check_path(struct check_context *context, const char *field, const char *path)
{
    struct slice text = slice_from_text(path);

    if (json_pointer_check(text) == ERR_OK)
        return ERR_OK;
    return refuse_invalid(context->arena, context->refusal, field,
                          "a JSON Pointer of at most 512 bytes and 64 parts",
                          text_shorten(context->arena, text));
}

static err check_step(struct check_context *context, const char *prefix, Step *step)
{
    struct arena *arena = context->arena;

    if (step->kind < PATCH(SET) || step->kind > PATCH(DISCARD))
        return refuse_number(arena, context->refusal, arena_printf(arena, "%s.kind", prefix),
                             "SET, REMOVE, INCREMENT, APPEND, MAX, ADD or DISCARD",
                             (int64_t)step->kind);
    err e = check_path(context, arena_printf(arena, "%s.path", prefix), step->path);
    if (e != ERR_OK)
        return e;
    const char *field = arena_printf(arena, "%s.json", prefix);
    if (step->kind == PATCH(REMOVE)) {
        if (step->json[0] == 0)
            return ERR_OK;
        return refuse_invalid(arena, context->refusal, field, "no value with REMOVE",
                              text_shorten(arena, slice_from_text(step->json)));
    }
    e = make_canonical(context, field, &step->json);
    if (e != ERR_OK)
        return e;
    if (takes_integer(step->kind) && !is_integer_text(step->json))
        return refuse_invalid(arena, context->refusal, field, "an integer",
                              text_shorten(arena, slice_from_text(step->json)));
    return ERR_OK;
}

static err check_patch(struct check_context *context, const char *called,
                       Holdfast__V1__PatchList *patch)
{
    if (patch->n_steps == 0 || patch->n_steps > PATCH_STEPS_MAX)
        return refuse_number(context->arena, context->refusal,
                             edit_field(context->arena, called, "patch.steps"), "1 to 64 steps",
                             (int64_t)patch->n_steps);
    for (size_t i = 0; i < patch->n_steps; i++) {
        const char *prefix = arena_printf(context->arena, "%s.patch.steps[%zu]", called, i);
        err e = check_step(context, prefix, patch->steps[i]);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

static err check_remove(struct check_context *context, const char *called, const Edit *edit)
{
    const char *field = edit_field(context->arena, called, "remove");

    if (edit->n_remove == 0)
        return ERR_OK;
    if (edit->edit_case != EDIT(MERGE))
        return refuse_invalid(context->arena, context->refusal, field, "no paths without merge",
                              text_shorten(context->arena, slice_from_text(edit->remove[0])));
    if (edit->n_remove > PATCH_STEPS_MAX)
        return refuse_number(context->arena, context->refusal, field, "at most 64 paths",
                             (int64_t)edit->n_remove);
    for (size_t i = 0; i < edit->n_remove; i++) {
        err e =
            check_path(context, arena_printf(context->arena, "%s[%zu]", field, i), edit->remove[i]);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

err section_edit_check(struct check_context *context, const char *called, Edit *edit)
{
    err e = check_name(context, called, edit->name);

    if (e == ERR_OK)
        e = check_remove(context, called, edit);
    if (e != ERR_OK)
        return e;
    switch (edit->edit_case) {
    case EDIT(REPLACE):
        return make_canonical(context, edit_field(context->arena, called, "replace"),
                              &edit->replace);
    case EDIT(MERGE):
        return make_canonical(context, edit_field(context->arena, called, "merge"), &edit->merge);
    case EDIT(PATCH):
        return check_patch(context, called, edit->patch);
    case EDIT(DELETE):
        return ERR_OK;
    default:
        return refuse_invalid(context->arena, context->refusal, called,
                              "one of replace, merge, patch, delete", "");
    }
}

static err check_twins(struct check_context *context, size_t count, Edit *const *edits)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(edits[i]->name, edits[j]->name) == 0)
                return refuse_twin(context->arena, context->refusal,
                                   entry_field(context->arena, "edits", i, edits[i]->name, ""));
        }
    }
    return ERR_OK;
}

err section_edits_check(struct check_context *context, size_t count, Edit **edits)
{
    if (count > SECTION_EDITS_MAX)
        return refuse_number(context->arena, context->refusal, "edits", "at most 32 edits",
                             (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        const char *called = entry_field(context->arena, "edits", i, edits[i]->name, "");
        err e = section_edit_check(context, called, edits[i]);
        if (e != ERR_OK)
            return e;
    }
    return check_twins(context, count, edits);
}

static bool reads_section(const Edit *edit)
{
    return edit->edit_case == EDIT(MERGE) || edit->edit_case == EDIT(PATCH);
}

void section_edits_footprint(const struct op *op, size_t count, Edit *const *edits,
                             struct need *keys)
{
    struct row_key key;

    for (size_t i = 0; i < count; i++) {
        if (!reads_section(edits[i]))
            continue;
        row_key_section(&key, op->entity, slice_from_text(edits[i]->name));
        need_add_key(keys, row_key_slice(&key));
    }
}

/* One edit while it is applied. */
struct edit_step {
    struct apply_context *context;
    const Edit *edit;
    size_t place;
    struct section_info *section; /* NULL: the player has none of that name. */
    struct row_key key;
};

static const char *step_field(const struct edit_step *step, const char *name)
{
    return entry_field_applied(step->context, "edits", step->place, step->edit->name, name);
}

static err check_versions(struct edit_step *step)
{
    struct apply_context *context = step->context;
    const Edit *edit = step->edit;
    uint64_t version = step->section != NULL ? step->section->version : 0;

    if (step->section != NULL && edit->schema_version < step->section->schema_version) {
        (void)refuse(context->arena, context->refusal, CODE(SCHEMA_TOO_NEW),
                     step_field(step, "schema_version"),
                     "section %s has schema version %u; this writer knows %u", edit->name,
                     step->section->schema_version, edit->schema_version);
        context->refusal->limit =
            arena_printf(context->arena, "at least %u", step->section->schema_version);
        context->refusal->value = arena_printf(context->arena, "%u", edit->schema_version);
        return ERR_CONFLICT;
    }
    if (edit->_if_version_case == HOLDFAST__V1__SECTION_EDIT___IF_VERSION_IF_VERSION &&
        edit->if_version != version)
        return refuse_version(context, step_field(step, "if_version"),
                              arena_printf(context->arena, "section %s", edit->name),
                              &(struct version_pair){ version, edit->if_version });
    return ERR_OK;
}

/* *ret_document: what stands, parsed; NULL when nothing does. */
static err read_document(struct edit_step *step, json_t **ret_document)
{
    struct slice text;
    const char *why;

    *ret_document = NULL;
    if (step->section == NULL)
        return ERR_OK;
    switch (state_find(step->context->state, row_key_slice(&step->key), &text)) {
    case STATE_MISSING:
        need_add_key(step->context->need, row_key_slice(&step->key));
        return ERR_NEED;
    case STATE_ABSENT: /* The index names it. */
        break;
    case STATE_PRESENT:
        *ret_document = json_canon_parse(text, &why);
        break;
    }
    if (*ret_document == NULL)
        return apply_damaged(step->context, step->context->player->entity, SECTION_DAMAGE);
    return ERR_OK;
}

static err refuse_step(struct edit_step *step, size_t place, err e, const char *why)
{
    struct apply_context *context = step->context;
    const char *name = arena_printf(context->arena, "patch.steps[%zu].path", place);
    const char *path = step->edit->patch->steps[place]->path;

    (void)refuse(context->arena, context->refusal,
                 e == ERR_FULL ? CODE(CAPACITY_FULL) : CODE(INVALID_ARGUMENT),
                 step_field(step, name), "section %s at %s: expected %s", step->edit->name, path,
                 why);
    context->refusal->limit = why;
    context->refusal->value = value_shorten_applied(context, slice_from_text(path));
    return ERR_CONFLICT;
}

/* What requests are checked for, and what transactions of another shard, or rows, may lack. */
static err refuse_edit(struct edit_step *step, const char *name, const char *why)
{
    return refuse(step->context->arena, step->context->refusal, CODE(INVALID_ARGUMENT),
                  step_field(step, name), "section %s: expected %s", step->edit->name, why);
}

/* *document NULL: absent. */
static err run_merge(struct edit_step *step, json_t **document)
{
    const Edit *edit = step->edit;
    const char *why = NULL;
    json_t *patch = json_canon_parse(slice_from_text(edit->merge), &why);

    if (patch == NULL)
        return refuse_edit(step, "merge", why);
    *document = json_merge(*document, patch);
    json_decref(patch);
    for (size_t i = 0; i < edit->n_remove; i++) {
        err e =
            json_patch_step(document, PATCH(REMOVE), slice_from_text(edit->remove[i]), NULL, &why);
        if (e != ERR_OK)
            return refuse_edit(step, "remove", why);
    }
    return ERR_OK;
}

static err run_patch(struct edit_step *step, json_t **document)
{
    const char *why = NULL;

    if (*document == NULL)
        *document = json_object();
    for (size_t i = 0; i < step->edit->patch->n_steps; i++) {
        const Step *patch = step->edit->patch->steps[i];
        json_t *value = NULL;
        if (patch->kind != PATCH(REMOVE)) {
            value = json_canon_parse(slice_from_text(patch->json), &why);
            if (value == NULL)
                return refuse_step(step, i, ERR_INVALID, why);
        }
        err e = json_patch_step(document, patch->kind, slice_from_text(patch->path), value, &why);
        json_decref(value);
        if (e != ERR_OK)
            return refuse_step(step, i, e, why);
    }
    return ERR_OK;
}

/* The section's new text, in the arena. */
static err make_document(struct edit_step *step, struct slice *ret_text)
{
    struct apply_context *context = step->context;
    struct buf text = { 0 };
    json_t *document;

    if (step->edit->edit_case == EDIT(REPLACE)) {
        *ret_text = slice_from_text(step->edit->replace);
        return ERR_OK;
    }
    err e = read_document(step, &document);
    if (e != ERR_OK)
        return e;
    e = step->edit->edit_case == EDIT(MERGE) ? run_merge(step, &document)
                                             : run_patch(step, &document);
    if (e == ERR_OK && json_canon_write(document, &text) != ERR_OK) {
        e = refuse(context->arena, context->refusal, CODE(CAPACITY_FULL), step_field(step, "patch"),
                   "section %s would nest deeper than %u", step->edit->name, JSON_DEPTH_MAX);
        refusal_tell_capacity(context, "depth", JSON_DEPTH_MAX);
    }
    json_decref(document);
    if (e == ERR_OK)
        *ret_text = arena_copy(context->arena, buf_slice(&text));
    buf_deinit(&text);
    return e;
}

/* What a section may pass: in words, and as the refusal's facts name it. */
struct room {
    const char *words;
    const char *what;
    uint64_t max;
};

static err refuse_capacity(struct edit_step *step, const struct room *room, uint64_t value)
{
    struct apply_context *context = step->context;
    uint64_t limit = room->max;

    (void)refuse(context->arena, context->refusal, CODE(CAPACITY_FULL), step_field(step, ""),
                 "%s: at most %llu, would be %llu", room->words, (unsigned long long)limit,
                 (unsigned long long)value);
    context->refusal->limit = arena_printf(context->arena, "%llu", (unsigned long long)limit);
    context->refusal->value = arena_printf(context->arena, "%llu", (unsigned long long)value);
    refusal_tell_capacity(context, room->what, (int64_t)limit);
    return ERR_CONFLICT;
}

static err write_document(struct edit_step *step, struct slice text)
{
    static const struct room section = { "bytes of one section", "section_bytes",
                                         SECTION_BYTES_MAX };
    static const struct room all = { "bytes of all sections", "profile_bytes", PROFILE_BYTES_MAX };
    static const struct room places = { "sections of one player", "sections", SECTIONS_MAX };
    struct apply_context *context = step->context;
    struct player *player = context->player;
    uint64_t before = step->section != NULL ? step->section->size_bytes : 0;
    uint64_t total = player_sections_bytes(player) - before + text.size;

    if (text.size > SECTION_BYTES_MAX)
        return refuse_capacity(step, &section, text.size);
    if (total > PROFILE_BYTES_MAX)
        return refuse_capacity(step, &all, total);
    if (step->section == NULL) {
        if (player->section_count == SECTIONS_MAX)
            return refuse_capacity(step, &places, SECTIONS_MAX + 1u);
        step->section = player_add_section(player, slice_from_text(step->edit->name));
    }
    step->section->schema_version = step->edit->schema_version;
    step->section->size_bytes = (uint32_t)text.size;
    step->section->version++;
    step->section->last_write_ms = context->owner_ms;
    state_put(context->state, row_key_slice(&step->key), text);
    return ERR_OK;
}

static err apply_edit(struct edit_step *step, Holdfast__V1__SectionVersion *version)
{
    struct slice text;

    version->name = step->edit->name;
    version->last_write_at_ms = (int64_t)step->context->owner_ms;
    err e = check_versions(step);
    if (e != ERR_OK)
        return e;
    if (step->edit->edit_case == EDIT(DELETE)) {
        if (step->section == NULL)
            return ERR_OK;
        player_remove_section(step->context->player, step->section);
        state_delete(step->context->state, row_key_slice(&step->key));
        return ERR_OK;
    }
    e = make_document(step, &text);
    if (e == ERR_OK)
        e = write_document(step, text);
    if (e == ERR_OK)
        version->version = step->section->version;
    return e;
}

err section_edits_apply(struct apply_context *context, size_t count, Edit *const *edits,
                        Holdfast__V1__SectionVersion ***ret_versions)
{
    Holdfast__V1__SectionVersion **versions =
        arena_messages(context->arena, &holdfast__v1__section_version__descriptor, count);

    if (count > 0 && player_sections(context->player, context->arena) != ERR_OK)
        return apply_damaged(context, context->player->entity, SECTIONS_DAMAGE);
    for (size_t i = 0; i < count; i++) {
        struct slice name = slice_from_text(edits[i]->name);
        struct edit_step step = { .context = context, .edit = edits[i], .place = i };
        step.section = player_find_section(context->player, name);
        row_key_section(&step.key, context->player->entity, name);
        err e = apply_edit(&step, versions[i]);
        if (e != ERR_OK)
            return e;
    }
    *ret_versions = versions;
    return ERR_OK;
}
