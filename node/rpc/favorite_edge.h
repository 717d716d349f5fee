/* favorite_edge: what Favorite and Unfavorite share: their requests have the same fields. */
#ifndef NODE_RPC_FAVORITE_EDGE_H
#define NODE_RPC_FAVORITE_EDGE_H

#include "node/core/favorite/favorite.h"

/* `request` is a FavoriteRequest or an UnfavoriteRequest. It is borrowed. */
#define FAVORITE_CALL(request, wanted)                                                             \
    {                                                                                              \
        .op_id = (request)->op_id, .collection = (request)->collection,                            \
        .target = (request)->target_id, .favorite = (wanted),                                      \
        .ver = (request)->_ver_case != 0 ? &(request)->ver : NULL,                                 \
        .if_ver = (request)->_if_ver_case != 0 ? &(request)->if_ver : NULL,                        \
    }
/* `response` is a FavoriteResponse or an UnfavoriteResponse. */
#define FAVORITE_TELL(result, response)                                                            \
    do {                                                                                           \
        (response)->status = (result)->status;                                                     \
        (response)->applied = (result)->applied;                                                   \
        (response)->edges = (result)->edges;                                                       \
    } while (false)

/* The rows that can be named without the collection's number. */
void favorite_footprint(const struct op *op, const ProtobufCMessage *message, struct need *keys);

#endif
