/*
 * request_shard: the shard a request belongs to, from its bytes: by its home entity, or by the
 * shard it names. DESIGN section 3.
 */
#ifndef NODE_CORE_SHARD_REQUEST_SHARD_H
#define NODE_CORE_SHARD_REQUEST_SHARD_H

#include "node/core/handler/handler.h"

/* ERR_INVALID: no entity or shard in it, or out of range; `refusal` has static text. */
NODISCARD err request_shard(uint32_t method, struct slice request, uint32_t shard_count,
                            uint32_t *ret_shard, struct refusal *ret_refusal);

#endif
