#include "holdfast/v1/favorites.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/favorite/erasure_row.h"
#include "node/core/favorite/favorite.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/rpc/methods.h"

#define PAGE_SIZE_DEFAULT 50u
#define PAGE_SIZE_MAX     200u

typedef Holdfast__V1__ListFavoritesRequest list_request;
typedef Holdfast__V1__ListFavoritesResponse list_response;

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
    struct favorite_row row = { .favorited = true };
    struct favorite_key edge;

    if (response->n_favorites == page->size) {
        page->more = true;
        return false;
    }
    if (favored_row_decode(key, value, &edge, &row.ver) != ERR_OK) {
        page->result = read_damaged(context, FAVORED_DAMAGE);
        return false;
    }
    row.at_ms = edge.at_ms;
    response->favorites[response->n_favorites++] =
        favorite_status(context->arena, edge.target, &row);
    return true;
}

static err refuse_cursor(struct read_context *context, const char *cursor)
{
    return refuse_invalid(context->arena, context->refusal, "cursor",
                          "next_cursor of the page before",
                          text_shorten(context->arena, slice_from_text(cursor)));
}

static err place_add(struct read_context *context, const char *cursor, struct row_key *after)
{
    struct slice target;
    uint64_t at_ms;

    if (cursor[0] == 0)
        return ERR_OK;
    if (favorite_place_parse(cursor, &at_ms, &target) != ERR_OK)
        return refuse_cursor(context, cursor);
    row_key_favored_add(after, FAVORED_EDGES, at_ms, target);
    return ERR_OK;
}

static err count_edges(struct read_context *context, const struct favorite_key *edge,
                       list_response *response)
{
    struct favorites_row own;

    err e = favorites_find(context->state, edge, context->need, &own);
    if (e == ERR_CORRUPT)
        return read_damaged(context, FAVORITES_DAMAGE);
    response->edges = own.edges;
    return e;
}

static err read_page(struct page *page, const list_request *request, uint64_t collection)
{
    struct read_context *context = page->context;
    struct row_key prefix, after;

    row_key_favored_prefix(&prefix, context->entity, collection, FAVORED_EDGES);
    after = prefix;
    err e = place_add(context, request->cursor, &after);
    if (e != ERR_OK)
        return e;
    const struct state_range range = {
        .prefix = row_key_slice(&prefix),
        .after = row_key_slice(&after),
        .limit = page->size + 1, /* One more, to know whether there is another page. */
    };
    page->response->favorites = arena_alloc(context->arena, sizeof(void *) * page->size);
    e = state_range_visit(context->state, &range, context->need, take, page);
    return e == ERR_OK ? page->result : e;
}

static err favorites_list_favorites_read(struct read_context *context,
                                         const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const list_request *request = (const void *)message;
    list_response *response = (void *)reply;
    uint32_t size = request->page_size > 0 ? request->page_size : PAGE_SIZE_DEFAULT;
    struct page page = { .context = context, .response = response, .size = size };
    struct collection collection;
    bool hidden = false;

    if (request->page_size > PAGE_SIZE_MAX)
        return refuse_number(context->arena, context->refusal, "page_size", "1 to 200, or 0",
                             request->page_size);
    err e = collection_read(context, request->collection, &collection);
    if (e == ERR_OK)
        e = erasure_read(context, &hidden);
    if (e != ERR_OK)
        return e;
    const struct favorite_key edge = { .entity = context->entity, .collection = collection.number };
    if (!hidden)
        e = count_edges(context, &edge, response);
    if (e == ERR_OK && response->edges > 0)
        e = read_page(&page, request, collection.number);
    if (e != ERR_OK)
        return e;
    if (page.more) {
        const Holdfast__V1__FavoriteStatus *last = response->favorites[response->n_favorites - 1];
        response->next_cursor =
            favorite_place_print(context->arena, (uint64_t)last->created_at_ms, last->target_id);
    }
    response->as_of = as_of_text(context);
    return ERR_OK;
}

const struct handler favorites_list_favorites_handler = {
    .method = METHOD_LIST_FAVORITES,
    .read = favorites_list_favorites_read,
};
