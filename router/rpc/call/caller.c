#include "router/rpc/call/caller.h"

#include <stdlib.h>

#include "idl/error_tell.h"
#include "idl/method.h"
#include "router/core/refusal.h"
#include "router/rpc/call/said_refusal.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"

struct caller {
    struct loop *loop;
    const struct shard_map *map;
    struct node_port port;
    uint64_t random;
    struct caller_stats stats;
    struct arena arena;                             /* For the detail of the result being told. */
    struct caller_place shards[CLUSTER_SHARDS_MAX]; /* Heads of circular lists, oldest first. */
};

static void list_init(struct caller_place *head)
{
    head->next = head;
    head->previous = head;
}

static void list_remove(struct caller_place *place)
{
    place->previous->next = place->next;
    place->next->previous = place->previous;
}

static void list_append(struct caller_place *head, struct caller_place *place)
{
    place->next = head;
    place->previous = head->previous;
    head->previous->next = place;
    head->previous = place;
}

static struct caller_call *call_at(struct caller_place *place)
{
    return CONTAINER_OF(place, struct caller_call, place);
}

struct caller *caller_new(const struct caller_options *options)
{
    struct caller *caller = mem_zalloc(sizeof *caller);

    caller->loop = options->loop;
    caller->map = options->map;
    caller->port = options->port;
    caller->random = options->seed | 1;
    for (size_t i = 0; i < CLUSTER_SHARDS_MAX; i++)
        list_init(&caller->shards[i]);
    return caller;
}

void caller_free(struct caller *caller)
{
    if (caller == NULL)
        return;
    for (size_t i = 0; i < CLUSTER_SHARDS_MAX; i++) {
        while (caller->shards[i].next != &caller->shards[i])
            caller_cancel(call_at(caller->shards[i].next));
    }
    arena_deinit(&caller->arena);
    free(caller);
}

/* xorshift64* (Vigna 2016): spreads pauses, nothing more. */
static uint32_t next_random(struct caller *caller)
{
    caller->random ^= caller->random >> 12;
    caller->random ^= caller->random << 25;
    caller->random ^= caller->random >> 27;
    return (uint32_t)(caller->random * 2685821657736338717u >> 32);
}

static void end(struct caller_call *call, const struct caller_result *result)
{
    struct caller *caller = call->caller;

    CHECK(call->retry.phase == RETRY_PHASE_DONE);
    CHECK(call->sent == 0);
    loop_timer_stop(&call->timer);
    list_remove(&call->place);
    caller->stats.open--;
    if (result->detail != NULL &&
        result->detail->code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN)
        caller->stats.unknown++;
    call->done(call, result);
}

static void end_given_up(struct caller_call *call, const struct retry_action *action)
{
    Holdfast__V1__ErrorDetail detail;

    holdfast__v1__error_detail__init(&detail);
    detail.code = action->code;
    detail.message = text_lend(action->message); /* Read only. */
    end(call, &(struct caller_result){ .detail = &detail });
}

static void response_arrived(void *user, err result, const struct frame *response);

/* What is sent while its request is being taken went at the request's own time. */
static void note_attempt(struct caller_call *call, bool at_once)
{
    struct caller_trail *trail = &call->trail;
    uint64_t since_ns = at_once ? 0 : loop_clock_ns() - call->started_ns;
    uint32_t number = call->retry.sent - 1;

    trail->sent_ns = since_ns;
    trail->number = call->sent;
    trail->node_us = 0;
    trail->answered = false;
    if (number == 0)
        trail->first_ns = since_ns;
    if (number < CALLER_ATTEMPTS_TOLD) {
        trail->nodes[number] = call->retry.target.owner;
        trail->at_ms[number] = (uint32_t)(since_ns / 1000000u);
    }
}

/* For a node that may run an earlier program. */
static struct slice body_for(const struct caller_call *call, uint64_t node)
{
    const struct node_port *port = &call->caller->port;

    if (call->called.size == 0 ||
        (port->takes_callers != NULL && !port->takes_callers(port->context, node)))
        return call->body;
    return call->called;
}

static err send_call(struct caller_call *call, const struct retry_action *action)
{
    struct caller *caller = call->caller;
    const struct call_request request = {
        .method = call->method,
        .priority = call->priority,
        .asker = call->asker,
        .deadline_ms =
            action->budget_ms < CALL_DEADLINE_MS_MAX ? action->budget_ms : CALL_DEADLINE_MS_MAX,
        .trace = call->trace,
        .body = body_for(call, action->target.owner),
        .done = response_arrived,
        .user = call,
    };

    if (action->cancel && call->sent != 0)
        caller->port.cancel(caller->port.context, call->sent);
    call->sent = 0;
    call->turn++;
    return caller->port.start(caller->port.context, action->target.owner, &request, &call->sent);
}

static void fill_event(struct caller_call *call, struct retry_event *event)
{
    event->now_ms = loop_now_ms(call->caller->loop);
    event->route =
        call->at_members
            ? route_find_member(call->caller->map, call->shard,
                                &(struct route_reach){ call->caller->port.reaches,
                                                       call->caller->port.context, call->turn })
            : route_find_target(call->caller->map, call->shard);
    event->random = next_random(call->caller);
}

/* Carries out what the core says, until the call is sent, waits or has ended. Returns the action
 * that ended it, or one of type RETRY_ACTION_NONE. */
static struct retry_action drive(struct caller_call *call, struct retry_event *event)
{
    struct caller *caller = call->caller;
    bool at_once = event->type == RETRY_EVENT_START && call->at_once;
    struct retry_action action;

    fill_event(call, event);
    action = retry_step(&call->retry, event);
    while (action.type == RETRY_ACTION_SEND) {
        struct retry_event not_sent = { .type = RETRY_EVENT_NOT_SENT };

        loop_timer_stop(&call->timer);
        not_sent.failure = send_call(call, &action);
        if (not_sent.failure == ERR_OK) {
            caller->stats.attempts++;
            note_attempt(call, at_once);
            return (struct retry_action){ .type = RETRY_ACTION_NONE };
        }
        call->sent = 0;
        fill_event(call, &not_sent);
        action = retry_step(&call->retry, &not_sent);
    }
    if (action.type == RETRY_ACTION_WAIT) {
        caller->stats.waits++;
        loop_timer_start(&call->timer, action.due_ms - loop_now_ms(caller->loop));
        return (struct retry_action){ .type = RETRY_ACTION_NONE };
    }
    return action;
}

static void drive_and_end(struct caller_call *call, struct retry_event *event)
{
    struct retry_action action = drive(call, event);

    if (action.type == RETRY_ACTION_GIVE_UP)
        end_given_up(call, &action);
}

static void timer_fired(void *user)
{
    struct caller_call *call = user;

    if (call->retry.phase == RETRY_PHASE_DONE)
        end_given_up(call, &call->ending);
    else
        drive_and_end(call, &(struct retry_event){ .type = RETRY_EVENT_WAKE });
}

static void take_refusal(struct caller_call *call, const struct frame *response)
{
    struct caller *caller = call->caller;
    struct retry_event event = { .type = RETRY_EVENT_ANSWERED, .status = WIRE_REFUSED };
    const Holdfast__Internal__V1__Refusal *refusal;
    struct retry_action action;

    arena_reset(&caller->arena);
    refusal = said_refusal(response->body, &caller->arena);
    if (refusal != NULL) {
        event.refusal_code = refusal->code;
        event.refusal_final = refusal->final;
    } else {
        event.status = WIRE_UNKNOWN;
    }
    action = drive(call, &event);
    if (action.type == RETRY_ACTION_GIVE_UP)
        end_given_up(call, &action);
    if (action.type != RETRY_ACTION_PASS_ON)
        return;
    CHECK(refusal != NULL);
    const Holdfast__V1__ErrorDetail detail = error_tell(refusal, &caller->arena);
    end(call, &(struct caller_result){ .detail = &detail });
}

static void take_response(struct caller_call *call, const struct frame *response)
{
    struct retry_event event = { .type = RETRY_EVENT_ANSWERED, .status = response->status };
    struct wire_hint hint = { 0 };
    struct retry_action action;

    if (response->status == WIRE_REFUSED) {
        take_refusal(call, response);
        return;
    }
    if (response->status == WIRE_NOT_OWNER && wire_hint_decode(response->body, &hint) == ERR_OK)
        event.hint = (struct route_target){ hint.owner, hint.epoch };
    action = drive(call, &event);
    if (action.type == RETRY_ACTION_GIVE_UP)
        end_given_up(call, &action);
    else if (action.type == RETRY_ACTION_PASS_ON)
        end(call, &(struct caller_result){ .body = response->body });
}

static void response_arrived(void *user, err result, const struct frame *response)
{
    struct caller_call *call = user;

    call->sent = 0;
    if (result == ERR_OK) {
        call->trail.answered = true;
        call->trail.node_us = response->took_us;
        take_response(call, response);
    } else {
        drive_and_end(call, &(struct retry_event){ .type = RETRY_EVENT_FAILED, .failure = result });
    }
}

/* What a batch that went whole asked a member counts as an attempt of each of its elements. */
static void note_asked(struct caller_call *call)
{
    if (call->asked == 0)
        return;
    call->turn = 1;
    call->retry.sent = 1;
    call->retry.maybe_done = call->asked_unknown && call->retry.mutation;
    call->trail.nodes[0] = call->asked;
}

void caller_start(struct caller *caller, struct caller_call *call)
{
    struct retry_event event = { .type = RETRY_EVENT_START };

    CHECK(call->shard < CLUSTER_SHARDS_MAX);
    call->caller = caller;
    call->sent = 0;
    call->trail = (struct caller_trail){ 0 };
    const struct method_info *method = method_find(call->method);

    call->at_members = method->route == METHOD_MEMBER_READ || method->route == METHOD_MEMBER_WRITE;
    call->turn = 0;
    retry_init(&call->retry, method->writes, call->deadline_ms);
    call->retry.once = (method->traits & METHOD_SENT_ONCE) != 0;
    call->retry.any_member = call->at_members;
    if (call->at_members)
        call->retry.attempt_ms_max = CALLER_MEMBER_MS;
    note_asked(call);
    loop_timer_init(&call->timer, caller->loop, timer_fired, call);
    list_append(&caller->shards[call->shard], &call->place);
    caller->stats.calls++;
    caller->stats.open++;
    call->ending = drive(call, &event);
    if (call->ending.type == RETRY_ACTION_GIVE_UP)
        loop_timer_start(&call->timer, 0);
}

void caller_cancel(struct caller_call *call)
{
    struct caller *caller = call->caller;

    if (call->sent != 0)
        caller->port.cancel(caller->port.context, call->sent);
    call->sent = 0;
    loop_timer_stop(&call->timer);
    list_remove(&call->place);
    caller->stats.open--;
}

/* Drives every call of the shard that the route concerns. A `done` may start calls of the same
 * shard and end others: so the list is taken over first, and each call put back before its turn. */
static void drive_shard(struct caller *caller, uint32_t shard)
{
    struct caller_place *head = &caller->shards[shard];
    struct caller_place taken;

    if (head->next == head)
        return;
    taken.next = head->next;
    taken.previous = head->previous;
    taken.next->previous = &taken;
    taken.previous->next = &taken;
    list_init(head);
    while (taken.next != &taken) {
        struct caller_call *call = call_at(taken.next);

        list_remove(&call->place);
        list_append(head, &call->place);
        if (call->retry.phase != RETRY_PHASE_DONE)
            drive_and_end(call, &(struct retry_event){ .type = RETRY_EVENT_ROUTE_CHANGED });
    }
}

void caller_shard_changed(struct caller *caller, uint32_t shard)
{
    CHECK(shard < CLUSTER_SHARDS_MAX);
    drive_shard(caller, shard);
}

void caller_node_ready(struct caller *caller, uint64_t replica_id)
{
    uint32_t shard_count = shard_map_shard_count(caller->map);

    for (uint32_t shard = 0; shard < shard_count; shard++) {
        if (route_find_target(caller->map, shard).owner == replica_id)
            drive_shard(caller, shard);
    }
}

struct caller_stats caller_stats(const struct caller *caller)
{
    return caller->stats;
}
