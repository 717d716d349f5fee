/* Define, which the coordinator calls: definition.c says what must hold. */
#include "tests/sim/oracle/answer.h"
#include "tests/sim/model/definition.h"
#include "tests/sim/favorites/favorite.h"
#include "tests/sim/servers/workload.h"

static void logged(struct change *c)
{
    definition_logged(c->sim, c->number, c->request);
    favorite_defined(c->sim, c->number, c->entry->index);
}

const struct workload_row workload_define = {
    .method = METHOD_DEFINE,
    .rule = { .logged = logged, .told = told_nothing },
};
