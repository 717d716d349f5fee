#include "tests/chaos/check/history.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "tests/chaos/check/edits_read.h"
#include "tests/chaos/check/history_line.h"

/* ---- calls ---- */

static void read_deed(struct line *line, struct history_call *call)
{
    struct deed_done *done = &call->timed.done;
    const char *deed = line_text(line, "do");

    if (!deed_find(deed, &done->deed)) {
        line_wrong(line, "do: \"%.40s\" is nothing that is known", deed);
        return;
    }
    switch (done->deed) {
    case DEED_CLAIM:
        call->mail = line_name(line, &line->history->mails, "mail");
        done->gold = line_integer(line, "gold", 1);
        break;
    case DEED_GRANT:
    case DEED_SPEND:
    case DEED_SEND:
        done->gold = line_integer(line, "gold", 1);
        break;
    case DEED_SAVE:
        done->document = line_integer(line, "document", 1);
        done->fence = line_has(line, "fence") ? (uint64_t)line_integer(line, "fence", 1) : 0;
        break;
    case DEED_LEAVE:
        done->document = line_has(line, "document") ? line_integer(line, "document", 1) : 0;
        done->fence = (uint64_t)line_integer(line, "fence", 1);
        break;
    default:
        break;
    }
}

static void read_call(struct line *line)
{
    struct history *history = line->history;
    char key[LINE_KEY_BYTES];
    uint32_t place;
    int64_t number = line_integer(line, "call", 1);

    if (history->call_count == HISTORY_CALLS_MAX) {
        line_wrong(line, "more than %u calls", HISTORY_CALLS_MAX);
        return;
    }
    line_key(number, key);
    if (names_find(&history->numbers, key, &place)) {
        line_wrong(line, "call: there is a call %" PRId64 " already", number);
        return;
    }
    CHECK(names_put(&history->numbers, key, &place) == ERR_OK);
    CHECK(place == history->call_count);
    struct history_call *call = LINE_ADD(history, calls, call_count, call_capacity);
    *call = (struct history_call){ .number = (uint64_t)number,
                                   .mail = NAME_NONE,
                                   .line = line->number };
    call->player = line_name(line, &history->players, "player");
    call->timed.called_at = line_integer(line, "at", 0);
    read_deed(line, call);
}

/* ---- answers ---- */

static void read_told(struct line *line, struct history_call *call)
{
    struct deed_done *done = &call->timed.done;

    done->has_gold_after = line_has(line, "gold");
    done->gold_after = done->has_gold_after ? line_integer(line, "gold", 0) : 0;
    done->has_document_after = line_has(line, "document");
    done->document_after = done->has_document_after ? line_integer(line, "document", 0) : 0;
    done->has_version_after = line_has(line, "version");
    done->version_after = done->has_version_after ? (uint64_t)line_integer(line, "version", 0) : 0;
    if (done->deed == DEED_JOIN)
        done->fence = (uint64_t)line_integer(line, "fence", 1);
    if (done->deed == DEED_SEND && line_has(line, "mail"))
        call->mail = line_name(line, &line->history->mails, "mail");
    if (done->deed == DEED_READ &&
        !(done->has_gold_after && done->has_document_after && done->has_version_after))
        line_wrong(line, "a read tells gold, document and version");
}

static enum refusal_reason reason_of(const char *code)
{
    if (strcmp(code, "INSUFFICIENT_FUNDS") == 0)
        return REFUSED_FUNDS;
    return strcmp(code, "SESSION_LOST") == 0 ? REFUSED_SESSION_LOST : REFUSED_OTHERWISE;
}

static void read_answer(struct line *line)
{
    struct history *history = line->history;
    int64_t number = line_integer(line, "answer", 1);
    const char *state = line_text(line, "state");
    uint32_t place;
    char key[LINE_KEY_BYTES];

    line_key(number, key);
    if (!names_find(&history->numbers, key, &place)) {
        line_wrong(line, "answer: there is no call %" PRId64 " before it", number);
        return;
    }
    struct history_call *call = &history->calls[place];
    if (call->answer_line != 0) {
        line_wrong(line, "answer: call %" PRId64 " was answered in line %u", number,
                   call->answer_line);
        return;
    }
    call->answer_line = line->number;
    call->timed.answered_at = line_integer(line, "at", call->timed.called_at);
    if (strcmp(state, "ok") == 0) {
        call->timed.done.outcome = OUTCOME_OK;
        read_told(line, call);
    } else if (strcmp(state, "refused") == 0) {
        call->timed.done.outcome = OUTCOME_REFUSED;
        call->timed.done.reason = reason_of(line_text(line, "code"));
    } else if (strcmp(state, "unknown") != 0) {
        line_wrong(line, "state: ok, refused or unknown is wanted, not \"%.40s\"", state);
    }
}

/* ---- the rest ---- */

static void read_final(struct line *line)
{
    struct history_final *final = LINE_ADD(line->history, finals, final_count, final_capacity);

    *final = (struct history_final){
        .player = line_name(line, &line->history->players, "final"),
        .gold = line_integer(line, "gold", 0),
        .mail_gold = line_integer(line, "mail", 0),
        .line = line->number,
    };
}

static void read_replica(struct line *line)
{
    struct history_replica *replica =
        LINE_ADD(line->history, replicas, replica_count, replica_capacity);

    *replica = (struct history_replica){
        .shard = (uint32_t)line_integer(line, "shard", 0),
        .node = line_name(line, &line->history->nodes, "replica"),
        .digest = line_name(line, &line->history->digests, "digest"),
        .line = line->number,
    };
}

static void read_fault(struct line *line)
{
    uint32_t kind = line_name(line, &line->history->kinds, "fault");

    *LINE_ADD(line->history, faults, fault_count, fault_capacity) = kind;
}

static void read_head(struct line *line)
{
    const char *what = line_text(line, "history");
    int64_t version = line_integer(line, "version", 1);

    if (strcmp(what, "holdfast") != 0 || version != HISTORY_VERSION)
        line_wrong(line, "a history of holdfast, version %d, is wanted", HISTORY_VERSION);
}

static void read_object(struct line *line)
{
    static const struct {
        const char *field;
        void (*read)(struct line *line);
    } kinds[] = {
        { "call", read_call },           { "answer", read_answer },
        { "final", read_final },         { "replica", read_replica },
        { "fault", read_fault },         { "edit", edits_read_edit },
        { "edited", edits_read_edited }, { "look", edits_read_look },
        { "stands", edits_read_stands },
    };

    if (line->number == 1) {
        read_head(line);
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (line_has(line, kinds[i].field)) {
            kinds[i].read(line);
            return;
        }
    }
    line_wrong(line,
               "one of call, answer, final, replica, fault, edit, edited, look, stands is wanted");
}

static void read_line(struct line *line, const char *bytes, size_t size)
{
    json_error_t error;

    line->object = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(line->object))
        line_wrong(line, "a JSON object is wanted: %s",
                   line->object == NULL ? error.text : "not one");
    else
        read_object(line);
    json_decref(line->object);
}

err history_read(FILE *file, struct history *ret_history, struct history_error *ret_error)
{
    struct line line = { .history = ret_history, .error = ret_error };
    char *bytes = mem_alloc(HISTORY_LINE_MAX + 2);

    *ret_history = (struct history){ 0 };
    *ret_error = (struct history_error){ 0 };
    while (line.result == ERR_OK && fgets(bytes, HISTORY_LINE_MAX + 2, file) != NULL) {
        size_t size = strlen(bytes);
        line.number++;
        if (size > HISTORY_LINE_MAX)
            line_wrong(&line, "a line has more than %u bytes", HISTORY_LINE_MAX);
        else
            read_line(&line, bytes, size);
    }
    if (line.result == ERR_OK && ferror(file)) {
        line_wrong(&line, "reading failed");
        line.result = ERR_IO;
    }
    if (line.result == ERR_OK && line.number == 0)
        line_wrong(&line, "the file is empty");
    free(bytes);
    return line.result;
}

void history_deinit(struct history *history)
{
    struct names *names[] = { &history->players, &history->mails, &history->nodes,
                              &history->digests, &history->kinds, &history->numbers };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        names_deinit(names[i]);
    free(history->calls);
    free(history->finals);
    free(history->replicas);
    free(history->faults);
    edits_deinit(&history->edits);
    *history = (struct history){ 0 };
}
