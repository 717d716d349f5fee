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
    struct causal copy = { .count = from->count, .capacity = from->count, .era = from->era };

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

bool causal_is_empty(const struct causal *causal)
{
    return causal->count == 0 && causal->era == 0;
}

bool causal_equal(const struct causal *a, const struct causal *b)
{
    bool equal = a->count == b->count && a->era == b->era;

    for (uint32_t i = 0; equal && i < a->count; i++)
        equal =
            a->entries[i].actor == b->entries[i].actor && a->entries[i].upto == b->entries[i].upto;
    return equal;
}

bool causal_covers(const struct causal *causal, struct merge_dot dot)
{
    uint32_t at = place_of(causal, dot.actor);

    if (merge_actor_era(dot.actor) < causal->era)
        return true;
    return at < causal->count && causal->entries[at].actor == dot.actor &&
           dot.counter <= causal->entries[at].upto;
}

void causal_raise(struct causal *causal, uint64_t actor, uint64_t upto)
{
    uint32_t at = place_of(causal, actor);

    if (upto == 0 || merge_actor_era(actor) < causal->era)
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

static void raise_era(struct causal *causal, uint16_t era)
{
    uint32_t gone = 0;

    if (era <= causal->era)
        return;
    causal->era = era;
    while (gone < causal->count && merge_actor_era(causal->entries[gone].actor) < era)
        gone++;
    causal->count -= gone;
    if (gone > 0)
        memmove(causal->entries, causal->entries + gone, causal->count * sizeof *causal->entries);
}

void causal_join(struct causal *causal, const struct causal *other)
{
    raise_era(causal, other->era);
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

    if (causal->era <= clock->era)
        causal->era = 0;
    for (uint32_t i = 0; i < causal->count; i++)
        if (causal->entries[i].upto > mclock_floor(clock, causal->entries[i].actor))
            causal->entries[kept++] = causal->entries[i];
    causal->count = kept;
    if (causal_is_empty(causal))
        causal_deinit(causal);
}

void causal_fill(struct causal *causal, const struct mclock *clock)
{
    raise_era(causal, clock->era);
    for (uint32_t i = 0; i < clock->count; i++)
        causal_raise(causal, clock->actors[i].actor, mclock_floor(clock, clock->actors[i].actor));
}

void causal_encode(const struct causal *causal, struct buf *out)
{
    buf_put_compact(out, causal->era);
    buf_put_compact(out, causal->count);
    for (uint32_t i = 0; i < causal->count; i++) {
        buf_put_u64(out, causal->entries[i].actor);
        buf_put_compact(out, causal->entries[i].upto);
    }
}

err causal_decode(struct reader *reader, struct causal *ret_causal)
{
    uint64_t era = read_compact(reader), count = read_compact(reader);
    struct causal causal = { .era = (uint16_t)era };

    /* An entry takes 9 bytes at least: what is not there is not allocated. */
    if (reader->bad || era > MERGE_ERA_MAX || count > MCLOCK_ACTORS_MAX ||
        count * 9 > reader_left(reader))
        return ERR_CORRUPT;
    causal.capacity = (uint32_t)count;
    if (count > 0)
        causal.entries = mem_alloc(count * sizeof *causal.entries);
    for (uint64_t i = 0; i < count; i++) {
        struct causal_entry *entry = &causal.entries[i];

        *entry = (struct causal_entry){ .actor = read_u64(reader), .upto = read_compact(reader) };
        if (reader->bad || entry->actor == 0 || entry->upto == 0 ||
            merge_actor_era(entry->actor) < causal.era ||
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
