#include "node/core/mergeable/policy.h"

#include <stdlib.h>
#include <string.h>

#include "node/core/mergeable/counter.h"
#include "runtime/base/check.h"

/* ---- what a write may be ---- */

static err refuse(struct merge_refusal *refusal, const char *field, uint64_t limit, uint64_t value)
{
    *refusal = (struct merge_refusal){ .field = field, .limit = limit, .value = value };
    return ERR_TOO_LARGE;
}

static bool path_is_well(enum merge_policy policy, struct slice path)
{
    if (policy == MERGE_POLICY_VECTOR)
        return path.size == 0;
    if (policy == MERGE_POLICY_LWW)
        return true;
    if (path.size == 0)
        return false;
    if (policy == MERGE_POLICY_SET || policy == MERGE_POLICY_COUNTER)
        return true;
    /* Names between slashes, none empty. */
    for (size_t i = 0; i < path.size; i++)
        if (path.data[i] == '/' && (i == 0 || i + 1 == path.size || path.data[i - 1] == '/'))
            return false;
    return true;
}

err merge_edits_check(enum merge_policy policy, const struct merge_edits *edits,
                      struct merge_refusal *ret_refusal)
{
    if (policy == MERGE_POLICY_NONE || policy >= MERGE_POLICY_COUNT) {
        *ret_refusal = (struct merge_refusal){ .field = "policy", .value = policy };
        return ERR_INVALID;
    }
    if (edits->count > MERGE_EDITS_MAX)
        return refuse(ret_refusal, "edits", MERGE_EDITS_MAX, edits->count);
    if ((edits->count == 0 && !edits->whole) ||
        (policy == MERGE_POLICY_COUNTER && edits->count > 0 && edits->whole) ||
        (policy == MERGE_POLICY_VECTOR && edits->count > 1)) {
        *ret_refusal =
            (struct merge_refusal){ .field = "edits", .limit = 1, .value = edits->count };
        return ERR_INVALID;
    }
    for (uint32_t i = 0; i < edits->count; i++) {
        const struct merge_edit *edit = &edits->list[i];

        if (edit->path.size > MERGE_PATH_BYTES_MAX)
            return refuse(ret_refusal, "path", MERGE_PATH_BYTES_MAX, edit->path.size);
        if (edit->value.size > MERGE_VALUE_BYTES_MAX)
            return refuse(ret_refusal, "value", MERGE_VALUE_BYTES_MAX, edit->value.size);
        if (policy == MERGE_POLICY_COUNTER &&
            (edit->delta > MERGE_DELTA_MAX || edit->delta < -MERGE_DELTA_MAX)) {
            err e = refuse(ret_refusal, "delta", (uint64_t)MERGE_DELTA_MAX, (uint64_t)edit->delta);
            ret_refusal->edit = i;
            return e;
        }
        bool well = path_is_well(policy, edit->path);

        for (uint32_t j = 0; j < i; j++)
            well &= !slice_equal(edit->path, edits->list[j].path);
        if (!well) {
            *ret_refusal = (struct merge_refusal){ .field = "path", .value = i };
            return ERR_INVALID;
        }
    }
    return ERR_OK;
}

/* ---- what a write replaces ---- */

bool merge_path_is_inside(struct slice path, struct slice above)
{
    return path.size > above.size && path.data[above.size] == '/' &&
           memcmp(path.data, above.data, above.size) == 0;
}

static bool was_seen(const struct merge_edits *edits, struct merge_dot dot)
{
    for (uint32_t i = 0; i < edits->own_count; i++) {
        if (merge_dot_equal(edits->own[i], dot))
            return true;
    }
    return edits->seen != NULL && causal_covers(edits->seen, dot);
}

static bool is_replaced(enum merge_policy policy, const struct merge_edits *edits,
                        const struct merge_cell *cell)
{
    struct slice path = merge_cell_path(cell);

    if (policy == MERGE_POLICY_VECTOR && (edits->seen != NULL || !edits->whole))
        return was_seen(edits, cell->dot);
    if (edits->whole)
        return true;
    for (uint32_t i = 0; i < edits->count; i++) {
        const struct merge_edit *edit = &edits->list[i];

        if (slice_equal(path, edit->path))
            return policy != MERGE_POLICY_COUNTER || edit->remove;
        if (policy != MERGE_POLICY_MERGE || edit->exact)
            continue;
        /* A value takes the place of an object, and an object that of a value. */
        if (merge_path_is_inside(path, edit->path) ||
            (!edit->remove && merge_path_is_inside(edit->path, path)))
            return true;
    }
    return false;
}

static bool covers_unseen(enum merge_policy policy, const struct merge_edits *edits)
{
    return policy != MERGE_POLICY_COUNTER && edits->seen != NULL &&
           (policy == MERGE_POLICY_VECTOR || edits->whole);
}

/* One flag a cell: it goes. Free it. */
static bool *replaced(const struct merge_record *record, const struct merge_edits *edits)
{
    bool *gone = mem_zalloc((record->count + 1) * sizeof *gone);

    for (uint32_t i = 0; i < record->count; i++)
        gone[i] = is_replaced(record->policy, edits, record->cells[i]);
    return gone;
}

/* A reset remembers the operations that it takes away; there may be too many. */
static bool notes_fit(const struct merge_record *record, const struct merge_edits *edits)
{
    bool *gone = replaced(record, edits);
    struct merge_cell **cells = mem_alloc((record->count + 1) * sizeof(struct merge_cell *));
    uint32_t count;
    bool fit = merge_counter_notes(record, gone, &(struct merge_cell_form){ 0 }, cells, &count);

    for (uint32_t i = 0; i < count; i++)
        merge_cell_unref(cells[i]);
    free(cells);
    free(gone);
    return fit;
}

struct merge_left merge_edits_left(const struct merge_record *record,
                                   const struct merge_edits *edits)
{
    struct merge_left left = { 0 };

    for (uint32_t i = 0; i < record->count; i++) {
        const struct merge_cell *cell = record->cells[i];

        if (is_replaced(record->policy, edits, cell))
            continue;
        left.cells++;
        left.bytes += cell->path_size + cell->value_size;
    }
    for (uint32_t i = 0; i < edits->count; i++) {
        if (edits->list[i].remove)
            continue;
        left.added++;
        left.bytes += edits->list[i].path.size + edits->list[i].value.size;
    }
    left.cells += left.added;
    return left;
}

static bool is_counted(const struct merge_record *record, const struct merge_edits *edits)
{
    bool all = record->policy == MERGE_POLICY_COUNTER && edits->op != 0;

    for (uint32_t i = 0; i < edits->count; i++)
        all = all && merge_counter_knows(record, edits->list[i].path, edits->op);
    return all;
}

err merge_edits_fit(const struct merge_record *record, const struct merge_edits *edits,
                    struct merge_refusal *ret_refusal)
{
    if (record->policy == MERGE_POLICY_COUNTER && !notes_fit(record, edits)) {
        (void)refuse(ret_refusal, "operations", MERGE_SPENT_MAX, MERGE_SPENT_MAX + 1);
        return ERR_FULL;
    }
    struct merge_left left = merge_edits_left(record, edits);
    uint32_t limit =
        record->policy == MERGE_POLICY_VECTOR ? MERGE_SIBLINGS_MAX : MERGE_CELLS_WRITTEN_MAX;

    /* What takes away is always let through, and so is what was counted before. */
    if (left.added == 0 || is_counted(record, edits))
        return ERR_OK;
    uint64_t open_ms = record->policy == MERGE_POLICY_COUNTER ? merge_counter_open_ms(record) : 0;

    if (left.cells > limit && open_ms > 0) {
        (void)refuse(ret_refusal, "increments", limit, left.cells);
        ret_refusal->open_ms = open_ms;
    } else if (left.cells > limit)
        (void)refuse(ret_refusal, record->policy == MERGE_POLICY_VECTOR ? "siblings" : "fields",
                     limit, left.cells);
    else if (left.bytes > MERGE_BYTES_WRITTEN_MAX)
        (void)refuse(ret_refusal, "record", MERGE_BYTES_WRITTEN_MAX, left.bytes);
    else
        return ERR_OK;
    return ERR_FULL;
}

bool merge_edits_stand(const struct merge_record *record, uint64_t op)
{
    bool stand = false;

    for (uint32_t i = 0; op != 0 && record->policy != MERGE_POLICY_COUNTER && i < record->count;
         i++)
        stand |= record->cells[i]->op == op;
    return stand;
}

static bool asks_for(const struct merge_edits *edits, const struct merge_cell *cell, int64_t delta)
{
    for (uint32_t i = 0; i < edits->count; i++) {
        if (slice_equal(edits->list[i].path, merge_cell_path(cell)))
            return !edits->list[i].remove && edits->list[i].delta == delta;
    }
    return false;
}

bool merge_edits_differ(const struct merge_record *record, const struct merge_edits *edits)
{
    bool known = false, all = true;

    if (edits->op == 0 || record->policy != MERGE_POLICY_COUNTER)
        return false;
    for (uint32_t i = 0; i < record->count; i++) {
        const struct merge_cell *cell = record->cells[i];

        if (cell->op != edits->op)
            continue;
        struct merge_tally tally;
        CHECK(merge_tally_decode(merge_cell_value(cell), &tally) == ERR_OK);
        known = true;
        if (!asks_for(edits, cell, tally.delta))
            return true;
    }
    for (uint32_t i = 0; i < edits->count && known; i++)
        all &= edits->list[i].remove || merge_counter_knows(record, edits->list[i].path, edits->op);
    return known && !all;
}

/* Increments, resets and a sweep of a counter. */
static void count_edits(struct merge_record *record, const struct merge_edits *edits)
{
    struct merge_cell_form form = { .dot = edits->dot, .hlc = edits->hlc };
    struct merge_cell **notes = mem_alloc((record->count + 1) * sizeof(struct merge_cell *));
    bool *gone = replaced(record, edits);
    uint32_t count;

    CHECK(
        merge_counter_notes(record, gone, &form, notes, &count)); /* merge_edits_fit has looked. */
    for (uint32_t i = 0; edits->swept != NULL && i < record->count; i++)
        gone[i] |= edits->swept[i];
    merge_record_remove(record, gone);
    for (uint32_t i = 0; i < count; i++)
        merge_record_add(record, notes[i]);
    free(gone);
    free(notes);
    form.op = edits->op;
    for (uint32_t i = 0; i < edits->count; i++) {
        const struct merge_edit *edit = &edits->list[i];
        struct buf value = { 0 };

        if (edit->remove || merge_counter_knows(record, edit->path, edits->op))
            continue; /* A retry leaves nothing but its dot. */
        merge_tally_encode(&(struct merge_tally){ .delta = edit->delta }, &value);
        form.path = edit->path;
        form.value = buf_slice(&value);
        form.expires_ms = edit->expires_ms;
        merge_record_add(record, merge_cell_new(&form));
        buf_deinit(&value);
    }
}

void merge_edits_apply(struct merge_record *record, const struct merge_edits *edits)
{
    bool counts = record->policy == MERGE_POLICY_COUNTER;

    CHECK(!causal_covers(&record->context, edits->dot));
    if (counts) {
        count_edits(record, edits);
    } else {
        bool *gone = replaced(record, edits);

        merge_record_remove(record, gone);
        free(gone);
    }
    if (covers_unseen(record->policy, edits))
        causal_join(&record->context, edits->seen);
    causal_raise(&record->context, edits->dot.actor, edits->dot.counter);
    causal_raise(&record->recent, edits->dot.actor, edits->dot.counter);
    for (uint32_t i = 0; !counts && i < edits->count; i++) {
        const struct merge_edit *edit = &edits->list[i];

        if (edit->remove)
            continue;
        merge_record_add(record,
                         merge_cell_new(&(struct merge_cell_form){ .path = edit->path,
                                                                   .value = edit->value,
                                                                   .dot = edits->dot,
                                                                   .hlc = edits->hlc,
                                                                   .expires_ms = edit->expires_ms,
                                                                   .op = edits->op }));
    }
}

/* ---- what a read shows ---- */

/* Of VECTOR: another attempt of an operation, of which the latest is shown. */
static bool repeats(struct merge_view *view, const struct merge_cell *cell)
{
    for (uint32_t i = 0; i < view->count && cell->op != 0; i++) {
        if (view->cells[i]->op != cell->op)
            continue;
        if (merge_cell_order(cell, view->cells[i]) > 0)
            view->cells[i] = cell;
        return true;
    }
    return false;
}

/* For each path the cell that wins. Of VECTOR all, one for each operation. */
static void choose(struct merge_view *view, const struct merge_record *record)
{
    for (uint32_t i = 0; i < record->count; i++) {
        const struct merge_cell *cell = record->cells[i];
        const struct merge_cell **last = view->count > 0 ? &view->cells[view->count - 1] : NULL;
        bool same = last != NULL && slice_equal(merge_cell_path(*last), merge_cell_path(cell));

        if (record->policy == MERGE_POLICY_VECTOR) {
            if (!repeats(view, cell))
                view->cells[view->count++] = cell;
        } else if (!same) {
            view->cells[view->count++] = cell;
        } else if (merge_cell_order(cell, *last) > 0) {
            *last = cell;
        }
    }
}

/* The place of the path in the view, or its count. */
static uint32_t find_path(const struct merge_view *view, struct slice path)
{
    uint32_t low = 0, high = view->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (slice_compare(merge_cell_path(view->cells[middle]), path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < view->count && slice_equal(merge_cell_path(view->cells[low]), path) ? low
                                                                                     : view->count;
}

/* Of MERGE: a value and what stands inside of its path cannot both be shown; the later write is. */
static void mark_hidden(const struct merge_view *view, bool *hidden)
{
    for (uint32_t i = 0; i < view->count; i++) {
        struct slice path = merge_cell_path(view->cells[i]);

        for (size_t size = 1; size < path.size; size++) {
            if (path.data[size] != '/')
                continue;
            uint32_t above = find_path(view, (struct slice){ path.data, size });

            if (above == view->count)
                continue;
            if (merge_cell_order(view->cells[above], view->cells[i]) > 0)
                hidden[i] = true;
            else
                hidden[above] = true;
        }
    }
}

static bool is_expired(const struct merge_cell *cell, uint64_t now_ms)
{
    return cell->expires_ms != 0 && cell->expires_ms <= now_ms;
}

/* Of each path that counts something the first cell that does; the sum is merge_counter_sum's. */
static void view_counters(struct merge_view *view, const struct merge_record *record,
                          uint64_t now_ms)
{
    for (uint32_t i = 0; i < record->count; i++) {
        const struct merge_cell *cell = record->cells[i];
        struct slice path = merge_cell_path(cell);
        int64_t sum = 0;

        if (i > 0 && slice_equal(path, merge_cell_path(record->cells[i - 1])))
            continue;
        if (merge_counter_sum(record, path, now_ms, &sum) != ERR_OK || sum != 0)
            view->cells[view->count++] = cell;
    }
}

void merge_view_init(struct merge_view *view, const struct merge_record *record, uint64_t now_ms)
{
    uint32_t kept = 0;

    *view = (struct merge_view){ 0 };
    view->cells = mem_alloc((record->count + 1) * sizeof *view->cells);
    if (record->policy == MERGE_POLICY_COUNTER) {
        view_counters(view, record, now_ms);
        return;
    }
    choose(view, record);
    bool *out = mem_zalloc((view->count + 1) * sizeof *out);

    if (record->policy == MERGE_POLICY_MERGE)
        mark_hidden(view, out);
    for (uint32_t i = 0; i < view->count; i++)
        out[i] |= is_expired(view->cells[i], now_ms);
    for (uint32_t i = 0; i < view->count; i++)
        if (!out[i])
            view->cells[kept++] = view->cells[i];
    view->count = kept;
    free(out);
}

void merge_view_deinit(struct merge_view *view)
{
    free(view->cells);
    *view = (struct merge_view){ 0 };
}

static void expired_of_siblings(const struct merge_view *view, const bool *expired, bool *ret_out)
{
    bool all = view->count > 0;

    for (uint32_t i = 0; i < view->count; i++)
        all &= expired[i];
    ret_out[0] = all;
}

uint32_t merge_expired_edits(const struct merge_record *record, uint64_t before_ms,
                             struct merge_edit *ret_edits)
{
    struct merge_view view = { 0 };
    uint32_t count = 0;
    bool any = false;

    view.cells = mem_alloc((record->count + 1) * sizeof *view.cells);
    choose(&view, record);
    bool *expired = mem_zalloc((view.count + 1) * sizeof *expired);
    bool *hidden = mem_zalloc((view.count + 1) * sizeof *hidden);
    bool *out = mem_zalloc((view.count + 1) * sizeof *out);

    for (uint32_t i = 0; i < view.count; i++)
        any |= expired[i] = is_expired(view.cells[i], before_ms);
    if (record->policy == MERGE_POLICY_MERGE)
        mark_hidden(&view, hidden);
    if (record->policy == MERGE_POLICY_VECTOR)
        expired_of_siblings(&view, expired, out);
    else
        memcpy(out, expired, view.count * sizeof *out);
    for (int pass = 0; any && pass < 2; pass++)
        for (uint32_t i = 0; i < view.count && count < MERGE_EDITS_MAX; i++)
            if (pass == 0 ? hidden[i] : out[i] && !hidden[i])
                ret_edits[count++] = (struct merge_edit){ .path = merge_cell_path(view.cells[i]),
                                                          .remove = true,
                                                          .exact = true };
    free(expired);
    free(hidden);
    free(out);
    merge_view_deinit(&view);
    return count;
}
