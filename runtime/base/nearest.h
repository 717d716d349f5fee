/*
 * nearest: which of the names that there are a misspelt one was meant to be, for "did you mean".
 * Pure and free of allocations. A name is offered after another; none is shown to anyone but the
 * nearest of those offered.
 *
 * Every message that tells a near miss is made here: nearest_show() is the only way in which it
 * repeats what was given, nearest_hint() is where the words "did you mean" stand (tools/tidy.py
 * finds them elsewhere). So what holds for these two holds for all hints: they repeat at most 64
 * bytes, no secret, and nothing that a terminal would obey.
 *
 * The distance is optimal string alignment: how many bytes are inserted, left out, replaced, or
 * swapped with their neighbour. Capitals count as small letters, and dashes as underscores.
 * Computed 64 places at a time: H. Hyyro, "A bit-vector algorithm for computing Levenshtein and
 * Damerau edit distances" (2003), so a request for a method that does not exist costs some
 * microseconds.
 */
#ifndef RUNTIME_BASE_NEAREST_H
#define RUNTIME_BASE_NEAREST_H

#include "runtime/base/buf.h"

/* Longer names are neither compared nor suggested. */
#define NEAREST_BYTES_MAX 64u

struct nearest {
    uint64_t places[256]; /* Bit i: the byte stands at place i of the misspelt name. */
    size_t size;          /* Of it; 0: it is empty or too long, and nothing is near. */
    uint32_t distance;    /* Of `name`. */
    struct slice name;    /* The nearest so far, borrowed. Empty: none is near enough. */
};

/* `given` is read here and not kept. */
void nearest_init(struct nearest *nearest, struct slice given);
/* At most 2, or a third of the misspelt name, and never more than half of the longer one. Of names
 * that are equally near the first counts. `name` must live as long as the result is used. */
void nearest_offer(struct nearest *nearest, struct slice name);
void nearest_offer_text(struct nearest *nearest, const char *name);
/* The same measure, of one name by itself. */
bool nearest_is_near(const struct nearest *nearest, struct slice name);
/* UINT32_MAX: one of them is empty or longer than NEAREST_BYTES_MAX. */
uint32_t nearest_distance(const struct nearest *nearest, struct slice name);

/* What was given, for a message: at most 64 bytes of printable UTF-8, in which other characters are
 * '?' and a cut ends in "...". Nothing is shown behind a '=', a "://" or the "hf_" of an API key: a
 * name has none of them, but a secret may follow. Returns ret_text. */
#define NEAREST_SHOWN_BYTES 65u
const char *nearest_show(struct slice given, char ret_text[NEAREST_SHOWN_BYTES]);
/* "; did you mean --seal?" of "--seal"; empty where `meant` is. `meant` is one of the names that
 * there are, as the user writes it, never what was given. Returns ret_text. */
#define NEAREST_HINT_BYTES 160u
const char *nearest_hint(struct slice meant, char ret_text[NEAREST_HINT_BYTES]);

#endif
