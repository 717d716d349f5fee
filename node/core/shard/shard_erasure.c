#include "node/core/shard/shard_erasure.h"

#include <string.h>

struct slice shard_erasure_entity(const struct shard_erasure *erasure)
{
    return (struct slice){ erasure->entity, erasure->entity_size };
}

void shard_erasure_tell(struct slice entity, const struct erasure_row *row,
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
    shard_erasure_tell(row_entity(key), &row, ret_erasure);
    return true;
}
