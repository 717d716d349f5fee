/*
 * http_conn: one connection: its socket, TLS, which HTTP it speaks, what waits to be sent, and the
 * exchanges under way on it. Private to runtime/http.
 *
 *     read -> (TLS) -> detect -> h1_receive or h2_receive -> handlers
 *     answer -> out (h1), or the HTTP/2 session -> once a round: (TLS) -> one write
 */
#ifndef RUNTIME_HTTP_HTTP_CONN_H
#define RUNTIME_HTTP_HTTP_CONN_H

#include <llhttp.h>
#include <nghttp2/nghttp2.h>

#include "runtime/http/h1_head.h"
#include "runtime/http/h2_flood.h"
#include "runtime/http/http_server.h"
#include "runtime/tls/tls_session.h"

enum http_conn_state {
    CONN_DETECT, /* Not enough bytes yet to tell HTTP/1.1 from HTTP/2.    */
    CONN_H1,
    CONN_H2,
    CONN_LINGER, /* Everything was sent; waiting for the client to close. */
    CONN_CLOSED  /* Waiting for libuv to let go of the handle.            */
};

struct http_conn {
    uv_tcp_t tcp;
    uv_write_t write;
    uv_shutdown_t shutdown;
    struct http_server *server;
    struct http_conn *next;
    struct http_conn *previous;
    struct http_conn *next_dirty;
    struct turnstile_place place;
    struct tls_session *tls;
    enum http_conn_state state;

    struct buf in;       /* Received and not yet parsed: part of a head, or held back. */
    struct buf out;      /* Plain bytes to send.                                       */
    struct buf clear;    /* TLS: what of `out` is being encrypted, a turn at a time.   */
    size_t clear_left;   /* Of that: not encrypted yet.                                */
    struct buf sending;  /* With libuv.                                                */
    size_t sending_left; /* Of that, and clear_left. */
    size_t stream_bytes; /* In the exchanges' `out`.                          */
    size_t wire_bytes;   /* Of `out` and `sending`: as counted for the server. */
    struct http_share *address;
    size_t head_bytes;    /* Of its exchanges' heads, and of `in`. */
    size_t in_charged;    /* Of `in`. */
    size_t drained_bytes; /* Taken by the client since drained_ms; see http_conn_is_slow_reader. */
    uint64_t drained_ms;

    struct http_exchange *first; /* Oldest. */
    struct http_exchange *last;
    size_t exchange_count;

    uint64_t since_ms;      /* Of the last progress: accept, a request, an answer, a write. */
    uint64_t head_since_ms; /* HTTP/1.1: first byte of a head that is not whole; 0: none.   */
    bool dirty;
    bool writing;
    bool reading;
    bool proved;      /* A request of it was let in by its head.            */
    bool known;       /* And had a valid key, where one is asked for: http_conn_prove. */
    bool receiving;   /* Inside the parser: closing waits until it returns. */
    bool close_soon;  /* Close once everything is sent.                     */
    bool doomed;      /* Close when the parser returns.                     */
    bool greeting;    /* TLS: the first record is not whole, or waits.      */
    bool turned_away; /* Answered for good: what comes is not read.        */
    bool discarding;  /* HTTP/1.1: the body of a request that was answered. */

    llhttp_t parser;                /* HTTP/1.1 */
    struct http_exchange *incoming; /* HTTP/1.1: its body is being received. */
    uint64_t body_raw_bytes;        /* HTTP/1.1: with chunk headers.         */
    uint64_t discard_since_ms;      /* HTTP/1.1: when discarding began.      */
    struct h1_chunks chunks;        /* HTTP/1.1: of the incoming body.       */
    bool refused;                   /* HTTP/1.1: no more input is parsed.    */
    struct http_refusal refusal;    /* HTTP/1.1: set in a parser's callback. */
    nghttp2_session *session;       /* HTTP/2; NULL again once it broke the protocol. */
    struct h2_flood flood;          /* HTTP/2 */
    size_t block_bytes;             /* HTTP/2: of the header block being decoded. */

    char peer[64];
};

/* Takes one connection off the listener. */
void http_conn_accept(struct http_server *server);
/* Takes over a connected socket. */
void http_conn_adopt(struct http_server *server, int fd);
/* Something waits in `out` or in the HTTP/2 session: write at the end of the round. */
void http_conn_mark_dirty(struct http_conn *conn);
void http_conn_flush(struct http_conn *conn);
/* Cancels what is under way and closes; the memory goes once libuv has let go. */
void http_conn_close(struct http_conn *conn);
/* Sends what waits, then closes, letting the client read to the end. */
void http_conn_close_soon(struct http_conn *conn);
/* A request on it had a valid key: it is not put out for one of which this is not known. */
void http_conn_prove(struct http_conn *conn);
/* The handshake of the connection that has this place may begin. For handshakes.h. */
void http_conn_shake(void *server, struct turnstile_place *place);
/* Enforces the time limits. */
void http_conn_tick(struct http_conn *conn, uint64_t now_ms);
/* Bytes waiting to be sent. */
size_t http_conn_waiting(const struct http_conn *conn);
/* The exchanges' `out` grew or shrank by so much. */
void http_conn_streams_grew(struct http_conn *conn, size_t size);
void http_conn_streams_shrank(struct http_conn *conn, size_t size);
/* Reads on, after what was held back has been parsed. */
void http_conn_resume(struct http_conn *conn);

/* To the exchanges under way, the last, and out of them (http_exchange.c). */
void http_conn_add(struct http_conn *conn, struct http_exchange *exchange);
void http_conn_remove(struct http_conn *conn, struct http_exchange *exchange);
/* The head is whole. False: it was answered already; over HTTP/1.1 the exchange may be gone. */
bool http_conn_greet(struct http_exchange *exchange);
/* Refuses a request whose body is being received. */
void http_conn_end_body(struct http_exchange *exchange, enum http_refused why);
/* To the handlers. */
void http_conn_hand(struct http_exchange *exchange);
void http_conn_refuse(struct http_exchange *exchange, const struct http_refusal *refusal);
/* The client gave up on this one: tell the handlers if they know of it, else free it. */
void http_conn_cancel(struct http_exchange *exchange);

/* ---- HTTP/1.1 (h1.c) ---- */
void h1_start(struct http_conn *conn);
/* Parses what it can; holds the rest back in conn->in. */
void h1_receive(struct http_conn *conn, struct slice bytes);
/* True: enough requests or answers wait; no more input now. */
bool h1_is_full(const struct http_conn *conn);
void h1_answer_begin(struct http_exchange *exchange, const struct http_answer *answer, bool whole);
void h1_answer_send(struct http_exchange *exchange, struct slice bytes);
void h1_answer_end(struct http_exchange *exchange);
void h1_tick(struct http_conn *conn, uint64_t now_ms);
void h1_end_body(struct http_exchange *exchange, struct http_refusal refusal);

/* ---- HTTP/2 (h2.c) ---- */
NODISCARD err h2_start(struct http_conn *conn);
void h2_stop(struct http_conn *conn);
void h2_receive(struct http_conn *conn, struct slice bytes);
void h2_answer_begin(struct http_exchange *exchange, const struct http_answer *answer, bool whole);
void h2_answer_send(struct http_exchange *exchange, struct slice bytes);
void h2_answer_end(struct http_exchange *exchange, const struct http_field *trailers,
                   size_t trailer_count);
void h2_end_body(struct http_exchange *exchange, struct http_refusal refusal);
/* Moves frames from the session to conn->out, up to output_bytes_max. */
void h2_fill(struct http_conn *conn);
void h2_goaway(struct http_conn *conn);
void h2_tick(struct http_conn *conn, uint64_t now_ms);

#define SLOW_READER_BYTES_MIN 65536u
#define STRANGER_BYTES_FREE   4096u
/* Answers fill half of the memory that all connections have for them: a connection that holds more
 * than an equal part, and took next to nothing for a second, is closed, so that others are not
 * refused for its sake. Once they fill all of it, its time to read is over. Those that had no valid
 * key yet have an eighth of it together: past that, one of them is closed that holds more than
 * STRANGER_BYTES_FREE. */
bool http_conn_is_slow_reader(const struct http_conn *conn);

#endif
