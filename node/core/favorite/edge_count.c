#include "node/core/favorite/edge_count.h"

static void favorer_key(const struct favorite_key *edge, struct row_key *key)
{
    row_key_favorer_prefix(key, edge->collection, edge->target);
    row_key_favorer_add(key, edge->entity);
}

/* ERR_NEED is of either. */
static err load(struct apply_context *context, const struct favorite_key *edge, bool *ret_counts,
                struct partial_row *ret_partial, err *ret_readable)
{
    struct slice unused = { 0 };
    struct row_key key;

    favorer_key(edge, &key);
    enum state_found found = row_find(context->state, &key, context->need, &unused);
    *ret_readable = partial_find(context->state, edge, context->need, ret_partial);
    *ret_counts = found == STATE_PRESENT;
    if (*ret_readable == ERR_OK && ret_partial->count > partial_max(context->op->shard_count))
        *ret_readable = ERR_CORRUPT; /* No home would take it. */
    return found == STATE_MISSING || *ret_readable == ERR_NEED ? ERR_NEED : ERR_OK;
}

err edge_count_out(struct apply_context *context, const struct favorite_key *edge)
{
    struct partial_row partial;
    struct row_key key;
    err readable;
    bool counts;

    err e = load(context, edge, &counts, &partial, &readable);
    if (e != ERR_OK || !counts)
        return e;
    favorer_key(edge, &key);
    state_delete(context->state, row_key_slice(&key));
    if (readable != ERR_OK || partial.count == 0) {
        damage_note(context->damage, (struct slice){ 0 }, PARTIAL_DAMAGE);
        return ERR_OK;
    }
    partial.count--;
    hours_prune(&partial.hours, hour_of(context->owner_ms));
    hours_remove(&partial.hours, hour_of(edge->at_ms));
    hours_trim(&partial.hours, partial.count); /* A row that was spoilt may have it elsewhere. */
    partial_store(context, edge, &partial);
    return ERR_OK;
}

err edge_count_in(struct apply_context *context, const struct favorite_key *edge)
{
    uint32_t now = hour_of(context->owner_ms), made = hour_of(edge->at_ms);
    struct partial_row partial;
    struct row_key key;
    err readable;
    bool counts;

    err e = load(context, edge, &counts, &partial, &readable);
    if (e != ERR_OK || counts)
        return e;
    favorer_key(edge, &key);
    buf_clear(context->scratch);
    favorer_row_encode(edge->at_ms, context->scratch);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
    if (readable != ERR_OK) {
        damage_note(context->damage, (struct slice){ 0 }, PARTIAL_DAMAGE);
        return ERR_OK;
    }
    partial.count++;
    hours_prune(&partial.hours, now);
    if (made > now || now - made < HOURS_MAX)
        hours_add(&partial.hours, made);
    partial_store(context, edge, &partial);
    return ERR_OK;
}
