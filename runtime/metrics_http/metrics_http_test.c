#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/metrics_http/metrics_http.h"

/* The server on a thread of its own, so that the test can be a plain blocking client. */
struct world {
    uv_loop_t loop;
    uv_async_t stop;
    pthread_t thread;
    struct metrics *metrics;
    struct metrics_http *server;
    _Atomic bool ready;
};

static bool is_ready(void *context, char ret_reason[128])
{
    struct world *world = context;

    snprintf(ret_reason, 128, "%s", world->ready ? "" : "etcd is away");
    return world->ready;
}

static void stop_now(uv_async_t *stop)
{
    struct world *world = stop->data;

    metrics_http_stop(world->server);
    uv_close((uv_handle_t *)stop, NULL);
}

static void *run(void *context)
{
    struct world *world = context;

    uv_run(&world->loop, UV_RUN_DEFAULT);
    return NULL;
}

static void world_init(struct world *world)
{
    struct metrics_http_options options = {
        .loop = &world->loop, .host = "127.0.0.1", .ready = is_ready, .context = world
    };
    struct metric_info info = { "holdfast_test_total", "A test.", NULL };

    memset(world, 0, sizeof *world);
    assert_int_equal(uv_loop_init(&world->loop), 0);
    uv_async_init(&world->loop, &world->stop, stop_now);
    world->stop.data = world;
    world->metrics = metrics_new();
    counter_add(metrics_counter(world->metrics, &info), 7);
    options.metrics = world->metrics;
    assert_int_equal(metrics_http_start(&options, &world->server), ERR_OK);
    assert_int_equal(pthread_create(&world->thread, NULL, run, world), 0);
}

static void world_deinit(struct world *world)
{
    uv_async_send(&world->stop);
    pthread_join(world->thread, NULL);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    metrics_free(world->metrics);
}

static int dial(struct world *world)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(metrics_http_port(world->server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval timeout = { .tv_sec = 20 };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1;

    assert_true(fd >= 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Until the peer closes, or `until` is seen. */
static void receive(int fd, const char *until, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    while (used < size - 1) {
        ssize_t got = recv(fd, text + used, size - 1 - used, 0);
        if (got <= 0)
            return;
        used += (size_t)got;
        text[used] = '\0';
        if (until != NULL && strstr(text, until) != NULL)
            return;
    }
}

static void ask(struct world *world, const char *request, char *text, size_t size)
{
    int fd = dial(world);

    send(fd, request, strlen(request), MSG_NOSIGNAL);
    receive(fd, NULL, text, size);
    close(fd);
}

#define OF_ONE_ADDRESS (METRICS_HTTP_CONNECTIONS_MAX / METRICS_HTTP_ADDRESS_PART)
#define CLOSE          "Host: x\r\nConnection: close\r\n\r\n"

static void paths_answer_as_documented(void **state)
{
    struct world world;
    char text[8192];
    (void)state;

    world_init(&world);
    ask(&world, "GET /metrics HTTP/1.1\r\n" CLOSE, text, sizeof text);
    assert_non_null(strstr(text, "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(text, "text/plain; version=0.0.4"));
    assert_non_null(strstr(text, "\nholdfast_test_total 7\n"));
    ask(&world, "GET /healthz?x=1 HTTP/1.1\r\n" CLOSE, text, sizeof text);
    assert_non_null(strstr(text, "200 OK"));
    ask(&world, "GET /readyz HTTP/1.1\r\n" CLOSE, text, sizeof text);
    assert_non_null(strstr(text, "503 "));
    assert_non_null(strstr(text, "etcd is away"));
    world.ready = true;
    ask(&world, "GET /readyz HTTP/1.1\r\n" CLOSE, text, sizeof text);
    assert_non_null(strstr(text, "200 OK"));
    ask(&world, "GET /other HTTP/1.1\r\n" CLOSE, text, sizeof text);
    assert_non_null(strstr(text, "404 "));
    ask(&world, "POST /metrics HTTP/1.1\r\n" CLOSE, text, sizeof text);
    assert_non_null(strstr(text, "405 "));
    ask(&world, "HEAD /healthz HTTP/1.1\r\n" CLOSE, text, sizeof text);
    assert_non_null(strstr(text, "Content-Length: 3\r\n"));
    assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
    world_deinit(&world);
}

static void connection_serves_many_requests(void **state)
{
    struct world world;
    char text[1024];
    (void)state;

    world_init(&world);
    int fd = dial(&world);
    for (int i = 0; i < 50; i++) {
        static const char *const parts[] = { "GET /hea", "lthz HTTP/1.1\r\nHo", "st: x\r\n\r",
                                             "\n" };
        for (int p = 0; p < 4; p++)
            send(fd, parts[p], strlen(parts[p]), MSG_NOSIGNAL);
        receive(fd, "ok\n", text, sizeof text);
        assert_non_null(strstr(text, "200 OK"));
    }
    close(fd);
    world_deinit(&world);
}

static void bad_requests_are_refused_and_closed(void **state)
{
    struct world world;
    char text[4096];
    static char big[METRICS_HTTP_HEAD_MAX + 4096];
    (void)state;

    world_init(&world);
    ask(&world, "nonsense\r\n\r\n", text, sizeof text);
    assert_non_null(strstr(text, "400 Bad Request"));
    ask(&world, "GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", text,
        sizeof text);
    assert_non_null(strstr(text, "413 "));
    ask(&world, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n", text,
        sizeof text);
    assert_non_null(strstr(text, "Connection: close"));
    assert_null(strstr(strstr(text, "HTTP/1.1") + 1, "HTTP/1.1"));
    memset(big, 'a', sizeof big - 1);
    memcpy(big, "GET /", 5);
    memcpy(big + 1000, " HTTP/1.1\r\n\r\n", 13);
    big[1013] = '\0';
    ask(&world, big, text, sizeof text);
    assert_non_null(strstr(text, "414 "));
    memset(big, 'a', sizeof big - 1);
    memcpy(big, "GET / HTTP/1.1\r\nX: ", 19);
    ask(&world, big, text, sizeof text);
    /* The server may close with bytes unread, which can cost the client the answer. */
    assert_true(text[0] == '\0' || strstr(text, "431 ") != NULL);
    world_deinit(&world);
}

static void connections_above_the_limit_are_closed(void **state)
{
    struct world world;
    int fds[OF_ONE_ADDRESS];
    char text[1024];
    (void)state;

    world_init(&world);
    for (int i = 0; i < OF_ONE_ADDRESS; i++) {
        fds[i] = dial(&world);
        send(fds[i], "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 34, MSG_NOSIGNAL);
        receive(fds[i], "ok\n", text, sizeof text);
        assert_non_null(strstr(text, "200 OK"));
    }
    ask(&world, "GET /healthz HTTP/1.1\r\n" CLOSE, text, sizeof text);
    assert_string_equal(text, "");
    for (int i = 0; i < OF_ONE_ADDRESS; i++)
        close(fds[i]);
    world_deinit(&world);
}

/* A crowd that never ends its requests fills all places, and a scraper gets in all the same. */
static void half_open_clients_keep_no_scraper_out(void **state)
{
    struct world world;
    int fds[4 * OF_ONE_ADDRESS];
    char text[8192];
    (void)state;

    world_init(&world);
    for (int i = 0; i < 4 * OF_ONE_ADDRESS; i++) {
        fds[i] = dial(&world);
        send(fds[i], "GET /healthz HTTP/1.1\r\nX", (size_t)i % 25, MSG_NOSIGNAL);
    }
    for (int i = 0; i < 20; i++) {
        ask(&world, "GET /metrics HTTP/1.1\r\n" CLOSE, text, sizeof text);
        assert_non_null(strstr(text, "200 OK"));
    }
    assert_non_null(strstr(text, "holdfast_connections_refused_total{port=\"metrics\","
                                 "reason=\"address_cap\"} 97\n"));
    for (int i = 0; i < 4 * OF_ONE_ADDRESS; i++)
        close(fds[i]);
    world_deinit(&world);
}

static void bad_address_is_refused(void **state)
{
    uv_loop_t loop;
    struct metrics_http_options options = { .loop = &loop, .host = "not an address" };
    struct metrics_http *server;
    (void)state;

    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(metrics_http_start(&options, &server), ERR_INVALID);
    options.host = "192.0.2.1"; /* Not one of ours (RFC 5737). */
    assert_int_equal(metrics_http_start(&options, &server), ERR_IO);
    struct metrics_http *first = NULL;
    options.host = "127.0.0.1";
    assert_int_equal(metrics_http_start(&options, &first), ERR_OK);
    options.port = metrics_http_port(first);
    assert_int_equal(metrics_http_start(&options, &server), ERR_CONFLICT);
    metrics_http_stop(first);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_answer_as_documented),
        cmocka_unit_test(connection_serves_many_requests),
        cmocka_unit_test(bad_requests_are_refused_and_closed),
        cmocka_unit_test(connections_above_the_limit_are_closed),
        cmocka_unit_test(half_open_clients_keep_no_scraper_out),
        cmocka_unit_test(bad_address_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
