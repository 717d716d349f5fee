#include "node/core/mergeable/counter.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define HLC_COUNT_BITS 16u

/* Sums of deltas and of sums: as many as a record may have never leave 128 bits. */
__extension__ typedef __int128 wide;

/* ---- one cell ---- */

/* Records are decoded and written with sound values only. */
static struct merge_tally tally_of(const struct merge_cell *cell)
{
    struct merge_tally tally;

    CHECK(merge_tally_decode(merge_cell_value(cell), &tally) == ERR_OK);
    return tally;
}

static bool has_spent(const struct merge_tally *tally, uint64_t op)
{
    size_t low = 0, high = tally->spent.size / 8;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (merge_tally_spent(tally, middle) < op)
            low = middle + 1;
        else
            high = middle;
    }
    return low < tally->spent.size / 8 && merge_tally_spent(tally, low) == op;
}

/* ---- one path ---- */

/* The cells of a path stand together, by dot. */
struct run {
    struct merge_cell **cells;
    struct merge_tally *tallies; /* Owned. */
    uint32_t count;
    /* A fold over eras is there, so they were over where it was made: here the clock may lag. */
    uint16_t era;
};

static uint16_t era_after(const struct merge_cell *cell)
{
    uint16_t era = merge_actor_era(cell->dot.actor);

    return era < MERGE_ERA_MAX ? (uint16_t)(era + 1) : MERGE_ERA_MAX;
}

static struct run run_at(const struct merge_record *record, uint32_t first)
{
    struct run run = { .cells = record->cells + first };
    struct slice path = merge_cell_path(run.cells[0]);

    while (first + run.count < record->count &&
           slice_equal(merge_cell_path(run.cells[run.count]), path))
        run.count++;
    run.tallies = mem_alloc(run.count * sizeof *run.tallies);
    for (uint32_t i = 0; i < run.count; i++) {
        run.tallies[i] = tally_of(run.cells[i]);
        if (run.tallies[i].rank == MERGE_RANK_ERAS) /* Cells ascend, so the last one counts. */
            run.era = era_after(run.cells[i]);
    }
    return run;
}

/* No cells: the path has none. */
static struct run run_of(const struct merge_record *record, struct slice path)
{
    for (uint32_t i = 0; i < record->count; i++)
        if (slice_equal(merge_cell_path(record->cells[i]), path))
            return run_at(record, i);
    return (struct run){ 0 };
}

static bool names_op(const struct run *run, uint32_t at, uint64_t op)
{
    return op != 0 && (run->cells[at]->op == op || has_spent(&run->tallies[at], op));
}

/* The cell counts: it is its operation's earliest, and no reset saw that. */
static bool counts(const struct run *run, uint32_t at)
{
    const struct merge_cell *cell = run->cells[at];

    for (uint32_t i = 0; cell->op != 0 && i < run->count; i++) {
        if (has_spent(&run->tallies[i], cell->op))
            return false;
        if (i != at && run->cells[i]->op == cell->op && merge_cell_order(run->cells[i], cell) < 0)
            return false;
    }
    return true;
}

err merge_counter_sum(const struct merge_record *record, struct slice path, uint64_t now_ms,
                      int64_t *ret_sum)
{
    struct run run = run_of(record, path);
    wide sum = 0;

    for (uint32_t i = 0; i < run.count; i++) {
        uint64_t expires_ms = run.cells[i]->expires_ms;

        if (counts(&run, i) && (expires_ms == 0 || expires_ms > now_ms))
            sum += run.tallies[i].delta;
    }
    free(run.tallies);
    if (sum > INT64_MAX || sum < INT64_MIN)
        return ERR_TOO_LARGE;
    *ret_sum = (int64_t)sum;
    return ERR_OK;
}

bool merge_counter_knows(const struct merge_record *record, struct slice path, uint64_t op)
{
    struct run run = run_of(record, path);
    bool knows = false;

    for (uint32_t i = 0; i < run.count; i++)
        knows |= names_op(&run, i, op);
    free(run.tallies);
    return knows;
}

uint64_t merge_counter_open_ms(const struct merge_record *record)
{
    uint64_t earliest_ms = 0;

    for (uint32_t i = 0; i < record->count; i++) {
        uint64_t at_ms = record->cells[i]->hlc >> HLC_COUNT_BITS;

        if (record->cells[i]->op != 0 && (earliest_ms == 0 || at_ms < earliest_ms))
            earliest_ms = at_ms;
    }
    return earliest_ms;
}

/* ---- a reset ---- */

static int op_compare(const void *a, const void *b)
{
    const uint64_t *one = a, *two = b;

    return (*one > *two) - (*one < *two);
}

/* The operations of the cells that go, ascending and distinct; how many. Free it. */
static uint32_t ops_of(const struct run *run, const bool *gone, uint64_t **ret_ops)
{
    uint64_t *ops = NULL;
    uint32_t count = 0, kept = 0;

    for (uint32_t i = 0; i < run->count; i++) {
        uint32_t more = gone[i] ? (uint32_t)(run->tallies[i].spent.size / 8) : 0;

        ops = mem_realloc(ops, (count + more + 1) * sizeof *ops);
        for (uint32_t j = 0; j < more; j++)
            ops[count++] = merge_tally_spent(&run->tallies[i], j);
        if (gone[i] && run->cells[i]->op != 0)
            ops[count++] = run->cells[i]->op;
    }
    if (count > 0)
        qsort(ops, count, sizeof *ops, op_compare);
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || ops[kept - 1] != ops[i])
            ops[kept++] = ops[i];
    *ret_ops = ops;
    return kept;
}

/* NULL: there is nothing to remember. */
static struct merge_cell *note_of(const struct run *run, const uint64_t *ops, uint32_t count,
                                  const struct merge_cell_form *written)
{
    struct merge_cell_form form = *written;
    struct buf spent = { 0 }, value = { 0 };

    if (count == 0)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        buf_put_u64(&spent, ops[i]);
    merge_tally_encode(&(struct merge_tally){ .spent = buf_slice(&spent) }, &value);
    form.path = merge_cell_path(run->cells[0]);
    form.value = buf_slice(&value);
    struct merge_cell *cell = merge_cell_new(&form);

    buf_deinit(&spent);
    buf_deinit(&value);
    return cell;
}

bool merge_counter_notes(const struct merge_record *record, const bool *gone,
                         const struct merge_cell_form *written, struct merge_cell **ret_cells,
                         uint32_t *ret_count)
{
    bool fits = true;

    *ret_count = 0;
    for (uint32_t first = 0; first < record->count;) {
        struct run run = run_at(record, first);
        uint64_t *ops;
        uint32_t count = ops_of(&run, gone + first, &ops);
        struct merge_cell *cell =
            count <= MERGE_SPENT_MAX ? note_of(&run, ops, count, written) : NULL;

        fits &= count <= MERGE_SPENT_MAX;
        if (cell != NULL)
            ret_cells[(*ret_count)++] = cell;
        first += run.count;
        free(run.tallies);
        free(ops);
    }
    return fits;
}

/* ---- what may go ---- */

static bool is_expired(const struct merge_cell *cell, uint64_t before_ms)
{
    return cell->expires_ms != 0 && cell->expires_ms <= before_ms;
}

static bool may_be_retried(const struct merge_cell *cell, const struct merge_tally *tally,
                           uint64_t retried_ms)
{
    return (cell->op != 0 || tally->spent.size > 0) && cell->hlc >> HLC_COUNT_BITS >= retried_ms;
}

/* All cells of its operation are at their end: none would begin to count when this one goes. A
 * reset that names it stays, and keeps it spent. */
static bool may_go(const struct run *run, uint32_t at, uint64_t before_ms, uint64_t retried_ms)
{
    uint64_t op = run->cells[at]->op;

    for (uint32_t i = 0; i < run->count; i++)
        if ((i == at || (op != 0 && run->cells[i]->op == op)) &&
            (!is_expired(run->cells[i], before_ms) ||
             may_be_retried(run->cells[i], &run->tallies[i], retried_ms)))
            return false;
    return true;
}

/* ---- folding ---- */

/* 0: of all actors of lower eras. They stand before all others, since an era is the upper part of
 * an actor. */
static uint64_t group_of(const struct run *run, uint32_t at, const struct merge_folding *folding)
{
    uint64_t actor = run->cells[at]->dot.actor;
    uint16_t era = folding->era > run->era ? folding->era : run->era;

    return merge_actor_era(actor) < era ? 0 : actor;
}

static bool same_group(const struct run *run, uint32_t a, uint32_t b,
                       const struct merge_folding *folding)
{
    return group_of(run, a, folding) == group_of(run, b, folding);
}

/* What expires stands aside: it is never folded, and goes with a sweep. */
static bool stands_aside(const struct run *run, uint32_t at)
{
    return run->cells[at]->expires_ms != 0;
}

static bool may_fold(const struct run *run, uint32_t at, const struct merge_folding *folding)
{
    return !may_be_retried(run->cells[at], &run->tallies[at], folding->retried_ms) &&
           folding->everywhere(folding->user, run->cells[at]->dot);
}

/* Takes the cell and all behind it in its group out of what is folded. Of an ended actor all cells
 * go: a fold over eras has an actor wholly or not at all. */
static void cut_from(const struct run *run, uint32_t at, const struct merge_folding *folding,
                     bool *in)
{
    uint32_t first = at;

    while (first > 0 && group_of(run, at, folding) == 0 &&
           run->cells[first - 1]->dot.actor == run->cells[at]->dot.actor)
        first--;
    for (uint32_t i = first; i < run->count && same_group(run, first, i, folding); i++)
        in[i] = false;
}

/* Another cell that names an operation of this one is not folded. */
static bool is_torn(const struct run *run, uint32_t at, const bool *in)
{
    const struct merge_tally *tally = &run->tallies[at];

    for (uint32_t i = 0; i < run->count; i++) {
        if (in[i] || i == at)
            continue;
        if (names_op(run, i, run->cells[at]->op))
            return true;
        for (size_t j = 0; j < tally->spent.size / 8; j++)
            if (names_op(run, i, merge_tally_spent(tally, j)))
                return true;
    }
    return false;
}

/* Of each group a part from its first cell on; an operation's cells together or not at all. */
static void choose(const struct run *run, const struct merge_folding *folding, bool *in)
{
    bool again = true;

    for (uint32_t i = 0; i < run->count; i++)
        in[i] = !stands_aside(run, i);
    for (uint32_t i = 0; i < run->count; i++)
        if (in[i] && !may_fold(run, i, folding))
            cut_from(run, i, folding, in);
    while (again) { /* Each time around at least one cell fewer. */
        again = false;
        for (uint32_t i = 0; i < run->count; i++)
            if (in[i] && is_torn(run, i, in)) {
                cut_from(run, i, folding, in);
                again = true;
            }
    }
}

/* What takes the place of the chosen cells of a group; NULL: they are none, or folded already. */
static struct merge_cell *fold_group(const struct run *run, uint32_t first, const bool *in,
                                     const struct merge_folding *folding)
{
    struct merge_tally folded = { .rank = group_of(run, first, folding) == 0 ? MERGE_RANK_ERAS
                                                                             : MERGE_RANK_ACTOR };
    const struct merge_cell *top = NULL;
    uint32_t cells = 0;
    bool same = true;

    for (uint32_t i = first; i < run->count && same_group(run, first, i, folding); i++) {
        if (!in[i])
            continue;
        top = run->cells[i];
        same &= run->tallies[i].rank == folded.rank && ++cells == 1;
        folded.delta += counts(run, i) ? run->tallies[i].delta : 0; /* sums_fit has looked. */
    }
    if (top == NULL || same)
        return NULL;
    struct buf value = { 0 };

    merge_tally_encode(&folded, &value);
    struct merge_cell *cell =
        merge_cell_new(&(struct merge_cell_form){ .path = merge_cell_path(top),
                                                  .value = buf_slice(&value),
                                                  .dot = top->dot,
                                                  .hlc = top->hlc });

    buf_deinit(&value);
    return cell;
}

static bool sums_fit(const struct run *run)
{
    wide sum = 0;

    for (uint32_t i = 0; i < run->count; i++) {
        wide delta = run->tallies[i].delta;

        sum += delta < 0 ? -delta : delta; /* So no part of it overflows either. */
    }
    return sum <= INT64_MAX;
}

/* Marks what is folded as gone; what takes its place, in `made`. */
static uint32_t fold_run(const struct run *run, const struct merge_folding *folding, bool *gone,
                         struct merge_cell **made)
{
    bool *in = mem_zalloc(run->count * sizeof *in);
    uint32_t count = 0, end = 0;

    if (sums_fit(run))
        choose(run, folding, in);
    for (uint32_t first = 0; first < run->count; first = end) {
        struct merge_cell *cell = fold_group(run, first, in, folding);

        for (end = first; end < run->count && same_group(run, first, end, folding); end++)
            gone[end] = cell != NULL && in[end];
        if (cell != NULL)
            made[count++] = cell;
    }
    free(in);
    return count;
}

bool merge_counter_fold(struct merge_record *record, const struct merge_folding *folding)
{
    bool *gone = mem_zalloc((record->count + 1) * sizeof *gone);
    struct merge_cell **made = mem_alloc((record->count + 1) * sizeof(struct merge_cell *));
    uint32_t count = 0;
    bool folds = false;

    for (uint32_t first = 0; first < record->count;) {
        struct run run = run_at(record, first);

        count += fold_run(&run, folding, gone + first, made + count);
        first += run.count;
        free(run.tallies);
    }
    for (uint32_t i = 0; i < record->count; i++)
        folds |= gone[i];
    merge_record_remove(record, gone);
    for (uint32_t i = 0; i < count; i++)
        merge_record_add(record, made[i]);
    free(made);
    free(gone);
    return folds;
}

/* ---- the sweep ---- */

/* All that does not expire could be folded, and is 0. */
static bool is_zero(const struct run *run, const struct merge_folding *folding)
{
    bool *in = mem_zalloc(run->count * sizeof *in);
    bool zero = sums_fit(run);
    int64_t sum = 0;

    if (zero)
        choose(run, folding, in);
    for (uint32_t i = 0; zero && i < run->count; i++) {
        zero = in[i] || stands_aside(run, i);
        sum += in[i] && counts(run, i) ? run->tallies[i].delta : 0;
    }
    free(in);
    return zero && sum == 0;
}

uint32_t merge_counter_swept(const struct merge_record *record, uint64_t before_ms,
                             const struct merge_folding *folding, bool *gone)
{
    uint32_t count = 0;

    for (uint32_t first = 0; first < record->count;) {
        struct run run = run_at(record, first);
        bool zero = is_zero(&run, folding);

        for (uint32_t i = 0; i < run.count; i++) {
            gone[first + i] =
                stands_aside(&run, i) ? may_go(&run, i, before_ms, folding->retried_ms) : zero;
            count += gone[first + i];
        }
        first += run.count;
        free(run.tallies);
    }
    return count;
}
