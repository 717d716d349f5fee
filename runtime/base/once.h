/*
 * once: finds the text of a short list that stands there twice, without comparing each with each.
 * The list is the caller's; nothing is copied.
 */
#ifndef RUNTIME_BASE_ONCE_H
#define RUNTIME_BASE_ONCE_H

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define ONCE_MAX   256u
#define ONCE_SLOTS 512u /* Twice as many: a run of used slots stays short. */

/* All zero: nothing was seen. */
struct once {
    uint16_t places[ONCE_SLOTS]; /* In the list, from 1; 0: none. */
};

/* Takes in the text at `place`, below ONCE_MAX; those before it were taken in. False: it stands
 * before. */
static inline bool once_add(struct once *once, const char *const *texts, size_t place)
{
    CHECK(place < ONCE_MAX);
    for (uint64_t at = hash_u64(slice_from_text(texts[place]));; at++) {
        uint16_t *slot = &once->places[at % ONCE_SLOTS];
        if (*slot == 0) {
            *slot = (uint16_t)(place + 1);
            return true;
        }
        if (strcmp(texts[*slot - 1], texts[place]) == 0)
            return false;
    }
}

#endif
