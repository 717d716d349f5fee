/* To whom this replica is bound, and what it gives up for another promise. */
#include <stdlib.h>

#include "node/core/replication/rep_internal.h"
#include "runtime/base/check.h"

/* DESIGN section 4, Promotion: from which roles one comes to each; bits. A replica that leads may
 * have to follow at any time. */
#define FROM(role) (1u << REP_##role)
static const uint8_t comes_from[] = {
    [REP_FOLLOWER] = FROM(SEALING) | FROM(ADOPTING) | FROM(STARTING) | FROM(OWNER),
    [REP_SEALING] = FROM(FOLLOWER),
    [REP_ADOPTING] = FROM(SEALING),
    [REP_STARTING] = FROM(SEALING) | FROM(ADOPTING),
    [REP_OWNER] = FROM(STARTING),
};
#undef FROM

void rep_role_set(struct rep *rep, enum rep_role role, struct rep_out *out)
{
    CHECK(role < ARRAY_SIZE(comes_from)); /* No event damages a log: a start finds it so, */
    CHECK((comes_from[role] >> rep->role & 1u) != 0); /* and no event mends it. */
    rep->role = role;
    rep->outgrown_ms = 0;
    rep->rows_wanting = false;
    out->role_changed = true;
}

struct promise rep_promise_of(const struct rep_message *message)
{
    return (struct promise){ message->config, message->epoch, message->owner };
}

/* Stricter than (config, epoch) in order: neither may fall, so epochs only rise in a log. */
enum rep_order rep_promise_order(const struct rep *rep, const struct promise *asked)
{
    const struct promise *p = &rep->promise;

    if (asked->epoch < p->epoch || asked->config < p->config)
        return REP_LOWER;
    if (asked->epoch == p->epoch && asked->owner != p->owner)
        return REP_LOWER;
    if (asked->epoch == p->epoch && asked->config == p->config)
        return REP_SAME;
    return REP_GREATER;
}

/* A removed replica's refusal tells an epoch without its owner, who may be named only then. */
void rep_know(struct rep *rep, const struct promise *promise)
{
    bool names = promise->epoch == rep->known.epoch && rep->known.owner == 0;

    if (promise->epoch <= rep->known.epoch && !(names && promise->owner != 0))
        return;
    rep->known = *promise;
    rep->owner_heard_ms = rep->now_ms;
}

void rep_step_down(struct rep *rep, struct rep_out *out)
{
    if (rep->role == REP_FOLLOWER || rep->role == REP_DAMAGED)
        return;
    rep_log_write(rep, out); /* What was proposed stays in the log until it is overruled. */
    rep->members_version = rep_apply_version_min(rep);
    rep->members_config = rep->membership.config;
    free(rep->peers);
    rep->peers = NULL;
    free(rep->told);
    rep->told = NULL;
    rep->peer_count = 0;
    rep->source = NULL;
    rep->verified_index = 0;
    rep->told_index = 0;
    rep->round_open = false;
    rep->round_wanted = false;
    rep_role_set(rep, REP_FOLLOWER, out);
}

void rep_promise(struct rep *rep, const struct promise *promise, struct rep_out *out)
{
    CHECK(rep_promise_order(rep, promise) == REP_GREATER);
    rep_step_down(rep, out);
    rep->promise = *promise;
    rep_write_promise(rep, out);
    rep->promise_ticket = rep->ticket_step;
    rep->verified_index = 0;
    rep->told_index = 0;
    rep->told_round = 0;
    rep->owner_unix_ms = 0;
    rep->refused_index = 0;
    rep->owner_heard_ms = rep->now_ms;
    rep->seal_answer.due = false;
    rep->fetch_answer.due = false;
    rep->snapshot_source = 0;
    rep->resumes = false;
    rep_know(rep, promise);
}

void rep_refused(struct rep *rep, const struct promise *theirs, struct rep_out *out)
{
    const struct promise *mine = &rep->promise;

    if (theirs->epoch == mine->epoch && theirs->owner == mine->owner)
        return;
    if (theirs->epoch < mine->epoch && theirs->config <= mine->config)
        return; /* It has promised more since: a late message. */
    rep_know(rep, theirs);
    rep_step_down(rep, out);
}

bool rep_is_tombstone(const struct rep *rep)
{
    return rep->promise.epoch > 0 && rep->promise.owner == 0;
}

bool rep_is_empty_tombstone(const struct rep *rep)
{
    return rep_is_tombstone(rep) && rep->window.last_index == 0;
}
