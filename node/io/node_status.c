#include "node/io/node_status.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/base/check.h"

static uint64_t resident_bytes(void)
{
    unsigned long long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file == NULL)
        return 0;
    if (fscanf(file, "%llu %llu", &total, &resident) != 2)
        resident = 0;
    fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static char *text(const char *borrowed)
{
    return (char *)(uintptr_t)borrowed;
}

static char *hash_text(struct arena *arena, struct hash128 hash)
{
    char *hex = arena_alloc(arena, 2 * sizeof hash.bytes + 1);

    for (size_t i = 0; i < sizeof hash.bytes; i++)
        snprintf(hex + 2 * i, 3, "%02x", hash.bytes[i]);
    return hex;
}

static const char *member_state(const struct rep *rep, uint64_t matched_index, uint64_t heard_ms)
{
    if (heard_ms > 1500)
        return "unreachable";
    return matched_index + 1024 < rep_commit_index(rep) ? "catching_up" : "ok";
}

static Holdfast__V1__ReplicaStatus *replica_status(struct arena *arena, const struct shard *shard,
                                                   uint64_t replica, uint64_t self)
{
    Holdfast__V1__ReplicaStatus *status = arena_alloc(arena, sizeof *status);
    const struct rep *rep = shard_rep(shard);
    uint64_t matched_index = 0, heard_ms = 0;

    holdfast__v1__replica_status__init(status);
    status->replica_id = replica;
    if (replica == self) {
        status->log_index = rep_last_index(rep);
        status->commit_index = rep_commit_index(rep);
        status->applied_index = shard_applied_index(shard);
        status->outcome_hash = hash_text(arena, shard_meta(shard)->outcome_hash);
        status->state = text(rep_role(rep) == REP_DAMAGED ? "damaged" : "ok");
        return status;
    }
    if (rep_member_state(rep, replica, &matched_index, &heard_ms)) {
        status->log_index = matched_index;
        status->state = text(member_state(rep, matched_index, heard_ms));
    }
    return status;
}

static Holdfast__V1__ShardStatus *shard_status(struct arena *arena, const struct shard *shard,
                                               uint64_t self)
{
    Holdfast__V1__ShardStatus *status = arena_alloc(arena, sizeof *status);
    const struct rep *rep = shard_rep(shard);
    const struct membership *membership = rep_membership(rep);

    holdfast__v1__shard_status__init(status);
    status->shard = shard_number(shard);
    status->epoch = rep_epoch(rep);
    status->owner = rep_owner(rep);
    status->config = membership->config;
    status->phase = text(membership->new_count > 0 ? "joint" : "stable");
    status->serving = shard_serves(shard);
    status->sessions = shard_meta(shard)->session_count;
    status->n_members = membership->count;
    status->members = arena_alloc(arena, sizeof *status->members * MEMBERS_MAX);
    status->replicas = arena_alloc(arena, sizeof *status->replicas * MEMBERS_MAX);
    for (uint32_t i = 0; i < membership->count; i++) {
        status->members[i] = membership->members[i];
        if (status->serving || membership->members[i] == self)
            status->replicas[status->n_replicas++] =
                replica_status(arena, shard, membership->members[i], self);
    }
    return status;
}

void node_status_append(const struct worker *worker, const struct node_record *self, bool live,
                        bool with_shards, struct buf *out)
{
    Holdfast__Internal__V1__GetNodeStatusResponse response =
        HOLDFAST__INTERNAL__V1__GET_NODE_STATUS_RESPONSE__INIT;
    Holdfast__V1__NodeStatus node = HOLDFAST__V1__NODE_STATUS__INIT;
    struct arena arena = { 0 };
    uint32_t count = worker != NULL ? worker_shard_count(worker) : 0;

    node.replica_id = self->replica_id;
    node.name = text(self->name);
    node.address = text(self->address);
    node.zone = text(self->zone);
    node.version = text(self->version);
    node.live = live;
    node.resident_bytes = resident_bytes();
    response.node = &node;
    response.shards = arena_alloc(&arena, sizeof *response.shards * (count + 1));
    for (uint32_t i = 0; i < count; i++) {
        const struct shard *shard = worker_shard(worker, i);
        if (shard == NULL)
            continue;
        node.shards_held++;
        node.shards_owned += shard_serves(shard);
        if (with_shards)
            response.shards[response.n_shards++] = shard_status(&arena, shard, self->replica_id);
    }
    size_t size = holdfast__internal__v1__get_node_status_response__get_packed_size(&response);
    holdfast__internal__v1__get_node_status_response__pack(&response, buf_reserve(out, size));
    out->size += size;
    arena_deinit(&arena);
}
