/* RebuildCounts, which rebuild.c asks of the owners. */
#include "tests/sim/oracle/answer.h"
#include "tests/sim/favorites/rebuild.h"
#include "tests/sim/servers/workload.h"

const struct workload_row workload_rebuild_counts = {
    .method = METHOD_REBUILD_COUNTS,
    .rule = { .logged = rebuild_logged, .told = told_nothing },
};
