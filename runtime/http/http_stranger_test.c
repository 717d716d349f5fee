#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/rpc/http_fixture.h"

#define MESSAGE_BYTES 6000u      /* Of each refusal. */
#define HELD_MAX      (1u << 20) /* The answers to one read of a stranger, and room. */
#define SENT_MAX      20000u     /* Requests: 120 MB of answers. */
#define STUCK         30u        /* Rounds in which the socket took nothing. */

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture_init(&fixture);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    fixture_stop(*state);
    return 0;
}

static char message[MESSAGE_BYTES + 1];

static bool none_may_enter(void *user, struct rpc_request *request,
                           Holdfast__V1__ErrorDetail *ret_detail)
{
    (void)user;
    (void)request;
    ret_detail->code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAUTHENTICATED;
    ret_detail->message = message;
    return false;
}

static void put_field(struct buf *out, const char *name, const char *value)
{
    buf_put_u8(out, 0); /* A literal that is never indexed. */
    buf_put_u8(out, (uint8_t)strlen(name));
    buf_put_text(out, name);
    buf_put_u8(out, (uint8_t)strlen(value));
    buf_put_text(out, value);
}

/* A request without a key. */
static void put_request(struct buf *out, uint32_t stream, const char *path, bool whole)
{
    struct buf block = { 0 };

    put_field(&block, ":method", "POST");
    put_field(&block, ":scheme", "http");
    put_field(&block, ":authority", "x");
    put_field(&block, ":path", path);
    put_field(&block, "content-type", "application/grpc");
    put_field(&block, "te", "trailers");
    buf_put_u8(out, 0);
    buf_put_u8(out, (uint8_t)(block.size >> 8));
    buf_put_u8(out, (uint8_t)block.size);
    buf_put_u8(out, 1); /* HEADERS */
    buf_put_u8(out, whole ? 5 : 4);
    buf_put_u32_be(out, stream);
    buf_append(out, block.data, block.size);
    buf_deinit(&block);
}

static bool never(void *user)
{
    (void)user;
    return false;
}

/* Requests over HTTP/2 without a key, and not one byte of their answers is read. Its SETTINGS leave
 * HPACK no table, so each answer is said in full: kilobytes for 170 bytes of request. What the
 * server holds for it does not grow with what it asks: its connection is not read before it has
 * read. */
static void flood(struct fixture *f, bool asks_for_health)
{
    struct buf out = { 0 };
    uint64_t most_bytes = 0;
    uint32_t sent = 0;

    memset(message, 'm', MESSAGE_BYTES);
    f->config.handlers.may_enter = none_may_enter;
    fixture_start(f);
    const struct http_stats *stats = rpc_server_stats(f->server);
    struct client client = client_connect(f);
    client_send_text(&client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    client_send(&client, "\0\0\6\4\0\0\0\0\0\0\1\0\0\0\0", 15);
    if (asks_for_health) {
        put_request(&out, 1 + 2 * sent++, "/grpc.health.v1.Health/Check", false);
        buf_append(&out, "\0\0\5\0\1\0\0\0\1\0\0\0\0\0", 14); /* DATA: an empty message. */
    }
    size_t at = 0;
    for (unsigned stuck = 0; stuck < STUCK && sent < SENT_MAX && !client.closed;) {
        if (at == out.size) {
            buf_clear(&out);
            at = 0;
            for (unsigned i = 0; i < 50; i++)
                put_request(&out, 1 + 2 * sent++, PATH_BALANCES, true);
        }
        ssize_t size = send(client.fd, out.data + at, out.size - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        at += size > 0 ? (size_t)size : 0;
        stuck = size > 0 ? 0 : stuck + 1;
        assert_false(loop_run_until(f->loop, never, NULL, 1));
        if (stats->waiting_bytes > most_bytes)
            most_bytes = stats->waiting_bytes;
    }
    assert_true(stats->requests > 100);
    assert_in_range(most_bytes, 1, HELD_MAX);
    assert_int_equal(stats->slow_readers, 0); /* It needed not be put out for it. */
    client_close(&client);
    buf_deinit(&out);
}

static void a_stranger_who_does_not_read_is_not_read(void **state)
{
    flood(*state, false);
}

/* Health needs no key: who asks for it is a stranger still. */
static void who_asks_for_health_is_a_stranger_still(void **state)
{
    flood(*state, true);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_stranger_who_does_not_read_is_not_read),
        TEST(who_asks_for_health_is_a_stranger_still),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
