#include "idl/method.h"
#include "node/core/apply/restore.h"
#include "node/core/codec/proto_scan.h"
#include "node/core/rows/table.h"
#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"

#define RESTORE_ROWS_FIELD 4u /* RestoreRowsRequest.rows */

/* A row that is made again is due at once: its first step tells. */
static bool may_erase(uint32_t method)
{
    return method == METHOD_ERASE_PLAYER || method == METHOD_RESTORE_PLAYER ||
           method == METHOD_ERASURE_DUE;
}

static struct shard_erasure *add(struct shard_out *out)
{
    if (out->erasure_count == out->erasure_capacity) {
        out->erasure_capacity = out->erasure_capacity * 2 + 4;
        out->erasures = mem_realloc(out->erasures, out->erasure_capacity * sizeof *out->erasures);
    }
    return &out->erasures[out->erasure_count++];
}

/* A backup brings the erasures that stood when it was taken. */
static void tell_restored(const struct entry *entry, struct shard_out *out)
{
    struct shard_erasure erasure;
    struct slice rows, key, value;
    struct op op;

    if (op_decode(entry->body, &op) != ERR_OK ||
        !proto_scan_bytes(op.request, RESTORE_ROWS_FIELD, &rows))
        return;
    struct reader reader = reader_from(rows);

    while (restore_row_next(&reader, &key, &value)) {
        if (key.data[0] == TABLE_ERASURE && shard_erasure_decode(key, value, &erasure))
            *add(out) = erasure;
    }
}

/* What the entry has changed is in memory; what is not, it has not changed. */
void shard_erasure_follow(struct shard *shard, const struct entry *entry,
                          const struct outcome *outcome, struct shard_out *out)
{
    struct erasure_row row;
    struct need need = { 0 };

    if (outcome->method == METHOD_RESTORE_ROWS && outcome->kind == OUTCOME_COMMITTED)
        tell_restored(entry, out);
    if (!may_erase(outcome->method) || outcome->entity.size == 0 ||
        outcome->entity.size > ENTITY_BYTES_MAX)
        return;
    err e = erasure_find(applier_state(shard->applier), outcome->entity, &need, &row);

    need_deinit(&need);
    if (e == ERR_OK && row.number != 0)
        shard_erasure_tell(outcome->entity, &row, add(out));
}
