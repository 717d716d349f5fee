/*
 * spans: where the time of one worker's calls goes: at the door, until the log got the entry, until
 * it is on our disk, until a majority has it, until the answer. The core knows no clock, so the
 * shell tells this each thing as it happens, with the time; nothing is told to the log from here.
 *
 * Costs a few stores a call and a search for those that were slow. Memory is bounded: a call or a
 * write that fell out of it is told with less, see span_times. Of one thread.
 */
#ifndef NODE_IO_WORKER_SPANS_H
#define NODE_IO_WORKER_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/trace/trace_context.h"

#define SPAN_CALLS      4096u /* Remembered at once; by number, so newer ones win. */
#define SPAN_WRITES_MAX 32u   /* Of one shard; when all are open, newer entries join the last. */

struct spans;

struct span_call {
    uint64_t call;       /* As the shard names it. */
    uint64_t number;     /* Of the call in its trace, see trace_span. */
    uint64_t arrived_ns; /* At the node's door, */
    uint64_t begun_ns;   /* and at its shard. */
    uint32_t shard;
    uint32_t method;
    uint8_t trace[TRACE_ID_SIZE];
    uint64_t index; /* Of the entry it became; 0: none, or not when it began. Set by spans. */
};

/* They follow one another, and are the whole time. */
struct span_times {
    uint64_t queue_ns; /* At the door: bulk waits its turn, workers with a thread are asked. */
    /* Only when `logged`: the entry is known here, and was handed to the log. */
    uint64_t prepare_ns;  /* Until then: company in one write, cold rows. */
    uint64_t log_ns;      /* Until our disk, or a majority without it, had it. */
    uint64_t replicas_ns; /* Until a majority had. */
    uint64_t apply_ns;    /* Until the answer: rows, other shards, other calls before it. */
    uint64_t rest_ns;     /* Instead of these four. */
    bool logged;
};

struct spans *spans_new(uint32_t shard_count);
/* NULL is allowed. */
void spans_free(struct spans *spans);

/* A call comes to its shard; copied. */
void spans_begin(struct spans *spans, const struct span_call *call);
/* It became that entry. */
void spans_proposed(struct spans *spans, uint64_t call, uint64_t index);
/* Entries up to `index` were handed to the log. */
void spans_handed(struct spans *spans, uint32_t shard, uint64_t index, uint64_t now_ns);
void spans_persisted(struct spans *spans, uint32_t shard, uint64_t index, uint64_t now_ns);
/* Whether spans_committed would learn anything. */
bool spans_awaits(const struct spans *spans, uint32_t shard, uint64_t commit_index);
/* How long the newest of the writes that it covers took, since it was handed over; 0: none. */
uint64_t spans_committed(struct spans *spans, uint32_t shard, uint64_t commit_index,
                         uint64_t now_ns);
/* The shard's owner changed: entries not committed may be others from now on. */
void spans_forget(struct spans *spans, uint32_t shard);

/* The trace of the first call among entries [first, last], as far as they were handed in writes
 * that are remembered; NULL: none. Valid until the next call here. */
const uint8_t *spans_trace(const struct spans *spans, uint32_t shard, uint64_t first,
                           uint64_t last);
/* NULL: not remembered. */
const struct span_call *spans_find(const struct spans *spans, uint64_t call);
/* Of a call that is answered now. */
void spans_times(const struct spans *spans, const struct span_call *call, uint64_t now_ns,
                 struct span_times *ret_times);

#endif
