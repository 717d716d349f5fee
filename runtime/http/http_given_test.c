/* Large bodies, which HTTP takes over from what made them: whole, in their order, and written in
 * pieces, so that others have their turn. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/rpc/h2_peer.h"
#include "runtime/rpc/http_fixture.h"

#define PIECE_BYTES 131072u
#define ANSWERS     4u

static size_t largest_write;

/* libuv's calls come here: how much it hands the kernel at once. */
ssize_t write(int fd, const void *bytes, size_t size)
{
    static ssize_t (*real)(int, const void *, size_t);

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "write");
    largest_write = size > largest_write ? size : largest_write;
    return real(fd, bytes, size);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    static ssize_t (*real)(int, const struct iovec *, int);
    size_t size = 0;

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "writev");
    for (int i = 0; i < count; i++)
        size += parts[i].iov_len;
    largest_write = size > largest_write ? size : largest_write;
    return real(fd, parts, count);
}

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture_init(&fixture);
    fixture.keep = true;
    fixture_start(&fixture);
    largest_write = 0;
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    fixture_stop(*state);
    return 0;
}

static uint8_t byte_of(unsigned number, size_t at)
{
    return (uint8_t)('a' + (at * 31 + at / 251 + number * 97) % 26);
}

/* The answer of that number has so many bytes, no two answers the same ones. */
static void give(struct rpc_request *request, unsigned number, size_t size)
{
    struct buf body = { 0 };

    for (size_t i = 0; i < size; i++)
        buf_put_u8(&body, byte_of(number, i));
    rpc_reply_encoded(request, buf_slice(&body));
    buf_deinit(&body);
}

static void assert_bytes(struct slice body, unsigned number, size_t size)
{
    assert_int_equal(body.size, size);
    for (size_t i = 0; i < size; i++) {
        if (body.data[i] != byte_of(number, i))
            fail_msg("answer %u differs at %zu", number, i);
    }
}

/* Behind the answer at `at`, which is that one. */
static size_t take_answer(struct client *client, size_t at, unsigned number, size_t size)
{
    char length[64];
    const char *head = client_text(client) + at, *end = strstr(head, "\r\n\r\n");

    snprintf(length, sizeof length, "\r\ncontent-length: %zu\r\n", size);
    assert_non_null(end);
    const char *found = strstr(head, length);
    assert_true(found != NULL && found < end);
    size_t body = at + (size_t)(end - head) + 4;
    assert_true(body + size <= client->in.size);
    assert_bytes((struct slice){ client->in.data + body, size }, number, size);
    return body + size;
}

/* `order`: in which the handlers answer. The answers leave in the requests' order. */
static void answer_a_pipeline(struct fixture *f, const size_t sizes[ANSWERS],
                              const unsigned order[ANSWERS])
{
    struct client client = client_connect(f);
    unsigned before = f->requests;
    size_t at = 0;

    for (unsigned i = 0; i < ANSWERS; i++) {
        client_send_text(&client, "POST " PATH_BALANCES " HTTP/1.1\r\nHost: x\r\nContent-Type: "
                                  "application/proto\r\nContent-Length: 5\r\n");
        client_send_text(&client, i == ANSWERS - 1 ? "Connection: close\r\n\r\n" : "\r\n");
        client_send_text(&client, "\x0A\3abc");
    }
    assert_true(fixture_await(f, &f->requests, before + ANSWERS));
    for (unsigned i = 0; i < ANSWERS; i++)
        give(f->kept[order[i]], order[i], sizes[order[i]]);
    f->kept_count = 0;
    assert_true(client_await_close(f, &client));
    for (unsigned i = 0; i < ANSWERS; i++)
        at = take_answer(&client, at, i, sizes[i]);
    assert_int_equal(at, client.in.size);
    assert_int_equal(rpc_server_stats(f->server)->waiting_bytes, 0);
    client_close(&client);
}

static void a_pipeline_of_large_and_small_answers_leaves_in_order(void **state)
{
    static const size_t sizes[][ANSWERS] = {
        { 1u << 20, 3u << 20, 70000, 100 },
        { 100, 65536, 65535, 1u << 20 },
        { 200000, 5, 200000, 5 },
        { 65536, 65536, 65536, 65536 },
    };
    static const unsigned orders[][ANSWERS] = { { 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 1, 0, 3, 2 } };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t order = 0; order < sizeof orders / sizeof *orders; order++)
            answer_a_pipeline(*state, sizes[i], orders[order]);
    }
}

/* What the kernel takes at once, others wait for. */
static void no_write_is_longer_than_a_piece(void **state)
{
    static const size_t sizes[ANSWERS] = { 8u << 20, 1u << 20, 300000, 20 };
    static const unsigned order[ANSWERS] = { 0, 1, 2, 3 };

    answer_a_pipeline(*state, sizes, order);
    assert_true(largest_write > 0);
    assert_true(largest_write <= PIECE_BYTES);
}

static void streams_of_one_connection_keep_their_bodies_apart(void **state)
{
    static const size_t sizes[ANSWERS] = { 3u << 20, 100, 65536, 400000 };
    struct answer *answers[ANSWERS];
    struct fixture *f = *state;
    struct peer peer;

    peer_connect(f, &peer);
    for (unsigned i = 0; i < ANSWERS; i++)
        answers[i] =
            peer_call(&peer, PATH_BALANCES, "application/proto", SLICE_LITERAL("\x0A\3abc"), NULL);
    peer_flush(&peer);
    assert_true(fixture_await(f, &f->requests, ANSWERS));
    for (unsigned i = 0; i < ANSWERS; i++)
        give(f->kept[i], i, sizes[i]);
    f->kept_count = 0;
    for (unsigned i = 0; i < ANSWERS; i++) {
        assert_true(peer_await(f, &peer, answers[i]));
        assert_bytes(buf_slice(&answers[i]->body), i, sizes[i]);
    }
    assert_int_equal(rpc_server_stats(f->server)->waiting_bytes, 0);
    peer_close(&peer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_pipeline_of_large_and_small_answers_leaves_in_order),
        TEST(no_write_is_longer_than_a_piece),
        TEST(streams_of_one_connection_keep_their_bodies_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
