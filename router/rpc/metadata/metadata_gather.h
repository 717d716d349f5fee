/*
 * metadata_gather: what targets are called and look like, from the router's memory, from the shards
 * that keep it, or from the endpoint that the collection's definition names. Nothing of it is worth
 * an error of a list: what cannot be had in time is left out, and the answer says why.
 *
 *   metas_ask -> young enough: told; older: told, and asked for again for the next ones
 *             -> unknown: waits for a batch, with whatever else asks for the same collection
 *
 * Everything runs on the loop's thread.
 */
#ifndef ROUTER_RPC_METADATA_METADATA_GATHER_H
#define ROUTER_RPC_METADATA_METADATA_GATHER_H

#include "holdfast/v1/favorites.pb-c.h"
#include "router/core/metadata_memo.h"
#include "router/rpc/request/request.h"
#include "runtime/loop/loop.h"

#define METADATA_OLD_MS_MAX 300000u /* What is older is not told, even if nothing newer is had. */

struct metas;
struct router;
struct metadata_wait;

struct metas *metas_new(struct router *router);
/* Nothing is asked any more, and nothing told: before the links to nodes go. */
void metas_stop(struct metas *metas);
/* When every request has ended. NULL is allowed. */
void metas_free(struct metas *metas);

/* One question. In the request's arena, as all that it points to. */
struct metadata_ask {
    struct request *request;
    struct slice collection;
    char *const *targets; /* Sound ones. */
    size_t count;
    /* Once, now or later; not if the request's caller goes: then the request has ended. */
    void (*done)(struct metadata_ask *ask);
    void *user;
    /* ---- told by then ---- */
    Holdfast__V1__TargetMetadata **told; /* By place; NULL: none is known. */
    const char *reason;                  /* Why some is missing; NULL: all there is was found. */
    Holdfast__V1__ErrorCode code;        /* Of the last shard that refused; 0: none did. */
    /* ---- metadata_gather.c's own ---- */
    struct metadata_wait *waits;
    const char *why; /* Of a batch of which something could not be had. */
    size_t bytes;    /* Of what is told. */
    uint32_t open;
    struct loop_timer timer;
};
void metas_ask(struct metadata_ask *ask);

struct metas_stats {
    struct metadata_memo_stats memo;
    uint64_t fetches;    /* Answers of endpoints that were taken. */
    uint64_t failures;   /* Endpoints that did not answer as they should. */
    uint64_t left_out;   /* Entries of their answers that break a rule. */
    uint64_t incomplete; /* Questions of which something could not be had. */
    uint64_t resting;    /* Endpoints that are not asked for the moment. */
};
struct metas_stats metas_stats(const struct metas *metas);

#endif
