#include "node/core/mergeable/read.h"

#include "node/core/mergeable/message.h"
#include "node/core/mergeable/pending.h"
#include "node/core/mergeable/seen.h"
#include "runtime/base/check.h"

err merge_read(const struct merge_replica *replica, const struct merge_key *key,
               struct slice token_bytes, struct merge_record *ret_record)
{
    struct merge_token token;
    struct merge_record record;

    if (replica->syncing)
        return ERR_UNAVAILABLE;
    err e = merge_token_take(replica, key, token_bytes, &token);

    if (e != ERR_OK)
        return e;
    merge_record_full(replica, key, &record);
    if (!merge_token_met(replica, &record, &token)) {
        merge_record_deinit(&record);
        return ERR_NEED;
    }
    *ret_record = record;
    return ERR_OK;
}

err merge_read_majority(struct merge_replica *replica, uint64_t now_ms, struct merge_key *key,
                        struct slice token_bytes, uint64_t *ret_ticket)
{
    struct merge_token token;
    err e = merge_token_take(replica, key, token_bytes, &token);

    if (e != ERR_OK)
        return e;
    if (replica->syncing || !merge_is_member(replica, replica->options.member) ||
        !merge_majority_is_near(replica, now_ms))
        return ERR_UNAVAILABLE;
    struct merge_pending *pending = merge_pending_new(replica, now_ms);

    if (pending == NULL)
        return ERR_FULL;
    pending->is_read = true;
    pending->key = merge_key_ref(key);
    pending->token = token;
    merge_record_full(replica, key, &pending->merged);
    *ret_ticket = pending->ticket;
    merge_send_ask(replica, key, pending->ticket);
    merge_pending_settle(replica);
    return ERR_OK;
}

err merge_token_of(const struct merge_replica *replica, const struct merge_key *key,
                   const struct merge_record *record, struct slice before, struct buf *out)
{
    struct merge_place place = merge_place_of(replica, key);
    struct causal seen = { 0 };
    struct merge_token token = { 0 };

    place.erasure = record->erasure;
    causal_copy(&seen, &record->recent);
    if (before.size > 0 &&
        merge_token_open(&replica->options.mac, &place, before, &token) == ERR_OK)
        causal_join(&seen, &(struct causal){ .count = token.count, .entries = token.entries });
    for (uint32_t i = 0; i < record->count; i++) {
        const struct merge_cell *cell = record->cells[i];

        /* What a resolution of siblings replaces is named, however old it is. */
        if (record->policy == MERGE_POLICY_VECTOR)
            causal_raise(&seen, cell->dot.actor, cell->dot.counter);
        if (token.hlc < cell->hlc)
            token.hlc = cell->hlc;
    }
    err e = seen.count <= MERGE_TOKEN_ENTRIES_MAX ? ERR_OK : ERR_FULL;

    if (e == ERR_OK) {
        token.count = seen.count;
        for (uint32_t i = 0; i < seen.count; i++)
            token.entries[i] = seen.entries[i];
        merge_token_seal(&replica->options.mac, &place, &token, out);
    }
    causal_deinit(&seen);
    return e;
}
