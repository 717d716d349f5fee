/* Links over a wire whose writes take longer than the peer's answer, as nng's may: its threads tell
 * of a written buffer and of received bytes in either order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/link/link_fixture.h"
#include "runtime/link/link_private.h"

#define LIMIT_MS  60000u
#define WRITES_MS 20u /* Many answers of the other side. */

static char certs[64];

struct slow_wire {
    struct wire base;
    struct slow_wire *other;
    struct buf inbox;
    struct loop_timer arrival;
    struct loop_timer written;
};

static bool slow_write(struct wire *base, struct buf *bytes)
{
    struct slow_wire *wire = CONTAINER_OF(base, struct slow_wire, base);

    assert_false(loop_timer_is_running(&wire->written));
    wire_take(base, bytes);
    buf_append(&wire->other->inbox, base->writing.data, base->writing.size);
    loop_timer_start(&wire->other->arrival, 0);
    loop_timer_start(&wire->written, WRITES_MS);
    return false;
}

static void arrives(void *user)
{
    struct slow_wire *wire = user;
    struct buf came = wire->inbox;

    wire->inbox = (struct buf){ 0 };
    if (!wire->base.closed)
        wire->base.events->received(wire->base.user, buf_slice(&came));
    buf_deinit(&came);
}

static void is_written(void *user)
{
    struct slow_wire *wire = user;

    wire->base.events->written(wire->base.user);
}

static void slow_set_reading(struct wire *wire, bool on)
{
    (void)wire;
    (void)on;
}

static void slow_close(struct wire *base)
{
    struct slow_wire *wire = CONTAINER_OF(base, struct slow_wire, base);

    base->closed = true;
    loop_timer_stop(&wire->arrival);
    loop_timer_stop(&wire->written);
}

static void slow_settle(struct wire *wire)
{
    (void)wire;
}

static const struct wire_ops slow_ops = { slow_write, slow_set_reading, slow_settle, slow_close };

static void greet(struct fixture_end *end, struct slow_wire *wire, bool dialled)
{
    struct link_handlers handlers = fixture_handlers(end);
    struct link *link = link_new(end->hub, &handlers, dialled ? "server" : "client");

    link->dialled = dialled;
    if (!dialled)
        assert_true(link_enter(link));
    wire->base.ops = &slow_ops;
    wire->base.events = &link_wire_events;
    wire->base.user = link;
    link_greet(link, &wire->base);
}

static void handshake_ends_although_writes_are_told_after_the_answer(void **state)
{
    struct fixture f = { .mode = *state };
    struct fixture_end *ends[2] = { &f.client, &f.server };
    struct slow_wire wires[2] = { 0 };

    assert_int_equal(loop_new(&f.loop), ERR_OK);
    for (int i = 0; i < 2; i++) {
        struct link_hub_options options = fixture_options(f.mode, f.loop, certs);
        fixture_end_init(ends[i], &options);
        fixture_options_deinit(&options);
        wires[i].other = &wires[1 - i];
        loop_timer_init(&wires[i].arrival, f.loop, arrives, &wires[i]);
        loop_timer_init(&wires[i].written, f.loop, is_written, &wires[i]);
    }
    for (int i = 0; i < 2; i++)
        greet(ends[i], &wires[i], i == 0);
    assert_true(loop_run_until(f.loop, fixture_both_ready, &f, LIMIT_MS));
    for (int i = 0; i < 2; i++)
        fixture_end_deinit(ends[i]);
    for (int i = 0; i < 2; i++) {
        buf_deinit(&wires[i].inbox);
        buf_deinit(&wires[i].base.writing);
    }
    loop_free(f.loop);
}

static int set_up(void **state)
{
    (void)state;
    fixture_certs_make(certs);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fixture_certs_remove(certs);
    return 0;
}

int main(void)
{
    static const struct fixture_mode *plain, *encrypted;

    plain = fixture_mode_find("nng");
    encrypted = fixture_mode_find("nng-tls");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(handshake_ends_although_writes_are_told_after_the_answer,
                                  (void *)(uintptr_t)plain),
        cmocka_unit_test_prestate(handshake_ends_although_writes_are_told_after_the_answer,
                                  (void *)(uintptr_t)encrypted),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
