/* What each caller holds now (runtime/base/caller_share.h), and the sum of what shards count
 * (count_sum.h). */
#include <string.h>

#include "runtime/base/caller_share.h"
#include "router/core/count_sum.h"
#include "tests/sim/cores/rsim.h"

#define CALLERS 5u
#define SHARDS  6u
#define TARGETS 3u

static void shares_run(struct rsim *sim)
{
    struct caller_shares *shares = caller_shares_new();
    uint64_t names[CALLERS], held[CALLERS] = { 0 };
    uint64_t limit = rsim_between(sim, 1, 20);

    for (uint32_t i = 0; i < CALLERS; i++) /* Some in one place. */
        names[i] = 7 + i * (rsim_chance(sim, 50) ? 1024u : 1025u);
    for (uint32_t i = 0; i < 60; i++) {
        uint32_t at = (uint32_t)rsim_between(sim, 0, CALLERS - 1);
        uint64_t amount = rsim_chance(sim, 30) && held[at] < limit
                              ? rsim_about(sim, limit - held[at])
                              : rsim_between(sim, 0, 30);

        if (rsim_chance(sim, 35)) {
            amount = rsim_chance(sim, 40) ? held[at] : rsim_between(sim, 0, held[at]);
            caller_share_give(shares, names[at], amount);
            held[at] -= amount;
        } else {
            bool fits = amount == 0 || held[at] == 0 || held[at] + amount <= limit;
            PROMISE(sim, caller_share_take(shares, names[at], amount, limit) == fits,
                    "%llu for a caller that holds %llu of %llu", (unsigned long long)amount,
                    (unsigned long long)held[at], (unsigned long long)limit);
            held[at] += fits ? amount : 0;
            sim->counts.shares_refused += !fits;
        }
        for (uint32_t k = 0; k < CALLERS; k++)
            PROMISE(sim, caller_share_held(shares, names[k]) == held[k],
                    "a caller holds %llu, not %llu",
                    (unsigned long long)caller_share_held(shares, names[k]),
                    (unsigned long long)held[k]);
        caller_shares_check(shares);
    }
    for (uint32_t i = 0; i < CALLERS; i++)
        caller_share_give(shares, names[i], held[i]);
    caller_shares_free(shares);
}

static void sums_run(struct rsim *sim)
{
    struct count_sum sum;
    uint64_t counts[TARGETS], wanted[TARGETS] = { 0 };
    bool told[SHARDS] = { false };
    int64_t first_ms = INT64_MAX, last_ms = 0;
    uint32_t whole = 0;

    count_sum_init(&sum, SHARDS, TARGETS, &sim->arena);
    while (whole < SHARDS) {
        struct count_part part = { .shard = (uint32_t)rsim_between(sim, 0, SHARDS),
                                   .collection_number = rsim_chance(sim, 3) ? 8 : 7,
                                   .at_ms = (int64_t)rsim_between(sim, 1, 1000),
                                   .count = rsim_chance(sim, 3) ? TARGETS - 1 : TARGETS,
                                   .counts = counts };
        bool large = rsim_chance(sim, 2), past = false;

        for (uint32_t i = 0; i < TARGETS; i++) {
            counts[i] = large ? (UINT64_C(1) << 62) : rsim_between(sim, 0, 9);
            past |= wanted[i] + counts[i] >= UINT64_C(1) << 63;
        }
        bool other = whole > 0 && part.collection_number != sum.collection_number;
        bool corrupt = part.shard == SHARDS || part.count != TARGETS || told[part.shard];
        PROMISE(sim, count_sum_is_whole(&sum) == (whole == SHARDS), "whole, or not");
        err e = count_sum_add(&sum, &part);
        if (corrupt || other || past) {
            PROMISE(sim, e == ERR_CORRUPT || (other && e == ERR_CONFLICT),
                    "an answer that makes no sense is added: %d", (int)e);
            PROMISE(sim, other || e == ERR_CORRUPT, "the same collection is another one");
            if (part.shard < SHARDS && !told[part.shard])
                return; /* The sum is of no use. */
            continue;
        }
        PROMISE(sim, e == ERR_OK, "an answer is refused: %d", (int)e);
        told[part.shard] = true;
        whole++;
        first_ms = part.at_ms < first_ms ? part.at_ms : first_ms;
        last_ms = part.at_ms > last_ms ? part.at_ms : last_ms;
        for (uint32_t i = 0; i < TARGETS; i++)
            wanted[i] += counts[i];
    }
    PROMISE(sim, count_sum_is_whole(&sum) && sum.from_ms == first_ms && sum.to_ms == last_ms,
            "another time, or no whole");
    PROMISE(sim, memcmp(sum.counts, wanted, sizeof wanted) == 0, "another sum");
    sim->counts.sums_whole++;
}

void room_shares(struct rsim *sim)
{
    for (uint32_t i = 0; i < 6; i++) {
        shares_run(sim);
        sums_run(sim);
    }
}
