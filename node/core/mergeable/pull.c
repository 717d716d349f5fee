#include "node/core/mergeable/pull.h"

/* ---- the asker ---- */

static void send_request(struct merge_replica *replica, const struct merge_peer *peer)
{
    const struct merge_pull *pull = &peer->pull;
    struct buf *out = merge_message_begin(replica, MERGE_PULL, peer->member, 0);

    buf_put_u64(out, pull->boot);
    buf_put_u64(out, pull->id);
    buf_put_u8(out, pull->full);
    buf_put_u8(out, pull->after != NULL);
    if (pull->after != NULL)
        merge_key_encode(pull->after, out);
    mclock_encode(&pull->mine, out);
}

void merge_pull_ask(struct merge_replica *replica, struct merge_peer *peer)
{
    /* Of this step: an answer that comes twice is known. */
    peer->pull.id = ++replica->pull_last;
    send_request(replica, peer);
}

/* The same step once more, as its answer may be on its way, and by the same clock: one that has
 * closed more since would want all records (merge_pull_begin). */
static void ask_again(struct merge_replica *replica, struct merge_peer *peer, uint64_t now_ms)
{
    peer->pull.moved_ms = now_ms;
    send_request(replica, peer);
}

static void begin(struct merge_replica *replica, struct merge_peer *peer, bool full,
                  uint64_t now_ms)
{
    merge_pull_end(&peer->pull);
    peer->pull.active = true;
    peer->pull.full = full;
    peer->pull.boot = peer->boot;
    peer->pull.config = replica->members.membership.config;
    peer->pull.moved_ms = now_ms;
    mclock_copy(&peer->pull.mine, &replica->clock);
    merge_pull_ask(replica, peer);
}

/* True if a pull would bring anything, or is asked for before this replica counts. */
static bool has_use(const struct merge_replica *replica, const struct merge_peer *peer)
{
    const struct membership *m = &replica->members.membership;
    bool must = replica->syncing || m->new_count > 0;

    uint64_t had_config = peer->syncing ? peer->taken_config : peer->pulled_config;

    if (must && had_config != m->config && peer->config == m->config)
        return true;
    return !mclock_includes(&replica->clock, &peer->clock) ||
           mclock_lacks_closing(&replica->clock, &peer->clock);
}

void merge_pull_begin(struct merge_replica *replica, struct merge_peer *peer, uint64_t now_ms)
{
    if (peer->pull.active || !peer->reported || !has_use(replica, peer))
        return;
    begin(replica, peer, replica->syncing || mclock_exceeds_closed(&replica->clock, &peer->clock),
          now_ms);
}

void merge_pull_tick(struct merge_replica *replica, uint64_t now_ms)
{
    for (uint32_t i = 0; i < replica->peer_count; i++) {
        struct merge_peer *peer = &replica->peers[i];
        struct lacking *lacking = &peer->lacking;

        if (peer->pull.active && now_ms - peer->pull.moved_ms > MERGE_PULL_MS_MAX &&
            now_ms - peer->heard_ms <= MERGE_HEARD_MS_MAX)
            ask_again(replica, peer, now_ms);
        if (lacking->count > 0 && now_ms - lacking->moved_ms > MERGE_LACKING_MS_MAX)
            lacking_deinit(lacking);
    }
}

void merge_pull_moves(struct merge_replica *replica, uint64_t member, uint64_t now_ms)
{
    struct merge_peer *peer = merge_peer_find(replica, member);

    if (peer != NULL && peer->pull.active)
        peer->pull.moved_ms = now_ms;
}

/* ---- the one that is asked ---- */

struct request {
    uint64_t boot, id;
    bool full;
    struct merge_key *after; /* Owned. */
    struct mclock theirs;    /* Owned. */
};

static void request_deinit(struct request *request)
{
    merge_key_unref(request->after);
    mclock_deinit(&request->theirs);
}

static err request_decode(struct reader *reader, struct request *ret_request)
{
    struct request request = { .boot = read_u64(reader), .id = read_u64(reader) };
    uint8_t full = read_u8(reader), has_after = read_u8(reader);

    request.full = full == 1;
    if (reader->bad || full > 1 || has_after > 1)
        return ERR_CORRUPT;
    if (has_after == 1 && merge_key_decode(reader, &request.after) != ERR_OK)
        return ERR_CORRUPT;
    if (mclock_decode(reader, &request.theirs) != ERR_OK || reader_finish(reader) != ERR_OK) {
        request_deinit(&request);
        return ERR_CORRUPT;
    }
    *ret_request = request;
    return ERR_OK;
}

/* A record as this replica has it now, stripped of the clock that goes with the chunk. */
static void item_encode(const struct merge_replica *replica, struct merge_key *key,
                        struct slice dots_of, struct buf *out)
{
    const struct merge_record *stored = merge_store_find(&replica->store, key);
    struct merge_record nothing = { .erasure = merge_store_erasure(&replica->store,
                                                                   merge_key_entity(key)) };

    merge_key_encode(key, out);
    merge_record_encode(stored != NULL ? stored : &nothing, out);
    buf_append(out, dots_of.data, dots_of.size);
}

struct chunk {
    struct buf items;
    uint32_t count;
    bool last;
};

static bool chunk_is_full(const struct merge_replica *replica, const struct chunk *chunk)
{
    return chunk->count >= replica->options.chunk_records_max ||
           chunk->items.size >= MERGE_CHUNK_BYTES_MAX;
}

static void fill_full(const struct merge_replica *replica, const struct merge_key *after,
                      struct chunk *chunk)
{
    static const uint8_t no_dots[1] = { 0 };
    uint32_t at = merge_store_after(&replica->store, after);

    for (; at < replica->store.count && !chunk_is_full(replica, chunk); at++) {
        item_encode(replica, replica->store.rows[at].key, (struct slice){ no_dots, 1 },
                    &chunk->items);
        chunk->count++;
    }
    chunk->last = at == replica->store.count;
}

/* Many writes of one document must not make a message that no link takes. */
static void item_dots(const struct lacking_dot *dots, uint32_t count, struct buf *out)
{
    uint32_t told = count < MERGE_ITEM_DOTS_MAX ? count : MERGE_ITEM_DOTS_MAX;

    buf_clear(out);
    buf_put_compact(out, told);
    for (uint32_t i = 0; i < told; i++)
        merge_dot_encode(dots[i].dot, out);
}

static void fill_lacking(const struct merge_replica *replica, struct lacking *lacking,
                         struct chunk *chunk)
{
    struct buf dots = { 0 };

    while (lacking->at < lacking->count && !chunk_is_full(replica, chunk)) {
        const struct lacking_dot *first = &lacking->dots[lacking->at];

        item_dots(first, lacking_record(lacking), &dots);
        item_encode(replica, first->key, buf_slice(&dots), &chunk->items);
        chunk->count++;
        lacking_next(lacking);
    }
    chunk->last = lacking->at == lacking->count;
    buf_deinit(&dots);
}

/* The request asks for what follows the last chunk of the list that is kept. A first one never
 * does: its asker joins the clock that this replica has now. A list of an earlier pull has more
 * than is lacked: the clock of a process only grows. */
static bool goes_on(const struct lacking *lacking, const struct request *request)
{
    return lacking->count > 0 && request->after != NULL &&
           merge_key_compare(lacking->after, request->after) == 0;
}

/* ERR_NOT_FOUND: it is not known what the asker lacks. */
static err find_lacking(const struct merge_replica *replica, struct lacking *lacking,
                        const struct request *request)
{
    if (goes_on(lacking, request))
        return ERR_OK;
    lacking_deinit(lacking);
    err e = lacking_find(lacking, &replica->clock, &replica->index, &request->theirs);

    if (e != ERR_OK)
        return e;
    lacking_seek(lacking, request->after);
    return ERR_OK;
}

static void send_chunk(struct merge_replica *replica, const struct merge_head *head,
                       const struct request *request, const struct chunk *chunk, bool full)
{
    struct buf *out = merge_message_begin(replica, MERGE_CHUNK, head->from, 0);

    buf_put_u64(out, head->boot);
    buf_put_u64(out, request->id);
    buf_put_u8(out, full);
    buf_put_u8(out, chunk->last);
    buf_put_u8(out, replica->syncing);
    mclock_encode(&replica->clock, out);
    buf_put_compact(out, chunk->count);
    buf_append(out, chunk->items.data, chunk->items.size);
}

static void serve(struct merge_replica *replica, const struct merge_head *head,
                  const struct request *request, uint64_t now_ms)
{
    struct lacking *lacking = &merge_peer_find(replica, head->from)->lacking;
    struct chunk chunk = { 0 };
    bool full = request->full || find_lacking(replica, lacking, request) != ERR_OK;

    if (full)
        fill_full(replica, request->full ? request->after : NULL, &chunk);
    else
        fill_lacking(replica, lacking, &chunk);
    send_chunk(replica, head, request, &chunk, full);
    lacking->moved_ms = now_ms;
    if (full || chunk.last)
        lacking_deinit(lacking);
    buf_deinit(&chunk.items);
}

err merge_pull_serve(struct merge_replica *replica, const struct merge_head *head,
                     struct reader *reader, uint64_t now_ms)
{
    struct request request;
    err e = request_decode(reader, &request);

    if (e != ERR_OK)
        return e;
    if (request.boot == replica->options.boot)
        serve(replica, head, &request, now_ms);
    else
        e = ERR_STALE_EPOCH;
    request_deinit(&request);
    return e;
}
