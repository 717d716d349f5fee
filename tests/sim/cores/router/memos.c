/*
 * What a router remembers of counts (router/core/count_memo.h) and of targets (metadata_memo.h),
 * and when it spares an endpoint of metadata (metadata_breaker.h), beside what was told to them.
 */
#include <string.h>

#include "router/core/count_memo.h"
#include "router/core/metadata_breaker.h"
#include "router/core/metadata_memo.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define STEPS 60u

/* ---- counts ---- */

#define COLLECTIONS 3u /* The last one is a counter with the name of the one before. */
#define TARGETS     5u
#define KEYS        (COLLECTIONS * (TARGETS + 1)) /* A collection's own number comes last of its. */

struct key {
    struct count_name name;
    struct count_known known;
    uint64_t asked; /* The order of leaving. 0: it is not there. */
};

struct counts {
    struct rsim *sim;
    struct count_memo *memo;
    struct key keys[KEYS];
    uint64_t asked, bytes, bytes_max, overhead, hits, misses, evictions;
};

static uint64_t bytes_of(const struct counts *c, const struct key *key)
{
    return c->overhead + key->name.collection.size + key->name.target.size;
}

static struct key *life_of(struct counts *c, const struct key *key)
{
    return &c->keys[(uint32_t)(key - c->keys) / (TARGETS + 1) * (TARGETS + 1) + TARGETS];
}

static void note(struct counts *c, struct key *key, const struct count_known *known)
{
    if (key->asked > 0) {
        if (key->known.gathered_ms <= known->gathered_ms)
            key->known = *known;
        return;
    }
    if (bytes_of(c, key) > c->bytes_max)
        return;
    key->asked = ++c->asked;
    key->known = *known;
    c->bytes += bytes_of(c, key);
    while (c->bytes > c->bytes_max) {
        struct key *oldest = key;
        for (uint32_t i = 0; i < KEYS; i++) {
            if (c->keys[i].asked > 0 && c->keys[i].asked < oldest->asked)
                oldest = &c->keys[i];
        }
        c->bytes -= bytes_of(c, oldest);
        oldest->asked = 0;
        c->evictions++;
    }
}

static void note_life(struct counts *c, struct key *key, uint64_t number, uint64_t gathered_ms)
{
    struct key *life = life_of(c, key);

    if (number == 0)
        return;
    note(c, life, &(struct count_known){ .collection_number = number, .gathered_ms = gathered_ms });
    if (life->asked > 0)
        life->asked = ++c->asked;
}

static bool is_known(struct counts *c, struct key *key, uint64_t since_ms)
{
    const struct key *life = life_of(c, key);

    return key->asked > 0 && key->known.gathered_ms >= since_ms &&
           (life->asked == 0 || life->known.collection_number == key->known.collection_number);
}

static void counts_look(struct counts *c)
{
    struct count_memo_stats stats = count_memo_stats(c->memo);
    uint64_t entries = 0;

    count_memo_check(c->memo);
    for (uint32_t i = 0; i < KEYS; i++) {
        struct key *key = &c->keys[i];
        struct count_known known = { 0 };
        entries += key->asked > 0;
        if (key->name.target.size == 0)
            continue;
        uint64_t since_ms = key->known.gathered_ms + rsim_between(c->sim, 0, 1);
        PROMISE(c->sim,
                count_memo_recall(c->memo, &key->name, since_ms, &known) ==
                    is_known(c, key, since_ms),
                "count %u is known, or not", i);
        PROMISE(c->sim,
                !is_known(c, key, since_ms) ||
                    (known.count == key->known.count && known.from_ms == key->known.from_ms &&
                     known.to_ms == key->known.to_ms),
                "count %u is another one", i);
    }
    PROMISE(c->sim, stats.entries == entries && stats.bytes == c->bytes,
            "%llu counts of %llu bytes", (unsigned long long)stats.entries,
            (unsigned long long)stats.bytes);
    PROMISE(c->sim,
            stats.hits == c->hits && stats.misses == c->misses && stats.evictions == c->evictions,
            "%llu hits, %llu misses, %llu evictions", (unsigned long long)stats.hits,
            (unsigned long long)stats.misses, (unsigned long long)stats.evictions);
}

static void counts_step(struct counts *c)
{
    uint32_t collection = (uint32_t)rsim_between(c->sim, 0, COLLECTIONS - 1);
    struct key *key = &c->keys[collection * (TARGETS + 1) + rsim_between(c->sim, 0, TARGETS - 1)];
    uint64_t deed = rsim_between(c->sim, 0, 9), now_ms = rsim_between(c->sim, 1, 40);
    struct count_known known = { .count = rsim_next(c->sim) % 100,
                                 .collection_number = rsim_chance(c->sim, 80)
                                                          ? 1 + now_ms / 20
                                                          : rsim_between(c->sim, 0, 3),
                                 .from_ms = (int64_t)now_ms,
                                 .to_ms = (int64_t)now_ms + 3,
                                 .gathered_ms = now_ms };

    if (deed < 5) {
        count_memo_put(c->memo, &key->name, &known);
        note(c, key, &known);
        note_life(c, key, known.collection_number, now_ms);
    } else if (deed < 9) {
        bool hit = is_known(c, key, now_ms);
        PROMISE(c->sim, count_memo_find(c->memo, &key->name, now_ms, &known) == hit,
                "a count is known, or not");
        c->hits += hit;
        c->misses += !hit;
        if (hit) {
            key->asked = ++c->asked;
            if (life_of(c, key)->asked > 0)
                life_of(c, key)->asked = ++c->asked;
        }
    } else {
        count_memo_note_life(c->memo, &key->name, known.collection_number, now_ms);
        note_life(c, key, known.collection_number, now_ms);
    }
}

/* How large a count without a name would be. */
static uint64_t overhead_of(void)
{
    struct count_memo *memo = count_memo_new(1 << 20);
    const struct count_name name = { .collection = SLICE_LITERAL("c"),
                                     .target = SLICE_LITERAL("t") };

    count_memo_put(memo, &name, &(struct count_known){ .gathered_ms = 1 });
    uint64_t bytes = count_memo_stats(memo).bytes - 2;
    count_memo_free(memo);
    return bytes;
}

static void counts_run(struct rsim *sim)
{
    static const char *const collections[COLLECTIONS] = { "a", "ab", "ab" };
    static const char *const targets[TARGETS] = { "c", "bc", "d", "a target whose name is long",
                                                  "e" };
    struct counts c = { .sim = sim, .overhead = overhead_of() };

    c.bytes_max = rsim_chance(sim, 30) ? 1 << 20 : c.overhead * rsim_between(sim, 1, 12) + 20;
    c.memo = count_memo_new(c.bytes_max);
    for (uint32_t i = 0; i < KEYS; i++) {
        uint32_t of = i / (TARGETS + 1), target = i % (TARGETS + 1);
        c.keys[i].name =
            (struct count_name){ .collection = slice_from_text(collections[of]),
                                 .target = target < TARGETS ? slice_from_text(targets[target])
                                                            : (struct slice){ 0 },
                                 .is_counter = of == COLLECTIONS - 1 };
    }
    for (uint32_t i = 0; i < STEPS; i++) {
        counts_step(&c);
        counts_look(&c);
    }
    sim->counts.counts_evicted += c.evictions;
    sim->counts.counts_hit += c.hits;
    count_memo_free(c.memo);
}

/* ---- targets ---- */

#define NAMES 40u
#define WAYS  8u /* Of what was used last, so many stay whatever their places are. */

struct target {
    char text[8];
    uint8_t packed[64];
    uint64_t size, learned_ms, used; /* used 0: it was never put. */
};

struct targets {
    struct rsim *sim;
    struct metadata_memo *memo;
    struct target names[NAMES];
    uint64_t used, hits, stale, misses;
    uint32_t count;
    bool roomy; /* Bytes are never short. */
};

static struct metadata_name name_of(const struct target *target)
{
    uint32_t size = (uint32_t)strlen(target->text);

    /* Two names may be one text, parted at another place. */
    return (struct metadata_name){ { (const uint8_t *)target->text, size - 2 },
                                   { (const uint8_t *)target->text + size - 2, 2 } };
}

static bool stays(const struct targets *t, const struct target *target)
{
    uint32_t later = 0;

    for (uint32_t i = 0; i < t->count; i++)
        later += t->names[i].used > target->used;
    return t->roomy && target->used > 0 && later < WAYS;
}

static void targets_put(struct targets *t, struct target *target)
{
    struct metadata_name name = name_of(target);
    struct metadata_memo_stats before = metadata_memo_stats(t->memo), after;
    uint64_t learned_ms = rsim_between(t->sim, 1, 30), size;
    uint8_t packed[sizeof target->packed];
    struct slice known;
    const struct metadata_ages all = { 0, 0 };

    size = rsim_between(t->sim, 0, sizeof packed);
    for (uint64_t i = 0; i < size; i++)
        packed[i] = (uint8_t)rsim_next(t->sim);
    bool there = metadata_memo_find(t->memo, &name, &all, &known) != METADATA_UNKNOWN;
    t->hits += there;
    t->misses += !there;
    metadata_memo_put(t->memo, &name, (struct slice){ packed, size }, learned_ms);
    after = metadata_memo_stats(t->memo);
    PROMISE(t->sim, after.entries + after.evictions == before.entries + before.evictions + !there,
            "%llu targets are known, and %llu are gone", (unsigned long long)after.entries,
            (unsigned long long)after.evictions);
    if (there)
        target->used = ++t->used;
    if (there && learned_ms < target->learned_ms)
        return;
    memcpy(target->packed, packed, size);
    target->size = size;
    target->learned_ms = learned_ms;
    target->used = ++t->used;
    PROMISE(t->sim,
            metadata_memo_find(t->memo, &name, &all, &known) == METADATA_YOUNG &&
                known.size == size && (size == 0 || memcmp(known.data, packed, size) == 0),
            "what was just learned is not known");
    t->hits++;
}

static void targets_find(struct targets *t, struct target *target)
{
    struct metadata_name name = name_of(target);
    struct metadata_ages ages = { .old_since_ms = rsim_between(t->sim, 0, 30) };
    struct slice known = { 0 };

    ages.young_since_ms = ages.old_since_ms + rsim_between(t->sim, 0, 5);
    enum metadata_age age = metadata_memo_find(t->memo, &name, &ages, &known);
    enum metadata_age wanted = target->used == 0 || target->learned_ms < ages.old_since_ms
                                   ? METADATA_UNKNOWN
                               : target->learned_ms < ages.young_since_ms ? METADATA_OLD
                                                                          : METADATA_YOUNG;
    t->hits += age == METADATA_YOUNG;
    t->stale += age == METADATA_OLD;
    t->misses += age == METADATA_UNKNOWN;
    PROMISE(t->sim, age == wanted || (age == METADATA_UNKNOWN && !stays(t, target)),
            "a target that was learned at %llu: %d", (unsigned long long)target->learned_ms,
            (int)age);
    if (age == METADATA_UNKNOWN)
        return;
    target->used = ++t->used;
    PROMISE(t->sim,
            known.size == target->size &&
                (known.size == 0 || memcmp(known.data, target->packed, known.size) == 0),
            "something else is known of a target");
}

static void targets_run(struct rsim *sim)
{
    struct targets t = { .sim = sim, .roomy = rsim_chance(sim, 60) };

    t.count = (uint32_t)rsim_between(sim, 1, NAMES);
    t.memo = metadata_memo_new(t.roomy ? 32768 : rsim_between(sim, 300, 2000));
    for (uint32_t i = 0; i < t.count; i++) {
        static const char *const heads[] = { "", "a", "aa", "b" };
        (void)memcpy(t.names[i].text, heads[i % 4], strlen(heads[i % 4]));
        t.names[i].text[strlen(heads[i % 4])] = (char)('a' + i / 4 % 3);
        t.names[i].text[strlen(heads[i % 4]) + 1] = (char)('a' + i / 12);
    }
    for (uint32_t i = 0; i < 3 * STEPS; i++) {
        struct target *target = &t.names[rsim_between(sim, 0, t.count - 1)];
        if (rsim_chance(sim, 50))
            targets_put(&t, target);
        else
            targets_find(&t, target);
        metadata_memo_check(t.memo);
    }
    struct metadata_memo_stats stats = metadata_memo_stats(t.memo);
    PROMISE(sim, stats.hits == t.hits && stats.stale == t.stale && stats.misses == t.misses,
            "%llu hits, %llu old, %llu misses", (unsigned long long)stats.hits,
            (unsigned long long)stats.stale, (unsigned long long)stats.misses);
    PROMISE(sim, !t.roomy || t.count > WAYS || stats.evictions == 0, "there was room for all");
    sim->counts.targets_evicted += stats.evictions;
    metadata_memo_free(t.memo);
}

/* ---- an endpoint ---- */

static void breaker_run(struct rsim *sim)
{
    struct metadata_breaker breaker = { 0 };
    uint64_t now_ms = 0, rests_until_ms = 0, rest_ms = 0;
    uint32_t failures = 0, under_way = 0;
    bool trying = false;

    for (uint32_t i = 0; i < STEPS; i++) {
        bool open = failures >= METADATA_FAILURES, asks;

        now_ms = open && now_ms < rests_until_ms && rsim_chance(sim, 50)
                     ? rsim_about(sim, rests_until_ms)
                     : now_ms + rsim_between(sim, 0, 300);
        PROMISE(sim, metadata_breaker_is_open(&breaker) == open, "%u failures", failures);
        asks = metadata_breaker_asks(&breaker, now_ms);
        PROMISE(sim, asks == (!open || (!trying && now_ms >= rests_until_ms)),
                "asked at %llu, rests until %llu", (unsigned long long)now_ms,
                (unsigned long long)rests_until_ms);
        under_way += asks;
        trying |= asks && open;
        if (under_way == 0 || rsim_chance(sim, 30))
            continue;
        under_way--;
        if (rsim_chance(sim, trying ? 30 : 10)) {
            metadata_breaker_succeeded(&breaker);
            failures = 0;
            trying = false;
            continue;
        }
        metadata_breaker_failed(&breaker, now_ms);
        if (open && !trying)
            continue; /* It was asked before the rest began. */
        failures++;
        trying = false;
        if (failures < METADATA_FAILURES)
            continue;
        rest_ms = open ? 2 * rest_ms : METADATA_REST_MS;
        rest_ms = rest_ms > METADATA_REST_MS_MAX ? METADATA_REST_MS_MAX : rest_ms;
        rests_until_ms = now_ms + rest_ms;
        sim->counts.endpoints_spared++;
    }
}

void room_memos(struct rsim *sim)
{
    counts_run(sim);
    targets_run(sim);
    breaker_run(sim);
}
