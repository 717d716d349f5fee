#include "node/core/mergeable/pieces.h"

#include <stdlib.h>

#include "runtime/base/check.h"

#define PIECE 0xd5u
#define NEXT  0xd6u

struct pieces_transfer {
    struct pieces_transfer *next;
    uint64_t peer, number;
    uint32_t size, place; /* Up to there it was asked for, or it came. */
    uint64_t moved_ms, sent_ms;
    bool begun;       /* Sent: its first piece was. Taken: there is room for it. */
    struct buf bytes; /* Of a taken one without any: all of it came. */
};

struct pieces_request {
    struct pieces_request *next;
    uint64_t from, came_ms;
    struct merge_step step;
    struct buf bytes;
};

void pieces_init(struct pieces *pieces, const struct pieces_options *options)
{
    CHECK(options->piece_bytes > 0 && options->message_bytes_max <= options->all_bytes_max);
    *pieces = (struct pieces){ .options = *options };
}

/* ---- lists ---- */

/* The first one of that peer, of a pull or of all else. */
static struct pieces_transfer *find(struct pieces_transfer *list, uint64_t peer, bool pulled)
{
    for (; list != NULL; list = list->next) {
        if (list->peer == peer && (list->number & 1) == pulled)
            return list;
    }
    return NULL;
}

static void drop(struct pieces_transfer **list, const struct pieces_transfer *gone)
{
    for (struct pieces_transfer **at = list; *at != NULL; at = &(*at)->next) {
        struct pieces_transfer *transfer = *at;
        if (transfer != gone)
            continue;
        *at = transfer->next;
        buf_deinit(&transfer->bytes);
        free(transfer);
        return;
    }
}

static struct pieces_transfer *add(struct pieces_transfer **list, uint64_t peer, uint64_t number,
                                   uint32_t size)
{
    struct pieces_transfer *transfer = mem_zalloc(sizeof *transfer);

    *transfer = (struct pieces_transfer){ .peer = peer, .number = number, .size = size };
    while (*list != NULL)
        list = &(*list)->next;
    *list = transfer;
    return transfer;
}

/* Of the messages before `end`, NULL: of all. Those that came whole take no room. */
static uint64_t bytes_before(const struct pieces_transfer *list, const struct pieces_transfer *end)
{
    uint64_t bytes = 0;

    for (; list != end; list = list->next)
        bytes += list->place < list->size ? list->size : 0;
    return bytes;
}

static uint64_t bytes_to(const struct pieces *pieces, uint64_t peer)
{
    uint64_t bytes = 0;

    for (const struct pieces_transfer *at = pieces->sent; at != NULL; at = at->next)
        bytes += at->peer == peer ? at->size : 0;
    return bytes;
}

/* ---- the one that sends ---- */

static void send_piece(struct pieces *pieces, struct pieces_transfer *transfer, uint64_t now_ms)
{
    uint32_t left = transfer->size - transfer->place, most = pieces->options.piece_bytes;
    struct buf out = { 0 };

    buf_put_u8(&out, PIECE);
    buf_put_u64(&out, transfer->number);
    buf_put_u32(&out, transfer->size);
    buf_put_u32(&out, transfer->place);
    buf_append(&out, transfer->bytes.data + transfer->place, left < most ? left : most);
    transfer->sent_ms = now_ms;
    pieces->options.send(pieces->options.user, transfer->peer, buf_slice(&out));
    buf_deinit(&out);
}

/* The next one to that peer has its turn, if none is on its way. */
static void go_on(struct pieces *pieces, uint64_t peer, bool pulled, uint64_t now_ms)
{
    struct pieces_transfer *transfer = find(pieces->sent, peer, pulled);

    if (transfer == NULL || transfer->begun)
        return;
    transfer->begun = true;
    transfer->moved_ms = now_ms;
    send_piece(pieces, transfer, now_ms);
}

static struct pieces_transfer *find_step(const struct pieces *pieces, uint64_t peer,
                                         const struct merge_step *step)
{
    struct merge_step other;

    for (struct pieces_transfer *at = pieces->sent; at != NULL; at = at->next) {
        if (at->peer == peer && (at->number & 1) == 1 &&
            merge_step_decode(buf_slice(&at->bytes), &other) == ERR_OK &&
            other.shard == step->shard)
            return at;
    }
    return NULL;
}

/* An answer to an earlier step of the same pull is of no use any more. */
static void replace(struct pieces *pieces, uint64_t to, struct slice message, uint64_t now_ms)
{
    struct pieces_transfer *before;
    struct merge_step step;

    if (merge_step_decode(message, &step) != ERR_OK)
        return;
    before = find_step(pieces, to, &step);
    if (before == NULL)
        return;
    drop(&pieces->sent, before);
    go_on(pieces, to, true, now_ms);
}

void pieces_send(struct pieces *pieces, uint64_t to, struct slice message, uint64_t now_ms)
{
    const struct pieces_options *options = &pieces->options;
    bool pulled = message.size > 0 && message.data[0] == MERGE_CHUNK;
    uint64_t number = (options->boot << 24) + ++pieces->number_last;

    if (message.size <= options->whole_bytes_max) {
        options->send(options->user, to, message);
        return;
    }
    if (pulled)
        replace(pieces, to, message, now_ms);
    if (message.size > options->message_bytes_max ||
        bytes_before(pieces->sent, NULL) + message.size > options->all_bytes_max ||
        (!pulled && find(pieces->sent, to, false) != NULL)) {
        pieces->dropped++;
        return;
    }
    struct pieces_transfer *transfer =
        add(&pieces->sent, to, number << 1 | pulled, (uint32_t)message.size);

    buf_append(&transfer->bytes, message.data, message.size);
    go_on(pieces, to, pulled, now_ms);
}

/* A request for the same piece once more says that the other one is there, and has no room yet. */
static err take_next(struct pieces *pieces, uint64_t from, struct reader *reader, uint64_t now_ms)
{
    uint64_t number = read_u64(reader);
    uint32_t place = read_u32(reader);
    bool pulled = (number & 1) == 1;

    if (reader_finish(reader) != ERR_OK)
        return ERR_CORRUPT;
    struct pieces_transfer *transfer = find(pieces->sent, from, pulled);

    if (transfer == NULL || transfer->number != number || place < transfer->place)
        return ERR_OK;
    if (place > transfer->size)
        return ERR_CORRUPT;
    transfer->moved_ms = now_ms;
    if (place == transfer->place)
        return ERR_OK;
    transfer->place = place;
    if (place == transfer->size) {
        drop(&pieces->sent, transfer);
        go_on(pieces, from, pulled, now_ms);
    } else {
        send_piece(pieces, transfer, now_ms);
    }
    return ERR_OK;
}

/* ---- the one that takes ---- */

static void ask_next(struct pieces *pieces, const struct pieces_transfer *transfer)
{
    struct buf out = { 0 };

    buf_put_u8(&out, NEXT);
    buf_put_u64(&out, transfer->number);
    buf_put_u32(&out, transfer->place);
    pieces->options.send(pieces->options.user, transfer->peer, buf_slice(&out));
    buf_deinit(&out);
}

/* What the piece belongs to. A message of a greater number takes the place of one that its sender
 * no longer sends. NULL: the piece is late, or not the first, or of a message that is too large. */
static struct pieces_transfer *open(struct pieces *pieces, uint64_t from, uint64_t number,
                                    uint32_t size, uint32_t place)
{
    struct pieces_transfer *transfer = find(pieces->taken, from, (number & 1) == 1);

    if (transfer != NULL && transfer->number == number)
        return transfer;
    if (place > 0 || size > pieces->options.message_bytes_max ||
        (transfer != NULL && transfer->number > number))
        return NULL;
    if (transfer != NULL)
        drop(&pieces->taken, transfer);
    return add(&pieces->taken, from, number, size);
}

static bool has_turn(const struct pieces *pieces, struct pieces_transfer *transfer)
{
    transfer->begun = transfer->begun || bytes_before(pieces->taken, transfer) + transfer->size <=
                                             pieces->options.all_bytes_max;
    return transfer->begun;
}

static err take_piece(struct pieces *pieces, uint64_t from, struct reader *reader, uint64_t now_ms,
                      struct pieces_came *came)
{
    uint64_t number = read_u64(reader);
    uint32_t size = read_u32(reader), place = read_u32(reader);
    struct slice bytes = read_raw(reader, reader_left(reader));

    if (reader->bad || bytes.size == 0 || place > size || bytes.size > size - place)
        return ERR_CORRUPT;
    struct pieces_transfer *transfer = open(pieces, from, number, size, place);

    if (transfer == NULL) {
        pieces->dropped++;
        return ERR_OK;
    }
    if (transfer->size != size)
        return ERR_CORRUPT;
    transfer->moved_ms = now_ms;
    if (has_turn(pieces, transfer) && place == transfer->place && place < size) {
        buf_append(&transfer->bytes, bytes.data, bytes.size);
        transfer->place += (uint32_t)bytes.size;
        came->moved = (number & 1) == 1;
        came->begin = buf_slice(&transfer->bytes);
    }
    ask_next(pieces, transfer);
    if (transfer->place == size) { /* That it came is remembered, should the sender not hear so. */
        came->whole = transfer->bytes;
        transfer->bytes = (struct buf){ 0 };
    }
    return ERR_OK;
}

err pieces_take(struct pieces *pieces, uint64_t from, struct slice message, uint64_t now_ms,
                struct pieces_came *ret_came)
{
    struct reader reader = reader_from(message);
    uint8_t kind = read_u8(&reader);
    struct pieces_came came = { 0 };
    err e = ERR_NOT_FOUND;

    if (kind == PIECE)
        e = take_piece(pieces, from, &reader, now_ms, &came);
    else if (kind == NEXT)
        e = take_next(pieces, from, &reader, now_ms);
    if (came.whole.size > 0 && (came.whole.data[0] == PIECE || came.whole.data[0] == NEXT)) {
        buf_deinit(&came.whole);
        came = (struct pieces_came){ 0 };
        e = ERR_CORRUPT;
    }
    *ret_came = came;
    return e;
}

/* ---- requests of pulls ---- */

static bool has_room(const struct pieces *pieces)
{
    return bytes_before(pieces->sent, NULL) + pieces->options.message_bytes_max <=
           pieces->options.all_bytes_max;
}

/* Takes the request out of the list. */
static struct pieces_request *unlink_request(struct pieces *pieces, struct pieces_request **at)
{
    struct pieces_request *request = *at;

    *at = request->next;
    pieces->request_count--;
    pieces->request_bytes -= (uint32_t)request->bytes.size;
    return request;
}

static void request_free(struct pieces_request *request)
{
    buf_deinit(&request->bytes);
    free(request);
}

/* A repetition keeps its place in the line, and so does a later step of the same pull. */
static void keep_request(struct pieces *pieces, uint64_t from, struct slice bytes,
                         const struct merge_step *step, uint64_t now_ms)
{
    struct pieces_request **at = &pieces->requests;

    while (*at != NULL && ((*at)->from != from || (*at)->step.shard != step->shard))
        at = &(*at)->next;
    struct pieces_request *request = *at;
    size_t had = request != NULL ? request->bytes.size : 0;

    if (pieces->request_bytes - had + bytes.size > PIECES_REQUEST_BYTES_MAX ||
        (request == NULL && pieces->request_count == PIECES_REQUESTS_MAX)) {
        pieces->dropped++;
        return;
    }
    if (request == NULL) {
        *at = request = mem_zalloc(sizeof *request);
        pieces->request_count++;
    }
    pieces->request_bytes = (uint32_t)(pieces->request_bytes - had + bytes.size);
    request->from = from;
    request->came_ms = now_ms;
    request->step = *step;
    buf_clear(&request->bytes);
    buf_append(&request->bytes, bytes.data, bytes.size);
}

bool pieces_admit(struct pieces *pieces, uint64_t from, struct slice request, uint64_t now_ms)
{
    struct merge_step step, sent;

    if (merge_step_decode(request, &step) != ERR_OK)
        return true; /* The replica refuses it. */
    const struct pieces_transfer *answer = find_step(pieces, from, &step);

    if (answer != NULL && merge_step_decode(buf_slice(&answer->bytes), &sent) == ERR_OK &&
        sent.boot == step.boot && sent.id == step.id)
        return false;
    if (pieces->requests == NULL && has_room(pieces))
        return true;
    keep_request(pieces, from, request, &step, now_ms);
    return false;
}

bool pieces_request_next(struct pieces *pieces, uint64_t *ret_from, struct buf *ret_request)
{
    struct pieces_request **least = &pieces->requests;

    if (pieces->requests == NULL || !has_room(pieces))
        return false;
    for (struct pieces_request **at = least; *at != NULL; at = &(*at)->next) {
        if (bytes_to(pieces, (*at)->from) < bytes_to(pieces, (*least)->from))
            least = at;
    }
    struct pieces_request *request = unlink_request(pieces, least);

    *ret_from = request->from;
    *ret_request = request->bytes;
    free(request);
    return true;
}

/* ---- time ---- */

/* A peer that does not ask for the piece that it was sent is away: what waits for it goes, too. */
static void drop_quiet_sent(struct pieces *pieces, uint64_t now_ms)
{
    struct pieces_transfer *at = pieces->sent;

    while (at != NULL) {
        uint64_t peer = at->peer, pulled = at->number & 1;

        if (!at->begun || now_ms - at->moved_ms <= PIECES_QUIET_MS_MAX) {
            at = at->next;
            continue;
        }
        while ((at = find(pieces->sent, peer, pulled == 1)) != NULL)
            drop(&pieces->sent, at);
        at = pieces->sent;
    }
}

static void drop_quiet_taken(struct pieces *pieces, uint64_t now_ms)
{
    for (struct pieces_transfer *at = pieces->taken, *next; at != NULL; at = next) {
        next = at->next;
        if (now_ms - at->moved_ms > PIECES_QUIET_MS_MAX)
            drop(&pieces->taken, at);
    }
}

void pieces_tick(struct pieces *pieces, uint64_t now_ms)
{
    struct pieces_request **at = &pieces->requests;

    drop_quiet_sent(pieces, now_ms);
    drop_quiet_taken(pieces, now_ms);
    for (struct pieces_transfer *sent = pieces->sent; sent != NULL; sent = sent->next) {
        if (sent->begun && now_ms - sent->sent_ms > PIECES_AGAIN_MS)
            send_piece(pieces, sent, now_ms);
    }
    while (*at != NULL) {
        if (now_ms - (*at)->came_ms > PIECES_REQUEST_MS_MAX)
            request_free(unlink_request(pieces, at));
        else
            at = &(*at)->next;
    }
}

void pieces_deinit(struct pieces *pieces)
{
    while (pieces->sent != NULL)
        drop(&pieces->sent, pieces->sent);
    while (pieces->taken != NULL)
        drop(&pieces->taken, pieces->taken);
    while (pieces->requests != NULL)
        request_free(unlink_request(pieces, &pieces->requests));
}
