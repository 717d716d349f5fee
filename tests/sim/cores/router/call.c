/*
 * One call of the router, from its start to its one answer (router/core/retry.h). The room keeps
 * the honest account: which attempts may have been carried out without our knowing. Of that, the
 * deadline, the map and what nodes hinted follows all that a router may do next.
 */
#include <string.h>

#include "idl/error_code.h"
#include "router/core/retry.h"
#include "runtime/cluster/wire.h"
#include "tests/sim/cores/rsim.h"

#define STEPS_MAX 400u

struct account {
    bool mutation;
    bool maybe_done; /* Some attempt may have been carried out, and its outcome is unknown. */
    bool out;        /* An attempt is under way. */
    bool waiting;
    uint32_t sent;
    uint64_t now_ms, deadline_ms, wake_ms;
    struct route_target map, target;
    struct route_target hint; /* The newest owner that a node told; owner 0: none to follow. */
    bool over;
};

struct calling {
    struct rsim *sim;
    struct account account;
    struct retry_call call;
    struct retry_event event;
    struct retry_action action;
};

static bool hint_is_newer(const struct account *a)
{
    return a->hint.owner != 0 && a->hint.epoch > a->map.epoch;
}

static struct route_target best(const struct account *a)
{
    return hint_is_newer(a) ? a->hint : a->map;
}

static bool is_over(const struct account *a)
{
    return a->now_ms >= a->deadline_ms;
}

/* ---- what each action promises ---- */

static void sent(struct calling *c, struct route_target wanted)
{
    struct account *a = &c->account;
    uint64_t left_ms = a->deadline_ms - a->now_ms;

    if (c->call.attempt_ms_max > 0 && left_ms > c->call.attempt_ms_max)
        left_ms = c->call.attempt_ms_max;
    PROMISE(c->sim, c->action.type == RETRY_ACTION_SEND, "an owner is known, and nothing is sent");
    PROMISE(c->sim, !is_over(a), "sent after the deadline");
    PROMISE(c->sim,
            c->action.target.owner == wanted.owner && c->action.target.epoch == wanted.epoch,
            "sent to %llu of epoch %llu, the newest owner known is %llu of %llu",
            (unsigned long long)c->action.target.owner, (unsigned long long)c->action.target.epoch,
            (unsigned long long)wanted.owner, (unsigned long long)wanted.epoch);
    PROMISE(c->sim, c->action.budget_ms == (left_ms > UINT32_MAX ? UINT32_MAX : left_ms),
            "a budget of %u ms, %llu are left", c->action.budget_ms, (unsigned long long)left_ms);
    PROMISE(c->sim, c->action.cancel == a->out, "an attempt that is out was not cancelled");
    if (a->out)
        a->maybe_done |= a->mutation;
    c->sim->counts.calls_cancelled += a->out;
    c->sim->counts.hints_followed += hint_is_newer(a);
    a->out = true;
    a->waiting = false;
    a->target = wanted;
    a->sent++;
}

static void gave_up(struct calling *c)
{
    struct account *a = &c->account;
    Holdfast__V1__ErrorCode code = a->maybe_done ? CODE(OUTCOME_UNKNOWN)
                                   : a->sent > 0 ? CODE(UNAVAILABLE)
                                                 : CODE(DEADLINE_EXCEEDED);

    PROMISE(c->sim, c->action.type == RETRY_ACTION_GIVE_UP, "the time is over, and it goes on");
    PROMISE(c->sim, c->action.code == code, "answered %d, the honest answer is %d",
            (int)c->action.code, (int)code);
    PROMISE(c->sim, c->action.message != NULL && c->action.message[0] != 0, "no message");
    c->sim->counts.calls_unknown += code == CODE(OUTCOME_UNKNOWN);
    c->sim->counts.calls_too_late += code == CODE(DEADLINE_EXCEEDED);
    c->sim->counts.calls_undone += code == CODE(UNAVAILABLE);
    a->over = true;
}

static void waits(struct calling *c)
{
    struct account *a = &c->account;
    uint64_t due_ms = c->action.due_ms;

    a->out = false;
    if (is_over(a)) {
        gave_up(c);
        return;
    }
    PROMISE(c->sim, c->action.type == RETRY_ACTION_WAIT, "no pause before the next attempt");
    PROMISE(c->sim, due_ms > a->now_ms && due_ms <= a->deadline_ms, "the pause has no end in time");
    PROMISE(c->sim,
            due_ms == a->deadline_ms || (due_ms - a->now_ms >= 5 && due_ms - a->now_ms <= 50),
            "a pause of %llu ms", (unsigned long long)(due_ms - a->now_ms));
    PROMISE(c->sim, due_ms == a->now_ms + 5 + c->event.random % 46 || due_ms == a->deadline_ms,
            "a pause that is not spread");
    a->waiting = true;
    a->wake_ms = due_ms;
}

static void sends_or_waits(struct calling *c)
{
    const struct account *a = &c->account;

    if (is_over(a))
        gave_up(c);
    else if (best(a).owner != 0)
        sent(c, best(a));
    else
        waits(c);
}

/* After an attempt that led nowhere. */
static void tries_again(struct calling *c)
{
    struct account *a = &c->account;
    struct route_target next = best(a);

    a->out = false;
    if (!is_over(a) && next.owner != 0 && next.epoch > a->target.epoch)
        sent(c, next);
    else
        waits(c);
}

static void passed_on(struct calling *c)
{
    PROMISE(c->sim, c->action.type == RETRY_ACTION_PASS_ON, "an outcome is not passed on");
    c->sim->counts.answers_passed_on++;
    c->account.over = true;
}

/* ---- events ---- */

static void step(struct calling *c, enum retry_event_type type)
{
    c->event.type = type;
    c->event.now_ms = c->account.now_ms;
    c->event.route = c->account.map;
    c->event.random = (uint32_t)rsim_next(c->sim);
    c->action = retry_step(&c->call, &c->event);
}

static void refused(struct calling *c)
{
    static const Holdfast__V1__ErrorCode codes[] = {
        CODE(UNAVAILABLE),    CODE(OPERATION_ID_MISMATCH), CODE(THROTTLED),
        CODE(SESSION_LOCKED), CODE(INSUFFICIENT_FUNDS),    CODE(INVALID_ARGUMENT),
    };
    struct account *a = &c->account;
    Holdfast__V1__ErrorCode code = RSIM_PICK(c->sim, codes);
    bool final = rsim_chance(c->sim, 40);

    c->event.refusal_code = code;
    c->event.refusal_final = final;
    step(c, RETRY_EVENT_ANSWERED);
    c->sim->counts.refused_again += a->maybe_done && !final;
    if (code == CODE(UNAVAILABLE) && !final) {
        tries_again(c);
    } else if (final || !a->maybe_done || code == CODE(OPERATION_ID_MISMATCH) ||
               code == CODE(SESSION_LOCKED)) {
        passed_on(c);
    } else if (code == CODE(THROTTLED)) {
        tries_again(c);
    } else { /* Refused before the log: it says nothing of the attempt before. */
        PROMISE(c->sim, c->action.type == RETRY_ACTION_GIVE_UP, "a refusal is told as the outcome");
        PROMISE(c->sim, c->action.code == CODE(OUTCOME_UNKNOWN), "unknown told as %d",
                (int)c->action.code);
        a->over = true;
    }
}

static void not_owner(struct calling *c)
{
    struct account *a = &c->account;

    c->event.hint = (struct route_target){ 0, 0 };
    if (rsim_chance(c->sim, 60))
        c->event.hint = (struct route_target){ rsim_between(c->sim, 0, 4),
                                               a->target.epoch + rsim_between(c->sim, 0, 2) };
    step(c, RETRY_EVENT_ANSWERED);
    if (a->hint.owner == a->target.owner && a->hint.epoch == a->target.epoch) {
        c->sim->counts.hints_dropped += a->hint.owner != 0;
        a->hint = (struct route_target){ 0, 0 };
    }
    if (c->event.hint.owner != 0 && c->event.hint.epoch > a->target.epoch)
        a->hint = c->event.hint;
    tries_again(c);
}

static void answered(struct calling *c)
{
    static const uint32_t statuses[] = { WIRE_OK,          WIRE_REFUSED,
                                         WIRE_REFUSED,     WIRE_NOT_OWNER,
                                         WIRE_NOT_OWNER,   WIRE_UNKNOWN,
                                         WIRE_UNAVAILABLE, 77 };

    c->event.status = RSIM_PICK(c->sim, statuses);
    switch (c->event.status) {
    case WIRE_OK:
        step(c, RETRY_EVENT_ANSWERED);
        passed_on(c);
        break;
    case WIRE_REFUSED:
        refused(c);
        break;
    case WIRE_NOT_OWNER:
        not_owner(c);
        break;
    case WIRE_UNAVAILABLE:
        step(c, RETRY_EVENT_ANSWERED);
        tries_again(c);
        break;
    default:
        step(c, RETRY_EVENT_ANSWERED);
        c->account.maybe_done |= c->account.mutation;
        tries_again(c);
    }
}

static void failed(struct calling *c)
{
    static const err failures[] = { ERR_TIMEOUT, ERR_DISCONNECTED, ERR_CANCELLED,
                                    ERR_CLOSED,  ERR_FULL,         ERR_UNAVAILABLE };

    c->event.failure = RSIM_PICK(c->sim, failures);
    step(c, RETRY_EVENT_FAILED);
    if (c->event.failure == ERR_TIMEOUT || c->event.failure == ERR_DISCONNECTED ||
        c->event.failure == ERR_CANCELLED)
        c->account.maybe_done |= c->account.mutation;
    tries_again(c);
}

/* At once after SEND, as a shell says it: the attempt never left. */
static void not_sent(struct calling *c)
{
    static const err failures[] = { ERR_UNAVAILABLE, ERR_FULL, ERR_TOO_LARGE, ERR_INVALID };
    struct account *a = &c->account;

    c->event.failure = RSIM_PICK(c->sim, failures);
    step(c, RETRY_EVENT_NOT_SENT);
    a->sent--;
    if (a->hint.owner == a->target.owner)
        a->hint = (struct route_target){ 0, 0 };
    if (c->event.failure != ERR_TOO_LARGE && c->event.failure != ERR_INVALID) {
        waits(c);
        return;
    }
    c->sim->counts.calls_too_large++;
    PROMISE(c->sim, c->action.type == RETRY_ACTION_GIVE_UP, "what cannot be sent is tried again");
    PROMISE(c->sim,
            c->action.code == (a->maybe_done ? CODE(OUTCOME_UNKNOWN) : CODE(INVALID_ARGUMENT)),
            "what cannot be sent is told as %d", (int)c->action.code);
    a->over = true;
}

static void route_changed(struct calling *c)
{
    struct account *a = &c->account;
    bool others;

    a->map.epoch += rsim_between(c->sim, 0, 2);
    a->map.owner = rsim_between(c->sim, 0, 4);
    others = a->map.owner != 0 && a->map.owner != a->target.owner && a->map.epoch > a->target.epoch;
    step(c, RETRY_EVENT_ROUTE_CHANGED);
    if (a->waiting) {
        a->waiting = false;
        sends_or_waits(c);
    } else if (a->out && others && !is_over(a)) {
        sent(c, a->map);
    } else {
        PROMISE(c->sim, c->action.type == RETRY_ACTION_NONE, "a change elsewhere disturbs a call");
    }
}

/* A shell's clock may be late, or just at the deadline. */
static void time_passes(struct calling *c)
{
    struct account *a = &c->account;
    uint64_t left_ms = a->now_ms < a->deadline_ms ? a->deadline_ms - a->now_ms : 0;

    if (rsim_chance(c->sim, 2))
        a->now_ms += left_ms;
    else if (rsim_chance(c->sim, 60))
        a->now_ms += rsim_between(c->sim, 0, 30);
}

static void one_event(struct calling *c)
{
    struct account *a = &c->account;

    time_passes(c);
    if (rsim_chance(c->sim, 25)) {
        route_changed(c);
    } else if (a->waiting) {
        if (a->now_ms < a->wake_ms)
            a->now_ms = a->wake_ms;
        step(c, RETRY_EVENT_WAKE);
        sends_or_waits(c);
    } else if (rsim_chance(c->sim, 60)) {
        answered(c);
    } else {
        failed(c);
    }
    while (!a->over && c->action.type == RETRY_ACTION_SEND && rsim_chance(c->sim, 15))
        not_sent(c);
}

static void one_call(struct rsim *sim)
{
    struct calling c = { .sim = sim };
    struct account *a = &c.account;
    uint32_t steps = 0;

    a->mutation = rsim_chance(sim, 70);
    a->now_ms = rsim_between(sim, 0, 1000000);
    a->deadline_ms = a->now_ms + rsim_between(sim, 0, rsim_chance(sim, 20) ? 60 : 1500);
    if (rsim_chance(sim, 2))
        a->deadline_ms = a->now_ms + UINT32_MAX - 1 + rsim_between(sim, 0, 2);
    a->map = (struct route_target){ rsim_between(sim, 0, 4), rsim_between(sim, 1, 3) };
    retry_init(&c.call, a->mutation, a->deadline_ms);
    if (rsim_chance(sim, 30))
        c.call.attempt_ms_max = (uint32_t)rsim_between(sim, 1, 900);
    step(&c, RETRY_EVENT_START);
    sends_or_waits(&c);
    while (!a->over && c.action.type == RETRY_ACTION_SEND && rsim_chance(sim, 15))
        not_sent(&c);
    while (!a->over && steps++ < STEPS_MAX)
        one_event(&c);
    PROMISE(sim, a->over || a->deadline_ms - a->now_ms > 60000, "a call has no end");
    PROMISE(sim, !a->over || c.call.phase == RETRY_PHASE_DONE, "an answered call is not done");
}

void room_call(struct rsim *sim)
{
    for (uint32_t i = 0; i < 24; i++)
        one_call(sim);
}
