/*
 * What an operator accepts who restored etcd from a backup (router/core/restore_plan.h,
 * docs/etcd-restore.md). A random cluster has a true history of owners and configurations; etcd
 * fell back to some point of it, and each node that answers knows another part.
 */
#include <stdio.h>
#include <string.h>

#include "idl/error_code.h"
#include "router/core/restore_plan.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define SHARDS  4u
#define NODES   5u
#define KEYS    24u
#define SERVERS 3u
#define CLUSTER "sim"

/* What all that answer know of a shard together. */
struct truth {
    struct shard_record record; /* Of etcd; */
    bool has_record;
    int64_t revision;
    uint64_t epoch, config, owner_epoch, owner; /* The greatest that a replica knows. */
    uint64_t member_config;                     /* 0: no replica knows members. */
    bool mute[NODES + 1], any_mute;
    bool forked;
};

struct past {
    struct rsim *sim;
    struct cluster_record cluster;
    bool has_cluster, broken_record;
    int64_t revision, cluster_revision;
    struct restore_key keys[KEYS];
    size_t key_count;
    struct truth shards[SHARDS];
    bool answers[NODES + 1], live[NODES + 1];
    bool quiet; /* Nothing was lost: etcd is as new as what nodes know. */
    uint32_t doubting;
    uint64_t generation; /* The highest that anything knows. */
    uint64_t floor;
    uint32_t elections, server_lives, servers, expiring;
    int64_t server_lease[SERVERS];
    Holdfast__Internal__V1__GetNodeStatusResponse status[NODES];
    Holdfast__Internal__V1__KnownShard known[NODES][SHARDS], *lists[NODES][SHARDS];
    uint64_t members[NODES][SHARDS][2][3];
    struct restore_answer list[NODES];
    uint32_t answer_count;
};

/* ---- the one history: a number says all of a configuration, an epoch who owned ---- */

static uint32_t members_of(uint32_t shard, uint64_t config, uint64_t ret_ids[3])
{
    for (uint64_t i = 0; i < 3; i++)
        ret_ids[i] = (shard + config / 4 + i) % NODES + 1;
    return 3;
}

/* Of a joint phase: one goes, another comes. */
static uint32_t new_members_of(uint32_t shard, uint64_t config, uint64_t ret_ids[3])
{
    if (config % 4 != 3)
        return 0;
    for (uint64_t i = 0; i < 3; i++)
        ret_ids[i] = (shard + config / 4 + 1 + i) % NODES + 1;
    return 3;
}

static uint64_t owner_of(uint32_t shard, uint64_t epoch)
{
    return (shard + epoch) % (NODES + 1); /* 0: not known. */
}

/* ---- etcd ---- */

static void put(struct past *p, struct cluster_key key, struct buf *value)
{
    CHECK(p->key_count < KEYS);
    p->keys[p->key_count++] = (struct restore_key){
        .key = arena_copy(&p->sim->arena, cluster_key_slice(&key)),
        .value = arena_copy(&p->sim->arena, buf_slice(value)),
        .mod_revision = ++p->revision,
    };
    buf_deinit(value);
}

static void at_least(uint64_t *number, uint64_t other)
{
    *number = other > *number ? other : *number;
}

static void shard_make(struct past *p, uint32_t number)
{
    struct rsim *sim = p->sim;
    struct truth *truth = &p->shards[number];
    struct shard_record *record = &truth->record;
    uint64_t config = rsim_between(sim, 1, 8);
    struct buf value = { 0 };

    *truth = (struct truth){ .has_record = p->quiet || rsim_chance(sim, 90) };
    if (!truth->has_record)
        return;
    *record = (struct shard_record){ .generation = rsim_between(sim, 1, 3),
                                     .epoch = rsim_between(sim, 1, 12),
                                     .config = config };
    record->member_count = members_of(number, config, record->members);
    record->new_member_count = new_members_of(number, config, record->new_members);
    record->phase = record->new_member_count > 0 ? SHARD_JOINT : SHARD_STABLE;
    record->owner = record->members[rsim_between(sim, 0, 2)];
    if (p->quiet || rsim_chance(sim, 80)) { /* As the history has it. */
        record->generation = p->cluster.generation;
        while (!shard_record_has_member(record, owner_of(number, record->epoch)))
            record->epoch++;
        record->owner = owner_of(number, record->epoch);
    }
    if (record->phase == SHARD_STABLE && rsim_chance(sim, 20))
        record->learner = (number + config / 4 + 3) % NODES + 1;
    shard_record_encode(record, &value);
    put(p, cluster_key_shard(CLUSTER, number), &value);
    truth->revision = p->revision;
    at_least(&p->generation, record->generation);
}

static void node_make(struct past *p, uint64_t id)
{
    struct node_record record = {
        .replica_id = id, .name = "n", .address = "a:1", .peer_address = "a:2", .version = "v"
    };
    struct buf value = { 0 };

    p->live[id] = rsim_chance(p->sim, 85);
    p->answers[id] = rsim_chance(p->sim, 85);
    if (!p->live[id])
        return;
    record.doubts = !p->quiet && rsim_chance(p->sim, 10) ? rsim_between(p->sim, 1, 4) : 0;
    node_record_encode(&record, &value);
    put(p, cluster_key_node(CLUSTER, id), &value);
    p->doubting += record.doubts != 0 && record.doubts >= p->cluster.generation;
    at_least(&p->generation, record.doubts);
}

static void servers_make(struct past *p)
{
    for (uint32_t i = 0; i < SERVERS; i++) {
        struct incarnation incarnation = { 1, 100 + i };
        struct server_record record = { .name = "s", .ttl_ms = 5000, .lease_id = 7 + i };
        struct buf value = { 0 };

        p->server_lease[i] = 0;
        if (rsim_chance(p->sim, 40))
            continue;
        record.state = rsim_chance(p->sim, 30) ? SERVER_EXPIRING : SERVER_LIVE;
        server_record_encode(&record, &value);
        put(p, cluster_key_server_known(CLUSTER, incarnation), &value);
        p->servers++;
        p->expiring += record.state == SERVER_EXPIRING;
        p->server_lease[i] = record.state == SERVER_LIVE ? record.lease_id : 0;
        if (rsim_chance(p->sim, 50)) {
            server_record_encode(&record, &value);
            put(p, cluster_key_server_live(CLUSTER, incarnation), &value);
            p->server_lives++;
        }
    }
}

static void etcd_make(struct past *p)
{
    struct buf value = { 0 };
    struct cluster_key key = cluster_key_election_prefix(CLUSTER);

    p->cluster = (struct cluster_record){ .cluster_id = "01890a5d-ac96-774b-bcce-b302099a8057",
                                          .generation = rsim_between(p->sim, 1, 3),
                                          .shard_count = SHARDS,
                                          .replication_factor = 3,
                                          .created_by = "sim",
                                          .epoch_floor = rsim_between(p->sim, 0, 6) };
    p->generation = p->cluster.generation;
    p->has_cluster = rsim_chance(p->sim, 96);
    if (p->has_cluster) {
        cluster_record_encode(&p->cluster, &value);
        put(p, cluster_key_cluster(CLUSTER), &value);
        p->cluster_revision = p->revision;
    }
    for (uint32_t i = 0; i < SHARDS; i++)
        shard_make(p, i);
    for (uint64_t id = 1; id <= NODES; id++)
        node_make(p, id);
    servers_make(p);
    if (rsim_chance(p->sim, 60)) {
        (void)snprintf(key.text + strlen(key.text), sizeof key.text - strlen(key.text), "%s", "77");
        buf_printf(&value, "x");
        put(p, key, &value);
        p->elections++;
    }
    if (rsim_chance(p->sim, 4)) {
        key = cluster_key_shard(CLUSTER, SHARDS - 1);
        buf_printf(&value, "{}");
        put(p, key, &value);
        p->broken_record = true;
    }
}

/* ---- what nodes know ---- */

static void known_make(struct past *p, uint64_t id, uint32_t shard)
{
    struct rsim *sim = p->sim;
    uint32_t at = p->answer_count;
    Holdfast__Internal__V1__KnownShard *known = &p->known[at][shard];
    struct truth *truth = &p->shards[shard];
    bool late = !p->quiet && rsim_chance(sim, 15);
    uint64_t config = rsim_between(sim, 1,
                                   late                ? 10
                                   : truth->has_record ? truth->record.config
                                                       : 1);

    holdfast__internal__v1__known_shard__init(known);
    p->lists[at][shard] = known;
    known->shard = shard;
    known->epoch = rsim_between(sim, 1, late ? 15 : truth->has_record ? truth->record.epoch : 1);
    known->config = config + (late ? rsim_between(sim, 0, 9) / 9 : 0);
    known->generation = rsim_between(sim, 0, late ? 4 : 1);
    known->owner = owner_of(shard, known->epoch);
    known->mute = rsim_chance(sim, 6);
    known->member_config = config;
    known->members = p->members[at][shard][0];
    known->new_members = p->members[at][shard][1];
    if (rsim_chance(sim, 90)) {
        known->n_members = members_of(shard, config, known->members);
        known->n_new_members = new_members_of(shard, config, known->new_members);
        at_least(&truth->member_config, config);
    }
    at_least(&truth->epoch, known->epoch);
    at_least(&truth->config, known->config);
    at_least(&p->generation, known->generation);
    if (known->owner != 0 && known->epoch > truth->owner_epoch) {
        truth->owner = known->owner;
        truth->owner_epoch = known->epoch;
    }
    truth->forked |= truth->has_record && known->owner != 0 &&
                     known->epoch == truth->record.epoch && known->owner != truth->record.owner;
    truth->mute[id] = known->mute;
    truth->any_mute |= known->mute;
}

static void nodes_make(struct past *p)
{
    for (uint64_t id = 1; id <= NODES; id++) {
        Holdfast__Internal__V1__GetNodeStatusResponse *status = &p->status[p->answer_count];

        if (!p->answers[id])
            continue;
        holdfast__internal__v1__get_node_status_response__init(status);
        status->generation = !p->quiet && rsim_chance(p->sim, 15) ? rsim_between(p->sim, 1, 5) : 0;
        at_least(&p->generation, status->generation);
        status->known = p->lists[p->answer_count];
        for (uint32_t i = 0; i < SHARDS; i++) {
            if (rsim_chance(p->sim, 15))
                continue;
            known_make(p, id, i);
            p->lists[p->answer_count][status->n_known++] = &p->known[p->answer_count][i];
        }
        p->list[p->answer_count++] = (struct restore_answer){ id, status };
    }
}

/* ---- what follows ---- */

/* The configuration to go on from; 0: the shard was never placed. */
static uint64_t newest_config(const struct truth *truth)
{
    uint64_t config = truth->has_record ? truth->record.config : 0;

    return truth->member_config > config ? truth->member_config : config;
}

static bool speaks(const struct past *p, const struct truth *truth, uint64_t id)
{
    return p->answers[id] && !truth->mute[id];
}

static bool majority(const struct past *p, const struct truth *truth, const uint64_t ids[3])
{
    return speaks(p, truth, ids[0]) + speaks(p, truth, ids[1]) + speaks(p, truth, ids[2]) >= 2;
}

static bool is_behind(const struct past *p, const struct truth *truth)
{
    uint64_t epoch = truth->has_record ? truth->record.epoch : 0;
    uint64_t config = truth->has_record ? truth->record.config : 0;

    at_least(&epoch, p->cluster.epoch_floor);
    return truth->epoch > epoch || truth->config > config || truth->forked ||
           (truth->has_record && truth->record.generation > p->cluster.generation);
}

/* Why shard by shard nothing, or something, can be done. */
static err shards_wanted(struct past *p)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        const struct truth *truth = &p->shards[i];
        uint64_t config = newest_config(truth), ids[3];

        if (config == 0) {
            if (truth->any_mute)
                return ERR_UNAVAILABLE;
            continue;
        }
        members_of(i, config, ids);
        if (!majority(p, truth, ids))
            return ERR_UNAVAILABLE;
        if (new_members_of(i, config, ids) > 0 && !majority(p, truth, ids))
            return ERR_UNAVAILABLE;
        p->sim->counts.restores_joint += config % 4 == 3;
    }
    return ERR_OK;
}

static bool same_set(const uint64_t *a, const uint64_t *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!replica_is_among(b, count, a[i]))
            return false;
    }
    return true;
}

static void record_check(struct past *p, uint32_t number, const struct restore_write *write)
{
    const struct truth *truth = &p->shards[number];
    struct shard_record record;
    uint64_t config = newest_config(truth), ids[3], numbered = config;
    struct rsim *sim = p->sim;

    PROMISE(sim, shard_record_decode(write->value, &record, NULL) == ERR_OK, "no record");
    PROMISE(sim, write->revision == truth->revision, "shard %u: written over another record",
            number);
    PROMISE(sim, record.epoch == p->floor + RESTORE_EPOCHS_MARGIN + 1,
            "shard %u: epoch %llu over a floor of %llu", number, (unsigned long long)record.epoch,
            (unsigned long long)p->floor);
    PROMISE(sim, record.generation == p->generation + 1, "shard %u: generation", number);
    at_least(&numbered, truth->config);
    PROMISE(sim, record.config == numbered + RESTORE_CONFIGS_MARGIN, "shard %u: config %llu",
            number, (unsigned long long)record.config);
    uint32_t count = members_of(number, config, ids);
    PROMISE(sim, record.member_count == count && same_set(record.members, ids, count),
            "shard %u: other members than configuration %llu has", number,
            (unsigned long long)config);
    count = new_members_of(number, config, ids);
    PROMISE(sim, record.new_member_count == count && same_set(record.new_members, ids, count),
            "shard %u: other new members", number);
    PROMISE(sim, record.phase == (count > 0 ? SHARD_JOINT : SHARD_STABLE), "shard %u: phase",
            number);
    bool last = truth->owner != 0 && shard_record_has_member(&record, truth->owner) &&
                speaks(p, truth, truth->owner);
    PROMISE(sim, last ? record.owner == truth->owner : speaks(p, truth, record.owner),
            "shard %u: owned by %llu; the last owner that is known is %llu", number,
            (unsigned long long)record.owner, (unsigned long long)truth->owner);
    if (truth->has_record && config == truth->record.config)
        PROMISE(sim, record.learner == truth->record.learner, "shard %u: another learner", number);
}

static void server_check(struct past *p, const struct cluster_key_parts *parts,
                         const struct restore_write *write)
{
    struct server_record record;

    PROMISE(p->sim,
            server_record_decode(write->value, &record, NULL) == ERR_OK &&
                record.state == SERVER_EXPIRING,
            "a game server does not end");
    if (parts->incarnation.revision > 1000) {
        PROMISE(p->sim,
                parts->incarnation.generation == p->generation &&
                    parts->incarnation.revision >= (1ull << 63) - 10,
                "servers of the lost time do not end");
        PROMISE(p->sim, write->revision == -1 && write->lease_id == 0, "it may be there already");
        return;
    }
    uint64_t place = parts->incarnation.revision - 100;
    PROMISE(p->sim,
            place < SERVERS && write->lease_id == p->server_lease[place] && write->lease_id != 0 &&
                write->revision > 0,
            "the lease of another server");
}

/* Elections first, the cluster's record last. */
static void writes_check(struct past *p, const struct restore_plan *plan)
{
    uint32_t written[CLUSTER_KEY_DEFINITION + 1] = { 0 }, records = 0;
    struct rsim *sim = p->sim;

    for (uint32_t i = 0; i < plan->write_count; i++) {
        const struct restore_write *write = &plan->writes[i];
        struct cluster_key_parts parts = cluster_key_parse(CLUSTER, write->key);

        written[parts.kind]++;
        if (parts.kind == CLUSTER_KEY_ELECTION || parts.kind == CLUSTER_KEY_SERVER_LIVE)
            PROMISE(sim, write->value.size == 0 && write->revision == -1, "not deleted");
        if (parts.kind == CLUSTER_KEY_ELECTION)
            PROMISE(sim, i < p->elections, "a leader is deposed after something was written");
        if (parts.kind == CLUSTER_KEY_SHARD)
            record_check(p, parts.shard, write);
        if (parts.kind == CLUSTER_KEY_SERVER_KNOWN)
            server_check(p, &parts, write);
        PROMISE(sim, (parts.kind == CLUSTER_KEY_CLUSTER) == (i + 1 == plan->write_count),
                "the cluster's record is not written last");
    }
    for (uint32_t i = 0; i < SHARDS; i++)
        records += newest_config(&p->shards[i]) > 0;
    PROMISE(sim, written[CLUSTER_KEY_SHARD] == records, "%u records of %u",
            written[CLUSTER_KEY_SHARD], records);
    PROMISE(sim, written[CLUSTER_KEY_ELECTION] == p->elections, "a leader stays");
    PROMISE(sim, written[CLUSTER_KEY_SERVER_LIVE] == p->server_lives, "a server stays live");
    PROMISE(sim, written[CLUSTER_KEY_SERVER_KNOWN] == p->servers - p->expiring + 1,
            "a registration stays");
    struct cluster_record next;
    const struct restore_write *last = &plan->writes[plan->write_count - 1];
    PROMISE(sim,
            cluster_record_decode(last->value, &next, NULL) == ERR_OK &&
                next.generation == p->generation + 1 &&
                next.epoch_floor == p->floor + RESTORE_EPOCHS_MARGIN &&
                next.shard_count == SHARDS && last->revision == p->cluster_revision,
            "the cluster goes on as another");
}

static void told_check(struct past *p, const struct restore_plan *plan)
{
    uint32_t silent = 0, behind = 0;

    for (uint64_t id = 1; id <= NODES; id++)
        silent += p->live[id] && !p->answers[id];
    for (uint32_t i = 0; i < SHARDS; i++) {
        const struct truth *truth = &p->shards[i];
        behind += is_behind(p, truth);
        PROMISE(p->sim, restore_shard_is_behind(plan, &plan->shards[i]) == is_behind(p, truth),
                "shard %u is behind, or is not", i);
        bool differs = truth->member_config > (truth->has_record ? truth->record.config : 0);
        PROMISE(p->sim, differs || !plan->shards[i].members_differ, "shard %u: the same members",
                i);
        p->sim->counts.restores_forked += truth->forked;
    }
    PROMISE(p->sim, plan->silent_count == silent, "%u nodes are silent, not %u", plan->silent_count,
            silent);
    PROMISE(p->sim, plan->shards_behind == behind, "%u shards are behind, not %u",
            plan->shards_behind, behind);
    PROMISE(p->sim, plan->nodes_doubting == p->doubting, "%u nodes doubt, not %u",
            plan->nodes_doubting, p->doubting);
    PROMISE(p->sim, plan->servers == p->servers, "%u registrations end, not %u", plan->servers,
            p->servers);
}

static err wanted_of(struct past *p, bool force)
{
    bool needed = force || p->doubting > 0;

    if (!p->has_cluster || p->broken_record)
        return ERR_INVALID;
    p->floor = p->cluster.epoch_floor;
    for (uint32_t i = 0; i < SHARDS; i++) {
        at_least(&p->floor, p->shards[i].epoch);
        if (p->shards[i].has_record)
            at_least(&p->floor, p->shards[i].record.epoch);
        needed |= is_behind(p, &p->shards[i]);
    }
    return needed ? shards_wanted(p) : ERR_CONFLICT;
}

static void refused_check(struct past *p, err e)
{
    static const Holdfast__V1__ErrorCode codes[] = { CODE(UNAVAILABLE), CODE(INTERNAL),
                                                     CODE(VERSION_CONFLICT) };
    Holdfast__V1__ErrorCode code = e == ERR_CONFLICT                    ? codes[2]
                                   : e == ERR_INVALID && p->has_cluster ? codes[1]
                                                                        : codes[0];

    rsim_refused(p->sim, code, NULL);
    p->sim->counts.restores_refused += e == ERR_UNAVAILABLE;
    p->sim->counts.restores_needless += e == ERR_CONFLICT;
}

static void one_past(struct rsim *sim)
{
    struct past *p = arena_zalloc(&sim->arena, sizeof *p);
    struct restore_plan *plan = arena_alloc(&sim->arena, sizeof *plan);

    p->sim = sim;
    p->quiet = rsim_chance(sim, 30);
    etcd_make(p);
    nodes_make(p);
    const struct restore_input input = { .cluster = CLUSTER,
                                         .keys = p->keys,
                                         .key_count = p->key_count,
                                         .answers = p->list,
                                         .answer_count = p->answer_count,
                                         .force = rsim_chance(sim, 20),
                                         .arena = &sim->arena };
    err wanted = wanted_of(p, input.force);
    err e = restore_plan_make(&input, plan, &sim->detail);
    PROMISE(sim, e == wanted, "a restore is %d, not %d: %s", (int)e, (int)wanted,
            e != ERR_OK ? sim->detail.message : "accepted");
    if (e != ERR_OK) {
        refused_check(p, e);
        return;
    }
    told_check(p, plan);
    writes_check(p, plan);
    sim->counts.restores_planned++;
}

void room_restore(struct rsim *sim)
{
    for (uint32_t i = 0; i < 6; i++) {
        one_past(sim);
        arena_reset(&sim->arena);
    }
}
