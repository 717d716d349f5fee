#include "node/core/favorite/partial.h"

#include <string.h>

#include "node/core/codec/text_rule.h"
#include "node/core/favorite/recount_row.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

/* ---- notes ---- */
void changed_key_after(struct row_key *key, uint32_t home, struct source_dot dot)
{
    row_key_changed_prefix(key, home);
    row_key_changed_add_dot(key, dot.epoch, dot.counter);
    row_key_changed_add(key, UINT64_MAX, (struct slice){ 0 }); /* No collection has that number. */
}

void changed_key(struct row_key *key, const struct changed_row *row)
{
    row_key_changed_prefix(key, row->home);
    row_key_changed_add_dot(key, row->dot.epoch, row->dot.counter);
    row_key_changed_add(key, row->collection, row->target);
}

void emptied_key(struct row_key *key, const struct changed_row *row)
{
    row_key_emptied_prefix(key, row->home);
    row_key_changed_add_dot(key, row->dot.epoch, row->dot.counter);
    row_key_changed_add(key, row->collection, row->target);
}

err changed_key_parse(struct slice key, struct changed_row *ret_row)
{
    struct reader reader = reader_from(key);
    uint8_t table = read_u8(&reader);

    ret_row->home = read_u16_be(&reader);
    ret_row->dot.epoch = read_u64_be(&reader);
    ret_row->dot.counter = read_u64_be(&reader);
    ret_row->collection = read_u64_be(&reader);
    ret_row->target = read_raw(&reader, reader_left(&reader));
    if ((table != TABLE_CHANGED && table != TABLE_EMPTIED) || reader.bad ||
        ret_row->dot.epoch == 0 || ret_row->collection == 0 || !target_is_sound(ret_row->target))
        return ERR_CORRUPT;
    return ERR_OK;
}

err changed_row_decode(struct slice key, struct slice value, struct changed_row *ret_row)
{
    if (value.size != 1 || value.data[0] != CHANGED_ROW_VALUE)
        return ERR_CORRUPT;
    return changed_key_parse(key, ret_row);
}

#define NEWEST_VERSION 1u

void newest_row_encode(struct source_dot dot, struct buf *out)
{
    buf_put_u8(out, NEWEST_VERSION);
    buf_put_u64(out, dot.epoch);
    buf_put_u64(out, dot.counter);
}

err newest_row_decode(struct slice key, struct slice value, struct source_dot *ret_dot)
{
    struct reader reader = reader_from(value);
    bool known = read_u8(&reader) == NEWEST_VERSION;

    ret_dot->epoch = read_u64(&reader);
    ret_dot->counter = read_u64(&reader);
    if (!known || ret_dot->epoch == 0 || reader_finish(&reader) != ERR_OK || key.size != 3 ||
        key.data[0] != TABLE_NEWEST)
        return ERR_CORRUPT;
    return ERR_OK;
}

err newest_find(struct state *state, uint32_t home, struct need *need, struct source_dot *ret_dot)
{
    struct row_key key;
    struct slice value = { 0 };

    *ret_dot = (struct source_dot){ 0 };
    row_key_newest(&key, home);
    enum state_found found = row_find(state, &key, need, &value);
    if (found == STATE_MISSING)
        return ERR_NEED;
    return found == STATE_ABSENT ? ERR_OK : newest_row_decode(row_key_slice(&key), value, ret_dot);
}

uint64_t partial_max(uint32_t shard_count)
{
    return (uint64_t)INT64_MAX / (shard_count > 0 ? shard_count : 1);
}

uint32_t target_home(uint64_t collection, struct slice target, uint32_t shard_count)
{
    uint8_t name[sizeof collection + TARGET_ID_MAX];

    CHECK(target.size <= TARGET_ID_MAX);
    store_u64(name, collection);
    memcpy(name + sizeof collection, target.data, target.size);
    return shard_of_entity((struct slice){ name, sizeof collection + target.size }, shard_count);
}

/* ---- rows ---- */
err partial_find(struct state *state, const struct favorite_key *edge, struct need *need,
                 struct partial_row *ret_row)
{
    struct row_key key;
    struct slice value = { 0 };

    *ret_row = (struct partial_row){ 0 };
    row_key_partial(&key, edge->collection, edge->target);
    enum state_found found = row_find(state, &key, need, &value);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_ABSENT)
        return ERR_OK;
    err e = partial_row_decode(value, ret_row);
    ret_row->found_empty = e == ERR_OK && ret_row->count == 0;
    return e;
}

static struct changed_row note_of(const struct apply_context *context,
                                  const struct favorite_key *edge, const struct partial_row *row)
{
    return (struct changed_row){
        .home = target_home(edge->collection, edge->target, context->op->shard_count),
        .dot = row->changed,
        .collection = edge->collection,
        .target = edge->target,
    };
}

static void note_delete(struct apply_context *context, const struct changed_row *note)
{
    struct row_key key;

    changed_key(&key, note);
    state_delete(context->state, row_key_slice(&key));
}

static void emptied_delete(struct apply_context *context, const struct changed_row *note)
{
    struct row_key key;

    emptied_key(&key, note);
    state_delete(context->state, row_key_slice(&key));
}

static void note(struct apply_context *context, const struct favorite_key *edge,
                 struct partial_row *row)
{
    const uint8_t version = CHANGED_ROW_VALUE;
    struct changed_row changed = note_of(context, edge, row);
    struct row_key key;

    if (row->changed.epoch > 0)
        note_delete(context, &changed);
    if (row->changed.epoch > 0 && (row->count == 1 || row->found_empty)) /* It may have been 0. */
        emptied_delete(context, &changed);
    row->changed = (struct source_dot){ context->dot.epoch, context->dot.counter };
    changed.dot = row->changed;
    changed_key(&key, &changed);
    state_put(context->state, row_key_slice(&key), (struct slice){ &version, 1 });
    row_key_newest(&key, changed.home);
    buf_clear(context->scratch);
    newest_row_encode(changed.dot, context->scratch);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
    if (row->count > 0)
        return;
    emptied_key(&key, &changed);
    state_put(context->state, row_key_slice(&key), (struct slice){ &version, 1 });
}

/* A rebuild that is on its way over the edges of this target. */
static err follow(struct apply_context *context, const struct favorite_key *edge,
                  const struct partial_row *after)
{
    struct partial_row before;
    bool counted;

    err e = recount_has_counted(context, edge, &counted);
    if (e != ERR_OK || !counted)
        return e;
    e = partial_find(context->state, edge, context->need, &before);
    if (e == ERR_NEED)
        return e;
    if (e == ERR_OK)
        recount_follow(context, &before, after);
    return ERR_OK;
}

err partial_follow(struct apply_context *context, const struct favorite_key *edge,
                   const struct partial_row *before, const struct partial_row *after)
{
    bool counted;

    err e = recount_has_counted(context, edge, &counted);
    if (e == ERR_OK && counted)
        recount_follow(context, before, after);
    return e;
}

err partial_store(struct apply_context *context, const struct favorite_key *edge,
                  struct partial_row *row)
{
    struct row_key key;

    err e = follow(context, edge, row);
    if (e != ERR_OK)
        return e;
    if (context->version >= TOP_APPLY_VERSION && context->op->shard_count > 0)
        note(context, edge, row);
    row_key_partial(&key, edge->collection, edge->target);
    if (row->count == 0 && row->changed.epoch == 0) {
        state_delete(context->state, row_key_slice(&key));
        return ERR_OK;
    }
    buf_clear(context->scratch);
    partial_row_encode(row, context->scratch);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
    return ERR_OK;
}

/* ---- forgetting ---- */
struct emptied {
    struct arena *arena;
    struct source_dot upto;
    struct slice *keys;
    uint32_t count;
};

/* In order of their dots. A key that is no such key goes, too: it has no meaning. */
static bool take_emptied(void *user, struct slice key, struct slice value)
{
    struct emptied *emptied = user;
    struct changed_row row;

    (void)value;
    if (changed_key_parse(key, &row) == ERR_OK && source_dot_is_above(row.dot, emptied->upto))
        return false;
    emptied->keys[emptied->count++] = arena_copy(emptied->arena, key);
    return true;
}

struct emptied_homes {
    struct emptied_home *list;
    uint32_t count, room;
};

static bool take_emptied_home(void *user, struct slice key, struct slice value)
{
    struct emptied_homes *homes = user;
    struct changed_row row = { 0 };

    (void)value;
    if (changed_key_parse(key, &row) != ERR_OK)
        return true;
    if (homes->count > 0 && homes->list[homes->count - 1].home == row.home)
        return true;
    if (homes->count == homes->room)
        return false;
    homes->list[homes->count++] = (struct emptied_home){ row.home, row.dot };
    return true;
}

err partials_emptied(struct read_context *context, struct emptied_home *ret_homes, uint32_t room,
                     uint32_t *ret_count)
{
    const uint8_t letter = TABLE_EMPTIED;
    struct emptied_homes homes = { .list = ret_homes, .room = room };
    const struct state_range range = { .prefix = { &letter, 1 }, .limit = EMPTIED_LOOK_MAX };

    err e = state_range_visit(context->state, &range, context->need, take_emptied_home, &homes);
    *ret_count = homes.count;
    return e;
}

/* A partial that a repair has made again meanwhile has another dot, and is noted under that. One
 * that cannot be read is left to its repair. */
static err forget(struct apply_context *context, struct slice emptied)
{
    struct changed_row note;
    struct partial_row row;
    struct row_key key;

    if (changed_key_parse(emptied, &note) != ERR_OK) {
        state_delete(context->state, emptied);
        return ERR_OK;
    }
    const struct favorite_key edge = { .collection = note.collection, .target = note.target };
    err e = partial_find(context->state, &edge, context->need, &row);
    if (e == ERR_NEED)
        return e;
    note_delete(context, &note);
    emptied_delete(context, &note);
    if (e == ERR_OK && row.count == 0 && memcmp(&row.changed, &note.dot, sizeof note.dot) == 0) {
        row_key_partial(&key, note.collection, note.target);
        state_delete(context->state, row_key_slice(&key));
    }
    return ERR_OK;
}

err partials_forget(struct apply_context *context, uint32_t home, struct source_dot upto,
                    uint32_t limit, uint32_t *ret_forgotten)
{
    struct emptied emptied = { .arena = context->arena, .upto = upto };
    struct row_key prefix;

    *ret_forgotten = 0;
    row_key_emptied_prefix(&prefix, home);
    emptied.keys = arena_alloc(context->arena, (limit + 1) * sizeof *emptied.keys);
    const struct state_range range = { .prefix = row_key_slice(&prefix), .limit = limit };
    err result = state_range_visit(context->state, &range, context->need, take_emptied, &emptied);
    for (uint32_t i = 0; i < emptied.count; i++) {
        err e = forget(context, emptied.keys[i]);
        if (e != ERR_OK)
            result = e; /* Go on, so that every missing row is noted. */
    }
    *ret_forgotten = emptied.count;
    return result;
}
