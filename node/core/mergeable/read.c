#include "node/core/mergeable/read.h"

#include <string.h>

#include "node/core/mergeable/message.h"
#include "node/core/mergeable/pending.h"
#include "node/core/mergeable/seen.h"
#include "runtime/base/check.h"

err merge_read(const struct merge_replica *replica, const struct merge_key *key,
               struct slice token_bytes, struct merge_record *ret_record)
{
    struct merge_token token;

    if (replica->syncing)
        return ERR_UNAVAILABLE;
    err e = merge_token_take(replica, key, token_bytes, &token);

    if (e != ERR_OK)
        return e;
    if (!merge_token_met(replica, &token))
        return ERR_NEED;
    merge_record_full(replica, key, ret_record);
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
    const struct merge_record *stored = merge_store_find(&replica->store, key);
    struct merge_pending *pending =
        merge_pending_new(replica, now_ms, stored != NULL ? merge_record_bytes(stored) : 0);

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

/* ERR_FULL: there is no token of so many. */
static err seal(const struct merge_replica *replica, const struct merge_place *place,
                const struct causal *seen, struct merge_token *token, struct buf *out)
{
    if (seen->count > MERGE_TOKEN_ENTRIES_MAX)
        return ERR_FULL;
    token->count = seen->count;
    if (seen->count > 0)
        memmove(token->entries, seen->entries, seen->count * sizeof *seen->entries);
    merge_token_seal(&replica->options.mac, place, token, out);
    return ERR_OK;
}

/* What the caller came with, and the latest hybrid time of the record. */
static void open_before(const struct merge_replica *replica, const struct merge_place *place,
                        const struct merge_record *record, struct slice before,
                        struct merge_token *token)
{
    *token = (struct merge_token){ 0 };
    if (before.size > 0 && merge_token_open(&replica->options.mac, place, before, token) != ERR_OK)
        *token = (struct merge_token){ 0 };
    for (uint32_t i = 0; i < record->count; i++)
        if (token->hlc < record->cells[i]->hlc)
            token->hlc = record->cells[i]->hlc;
}

err merge_token_of(const struct merge_replica *replica, const struct merge_key *key,
                   const struct merge_record *record, struct slice before, struct buf *out)
{
    struct merge_place place = merge_place_of(replica, key);
    struct causal seen = { 0 };
    struct merge_token token;

    place.erasure = record->erasure;
    open_before(replica, &place, record, before, &token);
    token.own_count = 0; /* The record has them. */
    causal_copy(&seen, &record->recent);
    causal_join(&seen, &(struct causal){ .count = token.count, .entries = token.entries });
    /* What a resolution of siblings replaces is named, however old it is. */
    for (uint32_t i = 0; record->policy == MERGE_POLICY_VECTOR && i < record->count; i++)
        causal_raise(&seen, record->cells[i]->dot.actor, record->cells[i]->dot.counter);
    err e = seal(replica, &place, &seen, &token, out);

    causal_deinit(&seen);
    return e;
}

/* The dot under which the write stands: that of an earlier attempt, or its own. */
static struct merge_dot standing_dot(const struct merge_record *record,
                                     const struct merge_write *write, struct merge_dot dot)
{
    for (uint32_t i = 0; write->op != 0 && i < record->count; i++)
        if (record->policy != MERGE_POLICY_COUNTER && record->cells[i]->op == write->op)
            return record->cells[i]->dot;
    return dot;
}

err merge_token_written(const struct merge_replica *replica, const struct merge_write *write,
                        const struct merge_record *record, struct merge_dot dot, struct buf *out)
{
    struct merge_place place = merge_place_of(replica, write->key);
    struct merge_token token;
    uint32_t kept = 0;

    place.erasure = record->erasure;
    open_before(replica, &place, record, write->token, &token);
    for (uint32_t i = 0; i < token.own_count; i++)
        if (!mclock_covers(&replica->clock, token.own[i])) /* Else this write's record has it. */
            token.own[kept++] = token.own[i];
    if (kept == MERGE_TOKEN_OWN_MAX)
        return ERR_FULL;
    token.own[kept++] = standing_dot(record, write, dot);
    token.own_count = kept;
    const struct causal seen = { .count = token.count, .entries = token.entries };

    return seal(replica, &place, &seen, &token, out);
}
