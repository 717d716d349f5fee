/* PullPartials, which nodes call at the sources of totals: top.c holds what homes log of it against
 * them. */
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

const struct workload_row workload_pull_partials = {
    .method = METHOD_PULL_PARTIALS,
    .rule = { .told = told_nothing },
};
