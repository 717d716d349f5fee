/*
 * In some runs backups are taken, one after the other, as the command line does it: each shard is
 * told to take the cut, in any order and some time apart, while messages bring it to others before.
 * Owners are armed for the next cut, which any message may bring. They must stop right before the
 * entry that takes it, be frozen there, and go on. shard_check_step fails the run when an entry
 * takes a cut that its shard was not stopped at: that backup would hold what came after.
 */
#include <inttypes.h>

#include "holdfast/v1/backup.pb-c.h"
#include "idl/method.h"
#include "tests/sim/faults/backup.h"
#include "tests/sim/favorites/top.h"

#define EVERY_MS 500u /* At least; and at most so many more: */
#define LATER_MS 1500u
#define APART_MS 120u
#define CALL_MS  2000u

struct sim_node *owner_find(struct sim *sim, uint32_t shard)
{
    for (uint32_t n = 0; n < sim->node_count; n++) {
        struct sim_node *node = &sim->nodes[n];
        if (node->up && node->slots[shard].shard != NULL && shard_serves(node->slots[shard].shard))
            return node;
    }
    return NULL;
}

static void tell(struct sim *sim, const struct sim_node *owner, uint32_t shard, uint64_t cut)
{
    Holdfast__V1__CutBackupRequest request = HOLDFAST__V1__CUT_BACKUP_REQUEST__INIT;
    struct sim_event event = { .kind = EV_CALL, .node = owner->id };

    request.shard = shard;
    request.cut = cut;
    buf_put_u8(&event.bytes, SIM_NO_CALLER);
    buf_put_u8(&event.bytes, 1);
    buf_put_u64(&event.bytes, 0);
    buf_put_u32(&event.bytes, METHOD_CUT_BACKUP);
    buf_put_u32(&event.bytes, CALL_MS);
    size_t size = protobuf_c_message_get_packed_size(&request.base);
    protobuf_c_message_pack(&request.base, buf_reserve(&event.bytes, size + 1));
    event.bytes.size += size;
    sim_later(sim, 1 + op_twist(sim->seed ^ cut, shard) % APART_MS, &event);
}

static void take(struct sim *sim)
{
    uint64_t cut = 0;

    for (uint32_t i = 0; i < sim->shard_count; i++) {
        const struct sim_node *owner = owner_find(sim, i);
        if (owner != NULL && shard_meta(owner->slots[i].shard)->cut_id > cut)
            cut = shard_meta(owner->slots[i].shard)->cut_id;
    }
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        const struct sim_node *owner = owner_find(sim, i);
        if (owner != NULL)
            tell(sim, owner, i, cut + 1);
    }
}

/* As node/io/worker does it: the shard goes on in the same step. */
static void freeze(struct sim *sim, struct sim_node *node, uint32_t shard)
{
    struct slot *slot = &node->slots[shard];
    uint64_t index = shard_applied_index(slot->shard);
    uint64_t cut = shard_meta(slot->shard)->cut_id;

    node_checkpoint(sim, node, shard);
    shard_pass_cut(slot->shard);
    node_step(
        sim, node, shard,
        &(struct shard_event){ .type = SHARD_TICK, .pulled_ms = node_pulled_ms(node, shard) });
    if (slot->shard == NULL || shard_applied_index(slot->shard) == index)
        return; /* The entry waits for rows. */
    if (shard_meta(slot->shard)->cut_id <= cut)
        sim_fail(sim, shard, "node %u stopped before entry %" PRIu64 ", which takes no cut",
                 node->id, index + 1);
    sim->counts.cuts_frozen++;
}

void backup_follow(struct sim *sim, struct sim_node *node, uint32_t shard)
{
    struct slot *slot = &node->slots[shard];

    if (!sim->backups || slot->shard == NULL)
        return;
    if (shard_at_cut(slot->shard))
        freeze(sim, node, shard);
    else if (shard_serves(slot->shard))
        shard_arm(slot->shard, shard_meta(slot->shard)->cut_id + 1);
    if (sim->now_ms < sim->backup_ms || sim->failure[0] != '\0')
        return;
    if (sim->backup_ms > 0)
        take(sim);
    sim->backup_ms = sim->now_ms + EVERY_MS + op_twist(sim->seed, sim->now_ms) % LATER_MS;
}
