#include "tests/chaos/wire/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"

#define ANN 0x0a4d0001u
#define BOB 0x0a4d0002u

static struct wire *two_hosts(void)
{
    struct wire *wire = wire_new(7);

    assert_int_equal(wire_add_host(wire, ANN), ERR_OK);
    assert_int_equal(wire_add_host(wire, BOB), ERR_OK);
    return wire;
}

/* The shortest IPv4 packet, with a mark behind its header. */
static void send_mark(struct wire *wire, uint64_t now_us, uint32_t from, uint8_t mark)
{
    uint32_t to = from == 0 ? BOB : ANN;
    uint8_t packet[21] = { [0] = 0x45, [20] = mark };

    for (int i = 0; i < 4; i++)
        packet[16 + i] = (uint8_t)(to >> (24 - 8 * i));
    wire_offer(wire, now_us, from, (struct slice){ packet, sizeof packet });
}

/* The mark of the next packet, -1: none is due. */
static int take_mark(struct wire *wire, uint64_t now_us, uint32_t *ret_to)
{
    struct slice packet;

    if (!wire_take(wire, now_us, ret_to, &packet))
        return -1;
    assert_int_equal(packet.size, 21);
    return packet.data[20];
}

static void test_packets_pass_at_once_and_in_order(void **state)
{
    struct wire *wire = two_hosts();
    uint32_t to;

    (void)state;
    for (uint8_t i = 0; i < 100; i++)
        send_mark(wire, 5, 0, i);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(take_mark(wire, 5, &to), i);
        assert_int_equal(to, 1);
    }
    assert_int_equal(take_mark(wire, 5, &to), -1);
    wire_free(wire);
}

static void test_a_cut_works_one_way(void **state)
{
    struct wire *wire = two_hosts();
    uint32_t to;

    (void)state;
    assert_int_equal(wire_set(wire, 0, 1, &(struct wire_rule){ .cut = true }), ERR_OK);
    send_mark(wire, 1, 0, 1);
    assert_int_equal(take_mark(wire, 1, &to), -1);
    send_mark(wire, 1, 1, 2);
    assert_int_equal(take_mark(wire, 1, &to), 2);
    assert_int_equal(to, 0);
    wire_heal(wire);
    send_mark(wire, 1, 0, 3);
    assert_int_equal(take_mark(wire, 1, &to), 3);
    assert_int_equal(wire_counts(wire).cut, 1);
    wire_free(wire);
}

static void test_what_is_late_comes_when_it_is_due(void **state)
{
    struct wire *wire = two_hosts();
    uint32_t to;

    (void)state;
    assert_int_equal(wire_set(wire, 0, 1, &(struct wire_rule){ .delay_us = 100 }), ERR_OK);
    send_mark(wire, 1000, 0, 1);
    wire_heal(wire);
    send_mark(wire, 1050, 0, 2);
    assert_int_equal(take_mark(wire, 1050, &to), 2);
    assert_int_equal(take_mark(wire, 1099, &to), -1);
    assert_int_equal(wire_due_us(wire), 1100);
    assert_int_equal(take_mark(wire, 1100, &to), 1);
    assert_true(wire_due_us(wire) == UINT64_MAX);
    wire_free(wire);
}

static void test_as_many_are_lost_as_was_said(void **state)
{
    struct wire *wire = two_hosts();
    uint32_t to;

    (void)state;
    assert_int_equal(wire_set(wire, 0, 1, &(struct wire_rule){ .loss_ppm = 200000 }), ERR_OK);
    for (int i = 0; i < 10000; i++) {
        send_mark(wire, 1, 0, 1);
        (void)take_mark(wire, 1, &to);
    }
    assert_in_range(wire_counts(wire).lost, 1800, 2200);
    assert_int_equal(wire_counts(wire).passed + wire_counts(wire).lost, 10000);
    wire_free(wire);
}

static void test_it_holds_so_many_packets_and_no_more(void **state)
{
    struct wire *wire = two_hosts();

    (void)state;
    for (uint32_t i = 0; i < WIRE_PACKETS_MAX + 5; i++)
        send_mark(wire, 1, 0, 1);
    assert_int_equal(wire_counts(wire).full, 5);
    wire_free(wire);
}

static void test_what_makes_no_sense_is_refused(void **state)
{
    struct wire *wire = two_hosts();
    uint32_t to;

    (void)state;
    assert_int_equal(wire_add_host(wire, ANN), ERR_EXISTS);
    assert_int_equal(wire_set(wire, 0, 2, &(struct wire_rule){ 0 }), ERR_INVALID);
    assert_int_equal(wire_set(wire, 0, 1, &(struct wire_rule){ .loss_ppm = 1000001 }), ERR_INVALID);
    wire_offer(wire, 1, 0, SLICE_LITERAL("\x60 six"));
    wire_offer(wire, 1, 0, (struct slice){ NULL, 0 });
    assert_int_equal(wire_counts(wire).nowhere, 2);
    assert_int_equal(take_mark(wire, 1, &to), -1);
    wire_free(wire);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packets_pass_at_once_and_in_order),
        cmocka_unit_test(test_a_cut_works_one_way),
        cmocka_unit_test(test_what_is_late_comes_when_it_is_due),
        cmocka_unit_test(test_as_many_are_lost_as_was_said),
        cmocka_unit_test(test_it_holds_so_many_packets_and_no_more),
        cmocka_unit_test(test_what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
