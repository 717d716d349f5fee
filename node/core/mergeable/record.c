#include "node/core/mergeable/record.h"

#include <stdlib.h>
#include <string.h>

#include "node/core/mergeable/tally.h"
#include "runtime/base/check.h"

struct merge_cell *merge_cell_new(const struct merge_cell_form *form)
{
    size_t size = form->path.size + form->value.size;
    struct merge_cell *cell = mem_alloc(sizeof *cell + size);

    CHECK(form->path.size <= MERGE_PATH_BYTES_MAX && form->value.size <= MERGE_VALUE_BYTES_MAX);
    *cell = (struct merge_cell){ .refs = 1,
                                 .path_size = (uint32_t)form->path.size,
                                 .value_size = (uint32_t)form->value.size,
                                 .dot = form->dot,
                                 .hlc = form->hlc,
                                 .expires_ms = form->expires_ms,
                                 .op = form->op };
    if (form->path.size > 0)
        memcpy(cell->bytes, form->path.data, form->path.size);
    if (form->value.size > 0)
        memcpy(cell->bytes + form->path.size, form->value.data, form->value.size);
    return cell;
}

struct merge_cell *merge_cell_ref(struct merge_cell *cell)
{
    cell->refs++;
    return cell;
}

void merge_cell_unref(struct merge_cell *cell)
{
    CHECK(cell->refs > 0);
    if (--cell->refs == 0)
        free(cell);
}

struct slice merge_cell_path(const struct merge_cell *cell)
{
    return (struct slice){ cell->bytes, cell->path_size };
}

struct slice merge_cell_value(const struct merge_cell *cell)
{
    return (struct slice){ cell->bytes + cell->path_size, cell->value_size };
}

int merge_cell_order(const struct merge_cell *a, const struct merge_cell *b)
{
    if (a->hlc != b->hlc)
        return a->hlc < b->hlc ? -1 : 1;
    return merge_dot_compare(a->dot, b->dot);
}

/* The order inside a record. */
static int place_compare(const struct merge_cell *a, const struct merge_cell *b)
{
    int order = slice_compare(merge_cell_path(a), merge_cell_path(b));

    return order != 0 ? order : merge_dot_compare(a->dot, b->dot);
}

static void cells_drop(struct merge_record *record)
{
    for (uint32_t i = 0; i < record->count; i++)
        merge_cell_unref(record->cells[i]);
    free(record->cells);
    record->cells = NULL;
    record->count = record->capacity = 0;
}

void merge_record_deinit(struct merge_record *record)
{
    cells_drop(record);
    causal_deinit(&record->context);
    causal_deinit(&record->recent);
    *record = (struct merge_record){ 0 };
}

void merge_record_copy(struct merge_record *to, const struct merge_record *from)
{
    struct merge_record copy = { .policy = from->policy,
                                 .erasure = from->erasure,
                                 .count = from->count,
                                 .capacity = from->count };

    if (from->count > 0)
        copy.cells = mem_alloc(from->count * sizeof(struct merge_cell *));
    for (uint32_t i = 0; i < from->count; i++)
        copy.cells[i] = merge_cell_ref(from->cells[i]);
    causal_copy(&copy.context, &from->context);
    causal_copy(&copy.recent, &from->recent);
    merge_record_deinit(to);
    *to = copy;
}

static void cells_reserve(struct merge_record *record, uint32_t count)
{
    if (count <= record->capacity)
        return;
    record->capacity = count > record->capacity * 2 ? count : record->capacity * 2;
    record->cells = mem_realloc(record->cells, record->capacity * sizeof(struct merge_cell *));
}

void merge_record_add(struct merge_record *record, struct merge_cell *cell)
{
    uint32_t low = 0, high = record->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (place_compare(record->cells[middle], cell) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    CHECK(low == record->count || place_compare(record->cells[low], cell) != 0);
    cells_reserve(record, record->count + 1);
    memmove(&record->cells[low + 1], &record->cells[low],
            (record->count - low) * sizeof(struct merge_cell *));
    record->cells[low] = cell;
    record->count++;
    causal_raise(&record->context, cell->dot.actor, cell->dot.counter);
}

void merge_record_remove(struct merge_record *record, const bool *gone)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < record->count; i++) {
        if (gone[i])
            merge_cell_unref(record->cells[i]);
        else
            record->cells[kept++] = record->cells[i];
    }
    record->count = kept;
}

bool merge_record_is_void(const struct merge_record *record)
{
    return record->count == 0 && causal_is_empty(&record->context) &&
           causal_is_empty(&record->recent);
}

uint64_t merge_record_bytes(const struct merge_record *record)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < record->count; i++)
        bytes += record->cells[i]->path_size + record->cells[i]->value_size;
    return bytes;
}

/* The cells that survive: those in both, and those of one that the other has not taken in. */
static bool cells_join(struct merge_record *record, const struct merge_record *other)
{
    struct merge_record joined = { 0 };
    uint32_t i = 0, j = 0;
    bool changed = false;

    cells_reserve(&joined, record->count + other->count + 1);
    while (i < record->count || j < other->count) {
        struct merge_cell *mine = i < record->count ? record->cells[i] : NULL;
        struct merge_cell *theirs = j < other->count ? other->cells[j] : NULL;
        int order = mine == NULL ? 1 : theirs == NULL ? -1 : place_compare(mine, theirs);

        i += order <= 0;
        j += order >= 0;
        if (order == 0 && record->policy == MERGE_POLICY_COUNTER &&
            merge_tally_exceeds(merge_cell_value(theirs), merge_cell_value(mine))) {
            joined.cells[joined.count++] = merge_cell_ref(theirs);
            changed = true;
        } else if (order == 0 || (order < 0 && !causal_covers(&other->context, mine->dot))) {
            joined.cells[joined.count++] = merge_cell_ref(mine);
        } else if (order > 0 && !causal_covers(&record->context, theirs->dot)) {
            joined.cells[joined.count++] = merge_cell_ref(theirs);
            changed = true;
        } else if (order < 0) {
            changed = true;
        }
    }
    cells_drop(record);
    record->cells = joined.cells;
    record->count = joined.count;
    record->capacity = joined.capacity;
    return changed;
}

bool merge_record_join(struct merge_record *record, const struct merge_record *other)
{
    CHECK(record->policy == other->policy || record->policy == MERGE_POLICY_NONE ||
          other->policy == MERGE_POLICY_NONE);
    if (other->erasure < record->erasure)
        return false;
    if (other->erasure > record->erasure) {
        /* Nothing below the greater number counts, its context neither. */
        merge_record_copy(record, other);
        return true;
    }
    if (record->policy == MERGE_POLICY_NONE)
        record->policy = other->policy;
    bool changed = cells_join(record, other);
    struct causal before = { 0 };

    causal_copy(&before, &record->context);
    causal_join(&record->context, &other->context);
    causal_join(&record->recent, &other->recent);
    changed |= !causal_equal(&before, &record->context);
    causal_deinit(&before);
    return changed;
}

bool merge_record_equal(const struct merge_record *a, const struct merge_record *b, bool context)
{
    if (a->erasure != b->erasure || a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct merge_cell *one = a->cells[i], *two = b->cells[i];

        if (place_compare(one, two) != 0 || one->hlc != two->hlc ||
            one->expires_ms != two->expires_ms || one->op != two->op ||
            !slice_equal(merge_cell_value(one), merge_cell_value(two)))
            return false;
    }
    return !context || causal_equal(&a->context, &b->context);
}
