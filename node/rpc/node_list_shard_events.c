/* The events of one shard after a place in it. What is applied is committed, and what is committed
 * was there at once: no event comes before its change, and none of before it comes later. */
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/handler/event_row.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"

#define LIMIT_MAX      1000u
#define KINDS_MAX      16u
#define PREFIX_MAX     128u
#define SCAN_MAX       1000u          /* Rows that one call looks at. */
#define PAGE_BYTES_MAX (256u * 1024u) /* Of the rows that it tells. */
#define REST_OF_ENTRY  UINT32_MAX

typedef Holdfast__Internal__V1__ListShardEventsRequest list_request;
typedef Holdfast__Internal__V1__ListShardEventsResponse list_response;

/* One page while it is put together. */
struct page {
    struct read_context *context;
    const list_request *request;
    list_response *response;
    struct slice prefix;
    struct event_place at; /* Everything up to here was looked at. */
    uint32_t looked_at;
    size_t bytes;
    bool full;
};

/* A restore from a backup begins another life of the shard: what was given out before it is
 * no place of this life. */
static uint32_t life_of(const struct meta *meta)
{
    uint32_t life;

    memcpy(&life, meta->use.restore_id.bytes, sizeof life);
    return life;
}

static bool is_wanted(const struct page *page, const struct event_row *row)
{
    const list_request *request = page->request;
    bool kind = request->n_kinds == 0;

    for (size_t i = 0; i < request->n_kinds && !kind; i++)
        kind = request->kinds[i] == row->kind;
    return kind && row->entity.size >= page->prefix.size &&
           (page->prefix.size == 0 ||
            memcmp(row->entity.data, page->prefix.data, page->prefix.size) == 0);
}

/* Whether it could be told, or is left out by the filters. */
static bool tell(struct page *page, const struct event_place *place, struct slice value)
{
    struct event_row row;

    if (event_row_decode(value, &row) != ERR_OK)
        return false;
    if (event_row_is_lost(&row)) {
        page->response->gap = true;
        return true;
    }
    if (!is_wanted(page, &row))
        return true;
    Holdfast__V1__Event *event =
        event_tell(page->context->arena, page->context->shard, place, &row);
    if (event == NULL)
        return false;
    page->response->events[page->response->n_events++] = event;
    page->bytes += value.size;
    return true;
}

static bool take(void *user, struct slice key, struct slice value)
{
    struct page *page = user;
    struct event_place place;

    page->full = page->response->n_events == page->request->limit ||
                 (page->bytes > 0 && page->bytes + value.size > PAGE_BYTES_MAX);
    if (page->full)
        return false;
    page->looked_at++;
    bool sound = event_key_parse(key, &place) == ERR_OK;
    if (sound)
        page->at = place;
    if (!sound || !tell(page, &place, value)) {
        damage_note(page->context->damage, (struct slice){ 0 }, EVENT_DAMAGE);
        page->response->gap = true;
    }
    return true;
}

static err check(struct read_context *context, const list_request *request)
{
    size_t prefix = strlen(request->entity_prefix);

    if (request->limit == 0 || request->limit > LIMIT_MAX)
        return refuse_number(context->arena, context->refusal, "limit", "1 to 1000",
                             request->limit);
    if (request->n_kinds > KINDS_MAX)
        return refuse_number(context->arena, context->refusal, "kinds", "at most 16",
                             (int64_t)request->n_kinds);
    if (prefix > PREFIX_MAX)
        return refuse_number(context->arena, context->refusal, "entity_prefix", "at most 128 bytes",
                             (int64_t)prefix);
    if (request->after.len != 0 && request->after.len != EVENT_PLACE_BYTES)
        return refuse_number(context->arena, context->refusal, "after", "20 bytes, or none",
                             (int64_t)request->after.len);
    return ERR_OK;
}

/* Everything that the state includes. */
static struct event_place end_of(const struct read_context *context)
{
    return (struct event_place){ context->as_of.epoch, context->as_of.counter, REST_OF_ENTRY };
}

/* Where the page begins: after what the reader knows, if that is all still there or known. */
static void begin(struct page *page)
{
    const struct event_log *log = &page->context->meta->events;
    const list_request *request = page->request;
    struct event_place end = end_of(page->context);
    struct event_place known;

    page->at = log->trimmed;
    if (event_place_parse((struct slice){ request->after.data, request->after.len }, &known) !=
        ERR_OK)
        return; /* There is none: from the oldest on. */
    page->response->gap = request->life != life_of(page->context->meta) ||
                          event_place_compare(&known, &end) > 0 ||
                          event_place_compare(&known, &log->trimmed) < 0;
    if (!page->response->gap)
        page->at = known;
}

static void end(struct page *page, bool all)
{
    list_response *response = page->response;
    struct arena *arena = page->context->arena;

    if (all)
        page->at = end_of(page->context);
    response->more = !all;
    response->life = life_of(page->context->meta);
    response->next.len = EVENT_PLACE_BYTES;
    response->next.data = arena_alloc(arena, EVENT_PLACE_BYTES);
    event_place_print(&page->at, response->next.data);
    response->as_of = as_of_text(page->context);
}

static err node_list_shard_events_read(struct read_context *context,
                                       const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const list_request *request = (const list_request *)(const void *)message;
    const uint8_t letter = TABLE_EVENT;
    struct state_range range = { .prefix = { &letter, 1 } };
    struct page page = {
        .context = context,
        .request = request,
        .response = (list_response *)(void *)reply,
        .prefix = slice_from_text(request->entity_prefix),
    };
    struct row_key after;

    err e = check(context, request);
    if (e != ERR_OK)
        return e;
    begin(&page);
    event_row_key(&after, &page.at);
    range.after = row_key_slice(&after);
    range.limit = request->n_kinds > 0 || page.prefix.size > 0 ? SCAN_MAX : request->limit;
    page.response->events =
        arena_alloc(context->arena, request->limit * sizeof *page.response->events);
    e = state_range_visit(context->state, &range, context->need, take, &page);
    if (e == ERR_OK)
        end(&page, !page.full && page.looked_at < range.limit);
    return e;
}

const struct handler node_list_shard_events_handler = {
    .method = METHOD_LIST_SHARD_EVENTS,
    .read = node_list_shard_events_read,
};
