/*
 * term: what a coordinator holds only while it decides, and the one place where all of it is let
 * go. Another coordinator may decide from then on: it reads etcd and asks the shards again, and so
 * does this one, should it be elected again. Knowledge that only grows stays: the records, the
 * epochs that replicas told of, who confirmed which policy.
 */
#include "coordinator/core/term.h"

#include <stdlib.h>

#include "coordinator/core/audit.h"
#include "coordinator/core/change.h"
#include "coordinator/core/definition_change.h"
#include "coordinator/core/definition_send.h"
#include "coordinator/core/delivery.h"
#include "coordinator/core/flight.h"
#include "coordinator/core/hold.h"
#include "coordinator/core/word.h"
#include "runtime/base/check.h"

/* ---- letting go ---- */
static void shards_drop(struct coord *coord)
{
    for (uint32_t i = 0; i < coord->shard_count; i++) {
        struct shard *shard = &coord->shards[i];

        shard->state = (struct told_state){ 0 };
        shard->lost_since_ms = 0;
        shard->looked_ms = 0;
        shard->load = (struct shard_load){ 0 };
    }
}

/* What shards confirmed is asked of them again: they are told as often as needed. */
static void servers_drop(struct coord *coord)
{
    for (uint32_t i = 0; i < coord->server_count; i++) {
        free(coord->servers[i]->acks);
        coord->servers[i]->acks = NULL;
        coord->servers[i]->acks_left = 0;
        coord->servers[i]->held_since_ms = coord->servers[i]->record.held_since_ms;
    }
    hold_drop(coord);
}

void term_drop(struct coord *coord)
{
    flights_drop(coord);
    delivery_drop(coord);
    word_drop(coord);
    change_drop(coord);
    definitions_drop(coord);
    audit_drop(coord);
    shards_drop(coord);
    servers_drop(coord);
    coord->changes_open = 0;
    coord->policy_left = 0;
    CHECK(term_work_left(coord) == NULL);
}

/* ---- looking for what is left ---- */
static const char *transaction_left(const struct coord *coord)
{
    for (uint32_t i = 0; i < coord->limits.txns_max; i++) {
        const struct flight *flight = &coord->flights[i];

        if (flight->state != FLIGHT_FREE && !flight->unelected)
            return "a transaction";
    }
    return NULL;
}

static const char *call_left(const struct coord *coord)
{
    for (uint32_t i = 0; i < coord->limits.calls_max; i++) {
        if (coord->calls[i].call != 0)
            return "a call";
    }
    for (uint32_t i = 0; i < CLUSTER_NODES_MAX; i++) {
        if (coord->words[i].calling)
            return "a question to a node";
    }
    return coord->call_count > 0 ? "the number of calls" : NULL;
}

static const char *shard_left(const struct coord *coord)
{
    for (uint32_t i = 0; i < coord->shard_count; i++) {
        const struct shard *shard = &coord->shards[i];

        if (shard->in_txn || shard->wish_in_txn)
            return "a write of a shard";
        if (shard->policy_calls > 0 || shard->state_calls > 0 || shard->defined.calls > 0)
            return "a call to a shard";
        if (shard->state.epoch != 0 || shard->lost_since_ms != 0)
            return "a change of a shard's members";
        if (shard->load.known || shard->load.epoch != 0)
            return "the load of a shard";
    }
    for (uint32_t i = 0; i < coord->wanted_count; i++) {
        if (coord->wanted[i].in_txn)
            return "a write of a node's wish";
    }
    return coord->changes_open > 0 ? "the number of changes" : NULL;
}

static const char *server_left(const struct coord *coord)
{
    for (uint32_t i = 0; i < coord->server_count; i++) {
        if (coord->servers[i]->txn != 0)
            return "a write of a game server";
        if (coord->servers[i]->acks != NULL)
            return "the expiry of a game server";
        if (coord->servers[i]->held_since_ms != coord->servers[i]->record.held_since_ms)
            return "an unwritten hold of a game server";
    }
    return hold_is_on(coord) ? "a hold of expiries" : NULL;
}

static const char *audit_left(const struct coord *coord)
{
    const struct audit *audit = &coord->audit;

    if (audit->running || audit->want_buckets)
        return "a cut";
    if (audit->imbalance)
        return "an imbalance";
    if (audit->search.state != SEARCH_NONE)
        return "a search";
    for (uint32_t i = 0; i < AUDIT_CUTS; i++) {
        if (audit->sums[i].cut != 0)
            return "the sum of a cut";
    }
    return NULL;
}

const char *term_work_left(const struct coord *coord)
{
    const char *(*const looks[])(const struct coord *coord) = { transaction_left, call_left,
                                                                shard_left, server_left,
                                                                audit_left };
    const char *left = coord->policy_left > 0 ? "the policy" : NULL;

    if (definition_waits_open(coord) || coord->definitions.left > 0 || coord->definitions.trimming)
        left = "a definition";

    for (size_t i = 0; i < ARRAY_SIZE(looks) && left == NULL; i++)
        left = looks[i](coord);
    return left;
}
