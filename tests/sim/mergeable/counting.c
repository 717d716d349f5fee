/*
 * What counters must say, from their writes alone: at whichever member, the sum of the increments
 * that its record has taken in and no reset that it has taken in took away; an operation once,
 * by its earliest increment, and not at all once a reset saw one of its increments. What only disks
 * had that were lost may be gone (ONE: one fsync): a reset of those may hold, or not.
 */
#include <stdlib.h>
#include <string.h>

#include "node/core/mergeable/counter.h"
#include "runtime/base/check.h"
#include "tests/sim/mergeable/msim.h"

/* A sweep goes by another member's clock than a read. */
#define EXPIRY_UNSURE_MS 20000u

/* Its member has heard that the actor ended: only dots that all agreed on count from then on. */
static bool knows_end(const struct causal *context, uint64_t actor)
{
    bool ended = merge_actor_era(actor) < context->era;

    for (uint32_t i = 0; i < context->count && !ended; i++)
        ended = context->entries[i].actor == actor && context->entries[i].upto == UINT64_MAX;
    return ended;
}

/* Taken in: it, or a later write of its process to the record, which is made of what that had, and
 * sent whole. The dot of a write in memory may be void all the same. */
static bool is_known(const struct msim *sim, const struct merge_record *record, uint32_t write)
{
    const struct write *one = &sim->writes[write];

    for (uint32_t i = write; i < sim->write_count; i++) {
        const struct write *at = &sim->writes[i];

        if (at->key == one->key && at->erasure == one->erasure && at->dot.actor == one->dot.actor &&
            at->dot.counter >= one->dot.counter && causal_covers(&record->context, at->dot) &&
            (!knows_end(&record->context, at->dot.actor) ||
             ended_has(sim, at->dot, record->context.era)))
            return true;
    }
    return false;
}

static void note_increment(struct msim *sim, const struct noted *noted, uint32_t write,
                           const struct merge_cell *cell)
{
    struct merge_tally tally;

    CHECK(merge_tally_decode(merge_cell_value(cell), &tally) == ERR_OK);
    if (tally.spent.size > 0) /* What a reset leaves. */
        return;
    sim->increments =
        mem_realloc(sim->increments, (sim->increment_count + 1) * sizeof *sim->increments);
    sim->increments[sim->increment_count++] =
        (struct increment){ .write = write,
                            .key = noted->key,
                            .path = cell->bytes[0],
                            .delta = tally.delta,
                            .op = cell->op,
                            .hlc = cell->hlc,
                            .expires_ms = cell->expires_ms,
                            .erasure = noted->after->erasure };
    sim->counts->increments++;
}

/* The paths of which something went. */
static bool lost_cells(const struct noted *noted, uint8_t path)
{
    for (uint32_t i = 0; i < noted->before->count; i++) {
        const struct merge_cell *cell = noted->before->cells[i];
        bool stays = cell->bytes[0] != path;

        for (uint32_t j = 0; !stays && j < noted->after->count; j++)
            stays = merge_dot_equal(cell->dot, noted->after->cells[j]->dot) &&
                    noted->after->cells[j]->bytes[0] == path;
        if (!stays)
            return true;
    }
    return false;
}

static void note_reset(struct msim *sim, const struct noted *noted, uint32_t write, uint8_t path)
{
    struct reset reset = { .write = write, .key = noted->key, .erasure = noted->after->erasure };

    reset.covered = mem_alloc((sim->increment_count + 1) * sizeof *reset.covered);
    for (uint32_t i = 0; i < sim->increment_count; i++) {
        const struct increment *increment = &sim->increments[i];

        if (increment->key == noted->key && increment->path == path &&
            increment->erasure == reset.erasure && is_known(sim, noted->before, increment->write))
            reset.covered[reset.covered_count++] = i;
    }
    sim->resets = mem_realloc(sim->resets, (sim->reset_count + 1) * sizeof *sim->resets);
    sim->resets[sim->reset_count++] = reset;
    sim->counts->resets++;
}

void counting_write(struct msim *sim, const struct noted *noted, uint32_t write)
{
    for (const char *path = "nm"; *path != 0 && !noted->is_sweep; path++)
        if (lost_cells(noted, (uint8_t)*path))
            note_reset(sim, noted, write, (uint8_t)*path);
    for (uint32_t i = 0; i < noted->after->count; i++)
        if (merge_dot_equal(noted->after->cells[i]->dot, noted->written.dot))
            note_increment(sim, noted, write, noted->after->cells[i]);
}

/* Which increments count: the known ones of this key and path, less what known resets took away. */
struct tallied {
    const struct merge_record *record;
    uint32_t key;
    uint8_t path;
    bool with_lost; /* Resets hold too whose dots were lost with all disks that had them. */
    bool *known, *spent;
};

/* A record's context may still cover what a lost reset took away, where a voided clock and a short
 * index forgot the dot of the reset, and its actor was closed without that. */
static bool holds(const struct msim *sim, const struct tallied *tallied, const struct reset *reset)
{
    const struct write *write = &sim->writes[reset->write];

    return is_known(sim, tallied->record, reset->write) ||
           (tallied->with_lost && write->exempt &&
            causal_covers(&tallied->record->context, write->dot));
}

static void spend(const struct msim *sim, struct tallied *tallied, uint32_t at)
{
    uint64_t op = sim->increments[at].op;

    tallied->spent[at] = true;
    for (uint32_t i = 0; op != 0 && i < sim->increment_count; i++)
        tallied->spent[i] |= sim->increments[i].op == op && tallied->known[i];
}

static void tally(const struct msim *sim, struct tallied *tallied)
{
    for (uint32_t i = 0; i < sim->increment_count; i++) {
        const struct increment *increment = &sim->increments[i];

        tallied->known[i] = increment->key == tallied->key && increment->path == tallied->path &&
                            increment->erasure == tallied->record->erasure &&
                            is_known(sim, tallied->record, increment->write);
    }
    for (uint32_t i = 0; i < sim->reset_count; i++) {
        const struct reset *reset = &sim->resets[i];

        if (reset->key != tallied->key || reset->erasure != tallied->record->erasure ||
            !holds(sim, tallied, reset))
            continue;
        for (uint32_t j = 0; j < reset->covered_count; j++)
            if (sim->increments[reset->covered[j]].path == tallied->path)
                spend(sim, tallied, reset->covered[j]);
    }
}

static bool is_earlier(const struct msim *sim, const struct increment *a, const struct increment *b)
{
    return a->hlc != b->hlc
               ? a->hlc < b->hlc
               : merge_dot_compare(sim->writes[a->write].dot, sim->writes[b->write].dot) < 0;
}

/* No disk has it any more, and of its era, which is forgotten, all pass for known. */
static bool is_lost(const struct msim *sim, const struct tallied *tallied,
                    const struct increment *increment)
{
    const struct write *write = &sim->writes[increment->write];

    return write->exempt && merge_actor_era(write->dot.actor) < tallied->record->context.era;
}

/* False: what has just expired, or has not yet, may be there or not, and what was lost. */
static bool add_up(const struct msim *sim, const struct tallied *tallied, uint64_t now_ms,
                   int64_t *ret_sum)
{
    *ret_sum = 0;
    for (uint32_t i = 0; i < sim->increment_count; i++) {
        const struct increment *one = &sim->increments[i];
        bool counts = tallied->known[i] && !tallied->spent[i];

        for (uint32_t j = 0; counts && one->op != 0 && j < sim->increment_count; j++)
            counts = j == i || !tallied->known[j] || sim->increments[j].op != one->op ||
                     !is_earlier(sim, &sim->increments[j], one);
        if (!counts)
            continue;
        if (is_lost(sim, tallied, one))
            return false;
        if (one->expires_ms != 0 && one->expires_ms < now_ms + EXPIRY_UNSURE_MS &&
            one->expires_ms + EXPIRY_UNSURE_MS > now_ms)
            return false;
        if (one->expires_ms == 0 || one->expires_ms > now_ms)
            *ret_sum += one->delta;
    }
    return true;
}

static bool must_say(const struct msim *sim, struct tallied *tallied, uint64_t now_ms,
                     int64_t *ret_sum)
{
    tallied->known = mem_zalloc(sim->increment_count + 1);
    tallied->spent = mem_zalloc(sim->increment_count + 1);
    tally(sim, tallied);
    bool sure = add_up(sim, tallied, now_ms, ret_sum);

    free(tallied->known);
    free(tallied->spent);
    return sure;
}

void counting_judge(struct msim *sim, const struct merge_record *record, uint32_t key,
                    uint64_t now_ms)
{
    /* A member may have taken over what an erasure dropped before it hears of the erasure. */
    if (record->erasure < sim->erasures[key / FORMS])
        return;
    for (const char *path = "nm"; *path != 0; path++) {
        struct tallied tallied = { .record = record, .key = key, .path = (uint8_t)*path };
        int64_t must, says, may;

        if (!must_say(sim, &tallied, now_ms, &must))
            continue;
        PROMISE(sim,
                merge_counter_sum(record, (struct slice){ (const uint8_t *)path, 1 }, now_ms,
                                  &says) == ERR_OK,
                "a counter has no sum");
        tallied.with_lost = true;
        PROMISE(sim, says == must || !must_say(sim, &tallied, now_ms, &may) || says == may,
                "a counter of key %u says %lld, not %lld", key, (long long)says, (long long)must);
        sim->counts->counters_judged++;
    }
}

/* It counts something, or takes something away: of a write that does neither no row has to tell. */
static bool counts(const struct msim *sim, uint32_t write)
{
    bool does = false;

    for (uint32_t i = 0; i < sim->increment_count && !does; i++)
        does = sim->increments[i].write == write;
    for (uint32_t i = 0; i < sim->reset_count && !does; i++)
        does = sim->resets[i].write == write && sim->resets[i].covered_count > 0;
    return does;
}

void counting_majority(struct msim *sim, const struct majority_read *read,
                       const struct merge_record *record)
{
    if (record->erasure < sim->erasures[read->key / FORMS])
        return;
    for (uint32_t i = 0; i < sim->write_count; i++) {
        const struct write *write = &sim->writes[i];

        if (write->key != read->key || write->erasure != record->erasure || write->exempt ||
            write->durability != MERGE_MAJORITY || write->acked_at == 0 ||
            write->acked_at > read->acked_before)
            continue;
        PROMISE(sim, is_known(sim, record, i) || !counts(sim, i),
                "a majority's read lacks a count that a majority acknowledged");
    }
}

void counting_free(struct msim *sim)
{
    for (uint32_t i = 0; i < sim->reset_count; i++)
        free(sim->resets[i].covered);
    free(sim->resets);
    free(sim->increments);
}
