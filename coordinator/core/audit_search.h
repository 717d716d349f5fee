/* audit_search: who holds what is too much, and that they are held back. */
#ifndef COORDINATOR_CORE_AUDIT_SEARCH_H
#define COORDINATOR_CORE_AUDIT_SEARCH_H

#include "coordinator/core/coord_event.h"
#include "coordinator/core/coord_out.h"
#include "coordinator/core/coord_state.h"
#include "coordinator/core/delivery.h"

/* A cut that does not come to zero, whenever it was counted. `hash`: of the imbalance. */
void search_imbalance(struct coord *coord, const struct audit_sum *sum, uint64_t hash);
/* There is none any more. */
void search_balanced(struct coord *coord);
void search_run(struct coord *coord, struct coord_out *out);
void search_page_done(struct coord *coord, const struct open_call *call,
                      const struct coord_event *event);
void search_contained(struct coord *coord, const struct open_call *call,
                      const struct coord_event *event);
void search_drop(struct coord *coord);
void search_free(struct coord *coord);

#endif
