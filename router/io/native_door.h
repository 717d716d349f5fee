/*
 * native_door: the way in for native clients: request frames over nng links, the same methods and
 * messages in protobuf. A frame's method is the number in idl/method.h; its answer has status
 * WIRE_OK with the response, or WIRE_REFUSED with an ErrorDetail (OUTCOME_UNKNOWN included).
 */
#ifndef ROUTER_IO_NATIVE_DOOR_H
#define ROUTER_IO_NATIVE_DOOR_H

#include "router/rpc/router.h"

#define NATIVE_POOL_MAX 1024u /* Request memories kept for reuse. */

struct native_door;

struct native_door_options {
    struct loop *loop;
    const struct log *log;
    struct router *router;
    uint32_t key_rate;         /* Requests of one client a second; 0: no limit. */
    uint64_t bodies_bytes_max; /* Of requests under way; one client may hold half of it. */
    uint32_t deadline_default_ms;
    uint32_t deadline_max_ms;
};

struct native_door *native_door_new(const struct native_door_options *options);
/* After native_door_cancel. NULL is allowed. */
void native_door_free(struct native_door *door);

/* Between them: calls_new with native_door_request as its `request`, then native_door_listen. */
void native_door_request(void *door, struct link *link, const struct frame *frame,
                         const struct call_reply *reply);
NODISCARD err native_door_listen(struct native_door *door, struct link_hub *hub,
                                 struct calls *calls, const char *address);
/* For answers, also without native_door_listen. */
void native_door_set_calls(struct native_door *door, struct calls *calls);
/* 0: not listening. */
uint16_t native_door_port(const struct native_door *door);
/* Accepts no new connection, and refuses new requests as UNAVAILABLE; open ones go on. */
void native_door_drain(struct native_door *door);
/* Ends every open request. */
void native_door_cancel(struct native_door *door);

#endif
