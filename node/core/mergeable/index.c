#include "node/core/mergeable/index.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

void dot_index_init(struct dot_index *index, uint32_t dots_max)
{
    CHECK(dots_max > 0);
    *index = (struct dot_index){ .dots_max = dots_max };
}

void dot_index_deinit(struct dot_index *index)
{
    for (uint32_t i = 0; i < index->actor_count; i++) {
        struct index_actor *actor = &index->actors[i];

        for (uint32_t at = actor->first; at < actor->end; at++)
            merge_key_unref(actor->dots[at].key);
        free(actor->dots);
    }
    free(index->actors);
    *index = (struct dot_index){ .dots_max = index->dots_max };
}

static uint32_t actor_place(const struct dot_index *index, uint64_t actor)
{
    uint32_t at = 0;

    while (at < index->actor_count && index->actors[at].actor < actor)
        at++;
    return at;
}

static struct index_actor *actor_find(const struct dot_index *index, uint64_t actor)
{
    uint32_t at = actor_place(index, actor);

    return at < index->actor_count && index->actors[at].actor == actor ? &index->actors[at] : NULL;
}

static uint32_t dot_place(const struct index_actor *actor, uint64_t counter)
{
    uint32_t low = actor->first, high = actor->end;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (actor->dots[middle].counter < counter)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void drop_lowest(struct dot_index *index)
{
    struct index_actor *most = &index->actors[0];

    for (uint32_t i = 1; i < index->actor_count; i++)
        if (index->actors[i].end - index->actors[i].first > most->end - most->first)
            most = &index->actors[i];
    CHECK(most->end > most->first);
    merge_key_unref(most->dots[most->first++].key);
    index->dot_count--;
}

static struct index_actor *actor_make(struct dot_index *index, uint64_t actor)
{
    uint32_t at = actor_place(index, actor);

    if (at < index->actor_count && index->actors[at].actor == actor)
        return &index->actors[at];
    index->actors = mem_realloc(index->actors, (index->actor_count + 1) * sizeof *index->actors);
    memmove(&index->actors[at + 1], &index->actors[at],
            (index->actor_count - at) * sizeof *index->actors);
    index->actor_count++;
    index->actors[at] = (struct index_actor){ .actor = actor };
    return &index->actors[at];
}

/* Room for one more at the end: what was pruned at the front is used again. */
static void reserve(struct index_actor *actor)
{
    if (actor->end < actor->capacity)
        return;
    uint32_t count = actor->end - actor->first;

    if (actor->first > actor->capacity / 2) {
        memmove(actor->dots, actor->dots + actor->first, count * sizeof *actor->dots);
    } else {
        uint32_t capacity = actor->capacity > 0 ? actor->capacity * 2 : 16;
        struct index_dot *dots = mem_alloc(capacity * sizeof *dots);

        if (count > 0)
            memcpy(dots, actor->dots + actor->first, count * sizeof *dots);
        free(actor->dots);
        actor->dots = dots;
        actor->capacity = capacity;
    }
    actor->first = 0;
    actor->end = count;
}

void dot_index_add(struct dot_index *index, struct merge_dot dot, struct merge_key *key)
{
    struct index_actor *actor = actor_make(index, dot.actor);

    uint32_t at = dot_place(actor, dot.counter);

    if (at < actor->end && actor->dots[at].counter == dot.counter)
        return;
    reserve(actor);
    at = dot_place(actor, dot.counter);
    memmove(&actor->dots[at + 1], &actor->dots[at], (actor->end - at) * sizeof *actor->dots);
    actor->dots[at] = (struct index_dot){ .counter = dot.counter, .key = merge_key_ref(key) };
    actor->end++;
    if (++index->dot_count > index->dots_max)
        drop_lowest(index);
}

struct merge_key *dot_index_find(const struct dot_index *index, struct merge_dot dot)
{
    const struct index_actor *actor = actor_find(index, dot.actor);

    if (actor == NULL)
        return NULL;
    uint32_t at = dot_place(actor, dot.counter);

    return at < actor->end && actor->dots[at].counter == dot.counter ? actor->dots[at].key : NULL;
}

/* What stays below `upto` moves up to what was not asked about: that may be very much. */
static void prune_actor(struct dot_index *index, struct index_actor *actor,
                        const struct dot_pruning *pruning)
{
    uint64_t upto = pruning->upto != NULL ? pruning->upto(pruning->user, actor->actor) : UINT64_MAX;
    uint32_t at = actor->first, kept;

    while (at < actor->end && actor->dots[at].counter <= upto)
        at++;
    kept = at;
    while (at-- > actor->first) {
        struct merge_dot dot = { actor->actor, actor->dots[at].counter };

        if (pruning->gone(pruning->user, dot, actor->dots[at].key)) {
            merge_key_unref(actor->dots[at].key);
            index->dot_count--;
        } else {
            actor->dots[--kept] = actor->dots[at];
        }
    }
    actor->first = kept;
}

void dot_index_prune(struct dot_index *index, const struct dot_pruning *pruning)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < index->actor_count; i++) {
        struct index_actor *actor = &index->actors[i];

        prune_actor(index, actor, pruning);
        if (actor->end == actor->first)
            free(actor->dots);
        else
            index->actors[left++] = *actor;
    }
    index->actor_count = left;
}

void dot_index_encode(const struct dot_index *index, struct buf *out)
{
    buf_put_compact(out, index->actor_count);
    for (uint32_t i = 0; i < index->actor_count; i++) {
        const struct index_actor *actor = &index->actors[i];

        buf_put_u64(out, actor->actor);
        buf_put_compact(out, actor->end - actor->first);
        for (uint32_t at = actor->first; at < actor->end; at++) {
            buf_put_compact(out, actor->dots[at].counter);
            merge_key_encode(actor->dots[at].key, out);
        }
    }
}

err dot_index_decode(struct dot_index *index, struct reader *reader)
{
    uint64_t actors = read_compact(reader);

    if (reader->bad || actors > MCLOCK_ACTORS_MAX)
        return ERR_CORRUPT;
    for (uint64_t i = 0; i < actors; i++) {
        uint64_t actor = read_u64(reader), count = read_compact(reader);

        if (reader->bad || actor == 0 || count > reader_left(reader))
            return ERR_CORRUPT;
        for (uint64_t n = 0; n < count; n++) {
            struct merge_dot dot = { actor, read_compact(reader) };
            struct merge_key *key;

            if (reader->bad || dot.counter == 0 || dot.counter > MCLOCK_COUNTER_MAX ||
                merge_key_decode(reader, &key) != ERR_OK)
                return ERR_CORRUPT;
            dot_index_add(index, dot, key);
            merge_key_unref(key);
        }
    }
    return ERR_OK;
}
