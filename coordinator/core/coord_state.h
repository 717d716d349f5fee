/*
 * coord_state: what a coordinator knows between two steps, as plain data. Each part has one unit
 * that changes it: records (what etcd says), flight, delivery, word, ownership, change, expiry,
 * audit. For the files of this folder alone.
 */
#ifndef COORDINATOR_CORE_COORD_STATE_H
#define COORDINATOR_CORE_COORD_STATE_H

#include "coordinator/core/candidates.h"
#include "coordinator/core/audit_state.h"
#include "coordinator/core/coord_limits.h"
#include "coordinator/core/coord_stats.h"
#include "coordinator/core/definition_state.h"
#include "runtime/base/buf.h"
#include "runtime/base/log.h"
#include "runtime/cluster/cluster_record.h"

/* Members and new members of a joint record: at most one id is added. */
#define REPLICAS_MAX (CLUSTER_MEMBERS_MAX + 1)
#define MARKS_MAX    256u /* Recent expiries of a key remembered for holds. */

/* Known game servers; beyond it new ones are not looked after. */
#define COORD_SERVERS_MAX ((uint32_t)CLUSTER_SERVERS_MAX)

struct node {
    struct node_record record;
    int64_t mod_revision;
    int64_t life_revision;  /* When this life of the node registered. */
    uint64_t since_ms;      /* When this coordinator first saw this life. */
    uint64_t full_until_ms; /* It said that its disk is full, and has not said so since then. */
};

/* When a node was last claimed against; outlives its record. */
struct shunned {
    uint64_t replica_id; /* 0: free. */
    uint64_t until_ms;
};

/* Who was asked what it knows of all shards; outlives its record. */
struct word {
    uint64_t replica_id; /* 0: free. */
    bool told;
    bool again; /* Of some shard it could not tell. */
    bool calling;
    uint64_t next_ms; /* Not asked earlier. */
};

/* What an operator wants of a node. */
struct wanted_node {
    uint64_t replica_id;
    struct node_wish wish;
    int64_t mod_revision;
    bool in_txn; /* Its removal is on its way. */
};

struct told_member {
    uint64_t replica_id;
    uint64_t lag; /* Committed entries that it has not acknowledged. */
    uint64_t silent_ms;
};

/* What an owner said of its shard last; its START of that epoch is committed. */
struct told_state {
    uint64_t epoch; /* 0: nothing. */
    uint64_t told_ms;
    uint64_t learner, learner_lag, silent_ms;
    uint32_t documents_lacking; /* New members of a joint phase that may lack documents. */
    struct told_member members[CLUSTER_MEMBERS_MAX]; /* All but the owner. */
    uint32_t member_count;
};

/* What a shard has to do: writes and strict reads, as its owner counts them. */
struct shard_load {
    uint64_t epoch;      /* Of the owner who told it last; 0: none did. */
    uint64_t operations; /* It had done by then. */
    uint64_t at_ms;
    uint64_t ask_at_ms; /* Not asked earlier. */
    bool known;         /* `rate` is. */
    uint64_t rate;      /* A second, an average in which the last ones count most. */
};

struct report {
    uint64_t reporter; /* 0: none. */
    uint64_t at_ms;
    uint64_t epoch;
    uint64_t dot_epoch;
    uint64_t dot_counter;
};

/* What a shard is called about. That it refuses one says nothing of the others. */
enum call_kind {
    CALL_POLICY,
    CALL_EXPIRY,
    CALL_STATE,
    CALL_CUT,
    CALL_SEARCH,
    CALL_CONTAINMENT,
    CALL_DEFINITION,
    CALL_KINDS,
};

struct shard {
    struct shard_record record; /* Meaningful while mod_revision > 0. */
    int64_t mod_revision;       /* 0: no record. */
    int64_t stale_revision;     /* A write compared with it failed: wait for a newer record. */
    uint64_t stale_ms;          /* When. */
    bool in_txn;
    bool seen;           /* Had a record: never placed again. */
    uint64_t changed_ms; /* When the record changed under this coordinator; 0: it did not. */
    uint64_t call_at_ms; /* Its owner did not answer: no call to it earlier. */
    uint64_t refused_until_ms[CALL_KINDS]; /* ... nor one of a kind that it refused. */
    int64_t policy_revision;               /* Of the policy it confirmed; 0: none. */
    uint32_t policy_calls;                 /* In flight. */
    struct defined_shard defined;
    struct report reports[REPLICAS_MAX];
    uint64_t declined_epoch; /* Its owner had it before and never begins under it; 0: none. */
    uint64_t clock_epoch;    /* Its owner's clock is ahead of its members', as told until ... */
    uint64_t clock_until_ms;
    uint64_t outgrown_epoch; /* Its entries are of an earlier version than its members'; 0: none. */
    struct shard_wish wish;  /* Meaningful while wish_revision > 0. */
    int64_t wish_revision;
    bool wish_in_txn; /* Its removal is on its way, or `wish` itself. */
    struct told_state state;
    uint32_t state_calls;   /* In flight. */
    uint64_t state_next_ms; /* The owner is not asked earlier. */
    uint64_t lost_since_ms; /* Since when who comes is gone, or the new members have no majority, or
                               a repair waits; 0: not. */
    uint64_t looked_ms;     /* When it was last seen that a repair waits. */
    struct shard_load load;
    uint64_t epoch_known;        /* The greatest that any replica said it knows. */
    uint64_t owner_known;        /* Under that epoch; 0: no one said. */
    uint64_t rival_epoch;        /* Replicas named two owners under it; 0: none. */
    uint64_t config_known;       /* As epoch_known. */
    bool held;                   /* A replica said whom some record named. */
    uint64_t mute[REPLICAS_MAX]; /* Replicas that cannot say what they knew of it. */
    uint32_t mute_count;
    bool heard;   /* A majority of its members said what they know. */
    bool doubted; /* A replica, or this coordinator, knows a later record than etcd has. */
    uint64_t doubted_logged_ms;
};

/* Whether a shard has been asked for something, and has answered. */
enum { ACK_WANTED, ACK_CALLING, ACK_DONE };

/* What the servers of one key, or of all, are: counted again in each step; and their hold. */
struct hold {
    bool on;
    uint64_t since_ms; /* The newest; wall clock. */
    uint32_t live;
    uint32_t fresh;     /* Vanished within server_window_ms, and not held. */
    uint32_t held;      /* And not for too long. */
    uint32_t recent;    /* Marked within server_window_ms, and not held before. */
    uint64_t newest_ms; /* The last beginning of those that are held; 0: none is. */
};

/* An API key that registered game servers (server_keys.h). */
struct server_key {
    char id[SERVER_KEY_SIZE]; /* Empty: of servers that anyone may use. */
    uint32_t servers;         /* Which belong to it. */
    struct hold hold;
    uint64_t begin_ms;  /* While holds begin: since when its fresh servers are held; 0: not. */
    uint64_t *marks_ms; /* When servers of it were marked, the oldest first. */
    uint32_t mark_count, mark_capacity;
};

struct server {
    struct incarnation incarnation;
    struct server_key *key;      /* That `record` names; NULL: there was none yet. */
    struct server_record record; /* Of gs/known. */
    int64_t known_revision;      /* mod_revision of gs/known; 0: absent. */
    bool live;                   /* gs/live is there. */
    uint64_t txn;           /* Ticket of the transaction about it; 0: there is none. Kept while a
                               committed removal has not come back from etcd. */
    uint64_t gone_ms;       /* When it was first seen known without live; 0: it was not. */
    uint64_t held_since_ms; /* Wall clock; 0: it is not held. To be written, or in `record`. */
    uint64_t retry_ms;      /* No write about it earlier. */
    uint8_t *acks;          /* EXPIRING: per shard; NULL until work on it began. */
    uint32_t acks_left;
};

struct flight;    /* flight.h */
struct open_call; /* delivery.h */

struct coord {
    struct coord_limits limits;
    char cluster_name[CLUSTER_NAME_MAX + 1];
    struct cluster_record initial;
    struct buf initial_policy;
    uint32_t placement_nodes;
    const struct log *log;
    uint64_t now_ms;

    bool synced, elected, halted;
    bool held_back; /* Nodes doubt this etcd. */
    uint64_t elected_ms;
    struct buf election_key;
    int64_t election_revision;
    struct candidates candidates;

    struct cluster_record cluster; /* Meaningful while cluster_revision > 0. */
    int64_t cluster_revision;
    uint64_t cluster_retry_ms; /* Not created earlier. */
    struct buf policy;
    int64_t policy_revision; /* 0: none. */
    uint64_t policy_version;
    uint32_t policy_left;                 /* Shards to confirm it, as of the last look. */
    struct node nodes[CLUSTER_NODES_MAX]; /* By rising replica id. */
    uint32_t node_count;
    uint64_t node_added_ms;
    struct word words[CLUSTER_NODES_MAX];
    struct shunned shunned[CLUSTER_NODES_MAX];
    struct wanted_node wanted[CLUSTER_NODES_MAX];
    uint32_t wanted_count;
    uint32_t change_from; /* Shards are looked at from here on. */
    uint32_t changes_open;
    uint64_t drain_at_ms; /* No hand-over of a drain earlier. */
    struct shard *shards; /* cluster.shard_count of them. */
    uint32_t shard_count;
    struct server **servers; /* By rising incarnation. */
    uint32_t server_count, server_capacity;

    struct flight *flights; /* limits.txns_max of them. */
    uint64_t ticket;
    struct open_call *calls; /* limits.calls_max of them; a call's place is call % calls_max. */
    uint32_t call_count;
    uint64_t call;

    uint32_t owned[CLUSTER_NODES_MAX]; /* Shards owned by nodes[i]; counted again in each step. */
    uint64_t reported_ms;              /* When a report was last taken; 0: never. */
    uint64_t handover_at_ms;           /* No hand-over earlier. */
    uint64_t exchange_at_ms;           /* Nor one for what shards have to do. */
    uint64_t placement_logged_ms;
    struct server_key **keys; /* By rising id. */
    uint32_t key_count, key_capacity;
    struct hold hold;       /* Of the servers of all keys. */
    uint64_t wall_ahead_ms; /* Of now_ms, as it was when this coordinator was elected. */
    struct audit audit;
    struct definitions definitions;
    struct coord_stats stats;
};

static inline bool coord_stands_still(const struct coord *coord)
{
    return coord->halted || coord->held_back;
}

/* Elected, with a whole copy of etcd, and not halted. */
static inline bool coord_decides(const struct coord *coord)
{
    return coord->elected && coord->synced && !coord_stands_still(coord) &&
           coord->cluster_revision > 0;
}

/* All that coordinators before this one wrote was heard of. What changes a record compares its
 * revision anyway; this is for what must not be there yet. */
static inline bool coord_has_heard_all(const struct coord *coord)
{
    return candidates_are_over(&coord->candidates, coord->election_revision);
}

#endif
