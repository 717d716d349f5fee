#include "node/core/definition/collection.h"

#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/definition/definition_row.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"
#include "runtime/base/nearest.h"

#define INDEX_VERSION 1u

struct slice collection_name(const char *given)
{
    return slice_from_text(given[0] != 0 ? given : COLLECTION_DEFAULT);
}

/* ---- the row ---- */

/* One collection after the other, of the row or of the definitions. */
struct listed {
    struct slice name;
    struct collection collection;
};

static void entry_put(struct buf *out, const struct listed *entry)
{
    CHECK(entry->name.size <= DEFINITION_NAME_MAX);
    buf_put_u64(out, entry->collection.number);
    buf_put_u32(out, entry->collection.edges_max);
    buf_put_u8(out, entry->collection.last_write);
    buf_put_u8(out, (uint8_t)entry->name.size);
    buf_append(out, entry->name.data, entry->name.size);
}

static bool entry_next(struct reader *reader, struct listed *ret_entry)
{
    struct listed entry;

    if (reader->bad || reader_left(reader) == 0)
        return false;
    entry.collection.number = read_u64(reader);
    entry.collection.edges_max = read_u32(reader);
    entry.collection.last_write = read_u8(reader) != 0;
    entry.name = read_raw(reader, read_u8(reader));
    reader->bad |= entry.collection.number == 0 || entry.collection.edges_max == 0 ||
                   !text_is_name(entry.name, DEFINITION_NAME_MAX);
    *ret_entry = entry;
    return !reader->bad;
}

/* `reader` is bad where the row is none. */
static struct reader index_begin(struct slice value)
{
    struct reader reader = reader_from(value);

    reader.bad |= read_u8(&reader) != INDEX_VERSION;
    return reader;
}

bool collection_row_is_sound(struct slice key, struct slice value)
{
    struct reader reader = index_begin(value);
    struct row_key own;
    struct listed entry;

    row_key_collection(&own);
    while (entry_next(&reader, &entry)) {
    }
    return slice_equal(key, row_key_slice(&own)) && !reader.bad;
}

/* ---- looking a name up ---- */

struct search {
    struct arena *arena;
    struct slice name;
    struct collection *found;
    bool is_found;
    struct buf *index;       /* All of them are put there; NULL: they are not. */
    struct nearest *nearest; /* All of them are offered to it; NULL: they are not. */
};

static void look(struct search *search, const struct listed *entry)
{
    if (search->index != NULL)
        entry_put(search->index, entry);
    if (search->nearest != NULL)
        nearest_offer(search->nearest, entry->name);
    if (!slice_equal(entry->name, search->name))
        return;
    *search->found = entry->collection;
    search->is_found = true;
}

static bool look_at_definition(void *user, struct slice key, struct slice value)
{
    struct search *search = user;
    const defined *row =
        definition_row_decode(search->arena, key, arena_copy(search->arena, value));
    const Holdfast__V1__CollectionBody *body;

    if (row == NULL || row->body->kind_case != HOLDFAST__V1__DEFINITION_BODY__KIND_COLLECTION)
        return true;
    body = row->body->collection;
    const struct listed entry = {
        .name = slice_from_text(row->name),
        .collection = {
            .number = row->number,
            .edges_max = body->edges_max > 0 ? body->edges_max : COLLECTION_EDGES_DEFAULT,
            .last_write = body->conflict_policy ==
                          HOLDFAST__V1__CONFLICT_POLICY__CONFLICT_POLICY_LAST_WRITE,
        },
    };
    if (text_is_name(entry.name, DEFINITION_NAME_MAX))
        look(search, &entry);
    return true;
}

static err look_at_definitions(struct state *state, struct need *need, struct search *search)
{
    const uint8_t letter = TABLE_DEFINITION;
    const struct state_range all = { .prefix = { &letter, 1 }, .limit = DEFINITIONS_MAX + 1 };

    return state_range_visit(state, &all, need, look_at_definition, search);
}

/* False: there is no row of them that can be read. ERR_NEED. */
static err look_at_index(struct state *state, struct need *need, struct search *search,
                         bool *ret_read)
{
    struct row_key key;
    struct slice value;
    struct listed entry;

    row_key_collection(&key);
    enum state_found found = row_find(state, &key, need, &value);
    *ret_read = found == STATE_PRESENT && collection_row_is_sound(row_key_slice(&key), value);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (!*ret_read)
        return ERR_OK;
    for (struct reader reader = index_begin(value); entry_next(&reader, &entry);) {
        if (search->nearest != NULL) /* The hint outlives the row. */
            entry.name = arena_copy(search->arena, entry.name);
        look(search, &entry);
    }
    return ERR_OK;
}

static err search_all(struct state *state, struct need *need, struct search *search)
{
    bool read;

    err e = look_at_index(state, need, search, &read);
    if (e == ERR_OK && !read)
        e = look_at_definitions(state, need, search);
    return e;
}

err collection_find(struct state *state, struct arena *arena, struct need *need, struct slice name,
                    struct collection *ret_collection)
{
    struct search search = { .arena = arena, .name = name, .found = ret_collection };

    err e = search_all(state, need, &search);
    if (e != ERR_OK)
        return e;
    return search.is_found ? ERR_OK : ERR_NOT_FOUND;
}

/* ---- refusing ---- */

/* Who asks, before the log, at apply and in a read. */
struct asker {
    struct arena *arena;
    struct state *state;
    struct need *need;
    struct refusal *refusal;
};

static err refuse_unknown(const struct asker *asker, const char *given)
{
    struct slice name = collection_name(given);
    struct collection unused;
    struct nearest nearest;
    struct search search = {
        .arena = asker->arena,
        .name = name,
        .found = &unused,
        .nearest = &nearest,
    };
    char shown[NEAREST_SHOWN_BYTES], hint[NEAREST_HINT_BYTES];

    nearest_init(&nearest, name);
    err e = search_all(asker->state, asker->need, &search);
    if (e != ERR_OK)
        return e;
    (void)refuse(asker->arena, asker->refusal, CODE(NOT_FOUND), "collection",
                 "no collection \"%s\" is defined%s", nearest_show(name, shown),
                 nearest_hint(nearest.name, hint));
    asker->refusal->limit = "the name of a definition of kind collection";
    asker->refusal->value = text_shorten(asker->arena, name);
    return ERR_CONFLICT;
}

static err get(const struct asker *asker, const char *given, struct collection *ret_collection)
{
    struct slice name = collection_name(given);

    err e = collection_find(asker->state, asker->arena, asker->need, name, ret_collection);
    return e == ERR_NOT_FOUND ? refuse_unknown(asker, given) : e;
}

static err name_check(struct arena *arena, struct refusal *refusal, const char *given)
{
    struct slice name = collection_name(given);

    if (text_is_name(name, DEFINITION_NAME_MAX))
        return ERR_OK;
    return refuse_invalid(arena, refusal, "collection", "1 to 64 of a-z, 0-9 and _, or empty",
                          text_shorten(arena, name));
}

err collection_read(struct read_context *context, const char *given,
                    struct collection *ret_collection)
{
    const struct asker asker = { context->arena, context->state, context->need, context->refusal };

    err e = name_check(context->arena, context->refusal, given);
    return e == ERR_OK ? get(&asker, given, ret_collection) : e;
}

err collection_get(struct apply_context *context, const char *given,
                   struct collection *ret_collection)
{
    const struct asker asker = { context->arena, context->state, context->need, context->refusal };

    return get(&asker, given, ret_collection);
}

err collection_check(struct check_context *context, const char *given)
{
    struct need unused = { 0 };
    const struct asker asker = { context->arena, context->state, &unused, context->refusal };
    struct collection collection;

    err e = name_check(context->arena, context->refusal, given);
    if (e != ERR_OK || context->state == NULL)
        return e;
    e = get(&asker, given, &collection);
    need_deinit(&unused);
    return e == ERR_CONFLICT ? ERR_INVALID : ERR_OK; /* Rows to be loaded: apply decides. */
}

/* ---- keeping the row ---- */

err collection_index(struct apply_context *context)
{
    struct buf *out = context->scratch;
    struct collection unused;
    struct search search = { .arena = context->arena, .found = &unused, .index = out };
    struct row_key key;

    buf_clear(out);
    buf_put_u8(out, INDEX_VERSION);
    err e = look_at_definitions(context->state, context->need, &search);
    if (e != ERR_OK)
        return e;
    row_key_collection(&key);
    state_put(context->state, row_key_slice(&key), buf_slice(out));
    return ERR_OK;
}
