/* The events of one shard after a place in it. What is applied is committed, and what is committed
 * was there at once: no event comes before its change, and none of before it comes later. */
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/goods/ledger.h"
#include "node/core/goods/ledger_event.h"
#include "node/core/handler/event.h"
#include "node/core/handler/event_row.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"

#define LIMIT_MAX      1000u
#define KINDS_MAX      16u
#define PREFIX_MAX     128u
#define SCAN_MAX       1000u          /* Rows that one call looks at. */
#define PAGE_BYTES_MAX (256u * 1024u) /* Of the events that it tells. */
#define REST_OF_ENTRY  UINT32_MAX

typedef Holdfast__Internal__V1__ListShardEventsRequest list_request;
typedef Holdfast__Internal__V1__ListShardEventsResponse list_response;

/* An event that the filters leave, as its row has it. */
struct found {
    struct event_place place;
    struct event_row row; /* Borrowed from the state. */
    bool gap;             /* Some between the one before and this one cannot be read. */
    uint32_t looked_at;   /* Rows up to it, itself too. */
};

/* One page while it is put together. */
struct page {
    struct read_context *context;
    const list_request *request;
    list_response *response;
    struct slice prefix, entity;
    struct event_place at; /* Everything up to here was looked at. */
    uint64_t at_ms;        /* When that was committed. */
    uint64_t passed;       /* Events up to where the page begins, and 1; 0: not known. */
    uint32_t looked_at;
    uint32_t counted; /* Of them, those up to `at`. */
    struct found *found;
    uint32_t count;
    bool gap; /* Behind the last one found. */
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

/* Every event is wanted. */
static bool is_open(const struct page *page)
{
    return page->request->n_kinds == 0 && page->prefix.size == 0 && page->entity.size == 0;
}

static bool is_wanted(const struct page *page, const struct event_row *row)
{
    const list_request *request = page->request;
    bool kind = request->n_kinds == 0;

    for (size_t i = 0; i < request->n_kinds && !kind; i++)
        kind = request->kinds[i] == row->kind;
    return kind && slice_begins_with(row->entity, page->prefix) &&
           (page->entity.size == 0 || slice_equal(row->entity, page->entity));
}

/* False: it cannot be read. */
static bool find(struct page *page, const struct event_place *place, struct slice value)
{
    struct event_row row;

    if (event_row_decode(value, &row) != ERR_OK)
        return false;
    if (row.at_ms > 0)
        page->at_ms = row.at_ms;
    if (page->response->first_ms == 0)
        page->response->first_ms = row.at_ms;
    if (event_row_is_lost(&row)) {
        page->gap = true;
    } else if (is_wanted(page, &row)) {
        page->found[page->count++] = (struct found){ *place, row, page->gap, page->looked_at };
        page->gap = false;
    }
    return true;
}

static bool take(void *user, struct slice key, struct slice value)
{
    struct page *page = user;
    struct event_place place;

    page->full = page->count == page->request->limit;
    if (page->full)
        return false;
    page->counted = ++page->looked_at;
    bool sound = event_key_parse(key, &place) == ERR_OK;
    if (sound)
        page->at = place;
    if (!sound || !find(page, &place, value)) {
        damage_note(page->context->damage, (struct slice){ 0 }, EVENT_DAMAGE);
        page->gap = true;
    }
    return true;
}

/* Of which shard, or whose: a person looks at it, and the page goes on. */
static void note_damage(struct read_context *context, enum ledger_event_result result,
                        struct slice entity)
{
    if (result == LEDGER_EVENT_UNREADABLE)
        damage_note(context->damage, entity, LEDGER_DAMAGE);
    else if (result == LEDGER_EVENT_OF_NONE)
        damage_note(context->damage, (struct slice){ 0 }, EVENT_DAMAGE);
}

/* The event as a reader gets it; *ret_event NULL: nothing can tell it any more. ERR_NEED. */
static err make(const struct page *page, const struct found *found, Holdfast__V1__Event **ret_event)
{
    struct read_context *context = page->context;
    Holdfast__V1__Event *event =
        event_tell(context->arena, context->shard, &found->place, &found->row);
    enum ledger_event_result result = LEDGER_EVENT_DONE;

    if (event == NULL)
        result = LEDGER_EVENT_OF_NONE;
    else if (event->body_case == HOLDFAST__V1__EVENT__BODY_LEDGER)
        result = ledger_event_complete(context, event);
    note_damage(context, result, found->row.entity);
    *ret_event = result == LEDGER_EVENT_DONE ? event : NULL;
    return result == LEDGER_EVENT_NEED ? ERR_NEED : ERR_OK;
}

/* As many as a page has room for; the place goes back to the last of them. ERR_NEED, of all that is
 * missing at once. */
static err tell_all(struct page *page)
{
    list_response *response = page->response;
    size_t bytes = 0;
    err result = ERR_OK;

    for (uint32_t i = 0; i < page->count; i++) {
        Holdfast__V1__Event *event;
        if (make(page, &page->found[i], &event) != ERR_OK)
            result = ERR_NEED;
        if (result != ERR_OK)
            continue;
        size_t size = event != NULL ? protobuf_c_message_get_packed_size(&event->base) : 0;
        if (bytes > 0 && bytes + size > PAGE_BYTES_MAX) {
            page->at = page->found[i - 1].place;
            page->at_ms = page->found[i - 1].row.at_ms;
            page->counted = page->found[i - 1].looked_at;
            page->gap = false;
            page->full = true;
            break;
        }
        bytes += size;
        response->gap |= page->found[i].gap || event == NULL;
        if (event == NULL)
            continue;
        if (page->passed > 0)
            response->event_passed[response->n_event_passed++] =
                page->passed + page->found[i].looked_at;
        response->events[response->n_events++] = event;
    }
    response->gap |= page->gap;
    return result;
}

static err check(struct read_context *context, const list_request *request)
{
    size_t prefix = strlen(request->entity_prefix);
    size_t entity = strlen(request->entity);

    if (request->limit == 0 || request->limit > LIMIT_MAX)
        return refuse_number(context->arena, context->refusal, "limit", "1 to 1000",
                             request->limit);
    if (request->n_kinds > KINDS_MAX)
        return refuse_number(context->arena, context->refusal, "kinds", "at most 16",
                             (int64_t)request->n_kinds);
    if (prefix > PREFIX_MAX)
        return refuse_number(context->arena, context->refusal, "entity_prefix", "at most 128 bytes",
                             (int64_t)prefix);
    if (entity > PREFIX_MAX)
        return refuse_number(context->arena, context->refusal, "entity", "at most 128 bytes",
                             (int64_t)entity);
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

/* Replicas of an earlier program did not count what they trimmed. */
static bool counts(const struct page *page)
{
    return page->context->meta->apply_version >= CONSUMER_APPLY_VERSION;
}

/* How many of the shard's events there were behind what the reader knows, and are no more. */
static void tell_lost(struct page *page)
{
    uint64_t gone = page->context->meta->events.trimmed_count + 1;

    if (page->request->passed == 0 || !counts(page))
        return;
    page->response->_lost_case = HOLDFAST__INTERNAL__V1__LIST_SHARD_EVENTS_RESPONSE___LOST_LOST;
    page->response->lost = gone > page->request->passed ? gone - page->request->passed : 0;
}

/* Where the page begins: after what the reader knows, if that is all still there or known. */
static void begin(struct page *page)
{
    const struct event_log *log = &page->context->meta->events;
    const list_request *request = page->request;
    struct event_place end = end_of(page->context);
    struct event_place known;

    page->at = log->trimmed;
    page->passed = counts(page) ? log->trimmed_count + 1 : 0;
    if (event_place_parse((struct slice){ request->after.data, request->after.len }, &known) !=
        ERR_OK)
        return; /* There is none: from the oldest on. */
    bool other_life =
        request->life != life_of(page->context->meta) || event_place_compare(&known, &end) > 0;
    bool trimmed = event_place_compare(&known, &log->trimmed) < 0;
    page->response->gap = other_life || trimmed;
    if (!page->response->gap) {
        page->at = known;
        page->passed = counts(page) ? request->passed : 0;
    } else if (!other_life) {
        tell_lost(page);
    }
}

static void end(struct page *page, bool all)
{
    list_response *response = page->response;
    struct arena *arena = page->context->arena;
    const struct event_log *log = &page->context->meta->events;

    if (counts(page))
        response->last = log->trimmed_count + log->count + 1;
    response->passed = all ? response->last : page->passed > 0 ? page->passed + page->counted : 0;
    response->begin = page->passed;
    response->now_ms = page->context->now_unix_ms;
    response->passed_ms = all ? page->context->now_unix_ms : page->at_ms;
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
        .entity = slice_from_text(request->entity),
    };
    struct row_key after;

    err e = check(context, request);
    if (e != ERR_OK)
        return e;
    begin(&page);
    event_row_key(&after, &page.at);
    range.after = row_key_slice(&after);
    range.limit = is_open(&page) ? request->limit : SCAN_MAX;
    page.found = arena_alloc(context->arena, request->limit * sizeof *page.found);
    page.response->events =
        arena_alloc(context->arena, request->limit * sizeof *page.response->events);
    page.response->event_passed =
        arena_alloc(context->arena, request->limit * sizeof *page.response->event_passed);
    e = state_range_visit(context->state, &range, context->need, take, &page);
    if (e == ERR_OK)
        e = tell_all(&page);
    if (e == ERR_OK)
        end(&page, !page.full && page.looked_at < range.limit);
    return e;
}

const struct handler node_list_shard_events_handler = {
    .method = METHOD_LIST_SHARD_EVENTS,
    .read = node_list_shard_events_read,
};
