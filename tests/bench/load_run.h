/* load_run: one measured run: warm-up, measured time, drain; what was counted in it, and the line
 * of JSON that says so. The generators own sockets; this owns the clock and the sums. */
#ifndef TESTS_BENCH_LOAD_RUN_H
#define TESTS_BENCH_LOAD_RUN_H

#include "load_options.h"
#include "load_stat.h"

enum load_phase { LOAD_WARM_UP, LOAD_MEASURE, LOAD_DRAIN };

/* The codes of those that failed; of the first three nothing was done, the others are unknown. */
#define LOAD_CODES(X)                                                                              \
    X(THROTTLED, "throttled")                                                                      \
    X(UNAVAILABLE, "unavailable")                                                                  \
    X(DEADLINE_EXCEEDED, "deadline_exceeded")                                                      \
    X(OTHER, "other")
#define LOAD_CODE_ENUM(enumerator, text) LOAD_##enumerator,
enum load_code { LOAD_CODES(LOAD_CODE_ENUM) LOAD_CODE_COUNT };
#undef LOAD_CODE_ENUM

/* What became of the operations of one request. done + failed are all of them. */
struct load_outcome {
    unsigned done;       /* Carried out, or answered as a duplicate. */
    unsigned duplicates; /* Of those done: repeats of what was acknowledged before. */
    unsigned failed;
    unsigned codes[LOAD_CODE_COUNT]; /* Of those failed. */
    unsigned retry_after_ms; /* What a refusal of the whole request asked for; 0: it did not. */
};

/* Processor seconds so far. */
struct load_cpu {
    double server_s;
    double aside_s;
    double own_s;
    double machine_s; /* All of the machine, idle time left out. */
};

struct load_run {
    const struct load_options *options;
    enum load_phase phase;
    uint64_t begin_ns;
    uint64_t end_ns;
    /* Answered in the measured time, whenever they were due: an open loop at twice what a store can
     * do takes its queue along from the warm-up, and that work is done in the measured time. */
    uint64_t operations;             /* Done. */
    uint64_t errors;                 /* Failed, */
    uint64_t codes[LOAD_CODE_COUNT]; /* by code. */
    /* Of the whole run, warm-up and drain included. */
    uint64_t acknowledged; /* Carried out, duplicates left out. */
    uint64_t duplicates;
    uint64_t throttled;
    uint64_t unknown;
    struct load_cpu cpu;
    struct histogram refused;   /* The same, of requests that were refused as a whole. */
    struct histogram histogram; /* Of requests that were sent and answered in the measured time. */
};

/* Begins the warm-up. `options` is borrowed for the run's life. */
void load_run_start(struct load_run *run, const struct load_options *options);
/* Moves on to the next phase when its time has come. */
void load_run_advance(struct load_run *run, uint64_t now_ns);
/* Ends the measured time now: there is nothing left to do. */
void load_run_finish(struct load_run *run);
/* Of a request that was sent at sent_ns or, in an open loop, due then. */
void load_run_count(struct load_run *run, uint64_t sent_ns, const struct load_outcome *outcome);
/* Prints the run's fields, from "{" on and without the closing "}". */
void load_run_report(const struct load_run *run, unsigned operations_per_request);

#endif
