#include "node/io/report/node_status.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/base/check.h"
#include "runtime/base/hex.h"

uint64_t node_resident_bytes(void)
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

static char *hash_text(struct arena *arena, struct hash128 hash)
{
    char *hex = arena_alloc(arena, 2 * sizeof hash.bytes + 1);

    hex_print(hash.bytes, sizeof hash.bytes, hex);
    return hex;
}

static const char *member_state(const struct shard_view *view, const struct member_view *member)
{
    if (member->heard_ms > 1500)
        return "unreachable";
    return member->matched_index + 1024 < view->commit_index ? "catching_up" : "ok";
}

static Holdfast__V1__ReplicaStatus *
replica_status(struct arena *arena, const struct shard_view *view, uint32_t place, uint64_t self)
{
    Holdfast__V1__ReplicaStatus *status = arena_alloc(arena, sizeof *status);
    const struct member_view *member = &view->members[place];

    holdfast__v1__replica_status__init(status);
    status->replica_id = view->membership.members[place];
    if (status->replica_id == self) {
        status->log_index = view->last_index;
        status->commit_index = view->commit_index;
        status->applied_index = view->applied_index;
        status->outcome_hash = hash_text(arena, view->outcome_hash);
        status->state = text_lend(view->role == REP_DAMAGED ? "damaged"
                                  : view->quarantined       ? "quarantined"
                                  : view->wants_rows        ? "rows_wanting"
                                                            : "ok");
        return status;
    }
    if (member->known) {
        status->acknowledged_index = member->matched_index;
        status->stalled_ms = member->stalled_ms;
        status->state = text_lend(member_state(view, member));
    }
    return status;
}

/* Not even loaded: who the members are is not known here. */
static Holdfast__V1__ReplicaStatus *damaged_replica(struct arena *arena, uint64_t self)
{
    Holdfast__V1__ReplicaStatus *status = arena_alloc(arena, sizeof *status);

    holdfast__v1__replica_status__init(status);
    status->replica_id = self;
    status->state = text_lend("damaged");
    return status;
}

static Holdfast__V1__ShardStatus *shard_status(struct arena *arena, const struct shard_view *view,
                                               uint64_t self)
{
    Holdfast__V1__ShardStatus *status = arena_alloc(arena, sizeof *status);
    const struct membership *membership = &view->membership;

    holdfast__v1__shard_status__init(status);
    status->shard = view->shard;
    status->epoch = view->epoch;
    status->owner = view->owner;
    status->config = membership->config;
    status->phase = text_lend(membership->new_count > 0 ? "joint" : "stable");
    status->serving = view->serving;
    status->sessions = view->sessions;
    status->apply_version = view->apply_version;
    status->transfers_open = view->stats.transfers_open;
    if (view->serving) {
        status->transfers_oldest_ms = view->stats.transfers_oldest_ms;
        status->transfers_retried = view->stats.transfers_retried;
    }
    status->n_members = membership->count;
    status->members = arena_alloc(arena, sizeof *status->members * MEMBERS_MAX);
    status->replicas = arena_alloc(arena, sizeof *status->replicas * MEMBERS_MAX);
    for (uint32_t i = 0; i < membership->count; i++) {
        status->members[i] = membership->members[i];
        if (status->serving || membership->members[i] == self)
            status->replicas[status->n_replicas++] = replica_status(arena, view, i, self);
    }
    if (view->role == REP_DAMAGED && membership->count == 0)
        status->replicas[status->n_replicas++] = damaged_replica(arena, self);
    return status;
}

struct status {
    struct arena arena;
    Holdfast__V1__NodeStatus node;
    Holdfast__V1__ProcessStatus process;
    Holdfast__Internal__V1__GetNodeStatusResponse response;
    bool with_shards, with_known;
};

static Holdfast__Internal__V1__KnownShard *known_shard(struct arena *arena,
                                                       const struct shard_view *view)
{
    Holdfast__Internal__V1__KnownShard *known = arena_alloc(arena, sizeof *known);
    const struct membership *membership = &view->membership;

    holdfast__internal__v1__known_shard__init(known);
    known->shard = view->shard;
    known->epoch = view->epoch;
    known->config = view->config;
    known->owner = view->owner;
    known->member_config = membership->config;
    known->n_members = membership->count;
    known->members = arena_alloc(arena, sizeof *known->members * MEMBERS_MAX);
    memcpy(known->members, membership->members, sizeof *known->members * membership->count);
    known->n_new_members = membership->new_count;
    known->new_members = arena_alloc(arena, sizeof *known->new_members * MEMBERS_MAX);
    memcpy(known->new_members, membership->new_members,
           sizeof *known->new_members * membership->new_count);
    known->generation = view->generation;
    known->mute = view->mute;
    return known;
}

static void add_shard(void *user, const struct shard_view *view)
{
    struct status *status = user;

    status->node.shards_held += !view->removed;
    status->node.shards_owned += view->serving;
    if (status->with_shards)
        status->response.shards[status->response.n_shards++] =
            shard_status(&status->arena, view, status->node.replica_id);
    if (status->with_known)
        status->response.known[status->response.n_known++] = known_shard(&status->arena, view);
}

static const char *disk_state(const struct space *space)
{
    switch (space_state(space)) {
    case SPACE_OK:
        return "ok";
    case SPACE_LOW:
        return "low";
    case SPACE_FULL:
        break;
    }
    return space_disk_full(space) ? "full" : "log_full";
}

static void tell_counts(const struct pulls *pulls, Holdfast__V1__ProcessStatus *ret_process)
{
    struct pulls_stats stats;

    pulls_stats_get(pulls, &stats);
    ret_process->_counts_different_case =
        HOLDFAST__V1__PROCESS_STATUS___COUNTS_DIFFERENT_COUNTS_DIFFERENT;
    ret_process->counts_different = stats.drift.different;
    ret_process->_counts_drift_case = HOLDFAST__V1__PROCESS_STATUS___COUNTS_DRIFT_COUNTS_DRIFT;
    ret_process->counts_drift = stats.drift.largest;
    ret_process->_totals_behind_ms_case =
        HOLDFAST__V1__PROCESS_STATUS___TOTALS_BEHIND_MS_TOTALS_BEHIND_MS;
    ret_process->totals_behind_ms = stats.behind_ms;
}

static void tell_process(const struct node_status_sources *sources,
                         Holdfast__V1__ProcessStatus *ret_process)
{
    ret_process->role = text_lend("node");
    ret_process->name = text_lend(sources->self->name);
    ret_process->replica_id = sources->self->replica_id;
    ret_process->answered = true;
    ret_process->version = text_lend(sources->self->version);
    ret_process->clock_ms = (int64_t)loop_wall_ms();
    ret_process->cluster_certificate_expires_ms = (int64_t)sources->certificate_expires_ms;
    if (sources->pulls != NULL)
        tell_counts(sources->pulls, ret_process);
    if (sources->space == NULL || space_free_bytes(sources->space) == UINT64_MAX)
        return;
    ret_process->disk_state = text_lend(disk_state(sources->space));
    ret_process->disk_free_bytes = space_free_bytes(sources->space);
    ret_process->disk_free_min_bytes = sources->disk_free_min_bytes;
}

void node_status_append(const struct node_status_sources *sources,
                        const struct node_status_wanted *wanted, struct buf *out)
{
    const struct node_record *self = sources->self;
    struct shard_views *views = sources->views;
    struct status status = {
        .node = HOLDFAST__V1__NODE_STATUS__INIT,
        .process = HOLDFAST__V1__PROCESS_STATUS__INIT,
        .response = HOLDFAST__INTERNAL__V1__GET_NODE_STATUS_RESPONSE__INIT,
        .with_shards = wanted->shards,
        .with_known = wanted->known,
    };
    uint32_t count = views != NULL ? shard_views_count(views) : 0;

    status.node.replica_id = self->replica_id;
    status.node.name = text_lend(self->name);
    status.node.address = text_lend(self->address);
    status.node.zone = text_lend(self->zone);
    status.node.version = text_lend(self->version);
    status.node.live = sources->live;
    status.node.resident_bytes = node_resident_bytes();
    tell_process(sources, &status.process);
    status.response.node = &status.node;
    status.response.process = &status.process;
    status.response.shards =
        arena_alloc(&status.arena, sizeof *status.response.shards * (count + 1));
    status.response.known = arena_alloc(&status.arena, sizeof *status.response.known * (count + 1));
    status.response.generation = sources->generation;
    if (views != NULL)
        shard_views_visit(views, add_shard, &status);
    size_t size =
        holdfast__internal__v1__get_node_status_response__get_packed_size(&status.response);
    holdfast__internal__v1__get_node_status_response__pack(&status.response,
                                                           buf_reserve(out, size));
    out->size += size;
    arena_deinit(&status.arena);
}

static void mark_unfit(void *user, const struct shard_view *view)
{
    struct node_record *record = user;

    if (view->role == REP_DAMAGED)
        node_record_mark_damaged(record, view->shard);
    else if (view->quarantined)
        node_record_mark_quarantined(record, view->shard);
}

void node_status_mark_unfit(struct shard_views *views, struct node_record *record)
{
    record->damaged_shards = 0;
    memset(record->damaged, 0, sizeof record->damaged);
    memset(record->quarantined, 0, sizeof record->quarantined);
    shard_views_visit(views, mark_unfit, record);
}
