/* Totals and their places, in the home of the targets: each target within one entry. */
#include "node/core/repair/recount_totals.h"

#include "node/core/codec/arena_proto.h"
#include "node/core/top/top.h"

typedef Holdfast__V1__CountDifference difference;

struct totals_walk {
    struct recount *recount;
    struct recount_page shares, tallies;
    bool any; /* Some target was ended in this step. */
    err result;
};

/* ---- pages ---- */
static err read_pages(struct totals_walk *walk)
{
    struct recount *recount = walk->recount;
    const struct recount_row *row = recount->row;
    struct row_key prefix, after = { 0 };

    row_key_of_number(&prefix, TABLE_SHARE, row->only_number);
    if (row->only_target.size > 0)
        row_key_share_prefix(&prefix, row->only_number, row->only_target);
    if (row->number > 0) {
        row_key_share_prefix(&after, row->number, row->target);
        after.bytes[after.size - 1] = 1; /* Behind all shares of that target. */
    }
    const struct state_range shares = {
        .prefix = row_key_slice(&prefix),
        .after = row_key_slice(&after),
        .limit = recount->rows + recount->shard_count, /* All shares of one target at least. */
    };
    err first = recount_page_read(recount, &shares, &walk->shares);
    row_key_of_number(&prefix, TABLE_TALLY, row->only_number);
    if (row->only_target.size > 0)
        row_key_tally(&prefix, row->only_number, row->only_target);
    after = (struct row_key){ 0 };
    if (row->number > 0)
        row_key_tally(&after, row->number, row->target);
    const struct state_range tallies = {
        .prefix = row_key_slice(&prefix),
        .after = row_key_slice(&after),
        .limit = recount->rows,
    };
    err second = recount_page_read(recount, &tallies, &walk->tallies);
    return first != ERR_OK ? first : second;
}

static bool head(struct totals_walk *walk, struct recount_page *page, struct top_key *ret_key)
{
    while (page->at < page->count && top_key_parse(page->keys[page->at], ret_key) != ERR_OK) {
        walk->recount->row->rows++;
        page->at++;
    }
    return page->at < page->count;
}

static bool is_of(const struct top_key *key, const struct recount_row *row)
{
    return recount_compare(key->collection, key->target, row->number, row->target) == 0;
}

/* ---- one target ---- */
/* The sum of its shares. *ret_whole: no more of them can be behind the page. */
static struct tally_row sum_up(struct totals_walk *walk, bool *ret_whole, bool *ret_readable)
{
    struct recount_row *row = walk->recount->row;
    const struct hours none = { 0 };
    struct tally_row sum = { 0 };
    struct share_row share;
    struct top_key key;

    *ret_readable = true;
    while (head(walk, &walk->shares, &key)) {
        if (!is_of(&key, row)) {
            *ret_whole = true;
            return sum;
        }
        if (share_row_decode(walk->shares.values[walk->shares.at], &share) != ERR_OK ||
            share.count > (uint64_t)INT64_MAX - sum.count) {
            *ret_readable = false;
        } else {
            sum.count += share.count;
            hours_replace(&sum.hours, &none, &share.hours);
        }
        row->rows++;
        walk->shares.at++;
    }
    *ret_whole = !walk->shares.more;
    return sum;
}

/* Whether its place stands in a list. ERR_NEED. */
static err place_stands(struct recount *recount, const struct top_key *of, char window,
                        uint64_t count, bool *ret_stands)
{
    struct row_key key;
    struct slice value = { 0 };
    struct top_key unused;

    if (count == 0)
        return ERR_OK;
    row_key_rank_prefix(&key, of->collection, window);
    row_key_rank_add(&key, count, of->target);
    enum state_found found = row_find(recount->state, &key, recount->need, &value);
    if (found == STATE_MISSING)
        return ERR_NEED;
    *ret_stands = *ret_stands && found == STATE_PRESENT &&
                  rank_row_decode(row_key_slice(&key), value, &unused) == ERR_OK;
    return ERR_OK;
}

static err places_stand(struct recount *recount, const struct top_key *of,
                        const struct tally_row *tally, bool *ret_stand)
{
    *ret_stand = true;
    err day = place_stands(recount, of, TOP_DAY, tally->day, ret_stand);
    err week = place_stands(recount, of, TOP_WEEK, tally->week, ret_stand);
    err all = place_stands(recount, of, TOP_ALL, tally->count, ret_stand);
    return day != ERR_OK ? day : week != ERR_OK ? week : all;
}

/* All its places are made again. */
static void store(struct recount *recount, const struct top_key *of, const struct tally_row *kept,
                  struct tally_row *computed)
{
    const struct tally_row none = { 0 };
    struct tally_row gone = { 0 };

    if (recount->context == NULL || recount->row->dry_run)
        return;
    tally_store(recount->context, of, kept, &gone);
    tally_store(recount->context, of, &none, computed);
}

static err end_target(struct recount *recount, struct tally_row *computed)
{
    struct recount_row *row = recount->row;
    const struct top_key of = { .collection = row->number, .target = row->target };
    difference told = HOLDFAST__V1__COUNT_DIFFERENCE__INIT;
    struct tally_row kept;
    bool stand = true;

    err e = tally_find(recount->state, &of, recount->need, &kept);
    if (e == ERR_NEED)
        return e;
    if (e != ERR_OK)
        kept = (struct tally_row){ 0 };
    err places = places_stand(recount, &of, &kept, &stand);
    if (places != ERR_OK)
        return places;
    hours_prune(&computed->hours, recount->hour);
    bool windows = !stand || !recount_hours_equal(recount, &kept.hours, &computed->hours);
    if (e == ERR_OK && kept.count == computed->count && !windows)
        return ERR_OK;
    told.number = row->number;
    told.target_id = arena_text(recount->arena, row->target);
    told.kept = kept.count;
    told.computed = computed->count;
    told.windows = windows;
    told.unreadable = e != ERR_OK;
    recount_tell(recount, &told);
    store(recount, &of, &kept, computed);
    return ERR_OK;
}

/* False: none can be named, or there is none. */
static bool next_target(struct totals_walk *walk, bool *ret_ended)
{
    struct recount_row *row = walk->recount->row;
    struct top_key share, tally;
    bool has_share = head(walk, &walk->shares, &share);
    bool has_tally = head(walk, &walk->tallies, &tally);

    if (row->only_target.size > 0) {
        row->number = row->only_number;
        row->target = row->only_target;
        return true;
    }
    *ret_ended = !has_share && !has_tally && !walk->shares.more && !walk->tallies.more;
    if ((!has_share && (walk->shares.more || !has_tally)) || (!has_tally && walk->tallies.more))
        return false;
    bool by_share =
        has_share && (!has_tally || recount_compare(share.collection, share.target,
                                                    tally.collection, tally.target) <= 0);
    row->number = by_share ? share.collection : tally.collection;
    row->target = by_share ? share.target : tally.target;
    return true;
}

static void pass_tally(struct totals_walk *walk)
{
    struct top_key key;

    if (!head(walk, &walk->tallies, &key) || !is_of(&key, walk->recount->row))
        return;
    walk->recount->row->rows++;
    walk->tallies.at++;
}

/* False: the step is over. */
static bool step_target(struct totals_walk *walk)
{
    struct recount_row *row = walk->recount->row;
    const struct recount_row before = *row;
    bool ended = false, whole, readable;

    if (!next_target(walk, &ended)) {
        row->done = ended;
        return false;
    }
    struct tally_row computed = sum_up(walk, &whole, &readable);
    if (!whole && walk->any) {
        *row = before; /* The next step has all its shares. */
        return false;
    }
    pass_tally(walk);
    walk->any = true;
    row->targets++;
    if (!whole || !readable) { /* More shares than shards: some are of none. */
        row->left_alone++;
    } else if (end_target(walk->recount, &computed) != ERR_OK) {
        walk->result = ERR_NEED; /* Go on, so that every missing row is noted. */
    }
    row->done = row->only_target.size > 0;
    return !row->done;
}

static err totals_step(struct recount *recount)
{
    struct totals_walk walk = { .recount = recount };
    struct recount_row *row = recount->row;

    err e = read_pages(&walk);
    if (e != ERR_OK)
        return e;
    while (step_target(&walk))
        continue;
    if (walk.result == ERR_OK && !row->done && !walk.any)
        return ERR_CORRUPT;
    if (row->done && row->only_target.size == 0) {
        row->done = false;
        row->part = RECOUNT_PLACES;
        row->number = 0;
        row->target = (struct slice){ 0 };
    }
    return walk.result;
}

/* ---- places that no total has ---- */
static err check_place(struct recount *recount, struct slice key)
{
    difference told = HOLDFAST__V1__COUNT_DIFFERENCE__INIT;
    struct tally_row tally;
    struct top_key of;

    if (top_key_parse(key, &of) != ERR_OK)
        return ERR_OK; /* RepairRow drops it. */
    err e = tally_find(recount->state, &of, recount->need, &tally);
    if (e != ERR_OK)
        return e == ERR_NEED ? e : ERR_OK;
    uint64_t stands = of.window == TOP_ALL   ? tally.count
                      : of.window == TOP_DAY ? tally.day
                                             : tally.week;
    if (stands == of.count)
        return ERR_OK;
    told.number = of.collection;
    told.target_id = arena_text(recount->arena, of.target);
    told.kept = told.computed = tally.count;
    told.windows = true;
    recount_tell(recount, &told);
    if (recount->context != NULL && !recount->row->dry_run)
        state_delete(recount->state, key);
    return ERR_OK;
}

static err places_step(struct recount *recount)
{
    struct recount_row *row = recount->row;
    struct recount_page page;
    struct row_key prefix;
    err result = ERR_OK;

    row_key_of_number(&prefix, TABLE_RANK, row->only_number);
    const struct state_range range = { .prefix = row_key_slice(&prefix),
                                       .after = row->place,
                                       .limit = recount->rows };
    err e = recount_page_read(recount, &range, &page);
    if (e != ERR_OK)
        return e;
    for (uint32_t i = 0; i < page.count; i++) {
        e = check_place(recount, page.keys[i]);
        if (e != ERR_OK)
            result = e; /* Go on, so that every missing row is noted. */
        row->rows++;
    }
    if (page.count > 0)
        row->place = page.keys[page.count - 1];
    row->done = !page.more;
    return result;
}

err recount_totals_step(struct recount *recount)
{
    return recount->row->part == RECOUNT_PLACES ? places_step(recount) : totals_step(recount);
}
