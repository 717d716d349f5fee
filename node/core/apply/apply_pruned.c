/* What a PRUNE, and other work of the owner's, leaves for the owner to remember. */
#include <string.h>

#include "idl/method.h"
#include "node/core/apply/apply_internal.h"

static void note_pruned(struct applier *applier,
                        const Holdfast__Internal__V1__PruneOperationsRequest *request,
                        const Holdfast__Internal__V1__PruneOperationsResponse *response)
{
    bool full = request->rows_max > 0 && response->removed >= request->rows_max;

    if (full || response->last.len > 0 || response->keys_left)
        applier->prune_next_ms = 0;
    applier->prune_in_vain =
        request->rows_max > 0 && response->removed == 0 && response->last.len == 0;
    applier->keys_from_ms = response->keys_from_ms;
    applier->prune_after.size = response->last.len;
    if (response->last.len > 0)
        memcpy(applier->prune_after.bytes, response->last.data, response->last.len);
}

void applier_note_upkeep(struct applier *applier, const struct op *op,
                         const ProtobufCMessage *request, const ProtobufCMessage *response)
{
    if (op->method == METHOD_FINISH_RESTORE) {
        applier->keys_from_ms = 0; /* Rows have come that are older than all before. */
        applier->sweep_next_ms = 0;
    }
    if (op->method == METHOD_TRIM_EVENTS &&
        ((const Holdfast__Internal__V1__TrimEventsResponse *)(const void *)response)->more)
        applier->trim_next_ms = 0;
    if (op->method == METHOD_PRUNE_OPERATIONS)
        note_pruned(applier, (const void *)request, (const void *)response);
}
