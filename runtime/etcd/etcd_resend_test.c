/*
 * curl repeats a request by itself when a kept connection dies before an answer. For a transaction
 * that would be a second, unnoticed execution. A server that takes a request on a kept
 * connection and hangs up shows that it does not happen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd.h"

static const char answer[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    "Content-Length: 77\r\n\r\n"
    "{\"header\":{\"cluster_id\":\"1\",\"member_id\":\"1\",\"revision\":\"9\"},"
    "\"succeeded\":true}";

struct liar {
    int listener;
    uint16_t port;
    int requests;    /* Seen, whole ones. */
    int answer_upto; /* Requests beyond this one are taken and never answered. */
    pthread_t thread;
};

/* One whole request with its body; false when the client hung up. */
static bool take_request(int fd)
{
    char text[4096];
    size_t used = 0;

    while (used < sizeof text - 1) {
        ssize_t got = recv(fd, text + used, sizeof text - 1 - used, 0);
        if (got <= 0)
            return false;
        used += (size_t)got;
        text[used] = '\0';
        const char *end = strstr(text, "\r\n\r\n");
        const char *length = strstr(text, "Content-Length: ");
        if (end != NULL && length != NULL &&
            used >= (size_t)(end + 4 - text) + strtoul(length + 16, NULL, 10))
            return true;
    }
    return false;
}

static void serve(struct liar *liar, int fd)
{
    while (take_request(fd)) {
        liar->requests++;
        if (liar->requests > liar->answer_upto)
            break;
        CHECK(send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL) == (ssize_t)(sizeof answer - 1));
    }
    close(fd);
}

static void *liar_run(void *context)
{
    struct liar *liar = context;

    for (;;) {
        int fd = accept(liar->listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        serve(liar, fd);
    }
}

static void liar_start(struct liar *liar, int answer_upto)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;

    *liar = (struct liar){ .answer_upto = answer_upto };
    liar->listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(liar->listener, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(liar->listener, 8) == 0);
    CHECK(getsockname(liar->listener, (struct sockaddr *)&address, &size) == 0);
    liar->port = ntohs(address.sin_port);
    CHECK(pthread_create(&liar->thread, NULL, liar_run, liar) == 0);
}

static void liar_stop(struct liar *liar)
{
    shutdown(liar->listener, SHUT_RDWR);
    pthread_join(liar->thread, NULL);
    close(liar->listener);
}

struct outcome {
    bool done;
    err e;
};

static void txn_done(void *context, err e, const struct etcd_txn_result *result)
{
    struct outcome *outcome = context;
    (void)result;

    outcome->done = true;
    outcome->e = e;
}

static void range_done(void *context, err e, const struct etcd_range_result *result)
{
    (void)result;
    txn_done(context, e, NULL);
}

static struct etcd *client_new(uv_loop_t *loop, uint16_t port)
{
    char endpoint[64];
    const char *endpoints[] = { endpoint };
    struct etcd_options options = { .loop = loop, .endpoints = endpoints, .endpoint_count = 1 };
    struct etcd *etcd;

    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", (unsigned)port);
    assert_int_equal(etcd_new(&options, &etcd), ERR_OK);
    return etcd;
}

static err put(struct etcd *etcd, uv_loop_t *loop)
{
    struct etcd_kv kv = { .key = SLICE_LITERAL("k"), .value = SLICE_LITERAL("v") };
    struct outcome outcome = { 0 };

    assert_int_equal(etcd_put(etcd, &kv, txn_done, &(struct etcd_wait){ 0, &outcome, NULL }),
                     ERR_OK);
    while (!outcome.done) /* Bounded by the call's own deadline. */
        uv_run(loop, UV_RUN_ONCE);
    return outcome.e;
}

static void transaction_is_not_sent_again_when_a_kept_connection_dies(void **state)
{
    struct liar liar;
    uv_loop_t loop;
    (void)state;

    liar_start(&liar, 1);
    assert_int_equal(uv_loop_init(&loop), 0);
    struct etcd *etcd = client_new(&loop, liar.port);
    assert_int_equal(put(etcd, &loop), ERR_OK);
    assert_int_equal(put(etcd, &loop), ERR_DISCONNECTED);
    etcd_free(etcd);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    liar_stop(&liar);
    assert_int_equal(liar.requests, 2);
}

/* A read may be repeated, and is: it would otherwise fail after every restart of etcd. */
static void read_is_sent_again_when_a_kept_connection_dies(void **state)
{
    struct liar liar;
    uv_loop_t loop;
    struct etcd_range range = { .key = SLICE_LITERAL("k") };
    struct outcome outcome = { 0 };
    (void)state;

    liar_start(&liar, 1);
    assert_int_equal(uv_loop_init(&loop), 0);
    struct etcd *etcd = client_new(&loop, liar.port);
    assert_int_equal(put(etcd, &loop), ERR_OK);
    assert_int_equal(etcd_range(etcd, &range, range_done, &(struct etcd_wait){ 0, &outcome, NULL }),
                     ERR_OK);
    while (!outcome.done)
        uv_run(&loop, UV_RUN_ONCE);
    etcd_free(etcd);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    liar_stop(&liar);
    assert_int_equal(liar.requests, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transaction_is_not_sent_again_when_a_kept_connection_dies),
        cmocka_unit_test(read_is_sent_again_when_a_kept_connection_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
