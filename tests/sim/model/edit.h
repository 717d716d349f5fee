/*
 * edit: what game servers write into sections, and what becomes of a section by the rules of
 * profile.proto said again. A document here has three members at most, "l", "m" and "n": a list of
 * small numbers and two numbers.
 */
#ifndef TESTS_SIM_MODEL_EDIT_H
#define TESTS_SIM_MODEL_EDIT_H

#include "holdfast/v1/profile.pb-c.h"
#include "tests/sim/sim.h"

#define SIM_LIST_MAX       64u
#define SIM_STEPS_MAX      3u
#define SIM_DOCUMENT_BYTES 320u

struct document_model {
    bool has_l, has_m, has_n;
    int64_t m, n;
    uint32_t count;
    uint8_t list[SIM_LIST_MAX];
};

struct section_model {
    bool exists;
    uint32_t schema;
    uint64_t version, written_ms;
    struct document_model document;
};

struct sections_model {
    struct section_model each[SIM_SECTIONS];
    uint64_t gone_version; /* The highest that a deleted one had. */
};

/* An edit as its request says it, without a pointer into that. */
struct edit_model {
    uint32_t section, kind; /* SectionEdit's edit_case. */
    uint32_t schema;
    bool has_if_version;
    uint64_t if_version;
    struct document_model document; /* REPLACE, MERGE. */
    bool null_l, null_m, null_n;    /* MERGE: taken away, or removed after it. */
    struct {
        uint32_t kind;
        char member;
        int64_t value;
    } steps[SIM_STEPS_MAX];
    uint32_t step_count;
};

const char *edit_section_name(uint32_t section);
uint32_t edit_section_number(const char *name);

/* ---- what is asked for ---- */
/* One request's edits; they point at each other. */
struct edit_parts {
    char texts[SIM_SECTIONS][SIM_DOCUMENT_BYTES];
    char values[SIM_SECTIONS][SIM_STEPS_MAX][16];
    Holdfast__V1__SectionEdit edits[SIM_SECTIONS];
    Holdfast__V1__SectionEdit *list[SIM_SECTIONS];
    Holdfast__V1__PatchList patches[SIM_SECTIONS];
    Holdfast__V1__PatchStep steps[SIM_SECTIONS][SIM_STEPS_MAX];
    Holdfast__V1__PatchStep *step_lists[SIM_SECTIONS][SIM_STEPS_MAX];
    char *removes[SIM_SECTIONS][1];
    Holdfast__V1__DeleteSection deletes[SIM_SECTIONS];
    size_t count; /* Mostly one. */
};
/* Once, before the first call: which versions it knows, near those that stand. */
void edit_choose(const struct sim *sim, struct sim_op *op);
void edit_parts_fill(const struct sim_op *op, struct edit_parts *ret_parts);

/* ---- what becomes of it ---- */
void edit_read(const Holdfast__V1__SectionEdit *edit, struct edit_model *ret_edit);
/* Why it is refused as things stand; NULL: it is not. */
const char *edit_obstacle(const struct sections_model *sections, const struct edit_model *edit);
void edit_apply(struct sections_model *sections, const struct edit_model *edit, uint64_t now_ms);
/* In canonical form. */
void edit_print(const struct document_model *document, char ret_text[SIM_DOCUMENT_BYTES]);

#endif
