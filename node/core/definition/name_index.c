#include "node/core/definition/name_index.h"

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/definition/definition_row.h"
#include "node/core/handler/refusal.h"
#include "runtime/base/check.h"
#include "runtime/base/nearest.h"

#define INDEX_VERSION 1u

struct slice name_given(const struct name_kind *kind, const char *given)
{
    return slice_from_text(given[0] != 0 ? given : kind->fallback);
}

/* ---- the row ---- */

/* One definition after the other, of the row or of their own rows. */
static void entry_put(const struct name_kind *kind, struct buf *out, const struct named *entry)
{
    CHECK(entry->name.size <= DEFINITION_NAME_MAX);
    buf_put_u64(out, entry->number);
    kind->put(out, entry);
    buf_put_u8(out, (uint8_t)entry->name.size);
    buf_append(out, entry->name.data, entry->name.size);
}

static bool entry_next(const struct name_kind *kind, struct reader *reader, struct named *ret_entry)
{
    struct named entry;

    if (reader->bad || reader_left(reader) == 0)
        return false;
    entry.number = read_u64(reader);
    kind->read(reader, &entry);
    entry.name = read_raw(reader, read_u8(reader));
    reader->bad |= entry.number == 0 || !text_is_name(entry.name, DEFINITION_NAME_MAX);
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

bool name_row_is_sound(const struct name_kind *kind, struct slice key, struct slice value)
{
    struct reader reader = index_begin(value);
    struct row_key own;
    struct named entry;

    row_key_names(&own, kind->row);
    while (entry_next(kind, &reader, &entry)) {
    }
    return slice_equal(key, row_key_slice(&own)) && !reader.bad;
}

/* ---- looking a name up ---- */

struct search {
    const struct name_kind *kind;
    struct arena *arena;
    struct slice name;
    struct named *found;
    bool is_found;
    struct buf *index;       /* All of them are put there; NULL: they are not. */
    struct nearest *nearest; /* All of them are offered to it; NULL: they are not. */
};

static void look(struct search *search, const struct named *entry)
{
    if (search->index != NULL)
        entry_put(search->kind, search->index, entry);
    if (search->nearest != NULL)
        nearest_offer(search->nearest, entry->name);
    if (!slice_equal(entry->name, search->name))
        return;
    *search->found = *entry;
    search->is_found = true;
}

static bool look_at_definition(void *user, struct slice key, struct slice value)
{
    struct search *search = user;
    const defined *row =
        definition_row_decode(search->arena, key, arena_copy(search->arena, value));
    struct named entry;

    if (row == NULL || !search->kind->of_body(row->body, entry.facts))
        return true;
    entry.name = slice_from_text(row->name);
    entry.number = row->number;
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
    struct named entry;

    row_key_names(&key, search->kind->row);
    enum state_found found = row_find(state, &key, need, &value);
    *ret_read =
        found == STATE_PRESENT && name_row_is_sound(search->kind, row_key_slice(&key), value);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (!*ret_read)
        return ERR_OK;
    for (struct reader reader = index_begin(value); entry_next(search->kind, &reader, &entry);) {
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

err name_find(struct state *state, struct arena *arena, struct need *need,
              const struct name_kind *kind, struct named *named)
{
    struct search search = { .kind = kind, .arena = arena, .name = named->name, .found = named };

    err e = search_all(state, need, &search);
    if (e != ERR_OK)
        return e;
    return search.is_found ? ERR_OK : ERR_NOT_FOUND;
}

err name_known(struct state *state, struct arena *arena, const struct name_kind *kind,
               const char *given, struct named *ret_named)
{
    struct need unused = { 0 };

    ret_named->name = name_given(kind, given);
    err e = name_find(state, arena, &unused, kind, ret_named);
    need_deinit(&unused);
    return e;
}

/* ---- refusing ---- */

/* Who asks, before the log, at apply and in a read. */
struct asker {
    const struct name_kind *kind;
    struct arena *arena;
    struct state *state;
    struct need *need;
    struct refusal *refusal;
};

static err refuse_unknown(const struct asker *asker, struct slice name)
{
    const char *noun = asker->kind->noun;
    struct named unused;
    struct nearest nearest;
    struct search search = {
        .kind = asker->kind,
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
    (void)refuse(asker->arena, asker->refusal, CODE(NOT_FOUND), noun, "no %s \"%s\" is defined%s",
                 noun, nearest_show(name, shown), nearest_hint(nearest.name, hint));
    asker->refusal->limit = arena_printf(asker->arena, "the name of a definition of kind %s", noun);
    asker->refusal->value = text_shorten(asker->arena, name);
    return ERR_CONFLICT;
}

static err get(const struct asker *asker, const char *given, struct named *ret_named)
{
    ret_named->name = name_given(asker->kind, given);
    err e = name_find(asker->state, asker->arena, asker->need, asker->kind, ret_named);
    return e == ERR_NOT_FOUND ? refuse_unknown(asker, name_given(asker->kind, given)) : e;
}

static err text_check(const struct asker *asker, const char *given)
{
    struct slice name = name_given(asker->kind, given);

    if (text_is_name(name, DEFINITION_NAME_MAX))
        return ERR_OK;
    return refuse_invalid(asker->arena, asker->refusal, asker->kind->noun,
                          asker->kind->fallback[0] != 0 ? "1 to 64 of a-z, 0-9 and _, or empty"
                                                        : "1 to 64 of a-z, 0-9 and _",
                          text_shorten(asker->arena, name));
}

err name_read(struct read_context *context, const struct name_kind *kind, const char *given,
              struct named *ret_named)
{
    const struct asker asker = { kind, context->arena, context->state, context->need,
                                 context->refusal };

    err e = text_check(&asker, given);
    return e == ERR_OK ? get(&asker, given, ret_named) : e;
}

err name_get(struct apply_context *context, const struct name_kind *kind, const char *given,
             struct named *ret_named)
{
    const struct asker asker = { kind, context->arena, context->state, context->need,
                                 context->refusal };

    return get(&asker, given, ret_named);
}

err name_check(struct check_context *context, const struct name_kind *kind, const char *given,
               struct named *ret_named)
{
    struct need unused = { 0 };
    const struct asker asker = { kind, context->arena, context->state, &unused, context->refusal };

    err e = text_check(&asker, given);
    if (e != ERR_OK)
        return e;
    if (context->state == NULL)
        return ERR_NEED;
    e = get(&asker, given, ret_named);
    need_deinit(&unused);
    return e == ERR_CONFLICT ? ERR_INVALID : e;
}

/* ---- keeping the row ---- */

err name_index(struct apply_context *context, const struct name_kind *kind)
{
    struct buf *out = context->scratch;
    struct named unused;
    struct search search = {
        .kind = kind, .arena = context->arena, .found = &unused, .index = out
    };
    struct row_key key;

    buf_clear(out);
    buf_put_u8(out, INDEX_VERSION);
    err e = look_at_definitions(context->state, context->need, &search);
    if (e != ERR_OK)
        return e;
    row_key_names(&key, kind->row);
    state_put(context->state, row_key_slice(&key), buf_slice(out));
    return ERR_OK;
}
