#include "node/core/replication/rep.h"

#include <stdlib.h>

#include "node/core/replication/rep_internal.h"
#include "runtime/base/check.h"

struct rep_limits rep_limits_default(void)
{
#define REP_DEFAULT(name, def, min, max, doc) .name = (def),
    return (struct rep_limits){ REP_LIMITS(REP_DEFAULT) };
#undef REP_DEFAULT
}

static void limits_check(const struct rep_limits *limits)
{
#define REP_RANGE(name, def, min, max, doc) CHECK(limits->name >= (min) && limits->name <= (max));
    REP_LIMITS(REP_RANGE)
#undef REP_RANGE
}

struct rep *rep_new(uint32_t shard, uint64_t self, const struct rep_limits *limits,
                    const struct rep_image *image)
{
    struct rep *rep = mem_zalloc(sizeof *rep);

    CHECK(self != 0);
    limits_check(limits);
    rep->shard = shard;
    rep->self = self;
    rep->limits = *limits;
    rep->votes = image->votes && !image->damaged;
    rep->role = image->damaged ? REP_DAMAGED : REP_FOLLOWER;
    rep->promise = image->promise;
    rep->resumes = image->resumes;
    rep->quarantined = image->quarantined;
    rep->membership = image->membership;
    rep->generation = image->generation;
    rep->apply_version_max = image->apply_version_max;
    rep->apply_version_floor = image->apply_version_floor;
    rep_log_init(rep, image);
    rep->dropped = image->dropped;
    rep->differs = image->differs;
    rep->quarantined |= image->differs;
    rep->known = rep->promise;
    return rep;
}

void rep_free(struct rep *rep)
{
    if (rep == NULL)
        return;
    rep_log_deinit(rep);
    free(rep->peers);
    free(rep->told);
    free(rep->outcomes);
    free(rep);
}

/* Once a condition per line, before and after every step. */
static void rep_check(const struct rep *rep)
{
    struct dot last = rep_log_last_dot(rep);

    rep_log_check(rep);
    CHECK(rep->promise.epoch >= last.epoch);
    CHECK(rep->known.epoch >= rep->promise.epoch);
    CHECK(rep->ticket_persisted <= rep->ticket_last);
    CHECK(rep->promise_ticket <= rep->ticket_last);
    CHECK(IMPLIES(rep->differs, rep->quarantined));
    CHECK(rep_leads(rep) == (rep->peers != NULL));
    CHECK(IMPLIES(rep->told != NULL, rep_leads(rep)));
    CHECK(IMPLIES(rep_leads(rep), rep->promise.owner == rep->self));
    CHECK(IMPLIES(rep_leads(rep), rep->known.epoch == rep->promise.epoch));
    CHECK(IMPLIES(rep_leads(rep), rep->votes));
    CHECK(IMPLIES(rep_leads(rep), !rep->quarantined));
    CHECK(IMPLIES(rep_leads(rep), !rep->dropped));
    CHECK(IMPLIES(rep->source != NULL, rep->role == REP_ADOPTING));
    CHECK(IMPLIES(rep->round_open, rep->role == REP_OWNER));
    if (rep->role != REP_STARTING && rep->role != REP_OWNER)
        return;
    CHECK(last.epoch == rep->promise.epoch);
    CHECK(last.owner == rep->self);
    CHECK(rep->ticket_persisted >= rep->promise_ticket);
    CHECK(rep->window.last_index - rep->start_index + 1 == last.counter);
    CHECK((rep->role == REP_OWNER) == (rep->commit_index >= rep->start_index));
}

static void receive(struct rep *rep, uint64_t from, const struct rep_message *m,
                    struct rep_out *out)
{
    if (m->shard != rep->shard)
        return;
    switch (m->type) {
    case REP_MSG_APPEND:
        rep_append(rep, from, m, out);
        break;
    case REP_MSG_APPEND_ACK:
        rep_append_ack(rep, from, m, out);
        break;
    case REP_MSG_SEAL:
        rep_seal(rep, from, m, out);
        break;
    case REP_MSG_SEAL_ACK:
        rep_seal_ack(rep, from, m, out);
        break;
    case REP_MSG_FETCH:
        rep_fetch(rep, from, m, out);
        break;
    case REP_MSG_FETCH_ACK:
        if (rep_fetch_ack(rep, from, m, out))
            rep_promote(rep, out);
        break;
    case REP_MSG_SNAPSHOT_PULL:
    case REP_MSG_SNAPSHOT_PART:
        break;
    }
}

static void persisted(struct rep *rep, uint64_t ticket, struct rep_out *out)
{
    rep_log_persisted(rep, ticket);
    rep_seal_settle(rep, out);
    switch (rep->role) {
    case REP_FOLLOWER:
    case REP_DAMAGED:
        rep_follower_settle(rep, out);
        break;
    case REP_ADOPTING:
        rep_follower_commit(rep, out);
        rep_promote(rep, out);
        break;
    case REP_SEALING:
        rep_promote(rep, out);
        break;
    case REP_STARTING:
    case REP_OWNER:
        rep_owner_commit(rep, out);
        break;
    }
}

static void flush(struct rep *rep, struct rep_out *out)
{
    rep_log_write(rep, out);
    rep_round_begin(rep, out);
    rep_pump(rep, out);
}

static void tick(struct rep *rep, struct rep_out *out)
{
    flush(rep, out);
    if (rep->role == REP_SEALING || rep->role == REP_ADOPTING)
        rep_promote_tick(rep, out);
    if (rep->role == REP_STARTING || rep->role == REP_OWNER)
        rep_owner_tick(rep, out);
}

static err dispatch(struct rep *rep, const struct rep_event *event, struct rep_out *out)
{
    switch (event->type) {
    case REP_RECORD:
        rep_record(rep, event->record, out);
        break;
    case REP_RECEIVE:
        receive(rep, event->from, event->message, out);
        break;
    case REP_PERSISTED:
        persisted(rep, event->ticket, out);
        break;
    case REP_LOG_READ:
        rep_log_read(rep, event, out);
        break;
    case REP_PROPOSE:
        return rep_propose(rep, event, out);
    case REP_FLUSH:
        flush(rep, out);
        break;
    case REP_READ:
        return rep_read(rep, out);
    case REP_APPLIED:
        rep_log_applied(rep, event->index);
        rep_outcome_note(rep, event->index, event->outcome, out);
        break;
    case REP_TICK:
        tick(rep, out);
        break;
    }
    return ERR_OK;
}

err rep_step(struct rep *rep, const struct rep_event *event, struct rep_out *out)
{
    if (rep->now_ms == 0)
        rep->owner_heard_ms = event->now_ms; /* The first step: its silence begins here. */
    if (event->now_ms > rep->now_ms)
        rep->now_ms = event->now_ms;
    if (rep->owner_heard_ms == 0) /* Just started: silence counts from here. */
        rep->owner_heard_ms = event->now_ms;
    rep->unix_ms = event->unix_ms;
    rep->ticket_step = 0;
    err e = dispatch(rep, event, out);
    rep_check(rep);
    return e;
}
