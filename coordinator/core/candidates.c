#include "coordinator/core/candidates.h"

#include <string.h>

static uint32_t place_of(const struct candidates *candidates, struct slice key)
{
    uint32_t place = 0;

    while (place < candidates->count &&
           !slice_equal(slice_from_text(candidates->list[place].key), key))
        place++;
    return place;
}

void candidates_put(struct candidates *candidates, struct slice key, int64_t create_revision)
{
    uint32_t place = place_of(candidates, key);

    if (place == CANDIDATES_MAX || key.size >= CLUSTER_KEY_SIZE) {
        candidates->too_many = true;
        return;
    }
    struct candidate *candidate = &candidates->list[place];
    text_copy(candidate->key, sizeof candidate->key, key);
    candidate->create_revision = create_revision;
    if (place == candidates->count)
        candidates->count++;
}

void candidates_deleted(struct candidates *candidates, struct slice key)
{
    uint32_t place = place_of(candidates, key);

    if (place < candidates->count)
        candidates->list[place] = candidates->list[--candidates->count];
}

bool candidates_are_over(const struct candidates *candidates, int64_t create_revision)
{
    bool heard = false;

    for (uint32_t i = 0; i < candidates->count; i++) {
        if (candidates->list[i].create_revision < create_revision)
            return false;
        heard |= candidates->list[i].create_revision == create_revision;
    }
    return heard && !candidates->too_many;
}
