/* Snapshots at a node: the view that a source reads, the rows that a target puts aside, and their
 * installation in steps, each of which a crash may follow. node/io/worker/worker_snapshot.c. */
#include <string.h>

#include "runtime/base/check.h"
#include "tests/sim/sim.h"

enum { STAGE_PUT, STAGE_DROP };
enum { INSTALL_SWITCH, INSTALL_RESET, INSTALL_DONE, INSTALL_START };

static void later(struct sim *sim, const struct sim_node *node, uint32_t shard,
                  struct sim_event event)
{
    event.node = node->id;
    event.life = node->life;
    event.number = slot_number(&node->slots[shard], shard);
    sim_later(sim, sim_between(sim, 0, sim->load_ms_max), &event);
}

static void page_read(struct sim *sim, struct sim_node *node, uint32_t shard,
                      const struct snapshot_actions *actions)
{
    struct slot *slot = &node->slots[shard];
    struct sim_event event = { .kind = EV_PAGE };

    if (actions->fresh) {
        db_copy(&slot->view, &slot->db);
        sim->counts.snapshot_views++;
    }
    buf_put_u8(&event.bytes, actions->fresh);
    buf_put_u32(&event.bytes, actions->bytes_max);
    buf_put_bytes(&event.bytes, buf_slice(&actions->after));
    later(sim, node, shard, event);
}

void node_snapshot(struct sim *sim, struct sim_node *node, uint32_t shard,
                   const struct snapshot_actions *actions)
{
    struct slot *slot = &node->slots[shard];

    if (actions->close)
        db_deinit(&slot->view);
    if (actions->read)
        page_read(sim, node, shard, actions);
    if (actions->drop && !actions->store)
        later(sim, node, shard, (struct sim_event){ .kind = EV_STORED, .from = STAGE_DROP });
    else if (actions->drop)
        db_deinit(&slot->staged);
    if (actions->store) {
        struct sim_event event = { .kind = EV_STORED };
        buf_append(&event.bytes, actions->rows.data, actions->rows.size);
        later(sim, node, shard, event);
    }
    if (!actions->install)
        return;
    bool removed = rep_is_removed(shard_rep(slot->shard));
    sim->counts.replicas_dropped += removed;
    if (removed && slot->staged.count > 0)
        sim_fail(sim, shard, "node %u drops what it held for %u rows that were left aside",
                 node->id, slot->staged.count);
    if (removed) {
        oracle_forgets(sim, shard, slot);
        restore_soon(sim);
    }
    sim_say(sim, "node %u   s%u %s", node->id, shard,
            removed ? "drops what it held" : "installs a snapshot");
    buf_append(&slot->staged.meta, actions->meta_row.data, actions->meta_row.size);
    if (slot->checkpoint_open)
        buf_deinit(&slot->checkpoint.meta_row);
    slot->checkpoint_open = false;
    slot->flush_due = false;
    slot->syncing = false;
    slot->resumes = shard_resumes(slot->shard);
    shard_free(slot->shard);
    slot->shard = NULL;
    slot->installs++;
    slot->installing = true;
    later(sim, node, shard, (struct sim_event){ .kind = EV_INSTALL, .from = INSTALL_SWITCH });
    if (!sim->healing && sim_chance(sim, 300))
        sim_later(sim, sim_between(sim, 0, 3 * sim->load_ms_max),
                  &(struct sim_event){ .kind = EV_TROUBLE, .number = node->id });
}

/* Reads one page; rows that are rotten stop the node. */
void node_page_arrives(struct sim *sim, struct sim_node *node, uint32_t shard,
                       const struct sim_event *request)
{
    struct reader reader = reader_from(buf_slice(&request->bytes));
    const struct db_rows *view = &node->slots[shard].view;
    bool fresh = read_u8(&reader) != 0;
    uint32_t bytes_max = read_u32(&reader);
    struct slice after = read_bytes(&reader, STATE_KEY_BYTES_MAX);
    uint32_t place = fresh ? 0 : db_place_after(view, after);
    struct shard_row rows[64];
    uint32_t count = 0;
    size_t bytes = 0;

    while (place + count < view->count && count < 64 && bytes < bytes_max) {
        const struct db_row *row = view->rows[place + count];
        if (row->rotten) {
            node_stop_on_damage(sim, node, false);
            return;
        }
        bytes += row->key_size + row->value->size;
        rows[count++] = (struct shard_row){ .key = { row->key, row->key_size },
                                            .value = { row->value->bytes, row->value->size } };
    }
    sim->counts.snapshot_parts++;
    node_step(sim, node, shard,
              &(struct shard_event){ .type = SHARD_SNAPSHOT_PAGE,
                                     .rows = rows,
                                     .row_count = count,
                                     .complete = place + count == view->count,
                                     .failed = view->meta.size == 0,
                                     .request = buf_slice(&view->meta) });
}

void node_rows_stored(struct sim *sim, struct sim_node *node, uint32_t shard,
                      const struct sim_event *event)
{
    struct reader reader = reader_from(buf_slice(&event->bytes));
    struct slot *slot = &node->slots[shard];
    bool failed = !sim->healing && sim_chance(sim, 10);
    struct slice key, value;

    if (event->from == STAGE_DROP) {
        sim->counts.leftovers_dropped += !failed && slot->staged.count > 0;
        if (!failed)
            db_deinit(&slot->staged);
        node_step(sim, node, shard,
                  &(struct shard_event){ .type = SHARD_SNAPSHOT_DROPPED, .failed = failed });
        return;
    }
    failed |= node->full && !sim->healing; /* One that stays full would never converge. */
    while (snapshot_rows_next(&reader, &key, &value)) {
        struct blob *blob = blob_new(value);
        db_put(&slot->staged, key, blob);
        blob_unref(blob);
    }
    CHECK(!reader.bad);
    node_step(sim, node, shard,
              &(struct shard_event){ .type = SHARD_SNAPSHOT_STORED, .failed = failed });
}

static void switch_generation(struct sim *sim, struct slot *slot)
{
    sim_disk_sync(&slot->disk, UINT64_MAX); /* What was on its way to the log has arrived. */
    db_deinit(&slot->db);
    slot->db = slot->staged;
    slot->db.version = ++sim->db_versions;
    slot->staged = (struct db_rows){ 0 };
    db_deinit(&slot->view);
    db_copy(&slot->flushed, &slot->db);
    node_checkpoint_of(&slot->flushed, &slot->disk.checkpoint);
    slot->reset_due = true;
}

void node_log_reset(struct slot *slot)
{
    sim_disk_reset(&slot->disk);
    slot->rotten_index = 0;
    slot->marked = false;
    slot->wrong = false;
}

/* No owner that it promised in any life may find it without that promise. But for one that was
 * removed by an earlier record of an etcd that went back: no replica votes by that record that
 * knows later ones, and all that follow an acceptance are above every promise. */
static void repair_look(struct sim *sim, struct sim_node *node, uint32_t shard)
{
    const struct slot *slot = &node->slots[shard];
    const struct promise *now = &slot->disk.promise;

    sim->counts.damaged_dropped++;
    sim->repaired_node = node->id;
    sim->repaired_shard = shard;
    node->record_changed = true;
    if (!sim->restored &&
        (now->epoch < slot->promised.epoch || now->config < slot->promised.config))
        sim_fail(sim, shard, "node %u comes back and has forgotten what it promised", node->id);
    trouble_amid_repair(sim, node);
}

void node_install(struct sim *sim, struct sim_node *node, uint32_t shard,
                  const struct sim_event *event)
{
    struct slot *slot = &node->slots[shard];
    struct sim_event next = { .kind = EV_INSTALL, .from = event->from + 1 };

    switch (event->from) {
    case INSTALL_SWITCH:
        switch_generation(sim, slot);
        break;
    case INSTALL_RESET:
        node_log_reset(slot);
        break;
    case INSTALL_DONE:
        slot->reset_due = false;
        break;
    case INSTALL_START:
        sim->counts.snapshots++;
        slot->installing = false;
        if (slot->damaged)
            repair_look(sim, node, shard);
        node->record_changed |= sim->wrong_shard == shard + 1;
        if (!node_recover_slot(sim, node, shard))
            program_stop(sim, node);
        if (slot->shard != NULL)
            etcd_mirror_reset(sim, node->id); /* It reads the record again. */
        rot_learner(sim, node, shard);
        return;
    }
    later(sim, node, shard, next);
}
