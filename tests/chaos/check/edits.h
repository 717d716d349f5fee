/*
 * edits: what callers wrote into documents and were shown of them (docs/documents.md): data alone.
 * A document is named POLICY:ENTITY. What is written are integers, each once in a history: a
 * value of its own, an element, a leaf. A counter's edits have an amount instead.
 */
#ifndef TESTS_CHAOS_CHECK_EDITS_H
#define TESTS_CHAOS_CHECK_EDITS_H

#include <stddef.h>
#include <stdint.h>

#include "tests/chaos/check/names.h"
#include "tests/chaos/check/player_model.h"

#define EDITS_MAX  4000000u
#define SHOWN_MAX  4096u /* Values of one line. */
#define AMOUNT_MAX 1000000

enum edit_kind {
    EDIT_WRITE,   /* The whole of a document of which the last write stands. */
    EDIT_ADD,     /* `value` comes; with what it takes the place of. */
    EDIT_DISCARD, /* What it takes away goes; nothing comes. */
    EDIT_COUNT,   /* `value` is an amount. */
};

/* A list in `edits.values`. */
struct value_list {
    size_t first, count;
};

struct edit {
    int64_t called_at, answered_at; /* Nanoseconds; the second not of OUTCOME_OPEN. */
    int64_t value;                  /* 0: EDIT_DISCARD. */
    struct value_list replaces;     /* What its caller was shown, and means to replace. */
    uint32_t document;
    uint32_t hand; /* Who acts one call after another. */
    uint32_t line, answer_line;
    enum edit_kind kind;
    enum outcome outcome;
};

/* What a read told; of a counter one value, its sum. */
struct look {
    int64_t called_at, answered_at;
    struct value_list shown;
    uint32_t document;
    uint32_t hand; /* NAME_NONE: in the end, by a member of its own. */
    uint32_t line;
};

struct edits {
    struct edit *edits;
    size_t edit_count, edit_capacity;
    struct look *looks;
    size_t look_count, look_capacity;
    int64_t *values;
    size_t value_count, value_capacity;
    struct names documents, hands, numbers;
};

/* NULL: there is no kind of that name. */
const char *edit_name(enum edit_kind kind);
bool edit_find(const char *name, enum edit_kind *ret_kind);
void edits_deinit(struct edits *edits);

#endif
