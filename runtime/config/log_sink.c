#include "runtime/config/log_sink.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/check.h"

/* What the longest end of a line needs: the mark of a cut, a quote, a brace, a newline. */
enum { TAIL_SIZE = 32 };

struct line {
    char *text;
    size_t size;
    bool cut; /* Something did not fit: everything after it is left out. */
};

/* Whole or not at all. */
static void add(struct line *line, const char *bytes, size_t size)
{
    if (line->cut || size > LOG_LINE_MAX - TAIL_SIZE - line->size) {
        line->cut = true;
        return;
    }
    memcpy(line->text + line->size, bytes, size);
    line->size += size;
}

static void add_text(struct line *line, const char *text)
{
    add(line, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) static void add_format(struct line *line, const char *format,
                                                             ...)
{
    char text[128];
    va_list args;

    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    CHECK(length >= 0 && (size_t)length < sizeof text);
    add(line, text, (size_t)length);
}

/* How many bytes of valid UTF-8 begin here; 0 when none. */
static size_t utf8_length(const unsigned char *at)
{
    size_t length = at[0] < 0x80 ? 1 : at[0] >= 0xc2 && at[0] < 0xe0 ? 2 : 0;

    if (at[0] >= 0xe0 && at[0] < 0xf0)
        length = 3;
    if (at[0] >= 0xf0 && at[0] < 0xf5)
        length = 4;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
        (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
        return 0;
    return length;
}

/* Inside of double quotes: control characters, quotes and bytes that are no UTF-8 are escaped, so
 * that no value can forge a line or break the JSON. */
static void add_escaped(struct line *line, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    while (*at != '\0' && !line->cut) {
        size_t length = utf8_length(at);
        if (*at == '"' || *at == '\\')
            add_format(line, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f || length == 0)
            add_format(line, "\\u%04x", *at);
        else
            add(line, (const char *)at, length);
        at += length > 0 ? length : 1;
    }
}

static void add_quoted(struct line *line, const char *text)
{
    size_t before = line->size;

    add_text(line, "\"");
    if (line->cut)
        return;
    add_escaped(line, text);
    add_text(line, "\"");
    if (!line->cut)
        return;
    /* Cut within the value: close it all the same; TAIL_SIZE has room. */
    CHECK(line->size > before);
    line->text[line->size++] = '"';
}

static void add_time(struct line *line, uint64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm utc;

    CHECK(gmtime_r(&seconds, &utc) != NULL);
    add_format(line, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", utc.tm_year + 1900, utc.tm_mon + 1,
               utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, (unsigned)(unix_ms % 1000));
}

static const char *const level_words[] = { "debug", "info", "warn", "error" };

static void format_json(struct line *line, const struct log_sink *sink,
                        const struct log_entry *entry)
{
    const struct log_field *fields = entry->fields;

    add_text(line, "{\"time\":\"");
    add_time(line, entry->unix_ms);
    add_format(line, "\",\"level\":\"%s\",\"program\":", level_words[entry->level]);
    add_quoted(line, sink->program);
    add_text(line, ",\"event\":");
    add_quoted(line, entry->event);
    for (; fields->key != NULL && !line->cut; fields++) {
        size_t before = line->size;
        add_text(line, ",");
        add_quoted(line, fields->key);
        add_text(line, ":");
        if (line->cut) {
            line->size = before; /* A key without its value is no JSON. */
            break;
        }
        if (fields->text == NULL)
            add_format(line, "%" PRIu64, fields->number);
        else
            add_quoted(line, fields->text);
        if (line->cut && line->text[line->size - 1] == ':')
            line->size = before;
    }
    const char *end = line->cut ? ",\"cut\":true}\n" : "}\n";
    memcpy(line->text + line->size, end, strlen(end));
    line->size += strlen(end);
}

/* Bare when that is unambiguous. */
static void add_value(struct line *line, const char *text)
{
    bool bare = text[0] != '\0';

    for (const char *c = text; *c != '\0'; c++)
        bare = bare && *c > ' ' && *c != 0x7f && *c != '"' && *c != '=' && *c != '\\';
    if (bare)
        add_text(line, text);
    else
        add_quoted(line, text);
}

static void format_text(struct line *line, const struct log_sink *sink,
                        const struct log_entry *entry)
{
    const struct log_field *fields = entry->fields;

    static const char *const words[] = { "DEBUG", "INFO", "WARN", "ERROR" };

    add_time(line, entry->unix_ms);
    add_format(line, " %-5s ", words[entry->level]);
    add_value(line, sink->program);
    add_text(line, " ");
    add_value(line, entry->event);
    for (; fields->key != NULL && !line->cut; fields++) {
        add_text(line, " ");
        add_value(line, fields->key);
        add_text(line, "=");
        if (fields->text == NULL)
            add_format(line, "%" PRIu64, fields->number);
        else
            add_value(line, fields->text);
    }
    const char *end = line->cut ? " cut=true\n" : "\n";
    memcpy(line->text + line->size, end, strlen(end));
    line->size += strlen(end);
}

size_t log_line_format(const struct log_sink *sink, const struct log_entry *entry, char *out)
{
    struct line line = { .text = out };

    if (sink->format == LOG_FORMAT_JSON)
        format_json(&line, sink, entry);
    else
        format_text(&line, sink, entry);
    CHECK(line.size <= LOG_LINE_MAX);
    return line.size;
}

static void sink_write(void *context, enum log_level level, const char *event,
                       const struct log_field *fields)
{
    const struct log_sink *sink = context;
    char text[LOG_LINE_MAX];
    struct timespec now;

    CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
    const struct log_entry entry = {
        level, event, fields, (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000
    };
    size_t size = log_line_format(sink, &entry, text);
    ssize_t written = write(sink->fd, text, size);
    (void)written; /* There is nowhere left to say so. */
}

struct log log_sink_open(const struct log_sink *sink, enum log_level level_min)
{
    return (
        struct log){ .write = sink_write, .sink = (void *)(uintptr_t)sink, .level_min = level_min };
}

err log_level_parse(const char *text, enum log_level *ret_level)
{
    for (size_t i = 0; i < ARRAY_SIZE(level_words); i++) {
        if (strcmp(text, level_words[i]) == 0) {
            *ret_level = (enum log_level)i;
            return ERR_OK;
        }
    }
    return ERR_INVALID;
}

err log_format_parse(const char *text, enum log_format *ret_format)
{
    if (strcmp(text, "text") != 0 && strcmp(text, "json") != 0)
        return ERR_INVALID;
    *ret_format = text[0] == 't' ? LOG_FORMAT_TEXT : LOG_FORMAT_JSON;
    return ERR_OK;
}
