#include "client/cli/console/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/console/answer.h"
#include "client/cli/console/connection.h"
#include "client/cli/console/options.h"
#include "runtime/base/check.h"
#include "runtime/base/utf8.h"

#define CELL_BYTES 160u
#define PAGES_MAX  4096 /* Of a list that is read whole. */

const char *bytes_text(uint64_t bytes, char ret_text[BYTES_TEXT_BYTES])
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    snprintf(ret_text, BYTES_TEXT_BYTES, value < 9.95 && unit > 0 ? "%.1f%s" : "%.0f%s", value,
             units[unit]);
    return ret_text;
}

/* A list of changes of balances, of items or of names, as people write it: "gold +500, gems -3". */
static bool list_text(const json_t *value, char ret_text[CELL_BYTES])
{
    size_t n, size = 0;
    json_t *one;

    ret_text[0] = 0;
    json_array_foreach((json_t *)(uintptr_t)value, n, one)
    {
        const char *amount = json_string_value(json_object_get(one, "amount"));
        const char *name = json_string_value(json_object_get(one, "currency"));
        if (name == NULL)
            name = json_string_value(json_object_get(one, "kind"));
        if (name == NULL)
            name = json_string_value(one);
        if (name == NULL || size >= CELL_BYTES)
            return name != NULL;
        int more =
            snprintf(ret_text + size, CELL_BYTES - size, "%s%s%s%s%s", size > 0 ? ", " : "", name,
                     amount != NULL ? " " : "", amount != NULL && amount[0] != '-' ? "+" : "",
                     amount != NULL ? amount : "");
        size += more > 0 ? (size_t)more : 0;
    }
    return n > 0;
}

/* The value at a dotted path, as text; the column's default when it is not there (proto3 omits
 * defaults). Names of enums lose what all of them begin with. */
static void cell(const json_t *row, const struct column *column, char ret_text[CELL_BYTES])
{
    const char *path = column->path;
    char step[64];
    const json_t *value = row;

    for (const char *at = path; value != NULL && at != NULL;) {
        const char *dot = strchr(at, '.');
        size_t size = dot != NULL ? (size_t)(dot - at) : strlen(at);
        snprintf(step, sizeof step, "%.*s", (int)size, at);
        value = json_object_get(value, step);
        at = dot != NULL ? dot + 1 : NULL;
    }
    if (value == NULL) {
        snprintf(ret_text, CELL_BYTES, "%s", column->otherwise != NULL ? column->otherwise : "");
    } else if (json_is_string(value)) {
        const char *text = json_string_value(value);
        size_t prefix = column->prefix != NULL ? strlen(column->prefix) : 0;
        bool has = prefix > 0 && strncmp(text, column->prefix, prefix) == 0;
        utf8_snippet(ret_text, CELL_BYTES, slice_from_text(has ? text + prefix : text));
    } else if (!list_text(value, ret_text)) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        snprintf(ret_text, CELL_BYTES, "%s", text != NULL ? text : "");
        free(text);
    }
}

static size_t columns_count(const struct column *columns)
{
    size_t count = 0;

    while (columns[count].title != NULL)
        count++;
    CHECK(count <= COLUMNS_MAX);
    return count;
}

void table_format(const json_t *rows, const struct column *columns, struct buf *out)
{
    size_t widths[COLUMNS_MAX];
    size_t count = columns_count(columns), n;
    char text[CELL_BYTES];
    json_t *row;

    for (size_t c = 0; c < count; c++) {
        widths[c] = strlen(columns[c].title);
        json_array_foreach((json_t *)(uintptr_t)rows, n, row)
        {
            cell(row, &columns[c], text);
            widths[c] = strlen(text) > widths[c] ? strlen(text) : widths[c];
        }
    }
    for (size_t c = 0; c < count; c++)
        buf_printf(out, "%-*s%s", c + 1 < count ? (int)widths[c] : 0, columns[c].title,
                   c + 1 < count ? "  " : "\n");
    json_array_foreach((json_t *)(uintptr_t)rows, n, row)
    {
        for (size_t c = 0; c < count; c++) {
            cell(row, &columns[c], text);
            buf_printf(out, "%-*s%s", c + 1 < count ? (int)widths[c] : 0, text,
                       c + 1 < count ? "  " : "\n");
        }
    }
}

void print_table(const char *title, const json_t *rows, const struct column *columns)
{
    struct buf out = { 0 };

    if (title != NULL)
        buf_printf(&out, "%s\n", title);
    table_format(rows, columns, &out);
    fwrite(out.data, 1, out.size, stdout);
    buf_deinit(&out);
}

void print_json(const json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    putchar('\n');
}

bool wants_json(const struct arguments *arguments)
{
    return strcmp(option_text(arguments, &option_output), "json") == 0;
}

bool output_is_lost(void)
{
    return fflush(stdout) != 0 || ferror(stdout) != 0;
}

int output_finish(int code)
{
    errno = 0;
    if (!output_is_lost())
        return code;
    fprintf(stderr, "holdfast: standard output could not be written%s%s\n", errno != 0 ? ": " : "",
            errno != 0 ? strerror(errno) : "");
    return code != 0 ? code : 1;
}

void op_id_say(const struct arguments *arguments)
{
    fprintf(stderr, "repeat it with --op-id %s\n", option_text(arguments, &option_op_id));
}

/* A shard seals what is about a player: for others the same request finds out. */
static int say_why(const struct arguments *arguments, enum client_result result,
                   const json_t *request, const struct buf *body)
{
    const char *op_id = answer_text(request, "opId");
    bool seals = answer_text(request, "playerId")[0] != 0;
    struct buf text = { 0 };

    if (result == CLIENT_UNKNOWN && op_id[0] == '\0') {
        fprintf(stderr, "holdfast: outcome unknown; look before you repeat it\n");
        return EXIT_UNKNOWN;
    }
    if (result == CLIENT_UNKNOWN) {
        fprintf(stderr, "holdfast: outcome of operation %s unknown; repeat with the same op_id%s\n",
                op_id, seals ? ", or use 'holdfast op resolve'" : "");
        return EXIT_UNKNOWN;
    }
    if (wants_json(arguments) || !error_format(buf_slice(body), &text))
        buf_append(&text, body->data, body->size);
    fprintf(stderr, "holdfast: %s%.*s\n", result == CLIENT_UNREACHABLE ? "not reachable: " : "",
            (int)text.size, (const char *)text.data);
    buf_deinit(&text);
    return 1;
}

static json_t *call_in_form(const struct arguments *arguments, enum connection_form form,
                            const char *method, json_t *request, int *ret_code)
{
    struct client *client;
    struct buf body = { 0 };
    json_t *answer = NULL;

    *ret_code = 2;
    if (connection_new(arguments, option_text(arguments, &option_endpoint), form, &client) !=
        ERR_OK) {
        json_decref(request);
        return NULL;
    }
    char *text = json_dumps(request, JSON_COMPACT);
    CHECK(text != NULL);
    enum client_result result = client_call(client, method, text, &body);
    free(text);
    client_free(client);
    if (result == CLIENT_OK)
        answer = json_loadb((const char *)body.data, body.size, 0, NULL);
    *ret_code = answer != NULL ? 0 : say_why(arguments, result, request, &body);
    json_decref(request);
    buf_deinit(&body);
    return answer;
}

json_t *call_json(const struct arguments *arguments, const char *method, json_t *request,
                  int *ret_code)
{
    return call_in_form(arguments, CONNECTION_CANONICAL, method, request, ret_code);
}

json_t *call_plain_json(const struct arguments *arguments, const char *method, json_t *request,
                        int *ret_code)
{
    return call_in_form(arguments, CONNECTION_PLAIN, method, request, ret_code);
}

json_t *call_pages(const struct arguments *arguments, const char *method, const char *rows,
                   json_t *request, int *ret_code)
{
    json_t *all = json_array();
    bool more = true;

    for (int i = 0; i < PAGES_MAX && more; i++) {
        json_t *page = call_json(arguments, method, json_incref(request), ret_code);
        if (page == NULL) {
            json_decref(all);
            all = NULL;
            break;
        }
        json_array_extend(all, json_object_get(page, rows));
        json_object_set_new(request, "cursor", json_string(answer_text(page, "nextCursor")));
        more = answer_text(page, "nextCursor")[0] != 0;
        json_decref(page);
    }
    json_decref(request);
    return all;
}

static bool on_message(void *user, struct slice json)
{
    const struct json_stream *stream = user;
    json_t *message = json_loadb((const char *)json.data, json.size, 0, NULL);

    if (message != NULL)
        stream->message(stream->user, message);
    json_decref(message);
    return !output_is_lost();
}

enum client_result stream_json(const struct arguments *arguments, const struct json_stream *stream,
                               struct buf *ret_why)
{
    char *text = json_dumps(stream->request, JSON_COMPACT);
    const struct client_stream wanted = { .method = stream->method,
                                          .json = text,
                                          .message = on_message,
                                          .user = (void *)(uintptr_t)stream,
                                          .silence_ms = stream->silence_ms };
    struct client *client;
    struct buf body = { 0 };

    CHECK(text != NULL);
    buf_clear(ret_why);
    if (connection_new(arguments, option_text(arguments, &option_endpoint), CONNECTION_CANONICAL,
                       &client) != ERR_OK) {
        free(text);
        buf_printf(ret_why, "nothing was asked");
        return CLIENT_REFUSED;
    }
    enum client_result result = client_stream(client, &wanted, &body);
    if ((result != CLIENT_REFUSED && result != CLIENT_LATER) ||
        !error_format(buf_slice(&body), ret_why))
        buf_append(ret_why, body.data, body.size);
    buf_deinit(&body);
    client_free(client);
    free(text);
    return result;
}

int page_call(const struct arguments *arguments, const struct page_method *page)
{
    return page_call_of(arguments, page, json_pack("{s:s}", page->key, arguments->words[0]));
}

int page_call_of(const struct arguments *arguments, const struct page_method *page, json_t *request)
{
    uint32_t page_size;
    int code;

    if (option_number(arguments, &option_page_size, 1, page->page_size_max, &page_size) != ERR_OK) {
        json_decref(request);
        return 2;
    }
    json_object_set_new(request, "pageSize", json_integer((json_int_t)page_size));
    json_object_set_new(request, "cursor", json_string(option_text(arguments, &option_cursor)));
    json_t *answer = call_json(arguments, page->method, request, &code);
    if (answer != NULL && wants_json(arguments)) {
        print_json(answer);
    } else if (answer != NULL) {
        const char *next = json_string_value(json_object_get(answer, "nextCursor"));
        print_table(NULL, json_object_get(answer, page->rows), page->columns);
        if (next != NULL)
            printf("more: --cursor %s\n", next);
    }
    json_decref(answer);
    return code;
}
