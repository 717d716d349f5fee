/* What a PRUNE leaves for the owner to remember. */
#include <string.h>

#include "node/core/apply/apply_internal.h"

void applier_pruned(struct applier *applier,
                    const Holdfast__Internal__V1__PruneOperationsRequest *request,
                    const Holdfast__Internal__V1__PruneOperationsResponse *response)
{
    bool full = request->rows_max > 0 && response->removed >= request->rows_max;

    if (full || response->last.len > 0 || response->keys_left)
        applier->prune_next_ms = 0;
    applier->keys_from_ms = response->keys_from_ms;
    applier->prune_after.size = response->last.len;
    if (response->last.len > 0)
        memcpy(applier->prune_after.bytes, response->last.data, response->last.len);
}
