/*
 * status_page: the answers of AdminService.GetCluster, ListShards and ListServers as a page for
 * people: a summary, the nodes, and the shards that need a look, with nodes by their names. Pure.
 */
#ifndef CLIENT_CLI_TOP_STATUS_PAGE_H
#define CLIENT_CLI_TOP_STATUS_PAGE_H

#include <jansson.h>

#include "client/cli/console/output.h"

#define STATUS_SHARDS_SHOWN_MAX 32u /* Unless all are asked for. */

/* What is counted. Borrowed texts live as long as the answers. */
struct status_summary {
    uint32_t nodes, nodes_up,
        nodes_silent; /* Silent: has a lease, and did not answer the router. */
    uint32_t shards, shards_listed, shards_served, shards_changing;
    uint32_t replicas, replicas_behind, replicas_away, replicas_broken;
    uint64_t lag_entries; /* Of the replica that lacks most of what its shard has committed. */
    uint32_t servers, servers_expiring;
    uint64_t sessions;
    uint64_t sessions_lapsed; /* No server lives: they ended with theirs, and shards count them
                               * until their players are next touched. */
    const char *coordinator;  /* Empty: none is elected. */
};

struct status_answers {
    const json_t *cluster; /* GetCluster's answer. */
    const json_t *shards;  /* ListShards' rows, all pages. */
    const json_t *servers; /* ListServers' rows; NULL: none. */
};

void status_count(const struct status_answers *answers, struct status_summary *ret_summary);
/* Appends the page. Shards: all of them if `every_shard`, else those with something wrong. */
void status_print(const struct status_answers *answers, bool every_shard, struct buf *out);
/* The summary for programs; the caller's to decref. */
json_t *status_json(const struct status_summary *summary);

#endif
