/*
 * sim_queue: virtual time for tests: a queue of what happens when, and a stream of random numbers
 * from a seed. Events of one millisecond come in the order in which they were added, so a seed
 * replays byte for byte. For tests only; never linked into a program.
 */
#ifndef NODE_CORE_SIM_QUEUE_H
#define NODE_CORE_SIM_QUEUE_H

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
    uint64_t sequence; /* Set by sim_queue_push. */
    int kind;          /* Whatever the user of the queue means by it. */
    uint64_t node;
    uint64_t from;
    uint64_t life; /* Of the node: events of an earlier life are void. */
    uint64_t number;
    struct buf bytes; /* The queue's while inside; then the popper's to release. */
};

/* A zeroed queue is valid and empty. */
struct sim_queue {
    struct sim_event *events; /* Binary heap. */
    uint32_t count, capacity;
    uint64_t sequence;
};

/* Takes over event->bytes. */
void sim_queue_push(struct sim_queue *queue, const struct sim_event *event);
/* False when nothing is due at or before `until_ms`. */
bool sim_queue_pop(struct sim_queue *queue, uint64_t until_ms, struct sim_event *ret_event);
void sim_queue_deinit(struct sim_queue *queue);

#endif
