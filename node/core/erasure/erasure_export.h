/*
 * erasure_export: everything that a shard keeps of a player in favourites and counters, page by
 * page (docs/erasure.md): edges, those that are gone and remembered with them; additions; how often
 * the player changed a collection lately. Also of a player that is erased and not purged yet.
 */
#ifndef NODE_CORE_ERASURE_ERASURE_EXPORT_H
#define NODE_CORE_ERASURE_ERASURE_EXPORT_H

#include "holdfast/v1/erasure.pb-c.h"
#include "node/core/handler/handler.h"

#define EXPORT_PAGE_MAX     200u
#define EXPORT_PAGE_DEFAULT 100u

/* A page of it; `next_cursor` is a place. ERR_NEED; ERR_INVALID, ERR_CONFLICT: refused, or a row
 * cannot be read. */
NODISCARD err erasure_export(struct read_context *context,
                             const Holdfast__V1__ExportPlayerRequest *request,
                             Holdfast__V1__ExportPlayerResponse *response);

#endif
