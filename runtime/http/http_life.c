#include "runtime/http/http_life.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/http/http_budget.h"
#include "runtime/http/http_waiting.h"

#define FREE_EXCHANGES_MAX 512u
#define KEPT_BYTES_MAX     4096u /* Larger buffers are not kept on the free list. */

/* ---- the free list ---- */

struct http_exchange *http_exchange_new(struct http_conn *conn)
{
    struct http_server *server = conn->server;
    struct http_exchange *exchange = server->free_exchanges;

    if (exchange != NULL) {
        server->free_exchanges = exchange->next;
        server->free_count--;
    } else {
        exchange = mem_zalloc(sizeof *exchange);
    }
    exchange->server = server;
    exchange->conn = conn;
    exchange->next = NULL;
    exchange->since_ms = http_now_ms(server);
    http_budget_join(exchange);
    server->exchange_count++;
    return exchange;
}

static void buffer_recycle(struct buf *buf)
{
    if (buf->capacity > KEPT_BYTES_MAX)
        buf_deinit(buf);
    buf_clear(buf);
}

static void deinit(struct http_exchange *exchange)
{
    buf_deinit(&exchange->head);
    buf_deinit(&exchange->body);
    buf_deinit(&exchange->out);
    buf_deinit(&exchange->given);
    buf_deinit(&exchange->trailers);
    free(exchange);
}

void http_exchange_free(struct http_exchange *exchange)
{
    struct http_server *server = exchange->server;

    http_budget_release(exchange);
    server->exchange_count--;
    buffer_recycle(&exchange->head);
    buffer_recycle(&exchange->body);
    buffer_recycle(&exchange->out);
    buffer_recycle(&exchange->given);
    buffer_recycle(&exchange->trailers);
    if (server->free_count >= FREE_EXCHANGES_MAX) {
        deinit(exchange);
        return;
    }
    memset(exchange, 0, offsetof(struct http_exchange, head));
    exchange->next = server->free_exchanges;
    server->free_exchanges = exchange;
    server->free_count++;
}

void http_exchanges_deinit(struct http_server *server)
{
    while (server->free_exchanges != NULL) {
        struct http_exchange *exchange = server->free_exchanges;
        server->free_exchanges = exchange->next;
        deinit(exchange);
    }
}

/* ---- those of a connection ---- */

void http_exchange_add(struct http_exchange *exchange)
{
    struct http_conn *conn = exchange->conn;

    exchange->previous = conn->last;
    exchange->next = NULL;
    if (conn->last != NULL)
        conn->last->next = exchange;
    else
        conn->first = exchange;
    conn->last = exchange;
    conn->exchange_count++;
}

void http_exchange_remove(struct http_exchange *exchange)
{
    struct http_conn *conn = exchange->conn;

    if (exchange->previous != NULL)
        exchange->previous->next = exchange->next;
    else
        conn->first = exchange->next;
    if (exchange->next != NULL)
        exchange->next->previous = exchange->previous;
    else
        conn->last = exchange->previous;
    exchange->next = NULL;
    exchange->previous = NULL;
    conn->exchange_count--;
    http_waiting_shrank(conn, exchange->out.size - exchange->out_at + exchange->given.size);
}

/* ---- the handlers ---- */

/* A request came: whole, or as much of it as its answer needed. */
static void spoke(struct http_conn *conn)
{
    struct http_server *server = conn->server;

    conn->since_ms = http_now_ms(server);
    turnstile_touch(server->turnstile, &conn->place);
    server->stats.requests++;
}

bool http_exchange_greet(struct http_exchange *exchange)
{
    struct http_server *server = exchange->server;
    struct http_conn *conn = exchange->conn;

    exchange->body_max = server->config.limits.body_bytes_max;
    exchange->body_max_told = exchange->body_max;
    if (server->config.handlers.on_head == NULL)
        return true;
    exchange->handed = true; /* It may be answered now. */
    if (!server->config.handlers.on_head(server->config.handlers.user, exchange)) {
        spoke(conn); /* The exchange may be gone. */
        return false;
    }
    exchange->handed = false;
    exchange->greeted = true;
    return true;
}

void http_exchange_hand(struct http_exchange *exchange)
{
    struct http_server *server = exchange->server;

    http_body_received(exchange);
    exchange->received = true;
    exchange->handed = true;
    spoke(exchange->conn);
    server->config.handlers.on_request(server->config.handlers.user, exchange);
}

void http_exchange_refuse(struct http_exchange *exchange, const struct http_refusal *refusal)
{
    struct http_server *server = exchange->server;

    exchange->handed = true;
    server->stats.bad_messages++;
    http_body_drop(exchange);
    http_refusal_count(server, refusal->why, http_peer(exchange));
    server->config.handlers.on_refused(server->config.handlers.user, exchange, refusal);
}

void http_exchange_cancel(struct http_exchange *exchange)
{
    struct http_server *server = exchange->server;

    http_exchange_remove(exchange);
    http_budget_leave(exchange);
    if (!exchange->handed || exchange->ended) {
        if (exchange->greeted && !exchange->handed)
            server->config.handlers.on_forgotten(server->config.handlers.user, exchange);
        http_exchange_free(exchange);
        return;
    }
    server->stats.requests_cancelled++;
    server->config.handlers.on_cancel(server->config.handlers.user, exchange);
}
