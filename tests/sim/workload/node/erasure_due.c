/* ErasureDue, which owners log: the next rows of an erased player. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "tests/sim/model/erasure.h"
#include "tests/sim/servers/workload.h"

static void logged(struct change *c)
{
    const Holdfast__Internal__V1__ErasureDueRequest *request = (const void *)c->request;

    erasure_stepped(c, request->number, request->rows_max);
}

const struct workload_row workload_erasure_due = {
    .method = METHOD_ERASURE_DUE,
    .rule = { .logged = logged },
};
