/* Bits that flip on disks: where, and what a start finds. A majority of every shard stays. */
#include "runtime/base/check.h"
#include "tests/sim/faults/wrong.h"
#include "tests/sim/sim.h"

#define ROT_RUNS    80u  /* Of 256, in which more flip than elsewhere. */
#define LEARNERS    160u /* Of 256 that have just got their rows. */
#define LEARNING_MS 40u

bool rot_is_at(const struct slot *slot, uint64_t index)
{
    const struct entry *entry = sim_disk_entry(&slot->disk, index);

    return index != 0 && index == slot->rotten_index && entry != NULL &&
           entry->dot.epoch == slot->rotten_dot.epoch &&
           entry->dot.owner == slot->rotten_dot.owner &&
           entry->dot.counter == slot->rotten_dot.counter;
}

/* ---- what a start finds ---- */
/* Reads the rotten entry as a start does, with one bit flipped: its checksum must tell. */
bool rot_in_log(struct sim *sim, struct slot *slot)
{
    const struct entry *entry = sim_disk_entry(&slot->disk, slot->rotten_index);
    struct entry *decoded = NULL;
    struct buf bytes = { 0 };

    if (!rot_is_at(slot, slot->rotten_index))
        return false; /* Cut since. */
    buf_append(&bytes, entry->encoded.data, entry->encoded.size);
    uint64_t bit = sim_between(sim, 0, bytes.size * 8 - 1);
    bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    if (entry_decode(buf_slice(&bytes), &decoded) == ERR_OK) {
        sim_fail(sim, 0, "a flipped bit of entry %llu is not noticed",
                 (unsigned long long)slot->rotten_index);
        entry_unref(decoded);
    }
    buf_deinit(&bytes);
    return true;
}

/* All timers are read at a start. */
bool rot_in_timers(const struct db_rows *db)
{
    for (uint32_t i = 0; i < db->count; i++) {
        if (db->rows[i]->rotten && db->rows[i]->key[0] == TABLE_TIMER)
            return true;
    }
    return false;
}

/* Of the promises in the damaged part of the log an earlier one is left, or none. */
void rot_promise(struct sim *sim, struct slot *slot)
{
    uint32_t kept = (uint32_t)sim_between(sim, 0, SIM_PROMISES);

    if (sim_chance(sim, 400) || slot->disk.promise.epoch == 0)
        return;
    sim->counts.promises_rotten++;
    slot->disk.promise = kept < SIM_PROMISES ? slot->promises[kept] : (struct promise){ 0 };
}

static bool db_rots(const struct db_rows *db)
{
    for (uint32_t i = 0; i < db->count; i++) {
        if (db->rows[i]->rotten)
            return true;
    }
    return false;
}

void rot_salvage(struct sim *sim, struct sim_node *node)
{
    for (uint32_t i = 0; i < sim->shard_count && node->salvage; i++) {
        struct slot *slot = &node->slots[i];
        if (!db_rots(&slot->db) && (!slot->reset_due || !members_spare(sim, i, node)))
            continue;
        sim->counts.shards_damaged++;
        sim_say(sim, "node %u   s%u is lost with its database", node->id, i);
        db_deinit(&slot->db);
        slot->db.version = ++sim->db_versions;
        db_deinit(&slot->flushed);
        db_copy(&slot->flushed, &slot->db);
        node_checkpoint_of(&slot->db, &slot->disk.checkpoint);
        slot->marked = true;
        slot->reset_due = false;
    }
    sim->counts.salvages += node->salvage;
    node->salvage = false;
}

/* ---- where ---- */
bool slot_rots(const struct slot *slot)
{
    return slot->damaged || slot->marked || db_rots(&slot->db) || db_rots(&slot->flushed) ||
           rot_is_at(slot, slot->rotten_index);
}

bool rot_anywhere(const struct sim *sim)
{
    for (uint32_t n = 0; n < sim->node_count; n++) {
        for (uint32_t i = 0; i < sim->shard_count; i++) {
            if (slot_rots(&sim->nodes[n].slots[i]))
                return true;
        }
    }
    return false;
}

static bool rot_log(struct sim *sim, struct slot *slot)
{
    if (slot->disk.count == 0)
        return false;
    slot->rotten_index = sim_between(sim, slot->disk.first_index, sim_disk_last_index(&slot->disk));
    slot->rotten_dot = sim_disk_entry(&slot->disk, slot->rotten_index)->dot;
    return true;
}

static bool rot_database(struct sim *sim, struct slot *slot)
{
    if (slot->db.count == 0)
        return false;
    slot->db.rows[sim_between(sim, 0, slot->db.count - 1)]->rotten = true;
    return true;
}

static bool flip(struct sim *sim, struct sim_node *node, uint32_t shard, bool log)
{
    struct slot *slot = &node->slots[shard];

    if (!members_spare(sim, shard, node) || (log ? !rot_log(sim, slot) : !rot_database(sim, slot)))
        return false;
    sim_say(sim, "node %u   has a bit flipped in the %s of s%u", node->id, log ? "log" : "database",
            shard);
    return true;
}

void rot_flip(struct sim *sim, struct sim_node *node)
{
    uint32_t shard = (uint32_t)sim_between(sim, 0, sim->shard_count - 1);

    if (!flip(sim, node, shard, sim_chance(sim, 800)))
        return;
    sim->counts.bits_flipped++;
    if (sim_chance(sim, 700))
        trouble_crash(sim, node);
}

/* ---- runs in which many do ---- */
void rot_choose(struct sim *sim)
{
    if (sim->node_count < 3 || sim_without(sim, WITHOUT_rot) ||
        (sim->seed * 0xd1342543de82ef95u) >> 56 >= ROT_RUNS)
        return;
    sim->rot_ms = 400 + (uint32_t)(sim->seed % 1500);
    sim_later(sim, sim->rot_ms, &(struct sim_event){ .kind = EV_ROT });
}

void rot_learner(struct sim *sim, const struct sim_node *node, uint32_t shard)
{
    uint64_t drawn = (sim->seed ^ ++sim->snapshots_learned) * 0xd1342543de82ef95u;

    if (drawn >> 56 < LEARNERS && !sim_without(sim, WITHOUT_rot) &&
        members_learner(sim, shard) == node->id)
        sim_later(sim, 1 + (drawn >> 32) % LEARNING_MS,
                  &(struct sim_event){ .kind = EV_ROT, .from = node->id, .number = shard });
}

/* While it learns, it is in no majority; its damage must not keep the shard waiting. */
static void flip_learner(struct sim *sim, struct sim_node *node, uint32_t shard)
{
    if (!node->up || members_learner(sim, shard) != node->id ||
        (!flip(sim, node, shard, true) && !flip(sim, node, shard, false)))
        return;
    sim->counts.bits_flipped++;
    sim->counts.learners_rotten++;
    if (!sim_without(sim, WITHOUT_crashes))
        trouble_crash(sim, node);
}

void rot_event(struct sim *sim, const struct sim_event *event)
{
    struct sim_random kept = sim->random;

    if (event->from == WRONG_ORIGIN) {
        wrong_event(sim, event);
        return;
    }
    if (sim->healing)
        return;
    if (event->from != 0) {
        flip_learner(sim, node_get(sim, (uint32_t)event->from), (uint32_t)event->number);
        return;
    }
    sim->random.state =
        (sim->seed * 0x9e3779b97f4a7c15u) ^ (sim->rots_made++ * 0xd1342543de82ef95u);
    sim_later(sim, sim_between(sim, 1, sim->rot_ms), &(struct sim_event){ .kind = EV_ROT });
    struct sim_node *node = &sim->nodes[sim_between(sim, 0, sim->node_count - 1)];
    uint32_t shard = (uint32_t)sim_between(sim, 0, sim->shard_count - 1);

    /* Often the one that has just come back: records without it are not old yet. */
    if (sim->repaired_node != 0 && sim_chance(sim, 500)) {
        node = node_get(sim, sim->repaired_node);
        shard = sim->repaired_shard;
    }
    if (flip(sim, node, shard, sim_chance(sim, 700))) {
        sim->counts.bits_flipped++;
        if (sim_chance(sim, 800) && !sim_without(sim, WITHOUT_crashes))
            trouble_crash(sim, node);
    }
    sim->random = kept;
}
