/* What nodes say to the coordinator of owners, as node/io/cluster/claims.c says it: early claims,
 * and what an owner says of itself. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "runtime/base/check.h"
#include "tests/sim/cluster/node_claim.h"

#define CLAIM_CLOSED_MS 300u
#define CLAIM_SILENT_MS 900u
#define CLAIM_AGAIN_MS  500u

struct complaint {
    uint64_t owner;
    const char *reason;
    uint64_t since_ms;
    uint64_t silent_ms_min;               /* Only of shards that it is silent about for so long. */
    bool (*about)(const struct rep *rep); /* Only of shards of which this holds; NULL: of all. */
};

static void send_report(struct sim *sim, struct sim_node *node, const struct complaint *complaint)
{
    Holdfast__Internal__V1__ReportOwnerRequest request =
        HOLDFAST__INTERNAL__V1__REPORT_OWNER_REQUEST__INIT;
    Holdfast__Internal__V1__ShardPosition positions[SIM_SHARDS_MAX];
    Holdfast__Internal__V1__ShardPosition *pointers[SIM_SHARDS_MAX];
    Holdfast__V1__Dot dots[SIM_SHARDS_MAX];

    for (uint32_t i = 0; i < sim->shard_count; i++) {
        const struct shard *shard = node->slots[i].shard;
        if (shard == NULL || node->slots[i].damaged ||
            rep_owner(shard_rep(shard)) != complaint->owner ||
            rep_owner_silent_ms(shard_rep(shard)) < complaint->silent_ms_min ||
            (complaint->about != NULL && !complaint->about(shard_rep(shard))))
            continue;
        size_t n = request.n_shards++;
        struct dot last = rep_last_dot(shard_rep(shard));
        holdfast__v1__dot__init(&dots[n]);
        holdfast__internal__v1__shard_position__init(&positions[n]);
        dots[n].epoch = last.epoch;
        dots[n].owner = last.owner;
        dots[n].counter = last.counter;
        positions[n].shard = i;
        positions[n].epoch = rep_epoch(shard_rep(shard));
        positions[n].last = &dots[n];
        pointers[n] = &positions[n];
    }
    request.reporter = node->id;
    request.owner = complaint->owner;
    request.reason = text_lend(complaint->reason);
    request.since_ms = (uint32_t)complaint->since_ms;
    request.shards = pointers;
    for (uint32_t i = 0; i < sim->coord_count; i++) {
        struct sim_event event = { .kind = EV_REPORT, .node = PROC_COORD + i };
        size_t size = holdfast__internal__v1__report_owner_request__get_packed_size(&request);
        holdfast__internal__v1__report_owner_request__pack(&request,
                                                           buf_reserve(&event.bytes, size + 1));
        event.bytes.size = size;
        (void)net_send(sim, node->id, &event);
    }
}

static void look_at_owners(struct sim *sim, struct sim_node *node)
{
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        const struct shard *shard = node->slots[i].shard;
        uint64_t owner = shard != NULL ? rep_owner(shard_rep(shard)) : 0;
        if (owner == 0 || owner == node->id || node->slots[i].damaged ||
            sim->now_ms < node->reported_ms[owner] + CLAIM_AGAIN_MS)
            continue;
        uint64_t closed = node->closed_ms[owner];
        uint64_t silent_ms = sim->now_ms - node->heard_ms[owner];
        uint64_t stuck_ms = rep_owner_silent_ms(shard_rep(shard));
        struct complaint complaint = { .owner = owner };
        if (closed != 0 && sim->now_ms - closed >= CLAIM_CLOSED_MS)
            complaint = (struct complaint){ owner, "closed", sim->now_ms - closed, 0, NULL };
        else if (silent_ms >= CLAIM_SILENT_MS)
            complaint = (struct complaint){ owner, "silent", silent_ms, 0, NULL };
        else if (stuck_ms >= CLAIM_SILENT_MS)
            complaint = (struct complaint){ owner, "stuck", stuck_ms, CLAIM_SILENT_MS, NULL };
        else
            continue;
        send_report(sim, node, &complaint);
        node->reported_ms[owner] = sim->now_ms;
    }
}

static bool some_shard(const struct sim *sim, const struct sim_node *node,
                       bool (*about)(const struct rep *rep))
{
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        const struct slot *slot = &node->slots[i];
        if (slot->shard != NULL && !slot->damaged && about(shard_rep(slot->shard)))
            return true;
    }
    return false;
}

/* What an owner says of itself: it takes another epoch. */
static void look_at_own(struct sim *sim, struct sim_node *node)
{
    if (node->registered_revision > 0 && sim->now_ms >= node->declined_ms + CLAIM_AGAIN_MS &&
        some_shard(sim, node, rep_declines)) {
        send_report(sim, node, &(struct complaint){ node->id, "declined", 0, 0, rep_declines });
        node->declined_ms = sim->now_ms;
    }
    if (sim->now_ms >= node->outgrown_ms + CLAIM_AGAIN_MS &&
        some_shard(sim, node, rep_is_outgrown)) {
        send_report(sim, node, &(struct complaint){ node->id, "outgrown", 0, 0, rep_is_outgrown });
        node->outgrown_ms = sim->now_ms;
    }
    if (sim->now_ms >= node->clock_ms + CLAIM_AGAIN_MS &&
        some_shard(sim, node, rep_clock_is_ahead)) {
        send_report(sim, node, &(struct complaint){ node->id, "clock", 0, 0, rep_clock_is_ahead });
        node->clock_ms = sim->now_ms;
    }
}

void node_claim(struct sim *sim, struct sim_node *node)
{
    look_at_owners(sim, node);
    look_at_own(sim, node);
}

/* As node/io/disk/space.c and node/io/cluster/claims.c. */
void node_look_at_space(struct sim *sim, struct sim_node *node)
{
    bool full = sim->now_ms < node->full_until_ms;

    for (uint32_t i = 0; i < sim->shard_count && (full || node->full); i++) {
        if (node->slots[i].shard != NULL)
            shard_set_full(node->slots[i].shard, full ? SIM_FULL_TEXT : NULL);
    }
    node->full = full;
    if (!full || sim->now_ms < node->reported_ms[0] + CLAIM_AGAIN_MS)
        return;
    send_report(sim, node, &(struct complaint){ node->id, "full", 0, 0, NULL });
    node->reported_ms[0] = sim->now_ms;
}
