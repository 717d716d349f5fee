/*
 * trace_context: the W3C Trace Context of a request, and the ids of its spans (W3C Recommendation
 * "Trace Context", 2021, section 3.2). Pure.
 *
 * A span id is never sent from process to process: both sides of a call compute it from the trace
 * id and the number of the call's frame, so frames stay as they are and old builds fit in.
 */
#ifndef RUNTIME_TRACE_TRACE_CONTEXT_H
#define RUNTIME_TRACE_TRACE_CONTEXT_H

#include "runtime/base/buf.h"

#define TRACE_ID_SIZE   16u
#define TRACE_TEXT_SIZE (2u * TRACE_ID_SIZE + 1u)
#define SPAN_TEXT_SIZE  17u

struct trace_parent {
    uint8_t trace_id[TRACE_ID_SIZE];
    uint64_t span; /* Of the caller; never 0. */
    uint8_t flags; /* 1: sampled. Nothing here depends on it. */
};

/* `traceparent`: "00-" trace id "-" span id "-" flags, hexadecimal in lower case; a later version
 * may have more behind another "-". False, with ret_parent as it was: malformed, version ff, or an
 * id that is all zeros. The caller then begins a trace of its own. */
bool trace_parent_parse(struct slice value, struct trace_parent *ret_parent);

/* False: all zeros, which means none. */
bool trace_is_set(const uint8_t trace_id[TRACE_ID_SIZE]);
/* A new trace id. `random` is the state of a generator, advanced; any number but 0. It spreads ids
 * and keeps no secret. */
void trace_id_init(uint8_t ret_trace_id[TRACE_ID_SIZE], uint64_t *random);
/* The span of call `number` in that trace; never 0. */
uint64_t trace_span(const uint8_t trace_id[TRACE_ID_SIZE], uint64_t number);

/* For logs. */
void trace_print(const uint8_t trace_id[TRACE_ID_SIZE], char ret_text[TRACE_TEXT_SIZE]);
void trace_span_print(uint64_t span, char ret_text[SPAN_TEXT_SIZE]);

#endif
