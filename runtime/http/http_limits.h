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
    X(connections_max,         10000, "connections; for more, unproven ones go first")         \
    X(address_connections_max,     0, "connections of one address; 0: a quarter of connections_max, 16 at least") \
    X(handshakes_per_s,         1000, "TLS handshakes begun each second; the same at once")    \
    X(handshakes_address_per_s,  200, "TLS handshakes of one address begun each second; the same at once") \
    X(handshake_percent,          30, "of the loop's time for TLS handshakes")                 \
    X(header_bytes_max,        16384, "request line and headers of one request")               \
    X(headers_max,                64, "headers of one request")                                \
    X(body_bytes_max,        4194304, "message of one request, as sent and unpacked")          \
    X(buffered_bytes_max, 268435456, "bodies being received or with handlers, all connections together")        \
    X(keyless_bytes_max,     1048576, "bodies of callers whom no key names, all together")       \
    X(bodies_key_percent,         25, "of buffered_bytes_max that one key may hold")              \
    X(bodies_address_percent,     12, "of buffered_bytes_max that one address may hold")          \
    X(heads_bytes_max,     134217728, "heads of requests that are not answered, all together")   \
    X(heads_address_percent,      25, "of heads_bytes_max that one address may hold")             \
    X(heads_connection_bytes_max, 2097152, "heads of requests of one connection")                 \
    X(pipeline_max,               64, "HTTP/1.1 requests read ahead on one connection")        \
    X(streams_max,               256, "HTTP/2 streams on one connection")                      \
    X(stream_resets_per_s,        50, "HTTP/2 streams that may end by a reset each second (burst 20x)") \
    X(control_frames_per_s,      500, "HTTP/2 frames that bring no request and no body each second (burst 4x)") \
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

/* Why the endpoint refused a request by itself: the log's word and the metric's label, the status,
 * the field it names, and what the caller is told. Data only. */
/* clang-format off */
#define HTTP_REFUSALS(X)                                                                        \
    X(GRAMMAR,         "grammar",         400, "",       "a malformed HTTP request")             \
    X(BODY_SIZE,       "body_size",       413, "body",   "the body is too long")                 \
    X(BODIES_FULL,     "bodies_full",     503, "bodies", "too many bodies are being received")   \
    X(BODIES_KEY,      "bodies_key",      429, "bodies", "the API key has too many bodies under way") \
    X(BODIES_ADDRESS,  "bodies_address",  429, "bodies", "this address has too many bodies under way") \
    X(BODIES_KEYLESS,  "bodies_keyless",  503, "bodies", "too many bodies of callers without a key are being received") \
    X(BODY_SLOW,       "body_slow",       503, "body",   "the body came more slowly than others, which need its place") \
    X(BODY_LATE,       "body_late",       408, "body",   "the body came too slowly")             \
    X(STRANGERS,       "strangers",       503, "answers", "callers without a key have too many answers that they do not read") \
    X(HEAD_SIZE,       "head_size",       431, "header", "the headers are too long")             \
    X(HEAD_COUNT,      "head_count",      431, "headers", "too many headers")                    \
    X(HEADS_FULL,      "heads_full",      503, "headers", "too many requests are being received") \
    X(HEADS_ADDRESS,   "heads_address",   431, "headers", "this address has too many headers under way") \
    X(HEADS_CONNECTION, "heads_connection", 431, "headers", "this connection has too many headers under way") \
    X(HEAD_LATE,       "head_late",       408, "header", "the headers came too slowly")          \
    X(HEADER_TWICE,    "header_twice",    400, "header", "a header came more than once")         \
    X(HOST,            "host",            403, "host",   "this name is not one that the endpoint answers to") \
    X(VERSION,         "version",         505, "version", "send HTTP/1.1, or HTTP/2 with its preface")
/* clang-format on */
#define HTTP_REFUSAL_ENUM(enumerator, text, status, field, message) HTTP_REFUSED_##enumerator,
enum http_refused { HTTP_REFUSALS(HTTP_REFUSAL_ENUM) HTTP_REFUSED_COUNT };
#undef HTTP_REFUSAL_ENUM

/* Counted since the start; gauges are marked. */
struct http_stats {
    uint64_t connections;     /* Gauge. */
    uint64_t requests_active; /* Gauge: with the handlers. */
    uint64_t buffered_bytes;  /* Gauge: bodies being received, or with the handlers. */
    uint64_t keyless_bytes;   /* Gauge: of buffered_bytes, of callers whom no key names. */
    uint64_t head_bytes;      /* Gauge: heads being received, or with the handlers. */
    uint64_t waiting_bytes;   /* Gauge: answers waiting to be read. */
    uint64_t stranger_bytes;  /* Gauge: of waiting_bytes, of connections without a valid key yet. */
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
    uint64_t evicted;      /* Unproven or idle connections closed to make room for new ones. */
    uint64_t bytes_received;
    uint64_t bytes_sent;
    uint64_t trims; /* How often freed memory was given back to the system. */
    uint64_t refused[HTTP_REFUSED_COUNT];
};

/* "body_size" */
const char *http_refused_text(enum http_refused why);

#endif
