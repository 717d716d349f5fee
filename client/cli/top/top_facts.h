/*
 * top_facts: what a cluster's processes have counted, as of one instant: the answers of
 * AdminService.GetLoad, GetCluster and ListProcesses in one place. Pure: text in, numbers out.
 */
#ifndef CLIENT_CLI_TOP_TOP_FACTS_H
#define CLIENT_CLI_TOP_TOP_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#define TOP_NODES_MAX   256u
#define TOP_METHODS_MAX 128u
#define TOP_SHARDS_MAX  4096u
#define TOP_BUCKETS     33u
#define TOP_NAME_BYTES  64u

/* How many were answered within 64 us, 128 us and so on; those after the last are 0. */
struct top_latency {
    uint64_t buckets[TOP_BUCKETS];
};

struct top_method {
    char name[TOP_NAME_BYTES]; /* "LedgerService/Grant" */
    uint64_t ok, refused, elsewhere, unknown;
    struct top_latency latency;
};

struct top_node {
    uint64_t replica_id;
    char name[TOP_NAME_BYTES];
    bool live;     /* Its lease lives. */
    bool answered; /* It told of itself; nothing below is known else. */
    uint64_t life, at_us;
    uint32_t owned, held;
    uint64_t sessions, resident_bytes, disk_free_bytes;
    char disk_state[8];
    uint64_t syncs, sync_us;
    struct top_latency commits;
    uint64_t transfers_open, transfers_oldest_ms;
    uint64_t players_quarantined, shards_quarantined;
    uint64_t lag, silent_ms, unapplied;
    struct top_method *methods; /* TOP_METHODS_MAX */
    uint32_t method_count;
};

struct top_shard {
    uint64_t owner; /* 0: no node says that it owns it. */
    uint64_t proposed, reads;
};

struct top_router {
    char name[TOP_NAME_BYTES];
    uint64_t life, at_us, answered, failed, in_flight;
    struct top_latency latency;
};

struct top_facts {
    char cluster_id[TOP_NAME_BYTES], coordinator[TOP_NAME_BYTES];
    char audit[16]; /* "balanced", "imbalanced"; empty: unknown. */
    uint32_t shard_count, shards_serving;
    struct top_router router;
    struct top_node *nodes; /* TOP_NODES_MAX, by name. */
    uint32_t node_count;
    struct top_shard *shards; /* TOP_SHARDS_MAX */
};

struct top_facts *top_facts_new(void);
/* NULL is allowed. */
void top_facts_free(struct top_facts *facts);

/* Fills facts from the answers; `processes` may be NULL. What is beyond the bounds is left out. */
void top_facts_take(struct top_facts *facts, const json_t *cluster, const json_t *load,
                    const json_t *processes);
/* NULL: there is no such node. */
const struct top_node *top_facts_find(const struct top_facts *facts, uint64_t replica_id);

#endif
