/* Owner-made: the oldest events go, as far as retention lets them. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/definition/retention.h"
#include "node/core/handler/event.h"
#include "node/core/handler/event_row.h"
#include "node/rpc/methods.h"

#define ROWS_MAX 4096u

typedef Holdfast__Internal__V1__TrimEventsRequest trim_request;
typedef Holdfast__Internal__V1__TrimEventsResponse trim_response;

/* The oldest events while they are looked at. */
struct trim {
    struct apply_context *context;
    struct retention retention;
    uint32_t rows_max;
    uint32_t count;
    struct slice *keys; /* Of those that go. */
    uint64_t last_ms;   /* When the last of them was committed. */
    uint64_t kept_ms;   /* When the first that stays was; 0: not seen. */
};

/* One that cannot be read goes as soon as it is the oldest. */
static bool take(void *user, struct slice key, struct slice value)
{
    struct trim *trim = user;
    struct apply_context *context = trim->context;
    struct event_row row = { 0 };

    if (event_row_decode(value, &row) != ERR_OK)
        row = (struct event_row){ 0 };
    bool old = row.at_ms + trim->retention.keep_ms <= context->owner_ms;
    bool many = context->meta->events.count > trim->retention.events_max + trim->count;
    if (!old && !many) {
        trim->kept_ms = row.at_ms;
        return false;
    }
    if (trim->count == trim->rows_max)
        return false;
    trim->keys[trim->count++] = arena_copy(context->arena, key);
    trim->last_ms = row.at_ms;
    return true;
}

static void remove_all(struct trim *trim)
{
    struct apply_context *context = trim->context;
    struct event_log *log = &context->meta->events;

    for (uint32_t i = 0; i < trim->count; i++)
        state_forget(context->state, trim->keys[i]);
    log->removed += trim->count;
    if (context->version >= CONSUMER_APPLY_VERSION)
        log->trimmed_count += trim->count;
    if (trim->count > 0)
        (void)!event_key_parse(trim->keys[trim->count - 1], &log->trimmed);
    if (trim->kept_ms > 0)
        log->oldest_ms = trim->kept_ms;
    else if (trim->last_ms > log->oldest_ms)
        log->oldest_ms = trim->last_ms;
}

static err node_trim_events_handle(struct apply_context *context, const ProtobufCMessage *message,
                                   ProtobufCMessage *reply)
{
    const trim_request *request = (const trim_request *)(const void *)message;
    trim_response *response = (trim_response *)(void *)reply;
    const struct event_log *log = &context->meta->events;
    struct trim trim = {
        .context = context,
        .rows_max = request->rows_max < ROWS_MAX ? request->rows_max : ROWS_MAX,
    };
    const uint8_t letter = TABLE_EVENT;
    struct state_range range = { .prefix = { &letter, 1 }, .limit = trim.rows_max + 1 };
    struct row_key after;

    trim.keys = arena_alloc(context->arena, range.limit * sizeof *trim.keys);
    if (log->trimmed.epoch > 0) { /* Else the database would pass by all that went before. */
        event_row_key(&after, &log->trimmed);
        range.after = row_key_slice(&after);
    }
    err retention = retention_find(context, &trim.retention);
    err e = retention == ERR_OK
                ? state_range_visit(context->state, &range, context->need, take, &trim)
                : retention;
    if (e != ERR_OK)
        return e;
    remove_all(&trim);
    retention_keep(context->meta, &trim.retention);
    response->removed = trim.count;
    response->more = trim.count == trim.rows_max;
    return ERR_OK;
}

const struct handler node_trim_events_handler = {
    .method = METHOD_TRIM_EVENTS,
    .handle = node_trim_events_handle,
};
