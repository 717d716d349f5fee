#include "client/cli/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define CELL_BYTES 160u

/* The value at a dotted path, as text; empty when it is not there (proto3 omits defaults). */
static void cell(const json_t *row, const char *path, char ret_text[CELL_BYTES])
{
    char step[64];
    const json_t *value = row;

    for (const char *at = path; value != NULL && at != NULL;) {
        const char *dot = strchr(at, '.');
        size_t size = dot != NULL ? (size_t)(dot - at) : strlen(at);
        snprintf(step, sizeof step, "%.*s", (int)size, at);
        value = json_object_get(value, step);
        at = dot != NULL ? dot + 1 : NULL;
    }
    if (value == NULL)
        ret_text[0] = 0;
    else if (json_is_string(value))
        snprintf(ret_text, CELL_BYTES, "%s", json_string_value(value));
    else {
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
            cell(row, columns[c].path, text);
            widths[c] = strlen(text) > widths[c] ? strlen(text) : widths[c];
        }
    }
    for (size_t c = 0; c < count; c++)
        buf_printf(out, "%-*s%s", c + 1 < count ? (int)widths[c] : 0, columns[c].title,
                   c + 1 < count ? "  " : "\n");
    json_array_foreach((json_t *)(uintptr_t)rows, n, row)
    {
        for (size_t c = 0; c < count; c++) {
            cell(row, columns[c].path, text);
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
    return strcmp(arguments->output, "json") == 0;
}

static int say_why(enum client_result result, const struct buf *body)
{
    if (result == CLIENT_UNKNOWN) {
        fprintf(stderr, "holdfast: outcome unknown; repeat with the same op_id, or use "
                        "'holdfast op resolve'\n");
        return 3;
    }
    fprintf(stderr, "holdfast: %s%.*s\n", result == CLIENT_UNREACHABLE ? "not reachable: " : "",
            (int)body->size, (const char *)body->data);
    return 1;
}

json_t *call_json(const struct arguments *arguments, const char *method, json_t *request,
                  int *ret_code)
{
    struct client_options options = { .endpoint = arguments->endpoint,
                                      .api_key = arguments->key[0] ? arguments->key : NULL };
    struct client *client;
    struct buf body = { 0 };
    json_t *answer = NULL;

    *ret_code = 2;
    if (argument_number("deadline-ms", arguments->deadline_ms, 1, 60000, &options.deadline_ms) !=
            ERR_OK ||
        client_new(&options, &client) != ERR_OK) {
        json_decref(request);
        return NULL;
    }
    char *text = json_dumps(request, JSON_COMPACT);
    CHECK(text != NULL);
    enum client_result result = client_call(client, method, text, &body);
    free(text);
    json_decref(request);
    client_free(client);
    if (result == CLIENT_OK)
        answer = json_loadb((const char *)body.data, body.size, 0, NULL);
    *ret_code = answer != NULL ? 0 : say_why(result, &body);
    buf_deinit(&body);
    return answer;
}
