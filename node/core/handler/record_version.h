/*
 * record_version: versions of records of a shard (consumers, metadata of targets): positions in its
 * log, since a record that was removed and made again must not have a version of before.
 */
#ifndef NODE_CORE_HANDLER_RECORD_VERSION_H
#define NODE_CORE_HANDLER_RECORD_VERSION_H

#include "node/core/handler/handler.h"

/* Of a record that this entry writes: above all that the shard gave out, also of what was removed
 * since, and also before it was backed up; and above `stands`, which the record has (0: none), of a
 * backup from a longer log. */
uint64_t record_version_next(const struct apply_context *context, uint64_t stands);

#endif
