#include "node/core/counter/addition_count.h"

#include "node/core/favorite/partial.h"

struct addition {
    struct added_row row;
    struct partial_row partial;
    bool counts;
    err readable;         /* The row, with the player or with the target. */
    err partial_readable; /* ... */
};

static void adder_key(const struct favorite_key *key, struct row_key *ret_key)
{
    row_key_adder_prefix(ret_key, key->collection, key->target);
    row_key_adder_add(ret_key, key->entity);
}

static err load(struct apply_context *context, const struct favorite_key *key,
                struct addition *ret_addition)
{
    struct added_row twin;

    err own = added_find(context->state, key, context->need, &ret_addition->row);
    err with_target = adder_find(context->state, key, context->need, &twin);
    ret_addition->partial_readable =
        partial_find(context->state, key, context->need, &ret_addition->partial);
    if (ret_addition->partial_readable == ERR_OK &&
        ret_addition->partial.count > partial_max(context->op->shard_count))
        ret_addition->partial_readable = ERR_CORRUPT; /* No home would take it. */
    if (own == ERR_NEED || with_target == ERR_NEED || ret_addition->partial_readable == ERR_NEED)
        return ERR_NEED;
    ret_addition->counts = with_target == ERR_CORRUPT || twin.value > 0;
    ret_addition->readable = own == ERR_OK ? ERR_OK : with_target;
    if (own != ERR_OK)
        ret_addition->row = twin;
    if (ret_addition->row.value == 0)
        ret_addition->readable = ERR_CORRUPT;
    return ERR_OK;
}

/* A total that cannot be read, or cannot change so, is left to its repair; a rebuild that is on its
 * way over it follows. */
static err left_alone(struct apply_context *context, const struct favorite_key *key,
                      const struct partial_row *before, const struct partial_row *after)
{
    damage_note(context->damage, (struct slice){ 0 }, PARTIAL_DAMAGE);
    return partial_follow(context, key, before, after);
}

err addition_count_out(struct apply_context *context, const struct favorite_key *key)
{
    static const struct hours none;
    static const struct partial_row without;
    struct addition a;
    struct row_key adder;

    err e = load(context, key, &a);
    if (e != ERR_OK || !a.counts)
        return e;
    if (a.readable != ERR_OK) {
        damage_note(context->damage, key->entity, ADDED_DAMAGE);
        return ERR_OK;
    }
    const struct partial_row of_addition = { .count = (uint64_t)a.row.value, .hours = a.row.hours };
    adder_key(key, &adder);
    state_delete(context->state, row_key_slice(&adder));
    if (a.partial_readable != ERR_OK || (uint64_t)a.row.value > a.partial.count)
        return left_alone(context, key, &of_addition, &without);
    a.partial.count -= (uint64_t)a.row.value;
    hours_prune(&a.partial.hours, hour_of(context->owner_ms));
    hours_replace(&a.partial.hours, &a.row.hours, &none);
    hours_trim(&a.partial.hours, a.partial.count);
    return partial_store(context, key, &a.partial);
}

err addition_count_in(struct apply_context *context, const struct favorite_key *key)
{
    static const struct hours none;
    static const struct partial_row without;
    uint32_t now = hour_of(context->owner_ms);
    struct addition a;
    struct row_key adder;

    err e = load(context, key, &a);
    if (e != ERR_OK || a.counts)
        return e;
    if (a.readable != ERR_OK) {
        damage_note(context->damage, key->entity, ADDED_DAMAGE);
        return ERR_OK;
    }
    const struct partial_row of_addition = { .count = (uint64_t)a.row.value, .hours = a.row.hours };
    adder_key(key, &adder);
    buf_clear(context->scratch);
    added_row_encode(&a.row, context->scratch);
    state_put(context->state, row_key_slice(&adder), buf_slice(context->scratch));
    uint64_t max = partial_max(context->op->shard_count);
    if (a.partial_readable != ERR_OK || (uint64_t)a.row.value > max - a.partial.count)
        return left_alone(context, key, &without, &of_addition);
    a.partial.count += (uint64_t)a.row.value;
    hours_prune(&a.partial.hours, now);
    hours_prune(&a.row.hours, now);
    hours_replace(&a.partial.hours, &none, &a.row.hours);
    return partial_store(context, key, &a.partial);
}
