#include "tests/sim/cores/node/collections.h"

void hall_limits(struct hall *h)
{
    (void)h;
}
