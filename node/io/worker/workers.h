/*
 * workers: the threads that own shards; shard n belongs to worker n % count. Worker 0 runs on the
 * main loop, so that one worker costs no hop and no copy; each other has a thread and a loop of
 * its own, with a lane each way. Everything here is called on the main thread, and every ops
 * callback arrives there. DESIGN section 9.
 */
#ifndef NODE_IO_WORKER_WORKERS_H
#define NODE_IO_WORKER_WORKERS_H

#include "node/io/worker/worker.h"

#define WORKERS_MAX 64u

struct workers;

struct workers_options {
    /* Of the whole node: loop is the main one; cache_bytes and loads_max are shared out. */
    struct worker_options worker;
    /* As ops.send, with the message encoded: from workers that have a thread. Borrowed. */
    void (*send_encoded)(void *user, uint64_t replica, struct slice bytes, const uint8_t *trace);
    uint32_t count;     /* 1 to WORKERS_MAX */
    uint32_t calls_max; /* Calls under way to one worker; beyond it they are ERR_FULL. */
};

/* Makes the workers, recovers their shards one after the other, then starts the threads. A damaged
 * shard is logged and not served, and *ret_damaged is set. ERR_IO: no descriptors for a loop.
 * ERR_TOO_NEW: a shard was served by a later version of this program; nothing is served. */
NODISCARD err workers_new(const struct workers_options *options, struct workers **ret_workers,
                          bool *ret_damaged);
/* Stops the threads in order, each when its blocking work is done. No callbacks; calls under way
 * are not answered. NULL is allowed. */
void workers_free(struct workers *workers);

/* As the functions of worker.h. What is for another thread is copied. */
void workers_record(struct workers *workers, uint32_t shard, const struct rep_record *record);
/* ERR_CORRUPT: malformed. Lost when its worker has too much to do, as the network might. */
NODISCARD err workers_message(struct workers *workers, uint64_t from, struct slice bytes,
                              const uint8_t *trace);
/* ERR_NOT_FOUND: not held here. ERR_FULL: see calls_max. Nothing was begun then. A shard that a
 * worker on another thread does not hold is answered REPLY_NOT_OWNER instead. */
NODISCARD err workers_call(struct workers *workers, const struct worker_request *request);
/* Its answer may be on its way already, and still arrives. NULL is allowed. */
void workers_cancel(struct workers *workers, uint32_t shard, uint64_t call);
void workers_delivered(struct workers *workers, const struct worker_delivered *delivered);
/* Every worker's worker_checkpoint_all at once, running the main loop meanwhile. */
void workers_checkpoint_all(struct workers *workers);

#endif
