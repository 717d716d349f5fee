#include "node/core/replication/sim/rep_sim_state.h"

#include <stdarg.h>
#include <stdio.h>

void rep_sim_fail(struct rep_sim *sim, const char *format, ...)
{
    va_list args;

    if (sim->failure[0] != '\0')
        return;
    int used = snprintf(sim->failure, sizeof sim->failure,
                        "at %llu ms: ", (unsigned long long)sim->now_ms);
    va_start(args, format);
    vsnprintf(sim->failure + used, sizeof sim->failure - (size_t)used, format, args);
    va_end(args);
}
