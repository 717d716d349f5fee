#include "runtime/http/http_exchange.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/http/http_budget.h"

struct slice http_header_find(const struct http_exchange *exchange, const char *name)
{
    size_t size = strlen(name);

    for (size_t i = 0; i < exchange->header_count; i++) {
        struct slice given = exchange->headers[i].name;
        if (given.size == size && memcmp(given.data, name, size) == 0)
            return exchange->headers[i].value;
    }
    return (struct slice){ 0 };
}

bool http_header_find_sole(const struct http_exchange *exchange, const char *name,
                           struct slice *ret_value)
{
    size_t size = strlen(name);
    size_t count = 0;

    for (size_t i = 0; i < exchange->header_count; i++) {
        struct slice given = exchange->headers[i].name;
        if (given.size != size || memcmp(given.data, name, size) != 0)
            continue;
        *ret_value = exchange->headers[i].value;
        count++;
    }
    return count == 1;
}

bool http_text_equal(struct slice text, const char *expected)
{
    return strlen(expected) == text.size &&
           strncasecmp((const char *)text.data, expected, text.size) == 0;
}

const char *http_peer(const struct http_exchange *exchange)
{
    return exchange->conn != NULL ? exchange->conn->peer : "";
}

bool http_is_h2(const struct http_exchange *exchange)
{
    return exchange->stream_id != 0;
}

void http_exchange_prove(const struct http_exchange *exchange)
{
    if (exchange->conn != NULL)
        http_conn_prove(exchange->conn);
}

/* The caller has gone: the last call of the handler frees it. */
static bool gone(struct http_exchange *exchange, bool last)
{
    if (exchange->conn != NULL)
        return false;
    if (last)
        http_exchange_free(exchange);
    return true;
}

static void begin(struct http_exchange *exchange, const struct http_answer *answer, bool whole)
{
    CHECK(exchange->handed && !exchange->begun && !exchange->ended);
    exchange->begun = true;
    if (whole)
        http_body_drop(exchange);
    if (gone(exchange, whole))
        return;
    exchange->conn->since_ms = http_now_ms(exchange->server);
    exchange->ended = whole;
    if (http_is_h2(exchange))
        h2_answer_begin(exchange, answer, whole);
    else
        h1_answer_begin(exchange, answer, whole);
}

void http_answer(struct http_exchange *exchange, const struct http_answer *answer)
{
    begin(exchange, answer, true);
}

void http_answer_begin(struct http_exchange *exchange, const struct http_answer *answer)
{
    begin(exchange, answer, false);
}

bool http_answer_send(struct http_exchange *exchange, struct slice bytes)
{
    CHECK(exchange->begun && !exchange->ended);
    if (gone(exchange, false))
        return true;
    exchange->conn->since_ms = http_now_ms(exchange->server);
    if (http_is_h2(exchange))
        h2_answer_send(exchange, bytes);
    else
        h1_answer_send(exchange, bytes);
    size_t waiting = exchange->out.size - exchange->out_at;
    if (!http_is_h2(exchange))
        waiting += http_conn_waiting(exchange->conn);
    exchange->blocked = waiting > exchange->server->config.limits.stream_bytes_max;
    return !exchange->blocked;
}

void http_answer_end(struct http_exchange *exchange, const struct http_field *trailers,
                     size_t trailer_count)
{
    CHECK(exchange->begun && !exchange->ended);
    if (gone(exchange, true))
        return;
    exchange->conn->since_ms = http_now_ms(exchange->server);
    exchange->ended = true;
    exchange->blocked = false;
    if (http_is_h2(exchange))
        h2_answer_end(exchange, trailers, trailer_count);
    else
        h1_answer_end(exchange);
}

/* ---- those of a connection ---- */

void http_conn_add(struct http_conn *conn, struct http_exchange *exchange)
{
    exchange->previous = conn->last;
    exchange->next = NULL;
    if (conn->last != NULL)
        conn->last->next = exchange;
    else
        conn->first = exchange;
    conn->last = exchange;
    conn->exchange_count++;
}

void http_conn_remove(struct http_conn *conn, struct http_exchange *exchange)
{
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
    http_conn_streams_shrank(conn, exchange->out.size - exchange->out_at);
}
