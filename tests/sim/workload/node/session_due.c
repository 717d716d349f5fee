/* SessionDue, which owners log: a steal's time has come, or a grant that was never used ends. What
 * a steal does then: model_session_decided(). */
#include <inttypes.h>

#include "tests/sim/servers/workload.h"

#define CLOCKS_APART_MS 5000u

/* Only what was granted SESSION_UNUSED_MS ago, and never used, frees itself. What an owner logged
 * for a renewal stands before its later entries; what it had not on a majority when it died is
 * lost, however often it answered, and the next owner knows of no use (a write by the token is
 * refused). */
static void check_unused(const struct change *c)
{
    const struct player_model *player = c->player;

    bool renewed = player->renewals >= RENEWALS_SURE &&
                   player->renewed_epoch == c->entry->dot.epoch &&
                   player->renewed_ms + CLOCKS_APART_MS < c->entry->owner_ms;
    if (player->granted_ms == 0 || renewed)
        sim_fail(c->sim, c->number, "entry %" PRIu64 " frees a session that was used",
                 c->entry->index);
    else if (player->granted_ms + SESSION_UNUSED_MS > c->entry->owner_ms)
        sim_fail(c->sim, c->number, "entry %" PRIu64 " frees a session too early", c->entry->index);
}

static void logged(struct change *c)
{
    if (!c->outcome->session_freed)
        return;
    check_unused(c);
    c->sim->counts.grants_freed++;
    c->player->free_ms = c->sim->now_ms;
    model_session_ends(c->player, c->entry->index);
}

const struct workload_row workload_session_due = {
    .method = METHOD_SESSION_DUE,
    .rule = { .logged = logged },
};
