/*
 * metrics_http: the operations port of a process, on its libuv loop: GET (and HEAD) of
 *   /metrics  the registry in Prometheus' text format
 *   /healthz  200 while the loop runs (liveness)
 *   /readyz   200 or 503 by the callback (readiness)
 * Nothing else: no bodies, no TLS, no secrets. Heads, connections and time are bounded: a slow or
 * oversized head gets 408 or 431. Once all places are taken, the oldest connection that has not
 * sent a whole request goes, so that a scraper always gets in (turnstile.h).
 */
#ifndef RUNTIME_METRICS_HTTP_METRICS_HTTP_H
#define RUNTIME_METRICS_HTTP_METRICS_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "runtime/base/err.h"
#include "runtime/base/log.h"
#include "runtime/metrics/metrics.h"

enum {
    METRICS_HTTP_HEAD_MAX = 8192,      /* Bytes of a request's head. */
    METRICS_HTTP_CONNECTIONS_MAX = 64, /* Default; half of them may come from one address. */
    METRICS_HTTP_ADDRESS_PART = 2,
    METRICS_HTTP_HEAD_TIMEOUT_MS = 5000, /* From accept to the first request. */
    METRICS_HTTP_TIMEOUT_MS = 10000,     /* From the last answer to the next request. */
    METRICS_HTTP_IDLE_MS_MIN = 1000,     /* None that asked once is put out sooner. */
};

struct metrics_http;

struct metrics_http_options {
    uv_loop_t *loop;          /* Borrowed, as all here. */
    struct metrics *metrics;  /* NULL: only of a server that no one scrapes. */
    const char *host;         /* An IP address. */
    uint16_t port;            /* 0: any free one. */
    uint32_t connections_max; /* 0: METRICS_HTTP_CONNECTIONS_MAX. */
    const struct log *log;    /* May be NULL. */
    /* Says whether the process serves. May write a reason of at most 127 bytes. NULL: always. */
    bool (*ready)(void *context, char ret_reason[128]);
    void *context;
};

/* Listens. *ret_server is freed by stop. ERR_INVALID: host is no address.
 * ERR_CONFLICT: another process listens there. ERR_IO: cannot listen. */
NODISCARD err metrics_http_start(const struct metrics_http_options *options,
                                 struct metrics_http **ret_server);
/* What an error of metrics_http_start means. Static text. */
const char *metrics_http_why(err e);
uint16_t metrics_http_port(const struct metrics_http *server);
/* Closes all; the memory goes once the loop has run the close callbacks. */
void metrics_http_stop(struct metrics_http *server);

#endif
