/*
 * http_state: what a server and its connections hold. They point to each other, so they stand
 * together; the files above this one change them, each its own part. For runtime/http and
 * runtime/rpc.
 *
 * What works on it, lowest first; nothing uses what stands behind it:
 *
 *     http_waiting   what waits to be sent
 *     http_budget    memory of requests
 *     http_turn      how much is encrypted in one round
 *     http_life      a request's life: new, to the handlers, free
 *     http_conn      the socket, TLS, and which protocol is spoken
 *     h1, h2         the protocols, called through struct http_protocol
 *     http_answer    what the handlers call
 *     http_server    listens, starts, stops
 */
#ifndef RUNTIME_HTTP_HTTP_STATE_H
#define RUNTIME_HTTP_HTTP_STATE_H

#include <llhttp.h>
#include <nghttp2/nghttp2.h>
#include <uv.h>

#include "runtime/base/budget.h"
#include "runtime/base/log.h"
#include "runtime/base/refused_log.h"
#include "runtime/http/h1_head.h"
#include "runtime/http/h2_flood.h"
#include "runtime/http/http_exchange.h"
#include "runtime/http/http_peer.h"
#include "runtime/http/http_share.h"
#include "runtime/loop/handshakes.h"
#include "runtime/loop/loop.h"
#include "runtime/tls/tls_config.h"
#include "runtime/tls/tls_session.h"

#define HTTP_READ_BYTES 65536u
/* Bodies that are given and shorter are copied: that is cheaper than a write more. */
#define HTTP_GIVEN_BYTES_MIN 65536u
#define HTTP_TURN_REQUESTS   32u /* Of one connection, before others have their turn. */
#define HTTP_ROUND_REQUESTS                                                                        \
    64u /* In one round of the loop; then each connection has one, until the next. */
#define HTTP_PIPELINE_FIRST 4u /* Of HTTP/1.1 under way at once, before any was answered. */

/* One version of HTTP: how connection, budget and answers call what they may not use. */
struct http_protocol {
    err (*start)(struct http_conn *conn);
    /* Lets go of what start made; also after start failed. NULL: of nothing. */
    void (*stop)(struct http_conn *conn);
    /* Parses what it can until http_turn_is_over. Holds the rest back in conn->in. */
    void (*receive)(struct http_conn *conn, struct slice bytes);
    /* True: enough requests or answers wait; no more input now. */
    bool (*is_full)(const struct http_conn *conn);
    /* Moves frames to conn->out, up to output_bytes_max. NULL: answers are there already. */
    void (*fill)(struct http_conn *conn);
    /* Takes no further request, and says so. The connection closes behind its last answer. */
    void (*go_away)(struct http_conn *conn);
    /* Enforces the time limits. */
    void (*tick)(struct http_conn *conn, uint64_t now_ms);
    /* Refuses a request whose body is being received. */
    void (*end_body)(struct http_exchange *exchange, struct http_refusal refusal);
    void (*answer_begin)(struct http_exchange *exchange, const struct http_answer *answer,
                         bool whole);
    void (*answer_send)(struct http_exchange *exchange, struct slice bytes);
    /* HTTP/1.1 sends no trailers. */
    void (*answer_end)(struct http_exchange *exchange, const struct http_field *trailers,
                       size_t trailer_count);
};

enum http_conn_state {
    CONN_DETECT, /* Not enough bytes yet to tell HTTP/1.1 from HTTP/2.    */
    CONN_OPEN,   /* It speaks conn->protocol.                             */
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
    const struct http_protocol *protocol; /* NULL: not known yet. */

    struct buf in;                  /* Received and not yet parsed: part of a head, or held back. */
    struct buf out;                 /* Plain bytes to send.                                       */
    struct http_piece *first_piece; /* And what comes behind them: http_out. */
    struct http_piece *last_piece;
    struct buf clear;    /* TLS: what of `out` is being encrypted, a turn at a time.   */
    size_t clear_left;   /* Of that: not encrypted yet.                                */
    struct buf sending;  /* With libuv.                                                */
    size_t sending_at;   /* Of that: up to here libuv has it.                          */
    size_t sending_left; /* Of that, and clear_left. */
    size_t stream_bytes; /* In the exchanges' `out`.                          */
    size_t wire_bytes;   /* http_waiting_of, as counted for the server. */
    struct http_share *address;
    size_t head_bytes;    /* Of its exchanges' heads, and of `in`. */
    size_t in_charged;    /* Of `in`. */
    size_t drained_bytes; /* Taken by the client since drained_ms; see http_waiting_is_slow. */
    uint64_t drained_ms;

    struct http_exchange *first; /* Oldest. */
    struct http_exchange *last;
    size_t exchange_count;
    uint32_t pipeline; /* HTTP/1.1: how many requests may be under way now; more are not read. */

    struct loop_timer rest;                      /* Of those that rest for a time. */
    struct http_conn *wait_next, *wait_previous; /* In the server's list, while `waits`. */
    uint32_t full_reads;    /* One after the other.                                      */
    uint64_t since_ms;      /* Of the last progress: accept, a request, an answer, a write. */
    uint64_t taken_ms;      /* While `writing`: when the client took something last. */
    uint64_t head_since_ms; /* HTTP/1.1: first byte of a head that is not whole; 0: none.   */
    bool dirty;
    bool writing;
    bool reading;
    bool resting;     /* Not read before its rest is over: http_conn_rest. */
    bool waits;       /* Between wait_previous and wait_next.             */
    bool known;       /* A request had a valid key, where one is asked for: http_exchange_prove. */
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

    char peer[HTTP_PEER_SIZE];
};

struct http_server_config {
    struct loop *loop;
    const char *address;
    uint16_t port;
    bool reuse_port;
    struct tls_config *tls; /* NULL: plain. */
    struct http_limits limits;
    const struct address_ranges *proxies; /* See turnstile.h; copied. NULL: none. */
    struct budget *answers; /* Counts what waits to be sent; borrowed. NULL: nothing does. */
    struct http_handlers handlers;
    const struct log *log;
};

struct http_server {
    struct http_server_config config;
    const struct http_protocol *h1;
    const struct http_protocol *h2;
    struct http_stats stats;
    uv_tcp_t listener;
    bool listener_open;
    bool draining;
    bool stopping;
    void (*on_stopped)(void *user);
    void *on_stopped_user;
    struct loop_timer tick;
    struct loop_hook flush; /* Once per loop round: every dirty connection writes. */
    struct turnstile *turnstile;
    struct handshakes handshakes;
    struct loop_timer accept_on; /* In the next turn. */
    uint32_t accepts;            /* In this one. */
    struct refused_log refused;
    struct http_conn *conns;
    struct http_conn *dirty;
    size_t turns_left;                        /* Of this round: http_turn.h. */
    uint64_t round_requests;                  /* Of stats.requests, when this round began. */
    uint32_t round_resumed;                   /* Connections that waited for it and go on. */
    struct http_conn *wait_first, *wait_last; /* For their turn: http_turn_wait. */
    struct loop_timer next_round;             /* While some wait. */
    bool round_is_due;                        /* It has fired. */
    struct http_exchange *free_exchanges;
    size_t free_count;
    size_t exchange_count;        /* Alive, free ones left out. */
    struct http_exchange *bodies; /* Being received, oldest first. */
    struct http_exchange *bodies_last;
    struct http_shares addresses;
    struct http_shares keys;
    uint64_t peak_bytes; /* Of memory for requests since it was last given back. */
    uint64_t trimmed_ms;
    uint64_t logged_ms[HTTP_REFUSED_COUNT]; /* When its last line was logged; 0: never. */
    uint64_t unlogged[HTTP_REFUSED_COUNT];
    char date[40]; /* For the Date header, made each second. */
    uint64_t date_ms;
    uint8_t read_bytes[HTTP_READ_BYTES];
    uint8_t plain_bytes[16384]; /* TLS: one record. */
};

uint64_t http_now_ms(const struct http_server *server);
/* "Sat, 21 Nov 2026 03:00:00 GMT" */
const char *http_date(struct http_server *server);
/* Of its connection; empty when the client is gone. */
const char *http_peer(const struct http_exchange *exchange);
/* Tells on_stopped, once the listener and the last connection are gone. */
void http_tell_stopped(struct http_server *server);

#endif
