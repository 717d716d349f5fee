/* CheckCounts, which a node asks the shards that it owns: what it finds while all else goes wrong
 * is held against the log by rebuild_counts.c, which computes the same. */
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

const struct workload_row workload_check_counts = {
    .method = METHOD_CHECK_COUNTS,
    .rule = { .told = told_nothing },
};
