#include "node/core/mergeable/index.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

void dot_index_init(struct dot_index *index, uint32_t dots_max)
{
    CHECK(dots_max > 0);
    *index = (struct dot_index){ .dots_max = dots_max };
}

static void actor_deinit(struct index_actor *actor)
{
    for (uint32_t i = 0; i < actor->block_count; i++) {
        struct index_block *block = actor->blocks[i];

        for (uint32_t at = block->first; at < block->end; at++)
            merge_key_unref(block->dots[at].key);
        free(block);
    }
    free(actor->blocks);
}

void dot_index_deinit(struct dot_index *index)
{
    for (uint32_t i = 0; i < index->actor_count; i++)
        actor_deinit(&index->actors[i]);
    free(index->actors);
    *index = (struct dot_index){ .dots_max = index->dots_max };
}

/* ---- actors ---- */

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

/* ---- blocks ---- */

#define BLOCK_LEAST_DOTS 8u /* Most actors of most shards have few. */

static struct index_block *block_sized(struct index_block *block, uint32_t capacity)
{
    block = mem_realloc(block, sizeof *block + capacity * sizeof *block->dots);
    block->capacity = capacity;
    return block;
}

static struct index_block *block_insert(struct index_actor *actor, uint32_t at, uint32_t capacity)
{
    struct index_block *block = block_sized(NULL, capacity);

    if (actor->block_count == actor->block_capacity) {
        actor->block_capacity = actor->block_capacity > 0 ? actor->block_capacity * 2 : 4;
        actor->blocks = mem_realloc(actor->blocks, actor->block_capacity * sizeof *actor->blocks);
    }
    memmove(&actor->blocks[at + 1], &actor->blocks[at],
            (actor->block_count - at) * sizeof *actor->blocks);
    actor->block_count++;
    actor->blocks[at] = block;
    block->first = block->end = 0;
    return block;
}

static void block_remove(struct index_actor *actor, uint32_t at)
{
    free(actor->blocks[at]);
    actor->block_count--;
    memmove(&actor->blocks[at], &actor->blocks[at + 1],
            (actor->block_count - at) * sizeof *actor->blocks);
}

/* The first block that ends at or above the counter; block_count: none does. */
static uint32_t block_place(const struct index_actor *actor, uint64_t counter)
{
    uint32_t low = 0, high = actor->block_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct index_block *block = actor->blocks[middle];

        if (block->dots[block->end - 1].counter < counter)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t dot_place(const struct index_block *block, uint64_t counter)
{
    uint32_t low = block->first, high = block->end;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (block->dots[middle].counter < counter)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* NULL: it is not there. */
static const struct index_dot *find(const struct index_actor *actor, uint64_t counter)
{
    uint32_t place = block_place(actor, counter);

    if (place == actor->block_count)
        return NULL;
    const struct index_block *block = actor->blocks[place];
    const struct index_dot *found = &block->dots[dot_place(block, counter)];

    return found->counter == counter ? found : NULL;
}

static void move_down(struct index_block *block)
{
    uint32_t count = block->end - block->first;

    memmove(block->dots, block->dots + block->first, count * sizeof *block->dots);
    block->first = 0;
    block->end = count;
}

/* NULL: it has as many as a block may have. */
static struct index_block *make_room(struct index_actor *actor, uint32_t place)
{
    struct index_block *block = actor->blocks[place];

    if (block->end < block->capacity)
        return block;
    if (block->first > block->capacity / 4) {
        move_down(block);
        return block;
    }
    if (block->capacity < INDEX_BLOCK_DOTS) {
        actor->blocks[place] = block_sized(block, block->capacity * 2);
        return actor->blocks[place];
    }
    return NULL;
}

/* A block that the counter belongs into, with room for it. A full one is parted, but for the last
 * one: what comes in order fills each. */
static struct index_block *block_for(struct index_actor *actor, uint64_t counter)
{
    uint32_t place = block_place(actor, counter);
    bool behind_all = place == actor->block_count;
    struct index_block *block = NULL;

    if (actor->block_count > 0)
        block = make_room(actor, behind_all ? place - 1 : place);
    if (block != NULL)
        return block;
    if (behind_all)
        return block_insert(actor, place, place > 0 ? INDEX_BLOCK_DOTS : BLOCK_LEAST_DOTS);
    block = actor->blocks[place];
    move_down(block);
    if (block->end < block->capacity)
        return block;
    struct index_block *upper = block_insert(actor, place + 1, INDEX_BLOCK_DOTS);

    upper->end = block->end / 2;
    block->end -= upper->end;
    memcpy(upper->dots, block->dots + block->end, upper->end * sizeof *upper->dots);
    return block->dots[block->end - 1].counter < counter ? upper : block;
}

/* ---- dots ---- */

static void drop_lowest(struct dot_index *index)
{
    struct index_actor *most = &index->actors[0];

    for (uint32_t i = 1; i < index->actor_count; i++)
        if (index->actors[i].count > most->count)
            most = &index->actors[i];
    CHECK(most->count > 0);
    struct index_block *block = most->blocks[0];

    merge_key_unref(block->dots[block->first++].key);
    if (block->first == block->end)
        block_remove(most, 0);
    most->count--;
    index->dot_count--;
}

void dot_index_add(struct dot_index *index, struct merge_dot dot, struct merge_key *key)
{
    struct index_actor *actor = actor_make(index, dot.actor);

    if (find(actor, dot.counter) != NULL)
        return;
    struct index_block *block = block_for(actor, dot.counter);
    uint32_t at = dot_place(block, dot.counter);

    memmove(&block->dots[at + 1], &block->dots[at], (block->end - at) * sizeof *block->dots);
    block->dots[at] = (struct index_dot){ .counter = dot.counter, .key = merge_key_ref(key) };
    block->end++;
    actor->count++;
    if (++index->dot_count > index->dots_max)
        drop_lowest(index);
}

struct merge_key *dot_index_find(const struct dot_index *index, struct merge_dot dot)
{
    const struct index_actor *actor = actor_find(index, dot.actor);
    const struct index_dot *found = actor != NULL ? find(actor, dot.counter) : NULL;

    return found != NULL ? found->key : NULL;
}

void dot_index_each(const struct dot_index *index,
                    void (*tell)(void *user, struct merge_dot dot, struct merge_key *key),
                    void *user)
{
    for (uint32_t i = 0; i < index->actor_count; i++) {
        const struct index_actor *actor = &index->actors[i];

        for (uint32_t j = 0; j < actor->block_count; j++) {
            const struct index_block *block = actor->blocks[j];

            for (uint32_t at = block->first; at < block->end; at++)
                tell(user, (struct merge_dot){ actor->actor, block->dots[at].counter },
                     block->dots[at].key);
        }
    }
}

/* ---- pruning ---- */

/* What is kept of the blocks that are asked about, close together again. */
struct kept {
    struct index_actor *actor;
    uint32_t block, at; /* Where the next one goes: never behind what is read. */
};

static void keep(struct kept *kept, struct index_dot dot)
{
    if (kept->at == kept->actor->blocks[kept->block]->capacity) {
        kept->actor->blocks[kept->block]->end = kept->at;
        kept->block++;
        kept->at = 0;
    }
    kept->actor->blocks[kept->block]->first = 0;
    kept->actor->blocks[kept->block]->dots[kept->at++] = dot;
}

static void prune_block(struct dot_index *index, const struct index_block *block, uint64_t upto,
                        const struct dot_pruning *pruning, struct kept *kept)
{
    uint32_t end = block->end;

    for (uint32_t at = block->first; at < end; at++) {
        struct index_dot dot = block->dots[at];
        struct merge_dot named = { kept->actor->actor, dot.counter };

        if (dot.counter > upto || !pruning->gone(pruning->user, named, dot.key)) {
            keep(kept, dot);
            continue;
        }
        merge_key_unref(dot.key);
        kept->actor->count--;
        index->dot_count--;
    }
}

static void prune_actor(struct dot_index *index, struct index_actor *actor,
                        const struct dot_pruning *pruning)
{
    uint64_t upto = pruning->upto != NULL ? pruning->upto(pruning->user, actor->actor) : UINT64_MAX;
    struct kept kept = { .actor = actor };
    uint32_t read = 0;

    while (read < actor->block_count) {
        const struct index_block *block = actor->blocks[read];

        if (block->dots[block->first].counter > upto)
            break;
        prune_block(index, block, upto, pruning, &kept);
        read++;
    }
    if (read == 0)
        return;
    if (kept.at > 0)
        actor->blocks[kept.block++]->end = kept.at;
    for (uint32_t i = kept.block; i < read; i++)
        free(actor->blocks[i]);
    memmove(&actor->blocks[kept.block], &actor->blocks[read],
            (actor->block_count - read) * sizeof *actor->blocks);
    actor->block_count -= read - kept.block;
}

void dot_index_prune(struct dot_index *index, const struct dot_pruning *pruning)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < index->actor_count; i++) {
        struct index_actor *actor = &index->actors[i];

        prune_actor(index, actor, pruning);
        if (actor->count == 0)
            actor_deinit(actor);
        else
            index->actors[left++] = *actor;
    }
    index->actor_count = left;
}

/* ---- as bytes ---- */

static void encode_actor(const struct index_actor *actor, struct buf *out)
{
    buf_put_u64(out, actor->actor);
    buf_put_compact(out, actor->count);
    for (uint32_t i = 0; i < actor->block_count; i++) {
        const struct index_block *block = actor->blocks[i];

        for (uint32_t at = block->first; at < block->end; at++) {
            buf_put_compact(out, block->dots[at].counter);
            merge_key_encode(block->dots[at].key, out);
        }
    }
}

void dot_index_encode(const struct dot_index *index, struct buf *out)
{
    buf_put_compact(out, index->actor_count);
    for (uint32_t i = 0; i < index->actor_count; i++)
        encode_actor(&index->actors[i], out);
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
