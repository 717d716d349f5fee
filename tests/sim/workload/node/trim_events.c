/* TrimEvents, which owners log: event.c says what may go. */
#include "tests/sim/servers/workload.h"

const struct workload_row workload_trim_events = {
    .method = METHOD_TRIM_EVENTS,
};
