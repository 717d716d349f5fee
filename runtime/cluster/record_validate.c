/* What a record must satisfy, whether it was built here or read from etcd. */
#include "runtime/cluster/record_validate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/id.h"
#include "runtime/cluster/incarnation.h"

err record_refuse(err e, struct record_error *ret_why, const char *format, ...)
{
    va_list args;

    if (ret_why == NULL)
        return e;
    va_start(args, format);
    vsnprintf(ret_why->text, sizeof ret_why->text, format, args);
    va_end(args);
    return e;
}

/* 1 to size - 1 bytes (or none, if it may be empty), without control characters. */
static err check_text(const char *field, const char *text, bool may_be_empty,
                      struct record_error *ret_why)
{
    if (text[0] == '\0' && !may_be_empty)
        return record_refuse(ERR_INVALID, ret_why, "%s: empty", field);
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return record_refuse(ERR_INVALID, ret_why, "%s: control character 0x%02x at byte %d",
                                 field, *c, (int)(c - text));
    }
    return ERR_OK;
}

/* host:port with a port of 1 to 65535. */
static err check_address(const char *field, const char *text, struct record_error *ret_why)
{
    const char *colon = strrchr(text, ':');
    uint64_t port;

    if (colon == NULL || colon == text)
        return record_refuse(ERR_INVALID, ret_why, "%s: \"%.64s\" is not host:port", field, text);
    if (decimal_parse(slice_from_text(colon + 1), &port) != ERR_OK || port == 0 || port > 65535)
        return record_refuse(ERR_INVALID, ret_why, "%s: port \"%.16s\" is not within 1 to 65535",
                             field, colon + 1);
    return check_text(field, text, false, ret_why);
}

bool shard_count_valid(uint32_t shard_count)
{
    return shard_count > 0 && shard_count <= CLUSTER_SHARDS_MAX &&
           (shard_count & (shard_count - 1)) == 0;
}

err cluster_record_validate(const struct cluster_record *record, struct record_error *ret_why)
{
    struct uuid uuid;

    if (uuid_parse(slice_from_text(record->cluster_id), &uuid) != ERR_OK)
        return record_refuse(ERR_INVALID, ret_why,
                             "cluster record: cluster_id: \"%.40s\" is no UUID",
                             record->cluster_id);
    if (record->generation == 0)
        return record_refuse(ERR_INVALID, ret_why, "cluster record: generation: 0, at least 1");
    if (!shard_count_valid(record->shard_count))
        return record_refuse(ERR_INVALID, ret_why,
                             "cluster record: shard_count: %" PRIu32
                             " is no power of two within 1 to %d",
                             record->shard_count, (int)CLUSTER_SHARDS_MAX);
    if (record->replication_factor == 0 || record->replication_factor > CLUSTER_MEMBERS_MAX)
        return record_refuse(ERR_INVALID, ret_why,
                             "cluster record: replication_factor: %" PRIu32
                             " is not within 1 to %d",
                             record->replication_factor, (int)CLUSTER_MEMBERS_MAX);
    return check_text("cluster record: created_by", record->created_by, false, ret_why);
}

err node_record_validate(const struct node_record *record, struct record_error *ret_why)
{
    err e = ERR_OK;

    if (record->replica_id == 0)
        return record_refuse(ERR_INVALID, ret_why, "node record: replica_id: 0 is no replica");
    e = check_text("node record: name", record->name, false, ret_why);
    if (e == ERR_OK)
        e = check_address("node record: address", record->address, ret_why);
    if (e == ERR_OK)
        e = check_address("node record: peer_address", record->peer_address, ret_why);
    if (e == ERR_OK)
        e = check_text("node record: zone", record->zone, true, ret_why);
    if (e == ERR_OK)
        e = check_text("node record: version", record->version, false, ret_why);
    return e;
}

static err check_members(const char *field, const uint64_t *ids, uint32_t count,
                         struct record_error *ret_why)
{
    if (count > CLUSTER_MEMBERS_MAX)
        return record_refuse(ERR_INVALID, ret_why, "%s: %" PRIu32 " items, at most %d", field,
                             count, (int)CLUSTER_MEMBERS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] == 0)
            return record_refuse(ERR_INVALID, ret_why, "%s: 0 is no replica", field);
        if (replica_is_among(ids, i, ids[i]))
            return record_refuse(ERR_INVALID, ret_why, "%s: %" PRIu64 " stands twice", field,
                                 ids[i]);
    }
    return ERR_OK;
}

/* How many of a are not in b. */
static uint32_t count_missing(const uint64_t *a, uint32_t a_count, const uint64_t *b,
                              uint32_t b_count)
{
    uint32_t missing = 0;

    for (uint32_t i = 0; i < a_count; i++)
        missing += replica_is_among(b, b_count, a[i]) ? 0u : 1u;
    return missing;
}

static err check_phase(const struct shard_record *r, struct record_error *ret_why)
{
    if (r->phase == SHARD_STABLE && r->new_member_count > 0)
        return record_refuse(ERR_INVALID, ret_why,
                             "shard record: new_members: %" PRIu32 " items while stable",
                             r->new_member_count);
    if (r->phase == SHARD_STABLE)
        return ERR_OK;
    if (r->new_member_count == 0)
        return record_refuse(ERR_INVALID, ret_why, "shard record: new_members: empty while joint");
    uint32_t added =
        count_missing(r->new_members, r->new_member_count, r->members, r->member_count);
    uint32_t removed =
        count_missing(r->members, r->member_count, r->new_members, r->new_member_count);
    if (added > 1 || removed > 1 || added + removed == 0)
        return record_refuse(ERR_INVALID, ret_why,
                             "shard record: new_members: %" PRIu32 " added and %" PRIu32
                             " removed, at most one each and not none",
                             added, removed);
    return ERR_OK;
}

static err check_learner(const struct shard_record *r, struct record_error *ret_why)
{
    if (r->learner != 0 && r->phase != SHARD_STABLE)
        return record_refuse(ERR_INVALID, ret_why, "shard record: learner: %" PRIu64 " while joint",
                             r->learner);
    if (r->learner != 0 && replica_is_among(r->members, r->member_count, r->learner))
        return record_refuse(ERR_INVALID, ret_why, "shard record: learner: %" PRIu64 " is a member",
                             r->learner);
    if (r->leaving != 0 && r->learner == 0)
        return record_refuse(ERR_INVALID, ret_why,
                             "shard record: leaving: %" PRIu64 " without a learner", r->leaving);
    if (r->leaving != 0 && !replica_is_among(r->members, r->member_count, r->leaving))
        return record_refuse(ERR_INVALID, ret_why,
                             "shard record: leaving: %" PRIu64 " is no member", r->leaving);
    return ERR_OK;
}

err shard_record_validate(const struct shard_record *record, struct record_error *ret_why)
{
    if (record->generation == 0)
        return record_refuse(ERR_INVALID, ret_why, "shard record: generation: 0, at least 1");
    if (record->epoch == 0)
        return record_refuse(ERR_INVALID, ret_why, "shard record: epoch: 0, at least 1");
    if (record->config == 0)
        return record_refuse(ERR_INVALID, ret_why, "shard record: config: 0, at least 1");
    if (record->phase != SHARD_STABLE && record->phase != SHARD_JOINT)
        return record_refuse(ERR_INVALID, ret_why, "shard record: phase: %d is unknown",
                             (int)record->phase);
    if (record->member_count == 0)
        return record_refuse(ERR_INVALID, ret_why, "shard record: members: empty");
    err e = check_members("shard record: members", record->members, record->member_count, ret_why);
    if (e == ERR_OK)
        e = check_members("shard record: new_members", record->new_members,
                          record->new_member_count, ret_why);
    if (e == ERR_OK)
        e = check_phase(record, ret_why);
    if (e == ERR_OK)
        e = check_learner(record, ret_why);
    if (e != ERR_OK)
        return e;
    if (!shard_record_has_member(record, record->owner))
        return record_refuse(ERR_INVALID, ret_why, "shard record: owner: %" PRIu64 " is no member",
                             record->owner);
    return ERR_OK;
}

err shard_wish_validate(const struct shard_wish *wish, struct record_error *ret_why)
{
    if (wish->member_count == 0)
        return record_refuse(ERR_INVALID, ret_why, "shard wish: members: empty");
    if (wish->repair != 0 && !replica_is_among(wish->members, wish->member_count, wish->repair))
        return record_refuse(ERR_INVALID, ret_why, "shard wish: repair: %" PRIu64 " is no member",
                             wish->repair);
    return check_members("shard wish: members", wish->members, wish->member_count, ret_why);
}

void node_record_mark_damaged(struct node_record *record, uint32_t shard)
{
    CHECK(shard < CLUSTER_SHARDS_MAX);
    if (node_record_is_damaged(record, shard))
        return;
    record->damaged[shard / 8] |= (uint8_t)(1u << shard % 8);
    record->damaged_shards++;
}

bool node_record_is_damaged(const struct node_record *record, uint32_t shard)
{
    return (record->damaged[shard / 8] >> shard % 8 & 1) != 0;
}

void node_record_mark_quarantined(struct node_record *record, uint32_t shard)
{
    CHECK(shard < CLUSTER_SHARDS_MAX);
    record->quarantined[shard / 8] |= (uint8_t)(1u << shard % 8);
}

bool node_record_is_quarantined(const struct node_record *record, uint32_t shard)
{
    return (record->quarantined[shard / 8] >> shard % 8 & 1) != 0;
}

bool node_record_finds_same(const struct node_record *a, const struct node_record *b)
{
    return memcmp(a->damaged, b->damaged, sizeof a->damaged) == 0 &&
           memcmp(a->quarantined, b->quarantined, sizeof a->quarantined) == 0;
}

bool node_record_may_own(const struct node_record *record, uint32_t shard)
{
    return !node_record_is_damaged(record, shard) && !node_record_is_quarantined(record, shard);
}

bool replica_is_among(const uint64_t *replica_ids, uint32_t count, uint64_t replica_id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (replica_ids[i] == replica_id)
            return true;
    }
    return false;
}

bool shard_record_has_member(const struct shard_record *record, uint64_t replica_id)
{
    return replica_is_among(record->members, record->member_count, replica_id) ||
           replica_is_among(record->new_members, record->new_member_count, replica_id);
}

err server_record_validate(const struct server_record *record, struct record_error *ret_why)
{
    if (record->ttl_ms < SERVER_TTL_MS_MIN || record->ttl_ms > SERVER_TTL_MS_MAX)
        return record_refuse(ERR_INVALID, ret_why,
                             "server record: ttl_ms: %" PRIu32 " is not within %d to %d",
                             record->ttl_ms, (int)SERVER_TTL_MS_MIN, (int)SERVER_TTL_MS_MAX);
    if (record->state != SERVER_LIVE && record->state != SERVER_EXPIRING)
        return record_refuse(ERR_INVALID, ret_why, "server record: state: %d is unknown",
                             (int)record->state);
    if (record->lease_id <= 0)
        return record_refuse(ERR_INVALID, ret_why,
                             "server record: lease_id: %" PRId64 " is no lease", record->lease_id);
    return check_text("server record: name", record->name, false, ret_why);
}

err coordinator_record_validate(const struct coordinator_record *record,
                                struct record_error *ret_why)
{
    err e = check_text("coordinator record: name", record->name, false, ret_why);

    return e != ERR_OK ? e : check_address("coordinator record: address", record->address, ret_why);
}
