/*
 * When shards are placed, claimed, handed over, changed and repaired (coord_limits.h): each time
 * is set at random, and what it puts off comes at that time, to the millisecond. Who gets a shard,
 * and why, owners.c judges; game servers, timings.c.
 */
#include <string.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/cluster/shard_change.h"
#include "tests/sim/cores/coordinator/pace.h"

/* Of writes that give the shard, or any (PACE_SHARDS), to another owner. */
static uint32_t moves_of(const struct pace *p, uint32_t shard, uint64_t *ret_last_ms)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < p->write_count; i++) {
        const struct pace_write *write = &p->writes[i];

        if (write->kind != CLUSTER_KEY_SHARD || (shard != PACE_SHARDS && write->id != shard) ||
            write->shard.owner == write->before)
            continue;
        count++;
        *ret_last_ms = write->at_ms;
    }
    return count;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- first placement ---- */

/* No new node for placement_settle_ms, and no fewer than there are to be replicas. */
static void placed(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    uint32_t settle_ms = (uint32_t)rsim_between(sim, 5, 120);
    uint64_t pause_ms = rsim_about(sim, settle_ms), due_ms;

    p->world->limits.placement_settle_ms = settle_ms;
    pace_begin_empty(p);
    world_elect(p->world);
    pace_run(p, 20);
    world_node_up(p->world, 1, 1);
    world_node_up(p->world, 2, 1);
    pace_run(p, 2u * settle_ms);
    PROMISE(sim, pace_write_of(p, CLUSTER_KEY_SHARD, 0) == NULL, "placed on two nodes of three");
    world_node_up(p->world, 3, 1);
    due_ms = pace_now(p) + settle_ms;
    pace_run(p, pause_ms);
    world_node_up(p->world, 4, 1);
    if (pause_ms < settle_ms)
        due_ms = pace_now(p) + settle_ms;
    pace_run(p, settle_ms + 5);
    for (uint32_t i = 0; i < PACE_SHARDS; i++) {
        const struct pace_write *write = pace_write_of(p, CLUSTER_KEY_SHARD, i);

        PROMISE(sim, write != NULL && write->at_ms == due_ms,
                "shard %u is placed %lld ms after the nodes were there", i,
                write != NULL ? (long long)(write->at_ms - due_ms + settle_ms) : -1);
        PROMISE(sim, write->shard.epoch == 1 && write->shard.config == 1,
                "a first record is not the first");
    }
    pace_free(p);
}

/* ---- hand-overs ---- */

/* Node 3 went away and came back: it is handed shards once all nodes are up for rebalance_up_ms,
 * and no shard within claim_calm_ms of its last change; then one in rebalance_period_ms. */
static void spread(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    struct coord_limits *limits = &p->world->limits;
    uint64_t away_ms, back_ms, last_ms = 0;

    limits->rebalance = !rsim_chance(sim, 15);
    limits->rebalance_up_ms = (uint32_t)rsim_between(sim, 20, 200);
    limits->claim_calm_ms = (uint32_t)rsim_between(sim, 0, 300);
    limits->rebalance_period_ms = (uint32_t)rsim_between(sim, 1, 60);
    pace_begin(p);
    away_ms = pace_now(p);
    world_node_down(p->world, 3);
    pace_run(p, 10);
    for (uint32_t i = 0; i < PACE_SHARDS; i++)
        PROMISE(sim, world_shard(p->world, i).owner != 3, "node 3 is gone and owns shard %u", i);
    world_node_up(p->world, 3, 2);
    back_ms = pace_now(p);
    pace_clear(p);
    uint64_t due_ms = back_ms + limits->rebalance_up_ms;

    bool calm = away_ms + limits->claim_calm_ms <= due_ms; /* The shards that moved, by then. */
    uint32_t moves = 0;

    pace_run(p, later(due_ms, away_ms + limits->claim_calm_ms) + 300 - pace_now(p));

    for (uint32_t i = 0; i < p->write_count; i++) {
        const struct pace_write *write = &p->writes[i];

        if (write->kind != CLUSTER_KEY_SHARD || write->shard.owner == write->before)
            continue;
        uint64_t gap_ms = write->at_ms - last_ms;

        PROMISE(sim, moves > 0 || write->at_ms == due_ms,
                "the first hand-over comes %lld ms too late", (long long)(write->at_ms - due_ms));
        PROMISE(sim,
                moves == 0 || gap_ms == limits->rebalance_period_ms ||
                    (!calm && gap_ms % limits->rebalance_period_ms == 0),
                "hand-over %u comes after %llu ms", moves, (unsigned long long)gap_ms);
        PROMISE(sim, write->shard.owner == 3, "a node that owns enough is handed a shard");
        last_ms = write->at_ms;
        moves++;
    }
    PROMISE(sim, moves == (limits->rebalance != 0 ? 2 : 0), "%u shards are handed over", moves);
    PROMISE(sim, world_stats(p->world).handovers == moves, "%u hand-overs are told as %llu", moves,
            (unsigned long long)world_stats(p->world).handovers);
    sim->counts.handovers_timed += moves > 0;
    pace_free(p);
}

/* The first at once, then one in drain_period_ms, to the one that owns least. */
static void drained(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    uint32_t period_ms = (uint32_t)rsim_between(sim, 1, 60), moves = 0;
    uint64_t node = rsim_between(sim, 1, 3), due_ms;
    uint32_t owned[4] = { 0 }, had;

    p->world->limits.drain_period_ms = period_ms;
    pace_begin(p);
    for (uint64_t id = 1; id <= 3; id++)
        owned[id] = world_owned(p->world, id);
    had = owned[node];
    world_wish_node(p->world, node, NODE_DRAIN);
    due_ms = pace_now(p) + 1;
    pace_run(p, 8u * period_ms + 8);
    for (uint32_t i = 0; i < p->write_count; i++) {
        const struct pace_write *write = &p->writes[i];
        uint64_t other = 6 - node - write->shard.owner;

        if (write->kind != CLUSTER_KEY_SHARD)
            continue;
        PROMISE(sim, write->before == node && write->at_ms == due_ms,
                "a drain's hand-over %u comes %lld ms too late", moves,
                (long long)(write->at_ms - due_ms));
        PROMISE(sim, owned[write->shard.owner] <= owned[other],
                "node %llu, which owns more, is given a shard",
                (unsigned long long)write->shard.owner);
        owned[write->shard.owner]++;
        due_ms += period_ms;
        moves++;
    }
    PROMISE(sim, moves == had && world_owned(p->world, node) == 0, "%u of %u shards are drained",
            moves, had);
    pace_free(p);
}

/* ---- claims ---- */

struct claim {
    uint32_t shard;
    uint64_t owner, others[2];
};

static struct claim claim_of(struct pace *p)
{
    struct claim claim = { .shard = (uint32_t)rsim_between(p->sim, 0, PACE_SHARDS - 1) };

    claim.owner = world_shard(p->world, claim.shard).owner;
    for (uint64_t id = 1, n = 0; id <= 3; id++) {
        if (id != claim.owner)
            claim.others[n++] = id;
    }
    if (rsim_chance(p->sim, 50)) {
        uint64_t first = claim.others[0];

        claim.others[0] = claim.others[1];
        claim.others[1] = first;
    }
    return claim;
}

/* Both others have to say so, long enough and within report_valid_ms; the one that has more of the
 * log owns the shard then. */
static void claimed(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    struct coord_limits *limits = &p->world->limits;
    bool closed = rsim_chance(sim, 50), enough = true;
    uint64_t counters[2], pause_ms, last_ms = 0;

    limits->claim_closed_ms = (uint32_t)rsim_between(sim, 10, 50);
    limits->claim_silent_ms = (uint32_t)rsim_between(sim, 60, 100);
    limits->report_valid_ms = (uint32_t)rsim_between(sim, 10, 100);
    pace_begin(p);
    struct claim claim = claim_of(p);

    pause_ms = rsim_chance(sim, 30) ? 0 : rsim_about(sim, limits->report_valid_ms);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t least_ms = closed ? limits->claim_closed_ms : limits->claim_silent_ms;

        counters[i] = rsim_between(sim, 1, 3);
        p->world->since_ms = rsim_chance(sim, 40) ? (uint32_t)rsim_about(sim, least_ms) : least_ms;
        enough = enough && p->world->since_ms >= least_ms;
        world_report(p->world, claim.others[i], claim.shard, closed ? "closed" : "silent",
                     counters[i]);
        if (i == 0) {
            PROMISE(sim, p->write_count == 0, "one of three deposes an owner");
            pace_run(p, pause_ms);
        }
    }
    uint64_t at_ms = pace_now(p);

    pace_run(p, 5);
    bool due = enough && pause_ms <= limits->report_valid_ms;

    PROMISE(sim, moves_of(p, PACE_SHARDS, &last_ms) == due && (!due || last_ms == at_ms),
            "two reports %llu ms apart: claimed %u times", (unsigned long long)pause_ms,
            moves_of(p, PACE_SHARDS, &last_ms));
    if (due && counters[0] != counters[1])
        PROMISE(sim,
                world_shard(p->world, claim.shard).owner ==
                    claim.others[counters[0] > counters[1] ? 0 : 1],
                "the replica that has less of the log is preferred");
    sim->counts.claims_timed += due;
    pace_free(p);
}

/* A shard that changed is claimed claim_calm_ms later at the earliest. */
static void calm(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    uint32_t calm_ms = (uint32_t)rsim_between(sim, 5, 80);
    uint64_t changed_ms, asked_ms, last_ms = 0;

    p->world->limits.claim_calm_ms = calm_ms;
    p->world->limits.report_valid_ms = 100;
    pace_begin(p);
    struct claim claim = claim_of(p);

    world_report(p->world, claim.others[0], claim.shard, "silent", 1);
    world_report(p->world, claim.others[1], claim.shard, "silent", 1);
    changed_ms = pace_now(p);
    PROMISE(sim, moves_of(p, claim.shard, &last_ms) == 1, "a silent owner keeps its shard");
    pace_run(p, rsim_about(sim, calm_ms));
    pace_clear(p);
    uint64_t heir = world_shard(p->world, claim.shard).owner;

    asked_ms = pace_now(p);
    for (uint64_t id = 1; id <= 3; id++) {
        if (id != heir)
            world_report(p->world, id, claim.shard, "silent", 1);
    }
    pace_run(p, 5);
    PROMISE(sim,
            moves_of(p, claim.shard, &last_ms) == 1 &&
                last_ms == later(asked_ms, changed_ms + calm_ms),
            "a shard that changed %llu ms ago is claimed %lld ms later",
            (unsigned long long)(asked_ms - changed_ms), (long long)(last_ms - changed_ms));
    pace_free(p);
}

/* A node that was claimed against is handed nothing for rebalance_shun_ms, and then it is; a new
 * life of it is a new beginning. */
static void shunned(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    uint32_t shun_ms = (uint32_t)rsim_between(sim, 100, 300);
    bool restarts = rsim_chance(sim, 30);
    uint64_t claimed_ms, last_ms = 0;

    p->world->limits.rebalance = 1;
    p->world->limits.rebalance_up_ms = 10;
    p->world->limits.rebalance_shun_ms = shun_ms;
    p->world->limits.rebalance_period_ms = 10;
    p->world->limits.claim_calm_ms = 50;
    pace_begin(p);
    struct claim claim = claim_of(p);

    /* It loses all that it owns. */
    for (uint32_t i = 0; i < PACE_SHARDS; i++) {
        if (world_shard(p->world, i).owner != claim.owner)
            continue;
        world_report(p->world, claim.others[0], i, "silent", 1);
        world_report(p->world, claim.others[1], i, "silent", 1);
    }
    claimed_ms = pace_now(p);
    PROMISE(sim, world_owned(p->world, claim.owner) == 0, "a silent owner keeps a shard");
    if (restarts) {
        pace_run(p, 20);
        world_node_down(p->world, claim.owner);
        world_node_up(p->world, claim.owner, 2);
        pace_run(p, 2100); /* It may just have been looked at. */
        PROMISE(sim, world_owned(p->world, claim.owner) > 0, "a node that restarted is shunned");
        pace_free(p);
        return;
    }
    pace_run(p, shun_ms - 1);
    PROMISE(sim, world_owned(p->world, claim.owner) == 0, "handed a shard after %llu of %u ms",
            (unsigned long long)(pace_now(p) - claimed_ms), shun_ms);
    pace_run(p, 2100);
    PROMISE(sim, world_owned(p->world, claim.owner) == 2,
            "a node that is shunned no more owns %u shards", world_owned(p->world, claim.owner));
    (void)moves_of(p, PACE_SHARDS, &last_ms);
    PROMISE(sim, last_ms >= claimed_ms + shun_ms, "handed a shard too early");
    pace_free(p);
}

static void claim_all(struct pace *p, uint64_t owner)
{
    for (uint32_t i = 0; i < PACE_SHARDS; i++) {
        for (uint64_t id = 1; id <= 3 && world_shard(p->world, i).owner == owner; id++) {
            if (id != owner)
                world_report(p->world, id, i, "silent", 1);
        }
    }
    PROMISE(p->sim, world_owned(p->world, owner) == 0, "a silent owner keeps a shard");
}

/* One after the other: each is shunned for as long. */
static void two_shunned(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    uint32_t shun_ms = (uint32_t)rsim_between(sim, 200, 300);

    p->world->limits.rebalance = 1;
    p->world->limits.rebalance_up_ms = 10;
    p->world->limits.rebalance_shun_ms = shun_ms;
    p->world->limits.rebalance_period_ms = 10;
    p->world->limits.claim_calm_ms = 50;
    pace_begin(p);
    struct claim claim = claim_of(p);

    claim_all(p, claim.owner);
    uint64_t first_ms = pace_now(p);

    pace_run(p, 60);
    claim_all(p, claim.others[0]);
    pace_run(p, first_ms + shun_ms - 1 - pace_now(p));
    PROMISE(sim, world_owned(p->world, claim.others[1]) == PACE_SHARDS,
            "two owners were silent, and own %u and %u shards again",
            world_owned(p->world, claim.owner), world_owned(p->world, claim.others[0]));
    pace_free(p);
}

/* An owner that had its epoch before says so: it is named under the next one, once the shard has
 * been left alone for claim_calm_ms. Others, and who says it of an epoch of before, change nothing.
 */
static void declined(struct rsim *sim)
{
    Holdfast__Internal__V1__ReportOwnerRequest report =
        HOLDFAST__INTERNAL__V1__REPORT_OWNER_REQUEST__INIT;
    Holdfast__Internal__V1__ShardPosition position = HOLDFAST__INTERNAL__V1__SHARD_POSITION__INIT;
    Holdfast__Internal__V1__ShardPosition *positions[] = { &position };
    struct pace *p = pace_new(sim);
    uint64_t what = rsim_between(sim, 0, 2);

    pace_begin(p);
    struct claim claim = claim_of(p);
    struct shard_record before = world_shard(p->world, claim.shard);

    report.reporter = report.owner =
        what == 1 ? claim.others[rsim_between(sim, 0, 1)] : claim.owner;
    report.reason = text_lend("declined");
    report.shards = positions;
    report.n_shards = 1;
    position.shard = claim.shard;
    position.epoch = before.epoch - (what == 2);
    pace_clear(p);
    world_step(p->world, (struct coord_event){ .type = COORD_REPORT, .report = &report });
    pace_run(p, p->world->limits.claim_calm_ms + 10u);
    struct shard_record after = world_shard(p->world, claim.shard);

    PROMISE(sim, after.owner == claim.owner && after.epoch == before.epoch + (what == 0),
            "of epoch %llu node %llu says that it had it: epoch %llu",
            (unsigned long long)before.epoch, (unsigned long long)report.reporter,
            (unsigned long long)after.epoch);
    PROMISE(sim, p->write_count == (what == 0), "%u records are written", p->write_count);
    PROMISE(sim, world_stats(p->world).declined == (what == 0), "declined: %llu",
            (unsigned long long)world_stats(p->world).declined);
    pace_free(p);
}

static void say_full(struct pace *p, uint64_t id)
{
    Holdfast__Internal__V1__ReportOwnerRequest report =
        HOLDFAST__INTERNAL__V1__REPORT_OWNER_REQUEST__INIT;

    report.reporter = report.owner = id;
    report.reason = text_lend("full");
    world_step(p->world, (struct coord_event){ .type = COORD_REPORT, .report = &report });
}

/* A node is full for report_valid_ms since it said so; its shards go where there is room. */
static void full(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    uint32_t valid_ms = (uint32_t)rsim_between(sim, 20, 100);
    bool others = rsim_chance(sim, 60);
    uint64_t last_ms = 0, due_ms;

    p->world->limits.report_valid_ms = valid_ms;
    pace_begin(p);
    struct claim claim = claim_of(p);

    due_ms = pace_now(p) + valid_ms;
    for (uint32_t i = 0; i < 2 && others; i++)
        say_full(p, claim.others[i]);
    pace_run(p, rsim_between(sim, 1, 10));
    say_full(p, claim.owner);
    if (!others)
        due_ms = pace_now(p) + 1; /* world.h carries out with the next tick what it is told. */
    pace_run(p, valid_ms + 20u);
    PROMISE(sim, moves_of(p, claim.shard, &last_ms) == 1 && last_ms == due_ms,
            "a full owner is relieved %lld ms late", (long long)(last_ms - due_ms));
    pace_free(p);
}

/* One member has no room and owns nothing: a drain gives all to the other one, no more slowly. */
static void drained_past_full(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    uint32_t period_ms = (uint32_t)rsim_between(sim, 1, 60), had;
    uint64_t node = rsim_between(sim, 1, 3), full = node % 3 + 1;

    p->world->limits.drain_period_ms = period_ms;
    pace_begin(p);
    say_full(p, full);
    pace_run(p, 20);
    PROMISE(sim, world_owned(p->world, full) == 0, "a full node still owns a shard");
    had = world_owned(p->world, node);
    world_wish_node(p->world, node, NODE_DRAIN);
    pace_run(p, had * period_ms + 8);
    PROMISE(sim, world_owned(p->world, node) == 0 && world_owned(p->world, full) == 0,
            "a drained node owns %u shards and a full one %u, though the third has room",
            world_owned(p->world, node), world_owned(p->world, full));
    pace_free(p);
}

/* ---- changes ---- */

/* Node 4 is to hold the shard instead of another one; its learner lags. */
static void learning(struct pace *p, uint32_t shard)
{
    struct shard_wish wish = { .member_count = 3 };
    struct shard_record record = world_shard(p->world, shard);
    uint64_t lag = p->world->learner_lag;

    world_node_up(p->world, 4, 1);
    pace_run(p, 5);
    memcpy(wish.members, record.members, sizeof wish.members);
    wish.members[rsim_between(p->sim, 0, 2)] = 4;
    p->world->learner_lag = p->world->limits.change_lag_entries + 1;
    world_wish_shard(p->world, shard, &wish);
    pace_run(p, 3);
    PROMISE(p->sim, world_shard(p->world, shard).learner == 4, "a wish is not followed");
    p->world->learner_lag = lag;
}

/* A newcomer that is gone for change_abort_ms without interruption is given up. */
static void aborted(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    uint32_t abort_ms = (uint32_t)rsim_between(sim, 10, 150), limit = 50;
    uint32_t shard = (uint32_t)rsim_between(sim, 0, PACE_SHARDS - 1);
    uint64_t gone_ms;

    p->world->limits.change_abort_ms = abort_ms;
    p->world->limits.change_lag_entries = limit;
    p->world->learner_lag = limit + 1;
    pace_begin(p);
    learning(p, shard);
    world_node_down(p->world, 4);
    gone_ms = pace_now(p);
    if (rsim_chance(sim, 50)) {
        pace_run(p, abort_ms - 1u);
        world_node_up(p->world, 4, 2);
        pace_run(p, 3);
        PROMISE(sim, world_shard(p->world, shard).learner == 4, "given up too early");
        world_node_down(p->world, 4);
        gone_ms = pace_now(p);
    }
    pace_run(p, abort_ms - 1u);
    PROMISE(sim, world_shard(p->world, shard).learner == 4, "given up too early");
    pace_run(p, 1);
    PROMISE(sim, world_shard(p->world, shard).learner == 0, "a newcomer is gone for %llu of %u ms",
            (unsigned long long)(pace_now(p) - gone_ms), abort_ms);
    PROMISE(sim, world_stats(p->world).changes_aborted == 1, "one change is given up");
    pace_free(p);
}

/* It joins once its owner says that it lags by no more than change_lag_entries, and was heard
 * within change_silent_ms; until then the owner is asked every change_ask_ms. */
static void joined(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    struct coord_limits *limits = &p->world->limits;
    uint32_t shard = (uint32_t)rsim_between(sim, 0, PACE_SHARDS - 1);

    limits->change_lag_entries = (uint32_t)rsim_between(sim, 1, 300);
    limits->change_silent_ms = (uint32_t)rsim_between(sim, 10, 300);
    limits->change_ask_ms = (uint32_t)rsim_between(sim, 10, 60);
    pace_begin(p);
    p->world->learner_lag = rsim_about(sim, limits->change_lag_entries);
    p->world->learner_silent_ms = rsim_about(sim, limits->change_silent_ms);
    bool near = p->world->learner_lag <= limits->change_lag_entries &&
                p->world->learner_silent_ms <= limits->change_silent_ms;

    learning(p, shard);
    pace_run(p, 4u * limits->change_ask_ms);
    struct shard_record record = world_shard(p->world, shard);

    PROMISE(sim, (record.config > 1) == near, "a learner that lags by %llu, %llu ms ago: %s",
            (unsigned long long)p->world->learner_lag,
            (unsigned long long)p->world->learner_silent_ms, near ? "does not join" : "joins");
    if (near) {
        bool there = record.members[0] == 4 || record.members[1] == 4 || record.members[2] == 4;
        PROMISE(sim, record.phase == SHARD_STABLE && there && record.member_count == 3,
                "a change that can end does not");
        PROMISE(sim, world_stats(p->world).changes_done == 1, "one change is done");
    }
    for (uint32_t n = 1; pace_called_ms(p, METHOD_MEMBER_STATE, shard, n) != PACE_NEVER; n++) {
        uint64_t gap_ms = pace_called_ms(p, METHOD_MEMBER_STATE, shard, n) -
                          pace_called_ms(p, METHOD_MEMBER_STATE, shard, n - 1);
        PROMISE(sim, near ? gap_ms >= limits->change_ask_ms : gap_ms == limits->change_ask_ms,
                "an owner is asked again after %llu ms", (unsigned long long)gap_ms);
    }
    PROMISE(sim, near || pace_called_ms(p, METHOD_MEMBER_STATE, shard, 2) != PACE_NEVER,
            "an owner is not asked again");
    sim->counts.joins_timed += near;
    pace_free(p);
}

/* Of the members of `from` those that `to` has not. */
static uint32_t missing_in(const uint64_t *from, uint32_t from_count, const uint64_t *to,
                           uint32_t to_count)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < from_count; i++)
        count += !replica_is_among(to, to_count, from[i]);
    return count;
}

/* Members come and go one at a time, and no step has fewer than the least of both ends. */
static void steps_check(struct pace *p, uint32_t shard, uint32_t least)
{
    for (uint32_t i = 0; i < p->write_count; i++) {
        const struct shard_record *r = &p->writes[i].shard;

        if (p->writes[i].kind != CLUSTER_KEY_SHARD || p->writes[i].id != shard)
            continue;
        PROMISE(p->sim, r->member_count >= least, "%u members in between", r->member_count);
        if (r->phase != SHARD_JOINT)
            continue;
        PROMISE(p->sim,
                missing_in(r->members, r->member_count, r->new_members, r->new_member_count) <= 1 &&
                    missing_in(r->new_members, r->new_member_count, r->members, r->member_count) <=
                        1,
                "two members change at a time");
    }
}

/* What an operator wished comes true, a step at a time, if those who are to come can; or the wish
 * is given up with the first who cannot, at once or after the time in which its trouble may pass.
 */
static void wished(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    uint32_t shard = (uint32_t)rsim_between(sim, 0, PACE_SHARDS - 1), trouble;
    struct shard_wish wish = { .member_count = (uint32_t)rsim_between(sim, 3, 5) };
    uint64_t ids[] = { 1, 2, 3, 4, 5 };
    bool possible = true;

    pace_begin(p);
    world_node_up(p->world, 4, 1);
    world_node_up(p->world, 5, 1);
    trouble = (uint32_t)rsim_between(sim, 0, 6);
    if (trouble == 1)
        world_node_down(p->world, 5);
    else if (trouble == 2)
        world_wish_node(p->world, 5, NODE_DRAIN);
    else if (trouble == 3)
        world_wish_node(p->world, 5, NODE_REMOVE);
    else if (trouble == 4)
        world_node_damaged(p->world, 5, 1, (shard + 1) % PACE_SHARDS);
    else if (trouble == 5) /* It does not say so again, and is waited for. */
        say_full(p, 5);
    else if (trouble == 6) /* A member that owns nothing may stay one. */
        world_wish_node(p->world, 1, NODE_DRAIN);
    for (uint32_t i = 0; i < wish.member_count; i++) {
        uint32_t at = (uint32_t)rsim_between(sim, i, 4);
        uint64_t id = ids[at];

        ids[at] = ids[i];
        ids[i] = wish.members[i] = id;
        possible = possible && (id != 5 || trouble == 0 || trouble >= 5);
    }
    pace_run(p, 3);
    world_wish_shard(p->world, shard, &wish);
    pace_run(p, 800);
    if (trouble == 1 || trouble == 4) /* It could pass, and is waited for. */
        pace_run(p, p->world->limits.change_abort_ms);
    else if (trouble == 5)
        pace_run(p, p->world->limits.report_valid_ms);
    struct shard_record after = world_shard(p->world, shard);

    PROMISE(sim, !world_has(p->world, cluster_key_shard_wish(PACE_CLUSTER, shard)),
            "a wish is neither done nor given up");
    PROMISE(sim, !shard_change_is_open(&after) && after.member_count >= 3,
            "a wish leaves %u members", after.member_count);
    if (possible)
        PROMISE(
            sim,
            after.member_count == wish.member_count &&
                missing_in(after.members, after.member_count, wish.members, wish.member_count) == 0,
            "a wish that is possible does not come true");
    else
        PROMISE(sim, !replica_is_among(after.members, after.member_count, 5),
                "a node that may not come holds a shard");
    steps_check(p, shard, 3);
    sim->counts.wishes_judged++;
    pace_free(p);
}

/* ---- repairs ---- */

/* A damaged replica is sent away once all members are up for repair_wait_ms, the others are near,
 * and an upgrade is over or has lasted for repair_upgrade_ms. */
static void repaired(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    struct coord_limits *limits = &p->world->limits;
    uint32_t shard = (uint32_t)rsim_between(sim, 0, PACE_SHARDS - 1);
    bool upgrade = rsim_chance(sim, 40);
    uint64_t born_ms, due_ms;

    limits->repair_wait_ms = (uint32_t)rsim_between(sim, 0, 150);
    limits->repair_upgrade_ms = (uint32_t)rsim_between(sim, 0, 250);
    limits->change_lag_entries = (uint32_t)rsim_between(sim, 1, 300);
    pace_begin(p);
    uint64_t node = world_shard(p->world, shard).members[rsim_between(sim, 0, 2)];

    p->world->member_lag = rsim_about(sim, limits->change_lag_entries);
    p->world->version = upgrade ? "another" : NULL;
    bool near = p->world->member_lag <= limits->change_lag_entries;

    world_node_down(p->world, node);
    pace_run(p, 5);
    world_node_damaged(p->world, node, 2, shard);
    born_ms = pace_now(p);
    due_ms = born_ms + limits->repair_wait_ms;
    if (upgrade)
        due_ms = later(due_ms, born_ms + limits->repair_upgrade_ms);
    pace_run(p, 500);
    const struct pace_write *write = pace_write_of(p, CLUSTER_KEY_SHARD_WISH, shard);

    PROMISE(sim, (write != NULL) == near, "members that lag by %llu of %u: %s",
            (unsigned long long)p->world->member_lag, limits->change_lag_entries,
            near ? "not repaired" : "repaired");
    /* The owner is asked how far the others are, in a step of its own. */
    PROMISE(sim, write == NULL || (write->at_ms >= due_ms && write->at_ms <= due_ms + 3),
            "a repair begins after %lld ms, not after %lld",
            write != NULL ? (long long)(write->at_ms - born_ms) : 0, (long long)(due_ms - born_ms));
    sim->counts.repairs_timed += near;
    pace_free(p);
}

void room_turns(struct rsim *sim)
{
    placed(sim);
    spread(sim);
    drained(sim);
    claimed(sim);
    calm(sim);
    shunned(sim);
    full(sim);
    aborted(sim);
    joined(sim);
    wished(sim);
    repaired(sim);
    drained_past_full(sim);
    declined(sim);
    two_shunned(sim);
}
