/*
 * Messages that no frame holds, in pieces: what the sides of a cut wrote of one document may be
 * tens of megabytes together. Each piece is asked for, so one at most waits for a link.
 *
 *   PIECE  u8 0xd5, u64 number, u32 size of the message, u32 place, bytes
 *   NEXT   u8 0xd6, u64 number, u32 place of the piece that is wanted; the size: it has all
 *
 * A member has at most two such messages on their way to another one: a part of a pull, and one of
 * all else. The last bit of a number says which. What comes meanwhile is dropped, as a full link
 * drops it: anti-entropy brings what was in it.
 */
#include <stdlib.h>
#include <string.h>

#include "node/core/mergeable/message.h"
#include "node/core/mergeable/pull.h"
#include "node/io/mergeable/mergers_internal.h"
#include "runtime/base/check.h"

#define PIECE             0xd5u
#define NEXT              0xd6u
#define PIECE_BYTES       (1024u * 1024u)
#define WHOLE_BYTES_MAX   (2u * PIECE_BYTES) /* A larger message goes in pieces. */
#define MESSAGE_BYTES_MAX MERGE_DB_RECORD_BYTES_MAX
#define ALL_BYTES_MAX     (128u * 1024u * 1024u) /* Of all messages, each way. */
#define AGAIN_MS          1000u
#define QUIET_MS_MAX      6000u

struct merge_transfer {
    struct merge_transfer *next;
    uint64_t peer, number;
    uint32_t size, place; /* Up to there it was asked for, or it came. */
    uint64_t moved_ms, sent_ms;
    struct buf bytes; /* Empty: all of it came. */
};

static struct merge_transfer *find(struct merge_transfer *list, uint64_t peer, bool pulled)
{
    for (; list != NULL; list = list->next) {
        if (list->peer == peer && (list->number & 1) == pulled)
            return list;
    }
    return NULL;
}

static void drop(struct merge_transfer **list, const struct merge_transfer *gone)
{
    for (struct merge_transfer **at = list; *at != NULL; at = &(*at)->next) {
        struct merge_transfer *transfer = *at;
        if (transfer != gone)
            continue;
        *at = transfer->next;
        buf_deinit(&transfer->bytes);
        free(transfer);
        return;
    }
}

static struct merge_transfer *add(struct merge_transfer **list, uint64_t peer, uint64_t number,
                                  uint32_t size)
{
    uint64_t bytes = size;

    for (const struct merge_transfer *at = *list; at != NULL; at = at->next)
        bytes += at->bytes.size > 0 ? at->size : 0;
    if (size > MESSAGE_BYTES_MAX || bytes > ALL_BYTES_MAX)
        return NULL;
    struct merge_transfer *transfer = mem_zalloc(sizeof *transfer);

    *transfer =
        (struct merge_transfer){ .next = *list, .peer = peer, .number = number, .size = size };
    *list = transfer;
    return transfer;
}

/* ---- the one that sends ---- */

static void send_piece(struct mergers *mergers, struct merge_transfer *transfer, uint64_t now_ms)
{
    uint32_t left = transfer->size - transfer->place;
    struct buf out = { 0 };

    buf_put_u8(&out, PIECE);
    buf_put_u64(&out, transfer->number);
    buf_put_u32(&out, transfer->size);
    buf_put_u32(&out, transfer->place);
    buf_append(&out, transfer->bytes.data + transfer->place,
               left < PIECE_BYTES ? left : PIECE_BYTES);
    transfer->sent_ms = now_ms;
    mergers->options.send(mergers->options.user, transfer->peer, buf_slice(&out));
    buf_deinit(&out);
}

void mergers_send(struct mergers *mergers, uint64_t to, struct slice message)
{
    uint64_t now_ms = loop_now_ms(mergers->options.loop);
    bool pulled = message.size > 0 && message.data[0] == MERGE_CHUNK;

    if (message.size <= WHOLE_BYTES_MAX) {
        mergers->options.send(mergers->options.user, to, message);
        return;
    }
    uint64_t number = ((mergers->options.boot << 24) + ++mergers->piece_last) << 1 | pulled;
    struct merge_transfer *transfer =
        message.size <= MESSAGE_BYTES_MAX && find(mergers->sent, to, pulled) == NULL
            ? add(&mergers->sent, to, number, (uint32_t)message.size)
            : NULL;

    if (transfer == NULL) {
        mergers->messages_dropped++;
        return;
    }
    buf_append(&transfer->bytes, message.data, message.size);
    transfer->moved_ms = now_ms;
    send_piece(mergers, transfer, now_ms);
}

static err take_next(struct mergers *mergers, uint64_t from, struct reader *reader)
{
    uint64_t now_ms = loop_now_ms(mergers->options.loop), number = read_u64(reader);
    uint32_t place = read_u32(reader);
    struct merge_transfer *transfer = find(mergers->sent, from, number & 1);

    if (reader_finish(reader) != ERR_OK)
        return ERR_CORRUPT;
    if (transfer == NULL || transfer->number != number || place <= transfer->place)
        return ERR_OK;
    if (place > transfer->size)
        return ERR_CORRUPT;
    transfer->place = place;
    transfer->moved_ms = now_ms;
    if (place == transfer->size)
        drop(&mergers->sent, transfer);
    else
        send_piece(mergers, transfer, now_ms);
    return ERR_OK;
}

/* ---- the one that takes ---- */

/* A pull whose answer takes long to come goes on; other messages say nothing of it. */
static void keep_pull(struct mergers *mergers, const struct merge_transfer *transfer)
{
    struct reader reader = reader_from(buf_slice(&transfer->bytes));
    struct merge_head head;

    if ((transfer->number & 1) == 0)
        return;
    if (merge_head_decode(&reader, &head) == ERR_OK && head.shard < mergers->options.shard_count &&
        mergers->shards[head.shard].started)
        merge_pull_moves(mergers->shards[head.shard].replica, transfer->peer, loop_wall_ms());
}

static void ask_next(struct mergers *mergers, const struct merge_transfer *transfer)
{
    struct buf out = { 0 };

    buf_put_u8(&out, NEXT);
    buf_put_u64(&out, transfer->number);
    buf_put_u32(&out, transfer->place);
    mergers->options.send(mergers->options.user, transfer->peer, buf_slice(&out));
    buf_deinit(&out);
}

/* All of it has come. That it had is remembered, should the sender not hear so. */
static err take_whole(struct mergers *mergers, struct merge_transfer *transfer)
{
    struct buf message = transfer->bytes;

    transfer->bytes = (struct buf){ 0 };
    err e = message.data[0] == PIECE || message.data[0] == NEXT
                ? ERR_CORRUPT
                : mergers->message(mergers, transfer->peer, buf_slice(&message));

    buf_deinit(&message);
    return e;
}

static struct merge_transfer *begin(struct mergers *mergers, uint64_t from, uint64_t number,
                                    uint32_t size)
{
    struct merge_transfer *before = find(mergers->taken, from, number & 1);

    if (before != NULL)
        drop(&mergers->taken, before);
    return add(&mergers->taken, from, number, size);
}

static err take_piece(struct mergers *mergers, uint64_t from, struct reader *reader)
{
    uint64_t number = read_u64(reader);
    uint32_t size = read_u32(reader), place = read_u32(reader);
    struct slice bytes = read_raw(reader, reader_left(reader));

    if (reader->bad || bytes.size == 0 || place > size || bytes.size > size - place)
        return ERR_CORRUPT;
    struct merge_transfer *transfer = find(mergers->taken, from, number & 1);

    if (transfer == NULL || transfer->number != number)
        transfer = place == 0 ? begin(mergers, from, number, size) : NULL;
    if (transfer == NULL) {
        mergers->messages_dropped++;
        return ERR_OK;
    }
    if (transfer->size != size)
        return ERR_CORRUPT;
    if (place == transfer->place) {
        buf_append(&transfer->bytes, bytes.data, bytes.size);
        transfer->place += (uint32_t)bytes.size;
        transfer->moved_ms = loop_now_ms(mergers->options.loop);
        keep_pull(mergers, transfer);
    }
    ask_next(mergers, transfer);
    return place + bytes.size == size && transfer->bytes.size == size
               ? take_whole(mergers, transfer)
               : ERR_OK;
}

err mergers_pieces_message(struct mergers *mergers, uint64_t from, struct slice message)
{
    struct reader reader = reader_from(message);
    uint8_t kind = read_u8(&reader);

    if (kind == PIECE)
        return take_piece(mergers, from, &reader);
    return kind == NEXT ? take_next(mergers, from, &reader) : ERR_NOT_FOUND;
}

/* ---- time ---- */

static void drop_quiet(struct merge_transfer **list, uint64_t now_ms)
{
    for (struct merge_transfer **at = list; *at != NULL;) {
        if (now_ms - (*at)->moved_ms > QUIET_MS_MAX)
            drop(at, *at);
        else
            at = &(*at)->next;
    }
}

void mergers_pieces_tick(struct mergers *mergers, uint64_t now_ms)
{
    drop_quiet(&mergers->sent, now_ms);
    drop_quiet(&mergers->taken, now_ms);
    for (struct merge_transfer *at = mergers->sent; at != NULL; at = at->next) {
        if (now_ms - at->sent_ms > AGAIN_MS)
            send_piece(mergers, at, now_ms);
    }
}

void mergers_pieces_deinit(struct mergers *mergers)
{
    while (mergers->sent != NULL)
        drop(&mergers->sent, mergers->sent);
    while (mergers->taken != NULL)
        drop(&mergers->taken, mergers->taken);
}
