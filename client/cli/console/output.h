/* output: answers for people (aligned tables) or for programs (JSON), on standard output. */
#ifndef CLIENT_CLI_CONSOLE_OUTPUT_H
#define CLIENT_CLI_CONSOLE_OUTPUT_H

#include <jansson.h>

#include "client/cli/console/arguments.h"
#include "client/sdk/client.h"

#define COLUMNS_MAX 12u

/* One column: its title, and the path of its value in a row: "replicaId", "write.version". */
struct column {
    const char *title;
    const char *path;
    const char *otherwise; /* What an absent value means: "0"; NULL: nothing. */
    const char *prefix;    /* Left out where a value begins with it; NULL: none. */
};

/* "34MiB" */
#define BYTES_TEXT_BYTES 24u
const char *bytes_text(uint64_t bytes, char ret_text[BYTES_TEXT_BYTES]);

/* Aligned, one row per element of `rows` (a JSON array; NULL: no rows). `columns` ends with a NULL
 * title. What is not printable in a value becomes '?'. Appends to `out`. */
void table_format(const json_t *rows, const struct column *columns, struct buf *out);

/* Makes the call and decodes its answer. On anything but CLIENT_OK says why on standard error
 * and returns NULL with the exit code in *ret_code. The result is the caller's to decref. */
json_t *call_json(const struct arguments *arguments, const char *method, json_t *request,
                  int *ret_code);
/* The same in plain JSON (docs/json.md), as people write it. */
json_t *call_plain_json(const struct arguments *arguments, const char *method, json_t *request,
                        int *ret_code);
/* All pages of a method whose answers have their rows under `rows`. Takes `request`. NULL as above,
 * though some pages may have been read. */
json_t *call_pages(const struct arguments *arguments, const char *method, const char *rows,
                   json_t *request, int *ret_code);
struct json_stream {
    const char *method;
    json_t *request; /* Borrowed. */
    void (*message)(void *user, const json_t *message);
    void *user;
    uint32_t silence_ms; /* Longest distance of messages. */
};
/* Reads a stream until it ends. `message` gets each, decoded and borrowed. `ret_why` is replaced by
 * a sentence that says why it ended. */
enum client_result stream_json(const struct arguments *arguments, const struct json_stream *stream,
                               struct buf *ret_why);
void print_json(const json_t *value);
void print_table(const char *title, const json_t *rows, const struct column *columns);
/* A method that answers a page at a time, for the thing that the first word names. */
struct page_method {
    const char *method;
    const char *key;  /* The request's field for that word: "playerId". */
    const char *rows; /* The answer's field with the rows: "entries". */
    uint32_t page_size_max;
    const struct column *columns;
};
/* Calls it with --page-size and --cursor and prints the page, and where the next begins; the exit
 * code. */
int page_call(const struct arguments *arguments, const struct page_method *page);
/* The same with fields of the request's own; takes over `request`. */
int page_call_of(const struct arguments *arguments, const struct page_method *page,
                 json_t *request);
/* Whether something that was printed so far could not be written; what is printed on is lost, too.
 */
bool output_is_lost(void);
/* Writes out what was printed; the exit code, or 1 and a message if it was lost. */
int output_finish(int code);
/* The exit code of an unknown outcome. */
#define EXIT_UNKNOWN 3
/* Says on standard error under which op_id the command is to be repeated. */
void op_id_say(const struct arguments *arguments);
/* True when --json or --output json was asked for. */
bool wants_json(const struct arguments *arguments);

#endif
