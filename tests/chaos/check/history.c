#include "tests/chaos/check/history.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

/* One line while it is read. The first thing that is wrong is kept. */
struct line {
    struct history *history;
    json_t *object;
    uint32_t number;
    struct history_error *error;
    err result;
};

__attribute__((format(printf, 2, 3))) static void wrong(struct line *line, const char *format, ...)
{
    va_list arguments;

    if (line->result != ERR_OK)
        return;
    line->result = ERR_INVALID;
    line->error->line = line->number;
    va_start(arguments, format);
    (void)vsnprintf(line->error->message, sizeof line->error->message, format, arguments);
    va_end(arguments);
}

/* ---- fields ---- */

static bool has(const struct line *line, const char *field)
{
    return json_object_get(line->object, field) != NULL;
}

static int64_t integer(struct line *line, const char *field, int64_t min)
{
    const json_t *value = json_object_get(line->object, field);

    if (!json_is_integer(value)) {
        wrong(line, "%s: an integer is wanted", field);
        return min;
    }
    int64_t number = json_integer_value(value);
    if (number < min)
        wrong(line, "%s: at least %" PRId64 " is wanted, not %" PRId64, field, min, number);
    return number;
}

static const char *text(struct line *line, const char *field)
{
    const char *value = json_string_value(json_object_get(line->object, field));

    if (value == NULL || value[0] == 0)
        wrong(line, "%s: a text is wanted", field);
    return value != NULL ? value : "";
}

static uint32_t name(struct line *line, struct names *names, const char *field)
{
    uint32_t number = NAME_NONE;

    if (names_put(names, text(line, field), &number) != ERR_OK)
        wrong(line, "%s: longer than %u bytes, or there are more than %u of them", field,
              NAME_BYTES_MAX, NAMES_MAX);
    return number;
}

static void *grown(void *list, size_t *capacity, size_t count, size_t size)
{
    if (count < *capacity)
        return list;
    *capacity = *capacity > 0 ? *capacity * 2 : 64;
    return mem_realloc(list, size * *capacity);
}

#define ADD(history, list, list_count, list_capacity)                                              \
    ((history)->list = grown((history)->list, &(history)->list_capacity, (history)->list_count,    \
                             sizeof *(history)->list),                                             \
     &(history)->list[(history)->list_count++])

/* ---- calls ---- */

static void read_deed(struct line *line, struct history_call *call)
{
    struct deed_done *done = &call->timed.done;
    const char *deed = text(line, "do");

    if (!deed_find(deed, &done->deed)) {
        wrong(line, "do: \"%.40s\" is nothing that is known", deed);
        return;
    }
    switch (done->deed) {
    case DEED_CLAIM:
        call->mail = name(line, &line->history->mails, "mail");
        done->gold = integer(line, "gold", 1);
        break;
    case DEED_GRANT:
    case DEED_SPEND:
    case DEED_SEND:
        done->gold = integer(line, "gold", 1);
        break;
    case DEED_SAVE:
        done->document = integer(line, "document", 1);
        done->fence = has(line, "fence") ? (uint64_t)integer(line, "fence", 1) : 0;
        break;
    case DEED_LEAVE:
        done->document = has(line, "document") ? integer(line, "document", 1) : 0;
        done->fence = (uint64_t)integer(line, "fence", 1);
        break;
    default:
        break;
    }
}

static void read_call(struct line *line)
{
    struct history *history = line->history;
    char key[24];
    uint32_t place;
    int64_t number = integer(line, "call", 1);

    if (history->call_count == HISTORY_CALLS_MAX) {
        wrong(line, "more than %u calls", HISTORY_CALLS_MAX);
        return;
    }
    (void)snprintf(key, sizeof key, "%" PRId64, number);
    if (names_find(&history->numbers, key, &place)) {
        wrong(line, "call: there is a call %" PRId64 " already", number);
        return;
    }
    CHECK(names_put(&history->numbers, key, &place) == ERR_OK);
    CHECK(place == history->call_count);
    struct history_call *call = ADD(history, calls, call_count, call_capacity);
    *call = (struct history_call){ .number = (uint64_t)number,
                                   .mail = NAME_NONE,
                                   .line = line->number };
    call->player = name(line, &history->players, "player");
    call->timed.called_at = integer(line, "at", 0);
    read_deed(line, call);
}

/* ---- answers ---- */

static void read_told(struct line *line, struct history_call *call)
{
    struct deed_done *done = &call->timed.done;

    done->has_gold_after = has(line, "gold");
    done->gold_after = done->has_gold_after ? integer(line, "gold", 0) : 0;
    done->has_document_after = has(line, "document");
    done->document_after = done->has_document_after ? integer(line, "document", 0) : 0;
    done->has_version_after = has(line, "version");
    done->version_after = done->has_version_after ? (uint64_t)integer(line, "version", 0) : 0;
    if (done->deed == DEED_JOIN)
        done->fence = (uint64_t)integer(line, "fence", 1);
    if (done->deed == DEED_SEND && has(line, "mail"))
        call->mail = name(line, &line->history->mails, "mail");
    if (done->deed == DEED_READ &&
        !(done->has_gold_after && done->has_document_after && done->has_version_after))
        wrong(line, "a read tells gold, document and version");
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
    int64_t number = integer(line, "answer", 1);
    const char *state = text(line, "state");
    uint32_t place;
    char key[24];

    (void)snprintf(key, sizeof key, "%" PRId64, number);
    if (!names_find(&history->numbers, key, &place)) {
        wrong(line, "answer: there is no call %" PRId64 " before it", number);
        return;
    }
    struct history_call *call = &history->calls[place];
    if (call->answer_line != 0) {
        wrong(line, "answer: call %" PRId64 " was answered in line %u", number, call->answer_line);
        return;
    }
    call->answer_line = line->number;
    call->timed.answered_at = integer(line, "at", call->timed.called_at);
    if (strcmp(state, "ok") == 0) {
        call->timed.done.outcome = OUTCOME_OK;
        read_told(line, call);
    } else if (strcmp(state, "refused") == 0) {
        call->timed.done.outcome = OUTCOME_REFUSED;
        call->timed.done.reason = reason_of(text(line, "code"));
    } else if (strcmp(state, "unknown") != 0) {
        wrong(line, "state: ok, refused or unknown is wanted, not \"%.40s\"", state);
    }
}

/* ---- the rest ---- */

static void read_final(struct line *line)
{
    struct history_final *final = ADD(line->history, finals, final_count, final_capacity);

    *final = (struct history_final){
        .player = name(line, &line->history->players, "final"),
        .gold = integer(line, "gold", 0),
        .mail_gold = integer(line, "mail", 0),
        .line = line->number,
    };
}

static void read_replica(struct line *line)
{
    struct history_replica *replica = ADD(line->history, replicas, replica_count, replica_capacity);

    *replica = (struct history_replica){
        .shard = (uint32_t)integer(line, "shard", 0),
        .node = name(line, &line->history->nodes, "replica"),
        .digest = name(line, &line->history->digests, "digest"),
        .line = line->number,
    };
}

static void read_fault(struct line *line)
{
    uint32_t kind = name(line, &line->history->kinds, "fault");

    *ADD(line->history, faults, fault_count, fault_capacity) = kind;
}

static void read_head(struct line *line)
{
    const char *what = text(line, "history");
    int64_t version = integer(line, "version", 1);

    if (strcmp(what, "holdfast") != 0 || version != HISTORY_VERSION)
        wrong(line, "a history of holdfast, version %d, is wanted", HISTORY_VERSION);
}

static void read_object(struct line *line)
{
    static const struct {
        const char *field;
        void (*read)(struct line *line);
    } kinds[] = {
        { "call", read_call },       { "answer", read_answer }, { "final", read_final },
        { "replica", read_replica }, { "fault", read_fault },
    };

    if (line->number == 1) {
        read_head(line);
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (has(line, kinds[i].field)) {
            kinds[i].read(line);
            return;
        }
    }
    wrong(line, "one of call, answer, final, replica, fault is wanted");
}

static void read_line(struct line *line, const char *bytes, size_t size)
{
    json_error_t error;

    line->object = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(line->object))
        wrong(line, "a JSON object is wanted: %s", line->object == NULL ? error.text : "not one");
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
            wrong(&line, "a line has more than %u bytes", HISTORY_LINE_MAX);
        else
            read_line(&line, bytes, size);
    }
    if (line.result == ERR_OK && ferror(file)) {
        wrong(&line, "reading failed");
        line.result = ERR_IO;
    }
    if (line.result == ERR_OK && line.number == 0)
        wrong(&line, "the file is empty");
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
    *history = (struct history){ 0 };
}
