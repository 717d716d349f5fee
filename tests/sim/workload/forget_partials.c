/* ForgetPartials, which nodes call at the sources of totals: top.c looks what it took away. */
#include "tests/sim/answer.h"
#include "tests/sim/top.h"
#include "tests/sim/workload.h"

const struct workload_row workload_forget_partials = {
    .method = METHOD_FORGET_PARTIALS,
    .rule = { .logged = top_forgotten, .told = told_nothing },
};
