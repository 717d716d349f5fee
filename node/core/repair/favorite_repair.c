#include "node/core/repair/favorite_repair.h"

#include "node/core/repair/counter_repair.h"
#include "runtime/base/check.h"

#define COUNT_PAGE 1000u

/* One row that is made again. */
struct making {
    struct apply_context *context;
    struct slice key;
    struct favorite_key edge;
    struct edge_repair *repair;
};

static err drop(struct making *m)
{
    state_delete(m->context->state, m->key);
    m->repair->dropped = true;
    return ERR_OK;
}

static struct buf *fresh(struct making *m)
{
    buf_clear(m->context->scratch);
    return m->context->scratch;
}

static err put(struct making *m)
{
    state_put(m->context->state, m->key, buf_slice(m->context->scratch));
    return ERR_OK;
}

/* The edge as it stands with its target, all but its `ver`; not favorited: it does not.
 * ERR_CORRUPT. */
static err favorer_find(struct making *m, struct favorite_row *ret_edge)
{
    struct favorite_key unused;
    struct row_key key;
    struct slice value;

    *ret_edge = (struct favorite_row){ 0 };
    row_key_favorer_prefix(&key, m->edge.collection, m->edge.target);
    row_key_favorer_add(&key, m->edge.entity);
    enum state_found found = row_find(m->context->state, &key, m->context->need, &value);
    if (found != STATE_PRESENT)
        return found == STATE_MISSING ? ERR_NEED : ERR_OK;
    return favorer_row_read(row_key_slice(&key), value, &unused, ret_edge);
}

/* What the list says of it; 1, the lowest that there is, where that cannot be read. ERR_NEED. */
static err listed_ver(struct making *m, uint64_t at_ms, uint64_t *ret_ver)
{
    struct favorite_key unused;
    struct row_key key;
    struct slice value;

    *ret_ver = 1;
    row_key_favored_prefix(&key, m->edge.entity, m->edge.collection, FAVORED_EDGES);
    row_key_favored_add(&key, FAVORED_EDGES, at_ms, m->edge.target);
    enum state_found found = row_find(m->context->state, &key, m->context->need, &value);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_PRESENT &&
        favored_row_decode(row_key_slice(&key), value, &unused, ret_ver) != ERR_OK)
        *ret_ver = 1;
    return ERR_OK;
}

/* An edge that stands stands with its target, too; one that is gone is forgotten. */
static err make_edge(struct making *m)
{
    struct favorite_row row;

    err e = favorer_find(m, &row);
    if (e == ERR_CORRUPT) {
        m->repair->wants = "an edge whose row of table G can be read: RepairRow mends that";
        return ERR_OK;
    }
    if (e != ERR_OK)
        return e;
    if (!row.favorited) {
        e = edge_repair_waits(m->context, m->repair);
        return e != ERR_OK || m->repair->wants != NULL ? e : drop(m);
    }
    e = listed_ver(m, row.at_ms, &row.ver);
    if (e != ERR_OK)
        return e;
    favorite_row_encode(&row, fresh(m));
    return put(m);
}

/* Of a list of what is gone, its count follows. */
static err drop_listed(struct making *m)
{
    struct favorites_row own;

    err e = favorites_find(m->context->state, &m->edge, m->context->need, &own);
    if (e == ERR_NEED)
        return e;
    if (e == ERR_OK && m->edge.part == FAVORED_GONE && own.gone > 0) {
        own.gone--;
        favorites_store(m->context, &m->edge, &own);
    }
    return drop(m);
}

static err make_listed(struct making *m)
{
    struct favorite_row row;

    err e = favorite_find(m->context->state, &m->edge, m->context->need, &row);
    if (e == ERR_NEED)
        return e;
    if (e == ERR_CORRUPT) {
        m->repair->wants = "a row of an edge that can be read: its row of table f comes first";
        return ERR_OK;
    }
    if (row.ver == 0 || row.at_ms != m->edge.at_ms ||
        row.favorited != (m->edge.part == FAVORED_EDGES))
        return drop_listed(m);
    favored_row_encode(row.ver, fresh(m));
    return put(m);
}

static err make_favorer(struct making *m)
{
    struct favorite_row row;

    err e = favorite_find(m->context->state, &m->edge, m->context->need, &row);
    if (e == ERR_NEED)
        return e;
    if (e == ERR_CORRUPT) {
        m->repair->wants = "a row of an edge that can be read: RepairPlayer mends that";
        return ERR_OK;
    }
    if (!row.favorited)
        return drop(m);
    favorer_row_encode(&row, fresh(m));
    return put(m);
}

/* An edge that waits has its row here. Whether one that cannot be read was counted is not known:
 * only one that is made again is. */
static err make_review(struct making *m)
{
    struct favorite_row row = { 0 };

    err e = favorite_find(m->context->state, &m->edge, m->context->need, &row);
    if (e == ERR_NEED)
        return e;
    if (e == ERR_CORRUPT) {
        m->repair->wants = "a row of an edge that can be read: its row of table f comes first";
        return ERR_OK;
    }
    if (!row.favorited || favorite_edge_counts(&row) || row.flagged_at_ms != m->edge.at_ms) {
        damage_count_down(m->context->damage, &m->context->meta->review_count, 1);
        return drop(m);
    }
    review_row_encode(&row, fresh(m));
    return put(m);
}

struct counting {
    struct arena *arena;
    uint64_t looked, count;
    struct slice last;
    struct hours *hours; /* In which they were made: of rows of TABLE_FAVORER. NULL: not asked. */
};

static bool count_row(void *user, struct slice key, struct slice value)
{
    struct counting *counting = user;
    struct favorite_key edge;
    struct favorite_row row;

    counting->looked++;
    counting->last = arena_copy(counting->arena, key);
    if (counting->hours != NULL && favorer_row_read(key, value, &edge, &row) == ERR_OK) {
        if (!favorite_edge_counts(&row))
            return true;
        hours_add(counting->hours, hour_of(row.at_ms));
    }
    counting->count++;
    return true;
}

static err count_rows(struct apply_context *context, const struct row_key *prefix,
                      struct hours *hours, uint64_t *ret_count)
{
    struct counting counting = { .arena = context->arena, .hours = hours };
    uint64_t before;

    do {
        const struct state_range range = {
            .prefix = row_key_slice(prefix),
            .after = counting.last,
            .limit = COUNT_PAGE,
        };
        before = counting.looked;
        err e = state_range_visit(context->state, &range, context->need, count_row, &counting);
        if (e != ERR_OK)
            return e;
    } while (counting.looked == before + COUNT_PAGE);
    *ret_count = counting.count;
    return ERR_OK;
}

struct flagged {
    struct making *making;
    uint64_t looked, count;
    struct slice last;
};

static bool count_review(void *user, struct slice key, struct slice value)
{
    struct flagged *flagged = user;
    const struct favorite_key *own = &flagged->making->edge;
    struct favorite_key edge;

    (void)value;
    flagged->looked++;
    flagged->last = arena_copy(flagged->making->context->arena, key);
    flagged->count += review_key_parse(key, &edge) == ERR_OK &&
                      edge.collection == own->collection && slice_equal(edge.entity, own->entity);
    return true;
}

/* Of all that wait in the shard, those of the player. */
static err count_flagged(struct making *m, uint64_t *ret_count)
{
    const uint8_t letter = TABLE_REVIEW;
    struct flagged flagged = { .making = m };
    uint64_t before;

    do {
        const struct state_range range = {
            .prefix = { &letter, 1 },
            .after = flagged.last,
            .limit = COUNT_PAGE,
        };
        before = flagged.looked;
        err e =
            state_range_visit(m->context->state, &range, m->context->need, count_review, &flagged);
        if (e != ERR_OK)
            return e;
    } while (flagged.looked == before + COUNT_PAGE);
    *ret_count = flagged.count;
    return ERR_OK;
}

static err count_own(struct making *m)
{
    struct row_key prefix;
    uint64_t edges, gone, targets, flagged;

    row_key_favored_prefix(&prefix, m->edge.entity, m->edge.collection, FAVORED_EDGES);
    err e = count_rows(m->context, &prefix, NULL, &edges);
    row_key_favored_prefix(&prefix, m->edge.entity, m->edge.collection, FAVORED_GONE);
    if (e == ERR_OK)
        e = count_rows(m->context, &prefix, NULL, &gone);
    if (e == ERR_OK)
        e = counter_count_targets(m->context, &m->edge, &targets);
    if (e == ERR_OK)
        e = count_flagged(m, &flagged);
    if (e != ERR_OK)
        return e;
    /* The number is a collection's or a counter's: of the other kind there is none. */
    const struct favorites_row own = {
        .edges = (uint32_t)(edges + targets),
        .gone = (uint32_t)gone,
        .flagged = (uint32_t)(flagged < edges ? flagged : edges),
    };

    m->repair->dropped = own.edges == 0 && gone == 0;
    favorites_store(m->context, &m->edge, &own);
    return ERR_OK;
}

/* In which hours players added to a counter is known to its partial alone: one that is made again
 * has none. */
static err count_partial(struct making *m)
{
    struct partial_row row = { 0 };
    struct row_key prefix;
    uint64_t sum = 0;

    row_key_favorer_prefix(&prefix, m->edge.collection, m->edge.target);
    err e = count_rows(m->context, &prefix, &row.hours, &row.count);
    if (e == ERR_OK)
        e = counter_sum_up(m->context, &m->edge, &sum);
    if (e == ERR_CORRUPT) {
        m->repair->wants = "a target whose rows of table Q can be read: RepairRow mends those";
        return ERR_OK;
    }
    if (e != ERR_OK)
        return e;
    row.count += sum;
    if (m->context->version < TOP_APPLY_VERSION)
        row.hours = (struct hours){ 0 };
    m->repair->dropped = row.count == 0;
    return partial_store(m->context, &m->edge, &row);
}

err favorite_repair(struct apply_context *context, struct slice key, struct edge_repair *ret_repair)
{
    struct making m = { .context = context, .key = key, .repair = ret_repair };

    *ret_repair = (struct edge_repair){ 0 };
    if (key.data[0] == TABLE_REVIEW && review_key_parse(key, &m.edge) == ERR_OK)
        return make_review(&m);
    if (key.data[0] == TABLE_REVIEW)
        damage_count_down(context->damage, &context->meta->review_count, 1);
    if (favorite_key_parse(key, &m.edge) != ERR_OK)
        return drop(&m);
    switch ((int)key.data[0]) {
    case TABLE_FAVORITE:
        return make_edge(&m);
    case TABLE_FAVORITES:
        return count_own(&m);
    case TABLE_FAVORED:
        return make_listed(&m);
    case TABLE_FAVORER:
        return make_favorer(&m);
    default: /* No other key is parsed. */
        return count_partial(&m);
    }
}
