#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/favorite/erasure_row.h"
#include "node/core/favorite/favorite.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/core/repair/row_repair.h"
#include "node/rpc/methods.h"

#define PAGE_SIZE_DEFAULT 100u
#define PAGE_SIZE_MAX     200u
#define LOOK_MAX          1000u /* Rows of one page, with a filter. */

typedef Holdfast__V1__ListFlaggedEdgesRequest list_request;
typedef Holdfast__V1__ListFlaggedEdgesResponse list_response;

struct page {
    struct read_context *context;
    const list_request *request;
    list_response *response;
    uint64_t collection; /* Of the filter; 0: any. */
    struct slice entity; /* Likewise; empty: any. */
    uint32_t size, looked, look_max;
    bool more;
    struct slice last; /* The key that was looked at last. */
    err result;
};

static bool is_wanted(const struct page *page, const struct review_row *row)
{
    if (page->collection > 0 && row->edge.collection != page->collection)
        return false;
    if (page->request->reason != HOLDFAST__V1__FLAG_REASON__FLAG_REASON_UNSPECIFIED &&
        row->flag != (uint32_t)page->request->reason)
        return false;
    return page->entity.size == 0 || slice_equal(row->edge.entity, page->entity);
}

static void tell(struct page *page, const struct review_row *row)
{
    struct arena *arena = page->context->arena;
    Holdfast__V1__FlaggedEdge *told =
        (void *)arena_message(arena, &holdfast__v1__flagged_edge__descriptor);
    struct player player;

    player_init(&player, row->edge.entity);
    told->player_id = arena_text(arena, player_id(&player));
    told->collection_number = row->edge.collection;
    told->target_id = arena_text(arena, row->edge.target);
    told->reason = (Holdfast__V1__FlagReason)row->flag;
    told->created_at_ms = (int64_t)row->made_at_ms;
    told->flagged_at_ms = (int64_t)row->edge.at_ms;
    page->response->edges[page->response->n_edges++] = told;
}

/* One that cannot be read is left out: a repair makes it again. */
static bool take(void *user, struct slice key, struct slice value)
{
    struct page *page = user;
    struct review_row row;

    if (page->response->n_edges == page->size || page->looked == page->look_max) {
        page->more = true;
        return false;
    }
    page->looked++;
    page->last = arena_copy(page->context->arena, key);
    if (review_row_decode(key, value, &row) != ERR_OK)
        damage_note(page->context->damage, row_entity(key), REVIEW_DAMAGE);
    else if (is_wanted(page, &row) &&
             !erasure_leaves_out(page->context, row.edge.entity, &page->result))
        tell(page, &row);
    return true;
}

/* ---- the request ---- */
static err filter(struct page *page)
{
    struct read_context *context = page->context;
    const list_request *request = page->request;
    struct collection collection;

    if (request->page_size > PAGE_SIZE_MAX)
        return refuse_number(context->arena, context->refusal, "page_size", "1 to 200, or 0",
                             request->page_size);
    if ((uint32_t)request->reason > FLAG_REJECTED)
        return refuse_number(context->arena, context->refusal, "reason", "a FlagReason",
                             (int64_t)request->reason);
    if (request->player_id[0] != '\0') {
        if (player_id_check(slice_from_text(request->player_id)) != ERR_OK)
            return refuse_invalid(
                context->arena, context->refusal, "player_id",
                "1 to 100 bytes of UTF-8 without control characters, or absent",
                text_shorten(context->arena, slice_from_text(request->player_id)));
        page->entity = entity_of_player(context->arena, request->player_id);
    }
    if (request->collection[0] == '\0')
        return ERR_OK;
    err e = collection_read(context, request->collection, &collection);
    if (e == ERR_OK)
        page->collection = collection.number;
    return e;
}

/* A place is the key of the last row that was looked at, in hex digits. */
static err place_parse(struct page *page, struct row_key *ret_after)
{
    struct read_context *context = page->context;
    struct slice place = slice_from_text(page->request->cursor);
    struct favorite_key unused;

    if (place.size == 0)
        return ERR_OK;
    if (row_key_parse(place, ret_after) == ERR_OK &&
        review_key_parse(row_key_slice(ret_after), &unused) == ERR_OK)
        return ERR_OK;
    return refuse_invalid(context->arena, context->refusal, "cursor",
                          "next_cursor of the page before", text_shorten(context->arena, place));
}

static err read_page(struct page *page)
{
    struct read_context *context = page->context;
    const uint8_t letter = TABLE_REVIEW;
    struct row_key after = { .size = 1, .bytes = { TABLE_REVIEW } };

    err e = place_parse(page, &after);
    if (e != ERR_OK)
        return e;
    bool filtered = page->collection > 0 || page->entity.size > 0 || page->request->reason != 0;
    page->look_max = filtered ? LOOK_MAX : page->size;
    const struct state_range range = {
        .prefix = { &letter, 1 },
        .after = row_key_slice(&after),
        .limit = page->look_max + 1, /* One more, to know whether there is another page. */
    };
    page->response->edges = arena_alloc(context->arena, sizeof(void *) * page->size);
    e = state_range_visit(context->state, &range, context->need, take, page);
    return e == ERR_OK ? page->result : e;
}

/* Their numbers are in the rows, their names in the definitions of now. */
static err name_collections(struct page *page)
{
    struct read_context *context = page->context;
    err result = ERR_OK;

    for (size_t i = 0; i < page->response->n_edges; i++) {
        Holdfast__V1__FlaggedEdge *told = page->response->edges[i];
        struct slice name;
        err e = collection_name_find(context->state, context->arena, context->need,
                                     told->collection_number, &name);
        if (e != ERR_OK)
            result = e; /* Go on, so that every missing row is noted. */
        else
            told->collection = arena_text(context->arena, name);
    }
    return result;
}

static err admin_list_flagged_edges_read(struct read_context *context,
                                         const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const list_request *request = (const void *)message;
    list_response *response = (void *)reply;
    struct page page = {
        .context = context,
        .request = request,
        .response = response,
        .size = request->page_size > 0 ? request->page_size : PAGE_SIZE_DEFAULT,
    };

    err e = filter(&page);
    if (e == ERR_OK)
        e = read_page(&page);
    if (e == ERR_OK)
        e = name_collections(&page);
    if (e != ERR_OK)
        return e;
    if (page.more)
        response->next_cursor = bytes_hex(context->arena, page.last, page.last.size);
    response->waiting = context->meta->review_count;
    response->as_of = as_of_text(context);
    return ERR_OK;
}

const struct handler admin_list_flagged_edges_handler = {
    .method = METHOD_LIST_FLAGGED_EDGES,
    .read = admin_list_flagged_edges_read,
};
