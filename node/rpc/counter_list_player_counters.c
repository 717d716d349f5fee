#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/counter/counter.h"
#include "node/core/favorite/erasure_row.h"
#include "node/core/favorite/favorite.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"

#define PAGE_SIZE_DEFAULT 50u
#define PAGE_SIZE_MAX     200u

typedef Holdfast__V1__ListPlayerCountersRequest list_request;
typedef Holdfast__V1__ListPlayerCountersResponse list_response;

struct page {
    struct read_context *context;
    list_response *response;
    uint32_t size;
    bool more;
    err result;
};

static bool take(void *user, struct slice key, struct slice value)
{
    struct page *page = user;
    struct read_context *context = page->context;
    list_response *response = page->response;
    struct favorite_key of;
    struct added_row row;

    if (response->n_counters == page->size) {
        page->more = true;
        return false;
    }
    if (favorite_key_parse(key, &of) != ERR_OK || added_row_decode(value, &row) != ERR_OK) {
        page->result = read_damaged(context, ADDED_DAMAGE);
        return false;
    }
    response->counters[response->n_counters++] = counter_told(context->arena, of.target, &row);
    return true;
}

static err count_targets(struct read_context *context, const struct favorite_key *key,
                         list_response *response)
{
    struct favorites_row own;

    err e = favorites_find(context->state, key, context->need, &own);
    if (e == ERR_CORRUPT)
        return read_damaged(context, FAVORITES_DAMAGE);
    response->targets = own.edges;
    return e;
}

/* A place is the last target of the page before. */
static err read_page(struct page *page, const list_request *request, uint64_t number)
{
    struct read_context *context = page->context;
    struct slice place = slice_from_text(request->cursor);
    struct row_key prefix, after;

    if (place.size > 0 && !target_is_sound(place))
        return refuse_invalid(context->arena, context->refusal, "cursor",
                              "next_cursor of the page before",
                              text_shorten(context->arena, place));
    row_key_added_prefix(&prefix, context->entity, number);
    after = prefix;
    row_key_added_add(&after, place);
    const struct state_range range = {
        .prefix = row_key_slice(&prefix),
        .after = row_key_slice(&after),
        .limit = page->size + 1, /* One more, to know whether there is another page. */
    };
    page->response->counters = arena_alloc(context->arena, sizeof(void *) * page->size);
    err e = state_range_visit(context->state, &range, context->need, take, page);
    return e == ERR_OK ? page->result : e;
}

static err counter_list_player_counters_read(struct read_context *context,
                                             const ProtobufCMessage *message,
                                             ProtobufCMessage *reply)
{
    const list_request *request = (const void *)message;
    list_response *response = (void *)reply;
    uint32_t size = request->page_size > 0 ? request->page_size : PAGE_SIZE_DEFAULT;
    struct page page = { .context = context, .response = response, .size = size };
    struct counter_rule rule;
    bool hidden = false;

    if (request->page_size > PAGE_SIZE_MAX)
        return refuse_number(context->arena, context->refusal, "page_size", "1 to 200, or 0",
                             request->page_size);
    err e = counter_rule_read(context, request->counter, &rule);
    if (e == ERR_OK)
        e = erasure_read(context, &hidden);
    if (e != ERR_OK)
        return e;
    const struct favorite_key key = { .entity = context->entity, .collection = rule.number };
    if (!hidden)
        e = count_targets(context, &key, response);
    if (e == ERR_OK && response->targets > 0)
        e = read_page(&page, request, rule.number);
    if (e != ERR_OK)
        return e;
    if (page.more)
        response->next_cursor = response->counters[response->n_counters - 1]->target_id;
    response->as_of = as_of_text(context);
    return ERR_OK;
}

const struct handler counter_list_player_counters_handler = {
    .method = METHOD_LIST_PLAYER_COUNTERS,
    .read = counter_list_player_counters_read,
};
