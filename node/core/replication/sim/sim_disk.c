#include "node/core/replication/sim/sim_disk.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

void sim_disk_write(struct sim_disk *disk, struct rep_write *writes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (disk->pending_count == disk->pending_capacity) {
            disk->pending_capacity = disk->pending_capacity > 0 ? disk->pending_capacity * 2 : 64;
            disk->pending =
                mem_realloc(disk->pending, disk->pending_capacity * sizeof disk->pending[0]);
        }
        disk->pending[disk->pending_count++] = writes[i];
    }
}

uint64_t sim_disk_last_index(const struct sim_disk *disk)
{
    return disk->count > 0 ? disk->first_index + disk->count - 1 : disk->checkpoint.index;
}

struct entry *sim_disk_entry(const struct sim_disk *disk, uint64_t index)
{
    if (disk->count == 0 || index < disk->first_index || index >= disk->first_index + disk->count)
        return NULL;
    return disk->entries[index - disk->first_index];
}

static void truncate_log(struct sim_disk *disk, uint64_t keep_index)
{
    while (disk->count > 0 && sim_disk_last_index(disk) > keep_index)
        entry_unref(disk->entries[--disk->count]);
}

static void append_entry(struct sim_disk *disk, struct entry *entry)
{
    CHECK(entry->index == sim_disk_last_index(disk) + 1);
    if (disk->count == disk->capacity) {
        disk->capacity = disk->capacity > 0 ? disk->capacity * 2 : 64;
        disk->entries = mem_realloc(disk->entries, disk->capacity * sizeof disk->entries[0]);
    }
    if (disk->count == 0)
        disk->first_index = entry->index;
    disk->entries[disk->count++] = entry_ref(entry);
}

static void make_durable(struct sim_disk *disk, struct rep_write *write)
{
    switch (write->type) {
    case REP_WRITE_ENTRY:
        CHECK(write->commit_index < write->entry->index);
        append_entry(disk, write->entry);
        if (write->commit_index > disk->commit_index)
            disk->commit_index = write->commit_index;
        break;
    case REP_WRITE_PROMISE:
        disk->promise = write->promise;
        disk->dropped = write->dropped;
        disk->differs = write->differs;
        break;
    case REP_WRITE_TRUNCATE:
        CHECK(write->keep_index >= disk->checkpoint.index);
        truncate_log(disk, write->keep_index);
        break;
    }
}

static void sync_first(struct sim_disk *disk, uint32_t count)
{
    CHECK(count <= disk->pending_count);
    for (uint32_t i = 0; i < count; i++) {
        make_durable(disk, &disk->pending[i]);
        entry_unref(disk->pending[i].entry);
    }
    disk->pending_count -= count;
    if (disk->pending_count > 0)
        memmove(disk->pending, disk->pending + count,
                disk->pending_count * sizeof disk->pending[0]);
}

void sim_disk_sync(struct sim_disk *disk, uint64_t ticket)
{
    uint32_t count = 0;

    while (count < disk->pending_count && disk->pending[count].ticket <= ticket)
        count++;
    sync_first(disk, count);
}

void sim_disk_crash(struct sim_disk *disk, uint32_t keep)
{
    sync_first(disk, keep);
    for (uint32_t i = 0; i < disk->pending_count; i++)
        entry_unref(disk->pending[i].entry);
    disk->pending_count = 0;
}

struct hash128 sim_outcome(struct hash128 before, const struct entry *entry)
{
    return hash_chain(before, entry->encoded, SLICE_LITERAL("applied"));
}

void sim_checkpoint_apply(struct sim_checkpoint *checkpoint, const struct entry *entry)
{
    struct start start;

    CHECK(entry->index == checkpoint->index + 1);
    checkpoint->index = entry->index;
    checkpoint->hash = entry->hash;
    checkpoint->ms = entry->owner_ms;
    checkpoint->outcome = sim_outcome(checkpoint->outcome, entry);
    vector_append(&checkpoint->vector, entry->dot.epoch, entry->dot.owner);
    if (entry->kind != ENTRY_START)
        return;
    CHECK(start_decode(entry->body, &start) == ERR_OK);
    checkpoint->membership = start.membership;
    checkpoint->generation = start.generation;
}

void sim_disk_checkpoint(struct sim_disk *disk, uint64_t index)
{
    while (disk->checkpoint.index < index)
        sim_checkpoint_apply(&disk->checkpoint, sim_disk_entry(disk, disk->checkpoint.index + 1));
}

void sim_disk_cut(struct sim_disk *disk, uint64_t index)
{
    uint32_t cut = 0;

    while (cut < disk->count && disk->entries[cut]->index <= index &&
           disk->entries[cut]->index <= disk->checkpoint.index)
        entry_unref(disk->entries[cut++]);
    disk->count -= cut;
    disk->first_index += cut;
    if (disk->count > 0)
        memmove(disk->entries, disk->entries + cut, disk->count * sizeof disk->entries[0]);
}

void sim_disk_install(struct sim_disk *disk, const struct sim_checkpoint *checkpoint)
{
    const struct entry *same = sim_disk_entry(disk, checkpoint->index);

    CHECK(disk->pending_count == 0);
    if (checkpoint->index <= disk->checkpoint.index)
        return;
    disk->checkpoint = *checkpoint;
    disk->differs = false;
    if (same != NULL && hash128_equal(same->hash, checkpoint->hash)) {
        sim_disk_cut(disk, checkpoint->index);
        return;
    }
    truncate_log(disk, 0);
}

void sim_disk_reset(struct sim_disk *disk)
{
    CHECK(disk->pending_count == 0);
    truncate_log(disk, 0);
    disk->commit_index = 0;
    disk->differs = false;
    disk->dropped |= disk->promise.epoch > 0 && disk->promise.owner == 0;
}

struct rep_image sim_disk_image(const struct sim_disk *disk)
{
    const struct sim_checkpoint *c = &disk->checkpoint;
    uint64_t above = 0;

    if (disk->count > 0 && disk->first_index <= c->index)
        above = c->index + 1 - disk->first_index;
    CHECK(above <= disk->count);
    return (struct rep_image){
        .votes = true,
        .promise = disk->promise,
        .dropped = disk->dropped,
        .differs = disk->differs,
        .applied_index = c->index,
        .applied_hash = c->hash,
        .applied_ms = c->ms,
        .commit_index = disk->commit_index,
        .log_first_index = disk->first_index,
        .vector = c->vector,
        .membership = c->membership,
        .generation = c->generation,
        .apply_version = 1,
        .apply_version_max = 1,
        .entries = disk->count > 0 ? disk->entries + above : NULL,
        .entry_count = disk->count - (uint32_t)above,
    };
}

void sim_disk_deinit(struct sim_disk *disk)
{
    sim_disk_crash(disk, 0);
    truncate_log(disk, 0);
    free(disk->entries);
    free(disk->pending);
    *disk = (struct sim_disk){ 0 };
}
