/*
 * metadata_source: where the metadata of a collection's targets is: with the shards, or with the
 * endpoint that its definition names. The elected coordinator is asked, and its answer is good for
 * METADATA_SOURCE_AGE_MS; after that it is asked again, while what is known stays in use.
 */
#ifndef ROUTER_RPC_METADATA_METADATA_SOURCE_H
#define ROUTER_RPC_METADATA_METADATA_SOURCE_H

#include "router/core/count_ask.h"
#include "router/core/metadata_breaker.h"
#include "router/rpc/request/router_state.h"
#include "runtime/cluster/endpoint_url.h"

#define METADATA_SOURCE_AGE_MS 5000u
#define METADATA_SOURCES_MAX   64u
#define METADATA_FIND_MS       1000u

struct metadata_sources;

struct metadata_source {
    char collection[COUNT_COLLECTION_BYTES + 1]; /* Empty: the place is free. */
    char url[ENDPOINT_URL_MAX + 1];              /* Empty: the shards have it. */
    struct metadata_breaker breaker;             /* Of the endpoint. */
    bool known;
    uint32_t users; /* Batches that hold it. */
    /* ---- metadata_source.c's own ---- */
    struct metadata_sources *sources;
    uint64_t asked_ms, used_ms;
    uint64_t call; /* 0: the coordinator is not being asked. */
    uint8_t question[COUNT_COLLECTION_BYTES + 64];
};

/* `told` is called whenever a question has ended: what waits for `known` looks again, or is not to
 * be had if that is still false. */
struct metadata_sources *
metadata_sources_new(struct router *router,
                     void (*told)(void *user, struct metadata_source *source), void *user);
/* NULL is allowed. */
void metadata_sources_free(struct metadata_sources *sources);
/* How many endpoints are not asked for the moment. */
uint64_t metadata_sources_resting(const struct metadata_sources *sources);
/* That of a collection; asks the coordinator if need be. NULL: too many collections are in use. */
struct metadata_source *metadata_source_get(struct metadata_sources *sources,
                                            struct slice collection);

#endif
