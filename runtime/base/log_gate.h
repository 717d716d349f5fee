/*
 * log_gate: lets one line a minute and cause through to the log, and counts the rest, so that
 * strangers who fail as often as they like cannot fill a disk. One gate a cause, zeroed at first.
 * Pure: the time comes in.
 */
#ifndef RUNTIME_BASE_LOG_GATE_H
#define RUNTIME_BASE_LOG_GATE_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_GATE_PERIOD_MS 60000u

struct log_gate {
    uint64_t next_ms; /* The next line may pass from then on. */
    uint64_t held;    /* Lines held back since the last one that passed. */
    bool used;
};

/* True: log it now, and say that it happened *ret_more further times since the last line. */
bool log_gate_pass(struct log_gate *gate, uint64_t now_ms, uint64_t *ret_more);

#endif
