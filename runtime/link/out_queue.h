/*
 * out_queue: frames that wait to leave over one connection, in two lanes. What the cluster says to
 * itself (MESSAGE, PING, PONG, HELLO) never waits behind what it says to callers, however many and
 * large the answers are: at most the frame that is being handed over goes first. Pure.
 *
 * The bytes of callers' frames are counted in a budget, if there is one, from the moment they come
 * in until they are on the socket (out_queue_written) or dropped (out_queue_clear).
 */
#ifndef RUNTIME_LINK_OUT_QUEUE_H
#define RUNTIME_LINK_OUT_QUEUE_H

#include "runtime/base/budget.h"
#include "runtime/link/frame.h"

enum out_lane {
    OUT_SYSTEM, /* MESSAGE, PING, PONG, HELLO. */
    OUT_CALLS,  /* REQUEST, RESPONSE, CANCEL. */
    OUT_LANES
};

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
};

enum out_lane out_queue_lane(uint8_t frame_kind);

/* Copies the frame in. Returns its size on the wire. */
size_t out_queue_push(struct out_queue *queue, const struct frame *frame);
/* The next bytes to hand over: of one lane, whole frames of at most `bytes_max` together, or else a
 * part of one that is larger; that frame is then finished first. Empty: there are none. */
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
