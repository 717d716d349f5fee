/*
 * What shards have to do (coordinator/core/load.c; docs/nodes.md): once every node owns as many,
 * shards are exchanged for their load. The busiest node gives one to a node that has less to do by
 * more than the margin, for a quieter one, or for none if it owns one more; what helps most, if it
 * helps by half the margin at least; one exchange in load_exchange_ms. A node with a damaged
 * replica gives, and is given none.
 */
#include "runtime/base/check.h"
#include "tests/sim/cores/coordinator/pace.h"

#define NODES 3u

struct scales {
    struct rsim *sim;
    struct pace *p;
    uint64_t owners[PACE_SHARDS];
    uint64_t damaged;      /* That node is; 0: none. */
    uint64_t exchanged_ms; /* Last; 0: never. */
    uint32_t done;
};

static uint64_t load_of(const struct scales *s, uint64_t id)
{
    uint64_t load = 0;

    for (uint32_t i = 0; i < PACE_SHARDS; i++)
        load += s->owners[i] == id ? s->p->world->rates[i] : 0;
    return load;
}

static uint32_t owned_by(const struct scales *s, uint64_t id)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < PACE_SHARDS; i++)
        count += s->owners[i] == id;
    return count;
}

static uint64_t busiest_load(const struct scales *s)
{
    uint64_t most = 0;

    for (uint64_t id = 1; id <= NODES; id++)
        most = load_of(s, id) > most ? load_of(s, id) : most;
    return most;
}

/* That nodes may differ by: load_percent of the mean, or load_floor. */
static uint64_t margin_of(const struct scales *s)
{
    const struct coord_limits *limits = &s->p->world->limits;
    uint64_t total = load_of(s, 1) + load_of(s, 2) + load_of(s, 3);
    uint64_t margin = total / NODES * limits->load_percent / 100;

    return margin > limits->load_floor ? margin : limits->load_floor;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What the busier of the two has to do after that exchange; `taken` PACE_SHARDS: none. */
static uint64_t outcome_of(const struct scales *s, uint32_t given, uint32_t taken, uint64_t to)
{
    uint64_t back = taken < PACE_SHARDS ? s->p->world->rates[taken] : 0;
    uint64_t from_load = load_of(s, s->owners[given]) - s->p->world->rates[given] + back;

    return greater(from_load, load_of(s, to) + s->p->world->rates[given] - back);
}

/* The least that an exchange of that node with another could leave; UINT64_MAX: none is allowed. */
static uint64_t best_of(const struct scales *s, uint64_t from)
{
    uint64_t best = UINT64_MAX;

    for (uint32_t given = 0; given < PACE_SHARDS; given++) {
        for (uint64_t to = 1; to <= NODES && s->owners[given] == from; to++) {
            if (to == from || to == s->damaged || load_of(s, to) + margin_of(s) >= load_of(s, from))
                continue;
            for (uint32_t taken = 0; taken <= PACE_SHARDS; taken++) {
                bool allowed = taken == PACE_SHARDS
                                   ? owned_by(s, from) > owned_by(s, to)
                                   : s->owners[taken] == to && from != s->damaged &&
                                         s->p->world->rates[taken] < s->p->world->rates[given];
                uint64_t left = allowed ? outcome_of(s, given, taken, to) : UINT64_MAX;

                best = left < best ? left : best;
            }
        }
    }
    return best;
}

static bool helps(const struct scales *s, uint64_t left)
{
    return left != UINT64_MAX && left + margin_of(s) / 2 <= busiest_load(s);
}

/* One or two writes of one moment. */
static void exchange_judged(struct scales *s, const struct pace_write *writes, uint32_t count)
{
    uint64_t from = writes[0].before, to = writes[0].shard.owner;
    uint32_t given = (uint32_t)writes[0].id;
    uint32_t taken = count > 1 ? (uint32_t)writes[1].id : PACE_SHARDS;
    const struct pace_write *first = &writes[0];

    PROMISE(s->sim, count <= 2, "%u shards are exchanged at once", count);
    PROMISE(s->sim, load_of(s, from) == busiest_load(s), "a node that is not the busiest gives");
    PROMISE(s->sim, count == 1 || (writes[1].before == to && writes[1].shard.owner == from),
            "a third node is part of an exchange");
    for (uint32_t i = 0; i < count; i++)
        PROMISE(s->sim, writes[i].shard.owner != s->damaged,
                "a node with damage is given shard %u for its load", (unsigned)writes[i].id);
    PROMISE(s->sim, count == 2 || owned_by(s, from) > owned_by(s, to),
            "a shard is given for none, and the number is uneven then");
    PROMISE(s->sim, load_of(s, to) + margin_of(s) < load_of(s, from),
            "nodes that differ by %llu of %llu exchange shards",
            (unsigned long long)(load_of(s, from) - load_of(s, to)),
            (unsigned long long)margin_of(s));
    uint64_t left = outcome_of(s, given, taken, to);

    PROMISE(s->sim, left == best_of(s, from), "an exchange leaves %llu, another one %llu",
            (unsigned long long)left, (unsigned long long)best_of(s, from));
    PROMISE(s->sim, helps(s, left), "an exchange leaves %llu of %llu, and the margin is %llu",
            (unsigned long long)left, (unsigned long long)busiest_load(s),
            (unsigned long long)margin_of(s));
    PROMISE(s->sim,
            s->exchanged_ms == 0 ||
                (first->at_ms - s->exchanged_ms) % s->p->world->limits.load_exchange_ms == 0,
            "exchanges are %llu ms apart", (unsigned long long)(first->at_ms - s->exchanged_ms));
    s->exchanged_ms = first->at_ms;
    for (uint32_t i = 0; i < count; i++)
        s->owners[writes[i].id] = writes[i].shard.owner;
    s->done++;
}

static void writes_judged(struct scales *s)
{
    struct pace *p = s->p;

    for (uint32_t i = 0; i < p->write_count;) {
        uint32_t count = 1;

        if (p->writes[i].kind != CLUSTER_KEY_SHARD || p->writes[i].before == 0) {
            if (p->writes[i].kind == CLUSTER_KEY_SHARD) /* Placed. */
                s->owners[p->writes[i].id] = p->writes[i].shard.owner;
            i++;
            continue;
        }
        while (i + count < p->write_count && p->writes[i + count].at_ms == p->writes[i].at_ms)
            count++;
        exchange_judged(s, &p->writes[i], count);
        i += count;
    }
    pace_clear(p);
}

/* Nothing that would help is left; of nodes that have as much to do, one is looked at. */
static void rest_judged(struct scales *s)
{
    uint32_t busiest = 0, helped = 0;

    for (uint64_t id = 1; id <= NODES; id++) {
        busiest += load_of(s, id) == busiest_load(s);
        helped += load_of(s, id) == busiest_load(s) && helps(s, best_of(s, id));
    }
    PROMISE(s->sim, helped < busiest, "%llu operations/s, and an exchange would help by %llu",
            (unsigned long long)busiest_load(s), (unsigned long long)margin_of(s) / 2);
    PROMISE(s->sim, world_stats(s->p->world).exchanges == s->done, "exchanges are told as %llu",
            (unsigned long long)world_stats(s->p->world).exchanges);
}

/* One of a node's replicas of what another one owns. */
static void damage(struct scales *s)
{
    uint32_t shard = (uint32_t)rsim_between(s->sim, 0, PACE_SHARDS - 1);

    s->damaged = world_shard(s->p->world, shard).owner % NODES + 1;
    world_node_damaged(s->p->world, s->damaged, 1, shard);
}

void room_loads(struct rsim *sim)
{
    struct scales s = { .sim = sim, .p = pace_new(sim) };
    struct coord_limits *limits = &s.p->world->limits;
    bool off = rsim_chance(sim, 10);

    limits->rebalance = 1;
    limits->rebalance_up_ms = 0;
    limits->load_ask_ms = 100;
    limits->load_exchange_ms = off ? 0 : (uint32_t)rsim_between(sim, 150, 400);
    limits->load_floor = (uint32_t)rsim_between(sim, 1, 8) * 500;
    limits->load_percent = (uint32_t)rsim_between(sim, 1, 60);
    limits->claim_calm_ms = 0;
    limits->repair_wait_ms = 600000;
    /* From the beginning, whole operations each millisecond: so the averages are exact. */
    for (uint32_t i = 0; i < PACE_SHARDS; i++)
        s.p->world->rates[i] = rsim_between(sim, 0, 9) * 1000;
    world_replace_coordinator(s.p->world);
    s.p->world->tick_ms = 1;
    for (uint64_t id = 1; id <= NODES; id++)
        world_node_up(s.p->world, id, 1);
    world_elect(s.p->world);
    bool damages = rsim_chance(sim, 50);

    for (uint32_t i = 0; i < 12; i++) {
        if (i == 1 && damages)
            damage(&s);
        writes_judged(&s);
        pace_run(s.p, 400);
    }
    writes_judged(&s);
    PROMISE(sim, !off || (s.done == 0 && s.p->world->states == 0),
            "exchanges are off, and shards are exchanged or asked");
    if (!off)
        rest_judged(&s);
    sim->counts.loads_exchanged += s.done;
    pace_free(s.p);
}
