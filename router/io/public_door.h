/*
 * public_door: game servers' way in: runtime/http's endpoint in front of the dispatcher. Connect,
 * gRPC and gRPC-Web on one port, with health. DESIGN section 10.
 */
#ifndef ROUTER_IO_PUBLIC_DOOR_H
#define ROUTER_IO_PUBLIC_DOOR_H

#include "router/io/gatekeeper.h"
#include "router/io/router_config.h"
#include "router/rpc/router.h"
#include "runtime/rpc/rpc_server.h"

struct public_door;

struct public_door_options {
    struct loop *loop;
    const struct log *log;
    const struct router_config *config;
    struct router *router;
    struct gatekeeper *gatekeeper;
    struct budget *answers;       /* Of the router: counts what waits to be sent. */
    bool (*is_ready)(void *user); /* For health. */
    void *user;
};

/* Listens. ERR_INVALID: the address, or a certificate; ERR_IO: the port. Logged with the reason. */
NODISCARD err public_door_new(const struct public_door_options *options,
                              struct public_door **ret_door);
uint16_t public_door_port(const struct public_door *door);
const struct http_stats *public_door_stats(const struct public_door *door);
const struct turnstile_stats *public_door_turnstile(const struct public_door *door);
/* Seconds since 1970 at which its certificate expires; 0: it has none. */
double public_door_expires_s(const struct public_door *door);
/* The same in milliseconds. */
uint64_t public_door_expires_ms(const struct public_door *door);
/* Accepts no new connection; open requests go on. */
void public_door_drain(struct public_door *door);
/* After public_door_drain: whether each client has taken the last of its answers. */
bool public_door_is_drained(const struct public_door *door);
/* Closes every connection, running the loop until that is done. Every request must have ended or
 * will be cancelled. NULL is allowed. */
void public_door_free(struct public_door *door);

#endif
