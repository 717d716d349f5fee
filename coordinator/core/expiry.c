/*
 * expiry: frees the players of game servers that are gone. DESIGN section 5.
 *
 * known without live -> gone for server_settle_ms -> gs/known marked EXPIRING (comparing live
 * absent) -> delivery.c tells every shard -> gs/known deleted. The mark in etcd is the decision:
 * a new coordinator that finds it goes on at once, and telling a shard twice is harmless.
 *
 * Hold: when too many are gone at once, the fault is likely ours (routers down, etcd slow), and
 * freeing all their players would do harm. Nobody is marked until enough came back, or for
 * server_hold_ms_max. What is marked already, or was marked by a router on request of the server
 * itself, is not held.
 */
#include <stdlib.h>

#include "coordinator/core/coord_private.h"
#include "runtime/base/check.h"

static bool is_known_live_state(const struct server *server)
{
    return server->known_revision > 0 && server->record.state == SERVER_LIVE;
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

static void hold_changed(struct coord *coord, bool holding, uint32_t gone, uint32_t total)
{
    if (holding == coord->holding)
        return;
    coord->holding = holding;
    if (holding) {
        coord->hold_since_ms = coord->now_ms;
        coord->stats.server_holds++;
        log_event(coord->log, LOG_ERROR, "coordinator.expiry_held", LOG_N("servers_gone", gone),
                  LOG_N("servers", total), LOG_N("hold_ms_max", coord->limits.server_hold_ms_max),
                  LOG_S("reason", "too many game servers vanished at once"));
    } else {
        log_event(coord->log, LOG_WARN, "coordinator.expiry_resumed", LOG_N("servers_gone", gone),
                  LOG_N("servers", total), LOG_N("held_ms", coord->now_ms - coord->hold_since_ms));
    }
}

static void look_for_mass_loss(struct coord *coord)
{
    uint32_t recent = recent_marks(coord);
    uint32_t gone = recent, total = recent;

    for (uint32_t i = 0; i < coord->server_count; i++) {
        const struct server *server = coord->servers[i];

        total += is_known_live_state(server);
        gone += is_known_live_state(server) && !server->live;
    }
    bool too_many = coord->limits.server_hold_ms_max > 0 && gone >= coord->limits.server_hold_min &&
                    (uint64_t)gone * 100 > (uint64_t)total * coord->limits.server_hold_percent;

    if (!too_many)
        coord->hold_over = false;
    if (coord->holding && coord->now_ms - coord->hold_since_ms >= coord->limits.server_hold_ms_max)
        coord->hold_over = true; /* Long enough: they are really gone. */
    hold_changed(coord, too_many && !coord->hold_over, gone, total);
}

static bool mark(struct coord *coord, struct server *server)
{
    struct server_record record = server->record;
    char text[INCARNATION_TEXT_SIZE];

    record.state = SERVER_EXPIRING;
    if (!flight_put_server(coord, server, &record))
        return false;
    coord->marks_ms[coord->mark_count++ % MARKS_MAX] = coord->now_ms;
    incarnation_print(server->incarnation, text);
    log_event(coord->log, LOG_INFO, "coordinator.server_gone", LOG_S("incarnation", text),
              LOG_S("name", record.name));
    return true;
}

/* False: no transaction is free. */
static bool look_at_live(struct coord *coord, struct server *server)
{
    if (server->live)
        return true;
    if (server->gone_ms == 0)
        server->gone_ms = coord->now_ms + 1; /* 0 means: not gone. */
    if (coord->holding || coord->now_ms < server->gone_ms - 1 + coord->limits.server_settle_ms ||
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

        if (server->known_revision == 0 || server->in_txn || coord->now_ms < server->retry_ms)
            continue;
        if (server->record.state == SERVER_EXPIRING)
            go_on = look_at_expiring(coord, server, &expiring);
        else
            go_on = look_at_live(coord, server);
        if (!go_on)
            return;
    }
}
