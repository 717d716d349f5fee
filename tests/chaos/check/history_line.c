#include "tests/chaos/check/history_line.h"

#include <inttypes.h>
#include <stdarg.h>

#include "runtime/base/check.h"

void line_wrong(struct line *line, const char *format, ...)
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

bool line_has(const struct line *line, const char *field)
{
    return json_object_get(line->object, field) != NULL;
}

int64_t line_integer(struct line *line, const char *field, int64_t min)
{
    const json_t *value = json_object_get(line->object, field);

    if (!json_is_integer(value)) {
        line_wrong(line, "%s: an integer is wanted", field);
        return min;
    }
    int64_t number = json_integer_value(value);
    if (number < min)
        line_wrong(line, "%s: at least %" PRId64 " is wanted, not %" PRId64, field, min, number);
    return number;
}

const char *line_text(struct line *line, const char *field)
{
    const char *value = json_string_value(json_object_get(line->object, field));

    if (value == NULL || value[0] == 0)
        line_wrong(line, "%s: a text is wanted", field);
    return value != NULL ? value : "";
}

uint32_t line_name(struct line *line, struct names *names, const char *field)
{
    uint32_t number = NAME_NONE;

    if (names_put(names, line_text(line, field), &number) != ERR_OK)
        line_wrong(line, "%s: longer than %u bytes, or there are more than %u of them", field,
                   NAME_BYTES_MAX, NAMES_MAX);
    return number;
}

void line_key(int64_t number, char ret_key[LINE_KEY_BYTES])
{
    (void)snprintf(ret_key, LINE_KEY_BYTES, "%" PRId64, number);
}

void *line_grown(void *list, size_t *capacity, size_t count, size_t size)
{
    if (count < *capacity)
        return list;
    *capacity = *capacity > 0 ? *capacity * 2 : 64;
    return mem_realloc(list, size * *capacity);
}
