/*
 * coordinator_link: a link to the elected coordinator, for administration: its state, and
 * what its audit says. Players' calls never need it. Follows the election's record in the map.
 */
#ifndef ROUTER_IO_COORDINATOR_LINK_H
#define ROUTER_IO_COORDINATOR_LINK_H

#include "runtime/cluster/shard_map.h"
#include "runtime/link/call.h"

struct coordinator_link;

struct coordinator_link_options {
    struct loop *loop; /* All borrowed. */
    struct link_hub *hub;
    struct calls *calls;
    const struct log *log;
    const struct shard_map *map;
};

struct coordinator_link *coordinator_link_new(const struct coordinator_link_options *options);
/* Closes the link. NULL is allowed. */
void coordinator_link_free(struct coordinator_link *coordinator);

/* As call_start. ERR_UNAVAILABLE: none is elected, or no link to it is ready. */
NODISCARD err coordinator_link_call(struct coordinator_link *coordinator,
                                    const struct call_request *request, uint64_t *ret_call);

#endif
