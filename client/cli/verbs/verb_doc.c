/* doc: documents of the mergeable class. docs/documents.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/console/answer.h"
#include "client/cli/console/clock.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"
#include "client/sdk/client.h"
#include "runtime/base/check.h"

#define READS_MAX 32 /* Of one document, until all of its siblings are seen. */

static const struct command_option option_siblings = {
    .flag = "siblings",
    .meaning = "a row for each sibling, the latest first",
};
static const struct command_option option_context = {
    .flag = "context",
    .value = "CONTEXT",
    .meaning = "what you have seen, as an earlier answer about the document gave it",
};
static const struct command_option option_majority = {
    .flag = "majority",
    .meaning = "what a majority of the members has",
};
static const struct command_option option_prefix = {
    .flag = "prefix",
    .value = "TEXT",
    .meaning = "keys that begin so",
};
static const struct command_option option_durability = {
    .flag = "durability",
    .value = "D",
    .meaning = "memory, one or majority, at least the collection's",
};
static const struct command_option option_ttl_ms = {
    .flag = "ttl-ms",
    .value = "MS",
    .meaning = "how long it is shown; the default is the collection's",
};

static const struct column document_columns[] = {
    { .title = "KEY", .path = "key" },
    { .title = "WRITTEN AT", .path = "writtenAt" },
    { .title = "EXPIRES AT", .path = "expiresAt", .otherwise = "-" },
    { .title = "SIBLINGS", .path = "count", .otherwise = "-" },
    { .title = "JSON", .path = "text" },
    { .title = NULL },
};
static const struct column sibling_columns[] = {
    { .title = "WRITTEN AT", .path = "writtenAt" },
    { .title = "EXPIRES AT", .path = "expiresAt", .otherwise = "-" },
    { .title = "JSON", .path = "text" },
    { .title = NULL },
};

/* ---- what is printed ---- */

/* A document that is a string comes as its JSON text (docs/json.md). */
static json_t *text_of(json_t *json)
{
    if (json_is_string(json))
        return json_incref(json);
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);

    CHECK(text != NULL);
    json_t *told = json_string(text);
    free(text);
    return told;
}

/* With milliseconds: siblings are often less than a second apart. */
static void tell_time(json_t *row, const char *ms_field, const char *field)
{
    uint64_t ms = answer_number(row, ms_field);
    char utc[UTC_TEXT_BYTES];

    if (ms > 0)
        json_object_set_new(row, field,
                            json_sprintf("%.19s.%03uZ", utc_text(ms, utc), (unsigned)(ms % 1000)));
}

/* Each row gets its JSON as a text, its times, and how many siblings it has. */
static void tell_rows(json_t *rows)
{
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        size_t siblings = json_array_size(json_object_get(row, "siblings"));

        json_object_set_new(row, "text", text_of(json_object_get(row, "json")));
        tell_time(row, "writtenAtMs", "writtenAt");
        tell_time(row, "expiresAtMs", "expiresAt");
        siblings += answer_number(row, "siblingsUnseen");
        if (siblings > 0)
            json_object_set_new(row, "count", json_integer((json_int_t)siblings));
    }
}

static json_t *rows_of(const struct arguments *arguments, json_t *document)
{
    json_t *siblings = json_object_get(document, "siblings");

    if (document == NULL)
        return json_array();
    if (option_is_set(arguments, &option_siblings) && json_array_size(siblings) > 0)
        return json_incref(siblings);
    return json_pack("[O]", document);
}

static void print_context(const json_t *object)
{
    printf("context: %s\n", answer_text(object, "context"));
}

/* ---- reads ---- */

static json_t *request_of(const struct arguments *arguments)
{
    json_t *request =
        json_pack("{s:s, s:s}", "entity", arguments->words[0], "collection", arguments->words[1]);

    if (arguments->word_count > 2)
        json_object_set_new(request, "key", json_string(arguments->words[2]));
    return request;
}

static void put_text(json_t *request, const char *field, const struct arguments *arguments,
                     const struct command_option *option)
{
    const char *text = option_text(arguments, option);

    if (text[0] != '\0')
        json_object_set_new(request, field, json_string(text));
}

static json_t *read_one(const struct arguments *arguments, const char *context, int *ret_code)
{
    json_t *request = request_of(arguments);

    if (context[0] != '\0')
        json_object_set_new(request, "context", json_string(context));
    if (option_is_set(arguments, &option_majority))
        json_object_set_new(request, "consistency", json_string("majority"));
    return call_plain_json(arguments, "DocumentService/GetDocument", request, ret_code);
}

/* Among rows whose latest is the first. */
static void put_in_order(json_t *rows, json_t *row)
{
    uint64_t written_ms = answer_number(row, "writtenAtMs");
    size_t at = 0;

    while (at < json_array_size(rows) &&
           answer_number(json_array_get(rows, at), "writtenAtMs") > written_ms)
        at++;
    json_array_insert(rows, at, row);
}

/* The answer with the siblings for which the one before had no room, and the last one's context.
 * NULL: the last call failed. */
static json_t *read_unseen(const struct arguments *arguments, json_t *answer, int *ret_code)
{
    for (int i = 0; i < READS_MAX && answer != NULL; i++) {
        json_t *document = json_object_get(answer, "document");

        if (answer_number(document, "siblingsUnseen") == 0)
            break;
        json_t *next = read_one(arguments, answer_text(answer, "context"), ret_code);
        json_t *rows = json_object_get(json_object_get(next, "document"), "siblings"), *row;
        size_t at;

        json_array_foreach(json_object_get(document, "siblings"), at, row)
        {
            if (rows != NULL)
                put_in_order(rows, row);
        }
        json_decref(answer);
        answer = next;
    }
    return answer;
}

static int get(const struct arguments *arguments)
{
    int code;
    json_t *answer = read_one(arguments, option_text(arguments, &option_context), &code);

    if (option_is_set(arguments, &option_siblings) && !wants_json(arguments))
        answer = read_unseen(arguments, answer, &code);
    if (answer != NULL && wants_json(arguments)) {
        print_json(answer);
    } else if (answer != NULL) {
        json_t *rows = rows_of(arguments, json_object_get(answer, "document"));

        tell_rows(rows);
        print_table(NULL, rows,
                    option_is_set(arguments, &option_siblings) ? sibling_columns
                                                               : document_columns);
        print_context(answer);
        json_decref(rows);
    }
    json_decref(answer);
    return code;
}

static int list(const struct arguments *arguments)
{
    json_t *request = request_of(arguments);
    uint32_t page_size;
    int code;

    if (option_number(arguments, &option_page_size, 1, 100, &page_size) != ERR_OK) {
        json_decref(request);
        return 2;
    }
    put_text(request, "prefix", arguments, &option_prefix);
    put_text(request, "cursor", arguments, &option_cursor);
    json_object_set_new(request, "pageSize", json_integer(page_size));
    json_t *answer = call_plain_json(arguments, "DocumentService/ListDocuments", request, &code);

    if (answer != NULL && wants_json(arguments)) {
        print_json(answer);
    } else if (answer != NULL) {
        tell_rows(json_object_get(answer, "documents"));
        print_table(NULL, json_object_get(answer, "documents"), document_columns);
        if (answer_text(answer, "nextCursor")[0] != '\0')
            printf("more: --cursor %s\n", answer_text(answer, "nextCursor"));
    }
    json_decref(answer);
    return code;
}

/* ---- writes ---- */

/* Takes over `request`. */
static int change(const struct arguments *arguments, const char *method, json_t *request)
{
    int code;

    json_object_set_new(request, "opId", json_string(option_text(arguments, &option_op_id)));
    put_text(request, "context", arguments, &option_context);
    put_text(request, "durability", arguments, &option_durability);
    json_t *answer = call_plain_json(arguments, method, request, &code);

    if (answer != NULL && wants_json(arguments)) {
        print_json(answer);
    } else if (answer != NULL) {
        const json_t *written = json_object_get(answer, "written");

        printf("%s/%s/%s: on %llu disks\n", arguments->words[0], arguments->words[1],
               arguments->words[2], (unsigned long long)answer_number(written, "replicas"));
        print_context(written);
    }
    json_decref(answer);
    return code;
}

static int put(const struct arguments *arguments)
{
    json_error_t why;
    json_t *document =
        json_loads(arguments->words[3], JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);

    if (document == NULL) {
        fprintf(stderr, "holdfast: JSON: %s\n", why.text);
        return 2;
    }
    json_t *request = request_of(arguments);

    /* A document that is a string is sent as its JSON text (docs/json.md). */
    json_object_set_new(request, "json",
                        json_is_string(document) ? json_string(arguments->words[3])
                                                 : json_incref(document));
    put_text(request, "ttlMs", arguments, &option_ttl_ms);
    json_decref(document);
    return change(arguments, "DocumentService/PutDocument", request);
}

static int delete_one(const struct arguments *arguments)
{
    return change(arguments, "DocumentService/DeleteDocument", request_of(arguments));
}

const struct verb verb_doc[] = {
    {
        .words = "doc get",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "ENTITY COLLECTION KEY",
        .summary = "a document, and the context that says what you have seen",
        .details = "ENTITY is a kind, a colon and an id: player:42, guild:7.",
        .options = VERB_OPTIONS(&option_siblings, &option_context, &option_majority,
                                OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = get,
    },
    {
        .words = "doc list",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "ENTITY COLLECTION",
        .summary = "the documents that an entity has in a collection",
        .options =
            VERB_OPTIONS(&option_prefix, OPTIONS_OF_PAGES, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = list,
    },
    {
        .words = "doc put",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "ENTITY COLLECTION KEY JSON",
        .summary = "write a whole document",
        .options = VERB_OPTIONS(&option_context, &option_durability, &option_ttl_ms, &option_op_id,
                                OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = put,
    },
    {
        .words = "doc delete",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "ENTITY COLLECTION KEY",
        .summary = "delete a document",
        .options = VERB_OPTIONS(&option_context, &option_durability, &option_op_id,
                                OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = delete_one,
    },
    { .words = NULL },
};
