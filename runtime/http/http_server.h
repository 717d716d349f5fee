/*
 * http_server: listens, owns the connections, their time limits and the free lists. HTTP/1.1 and
 * HTTP/2 on one port, plain or TLS. Knows nothing of RPC: rpc_server sits on top. Private to
 * runtime/http.
 */
#ifndef RUNTIME_HTTP_HTTP_SERVER_H
#define RUNTIME_HTTP_HTTP_SERVER_H

#include <uv.h>

#include "runtime/base/budget.h"
#include "runtime/base/log.h"
#include "runtime/base/refused_log.h"
#include "runtime/http/http_exchange.h"
#include "runtime/http/http_share.h"
#include "runtime/loop/handshakes.h"
#include "runtime/loop/loop.h"
#include "runtime/tls/tls_config.h"

#define HTTP_READ_BYTES 65536u

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
    size_t turns_left; /* Of this round: http_turn.h. */
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

/* ERR_INVALID, ERR_IO as rpc_server_new. */
NODISCARD err http_server_init(struct http_server *server, const struct http_server_config *config);
/* After on_stopped. Every exchange must have been answered. */
void http_server_deinit(struct http_server *server);
uint16_t http_server_port(const struct http_server *server);
void http_server_set_tls(struct http_server *server, struct tls_config *tls);
void http_server_drain(struct http_server *server);
void http_server_stop(struct http_server *server, void (*on_stopped)(void *user), void *user);

uint64_t http_now_ms(const struct http_server *server);
/* "Sat, 21 Nov 2026 03:00:00 GMT" */
const char *http_date(struct http_server *server);

/* Called by connections. */
void http_server_forget(struct http_server *server, struct http_conn *conn);
void http_server_mark_dirty(struct http_server *server, struct http_conn *conn);
struct http_exchange *http_exchange_new(struct http_conn *conn);
/* Back to the free list. Not in any connection's list any more. */
void http_exchange_free(struct http_exchange *exchange);
#endif
