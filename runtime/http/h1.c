#include "runtime/http/h1.h"

#include <stdio.h>

#include "runtime/base/check.h"
#include "runtime/http/h1_head.h"
#include "runtime/http/http_budget.h"
#include "runtime/http/http_conn.h"
#include "runtime/http/http_life.h"
#include "runtime/http/http_out.h"
#include "runtime/http/http_turn.h"
#include "runtime/http/http_waiting.h"

#define RAW_BYTES_PER_BODY_BYTE 8u /* Most overhead of chunk headers. */
#define RAW_BYTES_AT_LEAST      65536u
#define DISCARD_BYTES_MAX       65536u /* Of the body of a request that its head was enough for. */

/* ---- llhttp's callbacks; the head is one whole buffer, so spans come whole ---- */

static int on_url(llhttp_t *parser, const char *at, size_t size)
{
    struct http_conn *conn = parser->data;
    struct slice target = { (const uint8_t *)at, size };

    return h1_head_set_target(conn->incoming, target) ? HPE_OK : HPE_USER;
}

static int on_header_field(llhttp_t *parser, const char *at, size_t size)
{
    struct http_conn *conn = parser->data;
    struct http_exchange *exchange = conn->incoming;

    if (exchange == NULL || exchange->head_done) /* A trailer. */
        return HPE_OK;
    if (exchange->header_count >= conn->server->config.limits.headers_max) {
        conn->refusal = http_refusal_of(conn->server, HTTP_REFUSED_HEAD_COUNT);
        return HPE_USER;
    }
    uint8_t *name = exchange->head.data + ((const uint8_t *)at - exchange->head.data);
    for (size_t i = 0; i < size; i++) {
        if (name[i] >= 'A' && name[i] <= 'Z')
            name[i] = (uint8_t)(name[i] + ('a' - 'A'));
    }
    exchange->headers[exchange->header_count++] = (struct http_field){ .name = { name, size } };
    return HPE_OK;
}

static int on_header_value(llhttp_t *parser, const char *at, size_t size)
{
    struct http_conn *conn = parser->data;
    struct http_exchange *exchange = conn->incoming;

    if (exchange == NULL || exchange->head_done)
        return HPE_OK;
    struct slice *value = &exchange->headers[exchange->header_count - 1].value;
    if (value->size > 0) { /* Never seen: a value in two parts. */
        if (value->data + value->size != (const uint8_t *)at)
            return HPE_USER;
        value->size += size;
    } else {
        *value = (struct slice){ (const uint8_t *)at, size };
    }
    while (value->size > 0 &&
           (value->data[value->size - 1] == ' ' || value->data[value->size - 1] == '\t'))
        value->size--;
    return HPE_OK;
}

static int on_headers_complete(llhttp_t *parser)
{
    struct http_conn *conn = parser->data;
    struct http_exchange *exchange = conn->incoming;

    if (parser->http_major != 1) { /* 0: a request line without a version. */
        conn->refusal = http_refusal_of(
            conn->server, parser->http_major == 0 ? HTTP_REFUSED_GRAMMAR : HTTP_REFUSED_VERSION);
        return HPE_USER;
    }
    exchange->head_done = true;
    exchange->old = parser->http_major == 1 && parser->http_minor == 0;
    exchange->method = slice_from_text(llhttp_method_name((llhttp_method_t)parser->method));
    exchange->only_head = parser->method == HTTP_HEAD;
    parser->upgrade = 0; /* We never upgrade; the request is served as it stands. */
    return 0;
}

static struct http_refusal refusal_of_body(const struct http_exchange *exchange)
{
    struct http_refusal refusal = http_refusal_of(exchange->server, HTTP_REFUSED_BODY_SIZE);

    refusal.limit = exchange->body_max_told;
    return refusal;
}

static int on_body(llhttp_t *parser, const char *at, size_t size)
{
    struct http_conn *conn = parser->data;
    struct slice bytes = { (const uint8_t *)at, size };
    enum http_refused why;

    if (conn->discarding)
        return HPE_OK;
    if (!http_body_fits(conn->incoming, conn->incoming->body.size + size)) {
        conn->refusal = refusal_of_body(conn->incoming);
        return HPE_USER;
    }
    if (!http_body_append(conn->incoming, bytes, &why)) {
        conn->refusal = http_refusal_of(conn->server, why);
        return HPE_USER;
    }
    return HPE_OK;
}

static int on_message_complete(llhttp_t *parser)
{
    struct http_conn *conn = parser->data;

    if (conn->incoming != NULL)
        conn->incoming->close = !llhttp_should_keep_alive(parser);
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* ---- receiving ---- */

static err start(struct http_conn *conn)
{
    uint32_t most = conn->server->config.limits.pipeline_max;

    llhttp_init(&conn->parser, HTTP_REQUEST, &settings);
    conn->parser.data = conn;
    conn->pipeline = most < HTTP_PIPELINE_FIRST ? most : HTTP_PIPELINE_FIRST;
    return ERR_OK;
}

/* Answers with an error, in its turn, and takes no more input. */
static void refuse(struct http_conn *conn, struct http_exchange *exchange,
                   struct http_refusal refusal)
{
    conn->refused = true;
    conn->incoming = NULL;
    conn->head_since_ms = 0;
    exchange->close = true;
    http_exchange_refuse(exchange, &refusal);
}

static void end_body(struct http_exchange *exchange, struct http_refusal refusal)
{
    struct http_conn *conn = exchange->conn;

    CHECK(conn->incoming == exchange);
    refuse(conn, exchange, refusal);
    http_conn_mark_dirty(conn); /* The exchange may be gone. */
}

static void save_field(struct http_exchange *exchange, struct slice head, const char *name)
{
    struct slice value;

    if (http_header_find(exchange, name).size == 0 && h1_head_find(head, name, &value))
        exchange->headers[exchange->header_count++] =
            (struct http_field){ slice_from_text(name), value };
}

/* The head in exchange->head could not be taken, but the answer is to be one that the caller's
 * protocol and its browser understand. */
static void refuse_head(struct http_exchange *exchange, struct http_refusal refusal)
{
    save_field(exchange, buf_slice(&exchange->head), "content-type");
    save_field(exchange, buf_slice(&exchange->head), "origin");
    refuse(exchange->conn, exchange, refusal);
}

/* The same for one that was not parsed at all. */
static void refuse_unparsed(struct http_conn *conn, struct slice head, struct http_refusal refusal)
{
    struct http_exchange *exchange = http_exchange_new(conn);
    uint32_t limit = conn->server->config.limits.header_bytes_max;

    http_exchange_add(exchange);
    buf_append(&exchange->head, head.data, head.size < limit ? head.size : limit);
    exchange->body_max = 0;
    refuse_head(exchange, refusal);
}

static void complete(struct http_conn *conn)
{
    struct http_exchange *exchange = conn->incoming;

    conn->incoming = NULL;
    llhttp_resume(&conn->parser);
    if (exchange == NULL) { /* It was answered when its head had come. */
        conn->discarding = false;
        return;
    }
    if (exchange->close || conn->server->draining) {
        exchange->close = true;
        conn->refused = true;
    }
    http_exchange_hand(exchange);
}

static struct buf *target_of(struct http_exchange *exchange)
{
    return exchange->conn->first == exchange ? http_out_end(exchange->conn) : &exchange->out;
}

/* After bytes were added to target_of(), which held `before`. */
static void count_added(struct http_exchange *exchange, const struct buf *out, size_t before)
{
    if (out == &exchange->out)
        http_waiting_grew(exchange->conn, out->size - before);
}

/* A body whose request was answered by its head is read and thrown away if it is short, so that the
 * connection can go on. A client that waits for a 100 may not send it at all. */
static bool may_discard(const struct http_exchange *exchange)
{
    const llhttp_t *parser = &exchange->conn->parser;
    bool is_short = (parser->flags & F_CHUNKED) != 0 || parser->content_length <= DISCARD_BYTES_MAX;

    return is_short && llhttp_should_keep_alive(parser) &&
           http_header_find(exchange, "expect").size == 0;
}

/* False: it was answered already. */
static bool greet(struct http_conn *conn)
{
    struct http_exchange *exchange = conn->incoming;
    bool discards = may_discard(exchange) && !conn->server->draining;

    conn->body_raw_bytes = 0;
    conn->chunks = (struct h1_chunks){ 0 };
    exchange->since_ms = http_now_ms(conn->server);
    exchange->close = !discards;
    if (http_exchange_greet(exchange)) {
        exchange->close = false;
        return true;
    }
    conn->incoming = NULL;
    conn->discarding = discards;
    conn->refused = !discards;
    conn->discard_since_ms = http_now_ms(conn->server);
    return false;
}

/* The head is parsed and a body will come: is it welcome? */
static void expect_body(struct http_conn *conn)
{
    struct http_exchange *exchange = conn->incoming;
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

    if (!greet(conn))
        return;
    if ((conn->parser.flags & F_CONTENT_LENGTH) != 0 &&
        !http_body_fits(exchange, conn->parser.content_length)) {
        refuse(conn, exchange, refusal_of_body(exchange));
        return;
    }
    if (!exchange->old && http_text_equal(http_header_find(exchange, "expect"), "100-continue")) {
        struct buf *out = target_of(exchange);
        size_t before = out->size;
        buf_append(out, go_on, sizeof go_on - 1);
        count_added(exchange, out, before);
        http_conn_mark_dirty(conn);
    }
}

/* The head is all of the request. */
static void complete_bodiless(struct http_conn *conn)
{
    struct http_exchange *exchange = conn->incoming;
    bool close = exchange->close || conn->server->draining;

    exchange->close = close;
    if (http_exchange_greet(exchange)) {
        complete(conn);
        return;
    }
    conn->incoming = NULL;
    conn->refused = close;
    llhttp_resume(&conn->parser);
}

static void parse_head(struct http_conn *conn, struct slice head)
{
    struct http_exchange *exchange = http_exchange_new(conn);
    enum http_refused why;
    const char *wrong;

    conn->head_since_ms = 0;
    http_exchange_add(exchange);
    conn->incoming = exchange;
    conn->refusal = http_refusal_of(conn->server, HTTP_REFUSED_GRAMMAR);
    buf_append(&exchange->head, head.data, head.size);
    if (!http_head_charge(exchange, &why)) {
        refuse_head(exchange, http_refusal_of(conn->server, why));
        return;
    }
    llhttp_errno_t result =
        llhttp_execute(&conn->parser, (const char *)exchange->head.data, head.size);
    if ((result != HPE_OK && result != HPE_PAUSED) || !exchange->head_done ||
        conn->parser.method == HTTP_CONNECT) {
        if (result == HPE_UNEXPECTED_CONTENT_LENGTH)
            conn->refusal = (struct http_refusal){ 400, "Content-Length must be one number",
                                                   "content-length", 0, HTTP_REFUSED_GRAMMAR };
        refuse_head(exchange, conn->refusal);
        return;
    }
    wrong = h1_head_check(exchange);
    if (wrong != NULL)
        refuse(conn, exchange,
               (struct http_refusal){ 400, wrong, "header", 0, HTTP_REFUSED_GRAMMAR });
    else if (result == HPE_PAUSED)
        complete_bodiless(conn);
    else
        expect_body(conn);
}

/* Bytes used; 0: more are needed. */
static size_t receive_head(struct http_conn *conn, struct slice bytes)
{
    uint32_t limit = conn->server->config.limits.header_bytes_max;
    size_t size = 0;

    if (bytes.size >= 2 && bytes.data[0] == '\r' && bytes.data[1] == '\n') {
        conn->head_since_ms = 0;
        return 2; /* RFC 9112 section 2.2: empty lines before a request. */
    }
    switch (h1_head_scan(bytes, &size)) {
    case H1_HEAD_PARTIAL:
        size = bytes.size;
        break;
    case H1_HEAD_BAD:
        if (bytes.data[0] == '\r' && bytes.size == 1)
            return 0;
        refuse_unparsed(conn, bytes,
                        (struct http_refusal){ 400, "a malformed HTTP request", "header", 0,
                                               HTTP_REFUSED_GRAMMAR });
        return bytes.size;
    case H1_HEAD_WHOLE:
        if (size > limit)
            break;
        parse_head(conn, (struct slice){ bytes.data, size });
        return size;
    }
    if (size > limit) {
        refuse_unparsed(conn, bytes, http_refusal_of(conn->server, HTTP_REFUSED_HEAD_SIZE));
        return bytes.size;
    }
    if (conn->head_since_ms == 0)
        conn->head_since_ms = http_now_ms(conn->server);
    return 0;
}

static uint64_t raw_bytes_max(const struct http_conn *conn)
{
    if (conn->discarding)
        return DISCARD_BYTES_MAX;
    return RAW_BYTES_AT_LEAST + (uint64_t)RAW_BYTES_PER_BODY_BYTE * conn->incoming->body_max;
}

/* No more is read; requests of before are answered first. */
static void end_discarded(struct http_conn *conn)
{
    conn->refused = true;
    conn->discarding = false;
    conn->turned_away = true;
    if (conn->last != NULL)
        conn->last->close = true;
    else
        http_conn_close_soon(conn);
}

/* The body is wrong: of a request that was answered already, the connection ends. */
static void refuse_body(struct http_conn *conn)
{
    if (conn->incoming != NULL) {
        refuse(conn, conn->incoming, conn->refusal);
        return;
    }
    conn->server->stats.bad_messages++;
    end_discarded(conn);
}

static size_t receive_body(struct http_conn *conn, struct slice bytes)
{
    llhttp_errno_t result;

    conn->refusal =
        (struct http_refusal){ 400, "a malformed HTTP body", "body", 0, HTTP_REFUSED_GRAMMAR };
    if ((conn->parser.flags & F_CHUNKED) != 0) {
        size_t size = bytes.size;
        if (!h1_chunks_scan(&conn->chunks, bytes, &size)) {
            refuse_body(conn);
            return bytes.size;
        }
        bytes.size = size; /* What follows is the next request's. */
    }
    result = llhttp_execute(&conn->parser, (const char *)bytes.data, bytes.size);
    if (result == HPE_PAUSED) {
        const uint8_t *end = (const uint8_t *)llhttp_get_error_pos(&conn->parser);
        complete(conn);
        return (size_t)(end - bytes.data);
    }
    conn->body_raw_bytes += bytes.size;
    if (result != HPE_OK || conn->body_raw_bytes > raw_bytes_max(conn))
        refuse_body(conn);
    return bytes.size;
}

static bool is_full(const struct http_conn *conn)
{
    const struct http_limits *limits = &conn->server->config.limits;

    return conn->resting || conn->exchange_count >= conn->pipeline + (conn->incoming != NULL) ||
           http_waiting_of(conn) > limits->output_bytes_max;
}

/* What is held back is past a budget. */
static void refuse_input(struct http_conn *conn, struct http_refusal refusal)
{
    struct buf held = conn->in;
    enum http_refused why;

    conn->in = (struct buf){ 0 };
    (void)http_input_charge(conn, &why);
    if (conn->incoming != NULL || conn->discarding)
        refuse_body(conn);
    else
        refuse_unparsed(conn, buf_slice(&held), refusal);
    buf_deinit(&held);
}

static void receive(struct http_conn *conn, struct slice bytes)
{
    const struct http_stats *stats = &conn->server->stats;
    uint64_t begun = stats->requests;
    struct buf held = conn->in;
    enum http_refused why;

    conn->in = (struct buf){ 0 };
    if (held.size > 0) {
        buf_append(&held, bytes.data, bytes.size);
        bytes = buf_slice(&held);
    }
    while (bytes.size > 0 && !conn->refused && !conn->doomed && !is_full(conn)) {
        size_t used = conn->incoming != NULL || conn->discarding ? receive_body(conn, bytes)
                                                                 : receive_head(conn, bytes);
        if (used == 0)
            break;
        bytes = (struct slice){ bytes.data + used, bytes.size - used };
        if (bytes.size > 0 && http_turn_is_over(conn->server, stats->requests - begun))
            http_conn_rest(conn, 0);
    }
    if (!conn->refused && !conn->doomed) {
        buf_append(&conn->in, bytes.data, bytes.size);
        if (is_full(conn))
            http_conn_resume(conn); /* Stops reading at once. */
    }
    buf_deinit(&held);
    if (!http_input_charge(conn, &why) && !conn->refused && !conn->doomed)
        refuse_input(conn, http_refusal_of(conn->server, why));
}

/* The last request that has begun is the last of all, and its answer says so. What came behind it
 * is not begun. */
static void go_away(struct http_conn *conn)
{
    if (conn->first == NULL && conn->in.size == 0) {
        http_conn_close_soon(conn);
        return;
    }
    if (conn->first == NULL || conn->incoming != NULL)
        return; /* One of which a part has come: complete() makes it the last. */
    conn->refused = true;
    conn->last->close = true;
}

static void tick(struct http_conn *conn, uint64_t now_ms)
{
    const struct http_limits *limits = &conn->server->config.limits;
    struct http_exchange *incoming = conn->incoming;

    if (!conn->reading || conn->refused)
        return;
    if (conn->discarding && now_ms >= conn->discard_since_ms + limits->body_timeout_ms) {
        conn->server->stats.timeouts++;
        end_discarded(conn);
    } else if (incoming != NULL && now_ms >= incoming->since_ms + limits->body_timeout_ms) {
        conn->server->stats.timeouts++;
        refuse(conn, incoming, http_refusal_of(conn->server, HTTP_REFUSED_BODY_LATE));
    } else if (conn->head_since_ms != 0 &&
               now_ms >= conn->head_since_ms + limits->header_timeout_ms) {
        conn->server->stats.timeouts++;
        refuse_unparsed(conn, buf_slice(&conn->in),
                        http_refusal_of(conn->server, HTTP_REFUSED_HEAD_LATE));
    } else if (conn->first == NULL && conn->in.size == 0 && !conn->discarding &&
               now_ms >= conn->since_ms + limits->idle_timeout_ms) {
        http_conn_close_soon(conn);
    }
}

/* ---- answering ---- */

static void put_number(struct buf *out, size_t number, unsigned base)
{
    char text[24];
    char *at = text + sizeof text;

    do {
        *--at = "0123456789abcdef"[number % base];
        number /= base;
    } while (number > 0);
    buf_append(out, at, (size_t)(text + sizeof text - at));
}

static const char *reason_of(unsigned status)
{
    switch (status) {
    case 200:
        return "OK";
    case 204:
        return "No Content";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 408:
        return "Request Timeout";
    case 409:
        return "Conflict";
    case 413:
        return "Content Too Large";
    case 415:
        return "Unsupported Media Type";
    case 429:
        return "Too Many Requests";
    case 431:
        return "Request Header Fields Too Large";
    case 500:
        return "Internal Server Error";
    case 501:
        return "Not Implemented";
    case 503:
        return "Service Unavailable";
    case 499:
        return "Client Closed Request";
    case 504:
        return "Gateway Timeout";
    case 505:
        return "HTTP Version Not Supported";
    default:
        return "Status";
    }
}

static void put_head(struct http_exchange *exchange, const struct http_answer *answer,
                     struct buf *out)
{
    buf_put_text(out, "HTTP/1.1 ");
    put_number(out, answer->status, 10);
    buf_put_u8(out, ' ');
    buf_put_text(out, reason_of(answer->status));
    for (size_t i = 0; i < answer->header_count; i++) {
        buf_append(out, "\r\n", 2);
        buf_append(out, answer->headers[i].name.data, answer->headers[i].name.size);
        buf_append(out, ": ", 2);
        buf_append(out, answer->headers[i].value.data, answer->headers[i].value.size);
    }
    buf_put_text(out, "\r\ndate: ");
    buf_put_text(out, http_date(exchange->server));
    if (exchange->close)
        buf_put_text(out, "\r\nconnection: close");
    else if (exchange->old)
        buf_put_text(out, "\r\nconnection: keep-alive");
}

/* Answered exchanges leave in their order; the next one's bytes follow. */
static void advance(struct http_conn *conn)
{
    while (conn->first != NULL && conn->first->ended) {
        struct http_exchange *exchange = conn->first;
        bool last = exchange->close;
        http_exchange_remove(exchange);
        http_exchange_free(exchange);
        if (last) {
            http_conn_close_soon(conn);
            return;
        }
        if (conn->first == NULL)
            return;
        http_waiting_shrank(conn, conn->first->out.size + conn->first->given.size);
        http_out_give(conn, &conn->first->out);
        http_out_give(conn, &conn->first->given);
        buf_clear(&conn->first->given);
        buf_clear(&conn->first->out);
    }
}

/* An answer that shows no overload: twice as many requests may be under way. */
static void widen(struct http_conn *conn, unsigned status)
{
    uint32_t most = conn->server->config.limits.pipeline_max;

    if (status != 429 && status < 500)
        conn->pipeline = conn->pipeline < most / 2 ? 2 * conn->pipeline : most;
}

static void put_body(struct http_exchange *exchange, const struct http_answer *answer)
{
    struct buf *out = target_of(exchange);
    size_t before = out->size;

    if (!http_out_takes(answer)) {
        buf_append(out, answer->body.data, answer->body.size);
        count_added(exchange, out, before);
    } else if (exchange->conn->first == exchange) {
        http_out_give(exchange->conn, answer->given);
    } else {
        exchange->given = *answer->given;
        *answer->given = (struct buf){ 0 };
        http_waiting_grew(exchange->conn, exchange->given.size);
    }
}

static void answer_begin(struct http_exchange *exchange, const struct http_answer *answer,
                         bool whole)
{
    struct http_conn *conn = exchange->conn;
    struct buf *out = target_of(exchange);
    size_t before = out->size;
    bool body = answer->status != 204 && answer->status != 304;

    exchange->chunked = !whole && !exchange->old;
    if (!whole && exchange->old)
        exchange->close = true;
    widen(conn, answer->status);
    put_head(exchange, answer, out);
    if (whole && body) {
        buf_put_text(out, "\r\ncontent-length: ");
        put_number(out, answer->body.size, 10);
    } else if (exchange->chunked) {
        buf_put_text(out, "\r\ntransfer-encoding: chunked");
    }
    buf_put_text(out, "\r\n\r\n");
    if (whole)
        http_head_drop(exchange);
    count_added(exchange, out, before);
    if (whole && body && !exchange->only_head)
        put_body(exchange, answer);
    if (whole)
        advance(conn);
    http_conn_mark_dirty(conn);
}

static void answer_send(struct http_exchange *exchange, struct slice bytes)
{
    struct buf *out = target_of(exchange);
    size_t before = out->size;

    if (bytes.size == 0 || exchange->only_head)
        return;
    if (exchange->chunked) {
        put_number(out, bytes.size, 16);
        buf_append(out, "\r\n", 2);
    }
    buf_append(out, bytes.data, bytes.size);
    if (exchange->chunked)
        buf_append(out, "\r\n", 2);
    count_added(exchange, out, before);
    http_conn_mark_dirty(exchange->conn);
}

static void answer_end(struct http_exchange *exchange, const struct http_field *trailers,
                       size_t trailer_count)
{
    struct http_conn *conn = exchange->conn;
    struct buf *out = target_of(exchange);
    size_t before = out->size;

    (void)trailers;
    (void)trailer_count;
    if (exchange->chunked && !exchange->only_head)
        buf_put_text(out, "0\r\n\r\n");
    count_added(exchange, out, before);
    advance(conn);
    http_conn_mark_dirty(conn);
}

const struct http_protocol h1_protocol = {
    .start = start,
    .receive = receive,
    .is_full = is_full,
    .go_away = go_away,
    .tick = tick,
    .end_body = end_body,
    .answer_begin = answer_begin,
    .answer_send = answer_send,
    .answer_end = answer_end,
};
