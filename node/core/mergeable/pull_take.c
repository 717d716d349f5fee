#include "node/core/mergeable/pull_take.h"

#include <stdlib.h>

#include "node/core/mergeable/absorb.h"
#include "node/core/mergeable/log_record.h"
#include "node/core/mergeable/members.h"
#include "node/core/mergeable/pull.h"
#include "runtime/base/check.h"

struct answer {
    uint64_t boot, id;
    bool full, last, syncing;
    struct mclock theirs; /* Owned. */
    uint64_t count;
};

static err answer_decode(struct reader *reader, struct answer *ret_answer)
{
    struct answer answer = { .boot = read_u64(reader), .id = read_u64(reader) };
    uint8_t full = read_u8(reader), last = read_u8(reader), syncing = read_u8(reader);

    if (reader->bad || full > 1 || last > 1 || syncing > 1)
        return ERR_CORRUPT;
    answer.full = full == 1;
    answer.last = last == 1;
    answer.syncing = syncing == 1;
    if (mclock_decode(reader, &answer.theirs) != ERR_OK)
        return ERR_CORRUPT;
    answer.count = read_compact(reader);
    if (reader->bad || answer.count > reader_left(reader)) {
        mclock_deinit(&answer.theirs);
        return ERR_CORRUPT;
    }
    *ret_answer = answer;
    return ERR_OK;
}

static bool has_covered_cell(const struct merge_record *record, const struct mclock *theirs)
{
    for (uint32_t i = 0; i < record->count; i++)
        if (record->cells[i]->dot.counter <= mclock_floor(theirs, record->cells[i]->dot.actor))
            return true;
    return false;
}

/* The peer has no such record. What it has taken in of it, it has removed. */
static err take_absence(struct merge_replica *replica, struct merge_key *key,
                        const struct mclock *theirs)
{
    const struct merge_record *local = merge_store_find(&replica->store, key);
    struct merge_record nothing = { .erasure = local->erasure };
    struct merge_incoming incoming = { .key = key, .record = &nothing };

    if (!has_covered_cell(local, theirs))
        return ERR_OK;
    causal_fill(&nothing.context, theirs);
    err e = merge_absorb_logged(replica, &incoming);

    merge_record_deinit(&nothing);
    return e;
}

/* All records behind `after` and before `before` (NULL: to the end), which the peer does not have.
 */
static err take_absences(struct merge_replica *replica, const struct merge_key *after,
                         const struct merge_key *before, const struct mclock *theirs)
{
    struct merge_key *at = NULL;
    err e = ERR_OK;

    while (e == ERR_OK) {
        uint32_t place = merge_store_after(&replica->store, at != NULL ? at : after);

        merge_key_unref(at);
        at = NULL;
        if (place == replica->store.count)
            break;
        struct merge_key *key = replica->store.rows[place].key;

        if (before != NULL && merge_key_compare(key, before) >= 0)
            break;
        at = merge_key_ref(key);
        e = take_absence(replica, at, theirs);
    }
    merge_key_unref(at);
    return e;
}

static err dots_decode(struct reader *reader, struct merge_incoming *incoming,
                       struct merge_dot **ret_dots)
{
    uint64_t count = read_compact(reader);
    struct merge_dot *dots = NULL;

    if (reader->bad || count > MERGE_CHUNK_DOTS_MAX || count * 16 > reader_left(reader))
        return ERR_CORRUPT;
    if (count > 0)
        dots = mem_alloc(count * sizeof *dots);
    for (uint64_t i = 0; i < count; i++)
        if (merge_dot_decode(reader, &dots[i]) != ERR_OK) {
            free(dots);
            return ERR_CORRUPT;
        }
    incoming->dots = *ret_dots = dots;
    incoming->dot_count = (uint32_t)count;
    return ERR_OK;
}

/* One record, stripped of the peer's clock and filled with that same one. */
static err take_item(struct merge_replica *replica, struct reader *reader,
                     const struct answer *answer, struct merge_key *key)
{
    struct merge_record record;
    struct merge_dot *dots = NULL;

    if (merge_record_decode(reader, &record) != ERR_OK)
        return ERR_CORRUPT;
    struct merge_incoming incoming = { .key = key, .record = &record };
    err e = dots_decode(reader, &incoming, &dots);

    if (e == ERR_OK) {
        causal_fill(&record.context, &answer->theirs);
        e = merge_absorb_logged(replica, &incoming);
    }
    free(dots);
    merge_record_deinit(&record);
    return e;
}

/* All records of a chunk; `*at` is the key up to which the pull has come, a reference. */
static err take_items(struct merge_replica *replica, struct reader *reader,
                      const struct answer *answer, struct merge_key **at)
{
    for (uint64_t i = 0; i < answer->count; i++) {
        struct merge_key *key;
        err e = merge_key_decode(reader, &key);

        if (e != ERR_OK)
            return e;
        if (merge_key_compare(*at, key) >= 0) {
            merge_key_unref(key);
            return ERR_CORRUPT;
        }
        if (answer->full)
            e = take_absences(replica, *at, key, &answer->theirs);
        if (e == ERR_OK)
            e = take_item(replica, reader, answer, key);
        merge_key_unref(*at);
        *at = key;
        if (e != ERR_OK)
            return e;
    }
    if (answer->full && answer->last)
        return take_absences(replica, *at, NULL, &answer->theirs);
    return ERR_OK;
}

/* Every record is stored: only now may the clock say so. */
static err finish(struct merge_replica *replica, struct merge_peer *peer,
                  const struct merge_head *head, bool syncing)
{
    struct merge_pull *pull = &peer->pull;
    enum mclock_closings closings = pull->full ? MCLOCK_CLOSE_ALL : MCLOCK_CLOSE_AGREED;
    uint64_t config = replica->members.membership.config;
    err e = mclock_join(&replica->clock, &pull->theirs, closings);

    if (e == ERR_OK) {
        merge_log_join(replica, &pull->theirs, closings);
        merge_rows_settle(replica);
        if (head->config == config && pull->config == config) {
            peer->taken_config = config;
            if (!syncing)
                peer->pulled_config = config;
        }
        merge_sync_settle(replica);
        if (replica->dots_above && !replica->syncing)
            merge_sync_announce(replica);
    }
    merge_pull_end(pull);
    return e;
}

/* The walk goes on from the first chunk, or begins with this one: a peer that no longer knows which
 * records the dots belong to begins with all of them. */
static void start(struct merge_pull *pull, const struct answer *answer)
{
    if (pull->started && pull->full == answer->full)
        return;
    pull->started = true;
    pull->full = answer->full;
    merge_key_unref(pull->after);
    pull->after = NULL;
    mclock_copy(&pull->theirs, &answer->theirs);
}

err merge_pull_take(struct merge_replica *replica, const struct merge_head *head,
                    struct reader *reader, uint64_t now_ms)
{
    struct merge_peer *peer = merge_peer_find(replica, head->from);
    struct answer answer;
    err e = answer_decode(reader, &answer);

    if (e != ERR_OK)
        return e;
    struct merge_pull *pull = peer != NULL ? &peer->pull : NULL;

    if (pull == NULL || !pull->active || answer.id != pull->id || pull->boot != head->boot ||
        answer.boot != replica->options.boot || (pull->full && !answer.full)) {
        mclock_deinit(&answer.theirs);
        return ERR_NOT_FOUND;
    }
    start(pull, &answer);
    struct merge_key *at = pull->after != NULL ? merge_key_ref(pull->after) : NULL;
    bool moved = answer.count > 0;

    e = take_items(replica, reader, &answer, &at);
    if (e == ERR_OK && !answer.last && !moved)
        e = ERR_CORRUPT; /* Neither the end nor a step. */
    if (e == ERR_OK)
        e = reader_finish(reader);
    merge_key_unref(pull->after);
    pull->after = at;
    pull->moved_ms = now_ms;
    if (e != ERR_OK)
        merge_pull_end(pull);
    else if (answer.last)
        e = finish(replica, peer, head, answer.syncing);
    else
        merge_pull_ask(replica, peer);
    mclock_deinit(&answer.theirs);
    return e;
}
