#include "node/core/apply/outcome.h"

struct hash128 outcome_fold(struct hash128 running, const struct outcome *outcome, uint32_t version)
{
    uint8_t head[64] = { 0 };

    head[0] = (uint8_t)outcome->kind;
    head[1] = outcome->duplicate;
    head[2] = outcome->session_freed;
    head[3] = outcome->decided_refused;
    store_u64(head + 8, outcome->version);
    store_u64(head + 16, outcome->dot.epoch);
    store_u64(head + 24, outcome->dot.owner);
    store_u64(head + 32, outcome->dot.counter);
    store_u64(head + 40, outcome->decided_version);
    store_u64(head + 48, outcome->body.size);
    store_u32(head + 56, outcome->method);
    store_u32(head + 60, version - 1);
    struct hash128 hash = hash_chain(running, (struct slice){ head, sizeof head }, outcome->body);
    if (outcome->decided_op_id.size > 0)
        hash = hash_chain(hash, outcome->decided_op_id, outcome->decided_body);
    for (uint32_t i = 0; i < outcome->channel.settled_count; i++) {
        store_u64(head, outcome->channel.settled[i].seq);
        head[8] = outcome->channel.settled[i].refused;
        hash = hash_chain(hash, (struct slice){ head, 9 }, outcome->channel.settled[i].body);
    }
    return hash;
}
