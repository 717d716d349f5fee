/*
 * slow_gate: which of the slow requests are told in the log: a line costs more than a request, and
 * when a cluster stands still all of them are slow. Time is passed in. Of one thread.
 */
#ifndef RUNTIME_TRACE_SLOW_GATE_H
#define RUNTIME_TRACE_SLOW_GATE_H

#include <stdbool.h>
#include <stdint.h>

#define SLOW_LINES_PER_S 20u

struct slow_gate {
    uint64_t slow_ns;  /* What takes as long is slow; 0: nothing is. */
    uint64_t begun_ns; /* Of the second that is counted. */
    uint32_t told;     /* In it. */
    uint32_t withheld; /* Slow, and not told since the last that was. */
};

/* True: `took_ns` is slow, and its line may be written; *ret_withheld others were not. */
bool slow_gate_pass(struct slow_gate *gate, uint64_t took_ns, uint64_t now_ns,
                    uint32_t *ret_withheld);

#endif
