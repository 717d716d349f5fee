/*
 * doctor_facts: what `holdfast doctor` found out about a cluster, before anything is judged. Each
 * place marks a fact that could not be found out: never a zero that looks like a fact.
 */
#ifndef CLIENT_CLI_DOCTOR_DOCTOR_FACTS_H
#define CLIENT_CLI_DOCTOR_DOCTOR_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#define DOCTOR_ROUTERS_MAX   16u
#define DOCTOR_PROCESSES_MAX 640u
#define DOCTOR_SHARDS_MAX    4096u
#define DOCTOR_ETCD_MAX      16u
#define DOCTOR_PAIRS_MAX     256u
#define DOCTOR_NAMED_MAX     8u
#define DOCTOR_NAME_BYTES    64u
#define DOCTOR_URL_BYTES     256u
#define DOCTOR_WHY_BYTES     256u

/* An endpoint of --endpoint. */
struct router_facts {
    char endpoint[DOCTOR_URL_BYTES];
    bool answered;
    uint32_t answer_ms;         /* The better of two calls of GetCluster. */
    char why[DOCTOR_WHY_BYTES]; /* If it did not answer. */
};

enum process_role { PROCESS_ROUTER, PROCESS_NODE, PROCESS_COORDINATOR };
enum disk_state { DISK_UNKNOWN, DISK_OK, DISK_LOW, DISK_FULL, DISK_LOG_FULL };

struct process_facts {
    enum process_role role;
    char name[DOCTOR_NAME_BYTES];
    uint64_t replica_id; /* Of a node. */
    bool live;           /* A node's lease lives; others that are known at all do. */
    bool answered;       /* It told of itself; nothing below is known else but the version. */
    char version[DOCTOR_NAME_BYTES]; /* Empty: unknown. */
    bool clock_known;
    int64_t clock_ahead_ms;     /* Of this machine's clock; */
    uint32_t clock_error_ms;    /* by so much more or less: half of the round trips. */
    enum disk_state disk_state; /* Of a node. */
    uint64_t disk_free_bytes, disk_free_min_bytes;
    bool certificates_known;
    uint64_t cluster_certificate_ms; /* When it expires, since 1970; 0: it has none. */
    uint64_t public_certificate_ms;  /* A router's. */
    uint32_t damaged, quarantined;   /* Replicas of a node. */
    bool counts_known;               /* Of a node: */
    uint64_t counts_different, counts_drift, totals_behind_ms;
    bool consumers_known; /* Of a router. */
    uint32_t consumers_behind_percent;
};

struct shard_facts {
    uint32_t shard;
    uint64_t owner;
    bool serving;
    uint32_t members, unreachable, catching_up; /* Replicas by the record, and those of them. */
    uint32_t quarantined;                       /* Likewise. */
    uint32_t rows_wanting;                      /* Likewise. */
    bool diverged;                              /* Outcomes differ at one index. */
    uint64_t learner;                           /* 0: none. */
    uint64_t transfers_open, transfers_oldest_ms;
};

/* An owner and another member of its shards that has acknowledged nothing for a while, though there
 * is something. Of pairs beyond DOCTOR_PAIRS_MAX nothing is known. */
struct pair_facts {
    uint64_t owner, member;
    uint32_t shards[DOCTOR_NAMED_MAX]; /* The first of them. */
    uint32_t shard_count;
    uint64_t lag_entries; /* Of the shard where they are most; */
    uint64_t stalled_ms;  /* of the one where it is longest. */
};

struct etcd_facts {
    char endpoint[DOCTOR_URL_BYTES];
    bool answered;
    char version[DOCTOR_NAME_BYTES];
    bool has_leader;
    uint64_t database_bytes;
    uint64_t quota_bytes; /* 0: it does not tell; etcd's default is 2 GiB. */
    char alarms[128];     /* "NOSPACE", "CORRUPT"; empty: none. */
    uint32_t answer_ms;
};

struct doctor_facts {
    uint64_t now_ms; /* This machine's clock, since 1970. */
    struct router_facts routers[DOCTOR_ROUTERS_MAX];
    uint32_t router_count;
    /* ---- the rest as the first router that answered tells it ---- */
    bool cluster_known;
    char coordinator[DOCTOR_NAME_BYTES]; /* Empty: none is elected. */
    uint32_t replication_factor;
    uint32_t shard_count;
    struct process_facts *processes; /* DOCTOR_PROCESSES_MAX; as are the others. */
    uint32_t process_count;
    bool shards_known;
    struct shard_facts *shards;
    uint32_t shards_listed;
    struct pair_facts *pairs; /* DOCTOR_PAIRS_MAX. */
    uint32_t pair_count;
    uint32_t pairs_unknown; /* Owners did not say what a member of a shard has acknowledged. */
    bool quarantine_known;
    uint32_t players_quarantined;
    bool etcd_known;
    struct etcd_facts etcd[DOCTOR_ETCD_MAX];
    uint32_t etcd_count;
    bool audit_known;
    bool audit_imbalance;
    bool coordinator_halted;
};

/* The node of that replica; NULL: no process told of it. */
struct process_facts *doctor_find_node(const struct doctor_facts *facts, uint64_t replica_id);

#endif
