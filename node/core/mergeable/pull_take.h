/*
 * pull_take: the asker's side of a pull: chunks come in (pull.h).
 */
#ifndef NODE_CORE_MERGEABLE_PULL_TAKE_H
#define NODE_CORE_MERGEABLE_PULL_TAKE_H

#include "node/core/mergeable/message.h"

/* ERR_CORRUPT: malformed. ERR_NOT_FOUND: not the answer that is waited for. Other errors: as
 * merge_absorb; the pull ends, begins again later, and the clock was not joined. */
NODISCARD err merge_pull_take(struct merge_replica *replica, const struct merge_head *head,
                              struct reader *reader, uint64_t now_ms);

#endif
