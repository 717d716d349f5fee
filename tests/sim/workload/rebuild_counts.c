/* RebuildCounts, which rebuild.c asks of the owners. */
#include "tests/sim/answer.h"
#include "tests/sim/rebuild.h"
#include "tests/sim/workload.h"

const struct workload_row workload_rebuild_counts = {
    .method = METHOD_REBUILD_COUNTS,
    .rule = { .logged = rebuild_logged, .told = told_nothing },
};
