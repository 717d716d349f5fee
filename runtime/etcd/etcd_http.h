/*
 * etcd_http: POST and GET requests over libcurl's multi interface, driven by a libuv loop. Knows
 * nothing of etcd; the router reads players' keys by it, too. A request is never sent twice by curl
 * itself, unless it says it is repeatable: see request_seek.
 */
#ifndef RUNTIME_ETCD_ETCD_HTTP_H
#define RUNTIME_ETCD_ETCD_HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <curl/curl.h>
#include <uv.h>

#include "runtime/base/buf.h"
#include "runtime/base/err.h"

struct etcd_http;

struct etcd_http_tls {
    const char *ca_file; /* Borrowed for etcd_http_new. NULL where not wanted. */
    const char *cert_file;
    const char *key_file;
};

struct etcd_http_outcome {
    CURLcode code;
    long status; /* 0: no answer. */
    bool sent;   /* A byte of the request may have left. */
    bool too_large;
    const char *text; /* curl's words, for logs. */
};

/* One request, embedded in its owner's struct; zeroed before use. */
struct etcd_http_request {
    /* Set by the owner. */
    bool get;            /* GET, without a body; else POST. */
    bool repeatable;     /* Without effect, so curl may send it again on a fresh connection. */
    uint64_t timeout_ms; /* 0: none, for streams. */
    size_t answer_max;
    /* Whether a connection may be opened to that address; NULL: to any. */
    bool (*may_connect)(const struct sockaddr *address);
    /* More of the answer lies in `answer`; the owner may consume it. NULL: only `done`. */
    void (*data)(struct etcd_http_request *request);
    /* Over. The request may be freed or sent again from within. */
    void (*done)(struct etcd_http_request *request, const struct etcd_http_outcome *outcome);
    /* Owned by etcd_http while it is sent. */
    struct etcd_http *http; /* NULL: not on its way. */
    CURL *easy;
    struct buf body;
    size_t body_read;
    struct buf answer;
    bool too_large;
    bool has_data; /* In the list of those whose `data` is due. */
    struct etcd_http_request *next_with_data;
    struct etcd_http_request *next, *previous;
    char error[CURL_ERROR_SIZE];
};

NODISCARD err etcd_http_new(uv_loop_t *loop, const struct etcd_http_tls *tls,
                            struct etcd_http **ret_http);
/* Cancels every request. The memory goes with the close callbacks. */
void etcd_http_free(struct etcd_http *http);

/* Sends request->body (filled by the owner) to `url`. `data` and `done` come later, from the
 * loop. ERR_NO_MEMORY: curl could not; nothing will come. */
NODISCARD err etcd_http_send(struct etcd_http *http, struct etcd_http_request *request,
                             const char *url);
/* It has waited long enough: `done` is called now, with CURLE_OPERATION_TIMEDOUT. It is on its way.
 */
void etcd_http_expire(struct etcd_http_request *request);
/* No more callbacks. Safe when it is not on its way. */
void etcd_http_cancel(struct etcd_http_request *request);
/* Cancels and frees the buffers. */
void etcd_http_request_deinit(struct etcd_http_request *request);

#endif
