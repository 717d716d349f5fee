#include "node/core/definition/collection.h"

#include "node/core/definition/definition_row.h"
#include "node/core/definition/name_index.h"
#include "node/core/rows/rows.h"

static bool of_body(const Holdfast__V1__DefinitionBody *body, uint64_t ret_facts[2])
{
    if (body->kind_case != HOLDFAST__V1__DEFINITION_BODY__KIND_COLLECTION)
        return false;
    ret_facts[0] =
        body->collection->edges_max > 0 ? body->collection->edges_max : COLLECTION_EDGES_DEFAULT;
    ret_facts[1] = body->collection->conflict_policy ==
                   HOLDFAST__V1__CONFLICT_POLICY__CONFLICT_POLICY_LAST_WRITE;
    return true;
}

static void put_facts(struct buf *out, const struct named *named)
{
    buf_put_u32(out, (uint32_t)named->facts[0]);
    buf_put_u8(out, (uint8_t)named->facts[1]);
}

static void read_facts(struct reader *reader, struct named *ret_named)
{
    ret_named->facts[0] = read_u32(reader);
    ret_named->facts[1] = read_u8(reader) != 0;
    reader->bad |= ret_named->facts[0] == 0;
}

static const struct name_kind collections = {
    .row = ROW_NAMES_COLLECTIONS,
    .noun = "collection",
    .fallback = COLLECTION_DEFAULT,
    .of_body = of_body,
    .put = put_facts,
    .read = read_facts,
};

static err told(err e, const struct named *named, struct collection *ret_collection)
{
    if (e == ERR_OK)
        *ret_collection = (struct collection){ .number = named->number,
                                               .edges_max = (uint32_t)named->facts[0],
                                               .last_write = named->facts[1] != 0 };
    return e;
}

struct slice collection_name(const char *given)
{
    return name_given(&collections, given);
}

bool collection_row_is_sound(struct slice key, struct slice value)
{
    return name_row_is_sound(&collections, key, value);
}

err collection_read(struct read_context *context, const char *given,
                    struct collection *ret_collection)
{
    struct named named;

    err e = name_read(context, &collections, given, &named);
    return told(e, &named, ret_collection);
}

err collection_get(struct apply_context *context, const char *given,
                   struct collection *ret_collection)
{
    struct named named;

    err e = name_get(context, &collections, given, &named);
    return told(e, &named, ret_collection);
}

err collection_name_find(struct state *state, struct arena *arena, struct need *need,
                         uint64_t number, struct slice *ret_name)
{
    struct row_key key;
    struct slice value = { 0 };

    *ret_name = (struct slice){ 0 };
    row_key_definition(&key, number);
    enum state_found found = row_find(state, &key, need, &value);
    if (found == STATE_MISSING)
        return ERR_NEED;
    const defined *row =
        found == STATE_PRESENT && number != DEFINITION_HEAD_NUMBER
            ? definition_row_decode(arena, row_key_slice(&key), arena_copy(arena, value))
            : NULL;
    if (row != NULL && row->body->kind_case == HOLDFAST__V1__DEFINITION_BODY__KIND_COLLECTION)
        *ret_name = slice_from_text(row->name);
    return ERR_OK;
}

bool collection_known(struct state *state, struct arena *arena, const char *given,
                      struct collection *ret_collection)
{
    struct named named;

    return told(name_known(state, arena, &collections, given, &named), &named, ret_collection) ==
           ERR_OK;
}

err collection_check(struct check_context *context, const char *given)
{
    struct named unused;

    err e = name_check(context, &collections, given, &unused);
    return e == ERR_NEED ? ERR_OK : e; /* Rows are to be loaded: apply decides. */
}

err collection_index(struct apply_context *context)
{
    return name_index(context, &collections);
}
