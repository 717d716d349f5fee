/*
 * metadata_port: how the RPC layer asks an endpoint of metadata, which a collection's definition
 * names. router/io/metadata_http.c stands behind it with HTTP; tests with answers of their own.
 */
#ifndef ROUTER_RPC_REQUEST_METADATA_PORT_H
#define ROUTER_RPC_REQUEST_METADATA_PORT_H

#include "runtime/base/buf.h"
#include "runtime/base/err.h"

/* One question; its memory is the user's, and stays until `done` or cancel. */
struct metadata_fetch {
    const char *url;
    struct slice body; /* JSON. */
    uint64_t timeout_ms;
    /* From the loop, never from inside start. `why` NULL: it answered, with that body; else why it
     * did not, in words for logs and callers. */
    void (*done)(struct metadata_fetch *fetch, struct slice answer, const char *why);
    void *user;
    void *open; /* The port's. */
};

struct metadata_port {
    /* ERR_INVALID, ERR_UNAVAILABLE: *ret_why says why it is not asked; static text. */
    err (*start)(void *context, struct metadata_fetch *fetch, const char **ret_why);
    /* No `done` any more. */
    void (*cancel)(void *context, struct metadata_fetch *fetch);
    void *context;
};

#endif
