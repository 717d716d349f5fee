/*
 * cluster_key: where each record of a cluster lives in etcd. The only place that knows the
 * layout; no other code prints or parses these keys.
 *
 *   /holdfast/<cluster>/cluster              the cluster itself
 *   /holdfast/<cluster>/nodes/<replica id>   leased by the node
 *   /holdfast/<cluster>/shards/<n>           the ownership record (DESIGN section 4)
 *   /holdfast/<cluster>/gs/live/<inc>        leased, one per game server (DESIGN section 5)
 *   /holdfast/<cluster>/gs/known/<inc>       until expiry is done
 *   /holdfast/<cluster>/gs/sequence          written once per registration: its revision is the
 *                                            new incarnation's
 *   /holdfast/<cluster>/election/<lease>     coordinators; the lowest create revision leads
 *   /holdfast/<cluster>/policy               packed holdfast.v1.Policy
 *   /holdfast/<cluster>/definitions/<number>/<version>   packed internal.v1.DefinitionVersion
 *   /holdfast/<cluster>/keys/<id>            API keys: their HMACs and what they may do
 *   /holdfast/<cluster>/revoked/<id>         the name of an API key that was revoked
 *   /holdfast/<cluster>/mints/<id>/<day>     what routers took of an API key's sum of a day
 *   /holdfast/<cluster>/tokens/secret        what session tokens are signed with (session_token.h)
 *   /holdfast/<cluster>/documents/secret     what contexts of documents are signed with: 32 bytes
 *   /holdfast/<cluster>/wishes/nodes/<id>    what an operator wants of a node
 *   /holdfast/<cluster>/wishes/shards/<n>    who an operator wants to hold a shard
 */
#ifndef RUNTIME_CLUSTER_CLUSTER_KEY_H
#define RUNTIME_CLUSTER_CLUSTER_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"
#include "runtime/cluster/incarnation.h"

#define CLUSTER_NAME_MAX 63
#define CLUSTER_KEY_SIZE 160

/* NUL-terminated. */
struct cluster_key {
    char text[CLUSTER_KEY_SIZE];
};

/* 1 to 63 of a-z, 0-9 and dash. The makers below CHECK it: validate input with this first. */
bool cluster_name_valid(const char *cluster);

/* All of the cluster's keys begin with it. */
struct cluster_key cluster_key_prefix(const char *cluster);
struct cluster_key cluster_key_cluster(const char *cluster);
struct cluster_key cluster_key_policy(const char *cluster);
struct cluster_key cluster_key_nodes_prefix(const char *cluster);
struct cluster_key cluster_key_node(const char *cluster, uint64_t replica_id);
struct cluster_key cluster_key_shards_prefix(const char *cluster);
struct cluster_key cluster_key_shard(const char *cluster, uint32_t shard);
struct cluster_key cluster_key_servers_prefix(const char *cluster); /* gs/, both kinds. */
struct cluster_key cluster_key_servers_known_prefix(const char *cluster);
struct cluster_key cluster_key_servers_live_prefix(const char *cluster);
struct cluster_key cluster_key_server_live(const char *cluster, struct incarnation incarnation);
struct cluster_key cluster_key_server_known(const char *cluster, struct incarnation incarnation);
struct cluster_key cluster_key_server_sequence(const char *cluster);
struct cluster_key cluster_key_election_prefix(const char *cluster);
struct cluster_key cluster_key_api_keys_prefix(const char *cluster);
/* `id` as api_key_id gives it. */
struct cluster_key cluster_key_api_key(const char *cluster, const char *id);
struct cluster_key cluster_key_revoked(const char *cluster, const char *id);
/* Of all days; of one (UTC), counted from 1970. */
struct cluster_key cluster_key_mints_prefix(const char *cluster, const char *id);
struct cluster_key cluster_key_mints(const char *cluster, const char *id, uint64_t day);
/* The day of a key with that prefix; false: it is none. */
bool cluster_key_mints_day(const struct cluster_key *prefix, struct slice key, uint64_t *ret_day);
struct cluster_key cluster_key_token_secret(const char *cluster);
struct cluster_key cluster_key_wishes_prefix(const char *cluster); /* Both kinds. */
struct cluster_key cluster_key_node_wish(const char *cluster, uint64_t replica_id);
struct cluster_key cluster_key_shard_wish(const char *cluster, uint32_t shard);
struct cluster_key cluster_key_document_secret(const char *cluster);
struct cluster_key cluster_key_definitions_prefix(const char *cluster);
/* One version of a definition; neither is 0. */
struct cluster_key cluster_key_definition(const char *cluster, uint64_t number, uint64_t version);

struct slice cluster_key_slice(const struct cluster_key *key);

enum cluster_key_kind {
    CLUSTER_KEY_UNKNOWN, /* Not of this cluster, or not understood: leave it alone. */
    CLUSTER_KEY_CLUSTER,
    CLUSTER_KEY_POLICY,
    CLUSTER_KEY_NODE,
    CLUSTER_KEY_SHARD,
    CLUSTER_KEY_SERVER_LIVE,
    CLUSTER_KEY_SERVER_KNOWN,
    CLUSTER_KEY_SERVER_SEQUENCE,
    CLUSTER_KEY_ELECTION,
    CLUSTER_KEY_NODE_WISH,
    CLUSTER_KEY_SHARD_WISH,
    CLUSTER_KEY_DEFINITION
};

struct cluster_key_parts {
    enum cluster_key_kind kind;
    uint64_t replica_id;            /* CLUSTER_KEY_NODE and _NODE_WISH. */
    uint32_t shard;                 /* CLUSTER_KEY_SHARD and _SHARD_WISH; below the maximum. */
    struct incarnation incarnation; /* CLUSTER_KEY_SERVER_LIVE and _KNOWN. */
    uint64_t number, version;       /* CLUSTER_KEY_DEFINITION; neither is 0. */
};

/* Never fails: what it does not understand is CLUSTER_KEY_UNKNOWN. */
struct cluster_key_parts cluster_key_parse(const char *cluster, struct slice key);

#endif
