/*
 * pieces: messages that no frame holds, in pieces: what the sides of a cut wrote of one document
 * may be tens of megabytes together. Each piece is asked for, so one at most waits for a link.
 *
 *   PIECE  u8 0xd5, u64 number, u32 size of the message, u32 place, bytes
 *   NEXT   u8 0xd6, u64 number, u32 place of the piece that is wanted; the size: it has all
 *
 * To each peer one part of a pull goes at a time, and one message of all else; the last bit of a
 * number says which. Parts of other shards' pulls wait behind it, in the order in which they were
 * asked for. Of all else, what comes meanwhile is dropped, as a full link drops it.
 *
 * While there may be no room for one more part, requests of pulls wait, not the parts: the first
 * request of the peer to which the fewest bytes are on their way is served next. Messages that come
 * in are given room in the order in which they began.
 */
#ifndef NODE_CORE_MERGEABLE_PIECES_H
#define NODE_CORE_MERGEABLE_PIECES_H

#include "node/core/mergeable/message.h"

#define PIECES_AGAIN_MS 1000u
/* A message that has not moved for so long is dropped, and all that waits for the same peer. */
#define PIECES_QUIET_MS_MAX 6000u
/* Requests of pulls that wait. The asker repeats one that was dropped. */
#define PIECES_REQUESTS_MAX      1024u
#define PIECES_REQUEST_BYTES_MAX (8u * 1024u * 1024u)
#define PIECES_REQUEST_MS_MAX    10000u

struct pieces_options {
    uint64_t boot; /* Of this process: numbers of a later one are greater. */
    uint32_t piece_bytes;
    uint32_t whole_bytes_max; /* A larger message goes in pieces, */
    uint32_t message_bytes_max;
    uint64_t all_bytes_max; /* Of all messages in pieces, each way. */
    void (*send)(void *user, uint64_t to, struct slice bytes);
    void *user;
};

struct pieces_transfer;
struct pieces_request;

struct pieces {
    struct pieces_options options;
    struct pieces_transfer *sent, *taken;  /* In the order in which they began. */
    uint32_t request_count, request_bytes; /* Of: */
    struct pieces_request *requests;       /* In the order in which they came. */
    uint64_t number_last, dropped;
};

/* What a piece has brought. */
struct pieces_came {
    bool moved; /* More of a part of a pull, which begins with: */
    struct slice begin;
    struct buf whole; /* A message, complete; the caller frees it. Empty: none is. */
};

void pieces_init(struct pieces *pieces, const struct pieces_options *options);
void pieces_deinit(struct pieces *pieces);

/* Sends a message of the core, in pieces if it has to. What has no room is dropped and counted. */
void pieces_send(struct pieces *pieces, uint64_t to, struct slice message, uint64_t now_ms);
/* A message of a peer. ERR_NOT_FOUND: it is neither a piece nor a request of one. ERR_CORRUPT:
 * malformed. *ret_came is empty on error. */
NODISCARD err pieces_take(struct pieces *pieces, uint64_t from, struct slice message,
                          uint64_t now_ms, struct pieces_came *ret_came);
/* Whether a PULL of that peer is served now. Else its answer is on its way already, or it waits for
 * pieces_request_next. */
bool pieces_admit(struct pieces *pieces, uint64_t from, struct slice request, uint64_t now_ms);
/* A request whose turn has come; the caller frees it. False: there is none, or no room. */
bool pieces_request_next(struct pieces *pieces, uint64_t *ret_from, struct buf *ret_request);
/* Sends again, and drops what does not move. */
void pieces_tick(struct pieces *pieces, uint64_t now_ms);

#endif
