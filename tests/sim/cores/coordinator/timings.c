/*
 * When things happen (coordinator/core/coord_limits.h): each time that an operator may set is set
 * at random, and what it puts off comes at that time, to the millisecond: no earlier, since that
 * was promised, and no later, since nothing else is waited for. Of game servers; of shards, see
 * turns.c.
 */
#include "runtime/base/check.h"
#include "tests/sim/cores/coordinator/pace.h"

#define FIRST       1000u /* Revision of the first server. */
#define SERVERS_MAX 40u

static void up(struct pace *p, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        world_server_up(p->world, FIRST + i);
    pace_run(p, 5);
}

static void gone(struct pace *p, uint32_t from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        world_server_gone(p->world, FIRST + from + i);
}

static void marked_check(struct pace *p, uint32_t server, uint64_t due_ms, const char *why)
{
    uint64_t at_ms = pace_marked_ms(p, FIRST + server);

    PROMISE(p->sim, at_ms == due_ms, "%s: server %u is expired at %lld ms of %lld", why, server,
            (long long)(at_ms - pace_now(p)), (long long)(due_ms - pace_now(p)));
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- one server ---- */

/* Absent without interruption for server_settle_ms, and none within server_wait_ms of an election.
 * The first look at an absence comes with the next tick, or with the election. */
static void one_server(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    struct coord_limits *limits = &p->world->limits;
    bool before = rsim_chance(sim, 50);
    uint64_t elected_ms, seen_ms;

    limits->server_settle_ms = (uint32_t)rsim_between(sim, 0, 150);
    limits->server_wait_ms = (uint32_t)rsim_between(sim, 0, 250);
    pace_begin(p);
    up(p, 1);
    world_replace_coordinator(p->world);
    if (before)
        gone(p, 0, 1);
    world_elect(p->world);
    elected_ms = seen_ms = pace_now(p);
    if (!before) {
        pace_run(p, rsim_between(sim, 1, 200));
        gone(p, 0, 1);
        seen_ms = pace_now(p) + 1;
    }
    for (uint32_t i = 0; i < 3 && limits->server_settle_ms > 2 && rsim_chance(sim, 50); i++) {
        pace_run(p, rsim_between(sim, 1, limits->server_settle_ms - 1u));
        if (pace_marked_ms(p, FIRST) != PACE_NEVER)
            break;
        world_server_back(p->world, FIRST);
        pace_run(p, rsim_between(sim, 0, 3));
        gone(p, 0, 1);
        seen_ms = pace_now(p) + 1;
    }
    pace_run(p, 600);
    marked_check(p, 0,
                 later(seen_ms + limits->server_settle_ms, elected_ms + limits->server_wait_ms),
                 "absent without interruption");
    PROMISE(sim, !world_server_known(p->world, FIRST), "a server is expired and never forgotten");
    sim->counts.servers_timed++;
    pace_free(p);
}

/* ---- many at once ---- */

/* More than server_hold_percent of them, and no fewer than server_hold_min. */
static bool is_too_many(const struct coord_limits *limits, uint32_t missing, uint32_t all)
{
    return missing >= limits->server_hold_min && missing * 100 > all * limits->server_hold_percent;
}

static uint32_t about(struct rsim *sim, uint64_t at, uint32_t most)
{
    uint64_t count = rsim_about(sim, at > 0 ? at : 1);

    return count < 1 ? 1 : count > most ? most : (uint32_t)count;
}

static struct pace *many_new(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    struct coord_limits *limits = &p->world->limits;

    p->world->clock_ms = rsim_between(sim, 0, 1) * 1700000000000u;
    limits->server_settle_ms = (uint32_t)rsim_between(sim, 0, 40);
    limits->server_wait_ms = 0;
    limits->server_window_ms = (uint32_t)rsim_between(sim, 50, 120);
    limits->server_hold_ms_max = (uint32_t)rsim_between(sim, 200, 400);
    limits->server_hold_percent = (uint32_t)rsim_between(sim, 1, 100);
    limits->server_hold_min = (uint32_t)rsim_between(sim, 1, 12);
    limits->servers_expiring_max = 64;
    return p;
}

/* Held: no server is expired before server_hold_ms_max has passed, or enough are there again. */
static void held_check(struct pace *p, uint32_t all, uint32_t missing, uint64_t seen_ms)
{
    const struct coord_limits *limits = &p->world->limits;
    uint64_t end_ms = seen_ms + limits->server_hold_ms_max;
    uint32_t back = p->sim->seed % 2 == 0 ? (uint32_t)rsim_between(p->sim, 0, missing) : 0;

    for (uint32_t i = 0; i < missing; i++) {
        const struct pace_write *write = pace_write_of(p, CLUSTER_KEY_SERVER_KNOWN, FIRST + i);
        PROMISE(p->sim,
                write != NULL && !write->expiring && write->at_ms == seen_ms &&
                    write->held_ms == seen_ms + p->world->clock_ms,
                "one of %u of %u servers that vanish at once is not held, or not since then",
                missing, all);
    }
    PROMISE(p->sim, world_stats(p->world).server_hold == 1, "a hold is not told");
    PROMISE(p->sim, world_stats(p->world).server_holds == 1, "a hold is told %llu times",
            (unsigned long long)world_stats(p->world).server_holds);
    pace_run(p, 10 + limits->server_settle_ms);
    for (uint32_t i = 0; i < back; i++)
        world_server_back(p->world, FIRST + missing - 1 - i);
    missing -= back;
    if (!is_too_many(limits, missing, all))
        end_ms = pace_now(p) + 1;
    pace_run(p, end_ms + 2 - pace_now(p));
    for (uint32_t i = 0; i < missing; i++)
        marked_check(p, i, end_ms, "held");
    for (uint32_t i = missing; i < all; i++)
        marked_check(p, i, PACE_NEVER, "lives");
    PROMISE(p->sim, world_stats(p->world).server_hold == 0, "a hold that is over is told");
    p->sim->counts.holds_timed++;
}

static void many_servers(struct rsim *sim)
{
    struct pace *p = many_new(sim);
    const struct coord_limits *limits = &p->world->limits;
    uint32_t all = (uint32_t)rsim_between(sim, 1, SERVERS_MAX);
    uint64_t at =
        rsim_chance(sim, 50) ? limits->server_hold_min : all * limits->server_hold_percent / 100;
    uint32_t missing = about(sim, at, all);

    pace_begin(p);
    up(p, all);
    gone(p, 0, missing);
    uint64_t seen_ms = pace_now(p) + 1;

    pace_run(p, 1);
    if (is_too_many(limits, missing, all)) {
        held_check(p, all, missing, seen_ms);
    } else {
        PROMISE(sim, world_stats(p->world).server_hold == 0, "%u of %u servers are held", missing,
                all);
        pace_run(p, limits->server_settle_ms + 2);
        for (uint32_t i = 0; i < all; i++)
            marked_check(p, i, i < missing ? seen_ms + limits->server_settle_ms : PACE_NEVER,
                         "not too many");
    }
    pace_free(p);
}

/* Those that vanish within server_window_ms count as gone at once; so do those that were marked
 * within it. */
static void two_waves(struct rsim *sim)
{
    struct pace *p = many_new(sim);
    struct coord_limits *limits = &p->world->limits;
    uint32_t first = (uint32_t)rsim_between(sim, 1, 5), second = (uint32_t)rsim_between(sim, 1, 5);
    bool marked = rsim_chance(sim, 50); /* The first ones are, before the others vanish. */
    uint64_t pause_ms = rsim_about(sim, limits->server_window_ms);

    limits->server_hold_ms_max = 2000;
    limits->server_hold_percent = 1;
    limits->server_hold_min = (uint32_t)rsim_between(sim, later(first, second) + 1, first + second);
    limits->server_settle_ms =
        marked ? (uint32_t)rsim_between(sim, 0, 20) : 2 * limits->server_window_ms + 10;
    pace_begin(p);
    up(p, 20);
    gone(p, 0, first);
    uint64_t first_ms = pace_now(p) + 1;

    pace_run(p, pause_ms + (marked ? limits->server_settle_ms : 0));
    gone(p, first, second);
    uint64_t second_ms = pace_now(p) + 1;
    bool held = pause_ms <= limits->server_window_ms;
    uint64_t end_ms = second_ms + limits->server_settle_ms;

    if (held) /* As long as the first ones count as gone. */
        end_ms = marked ? later(end_ms, second_ms - pause_ms + limits->server_window_ms + 1)
                        : PACE_NEVER;

    pace_run(p, 2 * limits->server_settle_ms + limits->server_window_ms + 2);
    for (uint32_t i = 0; i < first; i++)
        marked_check(p, i, held && !marked ? PACE_NEVER : first_ms + limits->server_settle_ms,
                     "the first wave");
    for (uint32_t i = 0; i < second; i++)
        marked_check(p, first + i, end_ms, "the second wave");
    PROMISE(sim, world_stats(p->world).server_holds == held,
            "%u and %u servers vanish %llu ms apart: held %llu times", first, second,
            (unsigned long long)pause_ms, (unsigned long long)world_stats(p->world).server_holds);
    pace_free(p);
}

static void held_since_check(struct pace *p, uint32_t server, uint64_t at_ms, uint64_t since_ms)
{
    const struct pace_write *write = pace_write_of(p, CLUSTER_KEY_SERVER_KNOWN, FIRST + server);

    PROMISE(p->sim, write != NULL && !write->expiring, "server %u is not part of the hold", server);
    PROMISE(p->sim, write->at_ms == at_ms && write->held_ms == since_ms + p->world->clock_ms,
            "server %u is part of the hold %lld ms late, since %lld ms after its beginning", server,
            (long long)(write->at_ms - at_ms),
            (long long)(write->held_ms - since_ms - p->world->clock_ms));
}

/* One that vanished more than server_window_ms before a hold is not part of it; one that vanishes
 * during the hold joins it after as long, and goes with the others. */
static void beside_a_hold(struct rsim *sim)
{
    struct pace *p = many_new(sim);
    struct coord_limits *limits = &p->world->limits;
    uint32_t window_ms = limits->server_window_ms, many = (uint32_t)rsim_between(sim, 3, 5);
    uint64_t ahead_ms = rsim_about(sim, window_ms), first_ms, hold_ms, last_ms;

    limits->server_hold_percent = 1;
    limits->server_hold_min = many;
    limits->server_settle_ms = 3 * window_ms;
    limits->server_hold_ms_max = 8 * window_ms;
    pace_begin(p);
    up(p, 20);
    gone(p, 0, 1);
    first_ms = pace_now(p) + 1;
    pace_run(p, ahead_ms);
    gone(p, 1, many);
    hold_ms = pace_now(p) + 1;
    pace_run(p, rsim_between(sim, 1, 3 * window_ms));
    gone(p, many + 1, 1);
    last_ms = pace_now(p) + 1;
    pace_run(p, hold_ms + limits->server_hold_ms_max + 2 - pace_now(p));
    for (uint32_t i = 1; i <= many; i++) {
        held_since_check(p, i, hold_ms, hold_ms);
        marked_check(p, i, hold_ms + limits->server_hold_ms_max, "held");
    }
    if (ahead_ms <= window_ms)
        held_since_check(p, 0, hold_ms, hold_ms);
    marked_check(p, 0,
                 ahead_ms <= window_ms ? hold_ms + limits->server_hold_ms_max
                                       : first_ms + limits->server_settle_ms,
                 "vanished before");
    held_since_check(p, many + 1, last_ms + window_ms + 1, hold_ms);
    marked_check(p, many + 1, hold_ms + limits->server_hold_ms_max, "vanished afterwards");
    PROMISE(sim, world_stats(p->world).server_holds == 1, "one hold is told %llu times",
            (unsigned long long)world_stats(p->world).server_holds);
    pace_free(p);
}

/* A mark that etcd refuses, since the server lives there, is tried again after txn_retry_ms; what
 * was never answered is sent again, the same, after as long. */
static void refused_marks(struct rsim *sim)
{
    struct pace *p = pace_new(sim);
    struct coord_limits *limits = &p->world->limits;
    bool silent = rsim_chance(sim, 50);

    limits->server_settle_ms = 10;
    limits->server_wait_ms = 0;
    limits->txn_retry_ms = (uint32_t)rsim_between(sim, 10, 80);
    pace_begin(p);
    up(p, 1);
    gone(p, 0, 1);
    if (silent) {
        p->world->fault = WORLD_SILENT;
    } else {
        p->world->mirror_stopped = true;
        world_server_back(p->world, FIRST);
    }
    pace_clear(p);
    uint64_t due_ms = pace_now(p) + 1 + limits->server_settle_ms;

    pace_run(p, 12 + 3u * limits->txn_retry_ms);
    PROMISE(sim, p->sent_count >= 3, "a write that failed is not tried again");
    for (uint32_t i = 0; i < p->sent_count; i++) {
        PROMISE(sim, p->sent[i].at_ms == due_ms + i * (uint64_t)limits->txn_retry_ms,
                "try %u comes %lld ms too late", i,
                (long long)(p->sent[i].at_ms - due_ms - i * (uint64_t)limits->txn_retry_ms));
        PROMISE(sim, !silent || p->sent[i].ticket == p->sent[0].ticket,
                "what may have been written is not repeated as it was");
    }
    PROMISE(sim, p->write_count == 0, "a server that lives is expired");
    PROMISE(sim, silent || world_stats(p->world).writes_lost == p->sent_count,
            "%u writes are refused, %llu told", p->sent_count,
            (unsigned long long)world_stats(p->world).writes_lost);
    sim->counts.writes_retried++;
    pace_free(p);
}

void room_timings(struct rsim *sim)
{
    one_server(sim);
    many_servers(sim);
    many_servers(sim);
    two_waves(sim);
    beside_a_hold(sim);
    refused_marks(sim);
}
