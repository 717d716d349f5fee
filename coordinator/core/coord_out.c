#include "coordinator/core/coord_out.h"

#include <stdlib.h>

void coord_out_clear(struct coord_out *out)
{
    out->txn_count = 0;
    out->call_count = 0;
    arena_reset(&out->arena);
}

void coord_out_deinit(struct coord_out *out)
{
    free(out->txns);
    free(out->calls);
    arena_deinit(&out->arena);
    *out = (struct coord_out){ 0 };
}
