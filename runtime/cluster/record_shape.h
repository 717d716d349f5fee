/* record_shape: what the records in etcd hold, and their limits; cluster_record.h reads and writes
 * them. */
#ifndef RUNTIME_CLUSTER_RECORD_SHAPE_H
#define RUNTIME_CLUSTER_RECORD_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CLUSTER_SHARDS_DEFAULT = 64,
    CLUSTER_SHARDS_MAX = 4096,
    CLUSTER_MEMBERS_MAX = 7, /* Largest replication factor. */
    CLUSTER_NODES_MAX = 256,
    CLUSTER_SERVERS_MAX = 65536, /* Game servers that coordinators and nodes keep. */
    /* Above so many no more are registered: what is on its way meanwhile must fit, too. */
    CLUSTER_SERVERS_REGISTERED_MAX = 49152,
    CLUSTER_DEFINITION_KEYS_MAX = 524288, /* Each version of a definition is a key. */
    CLUSTER_KEYS_MAX = 1048576,           /* Of all kinds. */
    CLUSTER_RECORD_SIZE_MAX = 16384,
    CLUSTER_POLICY_SEED_MAX = 8191,
    SERVER_TTL_MS_MIN = 5000,
    SERVER_TTL_MS_MAX = 10000
};

struct record_error {
    char text[192];
};

/* Fixed when the cluster is created; only `generation` and `epoch_floor` rise (docs/backup.md). */
struct cluster_record {
    char cluster_id[37];                           /* UUID text. */
    uint64_t generation;                           /* From 1. */
    uint32_t shard_count;                          /* Power of two, 1 to CLUSTER_SHARDS_MAX. */
    uint32_t replication_factor;                   /* 1 to CLUSTER_MEMBERS_MAX. */
    char created_by[64];                           /* Name of the process; 1 to 63 bytes. */
    char policy_seed[CLUSTER_POLICY_SEED_MAX + 1]; /* First policy as JSON text; may be empty. */
    uint64_t epoch_floor; /* Of the backup it was restored from: every shard's epoch is above. */
};

/* Leased: there while the node lives. */
struct node_record {
    uint64_t replica_id;     /* Not 0. A wiped disk comes back under a new one. */
    char name[64];           /* 1 to 63 bytes. */
    char address[256];       /* host:port for routers and coordinator (nng). */
    char peer_address[256];  /* host:port for other nodes. */
    char zone[64];           /* May be empty: every such node counts as one zone. */
    char version[64];        /* Of the binary; 1 to 63 bytes. */
    uint64_t started_at_ms;  /* Unix time. */
    uint32_t damaged_shards; /* Found at its start, not repaired yet: it cannot serve them. */
    uint8_t damaged[CLUSTER_SHARDS_MAX / 8]; /* Which: a bit each. None: an older program's. */
    /* Its replicas that differ from a majority, or cannot apply their log: none of them may own. */
    uint8_t quarantined[CLUSTER_SHARDS_MAX / 8];
    /* It knows an etcd of this generation that was newer than this one; 0: it does not. Void under
     * a later generation of the cluster (docs/etcd-restore.md). */
    uint64_t doubts;
};

enum shard_phase { SHARD_STABLE, SHARD_JOINT };

/* The ownership record, DESIGN section 4. The node named owner promotes itself. */
struct shard_record {
    uint64_t generation; /* The cluster's when this was written. */
    uint64_t epoch;      /* From 1; rises with each write of this record. */
    uint64_t owner;      /* One of members or new_members. */
    uint64_t config;     /* From 1; rises with each change of membership. */
    enum shard_phase phase;
    uint32_t member_count; /* 1 to CLUSTER_MEMBERS_MAX, no id twice. */
    uint64_t members[CLUSTER_MEMBERS_MAX];
    uint32_t new_member_count; /* 0 when stable. When joint: members with at most one */
    uint64_t new_members[CLUSTER_MEMBERS_MAX]; /* id added and at most one removed. */
    uint64_t learner; /* Catches up before it joins; counts nowhere. 0: none; only when stable. */
    uint64_t leaving; /* The member whose place it is to take; 0: it comes in addition. */
};

/* What an operator wants of a node. In etcd until it is taken back, or the node is gone for good.
 */
enum node_wish_kind {
    NODE_DRAIN, /* It owns nothing; it replicates on. */
    NODE_REMOVE /* It owns nothing, and others take its places in every shard. */
};

struct node_wish {
    enum node_wish_kind kind;
};

/* Who is to hold a shard. In etcd until it is so, or cannot be. */
struct shard_wish {
    uint32_t member_count; /* 1 to CLUSTER_MEMBERS_MAX, no id twice. */
    uint64_t members[CLUSTER_MEMBERS_MAX];
    uint64_t repair; /* The one of them that is damaged, or quarantined: it leaves and comes back.
                      * 0: an operator's move. */
    uint64_t config; /* Of a repair that an operator asked for: the record's when it was asked. A
                      * later one that names `repair` ends it. 0: any. */
};

enum server_state { SERVER_LIVE, SERVER_EXPIRING };

#define SERVER_KEY_SIZE 80

/* A game server: the same value under gs/live and gs/known; only gs/known becomes EXPIRING. */
struct server_record {
    char name[129];  /* 1 to 128 bytes. */
    uint32_t ttl_ms; /* SERVER_TTL_MS_MIN to SERVER_TTL_MS_MAX. */
    enum server_state state;
    int64_t lease_id; /* etcd's; not 0. A decimal string in JSON. */
    /* LIVE without gs/live: since when it is held with others that vanished at once, Unix time by
     * the clock of the coordinator that wrote it. 0: it is not; text that is no number counts as 0.
     * A router that re-attaches the server writes the record without it. */
    uint64_t held_since_ms;
    /* The id of the API key that registered it, and alone may use it; empty: any (access is open,
     * or it is of a router that kept none). */
    char key[SERVER_KEY_SIZE];
};

/* The value of an election key: how routers find the leading coordinator. */
struct coordinator_record {
    char name[64];     /* 1 to 63 bytes; also the candidate's name. */
    char address[256]; /* host:port (nng). */
};

#endif
