/* MemberState, which the coordinator calls while members change. */
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

const struct workload_row workload_member_state = {
    .method = METHOD_MEMBER_STATE,
    .rule = { .told = told_nothing },
};
