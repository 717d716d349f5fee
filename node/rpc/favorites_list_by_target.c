#include "holdfast/v1/favorites.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/favorite/erasure_row.h"
#include "node/core/favorite/favorite.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/rpc/methods.h"

#define PAGE_SIZE_DEFAULT 500u
#define PAGE_SIZE_MAX     1000u

typedef Holdfast__V1__ListByTargetRequest list_request;
typedef Holdfast__V1__ListByTargetResponse list_response;

struct page {
    struct read_context *context;
    list_response *response;
    uint32_t size;
    bool more;
    char *last; /* The player of the last edge that was looked at. */
    uint32_t seen;
    err result;
};

/* One that cannot be read is listed without its time, so that pages go on. */
static bool take(void *user, struct slice key, struct slice value)
{
    struct page *page = user;
    struct arena *arena = page->context->arena;
    struct favorite_key edge;
    struct player player;
    uint64_t at_ms = 0;

    if (page->seen++ == page->size) {
        page->more = true;
        return false;
    }
    if (favorer_row_decode(key, value, &edge, &at_ms) != ERR_OK)
        damage_note(page->context->damage, (struct slice){ 0 }, FAVORER_DAMAGE);
    if (favorite_key_parse(key, &edge) != ERR_OK)
        return true;
    player_init(&player, edge.entity);
    page->last = arena_text(arena, player_id(&player));
    /* Its edges go one after the other: until this one's turn comes, it stands with its target. */
    if (erasure_leaves_out(page->context, edge.entity, &page->result))
        return true;
    Holdfast__V1__FavoriteEdge *told =
        (void *)arena_message(arena, &holdfast__v1__favorite_edge__descriptor);
    told->player_id = page->last;
    told->created_at_ms = (int64_t)at_ms;
    page->response->edges[page->response->n_edges++] = told;
    return true;
}

static err place_add(struct read_context *context, const char *cursor, struct row_key *after)
{
    if (cursor[0] == 0)
        return ERR_OK;
    if (player_id_check(slice_from_text(cursor)) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "cursor",
                              "next_cursor of the page before",
                              text_shorten(context->arena, slice_from_text(cursor)));
    row_key_favorer_add(after, entity_of_player(context->arena, cursor));
    return ERR_OK;
}

static err read_page(struct page *page, const list_request *request, uint64_t collection)
{
    struct read_context *context = page->context;
    struct row_key prefix, after;

    row_key_favorer_prefix(&prefix, collection, slice_from_text(request->target_id));
    after = prefix;
    err e = place_add(context, request->cursor, &after);
    if (e != ERR_OK)
        return e;
    const struct state_range range = {
        .prefix = row_key_slice(&prefix),
        .after = row_key_slice(&after),
        .limit = page->size + 1, /* One more, to know whether there is another page. */
    };
    page->response->edges = arena_alloc(context->arena, sizeof(void *) * page->size);
    e = state_range_visit(context->state, &range, context->need, take, page);
    return e == ERR_OK ? page->result : e;
}

static err favorites_list_by_target_read(struct read_context *context,
                                         const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const list_request *request = (const void *)message;
    list_response *response = (void *)reply;
    uint32_t size = request->page_size > 0 ? request->page_size : PAGE_SIZE_DEFAULT;
    struct page page = { .context = context, .response = response, .size = size };
    struct collection collection;

    if (request->page_size > PAGE_SIZE_MAX)
        return refuse_number(context->arena, context->refusal, "page_size", "1 to 1000, or 0",
                             request->page_size);
    err e =
        favorite_target_check(context->arena, context->refusal, "target_id", request->target_id);
    if (e == ERR_OK)
        e = collection_read(context, request->collection, &collection);
    if (e == ERR_OK)
        e = read_page(&page, request, collection.number);
    if (e != ERR_OK)
        return e;
    if (page.more && page.last != NULL)
        response->next_cursor = page.last;
    response->as_of = as_of_text(context);
    return ERR_OK;
}

const struct handler favorites_list_by_target_handler = {
    .method = METHOD_LIST_BY_TARGET,
    .read = favorites_list_by_target_read,
};
