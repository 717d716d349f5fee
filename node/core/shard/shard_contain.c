#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/apply/apply.h"
#include "node/core/shard/shard_internal.h"

void shard_contain(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    const struct damage *damage = applier_take_damage(shard->applier);
    Holdfast__Internal__V1__ContainPlayerRequest request =
        HOLDFAST__INTERNAL__V1__CONTAIN_PLAYER_REQUEST__INIT;
    uint64_t index;

    if (damage == NULL)
        return;
    shard->stats.rows_unreadable++;
    out->unreadable = true;
    if (!shard_serves(shard))
        return;
    if (meta_find_quarantined(shard_meta(shard), slice_from_text(damage->player)) != NULL)
        return;
    if (damage->player[0] == 0 || shard_meta(shard)->quarantine_count == QUARANTINE_MAX) {
        incident_unreadable(shard, damage, event, out);
        return;
    }
    if (shard->contain_index > applier_applied_index(shard->applier))
        return;
    request.shard = shard->number;
    request.player_id = text_lend(damage->player);
    request.reason = text_lend(damage->reason);
    buf_clear(&shard->scratch);
    owner_op_encode(METHOD_CONTAIN_PLAYER, (struct slice){ 0 }, &request.base, &shard->scratch);
    /* What has no room now, or waits for another, is found again when the player is next touched.
     */
    if (shard_propose(shard, buf_slice(&shard->scratch), event, &index, out) == ERR_OK)
        shard->contain_index = index;
}
