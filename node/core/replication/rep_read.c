#include "node/core/replication/rep_internal.h"
#include "runtime/base/check.h"

err rep_read(struct rep *rep, struct rep_out *out)
{
    if (rep->role != REP_OWNER)
        return ERR_NOT_OWNER;
    /* An open round was sent before this request came, so it proves nothing for it. */
    rep->round_wanted = true;
    out->read_round = rep->round_started + 1;
    return ERR_OK;
}

static bool has_confirmed(const struct rep *rep, const struct rep_peer *peer)
{
    return peer->round_acked == rep->round_started;
}

void rep_round_settle(struct rep *rep, struct rep_out *out)
{
    if (rep->role != REP_OWNER || !rep->round_open || !rep_quorum(rep, true, has_confirmed))
        return;
    rep->round_open = false;
    out->rounds_done = rep->round_started;
    out->rounds_index = rep->round_index;
    out->rounds_ms = rep->round_ms;
    out->rounds_unix_ms = rep->round_unix_ms;
}

void rep_round_begin(struct rep *rep, struct rep_out *out)
{
    if (rep->role != REP_OWNER || !rep->round_wanted || rep->round_open)
        return;
    CHECK(rep->commit_index >= rep->start_index);
    rep->round_wanted = false;
    rep->round_open = true;
    rep->round_started++;
    rep->round_index = rep->commit_index;
    rep->round_ms = rep->now_ms;
    rep->round_unix_ms = rep->unix_ms;
    rep_round_settle(rep, out);
}
