#include "runtime/base/log_gate.h"

bool log_gate_pass(struct log_gate *gate, uint64_t now_ms, uint64_t *ret_more)
{
    *ret_more = 0;
    if (gate->used && now_ms < gate->next_ms) {
        gate->held++;
        return false;
    }
    *ret_more = gate->held;
    *gate = (struct log_gate){ .next_ms = now_ms + LOG_GATE_PERIOD_MS, .used = true };
    return true;
}
