#include "client/cli/console/outcome.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/console/clock.h"
#include "runtime/base/check.h"
#include "runtime/base/utf8.h"

#define NAME_BYTES  64u
#define VALUE_BYTES 4096u
#define NEST_MAX    4u /* Below that a value is compact JSON. */
#define TIME_SUFFIX "AtMs"

static bool is_time(const char *name, const json_t *value)
{
    size_t size = strlen(name);
    size_t suffix = strlen(TIME_SUFFIX);

    return size > suffix && strcmp(name + size - suffix, TIME_SUFFIX) == 0 &&
           json_is_integer(value) && json_integer_value(value) > 0;
}

/* "decidedAt" of decidedAtMs, when its value is written as a time. */
static void put_name(const char *name, const json_t *value, struct buf *out)
{
    buf_append(out, name, strlen(name) - (is_time(name, value) ? strlen("Ms") : 0));
}

static void put_value(const char *name, const json_t *value, uint32_t depth, struct buf *out);

static void put_members(const json_t *value, uint32_t depth, struct buf *out)
{
    const char *name, *separator = "";
    json_t *member;
    size_t n;

    json_object_foreach((json_t *)(uintptr_t)value, name, member)
    {
        buf_printf(out, "%s", separator);
        put_name(name, member, out);
        buf_put_u8(out, ' ');
        put_value(name, member, depth, out);
        separator = ", ";
    }
    json_array_foreach((json_t *)(uintptr_t)value, n, member)
    {
        buf_printf(out, "%s", separator);
        put_value("", member, depth, out);
        separator = ", ";
    }
}

/* Recurses at most NEST_MAX deep. */
static void put_value(const char *name, const json_t *value, uint32_t depth, struct buf *out)
{
    char time[UTC_TEXT_BYTES];

    if (json_is_string(value)) {
        buf_append(out, json_string_value(value), json_string_length(value));
    } else if (is_time(name, value)) {
        buf_printf(out, "%s", utc_text((uint64_t)json_integer_value(value), time));
    } else if ((json_is_object(value) || json_is_array(value)) && depth < NEST_MAX) {
        buf_printf(out, "%s", depth > 0 ? "(" : "");
        put_members(value, depth + 1, out);
        buf_printf(out, "%s", depth > 0 ? ")" : "");
    } else {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        buf_printf(out, "%s", text != NULL ? text : "");
        free(text);
    }
}

/* The answer and the refusal: their fields have lines of their own. */
static bool is_opened(const char *name, const json_t *value)
{
    return json_is_object(value) && strcmp(name, "dot") != 0;
}

/* Told by the first line; or the attempt of a seal, which is the greatest there is and tells
 * nothing. */
static bool is_left_out(const char *name, const json_t *value)
{
    if (strcmp(name, "attempt") == 0)
        return json_integer_value(value) == UINT32_MAX;
    return strcmp(name, "state") == 0 || strcmp(name, "method") == 0 ||
           strcmp(name, "boundPlayerId") == 0;
}

/* One line; only its width is told when `out` is NULL. */
static size_t put_line(const char *name, const json_t *value, size_t width, struct buf *out)
{
    struct buf text = { 0 };
    char label[NAME_BYTES];

    put_name(name, value, &text);
    utf8_snippet(label, sizeof label, buf_slice(&text));
    if (out != NULL) {
        char *shown = mem_alloc(VALUE_BYTES);
        buf_clear(&text);
        put_value(name, value, 0, &text);
        utf8_snippet(shown, VALUE_BYTES, buf_slice(&text));
        buf_printf(out, "%-*s  %s\n", (int)width, label, shown);
        free(shown);
    }
    buf_deinit(&text);
    return strlen(label);
}

/* The widest name; with `out`, the lines too. */
static size_t put_lines(const json_t *operation, size_t width, struct buf *out)
{
    const char *name, *inner_name;
    json_t *value, *inner;
    size_t widest = 0;

    json_object_foreach((json_t *)(uintptr_t)operation, name, value)
    {
        size_t size = 0;
        if (is_left_out(name, value))
            continue;
        if (!is_opened(name, value)) {
            size = put_line(name, value, width, out);
            widest = size > widest ? size : widest;
            continue;
        }
        json_object_foreach(value, inner_name, inner)
        {
            size = put_line(inner_name, inner, width, out);
            widest = size > widest ? size : widest;
        }
    }
    return widest;
}

static void put_head(const json_t *operation, struct buf *out)
{
    const char *state = json_string_value(json_object_get(operation, "state"));
    const char *what = json_string_value(json_object_get(operation, "method"));
    char shown[256];

    if (what == NULL)
        what = json_string_value(json_object_get(operation, "boundPlayerId"));
    utf8_snippet(shown, sizeof shown, slice_from_text(state != NULL ? state : "unspecified"));
    for (char *at = shown; *at != 0; at++)
        *at = (char)toupper((unsigned char)*at);
    buf_printf(out, "%s", shown);
    if (what != NULL) {
        utf8_snippet(shown, sizeof shown, slice_from_text(what));
        buf_printf(out, " %s", shown);
    }
    buf_put_u8(out, '\n');
}

void outcome_format(const json_t *operation, struct buf *out)
{
    put_head(operation, out);
    (void)put_lines(operation, put_lines(operation, 0, NULL), out);
}
