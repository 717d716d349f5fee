/* PruneOperations, which owners log: what is old enough is forgotten. */
#include "tests/sim/servers/workload.h"

static void logged(struct change *c)
{
    model_keys_pruned(c);
}

const struct workload_row workload_prune_operations = {
    .method = METHOD_PRUNE_OPERATIONS,
    .rule = { .logged = logged },
};
