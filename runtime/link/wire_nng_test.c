/* What is nng's own in wire_nng.c: who waits for input, sends of which the socket takes a part, and
 * connections that come and go by the thousand. What every wire does is link_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/link/wire.h"

#define LIMIT_MS   60000u
#define BIG_BYTES  16777216u /* More than the buffers of both sockets. */
#define RECONNECTS 2000u
#define QUIET_MS   20u

struct side {
    struct wire *wire;
    struct buf came;
    uint32_t written;
    bool connected;
    bool ended;
    bool orderly;
};

struct pair {
    struct wire_context context;
    struct wire_listener *listener;
    struct side dialled;
    struct side accepted;
    bool stranger; /* The accepted one does not settle by itself. */
};

static void was_connected(void *user)
{
    struct side *side = user;

    side->connected = true;
    side->wire->ops->set_reading(side->wire, true);
}

static void was_received(void *user, struct slice bytes)
{
    struct side *side = user;

    buf_append(&side->came, bytes.data, bytes.size);
}

static void was_written(void *user)
{
    struct side *side = user;

    side->written++;
}

static void has_ended(void *user, bool orderly, const char *text)
{
    struct side *side = user;

    assert_false(side->ended);
    assert_true(strlen(text) > 0);
    side->ended = true;
    side->orderly = orderly;
}

static const struct wire_events events = { was_connected, was_received, was_written, has_ended };

static void end_side(struct side *side)
{
    if (side->wire != NULL)
        side->wire->ops->close(side->wire);
    buf_deinit(&side->came);
    *side = (struct side){ 0 };
}

static void was_accepted(void *user, struct wire *wire, const char *from)
{
    struct pair *p = user;

    (void)from;
    end_side(&p->accepted); /* Of a connection that its dialler gave up. */
    p->accepted.wire = wire;
    wire->events = &events;
    wire->user = &p->accepted;
    if (!p->stranger)
        wire->ops->settle(wire);
    was_connected(&p->accepted);
}

static bool are_connected(void *user)
{
    struct pair *p = user;
    return p->dialled.connected && p->accepted.connected;
}

static void listen_here(struct pair *p, bool busy)
{
    struct wire_listen listen = {
        .address = { .host = "127.0.0.1" }, .busy = busy, .accepted = was_accepted, .user = p
    };
    char text[WIRE_TEXT_SIZE];

    assert_int_equal(wire_nng_listen(&p->context, &listen, &p->listener, text), ERR_OK);
}

static void dial(struct pair *p, bool busy)
{
    struct wire_dial dial = { .address = { .host = "127.0.0.1", .port = p->listener->port },
                              .busy = busy,
                              .events = &events,
                              .user = &p->dialled };
    char text[WIRE_TEXT_SIZE];

    assert_int_equal(wire_nng_dial(&p->context, &dial, &p->dialled.wire, text), ERR_OK);
}

static struct pair *make(uint32_t look_max)
{
    struct pair *p = mem_zalloc(sizeof *p);

    assert_int_equal(loop_new(&p->context.loop), ERR_OK);
    p->context.look_max = look_max;
    p->context.read_buffer = mem_alloc(WIRE_READ_SIZE);
    return p;
}

static void join(struct pair *p, bool busy)
{
    listen_here(p, busy);
    dial(p, busy);
    assert_true(loop_run_until(p->context.loop, are_connected, p, LIMIT_MS));
}

static struct pair *make_joined(uint32_t look_max, bool busy)
{
    struct pair *p = make(look_max);

    join(p, busy);
    return p;
}

static bool is_quiet(void *user)
{
    struct pair *p = user;
    return p->context.open == 0;
}

static bool only_listens(void *user)
{
    struct pair *p = user;

    end_side(&p->accepted); /* Of a connection that its dialler gave up: accepted meanwhile. */
    return p->context.open == 1;
}

static void drop(struct pair *p)
{
    end_side(&p->dialled);
    end_side(&p->accepted);
    p->listener->close(p->listener);
    assert_true(loop_run_until(p->context.loop, is_quiet, p, LIMIT_MS));
    mailbox_deinit(&p->context.mailbox);
    loop_free(p->context.loop);
    free(p->context.read_buffer);
    free(p);
}

static bool never(void *user)
{
    (void)user;
    return false;
}

struct expected {
    const struct side *side;
    size_t size;
};

static bool has_come(void *user)
{
    struct expected *e = user;
    return e->side->came.size >= e->size;
}

static bool say(struct pair *p, struct side *from, const struct side *to, struct slice text)
{
    struct buf bytes = { 0 };
    size_t before = to->came.size;

    buf_append(&bytes, text.data, text.size);
    bool at_once = from->wire->ops->write(from->wire, &bytes);
    buf_deinit(&bytes);
    struct expected expected = { to, before + text.size };
    assert_true(loop_run_until(p->context.loop, has_come, &expected, LIMIT_MS));
    assert_memory_equal(to->came.data + before, text.data, text.size);
    return at_once;
}

static void bytes_pass_both_ways(struct pair *p)
{
    for (int i = 0; i < 3; i++) {
        assert_true(say(p, &p->dialled, &p->accepted, SLICE_LITERAL("ask")));
        assert_true(say(p, &p->accepted, &p->dialled, SLICE_LITERAL("answer")));
    }
    assert_int_equal(p->dialled.written + p->accepted.written, 0);
}

static void busy_wires_are_waited_for_by_the_loop(void **state)
{
    struct pair *p = make_joined(WIRE_LOOK_MAX, true);

    (void)state;
    assert_true(p->dialled.wire->on_loop);
    assert_true(p->accepted.wire->on_loop);
    bytes_pass_both_ways(p);
    drop(p);
}

/* The search costs milliseconds: a stranger must not have it for a connection alone. */
static void an_accepted_wire_is_looked_for_once_it_has_proved_itself(void **state)
{
    struct pair *p = make(WIRE_LOOK_MAX);

    (void)state;
    p->stranger = true;
    join(p, true);
    assert_false(p->accepted.wire->on_loop);
    bytes_pass_both_ways(p);
    assert_false(p->accepted.wire->on_loop);
    p->accepted.wire->ops->settle(p->accepted.wire); /* A receive is under way: after the next. */
    assert_false(p->accepted.wire->on_loop);
    bytes_pass_both_ways(p);
    assert_true(p->accepted.wire->on_loop);
    bytes_pass_both_ways(p);
    drop(p);
}

static void other_wires_are_not_looked_for(void **state)
{
    struct pair *p = make_joined(WIRE_LOOK_MAX, false);

    (void)state;
    assert_false(p->dialled.wire->on_loop);
    assert_false(p->accepted.wire->on_loop);
    bytes_pass_both_ways(p);
    drop(p);
}

static void a_busy_wire_whose_descriptor_is_not_found_goes_through_callbacks(void **state)
{
    struct pair *p = make_joined(0, true);

    (void)state;
    assert_false(p->dialled.wire->on_loop);
    assert_false(p->accepted.wire->on_loop);
    bytes_pass_both_ways(p);
    drop(p);
}

static bool has_written(void *user)
{
    struct side *side = user;
    return side->written > 0;
}

/* The peer does not read at first, so that the socket takes a part; the rest must follow in order.
 */
static void a_write_larger_than_the_socket_arrives_whole(void **state)
{
    struct pair *p = make_joined(WIRE_LOOK_MAX, *(const bool *)*state);
    struct buf bytes = { 0 };

    uint8_t *at = buf_reserve(&bytes, BIG_BYTES);
    for (uint32_t i = 0; i < BIG_BYTES; i++)
        at[i] = (uint8_t)(i * 2654435761u >> 24);
    bytes.size = BIG_BYTES;
    p->accepted.wire->ops->set_reading(p->accepted.wire, false);
    assert_false(p->dialled.wire->ops->write(p->dialled.wire, &bytes));
    assert_false(loop_run_until(p->context.loop, never, NULL, QUIET_MS));
    assert_int_equal(p->dialled.written, 0);
    p->accepted.wire->ops->set_reading(p->accepted.wire, true);
    struct expected expected = { &p->accepted, BIG_BYTES };
    assert_true(loop_run_until(p->context.loop, has_come, &expected, LIMIT_MS));
    assert_true(loop_run_until(p->context.loop, has_written, &p->dialled, LIMIT_MS));
    assert_int_equal(p->dialled.written, 1);
    for (uint32_t i = 0; i < BIG_BYTES; i++)
        if (p->accepted.came.data[i] != (uint8_t)(i * 2654435761u >> 24))
            fail_msg("byte %u differs", i);
    buf_deinit(&bytes);
    drop(p);
}

static bool has_ended_there(void *user)
{
    struct side *side = user;
    return side->ended;
}

/* A raw socket, since nng never resets a connection. */
static int dial_raw(struct pair *p)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(p->listener->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    p->dialled.connected = true;
    assert_true(loop_run_until(p->context.loop, are_connected, p, LIMIT_MS));
    return fd;
}

static void reset(int fd)
{
    struct linger at_once = { .l_onoff = 1 };

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    close(fd);
}

/* nng's callbacks tell of a reset as of an end of stream. */
static void a_reset_connection_ends(void **state)
{
    struct pair *p = make(WIRE_LOOK_MAX);
    bool busy = *(const bool *)*state;

    listen_here(p, busy);
    reset(dial_raw(p));
    assert_true(loop_run_until(p->context.loop, has_ended_there, &p->accepted, LIMIT_MS));
    assert_true(!busy || !p->accepted.orderly);
    assert_int_equal(p->accepted.came.size, 0);
    drop(p);
}

/* No one reads, so that the write is what meets the error, and must give its reason. */
static void a_write_to_a_reset_connection_ends_with_an_error(void **state)
{
    struct pair *p = make(WIRE_LOOK_MAX);
    struct buf bytes = { 0 };

    listen_here(p, *(const bool *)*state);
    int fd = dial_raw(p);
    p->accepted.wire->ops->set_reading(p->accepted.wire, false);
    reset(fd);
    usleep(QUIET_MS * 1000);
    buf_append(&bytes, (const uint8_t *)"x", 1);
    assert_false(p->accepted.wire->ops->write(p->accepted.wire, &bytes));
    assert_false(p->accepted.ended);
    assert_true(loop_run_until(p->context.loop, has_ended_there, &p->accepted, LIMIT_MS));
    assert_int_equal(p->accepted.written, 0);
    assert_false(p->accepted.orderly);
    buf_deinit(&bytes);
    drop(p);
}

static void an_end_of_stream_is_orderly_and_comes_after_the_bytes(void **state)
{
    struct pair *p = make(WIRE_LOOK_MAX);

    listen_here(p, *(const bool *)*state);
    int fd = dial_raw(p);
    assert_int_equal(write(fd, "last", 4), 4);
    close(fd);
    assert_true(loop_run_until(p->context.loop, has_ended_there, &p->accepted, LIMIT_MS));
    assert_true(p->accepted.orderly);
    assert_int_equal(p->accepted.came.size, 4);
    drop(p);
}

static uint32_t count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    uint32_t count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

static bool has_descriptors(void *user)
{
    return count_descriptors() <= *(const uint32_t *)user;
}

/* Each side closes first in turn, at times before the other has heard of the connection. */
static void thousands_of_connections_leave_nothing_behind(void **state)
{
    struct pair *p = make_joined(WIRE_LOOK_MAX, true);
    uint32_t before = count_descriptors(), on_loop = 0, hasty = 0;

    (void)state;
    for (uint32_t i = 0; i < RECONNECTS; i++) {
        end_side(i % 2 == 0 ? &p->dialled : &p->accepted);
        end_side(i % 2 == 0 ? &p->accepted : &p->dialled);
        assert_true(loop_run_until(p->context.loop, only_listens, p, LIMIT_MS));
        dial(p, true);
        if (i % 10 == 0) {
            if (i % 20 == 0)
                (void)loop_run_until(p->context.loop, never, NULL, 1);
            hasty++;
            continue;
        }
        assert_true(loop_run_until(p->context.loop, are_connected, p, LIMIT_MS));
        (void)say(p, &p->dialled, &p->accepted, SLICE_LITERAL("x"));
        on_loop += p->dialled.wire->on_loop && p->accepted.wire->on_loop;
    }
    assert_int_equal(on_loop, RECONNECTS - hasty);
    /* nng's reaper closes descriptors a moment later. */
    for (uint32_t i = 0; i < LIMIT_MS && !has_descriptors(&before); i++)
        usleep(1000);
    assert_true(has_descriptors(&before));
    drop(p);
}

int main(void)
{
    static bool busy = true, idle = false;
#define BOTH(test) cmocka_unit_test_prestate(test, &busy), cmocka_unit_test_prestate(test, &idle)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(busy_wires_are_waited_for_by_the_loop),
        cmocka_unit_test(an_accepted_wire_is_looked_for_once_it_has_proved_itself),
        cmocka_unit_test(other_wires_are_not_looked_for),
        cmocka_unit_test(a_busy_wire_whose_descriptor_is_not_found_goes_through_callbacks),
        BOTH(a_write_larger_than_the_socket_arrives_whole),
        BOTH(a_reset_connection_ends),
        BOTH(a_write_to_a_reset_connection_ends_with_an_error),
        BOTH(an_end_of_stream_is_orderly_and_comes_after_the_bytes),
        cmocka_unit_test(thousands_of_connections_leave_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
