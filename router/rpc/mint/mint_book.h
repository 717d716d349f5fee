/*
 * mint_book: takes shares of what API keys may make a day from the cluster's etcd, for the requests
 * of one router (router/core/mint_guard.h). One question a key at a time; the requests of that key
 * wait for it. On the loop's thread only.
 *
 * A share is taken by a transaction that compares the record's revision, and is spent only after
 * etcd has said that it was carried out. Where the answer is lost the share is lost with it: it
 * counts, and no router spends it. So the sum of all that routers spend never passes the record,
 * nor the record the limit. An etcd that went back to an earlier state forgets what was taken
 * since: while it is not accepted, no share is taken.
 */
#ifndef ROUTER_RPC_MINT_MINT_BOOK_H
#define ROUTER_RPC_MINT_MINT_BOOK_H

#include "router/core/mint_guard.h"
#include "router/rpc/request/request.h"
#include "runtime/etcd/etcd.h"
#include "runtime/loop/loop.h"

struct mint_book;

struct mint_book_options {
    struct etcd *etcd;
    const char *cluster; /* Name; must outlive it. */
};

struct mint_book *mint_book_new(const struct mint_book_options *options);
/* No request waits any more. NULL is allowed. */
void mint_book_free(struct mint_book *book);

/* A request that waits; lives as long as it does. */
struct mint_wait {
    struct mint_call call;
    /* Never from inside mint_book_take. ERR_OK: it may, and is counted. ERR_FULL, ERR_INVALID: as
     * mint_guard_take has it. ERR_UNAVAILABLE: etcd did not answer; nothing is counted. */
    void (*done)(void *user, err e, const Holdfast__V1__ErrorDetail *detail);
    void *user;
    uint64_t timeout_ms; /* Of each question to etcd that is asked for it. */
    /* ---- the book's ---- */
    struct mint_ask *ask;
    struct mint_wait *next, *previous;
};

/* ERR_NEED: it waits, and `done` comes exactly once, unless it is cancelled. Else as
 * mint_guard_take has it, and `done` does not come. */
NODISCARD err mint_book_take(struct mint_book *book, struct mint_wait *wait,
                             Holdfast__V1__ErrorDetail *ret_detail);
void mint_book_cancel(struct mint_wait *wait);

#endif
