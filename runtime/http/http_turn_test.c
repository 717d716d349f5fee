#include "runtime/http/http_turn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/http/http_conn.h"

#define LONG_BYTES 1200000u
#define TURN       65536u
#define LATE       16384u

static uint8_t bytes[LONG_BYTES];
static struct http_server server;

static struct http_conn *conn_with(size_t size)
{
    struct http_conn *conn = mem_zalloc(sizeof *conn);

    conn->server = &server;
    buf_append(&conn->out, bytes, size);
    return conn;
}

static void drop(struct http_conn *conn)
{
    buf_deinit(&conn->out);
    buf_deinit(&conn->clear);
    free(conn);
}

static size_t turn_of(struct http_conn *conn)
{
    size_t size = http_turn_take(conn).size;

    http_turn_end(conn);
    return size;
}

static void a_long_answer_goes_in_turns_and_in_order(void **state)
{
    struct http_conn *conn = conn_with(LONG_BYTES);
    size_t came = 0;

    (void)state;
    while (came < LONG_BYTES) {
        http_turn_begin(&server);
        struct slice next = http_turn_take(conn);
        assert_int_equal(next.size, LONG_BYTES - came < TURN ? LONG_BYTES - came : TURN);
        assert_memory_equal(next.data, bytes + came, next.size);
        came += next.size;
        assert_int_equal(conn->out.size + conn->sending_left, LONG_BYTES - came);
        assert_int_equal(conn->sending_left, conn->clear_left);
        http_turn_end(conn);
    }
    assert_int_equal(conn->clear.capacity, 0);
    drop(conn);
}

static void what_is_answered_meanwhile_follows(void **state)
{
    struct http_conn *conn = conn_with(TURN + 10);

    (void)state;
    http_turn_begin(&server);
    assert_int_equal(turn_of(conn), TURN);
    buf_append(&conn->out, bytes + 77, 20);
    assert_int_equal(turn_of(conn), 10);
    struct slice next = http_turn_take(conn);
    assert_int_equal(next.size, 20);
    assert_memory_equal(next.data, bytes + 77, 20);
    assert_int_equal(conn->sending_left, 0);
    drop(conn);
}

static void many_long_answers_leave_little_to_each_but_all_of_a_short_one(void **state)
{
    struct http_conn *conns[8], *small = conn_with(5000);

    (void)state;
    http_turn_begin(&server);
    for (size_t i = 0; i < ARRAY_SIZE(conns); i++) {
        conns[i] = conn_with(LONG_BYTES);
        assert_int_equal(turn_of(conns[i]), i < 4 ? TURN : LATE);
    }
    assert_int_equal(turn_of(small), 5000);
    http_turn_begin(&server);
    assert_int_equal(turn_of(conns[7]), TURN);
    for (size_t i = 0; i < ARRAY_SIZE(conns); i++)
        drop(conns[i]);
    drop(small);
}

/* A tick looks at what the client took: what is not encrypted yet, it cannot have taken. */
static void a_tick_takes_nothing_unencrypted_for_read(void **state)
{
    struct http_conn *conn = conn_with(LONG_BYTES);
    struct loop *loop = NULL;

    (void)state;
    assert_int_equal(loop_new(&loop), ERR_OK);
    server.config.loop = loop;
    server.config.limits.write_timeout_ms = 60000;
    server.config.limits.waiting_bytes_max = 4 * LONG_BYTES;
    http_turn_begin(&server);
    size_t sent = turn_of(conn);
    conn->tcp.write_queue_size = sent; /* With libuv, none of it taken. */
    conn->sending_left += sent;
    conn->state = CONN_LINGER;
    conn->writing = true;
    conn->known = true;
    conn->drained_ms = conn->taken_ms = 1;
    http_conn_tick(conn, 1000);
    assert_int_equal(conn->sending_left, LONG_BYTES);
    assert_int_equal(conn->taken_ms, 1);
    conn->tcp.write_queue_size = sent - 1000;
    http_conn_tick(conn, 1001);
    assert_int_equal(conn->sending_left, LONG_BYTES - 1000);
    assert_int_equal(conn->drained_bytes, 1000);
    assert_int_equal(conn->taken_ms, 1001);
    server.config.loop = NULL;
    loop_free(loop);
    drop(conn);
}

static void those_that_wait_go_on_in_their_order_some_in_each_round(void **state)
{
    struct http_conn *conns[2 * HTTP_ROUND_REQUESTS];
    struct loop *loop = NULL;

    (void)state;
    assert_int_equal(loop_new(&loop), ERR_OK);
    loop_timer_init(&server.next_round, loop, NULL, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(conns); i++) {
        conns[i] = conn_with(1);
        http_turn_wait(conns[i]);
    }
    http_turn_wait(conns[0]); /* It stands behind all others now. */
    http_turn_leave(conns[7]);
    http_turn_leave(conns[7]);
    http_turn_begin(&server);
    for (size_t i = 1; i <= HTTP_ROUND_REQUESTS + 1; i++)
        assert_true(i == 7 || http_turn_next(&server) == conns[i]);
    loop_timer_stop(&server.next_round);
    assert_null(http_turn_next(&server));
    assert_true(loop_timer_is_running(&server.next_round));
    http_turn_begin(&server);
    for (size_t i = HTTP_ROUND_REQUESTS + 2; i < ARRAY_SIZE(conns); i++)
        assert_ptr_equal(http_turn_next(&server), conns[i]);
    assert_ptr_equal(http_turn_next(&server), conns[0]);
    assert_null(http_turn_next(&server));
    assert_null(server.wait_last);
    loop_timer_stop(&server.next_round);
    for (size_t i = 0; i < ARRAY_SIZE(conns); i++)
        drop(conns[i]);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_answer_goes_in_turns_and_in_order),
        cmocka_unit_test(what_is_answered_meanwhile_follows),
        cmocka_unit_test(many_long_answers_leave_little_to_each_but_all_of_a_short_one),
        cmocka_unit_test(a_tick_takes_nothing_unencrypted_for_read),
        cmocka_unit_test(those_that_wait_go_on_in_their_order_some_in_each_round),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
