#include "node/core/mergeable/absorb.h"

#include "node/core/mergeable/log_record.h"
#include "runtime/base/check.h"

/* The n-th dot that comes along: of the writes, of the cells, of what the sender lately took in. */
static struct merge_dot dot_at(const struct merge_incoming *incoming, uint32_t n)
{
    const struct merge_record *record = incoming->record;

    if (n < incoming->dot_count)
        return incoming->dots[n];
    n -= incoming->dot_count;
    if (n < record->count)
        return record->cells[n]->dot;
    n -= record->count;
    return (struct merge_dot){ record->recent.entries[n].actor, record->recent.entries[n].upto };
}

static uint32_t dot_count(const struct merge_incoming *incoming)
{
    return incoming->dot_count + incoming->record->count + incoming->record->recent.count;
}

/* Whether the clock can name the actors of all the dots, together. */
static bool dots_fit(const struct merge_replica *replica, const struct merge_incoming *incoming)
{
    struct causal fresh = { 0 };

    for (uint32_t i = 0; i < dot_count(incoming); i++) {
        struct merge_dot dot = dot_at(incoming, i);

        if (merge_actor_era(dot.actor) >= replica->clock.era &&
            mclock_find(&replica->clock, dot.actor) == NULL)
            causal_raise(&fresh, dot.actor, 1);
    }
    bool fit = replica->clock.count + fresh.count <= MCLOCK_ACTORS_MAX;

    causal_deinit(&fresh);
    return fit;
}

/* What the two merge into is no larger than all that carries records can take. More comes only of
 * members that lost, again and again, what others already had of them. */
static bool union_fits(const struct merge_replica *replica, const struct merge_record *local,
                       const struct merge_record *record)
{
    struct merge_record joined = { 0 };

    if (local == NULL ||
        (merge_record_bytes(local) + merge_record_bytes(record) <= MERGE_BYTES_MAX &&
         local->count + record->count <= MERGE_CELLS_MAX))
        return true;
    merge_record_copy(&joined, local);
    causal_fill(&joined.context, &replica->clock);
    (void)merge_record_join(&joined, record);
    bool fits = merge_record_bytes(&joined) <= MERGE_BYTES_MAX && joined.count <= MERGE_CELLS_MAX;

    merge_record_deinit(&joined);
    return fits;
}

static err check_fits(const struct merge_replica *replica, const struct merge_incoming *incoming,
                      const struct merge_record *local)
{
    const struct merge_record *record = incoming->record;

    if (local != NULL && local->policy != MERGE_POLICY_NONE &&
        record->policy != MERGE_POLICY_NONE && local->policy != record->policy)
        return ERR_INVALID;
    if (!dots_fit(replica, incoming))
        return ERR_FULL;
    struct causal mine = { 0 };

    if (local != NULL)
        causal_copy(&mine, &local->context);
    causal_fill(&mine, &replica->clock);
    uint32_t actors = causal_union(&mine, &record->context);

    causal_deinit(&mine);
    return actors <= MCLOCK_ACTORS_MAX && union_fits(replica, local, record) ? ERR_OK : ERR_FULL;
}

void merge_take_dot(struct merge_replica *replica, struct merge_dot dot, struct merge_key *key)
{
    if (mclock_holds(&replica->clock, dot))
        return;
    if (mclock_add(&replica->clock, dot) != ERR_OK)
        replica->dots_above = true;
    else if (mclock_holds(&replica->clock, dot))
        dot_index_add(&replica->index, dot, key);
}

/* The local record is filled with the clock before the new dots are in it: a floor that rose over
 * them would say that they had been overwritten. */
static void join(struct merge_replica *replica, const struct merge_incoming *incoming)
{
    bool speaks = merge_clock_speaks_for(replica, incoming->key);
    struct merge_record *local = merge_store_make(&replica->store, incoming->key);

    /* What says nothing here makes no row: its dot is in clock and index. */
    bool says_nothing = merge_record_is_void(local) && incoming->record->count == 0 &&
                        causal_is_empty(&incoming->record->recent);

    if (merge_record_is_void(local))
        local->erasure = merge_store_erasure(&replica->store, merge_key_entity(incoming->key));
    if (speaks)
        causal_fill(&local->context, &replica->clock);
    (void)merge_record_join(local, incoming->record);
    for (uint32_t i = 0; i < incoming->dot_count && !says_nothing; i++)
        causal_raise(&local->recent, incoming->dots[i].actor, incoming->dots[i].counter);
}

static void take_dots(struct merge_replica *replica, const struct merge_incoming *incoming)
{
    const struct merge_record *record = incoming->record;

    for (uint32_t i = 0; i < dot_count(incoming); i++)
        merge_take_dot(replica, dot_at(incoming, i), incoming->key);
    for (uint32_t i = 0; i < record->count; i++)
        if (replica->hlc < record->cells[i]->hlc)
            replica->hlc = record->cells[i]->hlc;
}

/* Leaves out what the clock says, and the dots that all have. */
static void settle(const struct merge_replica *replica, const struct merge_key *key,
                   struct merge_record *local)
{
    uint32_t kept = 0;

    if (merge_clock_speaks_for(replica, key))
        causal_strip(&local->context, &replica->clock);
    for (uint32_t i = 0; i < local->recent.count; i++) {
        struct causal_entry entry = local->recent.entries[i];

        /* Of a forgotten era all have all: a log that is replayed may name thousands of those. */
        if (merge_actor_era(entry.actor) >= replica->clock.era &&
            !merge_all_have(replica, (struct merge_dot){ entry.actor, entry.upto }))
            local->recent.entries[kept++] = entry;
    }
    local->recent.count = kept;
}

void merge_row_settle(struct merge_replica *replica, const struct merge_key *key)
{
    struct merge_record *local = merge_store_find(&replica->store, key);

    if (local == NULL)
        return;
    settle(replica, key, local);
    if (merge_record_is_void(local))
        merge_store_remove(&replica->store, key);
}

void merge_rows_settle(struct merge_replica *replica)
{
    bool has_void = false;

    for (uint32_t i = 0; i < replica->store.count; i++) {
        struct merge_row *row = &replica->store.rows[i];

        if (causal_is_empty(&row->record.context) && causal_is_empty(&row->record.recent))
            continue;
        settle(replica, row->key, &row->record);
        has_void |= merge_record_is_void(&row->record);
    }
    if (has_void)
        merge_store_remove_void(&replica->store);
}

err merge_absorb(struct merge_replica *replica, const struct merge_incoming *incoming)
{
    struct slice entity = merge_key_entity(incoming->key);
    const struct merge_record *record = incoming->record;
    err e = check_fits(replica, incoming, merge_store_find(&replica->store, incoming->key));

    if (e == ERR_OK)
        e = merge_store_erase(&replica->store, entity, record->erasure);
    if (e != ERR_OK)
        return e;
    /* What an erasure has passed is dropped wherever it comes from; its dots were taken in all the
     * same. */
    if (record->erasure == merge_store_erasure(&replica->store, entity))
        join(replica, incoming);
    take_dots(replica, incoming);
    merge_row_settle(replica, incoming->key);
    merge_store_changed(&replica->store, incoming->key);
    return ERR_OK;
}

/* Not all of it is here already. What is can be left alone, like a message that was lost. */
static bool brings_news(const struct merge_replica *replica, const struct merge_incoming *incoming)
{
    struct slice entity = merge_key_entity(incoming->key);
    const struct merge_record *stored = merge_store_find(&replica->store, incoming->key);
    struct merge_record local = { 0 };

    for (uint32_t i = 0; i < dot_count(incoming); i++)
        if (!mclock_covers(&replica->clock, dot_at(incoming, i)))
            return true;
    if (incoming->record->erasure > merge_store_erasure(&replica->store, entity))
        return true;
    if (stored == NULL || stored->erasure != incoming->record->erasure)
        return false;
    merge_record_copy(&local, stored);
    causal_fill(&local.context, &replica->clock);
    (void)merge_record_join(&local, incoming->record);
    bool same = merge_record_equal(&local, stored, false);

    merge_record_deinit(&local);
    return !same;
}

err merge_absorb_logged(struct merge_replica *replica, const struct merge_incoming *incoming)
{
    err e = check_fits(replica, incoming, merge_store_find(&replica->store, incoming->key));

    if (e != ERR_OK || !brings_news(replica, incoming))
        return e;
    e = merge_absorb(replica, incoming);
    if (e == ERR_OK)
        merge_log_record(replica, incoming);
    return e;
}

err merge_erase(struct merge_replica *replica, struct slice entity, uint64_t number)
{
    if (entity.size == 0 || entity.size > MERGE_ENTITY_BYTES_MAX || number == 0)
        return ERR_INVALID;
    err e = merge_store_erase(&replica->store, entity, number);

    if (e == ERR_OK)
        merge_log_erase(replica, entity, number);
    return e;
}
