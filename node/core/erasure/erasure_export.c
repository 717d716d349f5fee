#include "node/core/erasure/erasure_export.h"

#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/counter/counter.h"
#include "node/core/definition/definition.h"
#include "node/core/definition/player_rate.h"
#include "node/core/favorite/favorite.h"
#include "node/core/handler/refusal.h"
#include "runtime/base/check.h"
#include "runtime/base/hex.h"

typedef Holdfast__V1__ExportedRow exported_row;
typedef Holdfast__V1__ExportPlayerRequest export_request;
typedef Holdfast__V1__ExportPlayerResponse export_response;

struct page {
    struct read_context *context;
    export_response *response;
    size_t size;
    struct slice last; /* The key of the last row that is told. */
    bool more;
    err result;
};

/* ---- one row ---- */

/* The name that the definition of that number has; "": it was deleted, or the number is 0, which is
 * no definition's. ERR_NEED. */
static err name_of(struct read_context *context, uint64_t number, char **ret_name)
{
    struct slice value = { 0 };
    struct row_key key;

    if (number == 0)
        return ERR_OK;
    row_key_definition(&key, number);
    enum state_found found = row_find(context->state, &key, context->need, &value);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_ABSENT)
        return ERR_OK;
    const defined *definition = definition_row_decode(context->arena, row_key_slice(&key),
                                                      arena_copy(context->arena, value));
    if (definition == NULL)
        return read_damaged(context, DEFINITION_DAMAGE);
    *ret_name = definition->name;
    return ERR_OK;
}

static err tell_edge(struct read_context *context, struct slice key, struct slice value,
                     exported_row *told)
{
    struct favorite_row row, own;
    struct favorite_key edge;

    if (favored_row_decode(key, value, &edge, &row.ver) != ERR_OK)
        return read_damaged(context, FAVORED_DAMAGE);
    err e = favorite_find(context->state, &edge, context->need, &own);
    if (e != ERR_OK)
        return e == ERR_NEED ? e : read_damaged(context, FAVORITE_DAMAGE);
    row.favorited = edge.part == FAVORED_EDGES;
    row.at_ms = edge.at_ms;
    told->flagged_for = (Holdfast__V1__FlagReason)own.flag;
    told->flagged_at_ms = (int64_t)own.flagged_at_ms;
    told->number = edge.collection;
    told->row_case = HOLDFAST__V1__EXPORTED_ROW__ROW_EDGE;
    told->edge = favorite_status(context->arena, edge.target, &row);
    told->gone_at_ms = row.favorited ? 0 : (int64_t)row.at_ms;
    return ERR_OK;
}

static err tell_addition(struct read_context *context, struct slice key, struct slice value,
                         exported_row *told)
{
    struct favorite_key of;
    struct added_row row;

    if (added_row_decode(value, &row) != ERR_OK || favorite_key_parse(key, &of) != ERR_OK)
        return read_damaged(context, ADDED_DAMAGE);
    told->number = of.collection;
    told->row_case = HOLDFAST__V1__EXPORTED_ROW__ROW_COUNTER;
    told->counter = counter_told(context->arena, of.target, &row);
    return ERR_OK;
}

static err tell_rate(struct read_context *context, struct slice key, struct slice value,
                     exported_row *told)
{
    struct reader reader = reader_from((struct slice){ key.data + key.size - 8, 8 });
    struct arena *arena = context->arena;
    struct rate_row row;

    if (rate_row_decode(value, &row) != ERR_OK)
        return read_damaged(context, RATE_DAMAGE);
    told->number = read_u64_be(&reader);
    told->row_case = HOLDFAST__V1__EXPORTED_ROW__ROW_RATE;
    told->rate = (void *)arena_message(arena, &holdfast__v1__exported_rate__descriptor);
    told->rate->windows = arena_alloc(arena, sizeof(void *) * RATE_USES_MAX);
    for (uint32_t i = 0; i < row.count; i++) {
        Holdfast__V1__ExportedRate__Window *window =
            (void *)arena_message(arena, &holdfast__v1__exported_rate__window__descriptor);
        window->rule = row.list[i].number;
        window->since_ms = (int64_t)row.list[i].since_ms;
        window->used = row.list[i].used;
        told->rate->windows[told->rate->n_windows++] = window;
    }
    return ERR_OK;
}

static err tell(struct read_context *context, struct slice key, struct slice value,
                exported_row *told)
{
    switch ((int)key.data[0]) {
    case TABLE_FAVORED:
        return tell_edge(context, key, value, told);
    case TABLE_ADDED:
        return tell_addition(context, key, value, told);
    default:
        return tell_rate(context, key, value, told);
    }
}

static bool take(void *user, struct slice key, struct slice value)
{
    struct page *page = user;
    struct arena *arena = page->context->arena;
    export_response *response = page->response;

    if (response->n_rows == page->size) {
        page->more = true;
        return false;
    }
    exported_row *told = (void *)arena_message(arena, &holdfast__v1__exported_row__descriptor);
    err e = tell(page->context, key, value, told);
    if (e != ERR_OK)
        page->result = e;
    if (e != ERR_OK && e != ERR_NEED)
        return false; /* Else go on, so that every missing row is noted. */
    page->last = arena_copy(arena, key);
    response->rows[response->n_rows++] = told;
    return true;
}

/* ---- pages ---- */

/* In which order the player's tables are told. */
static const enum table tables[] = { TABLE_FAVORED, TABLE_ADDED, TABLE_RATE };

/* A place is the key of the last row of the page before, but for the player: the table's letter,
 * and the rest in hex digits. */
static char *place_of(struct page *page)
{
    size_t head = 1 + page->context->entity.size + 1;
    size_t size = page->last.size - head;
    char *text = arena_zalloc(page->context->arena, 1 + 2 * size + 1);

    text[0] = (char)page->last.data[0];
    hex_print(page->last.data + head, size, text + 1);
    return text;
}

static err refuse_cursor(struct read_context *context, struct slice place)
{
    return refuse_invalid(context->arena, context->refusal, "cursor",
                          "next_cursor of the page before", text_shorten(context->arena, place));
}

/* *ret_first: the table to go on in; *after, which begins as that table's prefix, where. */
static err place_find(struct read_context *context, const char *cursor, size_t *ret_first,
                      struct row_key *after)
{
    struct slice place = slice_from_text(cursor);
    size_t first = 0, digits = place.size > 0 ? place.size - 1 : 0;

    while (place.size > 0 && first < ARRAY_SIZE(tables) && place.data[0] != (uint8_t)tables[first])
        first++;
    if (first == ARRAY_SIZE(tables))
        return refuse_cursor(context, place);
    *ret_first = first;
    row_key_entity_prefix(after, tables[first], context->entity);
    if (place.size == 0)
        return ERR_OK;
    struct slice hex = { place.data + 1, digits };
    if (digits < 2 || digits % 2 != 0 || digits / 2 > sizeof after->bytes - after->size ||
        hex_parse(hex, digits / 2, after->bytes + after->size) != ERR_OK)
        return refuse_cursor(context, place);
    after->size += digits / 2;
    return ERR_OK;
}

static err read_table(struct page *page, enum table table, const struct row_key *after)
{
    struct read_context *context = page->context;
    struct row_key prefix;

    row_key_entity_prefix(&prefix, table, context->entity);
    const struct state_range range = {
        .prefix = row_key_slice(&prefix),
        .after = after->size > prefix.size ? row_key_slice(after) : (struct slice){ 0 },
        /* One more, to know whether there is another page. */
        .limit = (uint32_t)(page->size - page->response->n_rows + 1),
    };
    err e = state_range_visit(context->state, &range, context->need, take, page);
    return e == ERR_OK ? page->result : e;
}

static err read_page(struct page *page, const char *cursor)
{
    struct row_key after;
    size_t first = 0;

    err e = place_find(page->context, cursor, &first, &after);
    if (e != ERR_OK)
        return e;
    page->response->rows = arena_alloc(page->context->arena, sizeof(void *) * page->size);
    for (size_t i = first; e == ERR_OK && i < ARRAY_SIZE(tables) && !page->more; i++) {
        if (i > first)
            row_key_entity_prefix(&after, tables[i], page->context->entity);
        e = read_table(page, tables[i], &after);
    }
    return e;
}

/* Rows of one definition come together: each is looked up once. */
static err names_add(struct page *page)
{
    export_response *response = page->response;
    err result = ERR_OK;

    for (size_t i = 0; i < response->n_rows; i++) {
        exported_row *row = response->rows[i];
        if (i > 0 && response->rows[i - 1]->number == row->number) {
            row->name = response->rows[i - 1]->name;
            continue;
        }
        err e = name_of(page->context, row->number, &row->name);
        if (e == ERR_NEED || result == ERR_OK)
            result = e; /* Go on, so that every missing row is noted. */
    }
    return result;
}

err erasure_export(struct read_context *context, const export_request *request,
                   export_response *response)
{
    struct page page = {
        .context = context,
        .response = response,
        .size = request->page_size > 0 ? request->page_size : EXPORT_PAGE_DEFAULT,
    };

    if (request->page_size > EXPORT_PAGE_MAX)
        return refuse_number(context->arena, context->refusal, "page_size", "1 to 200, or 0",
                             request->page_size);
    err e = read_page(&page, request->cursor);
    if (e == ERR_OK)
        e = names_add(&page);
    if (e == ERR_OK && page.more)
        response->next_cursor = place_of(&page);
    return e;
}
