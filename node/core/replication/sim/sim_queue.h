/*
 * sim_queue: virtual time for tests: a queue of what happens when, and a stream of random numbers
 * from a seed. Events of one millisecond come in the order in which they were added, so a seed
 * replays byte for byte. For tests only; never linked into a program.
 */
#ifndef NODE_CORE_REPLICATION_SIM_SIM_QUEUE_H
#define NODE_CORE_REPLICATION_SIM_SIM_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

/* SplitMix64 (Steele, Lea, Flood, 2014). */
struct sim_random {
    uint64_t state;
};

uint64_t sim_random_next(struct sim_random *random);
/* Within low .. high, both included. */
uint64_t sim_random_between(struct sim_random *random, uint64_t low, uint64_t high);
bool sim_random_chance(struct sim_random *random, uint32_t per_thousand);

struct sim_event {
    uint64_t at_ms;
    int kind; /* Whatever the user of the queue means by it. */
    uint64_t node;
    uint64_t from;
    uint64_t life; /* Of the node: events of an earlier life are void. */
    uint64_t number;
    struct buf bytes; /* The queue's while inside; then the popper's to release. */
};

/* What is due in one millisecond, or what is too far off: places of events, plus one; 0: none. */
struct sim_list {
    uint32_t first, last;
};

#define SIM_QUEUE_MS          8192u /* A power of two. */
#define SIM_QUEUE_SPARE_MAX   256u
#define SIM_QUEUE_BYTES_SPARE 512u

/*
 * A wheel of milliseconds (Varghese and Lauck, 1987): constant time, since a simulator that keeps
 * a heap spends a sixth of its time there. A zeroed queue is valid and empty.
 */
struct sim_queue {
    struct sim_list *wheel;            /* SIM_QUEUE_MS of them, by at_ms. */
    uint64_t busy[SIM_QUEUE_MS / 64u]; /* Which of them hold anything. */
    struct sim_list far;               /* In the order added; beyond the wheel when added. */
    uint64_t far_next_ms;              /* Earliest of them. */
    struct sim_event *events;
    uint32_t *next;                     /* Of each event, in its list: its place plus one. */
    uint32_t slot_count, slot_capacity; /* slot_count: ever used. */
    uint32_t free_first;                /* Plus one. */
    uint64_t now_ms;                    /* Nothing earlier is in the queue. */
    uint32_t count;
    struct buf *spare; /* SIM_QUEUE_SPARE_MAX of them at most. */
    uint32_t spare_count;
};

/* Takes over event->bytes. Not before the event popped last. */
void sim_queue_push(struct sim_queue *queue, const struct sim_event *event);
/* False when nothing is due at or before `until_ms`. */
bool sim_queue_pop(struct sim_queue *queue, uint64_t until_ms, struct sim_event *ret_event);
/* Empty, with room for what most events carry: of an event that is over, if one gave it back. */
struct buf sim_queue_bytes(struct sim_queue *queue);
void sim_queue_bytes_back(struct sim_queue *queue, struct buf *bytes);
void sim_queue_deinit(struct sim_queue *queue);

#endif
