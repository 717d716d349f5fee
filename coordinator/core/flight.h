/* flight: transactions on their way, each kept until its answer is definite. */
#ifndef COORDINATOR_CORE_FLIGHT_H
#define COORDINATOR_CORE_FLIGHT_H

#include "coordinator/core/coord_event.h"
#include "coordinator/core/coord_out.h"
#include "coordinator/core/coord_state.h"
#include "runtime/base/arena.h"
#include "runtime/cluster/incarnation.h"

enum target_kind {
    TARGET_CLUSTER,
    TARGET_POLICY,
    TARGET_SHARD,
    TARGET_SERVER_MARK,
    TARGET_SERVER_HOLD,
    TARGET_SERVER_FORGET,
    TARGET_NODE_WISH,
    TARGET_SHARD_WISH,
    TARGET_DEFINITION
};

/* What a write is about, and what to adopt when it was carried out. */
struct target {
    enum target_kind kind;
    uint32_t shard;
    struct shard_record record;
    struct incarnation incarnation;
    uint64_t held_since_ms;
    uint64_t replica_id;
    uint64_t number, version; /* DEFINITION. */
    bool removal;             /* Likewise: an old version is forgotten. */
};

enum flight_state { FLIGHT_FREE, FLIGHT_FILLING, FLIGHT_SENT, FLIGHT_WAITING };

/* One transaction, kept until its answer is definite. */
struct flight {
    enum flight_state state;
    uint64_t ticket;
    bool unelected;       /* Without the election key. */
    uint64_t retry_at_ms; /* WAITING. */
    uint32_t count;
    struct coord_write writes[COORD_TXN_WRITES_MAX];
    struct target targets[COORD_TXN_WRITES_MAX];
    struct arena arena;
};

/* Puts gather in an open flight; flights_send sends it. False: too many are in flight; the caller
 * leaves its change for a later step. */
bool flight_put_cluster(struct coord *coord);
bool flight_put_shard(struct coord *coord, uint32_t number, const struct shard_record *record);
bool flight_put_server(struct coord *coord, struct server *server,
                       const struct server_record *record);
bool flight_remove_server(struct coord *coord, struct server *server);
bool flight_remove_node_wish(struct coord *coord, uint64_t replica_id);
bool flight_remove_shard_wish(struct coord *coord, uint32_t number);
/* Only where there is none. */
bool flight_put_shard_wish(struct coord *coord, uint32_t number, const struct shard_wish *wish);
/* A version that there is none of yet. */
/* Where the version before it has that revision still; 0: it is the first. */
bool flight_put_definition(struct coord *coord, uint64_t number, uint64_t version,
                           int64_t after_revision, struct slice packed);
bool flight_remove_definition(struct coord *coord, uint64_t number, uint64_t version,
                              int64_t revision);
/* False: the election key does not stand; the caller stops acting. */
bool flights_done(struct coord *coord, const struct coord_event *event);
/* Sends what is filled and repeats what is due. */
void flights_send(struct coord *coord, struct coord_out *out);
void flights_drop(struct coord *coord);
uint32_t flights_open(const struct coord *coord);
/* One of them makes a version of a definition. */
bool flights_define(const struct coord *coord);

#endif
