/*
 * log_sink: where runtime/base/log.h's events become lines on a file descriptor: JSON or text,
 * with an RFC 3339 UTC time stamp. One write(2) per line, so threads and processes may share the
 * descriptor; a line that does not fit LOG_LINE_MAX is cut and marked. A failed write is dropped:
 * logging must never stop the program.
 *
 *   {"time":"2024-05-01T12:00:00.123Z","level":"info","program":"node","event":"shard.promoted",
 *    "shard":3}
 *   2024-05-01T12:00:00.123Z INFO node shard.promoted shard=3
 */
#ifndef RUNTIME_CONFIG_LOG_SINK_H
#define RUNTIME_CONFIG_LOG_SINK_H

#include <stdint.h>

#include "runtime/base/buf.h"
#include "runtime/base/log.h"

#define LOG_LINE_MAX 4096

enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

struct log_sink {
    int fd; /* Borrowed. */
    enum log_format format;
    const char *program; /* Borrowed; a short name such as "node-1". */
};

/* A log over the sink, which must outlive it. Usable from any thread. */
struct log log_sink_open(const struct log_sink *sink, enum log_level level_min);

/* "debug", "info", "warn", "error"; "text", "json". ERR_INVALID for anything else. */
NODISCARD err log_level_parse(const char *text, enum log_level *ret_level);
NODISCARD err log_format_parse(const char *text, enum log_format *ret_format);

struct log_entry {
    enum log_level level;
    const char *event;
    const struct log_field *fields; /* Until one without a key. */
    uint64_t unix_ms;
};

/* One line with its newline, as the sink writes it. Pure; for the sink and its tests. `out` has
 * LOG_LINE_MAX bytes; returns the length. */
size_t log_line_format(const struct log_sink *sink, const struct log_entry *entry, char *out);

#endif
