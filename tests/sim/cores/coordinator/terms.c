/*
 * Terms of a coordinator (coordinator/core/term.c, coord.c): one that lost its election, that was
 * told to halt, or whose etcd a node doubts, writes nothing and calls no one; answers of an earlier
 * term change nothing; and once it decides again all that was begun is brought to an end.
 */
#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/cluster/shard_change.h"
#include "tests/sim/cores/coordinator/pace.h"

#define FIRST   1000u
#define SERVERS 3u
#define TURNS   8u
#define DRAINED 3u

enum loss { LOST, DEPOSED, HALTED, DOUBTED, LOSSES };

struct reign {
    struct rsim *sim;
    struct pace *p;
    uint64_t policy, server; /* The next one. */
    bool drained, fourth;
};

/* Work of every kind. */
static void stir(struct reign *r)
{
    struct world *w = r->p->world;
    struct shard_wish wish = { .member_count = 3, .members = { 1, 2, 4 } };
    uint32_t shard = (uint32_t)rsim_between(r->sim, 0, PACE_SHARDS - 1);

    switch (rsim_between(r->sim, 0, 4)) {
    case 0:
        world_set_policy(w, r->policy++);
        break;
    case 1:
        if (r->drained)
            world_unwish_node(w, DRAINED);
        else
            world_wish_node(w, DRAINED, NODE_DRAIN);
        r->drained = !r->drained;
        break;
    case 2:
        if (r->server == SERVERS)
            break;
        world_server_up(w, FIRST + r->server);
        pace_run(r->p, 2);
        world_server_gone(w, FIRST + r->server++);
        break;
    case 3:
        if (!world_has(w, cluster_key_shard_wish(PACE_CLUSTER, shard)))
            world_wish_shard(w, shard, &wish);
        break;
    default:
        if (r->fourth)
            world_node_down(w, 4);
        else
            world_node_up(w, 4, r->policy);
        r->fourth = !r->fourth;
    }
}

static void lose(struct reign *r, enum loss loss)
{
    struct world *w = r->p->world;

    if (loss == LOST)
        world_step(w, (struct coord_event){ .type = COORD_LOST });
    else if (loss == DEPOSED)
        world_depose(w);
    else if (loss == HALTED)
        world_step(w, (struct coord_event){ .type = COORD_HALT });
    else
        world_node_doubts(w, 2, 1);
}

/* What is on its way may still be answered; nothing else is sent. One that does not hear that it
 * was deposed is refused by etcd, and stops then. */
static void idle_check(struct reign *r, enum loss loss)
{
    struct world *w = r->p->world;

    if (loss == DOUBTED)
        pace_run(r->p, 1); /* It looks at its nodes with the next tick. */
    pace_run(r->p, 1);
    pace_clear(r->p);
    stir(r);
    pace_run(r->p, 60);
    PROMISE(r->sim, r->p->write_count == 0, "a coordinator that does not decide writes");
    if (loss == DEPOSED)
        return;
    PROMISE(r->sim, r->p->sent_count == 0 && r->p->call_count == 0,
            "a coordinator that does not decide sends %u transactions and %u calls",
            r->p->sent_count, r->p->call_count);
    PROMISE(r->sim, !coord_is_active(w->coord) && world_stats(w).active == 0,
            "a coordinator that does not decide is active");
    PROMISE(r->sim,
            coord_is_halted(w->coord) == (loss == HALTED || loss == DOUBTED) &&
                world_stats(w).halted == (loss == HALTED || loss == DOUBTED),
            "a coordinator is %s", coord_is_halted(w->coord) ? "halted" : "not halted");
    PROMISE(r->sim, world_stats(w).nodes_doubting == (loss == DOUBTED), "doubts are told");
    PROMISE(r->sim, coord_work_left(w->coord) == NULL, "%s is left", coord_work_left(w->coord));
}

static void regain(struct reign *r, enum loss loss)
{
    struct world *w = r->p->world;

    if (loss == HALTED) { /* The restore is accepted: its records come again. */
        world_step(w, (struct coord_event){ .type = COORD_RESET });
        pace_run(r->p, 5);
        world_refresh(w);
    } else if (loss == DOUBTED) {
        world_node_doubts(w, 2, 0);
    } else {
        world_elect(w);
    }
    pace_run(r->p, 2);
    PROMISE(r->sim, coord_is_active(w->coord) && !coord_is_halted(w->coord),
            "a coordinator that may decide is not active");
    pace_clear(r->p);
}

static void rest_check(struct reign *r)
{
    struct world *w = r->p->world;
    struct coord_stats stats;

    if (!r->fourth)
        world_node_up(w, 4, 999);
    w->tick_ms = 20;
    for (uint32_t i = 0; i < 10; i++) {
        pace_clear(r->p);
        pace_run(r->p, 2000);
    }
    stats = world_stats(w);
    PROMISE(r->sim,
            stats.transactions_open == 0 && stats.calls_open == 0 && stats.changes_open == 0,
            "%llu transactions, %llu calls and %llu changes are left",
            (unsigned long long)stats.transactions_open, (unsigned long long)stats.calls_open,
            (unsigned long long)stats.changes_open);
    PROMISE(r->sim, stats.policy_pending == 0 && w->policy_version == r->policy - 1,
            "policy %llu is told, and %llu stands", (unsigned long long)w->policy_version,
            (unsigned long long)r->policy - 1);
    for (uint32_t i = 0; i < r->server; i++)
        PROMISE(r->sim, !world_server_known(w, FIRST + i), "server %u is never forgotten", i);
    for (uint32_t i = 0; i < PACE_SHARDS; i++) {
        struct shard_record record = world_shard(w, i);

        PROMISE(r->sim, record.member_count == 3 && !shard_change_is_open(&record),
                "shard %u does not come to rest", i);
        PROMISE(r->sim, !world_has(w, cluster_key_shard_wish(PACE_CLUSTER, i)),
                "shard %u is still to move", i);
        PROMISE(r->sim, !r->drained || record.owner != DRAINED, "shard %u is not drained", i);
        PROMISE(r->sim, coord_find_node(w->coord, record.owner) != NULL, "shard %u has no owner",
                i);
    }
}

void room_terms(struct rsim *sim)
{
    struct reign r = { .sim = sim, .p = pace_new(sim), .policy = 2 };

    r.p->world->limits.server_wait_ms = 50;
    r.p->world->limits.server_settle_ms = 20;
    r.p->world->limits.change_abort_ms = 200;
    r.p->world->limits.call_retry_ms = 10;
    r.p->world->limits.audit_interval_ms = rsim_chance(sim, 30) ? 50 : 0;
    pace_begin(r.p);
    world_set_policy(r.p->world, r.policy++);
    for (uint32_t i = 0; i < TURNS; i++) {
        enum loss loss = (enum loss)rsim_between(sim, 0, LOSSES - 1);

        for (uint32_t k = 0; k < 3; k++) {
            stir(&r);
            pace_run(r.p, rsim_between(sim, 0, 60));
        }
        for (uint64_t k = rsim_between(sim, 0, 3); k > 0; k--) /* Some is not answered yet. */
            pace_tick(r.p);
        lose(&r, loss);
        idle_check(&r, loss);
        regain(&r, loss);
        sim->counts.terms_ended++;
    }
    rest_check(&r);
    pace_free(r.p);
}
