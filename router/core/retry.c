#include "router/core/retry.h"

#include "idl/error_code.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"

static void retry_check(const struct retry_call *call)
{
    CHECK(IMPLIES(call->maybe_done, call->mutation));
    CHECK(IMPLIES(call->maybe_done, call->sent > 0));
    CHECK(IMPLIES(call->phase == RETRY_PHASE_SENT, call->target.owner != 0));
    CHECK(IMPLIES(call->phase == RETRY_PHASE_WAITING, call->due_ms <= call->deadline_ms));
}

void retry_init(struct retry_call *call, bool mutation, uint64_t deadline_ms)
{
    *call = (struct retry_call){ .phase = RETRY_PHASE_IDLE,
                                 .mutation = mutation,
                                 .deadline_ms = deadline_ms };
}

static struct retry_action give_up(struct retry_call *call, Holdfast__V1__ErrorCode code,
                                   const char *message)
{
    call->phase = RETRY_PHASE_DONE;
    return (struct retry_action){ .type = RETRY_ACTION_GIVE_UP, .code = code, .message = message };
}

/* The time is over. */
static struct retry_action end_without_outcome(struct retry_call *call)
{
    if (call->maybe_done)
        return give_up(call, CODE(OUTCOME_UNKNOWN),
                       "no answer in time; the call may or may not have been carried out");
    if (call->sent == 0)
        return give_up(call, CODE(DEADLINE_EXCEEDED),
                       "no owner could be reached before the deadline; nothing was sent");
    if (call->mutation)
        return give_up(call, CODE(UNAVAILABLE),
                       "the owner could not carry out the call in time; nothing was done");
    return give_up(call, CODE(UNAVAILABLE), "the read got no answer in time");
}

static struct retry_action pass_on(struct retry_call *call)
{
    call->phase = RETRY_PHASE_DONE;
    return (struct retry_action){ .type = RETRY_ACTION_PASS_ON };
}

/* Whom to ask: the map's owner, unless a node told us of a newer one. */
static struct route_target choose_target(const struct retry_call *call,
                                         const struct retry_event *event)
{
    if (call->hint.owner != 0 && call->hint.epoch > event->route.epoch)
        return call->hint;
    return event->route;
}

static struct retry_action send_to(struct retry_call *call, const struct retry_event *event,
                                   struct route_target target)
{
    uint64_t left_ms = call->deadline_ms - event->now_ms;
    bool cancel = call->phase == RETRY_PHASE_SENT;

    CHECK(event->now_ms < call->deadline_ms);
    if (cancel)
        call->maybe_done = call->mutation;
    call->phase = RETRY_PHASE_SENT;
    call->target = target;
    call->sent++;
    if (call->attempt_ms_max > 0 && left_ms > call->attempt_ms_max)
        left_ms = call->attempt_ms_max;
    return (struct retry_action){ .type = RETRY_ACTION_SEND,
                                  .cancel = cancel,
                                  .target = target,
                                  .budget_ms =
                                      left_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)left_ms };
}

static struct retry_action wait_a_little(struct retry_call *call, const struct retry_event *event)
{
    uint32_t spread_ms = RETRY_DELAY_MS_MAX - RETRY_DELAY_MS_MIN + 1;
    uint64_t due_ms = event->now_ms + RETRY_DELAY_MS_MIN + event->random % spread_ms;

    if (event->now_ms >= call->deadline_ms)
        return end_without_outcome(call);
    call->phase = RETRY_PHASE_WAITING;
    call->waits++;
    call->due_ms = due_ms < call->deadline_ms ? due_ms : call->deadline_ms;
    return (struct retry_action){ .type = RETRY_ACTION_WAIT, .due_ms = call->due_ms };
}

static struct retry_action send_or_wait(struct retry_call *call, const struct retry_event *event)
{
    struct route_target target = choose_target(call, event);

    if (event->now_ms >= call->deadline_ms)
        return end_without_outcome(call);
    if (target.owner == 0)
        return wait_a_little(call, event);
    return send_to(call, event, target);
}

/* After an attempt that led nowhere: at once if there is somebody newer to ask. */
static struct retry_action try_again(struct retry_call *call, const struct retry_event *event)
{
    struct route_target target = choose_target(call, event);

    if (call->once && call->maybe_done)
        return give_up(call, CODE(OUTCOME_UNKNOWN),
                       "the call may or may not have been carried out; it was not repeated, since "
                       "it could then do more");
    call->phase = RETRY_PHASE_WAITING;
    call->due_ms = call->deadline_ms;
    if (target.owner != 0 && target.epoch > call->target.epoch && event->now_ms < call->deadline_ms)
        return send_to(call, event, target);
    return wait_a_little(call, event);
}

static struct retry_action take_not_owner(struct retry_call *call, const struct retry_event *event)
{
    /* The node that sent us there was wrong: fall back on the map. */
    if (call->hint.owner == call->target.owner && call->hint.epoch == call->target.epoch)
        call->hint = (struct route_target){ 0, 0 };
    if (event->hint.owner != 0 && event->hint.epoch > call->target.epoch)
        call->hint = event->hint;
    return try_again(call, event);
}

static struct retry_action take_refusal(struct retry_call *call, const struct retry_event *event)
{
    /* Nothing was done, and it may pass: a shard that has no policy yet. */
    if (event->refusal_code == CODE(UNAVAILABLE) && !event->refusal_final)
        return try_again(call, event);
    /* That node runs an earlier program, and others perhaps a later one. */
    if (event->refusal_code == CODE(UNIMPLEMENTED) && call->any_member &&
        ++call->older < CLUSTER_MEMBERS_MAX)
        return try_again(call, event);
    if (!call->maybe_done || event->refusal_final ||
        event->refusal_code == CODE(OPERATION_ID_MISMATCH))
        return pass_on(call);
    /* This attempt was refused before the log, which says nothing of the one before it. */
    if (event->refusal_code == CODE(THROTTLED))
        return try_again(call, event);
    /* A WAIT that waited to its end: the log holds no outcome of it. A packet of ours that is still
     * on some way could only take an unused session, which frees itself (section 5). */
    if (event->refusal_code == CODE(SESSION_LOCKED))
        return pass_on(call);
    return give_up(call, CODE(OUTCOME_UNKNOWN),
                   "a repeated attempt was refused, but an earlier one may have been carried out");
}

static struct retry_action take_answer(struct retry_call *call, const struct retry_event *event)
{
    CHECK(call->phase == RETRY_PHASE_SENT);
    switch (event->status) {
    case WIRE_OK:
        return pass_on(call);
    case WIRE_REFUSED:
        return take_refusal(call, event);
    case WIRE_NOT_OWNER:
        return take_not_owner(call, event);
    case WIRE_UNAVAILABLE:
        return try_again(call, event);
    default: /* WIRE_UNKNOWN, and what we do not understand. */
        call->maybe_done = call->mutation;
        return try_again(call, event);
    }
}

static struct retry_action take_failure(struct retry_call *call, const struct retry_event *event)
{
    CHECK(call->phase == RETRY_PHASE_SENT);
    if (err_retry(event->failure) == RETRY_UNKNOWN_OUTCOME)
        call->maybe_done = call->mutation;
    return try_again(call, event);
}

/* The attempt that send_to counted never left. */
static struct retry_action take_not_sent(struct retry_call *call, const struct retry_event *event)
{
    CHECK(call->phase == RETRY_PHASE_SENT);
    CHECK(call->sent > 0);
    call->sent--;
    /* A hint may name a node we cannot reach; the map's owner is then worth a try. */
    if (call->hint.owner == call->target.owner)
        call->hint = (struct route_target){ 0, 0 };
    if (event->failure == ERR_TOO_LARGE || event->failure == ERR_INVALID)
        return call->maybe_done
                   ? end_without_outcome(call)
                   : give_up(call, CODE(INVALID_ARGUMENT), "the request is too large to be sent");
    return wait_a_little(call, event);
}

static struct retry_action take_route(struct retry_call *call, const struct retry_event *event)
{
    if (call->phase == RETRY_PHASE_WAITING)
        return send_or_wait(call, event);
    /* The owner we asked was replaced: its answer may never come. A member answers none the less.
     */
    if (call->phase == RETRY_PHASE_SENT && !call->once && !call->any_member &&
        event->route.epoch > call->target.epoch && event->route.owner != 0 &&
        event->route.owner != call->target.owner && event->now_ms < call->deadline_ms)
        return send_to(call, event, event->route);
    return (struct retry_action){ .type = RETRY_ACTION_NONE };
}

struct retry_action retry_step(struct retry_call *call, const struct retry_event *event)
{
    struct retry_action action = { .type = RETRY_ACTION_NONE };

    retry_check(call);
    CHECK(call->phase != RETRY_PHASE_DONE);
    switch (event->type) {
    case RETRY_EVENT_START:
        CHECK(call->phase == RETRY_PHASE_IDLE);
        action = send_or_wait(call, event);
        break;
    case RETRY_EVENT_NOT_SENT:
        action = take_not_sent(call, event);
        break;
    case RETRY_EVENT_ANSWERED:
        action = take_answer(call, event);
        break;
    case RETRY_EVENT_FAILED:
        action = take_failure(call, event);
        break;
    case RETRY_EVENT_WAKE:
        CHECK(call->phase == RETRY_PHASE_WAITING);
        action = send_or_wait(call, event);
        break;
    case RETRY_EVENT_ROUTE_CHANGED:
        action = take_route(call, event);
        break;
    }
    retry_check(call);
    return action;
}
