/* BackupService.GetBackupState: whether a shard has rows yet, and by which rules it applies. */
#include <string.h>

#include "holdfast/v1/backup.pb-c.h"
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

/* op->player is the shard here. */
static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__GetBackupStateRequest request = HOLDFAST__V1__GET_BACKUP_STATE_REQUEST__INIT;

    (void)sim;
    (void)parts;
    request.shard = op->player;
    request_pack(&request.base, out);
}

static void told(const struct told *t)
{
    const Holdfast__V1__GetBackupStateResponse *response = (const void *)t->response;
    bool used = false;

    for (uint32_t i = 0; i < t->sim->player_count; i++) {
        const struct player_model *player = &t->sim->oracle->players[i];
        const struct moment *moment =
            player->shard == t->call->shard ? model_at(player, t->call->must_see) : NULL;
        used |= moment != NULL && moment->version > 0;
    }
    if (used && strcmp(response->state, "used") != 0)
        told_fail(t, "a shard with players counts as empty", 0, 1);
    if (response->apply_version > applier_meta(t->shard->applier)->apply_version)
        told_fail(t, "the apply version", response->apply_version,
                  applier_meta(t->shard->applier)->apply_version);
    if (response->restore_parts != 0 || response->restore_id.len != 0)
        told_fail(t, "a restore that never was", response->restore_parts, 0);
}

const struct workload_row workload_get_backup_state = {
    .method = METHOD_GET_BACKUP_STATE,
    .encode = encode,
    .rule = { .told = told },
};
