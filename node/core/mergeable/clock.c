#include "node/core/mergeable/clock.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define WORD_BITS 64u
#define WORDS_MAX (MCLOCK_BITS_MAX / WORD_BITS)

bool merge_dot_equal(struct merge_dot a, struct merge_dot b)
{
    return a.actor == b.actor && a.counter == b.counter;
}

int merge_dot_compare(struct merge_dot a, struct merge_dot b)
{
    if (a.actor != b.actor)
        return a.actor < b.actor ? -1 : 1;
    return (a.counter > b.counter) - (a.counter < b.counter);
}

uint16_t merge_actor_era(uint64_t actor)
{
    return (uint16_t)(actor >> MERGE_ERA_SHIFT);
}

uint64_t merge_actor_make(uint16_t era, uint64_t random)
{
    uint8_t bytes[10];

    store_u64(bytes, random);
    bytes[8] = (uint8_t)era;
    bytes[9] = (uint8_t)(era >> 8);
    uint64_t low = hash_u64((struct slice){ bytes, sizeof bytes }) >> 16;

    return (uint64_t)era << MERGE_ERA_SHIFT | (low != 0 ? low : 1);
}

static bool is_forgotten(const struct mclock *clock, uint64_t actor)
{
    return merge_actor_era(actor) < clock->era;
}

void mclock_deinit(struct mclock *clock)
{
    for (uint32_t i = 0; i < clock->count; i++)
        free(clock->actors[i].bits);
    free(clock->actors);
    *clock = (struct mclock){ 0 };
}

void mclock_copy(struct mclock *to, const struct mclock *from)
{
    struct mclock copy = { .count = from->count, .capacity = from->count, .era = from->era };

    if (from->count > 0)
        copy.actors = mem_alloc(from->count * sizeof *copy.actors);
    for (uint32_t i = 0; i < from->count; i++) {
        struct mclock_actor *actor = &copy.actors[i];

        *actor = from->actors[i];
        actor->bits = NULL;
        if (actor->words > 0) {
            actor->bits = mem_alloc(actor->words * sizeof *actor->bits);
            memcpy(actor->bits, from->actors[i].bits, actor->words * sizeof *actor->bits);
        }
    }
    mclock_deinit(to);
    *to = copy;
}

/* The place of the actor, or where it would stand. */
static uint32_t place_of(const struct mclock *clock, uint64_t actor)
{
    uint32_t low = 0, high = clock->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (clock->actors[middle].actor < actor)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct mclock_actor *entry_of(const struct mclock *clock, uint64_t actor)
{
    uint32_t at = place_of(clock, actor);

    return at < clock->count && clock->actors[at].actor == actor ? &clock->actors[at] : NULL;
}

const struct mclock_actor *mclock_find(const struct mclock *clock, uint64_t actor)
{
    return entry_of(clock, actor);
}

/* NULL: over the limit. */
static struct mclock_actor *entry_make(struct mclock *clock, uint64_t actor)
{
    uint32_t at = place_of(clock, actor);

    CHECK(actor != 0);
    if (at < clock->count && clock->actors[at].actor == actor)
        return &clock->actors[at];
    if (clock->count == MCLOCK_ACTORS_MAX)
        return NULL;
    if (clock->count == clock->capacity) {
        clock->capacity = clock->capacity > 0 ? clock->capacity * 2 : 8;
        clock->actors = mem_realloc(clock->actors, clock->capacity * sizeof *clock->actors);
    }
    memmove(&clock->actors[at + 1], &clock->actors[at],
            (clock->count - at) * sizeof *clock->actors);
    clock->count++;
    clock->actors[at] = (struct mclock_actor){ .actor = actor };
    return &clock->actors[at];
}

static bool bit_of(const struct mclock_actor *entry, uint64_t counter)
{
    uint64_t at = counter - entry->base - 1;

    return at / WORD_BITS < entry->words &&
           (entry->bits[at / WORD_BITS] >> at % WORD_BITS & 1) != 0;
}

static bool entry_holds(const struct mclock_actor *entry, uint64_t counter)
{
    return counter <= entry->base || bit_of(entry, counter);
}

bool mclock_holds(const struct mclock *clock, struct merge_dot dot)
{
    const struct mclock_actor *entry = entry_of(clock, dot.actor);

    return entry != NULL && entry_holds(entry, dot.counter);
}

bool mclock_covers(const struct mclock *clock, struct merge_dot dot)
{
    const struct mclock_actor *entry = entry_of(clock, dot.actor);

    return is_forgotten(clock, dot.actor) ||
           (entry != NULL && (entry->closed || entry_holds(entry, dot.counter)));
}

uint64_t mclock_floor(const struct mclock *clock, uint64_t actor)
{
    const struct mclock_actor *entry = entry_of(clock, actor);

    if (entry == NULL)
        return is_forgotten(clock, actor) ? UINT64_MAX : 0;
    return entry->closed ? UINT64_MAX : entry->base;
}

uint64_t mclock_top(const struct mclock_actor *actor)
{
    if (actor->words == 0)
        return actor->base;
    uint32_t last = actor->words - 1;
    uint32_t high = WORD_BITS - 1 - (uint32_t)__builtin_clzll(actor->bits[last]);

    return actor->base + 1 + (uint64_t)last * WORD_BITS + high;
}

uint64_t mclock_above(const struct mclock_actor *actor)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < actor->words; i++)
        count += (uint64_t)__builtin_popcountll(actor->bits[i]);
    return count;
}

/* How many dots from `first` to `last` the entry holds. */
static uint64_t held_between(const struct mclock_actor *entry, uint64_t first, uint64_t last)
{
    uint64_t count = 0, top = mclock_top(entry);

    if (entry->base >= first)
        count = (entry->base < last ? entry->base : last) - first + 1;
    if (first <= entry->base)
        first = entry->base + 1;
    for (uint64_t counter = first; counter <= last && counter <= top; counter++)
        count += bit_of(entry, counter);
    return count;
}

static uint64_t entry_lacks(const struct mclock_actor *entry, const struct mclock_actor *other)
{
    uint64_t count = other->base, top = mclock_top(other);

    if (other->base > 0)
        count -= held_between(entry, 1, other->base);
    for (uint64_t counter = other->base + 1; counter <= top; counter++)
        count += bit_of(other, counter) && !entry_holds(entry, counter);
    return count;
}

uint64_t mclock_lacks(const struct mclock *clock, const struct mclock *other)
{
    static const struct mclock_actor none;
    uint64_t count = 0;

    for (uint32_t i = 0; i < other->count; i++) {
        const struct mclock_actor *entry = entry_of(clock, other->actors[i].actor);

        if (is_forgotten(clock, other->actors[i].actor) || (entry != NULL && entry->closed))
            continue;
        count += entry_lacks(entry != NULL ? entry : &none, &other->actors[i]);
    }
    return count;
}

/* Forgets the lowest `count` bits, which the base has passed. */
static void shift_out(struct mclock_actor *entry, uint64_t count)
{
    uint64_t whole = count / WORD_BITS;
    unsigned rest = (unsigned)(count % WORD_BITS);

    if (whole >= entry->words) {
        entry->words = 0;
        return;
    }
    entry->words -= (uint32_t)whole;
    memmove(entry->bits, entry->bits + whole, entry->words * sizeof *entry->bits);
    for (uint32_t i = 0; rest > 0 && i < entry->words; i++) {
        uint64_t above = i + 1 < entry->words ? entry->bits[i + 1] << (WORD_BITS - rest) : 0;

        entry->bits[i] = entry->bits[i] >> rest | above;
    }
}

/* Raises the base over the bits that follow it, and drops words of zeros. */
static void settle(struct mclock_actor *entry)
{
    while (entry->words > 0 && (entry->bits[0] & 1) != 0) {
        uint64_t zeros = ~entry->bits[0];
        uint64_t run = zeros == 0 ? WORD_BITS : (uint64_t)__builtin_ctzll(zeros);

        shift_out(entry, run);
        entry->base += run;
    }
    while (entry->words > 0 && entry->bits[entry->words - 1] == 0)
        entry->words--;
}

static void raise_base(struct mclock_actor *entry, uint64_t base)
{
    if (base <= entry->base)
        return;
    shift_out(entry, base - entry->base);
    entry->base = base;
    settle(entry);
}

static void set_bit(struct mclock_actor *entry, uint64_t counter)
{
    uint64_t at = counter - entry->base - 1;
    uint32_t word = (uint32_t)(at / WORD_BITS);

    CHECK(word < WORDS_MAX);
    if (word >= entry->words) {
        entry->bits = mem_realloc(entry->bits, (word + 1) * sizeof *entry->bits);
        memset(entry->bits + entry->words, 0, (word + 1 - entry->words) * sizeof *entry->bits);
        entry->words = word + 1;
    }
    entry->bits[word] |= (uint64_t)1 << at % WORD_BITS;
}

static bool has_room(const struct mclock *clock, struct merge_dot dot)
{
    const struct mclock_actor *entry = entry_of(clock, dot.actor);
    uint64_t base = entry != NULL ? entry->base : 0;

    if (is_forgotten(clock, dot.actor))
        return true;
    if (entry == NULL && clock->count == MCLOCK_ACTORS_MAX)
        return false;
    return dot.counter <= base || dot.counter - base <= MCLOCK_BITS_MAX;
}

err mclock_add(struct mclock *clock, struct merge_dot dot)
{
    CHECK(dot.actor != 0 && dot.counter != 0);
    if (!has_room(clock, dot))
        return ERR_FULL;
    if (mclock_covers(clock, dot))
        return ERR_OK;
    struct mclock_actor *entry = entry_make(clock, dot.actor);

    CHECK(entry != NULL);
    set_bit(entry, dot.counter);
    settle(entry);
    return ERR_OK;
}

err mclock_name(struct mclock *clock, uint64_t actor, uint64_t member)
{
    if (is_forgotten(clock, actor))
        return ERR_OK;
    struct mclock_actor *entry = entry_make(clock, actor);

    if (entry == NULL)
        return ERR_FULL;
    if (entry->member == 0)
        entry->member = member;
    return ERR_OK;
}

void mclock_close(struct mclock *clock, uint64_t actor)
{
    struct mclock_actor *entry = entry_of(clock, actor);

    if (is_forgotten(clock, actor))
        return;
    CHECK(entry != NULL);
    entry->closed = true;
}

uint16_t mclock_era_latest(const struct mclock *clock)
{
    uint16_t last = clock->count > 0 ? merge_actor_era(clock->actors[clock->count - 1].actor) : 0;

    return last > clock->era ? last : clock->era;
}

bool mclock_may_forget(const struct mclock *clock, uint16_t era)
{
    for (uint32_t i = 0; i < clock->count; i++)
        if (merge_actor_era(clock->actors[i].actor) < era && !clock->actors[i].closed)
            return false;
    return true;
}

void mclock_forget(struct mclock *clock, uint16_t era)
{
    uint32_t gone = 0;

    if (era <= clock->era)
        return;
    clock->era = era;
    while (gone < clock->count && is_forgotten(clock, clock->actors[gone].actor))
        free(clock->actors[gone++].bits);
    clock->count -= gone;
    if (gone > 0)
        memmove(clock->actors, clock->actors + gone, clock->count * sizeof *clock->actors);
}

/* True if all that `inner` holds of its actor is in `outer`. */
static bool entry_within(const struct mclock_actor *inner, const struct mclock_actor *outer)
{
    if (inner->base > outer->base) /* Bit 0 of `outer`, the dot above its base, is never set. */
        return false;
    for (uint32_t i = 0; i < inner->words; i++)
        for (uint64_t word = inner->bits[i]; word != 0; word &= word - 1) {
            uint64_t at = (uint64_t)i * WORD_BITS + (uint64_t)__builtin_ctzll(word);

            if (!entry_holds(outer, inner->base + 1 + at))
                return false;
        }
    return true;
}

static void entry_join(struct mclock_actor *entry, const struct mclock_actor *other)
{
    raise_base(entry, other->base);
    for (uint32_t i = 0; i < other->words; i++)
        for (uint64_t word = other->bits[i]; word != 0; word &= word - 1) {
            uint64_t at = (uint64_t)i * WORD_BITS + (uint64_t)__builtin_ctzll(word);
            uint64_t counter = other->base + 1 + at;

            if (counter > entry->base)
                set_bit(entry, counter);
        }
    settle(entry);
}

static bool actors_fit(const struct mclock *clock, const struct mclock *other)
{
    uint32_t added = 0;

    for (uint32_t i = 0; i < other->count; i++)
        added += entry_of(clock, other->actors[i].actor) == NULL &&
                 !is_forgotten(clock, other->actors[i].actor);
    return clock->count + added <= MCLOCK_ACTORS_MAX;
}

err mclock_join(struct mclock *clock, const struct mclock *other, enum mclock_closings closings)
{
    if (!actors_fit(clock, other))
        return ERR_FULL;
    if (closings == MCLOCK_CLOSE_ALL || mclock_may_forget(clock, other->era))
        mclock_forget(clock, other->era);
    for (uint32_t i = 0; i < other->count; i++) {
        const struct mclock_actor *from = &other->actors[i];

        if (is_forgotten(clock, from->actor))
            continue;
        struct mclock_actor *entry = entry_make(clock, from->actor);

        CHECK(entry != NULL);
        bool within = entry_within(entry, from);

        if (!entry->closed)
            entry_join(entry, from);
        if (entry->member == 0)
            entry->member = from->member;
        if (from->closed && (within || closings == MCLOCK_CLOSE_ALL))
            entry->closed = true;
    }
    return ERR_OK;
}

bool mclock_includes(const struct mclock *clock, const struct mclock *other)
{
    static const struct mclock_actor nothing = { 0 };

    if (other->era > clock->era)
        return false; /* What they held of forgotten actors is not known. */
    for (uint32_t i = 0; i < other->count; i++) {
        const struct mclock_actor *mine = entry_of(clock, other->actors[i].actor);

        if ((mine != NULL && mine->closed) || is_forgotten(clock, other->actors[i].actor))
            continue;
        if (!entry_within(&other->actors[i], mine != NULL ? mine : &nothing))
            return false;
    }
    return true;
}

bool mclock_exceeds_closed(const struct mclock *clock, const struct mclock *other)
{
    if (!mclock_may_forget(clock, other->era))
        return true;
    for (uint32_t i = 0; i < other->count; i++) {
        const struct mclock_actor *mine = entry_of(clock, other->actors[i].actor);

        if (!other->actors[i].closed || mine == NULL || mine->closed)
            continue;
        if (!entry_within(mine, &other->actors[i]))
            return true;
    }
    return false;
}

bool mclock_lacks_closing(const struct mclock *clock, const struct mclock *other)
{
    if (other->era > clock->era)
        return true;
    for (uint32_t i = 0; i < other->count; i++) {
        const struct mclock_actor *mine = entry_of(clock, other->actors[i].actor);

        if (other->actors[i].closed && !is_forgotten(clock, other->actors[i].actor) &&
            (mine == NULL || !mine->closed))
            return true;
    }
    return false;
}

bool mclock_agrees(const struct mclock *a, const struct mclock *b, uint64_t actor)
{
    static const struct mclock_actor nothing = { 0 };
    const struct mclock_actor *one = entry_of(a, actor), *two = entry_of(b, actor);

    one = one != NULL ? one : &nothing;
    two = two != NULL ? two : &nothing;
    return entry_within(one, two) && entry_within(two, one);
}

void mclock_encode(const struct mclock *clock, struct buf *out)
{
    buf_put_compact(out, clock->era);
    buf_put_compact(out, clock->count);
    for (uint32_t i = 0; i < clock->count; i++) {
        const struct mclock_actor *entry = &clock->actors[i];

        buf_put_u64(out, entry->actor);
        buf_put_u64(out, entry->member);
        buf_put_u8(out, entry->closed);
        buf_put_compact(out, entry->base);
        buf_put_compact(out, entry->words);
        for (uint32_t word = 0; word < entry->words; word++)
            buf_put_u64(out, entry->bits[word]);
    }
}

static bool entry_decode(struct reader *reader, struct mclock_actor *ret_entry)
{
    struct mclock_actor entry = { .actor = read_u64(reader), .member = read_u64(reader) };
    uint8_t closed = read_u8(reader);

    entry.closed = closed == 1;
    entry.base = read_compact(reader);
    uint64_t words = read_compact(reader);

    if (reader->bad || entry.actor == 0 || closed > 1 || entry.base > MCLOCK_COUNTER_MAX ||
        words > WORDS_MAX || words * sizeof *entry.bits > reader_left(reader))
        return false;
    entry.words = (uint32_t)words;
    if (words > 0)
        entry.bits = mem_alloc(words * sizeof *entry.bits);
    for (uint64_t i = 0; i < words; i++)
        entry.bits[i] = read_u64(reader);
    if (words > 0 && ((entry.bits[0] & 1) != 0 || entry.bits[words - 1] == 0)) {
        free(entry.bits);
        return false;
    }
    *ret_entry = entry;
    return true;
}

err mclock_decode(struct reader *reader, struct mclock *ret_clock)
{
    uint64_t era = read_compact(reader), count = read_compact(reader);
    struct mclock clock = { .era = (uint16_t)era };

    /* The shortest entry takes 19 bytes: what is not there is not allocated. */
    if (reader->bad || era > MERGE_ERA_MAX || count > MCLOCK_ACTORS_MAX ||
        count * 19 > reader_left(reader))
        return ERR_CORRUPT;
    clock.capacity = (uint32_t)count;
    if (count > 0)
        clock.actors = mem_zalloc(count * sizeof *clock.actors);
    for (uint64_t i = 0; i < count; i++) {
        struct mclock_actor *entry = &clock.actors[i];

        if (!entry_decode(reader, entry)) {
            mclock_deinit(&clock);
            return ERR_CORRUPT;
        }
        clock.count++;
        if ((i > 0 && entry->actor <= entry[-1].actor) || is_forgotten(&clock, entry->actor)) {
            mclock_deinit(&clock);
            return ERR_CORRUPT;
        }
    }
    *ret_clock = clock;
    return ERR_OK;
}
