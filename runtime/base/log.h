/*
 * log: structured events. The sink is passed in, so a test or the simulator reads what was said.
 * Pure: formatting to lines with time stamps happens in the sink (runtime/config/log_sink.h).
 * Never log secrets, tokens or whole documents.
 */
#ifndef RUNTIME_BASE_LOG_H
#define RUNTIME_BASE_LOG_H

#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* A field is a number, or text when `text` is not NULL. */
struct log_field {
    const char *key;
    const char *text;
    uint64_t number;
};

struct log {
    /* `fields` ends with a NULL key. Called on the thread that logs. */
    void (*write)(void *sink, enum log_level level, const char *event,
                  const struct log_field *fields);
    void *sink;
    enum log_level level_min;
};

void log_emit(const struct log *log, enum log_level level, const char *event,
              const struct log_field *fields);

#define LOG_N(k, n)                                                                                \
    {                                                                                              \
        .key = (k), .number = (uint64_t)(n)                                                        \
    }
#define LOG_S(k, s)                                                                                \
    {                                                                                              \
        .key = (k), .text = (s)                                                                    \
    }
/* log_event(log, LOG_INFO, "shard.promoted", LOG_N("shard", 3), LOG_S("node", id)); */
#define log_event(log, level, event, ...)                                                          \
    log_emit((log), (level), (event), (const struct log_field[]){ __VA_ARGS__, { .key = NULL } })

#endif
