#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/consumer/consumer.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"
#include "node/rpc/methods.h"

#define PAGE_SIZE_DEFAULT 50u
#define PAGE_SIZE_MAX     100u

typedef Holdfast__V1__ListConsumersRequest list_request;
typedef Holdfast__V1__ListConsumersResponse list_response;

struct page {
    struct read_context *context;
    list_response *response;
    uint32_t size;
    bool more;
};

/* One that cannot be read is listed by its name alone, so that pages go on. */
static bool take(void *user, struct slice key, struct slice value)
{
    struct page *page = user;
    struct arena *arena = page->context->arena;
    struct consumer consumer = { .exists = true };

    if (page->response->n_consumers == page->size) {
        page->more = true;
        return false;
    }
    bool named = consumer_key_parse(key, &consumer.name) == ERR_OK;
    if (!named || consumer_row_decode(value, arena, &consumer.row, &consumer.cursor) != ERR_OK)
        damage_note(page->context->damage, (struct slice){ 0 }, CONSUMER_DAMAGE);
    if (named)
        page->response->consumers[page->response->n_consumers++] =
            consumer_tell(arena, &consumer, false);
    return true;
}

/* Retention by age, or what the number of events leaves of it where that is nearly at its limit. */
static uint64_t kept_ms(const struct read_context *context)
{
    const struct event_log *log = &context->meta->events;
    uint64_t age_ms =
        log->oldest_ms < context->now_unix_ms ? context->now_unix_ms - log->oldest_ms : 0;

    if (log->count < log->events_max - log->events_max / 10 || age_ms > log->keep_ms)
        return log->keep_ms;
    return age_ms;
}

static err event_list_consumers_read(struct read_context *context, const ProtobufCMessage *message,
                                     ProtobufCMessage *reply)
{
    const list_request *request = (const void *)message;
    list_response *response = (void *)reply;
    uint32_t size = request->page_size > 0 ? request->page_size : PAGE_SIZE_DEFAULT;
    struct page page = { .context = context, .response = response, .size = size };
    struct slice place = slice_from_text(request->cursor);
    struct row_key prefix, after;

    if (request->page_size > PAGE_SIZE_MAX)
        return refuse_number(context->arena, context->refusal, "page_size", "1 to 100, or 0",
                             request->page_size);
    if (place.size > 0 && !consumer_name_is_good(place))
        return refuse_invalid(context->arena, context->refusal, "cursor",
                              "next_cursor of the page before",
                              text_shorten(context->arena, place));
    row_key_consumer(&prefix, (struct slice){ 0 });
    after = prefix;
    if (place.size > 0)
        consumer_row_key(&after, place);
    const struct state_range range = {
        .prefix = row_key_slice(&prefix),
        .after = row_key_slice(&after),
        .limit = size + 1, /* One more, to know whether there is another page. */
    };
    response->consumers = arena_alloc(context->arena, size * sizeof(void *));
    err e = state_range_visit(context->state, &range, context->need, take, &page);
    if (e != ERR_OK)
        return e;
    if (page.more)
        response->next_cursor = response->consumers[response->n_consumers - 1]->name;
    response->kept_ms = kept_ms(context);
    response->as_of = as_of_text(context);
    return ERR_OK;
}

const struct handler event_list_consumers_handler = {
    .method = METHOD_LIST_CONSUMERS,
    .read = event_list_consumers_read,
};
