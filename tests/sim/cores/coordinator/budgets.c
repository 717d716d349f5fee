/*
 * How much a coordinator does at a time, and how often (coord_limits.h): each such limit is set at
 * random. It does as much as it may, and no more.
 */
#include <string.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/coordinator/pace.h"

#define FIRST 1000u

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* ---- writes ---- */

/* Eight shards are placed: so many transactions of so many records each, and the rest when they
 * are answered. */
static void writes_at_once(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    struct coord_limits *limits = &p->world->limits;
    uint32_t left = PACE_SHARDS, most = 0;

    limits->txn_writes_max = (uint32_t)rsim_between(sim, 1, 10);
    limits->txns_max = (uint32_t)rsim_between(sim, 1, 10);
    limits->placement_settle_ms = 10;
    pace_begin_empty(p);
    world_elect(p->world);
    pace_run(p, 5);
    for (uint64_t id = 1; id <= 3; id++)
        world_node_up(p->world, id, 1);
    pace_run(p, 9);
    pace_clear(p);
    for (uint32_t tries = 0; p->world->out.txn_count == 0 && tries < 5; tries++)
        pace_tick(p);
    for (uint32_t i = 0; i < p->world->out.txn_count; i++) {
        uint32_t count = p->world->out.txns[i].write_count;

        most = least(left, limits->txn_writes_max);
        PROMISE(sim, count == most, "a transaction of %u records, %u are left and %u allowed",
                count, left, limits->txn_writes_max);
        left -= count;
    }
    PROMISE(sim, p->world->out.txn_count <= limits->txns_max, "%u transactions of %u",
            p->world->out.txn_count, limits->txns_max);
    PROMISE(sim, left == 0 || p->world->out.txn_count == limits->txns_max,
            "%u transactions of %u, and %u shards are left", p->world->out.txn_count,
            limits->txns_max, left);
    uint32_t sent = p->world->out.txn_count;

    PROMISE(sim, world_stats(p->world).transactions_open == sent, "open transactions are told");
    pace_tick(p); /* Nothing was answered. */
    PROMISE(sim, p->world->out.txn_count == sent, "a transaction more than allowed");
    pace_run(p, 10);
    for (uint32_t i = 0; i < PACE_SHARDS; i++)
        PROMISE(sim, world_shard(p->world, i).epoch == 1, "shard %u is not placed, or twice", i);
    PROMISE(sim, world_stats(p->world).transactions_open == 0, "a transaction that was answered");
    pace_free(p);
}

/* ---- calls ---- */

/* A policy goes to every shard and servers' expiries too: no more than calls_max at a time, all of
 * it in the end, and each call says by when it is to be answered. */
static void calls_at_once(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    struct coord_limits *limits = &p->world->limits;
    uint32_t servers = (uint32_t)rsim_between(sim, 0, 4);

    limits->calls_max = (uint32_t)rsim_between(sim, 1, 40);
    limits->call_timeout_ms = (uint32_t)rsim_between(sim, 100, 3000);
    limits->server_settle_ms = 0;
    limits->server_wait_ms = 0;
    pace_begin(p);
    pace_run(p, 200); /* With few calls at a time what is asked at first takes its time. */
    for (uint32_t i = 0; i < servers && servers < limits->server_hold_min; i++) {
        world_server_up(p->world, FIRST + i);
        world_server_gone(p->world, FIRST + i);
    }
    pace_clear(p);
    world_set_policy(p->world, 2);
    pace_tick(p);
    uint32_t wanted = PACE_SHARDS, open = p->world->out.call_count;

    PROMISE(sim, open == least(wanted, limits->calls_max), "%u calls are made of %u, %u allowed",
            open, wanted, limits->calls_max);
    PROMISE(sim, world_stats(p->world).calls_open == open, "%u open calls are told as %llu", open,
            (unsigned long long)world_stats(p->world).calls_open);
    PROMISE(sim, world_stats(p->world).policy_pending >= 1, "a policy is pending");
    for (uint32_t i = 0; i < open; i++)
        PROMISE(sim, p->world->out.calls[i].timeout_ms == limits->call_timeout_ms,
                "a call may take %u ms of %u", p->world->out.calls[i].timeout_ms,
                limits->call_timeout_ms);
    pace_tick(p);
    PROMISE(sim, p->world->out.call_count == open, "%u calls of %u, and none was answered",
            p->world->out.call_count, limits->calls_max);
    pace_run(p, 200);
    PROMISE(sim,
            world_stats(p->world).policy_pending == 0 && world_stats(p->world).calls_open == 0 &&
                p->world->policy_version == 2,
            "a policy is not told to all");
    for (uint32_t i = 0; i < servers && servers < limits->server_hold_min; i++)
        PROMISE(sim, !world_server_known(p->world, FIRST + i), "a server is never forgotten");
    pace_free(p);
}

/* A shard that refused is called again after call_refused_ms, one that did not answer after
 * call_retry_ms, and the others are not held up. A later policy goes out at once. */
static void calls_again(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    struct coord_limits *limits = &p->world->limits;
    bool refused = rsim_chance(sim, 50);

    limits->call_refused_ms = (uint32_t)rsim_between(sim, 10, 90);
    limits->call_retry_ms = (uint32_t)rsim_between(sim, 10, 90);
    pace_begin(p);
    uint32_t pause_ms = refused ? limits->call_refused_ms : limits->call_retry_ms;

    world_set_policy(p->world, 2);
    pace_tick(p);
    uint32_t count = pace_answer(p, METHOD_APPLY_POLICY, refused ? WIRE_REFUSED : WIRE_UNKNOWN);
    uint64_t again_ms = pace_now(p) + pause_ms;

    PROMISE(sim, count == PACE_SHARDS, "a policy is told to %u shards", count);
    PROMISE(sim, world_stats(p->world).calls_failed >= count, "failed calls are told");
    while (pace_now(p) + 1 < again_ms)
        pace_tick(p);
    PROMISE(sim, p->world->out.call_count == 0, "a shard is called again %lld ms too early",
            (long long)(again_ms - pace_now(p)));
    pace_tick(p);
    PROMISE(sim, p->world->out.call_count == PACE_SHARDS, "%u shards are called again after %u ms",
            p->world->out.call_count, pause_ms);
    world_set_policy(p->world, 3); /* While the earlier one is on its way. */
    pace_answer(p, METHOD_APPLY_POLICY, WIRE_OK);
    pace_tick(p);
    PROMISE(sim, p->world->out.call_count == PACE_SHARDS,
            "a later policy is told to %u shards, and the earlier one was confirmed",
            p->world->out.call_count);
    pace_run(p, 3);
    PROMISE(sim, world_stats(p->world).policy_pending == 0 && p->world->policy_version == 3,
            "a policy that all confirmed is pending");
    pace_free(p);
}

/* A shard that refuses a policy takes all else: the expiry of a server does not wait for the
 * policy. */
static void refused_alone(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    struct coord_limits *limits = &p->world->limits;

    limits->call_refused_ms = (uint32_t)rsim_between(sim, 1000, 600000);
    limits->server_settle_ms = limits->server_wait_ms = 0;
    pace_begin(p);
    world_server_up(p->world, FIRST);
    pace_run(p, 200);
    world_set_policy(p->world, 2);
    pace_tick(p);
    PROMISE(sim, pace_answer(p, METHOD_APPLY_POLICY, WIRE_REFUSED) == PACE_SHARDS,
            "a policy is told to all");
    world_server_gone(p->world, FIRST);
    pace_run(p, 300);
    PROMISE(sim, !world_server_known(p->world, FIRST),
            "a server is not expired, since shards refused a policy");
    PROMISE(sim, world_stats(p->world).policy_pending == PACE_SHARDS,
            "a policy that was refused is told again too early");
    pace_free(p);
}

/* ---- servers ---- */

/* While some shard does not answer, no more servers than servers_expiring_max are worked on. */
static void expiring_at_once(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    struct coord_limits *limits = &p->world->limits;
    uint32_t count = (uint32_t)rsim_between(sim, 1, 12), told = 0;

    limits->servers_expiring_max = (uint32_t)rsim_between(sim, 1, 12);
    limits->server_hold_ms_max = 0;
    limits->server_settle_ms = limits->server_wait_ms = 0;
    pace_begin(p);
    for (uint32_t i = 0; i < count; i++)
        world_server_up(p->world, FIRST + i);
    p->world->deaf_node = rsim_between(sim, 1, 3);
    for (uint32_t i = 0; i < count; i++)
        world_server_gone(p->world, FIRST + i);
    pace_run(p, 300);
    for (uint32_t i = 0; i < count; i++) {
        bool is_told = false;

        for (uint32_t k = 0; k < p->call_count; k++)
            is_told |= p->calls[k].method == METHOD_EXPIRE_SERVER && p->calls[k].id == FIRST + i;
        told += is_told;
        PROMISE(sim, pace_marked_ms(p, FIRST + i) != PACE_NEVER, "a server is not marked");
        PROMISE(sim, world_server_known(p->world, FIRST + i),
                "a server is forgotten, and a shard was not told");
    }
    PROMISE(sim, told == least(count, limits->servers_expiring_max),
            "%u of %u servers are worked on, %u are allowed", told, count,
            limits->servers_expiring_max);
    PROMISE(sim, world_stats(p->world).servers_expiring == count, "expiring servers are told");
    p->world->deaf_node = 0;
    pace_run(p, 300);
    for (uint32_t i = 0; i < count; i++)
        PROMISE(sim, !world_server_known(p->world, FIRST + i), "a server is never forgotten");
    PROMISE(sim, world_stats(p->world).servers_expired == count, "%u servers are told as %llu",
            count, (unsigned long long)world_stats(p->world).servers_expired);
    pace_free(p);
}

/* ---- changes ---- */

/* Every shard is to move: changes_max of them begin, and as many again as end. */
static void changes_at_once(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    struct coord_limits *limits = &p->world->limits;
    uint32_t open = 0;

    limits->changes_max = (uint32_t)rsim_between(sim, 1, 10);
    limits->txn_writes_max = (uint32_t)rsim_between(sim, 1, 4);
    pace_begin(p);
    world_node_up(p->world, 4, 1);
    pace_run(p, 10);
    p->world->learner_lag = limits->change_lag_entries + 1u;
    for (uint32_t i = 0; i < PACE_SHARDS; i++) {
        struct shard_wish wish = { .member_count = 3 };

        memcpy(wish.members, world_shard(p->world, i).members, sizeof wish.members);
        wish.members[rsim_between(sim, 0, 2)] = 4;
        world_wish_shard(p->world, i, &wish);
    }
    pace_run(p, 30);
    for (uint32_t i = 0; i < PACE_SHARDS; i++)
        open += world_shard(p->world, i).learner != 0;
    PROMISE(sim, open == least(PACE_SHARDS, limits->changes_max),
            "%u shards change members, %u may and %u are to", open, limits->changes_max,
            PACE_SHARDS);
    PROMISE(sim, world_stats(p->world).changes_open == open, "%u open changes are told as %llu",
            open, (unsigned long long)world_stats(p->world).changes_open);
    p->world->learner_lag = limits->change_lag_entries;
    pace_run(p, 2500);
    for (uint32_t i = 0; i < PACE_SHARDS; i++) {
        struct shard_record record = world_shard(p->world, i);
        struct shard_wish wish;

        PROMISE(sim,
                shard_record_has_member(&record, 4) && record.member_count == 3 &&
                    record.phase == SHARD_STABLE,
                "shard %u does not move", i);
        PROMISE(sim, !world_shard_wish(p->world, i, &wish), "a wish stays that is fulfilled");
    }
    PROMISE(sim, world_stats(p->world).changes_open == 0, "no change is open");
    pace_free(p);
}

/* Removed nodes that are gone are remembered, removed_kept of them. */
static void removed_kept(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    uint32_t count = (uint32_t)rsim_between(sim, 1, 4), kept = 0;
    uint32_t allowed = (uint32_t)rsim_between(sim, 0, 4);

    p->world->limits.removed_kept = allowed;
    pace_begin(p);
    for (uint64_t id = 4; id < 4 + count; id++) {
        world_node_up(p->world, id, 1);
        world_wish_node(p->world, id, NODE_REMOVE);
    }
    world_wish_node(p->world, 9, NODE_DRAIN); /* It is not removed, and stays known. */
    pace_run(p, 20);
    PROMISE(sim, pace_write_of(p, CLUSTER_KEY_NODE_WISH, 4) == NULL,
            "a removed node that is there is forgotten");
    for (uint64_t id = 4; id < 4 + count; id++)
        world_node_down(p->world, id);
    pace_run(p, 20);
    for (uint64_t id = 4; id < 4 + count; id++)
        kept += world_has(p->world, cluster_key_node_wish(PACE_CLUSTER, id));
    PROMISE(sim, kept == least(count, allowed), "%u of %u removed nodes are remembered, not %u",
            kept, count, allowed);
    PROMISE(sim, world_has(p->world, cluster_key_node_wish(PACE_CLUSTER, 9)),
            "a node that is drained is forgotten");
    PROMISE(sim, world_stats(p->world).nodes_leaving == kept + 1, "leaving nodes are told");
    pace_free(p);
}

/* ---- how often ---- */

static void period_check(struct pace *p, uint16_t method, uint32_t period_ms, const char *what)
{
    for (uint32_t shard = 0; shard < PACE_SHARDS; shard++) {
        uint32_t n = 1;

        for (; pace_called_ms(p, method, shard, n) != PACE_NEVER; n++)
            PROMISE(p->sim,
                    pace_called_ms(p, method, shard, n) - pace_called_ms(p, method, shard, n - 1) ==
                        period_ms,
                    "%s of shard %u: %llu ms apart, not %u", what, shard,
                    (unsigned long long)(pace_called_ms(p, method, shard, n) -
                                         pace_called_ms(p, method, shard, n - 1)),
                    period_ms);
        PROMISE(p->sim, n >= 3, "%s of shard %u: only %u times", what, shard, n);
    }
}

/* One in four of the calls in flight may be for it, rounded up. */
static void loads_check(struct pace *p, uint32_t period_ms)
{
    uint32_t allowed = (p->world->limits.calls_max + 3) / 4, count = 0;

    period_check(p, METHOD_MEMBER_STATE, period_ms, "what it has to do");
    for (uint32_t i = 0; i < p->call_count; i++) {
        count = i > 0 && p->calls[i].at_ms == p->calls[i - 1].at_ms ? count + 1 : 1;
        PROMISE(p->sim, count <= allowed, "%u shards at a time are asked what they have to do",
                count);
    }
}

/* Cuts, definitions and what shards have to do are asked for so often, of every shard. */
static void periods(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    struct coord_limits *limits = &p->world->limits;
    uint32_t what = (uint32_t)rsim_between(sim, 0, 2);
    uint32_t period_ms = (uint32_t)rsim_between(sim, 100, 160);

    limits->define_ask_ms = what == 0 ? period_ms : limits->define_ask_ms;
    limits->audit_interval_ms = what == 1 ? period_ms : 0;
    if (what == 2) {
        limits->calls_max = (uint32_t)rsim_between(sim, 1, 40);
        limits->load_ask_ms = period_ms;
        limits->load_exchange_ms = 60000;
        limits->rebalance = 1;
    }
    pace_begin(p);
    pace_run(p, 4 * period_ms);
    if (what == 0)
        period_check(p, METHOD_GET_DEFINED, period_ms, "definitions");
    else if (what == 1)
        period_check(p, METHOD_TAKE_CUT, period_ms, "cuts");
    else
        loads_check(p, period_ms);
    pace_free(p);
}

/* A cut that some shard never takes is given up after audit_timeout_ms, and another one begins. */
static void cuts_given_up(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    struct coord_limits *limits = &p->world->limits;
    uint32_t deaf = (uint32_t)rsim_between(sim, 1, 3), period_ms;

    limits->audit_interval_ms = (uint32_t)rsim_between(sim, 50, 200);
    limits->audit_timeout_ms = (uint32_t)rsim_between(sim, 100, 200);
    pace_begin(p);
    period_ms = limits->audit_interval_ms > limits->audit_timeout_ms ? limits->audit_interval_ms
                                                                     : limits->audit_timeout_ms;
    p->world->deaf_node = deaf;
    pace_run(p, period_ms + 5); /* A cut that began before ends. */
    pace_clear(p);
    pace_run(p, 3 * period_ms + 5);
    for (uint32_t i = 0; i < PACE_SHARDS; i++) {
        if (world_shard(p->world, i).owner == deaf)
            continue;
        for (uint32_t n = 1; n < 3; n++)
            PROMISE(sim,
                    pace_called_ms(p, METHOD_TAKE_CUT, i, n) -
                            pace_called_ms(p, METHOD_TAKE_CUT, i, n - 1) ==
                        period_ms,
                    "cuts that are given up are not %u ms apart", period_ms);
    }
    PROMISE(sim, world_stats(p->world).audit_imbalance == 0, "a cut that is given up tells much");
    pace_free(p);
}

/* A shard that refused a cut is asked for it again after call_refused_ms, and not before. */
static void cuts_again(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    struct coord_limits *limits = &p->world->limits;
    uint32_t count;

    limits->audit_interval_ms = (uint32_t)rsim_between(sim, 50, 200);
    limits->call_refused_ms = (uint32_t)rsim_between(sim, 10, 90);
    pace_begin(p);
    for (uint32_t i = 0; i <= limits->audit_interval_ms && p->world->out.call_count == 0; i++)
        pace_tick(p);
    count = pace_answer(p, METHOD_TAKE_CUT, WIRE_REFUSED);
    PROMISE(sim, count == PACE_SHARDS, "a cut is asked of %u shards", count);
    for (uint32_t i = 1; i < limits->call_refused_ms; i++)
        pace_tick(p);
    PROMISE(sim, p->world->out.call_count == 0, "a refused cut is asked for again too early");
    pace_tick(p);
    PROMISE(sim, pace_answer(p, METHOD_TAKE_CUT, WIRE_OK) == count,
            "a refused cut is not asked for again after %u ms", limits->call_refused_ms);
    pace_free(p);
}

/* A node that did not say what it knows is asked again after word_retry_ms, one that did is not. */
static void words(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    uint32_t retry_ms = (uint32_t)rsim_between(sim, 10, 90);

    p->world->limits.word_retry_ms = retry_ms;
    pace_begin(p);
    world_node_up(p->world, 4, 1);
    pace_tick(p);
    PROMISE(sim, pace_answer(p, METHOD_GET_NODE_STATUS, WIRE_UNKNOWN) == 1,
            "a new node is asked what it knows");
    for (uint32_t i = 1; i < retry_ms; i++)
        pace_tick(p);
    PROMISE(sim, p->world->out.call_count == 0, "a node is asked again too early");
    pace_tick(p);
    PROMISE(sim, pace_answer(p, METHOD_GET_NODE_STATUS, WIRE_OK) == 1,
            "a node is not asked again after %u ms", retry_ms);
    for (uint32_t i = 0; i < retry_ms + 5; i++)
        pace_tick(p);
    PROMISE(sim, p->world->out.call_count == 0, "a node that told all is asked again");
    pace_free(p);
}

/* A record that a refused write met and that does not come within stale_doubt_ms: etcd went back,
 * and the shard is left alone. */
static void left_behind(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    uint32_t doubt_ms = (uint32_t)rsim_between(sim, 100, 200);

    p->world->limits.stale_doubt_ms = doubt_ms;
    pace_begin(p);
    uint32_t shard = (uint32_t)rsim_between(sim, 0, PACE_SHARDS - 1);

    world_age_shard(p->world, shard);
    world_node_down(p->world, world_shard(p->world, shard).owner);
    uint64_t refused_ms = pace_now(p);

    pace_run(p, doubt_ms - 1u);
    PROMISE(sim, world_stats(p->world).shards_doubted == 0, "doubted after %llu of %u ms",
            (unsigned long long)(pace_now(p) - refused_ms), doubt_ms);
    pace_run(p, 1);
    PROMISE(sim, world_stats(p->world).shards_doubted == 1, "not doubted after %u ms", doubt_ms);
    PROMISE(sim, world_stats(p->world).writes_lost == 1, "one write is lost");
    pace_run(p, 50);
    PROMISE(sim,
            world_stats(p->world).shards_doubted == 1 && world_shard(p->world, shard).epoch == 1,
            "a shard that is doubted is written");
    pace_free(p);
}

void room_budgets(struct rsim *sim)
{
    writes_at_once(sim);
    calls_at_once(sim);
    calls_again(sim);
    refused_alone(sim);
    expiring_at_once(sim);
    changes_at_once(sim);
    removed_kept(sim);
    periods(sim);
    cuts_given_up(sim);
    words(sim);
    left_behind(sim);
    cuts_again(sim);
}
