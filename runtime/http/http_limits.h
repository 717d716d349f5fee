/*
 * http_limits: every limit of the public endpoint in one table, and what it counts (DESIGN
 * section 11). Data only.
 */
#ifndef RUNTIME_HTTP_HTTP_LIMITS_H
#define RUNTIME_HTTP_HTTP_LIMITS_H

#include <stdint.h>

#define HTTP_HEADERS_MAX 64u /* The most that headers_max may be. */

/* clang-format off */
/*    field                  default    meaning                                               */
#define HTTP_LIMITS(X)                                                                          \
    X(connections_max,         10000, "connections; more are closed at once")                  \
    X(header_bytes_max,        16384, "request line and headers of one request")               \
    X(headers_max,                64, "headers of one request")                                \
    X(body_bytes_max,        4194304, "message of one request, as sent and unpacked")          \
    X(buffered_bytes_max, 268435456, "bodies being received, all connections together")        \
    X(pipeline_max,               64, "HTTP/1.1 requests read ahead on one connection")        \
    X(streams_max,               256, "HTTP/2 streams on one connection")                      \
    X(stream_resets_per_s,        50, "HTTP/2 streams that may end by a reset each second (burst 20x)") \
    X(control_frames_per_s,      500, "HTTP/2 SETTINGS, PING, PRIORITY and empty DATA frames each second (burst 4x)") \
    X(requests_max,            20000, "requests with the handlers; more are THROTTLED")        \
    X(output_bytes_max,      8388608, "answers waiting on one connection before reading stops") \
    X(stream_bytes_max,       262144, "answers waiting on one stream before it is not writable") \
    X(waiting_bytes_max,   268435456, "answers waiting, all connections together; past it slow readers are closed") \
    X(header_timeout_ms,       10000, "from a request's first byte to its last header")        \
    X(body_timeout_ms,         30000, "from the last header to the body's end")                \
    X(idle_timeout_ms,         60000, "between requests")                                      \
    X(write_timeout_ms,        20000, "without progress while an answer waits to be read")     \
    X(deadline_default_ms,     10000, "deadline of a request that names none")                 \
    X(deadline_max_ms,         60000, "longest deadline a request may name; longer is cut")
/* clang-format on */

#define HTTP_LIMIT_FIELD(name, default_value, meaning) uint32_t name;
struct http_limits {
    HTTP_LIMITS(HTTP_LIMIT_FIELD)
};
#undef HTTP_LIMIT_FIELD

/* Counted since the start; gauges are marked. */
struct http_stats {
    uint64_t connections;     /* Gauge. */
    uint64_t requests_active; /* Gauge: with the handlers. */
    uint64_t buffered_bytes;  /* Gauge: bodies being received. */
    uint64_t waiting_bytes;   /* Gauge: answers waiting to be read. */
    uint64_t connections_accepted;
    uint64_t connections_refused;
    uint64_t requests;
    uint64_t requests_failed; /* Answered with an error, by handler or server. */
    uint64_t requests_cancelled;
    uint64_t requests_throttled;
    uint64_t bad_messages; /* Refused by a parser, codec or limit. */
    uint64_t timeouts;
    uint64_t floods;       /* Connections ended for too many resets or control frames. */
    uint64_t slow_readers; /* Connections closed since answers filled waiting_bytes_max. */
    uint64_t evicted;      /* Idle connections closed to make room for new ones. */
    uint64_t bytes_received;
    uint64_t bytes_sent;
};

#endif
