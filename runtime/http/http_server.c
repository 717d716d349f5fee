#include "runtime/http/http_server.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "runtime/http/h1.h"
#include "runtime/http/h2.h"
#include "runtime/http/http_budget.h"
#include "runtime/http/http_conn.h"
#include "runtime/http/http_life.h"
#include "runtime/http/http_turn.h"
#include "runtime/http/http_waiting.h"

#define LISTEN_BACKLOG          1024
#define TICKS_PER_TIMEOUT       4u
#define TICK_MS_MAX             1000u
#define ADDRESS_PART            4u /* Of connections_max, for one address. */
#define RESERVED_PART           8u /* Of connections_max, for addresses that proved themselves. */
#define ADDRESS_CONNECTIONS_MIN 16u

/* ---- limits ---- */

static void limits_complete(struct http_limits *limits)
{
#define LIMIT_DEFAULT(name, default_value, meaning)                                                \
    if (limits->name == 0)                                                                         \
        limits->name = (default_value);
    HTTP_LIMITS(LIMIT_DEFAULT)
#undef LIMIT_DEFAULT
    CHECK(limits->headers_max <= HTTP_HEADERS_MAX);
    if (limits->address_connections_max == 0)
        limits->address_connections_max = limits->connections_max / ADDRESS_PART;
    if (limits->address_connections_max < ADDRESS_CONNECTIONS_MIN)
        limits->address_connections_max = ADDRESS_CONNECTIONS_MIN;
}

static void turnstile_start(struct http_server *server)
{
    const struct http_limits *limits = &server->config.limits;
    struct turnstile_limits turnstile = {
        .places_max = limits->connections_max,
        .address_max = limits->address_connections_max,
        .reserved = limits->connections_max / RESERVED_PART,
        .handshakes_per_s = limits->handshakes_per_s,
        .handshakes_address_per_s = limits->handshakes_address_per_s,
        .handshake_percent = limits->handshake_percent,
        .seed = loop_clock_ns(),
    };

    if (server->config.proxies != NULL)
        turnstile.proxies = *server->config.proxies;
    server->config.proxies = NULL;
    server->turnstile = turnstile_new(&turnstile);
    server->refused = (struct refused_log){ .log = server->config.log, .port = "public" };
    server->handshakes = (struct handshakes){ .loop = server->config.loop,
                                              .turnstile = server->turnstile,
                                              .begin = http_conn_shake,
                                              .user = server };
    handshakes_start(&server->handshakes);
}

static uint32_t tick_ms(const struct http_limits *limits)
{
    uint32_t shortest = limits->header_timeout_ms;

    if (limits->body_timeout_ms < shortest)
        shortest = limits->body_timeout_ms;
    if (limits->idle_timeout_ms < shortest)
        shortest = limits->idle_timeout_ms;
    if (limits->write_timeout_ms < shortest)
        shortest = limits->write_timeout_ms;
    shortest /= TICKS_PER_TIMEOUT;
    return shortest > TICK_MS_MAX ? TICK_MS_MAX : shortest + 1;
}

/* ---- the loop's turns ---- */

static void on_tick(void *user)
{
    struct http_server *server = user;
    uint64_t now_ms = http_now_ms(server);
    struct http_conn *next;

    for (struct http_conn *conn = server->conns; conn != NULL; conn = next) {
        next = conn->next;
        http_conn_tick(conn, now_ms);
    }
    refused_log_tick(&server->refused, now_ms);
    http_budget_tick(server, now_ms);
}

/* Those that rested, once what was answered before has left. One that rests again waits for another
 * round. */
static void go_on(struct http_server *server)
{
    const struct http_conn *last = server->wait_last;
    struct http_conn *conn = NULL;

    server->round_is_due = false;
    while (conn != last && (conn = http_turn_next(server)) != NULL)
        http_conn_go_on(conn);
}

static void on_round(void *user)
{
    struct http_server *server = user;

    server->round_is_due = true;
    loop_hook_arm(&server->flush);
}

static void on_flush(void *user)
{
    struct http_server *server = user;
    struct http_conn *conn = server->dirty;

    server->dirty = NULL;
    http_turn_begin(server);
    while (conn != NULL) {
        struct http_conn *next = conn->next_dirty;
        conn->next_dirty = NULL;
        conn->dirty = false;
        http_conn_flush(conn);
        conn = next;
    }
    if (server->round_is_due)
        go_on(server);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct http_server *server = listener->data;

    if (status != 0)
        return;
    if (server->accepts++ < TURNSTILE_ACCEPTS_MAX) {
        http_conn_accept(server);
        return;
    }
    loop_timer_start(&server->accept_on, 0);
}

static void accept_on(void *user)
{
    struct http_server *server = user;

    server->accepts = 0;
    if (server->listener_open && !uv_is_closing((uv_handle_t *)&server->listener))
        http_conn_accept(server);
}

/* ---- start and stop ---- */

static err sockaddr_parse(const char *text, uint16_t port, struct sockaddr_storage *ret_address)
{
    if (text == NULL)
        return ERR_INVALID;
    if (uv_ip4_addr(text, port, (struct sockaddr_in *)(void *)ret_address) == 0)
        return ERR_OK;
    if (uv_ip6_addr(text, port, (struct sockaddr_in6 *)(void *)ret_address) == 0)
        return ERR_OK;
    return ERR_INVALID;
}

/* With the options libuv does not set. */
static int socket_listen(const struct sockaddr_storage *address, bool reuse_port)
{
    socklen_t size =
        address->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    int on = 1;
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        (reuse_port && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) ||
        bind(fd, (const struct sockaddr *)address, size) != 0 || listen(fd, LISTEN_BACKLOG) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static err listen_on(struct http_server *server, const struct sockaddr_storage *address)
{
    int fd = socket_listen(address, server->config.reuse_port);

    if (fd < 0) {
        if (server->config.log != NULL)
            log_event(server->config.log, LOG_ERROR, "http.listen_failed",
                      LOG_S("address", server->config.address), LOG_N("port", server->config.port),
                      LOG_S("reason", strerror(errno)));
        return ERR_IO;
    }
    /* It listens already, so libuv has nothing left that could fail. */
    CHECK(uv_tcp_init(loop_uv(server->config.loop), &server->listener) == 0);
    CHECK(uv_tcp_open(&server->listener, fd) == 0);
    CHECK(uv_listen((uv_stream_t *)&server->listener, LISTEN_BACKLOG, on_connection) == 0);
    server->listener.data = server;
    server->listener_open = true;
    return ERR_OK;
}

err http_server_init(struct http_server *server, const struct http_server_config *config)
{
    struct sockaddr_storage address = { 0 };
    err e = sockaddr_parse(config->address, config->port, &address);

    if (e != ERR_OK)
        return e;
    memset(server, 0, offsetof(struct http_server, read_bytes));
    server->config = *config;
    server->h1 = &h1_protocol;
    server->h2 = &h2_protocol;
    limits_complete(&server->config.limits);
    e = listen_on(server, &address);
    if (e != ERR_OK)
        return e;
    if (server->config.tls != NULL)
        tls_config_hold(server->config.tls);
    turnstile_start(server);
    loop_hook_init(&server->flush, config->loop, on_flush, server);
    loop_timer_init(&server->tick, config->loop, on_tick, server);
    loop_timer_init(&server->next_round, config->loop, on_round, server);
    loop_timer_init(&server->accept_on, config->loop, accept_on, server);
    loop_timer_start_repeating(&server->tick, tick_ms(&server->config.limits));
    return ERR_OK;
}

uint16_t http_server_port(const struct http_server *server)
{
    struct sockaddr_storage address = { 0 };
    int size = sizeof address;

    if (uv_tcp_getsockname(&server->listener, (struct sockaddr *)&address, &size) != 0)
        return 0;
    if (address.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)(void *)&address)->sin_port);
    return ntohs(((struct sockaddr_in6 *)(void *)&address)->sin6_port);
}

static void on_listener_closed(uv_handle_t *handle)
{
    struct http_server *server = handle->data;

    server->listener_open = false;
    http_tell_stopped(server);
}

static void listener_close(struct http_server *server)
{
    loop_timer_stop(&server->accept_on);
    if (server->listener_open && !uv_is_closing((uv_handle_t *)&server->listener))
        uv_close((uv_handle_t *)&server->listener, on_listener_closed);
}

void http_server_set_tls(struct http_server *server, struct tls_config *tls)
{
    struct tls_config *old = server->config.tls;

    CHECK(old != NULL && tls != NULL);
    server->config.tls = tls_config_hold(tls);
    tls_config_free(old);
}

void http_server_drain(struct http_server *server)
{
    struct http_conn *next;

    server->draining = true;
    listener_close(server);
    for (struct http_conn *conn = server->conns; conn != NULL; conn = next) {
        next = conn->next;
        if (conn->state == CONN_OPEN)
            conn->protocol->go_away(conn);
        else if (conn->first == NULL && conn->in.size == 0)
            http_conn_close_soon(conn);
    }
}

bool http_server_is_drained(const struct http_server *server)
{
    for (const struct http_conn *conn = server->conns; conn != NULL; conn = conn->next) {
        if (conn->state == CONN_CLOSED)
            continue;
        bool begun = conn->state == CONN_OPEN && conn->known && !conn->refused && conn->in.size > 0;
        if (begun || conn->first != NULL || conn->dirty || http_waiting_of(conn) > 0 ||
            http_peer_owed(&conn->tcp) > 0)
            return false;
    }
    return true;
}

void http_server_stop(struct http_server *server, void (*on_stopped)(void *user), void *user)
{
    struct http_conn *next;

    CHECK(!server->stopping);
    server->draining = true;
    server->stopping = true;
    server->on_stopped = on_stopped;
    server->on_stopped_user = user;
    loop_timer_stop(&server->tick);
    listener_close(server);
    for (struct http_conn *conn = server->conns; conn != NULL; conn = next) {
        next = conn->next;
        http_conn_close(conn);
    }
    /* A drained server may have nothing left to close. */
    if (!server->listener_open)
        http_tell_stopped(server);
}

void http_server_deinit(struct http_server *server)
{
    CHECK(!server->listener_open && server->conns == NULL && server->exchange_count == 0);
    loop_hook_disarm(&server->flush);
    loop_timer_stop(&server->tick);
    loop_timer_stop(&server->next_round);
    handshakes_stop(&server->handshakes);
    turnstile_free(server->turnstile);
    http_exchanges_deinit(server);
    tls_config_free(server->config.tls);
}
