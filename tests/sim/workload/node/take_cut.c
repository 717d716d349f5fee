/* TakeCut, which the coordinator calls for the audit; oracle.c counts cuts. */
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

const struct workload_row workload_take_cut = {
    .method = METHOD_TAKE_CUT,
    .rule = { .told = told_nothing },
};
