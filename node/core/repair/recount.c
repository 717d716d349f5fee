#include "node/core/repair/recount.h"

#include "node/core/codec/arena_proto.h"
#include "node/core/counter/counter_row.h"
#include "node/core/favorite/partial.h"
#include "node/core/repair/recount_totals.h"
#include "runtime/base/check.h"

typedef Holdfast__V1__CountDifference difference;

/* The rows of edges, of what was added, and of the counts themselves: targets come from all. */
enum kind { EDGES, ADDERS, PARTIALS, KINDS };
static const char letters[KINDS] = { TABLE_FAVORER, TABLE_ADDER, TABLE_PARTIAL };

struct walk {
    struct recount *recount;
    struct recount_page pages[KINDS];
    err result;
};

/* Behind all rows of the target: no text of a target's row continues with a lower byte. */
static void key_after(struct row_key *key, enum kind kind, uint64_t number, struct slice target)
{
    if (kind == PARTIALS) {
        row_key_partial(key, number, target);
        return;
    }
    if (kind == EDGES)
        row_key_favorer_prefix(key, number, target);
    else
        row_key_adder_prefix(key, number, target);
    key->bytes[key->size - 1] = 1;
}

static void key_of_last(struct row_key *key, const struct recount_row *row)
{
    if (row->table == TABLE_FAVORER) {
        row_key_favorer_prefix(key, row->number, row->target);
        row_key_favorer_add(key, row->entity);
    } else {
        row_key_adder_prefix(key, row->number, row->target);
        row_key_adder_add(key, row->entity);
    }
}

static void key_prefix(struct row_key *key, const struct recount_row *row, enum kind kind)
{
    if (row->only_target.size > 0 && kind == PARTIALS)
        row_key_partial(key, row->only_number, row->only_target);
    else if (row->only_target.size > 0 && kind == EDGES)
        row_key_favorer_prefix(key, row->only_number, row->only_target);
    else if (row->only_target.size > 0)
        row_key_adder_prefix(key, row->only_number, row->only_target);
    else
        row_key_of_number(key, letters[kind], row->only_number);
}

static err read_pages(struct walk *walk)
{
    const struct recount_row *row = walk->recount->row;
    err result = ERR_OK;

    for (enum kind kind = EDGES; kind < KINDS; kind++) {
        struct row_key prefix, after = { 0 };
        key_prefix(&prefix, row, kind);
        if (row->under_way && letters[kind] == row->table)
            key_of_last(&after, row);
        else if (row->number > 0)
            key_after(&after, kind, row->number, row->target);
        const struct state_range range = {
            .prefix = row_key_slice(&prefix),
            .after = row_key_slice(&after),
            .limit = walk->recount->rows,
        };
        err e = recount_page_read(walk->recount, &range, &walk->pages[kind]);
        if (e != ERR_OK)
            result = e;
    }
    return result;
}

/* The page's next row with a key that can be read. False: there is none on it. */
static bool head(struct walk *walk, enum kind kind, struct favorite_key *ret_key)
{
    struct recount_page *page = &walk->pages[kind];

    while (page->at < page->count && favorite_key_parse(page->keys[page->at], ret_key) != ERR_OK) {
        walk->recount->row->rows++;
        page->at++;
    }
    return page->at < page->count;
}

/* Begins with the first target of those that the pages have next, unless one of them has come to
 * its end and there may be more. *ret_ended: there are no more targets. */
static bool begin_target(struct walk *walk, bool *ret_ended)
{
    struct recount_row *row = walk->recount->row;
    struct favorite_key first = { 0 }, key;
    enum kind kind_of_first = PARTIALS;

    for (enum kind kind = EDGES; kind < KINDS; kind++) {
        if (!head(walk, kind, &key)) {
            if (walk->pages[kind].more)
                return false;
            continue;
        }
        if (first.collection > 0 &&
            recount_compare(key.collection, key.target, first.collection, first.target) >= 0)
            continue;
        first = key;
        kind_of_first = kind;
    }
    *ret_ended = first.collection == 0;
    if (*ret_ended)
        return false;
    row->number = first.collection;
    row->target = first.target;
    row->under_way = true;
    row->table = kind_of_first == ADDERS ? TABLE_ADDER : TABLE_FAVORER;
    row->entity = (struct slice){ 0 };
    row->unreadable = false;
    row->count = 0;
    row->hours = (struct hours){ 0 };
    return true;
}

static void count_row(struct recount_row *row, enum kind kind, struct slice key, struct slice value)
{
    struct favorite_row edge;
    struct favorite_key unused;
    struct added_row added;

    if (kind == EDGES && favorer_row_read(key, value, &unused, &edge) == ERR_OK) {
        uint64_t counts = favorite_edge_counts(&edge) ? 1 : 0;
        row->count += counts;
        hours_add_many(&row->hours, hour_of(edge.at_ms), counts);
    } else if (kind == ADDERS && added_row_decode(value, &added) == ERR_OK) {
        uint64_t left = (uint64_t)INT64_MAX - row->count;
        row->unreadable |= (uint64_t)added.value > left;
        row->count += (uint64_t)added.value <= left ? (uint64_t)added.value : 0;
    } else {
        row->unreadable = true;
    }
}

/* False: there may be more rows of it than the page has. */
static bool count_target(struct walk *walk)
{
    struct recount_row *row = walk->recount->row;
    enum kind kind = row->table == TABLE_ADDER ? ADDERS : EDGES;
    struct recount_page *page = &walk->pages[kind];
    struct favorite_key key;

    while (head(walk, kind, &key)) {
        if (recount_compare(key.collection, key.target, row->number, row->target) != 0)
            return true;
        count_row(row, kind, page->keys[page->at], page->values[page->at]);
        row->entity = key.entity;
        row->rows++;
        page->at++;
    }
    return !page->more;
}

/* What is kept of the target's hours: of counters the count alone is known again. */
static void hours_settle(const struct recount *recount, const struct partial_row *kept,
                         struct partial_row *computed)
{
    if (recount->row->table == TABLE_ADDER || computed->count == 0)
        computed->hours = computed->count > 0 ? kept->hours : (struct hours){ 0 };
    hours_prune(&computed->hours, recount->hour);
    if (hours_sum(&computed->hours, UINT32_MAX, UINT32_MAX) > computed->count)
        computed->hours = (struct hours){ 0 };
}

static err store(struct recount *recount, const struct favorite_key *edge,
                 const struct partial_row *kept, const struct partial_row *computed)
{
    struct partial_row row = {
        .count = computed->count,
        .changed = kept->changed,
        .hours = computed->hours,
        .found_empty = kept->found_empty,
    };

    if (recount->context == NULL || recount->row->dry_run)
        return ERR_OK;
    return partial_store(recount->context, edge, &row);
}

/* In a read the target may have changed since its first page. */
static bool has_changed(const struct recount *recount, const struct partial_row *kept)
{
    return recount->context == NULL && (kept->changed.epoch != recount->row->began.epoch ||
                                        kept->changed.counter != recount->row->began.counter);
}

static err end_target(struct recount *recount)
{
    struct recount_row *row = recount->row;
    const struct favorite_key edge = { .collection = row->number, .target = row->target };
    struct partial_row kept, computed = { .count = row->count, .hours = row->hours };
    difference told = HOLDFAST__V1__COUNT_DIFFERENCE__INIT;

    err e = partial_find(recount->state, &edge, recount->need, &kept);
    if (e == ERR_NEED)
        return e;
    row->under_way = false;
    row->targets++;
    if (row->unreadable || row->count > partial_max(recount->shard_count)) {
        row->unreadable = false;
        row->left_alone++;
        return ERR_OK;
    }
    if (e != ERR_OK)
        kept = (struct partial_row){ 0 };
    if (has_changed(recount, &kept))
        return ERR_OK;
    hours_settle(recount, &kept, &computed);
    bool windows = !recount_hours_equal(recount, &kept.hours, &computed.hours);
    bool equal = e == ERR_OK && kept.count == computed.count && !windows;
    if (equal && row->only_target.size == 0)
        return ERR_OK;
    told.number = row->number;
    told.target_id = arena_text(recount->arena, row->target);
    told.kept = kept.count;
    told.computed = computed.count;
    told.windows = windows;
    told.unreadable = e != ERR_OK;
    if (!equal)
        recount_tell(recount, &told);
    return store(recount, &edge, &kept, &computed);
}

/* Of one target alone there is nothing to look for: it is under way at once. */
static void begin_only(struct walk *walk)
{
    struct recount_row *row = walk->recount->row;

    if (row->only_target.size == 0 || row->number > 0)
        return;
    row->number = row->only_number;
    row->target = row->only_target;
    row->under_way = true;
    row->table = walk->pages[ADDERS].count > 0 ? TABLE_ADDER : TABLE_FAVORER;
}

/* A page of rows whose keys cannot be read leads nowhere. */
static bool leads_on(struct walk *walk)
{
    struct favorite_key unused;

    for (enum kind kind = EDGES; kind < KINDS; kind++) {
        if (walk->pages[kind].more && !head(walk, kind, &unused))
            return false;
    }
    return true;
}

/* Counts themselves that are told by their edges already. */
static void pass_partials(struct walk *walk)
{
    const struct recount_row *row = walk->recount->row;
    struct favorite_key key;

    while (head(walk, PARTIALS, &key) &&
           recount_compare(key.collection, key.target, row->number, row->target) <= 0) {
        walk->recount->row->rows++;
        walk->pages[PARTIALS].at++;
    }
}

static err note_began(struct recount *recount)
{
    struct recount_row *row = recount->row;
    const struct favorite_key edge = { .collection = row->number, .target = row->target };
    struct partial_row kept;

    if (recount->context != NULL)
        return ERR_OK;
    err e = partial_find(recount->state, &edge, recount->need, &kept);
    row->began = kept.changed;
    return e == ERR_NEED ? e : ERR_OK;
}

/* One entry changes no more counts than their homes can be told of together. */
static bool is_full(const struct recount *recount)
{
    return recount->context != NULL && recount->told_count >= ENTRY_COUNTS_MAX;
}

/* False: the step is over. */
static bool step_target(struct walk *walk)
{
    struct recount *recount = walk->recount;
    struct recount_row *row = recount->row;
    bool ended = false;

    if (!row->under_way && !begin_target(walk, &ended)) {
        row->done = ended;
        return false;
    }
    err began = row->entity.size == 0 ? note_began(recount) : ERR_OK;
    if (!count_target(walk)) {
        walk->result = began == ERR_OK ? walk->result : began;
        return false;
    }
    pass_partials(walk);
    err e = end_target(recount);
    if (e != ERR_OK || began != ERR_OK)
        walk->result = ERR_NEED; /* Go on, so that every missing row is noted. */
    row->under_way = false;
    row->done = row->only_target.size > 0;
    return !row->done && !is_full(recount);
}

err recount_step(struct recount *recount)
{
    struct walk walk = { .recount = recount };

    CHECK(recount->rows > 0 && recount->rows <= RECOUNT_ROWS_MAX);
    if (recount->row->part != RECOUNT_COUNTS)
        return recount_totals_step(recount);
    err e = read_pages(&walk);
    if (e != ERR_OK)
        return e;
    if (!leads_on(&walk))
        return ERR_CORRUPT;
    begin_only(&walk);
    while (step_target(&walk))
        continue;
    return walk.result;
}
