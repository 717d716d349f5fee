/* A node's disk: the log survives as far as it was synced, the database as far as it was flushed
 * (or further, as databases flush by themselves). Rows and log entries are read with delay. */
#include <stdlib.h>
#include <string.h>

#include "node/rpc/handlers.h"
#include "runtime/base/check.h"
#include "tests/sim/faults/wrong.h"
#include "tests/sim/sim.h"

#define SLOW_LOAD_MS 1500u

/* ---- the database ---- */
static struct slice row_key(const struct db_row *row)
{
    return (struct slice){ row->key, row->key_size };
}

/* Copies the value: it is the state's, which a crash takes. */
static struct db_row *row_new(struct slice key, const struct blob *value)
{
    struct db_row *row = mem_alloc(sizeof *row + key.size);

    row->refs = 1;
    row->rotten = false;
    row->value = blob_new((struct slice){ value->bytes, value->size });
    row->key_size = (uint32_t)key.size;
    memcpy(row->key, key.data, key.size);
    return row;
}

static void row_unref(struct db_row *row)
{
    if (--row->refs > 0)
        return;
    blob_unref(row->value);
    free(row);
}

static uint32_t db_place(const struct db_rows *db, struct slice key)
{
    uint32_t low = 0, high = db->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (slice_compare(row_key(db->rows[middle]), key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct db_row *db_find(const struct db_rows *db, struct slice key)
{
    uint32_t place = db_place(db, key);

    if (place == db->count || !slice_equal(row_key(db->rows[place]), key))
        return NULL;
    return db->rows[place];
}

void db_put(struct db_rows *db, struct slice key, const struct blob *value)
{
    uint32_t place = db_place(db, key);

    if (place < db->count && slice_equal(row_key(db->rows[place]), key)) {
        row_unref(db->rows[place]);
        db->rows[place] = row_new(key, value);
        return;
    }
    if (db->count == db->capacity) {
        db->capacity = db->capacity > 0 ? db->capacity * 2 : 64;
        db->rows = mem_realloc(db->rows, sizeof *db->rows * db->capacity);
    }
    memmove(&db->rows[place + 1], &db->rows[place], sizeof *db->rows * (db->count - place));
    db->rows[place] = row_new(key, value);
    db->count++;
}

uint32_t db_place_after(const struct db_rows *db, struct slice key)
{
    uint32_t place = db_place(db, key);
    bool there = place < db->count && slice_equal(row_key(db->rows[place]), key);

    return there ? place + 1 : place;
}

static void db_remove(struct db_rows *db, struct slice key)
{
    uint32_t place = db_place(db, key);

    if (place == db->count || !slice_equal(row_key(db->rows[place]), key))
        return;
    row_unref(db->rows[place]);
    db->count--;
    memmove(&db->rows[place], &db->rows[place + 1], sizeof *db->rows * (db->count - place));
}

void db_deinit(struct db_rows *db)
{
    for (uint32_t i = 0; i < db->count; i++)
        row_unref(db->rows[i]);
    free(db->rows);
    buf_deinit(&db->meta);
    *db = (struct db_rows){ 0 };
}

void db_copy(struct db_rows *to, const struct db_rows *from)
{
    if (to->version == from->version)
        return;
    db_deinit(to);
    if (from->count > 0) {
        to->rows = mem_alloc(sizeof *to->rows * from->count);
        memcpy(to->rows, from->rows, sizeof *to->rows * from->count);
    }
    to->version = from->version;
    to->capacity = from->count;
    to->count = from->count;
    for (uint32_t i = 0; i < from->count; i++)
        to->rows[i]->refs++;
    buf_append(&to->meta, from->meta.data, from->meta.size);
    to->at = from->at;
}

/* ---- rows for a shard ---- */
/* False: the row cannot be read. */
static bool put_row(const struct db_rows *db, struct slice key, struct buf *out)
{
    const struct db_row *row = db_find(db, key);
    struct slice value = { 0 };

    if (row != NULL && row->rotten)
        return false;
    if (row != NULL)
        value = (struct slice){ row->value->bytes, row->value->size };
    buf_put_bytes(out, key);
    buf_put_u8(out, row != NULL);
    buf_put_bytes(out, value);
    return true;
}

static bool put_range(const struct db_rows *db, const struct state_range *range, struct buf *out)
{
    bool begun = slice_compare(range->after, range->prefix) >= 0;
    uint32_t place = db_place(db, begun ? range->after : range->prefix);
    struct buf rows = { 0 };
    uint32_t count = 0;
    bool complete = true;
    bool readable = true;

    for (; place < db->count; place++) {
        struct slice key = row_key(db->rows[place]);
        if (slice_compare(key, range->after) <= 0)
            continue;
        if (key.size < range->prefix.size ||
            memcmp(key.data, range->prefix.data, range->prefix.size) != 0)
            break;
        if (count == range->limit) {
            complete = false;
            break;
        }
        readable &= put_row(db, key, &rows);
        count++;
    }
    buf_put_bytes(out, range->prefix);
    buf_put_bytes(out, range->after);
    buf_put_u32(out, range->limit);
    buf_put_u8(out, complete);
    buf_put_u32(out, count);
    buf_append(out, rows.data, rows.size);
    buf_deinit(&rows);
    return readable;
}

/* From what is wanted (generation, keys, ranges) to what is there. False: a row is damaged. */
static bool read_rows(const struct db_rows *db, struct slice wanted, struct buf *out)
{
    struct reader reader = reader_from(wanted);
    bool readable = true;

    buf_put_u64(out, read_u64(&reader));
    uint32_t keys = read_u32(&reader);
    uint32_t ranges = read_u32(&reader);
    buf_put_u32(out, keys);
    for (uint32_t i = 0; i < keys; i++)
        readable &= put_row(db, read_bytes(&reader, STATE_KEY_BYTES_MAX), out);
    buf_put_u32(out, ranges);
    for (uint32_t i = 0; i < ranges; i++) {
        struct state_range range;
        range.prefix = read_bytes(&reader, STATE_KEY_BYTES_MAX);
        range.after = read_bytes(&reader, STATE_KEY_BYTES_MAX);
        range.limit = read_u32(&reader);
        readable &= put_range(db, &range, out);
    }
    CHECK(reader_finish(&reader) == ERR_OK);
    return readable;
}

/* RocksDB or the log says which file; the node says so and stops (node/io/worker/worker_load.c). */
void node_stop_on_damage(struct sim *sim, const struct sim_node *node, bool of_log)
{
    sim_later(sim, 0,
              &(struct sim_event){
                  .kind = EV_DAMAGE, .node = node->id, .life = node->life, .from = of_log });
}

void node_load(struct sim *sim, struct sim_node *node, uint32_t shard, const struct need *need)
{
    struct sim_event event = {
        .kind = EV_LOAD,
        .node = node->id,
        .life = node->life,
        .number = slot_number(&node->slots[shard], shard),
    };

    sim->counts.need_rounds++;
    buf_put_u64(&event.bytes, need->load_generation);
    buf_put_u32(&event.bytes, need->key_count);
    buf_put_u32(&event.bytes, need->range_count);
    buf_append(&event.bytes, need->keys.data, need->keys.size);
    buf_append(&event.bytes, need->ranges.data, need->ranges.size);
    if (sim_chance(sim, 500)) {
        struct buf rows = { 0 };
        bool readable = read_rows(&node->slots[shard].db, buf_slice(&event.bytes), &rows);
        buf_deinit(&event.bytes);
        event.bytes = rows;
        if (!readable) {
            buf_deinit(&event.bytes);
            node_stop_on_damage(sim, node, false);
            return;
        }
        event.kind = EV_ROWS;
    }
    bool slow = !sim->healing && sim_chance(sim, 30);
    uint64_t delay_ms = sim_between(sim, 0, slow ? SLOW_LOAD_MS : sim->load_ms_max);
    if (need->range_count > 0 && sim->range_ms_max > 0 && !sim->healing) {
        sim->counts.ranges_slow++;
        delay_ms += op_twist(sim->seed, sim->counts.need_rounds) % sim->range_ms_max;
    }
    sim_later(sim, delay_ms, &event);
}

static struct shard_row *decode_rows(struct reader *reader, uint32_t count)
{
    struct shard_row *rows = mem_zalloc(sizeof *rows * (count + 1u));

    for (uint32_t i = 0; i < count; i++) {
        rows[i].key = read_bytes(reader, STATE_KEY_BYTES_MAX);
        rows[i].absent = read_u8(reader) == 0;
        rows[i].value = read_bytes(reader, STATE_VALUE_BYTES_MAX);
    }
    CHECK(!reader->bad);
    return rows;
}

static void give_rows(struct sim *sim, struct sim_node *node, uint32_t shard, struct slice bytes)
{
    struct reader reader = reader_from(bytes);
    struct shard_event event = { .type = SHARD_ROWS, .load_generation = read_u64(&reader) };
    struct shard_row *rows;

    event.row_count = read_u32(&reader);
    event.rows = rows = decode_rows(&reader, event.row_count);
    if (event.row_count > 0)
        node_step(sim, node, shard, &event);
    free(rows);
    for (uint32_t left = read_u32(&reader); left > 0; left--) {
        struct state_range range;
        range.prefix = read_bytes(&reader, STATE_KEY_BYTES_MAX);
        range.after = read_bytes(&reader, STATE_KEY_BYTES_MAX);
        range.limit = read_u32(&reader);
        event.range = &range;
        event.complete = read_u8(&reader) != 0;
        event.row_count = read_u32(&reader);
        event.rows = rows = decode_rows(&reader, event.row_count);
        node_step(sim, node, shard, &event);
        free(rows);
    }
}

void node_rows_arrive(struct sim *sim, struct sim_node *node, struct sim_event *event)
{
    uint32_t shard = (uint32_t)event->number & 0xffff;

    if (event->kind == EV_ROWS) {
        sim->counts.stale_rows++;
        give_rows(sim, node, shard, buf_slice(&event->bytes));
        return;
    }
    struct buf rows = { 0 };
    if (read_rows(&node->slots[shard].db, buf_slice(&event->bytes), &rows))
        give_rows(sim, node, shard, buf_slice(&rows));
    else
        node_stop_on_damage(sim, node, false);
    buf_deinit(&rows);
}

/* ---- the log, read back ---- */
void node_read_log(struct sim *sim, struct sim_node *node, uint32_t shard,
                   const struct rep_log_read *read)
{
    struct sim_event event = {
        .kind = EV_LOG_READ,
        .node = node->id,
        .life = node->life,
        .number = slot_number(&node->slots[shard], shard),
    };

    sim->counts.log_reads++;
    buf_put_u64(&event.bytes, read->from_index);
    buf_put_u64(&event.bytes, read->to_index);
    sim_later(sim, sim_between(sim, 0, sim->load_ms_max), &event);
}

void node_log_arrives(struct sim *sim, struct sim_node *node, struct sim_event *event)
{
    uint32_t shard = (uint32_t)event->number & 0xffff;
    struct sim_disk *disk = &node->slots[shard].disk;
    uint64_t from = load_u64(event->bytes.data);
    uint64_t to = load_u64(event->bytes.data + 8);
    uint32_t count = 0;
    uint64_t count_max = sim_between(sim, 1, 64);

    while (from + count <= to && count < count_max && sim_disk_entry(disk, from + count) != NULL) {
        if (rot_is_at(&node->slots[shard], from + count)) {
            node->slots[shard].marked = true;
            node_stop_on_damage(sim, node, true);
            return;
        }
        count++;
    }
    node_step(sim, node, shard,
              &(struct shard_event){
                  .type = SHARD_LOG_READ,
                  .index = from,
                  .entries = count > 0 ? disk->entries + (from - disk->first_index) : NULL,
                  .entry_count = count });
}

/* ---- checkpoints ---- */
static struct sim_checkpoint checkpoint_of(const struct meta *meta)
{
    return (struct sim_checkpoint){
        .index = meta->applied_index,
        .hash = meta->applied_hash,
        .ms = meta->owner_ms,
        .vector = meta->vector,
        .membership = meta->membership,
        .generation = meta->generation,
    };
}

void node_checkpoint(struct sim *sim, struct sim_node *node, uint32_t shard)
{
    struct slot *slot = &node->slots[shard];

    if (slot->checkpoint_open || !shard_checkpoint_begin(slot->shard, &slot->checkpoint))
        return;
    slot->checkpoint_open = true;
    slot->checkpoint_at = checkpoint_of(shard_meta(slot->shard));
    sim_later(sim, sim_between(sim, 0, 4u * sim->sync_ms_max),
              &(struct sim_event){ .kind = EV_CHECKPOINT,
                                   .node = node->id,
                                   .life = node->life,
                                   .number = slot_number(slot, shard) });
}

void node_checkpoint_done(struct sim *sim, struct sim_node *node, uint32_t shard)
{
    struct slot *slot = &node->slots[shard];
    struct shard_checkpoint *checkpoint = &slot->checkpoint;
    bool written = (sim->healing || !sim_chance(sim, 60)) && sim->now_ms >= node->full_until_ms;

    if (rep_durable_index(shard_rep(slot->shard)) < checkpoint->index) {
        sim_later(sim, 5,
                  &(struct sim_event){ .kind = EV_CHECKPOINT,
                                       .node = node->id,
                                       .life = node->life,
                                       .number = slot_number(slot, shard) });
        return;
    }
    for (uint32_t i = 0; i < checkpoint->write_count && written; i++) {
        const struct state_write *write = &checkpoint->writes[i];
        if (write->value == NULL)
            db_remove(&slot->db, write->key);
        else
            db_put(&slot->db, write->key, write->value);
    }
    if (written) {
        slot->db.version = ++sim->db_versions;
        buf_clear(&slot->db.meta);
        buf_append(&slot->db.meta, checkpoint->meta_row.data, checkpoint->meta_row.size);
        slot->db.at = slot->checkpoint_at;
        sim->counts.checkpoints++;
    } else {
        sim->counts.checkpoints_failed++;
    }
    buf_deinit(&checkpoint->meta_row);
    slot->checkpoint_open = false;
    shard_checkpoint_end(slot->shard, written);
}

void node_checkpoint_of(const struct db_rows *db, struct sim_checkpoint *ret_checkpoint)
{
    struct meta meta;

    meta_init(&meta);
    if (db->meta.size > 0)
        CHECK(meta_decode(buf_slice(&db->meta), &meta) == ERR_OK);
    *ret_checkpoint = checkpoint_of(&meta);
    meta_deinit(&meta);
}

/* What an owner says may go is on its own disk. */
static void check_cut_against_owner(struct sim *sim, const struct sim_node *node, uint32_t shard,
                                    uint64_t cut)
{
    const struct rep *rep = shard_rep(node->slots[shard].shard);
    uint64_t owner = rep_owner(rep);
    const struct slot *slot = owner != 0 ? &sim->nodes[owner - 1].slots[shard] : NULL;

    if (slot == NULL || owner == node->id || slot->shard == NULL || !shard_serves(slot->shard) ||
        rep_epoch(shard_rep(slot->shard)) != rep_epoch(rep))
        return;
    if (rep_durable_index(shard_rep(slot->shard)) < cut)
        sim_fail(sim, shard, "node %u cuts its log, which its owner's disk still lacks", node->id);
}

/* A replica that was heard lately, and is not behind already, finds what it lacks in the owner's
 * log; but not one that was removed since, and has dropped all: an owner that is cut off may not
 * know it yet. Nor one that promised a later owner: what it needs comes from there. */
static void check_cut(struct sim *sim, const struct sim_node *node, uint32_t shard, uint64_t cut)
{
    const struct rep *rep = shard_rep(node->slots[shard].shard);
    uint64_t matched, heard_ms;

    for (uint32_t i = 0; i < sim->node_count; i++) {
        const struct sim_node *other = &sim->nodes[i];
        const struct slot *slot = &other->slots[shard];
        if (other == node || slot->shard == NULL || slot->damaged ||
            rep_is_removed(shard_rep(slot->shard)) ||
            rep_epoch(shard_rep(slot->shard)) > rep_epoch(rep) ||
            !rep_member_state(rep, other->id, &matched, &heard_ms) ||
            rep_member_needs_snapshot(rep, other->id) || heard_ms > sim->lag_ms_max / 2)
            continue;
        if (rep_last_index(shard_rep(slot->shard)) < cut)
            sim_fail(sim, shard, "node %u cuts its log, which node %u still needs", node->id,
                     other->id);
    }
}

void node_db_flush(struct sim *sim, struct sim_node *node)
{
    sim->counts.db_flushes++;
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        struct slot *slot = &node->slots[i];
        if (slot->shard == NULL)
            continue;
        if (slot->flushed.version != slot->db.version) {
            db_copy(&slot->flushed, &slot->db);
            slot->disk.checkpoint = slot->flushed.at;
        }
        uint64_t needed = rep_retain_index(shard_rep(slot->shard));
        uint64_t cut = slot->disk.checkpoint.index;
        cut = cut < needed ? cut : needed;
        needed = shard_snapshot_pin(slot->shard, sim->now_ms);
        cut = cut < needed ? cut : needed;
        /* One entry stays, so that the log knows where it ends. */
        if (slot->disk.count > 0 && cut >= sim_disk_last_index(&slot->disk))
            cut = sim_disk_last_index(&slot->disk) - 1;
        if (slot->disk.count > 0 && cut >= slot->disk.first_index) {
            sim->counts.log_cuts++;
            check_cut(sim, node, i, cut);
            check_cut_against_owner(sim, node, i, cut);
            sim_disk_cut(&slot->disk, cut);
        }
    }
}

/* ---- crash and recovery ---- */
static void log_follow_database(struct slot *slot)
{
    struct sim_disk *disk = &slot->disk;

    /* Never ahead of the log: checkpoints wait for it. */
    CHECK(disk->count == 0 || slot->reset_due ||
          sim_disk_last_index(disk) >= disk->checkpoint.index);
}

static void slot_crash(struct sim *sim, struct slot *slot)
{
    uint32_t keep = 0;

    if (slot->disk.pending_count > 0 && sim_chance(sim, 500)) {
        keep = (uint32_t)sim_between(sim, 0, slot->disk.pending_count);
        sim->counts.torn_crashes += keep > 0;
    }
    if (slot->checkpoint_open)
        buf_deinit(&slot->checkpoint.meta_row);
    slot->checkpoint_open = false;
    slot->flush_due = false;
    slot->syncing = false;
    shard_free(slot->shard);
    slot->shard = NULL;
    db_deinit(&slot->view);
    sim->counts.installs_cut += slot->installing;
    slot->installing = false;
    slot->resumes = false;
    buf_clear(&slot->staged.meta); /* The rows that were put aside are on disk. */
    if (sim_chance(sim, 500)) {
        db_copy(&slot->db, &slot->flushed);
        sim->counts.database_lost++;
    } else {
        db_copy(&slot->flushed, &slot->db);
    }
    sim_disk_crash(&slot->disk, keep);
    node_checkpoint_of(&slot->db, &slot->disk.checkpoint);
    CHECK(slot->db.at.index == 0 || slot->db.at.index == slot->disk.checkpoint.index);
    log_follow_database(slot);
}

void node_disk_crash(struct sim *sim, struct sim_node *node)
{
    for (uint32_t i = 0; i < sim->shard_count; i++)
        slot_crash(sim, &node->slots[i]);
}

static uint32_t timers_of(const struct db_rows *db, struct shard_row *ret_rows)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < db->count; i++) {
        if (db->rows[i]->key[0] == TABLE_TIMER)
            ret_rows[count++] = (struct shard_row){
                .key = row_key(db->rows[i]),
                .value = { db->rows[i]->value->bytes, db->rows[i]->value->size },
            };
    }
    return count;
}

uint32_t node_reads_waiting_max(const struct sim *sim)
{
    return sim->seed % 5 == 0 ? SIM_READS_WAITING_FEW : SIM_READS_WAITING;
}

struct shard_limits node_limits(const struct sim *sim, const struct sim_node *node)
{
    struct shard_limits limits = shard_limits_default();

    limits.apply_version_max = node->apply_version_max;
    limits.shard_count = sim->shard_count;
    limits.erasure_rows_max = 1 + (uint32_t)(sim->seed % 3);
    limits.watermark_tell_ms = SIM_TELL_MS;
    limits.rep.lag_ms_max = sim->lag_ms_max;
    limits.rep.raise_after_ms = sim->raise_ms;
    limits.snapshot_part_bytes = sim->part_bytes;
    limits.snapshot_bytes_per_s = wrong_snapshot_pace(sim, limits.snapshot_bytes_per_s);
    limits.snapshot_idle_ms = 2000;
    limits.snapshot_hold_ms = 4000;
    limits.answers_round_bytes = SIM_ANSWERS_ROUND_BYTES;
    limits.reads_waiting_max = node_reads_waiting_max(sim);
    limits.writes_waiting_max = SIM_WRITES_WAITING;
    limits.read_hold_ms = SIM_READ_HOLD_MS;
    return limits;
}

uint64_t slot_number(const struct slot *slot, uint32_t shard)
{
    return slot->installs << 16 | shard;
}

/* Nothing of it is used: as node/io/worker/worker_adopt.c. */
static void make_husk(struct sim *sim, struct sim_node *node, uint32_t shard)
{
    struct shard_limits limits = node_limits(sim, node);
    struct slot *slot = &node->slots[shard];

    if (!slot->marked) {
        sim->counts.shards_damaged++;
        rot_promise(sim, slot);
    }
    slot->marked = true;
    slot->damaged = true;
    slot->commit_seen = 0;
    slot->applied_seen = 0;
    struct shard_image husk = { .number = shard,
                                .rep = { .damaged = true,
                                         .dropped = slot->disk.dropped,
                                         .differs = slot->disk.differs,
                                         .promise = slot->disk.promise,
                                         .log_first_index = 1 } };
    CHECK(shard_new(node->id, &limits, node_handlers(), &husk, &slot->shard) == ERR_OK);
    sim_say(sim, "node %u   s%u is damaged: it is not served from here", node->id, shard);
}

bool node_recover_slot(struct sim *sim, struct sim_node *node, uint32_t shard)
{
    struct shard_limits limits = node_limits(sim, node);
    struct slot *slot = &node->slots[shard];

    if (slot->reset_due)
        node_log_reset(slot);
    slot->reset_due = false; /* Durably, before the shard takes its first step. */
    slot->damaged = false;
    if (slot->db.meta.size == 0 && slot->disk.count == 0 && slot->disk.promise.epoch == 0)
        return true;
    if (slot->marked || rot_in_log(sim, slot)) {
        make_husk(sim, node, shard);
        return true;
    }
    struct shard_row *timers = mem_zalloc(sizeof *timers * (slot->db.count + 1u));
    struct shard_image image = {
        .number = shard,
        .rep = sim_disk_image(&slot->disk),
        .meta_row = buf_slice(&slot->db.meta),
        .timers = timers,
        .timer_count = timers_of(&slot->db, timers),
        .answers = &slot->answers,
    };
    image.rep.resumes = slot->resumes;
    slot->resumes = false;
    sim->counts.promotions_resumed += image.rep.resumes;
    if (slot->disk.count == 0)
        image.rep.log_first_index = slot->disk.checkpoint.index + 1;
    budget_init(&slot->answers, SIM_ANSWERS_BYTES);
    err e = shard_new(node->id, &limits, node_handlers(), &image, &slot->shard);
    free(timers);
    if (e == ERR_TOO_NEW)
        return false;
    CHECK(e == ERR_OK);
    shard_set_full(slot->shard, node->full ? SIM_FULL_TEXT : NULL);
    slot->commit_seen = image.rep.applied_index;
    slot->applied_seen = image.rep.applied_index;
    wrong_look(sim, node, shard);
    return true;
}

/* The program refuses as a whole, and the later one is started in its stead. */
void node_recover(struct sim *sim, struct sim_node *node)
{
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        if (node_recover_slot(sim, node, i))
            continue;
        program_refused(sim, node);
        for (uint32_t n = 0; n < i; n++) {
            shard_free(node->slots[n].shard);
            node->slots[n].shard = NULL;
        }
        node_recover(sim, node);
        return;
    }
}
