#include "router/core/count_memo.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define ENTRY_BYTES_USUAL 256u /* For the number of places. */
#define PLACES_MIN        64u

struct entry {
    struct entry *chain; /* Of its place. */
    struct entry *newer; /* In the order in which they were asked for. */
    struct entry *older;
    uint64_t hash;
    struct count_known known;
    uint32_t collection_size;
    uint32_t target_size;
    bool is_counter;
    uint8_t text[]; /* The collection, then the target. */
};

struct count_memo {
    size_t bytes_max;
    size_t place_count; /* A power of two. */
    struct entry **places;
    struct entry *newest;
    struct entry *oldest;
    struct count_memo_stats stats;
};

struct count_memo *count_memo_new(size_t bytes_max)
{
    struct count_memo *memo = mem_zalloc(sizeof *memo);

    memo->bytes_max = bytes_max;
    memo->place_count = PLACES_MIN;
    while (memo->place_count < bytes_max / ENTRY_BYTES_USUAL)
        memo->place_count *= 2;
    memo->places = mem_zalloc(memo->place_count * sizeof(struct entry *));
    return memo;
}

void count_memo_free(struct count_memo *memo)
{
    if (memo == NULL)
        return;
    while (memo->newest != NULL) {
        struct entry *entry = memo->newest;
        memo->newest = entry->older;
        free(entry);
    }
    free(memo->places);
    free(memo);
}

static size_t entry_bytes(const struct entry *entry)
{
    return sizeof *entry + entry->collection_size + entry->target_size;
}

/* Two names that differ are compared in full; the lengths keep "ab","c" and "a","bc" apart. */
static uint64_t hash_of(const struct count_name *name)
{
    return hash_u64(name->target) ^
           ((hash_u64(name->collection) + name->is_counter) * 0x9e3779b97f4a7c15ull);
}

static bool is_of(const struct entry *entry, uint64_t hash, const struct count_name *name)
{
    const struct slice collection = { entry->text, entry->collection_size };
    const struct slice target = { entry->text + entry->collection_size, entry->target_size };

    return entry->hash == hash && entry->is_counter == name->is_counter &&
           slice_equal(collection, name->collection) && slice_equal(target, name->target);
}

static struct entry **place_of(const struct count_memo *memo, uint64_t hash)
{
    return &memo->places[hash & (memo->place_count - 1)];
}

/* The link that leads to it; *link is NULL where there is none. */
static struct entry **find_link(const struct count_memo *memo, const struct count_name *name)
{
    uint64_t hash = hash_of(name);
    struct entry **link = place_of(memo, hash);

    while (*link != NULL && !is_of(*link, hash, name))
        link = &(*link)->chain;
    return link;
}

/* ---- the order ---- */

static void order_remove(struct count_memo *memo, struct entry *entry)
{
    *(entry->newer != NULL ? &entry->newer->older : &memo->newest) = entry->older;
    *(entry->older != NULL ? &entry->older->newer : &memo->oldest) = entry->newer;
    entry->newer = NULL;
    entry->older = NULL;
}

static void order_add(struct count_memo *memo, struct entry *entry)
{
    entry->older = memo->newest;
    *(memo->newest != NULL ? &memo->newest->newer : &memo->oldest) = entry;
    memo->newest = entry;
}

static void evict_oldest(struct count_memo *memo)
{
    struct entry *entry = memo->oldest;
    struct entry **link = place_of(memo, entry->hash);

    while (*link != entry)
        link = &(*link)->chain;
    *link = entry->chain;
    order_remove(memo, entry);
    CHECK(memo->stats.bytes >= entry_bytes(entry));
    memo->stats.bytes -= entry_bytes(entry);
    memo->stats.entries--;
    memo->stats.evictions++;
    free(entry);
}

/* ---- lives ---- */

/* What is known of the collection itself stands under a name without a target, which no target has:
 * its number. */
static struct count_name life_name(const struct count_name *name)
{
    return (struct count_name){ .collection = name->collection, .is_counter = name->is_counter };
}

static bool is_of_former_life(const struct count_memo *memo, const struct count_name *name,
                              const struct entry *entry)
{
    const struct count_name own = life_name(name);
    const struct entry *life = *find_link(memo, &own);

    return life != NULL && life->known.collection_number != entry->known.collection_number;
}

static void touch(struct count_memo *memo, struct entry *entry)
{
    order_remove(memo, entry);
    order_add(memo, entry);
}

/* A life leaves later than what was asked for of it. */
static void touch_life(struct count_memo *memo, const struct count_name *name)
{
    const struct count_name own = life_name(name);
    struct entry *life = *find_link(memo, &own);

    if (life != NULL)
        touch(memo, life);
}

/* ---- the public interface ---- */

bool count_memo_recall(const struct count_memo *memo, const struct count_name *name,
                       uint64_t since_ms, struct count_known *ret_known)
{
    const struct entry *entry = *find_link(memo, name);

    if (entry == NULL || entry->known.gathered_ms < since_ms ||
        is_of_former_life(memo, name, entry))
        return false;
    *ret_known = entry->known;
    return true;
}

bool count_memo_find(struct count_memo *memo, const struct count_name *name, uint64_t since_ms,
                     struct count_known *ret_known)
{
    struct entry *entry = *find_link(memo, name);

    if (entry == NULL || entry->known.gathered_ms < since_ms ||
        is_of_former_life(memo, name, entry)) {
        memo->stats.misses++;
        return false;
    }
    touch(memo, entry);
    touch_life(memo, name);
    memo->stats.hits++;
    *ret_known = entry->known;
    return true;
}

static struct entry *entry_new(const struct count_name *name)
{
    struct entry *entry = mem_zalloc(sizeof *entry + name->collection.size + name->target.size);

    entry->hash = hash_of(name);
    entry->collection_size = (uint32_t)name->collection.size;
    entry->target_size = (uint32_t)name->target.size;
    entry->is_counter = name->is_counter;
    memcpy(entry->text, name->collection.data, name->collection.size);
    if (name->target.size > 0) /* Of a life, none. */
        memcpy(entry->text + name->collection.size, name->target.data, name->target.size);
    return entry;
}

static void put(struct count_memo *memo, const struct count_name *name,
                const struct count_known *known)
{
    struct entry **link = find_link(memo, name);

    if (*link != NULL) {
        if ((*link)->known.gathered_ms <= known->gathered_ms)
            (*link)->known = *known;
        return;
    }
    struct entry *entry = entry_new(name);
    if (entry_bytes(entry) > memo->bytes_max) {
        free(entry);
        return;
    }
    entry->known = *known;
    *link = entry;
    order_add(memo, entry);
    memo->stats.bytes += entry_bytes(entry);
    memo->stats.entries++;
    while (memo->stats.bytes > memo->bytes_max)
        evict_oldest(memo);
    CHECK(memo->newest == entry);
    CHECK(memo->stats.entries > 0);
}

void count_memo_note_life(struct count_memo *memo, const struct count_name *name, uint64_t number,
                          uint64_t gathered_ms)
{
    const struct count_name own = life_name(name);

    if (number == 0)
        return;
    put(memo, &own,
        &(struct count_known){ .collection_number = number, .gathered_ms = gathered_ms });
    touch_life(memo, name);
}

void count_memo_put(struct count_memo *memo, const struct count_name *name,
                    const struct count_known *known)
{
    CHECK(name->target.size > 0);
    put(memo, name, known);
    count_memo_note_life(memo, name, known->collection_number, known->gathered_ms);
}

struct count_memo_stats count_memo_stats(const struct count_memo *memo)
{
    return memo->stats;
}

/* How many are found by their places. */
static uint64_t check_places(const struct count_memo *memo)
{
    uint64_t found = 0;

    for (size_t i = 0; i < memo->place_count; i++) {
        for (const struct entry *entry = memo->places[i]; entry != NULL; entry = entry->chain) {
            CHECK(place_of(memo, entry->hash) == &memo->places[i]);
            CHECK(++found <= memo->stats.entries);
        }
    }
    return found;
}

void count_memo_check(const struct count_memo *memo)
{
    const struct entry *newer = NULL;
    uint64_t count = 0, bytes = 0;

    for (const struct entry *entry = memo->newest; entry != NULL; entry = entry->older) {
        CHECK(entry->newer == newer);
        CHECK(++count <= memo->stats.entries);
        bytes += entry_bytes(entry);
        newer = entry;
    }
    CHECK(memo->oldest == newer);
    CHECK(count == memo->stats.entries);
    CHECK(bytes == memo->stats.bytes);
    CHECK(bytes <= memo->bytes_max);
    CHECK(check_places(memo) == count);
}
