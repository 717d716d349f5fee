/*
 * The audit of all goods (coordinator/core/audit.c, audit_search.c; docs/containment.md): a cut
 * that does not come to zero is told once, and only players who account for it are held back.
 */
#include <string.h>

#include "coordinator/core/world.h"
#include "tests/sim/cores/rsim.h"

#define SHARDS 8u

struct books {
    struct rsim *sim;
    struct world *world;
    int64_t gold, rich;
    uint32_t holders;
    bool open;
    int64_t doubled;     /* How often: no two damages come to the same sum. */
    bool damaged;        /* At some time since all had settled; */
    bool guilty[SHARDS]; /* the player held too much then, and is held back even if put right. */
};

/* Another holder is another sum: one that is known is not searched for again. */
static int32_t more_of(const struct books *b, int32_t items)
{
    return items != b->world->items ? items : items % 3 + 1;
}

/* Sent from one shard to another, doubled in one, or held beside the ledger. */
static void turn(struct books *b)
{
    struct world *w = b->world;
    uint32_t from = (uint32_t)rsim_between(b->sim, 0, SHARDS - 1);
    uint32_t to = (uint32_t)rsim_between(b->sim, 0, SHARDS - 1);
    int64_t amount = (int64_t)rsim_between(b->sim, 1, 9);

    switch (rsim_between(b->sim, 0, 7)) {
    case 0:
    case 1:
        w->gold[from] -= amount;
        w->gold[to] += amount;
        break;
    case 2:
        amount += 16 * ++b->doubled;
        w->gold[from] += amount;
        w->rich[from] += rsim_chance(b->sim, 70) ? amount : 0;
        break;
    case 3:
        w->holds[from] = true;
        w->holds[to] = true;
        w->items = more_of(b, from == to ? 1 : (int32_t)rsim_between(b->sim, 1, 3));
        break;
    case 4: /* An operator put it right. */
        memset(w->gold, 0, sizeof w->gold);
        memset(w->rich, 0, sizeof w->rich);
        memset(w->holds, 0, sizeof w->holds);
        w->items = 0;
        break;
    case 5:
        w->deaf_node = rsim_between(b->sim, 0, 3);
        w->garbled_node = rsim_chance(b->sim, 30) ? rsim_between(b->sim, 1, 3) : 0;
        break;
    case 6:
        memset(w->open, 0, sizeof w->open);
        w->open[from] = rsim_chance(b->sim, 40);
        break;
    default:
        w->uncontainable = rsim_chance(b->sim, 20);
    }
}

static void measure(struct books *b)
{
    b->gold = b->rich = 0;
    b->holders = 0;
    b->open = false;
    for (uint32_t i = 0; i < SHARDS; i++) {
        b->gold += b->world->gold[i];
        b->holders += b->world->holds[i];
        b->open |= b->world->open[i] > 0;
    }
}

static void damage_noted(struct books *b)
{
    measure(b);
    b->damaged |= b->gold != 0 || b->world->items != 0;
    for (uint32_t i = 0; i < SHARDS; i++)
        b->guilty[i] |= b->world->rich[i] != 0 || b->world->holds[i];
}

/* Nothing more happens for some cuts. */
static void settled_check(struct books *b, const bool *contained_before)
{
    struct world *w = b->world;
    struct coord_stats stats = world_stats(w);
    bool wrong = b->gold != 0 || w->items != 0;
    /* Each holder is one too many, or all but one are. */
    bool items_told =
        w->items != 0 && (b->holders == (uint32_t)w->items || b->holders == (uint32_t)w->items + 1);

    PROMISE(b->sim, stats.audit_imbalance == wrong, "%lld gold and %d items too many: imbalance %d",
            (long long)b->gold, w->items, (int)stats.audit_imbalance);
    for (uint32_t i = 0; i < SHARDS; i++) {
        bool newly = w->contained[i] && !contained_before[i];
        bool rich = w->rich[i] != 0 && b->gold != 0;
        bool holder = w->holds[i] && items_told;

        PROMISE(b->sim, !newly || wrong || b->damaged,
                "a player of shard %u is held back for nothing", i);
        PROMISE(b->sim, !newly || b->guilty[i] || w->rich[i] != 0 || w->holds[i],
                "the player of shard %u is held back, who holds nothing too much", i);
        PROMISE(b->sim, w->contained[i] || !rich,
                "the player of shard %u has more than the ledger says, and goes on", i);
        if ((rich || holder) && b->sim->seed % 2 == 0)
            b->sim->counts.players_contained += w->contained[i];
    }
    b->sim->counts.imbalances += wrong;
    b->damaged = false;
    memset(b->guilty, 0, sizeof b->guilty);
}

void room_audits(struct rsim *sim)
{
    struct books b = { .sim = sim, .world = world_new() };
    bool before[SHARDS];

    world_start(b.world);
    for (uint32_t i = 0; i < 8; i++) {
        memcpy(before, b.world->contained, sizeof before);
        damage_noted(&b);
        uint64_t told = world_stats(b.world).audit_violations;
        turn(&b);
        world_run(b.world, rsim_between(sim, 500, 3000));
        if (rsim_chance(sim, 60))
            continue;
        b.world->deaf_node = b.world->garbled_node = 0;
        b.world->uncontainable = false;
        world_run(b.world, 9000);
        measure(&b);
        if (b.open)
            continue;
        world_run(b.world, 6000);
        settled_check(&b, before);
        uint64_t now_told = world_stats(b.world).audit_violations;
        PROMISE(sim, now_told - told <= 6, "one imbalance is told %u times",
                (unsigned)(now_told - told));
        world_run(b.world, 4000);
        PROMISE(sim, world_stats(b.world).audit_violations == now_told,
                "an imbalance that is known is told again");
    }
    world_free(b.world);
}
