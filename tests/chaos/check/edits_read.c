#include "tests/chaos/check/edits_read.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/base/check.h"

static struct value_list read_values(struct line *line, const char *field)
{
    struct edits *edits = &line->history->edits;
    struct value_list list = { .first = edits->value_count };
    const json_t *array = json_object_get(line->object, field);

    if (!json_is_array(array) || json_array_size(array) > SHOWN_MAX) {
        line_wrong(line, "%s: an array of at most %u integers is wanted", field, SHOWN_MAX);
        return list;
    }
    for (; list.count < json_array_size(array); list.count++) {
        const json_t *value = json_array_get(array, list.count);
        if (!json_is_integer(value) || json_integer_value(value) < 0) {
            line_wrong(line, "%s: integers from 0 on are wanted", field);
            return list;
        }
        *LINE_ADD(edits, values, value_count, value_capacity) = json_integer_value(value);
    }
    return list;
}

static void read_kind(struct line *line, struct edit *edit)
{
    const char *kind = line_text(line, "do");

    if (!edit_find(kind, &edit->kind)) {
        line_wrong(line, "do: \"%.40s\" is nothing that is done to a document", kind);
        return;
    }
    if (edit->kind != EDIT_DISCARD)
        edit->value = line_integer(line, "value", 1);
    if (edit->kind == EDIT_COUNT && edit->value > AMOUNT_MAX)
        line_wrong(line, "value: at most %d is counted at once, not %" PRId64, AMOUNT_MAX,
                   edit->value);
    if (edit->kind == EDIT_DISCARD || line_has(line, "replaces"))
        edit->replaces = read_values(line, "replaces");
}

void edits_read_edit(struct line *line)
{
    struct edits *edits = &line->history->edits;
    int64_t number = line_integer(line, "edit", 1);
    char key[LINE_KEY_BYTES];
    uint32_t place;

    line_key(number, key);
    if (edits->edit_count == EDITS_MAX) {
        line_wrong(line, "more than %u edits", EDITS_MAX);
        return;
    }
    if (names_find(&edits->numbers, key, &place)) {
        line_wrong(line, "edit: there is an edit %" PRId64 " already", number);
        return;
    }
    CHECK(names_put(&edits->numbers, key, &place) == ERR_OK && place == edits->edit_count);
    struct edit edit = { .outcome = OUTCOME_OPEN, .line = line->number };
    edit.document = line_name(line, &edits->documents, "of");
    edit.hand = line_name(line, &edits->hands, "hand");
    edit.called_at = line_integer(line, "at", 0);
    read_kind(line, &edit);
    *LINE_ADD(edits, edits, edit_count, edit_capacity) = edit;
}

void edits_read_edited(struct line *line)
{
    struct edits *edits = &line->history->edits;
    int64_t number = line_integer(line, "edited", 1);
    const char *state = line_text(line, "state");
    char key[LINE_KEY_BYTES];
    uint32_t place;

    line_key(number, key);
    if (!names_find(&edits->numbers, key, &place)) {
        line_wrong(line, "edited: there is no edit %" PRId64 " before it", number);
        return;
    }
    struct edit *edit = &edits->edits[place];
    if (edit->answer_line != 0) {
        line_wrong(line, "edited: edit %" PRId64 " was answered in line %u", number,
                   edit->answer_line);
        return;
    }
    edit->answer_line = line->number;
    edit->answered_at = line_integer(line, "at", edit->called_at);
    if (strcmp(state, "ok") == 0)
        edit->outcome = OUTCOME_OK;
    else if (strcmp(state, "refused") == 0)
        edit->outcome = OUTCOME_REFUSED;
    else if (strcmp(state, "unknown") != 0)
        line_wrong(line, "state: ok, refused or unknown is wanted, not \"%.40s\"", state);
}

static struct look *read_shown(struct line *line, const char *field)
{
    struct edits *edits = &line->history->edits;
    struct look look = { .hand = NAME_NONE, .line = line->number };

    look.document = line_name(line, &edits->documents, field);
    look.called_at = line_has(line, "from") ? line_integer(line, "from", 0) : 0;
    look.answered_at = line_integer(line, "at", look.called_at);
    look.shown = read_values(line, "shows");
    struct look *kept = LINE_ADD(edits, looks, look_count, look_capacity);
    *kept = look;
    return kept;
}

void edits_read_look(struct line *line)
{
    uint32_t hand = line_name(line, &line->history->edits.hands, "hand");

    read_shown(line, "look")->hand = hand;
}

void edits_read_stands(struct line *line)
{
    (void)read_shown(line, "stands");
}
