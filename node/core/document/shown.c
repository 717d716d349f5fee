#include "node/core/document/shown.h"

static bool is_seen(const struct merge_token *seen, struct merge_dot dot)
{
    if (seen == NULL)
        return false;
    for (uint32_t i = 0; i < seen->own_count; i++) {
        if (merge_dot_equal(seen->own[i], dot))
            return true;
    }
    for (uint32_t i = 0; i < seen->count; i++) {
        if (seen->entries[i].actor == dot.actor)
            return dot.counter <= seen->entries[i].upto;
    }
    return false;
}

/* In the order of dots: a context that has a later dot of an actor has the earlier ones, too. */
static void take_unseen(const struct merge_record *record, uint64_t now_ms,
                        const struct merge_token *seen, struct shown *shown)
{
    uint64_t bytes = 0;
    bool full = false;

    for (uint32_t i = 0; i < record->count; i++) {
        struct merge_cell *cell = record->cells[i];

        if ((cell->expires_ms != 0 && cell->expires_ms <= now_ms) || is_seen(seen, cell->dot))
            continue;
        full |= bytes > 0 && bytes + cell->value_size > SHOWN_BYTES_MAX;
        bytes += cell->value_size;
        if (full)
            shown->unseen++;
        else
            merge_record_add(&shown->record, merge_cell_ref(cell));
    }
}

bool shown_part(const struct merge_record *record, uint64_t now_ms, const struct merge_token *seen,
                struct shown *ret_shown)
{
    struct shown shown = { .record = { .policy = record->policy, .erasure = record->erasure } };

    if (record->policy != MERGE_POLICY_VECTOR || merge_record_bytes(record) <= SHOWN_BYTES_MAX)
        return false;
    take_unseen(record, now_ms, seen, &shown);
    if (shown.record.count == 0) { /* Its caller has seen all: it begins again. */
        take_unseen(record, now_ms, NULL, &shown);
        shown.unseen = 0;
    }
    *ret_shown = shown;
    return true;
}
