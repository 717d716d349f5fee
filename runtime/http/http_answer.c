#include "runtime/http/http_answer.h"

#include "runtime/base/check.h"
#include "runtime/http/http_budget.h"
#include "runtime/http/http_life.h"
#include "runtime/http/http_waiting.h"

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
    exchange->conn->protocol->answer_begin(exchange, answer, whole);
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
    exchange->conn->protocol->answer_send(exchange, bytes);
    size_t waiting = exchange->out.size - exchange->out_at;
    if (!http_is_h2(exchange))
        waiting += http_waiting_of(exchange->conn);
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
    exchange->conn->protocol->answer_end(exchange, trailers, trailer_count);
}
