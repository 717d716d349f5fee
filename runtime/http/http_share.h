/*
 * http_share: how much of the public endpoint's memory each caller holds: an address, or an API
 * key, by a number that stands for it. A share lives while somebody holds it. Pure.
 */
#ifndef RUNTIME_HTTP_HTTP_SHARE_H
#define RUNTIME_HTTP_HTTP_SHARE_H

#include <stdint.h>

#define HTTP_SHARE_SLOTS 1024u

struct http_share {
    uint64_t name;
    uint64_t body_bytes; /* Of requests being received, and of decoded ones.          */
    uint64_t head_bytes; /* Of requests being received, and of those with handlers.   */
    uint32_t holders;    /* Connections or requests.                                  */
    struct http_share *next;
};

/* A zeroed table is valid and empty. */
struct http_shares {
    struct http_share *slots[HTTP_SHARE_SLOTS];
    uint32_t count;
};

/* The share of that name, made if there is none. Give it back by http_share_release. */
struct http_share *http_share_hold(struct http_shares *shares, uint64_t name);
/* One holder more of a share that is held. */
struct http_share *http_share_join(struct http_share *share);
/* Frees it when no holder is left. CHECK: the last holder leaves no bytes behind. NULL is fine. */
void http_share_release(struct http_shares *shares, struct http_share *share);

#endif
