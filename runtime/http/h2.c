#include "runtime/http/h2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/http/http_budget.h"
#include "runtime/http/http_conn.h"
#include "runtime/http/http_life.h"
#include "runtime/http/http_out.h"
#include "runtime/http/http_turn.h"
#include "runtime/http/http_waiting.h"

#define STREAM_WINDOW     1048576
#define CONNECTION_WINDOW 16777216
#define OUTBOUND_ACKS_MAX 1000u /* Answers to PING and SETTINGS that wait. */
#define RESET_BURST       20u   /* Times stream_resets_per_s, as h2_flood has it. */
#define LATE_MS           3000u /* For the rest of a request that was answered by its head. */
#define ANSWER_FIELDS_MAX 24u
#define PIECE_BYTES       1024u /* Parsed before the requests of a turn are counted again. */
#define QUEUE_MAX         4096u /* Frames within nghttp2: the answers of all streams need fewer. */
#define LATE_BYTES        64u   /* The same, once all together had their part of the round. */
#define BOMB_FACTOR       8u    /* Times header_bytes_max: such a block was not made by mistake. */
#define HEADER_OVERHEAD   32u   /* RFC 9113 section 10.5.1 counts so much for each. */

/* ---- floods ---- */

static struct h2_rates rates_of(const struct http_conn *conn)
{
    const struct http_limits *limits = &conn->server->config.limits;

    return (struct h2_rates){ http_now_ms(conn->server), limits->stream_resets_per_s,
                              limits->control_frames_per_s };
}

static void end_flood(struct http_conn *conn)
{
    if (conn->refused)
        return;
    conn->refused = true;
    conn->server->stats.floods++;
    conn->server->stats.bad_messages++;
    nghttp2_session_terminate_session(conn->session, NGHTTP2_ENHANCE_YOUR_CALM);
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct http_conn *conn = user;
    const struct h2_rates rates = rates_of(conn);

    (void)session;
    if (frame->hd.type == NGHTTP2_DATA)
        h2_flood_sent_data(&conn->flood);
    else if (frame->hd.type == NGHTTP2_RST_STREAM &&
             frame->rst_stream.error_code == NGHTTP2_REFUSED_STREAM &&
             !h2_flood_refused(&conn->flood, &rates))
        end_flood(conn);
    return 0;
}

/* ---- receiving: nghttp2's callbacks ---- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct http_conn *conn = user;
    enum http_refused why;

    conn->block_bytes = 0;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    if (conn->refused || conn->server->draining ||
        conn->stream_bytes > conn->server->config.limits.output_bytes_max) {
        /* A GOAWAY is on its way that leaves it out, or it does not read the answers it has.
         * Nothing was done: it may ask again. */
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                  NGHTTP2_REFUSED_STREAM);
        return 0;
    }
    struct http_exchange *exchange = http_exchange_new(conn);
    exchange->stream_id = frame->hd.stream_id;
    http_exchange_add(exchange);
    if (!http_head_charge(exchange, &why)) {
        http_refusal_count(conn->server, why, conn->peer);
        conn->server->stats.bad_messages++;
        http_exchange_cancel(exchange);
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                  NGHTTP2_REFUSED_STREAM);
        return 0;
    }
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, exchange);
    return 0;
}

/* A slice into the head: until the head is whole, `data` is the offset plus one. */
static struct slice keep(struct http_exchange *exchange, const uint8_t *bytes, size_t size)
{
    size_t offset = exchange->head.size;

    buf_append(&exchange->head, bytes, size);
    return (struct slice){ (const uint8_t *)(uintptr_t)(offset + 1), size };
}

static void settle(const struct http_exchange *exchange, struct slice *slice)
{
    if (slice->data != NULL)
        slice->data = exchange->head.data + ((uintptr_t)slice->data - 1);
}

static void settle_head(struct http_exchange *exchange)
{
    settle(exchange, &exchange->method);
    settle(exchange, &exchange->host);
    settle(exchange, &exchange->path);
    for (size_t i = 0; i < exchange->header_count; i++) {
        settle(exchange, &exchange->headers[i].name);
        settle(exchange, &exchange->headers[i].value);
    }
    const uint8_t *mark =
        exchange->path.size > 0 ? memchr(exchange->path.data, '?', exchange->path.size) : NULL;
    if (mark != NULL) {
        size_t size = (size_t)(mark - exchange->path.data);
        exchange->query = (struct slice){ mark + 1, exchange->path.size - size - 1 };
        exchange->path.size = size;
    }
    exchange->only_head = slice_equal(exchange->method, SLICE_LITERAL("HEAD"));
    exchange->head_done = true;
    exchange->since_ms = http_now_ms(exchange->server);
}

static bool name_is(const uint8_t *name, size_t size, const char *expected)
{
    return size == strlen(expected) && memcmp(name, expected, size) == 0;
}

/* Its reset is on the way. */
static bool head_is_refused(const struct http_exchange *exchange)
{
    return exchange->head_bytes > exchange->server->config.limits.header_bytes_max;
}

static void keep_field(struct http_exchange *exchange, struct slice name, struct slice value)
{
    if (name_is(name.data, name.size, ":method")) {
        exchange->method = keep(exchange, value.data, value.size);
    } else if (name_is(name.data, name.size, ":authority")) {
        exchange->host = keep(exchange, value.data, value.size);
    } else if (name_is(name.data, name.size, ":path")) {
        exchange->path = keep(exchange, value.data, value.size);
    } else if (name.size > 0 && name.data[0] != ':') {
        struct http_field *field = &exchange->headers[exchange->header_count++];
        field->name = keep(exchange, name.data, name.size);
        field->value = keep(exchange, value.data, value.size);
    }
}

/* Its stream is reset; what comes of the head is not kept. */
static void refuse_head(struct http_exchange *exchange, enum http_refused why)
{
    struct http_conn *conn = exchange->conn;

    exchange->head_bytes = conn->server->config.limits.header_bytes_max + (size_t)1;
    conn->server->stats.bad_messages++;
    http_refusal_count(conn->server, why, conn->peer);
    http_head_drop(exchange);
    nghttp2_submit_rst_stream(conn->session, NGHTTP2_FLAG_NONE, exchange->stream_id,
                              NGHTTP2_ENHANCE_YOUR_CALM);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *user)
{
    struct http_conn *conn = user;
    const struct http_limits *limits = &conn->server->config.limits;
    struct http_exchange *exchange =
        nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    enum http_refused why;

    (void)flags;
    conn->block_bytes += name_size + value_size + HEADER_OVERHEAD;
    if (conn->block_bytes > (size_t)BOMB_FACTOR * limits->header_bytes_max)
        return NGHTTP2_ERR_CALLBACK_FAILURE; /* Decoding the rest would hold up everybody. */
    if (exchange == NULL || exchange->head_done || head_is_refused(exchange)) /* Or a trailer. */
        return 0;
    exchange->head_bytes += name_size + value_size + HEADER_OVERHEAD;
    if (head_is_refused(exchange) || exchange->header_count >= limits->headers_max) {
        refuse_head(exchange,
                    head_is_refused(exchange) ? HTTP_REFUSED_HEAD_SIZE : HTTP_REFUSED_HEAD_COUNT);
        return 0;
    }
    keep_field(exchange, (struct slice){ name, name_size }, (struct slice){ value, value_size });
    if (!http_head_charge(exchange, &why))
        refuse_head(exchange, why);
    return 0;
}

static void refuse(struct http_exchange *exchange, struct http_refusal refusal)
{
    http_exchange_refuse(exchange, &refusal);
}

static void refuse_large(struct http_exchange *exchange)
{
    struct http_refusal refusal = http_refusal_of(exchange->server, HTTP_REFUSED_BODY_SIZE);

    refusal.limit = exchange->body_max_told;
    refuse(exchange, refusal);
}

/* A head is whole, and a body may follow. False: it was answered. */
static bool greet(struct http_exchange *exchange, bool is_last)
{
    if (http_exchange_greet(exchange)) {
        struct slice length = http_header_find(exchange, "content-length");
        uint64_t size = 0;
        for (size_t i = 0; i < length.size && i < 18; i++)
            size = size * 10 + (uint64_t)(length.data[i] - '0'); /* nghttp2 read it before us. */
        if (is_last || http_body_fits(exchange, size))
            return true;
        refuse_large(exchange);
    }
    exchange->late = !is_last; /* Its stream ends soon, whatever still comes. */
    return false;
}

/* A refused body: the client may send the rest, within limits, so that it reads the answer. */
static void discard(struct http_exchange *exchange, size_t size)
{
    size_t limit = exchange->server->config.limits.body_bytes_max;

    if (exchange->discarded_bytes <= limit && exchange->discarded_bytes + size > limit)
        nghttp2_submit_rst_stream(exchange->conn->session, NGHTTP2_FLAG_NONE, exchange->stream_id,
                                  NGHTTP2_ENHANCE_YOUR_CALM);
    exchange->discarded_bytes += size;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
                   size_t size, void *user)
{
    struct http_conn *conn = user;
    struct http_exchange *exchange = nghttp2_session_get_stream_user_data(session, stream_id);
    enum http_refused why;

    (void)flags;
    if (exchange == NULL || !exchange->head_done)
        return 0;
    if (exchange->handed) {
        discard(exchange, size);
        return 0;
    }
    if (!http_body_fits(exchange, exchange->body.size + size))
        refuse_large(exchange);
    else if (!http_body_append(exchange, (struct slice){ data, size }, &why))
        refuse(exchange, http_refusal_of(conn->server, why));
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct http_exchange *exchange;

    (void)user;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    exchange = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (exchange == NULL || exchange->handed)
        return 0;
    bool is_last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (frame->hd.type == NGHTTP2_HEADERS && !exchange->head_done) {
        if (head_is_refused(exchange))
            return 0;
        settle_head(exchange);
        exchange->received = is_last;
        if (!greet(exchange, is_last))
            return 0;
    }
    if (is_last && exchange->head_done)
        http_exchange_hand(exchange);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code,
                           void *user)
{
    struct http_exchange *exchange = nghttp2_session_get_stream_user_data(session, stream_id);
    struct http_conn *conn = user;

    /* Either side's resets: a client can provoke ours too. */
    const struct h2_rates rates = rates_of(conn);
    if (error_code != NGHTTP2_NO_ERROR && !h2_flood_reset(&conn->flood, &rates))
        end_flood(conn);
    if (exchange == NULL)
        return 0;
    nghttp2_session_set_stream_user_data(session, stream_id, NULL);
    http_exchange_cancel(exchange); /* Frees it when it was answered. */
    return 0;
}

/* ---- start, stop ---- */

static void set_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
}

static void set_options(nghttp2_option *option, const struct http_limits *limits)
{
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_outbound_ack(option, OUTBOUND_ACKS_MAX);
    /* on_stream_close counts resets and says ENHANCE_YOUR_CALM; this one would not. */
    nghttp2_option_set_stream_reset_rate_limit(
        option, (uint64_t)2 * RESET_BURST * limits->stream_resets_per_s,
        (uint64_t)2 * limits->stream_resets_per_s);
}

static void go_away(struct http_conn *conn)
{
    if (conn->session == NULL)
        return;
    int32_t last = nghttp2_session_get_last_proc_stream_id(conn->session);

    nghttp2_submit_goaway(conn->session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, NULL, 0);
    http_conn_mark_dirty(conn);
}

static err start(struct http_conn *conn)
{
    const struct http_limits *limits = &conn->server->config.limits;
    nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits->streams_max },
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits->header_bytes_max },
        { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
    };
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    err e = ERR_NO_MEMORY;

    if (nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0) {
        set_callbacks(callbacks);
        set_options(option, limits);
        if (nghttp2_session_server_new2(&conn->session, callbacks, conn, option) == 0 &&
            nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings,
                                    ARRAY_SIZE(settings)) == 0 &&
            nghttp2_session_set_local_window_size(conn->session, NGHTTP2_FLAG_NONE, 0,
                                                  CONNECTION_WINDOW) == 0)
            e = ERR_OK;
    }
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    if (e == ERR_OK && conn->server->draining)
        go_away(conn);
    http_conn_mark_dirty(conn);
    return e;
}

static void stop(struct http_conn *conn)
{
    nghttp2_session_del(conn->session);
    conn->session = NULL;
}

/* The session is broken: what was under way is cancelled, and GOAWAY says why. */
static void fail(struct http_conn *conn, uint32_t code)
{
    int32_t last = nghttp2_session_get_last_proc_stream_id(conn->session);

    conn->server->stats.bad_messages++;
    conn->refused = true;
    while (conn->first != NULL)
        http_exchange_cancel(conn->first);
    stop(conn);
    buf_append(&conn->out, "\0\0\x08\x07\0\0\0\0\0", 9); /* A GOAWAY of 8 bytes, stream 0. */
    buf_put_u32_be(&conn->out, (uint32_t)last);
    buf_put_u32_be(&conn->out, code);
    http_conn_close_soon(conn);
}

static uint32_t code_of(ssize_t error)
{
    switch (error) {
    case NGHTTP2_ERR_FLOODED:
    case NGHTTP2_ERR_TOO_MANY_CONTINUATIONS:
    case NGHTTP2_ERR_CALLBACK_FAILURE: /* Only ours: a header bomb. */
        return NGHTTP2_ENHANCE_YOUR_CALM;
    case NGHTTP2_ERR_BAD_CLIENT_MAGIC:
        return NGHTTP2_PROTOCOL_ERROR;
    default:
        return NGHTTP2_INTERNAL_ERROR;
    }
}

static void receive_piece(struct http_conn *conn, struct slice bytes)
{
    const struct h2_rates rates = rates_of(conn);

    if (!h2_flood_receive(&conn->flood, &rates, bytes))
        end_flood(conn);
    ssize_t used = nghttp2_session_mem_recv(conn->session, bytes.data, bytes.size);
    if (used < 0)
        fail(conn, code_of(used));
}

/* nghttp2 keeps frames of its own, as resets of streams past the limit, until they are filled in.
 */
static bool is_full(const struct http_conn *conn)
{
    return http_waiting_of(conn) >= conn->server->config.limits.output_bytes_max ||
           (conn->session != NULL &&
            nghttp2_session_get_outbound_queue_size(conn->session) > QUEUE_MAX);
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
    while (bytes.size > 0 && conn->session != NULL && !conn->resting && !is_full(conn)) {
        size_t size = http_turn_is_over(conn->server, 1) ? LATE_BYTES : PIECE_BYTES;
        size = bytes.size < size ? bytes.size : size;
        receive_piece(conn, (struct slice){ bytes.data, size });
        bytes = (struct slice){ bytes.data + size, bytes.size - size };
        if (bytes.size > 0 && http_turn_is_over(conn->server, stats->requests - begun))
            http_conn_rest(conn, 0);
    }
    if (conn->session != NULL) {
        buf_append(&conn->in, bytes.data, bytes.size);
        if (is_full(conn))
            http_conn_resume(conn); /* Stops reading at once. */
    }
    buf_deinit(&held);
    (void)http_input_charge(conn, &why); /* One read's bytes at most. */
    http_conn_mark_dirty(conn);
}

static void fill(struct http_conn *conn)
{
    uint32_t limit = conn->server->config.limits.output_bytes_max;
    const uint8_t *frames;

    if (conn->session == NULL)
        return;
    while (http_waiting_of(conn) < limit) {
        ssize_t size = nghttp2_session_mem_send(conn->session, &frames);
        if (size < 0) {
            http_conn_close(conn);
            return;
        }
        if (size == 0)
            break;
        buf_append(&conn->out, frames, (size_t)size);
    }
    if (!nghttp2_session_want_read(conn->session) && !nghttp2_session_want_write(conn->session))
        conn->close_soon = true;
}

/* An answer whose client gives it no window. */
static void tick_unread(struct http_exchange *exchange, uint64_t now_ms)
{
    struct http_server *server = exchange->server;

    if (now_ms < exchange->since_ms + server->config.limits.write_timeout_ms)
        return;
    server->stats.timeouts++;
    exchange->since_ms = now_ms;
    nghttp2_submit_rst_stream(exchange->conn->session, NGHTTP2_FLAG_NONE, exchange->stream_id,
                              NGHTTP2_CANCEL);
    http_conn_mark_dirty(exchange->conn);
}

/* A body that does not come is answered, so that the caller's protocol says why; then its stream
 * ends without an error (RFC 9113 section 8.1). One that was refused before ends with one. */
static void tick_body(struct http_exchange *exchange, uint64_t now_ms)
{
    struct http_server *server = exchange->server;
    bool is_late = now_ms >= exchange->since_ms + server->config.limits.body_timeout_ms;

    if (!is_late && !exchange->late)
        return;
    /* Stock clients take a reset for a failure while they still send what was answered. */
    if (exchange->handed && !exchange->greeted && now_ms < exchange->since_ms + LATE_MS)
        return;
    http_conn_mark_dirty(exchange->conn);
    if (!exchange->late)
        server->stats.timeouts++;
    if (exchange->handed) {
        nghttp2_submit_rst_stream(exchange->conn->session, NGHTTP2_FLAG_NONE, exchange->stream_id,
                                  exchange->late ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL);
        return;
    }
    exchange->late = true;
    refuse(exchange, http_refusal_of(server, HTTP_REFUSED_BODY_LATE));
}

static void end_body(struct http_exchange *exchange, struct http_refusal refusal)
{
    struct http_conn *conn = exchange->conn;

    exchange->late = true;
    refuse(exchange, refusal);
    http_conn_mark_dirty(conn); /* The exchange may be gone. */
}

static void tick(struct http_conn *conn, uint64_t now_ms)
{
    const struct http_limits *limits = &conn->server->config.limits;

    if (conn->session == NULL)
        return;
    if (conn->first == NULL) {
        if (now_ms >= conn->since_ms + limits->idle_timeout_ms) {
            nghttp2_session_terminate_session(conn->session, NGHTTP2_NO_ERROR);
            http_conn_mark_dirty(conn);
        }
        return;
    }
    for (struct http_exchange *exchange = conn->first; exchange != NULL;
         exchange = exchange->next) {
        if (exchange->out.size > exchange->out_at) {
            tick_unread(exchange, now_ms);
            continue;
        }
        if (exchange->received || (exchange->handed && !exchange->ended))
            continue;
        if (!exchange->head_done && now_ms >= exchange->since_ms + limits->header_timeout_ms) {
            conn->server->stats.timeouts++;
            http_conn_close(conn);
            return;
        }
        if (exchange->head_done)
            tick_body(exchange, now_ms);
    }
}

/* ---- answering ---- */

static nghttp2_nv field_of(struct slice name, struct slice value)
{
    return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name.data,
                         .namelen = name.size,
                         .value = (uint8_t *)(uintptr_t)value.data,
                         .valuelen = value.size,
                         .flags = NGHTTP2_NV_FLAG_NONE };
}

static void submit_trailers(nghttp2_session *session, struct http_exchange *exchange)
{
    nghttp2_nv fields[ANSWER_FIELDS_MAX];
    size_t count = 0;
    const char *at = (const char *)exchange->trailers.data;
    const char *end = at + exchange->trailers.size;

    while (at < end && count < ANSWER_FIELDS_MAX) {
        struct slice name = slice_from_text(at);
        struct slice value = slice_from_text(at + name.size + 1);
        fields[count++] = field_of(name, value);
        at += name.size + value.size + 2;
    }
    nghttp2_submit_trailer(session, exchange->stream_id, fields, count);
}

static ssize_t on_answer_bytes(nghttp2_session *session, int32_t stream_id, uint8_t *ret_bytes,
                               size_t size, uint32_t *ret_flags, nghttp2_data_source *source,
                               void *user)
{
    struct http_exchange *exchange = source->ptr;
    size_t left = exchange->out.size - exchange->out_at;

    (void)stream_id;
    (void)user;
    if (left == 0 && !exchange->ended)
        return NGHTTP2_ERR_DEFERRED;
    if (size > left)
        size = left;
    if (size > 0)
        memcpy(ret_bytes, exchange->out.data + exchange->out_at, size);
    exchange->out_at += size;
    exchange->since_ms = http_now_ms(exchange->server);
    http_waiting_shrank(exchange->conn, size);
    if (exchange->out_at == exchange->out.size) {
        buf_clear(&exchange->out);
        exchange->out_at = 0;
        if (exchange->ended) {
            *ret_flags |= NGHTTP2_DATA_FLAG_EOF;
            if (exchange->trailers.size > 0) {
                *ret_flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
                submit_trailers(session, exchange);
            }
        }
    }
    return (ssize_t)size;
}

static void keep_trailers(struct http_exchange *exchange, const struct http_field *trailers,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_append(&exchange->trailers, trailers[i].name.data, trailers[i].name.size);
        buf_put_u8(&exchange->trailers, 0);
        buf_append(&exchange->trailers, trailers[i].value.data, trailers[i].value.size);
        buf_put_u8(&exchange->trailers, 0);
    }
}

static void keep_body(struct http_exchange *exchange, const struct http_answer *answer)
{
    http_waiting_grew(exchange->conn, answer->body.size);
    if (http_out_takes(answer)) {
        buf_deinit(&exchange->out);
        exchange->out = *answer->given;
        *answer->given = (struct buf){ 0 };
    } else {
        buf_append(&exchange->out, answer->body.data, answer->body.size);
    }
}

static void answer_begin(struct http_exchange *exchange, const struct http_answer *answer,
                         bool whole)
{
    struct http_conn *conn = exchange->conn;
    nghttp2_nv fields[ANSWER_FIELDS_MAX];
    nghttp2_data_provider provider = { .source.ptr = exchange, .read_callback = on_answer_bytes };
    char status[12];
    size_t count = 0;

    CHECK(answer->header_count + 2 <= ANSWER_FIELDS_MAX);
    snprintf(status, sizeof status, "%u", answer->status);
    fields[count++] = field_of(SLICE_LITERAL(":status"), slice_from_text(status));
    for (size_t i = 0; i < answer->header_count; i++)
        fields[count++] = field_of(answer->headers[i].name, answer->headers[i].value);
    fields[count++] = field_of(SLICE_LITERAL("date"), slice_from_text(http_date(exchange->server)));
    if (whole) {
        keep_trailers(exchange, answer->trailers, answer->trailer_count);
        if (!exchange->only_head)
            keep_body(exchange, answer);
        exchange->since_ms = http_now_ms(exchange->server);
    }
    bool data = !whole || exchange->out.size > 0 || exchange->trailers.size > 0;
    nghttp2_submit_response(conn->session, exchange->stream_id, fields, count,
                            data ? &provider : NULL);
    if (whole)
        http_head_drop(exchange); /* The session has copied what of it is in the answer. */
    http_conn_mark_dirty(conn);
}

static void answer_send(struct http_exchange *exchange, struct slice bytes)
{
    if (exchange->only_head)
        return;
    if (exchange->out.size == exchange->out_at)
        exchange->since_ms = http_now_ms(exchange->server);
    buf_append(&exchange->out, bytes.data, bytes.size);
    http_waiting_grew(exchange->conn, bytes.size);
    nghttp2_session_resume_data(exchange->conn->session, exchange->stream_id);
    http_conn_mark_dirty(exchange->conn);
}

static void answer_end(struct http_exchange *exchange, const struct http_field *trailers,
                       size_t trailer_count)
{
    keep_trailers(exchange, trailers, trailer_count);
    nghttp2_session_resume_data(exchange->conn->session, exchange->stream_id);
    http_conn_mark_dirty(exchange->conn);
}

const struct http_protocol h2_protocol = {
    .start = start,
    .stop = stop,
    .receive = receive,
    .is_full = is_full,
    .fill = fill,
    .go_away = go_away,
    .tick = tick,
    .end_body = end_body,
    .answer_begin = answer_begin,
    .answer_send = answer_send,
    .answer_end = answer_end,
};
