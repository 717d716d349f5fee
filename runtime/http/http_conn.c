#include "runtime/http/http_conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/http/http_budget.h"
#include "runtime/http/http_life.h"
#include "runtime/http/http_out.h"
#include "runtime/http/http_turn.h"
#include "runtime/http/http_waiting.h"

#define LINGER_MS           2000u
#define KEPT_BYTES_MAX      1048576u /* Larger output buffers are given back once empty. */
#define KEEPALIVE_S         60u      /* Until TCP asks whether a silent client is still there. */
#define EVICT_IDLE_MS_MIN   1000u    /* None is closed sooner to make room. */
#define STRANGER_READ_BYTES 8192u
#define TURN_READS          4u      /* Of HTTP_READ_BYTES, before others have their turn. */
#define WRITE_BYTES         131072u /* At once, before others have their turn. */

static const char h2_preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
#define H2_PREFACE_SIZE (sizeof h2_preface - 1)

/* ---- closing ---- */

static void forget(struct http_server *server, struct http_conn *conn)
{
    if (conn->previous != NULL)
        conn->previous->next = conn->next;
    else
        server->conns = conn->next;
    if (conn->next != NULL)
        conn->next->previous = conn->previous;
    for (struct http_conn **at = &server->dirty; conn->dirty && *at != NULL;
         at = &(*at)->next_dirty) {
        if (*at == conn) {
            *at = conn->next_dirty;
            break;
        }
    }
    server->stats.connections--;
}

static void on_closed(uv_handle_t *handle)
{
    struct http_conn *conn = handle->data;
    struct http_server *server = conn->server;

    buf_deinit(&conn->in);
    http_out_deinit(conn);
    buf_deinit(&conn->clear);
    buf_deinit(&conn->sending);
    http_budget_close(conn);
    tls_session_free(conn->tls);
    forget(server, conn);
    http_tell_stopped(server);
    free(conn);
}

void http_conn_close(struct http_conn *conn)
{
    if (conn->state == CONN_CLOSED)
        return;
    if (conn->receiving) {
        conn->doomed = true;
        return;
    }
    conn->state = CONN_CLOSED;
    turnstile_leave(conn->server->turnstile, &conn->place);
    loop_timer_stop(&conn->rest);
    http_turn_leave(conn);
    while (conn->first != NULL)
        http_exchange_cancel(conn->first);
    if (conn->protocol != NULL && conn->protocol->stop != NULL)
        conn->protocol->stop(conn);
    http_waiting_forget(conn);
    uv_close((uv_handle_t *)&conn->tcp, on_closed);
}

static void on_shutdown(uv_shutdown_t *shutdown, int status)
{
    (void)shutdown;
    (void)status;
}

static void linger(struct http_conn *conn)
{
    conn->state = CONN_LINGER;
    conn->since_ms = http_now_ms(conn->server);
    if (conn->tls != NULL) {
        tls_session_close(conn->tls);
        struct buf *wire = tls_session_output(conn->tls);
        uv_buf_t bytes = uv_buf_init((char *)wire->data, (unsigned)wire->size);
        (void)uv_try_write((uv_stream_t *)&conn->tcp, &bytes, 1);
        buf_clear(wire); /* Sent, or not needed: it waits for no one. */
        http_waiting_count(conn);
    }
    if (uv_shutdown(&conn->shutdown, (uv_stream_t *)&conn->tcp, on_shutdown) != 0) {
        http_conn_close(conn);
        return;
    }
    http_conn_resume(conn);
}

void http_conn_close_soon(struct http_conn *conn)
{
    conn->close_soon = true;
    http_conn_mark_dirty(conn);
}

/* ---- sending ---- */

void http_conn_mark_dirty(struct http_conn *conn)
{
    struct http_server *server = conn->server;

    if (conn->state == CONN_CLOSED || conn->dirty)
        return;
    conn->dirty = true;
    conn->next_dirty = server->dirty;
    server->dirty = conn;
    loop_hook_arm(&server->flush);
}

static bool close_slow_reader(struct http_conn *conn)
{
    if (!http_waiting_is_slow(conn))
        return false;
    conn->server->stats.slow_readers++;
    http_conn_close(conn);
    return true;
}

/* `left` of what libuv and the turns of TLS have waits still. */
static void took(struct http_conn *conn, size_t left)
{
    CHECK(conn->sending_left >= left);
    http_waiting_drained(conn, conn->sending_left - left);
    conn->sending_left = left;
    conn->taken_ms = http_now_ms(conn->server);
}

static void on_written(uv_write_t *write, int status);

/* Hands libuv the next piece of `sending`. It tells in a later round that it was written. */
static void write_piece(struct http_conn *conn)
{
    size_t left = conn->sending.size - conn->sending_at;
    size_t size = left < WRITE_BYTES ? left : WRITE_BYTES;
    uv_buf_t bytes = uv_buf_init((char *)conn->sending.data + conn->sending_at, (unsigned)size);

    conn->sending_at += size;
    if (uv_write(&conn->write, (uv_stream_t *)&conn->tcp, &bytes, 1, on_written) != 0) {
        conn->writing = false;
        http_conn_close(conn);
    }
}

static void on_written(uv_write_t *write, int status)
{
    struct http_conn *conn = write->data;
    size_t unsent = conn->sending.size - conn->sending_at;

    if (status == 0 && conn->state != CONN_CLOSED && unsent > 0) {
        took(conn, unsent + conn->clear_left);
        conn->since_ms = conn->taken_ms;
        http_waiting_count(conn);
        write_piece(conn);
        /* There may be room again for what HTTP/2 keeps back, and for what the client sends. */
        http_conn_mark_dirty(conn);
        return;
    }
    conn->writing = false;
    took(conn, conn->clear_left);
    conn->sending_at = 0;
    buf_clear(&conn->sending);
    if (conn->sending.capacity > KEPT_BYTES_MAX)
        buf_deinit(&conn->sending);
    if (conn->state == CONN_CLOSED)
        return;
    if (status != 0) {
        http_conn_close(conn);
        return;
    }
    conn->since_ms = http_now_ms(conn->server);
    http_waiting_count(conn);
    http_conn_mark_dirty(conn);
}

/* What goes on the wire: the plain bytes, or their ciphertext. */
static struct buf *wire_of(struct http_conn *conn)
{
    struct buf *out = http_out_first(conn);

    if (conn->tls == NULL)
        return out;
    if (out->size + conn->clear_left > 0 && tls_session_is_established(conn->tls)) {
        if (tls_session_write(conn->tls, http_turn_take(conn)) != ERR_OK)
            http_conn_close(conn);
        http_turn_end(conn);
    }
    return tls_session_output(conn->tls);
}

/* The rest of `wire` goes through libuv's queue, in pieces: the kernel takes megabytes at once, and
 * other connections would wait for that. */
static void write_rest(struct http_conn *conn, struct buf *wire, size_t sent)
{
    struct buf empty = conn->sending;

    CHECK(!conn->writing && empty.size == 0);
    conn->sending = *wire;
    *wire = empty;
    conn->sending_at = sent;
    conn->sending_left = conn->sending.size - sent + conn->clear_left;
    conn->writing = true;
    conn->taken_ms = http_now_ms(conn->server);
    write_piece(conn);
}

static void send_waiting(struct http_conn *conn)
{
    if (conn->writing) /* libuv has one write of it: the next begins when that has ended. */
        return;
    struct buf *wire = wire_of(conn);

    if (conn->state == CONN_CLOSED || wire->size == 0)
        return;
    size_t piece = wire->size < WRITE_BYTES ? wire->size : WRITE_BYTES;
    uv_buf_t bytes = uv_buf_init((char *)wire->data, (unsigned)piece);
    /* While more is to be encrypted (what was answered meanwhile, too), libuv writes: it tells so
     * in the next round. */
    bool more = conn->tls != NULL && conn->clear_left + http_out_bytes(conn) > 0;
    int sent = more ? 0 : uv_try_write((uv_stream_t *)&conn->tcp, &bytes, 1);
    if (sent < 0 && sent != UV_EAGAIN) {
        http_conn_close(conn);
        return;
    }
    size_t size = sent > 0 ? (size_t)sent : 0;
    http_waiting_drained(conn, size);
    conn->server->stats.bytes_sent += wire->size;
    if (size < wire->size) {
        write_rest(conn, wire, size);
        return;
    }
    buf_clear(wire);
    if (wire->capacity > KEPT_BYTES_MAX)
        buf_deinit(wire);
    if (http_out_first(conn)->size > 0)
        http_conn_mark_dirty(conn);
}

static void wake_streams(struct http_conn *conn)
{
    const struct http_handlers *handlers = &conn->server->config.handlers;
    size_t low = conn->server->config.limits.stream_bytes_max / 2;
    struct http_exchange *exchange = conn->first;

    while (exchange != NULL) {
        size_t waiting = exchange->out.size - exchange->out_at;
        if (!http_is_h2(exchange))
            waiting += http_waiting_of(conn);
        if (!exchange->blocked || waiting > low) {
            exchange = exchange->next;
            continue;
        }
        exchange->blocked = false;
        handlers->on_writable(handlers->user, exchange);
        exchange = conn->first; /* It may have ended, and others with it. */
    }
}

static void stop_reading(struct http_conn *conn)
{
    if (conn->reading)
        uv_read_stop((uv_stream_t *)&conn->tcp);
    conn->reading = false;
}

void http_conn_flush(struct http_conn *conn)
{
    if (conn->state == CONN_CLOSED || conn->state == CONN_LINGER)
        return;
    if (conn->state == CONN_OPEN && conn->protocol->fill != NULL) {
        conn->receiving = true;
        conn->protocol->fill(conn);
        conn->receiving = false;
        if (conn->doomed)
            http_conn_close(conn);
    }
    if (conn->state == CONN_CLOSED)
        return;
    if (!conn->writing)
        send_waiting(conn);
    if (conn->state == CONN_CLOSED)
        return;
    http_waiting_count(conn);
    if (close_slow_reader(conn))
        return;
    if (conn->writing) {
        if (conn->known)
            http_conn_resume(conn);
        else /* A stranger is not read before it has read. */
            stop_reading(conn);
        return;
    }
    wake_streams(conn);
    if (conn->close_soon && !conn->writing && http_waiting_of(conn) == 0) {
        linger(conn);
        return;
    }
    http_conn_resume(conn);
}

/* ---- receiving ---- */

static void detect(struct http_conn *conn, struct slice bytes)
{
    const char *alpn = conn->tls != NULL ? tls_session_alpn(conn->tls) : "";
    struct buf held;
    size_t size;

    buf_append(&conn->in, bytes.data, bytes.size);
    size = conn->in.size < H2_PREFACE_SIZE ? conn->in.size : H2_PREFACE_SIZE;
    bool preface = memcmp(conn->in.data, h2_preface, size) == 0;
    if (preface && size < H2_PREFACE_SIZE)
        return;
    held = conn->in;
    conn->in = (struct buf){ 0 };
    conn->state = CONN_OPEN;
    conn->protocol = preface || strcmp(alpn, "h2") == 0 ? conn->server->h2 : conn->server->h1;
    if (conn->protocol->start(conn) == ERR_OK)
        conn->protocol->receive(conn, buf_slice(&held));
    else
        http_conn_close(conn);
    buf_deinit(&held);
}

static void receive_plain(struct http_conn *conn, struct slice bytes)
{
    switch (conn->state) {
    case CONN_DETECT:
        detect(conn, bytes);
        break;
    case CONN_OPEN:
        conn->protocol->receive(conn, bytes);
        break;
    case CONN_LINGER:
    case CONN_CLOSED:
        break;
    }
}

/* A TLS record never begins with a letter, a request in plain HTTP always does. A caller that
 * forgot the "s" of https is told so in plain HTTP; a TLS error would not say it. */
static bool turn_away_plain(struct http_conn *conn, struct slice bytes)
{
    static const char answer[] =
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 51\r\n"
        "Connection: close\r\n\r\nthis port speaks TLS: call it with https, not http\n";

    if (conn->in.size > 0 || bytes.data[0] < 'A' || bytes.data[0] > 'Z')
        return false;
    conn->server->stats.bad_messages++;
    conn->greeting = false;
    conn->turned_away = true;
    buf_append(http_out_end(conn), answer, sizeof answer - 1);
    http_conn_close_soon(conn);
    return true;
}

/* Handshakes are charged to their share of the loop's time. */
static err read_tls(struct http_conn *conn, size_t *ret_size)
{
    struct http_server *server = conn->server;
    bool shaking = !tls_session_is_established(conn->tls);
    uint64_t begun_us = shaking ? loop_clock_ns() / 1000 : 0;
    err e = tls_session_read(conn->tls, server->plain_bytes, sizeof server->plain_bytes, ret_size);

    if (!shaking)
        return e;
    uint64_t now_us = loop_clock_ns() / 1000;
    turnstile_spend(server->turnstile, now_us - begun_us, now_us);
    if (tls_session_is_established(conn->tls))
        turnstile_completed(server->turnstile, tls_session_is_resumed(conn->tls));
    return e;
}

static void receive_tls(struct http_conn *conn, struct slice bytes)
{
    struct http_server *server = conn->server;
    size_t size = 0;
    err e = tls_session_feed(conn->tls, bytes);

    while (e == ERR_OK && !conn->doomed) {
        e = read_tls(conn, &size);
        if (e == ERR_OK)
            receive_plain(conn, (struct slice){ server->plain_bytes, size });
    }
    http_conn_mark_dirty(conn);
    if (e == ERR_OK || e == ERR_NEED)
        return;
    if (e != ERR_CLOSED)
        send_waiting(conn); /* The alert. */
    conn->doomed = true;
}

/* ---- the first record under TLS ---- */

static void count_refused(struct http_conn *conn, enum turnstile_cause cause, const char *why)
{
    struct http_server *server = conn->server;
    struct address address;

    (void)address_parse(conn->peer, &address);
    refused_log_add(&server->refused, cause, &address, why, http_now_ms(server));
}

/* Puts out what has left the turnstile already. */
static void put_out(struct turnstile_place *place, enum turnstile_cause cause)
{
    struct http_conn *conn = CONTAINER_OF(place, struct http_conn, place);

    conn->server->stats.evicted++;
    count_refused(conn, cause, "");
    http_conn_close(conn);
}

/* A session costs 40 KiB and a handshake a millisecond: neither is begun for less than a whole
 * record, nor before its turn. */
static void greet(struct http_conn *conn, struct slice bytes)
{
    struct turnstile_place *dropped;

    if (turn_away_plain(conn, bytes))
        return;
    buf_append(&conn->in, bytes.data, bytes.size);
    enum tls_start start = tls_start_of(buf_slice(&conn->in));
    if (start == TLS_START_BAD) {
        turnstile_count(conn->server->turnstile, TURNSTILE_BAD_START);
        count_refused(conn, TURNSTILE_BAD_START, "the first bytes are no TLS handshake");
        conn->doomed = true;
        return;
    }
    if (start == TLS_START_PART || conn->place.waiting)
        return;
    turnstile_wait(conn->server->turnstile, &conn->place, &dropped);
    handshakes_arm(&conn->server->handshakes);
    if (dropped != NULL)
        put_out(dropped, TURNSTILE_HANDSHAKES);
}

void http_conn_shake(void *user, struct turnstile_place *place)
{
    struct http_conn *conn = CONTAINER_OF(place, struct http_conn, place);
    struct http_server *server = user;
    struct buf first = conn->in;

    conn->in = (struct buf){ 0 };
    conn->greeting = false;
    turnstile_touch(server->turnstile, place);
    if (tls_session_new(server->config.tls, &conn->tls) == ERR_OK) {
        conn->receiving = true;
        receive_tls(conn, buf_slice(&first));
        conn->receiving = false;
    } else {
        conn->doomed = true;
    }
    buf_deinit(&first);
    if (conn->doomed)
        http_conn_close(conn);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_bytes)
{
    struct http_conn *conn = handle->data;

    (void)suggested;
    *ret_bytes = uv_buf_init((char *)conn->server->read_bytes,
                             conn->known ? HTTP_READ_BYTES : STRANGER_READ_BYTES);
}

static void take_in(struct http_conn *conn, struct slice bytes)
{
    conn->receiving = true;
    if (conn->greeting)
        greet(conn, bytes);
    else if (conn->tls != NULL)
        receive_tls(conn, bytes);
    else
        receive_plain(conn, bytes);
    conn->receiving = false;
    if (conn->doomed)
        http_conn_close(conn);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *bytes)
{
    struct http_conn *conn = stream->data;

    if (size == 0 || conn->state == CONN_CLOSED)
        return;
    if (size < 0) {
        http_conn_close(conn);
        return;
    }
    conn->server->stats.bytes_received += (uint64_t)size;
    if (conn->state != CONN_LINGER && !conn->turned_away)
        take_in(conn, (struct slice){ (const uint8_t *)bytes->base, (size_t)size });
    /* libuv reads on at once while its buffer is filled, up to 32 times. */
    conn->full_reads = (size_t)size == bytes->len ? conn->full_reads + 1 : 0;
    if (conn->full_reads < (conn->known ? TURN_READS : 1))
        return;
    conn->full_reads = 0;
    http_conn_rest(conn, 0);
}

/* Input is held back while too many requests or answers wait. */
static bool is_full(const struct http_conn *conn)
{
    if (conn->state == CONN_OPEN)
        return conn->protocol->is_full(conn);
    return http_waiting_of(conn) > conn->server->config.limits.output_bytes_max;
}

void http_conn_resume(struct http_conn *conn)
{
    if (conn->resting || (conn->state != CONN_LINGER && is_full(conn))) {
        stop_reading(conn);
        return;
    }
    if (conn->reading)
        return;
    conn->reading = true;
    if (uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read) != 0) {
        http_conn_close(conn);
        return;
    }
    if (conn->state != CONN_OPEN || conn->in.size == 0)
        return;
    conn->receiving = true;
    conn->protocol->receive(conn, (struct slice){ 0 });
    conn->receiving = false;
    if (conn->doomed)
        http_conn_close(conn);
}

static void on_rested(void *user)
{
    http_turn_wait(user);
}

void http_conn_go_on(struct http_conn *conn)
{
    conn->resting = false;
    if (conn->state == CONN_LINGER)
        http_conn_resume(conn);
    else
        http_conn_flush(conn); /* Strangers are not read before they have read. */
}

void http_conn_rest(struct http_conn *conn, uint32_t rest_ms)
{
    if (conn->state == CONN_CLOSED || (conn->resting && rest_ms == 0))
        return;
    conn->resting = true;
    if (rest_ms == 0) {
        http_turn_wait(conn);
    } else {
        http_turn_leave(conn);
        loop_timer_start(&conn->rest, rest_ms);
    }
    stop_reading(conn);
}

void http_exchange_full(const struct http_exchange *exchange, uint32_t retry_after_ms)
{
    bool is_long = retry_after_ms > HTTP_FULL_REST_MS_MAX;

    if (exchange->conn != NULL && !http_is_h2(exchange))
        http_conn_rest(exchange->conn, is_long ? HTTP_FULL_REST_MS_MAX : retry_after_ms);
}

void http_exchange_lacks_room(const struct http_exchange *exchange, uint32_t retry_after_ms)
{
    struct http_conn *conn = exchange->conn;

    if (conn == NULL || http_is_h2(exchange))
        return;
    conn->pipeline = 1;
    if (conn->exchange_count > 1 || conn->in.size > 0)
        http_exchange_full(exchange, retry_after_ms);
}

/* ---- accepting, time ---- */

static struct http_conn *conn_new(struct http_server *server)
{
    struct http_conn *conn = mem_zalloc(sizeof *conn);

    CHECK(uv_tcp_init(loop_uv(server->config.loop), &conn->tcp) == 0);
    conn->server = server;
    conn->tcp.data = conn;
    conn->write.data = conn;
    loop_timer_init(&conn->rest, server->config.loop, on_rested, conn);
    conn->since_ms = http_now_ms(server);
    conn->next = server->conns;
    if (conn->next != NULL)
        conn->next->previous = conn;
    server->conns = conn;
    server->stats.connections++;
    return conn;
}

/* No request, no part of one, nothing to send. */
static bool is_idle(const struct http_conn *conn)
{
    return conn->state <= CONN_OPEN && conn->first == NULL && conn->in.size == 0 &&
           !conn->writing && http_waiting_of(conn) == 0;
}

/* For turnstile_visit: the one that is idle for longest, unless that is not long at all. */
static struct turnstile_place *find_idle(void *user, const struct turnstile_address *address)
{
    struct http_server *server = user;
    struct http_conn *oldest = NULL;

    for (struct http_conn *conn = server->conns; conn != NULL; conn = conn->next) {
        if (conn->place.state == TURNSTILE_PROVEN && is_idle(conn) &&
            (address == NULL || conn->place.address == address) &&
            (oldest == NULL || conn->since_ms <= oldest->since_ms))
            oldest = conn;
    }
    if (oldest == NULL || http_now_ms(server) < oldest->since_ms + EVICT_IDLE_MS_MIN)
        return NULL;
    return &oldest->place;
}

static bool conn_enter(struct http_conn *conn)
{
    struct http_server *server = conn->server;
    struct turnstile_visit visit = { .now_ms = http_now_ms(server),
                                     .idle = find_idle,
                                     .user = server };
    struct turnstile_place *victim;
    enum turnstile_cause cause;

    (void)address_parse(conn->peer, &visit.address);
    if (!turnstile_enter(server->turnstile, &conn->place, &visit, &victim, &cause)) {
        count_refused(conn, cause, "no connection may go for it");
        return false;
    }
    if (victim != NULL)
        put_out(victim, cause);
    return true;
}

static void conn_begin(struct http_conn *conn, bool connected)
{
    struct http_server *server = conn->server;

    if (connected)
        http_peer_print(&conn->tcp, conn->peer);
    if (!connected || server->draining || !conn_enter(conn)) {
        server->stats.connections_refused++;
        http_conn_close(conn);
        return;
    }
    server->stats.connections_accepted++;
    uv_tcp_nodelay(&conn->tcp, 1);
    uv_tcp_keepalive(&conn->tcp, 1, KEEPALIVE_S);
    conn->greeting = server->config.tls != NULL;
    http_budget_open(conn);
    http_conn_resume(conn);
}

void http_exchange_prove(const struct http_exchange *exchange)
{
    struct http_conn *conn = exchange->conn;

    if (conn == NULL)
        return;
    turnstile_prove(conn->server->turnstile, &conn->place, http_now_ms(conn->server));
    http_waiting_prove(conn);
}

void http_conn_accept(struct http_server *server)
{
    struct http_conn *conn = conn_new(server);

    conn_begin(conn, uv_accept((uv_stream_t *)&server->listener, (uv_stream_t *)&conn->tcp) == 0);
}

void http_conn_adopt(struct http_server *server, int fd)
{
    struct http_conn *conn = conn_new(server);

    conn_begin(conn, uv_tcp_open(&conn->tcp, fd) == 0);
}

static bool is_late(uint64_t since_ms, uint32_t timeout_ms, uint64_t now_ms)
{
    return now_ms >= since_ms + timeout_ms;
}

/* A client that does not read: true when it was closed for it. What the server adds meanwhile, and
 * what the client sends, does not put that off. */
static bool tick_writing(struct http_conn *conn, uint64_t now_ms)
{
    size_t left = uv_stream_get_write_queue_size((uv_stream_t *)&conn->tcp) + conn->sending.size -
                  conn->sending_at + conn->clear_left;

    if (left < conn->sending_left) {
        http_waiting_drained(conn, conn->sending_left - left);
        conn->sending_left = left;
        conn->taken_ms = now_ms;
    }
    if (!is_late(conn->taken_ms, conn->server->config.limits.write_timeout_ms, now_ms))
        return false;
    conn->server->stats.timeouts++;
    http_conn_close(conn);
    return true;
}

/* Nothing yet, half a preface, or half a TLS handshake. */
static void tick_detect(struct http_conn *conn, uint64_t now_ms)
{
    const struct http_limits *limits = &conn->server->config.limits;
    bool idle = conn->in.size == 0 && !conn->greeting &&
                (conn->tls == NULL || tls_session_is_established(conn->tls));

    if (!is_late(conn->since_ms, idle ? limits->idle_timeout_ms : limits->header_timeout_ms,
                 now_ms))
        return;
    conn->server->stats.timeouts++;
    if (conn->place.state == TURNSTILE_UNPROVEN) {
        turnstile_count(conn->server->turnstile, TURNSTILE_TIMEOUT);
        count_refused(conn, TURNSTILE_TIMEOUT, "no whole handshake or request came");
    }
    http_conn_close(conn);
}

void http_conn_tick(struct http_conn *conn, uint64_t now_ms)
{
    if (conn->state == CONN_CLOSED || (conn->writing && tick_writing(conn, now_ms)) ||
        close_slow_reader(conn))
        return;
    switch (conn->state) {
    case CONN_DETECT:
        tick_detect(conn, now_ms);
        break;
    case CONN_OPEN:
        conn->protocol->tick(conn, now_ms);
        break;
    case CONN_LINGER:
        if (is_late(conn->since_ms, LINGER_MS, now_ms))
            http_conn_close(conn);
        break;
    case CONN_CLOSED:
        break;
    }
}
