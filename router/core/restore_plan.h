/*
 * restore_plan: what an operator accepts who restored etcd from a backup (docs/etcd-restore.md).
 * Out of etcd's keys as they stand and of what the nodes remember it makes the keys that etcd
 * should have: each shard's record names the newest configuration that any replica knows, under an
 * epoch above every one that was ever given; every game server's registration ends; the cluster's
 * generation rises, last, and with it everybody takes etcd as it is. Pure.
 *
 * Nodes must have answered before etcd was read, or what they heard of it in between looks newer.
 * Carried out in part and made again, it goes on from there.
 */
#ifndef ROUTER_CORE_RESTORE_PLAN_H
#define ROUTER_CORE_RESTORE_PLAN_H

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/error.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/cluster/cluster_key.h"
#include "runtime/cluster/cluster_record.h"

/* Epochs rise by so much: above those that a replica which does not answer may know. */
#define RESTORE_EPOCHS_MARGIN 1000000u
/* Likewise numbers of configurations. */
#define RESTORE_CONFIGS_MARGIN 1000u

/* A key to be written. */
struct restore_write {
    struct slice key;
    struct slice value; /* Empty: the key is deleted. */
    int64_t revision;   /* That it must still have; 0: it must not be there; -1: any. */
    int64_t lease_id;   /* To be revoked afterwards; 0: none. */
};

struct restore_shard {
    struct shard_record record; /* As etcd has it; meaningful while mod_revision > 0. */
    int64_t mod_revision;       /* 0: etcd has none. */
    struct shard_record next;   /* Epoch 0: the shard is unknown. */
    uint64_t epoch_known;       /* The greatest of any replica. */
    uint64_t config_known;
    bool members_differ; /* From what etcd has. */
    bool forked;         /* A replica knows another owner under the epoch that etcd has. */
    /* The rest is the plan's own. */
    uint64_t owner, owner_epoch;
    uint64_t mute[CLUSTER_MEMBERS_MAX + 1];
    uint32_t mute_count;
};

struct restore_plan {
    struct cluster_record cluster; /* As etcd has it. */
    struct cluster_record next;
    struct restore_shard *shards;       /* cluster.shard_count of them. */
    uint32_t shards_behind;             /* Of which replicas know a later epoch or configuration. */
    uint32_t nodes_doubting;            /* That know a newer etcd. */
    uint32_t servers;                   /* Registrations that end. */
    uint64_t silent[CLUSTER_NODES_MAX]; /* Live nodes that did not answer. */
    uint32_t silent_count;
    /* In this order. The last one is the cluster's record; it must be written alone, when all
     * others are. */
    struct restore_write *writes;
    uint32_t write_count;
};

struct restore_key {
    struct slice key, value;
    int64_t mod_revision;
};

struct restore_answer {
    uint64_t replica_id;
    const Holdfast__Internal__V1__GetNodeStatusResponse *status;
};

struct restore_input {
    const char *cluster;            /* Name. */
    const struct restore_key *keys; /* All of the cluster's. */
    size_t key_count;
    const struct restore_answer *answers;
    uint32_t answer_count;
    bool force;          /* Somebody else knows a newer etcd, if no node does. */
    struct arena *arena; /* Of everything in the plan. */
};

/* A replica knows a later epoch or configuration of it than etcd, or another record of that epoch;
 * or an acceptance was cut short when it had written this one. */
bool restore_shard_is_behind(const struct restore_plan *plan, const struct restore_shard *shard);

/* ERR_CONFLICT: nothing was restored; ERR_UNAVAILABLE: too few replicas of some shard answer;
 * ERR_INVALID: etcd holds no such cluster, or records that cannot be read. *ret_detail says why. */
NODISCARD err restore_plan_make(const struct restore_input *input, struct restore_plan *ret_plan,
                                Holdfast__V1__ErrorDetail *ret_detail);

#endif
