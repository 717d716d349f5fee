#include "node/store/log_index.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define CAPACITY_MIN 16u

void log_index_deinit(struct log_index *index)
{
    free(index->places);
    *index = (struct log_index){ 0 };
}

static void resize(struct log_index *index, uint32_t capacity)
{
    struct log_place *places = mem_alloc(capacity * sizeof *places);

    if (index->count > 0)
        memcpy(places, index->places + index->head, index->count * sizeof *places);
    free(index->places);
    index->places = places;
    index->head = 0;
    index->capacity = capacity;
}

static void make_room(struct log_index *index)
{
    if (index->head + index->count < index->capacity)
        return;
    if (index->head >= index->capacity / 2 && index->capacity > 0) {
        memmove(index->places, index->places + index->head, index->count * sizeof *index->places);
        index->head = 0;
        return;
    }
    CHECK(index->capacity <= UINT32_MAX / 4);
    resize(index, index->capacity == 0 ? CAPACITY_MIN : index->capacity * 2);
}

static void shrink(struct log_index *index)
{
    if (index->count == 0 && index->capacity > CAPACITY_MIN)
        log_index_deinit(index);
    else if (index->capacity > CAPACITY_MIN * 4 && index->count < index->capacity / 8)
        resize(index, index->capacity / 4);
}

void log_index_put(struct log_index *index, uint64_t at, struct log_place place)
{
    CHECK(at > 0);
    if (index->count > 0) {
        CHECK(at >= index->first + index->count);
        if (at > index->first + index->count)
            index->count = 0;
    }
    if (index->count == 0) {
        index->head = 0;
        index->first = at;
    }
    make_room(index);
    index->places[index->head + index->count++] = place;
}

const struct log_place *log_index_find(const struct log_index *index, uint64_t at)
{
    if (index->count == 0 || at < index->first || at - index->first >= index->count)
        return NULL;
    return &index->places[index->head + (uint32_t)(at - index->first)];
}

void log_index_cut(struct log_index *index, uint64_t cut)
{
    if (index->count == 0 || cut < index->first)
        return;
    uint64_t drop = cut - index->first + 1;

    if (drop > index->count)
        drop = index->count;
    index->head += (uint32_t)drop;
    index->count -= (uint32_t)drop;
    index->first += drop;
    shrink(index);
}

void log_index_truncate(struct log_index *index, uint64_t keep)
{
    if (index->count == 0)
        return;
    uint64_t last = index->first + index->count - 1;

    if (keep >= last)
        return;
    index->count = keep < index->first ? 0 : (uint32_t)(keep - index->first + 1);
    shrink(index);
}
