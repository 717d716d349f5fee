#include "runtime/cluster/cluster_record.h"

#include <string.h>

#include <jansson.h>

#include "runtime/base/check.h"
#include "runtime/base/hex.h"
#include "runtime/cluster/record_fields.h"

static const char *const phase_words[] = { [SHARD_STABLE] = "stable", [SHARD_JOINT] = "joint" };
static const char *const server_words[] = {
    [SERVER_LIVE] = "live", [SERVER_EXPIRING] = "expiring"
};

static const char *const node_wish_words[] = { [NODE_DRAIN] = "drain", [NODE_REMOVE] = "remove" };

static void put(json_t *object, const char *name, json_t *value)
{
    CHECK(json_object_set_new(object, name, value) == 0);
}

static json_t *decimal_list(const uint64_t *numbers, uint32_t count)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < count; i++)
        CHECK(json_array_append_new(list, record_decimal(numbers[i])) == 0);
    return list;
}

/* As far as there are any. */
static void put_bytes(json_t *object, const char *name, const uint8_t *bytes, size_t size)
{
    char text[2 * sizeof((struct node_record *)NULL)->damaged + 1];

    while (size > 0 && bytes[size - 1] == 0)
        size--;
    if (size == 0)
        return;
    CHECK(2 * size < sizeof text);
    hex_print(bytes, size, text);
    put(object, name, json_string(text));
}

/* Appends and frees `object`. */
static void print(json_t *object, struct buf *out)
{
    size_t size = json_dumpb(object, NULL, 0, JSON_COMPACT);

    CHECK(size > 0 && size <= CLUSTER_RECORD_SIZE_MAX);
    CHECK(json_dumpb(object, (char *)buf_reserve(out, size), size, JSON_COMPACT) == size);
    out->size += size;
    json_decref(object);
}

void cluster_record_encode(const struct cluster_record *record, struct buf *out)
{
    json_t *object = json_object();

    CHECK(cluster_record_validate(record, NULL) == ERR_OK);
    put(object, "cluster_id", json_string(record->cluster_id));
    put(object, "generation", record_decimal(record->generation));
    put(object, "shard_count", json_integer(record->shard_count));
    put(object, "replication_factor", json_integer(record->replication_factor));
    put(object, "created_by", json_string(record->created_by));
    put(object, "policy_seed", json_string(record->policy_seed));
    if (record->epoch_floor > 0)
        put(object, "epoch_floor", record_decimal(record->epoch_floor));
    print(object, out);
}

err cluster_record_decode(struct slice json, struct cluster_record *ret_record,
                          struct record_error *ret_why)
{
    struct record_fields f = record_fields_open("cluster", json);
    struct cluster_record record = { 0 };

    record_text(&f, "cluster_id", record.cluster_id, sizeof record.cluster_id);
    record.generation = record_u64(&f, "generation");
    record.shard_count = record_u32(&f, "shard_count");
    record.replication_factor = record_u32(&f, "replication_factor");
    record_text(&f, "created_by", record.created_by, sizeof record.created_by);
    record_text(&f, "policy_seed", record.policy_seed, sizeof record.policy_seed);
    record.epoch_floor = record_u64_or_zero(&f, "epoch_floor");
    err e = record_fields_close(&f, ret_why);
    if (e == ERR_OK)
        e = cluster_record_validate(&record, ret_why);
    if (e == ERR_OK)
        *ret_record = record;
    return e;
}

void node_record_encode(const struct node_record *record, struct buf *out)
{
    json_t *object = json_object();

    CHECK(node_record_validate(record, NULL) == ERR_OK);
    put(object, "replica_id", record_decimal(record->replica_id));
    put(object, "name", json_string(record->name));
    put(object, "address", json_string(record->address));
    put(object, "peer_address", json_string(record->peer_address));
    put(object, "zone", json_string(record->zone));
    put(object, "version", json_string(record->version));
    put(object, "started_at_ms", record_decimal(record->started_at_ms));
    put(object, "damaged_shards", json_integer(record->damaged_shards));
    if (record->doubts != 0)
        put(object, "doubts", record_decimal(record->doubts));
    put_bytes(object, "damaged", record->damaged, sizeof record->damaged);
    put_bytes(object, "quarantined", record->quarantined, sizeof record->quarantined);
    print(object, out);
}

err node_record_decode(struct slice json, struct node_record *ret_record,
                       struct record_error *ret_why)
{
    struct record_fields f = record_fields_open("node", json);
    struct node_record record = { 0 };

    record.replica_id = record_u64(&f, "replica_id");
    record_text(&f, "name", record.name, sizeof record.name);
    record_text(&f, "address", record.address, sizeof record.address);
    record_text(&f, "peer_address", record.peer_address, sizeof record.peer_address);
    record_text(&f, "zone", record.zone, sizeof record.zone);
    record_text(&f, "version", record.version, sizeof record.version);
    record.started_at_ms = record_u64(&f, "started_at_ms");
    record.damaged_shards = record_u32(&f, "damaged_shards");
    record.doubts = record_u64_or_zero(&f, "doubts");
    record_bytes_or_zero(&f, "damaged", record.damaged, sizeof record.damaged);
    record_bytes_or_zero(&f, "quarantined", record.quarantined, sizeof record.quarantined);
    err e = record_fields_close(&f, ret_why);
    if (e == ERR_OK)
        e = node_record_validate(&record, ret_why);
    if (e == ERR_OK)
        *ret_record = record;
    return e;
}

void shard_record_encode(const struct shard_record *record, struct buf *out)
{
    json_t *object = json_object();

    CHECK(shard_record_validate(record, NULL) == ERR_OK);
    put(object, "generation", record_decimal(record->generation));
    put(object, "epoch", record_decimal(record->epoch));
    put(object, "owner", record_decimal(record->owner));
    put(object, "config", record_decimal(record->config));
    put(object, "phase", json_string(phase_words[record->phase]));
    put(object, "members", decimal_list(record->members, record->member_count));
    put(object, "new_members", decimal_list(record->new_members, record->new_member_count));
    if (record->learner != 0)
        put(object, "learner", record_decimal(record->learner));
    if (record->leaving != 0)
        put(object, "leaving", record_decimal(record->leaving));
    print(object, out);
}

err shard_record_decode(struct slice json, struct shard_record *ret_record,
                        struct record_error *ret_why)
{
    struct record_fields f = record_fields_open("shard", json);
    struct shard_record record = { 0 };

    record.generation = record_u64(&f, "generation");
    record.epoch = record_u64(&f, "epoch");
    record.owner = record_u64(&f, "owner");
    record.config = record_u64(&f, "config");
    record.phase = record_word(&f, "phase", phase_words, ARRAY_SIZE(phase_words));
    record.member_count = record_u64_list(&f, "members", record.members, CLUSTER_MEMBERS_MAX);
    record.new_member_count =
        record_u64_list(&f, "new_members", record.new_members, CLUSTER_MEMBERS_MAX);
    record.learner = record_u64_or_zero(&f, "learner");
    record.leaving = record_u64_or_zero(&f, "leaving");
    err e = record_fields_close(&f, ret_why);
    if (e == ERR_OK)
        e = shard_record_validate(&record, ret_why);
    if (e == ERR_OK)
        *ret_record = record;
    return e;
}

void server_record_encode(const struct server_record *record, struct buf *out)
{
    json_t *object = json_object();

    CHECK(server_record_validate(record, NULL) == ERR_OK);
    put(object, "name", json_string(record->name));
    put(object, "ttl_ms", json_integer(record->ttl_ms));
    put(object, "state", json_string(server_words[record->state]));
    put(object, "lease_id", record_decimal((uint64_t)record->lease_id));
    if (record->key[0] != 0)
        put(object, "key", json_string(record->key));
    if (record->state == SERVER_LIVE && record->held_since_ms > 0)
        put(object, "held_since_ms", record_decimal(record->held_since_ms));
    print(object, out);
}

err server_record_decode(struct slice json, struct server_record *ret_record,
                         struct record_error *ret_why)
{
    struct record_fields f = record_fields_open("server", json);
    struct server_record record = { 0 };

    record_text(&f, "name", record.name, sizeof record.name);
    record.ttl_ms = record_u32(&f, "ttl_ms");
    record.state = record_word(&f, "state", server_words, ARRAY_SIZE(server_words));
    record.lease_id = record_i64(&f, "lease_id");
    record_text_or_empty(&f, "key", record.key, sizeof record.key);
    record.held_since_ms = record.state == SERVER_LIVE ? record_u64_if_any(&f, "held_since_ms") : 0;
    err e = record_fields_close(&f, ret_why);
    if (e == ERR_OK)
        e = server_record_validate(&record, ret_why);
    if (e == ERR_OK)
        *ret_record = record;
    return e;
}

void node_wish_encode(const struct node_wish *wish, struct buf *out)
{
    json_t *object = json_object();

    put(object, "want", json_string(node_wish_words[wish->kind]));
    print(object, out);
}

err node_wish_decode(struct slice json, struct node_wish *ret_wish, struct record_error *ret_why)
{
    struct record_fields f = record_fields_open("node wish", json);
    struct node_wish wish = { 0 };

    wish.kind = record_word(&f, "want", node_wish_words, ARRAY_SIZE(node_wish_words));
    err e = record_fields_close(&f, ret_why);
    if (e == ERR_OK)
        *ret_wish = wish;
    return e;
}

void shard_wish_encode(const struct shard_wish *wish, struct buf *out)
{
    json_t *object = json_object();

    CHECK(shard_wish_validate(wish, NULL) == ERR_OK);
    put(object, "members", decimal_list(wish->members, wish->member_count));
    if (wish->repair != 0)
        put(object, "repair", record_decimal(wish->repair));
    if (wish->config != 0)
        put(object, "config", record_decimal(wish->config));
    print(object, out);
}

err shard_wish_decode(struct slice json, struct shard_wish *ret_wish, struct record_error *ret_why)
{
    struct record_fields f = record_fields_open("shard wish", json);
    struct shard_wish wish = { 0 };

    wish.member_count = record_u64_list(&f, "members", wish.members, CLUSTER_MEMBERS_MAX);
    wish.repair = record_u64_or_zero(&f, "repair");
    wish.config = record_u64_or_zero(&f, "config");
    err e = record_fields_close(&f, ret_why);
    if (e == ERR_OK)
        e = shard_wish_validate(&wish, ret_why);
    if (e == ERR_OK)
        *ret_wish = wish;
    return e;
}

void coordinator_record_encode(const struct coordinator_record *record, struct buf *out)
{
    json_t *object = json_object();

    CHECK(coordinator_record_validate(record, NULL) == ERR_OK);
    put(object, "name", json_string(record->name));
    put(object, "address", json_string(record->address));
    print(object, out);
}

err coordinator_record_decode(struct slice json, struct coordinator_record *ret_record,
                              struct record_error *ret_why)
{
    struct record_fields f = record_fields_open("coordinator", json);
    struct coordinator_record record = { 0 };

    record_text(&f, "name", record.name, sizeof record.name);
    record_text(&f, "address", record.address, sizeof record.address);
    err e = record_fields_close(&f, ret_why);
    if (e == ERR_OK)
        e = coordinator_record_validate(&record, ret_why);
    if (e == ERR_OK)
        *ret_record = record;
    return e;
}
