/* recount_totals: the steps of RECOUNT_TOTALS and RECOUNT_PLACES, for recount.h. */
#ifndef NODE_CORE_REPAIR_RECOUNT_TOTALS_H
#define NODE_CORE_REPAIR_RECOUNT_TOTALS_H

#include "node/core/repair/recount_page.h"

/* As recount_step. */
NODISCARD err recount_totals_step(struct recount *recount);

#endif
