/*
 * http_exchange: one HTTP request and its answer, whatever the version. h1 and h2 fill it and call
 * the server's handlers; the handlers answer through http_answer.h. For runtime/http and
 * runtime/rpc.
 *
 * Life: received -> handed to on_request or on_refused -> answered by http_answer, or by
 * http_answer_begin .. http_answer_end. The handler may use the exchange until that last call, and
 * must make it also after on_cancel.
 */
#ifndef RUNTIME_HTTP_HTTP_EXCHANGE_H
#define RUNTIME_HTTP_HTTP_EXCHANGE_H

#include <stdbool.h>

#include "runtime/base/buf.h"
#include "runtime/http/http_limits.h"

struct http_conn;
struct http_server;
struct http_share;

#define HTTP_HEADERS_SAVED                                                                         \
    2u /* Of a head that could not be taken: what its answer needs to know. */

struct http_field {
    struct slice name; /* Lower case. */
    struct slice value;
};

struct http_exchange {
    struct http_server *server;
    struct http_conn *conn;     /* NULL: the client is gone.                            */
    struct http_exchange *next; /* In the connection's list, oldest first; or free.     */
    struct http_exchange *previous;

    struct slice method;
    struct slice host; /* HTTP/2: of :authority. */
    struct slice path; /* Without the query. */
    struct slice query;
    size_t header_count;
    size_t head_bytes;      /* HTTP/2: as SETTINGS_MAX_HEADER_LIST_SIZE counts.              */
    size_t discarded_bytes; /* HTTP/2: of a refused body. */
    size_t out_at;          /* HTTP/2: how much of `out` has been sent.                      */
    uint64_t since_ms;      /* When the current phase of receiving began.                    */
    int32_t stream_id;      /* HTTP/2; 0: this is HTTP/1.1.                                  */

    uint32_t body_max;          /* How long the body may be; set before on_head. */
    uint32_t body_max_told;     /* The same without envelopes, for errors. */
    size_t body_charged;        /* Of budgets: the body's memory, and what was decoded of it. */
    size_t head_charged;        /* Of budgets: the head's, and the exchange's own. */
    size_t head_extra;          /* Memory that the handlers keep while the body comes. */
    struct http_share *address; /* Its address's share. */
    struct http_share *key;     /* The share of the key that was shown; NULL: none. */
    struct http_exchange *body_next; /* In the server's list of bodies being received. */
    struct http_exchange *body_previous;

    bool receiving_body; /* In that list. */
    bool keyless;        /* Nothing but its address says whose the body is. */
    bool head_done;
    bool greeted;   /* on_head let it pass, and the handlers may keep something for it. */
    bool received;  /* Whole, body included.                                            */
    bool handed;    /* The handlers know of it and owe an answer.                       */
    bool begun;     /* The answer's head was given.                                     */
    bool ended;     /* The answer is complete: the handlers forgot it.                  */
    bool chunked;   /* HTTP/1.1 answer of unknown length.                               */
    bool close;     /* HTTP/1.1: the connection ends with this answer.                  */
    bool old;       /* HTTP/1.0: no chunks.                                             */
    bool blocked;   /* A stream that waits for on_writable.                             */
    bool only_head; /* HEAD: the answer has no body.                                    */
    bool late;      /* HTTP/2: refused since its body did not come; its stream must end. */
    void *user;     /* The handlers' own.                                               */

    /* Below: kept when the exchange is used again. */
    struct buf head; /* What the slices point into. */
    struct buf body;
    struct buf out;      /* Answer bytes not yet with the connection. */
    struct buf given;    /* HTTP/1.1: a large body behind those.      */
    struct buf trailers; /* HTTP/2: name NUL value NUL ...            */
    struct http_field headers[HTTP_HEADERS_MAX + HTTP_HEADERS_SAVED];
};

struct http_answer {
    unsigned status;
    const struct http_field *headers;
    size_t header_count;
    struct slice body;                 /* http_answer only.                     */
    struct buf *given;                 /* NULL, or the buffer that `body` is all of: a large one
                                          is taken over, and left empty, instead of copied. */
    const struct http_field *trailers; /* http_answer only; HTTP/2 only.        */
    size_t trailer_count;
};

/* Why a message was refused before it was whole. */
struct http_refusal {
    unsigned status;
    const char *message;
    const char *field; /* "body", "header"... */
    uint64_t limit;    /* 0: none. */
    enum http_refused why;
};

struct http_handlers {
    /* A whole head, before any of its body. False: it was answered, and its body is thrown away.
     * True: on_request, on_refused or on_forgotten follows. It may lower exchange->body_max, and
     * say whose the body is by http_body_owner. */
    bool (*on_head)(void *user, struct http_exchange *exchange);
    /* A request that on_head let pass ended before it was whole. */
    void (*on_forgotten)(void *user, struct http_exchange *exchange);
    /* A whole request. */
    void (*on_request)(void *user, struct http_exchange *exchange);
    /* A request that broke a limit or the grammar; its head may be empty. Answer it; over HTTP/1.1
     * the connection closes then. */
    void (*on_refused)(void *user, struct http_exchange *exchange,
                       const struct http_refusal *refusal);
    void (*on_cancel)(void *user, struct http_exchange *exchange);
    void (*on_writable)(void *user, struct http_exchange *exchange);
    void *user;
};

/* A header's value; empty when it is not there. */
struct slice http_header_find(const struct http_exchange *exchange, const char *name);
/* False: it is not there exactly once. */
bool http_header_find_sole(const struct http_exchange *exchange, const char *name,
                           struct slice *ret_value);
/* ASCII case does not matter. */
bool http_text_equal(struct slice text, const char *expected);
bool http_is_h2(const struct http_exchange *exchange);

#endif
