#include "tests/chaos/check/documents.h"

#include <inttypes.h>
#include <stdlib.h>

#include "runtime/base/check.h"

/* An edit, and what became of what it wrote. */
struct written {
    const struct edit *edit;
    int64_t
        replaced_from; /* When the first was called that may have replaced it; INT64_MAX: none. */
    uint32_t replaced_line; /* Of one that surely did, for good; 0: none. */
};

/* What one hand has to be shown of one document. */
struct held {
    int64_t *values;
    size_t count, capacity;
    int64_t sum; /* Of a counter, at least. */
};

/* One document. */
struct judging {
    const struct edits *edits;
    struct findings *findings;
    const char *name;
    struct written *written; /* By value; of a counter by the time of the call. */
    size_t written_count;
    const struct edit **edit_list; /* In the order of lines. */
    size_t edit_count;
    const struct look **look_list;
    size_t look_count;
    struct held *held; /* By hand. */
    bool is_counter, last_stands;
};

static int compare(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_value(const void *a, const void *b)
{
    const struct written *one = a, *other = b;

    return compare(one->edit->value, other->edit->value);
}

static struct written *find(const struct judging *of, int64_t value)
{
    const struct edit wanted = { .value = value };
    const struct written key = { .edit = &wanted };

    return bsearch(&key, of->written, of->written_count, sizeof key, by_value);
}

static bool shows(const struct judging *of, const struct look *look, int64_t value)
{
    for (size_t i = 0; i < look->shown.count; i++) {
        if (of->edits->values[look->shown.first + i] == value)
            return true;
    }
    return false;
}

/* ---- what replaced what ---- */

static void note_replaced(struct judging *of, const struct edit *by)
{
    if (by->outcome == OUTCOME_REFUSED)
        return;
    for (size_t i = 0; i < by->replaces.count; i++) {
        struct written *gone = find(of, of->edits->values[by->replaces.first + i]);
        if (gone == NULL)
            continue;
        if (by->called_at < gone->replaced_from)
            gone->replaced_from = by->called_at;
        if (by->outcome == OUTCOME_OK && gone->edit->outcome == OUTCOME_OK &&
            by->called_at - gone->edit->answered_at > ATTEMPT_ENDS_NS)
            gone->replaced_line = by->line;
    }
}

static void gather(struct judging *of)
{
    for (size_t i = 0; i < of->edit_count; i++) {
        const struct edit *edit = of->edit_list[i];
        of->is_counter |= edit->kind == EDIT_COUNT;
        of->last_stands |= edit->kind == EDIT_WRITE;
        if (edit->kind != EDIT_DISCARD && edit->kind != EDIT_COUNT)
            of->written[of->written_count++] = (struct written){ edit, INT64_MAX, 0 };
    }
    qsort(of->written, of->written_count, sizeof *of->written, by_value);
    for (size_t i = 1; i < of->written_count; i++) {
        if (of->written[i - 1].edit->value == of->written[i].edit->value)
            finding_add(of->findings, "line %u: %s: %" PRId64 " is written in line %u, too",
                        of->written[i].edit->line, of->name, of->written[i].edit->value,
                        of->written[i - 1].edit->line);
    }
    for (size_t i = 0; i < of->edit_count; i++)
        note_replaced(of, of->edit_list[i]);
}

/* ---- values ---- */

static void judge_shown(struct judging *of, const struct look *look)
{
    for (size_t i = 0; i < look->shown.count; i++) {
        int64_t value = of->edits->values[look->shown.first + i];
        const struct written *found = find(of, value);
        if (found == NULL || found->edit->called_at > look->answered_at)
            finding_add(of->findings,
                        "line %u: %s shows %" PRId64 ", which nothing wrote before it", look->line,
                        of->name, value);
        else if (found->edit->outcome == OUTCOME_REFUSED)
            finding_add(of->findings, "line %u: %s shows %" PRId64 ", which was refused in line %u",
                        look->line, of->name, value, found->edit->answer_line);
    }
}

static void hold(struct held *held, int64_t value)
{
    if (held->count == held->capacity) {
        held->capacity = held->capacity > 0 ? held->capacity * 2 : 16;
        held->values = mem_realloc(held->values, sizeof *held->values * held->capacity);
    }
    held->values[held->count++] = value;
}

/* A hand reads with its context. */
static void judge_look(struct judging *of, const struct look *look)
{
    struct held *held = &of->held[look->hand];

    for (size_t i = 0; i < held->count && !of->last_stands; i++) {
        const struct written *kept = find(of, held->values[i]);
        if (kept != NULL && kept->replaced_from > look->answered_at &&
            !shows(of, look, held->values[i]))
            finding_add(of->findings,
                        "line %u: %s goes back for %s: %" PRId64
                        " is not shown, which it knew of and nothing replaced",
                        look->line, of->name, of->edits->hands.texts[look->hand], held->values[i]);
    }
    held->count = 0;
    for (size_t i = 0; i < look->shown.count; i++)
        hold(held, of->edits->values[look->shown.first + i]);
}

static void judge_end(struct judging *of, const struct look *end)
{
    size_t answered = 0;

    for (size_t i = 0; i < of->written_count; i++) {
        const struct written *written = &of->written[i];
        bool shown = shows(of, end, written->edit->value);
        answered += written->edit->outcome == OUTCOME_OK;
        if (written->edit->outcome == OUTCOME_OK && !shown && !of->last_stands &&
            written->replaced_from == INT64_MAX)
            finding_add(of->findings,
                        "line %u: %s: %" PRId64 " is lost; it was answered in line %u, and nothing "
                        "replaced it",
                        end->line, of->name, written->edit->value, written->edit->answer_line);
        if (shown && written->replaced_line != 0)
            finding_add(of->findings,
                        "line %u: %s: %" PRId64 " is back, which line %u replaced long before",
                        end->line, of->name, written->edit->value, written->replaced_line);
    }
    if (of->last_stands && (end->shown.count > 1 || (end->shown.count == 0 && answered > 0)))
        finding_add(of->findings,
                    "line %u: %s shows %zu values, and one stands of what was written", end->line,
                    of->name, end->shown.count);
}

/* ---- counters ---- */

static int64_t sum_of(const struct judging *of, const struct look *look)
{
    if (look->shown.count == 1)
        return of->edits->values[look->shown.first];
    finding_add(of->findings, "line %u: %s is a counter, and shows %zu values", look->line,
                of->name, look->shown.count);
    return 0;
}

/* What it can be, at least and at most, for who reads it then. */
static void counted(const struct judging *of, const struct look *look, int64_t *ret_sure,
                    int64_t *ret_most)
{
    *ret_sure = *ret_most = 0;
    for (size_t i = 0; i < of->edit_count; i++) {
        const struct edit *edit = of->edit_list[i];
        if (edit->outcome == OUTCOME_REFUSED || edit->called_at > look->answered_at)
            continue;
        *ret_most += edit->value;
        if (edit->outcome == OUTCOME_OK)
            *ret_sure += edit->value;
    }
}

static void judge_counter(struct judging *of, const struct look *look)
{
    int64_t sum = sum_of(of, look), least, most;

    counted(of, look, &least, &most);
    if (look->hand != NAME_NONE) {
        least = of->held[look->hand].sum;
        of->held[look->hand].sum = sum;
    }
    if (sum < least || sum > most)
        finding_add(of->findings,
                    "line %u: %s is %" PRId64 "; what was counted makes %" PRId64 " to %" PRId64,
                    look->line, of->name, sum, least, most);
}

/* ---- all of it ---- */

static bool alike(const struct judging *of, const struct look *one, const struct look *other)
{
    for (size_t i = 0; i < one->shown.count; i++) {
        if (!shows(of, other, of->edits->values[one->shown.first + i]))
            return false;
    }
    return one->shown.count == other->shown.count;
}

static void judge_ends(struct judging *of)
{
    const struct look *first = NULL;

    for (size_t i = 0; i < of->look_count; i++) {
        const struct look *end = of->look_list[i];
        if (end->hand != NAME_NONE)
            continue;
        if (first != NULL && !alike(of, first, end))
            finding_add(of->findings, "line %u: %s is not what it was in line %u: members differ",
                        end->line, of->name, first->line);
        if (first == NULL && !of->is_counter)
            judge_end(of, end);
        first = first == NULL ? end : first;
    }
    if (first == NULL)
        finding_add(of->findings, "the history does not say how %s stood in the end", of->name);
}

/* In the order of lines, since a hand does one thing after another. */
static void judge_order(struct judging *of)
{
    for (size_t e = 0, l = 0; e < of->edit_count || l < of->look_count;) {
        const struct edit *edit = e < of->edit_count ? of->edit_list[e] : NULL;
        const struct look *look = l < of->look_count ? of->look_list[l] : NULL;
        if (look == NULL || (edit != NULL && edit->line < look->line)) {
            e++;
            if (edit->outcome == OUTCOME_OK && edit->kind == EDIT_COUNT)
                of->held[edit->hand].sum += edit->value;
            else if (edit->outcome == OUTCOME_OK && edit->value != 0)
                hold(&of->held[edit->hand], edit->value);
            continue;
        }
        l++;
        if (of->is_counter) {
            judge_counter(of, look);
            continue;
        }
        judge_shown(of, look);
        if (look->hand != NAME_NONE)
            judge_look(of, look);
    }
}

static void judge(struct judging *of)
{
    gather(of);
    judge_order(of);
    judge_ends(of);
}

/* Edits and looks of one document each, by counting. */
void documents_judge(const struct edits *edits, struct findings *findings)
{
    struct judging of = { .edits = edits, .findings = findings };

    of.written = mem_zalloc(sizeof *of.written * (edits->edit_count + 1));
    of.edit_list = mem_zalloc(sizeof *of.edit_list * (edits->edit_count + 1));
    of.look_list = mem_zalloc(sizeof *of.look_list * (edits->look_count + 1));
    for (uint32_t document = 0; document < edits->documents.count; document++) {
        of.name = edits->documents.texts[document];
        of.written_count = of.edit_count = of.look_count = 0;
        of.is_counter = of.last_stands = false;
        of.held = mem_zalloc(sizeof *of.held * (edits->hands.count + 1));
        for (size_t i = 0; i < edits->edit_count; i++) {
            if (edits->edits[i].document == document)
                of.edit_list[of.edit_count++] = &edits->edits[i];
        }
        for (size_t i = 0; i < edits->look_count; i++) {
            if (edits->looks[i].document == document)
                of.look_list[of.look_count++] = &edits->looks[i];
        }
        judge(&of);
        for (size_t i = 0; i < edits->hands.count; i++)
            free(of.held[i].values);
        free(of.held);
    }
    free(of.written);
    free(of.edit_list);
    free(of.look_list);
}
