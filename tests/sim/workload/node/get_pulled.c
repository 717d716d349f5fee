/* GetPulled, which a node asks a home that it begins to own. */
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

const struct workload_row workload_get_pulled = {
    .method = METHOD_GET_PULLED,
    .rule = { .told = told_nothing },
};
