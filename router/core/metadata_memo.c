#include "router/core/metadata_memo.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define WAYS              8u   /* Slots that a name may stand in. */
#define ENTRY_BYTES_USUAL 512u /* For the number of slots. */
#define SETS_MIN          8u

struct slot {
    uint8_t *bytes; /* The collection, the target, what is known. NULL: the slot is free. */
    uint64_t hash;
    uint64_t learned_ms;
    uint64_t used; /* By metadata_memo.uses. */
    uint32_t collection_size, target_size, packed_size;
};

struct metadata_memo {
    size_t bytes_max;
    size_t set_count; /* A power of two. */
    struct slot *slots;
    size_t hand; /* Whose turn to go it is, where all together are too large. */
    uint64_t uses;
    struct metadata_memo_stats stats;
};

struct metadata_memo *metadata_memo_new(size_t bytes_max)
{
    struct metadata_memo *memo = mem_zalloc(sizeof *memo);

    memo->bytes_max = bytes_max;
    memo->set_count = SETS_MIN;
    while (memo->set_count * WAYS < bytes_max / ENTRY_BYTES_USUAL)
        memo->set_count *= 2;
    memo->slots = mem_zalloc(memo->set_count * WAYS * sizeof *memo->slots);
    return memo;
}

static size_t slot_bytes(const struct slot *slot)
{
    return sizeof *slot + slot->collection_size + slot->target_size + slot->packed_size;
}

static void empty(struct metadata_memo *memo, struct slot *slot)
{
    CHECK(slot->bytes != NULL && memo->stats.bytes >= slot_bytes(slot));
    memo->stats.bytes -= slot_bytes(slot);
    memo->stats.entries--;
    free(slot->bytes);
    *slot = (struct slot){ 0 };
}

void metadata_memo_free(struct metadata_memo *memo)
{
    if (memo == NULL)
        return;
    for (size_t i = 0; i < memo->set_count * WAYS; i++)
        free(memo->slots[i].bytes);
    free(memo->slots);
    free(memo);
}

static uint64_t hash_of(const struct metadata_name *name)
{
    return hash_u64(name->target) ^ (hash_u64(name->collection) * 0x9e3779b97f4a7c15ull);
}

static bool is_of(const struct slot *slot, uint64_t hash, const struct metadata_name *name)
{
    const struct slice collection = { slot->bytes, slot->collection_size };

    if (slot->bytes == NULL || slot->hash != hash)
        return false;
    const struct slice target = { slot->bytes + slot->collection_size, slot->target_size };
    return slice_equal(collection, name->collection) && slice_equal(target, name->target);
}

static struct slot *set_of(const struct metadata_memo *memo, uint64_t hash)
{
    return &memo->slots[(hash & (memo->set_count - 1)) * WAYS];
}

/* NULL: it is not there. */
static struct slot *find(const struct metadata_memo *memo, const struct metadata_name *name)
{
    uint64_t hash = hash_of(name);
    struct slot *set = set_of(memo, hash);

    for (uint32_t i = 0; i < WAYS; i++) {
        if (is_of(&set[i], hash, name))
            return &set[i];
    }
    return NULL;
}

/* ---- the public interface ---- */
enum metadata_age metadata_memo_find(struct metadata_memo *memo, const struct metadata_name *name,
                                     const struct metadata_ages *ages, struct slice *ret_packed)
{
    struct slot *slot = find(memo, name);

    if (slot == NULL || slot->learned_ms < ages->old_since_ms) {
        memo->stats.misses++;
        return METADATA_UNKNOWN;
    }
    bool young = slot->learned_ms >= ages->young_since_ms;
    slot->used = ++memo->uses;
    memo->stats.hits += young;
    memo->stats.stale += !young;
    *ret_packed = (struct slice){ slot->bytes + slot->collection_size + slot->target_size,
                                  slot->packed_size };
    return young ? METADATA_YOUNG : METADATA_OLD;
}

/* Room in its set: what was used longest ago goes. */
static struct slot *make_room(struct metadata_memo *memo, uint64_t hash)
{
    struct slot *set = set_of(memo, hash), *oldest = set;

    for (uint32_t i = 0; i < WAYS; i++) {
        if (set[i].bytes == NULL)
            return &set[i];
        if (set[i].used < oldest->used)
            oldest = &set[i];
    }
    empty(memo, oldest);
    memo->stats.evictions++;
    return oldest;
}

/* All but `kept`, one after another, until the rest fits. */
static void shrink(struct metadata_memo *memo, const struct slot *kept)
{
    while (memo->stats.bytes > memo->bytes_max) {
        struct slot *slot = &memo->slots[memo->hand];
        memo->hand = (memo->hand + 1) % (memo->set_count * WAYS);
        if (slot->bytes == NULL || slot == kept)
            continue;
        empty(memo, slot);
        memo->stats.evictions++;
    }
}

void metadata_memo_put(struct metadata_memo *memo, const struct metadata_name *name,
                       struct slice packed, uint64_t learned_ms)
{
    struct slot *slot = find(memo, name);
    struct slot made = {
        .hash = hash_of(name),
        .learned_ms = learned_ms,
        .collection_size = (uint32_t)name->collection.size,
        .target_size = (uint32_t)name->target.size,
        .packed_size = (uint32_t)packed.size,
    };

    if ((slot != NULL && slot->learned_ms > learned_ms) || slot_bytes(&made) > memo->bytes_max)
        return;
    if (slot != NULL)
        empty(memo, slot);
    else
        slot = make_room(memo, made.hash);
    made.bytes = mem_zalloc(name->collection.size + name->target.size + packed.size + 1);
    made.used = ++memo->uses;
    memcpy(made.bytes, name->collection.data, name->collection.size);
    memcpy(made.bytes + made.collection_size, name->target.data, name->target.size);
    if (packed.size > 0)
        memcpy(made.bytes + made.collection_size + made.target_size, packed.data, packed.size);
    *slot = made;
    memo->stats.bytes += slot_bytes(slot);
    memo->stats.entries++;
    shrink(memo, slot);
    CHECK(memo->stats.bytes <= memo->bytes_max);
}

struct metadata_memo_stats metadata_memo_stats(const struct metadata_memo *memo)
{
    return memo->stats;
}

void metadata_memo_check(const struct metadata_memo *memo)
{
    uint64_t bytes = 0, entries = 0;

    for (size_t i = 0; i < memo->set_count * WAYS; i++) {
        const struct slot *slot = &memo->slots[i];
        if (slot->bytes == NULL)
            continue;
        CHECK(set_of(memo, slot->hash) == &memo->slots[i - i % WAYS]);
        bytes += slot_bytes(slot);
        entries++;
    }
    CHECK(bytes == memo->stats.bytes && bytes <= memo->bytes_max);
    CHECK(entries == memo->stats.entries);
}
