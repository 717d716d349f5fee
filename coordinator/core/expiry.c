/*
 * expiry: frees the players of game servers that are gone. DESIGN section 5.
 *
 * known without live -> gone for server_settle_ms -> gs/known marked EXPIRING (comparing live
 * absent) -> delivery.c tells every shard -> gs/known deleted. The mark in etcd is the decision:
 * a new coordinator that finds it goes on at once, and telling a shard twice is harmless. When too
 * many vanish at once they are held first (hold.h).
 */
#include "coordinator/core/expiry.h"

#include <stdlib.h>

#include "coordinator/core/flight.h"
#include "coordinator/core/hold.h"
#include "coordinator/core/server_keys.h"
#include "runtime/base/check.h"

static bool mark(struct coord *coord, struct server *server)
{
    struct server_record record = server->record;
    char text[INCARNATION_TEXT_SIZE];

    record.state = SERVER_EXPIRING;
    record.held_since_ms = 0;
    if (!flight_put_server(coord, server, &record))
        return false;
    if (server->held_since_ms == 0)
        server_keys_mark(coord, server->key);
    incarnation_print(server->incarnation, text);
    log_event(coord->log, LOG_INFO, "coordinator.server_gone", LOG_S("incarnation", text),
              LOG_S("name", record.name), LOG_S("key", record.key));
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
    if (hold_keeps(coord, server))
        return hold(coord, server);
    if (hold_gone_for_ms(coord, server) < coord->limits.server_settle_ms ||
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

    hold_run(coord);
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
