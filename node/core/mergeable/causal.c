#include "node/core/mergeable/causal.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

void causal_deinit(struct causal *causal)
{
    free(causal->entries);
    *causal = (struct causal){ 0 };
}

void causal_copy(struct causal *to, const struct causal *from)
{
    struct causal copy = { .count = from->count, .capacity = from->count };

    if (from->count > 0) {
        copy.entries = mem_alloc(from->count * sizeof *copy.entries);
        memcpy(copy.entries, from->entries, from->count * sizeof *copy.entries);
    }
    causal_deinit(to);
    *to = copy;
}

static uint32_t place_of(const struct causal *causal, uint64_t actor)
{
    uint32_t low = 0, high = causal->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (causal->entries[middle].actor < actor)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool causal_covers(const struct causal *causal, struct merge_dot dot)
{
    uint32_t at = place_of(causal, dot.actor);

    return at < causal->count && causal->entries[at].actor == dot.actor &&
           dot.counter <= causal->entries[at].upto;
}

void causal_raise(struct causal *causal, uint64_t actor, uint64_t upto)
{
    uint32_t at = place_of(causal, actor);

    if (upto == 0)
        return;
    if (at < causal->count && causal->entries[at].actor == actor) {
        if (causal->entries[at].upto < upto)
            causal->entries[at].upto = upto;
        return;
    }
    if (causal->count == causal->capacity) {
        causal->capacity = causal->capacity > 0 ? causal->capacity * 2 : 4;
        causal->entries = mem_realloc(causal->entries, causal->capacity * sizeof *causal->entries);
    }
    memmove(&causal->entries[at + 1], &causal->entries[at],
            (causal->count - at) * sizeof *causal->entries);
    causal->entries[at] = (struct causal_entry){ .actor = actor, .upto = upto };
    causal->count++;
}

void causal_join(struct causal *causal, const struct causal *other)
{
    for (uint32_t i = 0; i < other->count; i++)
        causal_raise(causal, other->entries[i].actor, other->entries[i].upto);
}

uint32_t causal_union(const struct causal *a, const struct causal *b)
{
    uint32_t i = 0, j = 0, count = 0;

    for (; i < a->count && j < b->count; count++) {
        uint64_t one = a->entries[i].actor, two = b->entries[j].actor;

        i += one <= two;
        j += two <= one;
    }
    return count + (a->count - i) + (b->count - j);
}

void causal_strip(struct causal *causal, const struct mclock *clock)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < causal->count; i++)
        if (causal->entries[i].upto > mclock_floor(clock, causal->entries[i].actor))
            causal->entries[kept++] = causal->entries[i];
    causal->count = kept;
    if (kept == 0)
        causal_deinit(causal);
}

void causal_fill(struct causal *causal, const struct mclock *clock)
{
    for (uint32_t i = 0; i < clock->count; i++)
        causal_raise(causal, clock->actors[i].actor, mclock_floor(clock, clock->actors[i].actor));
}

void causal_encode(const struct causal *causal, struct buf *out)
{
    buf_put_compact(out, causal->count);
    for (uint32_t i = 0; i < causal->count; i++) {
        buf_put_u64(out, causal->entries[i].actor);
        buf_put_compact(out, causal->entries[i].upto);
    }
}

err causal_decode(struct reader *reader, struct causal *ret_causal)
{
    uint64_t count = read_compact(reader);
    struct causal causal = { 0 };

    /* An entry takes 9 bytes at least: what is not there is not allocated. */
    if (reader->bad || count > MCLOCK_ACTORS_MAX || count * 9 > reader_left(reader))
        return ERR_CORRUPT;
    causal.capacity = (uint32_t)count;
    if (count > 0)
        causal.entries = mem_alloc(count * sizeof *causal.entries);
    for (uint64_t i = 0; i < count; i++) {
        struct causal_entry *entry = &causal.entries[i];

        *entry = (struct causal_entry){ .actor = read_u64(reader), .upto = read_compact(reader) };
        if (reader->bad || entry->actor == 0 || entry->upto == 0 ||
            (i > 0 && entry->actor <= entry[-1].actor) ||
            (entry->upto > MCLOCK_COUNTER_MAX && entry->upto != UINT64_MAX)) {
            causal_deinit(&causal);
            return ERR_CORRUPT;
        }
        causal.count++;
    }
    *ret_causal = causal;
    return ERR_OK;
}
