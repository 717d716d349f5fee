/*
 * out_queue: frames that wait to leave over one connection, in three lanes. What the cluster says
 * to itself (MESSAGE, PING, PONG, HELLO) never waits behind what it says to callers, however many
 * and large the answers are: at most the frame that is being handed over goes first. Pure.
 *
 * Large answers have a lane of their own, if the peer takes parts. They leave as a stream of frames
 * inside PART frames, one between two turns of the others, so a small answer waits for one part and
 * not for one answer. No more of them is between here and the peer's decoder than the peer gave
 * credit for, and no more than OUT_WINDOW_BYTES: what fills the sockets would go before every
 * answer that comes later.
 *
 * The bytes of callers' frames are counted in a budget, if there is one, from the moment they come
 * in until they are on the socket (out_queue_written) or dropped (out_queue_clear).
 */
#ifndef RUNTIME_LINK_OUT_QUEUE_H
#define RUNTIME_LINK_OUT_QUEUE_H

#include "runtime/base/budget.h"
#include "runtime/link/frame.h"

enum out_lane {
    OUT_SYSTEM, /* MESSAGE, PING, PONG, HELLO, CREDIT. */
    OUT_CALLS,  /* REQUEST, RESPONSE, CANCEL. */
    OUT_LARGE,  /* RESPONSE with a body of more than OUT_PART_BYTES. */
    OUT_LANES
};

#define OUT_PART_BYTES 65536u /* Of the lane of large answers, in one PART. */
/* Of them, what a peer takes before it gives new credit. Part of the protocol. */
#define OUT_CREDIT_BYTES 262144u
/* Of that, what is on its way at once: what a small answer may find before it in the sockets, some
 * 0.2 ms of the peer's time. A peer of an earlier version gives credit for so much, and no less. */
#define OUT_WINDOW_BYTES 131072u

struct out_lane_bytes {
    struct buf bytes; /* Frames not handed over, from `at` on. */
    size_t at;
    size_t frame_end; /* Of the frame that `at` is inside of, or behind which it stands. */
};

/* A zeroed one is valid and empty. */
struct out_queue {
    struct out_lane_bytes lanes[OUT_LANES];
    struct budget *budget; /* Borrowed; NULL: not counted. Set while it is empty. */
    uint64_t counted;      /* In the budget. */
    uint64_t flying;       /* Of that: handed over and not on the socket yet. */
    bool parts;            /* The peer takes PART: there is a lane of large answers. */
    bool large_turn;       /* Calls had theirs since the last part. */
    uint64_t credit;       /* Bytes of parts that the peer will take. */
};

/* From now on large answers leave in parts. */
void out_queue_use_parts(struct out_queue *queue);
/* The peer takes so many more bytes of them. False: more than it could have been sent. */
bool out_queue_credit(struct out_queue *queue, uint64_t bytes);

/* Where such a frame would wait. */
enum out_lane out_queue_lane(const struct out_queue *queue, uint8_t frame_kind, size_t body_bytes);

/* Copies the frame in. Returns its size on the wire. */
size_t out_queue_push(struct out_queue *queue, const struct frame *frame);
/* The next bytes to hand over: of one lane, whole frames of at most `bytes_max` together, or else a
 * part of one that is larger; that frame is then finished first. Of OUT_LARGE: what one PART is to
 * carry. Empty: there are none that may leave. */
struct slice out_queue_next(const struct out_queue *queue, size_t bytes_max,
                            enum out_lane *ret_lane);
/* The first `size` bytes of what out_queue_next gave were handed over. */
void out_queue_taken(struct out_queue *queue, enum out_lane lane, size_t size);
/* Everything that was handed over is on the socket. */
void out_queue_written(struct out_queue *queue);
/* Drops everything, what was handed over included. */
void out_queue_clear(struct out_queue *queue);

size_t out_queue_bytes(const struct out_queue *queue);
size_t out_queue_lane_bytes(const struct out_queue *queue, enum out_lane lane);

#endif
