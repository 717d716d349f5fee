#include "node/io/view/erasures.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define OVERTAKEN_MIN                                                                              \
    64u /* So many changes that others overtook are kept, and as many as stand.                    \
         */

/* Of one shard. */
struct list {
    uint64_t base; /* The stamp of the first of these. */
    uint32_t count, capacity;
    struct shard_erasure *changes; /* In the order in which they came. */
    uint32_t entity_count, entity_capacity;
    uint32_t *newest; /* The place of each entity's latest change, by entity. */
};

struct erasures {
    pthread_mutex_t lock;
    uint32_t shard_count;
    struct list *lists;
};

struct erasures *erasures_new(uint32_t shard_count)
{
    struct erasures *erasures = mem_zalloc(sizeof *erasures);

    CHECK(pthread_mutex_init(&erasures->lock, NULL) == 0);
    erasures->shard_count = shard_count;
    erasures->lists = mem_zalloc(((size_t)shard_count + 1) * sizeof *erasures->lists);
    return erasures;
}

void erasures_free(struct erasures *erasures)
{
    if (erasures == NULL)
        return;
    for (uint32_t i = 0; i < erasures->shard_count; i++) {
        free(erasures->lists[i].changes);
        free(erasures->lists[i].newest);
    }
    pthread_mutex_destroy(&erasures->lock);
    free(erasures->lists);
    free(erasures);
}

/* Where the entity is among `newest`, or would be. */
static uint32_t place_of(const struct list *list, struct slice entity, bool *ret_is_there)
{
    uint32_t low = 0, high = list->entity_count;

    *ret_is_there = false;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order =
            slice_compare(shard_erasure_entity(&list->changes[list->newest[middle]]), entity);

        if (order == 0) {
            *ret_is_there = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Leaves the latest change of each entity. Who follows sees them once more. */
static void compact(struct list *list)
{
    struct shard_erasure *kept = mem_zalloc((list->entity_count + 1) * sizeof *kept);

    for (uint32_t i = 0; i < list->entity_count; i++) {
        kept[i] = list->changes[list->newest[i]];
        list->newest[i] = i;
    }
    free(list->changes);
    list->changes = kept;
    list->base += list->count;
    list->count = list->entity_count;
    list->capacity = list->entity_count + 1;
}

static uint32_t append(struct list *list, const struct shard_erasure *erasure)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity * 2 + 8;
        list->changes = mem_realloc(list->changes, list->capacity * sizeof *list->changes);
    }
    list->changes[list->count] = *erasure;
    return list->count++;
}

static void insert(struct list *list, uint32_t at)
{
    if (list->entity_count == list->entity_capacity) {
        list->entity_capacity = list->entity_capacity * 2 + 8;
        list->newest = mem_realloc(list->newest, list->entity_capacity * sizeof *list->newest);
    }
    memmove(&list->newest[at + 1], &list->newest[at],
            (list->entity_count - at) * sizeof *list->newest);
    list->entity_count++;
}

static bool is_news(const struct shard_erasure *known, const struct shard_erasure *erasure)
{
    if (erasure->number != known->number)
        return erasure->number > known->number;
    return erasure->hides != known->hides || erasure->purges != known->purges;
}

void erasures_set(struct erasures *erasures, uint32_t shard, const struct shard_erasure *erasure)
{
    struct list *list = &erasures->lists[shard];
    bool is_there;

    CHECK(shard < erasures->shard_count);
    pthread_mutex_lock(&erasures->lock);
    uint32_t at = place_of(list, shard_erasure_entity(erasure), &is_there);

    if (!is_there || is_news(&list->changes[list->newest[at]], erasure)) {
        if (list->count >= 2 * list->entity_count + OVERTAKEN_MIN)
            compact(list);
        if (!is_there)
            insert(list, at);
        list->newest[at] = append(list, erasure);
    }
    pthread_mutex_unlock(&erasures->lock);
}

bool erasures_find(struct erasures *erasures, uint32_t shard, struct slice entity,
                   struct shard_erasure *ret_erasure)
{
    struct list *list = &erasures->lists[shard];
    bool is_there;

    CHECK(shard < erasures->shard_count);
    pthread_mutex_lock(&erasures->lock);
    uint32_t at = place_of(list, entity, &is_there);

    if (is_there)
        *ret_erasure = list->changes[list->newest[at]];
    pthread_mutex_unlock(&erasures->lock);
    return is_there;
}

bool erasures_next(struct erasures *erasures, uint32_t shard, uint64_t *stamp,
                   struct shard_erasure *ret_erasure)
{
    const struct list *list = &erasures->lists[shard];

    CHECK(shard < erasures->shard_count);
    pthread_mutex_lock(&erasures->lock);
    uint64_t at = *stamp > list->base ? *stamp - list->base : 0;
    bool is_there = at < list->count;

    if (is_there)
        *ret_erasure = list->changes[at];
    *stamp = list->base + at + is_there;
    pthread_mutex_unlock(&erasures->lock);
    return is_there;
}
