#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "tests/chaos/check/names.h"

static size_t slot_of(const struct names *names, const char *text)
{
    size_t at = (size_t)hash_u64(slice_from_text(text)) & (names->slot_count - 1);

    while (names->slots[at] != 0 && strcmp(names->texts[names->slots[at] - 1], text) != 0)
        at = (at + 1) & (names->slot_count - 1);
    return at;
}

static void grow(struct names *names)
{
    names->capacity = names->capacity > 0 ? names->capacity * 2 : 64;
    names->texts = mem_realloc(names->texts, sizeof *names->texts * names->capacity);
    free(names->slots);
    names->slot_count = names->capacity * 2;
    names->slots = mem_zalloc(sizeof *names->slots * names->slot_count);
    for (size_t i = 0; i < names->count; i++)
        names->slots[slot_of(names, names->texts[i])] = (uint32_t)i + 1;
}

bool names_find(const struct names *names, const char *text, uint32_t *ret_number)
{
    if (names->count == 0)
        return false;
    uint32_t slot = names->slots[slot_of(names, text)];
    *ret_number = slot - 1;
    return slot != 0;
}

err names_put(struct names *names, const char *text, uint32_t *ret_number)
{
    size_t size = strlen(text);

    if (names_find(names, text, ret_number))
        return ERR_OK;
    if (size > NAME_BYTES_MAX || names->count == NAMES_MAX)
        return ERR_TOO_LARGE;
    if (names->count == names->capacity)
        grow(names);
    char *copy = mem_alloc(size + 1);
    memcpy(copy, text, size + 1);
    *ret_number = (uint32_t)names->count;
    names->slots[slot_of(names, text)] = *ret_number + 1;
    names->texts[names->count++] = copy;
    return ERR_OK;
}

void names_deinit(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->texts[i]);
    free(names->texts);
    free(names->slots);
    *names = (struct names){ 0 };
}
