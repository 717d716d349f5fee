#include "runtime/metrics_http/metrics_http.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llhttp.h>

#include "runtime/base/buf.h"
#include "runtime/base/check.h"
#include "runtime/base/refused_log.h"
#include "runtime/metrics/metrics_turnstile.h"

enum { URL_MAX = 256, READ_SIZE = 2048, BACKLOG = 1024, HANDLES_PER_CONNECTION = 2 };

struct connection {
    struct metrics_http *server;
    uv_tcp_t tcp;
    uv_timer_t timer;
    uint32_t handles_open;
    uv_write_t write;
    llhttp_t parser;
    char read[READ_SIZE];
    size_t head_bytes; /* Of the request that is coming in. */
    char url[URL_MAX + 1];
    size_t url_size;
    bool url_too_long;
    bool has_body;
    bool writing;
    bool close_after; /* The answer being written. */
    struct buf answer;
    struct turnstile_place place;
    char peer[64];
    uint64_t answered_ms; /* The last time. */
    struct connection *next, *previous;
};

struct metrics_http {
    struct metrics_http_options options;
    uv_tcp_t listener;
    uv_timer_t accept_on; /* In the next turn. */
    uint32_t accepts;     /* In this one. */
    uint16_t port;
    llhttp_settings_t settings;
    struct connection *connections;
    struct turnstile *turnstile;
    struct metrics_turnstile figures;
    struct refused_log refused;
    uint32_t handles_open; /* Its own. */
    bool stopping;
};

/* ---- Lifetimes ---- */

static void server_free_if_done(struct metrics_http *server)
{
    if (server->handles_open > 0 || server->connections != NULL)
        return;
    turnstile_free(server->turnstile);
    free(server);
}

static void connection_closed(uv_handle_t *handle)
{
    struct connection *c = handle->data;
    struct metrics_http *server = c->server;

    c->handles_open--;
    if (c->handles_open > 0)
        return;
    if (c->previous != NULL)
        c->previous->next = c->next;
    else
        server->connections = c->next;
    if (c->next != NULL)
        c->next->previous = c->previous;
    buf_deinit(&c->answer);
    free(c);
    server_free_if_done(server);
}

static void connection_close(struct connection *c)
{
    if (uv_is_closing((uv_handle_t *)&c->tcp))
        return;
    turnstile_leave(c->server->turnstile, &c->place);
    uv_close((uv_handle_t *)&c->tcp, connection_closed);
    uv_close((uv_handle_t *)&c->timer, connection_closed);
}

/* ---- Answers ---- */

static void written(uv_write_t *write, int status);

/* Begins the answer; the body, if any, is appended behind and its size filled in by send. */
struct answer {
    int status;
    const char *reason;
    const char *type;
    struct buf body;
};

static void send_answer(struct connection *c, struct answer *answer, bool keep_open)
{
    bool head = c->parser.method == HTTP_HEAD && !c->url_too_long;

    buf_clear(&c->answer);
    buf_printf(&c->answer,
               "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
               "Cache-Control: no-store\r\n%s%s\r\n",
               answer->status, answer->reason, answer->type, answer->body.size,
               answer->status == 405 ? "Allow: GET, HEAD\r\n" : "",
               keep_open ? "" : "Connection: close\r\n");
    if (!head)
        buf_append(&c->answer, answer->body.data, answer->body.size);
    buf_deinit(&answer->body);
    c->writing = true;
    c->close_after = !keep_open;
    uv_read_stop((uv_stream_t *)&c->tcp);
    uv_buf_t out = uv_buf_init((char *)c->answer.data, (unsigned)c->answer.size);
    if (uv_write(&c->write, (uv_stream_t *)&c->tcp, &out, 1, written) != 0)
        connection_close(c);
}

static void send_text(struct connection *c, int status, const char *reason, const char *text,
                      bool keep_open)
{
    struct answer answer = { status, reason, "text/plain; charset=utf-8", { 0 } };

    buf_printf(&answer.body, "%s\n", text);
    send_answer(c, &answer, keep_open);
}

static void answer_metrics(struct connection *c, bool keep_open)
{
    struct answer answer = { 200, "OK", "text/plain; version=0.0.4; charset=utf-8", { 0 } };

    metrics_write(c->server->options.metrics, &answer.body);
    send_answer(c, &answer, keep_open);
}

static void answer_ready(struct connection *c, bool keep_open)
{
    const struct metrics_http_options *options = &c->server->options;
    char reason[128] = "";
    bool ready = options->ready == NULL || options->ready(options->context, reason);

    reason[sizeof reason - 1] = '\0';
    if (ready)
        send_text(c, 200, "OK", reason[0] != '\0' ? reason : "ready", keep_open);
    else
        send_text(c, 503, "Service Unavailable", reason[0] != '\0' ? reason : "not ready",
                  keep_open);
}

static void answer_request(struct connection *c, bool keep_open)
{
    turnstile_prove(c->server->turnstile, &c->place, uv_now(c->server->options.loop));
    c->url[c->url_size] = '\0';
    c->url[strcspn(c->url, "?")] = '\0';
    if (c->url_too_long)
        send_text(c, 414, "URI Too Long", "path longer than 256 bytes", false);
    else if (c->has_body)
        send_text(c, 413, "Content Too Large", "no bodies here", false);
    else if (c->parser.method != HTTP_GET && c->parser.method != HTTP_HEAD)
        send_text(c, 405, "Method Not Allowed", "GET or HEAD", false);
    else if (strcmp(c->url, "/metrics") == 0)
        answer_metrics(c, keep_open);
    else if (strcmp(c->url, "/healthz") == 0)
        send_text(c, 200, "OK", "ok", keep_open);
    else if (strcmp(c->url, "/readyz") == 0)
        answer_ready(c, keep_open);
    else
        send_text(c, 404, "Not Found", "try /metrics, /healthz, /readyz", keep_open);
}

/* ---- The parser's callbacks ---- */

static int on_begin(llhttp_t *parser)
{
    struct connection *c = parser->data;

    c->url_size = 0;
    c->url_too_long = false;
    c->has_body = false;
    return 0;
}

static int on_url(llhttp_t *parser, const char *at, size_t size)
{
    struct connection *c = parser->data;

    if (size > URL_MAX - c->url_size) {
        c->url_too_long = true;
        return 0;
    }
    memcpy(c->url + c->url_size, at, size);
    c->url_size += size;
    return 0;
}

static int on_head(llhttp_t *parser)
{
    struct connection *c = parser->data;

    c->has_body = parser->content_length > 0 || (parser->flags & F_CHUNKED) != 0;
    return c->has_body ? HPE_PAUSED : 0;
}

static int on_complete(llhttp_t *parser)
{
    (void)parser;
    return HPE_PAUSED; /* One request at a time. */
}

/* ---- Input ---- */

static void count_refused(struct connection *c, enum turnstile_cause cause, const char *why)
{
    struct metrics_http *server = c->server;
    struct address address;

    (void)address_parse(c->peer, &address);
    refused_log_add(&server->refused, cause, &address, why, uv_now(server->options.loop));
}

static void timed_out(uv_timer_t *timer)
{
    struct connection *c = timer->data;

    if (c->place.state == TURNSTILE_UNPROVEN) {
        turnstile_count(c->server->turnstile, TURNSTILE_TIMEOUT);
        count_refused(c, TURNSTILE_TIMEOUT, "no whole request came");
    }
    if (c->head_bytes > 0 && !c->writing) {
        uv_timer_start(&c->timer, timed_out, METRICS_HTTP_TIMEOUT_MS, 0);
        send_text(c, 408, "Request Timeout", "the head took too long", false);
    } else {
        connection_close(c);
    }
}

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_room)
{
    struct connection *c = handle->data;
    (void)suggested;

    *ret_room = uv_buf_init(c->read, sizeof c->read);
}

static void take_bytes(struct connection *c, size_t size)
{
    c->head_bytes += size;
    llhttp_errno_t e = llhttp_execute(&c->parser, c->read, size);

    if (e == HPE_PAUSED) {
        /* Pipelined requests are not worth serving here: answer the first and close. */
        const char *end = llhttp_get_error_pos(&c->parser);
        bool more = end != NULL && end < c->read + size;
        answer_request(c, !more && llhttp_should_keep_alive(&c->parser));
    } else if (e != HPE_OK) {
        c->url_too_long = false;
        send_text(c, 400, "Bad Request", llhttp_errno_name(e), false);
    } else if (c->head_bytes > METRICS_HTTP_HEAD_MAX) {
        send_text(c, 431, "Request Header Fields Too Large", "head longer than 8192 bytes", false);
    }
}

static void has_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *room)
{
    struct connection *c = stream->data;
    (void)room;

    if (size < 0)
        connection_close(c);
    else if (size > 0)
        take_bytes(c, (size_t)size);
}

static void written(uv_write_t *write, int status)
{
    struct connection *c = CONTAINER_OF(write, struct connection, write);

    c->writing = false;
    if (uv_is_closing((uv_handle_t *)&c->tcp))
        return;
    if (status != 0 || c->close_after || c->server->stopping) {
        connection_close(c);
        return;
    }
    c->head_bytes = 0;
    c->answered_ms = uv_now(c->server->options.loop);
    llhttp_reset(&c->parser);
    uv_timer_start(&c->timer, timed_out, METRICS_HTTP_TIMEOUT_MS, 0);
    if (uv_read_start((uv_stream_t *)&c->tcp, give_room, has_read) != 0)
        connection_close(c);
}

static struct connection *connection_new(struct metrics_http *server)
{
    struct connection *c = mem_zalloc(sizeof *c);

    c->server = server;
    CHECK(uv_tcp_init(server->options.loop, &c->tcp) == 0);
    CHECK(uv_timer_init(server->options.loop, &c->timer) == 0);
    c->tcp.data = c;
    c->timer.data = c;
    c->handles_open = HANDLES_PER_CONNECTION;
    llhttp_init(&c->parser, HTTP_REQUEST, &server->settings);
    c->parser.data = c;
    c->next = server->connections;
    if (c->next != NULL)
        c->next->previous = c;
    server->connections = c;
    return c;
}

static void peer_print(struct connection *c)
{
    struct sockaddr_storage peer;
    int size = sizeof peer;

    (void)snprintf(c->peer, sizeof c->peer, "?");
    if (uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&peer, &size) == 0)
        (void)uv_ip_name((struct sockaddr *)&peer, c->peer, sizeof c->peer);
}

/* For turnstile_visit. */
static struct turnstile_place *find_idle(void *user, const struct turnstile_address *address)
{
    struct metrics_http *server = user;
    struct connection *oldest = NULL;

    for (struct connection *c = server->connections; c != NULL; c = c->next) {
        if (c->place.state == TURNSTILE_PROVEN && !c->writing && c->head_bytes == 0 &&
            (address == NULL || c->place.address == address) &&
            (oldest == NULL || c->answered_ms < oldest->answered_ms))
            oldest = c;
    }
    if (oldest == NULL ||
        uv_now(server->options.loop) < oldest->answered_ms + METRICS_HTTP_IDLE_MS_MIN)
        return NULL;
    return &oldest->place;
}

static bool enter(struct connection *c)
{
    struct metrics_http *server = c->server;
    struct turnstile_visit visit = { .now_ms = uv_now(server->options.loop),
                                     .idle = find_idle,
                                     .user = server };
    struct turnstile_place *victim;
    enum turnstile_cause cause;

    peer_print(c);
    (void)address_parse(c->peer, &visit.address);
    bool entered = turnstile_enter(server->turnstile, &c->place, &visit, &victim, &cause);
    if (!entered || victim != NULL)
        count_refused(c, cause, entered ? "others came" : "no connection may go for it");
    if (entered && victim != NULL)
        connection_close(CONTAINER_OF(victim, struct connection, place));
    return entered;
}

static void accept_one(struct metrics_http *server)
{
    struct connection *c = connection_new(server);

    if (uv_accept((uv_stream_t *)&server->listener, (uv_stream_t *)&c->tcp) != 0 || !enter(c) ||
        uv_read_start((uv_stream_t *)&c->tcp, give_room, has_read) != 0) {
        connection_close(c);
        return;
    }
    uv_timer_start(&c->timer, timed_out, METRICS_HTTP_HEAD_TIMEOUT_MS, 0);
}

static void accept_on(uv_timer_t *timer)
{
    struct metrics_http *server = timer->data;

    server->accepts = 0;
    accept_one(server);
}

/* libuv holds one that is not taken, and no others come until it is. */
static void has_client(uv_stream_t *listener, int status)
{
    struct metrics_http *server = listener->data;

    if (status != 0)
        return;
    if (server->accepts++ < TURNSTILE_ACCEPTS_MAX)
        accept_one(server);
    else
        uv_timer_start(&server->accept_on, accept_on, 0, 0);
}

/* ---- Public ---- */

static err sockaddr_parse(const char *host, uint16_t port, struct sockaddr_storage *ret_address)
{
    if (uv_ip4_addr(host, port, (struct sockaddr_in *)ret_address) == 0)
        return ERR_OK;
    if (uv_ip6_addr(host, port, (struct sockaddr_in6 *)ret_address) == 0)
        return ERR_OK;
    return ERR_INVALID;
}

static void own_closed(uv_handle_t *handle)
{
    struct metrics_http *server = handle->data;

    server->handles_open--;
    server_free_if_done(server);
}

static const struct turnstile_stats *read_turnstile(void *user)
{
    const struct metrics_http *server = user;

    return turnstile_stats(server->turnstile);
}

static void turnstile_start(struct metrics_http *server)
{
    uint32_t max = server->options.connections_max;

    if (max == 0)
        max = METRICS_HTTP_CONNECTIONS_MAX;
    server->turnstile = turnstile_new(&(struct turnstile_limits){
        .places_max = max,
        .address_max = max / METRICS_HTTP_ADDRESS_PART,
        .reserved = max / 8,
        .seed = uv_hrtime(),
    });
    server->refused = (struct refused_log){ .log = server->options.log, .port = "metrics" };
    server->figures = (struct metrics_turnstile){ .read = read_turnstile, .user = server };
}

static void close_own(struct metrics_http *server)
{
    uv_close((uv_handle_t *)&server->listener, own_closed);
    uv_close((uv_handle_t *)&server->accept_on, own_closed);
}

static err server_listen(struct metrics_http *server, const struct sockaddr_storage *address)
{
    struct sockaddr_storage bound;
    int size = sizeof bound;

    int code = uv_tcp_bind(&server->listener, (const struct sockaddr *)address, 0);
    if (code == 0)
        code = uv_listen((uv_stream_t *)&server->listener, BACKLOG, has_client);
    if (code == 0)
        code = uv_tcp_getsockname(&server->listener, (struct sockaddr *)&bound, &size);
    if (code != 0)
        return code == UV_EADDRINUSE ? ERR_CONFLICT : ERR_IO;
    if (bound.ss_family == AF_INET6)
        server->port = ntohs(((struct sockaddr_in6 *)&bound)->sin6_port);
    else
        server->port = ntohs(((struct sockaddr_in *)&bound)->sin_port);
    return ERR_OK;
}

err metrics_http_start(const struct metrics_http_options *options, struct metrics_http **ret_server)
{
    struct sockaddr_storage address = { 0 };

    err e = sockaddr_parse(options->host, options->port, &address);
    if (e != ERR_OK)
        return e;
    struct metrics_http *server = mem_zalloc(sizeof *server);
    server->options = *options;
    llhttp_settings_init(&server->settings);
    server->settings.on_message_begin = on_begin;
    server->settings.on_url = on_url;
    server->settings.on_headers_complete = on_head;
    server->settings.on_message_complete = on_complete;
    CHECK(uv_tcp_init(options->loop, &server->listener) == 0);
    CHECK(uv_timer_init(options->loop, &server->accept_on) == 0);
    server->handles_open = 2;
    server->listener.data = server;
    server->accept_on.data = server;
    turnstile_start(server);
    e = server_listen(server, &address);
    if (e != ERR_OK) {
        close_own(server);
        return e;
    }
    if (options->metrics != NULL)
        metrics_turnstile_register(&server->figures, options->metrics, "metrics", false);
    *ret_server = server;
    return ERR_OK;
}

const char *metrics_http_why(err e)
{
    return e == ERR_CONFLICT ? "another process listens there" : err_text(e);
}

uint16_t metrics_http_port(const struct metrics_http *server)
{
    return server->port;
}

void metrics_http_stop(struct metrics_http *server)
{
    server->stopping = true;
    for (struct connection *c = server->connections; c != NULL; c = c->next)
        connection_close(c);
    close_own(server);
}
