#include "router/core/top_merge.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

void top_merge_init(struct top_merge *merge, uint32_t shard_count, struct arena *arena)
{
    *merge = (struct top_merge){ .arena = arena, .shard_count = shard_count };
    merge->has_told = arena_zalloc(arena, (shard_count + 1) * sizeof *merge->has_told);
}

/* Twice as many each time: what is left behind in the arena is as much as what is kept. */
static void make_room(struct top_merge *merge, size_t more)
{
    if (merge->count + more <= merge->capacity)
        return;
    size_t capacity = (merge->count + more) * 2;
    struct top_place *places = arena_alloc(merge->arena, capacity * sizeof *places);
    if (merge->count > 0)
        memcpy(places, merge->places, merge->count * sizeof *places);
    merge->places = places;
    merge->capacity = capacity;
}

err top_merge_add(struct top_merge *merge, uint32_t shard,
                  const Holdfast__Internal__V1__GetShardTopResponse *said)
{
    if (shard >= merge->shard_count || merge->has_told[shard] || said->collection_number == 0 ||
        said->n_entries > TOP_LIMIT_MAX)
        return ERR_CORRUPT;
    if (said->pulled_ms <= 0)
        return ERR_UNAVAILABLE;
    if (merge->told > 0 && said->collection_number != merge->collection_number) {
        if (said->collection_number > merge->collection_number)
            merge->collection_number = said->collection_number;
        return ERR_CONFLICT;
    }
    make_room(merge, said->n_entries);
    for (size_t i = 0; i < said->n_entries; i++) {
        const Holdfast__V1__TopEntry *entry = said->entries[i];
        struct slice target = slice_from_text(entry->target_id);
        if (entry->count == 0 || entry->count > INT64_MAX || target.size == 0)
            return ERR_CORRUPT;
        merge->places[merge->count++] = (struct top_place){
            (const char *)arena_copy(merge->arena, (struct slice){ target.data, target.size + 1 })
                .data,
            entry->count,
        };
    }
    if (merge->told == 0 || said->pulled_ms < merge->from_ms)
        merge->from_ms = said->pulled_ms;
    if (merge->told == 0 || said->at_ms > merge->to_ms)
        merge->to_ms = said->at_ms;
    merge->collection_number = said->collection_number;
    merge->has_told[shard] = true;
    merge->told++;
    return ERR_OK;
}

static int compare(const void *one, const void *other)
{
    const struct top_place *a = one, *b = other;

    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return strcmp(a->target, b->target);
}

void top_merge_finish(struct top_merge *merge, uint32_t limit)
{
    CHECK(top_merge_is_whole(merge));
    if (merge->count > 0)
        qsort(merge->places, merge->count, sizeof *merge->places, compare);
    if (merge->count > limit)
        merge->count = limit;
    if (merge->from_ms > merge->to_ms) /* The owners' clocks differ. */
        merge->from_ms = merge->to_ms;
}
