#include "coordinator/core/hold.h"

#include "coordinator/core/server_keys.h"
#include "runtime/base/check.h"

#define CLOCK_SLACK_MS 1000u /* So far ahead is no other coordinator's clock that is wrong. */

static uint64_t wall_now_ms(const struct coord *coord)
{
    uint64_t wall_ms = coord->now_ms + coord->wall_ahead_ms;

    return wall_ms > 0 ? wall_ms : 1; /* 0 means: not held. */
}

static bool is_known_live_state(const struct server *server)
{
    return server->known_revision > 0 && server->record.state == SERVER_LIVE;
}

uint64_t hold_gone_for_ms(const struct coord *coord, const struct server *server)
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
           hold_gone_for_ms(coord, server) <= coord->limits.server_window_ms;
}

static bool vanished_before(const struct coord *coord, const struct hold *hold,
                            const struct server *server)
{
    return hold_gone_for_ms(coord, server) >
           held_for_ms(coord, hold->since_ms) + coord->limits.server_window_ms;
}

/* ---- what is gone ---- */

/* A server that vanishes during a hold joins it after server_window_ms: until then it may be one
 * of a new one. */
static void join(const struct coord *coord, const struct hold *hold, struct server *server)
{
    if (hold->on && server->held_since_ms == 0 && server->txn == 0 &&
        hold_gone_for_ms(coord, server) > coord->limits.server_window_ms &&
        !vanished_before(coord, hold, server))
        server->held_since_ms = hold->since_ms;
}

static void look_at_gone(struct coord *coord, struct server *server)
{
    uint64_t wall_ms = wall_now_ms(coord);

    if (server->gone_ms == 0)
        server->gone_ms = coord->now_ms + 1; /* 0 means: not gone. */
    if (server->held_since_ms > wall_ms + CLOCK_SLACK_MS)
        server->held_since_ms = wall_ms;
    join(coord, &server->key->hold, server);
    join(coord, &coord->hold, server);
}

static void count(const struct coord *coord, struct hold *hold, const struct server *server)
{
    if (server->live) {
        hold->live++;
    } else if (is_held(coord, server)) {
        hold->held++;
        if (server->held_since_ms > hold->newest_ms)
            hold->newest_ms = server->held_since_ms;
    } else {
        hold->fresh += is_fresh(coord, server);
    }
}

static void begin_count(struct hold *hold, uint32_t recent)
{
    hold->live = hold->fresh = hold->held = 0;
    hold->recent = recent;
    hold->newest_ms = 0;
}

static void take_census(struct coord *coord)
{
    uint32_t recent = 0;

    server_keys_forget(coord);
    for (uint32_t i = 0; i < coord->key_count; i++) {
        begin_count(&coord->keys[i]->hold, coord->keys[i]->mark_count);
        recent += coord->keys[i]->mark_count;
    }
    begin_count(&coord->hold, recent);
    for (uint32_t i = 0; i < coord->server_count; i++) {
        struct server *server = coord->servers[i];

        if (!is_known_live_state(server))
            continue;
        CHECK(server->key != NULL);
        if (!server->live)
            look_at_gone(coord, server);
        count(coord, &server->key->hold, server);
        count(coord, &coord->hold, server);
    }
}

/* ---- whether it is too much ---- */

static bool too_many(const struct coord *coord, uint32_t gone, uint32_t live)
{
    return coord->limits.server_hold_ms_max > 0 && gone >= coord->limits.server_hold_min &&
           (uint64_t)gone * 100 > ((uint64_t)gone + live) * coord->limits.server_hold_percent;
}

/* Gone lately; with those that are held already, or without them. */
static uint32_t gone_of(const struct hold *hold, bool with_held)
{
    return hold->fresh + hold->recent + (with_held ? hold->held : 0);
}

/* Of the servers of all keys, whichever one key is left out. */
static bool too_many_of_all(const struct coord *coord, bool with_held)
{
    const struct hold *all = &coord->hold;
    bool many = coord->key_count > 1;

    for (uint32_t i = 0; many && i < coord->key_count; i++) {
        const struct hold *one = &coord->keys[i]->hold;

        many = too_many(coord, gone_of(all, with_held) - gone_of(one, with_held),
                        all->live - one->live);
    }
    return many;
}

/* ---- holds ---- */

/* Those that vanished within the window of a hold that has begun are part of it. Returns since when
 * this one is; `id` is empty where it is of all keys, or of servers without one. */
static uint64_t begin(struct coord *coord, const struct hold *hold, const char *id)
{
    uint64_t since_ms = wall_now_ms(coord);
    uint32_t gone = gone_of(hold, false);

    if (hold->newest_ms != 0 && since_ms <= hold->newest_ms + coord->limits.server_window_ms)
        return hold->newest_ms;
    coord->stats.server_holds++;
    log_event(coord->log, LOG_ERROR, "coordinator.expiry_held", LOG_N("servers_gone", gone),
              LOG_N("servers", gone + hold->live), LOG_S("key", id),
              LOG_N("hold_ms_max", coord->limits.server_hold_ms_max),
              LOG_S("reason", "too many game servers vanished at once"));
    return since_ms;
}

/* The fresh ones are held from now on. */
static void turn_held(struct hold *hold, uint32_t fresh, uint64_t since_ms)
{
    CHECK(fresh <= hold->fresh);
    hold->fresh -= fresh;
    hold->held += fresh;
    if (fresh > 0 && since_ms > hold->newest_ms)
        hold->newest_ms = since_ms;
}

/* Of each key, then of all: a server is part of the hold of its key, if there is one. */
static void begin_holds(struct coord *coord)
{
    bool all = coord->hold.fresh > 0 && too_many_of_all(coord, false), began = all;
    uint64_t all_since_ms = 0;

    if (all)
        all_since_ms = begin(coord, &coord->hold, "");
    for (uint32_t i = 0; i < coord->key_count; i++) {
        struct server_key *key = coord->keys[i];
        struct hold *hold = &key->hold;
        uint32_t fresh = hold->fresh;

        key->begin_ms = all_since_ms;
        if (fresh > 0 && too_many(coord, gone_of(hold, false), hold->live) && !all)
            key->begin_ms = begin(coord, hold, key->id);
        if (key->begin_ms == 0)
            continue;
        began = true;
        turn_held(hold, fresh, key->begin_ms);
        turn_held(&coord->hold, fresh, key->begin_ms);
        hold->on |= hold->held > 0 && too_many(coord, gone_of(hold, true), hold->live);
    }
    coord->hold.on |= all;
    for (uint32_t i = 0; began && i < coord->server_count; i++) {
        struct server *server = coord->servers[i];

        if (is_known_live_state(server) && !server->live && is_fresh(coord, server) &&
            server->key->begin_ms != 0)
            server->held_since_ms = server->key->begin_ms;
    }
}

static void go_on(struct coord *coord, struct hold *hold, const char *id, bool on)
{
    if (on && !hold->on)
        log_event(coord->log, LOG_WARN, "coordinator.expiry_hold_goes_on",
                  LOG_N("servers_held", hold->held), LOG_S("key", id),
                  LOG_N("held_ms", held_for_ms(coord, hold->newest_ms)));
    if (!on && hold->on)
        log_event(coord->log, LOG_WARN, "coordinator.expiry_resumed",
                  LOG_N("servers_gone", hold->held + hold->fresh), LOG_N("live", hold->live),
                  LOG_S("key", id), LOG_N("held_ms", held_for_ms(coord, hold->since_ms)));
    hold->on = on;
    if (on)
        hold->since_ms = hold->newest_ms;
}

void hold_run(struct coord *coord)
{
    take_census(coord);
    begin_holds(coord);
    for (uint32_t i = 0; i < coord->key_count; i++) {
        struct hold *hold = &coord->keys[i]->hold;

        go_on(coord, hold, coord->keys[i]->id,
              hold->held > 0 && too_many(coord, gone_of(hold, true), hold->live));
    }
    go_on(coord, &coord->hold, "", coord->hold.held > 0 && too_many_of_all(coord, true));
}

static bool keeps(const struct coord *coord, const struct hold *hold, const struct server *server)
{
    if (!hold->on)
        return false;
    return server->held_since_ms != 0 ? is_held(coord, server)
                                      : !vanished_before(coord, hold, server);
}

bool hold_keeps(const struct coord *coord, const struct server *server)
{
    return keeps(coord, &server->key->hold, server) || keeps(coord, &coord->hold, server);
}

bool hold_is_on(const struct coord *coord)
{
    bool on = coord->hold.on;

    for (uint32_t i = 0; !on && i < coord->key_count; i++)
        on = coord->keys[i]->hold.on;
    return on;
}

void hold_drop(struct coord *coord)
{
    coord->hold.on = false;
    for (uint32_t i = 0; i < coord->key_count; i++)
        coord->keys[i]->hold.on = false;
}
