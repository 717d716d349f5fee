/*
 * Cuts of many currencies (coordinator/core/audit.c; docs/containment.md): as many as an audit
 * tells apart, each of which moves between shards. A cut is wrong if one of them does not come to
 * zero; it is told once, and again when it is wrong in another way; one that is right again is told
 * as such.
 * What is on its way between two shards is no part of a cut before it has come.
 */
#include <stdio.h>
#include <string.h>

#include "coordinator/core/world.h"
#include "tests/sim/cores/rsim.h"

#define SHARDS  WORLD_CUT_SHARDS
#define EACH    32u /* That a shard, and one of its neighbours, hold. */
#define COUNT   (SHARDS * EACH)
#define PASS_MS 4000u

struct ledger {
    struct rsim *sim;
    struct world *world;
    int64_t held[SHARDS][COUNT];
    int64_t told[COUNT]; /* What was too much at the last look. */
    uint64_t violations;
    char names[COUNT][8];
    Holdfast__V1__CurrencyAmount amounts[2][COUNT], *lists[2][COUNT]; /* Lent to an answer. */
    uint32_t lent;
};

static void counted(void *user, uint32_t shard, bool with_buckets,
                    Holdfast__Internal__V1__CutTotals *part)
{
    struct ledger *l = user;
    uint32_t lent = l->lent++ % 2;

    (void)with_buckets;
    part->amounts = l->lists[lent];
    part->n_amounts = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        if (l->held[shard][i] == 0)
            continue;
        Holdfast__V1__CurrencyAmount *amount = &l->amounts[lent][part->n_amounts];

        holdfast__v1__currency_amount__init(amount);
        amount->currency = l->names[i];
        amount->amount = l->held[shard][i];
        l->lists[lent][part->n_amounts++] = amount;
    }
}

/* Wallets are as their ledgers say. */
static void searched(void *user, const Holdfast__Internal__V1__AuditSearchRequest *request,
                     Holdfast__Internal__V1__AuditSearchResponse *response)
{
    (void)user;
    (void)request;
    (void)response;
}

static int64_t net_of(const struct ledger *l, uint32_t currency)
{
    int64_t net = 0;

    for (uint32_t shard = 0; shard < SHARDS; shard++)
        net += l->held[shard][currency];
    return net;
}

/* Moved to a neighbour, which is right; or made, lost or put right in a few currencies. */
static void turn(struct ledger *l)
{
    uint32_t currency = (uint32_t)rsim_between(l->sim, 0, COUNT - 1);
    uint32_t shard = currency / EACH, next = (shard + 1) % SHARDS;
    int64_t amount = (int64_t)rsim_between(l->sim, 1, 50);

    l->held[shard][currency] -= amount;
    if (rsim_chance(l->sim, 40))
        l->held[next][currency] += amount;
    if (rsim_chance(l->sim, 20)) /* As much of another one is there instead. */
        l->held[shard][(currency + 1) % COUNT] += amount;
    for (uint32_t i = 0; i < COUNT && rsim_chance(l->sim, 40); i++)
        l->held[i / EACH][i] -= net_of(l, i);
}

static void judged(struct ledger *l)
{
    struct coord_stats stats = world_stats(l->world);
    uint32_t wrong = 0;
    bool other = false;

    for (uint32_t i = 0; i < COUNT; i++) {
        wrong += net_of(l, i) != 0;
        other |= net_of(l, i) != l->told[i];
        l->told[i] = net_of(l, i);
    }
    PROMISE(l->sim, stats.audit_imbalance == (wrong > 0), "%u currencies are wrong: imbalance %d",
            wrong, (int)stats.audit_imbalance);
    PROMISE(l->sim, stats.audit_violations - l->violations == (wrong > 0 && other),
            "%u currencies are wrong, %s before: told %u times", wrong, other ? "not" : "as",
            (unsigned)(stats.audit_violations - l->violations));
    l->violations = stats.audit_violations;
    l->sim->counts.sums_wrong += wrong > 1;
}

/* Sent by one shard, and not there yet: no cut counts meanwhile, and none is wrong. */
static void transfer(struct ledger *l)
{
    uint32_t currency = (uint32_t)rsim_between(l->sim, 0, COUNT - 1);
    uint32_t shard = currency / EACH;
    struct coord_stats before = world_stats(l->world), after;

    l->held[shard][currency] -= (int64_t)rsim_between(l->sim, 1, 50);
    l->world->open[shard] = rsim_between(l->sim, 1, 3);
    world_run(l->world, PASS_MS);
    after = world_stats(l->world);
    PROMISE(l->sim,
            after.audit_violations == before.audit_violations &&
                after.audit_imbalance == before.audit_imbalance,
            "what is on its way is taken for lost");
    PROMISE(l->sim, after.audit_cuts <= before.audit_cuts + 2, "%llu cuts with an open record",
            (unsigned long long)(after.audit_cuts - before.audit_cuts));
}

void room_sums(struct rsim *sim)
{
    struct ledger *l = arena_zalloc(&sim->arena, sizeof *l);

    l->sim = sim;
    l->world = world_new();
    for (uint32_t i = 0; i < COUNT; i++) {
        (void)snprintf(l->names[i], sizeof l->names[i], "c%u", i % 1000);
        l->held[i / EACH][i] = (int64_t)rsim_between(sim, 1, 100);
        l->held[(i / EACH + 1) % SHARDS][i] = -l->held[i / EACH][i];
    }
    l->world->watch = (struct world_watch){ .user = l, .counted = counted, .searched = searched };
    world_start(l->world);
    world_run(l->world, PASS_MS);
    judged(l);
    for (uint32_t i = 0; i < 3; i++) {
        turn(l);
        world_run(l->world, PASS_MS);
        judged(l);
    }
    transfer(l);
    world_free(l->world);
}
