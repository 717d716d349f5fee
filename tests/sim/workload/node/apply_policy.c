/* ApplyPolicy, which the coordinator calls. */
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

static void logged(struct change *c)
{
    c->sim->counts.policies++;
    policy_logged(c);
}

const struct workload_row workload_apply_policy = {
    .method = METHOD_APPLY_POLICY,
    .rule = { .logged = logged, .told = told_dot },
};
