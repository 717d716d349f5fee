#include "router/core/restore_plan.h"

#include <stdio.h>
#include <string.h>

#include "idl/error_code.h"
#include "router/core/refusal.h"
#include "runtime/base/check.h"

/* Above every revision that etcd gives: all incarnations of its generation are below it. */
#define LAST_REVISION ((uint64_t)INT64_MAX - 1)

typedef Holdfast__Internal__V1__KnownShard known_shard;

struct making {
    const struct restore_input *input;
    struct restore_plan *plan;
    Holdfast__V1__ErrorDetail *detail;
    int64_t cluster_revision;
    uint64_t generation; /* The highest that anybody knows. */
};

/* ---- etcd ---- */
static err read_cluster(struct making *making)
{
    struct restore_plan *plan = making->plan;
    struct cluster_key key = cluster_key_cluster(making->input->cluster);

    for (size_t i = 0; i < making->input->key_count; i++) {
        const struct restore_key *kv = &making->input->keys[i];

        if (!slice_equal(kv->key, cluster_key_slice(&key)))
            continue;
        if (cluster_record_decode(kv->value, &plan->cluster, NULL) != ERR_OK)
            break;
        making->cluster_revision = kv->mod_revision;
        making->generation = plan->cluster.generation;
        return ERR_OK;
    }
    refusal_make(making->input->arena, making->detail, CODE(UNAVAILABLE),
                 "etcd holds no record of this cluster: it was restored to before the cluster was "
                 "made, or is another one; restore a newer backup of it");
    return ERR_INVALID;
}

static bool has_answered(const struct making *making, uint64_t replica_id)
{
    for (uint32_t i = 0; i < making->input->answer_count; i++) {
        if (making->input->answers[i].replica_id == replica_id)
            return true;
    }
    return false;
}

static void read_node(struct making *making, struct slice value)
{
    struct restore_plan *plan = making->plan;
    struct node_record record;

    if (node_record_decode(value, &record, NULL) != ERR_OK)
        return;
    plan->nodes_doubting += record.doubts != 0 && record.doubts >= plan->cluster.generation;
    if (record.doubts > making->generation)
        making->generation = record.doubts;
    if (!has_answered(making, record.replica_id) && plan->silent_count < CLUSTER_NODES_MAX)
        plan->silent[plan->silent_count++] = record.replica_id;
}

static err read_shard(struct making *making, const struct restore_key *kv, uint32_t number)
{
    struct restore_shard *shard = &making->plan->shards[number];
    struct record_error why;

    if (shard_record_decode(kv->value, &shard->record, &why) != ERR_OK) {
        refusal_make(making->input->arena, making->detail, CODE(INTERNAL), "shard %u: %s", number,
                     why.text);
        return ERR_INVALID;
    }
    if (shard->record.generation > making->generation)
        making->generation = shard->record.generation;
    shard->mod_revision = kv->mod_revision;
    shard->next = shard->record;
    return ERR_OK;
}

static err read_keys(struct making *making)
{
    const struct restore_input *input = making->input;
    struct restore_plan *plan = making->plan;

    for (size_t i = 0; i < input->key_count; i++) {
        struct cluster_key_parts parts = cluster_key_parse(input->cluster, input->keys[i].key);
        err e = ERR_OK;

        if (parts.kind == CLUSTER_KEY_NODE)
            read_node(making, input->keys[i].value);
        else if (parts.kind == CLUSTER_KEY_SHARD && parts.shard < plan->cluster.shard_count)
            e = read_shard(making, &input->keys[i], parts.shard);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

/* ---- what nodes know ---- */
static bool same_ids(const uint64_t *a, uint32_t count, const uint64_t *b, size_t b_count)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < count; i++) {
        for (size_t k = 0; k < b_count; k++)
            found += a[i] == b[k];
    }
    return count == b_count && found == count;
}

static uint32_t copy_ids(uint64_t *to, const uint64_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = from[i];
    return (uint32_t)count;
}

/* Every record that etcd ever held follows from the one before. So of two the later one may be
 * gone on from, be it known to one replica alone. */
static void take_members(struct restore_shard *shard, const known_shard *known)
{
    struct shard_record *next = &shard->next;
    bool same = same_ids(next->members, next->member_count, known->members, known->n_members) &&
                same_ids(next->new_members, next->new_member_count, known->new_members,
                         known->n_new_members);

    if (known->n_members == 0 || known->n_members > CLUSTER_MEMBERS_MAX ||
        known->n_new_members > CLUSTER_MEMBERS_MAX || known->member_config < next->config)
        return;
    next->config = known->member_config;
    if (same)
        return;
    next->member_count = copy_ids(next->members, known->members, known->n_members);
    next->new_member_count = copy_ids(next->new_members, known->new_members, known->n_new_members);
    next->phase = known->n_new_members > 0 ? SHARD_JOINT : SHARD_STABLE;
    next->learner = next->leaving = 0; /* A learner is made one again. */
    shard->members_differ = true;
}

static void take_known(struct making *making, uint64_t replica_id, const known_shard *known)
{
    if (known->shard >= making->plan->cluster.shard_count)
        return;
    struct restore_shard *shard = &making->plan->shards[known->shard];

    if (known->epoch > shard->epoch_known)
        shard->epoch_known = known->epoch;
    if (known->config > shard->config_known)
        shard->config_known = known->config;
    if (known->generation > making->generation)
        making->generation = known->generation;
    shard->forked |= shard->mod_revision > 0 && known->owner != 0 &&
                     known->epoch == shard->record.epoch && known->owner != shard->record.owner;
    if (known->owner != 0 && known->epoch > shard->owner_epoch) {
        shard->owner = known->owner;
        shard->owner_epoch = known->epoch;
    }
    if (known->mute && shard->mute_count < ARRAY_SIZE(shard->mute))
        shard->mute[shard->mute_count++] = replica_id;
    take_members(shard, known);
}

static void take_answers(struct making *making)
{
    for (uint32_t i = 0; i < making->input->answer_count; i++) {
        const struct restore_answer *answer = &making->input->answers[i];

        if (answer->status->generation > making->generation)
            making->generation = answer->status->generation;
        for (size_t k = 0; k < answer->status->n_known; k++)
            take_known(making, answer->replica_id, answer->status->known[k]);
    }
}

/* ---- what is to be ---- */
static bool speaks(const struct making *making, const struct restore_shard *shard, uint64_t replica)
{
    for (uint32_t i = 0; i < shard->mute_count; i++) {
        if (shard->mute[i] == replica)
            return false;
    }
    return has_answered(making, replica);
}

/* Whatever was committed, or promised to somebody who served, under a configuration after this one
 * is known to one of its majority. */
static err check_majority(const struct making *making, uint32_t number, const uint64_t *ids,
                          uint32_t count)
{
    const struct restore_shard *shard = &making->plan->shards[number];
    char names[CLUSTER_MEMBERS_MAX * 22 + 1] = "";
    size_t used = 0;
    uint32_t heard = 0;

    for (uint32_t i = 0; i < count; i++) {
        bool there = speaks(making, shard, ids[i]);

        heard += there;
        if (!there && used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, " %llu",
                                     (unsigned long long)ids[i]);
    }
    if (heard > count / 2)
        return ERR_OK;
    refusal_make(making->input->arena, making->detail, CODE(UNAVAILABLE),
                 "shard %u: only %u of %u replicas of its newest configuration can tell what they "
                 "know; a majority is needed; missing:%s; nothing was done",
                 number, heard, count, names);
    return ERR_UNAVAILABLE;
}

static uint64_t choose_owner(const struct making *making, const struct restore_shard *shard)
{
    const struct shard_record *next = &shard->next;
    uint64_t owner = 0;

    if (shard_record_has_member(next, shard->owner) && speaks(making, shard, shard->owner))
        return shard->owner;
    for (uint32_t i = 0; i < next->member_count && owner == 0; i++) {
        if (speaks(making, shard, next->members[i]))
            owner = next->members[i];
    }
    CHECK(owner != 0); /* A majority speaks. */
    return owner;
}

/* The configuration number was given to nothing else, and no absent replica promised a greater
 * one, or it would refuse this one forever. */
static void choose_config(struct restore_shard *shard)
{
    if (shard->config_known > shard->next.config)
        shard->next.config = shard->config_known;
    shard->next.config += RESTORE_CONFIGS_MARGIN;
}

/* Of one that has no record, and of which no replica can tell. */
static err check_never_placed(const struct making *making, uint32_t number)
{
    const struct restore_shard *shard = &making->plan->shards[number];

    if (shard->mute_count == 0)
        return ERR_OK; /* No replica knows of it. */
    refusal_make(making->input->arena, making->detail, CODE(UNAVAILABLE),
                 "shard %u: etcd has no record of it, and of its replicas only a damaged one "
                 "answers, that of node %llu: bring up the others; nothing was done",
                 number, (unsigned long long)shard->mute[0]);
    return ERR_UNAVAILABLE;
}

static err plan_shard(struct making *making, uint32_t number)
{
    struct restore_plan *plan = making->plan;
    struct restore_shard *shard = &plan->shards[number];
    struct shard_record *next = &shard->next;

    if (next->member_count == 0)
        return check_never_placed(making, number);
    err e = check_majority(making, number, next->members, next->member_count);
    if (e == ERR_OK && next->phase == SHARD_JOINT)
        e = check_majority(making, number, next->new_members, next->new_member_count);
    if (e != ERR_OK)
        return e;
    next->owner = choose_owner(making, shard);
    choose_config(shard);
    next->epoch = plan->next.epoch_floor + 1;
    next->generation = plan->next.generation;
    return ERR_OK;
}

bool restore_shard_is_behind(const struct restore_plan *plan, const struct restore_shard *shard)
{
    uint64_t epoch = shard->mod_revision > 0 ? shard->record.epoch : 0;
    uint64_t config = shard->mod_revision > 0 ? shard->record.config : 0;

    if (epoch < plan->cluster.epoch_floor)
        epoch = plan->cluster.epoch_floor;
    return shard->epoch_known > epoch || shard->config_known > config || shard->forked ||
           shard->record.generation > plan->cluster.generation;
}

static err plan_shards(struct making *making)
{
    struct restore_plan *plan = making->plan;
    uint64_t floor = plan->cluster.epoch_floor;
    err e = ERR_OK;

    for (uint32_t i = 0; i < plan->cluster.shard_count; i++) {
        const struct restore_shard *shard = &plan->shards[i];

        if (shard->epoch_known > floor)
            floor = shard->epoch_known;
        if (shard->mod_revision > 0 && shard->record.epoch > floor)
            floor = shard->record.epoch;
        plan->shards_behind += restore_shard_is_behind(plan, shard);
    }
    plan->next = plan->cluster;
    plan->next.generation = making->generation + 1;
    plan->next.epoch_floor = floor + RESTORE_EPOCHS_MARGIN;
    if (plan->shards_behind == 0 && plan->nodes_doubting == 0 && !making->input->force) {
        refusal_make(making->input->arena, making->detail, CODE(VERSION_CONFLICT),
                     "there is nothing to accept: etcd is as new as all %u nodes that answer know, "
                     "under generation %llu",
                     making->input->answer_count, (unsigned long long)plan->cluster.generation);
        return ERR_CONFLICT;
    }
    for (uint32_t i = 0; i < plan->cluster.shard_count && e == ERR_OK; i++)
        e = plan_shard(making, i);
    return e;
}

/* ---- what is to be written ---- */
static void add_write(struct making *making, struct slice key, struct buf *value, int64_t revision)
{
    struct arena *arena = making->input->arena;
    struct restore_plan *plan = making->plan;

    plan->writes[plan->write_count++] = (struct restore_write){
        .key = arena_copy(arena, key),
        .value = arena_copy(arena, buf_slice(value)),
        .revision = revision,
    };
    buf_deinit(value);
}

/* This etcd may not know their leases. A server that still runs gets SERVER_EXPIRED, and registers
 * again. */
static void end_server(struct making *making, const struct restore_key *kv,
                       enum cluster_key_kind kind)
{
    struct server_record record;
    struct buf value = { 0 };

    if (kind == CLUSTER_KEY_SERVER_LIVE) {
        add_write(making, kv->key, &value, -1);
        return;
    }
    if (server_record_decode(kv->value, &record, NULL) != ERR_OK)
        return;
    making->plan->servers++;
    if (record.state == SERVER_EXPIRING)
        return;
    record.state = SERVER_EXPIRING;
    server_record_encode(&record, &value);
    add_write(making, kv->key, &value, kv->mod_revision);
    making->plan->writes[making->plan->write_count - 1].lease_id = record.lease_id;
}

/* Servers that registered after the backup are in no key: all shards are told that every
 * incarnation up to the last that this generation can have is expired. */
static void end_unknown_servers(struct making *making)
{
    struct cluster_key key = cluster_key_server_known(
        making->input->cluster, (struct incarnation){ making->generation, LAST_REVISION });
    struct server_record record = { .name = "accept-etcd-restore",
                                    .ttl_ms = SERVER_TTL_MS_MIN,
                                    .state = SERVER_EXPIRING,
                                    .lease_id = 1 };
    struct buf value = { 0 };

    server_record_encode(&record, &value);
    add_write(making, cluster_key_slice(&key), &value, -1);
}

/* First of all, depose the leader: a transaction that is repeated after this, by a
 * coordinator that has not heard yet how old etcd is, must not find the number of a revision that
 * comes up again. All are candidates again at once. */
static void end_elections(struct making *making)
{
    const struct restore_input *input = making->input;
    struct buf nothing = { 0 };

    for (size_t i = 0; i < input->key_count; i++) {
        if (cluster_key_parse(input->cluster, input->keys[i].key).kind == CLUSTER_KEY_ELECTION)
            add_write(making, input->keys[i].key, &nothing, -1);
    }
}

static void plan_writes(struct making *making)
{
    const struct restore_input *input = making->input;
    struct restore_plan *plan = making->plan;
    struct cluster_key key = cluster_key_cluster(input->cluster);
    struct buf value = { 0 };

    plan->writes = arena_alloc(input->arena, (input->key_count + plan->cluster.shard_count + 2) *
                                                 sizeof *plan->writes);
    end_elections(making);
    for (size_t i = 0; i < input->key_count; i++) {
        struct cluster_key_parts parts = cluster_key_parse(input->cluster, input->keys[i].key);

        if (parts.kind == CLUSTER_KEY_SERVER_LIVE || parts.kind == CLUSTER_KEY_SERVER_KNOWN)
            end_server(making, &input->keys[i], parts.kind);
    }
    end_unknown_servers(making);
    for (uint32_t i = 0; i < plan->cluster.shard_count; i++) {
        const struct restore_shard *shard = &plan->shards[i];
        struct cluster_key shard_key = cluster_key_shard(input->cluster, i);
        struct buf record = { 0 };

        if (shard->next.member_count == 0)
            continue;
        shard_record_encode(&shard->next, &record);
        add_write(making, cluster_key_slice(&shard_key), &record, shard->mod_revision);
    }
    cluster_record_encode(&plan->next, &value);
    add_write(making, cluster_key_slice(&key), &value, making->cluster_revision);
}

err restore_plan_make(const struct restore_input *input, struct restore_plan *ret_plan,
                      Holdfast__V1__ErrorDetail *ret_detail)
{
    struct making making = { .input = input, .plan = ret_plan, .detail = ret_detail };

    memset(ret_plan, 0, sizeof *ret_plan);
    err e = read_cluster(&making);
    if (e != ERR_OK)
        return e;
    ret_plan->shards =
        arena_zalloc(input->arena, ret_plan->cluster.shard_count * sizeof *ret_plan->shards);
    e = read_keys(&making);
    if (e != ERR_OK)
        return e;
    take_answers(&making);
    e = plan_shards(&making);
    if (e == ERR_OK)
        plan_writes(&making);
    return e;
}
