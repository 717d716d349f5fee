#include "node/core/mergeable/seen.h"

struct merge_place merge_place_of(const struct merge_replica *replica, const struct merge_key *key)
{
    return (struct merge_place){ .shard = replica->options.shard,
                                 .generation = replica->options.generation,
                                 .erasure =
                                     merge_store_erasure(&replica->store, merge_key_entity(key)),
                                 .key = key };
}

err merge_token_take(const struct merge_replica *replica, const struct merge_key *key,
                     struct slice bytes, struct merge_token *ret_token)
{
    struct merge_place place = merge_place_of(replica, key);

    *ret_token = (struct merge_token){ 0 };
    return bytes.size == 0 ? ERR_OK
                           : merge_token_open(&replica->options.mac, &place, bytes, ret_token);
}

bool merge_token_met(const struct merge_replica *replica, const struct merge_token *token)
{
    for (uint32_t i = 0; i < token->count; i++) {
        struct merge_dot dot = { token->entries[i].actor, token->entries[i].upto };

        if (!mclock_covers(&replica->clock, dot))
            return false;
    }
    for (uint32_t i = 0; i < token->own_count; i++) {
        if (!mclock_covers(&replica->clock, token->own[i]))
            return false;
    }
    return true;
}
