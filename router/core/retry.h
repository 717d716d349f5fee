/*
 * retry: what to do next about one call, until it has its one outcome or its time is over (DESIGN
 * sections 6 and 10). Pure: time, routes and random numbers come with the events; the shell sends,
 * waits and answers as told. It never changes a request: a retry is the same bytes, so the op_id
 * makes it idempotent. What is not is sent `once`.
 *
 *             START                 SEND                    ANSWERED: OK, REFUSED -> PASS_ON
 *   IDLE ------------> (owner?) ------------> SENT --------------------------------> DONE
 *                          | no      NOT_SENT  |  NOT_OWNER with a newer epoch -> SEND at once
 *                          v        <----------|  NOT_OWNER, UNAVAILABLE, UNKNOWN, lost link
 *                       WAITING <--------------'
 *                          | WAKE, ROUTE_CHANGED -> SEND         deadline -> GIVE_UP -> DONE
 *
 * What makes it safe: `maybe_done` is set as soon as a mutation may have reached a log without our
 * knowing what came of it. From then on nothing but a definite outcome of this very operation is
 * passed on; else the answer is OUTCOME_UNKNOWN, never a failure.
 */
#ifndef ROUTER_CORE_RETRY_H
#define ROUTER_CORE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/v1/error.pb-c.h"
#include "idl/limit.h"
#include "router/core/route.h"
#include "runtime/base/err.h"

#define RETRY_DELAY_MS_MIN        5u
#define RETRY_DELAY_MS_MAX        50u
#define RETRY_DEADLINE_MS_DEFAULT 10000u
#define RETRY_DEADLINE_MS_MAX     LIMIT_DEADLINE_MS

enum retry_phase { RETRY_PHASE_IDLE, RETRY_PHASE_WAITING, RETRY_PHASE_SENT, RETRY_PHASE_DONE };

struct retry_call {
    enum retry_phase phase;
    bool mutation;   /* Changes state, under an op_id or by being idempotent in itself. */
    bool maybe_done; /* A mutation that may have been carried out, unknown to us. */
    uint32_t sent;   /* Attempts handed to a link. */
    uint32_t waits;  /* Pauses made so far. */
    uint32_t older;  /* Answers of nodes that do not know the method. */
    uint64_t deadline_ms;
    bool once;               /* Never repeated once it may have been carried out: without an op_id
                              * it could do more. Set after retry_init. */
    bool any_member;         /* Another node may answer it as well. Set after retry_init. */
    uint32_t attempt_ms_max; /* Of one attempt; 0: what is left. Set after retry_init. */
    uint64_t due_ms;         /* WAITING: when WAKE is expected. */
    struct route_target target; /* Of the last SEND. */
    struct route_target hint;   /* Newest owner a node told us; owner 0: none. */
};

enum retry_event_type {
    RETRY_EVENT_START,
    RETRY_EVENT_NOT_SENT,     /* SEND could not be done; `failure` is ERR_UNAVAILABLE, ERR_FULL..
                               * (then it waits), ERR_TOO_LARGE or ERR_INVALID (it gives up). */
    RETRY_EVENT_ANSWERED,     /* `status` of a response; NOT_OWNER: `hint`, REFUSED: `refusal`. */
    RETRY_EVENT_FAILED,       /* The call ended without an answer: `failure`. */
    RETRY_EVENT_WAKE,         /* due_ms has come. */
    RETRY_EVENT_ROUTE_CHANGED /* The shard's record changed, or the link to its owner is ready. */
};

struct retry_event {
    enum retry_event_type type;
    uint64_t now_ms;
    struct route_target route; /* The shard's owner by the map, now. */
    uint32_t random;           /* Any 32 bits; spreads the pauses. */
    err failure;
    uint32_t status; /* enum wire_status. */
    struct route_target hint;
    Holdfast__V1__ErrorCode refusal_code;
    bool refusal_final;
};

enum retry_action_type {
    RETRY_ACTION_NONE,    /* Go on as you are. */
    RETRY_ACTION_SEND,    /* To action.target.owner; with `cancel`, first cancel the one sent. */
    RETRY_ACTION_WAIT,    /* Until action.due_ms, then WAKE. */
    RETRY_ACTION_PASS_ON, /* The answer just received is the outcome. */
    RETRY_ACTION_GIVE_UP  /* Answer with action.code and message. */
};

struct retry_action {
    enum retry_action_type type;
    bool cancel;
    struct route_target target;
    uint32_t budget_ms; /* SEND: what is left of the deadline; above 0. */
    uint64_t due_ms;
    Holdfast__V1__ErrorCode code;
    const char *message; /* Static. */
};

/* `deadline_ms` in the clock of the events. */
void retry_init(struct retry_call *call, bool mutation, uint64_t deadline_ms);

/* Takes one event and says what to do. After PASS_ON and GIVE_UP no event may follow (CHECK). */
struct retry_action retry_step(struct retry_call *call, const struct retry_event *event);

#endif
