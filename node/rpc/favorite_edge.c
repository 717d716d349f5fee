#include "node/rpc/favorite_edge.h"

void favorite_footprint(const struct op *op, const ProtobufCMessage *message, struct need *keys)
{
    struct row_key key;

    (void)message;
    row_key_collection(&key);
    need_add_key(keys, row_key_slice(&key));
    row_key_erasure(&key, op->entity);
    need_add_key(keys, row_key_slice(&key));
}
