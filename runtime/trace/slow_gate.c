#include "runtime/trace/slow_gate.h"

#define SECOND_NS 1000000000u

bool slow_gate_pass(struct slow_gate *gate, uint64_t took_ns, uint64_t now_ns,
                    uint32_t *ret_withheld)
{
    if (took_ns < gate->slow_ns || gate->slow_ns == 0)
        return false;
    if (gate->begun_ns == 0 || now_ns - gate->begun_ns >= SECOND_NS) {
        gate->begun_ns = now_ns;
        gate->told = 0;
    }
    if (gate->told >= SLOW_LINES_PER_S) {
        gate->withheld++;
        return false;
    }
    gate->told++;
    *ret_withheld = gate->withheld;
    gate->withheld = 0;
    return true;
}
