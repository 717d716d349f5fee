/* term: what is held only while this coordinator decides (term.c says what that is). */
#ifndef COORDINATOR_CORE_TERM_H
#define COORDINATOR_CORE_TERM_H

#include "coordinator/core/coord_state.h"

/* Lets go of all of it. */
void term_drop(struct coord *coord);
/* Work that is under way, or NULL: coord_work_left. */
const char *term_work_left(const struct coord *coord);

#endif
