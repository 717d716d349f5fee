/* Clients that speak TLS and then do what no honest one does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"
#include "runtime/rpc/http_fixture.h"
#include "runtime/tls/certs.h"
#include "runtime/tls/tls_session.h"

#define ANSWER_BYTES 6291456u /* More than two sockets hold, less than output_bytes_max. */

#define RECEIVES_LITTLE 4096 /* Bytes, of a socket's buffer. */
#define RECEIVES_MUCH   200000

static const uint8_t zeros[ANSWER_BYTES];
static char directory[TEST_DIRECTORY_BYTES];

struct secure {
    struct client client;
    struct tls_session *session;
    struct fixture *fixture;
};

static struct tls_config *config_of(enum tls_side side)
{
    char crt[96], key[96];
    struct tls_error error;
    struct tls_config *config = NULL;
    struct tls_options options = { .side = side };

    (void)snprintf(crt, sizeof crt, "%s/a.crt", directory);
    (void)snprintf(key, sizeof key, "%s/a.key", directory);
    if (side == TLS_SERVER) {
        options.cert.path = crt;
        options.key.path = key;
    }
    if (tls_config_new(&options, &config, &error) != ERR_OK)
        fail_msg("%s", error.text);
    return config;
}

static int make_certs(void **state)
{
    struct tls_error error;
    bool made;

    (void)state;
    test_directory_make("http_tls", directory);
    CHECK(certs_make_ca(directory, "test", &made, &error) == ERR_OK);
    CHECK(certs_make_leaf(directory, &(struct certs_leaf){ .name = "a" }, &made, &error) == ERR_OK);
    return 0;
}

static int remove_certs(void **state)
{
    (void)state;
    test_directory_remove(directory);
    return 0;
}

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture_init(&fixture);
    fixture.keep = true;
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    fixture_stop(*state);
    return 0;
}

static void flush(struct secure *one)
{
    struct buf *out = tls_session_output(one->session);

    client_send(&one->client, out->data, out->size);
    buf_clear(out);
}

static bool has_shaken(void *user)
{
    struct secure *one = user;
    uint8_t bytes[4096];
    size_t size = client_take(&one->client, bytes, sizeof bytes);

    CHECK(tls_session_feed(one->session, (struct slice){ bytes, size }) == ERR_OK);
    CHECK(tls_session_read(one->session, bytes, sizeof bytes, &size) == ERR_NEED);
    flush(one);
    return tls_session_is_established(one->session);
}

static void receive(struct secure *one, int bytes)
{
    CHECK(setsockopt(one->client.fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) == 0);
}

/* The server has taken its TLS when this returns. */
static void connect_secure(struct fixture *f, struct secure *one, int receives)
{
    struct tls_config *config = config_of(TLS_CLIENT);

    *one = (struct secure){ .client = client_connect(f), .fixture = f };
    receive(one, receives);
    CHECK(tls_session_new(config, &one->session) == ERR_OK);
    tls_config_free(config);
    flush(one);
    assert_true(loop_run_until(f->loop, has_shaken, one, FIXTURE_WAIT_MS));
}

static void start(struct fixture *f)
{
    f->config.tls = config_of(TLS_SERVER);
    fixture_start(f);
    tls_config_free(f->config.tls);
}

/* Other callers are served: one has its request with the handlers. */
static void assert_serves(struct fixture *f)
{
    const unsigned before = f->requests;
    struct buf out = { 0 };
    struct secure other;

    connect_secure(f, &other, RECEIVES_LITTLE);
    put_post(&out, PATH_BALANCES, "{}");
    CHECK(tls_session_write(other.session, buf_slice(&out)) == ERR_OK);
    flush(&other);
    assert_true(fixture_await(f, &f->requests, before + 1));
    tls_session_free(other.session);
    client_close(&other.client);
    buf_deinit(&out);
}

/* The client has asked for an answer that it does not read. */
static void leave_unread(struct fixture *f, struct secure *one)
{
    static const char ask[] = "POST " PATH_BALANCES " HTTP/1.1\r\nHost: x\r\n"
                              "Content-Type: application/proto\r\nContent-Length: 0\r\n\r\n";

    connect_secure(f, one, RECEIVES_LITTLE);
    CHECK(tls_session_write(one->session, slice_from_text(ask)) == ERR_OK);
    flush(one);
    assert_true(fixture_await(f, &f->requests, 1));
    rpc_reply_encoded(f->kept[--f->kept_count], (struct slice){ zeros, sizeof zeros });
    assert_serves(f);
    assert_true(rpc_server_stats(f->server)->waiting_bytes > 0);
}

static void a_bad_record_while_an_answer_is_written_ends_that_connection_alone(void **state)
{
    struct fixture *f = *state;
    struct secure one;
    uint8_t record[37] = { 23, 3, 3, 0, 32 }; /* Application data that no key has made. */

    start(f);
    leave_unread(f, &one);
    client_send(&one.client, record, sizeof record);
    assert_serves(f);
    receive(&one, RECEIVES_MUCH); /* What the kernel has is read to its end. */
    assert_true(client_await_close(f, &one.client));
    assert_int_equal(rpc_server_stats(f->server)->waiting_bytes, 0);
    tls_session_free(one.session);
    client_close(&one.client);
}

struct reading {
    struct secure *one;
    struct buf text;
    size_t whole;
};

static bool has_read(void *user)
{
    struct reading *reading = user;
    uint8_t bytes[16384];
    size_t size, came;

    do {
        came = client_take(&reading->one->client, bytes, sizeof bytes);
        CHECK(tls_session_feed(reading->one->session, (struct slice){ bytes, came }) == ERR_OK);
        while (tls_session_read(reading->one->session, buf_reserve(&reading->text, sizeof bytes),
                                sizeof bytes, &size) == ERR_OK)
            reading->text.size += size;
    } while (came > 0);
    flush(reading->one);
    return reading->text.size >= reading->whole;
}

/* A body that is given goes out behind its head, a turn of encryption at a time. */
static void a_large_answer_comes_whole_behind_its_head(void **state)
{
    static const char ask[] = "POST " PATH_BALANCES " HTTP/1.1\r\nHost: x\r\n"
                              "Content-Type: application/proto\r\nContent-Length: 0\r\n\r\n";
    struct fixture *f = *state;
    struct buf body = { 0 };
    struct secure one;

    start(f);
    connect_secure(f, &one, RECEIVES_MUCH);
    CHECK(tls_session_write(one.session, slice_from_text(ask)) == ERR_OK);
    flush(&one);
    assert_true(fixture_await(f, &f->requests, 1));
    for (size_t i = 0; i < 1000000; i++)
        buf_put_u8(&body, (uint8_t)(i + i / 251));
    rpc_reply_encoded(f->kept[--f->kept_count], buf_slice(&body));
    struct reading reading = { .one = &one, .whole = body.size };
    assert_true(loop_run_until(f->loop, has_read, &reading, FIXTURE_WAIT_MS));
    assert_serves(f);
    fixture_answer(f->kept[--f->kept_count]);
    (void)has_read(&reading);
    size_t head = reading.text.size - body.size;
    assert_memory_equal(reading.text.data, "HTTP/1.1 200 OK\r\n", 17);
    assert_memory_equal(&reading.text.data[head - 4], "\r\n\r\n", 4);
    assert_memory_equal(&reading.text.data[head], body.data, body.size);
    buf_deinit(&body);
    buf_deinit(&reading.text);
    tls_session_free(one.session);
    client_close(&one.client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_large_answer_comes_whole_behind_its_head),
        TEST(a_bad_record_while_an_answer_is_written_ends_that_connection_alone),
    };
    return cmocka_run_group_tests(tests, make_certs, remove_certs);
}
