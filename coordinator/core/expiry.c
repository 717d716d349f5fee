/*
 * expiry: frees the players of game servers that are gone. DESIGN section 5.
 *
 * known without live -> gone for server_settle_ms -> gs/known marked EXPIRING (comparing live
 * absent) -> delivery.c tells every shard -> gs/known deleted. The mark in etcd is the decision:
 * a new coordinator that finds it goes on at once, and telling a shard twice is harmless.
 *
 * Hold: when too many vanish at once, the fault is likely ours (routers down, etcd slow), and
 * freeing all their players would do harm. Each of them is held: gs/known says since when, so a new
 * coordinator goes on with the hold instead of beginning another. A held server is expired once
 * server_hold_ms_max passed since then, or enough others came back. It is never held twice: only
 * its own return takes the mark away. Servers that vanished before are not part of the hold; those
 * that vanish while it lasts join it, and do not prolong it, unless they are too many themselves.
 * What is EXPIRING already, also on request of the server itself, is not held.
 *
 * Clocks of coordinators differ. A beginning in the future is written again as now, so that a hold
 * only becomes shorter by it; one that looks long past still waits for server_wait_ms of the
 * coordinator that took over.
 */
#include "coordinator/core/expiry.h"

#include <stdlib.h>

#include "coordinator/core/flight.h"
#include "runtime/base/check.h"

#define CLOCK_SLACK_MS 1000u /* So far ahead is no other coordinator's clock that is wrong. */

struct census {
    uint32_t live;
    uint32_t fresh; /* Vanished within server_window_ms, and not held. */
    uint32_t held;
    uint32_t recent; /* Marked within server_window_ms, and not held before. */
    uint64_t newest; /* The last beginning of those that are held; 0: none is. */
};

static uint64_t wall_now_ms(const struct coord *coord)
{
    uint64_t wall_ms = coord->now_ms + coord->wall_ahead_ms;

    return wall_ms > 0 ? wall_ms : 1; /* 0 means: not held. */
}

static bool is_known_live_state(const struct server *server)
{
    return server->known_revision > 0 && server->record.state == SERVER_LIVE;
}

static uint64_t gone_for_ms(const struct coord *coord, const struct server *server)
{
    return server->gone_ms == 0 ? 0 : coord->now_ms - (server->gone_ms - 1);
}

/* 0 also for a beginning within CLOCK_SLACK_MS from now. */
static uint64_t held_for_ms(const struct coord *coord, uint64_t since_ms)
{
    uint64_t wall_ms = wall_now_ms(coord);

    return wall_ms > since_ms ? wall_ms - since_ms : 0;
}

/* And not for too long. */
static bool is_held(const struct coord *coord, const struct server *server)
{
    return server->held_since_ms > 0 &&
           held_for_ms(coord, server->held_since_ms) < coord->limits.server_hold_ms_max;
}

static bool is_fresh(const struct coord *coord, const struct server *server)
{
    return server->held_since_ms == 0 && server->txn == 0 &&
           gone_for_ms(coord, server) <= coord->limits.server_window_ms;
}

/* Marked within server_window_ms; at most MARKS_MAX. */
static uint32_t recent_marks(const struct coord *coord)
{
    uint32_t kept = coord->mark_count < MARKS_MAX ? coord->mark_count : MARKS_MAX;
    uint32_t count = 0;

    for (uint32_t i = 0; i < kept; i++)
        count += coord->now_ms - coord->marks_ms[i] <= coord->limits.server_window_ms;
    return count;
}

static bool vanished_before_hold(const struct coord *coord, const struct server *server)
{
    return gone_for_ms(coord, server) >
           held_for_ms(coord, coord->hold_since_ms) + coord->limits.server_window_ms;
}

/* Who vanishes during a hold joins it after server_window_ms: until then it may be one of a new
 * one. */
static void look_at_gone(struct coord *coord, struct server *server)
{
    uint64_t wall_ms = wall_now_ms(coord);

    if (server->gone_ms == 0)
        server->gone_ms = coord->now_ms + 1; /* 0 means: not gone. */
    if (server->held_since_ms > wall_ms + CLOCK_SLACK_MS)
        server->held_since_ms = wall_ms;
    if (coord->holding && server->held_since_ms == 0 && server->txn == 0 &&
        gone_for_ms(coord, server) > coord->limits.server_window_ms &&
        !vanished_before_hold(coord, server))
        server->held_since_ms = coord->hold_since_ms;
}

static struct census take_census(struct coord *coord)
{
    struct census census = { .recent = recent_marks(coord) };

    for (uint32_t i = 0; i < coord->server_count; i++) {
        struct server *server = coord->servers[i];

        if (!is_known_live_state(server))
            continue;
        if (server->live) {
            census.live++;
            continue;
        }
        look_at_gone(coord, server);
        if (is_held(coord, server)) {
            census.held++;
            if (server->held_since_ms > census.newest)
                census.newest = server->held_since_ms;
        } else {
            census.fresh += is_fresh(coord, server);
        }
    }
    return census;
}

static bool too_many(const struct coord *coord, uint32_t gone, uint32_t live)
{
    return coord->limits.server_hold_ms_max > 0 && gone >= coord->limits.server_hold_min &&
           (uint64_t)gone * 100 > ((uint64_t)gone + live) * coord->limits.server_hold_percent;
}

/* Those that vanished within the window of a hold that has begun are part of it. */
static void begin_hold(struct coord *coord, struct census *census)
{
    uint64_t since_ms = wall_now_ms(coord);
    uint32_t gone = census->fresh + census->recent;

    if (census->newest != 0 && since_ms <= census->newest + coord->limits.server_window_ms) {
        since_ms = census->newest;
    } else {
        coord->stats.server_holds++;
        log_event(coord->log, LOG_ERROR, "coordinator.expiry_held", LOG_N("servers_gone", gone),
                  LOG_N("servers", gone + census->live),
                  LOG_N("hold_ms_max", coord->limits.server_hold_ms_max),
                  LOG_S("reason", "too many game servers vanished at once"));
    }
    for (uint32_t i = 0; i < coord->server_count; i++) {
        struct server *server = coord->servers[i];

        if (is_known_live_state(server) && !server->live && is_fresh(coord, server))
            server->held_since_ms = since_ms;
    }
    census->held += census->fresh;
    census->fresh = 0;
    census->newest = since_ms;
    coord->holding = true;
}

static void look_for_mass_loss(struct coord *coord)
{
    struct census census = take_census(coord);

    if (census.fresh > 0 && too_many(coord, census.fresh + census.recent, census.live))
        begin_hold(coord, &census);
    bool holding =
        census.held > 0 && too_many(coord, census.held + census.fresh + census.recent, census.live);

    if (holding && !coord->holding)
        log_event(coord->log, LOG_WARN, "coordinator.expiry_hold_goes_on",
                  LOG_N("servers_held", census.held),
                  LOG_N("held_ms", held_for_ms(coord, census.newest)));
    if (!holding && coord->holding)
        log_event(coord->log, LOG_WARN, "coordinator.expiry_resumed",
                  LOG_N("servers_gone", census.held + census.fresh), LOG_N("live", census.live),
                  LOG_N("held_ms", held_for_ms(coord, coord->hold_since_ms)));
    coord->holding = holding;
    if (holding)
        coord->hold_since_ms = census.newest;
}

static bool mark(struct coord *coord, struct server *server)
{
    struct server_record record = server->record;
    char text[INCARNATION_TEXT_SIZE];

    record.state = SERVER_EXPIRING;
    record.held_since_ms = 0;
    if (!flight_put_server(coord, server, &record))
        return false;
    if (server->held_since_ms == 0)
        coord->marks_ms[coord->mark_count++ % MARKS_MAX] = coord->now_ms;
    incarnation_print(server->incarnation, text);
    log_event(coord->log, LOG_INFO, "coordinator.server_gone", LOG_S("incarnation", text),
              LOG_S("name", record.name));
    return true;
}

/* False: no transaction is free. */
static bool hold(struct coord *coord, struct server *server)
{
    struct server_record record = server->record;

    if (server->held_since_ms == server->record.held_since_ms)
        return true;
    record.held_since_ms = server->held_since_ms;
    return flight_put_server(coord, server, &record);
}

/* False: no transaction is free. */
static bool look_at_live(struct coord *coord, struct server *server)
{
    if (server->live)
        return true;
    if (coord->holding && (server->held_since_ms != 0 ? is_held(coord, server)
                                                      : !vanished_before_hold(coord, server)))
        return hold(coord, server);
    if (gone_for_ms(coord, server) < coord->limits.server_settle_ms ||
        coord->now_ms - coord->elected_ms < coord->limits.server_wait_ms)
        return true;
    return mark(coord, server);
}

/* *expiring counts those being worked on. False: no transaction is free. */
static bool look_at_expiring(struct coord *coord, struct server *server, uint32_t *expiring)
{
    if (server->acks == NULL) {
        if (*expiring >= coord->limits.servers_expiring_max)
            return true;
        server->acks = mem_zalloc(coord->shard_count);
        server->acks_left = coord->shard_count;
    }
    ++*expiring;
    return server->acks_left > 0 || flight_remove_server(coord, server);
}

void expiry_run(struct coord *coord)
{
    uint32_t expiring = 0;

    look_for_mass_loss(coord);
    for (uint32_t i = 0; i < coord->server_count; i++) {
        struct server *server = coord->servers[i];
        bool go_on = true;

        if (server->known_revision == 0 || server->txn != 0 || coord->now_ms < server->retry_ms)
            continue;
        if (server->record.state == SERVER_EXPIRING)
            go_on = look_at_expiring(coord, server, &expiring);
        else
            go_on = look_at_live(coord, server);
        if (!go_on)
            return;
    }
}
