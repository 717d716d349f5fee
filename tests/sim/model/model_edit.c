/* Edits of sections: what becomes of them, by the rules said again. Part of the model. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "tests/sim/model/edit.h"

#define EDIT(kind)  HOLDFAST__V1__SECTION_EDIT__EDIT_##kind
#define PATCH(kind) HOLDFAST__V1__PATCH_KIND__PATCH_KIND_##kind

/* ---- documents ---- */
/* What stands behind the member's name; NULL: it is not there. */
static const char *member_of(const char *json, char member)
{
    const char name[] = { '"', member, '"', ':', '\0' };
    const char *found = strstr(json, name);

    if (found == NULL)
        return NULL;
    found += sizeof name - 1;
    return found + strspn(found, " ");
}

static bool read_number(const char *json, char member, int64_t *ret_number, bool *ret_null)
{
    const char *found = member_of(json, member);

    *ret_null = found != NULL && strncmp(found, "null", 4) == 0;
    if (found == NULL || *ret_null)
        return false;
    *ret_number = strtoll(found, NULL, 10);
    return true;
}

static void list_add(struct document_model *document, uint8_t value)
{
    CHECK(document->count < SIM_LIST_MAX);
    document->list[document->count++] = value;
}

static bool read_list(const char *json, struct document_model *document, bool *ret_null)
{
    const char *found = member_of(json, 'l');

    *ret_null = found != NULL && strncmp(found, "null", 4) == 0;
    if (found == NULL || *ret_null)
        return false;
    CHECK(*found == '[');
    document->count = 0;
    for (const char *at = found + 1; *at != ']' && *at != '\0'; at++) {
        if (*at >= '0' && *at <= '9')
            list_add(document, (uint8_t)(*at - '0'));
    }
    return true;
}

void edit_print(const struct document_model *document, char ret_text[SIM_DOCUMENT_BYTES])
{
    size_t size = 1;

    ret_text[0] = '{';
    if (document->has_l) {
        size += (size_t)snprintf(ret_text + size, SIM_DOCUMENT_BYTES - size, "\"l\":[");
        for (uint32_t i = 0; i < document->count; i++)
            size += (size_t)snprintf(ret_text + size, SIM_DOCUMENT_BYTES - size, "%s%u",
                                     i > 0 ? "," : "", document->list[i]);
        size += (size_t)snprintf(ret_text + size, SIM_DOCUMENT_BYTES - size, "]");
    }
    if (document->has_m)
        size += (size_t)snprintf(ret_text + size, SIM_DOCUMENT_BYTES - size, "%s\"m\":%" PRId64,
                                 size > 1 ? "," : "", document->m);
    if (document->has_n)
        size += (size_t)snprintf(ret_text + size, SIM_DOCUMENT_BYTES - size, "%s\"n\":%" PRId64,
                                 size > 1 ? "," : "", document->n);
    CHECK(size + 2 < SIM_DOCUMENT_BYTES);
    memcpy(ret_text + size, "}", 2);
}

/* ---- what a request says ---- */
static void read_document(const char *json, struct edit_model *edit)
{
    struct document_model *document = &edit->document;

    document->has_l = read_list(json, document, &edit->null_l);
    document->has_m = read_number(json, 'm', &document->m, &edit->null_m);
    document->has_n = read_number(json, 'n', &document->n, &edit->null_n);
}

static void read_steps(const Holdfast__V1__PatchList *patch, struct edit_model *edit)
{
    CHECK(patch->n_steps <= SIM_STEPS_MAX);
    for (size_t i = 0; i < patch->n_steps; i++) {
        edit->steps[i].kind = (uint32_t)patch->steps[i]->kind;
        edit->steps[i].member = patch->steps[i]->path[1];
        edit->steps[i].value = strtoll(patch->steps[i]->json, NULL, 10);
    }
    edit->step_count = (uint32_t)patch->n_steps;
}

void edit_read(const Holdfast__V1__SectionEdit *edit, struct edit_model *ret_edit)
{
    *ret_edit = (struct edit_model){
        .section = edit_section_number(edit->name),
        .kind = (uint32_t)edit->edit_case,
        .schema = edit->schema_version,
        .has_if_version =
            edit->_if_version_case == HOLDFAST__V1__SECTION_EDIT___IF_VERSION_IF_VERSION,
        .if_version = edit->if_version,
    };
    if (ret_edit->kind == EDIT(REPLACE))
        read_document(edit->replace, ret_edit);
    else if (ret_edit->kind == EDIT(MERGE))
        read_document(edit->merge, ret_edit);
    else if (ret_edit->kind == EDIT(PATCH))
        read_steps(edit->patch, ret_edit);
    for (size_t i = 0; i < edit->n_remove; i++) {
        CHECK(strcmp(edit->remove[i], "/l") == 0);
        ret_edit->document.has_l = false;
        ret_edit->null_l = true;
    }
}

/* ---- what becomes of a section ---- */
const char *edit_obstacle(const struct sections_model *sections, const struct edit_model *edit)
{
    const struct section_model *section = &sections->each[edit->section];

    if (section->exists && edit->schema < section->schema)
        return "edits a section of a newer schema";
    if (edit->has_if_version && edit->if_version != (section->exists ? section->version : 0))
        return "edits a section at another version than it wants";
    return NULL;
}

static void merge(struct document_model *document, const struct edit_model *edit)
{
    const struct document_model *given = &edit->document;

    document->has_l = (document->has_l || given->has_l) && !edit->null_l;
    document->has_m = (document->has_m || given->has_m) && !edit->null_m;
    document->has_n = (document->has_n || given->has_n) && !edit->null_n;
    if (given->has_m)
        document->m = given->m;
    if (given->has_n)
        document->n = given->n;
    if (!given->has_l)
        return;
    document->count = given->count;
    memcpy(document->list, given->list, sizeof document->list);
}

static bool list_has(const struct document_model *document, int64_t value)
{
    return memchr(document->list, (int)value, document->count) != NULL;
}

static void list_step(struct document_model *document, uint32_t kind, int64_t value)
{
    uint32_t left = 0;

    if (!document->has_l)
        document->count = 0;
    if (kind == PATCH(APPEND) || (kind == PATCH(ADD) && !list_has(document, value)))
        list_add(document, (uint8_t)value);
    document->has_l |= kind == PATCH(APPEND) || kind == PATCH(ADD);
    for (uint32_t i = 0; i < document->count && kind == PATCH(DISCARD); i++) {
        if (document->list[i] != value)
            document->list[left++] = document->list[i];
    }
    if (kind == PATCH(DISCARD))
        document->count = left;
}

static void number_step(bool *has, int64_t *number, uint32_t kind, int64_t value)
{
    int64_t stands = *has ? *number : 0;

    if (kind == PATCH(SET))
        *number = value;
    else if (kind == PATCH(INCREMENT))
        *number = stands + value;
    else if (kind == PATCH(MAX))
        *number = *has && stands > value ? stands : value;
    *has = kind != PATCH(REMOVE);
}

static void patch(struct document_model *document, const struct edit_model *edit)
{
    for (uint32_t i = 0; i < edit->step_count; i++) {
        if (edit->steps[i].member == 'l')
            list_step(document, edit->steps[i].kind, edit->steps[i].value);
        else if (edit->steps[i].member == 'm')
            number_step(&document->has_m, &document->m, edit->steps[i].kind, edit->steps[i].value);
        else
            number_step(&document->has_n, &document->n, edit->steps[i].kind, edit->steps[i].value);
    }
}

void edit_apply(struct sections_model *sections, const struct edit_model *edit, uint64_t now_ms)
{
    struct section_model *section = &sections->each[edit->section];

    CHECK(edit->section < SIM_SECTIONS);
    if (edit->kind == EDIT(DELETE)) {
        if (section->exists && section->version > sections->gone_version)
            sections->gone_version = section->version;
        *section = (struct section_model){ 0 };
        return;
    }
    if (!section->exists)
        *section = (struct section_model){ .exists = true, .version = sections->gone_version };
    section->version++;
    section->schema = edit->schema;
    section->written_ms = now_ms;
    if (edit->kind == EDIT(REPLACE))
        section->document = edit->document;
    else if (edit->kind == EDIT(MERGE))
        merge(&section->document, edit);
    else
        patch(&section->document, edit);
}
