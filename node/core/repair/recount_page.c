#include "node/core/repair/recount_page.h"

typedef Holdfast__V1__CountDifference difference;

struct reading {
    struct arena *arena;
    struct recount_page *page;
};

static bool take_row(void *user, struct slice key, struct slice value)
{
    struct reading *reading = user;
    struct recount_page *page = reading->page;

    page->keys[page->count] = arena_copy(reading->arena, key);
    page->values[page->count++] = arena_copy(reading->arena, value);
    return true;
}

err recount_page_read(struct recount *recount, const struct state_range *range,
                      struct recount_page *ret_page)
{
    struct reading reading = { recount->arena, ret_page };

    *ret_page = (struct recount_page){ 0 };
    ret_page->keys = arena_alloc(recount->arena, range->limit * sizeof *ret_page->keys);
    ret_page->values = arena_alloc(recount->arena, range->limit * sizeof *ret_page->values);
    err e = state_range_visit(recount->state, range, recount->need, take_row, &reading);
    ret_page->more = ret_page->count == range->limit;
    return e;
}

int recount_compare(uint64_t number, struct slice target, uint64_t other, struct slice of_other)
{
    if (number != other)
        return number < other ? -1 : 1;
    return slice_compare(target, of_other);
}

void recount_tell(struct recount *recount, const difference *told)
{
    recount->row->different++;
    if (recount->told_count == RECOUNT_TOLD_MAX)
        return;
    difference *copy = arena_alloc(recount->arena, sizeof *copy);
    *copy = *told;
    recount->told[recount->told_count++] = copy;
}

/* An owner whose clock is ahead may have dropped an hour that another one would still keep, so the
 * last two of those that are kept are left out. */
#define HOURS_UNSURE 2u

static struct hours hours_sure(const struct recount *recount, const struct hours *hours)
{
    struct hours sure = *hours;

    hours_prune(&sure, recount->hour + HOURS_UNSURE);
    return sure;
}

bool recount_hours_equal(const struct recount *recount, const struct hours *a,
                         const struct hours *b)
{
    struct hours one = hours_sure(recount, a), other = hours_sure(recount, b);

    if (one.count != other.count)
        return false;
    for (uint32_t i = 0; i < one.count; i++) {
        if (one.list[i].hour != other.list[i].hour || one.list[i].count != other.list[i].count)
            return false;
    }
    return true;
}
