#include "runtime/cluster/cluster_key.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/cluster/record_shape.h"

#define KEY_ROOT "/holdfast/"

bool cluster_name_valid(const char *cluster)
{
    size_t length = strlen(cluster);

    if (length == 0 || length > CLUSTER_NAME_MAX)
        return false;
    return strspn(cluster, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

static struct cluster_key key_make(const char *cluster, const char *folder, const char *rest)
{
    const char *const parts[] = { KEY_ROOT, cluster, "/", folder, rest };
    struct cluster_key key;
    size_t used = 0;

    CHECK(cluster_name_valid(cluster));
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        size_t size = strlen(parts[i]);
        CHECK(size < sizeof key.text - used);
        memcpy(key.text + used, parts[i], size);
        used += size;
    }
    key.text[used] = '\0';
    return key;
}

static struct cluster_key key_make_number(const char *cluster, const char *folder, uint64_t number)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRIu64, number);
    return key_make(cluster, folder, digits);
}

static struct cluster_key key_make_incarnation(const char *cluster, const char *folder,
                                               struct incarnation incarnation)
{
    char text[INCARNATION_TEXT_SIZE];

    CHECK(incarnation.generation > 0 && incarnation.revision > 0);
    incarnation_print(incarnation, text);
    return key_make(cluster, folder, text);
}

struct cluster_key cluster_key_prefix(const char *cluster)
{
    return key_make(cluster, "", "");
}

struct cluster_key cluster_key_cluster(const char *cluster)
{
    return key_make(cluster, "cluster", "");
}

struct cluster_key cluster_key_policy(const char *cluster)
{
    return key_make(cluster, "policy", "");
}

struct cluster_key cluster_key_nodes_prefix(const char *cluster)
{
    return key_make(cluster, "nodes/", "");
}

struct cluster_key cluster_key_node(const char *cluster, uint64_t replica_id)
{
    CHECK(replica_id != 0);
    return key_make_number(cluster, "nodes/", replica_id);
}

struct cluster_key cluster_key_shards_prefix(const char *cluster)
{
    return key_make(cluster, "shards/", "");
}

struct cluster_key cluster_key_shard(const char *cluster, uint32_t shard)
{
    CHECK(shard < CLUSTER_SHARDS_MAX);
    return key_make_number(cluster, "shards/", shard);
}

struct cluster_key cluster_key_servers_prefix(const char *cluster)
{
    return key_make(cluster, "gs/", "");
}

struct cluster_key cluster_key_servers_known_prefix(const char *cluster)
{
    return key_make(cluster, "gs/known/", "");
}

struct cluster_key cluster_key_servers_live_prefix(const char *cluster)
{
    return key_make(cluster, "gs/live/", "");
}

struct cluster_key cluster_key_server_live(const char *cluster, struct incarnation incarnation)
{
    return key_make_incarnation(cluster, "gs/live/", incarnation);
}

struct cluster_key cluster_key_server_known(const char *cluster, struct incarnation incarnation)
{
    return key_make_incarnation(cluster, "gs/known/", incarnation);
}

struct cluster_key cluster_key_server_sequence(const char *cluster)
{
    return key_make(cluster, "gs/sequence", "");
}

struct cluster_key cluster_key_election_prefix(const char *cluster)
{
    return key_make(cluster, "election/", "");
}

struct cluster_key cluster_key_api_keys_prefix(const char *cluster)
{
    return key_make(cluster, "keys/", "");
}

struct cluster_key cluster_key_api_key(const char *cluster, const char *id)
{
    return key_make(cluster, "keys/", id);
}

struct cluster_key cluster_key_revoked(const char *cluster, const char *id)
{
    return key_make(cluster, "revoked/", id);
}

struct cluster_key cluster_key_mints_prefix(const char *cluster, const char *id)
{
    char rest[CLUSTER_KEY_SIZE];

    CHECK(strlen(id) < SERVER_KEY_SIZE);
    (void)snprintf(rest, sizeof rest, "%s/", id);
    return key_make(cluster, "mints/", rest);
}

struct cluster_key cluster_key_mints(const char *cluster, const char *id, uint64_t day)
{
    char rest[CLUSTER_KEY_SIZE];

    CHECK(strlen(id) < SERVER_KEY_SIZE);
    (void)snprintf(rest, sizeof rest, "%s/%" PRIu64, id, day);
    return key_make(cluster, "mints/", rest);
}

bool cluster_key_mints_day(const struct cluster_key *prefix, struct slice key, uint64_t *ret_day)
{
    size_t size = strlen(prefix->text);

    return key.size > size && memcmp(key.data, prefix->text, size) == 0 &&
           decimal_parse((struct slice){ key.data + size, key.size - size }, ret_day) == ERR_OK;
}

struct cluster_key cluster_key_token_secret(const char *cluster)
{
    return key_make(cluster, "tokens/secret", "");
}

struct cluster_key cluster_key_wishes_prefix(const char *cluster)
{
    return key_make(cluster, "wishes/", "");
}

struct cluster_key cluster_key_node_wish(const char *cluster, uint64_t replica_id)
{
    CHECK(replica_id != 0);
    return key_make_number(cluster, "wishes/nodes/", replica_id);
}

struct cluster_key cluster_key_shard_wish(const char *cluster, uint32_t shard)
{
    CHECK(shard < CLUSTER_SHARDS_MAX);
    return key_make_number(cluster, "wishes/shards/", shard);
}

struct cluster_key cluster_key_document_secret(const char *cluster)
{
    return key_make(cluster, "documents/secret", "");
}

struct cluster_key cluster_key_definitions_prefix(const char *cluster)
{
    return key_make(cluster, "definitions/", "");
}

struct cluster_key cluster_key_definition(const char *cluster, uint64_t number, uint64_t version)
{
    char digits[48];

    CHECK(number != 0 && version != 0);
    snprintf(digits, sizeof digits, "%" PRIu64 "/%" PRIu64, number, version);
    return key_make(cluster, "definitions/", digits);
}

struct slice cluster_key_slice(const struct cluster_key *key)
{
    return slice_from_text(key->text);
}

/* Takes `prefix` off the front of *rest, if it is there. */
static bool take(struct slice *rest, struct slice prefix)
{
    if (rest->size < prefix.size || memcmp(rest->data, prefix.data, prefix.size) != 0)
        return false;
    rest->data += prefix.size;
    rest->size -= prefix.size;
    return true;
}

static void parse_node(struct slice rest, enum cluster_key_kind kind,
                       struct cluster_key_parts *parts)
{
    if (decimal_parse(rest, &parts->replica_id) == ERR_OK && parts->replica_id != 0)
        parts->kind = kind;
}

static void parse_shard(struct slice rest, enum cluster_key_kind kind,
                        struct cluster_key_parts *parts)
{
    uint64_t shard;

    if (decimal_parse(rest, &shard) != ERR_OK || shard >= CLUSTER_SHARDS_MAX)
        return;
    parts->shard = (uint32_t)shard;
    parts->kind = kind;
}

static void parse_server(struct slice rest, enum cluster_key_kind kind,
                         struct cluster_key_parts *parts)
{
    if (incarnation_parse(rest, &parts->incarnation) == ERR_OK)
        parts->kind = kind;
}

static void parse_definition(struct slice rest, struct cluster_key_parts *parts)
{
    const uint8_t *slash = rest.size > 0 ? memchr(rest.data, '/', rest.size) : NULL;

    if (slash == NULL)
        return;
    struct slice number = { rest.data, (size_t)(slash - rest.data) };
    struct slice version = { slash + 1, rest.size - number.size - 1 };

    if (decimal_parse(number, &parts->number) == ERR_OK &&
        decimal_parse(version, &parts->version) == ERR_OK && parts->number != 0 &&
        parts->version != 0)
        parts->kind = CLUSTER_KEY_DEFINITION;
}

struct cluster_key_parts cluster_key_parse(const char *cluster, struct slice key)
{
    struct cluster_key prefix = cluster_key_prefix(cluster);
    struct cluster_key_parts parts = { .kind = CLUSTER_KEY_UNKNOWN };

    if (!take(&key, cluster_key_slice(&prefix)))
        return parts;
    if (slice_equal(key, SLICE_LITERAL("cluster")))
        parts.kind = CLUSTER_KEY_CLUSTER;
    else if (slice_equal(key, SLICE_LITERAL("policy")))
        parts.kind = CLUSTER_KEY_POLICY;
    else if (slice_equal(key, SLICE_LITERAL("gs/sequence")))
        parts.kind = CLUSTER_KEY_SERVER_SEQUENCE;
    else if (take(&key, SLICE_LITERAL("nodes/")))
        parse_node(key, CLUSTER_KEY_NODE, &parts);
    else if (take(&key, SLICE_LITERAL("shards/")))
        parse_shard(key, CLUSTER_KEY_SHARD, &parts);
    else if (take(&key, SLICE_LITERAL("wishes/nodes/")))
        parse_node(key, CLUSTER_KEY_NODE_WISH, &parts);
    else if (take(&key, SLICE_LITERAL("wishes/shards/")))
        parse_shard(key, CLUSTER_KEY_SHARD_WISH, &parts);
    else if (take(&key, SLICE_LITERAL("gs/live/")))
        parse_server(key, CLUSTER_KEY_SERVER_LIVE, &parts);
    else if (take(&key, SLICE_LITERAL("gs/known/")))
        parse_server(key, CLUSTER_KEY_SERVER_KNOWN, &parts);
    else if (take(&key, SLICE_LITERAL("definitions/")))
        parse_definition(key, &parts);
    else if (take(&key, SLICE_LITERAL("election/")) && key.size > 0)
        parts.kind = CLUSTER_KEY_ELECTION;
    return parts;
}
