#include <stdlib.h>

#include "node/core/replication/rep_internal.h"
#include "runtime/base/check.h"

static void *out_grow(void *items, uint32_t count, uint32_t *capacity, size_t item_bytes)
{
    if (count < *capacity)
        return items;
    CHECK(*capacity <= UINT32_MAX / 2);
    *capacity = *capacity > 0 ? *capacity * 2 : 8;
    return mem_realloc(items, *capacity * item_bytes);
}

static struct rep_write *out_write(struct rep_out *out)
{
    out->writes =
        out_grow(out->writes, out->write_count, &out->write_capacity, sizeof out->writes[0]);
    return &out->writes[out->write_count++];
}

void rep_out_clear(struct rep_out *out)
{
    struct rep_out empty = {
        .sends = out->sends,
        .send_capacity = out->send_capacity,
        .writes = out->writes,
        .write_capacity = out->write_capacity,
        .log_reads = out->log_reads,
        .log_read_capacity = out->log_read_capacity,
        .orphans = out->orphans,
        .orphan_capacity = out->orphan_capacity,
    };

    for (uint32_t i = 0; i < out->send_count; i++)
        rep_message_deinit(&out->sends[i].message);
    for (uint32_t i = 0; i < out->write_count; i++)
        entry_unref(out->writes[i].entry);
    for (uint32_t i = 0; i < out->orphan_count; i++)
        entry_unref(out->orphans[i]);
    *out = empty;
}

void rep_out_deinit(struct rep_out *out)
{
    rep_out_clear(out);
    free(out->sends);
    free(out->writes);
    free(out->log_reads);
    free(out->orphans);
    *out = (struct rep_out){ 0 };
}

void rep_send(struct rep_out *out, uint64_t to, const struct rep_message *message)
{
    out->sends = out_grow(out->sends, out->send_count, &out->send_capacity, sizeof out->sends[0]);
    out->sends[out->send_count++] = (struct rep_send){ .to = to, .message = *message };
}

uint64_t rep_ticket(struct rep *rep)
{
    if (rep->ticket_step == 0)
        rep->ticket_step = ++rep->ticket_last;
    return rep->ticket_step;
}

void rep_write_entry(struct rep *rep, struct entry *entry, struct rep_out *out)
{
    *out_write(out) = (struct rep_write){
        .type = REP_WRITE_ENTRY,
        .ticket = rep_ticket(rep),
        .entry = entry_ref(entry),
        .commit_index = rep->commit_index,
    };
}

void rep_write_promise(struct rep *rep, struct rep_out *out)
{
    *out_write(out) = (struct rep_write){
        .type = REP_WRITE_PROMISE,
        .ticket = rep_ticket(rep),
        .promise = rep->promise,
        .dropped = rep->dropped,
        .differs = rep->differs,
    };
}

void rep_write_truncate(struct rep *rep, uint64_t keep_index, struct rep_out *out)
{
    *out_write(out) = (struct rep_write){
        .type = REP_WRITE_TRUNCATE,
        .ticket = rep_ticket(rep),
        .keep_index = keep_index,
    };
}

void rep_note_orphan(struct rep_out *out, struct entry *entry)
{
    if (out->orphan_count == REP_ORPHANS_MAX)
        return;
    out->orphans =
        out_grow(out->orphans, out->orphan_count, &out->orphan_capacity, sizeof out->orphans[0]);
    out->orphans[out->orphan_count++] = entry_ref(entry);
}

void rep_ask_log(struct rep_out *out, uint64_t from_index, uint64_t to_index)
{
    out->log_reads = out_grow(out->log_reads, out->log_read_count, &out->log_read_capacity,
                              sizeof out->log_reads[0]);
    out->log_reads[out->log_read_count++] =
        (struct rep_log_read){ .from_index = from_index, .to_index = to_index };
}
