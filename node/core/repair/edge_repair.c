#include "node/core/repair/edge_repair.h"

#include "node/core/favorite/erasure_row.h"

err edge_repair_waits(struct apply_context *context, struct edge_repair *repair)
{
    struct erasure_row erasure;

    if (context->version < REPAIR_ERASED_APPLY_VERSION)
        return ERR_OK;
    err e = erasure_find(context->state, context->op->entity, context->need, &erasure);
    if (e == ERR_NEED)
        return e;
    if (e != ERR_OK)
        repair->wants = "a player of whom it is known whether it is erased: the row of table X "
                        "comes first";
    else if (erasure.state == ERASURE_STATE(WITHDRAWING) ||
             erasure.state == ERASURE_STATE(WITHDRAWN))
        repair->wants = "a player whose erasure cannot be undone any more: release the player, and "
                        "RestorePlayer comes first, or the purge, which removes the row";
    else if (erasure.state == ERASURE_STATE(RESTORING))
        repair->wants = "a player whose erasure is undone: it is being put back into counts; try "
                        "again in a moment";
    return ERR_OK;
}
