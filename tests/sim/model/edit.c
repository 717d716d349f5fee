/* Edits of sections: what game servers ask for. */
#include "tests/sim/model/edit.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"
#include "tests/sim/oracle/oracle.h"

#define EDIT(kind)  HOLDFAST__V1__SECTION_EDIT__EDIT_##kind
#define PATCH(kind) HOLDFAST__V1__PATCH_KIND__PATCH_KIND_##kind

static const char *const section_names[SIM_SECTIONS] = { "progress", "quests" };

const char *edit_section_name(uint32_t section)
{
    CHECK(section < SIM_SECTIONS);
    return section_names[section];
}

uint32_t edit_section_number(const char *name)
{
    uint32_t section = 0;

    while (section < SIM_SECTIONS && strcmp(section_names[section], name) != 0)
        section++;
    CHECK(section < SIM_SECTIONS); /* A response may be wrong, but not invent names. */
    return section;
}

/* Bits of op->twist, other ones for each edit. */
static uint32_t bits(const struct sim_op *op, uint32_t place)
{
    return (op->twist ^ (0x9e3779b9u * (place + 1))) >> 9;
}

/* Mostly what stands; else one less or one more. */
static uint64_t near(uint64_t stands, uint32_t die)
{
    if (die % 4 == 0)
        return stands > 0 ? stands - 1 : 0;
    return die % 4 == 1 ? stands + 1 : stands;
}

void edit_choose(const struct sim *sim, struct sim_op *op)
{
    uint32_t player = op->other_count > 0 ? op->others[op->other_count - 1] : op->player;

    if (player >= sim->player_count || op->player >= sim->player_count)
        return; /* It is a shard: nothing is edited there. */
    const struct sections_model *sections = &sim->oracle->players[player].now.sections;
    const struct moment *first = &sim->oracle->players[op->others[0]].now;
    const struct section_model *checked = &first->sections.each[op->twist >> 12 & 1];
    if (op->target > 0 && op->target < sim->op_count && sim->ops[op->target].id[0] != '\0') {
        const struct op_model *named = model_op(sim->oracle, slice_from_text(op->entity),
                                                slice_from_text(sim->ops[op->target].id));
        /* One of sixteen names another entry. */
        op->target_seq = op->twist % 4 == 0 ? named->entry_seq + (op->twist / 4 % 4 == 0) : 0;
    }
    const struct player_model *own = &sim->oracle->players[op->player];
    if (own->entry_count > 0 && op->cursor[0] == '\0')
        op->around_ms = (int64_t)own->entries[op->twist / 8 % own->entry_count].at_ms +
                        (int64_t)(op->twist % 3) - 1;
    op->check_version = near(first->version, op->twist >> 16);
    op->check_section = near(checked->exists ? checked->version : 0, op->twist >> 20);
    for (uint32_t i = 0; i < SIM_SECTIONS; i++) {
        const struct section_model *section = &sections->each[i];
        uint32_t die = bits(op, i);
        op->edits[i].schema = section->schema;
        if (die % 16 == 0)
            op->edits[i].schema++;
        else if (die % 16 == 1 && section->schema > 0)
            op->edits[i].schema--;
        op->edits[i].has_if_version = die / 16 % 4 == 0;
        op->edits[i].if_version = near(section->exists ? section->version : 0, die / 64);
        op->edits[i].long_list = section->document.count > SIM_LIST_MAX / 2;
    }
}

/* Members in no order, and spaces among them: what is stored is canonical. */
static void fill_replace(const struct sim_op *op, uint32_t die, char *text)
{
    if (die % 3 > 0)
        snprintf(text, SIM_DOCUMENT_BYTES, "{\"n\":%u}", op->amount);
    else
        snprintf(text, SIM_DOCUMENT_BYTES, "{ \"n\": %u, \"m\": %u, \"l\": [%u, %u] }", op->amount,
                 die / 3 % 100, die / 300 % 5, die / 1500 % 5);
}

static void fill_merge(const struct sim_op *op, uint32_t die, char *text)
{
    if (die % 3 == 0)
        snprintf(text, SIM_DOCUMENT_BYTES, "{\"m\":%u}", die / 3 % 100);
    else if (die % 3 == 1)
        snprintf(text, SIM_DOCUMENT_BYTES, "{\"n\":%u,\"m\":null}", op->amount);
    else
        snprintf(text, SIM_DOCUMENT_BYTES, "{\"l\":[%u],\"m\":%u}", die / 3 % 5, die / 15 % 100);
}

struct step_kind {
    int kind;
    const char *path;
};

static void fill_patch(const struct sim_op *op, uint32_t die, uint32_t place,
                       struct edit_parts *parts)
{
    static const struct step_kind kinds[] = {
        { PATCH(SET), "/n" },    { PATCH(INCREMENT), "/m" }, { PATCH(APPEND), "/l" },
        { PATCH(ADD), "/l" },    { PATCH(DISCARD), "/l" },   { PATCH(MAX), "/n" },
        { PATCH(REMOVE), "/m" }, { PATCH(MAX), "/m" },
    };
    Holdfast__V1__PatchList *patch = &parts->patches[place];

    holdfast__v1__patch_list__init(patch);
    patch->steps = parts->step_lists[place];
    patch->n_steps = 1 + die % SIM_STEPS_MAX;
    for (uint32_t i = 0; i < patch->n_steps; i++) {
        Holdfast__V1__PatchStep *step = &parts->steps[place][i];
        const struct step_kind *what = &kinds[(die / 4 + 3 * i) % ARRAY_SIZE(kinds)];
        if (what->kind == PATCH(APPEND) && op->edits[place].long_list)
            what = &kinds[4];
        holdfast__v1__patch_step__init(step);
        step->kind = (Holdfast__V1__PatchKind)what->kind;
        step->path = text_lend(what->path);
        snprintf(parts->values[place][i], sizeof parts->values[place][i], "%u",
                 what->path[1] == 'l' ? (die / 32 + i) % 5 : (op->amount + die) % 5000);
        if (what->kind != PATCH(REMOVE))
            step->json = parts->values[place][i];
        parts->step_lists[place][i] = step;
    }
}

static void fill_one(const struct sim_op *op, uint32_t place, uint32_t section,
                     struct edit_parts *parts)
{
    Holdfast__V1__SectionEdit *edit = &parts->edits[place];
    uint32_t die = bits(op, place + SIM_SECTIONS);
    char *text = parts->texts[place];

    holdfast__v1__section_edit__init(edit);
    edit->name = text_lend(edit_section_name(section));
    edit->schema_version = op->edits[section].schema;
    if (op->edits[section].has_if_version) {
        edit->_if_version_case = HOLDFAST__V1__SECTION_EDIT___IF_VERSION_IF_VERSION;
        edit->if_version = op->edits[section].if_version;
    }
    switch (die % 8) {
    case 0:
    case 1:
        edit->edit_case = EDIT(MERGE);
        fill_merge(op, die / 8, text);
        edit->merge = text;
        parts->removes[place][0] = text_lend("/l");
        edit->remove = parts->removes[place];
        edit->n_remove = die / 8 % 5 == 0;
        break;
    case 2:
    case 3:
    case 4:
        edit->edit_case = EDIT(PATCH);
        fill_patch(op, die / 8, place, parts);
        edit->patch = &parts->patches[place];
        break;
    case 5:
        if (die / 8 % 3 == 0) {
            edit->edit_case = EDIT(DELETE);
            holdfast__v1__delete_section__init(&parts->deletes[place]);
            edit->delete_ = &parts->deletes[place];
            break;
        }
        __attribute__((fallthrough));
    default:
        edit->edit_case = EDIT(REPLACE);
        fill_replace(op, die / 8, text);
        edit->replace = text;
        break;
    }
    parts->list[place] = edit;
}

void edit_parts_fill(const struct sim_op *op, struct edit_parts *ret_parts)
{
    uint32_t first = op->amount % SIM_SECTIONS;

    ret_parts->count = op->twist % 7 == 0 ? SIM_SECTIONS : 1;
    for (uint32_t i = 0; i < SIM_SECTIONS; i++)
        fill_one(op, i, (first + i) % SIM_SECTIONS, ret_parts);
}
