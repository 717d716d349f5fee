/* ForgetPartials, which nodes call at the sources of totals: top.c looks what it took away. */
#include "tests/sim/oracle/answer.h"
#include "tests/sim/favorites/top.h"
#include "tests/sim/servers/workload.h"

const struct workload_row workload_forget_partials = {
    .method = METHOD_FORGET_PARTIALS,
    .rule = { .logged = top_forgotten, .told = told_nothing },
};
