/*
 * names: numbers for texts, from 0 on in the order in which they came; texts that are alike have
 * the same number.
 */
#ifndef TESTS_CHAOS_CHECK_NAMES_H
#define TESTS_CHAOS_CHECK_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/err.h"

#define NAMES_MAX      8000000u
#define NAME_BYTES_MAX 200u
#define NAME_NONE      UINT32_MAX

/* Zeroed: empty. `texts[number]` is a text, as long as the names live. */
struct names {
    char **texts;
    size_t count, capacity;
    uint32_t *slots; /* By hash: number + 1; 0: free. */
    size_t slot_count;
};

bool names_find(const struct names *names, const char *text, uint32_t *ret_number);
/* Finds or adds. ERR_TOO_LARGE: the text is longer than NAME_BYTES_MAX, or there are NAMES_MAX. */
NODISCARD err names_put(struct names *names, const char *text, uint32_t *ret_number);
void names_deinit(struct names *names);

#endif
