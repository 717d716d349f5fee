/* Messages of the core that no frame holds go in pieces (node/core/mergeable/pieces.h). */
#include "node/core/mergeable/message.h"
#include "node/core/mergeable/pull.h"
#include "node/io/mergeable/mergers_internal.h"

#define PIECE_BYTES   (1024u * 1024u)
#define ALL_BYTES_MAX (128u * 1024u * 1024u)

static void on_send(void *user, uint64_t to, struct slice bytes)
{
    struct mergers *mergers = user;

    mergers->options.send(mergers->options.user, to, bytes);
}

void mergers_pieces_init(struct mergers *mergers)
{
    pieces_init(&mergers->pieces,
                &(struct pieces_options){ .boot = mergers->options.boot,
                                          .piece_bytes = PIECE_BYTES,
                                          .whole_bytes_max = 2 * PIECE_BYTES,
                                          .message_bytes_max = MERGE_DB_RECORD_BYTES_MAX,
                                          .all_bytes_max = ALL_BYTES_MAX,
                                          .send = on_send,
                                          .user = mergers });
}

void mergers_send(struct mergers *mergers, uint64_t to, struct slice message)
{
    pieces_send(&mergers->pieces, to, message, loop_now_ms(mergers->options.loop));
}

bool mergers_pieces_admit(struct mergers *mergers, uint64_t from, struct slice request)
{
    return pieces_admit(&mergers->pieces, from, request, loop_now_ms(mergers->options.loop));
}

/* A pull whose answer takes long to come goes on. */
static void keep_pull(struct mergers *mergers, uint64_t from, struct slice begin)
{
    struct reader reader = reader_from(begin);
    struct merge_head head;

    if (merge_head_decode(&reader, &head) == ERR_OK && head.shard < mergers->options.shard_count &&
        mergers->shards[head.shard].started)
        merge_pull_moves(mergers->shards[head.shard].replica, from, loop_wall_ms());
}

static void serve_next(struct mergers *mergers)
{
    struct buf request;
    uint64_t from;

    while (pieces_request_next(&mergers->pieces, &from, &request)) {
        (void)!mergers->serve(mergers, from, buf_slice(&request));
        buf_deinit(&request);
    }
}

err mergers_pieces_message(struct mergers *mergers, uint64_t from, struct slice message)
{
    struct pieces_came came;
    err e = pieces_take(&mergers->pieces, from, message, loop_now_ms(mergers->options.loop), &came);

    if (e != ERR_OK)
        return e;
    if (came.moved)
        keep_pull(mergers, from, came.begin);
    if (came.whole.size > 0)
        e = mergers->message(mergers, from, buf_slice(&came.whole));
    buf_deinit(&came.whole);
    serve_next(mergers);
    return e;
}

void mergers_pieces_tick(struct mergers *mergers, uint64_t now_ms)
{
    pieces_tick(&mergers->pieces, now_ms);
    serve_next(mergers);
}

void mergers_pieces_deinit(struct mergers *mergers)
{
    pieces_deinit(&mergers->pieces);
}
