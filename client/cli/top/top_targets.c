#include "client/cli/top/top_targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/console/answer.h"
#include "runtime/base/check.h"

void top_targets_init(struct top_targets *targets, const char *kind, const char *name)
{
    memset(targets, 0, sizeof *targets);
    snprintf(targets->of, sizeof targets->of, "%s %s", kind, name);
    targets->before = mem_zalloc(sizeof *targets->before);
    targets->after = mem_zalloc(sizeof *targets->after);
}

void top_targets_deinit(struct top_targets *targets)
{
    free(targets->before);
    free(targets->after);
    memset(targets, 0, sizeof *targets);
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct top_target *)a)->id, ((const struct top_target *)b)->id);
}

static void take_list(struct top_target_list *list, const json_t *answer)
{
    const json_t *entry;
    size_t i;

    list->as_of_ms = answer_number(answer, "asOfFromMs");
    list->stale = json_is_true(json_object_get(answer, "stale"));
    list->target_count = 0;
    json_array_foreach(json_object_get(answer, "entries"), i, entry)
    {
        if (list->target_count == TOP_TARGETS_MAX)
            break;
        struct top_target *target = &list->targets[list->target_count++];
        snprintf(target->id, sizeof target->id, "%s", answer_text(entry, "targetId"));
        target->count = answer_number(entry, "count");
    }
    qsort(list->targets, list->target_count, sizeof list->targets[0], by_id);
}

/* What a target had, of which a list may not tell: a full list leaves out what has less. */
static uint64_t count_in(const struct top_target_list *list, const struct top_target *target)
{
    const struct top_target *found =
        bsearch(target, list->targets, list->target_count, sizeof list->targets[0], by_id);
    uint64_t least = UINT64_MAX;

    if (found != NULL)
        return found->count;
    if (list->target_count < TOP_TARGETS_MAX)
        return 0;
    for (uint32_t i = 0; i < list->target_count; i++)
        least = list->targets[i].count < least ? list->targets[i].count : least;
    return least;
}

static double rate_of(const struct top_targets *targets, const struct top_target *target)
{
    const struct top_target_list *before = targets->before;
    uint64_t had = before->as_of_ms != 0 ? count_in(before, target) : 0;

    if (before->as_of_ms == 0)
        return -1;
    return target->count <= had ? 0
                                : (double)(target->count - had) * 1e3 /
                                      (double)(targets->after->as_of_ms - before->as_of_ms);
}

static bool goes_before(const struct top_target_row *row, const struct top_target_row *other)
{
    if (row->rate != other->rate)
        return row->rate > other->rate;
    if (row->target->count != other->target->count)
        return row->target->count > other->target->count;
    return strcmp(row->target->id, other->target->id) < 0;
}

/* Into the rows, which are in order; the last one falls out. */
static void insert(struct top_targets *targets, const struct top_target_row *row)
{
    uint32_t at = targets->row_count;

    while (at > 0 && goes_before(row, &targets->rows[at - 1]))
        at--;
    if (at == TOP_TARGET_ROWS_MAX)
        return;
    if (targets->row_count < TOP_TARGET_ROWS_MAX)
        targets->row_count++;
    for (uint32_t i = targets->row_count - 1; i > at; i--)
        targets->rows[i] = targets->rows[i - 1];
    targets->rows[at] = *row;
}

void top_targets_take(struct top_targets *targets, const json_t *answer, const char *why)
{
    struct top_target_list *oldest = targets->before;

    snprintf(targets->why, sizeof targets->why, "%s", answer == NULL ? why : "");
    if (answer == NULL || answer_number(answer, "asOfFromMs") <= targets->after->as_of_ms)
        return;
    targets->before = targets->after;
    targets->after = oldest;
    take_list(targets->after, answer);
    targets->row_count = 0;
    for (uint32_t i = 0; i < targets->after->target_count; i++) {
        const struct top_target *target = &targets->after->targets[i];
        struct top_target_row row = { target, rate_of(targets, target) };
        insert(targets, &row);
    }
}
