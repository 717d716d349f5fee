#include "node/core/mergeable/lacking.h"

#include <stdlib.h>

#include "runtime/base/check.h"

void lacking_deinit(struct lacking *lacking)
{
    for (uint32_t i = 0; i < lacking->count; i++)
        merge_key_unref(lacking->dots[i].key);
    free(lacking->dots);
    merge_key_unref(lacking->after);
    *lacking = (struct lacking){ 0 };
}

static void add(struct lacking *lacking, struct merge_key *key, struct merge_dot dot)
{
    if (lacking->count == lacking->capacity) {
        lacking->capacity = lacking->capacity > 0 ? lacking->capacity * 2 : 64;
        lacking->dots = mem_realloc(lacking->dots, lacking->capacity * sizeof *lacking->dots);
    }
    lacking->dots[lacking->count++] = (struct lacking_dot){ merge_key_ref(key), dot };
}

static int by_key(const void *a, const void *b)
{
    const struct lacking_dot *one = a, *two = b;
    int order = merge_key_compare(one->key, two->key);

    return order != 0 ? order : merge_dot_compare(one->dot, two->dot);
}

static err find(struct lacking *lacking, const struct mclock *mine, const struct dot_index *index,
                const struct mclock *theirs)
{
    for (uint32_t i = 0; i < mine->count; i++) {
        const struct mclock_actor *actor = &mine->actors[i];
        uint64_t top = mclock_top(actor), floor = mclock_floor(theirs, actor->actor);

        for (uint64_t n = floor == UINT64_MAX ? top : floor; n < top; n++) {
            struct merge_dot dot = { actor->actor, n + 1 };

            if (!mclock_holds(mine, dot) || mclock_covers(theirs, dot))
                continue;
            struct merge_key *key = dot_index_find(index, dot);

            if (key == NULL || lacking->count == MERGE_LACKING_MAX)
                return ERR_NOT_FOUND;
            add(lacking, key, dot);
        }
    }
    return ERR_OK;
}

err lacking_find(struct lacking *lacking, const struct mclock *mine, const struct dot_index *index,
                 const struct mclock *theirs)
{
    CHECK(lacking->count == 0);
    err e = find(lacking, mine, index, theirs);

    if (e != ERR_OK)
        lacking_deinit(lacking);
    else if (lacking->count > 0)
        qsort(lacking->dots, lacking->count, sizeof *lacking->dots, by_key);
    return e;
}

void lacking_seek(struct lacking *lacking, struct merge_key *after)
{
    uint32_t low = 0, high = after != NULL ? lacking->count : 0;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (merge_key_compare(lacking->dots[middle].key, after) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    lacking->at = low;
    merge_key_unref(lacking->after);
    lacking->after = after != NULL ? merge_key_ref(after) : NULL;
}

uint32_t lacking_record(const struct lacking *lacking)
{
    uint32_t end = lacking->at;

    while (end < lacking->count &&
           merge_key_compare(lacking->dots[end].key, lacking->dots[lacking->at].key) == 0)
        end++;
    return end - lacking->at;
}

void lacking_next(struct lacking *lacking)
{
    uint32_t count = lacking_record(lacking);

    CHECK(count > 0);
    merge_key_unref(lacking->after);
    lacking->after = merge_key_ref(lacking->dots[lacking->at].key);
    lacking->at += count;
}
