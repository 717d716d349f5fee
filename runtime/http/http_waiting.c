#include "runtime/http/http_waiting.h"

#include "runtime/base/check.h"
#include "runtime/http/http_out.h"
#include "runtime/tls/tls_session.h"

#define SLOW_READER_MS 1000u

/* Of the memory for answers: what callers may have of it before they showed a key. */
static uint64_t strangers_max(const struct http_server *server)
{
    return server->config.limits.waiting_bytes_max / 8;
}

static void add(struct http_conn *conn, size_t size)
{
    struct http_server *server = conn->server;

    if (!conn->known)
        server->stats.stranger_bytes += size;
    server->stats.waiting_bytes += size;
    if (server->config.answers != NULL)
        budget_take(server->config.answers, size);
}

static void take(struct http_conn *conn, size_t size)
{
    struct http_server *server = conn->server;

    if (!conn->known)
        server->stats.stranger_bytes -= size;
    server->stats.waiting_bytes -= size;
    if (server->config.answers != NULL)
        budget_give(server->config.answers, size);
}

/* Now something waits for the client where nothing did: its time to read begins. */
static void begin_to_wait(struct http_conn *conn)
{
    if (conn->stream_bytes + conn->wire_bytes > 0)
        return;
    conn->drained_bytes = 0;
    conn->drained_ms = http_now_ms(conn->server);
}

void http_waiting_drained(struct http_conn *conn, size_t size)
{
    conn->drained_bytes += size;
    if (conn->drained_bytes < SLOW_READER_BYTES_MIN)
        return;
    conn->drained_bytes = 0;
    conn->drained_ms = http_now_ms(conn->server);
}

void http_waiting_grew(struct http_conn *conn, size_t size)
{
    begin_to_wait(conn);
    conn->stream_bytes += size;
    add(conn, size);
}

void http_waiting_shrank(struct http_conn *conn, size_t size)
{
    CHECK(size <= conn->stream_bytes);
    conn->stream_bytes -= size;
    take(conn, size);
}

size_t http_waiting_of(const struct http_conn *conn)
{
    size_t encrypted = conn->tls != NULL ? tls_session_output(conn->tls)->size : 0;

    return http_out_bytes(conn) + encrypted + conn->sending_left;
}

void http_waiting_count(struct http_conn *conn)
{
    size_t before = conn->wire_bytes;

    begin_to_wait(conn);
    conn->wire_bytes = http_waiting_of(conn);
    if (conn->wire_bytes > before)
        add(conn, conn->wire_bytes - before);
    else
        take(conn, before - conn->wire_bytes);
}

void http_waiting_forget(struct http_conn *conn)
{
    take(conn, conn->wire_bytes);
    conn->wire_bytes = 0;
}

void http_waiting_prove(struct http_conn *conn)
{
    if (conn->known)
        return;
    conn->known = true;
    conn->server->stats.stranger_bytes -= conn->stream_bytes + conn->wire_bytes;
}

bool http_waiting_is_slow(const struct http_conn *conn)
{
    const struct http_stats *stats = &conn->server->stats;
    uint64_t max = conn->server->config.limits.waiting_bytes_max;
    uint64_t part = max / (stats->connections + 1);

    if (part < SLOW_READER_BYTES_MIN)
        part = SLOW_READER_BYTES_MIN;
    bool late = http_now_ms(conn->server) >= conn->drained_ms + SLOW_READER_MS;
    if (!conn->known && stats->stranger_bytes > strangers_max(conn->server) &&
        conn->stream_bytes + conn->wire_bytes > STRANGER_BYTES_FREE)
        return true;
    return stats->waiting_bytes > (late ? max / 2 : max) &&
           conn->stream_bytes + conn->wire_bytes > part;
}

bool http_waiting_fits(const struct http_exchange *exchange, size_t size)
{
    const struct http_conn *conn = exchange->conn;

    if (conn == NULL || conn->known)
        return true;
    /* Of HTTP/1.1, what was answered in this round is counted at its end. */
    uint64_t held =
        exchange->server->stats.stranger_bytes + http_waiting_of(conn) - conn->wire_bytes;
    return held == 0 || held + size <= strangers_max(exchange->server);
}
