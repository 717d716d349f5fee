#include "router/core/top_merge.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

void top_merge_init(struct top_merge *merge, uint32_t shard_count, uint32_t limit,
                    struct arena *arena)
{
    CHECK(limit > 0 && limit <= TOP_LIMIT_MAX);
    *merge = (struct top_merge){ .arena = arena, .shard_count = shard_count, .limit = limit };
    merge->has_told = arena_zalloc(arena, (shard_count + 1) * sizeof *merge->has_told);
    merge->places = arena_alloc(arena, 2 * (size_t)limit * sizeof *merge->places);
}

void top_merge_deinit(struct top_merge *merge)
{
    arena_deinit(&merge->texts[0]);
    arena_deinit(&merge->texts[1]);
    *merge = (struct top_merge){ 0 };
}

static int compare(const void *one, const void *other)
{
    const struct top_place *a = one, *b = other;

    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return strcmp(a->target, b->target);
}

static const char *copy(struct top_merge *merge, const char *target)
{
    struct slice text = slice_from_text(target);

    return (const char *)arena_copy(&merge->texts[merge->turn], text).data;
}

/* The best `limit` places, in order. */
static void choose(struct top_merge *merge)
{
    if (merge->count > 0)
        qsort(merge->places, merge->count, sizeof *merge->places, compare);
    if (merge->count < merge->limit)
        return;
    merge->count = merge->limit;
    merge->chosen = true;
}

/* What is left behind of the others' texts goes with the arena. */
static void make_room(struct top_merge *merge)
{
    if (merge->count < 2 * (size_t)merge->limit)
        return;
    choose(merge);
    merge->turn = 1 - merge->turn;
    for (size_t i = 0; i < merge->count; i++)
        merge->places[i].target = copy(merge, merge->places[i].target);
    arena_reset(&merge->texts[1 - merge->turn]);
}

static void add(struct top_merge *merge, const struct top_place *place)
{
    if (merge->chosen && compare(place, &merge->places[merge->limit - 1]) > 0)
        return;
    make_room(merge);
    merge->places[merge->count++] = (struct top_place){ copy(merge, place->target), place->count };
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
    for (size_t i = 0; i < said->n_entries; i++) {
        const Holdfast__V1__TopEntry *entry = said->entries[i];
        if (entry->count == 0 || entry->count > INT64_MAX || entry->target_id[0] == '\0')
            return ERR_CORRUPT;
        add(merge, &(struct top_place){ entry->target_id, entry->count });
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

void top_merge_finish(struct top_merge *merge)
{
    CHECK(top_merge_is_whole(merge));
    choose(merge);
    if (merge->from_ms > merge->to_ms) /* The owners' clocks differ. */
        merge->from_ms = merge->to_ms;
}
