#include "runtime/link/call.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

/* A request id names its slot directly, with a sequence number above that tells a late answer from
 * the slot's next call; so finding a call is one comparison. */
#define SLOT_BITS 20u
#define SLOT_MASK ((1u << SLOT_BITS) - 1u)
#define NONE      UINT32_MAX

/* Deadlines: a wheel of lists, one per tick; farther ones are met several times. Two lists more:
 * calls that ended and are about to be told, and free slots. */
#define WHEEL_SIZE 512u
#define LIST_ENDED WHEEL_SIZE
#define LIST_FREE  (WHEEL_SIZE + 1u)
#define LIST_COUNT (WHEEL_SIZE + 2u)

#define SLOTS_MIN 64u

struct slot {
    uint64_t id; /* 0: free. */
    call_done *done;
    void *user;
    struct link_ref link;
    uint64_t position; /* Where the request begins in the stream of its link. */
    uint64_t due_tick;
    uint32_t list;
    uint32_t next;
    uint32_t previous;
    err result; /* In LIST_ENDED. */
};

struct calls {
    struct calls_options options;
    struct slot *slots;
    uint32_t slot_count;
    uint32_t open;
    uint32_t requests_open;
    uint64_t sequence;
    uint64_t tick; /* The wheel has been turned up to here. */
    uint32_t lists[LIST_COUNT];
    struct loop_timer timer;
};

static void list_add(struct calls *calls, uint32_t list, uint32_t index)
{
    struct slot *slot = &calls->slots[index];

    slot->list = list;
    slot->previous = NONE;
    slot->next = calls->lists[list];
    if (slot->next != NONE)
        calls->slots[slot->next].previous = index;
    calls->lists[list] = index;
}

static void list_remove(struct calls *calls, uint32_t index)
{
    struct slot *slot = &calls->slots[index];

    if (slot->previous != NONE)
        calls->slots[slot->previous].next = slot->next;
    else
        calls->lists[slot->list] = slot->next;
    if (slot->next != NONE)
        calls->slots[slot->next].previous = slot->previous;
}

static void move_to_ended(struct calls *calls, uint32_t index, err result)
{
    list_remove(calls, index);
    calls->slots[index].result = result;
    list_add(calls, LIST_ENDED, index);
}

/* Frees the slot first: `done` may start the next call. */
static void finish(struct calls *calls, uint32_t index, err result, const struct frame *response)
{
    struct slot *slot = &calls->slots[index];
    call_done *done = slot->done;
    void *user = slot->user;

    list_remove(calls, index);
    slot->id = 0;
    list_add(calls, LIST_FREE, index);
    calls->open--;
    if (done != NULL)
        done(user, result, response);
}

static void tell_ended(struct calls *calls)
{
    while (calls->lists[LIST_ENDED] != NONE) {
        uint32_t index = calls->lists[LIST_ENDED];
        finish(calls, index, calls->slots[index].result, NULL);
    }
}

static void turn_wheel(void *user)
{
    struct calls *calls = user;
    uint64_t now_tick = loop_now_ms(calls->options.loop) / CALL_TICK_MS;
    uint64_t steps = now_tick - calls->tick;

    for (uint64_t i = 1; i <= steps && i <= WHEEL_SIZE; i++) {
        uint32_t index = calls->lists[(calls->tick + i) % WHEEL_SIZE];
        while (index != NONE) {
            uint32_t next = calls->slots[index].next;
            if (calls->slots[index].due_tick <= now_tick)
                move_to_ended(calls, index, ERR_TIMEOUT);
            index = next;
        }
    }
    calls->tick = now_tick;
    tell_ended(calls);
    if (calls->open == 0)
        loop_timer_stop(&calls->timer);
}

err calls_new(const struct calls_options *options, struct calls **ret_calls)
{
    struct calls *calls = mem_zalloc(sizeof *calls);

    CHECK(options->hub != NULL && options->loop != NULL);
    calls->options = *options;
    if (calls->options.calls_max == 0)
        calls->options.calls_max = CALLS_MAX;
    if (calls->options.requests_max == 0)
        calls->options.requests_max = CALLS_REQUESTS_MAX;
    if (calls->options.calls_max > CALLS_MAX_MAX) {
        free(calls);
        return ERR_INVALID;
    }
    for (uint32_t i = 0; i < LIST_COUNT; i++)
        calls->lists[i] = NONE;
    loop_timer_init(&calls->timer, options->loop, turn_wheel, calls);
    *ret_calls = calls;
    return ERR_OK;
}

void calls_free(struct calls *calls)
{
    if (calls == NULL)
        return;
    loop_timer_stop(&calls->timer);
    free(calls->slots);
    free(calls);
}

static void grow(struct calls *calls)
{
    uint32_t before = calls->slot_count;
    uint32_t count = before > 0 ? 2 * before : SLOTS_MIN;

    if (count > calls->options.calls_max)
        count = calls->options.calls_max;
    calls->slots = mem_realloc(calls->slots, count * sizeof *calls->slots);
    memset(calls->slots + before, 0, (count - before) * sizeof *calls->slots);
    calls->slot_count = count;
    for (uint32_t i = count; i > before; i--)
        list_add(calls, LIST_FREE, i - 1);
}

static uint32_t take_slot(struct calls *calls, const struct call_request *request)
{
    struct loop *loop = calls->options.loop;
    uint64_t now_ms = loop_now_ms(loop);

    if (calls->lists[LIST_FREE] == NONE)
        grow(calls);
    uint32_t index = calls->lists[LIST_FREE];
    struct slot *slot = &calls->slots[index];
    list_remove(calls, index);
    if (!loop_timer_is_running(&calls->timer)) {
        calls->tick = now_ms / CALL_TICK_MS;
        loop_timer_start_repeating(&calls->timer, CALL_TICK_MS);
    }
    slot->id = ++calls->sequence << SLOT_BITS | index;
    slot->done = request->done;
    slot->user = request->user;
    slot->due_tick = (now_ms + request->deadline_ms + CALL_TICK_MS - 1) / CALL_TICK_MS;
    list_add(calls, (uint32_t)(slot->due_tick % WHEEL_SIZE), index);
    calls->open++;
    return index;
}

err call_start(struct calls *calls, struct link *link, const struct call_request *request,
               uint64_t *ret_call)
{
    struct frame frame = { .kind = FRAME_REQUEST,
                           .priority = request->priority,
                           .method = request->method,
                           .asker = request->asker,
                           .deadline_ms = request->deadline_ms,
                           .body = request->body };

    if (request->deadline_ms == 0 || request->deadline_ms > CALL_DEADLINE_MS_MAX)
        return ERR_INVALID;
    if (calls->open == calls->options.calls_max)
        return ERR_FULL;
    if (request->trace != NULL)
        memcpy(frame.trace, request->trace, FRAME_TRACE_SIZE);
    uint32_t index = take_slot(calls, request);
    struct slot *slot = &calls->slots[index];
    slot->position = link_sent_position(link);
    slot->link = link_ref(link);
    frame.request_id = slot->id;
    err e = link_send(link, &frame);
    if (e != ERR_OK) {
        slot->done = NULL;
        finish(calls, index, e, NULL);
        return e;
    }
    if (ret_call != NULL)
        *ret_call = slot->id;
    return ERR_OK;
}

/* NONE: no such call. */
static uint32_t find_slot(const struct calls *calls, uint64_t id)
{
    uint32_t index = (uint32_t)(id & SLOT_MASK);

    if (id == 0 || index >= calls->slot_count || calls->slots[index].id != id)
        return NONE;
    return index;
}

bool call_cancel(struct calls *calls, uint64_t call)
{
    uint32_t index = find_slot(calls, call);
    struct frame frame = { .kind = FRAME_CANCEL, .request_id = call };

    if (index == NONE)
        return false;
    struct link *link = link_find(calls->options.hub, calls->slots[index].link);
    /* Only a hint: when the queue is full the peer works in vain, no more. */
    if (link != NULL)
        (void)!link_send(link, &frame);
    calls->slots[index].done = NULL;
    finish(calls, index, ERR_CANCELLED, NULL);
    return true;
}

static void take_response(struct calls *calls, struct link *link, const struct frame *frame)
{
    uint32_t index = find_slot(calls, frame->request_id);
    struct link_ref from = link_ref(link);

    /* Late, cancelled, or not asked on this link. */
    if (index == NONE || calls->slots[index].link.generation != from.generation)
        return;
    if (frame->status == FRAME_STATUS_OVERLOADED)
        finish(calls, index, ERR_FULL, NULL);
    else if (frame->status == FRAME_STATUS_NO_METHOD || frame->status == FRAME_STATUS_FORBIDDEN)
        finish(calls, index, ERR_UNAVAILABLE, NULL);
    else
        finish(calls, index, ERR_OK, frame);
}

static void answer_now(struct link *link, const struct frame *request, uint16_t status)
{
    struct frame frame = { .kind = FRAME_RESPONSE,
                           .method = request->method,
                           .request_id = request->request_id,
                           .status = status };

    memcpy(frame.trace, request->trace, FRAME_TRACE_SIZE);
    (void)!link_send(link, &frame); /* Full: the link is about to end. */
}

static void take_request(struct calls *calls, struct link *link, const struct frame *frame)
{
    struct call_reply reply = { .link = link_ref(link), .request_id = frame->request_id };

    if (calls->options.request == NULL) {
        answer_now(link, frame, FRAME_STATUS_NO_METHOD);
        return;
    }
    if (calls->requests_open == calls->options.requests_max) {
        answer_now(link, frame, FRAME_STATUS_OVERLOADED);
        return;
    }
    memcpy(reply.trace, frame->trace, FRAME_TRACE_SIZE);
    calls->requests_open++;
    calls->options.request(calls->options.user, link, frame, &reply);
}

bool calls_frame(struct calls *calls, struct link *link, const struct frame *frame)
{
    struct call_reply reply = { .link = link_ref(link), .request_id = frame->request_id };

    switch (frame->kind) {
    case FRAME_REQUEST:
        take_request(calls, link, frame);
        return true;
    case FRAME_RESPONSE:
        take_response(calls, link, frame);
        return true;
    case FRAME_CANCEL:
        if (calls->options.cancel != NULL)
            calls->options.cancel(calls->options.user, &reply);
        return true;
    default:
        return false;
    }
}

void calls_closed(struct calls *calls, struct link *link)
{
    uint64_t generation = link_ref(link).generation;
    uint64_t handed = link_handed_position(link);

    CHECK(generation != 0);
    for (uint32_t i = 0; i < calls->slot_count; i++) {
        struct slot *slot = &calls->slots[i];
        if (slot->id != 0 && slot->list != LIST_ENDED && slot->link.generation == generation)
            move_to_ended(calls, i, slot->position < handed ? ERR_DISCONNECTED : ERR_CLOSED);
    }
    tell_ended(calls);
}

static bool has_room(const struct link *link, const struct call_reply *reply, size_t size)
{
    return size <= CALL_SMALL_BYTES || link_has_room(link, size) ||
           (reply->is_outcome && link_has_reserve(link, size));
}

err call_answer(struct calls *calls, const struct call_reply *reply, uint16_t status,
                struct slice body)
{
    struct link *link = link_find(calls->options.hub, reply->link);
    struct frame frame = {
        .kind = FRAME_RESPONSE,
        .request_id = reply->request_id,
        .took_us = reply->took_us,
        .status = status,
        .body = body,
    };

    memcpy(frame.trace, reply->trace, FRAME_TRACE_SIZE);
    if (link != NULL && !has_room(link, reply, body.size))
        return ERR_FULL;
    err e = link != NULL ? link_send(link, &frame) : ERR_CLOSED;
    if (e == ERR_TOO_LARGE)
        return e;
    CHECK(calls->requests_open > 0);
    calls->requests_open--;
    return e == ERR_OK ? ERR_OK : ERR_CLOSED;
}

uint32_t calls_open(const struct calls *calls)
{
    return calls->open;
}

uint32_t calls_requests_open(const struct calls *calls)
{
    return calls->requests_open;
}
