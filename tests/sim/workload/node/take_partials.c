/* TakePartials, which a node calls at the homes that it owns. */
#include "tests/sim/oracle/answer.h"
#include "tests/sim/favorites/top.h"
#include "tests/sim/servers/workload.h"

const struct workload_row workload_take_partials = {
    .method = METHOD_TAKE_PARTIALS,
    .rule = { .logged = top_logged, .told = told_nothing },
};
