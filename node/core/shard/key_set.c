#include "node/core/shard/key_set.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define KEY_SET_CAPACITY_MIN 64u

static uint32_t slot_of(const struct key_set *set, struct slice key)
{
    uint32_t at = (uint32_t)hash_u64(key) & (set->capacity - 1);

    while (set->slots[at].data != NULL && !slice_equal(set->slots[at], key))
        at = (at + 1) & (set->capacity - 1);
    return at;
}

static void grow(struct key_set *set)
{
    struct key_set grown = {
        .capacity = set->capacity > 0 ? set->capacity * 2 : KEY_SET_CAPACITY_MIN,
        .count = set->count,
    };

    grown.slots = mem_zalloc(sizeof *grown.slots * grown.capacity);
    for (uint32_t i = 0; i < set->capacity; i++) {
        if (set->slots[i].data != NULL)
            grown.slots[slot_of(&grown, set->slots[i])] = set->slots[i];
    }
    free(set->slots);
    *set = grown;
}

bool key_set_add(struct key_set *set, struct slice key)
{
    if (set->count * 2 >= set->capacity)
        grow(set);
    uint32_t at = slot_of(set, key);
    if (set->slots[at].data != NULL)
        return false;
    uint8_t *copy = mem_alloc(key.size);
    if (key.size > 0)
        memcpy(copy, key.data, key.size);
    set->slots[at] = (struct slice){ copy, key.size };
    set->count++;
    return true;
}

/* Moves later members of the run into the hole, so that look-ups never meet a false end. */
static void close_hole(struct key_set *set, uint32_t hole)
{
    uint32_t mask = set->capacity - 1;

    for (uint32_t at = (hole + 1) & mask; set->slots[at].data != NULL; at = (at + 1) & mask) {
        uint32_t home = (uint32_t)hash_u64(set->slots[at]) & mask;
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        set->slots[hole] = set->slots[at];
        set->slots[at] = (struct slice){ NULL, 0 };
        hole = at;
    }
}

bool key_set_remove(struct key_set *set, struct slice key)
{
    if (set->capacity == 0)
        return false;
    uint32_t at = slot_of(set, key);
    if (set->slots[at].data == NULL)
        return false;
    CHECK(set->count > 0);
    free((void *)(uintptr_t)set->slots[at].data);
    set->slots[at] = (struct slice){ NULL, 0 };
    set->count--;
    close_hole(set, at);
    return true;
}

void key_set_check(const struct key_set *set)
{
    uint32_t count = 0;

    CHECK((set->capacity & (set->capacity - 1)) == 0);
    for (uint32_t i = 0; i < set->capacity; i++) {
        if (set->slots[i].data == NULL)
            continue;
        CHECK(slot_of(set, set->slots[i]) == i);
        count++;
    }
    CHECK(count == set->count);
    CHECK(count * 2 <= set->capacity);
}

void key_set_deinit(struct key_set *set)
{
    for (uint32_t i = 0; i < set->capacity; i++)
        free((void *)(uintptr_t)set->slots[i].data);
    free(set->slots);
    *set = (struct key_set){ 0 };
}
