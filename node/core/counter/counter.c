#include "node/core/counter/counter.h"

#include <inttypes.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/favorite/erasure_row.h"
#include "node/core/favorite/favorite.h"
#include "node/core/handler/refusal.h"
#include "runtime/base/check.h"

typedef Holdfast__V1__AddToCounterRequest add_request;
typedef Holdfast__V1__AddToCounterResponse add_response;

/* ---- before the log ---- */

/* Replicas of an earlier program could not apply it. */
static err refuse_early(struct check_context *context)
{
    (void)refuse(context->arena, context->refusal, CODE(UNAVAILABLE), "",
                 "shard %" PRIu32 " applies version %" PRIu32 "; counters begin with %u, once all "
                 "its replicas are updated",
                 context->shard, context->meta->apply_version, COUNTER_APPLY_VERSION);
    return ERR_INVALID;
}

/* What the counter's rule allows is said at apply alone: a repetition of what was carried out gets
 * its answer, also when the rule has changed since. */
err counter_check(struct check_context *context, const add_request *request)
{
    struct counter_rule unused;

    err e =
        favorite_target_check(context->arena, context->refusal, "target_id", request->target_id);
    if (e != ERR_OK)
        return e;
    if (request->amount < 1 || request->amount > COUNTER_VALUE_MAX)
        return refuse_number(context->arena, context->refusal, "amount", "1 to 9007199254740991",
                             request->amount);
    if (context->meta->apply_version < COUNTER_APPLY_VERSION)
        return refuse_early(context);
    e = counter_rule_check(context, request->counter, &unused);
    return e == ERR_NEED ? ERR_OK : e; /* Rows are to be loaded: apply decides. */
}

void counter_foresee(struct state *state, struct arena *arena, const add_request *request,
                     struct slice entity, struct need *keys)
{
    struct slice target = slice_from_text(request->target_id);
    struct counter_rule rule;
    struct row_key key;

    if (!target_is_sound(target) || !counter_rule_known(state, arena, request->counter, &rule))
        return;
    row_key_added_prefix(&key, entity, rule.number);
    row_key_added_add(&key, target);
    need_add_key(keys, row_key_slice(&key));
    row_key_favorites(&key, entity, rule.number);
    need_add_key(keys, row_key_slice(&key));
    row_key_partial(&key, rule.number, target);
    need_add_key(keys, row_key_slice(&key));
}

/* ---- one addition, at apply ---- */
struct addition {
    struct apply_context *context;
    uint64_t amount;
    struct counter_rule rule;
    struct favorite_key key;
    struct added_row row;     /* As it stands. */
    struct favorites_row own; /* `edges`: the player's targets in this counter. */
    struct partial_row partial;
};

/* Every missing row is noted before ERR_NEED. A row that cannot be read refuses. */
static err load(struct addition *a)
{
    struct apply_context *context = a->context;
    struct slice entity = a->key.entity;

    err added = added_find(context->state, &a->key, context->need, &a->row);
    err own = favorites_find(context->state, &a->key, context->need, &a->own);
    err partial = partial_find(context->state, &a->key, context->need, &a->partial);
    if (added == ERR_NEED || own == ERR_NEED || partial == ERR_NEED)
        return ERR_NEED;
    if (added != ERR_OK)
        return apply_damaged(context, entity, ADDED_DAMAGE);
    if (own != ERR_OK || (a->row.value > 0 && a->own.edges == 0))
        return apply_damaged(context, entity, FAVORITES_DAMAGE);
    if (partial != ERR_OK || (uint64_t)a->row.value > a->partial.count)
        return apply_damaged(context, (struct slice){ 0 }, PARTIAL_DAMAGE);
    return ERR_OK;
}

/* A bound, and what it is of. */
struct bound {
    const char *field, *what;
    uint64_t max, stands;
};

static err refuse_full(struct addition *a, const struct bound *bound)
{
    struct apply_context *context = a->context;
    err e =
        refuse(context->arena, context->refusal, CODE(CAPACITY_FULL), bound->field,
               "%s would pass %" PRIu64 "; it is %" PRIu64, bound->what, bound->max, bound->stands);

    context->refusal->limit = arena_printf(context->arena, "%" PRIu64, bound->max);
    context->refusal->value = arena_printf(context->arena, "%" PRIu64, a->amount);
    refusal_tell_capacity(context, bound->what, (int64_t)bound->max);
    return e;
}

/* Nothing here overflows: what stands is at most what its row may say, and each bound is below
 * 2^63. */
static err check_bounds(struct addition *a)
{
    uint64_t value = (uint64_t)a->row.value;
    const struct bound one = { "amount", "one addition", (uint64_t)a->rule.add_max, a->amount };
    const struct bound own = { "amount", "the player's value", (uint64_t)a->rule.value_max, value };
    const struct bound targets = { "target_id", "the number of the player's targets",
                                   COUNTER_TARGETS_MAX, a->own.edges };
    const struct bound part = { "amount", "the shard's part of the total",
                                partial_max(a->context->op->shard_count), a->partial.count };

    if (a->amount > one.max)
        return refuse_full(a, &one);
    if (value > own.max || a->amount > own.max - value)
        return refuse_full(a, &own);
    if (value == 0 && a->own.edges >= COUNTER_TARGETS_MAX)
        return refuse_full(a, &targets);
    if (a->partial.count > part.max || a->amount > part.max - a->partial.count)
        return refuse_full(a, &part);
    return ERR_OK;
}

static void row_put(struct addition *a, const struct row_key *key)
{
    buf_clear(a->context->scratch);
    added_row_encode(&a->row, a->context->scratch);
    state_put(a->context->state, row_key_slice(key), buf_slice(a->context->scratch));
}

static void store(struct addition *a)
{
    struct row_key key;

    row_key_added_prefix(&key, a->key.entity, a->key.collection);
    row_key_added_add(&key, a->key.target);
    row_put(a, &key);
    row_key_adder_prefix(&key, a->key.collection, a->key.target);
    row_key_adder_add(&key, a->key.entity);
    row_put(a, &key);
}

/* The hour is that of this entry, by its owner's clock, however late a home counts it. */
static err partial_add(struct addition *a)
{
    uint32_t hour = hour_of(a->context->owner_ms);

    a->partial.count += a->amount;
    hours_prune(&a->partial.hours, hour);
    hours_add_many(&a->partial.hours, hour, a->amount);
    return partial_store(a->context, &a->key, &a->partial);
}

err counter_add(struct apply_context *context, const add_request *request, add_response *response)
{
    struct addition a = { .context = context, .amount = (uint64_t)request->amount };

    err e = counter_rule_get(context, request->counter, &a.rule);
    if (e == ERR_OK)
        e = erasure_admit(context);
    if (e != ERR_OK)
        return e;
    a.key = (struct favorite_key){
        .entity = context->op->entity,
        .collection = a.rule.number,
        .target = slice_from_text(request->target_id),
    };
    e = load(&a);
    if (e == ERR_OK)
        e = check_bounds(&a);
    if (e != ERR_OK)
        return e;
    if (a.row.value == 0) {
        a.own.edges++;
        favorites_store(context, &a.key, &a.own);
    }
    a.row.value += request->amount;
    a.row.at_ms = context->owner_ms;
    if (context->version >= ERASURE_APPLY_VERSION) {
        hours_prune(&a.row.hours, hour_of(context->owner_ms));
        hours_add_many(&a.row.hours, hour_of(context->owner_ms), a.amount);
    }
    store(&a);
    e = partial_add(&a);
    if (e != ERR_OK)
        return e;
    CHECK((uint64_t)a.row.value <= a.partial.count);
    response->value = a.row.value;
    response->targets = a.own.edges;
    return ERR_OK;
}

/* ---- telling ---- */
Holdfast__V1__PlayerCounter *counter_told(struct arena *arena, struct slice target,
                                          const struct added_row *row)
{
    Holdfast__V1__PlayerCounter *told =
        (void *)arena_message(arena, &holdfast__v1__player_counter__descriptor);

    told->target_id = arena_text(arena, target);
    told->value = row->value;
    told->added_at_ms = (int64_t)row->at_ms;
    return told;
}
