/*
 * EventService/Poll: one page of the events of all shards.
 *
 *   every shard: ListShardEvents after what the cursor says of it -> one answer, one cursor
 *
 * A shard that does not answer keeps its place in the cursor, and so does what there was no room
 * for: nothing is left out, nothing comes twice.
 */
#include <inttypes.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/events.pb-c.h"
#include "idl/error_code.h"
#include "router/core/event_cursor.h"
#include "router/core/refusal.h"
#include "router/rpc/caller.h"
#include "router/rpc/handlers.h"
#include "router/rpc/router_state.h"
#include "runtime/base/check.h"
#include "runtime/base/hex.h"
#include "runtime/codec/proto_codec.h"

#define PAGE_SIZE_MAX     1000u
#define PAGE_SIZE_DEFAULT 200u
#define KINDS_MAX         16u
#define PREFIX_MAX        128u
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
    const Holdfast__V1__PollRequest *message;
    uint32_t page_size;
    uint32_t each; /* Events that one shard is asked for. */
    struct event_cursor cursor;
    struct poll_part *parts; /* By shard. */
    uint32_t next_shard, open, answered;
    uint64_t deadline_ms;
    Holdfast__V1__PollResponse response;
};

/* ---- the end ---- */
static void cancel_open(struct poll *poll)
{
    for (uint32_t i = 0; i < poll->next_shard; i++) {
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
static void gap_add(struct poll *poll, uint32_t shard)
{
    Holdfast__V1__EventGap *gap = arena_alloc(poll->request->arena, sizeof *gap);

    holdfast__v1__event_gap__init(gap);
    gap->shard = shard;
    poll->response.gaps[poll->response.n_gaps++] = gap;
}

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
    known->any = true;
    known->life = said->life;
    if (count < said->n_events)
        CHECK(hex_parse(slice_from_text(said->events[count - 1]->seq), EVENT_PLACE_BYTES,
                        known->place) == ERR_OK);
    else
        memcpy(known->place, said->next.data, EVENT_PLACE_BYTES);
    if (said->gap)
        gap_add(poll, shard);
    response->more |= said->more;
    return count == said->n_events;
}

static void reply(struct poll *poll)
{
    Holdfast__V1__PollResponse *response = &poll->response;
    struct arena *arena = poll->request->arena;
    uint32_t shards = poll->cursor.shard_count;
    uint32_t first = poll->cursor.turn;
    bool all = true;

    response->events = arena_alloc(arena, poll->page_size * sizeof *response->events);
    response->gaps = arena_alloc(arena, shards * sizeof *response->gaps);
    response->unreachable_shards =
        arena_alloc(arena, shards * sizeof *response->unreachable_shards);
    for (uint32_t i = 0; i < shards; i++) {
        uint32_t shard = (first + i) % shards;
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

/* What can be carried on with: places as they must be. */
static bool is_sound(const shard_page *said)
{
    uint8_t place[EVENT_PLACE_BYTES];
    bool sound = said->next.len == EVENT_PLACE_BYTES;

    for (size_t i = 0; i < said->n_events && sound; i++)
        sound =
            hex_parse(slice_from_text(said->events[i]->seq), EVENT_PLACE_BYTES, place) == ERR_OK;
    return sound;
}

/* False: the request has failed. */
static bool part_take(struct poll_part *part, struct slice body)
{
    struct poll *poll = part->poll;
    struct codec_scope scope = { .arena = poll->request->arena };
    ProtobufCMessage *message;
    Holdfast__V1__ErrorDetail detail;

    if (!request_hold(poll->request, body.size, &detail)) {
        fail(poll, &detail);
        return false;
    }
    /* The message's bytes live on in the arena: `body` is gone after this call. */
    if (proto_decode(&holdfast__internal__v1__list_shard_events_response__descriptor,
                     arena_copy(poll->request->arena, body), &scope, &message) != ERR_OK ||
        !is_sound((const shard_page *)(const void *)message)) {
        refusal_make(poll->request->arena, &detail, CODE(INTERNAL),
                     "the answer of shard %" PRIu32 " cannot be read", part->call.shard);
        fail(poll, &detail);
        return false;
    }
    part->said = (const shard_page *)(const void *)message;
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
    if (poll->open > 0 || poll->next_shard < poll->cursor.shard_count) {
        ask_on(poll);
    } else if (poll->answered == 0) {
        refusal_make(poll->request->arena, &detail, CODE(UNAVAILABLE), "no shard answered in time");
        detail.retry_after_ms = RETRY_MS;
        fail(poll, &detail);
    } else {
        reply(poll);
    }
}

static struct slice request_bytes(struct poll *poll, uint32_t shard)
{
    Holdfast__Internal__V1__ListShardEventsRequest ask =
        HOLDFAST__INTERNAL__V1__LIST_SHARD_EVENTS_REQUEST__INIT;
    struct event_known *known = &poll->cursor.known[shard];

    ask.shard = shard;
    ask.kinds = poll->message->kinds;
    ask.n_kinds = poll->message->n_kinds;
    ask.entity_prefix = poll->message->entity_prefix;
    ask.limit = poll->each;
    if (known->any) {
        ask.life = known->life;
        ask.after = (ProtobufCBinaryData){ EVENT_PLACE_BYTES, known->place };
    }
    size_t size = holdfast__internal__v1__list_shard_events_request__get_packed_size(&ask);
    uint8_t *body = arena_alloc(poll->request->arena, size + 1);
    return (struct slice){ body,
                           holdfast__internal__v1__list_shard_events_request__pack(&ask, body) };
}

static void ask_on(struct poll *poll)
{
    const struct router *router = poll->request->router;

    while (poll->next_shard < poll->cursor.shard_count && poll->open < WINDOW) {
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
            .body = request_bytes(poll, shard),
            .done = shard_answered,
            .user = part,
        };
        poll->open++;
        caller_start(router->options.caller, &part->call);
    }
}

/* ---- the beginning ---- */
static bool check_number(struct request *request, const char *field, const char *limit,
                         uint64_t given)
{
    Holdfast__V1__ErrorDetail detail;
    const char *value = arena_printf(request->arena, "%" PRIu64, given);

    refusal_make_field(request->arena, &detail,
                       &(struct refusal_field){ field, limit, slice_from_text(value) },
                       "a request for events past a limit");
    request_fail(request, &detail);
    return false;
}

/* False: refused. */
static bool check(struct request *request, const Holdfast__V1__PollRequest *message)
{
    size_t prefix = strlen(message->entity_prefix);

    if (message->page_size > PAGE_SIZE_MAX)
        return check_number(request, "page_size", "1 to 1000, or 0", message->page_size);
    if (message->n_kinds > KINDS_MAX)
        return check_number(request, "kinds", "at most 16", message->n_kinds);
    for (size_t i = 0; i < message->n_kinds; i++) {
        if (message->kinds[i] == HOLDFAST__V1__EVENT_KIND__EVENT_KIND_UNSPECIFIED ||
            protobuf_c_enum_descriptor_get_value(&holdfast__v1__event_kind__descriptor,
                                                 (int)message->kinds[i]) == NULL)
            return check_number(request, arena_printf(request->arena, "kinds[%zu]", i),
                                "a kind of events that there is", (uint64_t)message->kinds[i]);
    }
    if (prefix > PREFIX_MAX)
        return check_number(request, "entity_prefix", "at most 128 bytes", prefix);
    return true;
}

void event_poll_handle(struct request *request)
{
    const Holdfast__V1__PollRequest *message = (const void *)request->message;
    uint32_t shard_count = shard_map_shard_count(request->router->options.map);
    struct poll *poll = arena_zalloc(request->arena, sizeof *poll);
    Holdfast__V1__ErrorDetail detail;

    if (!check(request, message))
        return;
    if (shard_count == 0) {
        request_fail_text(request, CODE(UNAVAILABLE), "the router does not know the cluster yet");
        return;
    }
    if (event_cursor_parse(slice_from_text(message->cursor), shard_count, request->arena,
                           &poll->cursor, &detail) != ERR_OK) {
        request_fail(request, &detail);
        return;
    }
    poll->request = request;
    poll->message = message;
    poll->page_size = message->page_size > 0 ? message->page_size : PAGE_SIZE_DEFAULT;
    poll->each = (poll->page_size + shard_count - 1) / shard_count;
    poll->parts = arena_zalloc(request->arena, shard_count * sizeof *poll->parts);
    poll->deadline_ms =
        loop_now_ms(request->router->options.loop) + request_time_left(request, POLL_MS_MAX);
    holdfast__v1__poll_response__init(&poll->response);
    request->state = poll;
    request->cancel = on_cancel;
    ask_on(poll);
}
