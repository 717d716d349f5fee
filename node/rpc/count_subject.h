/* count_subject: what counts and top lists are of: a collection's edges, or a counter. */
#ifndef NODE_RPC_COUNT_SUBJECT_H
#define NODE_RPC_COUNT_SUBJECT_H

#include "node/core/handler/handler.h"

/* The number of the definition of that name. Refuses with NOT_FOUND, ERR_CONFLICT. ERR_NEED. */
NODISCARD err count_subject_read(struct read_context *context, const char *name, bool is_counter,
                                 uint64_t *ret_number);

#endif
