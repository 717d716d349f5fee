#include <inttypes.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/handler/refusal.h"
#include "node/core/top/top.h"

typedef Holdfast__Internal__V1__TakePartialsRequest take_request;
typedef Holdfast__Internal__V1__TakePartialsResponse take_response;
typedef Holdfast__Internal__V1__PulledPart pulled_part;

static struct slice items_of(const pulled_part *part)
{
    return (struct slice){ part->items.data, part->items.len };
}

/* ---- before the log ---- */
static err totals_version_check(struct check_context *context, uint32_t least)
{
    if (context->meta->apply_version >= least)
        return ERR_OK;
    (void)refuse(context->arena, context->refusal, CODE(UNAVAILABLE), "",
                 "shard %" PRIu32 " applies version %" PRIu32 "; these totals begin with %" PRIu32
                 ", once all its replicas are updated",
                 context->shard, context->meta->apply_version, least);
    return ERR_INVALID;
}

err top_version_check(struct check_context *context)
{
    return totals_version_check(context, TOP_APPLY_VERSION);
}

/* A home that applies an older version would take one count of an entry alone: it waits. */
static err check_part(struct check_context *context, const pulled_part *part, const char *field,
                      size_t *items)
{
    struct reader reader = reader_from(items_of(part));
    struct source_dot last = { 0 };
    struct pull_item item;
    bool together = false;

    if (part->source >= context->shard_count)
        return refuse_number(context->arena, context->refusal, field, "a shard of the cluster",
                             part->source);
    while (pull_item_next(&reader, &item)) {
        (*items)++;
        together |= memcmp(&item.dot, &last, sizeof last) == 0;
        last = item.dot;
        reader.bad |= item.count > partial_max(context->shard_count);
        reader.bad |=
            target_home(item.collection, item.target, context->shard_count) != context->shard;
    }
    if (reader.bad)
        return refuse_invalid(context->arena, context->refusal, field,
                              "items as PullPartials gives them, of this shard's targets", "");
    return together ? totals_version_check(context, ENTRY_COUNTS_APPLY_VERSION) : ERR_OK;
}

err top_take_check(struct check_context *context, const take_request *request)
{
    struct arena *arena = context->arena;
    size_t items = 0;

    err e = top_version_check(context);
    if (e != ERR_OK)
        return e;
    if (request->n_parts > context->shard_count)
        return refuse_number(arena, context->refusal, "parts", "at most one for each shard",
                             (int64_t)request->n_parts);
    if (request->sweep > TAKE_SWEEP_MAX)
        return refuse_number(arena, context->refusal, "sweep", "at most 256", request->sweep);
    for (size_t i = 0; i < request->n_parts && e == ERR_OK; i++)
        e = check_part(context, request->parts[i], arena_printf(arena, "parts[%zu]", i), &items);
    if (e == ERR_OK && items > TAKE_ITEMS_MAX)
        e = refuse_number(arena, context->refusal, "parts", "at most 1024 items in all",
                          (int64_t)items);
    return e;
}

void top_take_footprint(const take_request *request, struct need *keys)
{
    struct pull_item item;
    struct row_key key;

    for (size_t i = 0; i < request->n_parts; i++) {
        struct reader reader = reader_from(items_of(request->parts[i]));
        if (request->parts[i]->source > UINT16_MAX)
            return;
        row_key_pulled(&key, request->parts[i]->source);
        need_add_key(keys, row_key_slice(&key));
        while (pull_item_next(&reader, &item)) {
            row_key_share_prefix(&key, item.collection, item.target);
            row_key_share_add(&key, request->parts[i]->source);
            need_add_key(keys, row_key_slice(&key));
            row_key_tally(&key, item.collection, item.target);
            need_add_key(keys, row_key_slice(&key));
        }
    }
}

/* ---- at apply ---- */
struct taking {
    struct apply_context *context;
    take_response *response;
};

static void rank_put(struct apply_context *context, const struct row_key *key, bool stands)
{
    if (!stands) {
        state_delete(context->state, row_key_slice(key));
        return;
    }
    buf_clear(context->scratch);
    rank_row_encode(context->scratch);
    state_put(context->state, row_key_slice(key), buf_slice(context->scratch));
}

static void rank_move(struct apply_context *context, const struct top_key *of, uint64_t from,
                      uint64_t to)
{
    struct row_key key;

    if (from == to)
        return;
    if (from > 0) {
        row_key_rank_prefix(&key, of->collection, of->window);
        row_key_rank_add(&key, from, of->target);
        rank_put(context, &key, false);
    }
    if (to > 0) {
        row_key_rank_prefix(&key, of->collection, of->window);
        row_key_rank_add(&key, to, of->target);
        rank_put(context, &key, true);
    }
}

void tally_store(struct apply_context *context, const struct top_key *of,
                 const struct tally_row *was, struct tally_row *row)
{
    uint32_t hour = hour_of(context->owner_ms);
    struct top_key place = *of;
    struct row_key key;

    row->day = hours_sum(&row->hours, hour, HOURS_DAY);
    row->week = hours_sum(&row->hours, hour, HOURS_MAX);
    place.window = TOP_DAY;
    rank_move(context, &place, was->day, row->day);
    place.window = TOP_WEEK;
    rank_move(context, &place, was->week, row->week);
    place.window = TOP_ALL;
    rank_move(context, &place, was->count, row->count);
    row_key_tally(&key, of->collection, of->target);
    if (row->count == 0) {
        state_delete(context->state, row_key_slice(&key));
        return;
    }
    buf_clear(context->scratch);
    tally_row_encode(row, context->scratch);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
}

static void share_store(struct apply_context *context, const struct top_key *of,
                        const struct share_row *row)
{
    struct row_key key;

    row_key_share_prefix(&key, of->collection, of->target);
    row_key_share_add(&key, of->source);
    if (row->count == 0) {
        state_delete(context->state, row_key_slice(&key));
        return;
    }
    buf_clear(context->scratch);
    share_row_encode(row, context->scratch);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
}

static err left_out(struct apply_context *context, const char *why)
{
    damage_note(context->damage, (struct slice){ 0 }, why);
    return ERR_OK;
}

static err take_item(struct taking *t, uint32_t source, const struct pull_item *item)
{
    struct apply_context *context = t->context;
    const struct top_key of = { .collection = item->collection,
                                .target = item->target,
                                .source = source };
    const struct share_row share = { item->count, item->hours };
    struct share_row before;
    struct tally_row was;

    err e = share_find(context->state, &of, context->need, &before);
    err tally = tally_find(context->state, &of, context->need, &was);
    if (e == ERR_NEED || tally == ERR_NEED)
        return ERR_NEED;
    if (e != ERR_OK)
        return left_out(context, SHARE_DAMAGE);
    if (tally != ERR_OK || was.count < before.count) {
        share_store(context, &of, &share); /* A repair of the total adds it up. */
        return left_out(context, TALLY_DAMAGE);
    }
    struct tally_row row = was;
    row.count = was.count - before.count + share.count;
    hours_replace(&row.hours, &before.hours, &share.hours);
    share_store(context, &of, &share);
    tally_store(context, &of, &was, &row);
    t->response->taken++;
    return ERR_OK;
}

static void pulled_store(struct apply_context *context, uint32_t source, struct source_dot dot)
{
    struct row_key key;

    row_key_pulled(&key, source);
    buf_clear(context->scratch);
    pulled_row_encode(dot, context->scratch);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
}

static err take_part(struct taking *t, const pulled_part *part)
{
    const struct source_dot after = { part->after_epoch, part->after_counter };
    const struct source_dot to = { part->to_epoch, part->to_counter };
    struct reader reader = reader_from(items_of(part));
    struct source_dot logged;
    struct pull_item item;
    err result = ERR_OK;

    err e = pulled_find(t->context->state, part->source, t->context->need, &logged);
    if (e == ERR_NEED)
        return e;
    if (e != ERR_OK) /* All of the source is pulled again, to the same sums. */
        damage_note(t->context->damage, (struct slice){ 0 }, PULLED_DAMAGE);
    if (source_dot_is_above(after, logged)) {
        t->response->gaps++;
        return ERR_OK;
    }
    struct source_dot at = logged;
    const bool together = t->context->version >= ENTRY_COUNTS_APPLY_VERSION;
    while (pull_item_next(&reader, &item)) {
        if (!source_dot_is_above(item.dot, together ? logged : at)) {
            t->response->known++;
            continue;
        }
        e = take_item(t, part->source, &item);
        if (e != ERR_OK)
            result = e; /* Go on, so that every missing row is noted. */
        if (source_dot_is_above(item.dot, at))
            at = item.dot;
    }
    if (source_dot_is_above(to, at))
        at = to;
    if (source_dot_is_above(at, logged))
        pulled_store(t->context, part->source, at);
    return result;
}

/* ---- sweeping ---- */
struct swept {
    struct arena *arena;
    struct slice *keys;
    uint32_t count;
};

static bool take_key(void *user, struct slice key, struct slice value)
{
    struct swept *swept = user;

    (void)value;
    swept->keys[swept->count++] = arena_copy(swept->arena, key);
    return true;
}

static err sweep_one(struct apply_context *context, struct slice key)
{
    struct tally_row was;
    struct top_key of;

    if (top_key_parse(key, &of) != ERR_OK)
        return left_out(context, TALLY_DAMAGE);
    err e = tally_find(context->state, &of, context->need, &was);
    if (e == ERR_CORRUPT)
        return left_out(context, TALLY_DAMAGE);
    if (e != ERR_OK)
        return e;
    struct tally_row row = was;
    hours_prune(&row.hours, hour_of(context->owner_ms));
    uint32_t hour = hour_of(context->owner_ms);
    if (hours_sum(&row.hours, hour, HOURS_DAY) != was.day ||
        hours_sum(&row.hours, hour, HOURS_MAX) != was.week)
        tally_store(context, &of, &was, &row);
    return ERR_OK;
}

static err sweep(struct taking *t, const take_request *request)
{
    struct apply_context *context = t->context;
    const uint8_t letter = TABLE_TALLY;
    struct swept swept = { .arena = context->arena };
    const struct state_range range = {
        .prefix = { &letter, 1 },
        .after = { request->sweep_after.data, request->sweep_after.len },
        .limit = request->sweep,
    };

    if (request->sweep == 0)
        return ERR_OK;
    swept.keys = arena_alloc(context->arena, request->sweep * sizeof *swept.keys);
    err e = state_range_visit(context->state, &range, context->need, take_key, &swept);
    for (uint32_t i = 0; i < swept.count && e == ERR_OK; i++)
        e = sweep_one(context, swept.keys[i]);
    if (e == ERR_OK && swept.count == request->sweep) {
        struct slice last = swept.keys[swept.count - 1];
        t->response->swept = (ProtobufCBinaryData){ last.size, (uint8_t *)(uintptr_t)last.data };
    }
    return e;
}

err top_take(struct apply_context *context, const take_request *request, take_response *response)
{
    struct taking taking = { .context = context, .response = response };
    err result = ERR_OK;

    response->taken = response->known = response->gaps = 0;
    for (size_t i = 0; i < request->n_parts; i++) {
        err e = take_part(&taking, request->parts[i]);
        if (e != ERR_OK)
            result = e;
    }
    return result == ERR_OK ? sweep(&taking, request) : result;
}
