#include "idl/method.h"
#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"

/* A row that is made again is due at once: its first step tells. */
static bool may_erase(uint32_t method)
{
    return method == METHOD_ERASE_PLAYER || method == METHOD_RESTORE_PLAYER ||
           method == METHOD_ERASURE_DUE;
}

/* What the entry has changed is in memory; what is not, it has not changed. */
void shard_erasure_follow(struct shard *shard, const struct outcome *outcome, struct shard_out *out)
{
    struct erasure_row row;
    struct need need = { 0 };

    if (!may_erase(outcome->method) || outcome->entity.size == 0 ||
        outcome->entity.size > ENTITY_BYTES_MAX)
        return;
    err e = erasure_find(applier_state(shard->applier), outcome->entity, &need, &row);

    need_deinit(&need);
    if (e != ERR_OK || row.number == 0)
        return;
    if (out->erasure_count == out->erasure_capacity) {
        out->erasure_capacity = out->erasure_capacity * 2 + 4;
        out->erasures = mem_realloc(out->erasures, out->erasure_capacity * sizeof *out->erasures);
    }
    shard_erasure_tell(outcome->entity, &row, &out->erasures[out->erasure_count++]);
}
