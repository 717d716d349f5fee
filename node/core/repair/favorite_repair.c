#include "node/core/repair/favorite_repair.h"

#include "node/core/repair/counter_repair.h"
#include "runtime/base/check.h"

#define TOO_MANY_FOR_TARGET                                                                        \
    "a target with at most 4096 rows of edges, or of what players added: of others "               \
    "`holdfast rebuild counters --target` makes the row again"
#define TOO_MANY_FOR_PLAYER                                                                        \
    "a player with at most 16384 edges or targets: release and erase the player, "                 \
    "whose purge removes the row"

/* Before it a repair did not say since when the first edge waits. */
#define REVIEW_SINCE_APPLY_VERSION 10u

/* One row that is made again. */
struct making {
    struct apply_context *context;
    struct slice key;
    struct favorite_key edge;
    struct edge_repair *repair;
    uint64_t flagged; /* Edges, as they are counted. */
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

/* It waits no more, and may have been the first. ERR_NEED. */
static err drop_review(struct making *m)
{
    damage_count_down(m->context->damage, &m->context->meta->review_count, 1);
    err e = drop(m);
    if (e != ERR_OK || m->context->version < REVIEW_SINCE_APPLY_VERSION)
        return e;
    return review_since_renew(m->context, REPAIR_ROWS_MAX);
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
        return drop_review(m);
    }
    review_row_encode(&row, fresh(m));
    return put(m);
}

/* ---- counts ---- */
struct counting {
    uint64_t count, looked;
    struct hours *hours;   /* In which they were made: of rows of TABLE_FAVORER. NULL: not asked. */
    struct arena *arena;   /* Of `targets`. */
    struct slice *targets; /* Of rows of TABLE_FAVORED. NULL: not asked. */
};

static bool count_row(void *user, struct slice key, struct slice value)
{
    struct counting *counting = user;
    struct favorite_key edge = { 0 };
    struct favorite_row row;

    if (counting->targets != NULL && favorite_key_parse(key, &edge) == ERR_OK)
        counting->targets[counting->looked] = arena_copy(counting->arena, edge.target);
    counting->looked++;
    if (counting->hours != NULL && favorer_row_read(key, value, &edge, &row) == ERR_OK) {
        if (!favorite_edge_counts(&row))
            return true;
        hours_add(counting->hours, hour_of(row.at_ms));
    }
    counting->count++;
    return true;
}

/* ERR_NEED. ERR_TOO_LARGE: there are more than `rows_max`. */
static err count_rows(struct apply_context *context, const struct row_key *prefix,
                      uint32_t rows_max, struct counting *counting)
{
    const struct state_range range = { .prefix = row_key_slice(prefix), .limit = rows_max + 1 };

    err e = state_range_visit(context->state, &range, context->need, count_row, counting);
    return e == ERR_OK && counting->looked > rows_max ? ERR_TOO_LARGE : e;
}

/* Missing rows come first, all at once; then what cannot be counted. */
static err both(err one, err other)
{
    if (one == ERR_NEED || other == ERR_NEED)
        return ERR_NEED;
    return one != ERR_OK ? one : other;
}

static bool count_review(void *user, struct slice key, struct slice value)
{
    struct making *m = user;
    struct favorite_key edge;

    (void)value;
    m->flagged += review_key_parse(key, &edge) == ERR_OK && edge.collection == m->edge.collection &&
                  slice_equal(edge.entity, m->edge.entity);
    return true;
}

/* Of all that wait in the shard, those of the player: so earlier versions of apply count. */
static err count_reviews(struct making *m)
{
    const uint8_t letter = TABLE_REVIEW;
    const struct state_range range = { .prefix = { &letter, 1 }, .limit = UINT32_MAX };

    m->flagged = 0;
    return state_range_visit(m->context->state, &range, m->context->need, count_review, m);
}

/* Of the player's edges, those that are flagged. One that cannot be read is not counted. */
static err count_flagged(struct making *m, const struct counting *edges)
{
    struct favorite_key edge = m->edge;
    struct favorite_row row;
    err result = ERR_OK;

    m->flagged = 0;
    for (uint64_t i = 0; i < edges->looked; i++) {
        edge.target = edges->targets[i];
        err e = favorite_find(m->context->state, &edge, m->context->need, &row);
        if (e == ERR_NEED)
            result = e;
        m->flagged += e == ERR_OK && row.favorited && !favorite_edge_counts(&row);
    }
    return result;
}

/* How many edges of the player stand, and are flagged. */
static err count_edges(struct making *m, uint32_t rows_max, uint64_t *ret_count)
{
    bool by_edges = m->context->version >= REPAIR_BOUNDED_APPLY_VERSION;
    struct counting edges = { .arena = m->context->arena };
    struct row_key prefix;

    if (by_edges)
        edges.targets = arena_zalloc(edges.arena, (rows_max + 1) * sizeof *edges.targets);
    row_key_favored_prefix(&prefix, m->edge.entity, m->edge.collection, FAVORED_EDGES);
    err e = count_rows(m->context, &prefix, rows_max, &edges);
    *ret_count = edges.count;
    if (!by_edges)
        return both(e, count_reviews(m));
    return e == ERR_OK ? count_flagged(m, &edges) : e;
}

static err count_own(struct making *m)
{
    uint32_t rows_max = repair_rows_max(m->context, REPAIR_PLAYER_ROWS_MAX);
    struct counting gone = { 0 };
    struct row_key prefix;
    uint64_t edges, targets;

    row_key_favored_prefix(&prefix, m->edge.entity, m->edge.collection, FAVORED_GONE);
    err e = count_rows(m->context, &prefix, rows_max, &gone);
    e = both(e, counter_count_targets(m->context, &m->edge, rows_max, &targets));
    e = both(e, count_edges(m, rows_max, &edges));
    if (e == ERR_TOO_LARGE) {
        m->repair->wants = TOO_MANY_FOR_PLAYER;
        return ERR_OK;
    }
    if (e != ERR_OK)
        return e;
    /* The number is a collection's or a counter's: of the other kind there is none. */
    const struct favorites_row own = {
        .edges = (uint32_t)(edges + targets),
        .gone = (uint32_t)gone.count,
        .flagged = (uint32_t)(m->flagged < edges ? m->flagged : edges),
    };

    m->repair->dropped = own.edges == 0 && own.gone == 0;
    favorites_store(m->context, &m->edge, &own);
    return ERR_OK;
}

/* In which hours players added to a counter is known to its partial alone: one that is made again
 * has none. */
static err count_partial(struct making *m)
{
    uint32_t rows_max = repair_rows_max(m->context, REPAIR_TARGET_ROWS_MAX);
    struct partial_row row = { 0 };
    struct counting edges = { .hours = &row.hours };
    struct row_key prefix;
    uint64_t sum = 0;

    row_key_favorer_prefix(&prefix, m->edge.collection, m->edge.target);
    err e = count_rows(m->context, &prefix, rows_max, &edges);
    e = both(e, counter_sum_up(m->context, &m->edge, rows_max, &sum));
    if (e == ERR_CORRUPT)
        m->repair->wants = "a target whose rows of table Q can be read: RepairRow mends those";
    else if (e == ERR_TOO_LARGE)
        m->repair->wants = TOO_MANY_FOR_TARGET;
    if (m->repair->wants != NULL)
        return ERR_OK;
    if (e != ERR_OK)
        return e;
    row.count = edges.count + sum;
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
        return drop_review(&m);
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
