/*
 * EventService/Poll: one page of the events of all shards.
 *
 *   every shard: ListShardEvents after what the cursor says of it -> one answer, one cursor
 *
 * A shard that does not answer keeps its place in the cursor, and so does what there was no room
 * for: nothing is left out, nothing comes twice.
 */
#include <inttypes.h>

#include "idl/error_code.h"
#include "router/core/refusal.h"
#include "router/rpc/call/caller.h"
#include "router/rpc/events/event_consumer.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/request/router_state.h"

#define PAGE_SIZE_MAX     1000u
#define PAGE_SIZE_DEFAULT 200u
#define POLL_MS_MAX       2000u
#define WINDOW            64u /* Shards that are asked at once. */
#define RETRY_MS          100u

typedef Holdfast__Internal__V1__ListShardEventsResponse shard_page;

struct poll;

struct poll_part {
    struct caller_call call;
    struct poll *poll;
    const shard_page *said; /* NULL: the shard did not answer. */
    bool open;
};

/* In the request's arena. */
struct poll {
    struct request *request;
    struct event_ask ask;
    struct event_consumer_wish wish; /* Where it begins. */
    uint32_t page_size;
    uint32_t each; /* Events that one shard is asked for. */
    struct event_cursor cursor;
    struct poll_part *parts;          /* By shard. */
    uint32_t first_shard, last_shard; /* Those that are asked. */
    uint32_t next_shard, open, answered;
    uint64_t deadline_ms;
    Holdfast__V1__PollResponse response;
};

/* ---- the end ---- */
static void cancel_open(struct poll *poll)
{
    for (uint32_t i = poll->first_shard; i < poll->next_shard; i++) {
        if (poll->parts[i].open)
            caller_cancel(&poll->parts[i].call);
        poll->parts[i].open = false;
    }
}

static void fail(struct poll *poll, const Holdfast__V1__ErrorDetail *detail)
{
    cancel_open(poll);
    request_fail(poll->request, detail);
}

static void on_cancel(struct request *request)
{
    struct poll *poll = request->state;

    cancel_open(poll);
    request_fail_text(request, CODE(CANCELED), "the caller has gone");
}

/* ---- the answer ---- */
/* Takes what there is room for. False: some of it must wait. */
static bool shard_take(struct poll *poll, uint32_t shard)
{
    const shard_page *said = poll->parts[shard].said;
    struct event_known *known = &poll->cursor.known[shard];
    Holdfast__V1__PollResponse *response = &poll->response;
    size_t room = poll->page_size - response->n_events;
    size_t count = said->n_events < room ? said->n_events : room;

    if (count == 0 && said->n_events > 0)
        return false;
    for (size_t i = 0; i < count; i++)
        response->events[response->n_events++] = said->events[i];
    event_ask_advance(said, count, known);
    if (said->gap)
        response->gaps[response->n_gaps++] = event_ask_gap(said, shard, poll->request->arena);
    response->more |= said->more;
    return count == said->n_events;
}

/* Before the page is put together: how far behind the place is where it begins. */
static void tell_lag(struct poll *poll)
{
    Holdfast__V1__EventLag *lag = arena_alloc(poll->request->arena, sizeof *lag);
    bool counted = true;

    holdfast__v1__event_lag__init(lag);
    for (uint32_t i = poll->first_shard; i <= poll->last_shard; i++) {
        const shard_page *said = poll->parts[i].said;
        if (said == NULL)
            continue;
        if (said->first_ms > 0 && said->now_ms > said->first_ms &&
            said->now_ms - said->first_ms > lag->oldest_age_ms)
            lag->oldest_age_ms = said->now_ms - said->first_ms;
        counted &= said->begin > 0;
        lag->events += said->last > said->begin ? said->last - said->begin : 0;
    }
    if (counted)
        lag->_events_case = HOLDFAST__V1__EVENT_LAG___EVENTS_EVENTS;
    else
        lag->events = 0;
    poll->response.lag = lag;
    poll->response.consumer_version = poll->wish.version;
}

static void reply(struct poll *poll)
{
    Holdfast__V1__PollResponse *response = &poll->response;
    struct arena *arena = poll->request->arena;
    uint32_t shards = poll->cursor.shard_count;
    uint32_t first = poll->cursor.turn;
    bool all = true;

    if (poll->ask.consumer[0] != '\0')
        tell_lag(poll);
    response->events = arena_alloc(arena, poll->page_size * sizeof *response->events);
    response->gaps = arena_alloc(arena, shards * sizeof *response->gaps);
    response->unreachable_shards =
        arena_alloc(arena, shards * sizeof *response->unreachable_shards);
    for (uint32_t i = 0; i < shards; i++) {
        uint32_t shard = (first + i) % shards;
        if (shard < poll->first_shard || shard > poll->last_shard)
            continue;
        if (poll->parts[shard].said == NULL) {
            response->unreachable_shards[response->n_unreachable_shards++] = shard;
        } else if (!shard_take(poll, shard) && all) {
            all = false;
            poll->cursor.turn = shard;
        }
    }
    response->more |= !all;
    response->next_cursor = event_cursor_print(&poll->cursor, arena);
    request_reply(poll->request, &response->base);
}

/* ---- asking the shards ---- */
static void ask_on(struct poll *poll);

/* False: the request has failed. */
static bool part_take(struct poll_part *part, struct slice body)
{
    struct poll *poll = part->poll;
    Holdfast__V1__ErrorDetail detail;

    if (!request_hold(poll->request, body.size, &detail)) {
        fail(poll, &detail);
        return false;
    }
    part->said = event_ask_decode(body, poll->request->arena);
    if (part->said == NULL) {
        refusal_make(poll->request->arena, &detail, CODE(INTERNAL),
                     "the answer of shard %" PRIu32 " cannot be read", part->call.shard);
        fail(poll, &detail);
        return false;
    }
    poll->answered++;
    return true;
}

static void shard_answered(struct caller_call *call, const struct caller_result *result)
{
    struct poll_part *part = call->user;
    struct poll *poll = part->poll;
    Holdfast__V1__ErrorDetail detail;

    part->open = false;
    poll->open--;
    if (result->detail == NULL && !part_take(part, result->body))
        return;
    if (poll->open > 0 || poll->next_shard <= poll->last_shard) {
        ask_on(poll);
    } else if (poll->answered == 0) {
        refusal_make(poll->request->arena, &detail, CODE(UNAVAILABLE), "no shard answered in time");
        detail.retry_after_ms = RETRY_MS;
        fail(poll, &detail);
    } else {
        reply(poll);
    }
}

static void ask_on(struct poll *poll)
{
    const struct router *router = poll->request->router;

    while (poll->next_shard <= poll->last_shard && poll->open < WINDOW) {
        uint32_t shard = poll->next_shard++;
        struct poll_part *part = &poll->parts[shard];
        part->poll = poll;
        part->open = true;
        part->call = (struct caller_call){
            .method = METHOD_LIST_SHARD_EVENTS,
            .priority = (uint8_t)poll->request->priority,
            .asker = request_asker(poll->request),
            .shard = shard,
            .deadline_ms = poll->deadline_ms,
            .started_ns = loop_clock_ns(),
            .trace = poll->request->trace.trace_id,
            .body = event_ask_encode(&poll->ask, shard, poll->each, &poll->cursor.known[shard],
                                     poll->request->arena),
            .done = shard_answered,
            .user = part,
        };
        poll->open++;
        caller_start(router->options.caller, &part->call);
    }
}

/* ---- the beginning ---- */

static err check(struct poll *poll, uint32_t page_size, Holdfast__V1__ErrorDetail *ret_detail)
{
    struct arena *arena = poll->request->arena;

    if (page_size <= PAGE_SIZE_MAX)
        return event_ask_check(&poll->ask, arena, ret_detail);
    const char *value = arena_printf(arena, "%" PRIu32, page_size);
    refusal_make_field(
        arena, ret_detail,
        &(struct refusal_field){ "page_size", "1 to 1000, or 0", slice_from_text(value) },
        "a request for events past a limit");
    return ERR_INVALID;
}

/* Whose cursor is known. */
static void begin(void *user)
{
    struct poll *poll = user;
    struct request *request = poll->request;
    uint32_t shard_count = poll->cursor.shard_count;
    uint32_t page_size = poll->page_size;
    uint32_t only = event_ask_shard(&poll->ask, shard_count);
    bool all = only == EVENT_ASK_ALL_SHARDS;

    poll->first_shard = all ? 0 : only;
    poll->last_shard = all ? shard_count - 1 : only;
    poll->next_shard = poll->first_shard;
    poll->page_size = page_size > 0 ? page_size : PAGE_SIZE_DEFAULT;
    poll->each = all ? (poll->page_size + shard_count - 1) / shard_count : poll->page_size;
    poll->parts = arena_zalloc(request->arena, shard_count * sizeof *poll->parts);
    poll->deadline_ms =
        loop_now_ms(request->router->options.loop) + request_time_left(request, POLL_MS_MAX);
    holdfast__v1__poll_response__init(&poll->response);
    request->state = poll;
    request->cancel = on_cancel;
    ask_on(poll);
}

void event_poll_handle(struct request *request)
{
    const Holdfast__V1__PollRequest *message = (const void *)request->message;
    uint32_t shard_count = shard_map_shard_count(request->router->options.map);
    struct poll *poll = arena_zalloc(request->arena, sizeof *poll);
    Holdfast__V1__ErrorDetail detail;

    poll->request = request;
    poll->ask = (struct event_ask){ message->kinds, message->n_kinds, message->entity_prefix,
                                    message->entity, message->consumer };
    poll->page_size = message->page_size;
    poll->wish = (struct event_consumer_wish){
        .request = request,
        .ask = &poll->ask,
        .cursor = slice_from_text(message->cursor),
        .cursor_read = &poll->cursor,
        .done = begin,
        .user = poll,
    };
    if (check(poll, message->page_size, &detail) != ERR_OK) {
        request_fail(request, &detail);
    } else if (shard_count == 0) {
        request_fail_text(request, CODE(UNAVAILABLE), "the router does not know the cluster yet");
    } else {
        event_consumer_begin(&poll->wish);
    }
}
