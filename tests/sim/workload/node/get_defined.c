/* GetDefined, which a coordinator calls that was just elected. */
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

const struct workload_row workload_get_defined = {
    .method = METHOD_GET_DEFINED,
    .rule = { .told = told_nothing },
};
