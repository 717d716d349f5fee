/*
 * EventService/Subscribe: a stream of the events of all shards, or of those of one entity.
 *
 *   event_feed: a shard has more -> ListShardEvents after what is known of it -> one message
 *
 * The shards' rows are the only buffer: a shard is asked for more when what it said has been sent,
 * and none is asked while the reader is behind. It is told of a gap if retention removes some.
 */
#include <inttypes.h>

#include "idl/error_code.h"
#include "router/core/refusal.h"
#include "router/rpc/call/caller.h"
#include "router/rpc/events/event_consumer.h"
#include "router/rpc/events/event_feed.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/request/router_state.h"
#include "runtime/base/check.h"

#define STREAMS_MAX          64u
#define STREAMS_EACH_MAX     (STREAMS_MAX / 4) /* Of a key; of an address where none is asked. */
#define RETRY_AFTER_MS       1000u
#define HEARTBEAT_MS_MIN     1000u
#define HEARTBEAT_MS_MAX     60000u
#define HEARTBEAT_MS_DEFAULT 10000u
#define ASK_EVENTS           200u           /* Of one shard, at once. */
#define ASK_MS               2000u          /* How long a shard has for that. */
#define SLOTS                8u             /* Shards that are asked at once, */
#define SLOTS_SILENT         (SLOTS / 2)    /* and of those that did not answer before. */
#define EVENTS_MAX           1600u          /* Of one message: as many as all of them can say. */
#define BYTES_MAX            (512u * 1024u) /* Of one message, about. */
#define EMPTY_BYTES_MAX      (64u * 1024u)  /* Of answers without events: then they are let go. */
#define GATHER_MS            5u             /* What is said meanwhile goes into one message. */
#define RETRY_MS             250u           /* A shard that did not answer. */
#define LOOK_MS              1000u          /* How often the key, and what is due, is looked at. */
#define SWEEP_MS             30000u         /* All shards are asked, whatever the feed says. */

typedef Holdfast__Internal__V1__ListShardEventsResponse shard_page;

struct slot {
    struct caller_call call;
    struct event_subscriber *subscriber;
    struct buf body; /* What is asked. */
    bool open;
};

struct subscribed_shard {
    uint64_t ask_at_ms; /* When it is wanted. */
    bool wanted;        /* It may have more. */
    bool open;
    bool silent; /* It did not answer its last question. */
};

/* In the request's arena. */
struct event_subscriber {
    struct request *request;
    struct event_subscriber *next, *previous;
    struct event_ask ask;
    struct event_consumer_wish wish; /* Where it begins. */
    struct event_cursor cursor;
    struct subscribed_shard *shards;
    uint32_t first_shard, last_shard; /* Those that are followed. */
    uint32_t turn;                    /* Where the next look at them begins. */
    uint32_t wanted;                  /* How many are. */
    struct slot slots[SLOTS];
    uint32_t open, open_silent;
    uint32_t heartbeat_ms;
    uint64_t heartbeat_at_ms, sweep_at_ms, send_at_ms, look_at_ms;
    struct loop_timer timer;
    struct arena arena; /* Of the message that is put together; `response` is in it. */
    Holdfast__V1__SubscribeResponse response;
    size_t bytes;
    bool pending; /* There is something to send. */
    bool blocked; /* The reader is behind. */
};

static uint64_t now_ms(const struct event_subscriber *s)
{
    return loop_now_ms(s->request->router->options.loop);
}

static void schedule(struct event_subscriber *s, uint64_t at_ms)
{
    uint64_t now = now_ms(s);

    loop_timer_start(&s->timer, at_ms > now ? at_ms - now : 0);
}

/* ---- the end ---- */
static void unlink_subscriber(struct event_subscriber *s)
{
    struct router *router = s->request->router;

    if (s->next != NULL)
        s->next->previous = s->previous;
    *(s->previous != NULL ? &s->previous->next : &router->subscribers) = s->next;
    if (--router->subscriber_count == 0)
        event_feed_stop(router->event_feed);
}

static void end(struct event_subscriber *s, const Holdfast__V1__ErrorDetail *detail)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (s->slots[i].open)
            caller_cancel(&s->slots[i].call);
        buf_deinit(&s->slots[i].body);
    }
    loop_timer_stop(&s->timer);
    arena_deinit(&s->arena);
    unlink_subscriber(s);
    request_fail(s->request, detail);
}

static void end_text(struct event_subscriber *s, Holdfast__V1__ErrorCode code, const char *message)
{
    Holdfast__V1__ErrorDetail detail;

    refusal_make(s->request->arena, &detail, code, "%s", message);
    end(s, &detail);
}

static void on_cancel(struct request *request)
{
    end_text(request->state, CODE(CANCELED), "the caller has gone");
}

void event_subscribe_end_all(struct router *router)
{
    while (router->subscribers != NULL)
        end_text(router->subscribers, CODE(UNAVAILABLE),
                 "the router stops; go on elsewhere with the last cursor");
}

/* ---- messages ---- */
static void message_begin(struct event_subscriber *s)
{
    Holdfast__V1__SubscribeResponse *response = &s->response;
    uint32_t shards = s->cursor.shard_count;

    arena_reset(&s->arena);
    holdfast__v1__subscribe_response__init(response);
    response->events = arena_alloc(&s->arena, EVENTS_MAX * sizeof *response->events);
    response->gaps = arena_alloc(&s->arena, shards * sizeof *response->gaps);
    s->bytes = 0;
    s->pending = false;
}

/* Adds who is silent and where the reader is now. */
static void message_send(struct event_subscriber *s)
{
    Holdfast__V1__SubscribeResponse *response = &s->response;
    struct router *router = s->request->router;

    response->unreachable_shards =
        arena_alloc(&s->arena, s->cursor.shard_count * sizeof *response->unreachable_shards);
    for (uint32_t i = s->first_shard; i <= s->last_shard; i++) {
        if (s->shards[i].silent)
            response->unreachable_shards[response->n_unreachable_shards++] = i;
    }
    response->next_cursor = event_cursor_print(&s->cursor, &s->arena);
    response->consumer_version = s->wish.version;
    router->events_streamed += response->n_events;
    router->event_gaps += response->n_gaps;
    s->blocked = !request_stream_send(s->request, &response->base);
    s->heartbeat_at_ms = now_ms(s) + s->heartbeat_ms;
    request_release(s->request);
    message_begin(s);
}

/* What is said next is sent with what is there. */
static void pend(struct event_subscriber *s)
{
    if (!s->pending)
        s->send_at_ms = now_ms(s) + GATHER_MS;
    s->pending = true;
}

static bool has_room(const struct event_subscriber *s)
{
    return s->response.n_events + (s->open + 1) * ASK_EVENTS <= EVENTS_MAX && s->bytes < BYTES_MAX;
}

static void gap_add(struct event_subscriber *s, uint32_t shard, const shard_page *said)
{
    for (size_t i = 0; i < s->response.n_gaps; i++) {
        if (s->response.gaps[i]->shard == shard)
            return;
    }
    s->response.gaps[s->response.n_gaps++] = event_ask_gap(said, shard, &s->arena);
}

/* ---- shards ---- */
static void want(struct event_subscriber *s, uint32_t shard, uint64_t at_ms)
{
    struct subscribed_shard *wanted = &s->shards[shard];

    if (!wanted->wanted)
        s->wanted++;
    wanted->wanted = true;
    wanted->ask_at_ms = at_ms;
}

static void want_all(struct event_subscriber *s)
{
    for (uint32_t i = s->first_shard; i <= s->last_shard; i++)
        want(s, i, now_ms(s));
}

static void shard_fell_silent(struct event_subscriber *s, uint32_t shard)
{
    if (!s->shards[shard].silent)
        pend(s);
    s->shards[shard].silent = true;
    want(s, shard, now_ms(s) + RETRY_MS);
}

static void shard_said(struct event_subscriber *s, uint32_t shard, const shard_page *said)
{
    Holdfast__V1__SubscribeResponse *response = &s->response;

    if (s->shards[shard].silent || said->n_events > 0 || said->gap)
        pend(s);
    s->shards[shard].silent = false;
    for (size_t i = 0; i < said->n_events; i++)
        response->events[response->n_events++] = said->events[i];
    if (said->gap)
        gap_add(s, shard, said);
    event_ask_advance(said, said->n_events, &s->cursor.known[shard]);
    if (said->more)
        want(s, shard, now_ms(s));
}

/* False: the stream has ended. */
static bool answer_take(struct event_subscriber *s, uint32_t shard, struct slice body)
{
    Holdfast__V1__ErrorDetail detail;

    /* Without room the answer is let go: it is asked for again, from the same place. */
    if (s->blocked || !request_hold(s->request, body.size, &detail)) {
        want(s, shard, now_ms(s) + (s->blocked ? 0 : RETRY_MS));
        return true;
    }
    const shard_page *said = event_ask_decode(body, &s->arena);
    if (said == NULL || said->n_events > ASK_EVENTS) {
        refusal_make(s->request->arena, &detail, CODE(INTERNAL),
                     "the answer of shard %" PRIu32 " cannot be read", shard);
        end(s, &detail);
        return false;
    }
    s->bytes += body.size;
    shard_said(s, shard, said);
    if (!s->pending && s->bytes >= EMPTY_BYTES_MAX) { /* They said only how far a filter came. */
        request_release(s->request);
        message_begin(s);
    }
    return true;
}

static void shard_answered(struct caller_call *call, const struct caller_result *result)
{
    struct slot *slot = call->user;
    struct event_subscriber *s = slot->subscriber;
    uint32_t shard = call->shard;

    slot->open = false;
    s->open--;
    s->open_silent -= s->shards[shard].silent;
    s->shards[shard].open = false;
    if (result->detail != NULL)
        shard_fell_silent(s, shard);
    else if (!answer_take(s, shard, result->body))
        return;
    schedule(s, 0);
}

static void shard_ask(struct event_subscriber *s, struct slot *slot, uint32_t shard)
{
    const struct router *router = s->request->router;
    struct arena arena = { 0 };
    struct slice body =
        event_ask_encode(&s->ask, shard, ASK_EVENTS, &s->cursor.known[shard], &arena);

    buf_clear(&slot->body);
    buf_append(&slot->body, body.data, body.size);
    arena_deinit(&arena);
    s->shards[shard].wanted = false;
    s->shards[shard].open = true;
    s->wanted--;
    s->open++;
    s->open_silent += s->shards[shard].silent;
    slot->subscriber = s;
    slot->open = true;
    slot->call = (struct caller_call){
        .method = METHOD_LIST_SHARD_EVENTS,
        .priority = (uint8_t)s->request->priority,
        .asker = request_asker(s->request),
        .shard = shard,
        .deadline_ms = now_ms(s) + ASK_MS,
        .started_ns = loop_clock_ns(),
        .trace = s->request->trace.trace_id,
        .body = buf_slice(&slot->body),
        .done = shard_answered,
        .user = slot,
    };
    caller_start(router->options.caller, &slot->call);
}

static struct slot *slot_find(struct event_subscriber *s)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (!s->slots[i].open)
            return &s->slots[i];
    }
    return NULL;
}

/* In turn, so that one with many events does not hold up the others. Lowers *next_ms to when the
 * next one is due. */
static void ask_on(struct event_subscriber *s, uint64_t *next_ms)
{
    uint32_t count = s->last_shard - s->first_shard + 1;
    uint64_t now = now_ms(s);

    for (uint32_t i = 0; i < count && s->wanted > 0 && has_room(s); i++) {
        uint32_t place = s->first_shard + s->turn;
        struct subscribed_shard *shard = &s->shards[place];
        struct slot *slot = slot_find(s);
        if (slot == NULL)
            return;
        s->turn = (s->turn + 1) % count;
        if (!shard->wanted || shard->open || (shard->silent && s->open_silent == SLOTS_SILENT))
            continue;
        if (shard->ask_at_ms <= now)
            shard_ask(s, slot, place);
        else if (shard->ask_at_ms < *next_ms)
            *next_ms = shard->ask_at_ms;
    }
}

/* ---- time ---- */
static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* False: the stream has ended. */
static bool look(struct event_subscriber *s, uint64_t now)
{
    if (now >= s->request->deadline_ms) {
        end_text(s, CODE(DEADLINE_EXCEEDED), "the stream's deadline has passed");
        return false;
    }
    if (now < s->look_at_ms)
        return true;
    s->look_at_ms = now + LOOK_MS;
    if (!request_is_welcome(s->request)) {
        end_text(s, CODE(UNAUTHENTICATED), "the API key is not valid any more");
        return false;
    }
    if (now >= s->sweep_at_ms) {
        s->sweep_at_ms = now + SWEEP_MS;
        want_all(s);
    }
    return true;
}

static void on_timer(void *user)
{
    struct event_subscriber *s = user;
    uint64_t now = now_ms(s);

    if (!look(s, now))
        return;
    bool due = s->pending && (s->open == 0 || now >= s->send_at_ms || !has_room(s));
    if (!s->blocked && (due || now >= s->heartbeat_at_ms))
        message_send(s);
    uint64_t next_ms = min_u64(s->look_at_ms, s->request->deadline_ms);
    if (!s->blocked) {
        ask_on(s, &next_ms);
        next_ms = min_u64(next_ms, s->heartbeat_at_ms);
        next_ms = s->pending ? min_u64(next_ms, s->send_at_ms) : next_ms;
    }
    schedule(s, next_ms);
}

/* Of the feed. */
static void on_news(void *user, uint32_t shard)
{
    const struct router *router = user;

    for (struct event_subscriber *s = router->subscribers; s != NULL; s = s->next) {
        if (shard < s->first_shard || shard > s->last_shard)
            continue;
        want(s, shard, now_ms(s));
        if (!s->blocked)
            schedule(s, 0);
    }
}

static void on_writable(struct request *request)
{
    struct event_subscriber *s = request->state;

    s->blocked = false;
    schedule(s, 0);
}

/* ---- the beginning ---- */
static uint32_t streams_of(const struct router *router, uint64_t caller)
{
    uint32_t count = 0;

    for (const struct event_subscriber *s = router->subscribers; s != NULL; s = s->next)
        count += s->request->caller == caller;
    return count;
}

static err check_heartbeat(struct request *request, uint32_t heartbeat_ms,
                           Holdfast__V1__ErrorDetail *ret_detail)
{
    if (heartbeat_ms == 0 || (heartbeat_ms >= HEARTBEAT_MS_MIN && heartbeat_ms <= HEARTBEAT_MS_MAX))
        return ERR_OK;
    const char *value = arena_printf(request->arena, "%" PRIu32, heartbeat_ms);
    refusal_make_field(
        request->arena, ret_detail,
        &(struct refusal_field){ "heartbeat_ms", "1000 to 60000, or 0", slice_from_text(value) },
        "heartbeats come too often or too seldom");
    return ERR_INVALID;
}

static err check_places(struct request *request, Holdfast__V1__ErrorDetail *ret_detail)
{
    const struct router *router = request->router;

    if (router->streams_ended) {
        refusal_make(request->arena, ret_detail, CODE(UNAVAILABLE), "the router is stopping");
        return ERR_UNAVAILABLE;
    }
    if (router->subscriber_count >= STREAMS_MAX)
        refusal_make(request->arena, ret_detail, CODE(THROTTLED),
                     "%u streams of events are open already", STREAMS_MAX);
    else if (request->caller != 0 && streams_of(router, request->caller) >= STREAMS_EACH_MAX)
        refusal_make(request->arena, ret_detail, CODE(THROTTLED),
                     "this API key, or this address where no key is asked for, has %u streams of "
                     "events open already",
                     STREAMS_EACH_MAX);
    else
        return ERR_OK;
    ret_detail->retry_after_ms = RETRY_AFTER_MS;
    return ERR_UNAVAILABLE;
}

static err check(struct request *request, struct event_subscriber *s,
                 Holdfast__V1__ErrorDetail *ret_detail)
{
    const Holdfast__V1__SubscribeRequest *message = (const void *)request->message;
    uint32_t shard_count = shard_map_shard_count(request->router->options.map);

    err e = check_heartbeat(request, message->heartbeat_ms, ret_detail);
    if (e == ERR_OK)
        e = event_ask_check(&s->ask, request->arena, ret_detail);
    if (e == ERR_OK)
        e = check_places(request, ret_detail);
    if (e != ERR_OK)
        return e;
    if (shard_count == 0) {
        refusal_make(request->arena, ret_detail, CODE(UNAVAILABLE),
                     "the router does not know the cluster yet");
        return ERR_UNAVAILABLE;
    }
    return ERR_OK;
}

/* Whose cursor is known. Streams that were opened meanwhile count. */
static void begin(void *user)
{
    struct event_subscriber *s = user;
    uint32_t heartbeat_ms = s->heartbeat_ms;
    Holdfast__V1__ErrorDetail detail;
    struct request *request = s->request;
    struct router *router = request->router;
    uint32_t only = event_ask_shard(&s->ask, s->cursor.shard_count);
    bool all = only == EVENT_ASK_ALL_SHARDS;

    if (check_places(request, &detail) != ERR_OK) {
        request_fail(request, &detail);
        return;
    }
    s->first_shard = all ? 0 : only;
    s->last_shard = all ? s->cursor.shard_count - 1 : only;
    s->shards = arena_zalloc(request->arena, s->cursor.shard_count * sizeof *s->shards);
    s->heartbeat_ms = heartbeat_ms > 0 ? heartbeat_ms : HEARTBEAT_MS_DEFAULT;
    s->sweep_at_ms = now_ms(s) + SWEEP_MS;
    s->next = router->subscribers;
    if (s->next != NULL)
        s->next->previous = s;
    router->subscribers = s;
    router->subscriber_count++;
    request->state = s;
    request->cancel = on_cancel;
    request->writable = on_writable;
    loop_timer_init(&s->timer, router->options.loop, on_timer, s);
    event_feed_start(router->event_feed, on_news, router);
    want_all(s);
    message_begin(s);
    message_send(s); /* At once: the caller sees that it is listened to. */
    schedule(s, 0);
}

void event_subscribe_handle(struct request *request)
{
    const Holdfast__V1__SubscribeRequest *message = (const void *)request->message;
    struct event_subscriber *s = arena_zalloc(request->arena, sizeof *s);
    Holdfast__V1__ErrorDetail detail;

    s->request = request;
    s->ask = (struct event_ask){ message->kinds, message->n_kinds, message->entity_prefix,
                                 message->entity, message->consumer };
    s->heartbeat_ms = message->heartbeat_ms;
    s->wish = (struct event_consumer_wish){
        .request = request,
        .ask = &s->ask,
        .cursor = slice_from_text(message->cursor),
        .cursor_read = &s->cursor,
        .done = begin,
        .user = s,
    };
    if (check(request, s, &detail) == ERR_OK)
        event_consumer_begin(&s->wish);
    else
        request_fail(request, &detail);
}
