/* SessionHold, which owners log: a session was used. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "tests/sim/servers/workload.h"

static void logged(struct change *c)
{
    const Holdfast__Internal__V1__SessionHoldRequest *request = (const void *)c->request;

    if (request->fence == c->player->fence)
        c->player->granted_ms = 0;
}

const struct workload_row workload_session_hold = {
    .method = METHOD_SESSION_HOLD,
    .rule = { .logged = logged },
};
