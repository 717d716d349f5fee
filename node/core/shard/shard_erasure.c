#include "node/core/shard/shard_erasure.h"

#include <string.h>

#include "idl/method.h"
#include "node/core/favorite/erasure_row.h"
#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"

struct slice shard_erasure_entity(const struct shard_erasure *erasure)
{
    return (struct slice){ erasure->entity, erasure->entity_size };
}

static void tell(struct slice entity, const struct erasure_row *row,
                 struct shard_erasure *ret_erasure)
{
    *ret_erasure = (struct shard_erasure){
        .number = row->number,
        .hides = erasure_hides(row),
        .purges = row->state == ERASURE_STATE(PURGING) || row->state == ERASURE_STATE(PURGED),
        .entity_size = (uint8_t)entity.size,
    };
    memcpy(ret_erasure->entity, entity.data, entity.size);
}

bool shard_erasure_decode(struct slice key, struct slice value, struct shard_erasure *ret_erasure)
{
    struct erasure_row row;

    if (erasure_row_decode(key, value, &row) != ERR_OK)
        return false;
    tell(row_entity(key), &row, ret_erasure);
    return true;
}

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
    tell(outcome->entity, &row, &out->erasures[out->erasure_count++]);
}
