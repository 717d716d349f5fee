/* Who has a place at a port, who gives one up, and whose handshake comes next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/refused_log.h"
#include "runtime/base/turnstile.h"

#define PLACES 8192u

struct port {
    struct turnstile *turnstile;
    struct turnstile_place places[PLACES];
    uint64_t now_ms;
    struct turnstile_place *idle;
    enum turnstile_cause cause;
    struct turnstile_place *victim;
};

static struct port port;

static struct turnstile_place *find_idle(void *user, const struct turnstile_address *address)
{
    (void)address;
    return ((struct port *)user)->idle;
}

static void start(const struct turnstile_limits *limits)
{
    memset(&port, 0, sizeof port);
    port.now_ms = 1000;
    port.turnstile = turnstile_new(limits);
}

static void stop(void)
{
    for (uint32_t i = 0; i < PLACES; i++)
        turnstile_leave(port.turnstile, &port.places[i]);
    turnstile_free(port.turnstile);
}

static bool enter(uint32_t place, const char *address)
{
    struct turnstile_visit visit = { .now_ms = port.now_ms, .idle = find_idle, .user = &port };

    (void)address_parse(address, &visit.address);
    return turnstile_enter(port.turnstile, &port.places[place], &visit, &port.victim, &port.cause);
}

static void prove(uint32_t place)
{
    turnstile_prove(port.turnstile, &port.places[place], port.now_ms);
}

static void an_address_has_a_share_and_its_own_oldest_unproven_one_goes(void **state)
{
    (void)state;
    start(&(struct turnstile_limits){ .places_max = 8, .address_max = 2 });
    assert_true(enter(0, "10.0.0.1:1"));
    assert_true(enter(1, "10.0.0.2:1"));
    assert_true(enter(2, "10.0.0.2:2"));
    assert_null(port.victim);
    prove(1);
    assert_true(enter(3, "10.0.0.2:3"));
    assert_ptr_equal(port.victim, &port.places[2]);
    assert_int_equal(port.cause, TURNSTILE_ADDRESS_CAP);
    prove(3);
    assert_false(enter(4, "10.0.0.2:4")); /* What proved itself stays. */
    assert_int_equal(port.cause, TURNSTILE_ADDRESS_CAP);
    assert_int_equal(turnstile_stats(port.turnstile)->refused[TURNSTILE_ADDRESS_CAP], 2);
    port.idle = &port.places[1]; /* ... but an idle one, for another of the same known address. */
    assert_true(enter(4, "10.0.0.2:4"));
    assert_ptr_equal(port.victim, &port.places[1]);
    stop();
}

static void a_64_of_ipv6_is_one_address_and_a_proxy_has_no_share(void **state)
{
    struct turnstile_limits limits = { .places_max = 8, .address_max = 1 };

    (void)state;
    assert_true(address_ranges_add(&limits.proxies, "10.1.0.0/16"));
    start(&limits);
    assert_true(enter(0, "[2001:db8:0:1::1]:1"));
    assert_true(enter(1, "[2001:db8:0:1:ffff::2]:1"));
    assert_ptr_equal(port.victim, &port.places[0]);
    assert_true(enter(2, "[2001:db8:0:2::1]:1"));
    assert_null(port.victim);
    assert_true(enter(3, "10.1.2.3:1"));
    assert_true(enter(4, "[::ffff:10.1.2.3]:2"));
    assert_null(port.victim);
    stop();
}

static void when_all_places_are_taken_the_oldest_unproven_one_goes(void **state)
{
    (void)state;
    start(&(struct turnstile_limits){ .places_max = 3 });
    assert_true(enter(0, "10.0.0.1:1"));
    assert_true(enter(1, "10.0.0.2:1"));
    assert_true(enter(2, "10.0.0.3:1"));
    prove(0);
    turnstile_touch(port.turnstile, &port.places[1]);
    assert_true(enter(3, "10.0.0.4:1"));
    assert_ptr_equal(port.victim, &port.places[2]);
    prove(1);
    prove(3);
    port.idle = &port.places[0];
    assert_false(enter(4, "10.0.0.5:1")); /* Nothing proven goes for a stranger, idle or not. */
    assert_int_equal(port.cause, TURNSTILE_FULL);
    assert_true(enter(4, "10.0.0.4:2")); /* One whose address proved itself. */
    assert_ptr_equal(port.victim, &port.places[0]);
    stop();
}

/* Handshakes and requests for which no key is needed count more than bytes, and than silence. */
static void what_did_something_whole_goes_last(void **state)
{
    (void)state;
    start(&(struct turnstile_limits){ .places_max = 4, .address_max = 3 });
    for (uint32_t i = 0; i < 3; i++)
        assert_true(enter(i, "10.0.0.1:1"));
    turnstile_touch(port.turnstile, &port.places[0]);
    for (uint32_t i = 3; i < 100; i++) {
        assert_true(enter(i, "10.0.0.1:1"));
        assert_ptr_equal(port.victim, &port.places[i == 3 ? 1 : i == 4 ? 2 : i - 2]);
    }
    turnstile_touch(port.turnstile, &port.places[98]);
    turnstile_touch(port.turnstile, &port.places[99]);
    assert_true(enter(100, "10.0.0.1:1"));
    assert_ptr_equal(port.victim, &port.places[0]);
    stop();
}

static void a_part_is_kept_for_addresses_that_proved_themselves(void **state)
{
    (void)state;
    start(&(struct turnstile_limits){ .places_max = 8, .reserved = 2 });
    assert_true(enter(0, "10.9.9.9:1"));
    prove(0);
    turnstile_leave(port.turnstile, &port.places[0]);
    for (uint32_t i = 0; i < 6; i++) {
        assert_true(enter(i, "10.0.0.1:1"));
        prove(i);
    }
    port.now_ms += TURNSTILE_KNOWN_MS - 1;
    assert_false(enter(6, "10.0.0.2:1"));
    assert_true(enter(6, "10.9.9.9:2"));
    turnstile_leave(port.turnstile, &port.places[6]);
    port.now_ms++; /* It was too long ago. */
    assert_false(enter(6, "10.9.9.9:3"));
    stop();
}

static void unproven_ones_have_limits_of_their_own(void **state)
{
    (void)state;
    start(&(struct turnstile_limits){
        .places_max = 100, .unproven_max = 3, .unproven_address_max = 2 });
    assert_true(enter(0, "10.0.0.1:1"));
    assert_true(enter(1, "10.0.0.1:2"));
    assert_true(enter(2, "10.0.0.1:3"));
    assert_ptr_equal(port.victim, &port.places[0]);
    assert_true(enter(0, "10.0.0.2:1"));
    assert_null(port.victim);
    assert_true(enter(3, "10.0.0.3:1"));
    assert_ptr_equal(port.victim, &port.places[1]);
    assert_int_equal(port.cause, TURNSTILE_UNPROVEN_CAP);
    for (uint32_t i = 4; i < 50; i++) { /* Those that prove themselves are not counted. */
        prove(i - 1);
        assert_true(enter(i, "10.0.0.3:1"));
        assert_null(port.victim);
    }
    stop();
}

/* A hundred thousand addresses pass by: the table does not grow, and who proved itself is still
 * known. */
static void addresses_that_come_and_go_push_out_no_known_one(void **state)
{
    char address[32];

    (void)state;
    start(&(struct turnstile_limits){ .places_max = 4, .address_max = 1, .reserved = 1 });
    assert_true(enter(0, "10.9.9.9:1"));
    prove(0);
    turnstile_leave(port.turnstile, &port.places[0]);
    for (uint32_t i = 0; i < 100000; i++) {
        (void)snprintf(address, sizeof address, "11.%u.%u.%u", i >> 16, i >> 8 & 255, i & 255);
        assert_true(enter(1 + i % 3, address));
        turnstile_leave(port.turnstile, &port.places[1 + (i + 1) % 3]);
    }
    for (uint32_t i = 1; i <= 3; i++) {
        turnstile_leave(port.turnstile, &port.places[i]);
        (void)snprintf(address, sizeof address, "12.0.0.%u", i);
        assert_true(enter(i, address));
        prove(i);
    }
    assert_false(enter(0, "13.0.0.1:1"));
    assert_true(enter(0, "10.9.9.9:2"));
    stop();
}

/* ---- handshakes ---- */

static struct turnstile_place *wait_in_line(uint32_t place, const char *address)
{
    struct turnstile_place *dropped;

    assert_true(enter(place, address));
    turnstile_wait(port.turnstile, &port.places[place], &dropped);
    return dropped;
}

static uint32_t begun_in(uint64_t from_us, uint64_t to_us, uint64_t cost_us)
{
    uint32_t begun = 0;

    for (uint64_t now_us = from_us; now_us < to_us; now_us += 1000) {
        for (uint32_t i = 0; i < TURNSTILE_TURN_MAX; i++) {
            if (turnstile_next(port.turnstile, now_us) == NULL)
                break;
            turnstile_spend(port.turnstile, cost_us, now_us);
            begun++;
        }
    }
    return begun;
}

static void handshakes_take_no_more_than_their_share_of_the_loop(void **state)
{
    (void)state;
    start(&(struct turnstile_limits){ .places_max = 4000, .handshake_percent = 30 });
    for (uint32_t i = 0; i < 1000; i++)
        assert_null(wait_in_line(i, "10.0.0.1:1"));
    uint32_t begun = begun_in(5000000, 6000000, 1400);
    assert_in_range(begun, 190, 240); /* 300 ms of the second, and what was saved up. */
    stop();
}

static void an_address_has_tokens_and_another_is_not_held_up_by_it(void **state)
{
    (void)state;
    start(&(struct turnstile_limits){ .places_max = 4000,
                                      .handshakes_per_s = 500,
                                      .handshakes_address_per_s = 10,
                                      .handshake_percent = 30 });
    for (uint32_t i = 0; i < 900; i++)
        assert_null(wait_in_line(i, "10.0.0.1:1"));
    assert_in_range(begun_in(5000000, 6000000, 10), 18, 21); /* A burst, and a second's worth. */
    assert_null(wait_in_line(1000, "10.0.0.2:1"));
    assert_ptr_equal(turnstile_next(port.turnstile, 6000000), &port.places[1000]);
    stop();
}

/* The loop has no time for all, and the crowd's address is a known one: a stranger has the next
 * turn but one. */
static void a_stranger_does_not_wait_for_a_crowd_of_a_known_address(void **state)
{
    (void)state;
    start(&(struct turnstile_limits){ .places_max = 4000 });
    assert_true(enter(3000, "10.0.0.1:1"));
    prove(3000);
    for (uint32_t i = 0; i < 900; i++)
        assert_null(wait_in_line(i, "10.0.0.1:1"));
    assert_ptr_equal(turnstile_next(port.turnstile, 5000000), &port.places[899]);
    assert_null(wait_in_line(1000, "10.0.0.2:1"));
    assert_null(wait_in_line(1001, "10.0.0.1:1"));
    struct turnstile_place *first = turnstile_next(port.turnstile, 5000000);
    struct turnstile_place *second = turnstile_next(port.turnstile, 5000000);
    assert_true(first == &port.places[1000] || second == &port.places[1000]);
    stop();
}

static void the_port_has_tokens_and_known_addresses_come_first(void **state)
{
    (void)state;
    start(&(struct turnstile_limits){ .places_max = 4000, .handshakes_per_s = 100 });
    assert_true(enter(3000, "10.0.0.9:1"));
    prove(3000);
    assert_null(wait_in_line(3001, "10.0.0.9:2"));
    for (uint32_t i = 0; i < 900; i++)
        assert_null(wait_in_line(i, "10.0.0.1:1"));
    assert_ptr_equal(turnstile_next(port.turnstile, 5000000), &port.places[3001]);
    assert_ptr_equal(turnstile_next(port.turnstile, 5000000), &port.places[899]);
    assert_in_range(begun_in(5000000, 6000000, 10), 190, 205);
    stop();
}

static void when_too_many_wait_the_oldest_of_the_busiest_address_goes(void **state)
{
    (void)state;
    start(&(struct turnstile_limits){ .places_max = 4000 });
    assert_null(wait_in_line(0, "10.0.0.2:1"));
    for (uint32_t i = 1; i < TURNSTILE_WAITING_MAX; i++)
        assert_null(wait_in_line(i, "10.0.0.1:1"));
    assert_ptr_equal(wait_in_line(3000, "10.0.0.1:1"), &port.places[1]);
    assert_int_equal(port.places[1].state, TURNSTILE_OUT);
    assert_int_equal(turnstile_stats(port.turnstile)->waiting, TURNSTILE_WAITING_MAX);
    assert_int_equal(turnstile_stats(port.turnstile)->refused[TURNSTILE_HANDSHAKES], 1);
    turnstile_leave(port.turnstile, &port.places[2]); /* Its client gave up. */
    assert_null(wait_in_line(3001, "10.0.0.3:1"));
    stop();
}

/* ---- addresses, the log ---- */

static void ranges_are_read_strictly(void **state)
{
    static const char *const good[] = { "10.0.0.0/8", "127.0.0.1", "::1",        "2001:db8::/32",
                                        "::/0",       "0.0.0.0/0", "10.0.0.6/31" };
    static const char *const bad[] = {
        "",  "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0",
        "x", "::/129",     "10.0.0.0/-1", "::1/64 ",   "10.0.0.7/31"
    };
    struct address_ranges ranges = { .count = 0 };
    struct address address;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(address_ranges_add(&ranges, bad[i]));
    assert_int_equal(ranges.count, 0);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(address_ranges_add(&ranges, good[i]));
    ranges = (struct address_ranges){ .count = 0 };
    assert_true(address_ranges_add(&ranges, "10.0.0.6/31"));
    assert_true(address_parse("10.0.0.7:99", &address) && address_ranges_have(&ranges, &address));
    assert_true(address_parse("10.0.0.8:99", &address) && !address_ranges_have(&ranges, &address));
    assert_true(address_parse("[::a00:7]:1", &address) && !address_ranges_have(&ranges, &address));
    assert_false(address_parse("?:0", &address));
    assert_true(address_name("10.0.0.7:99") == address_name("10.0.0.7:1"));
    assert_true(address_name("10.0.0.7:99") == address_name("[::ffff:10.0.0.7]:99"));
    assert_true(address_name("[::ffff:10.0.0.7]:1") != address_name("[::ffff:10.0.0.8]:1"));
    assert_true(address_name("[2001:db8::1]:1") == address_name("[2001:db8::2:1]:2"));
    assert_true(address_name("[2001:db8::1]:1") != address_name("[2001:db8:0:1::1]:1"));
    assert_true(address_name("?:0") != address_name("10.0.0.7:0"));
}

struct told {
    uint32_t lines;
    uint64_t count;
};

static void on_line(void *sink, enum log_level level, const char *event,
                    const struct log_field *fields)
{
    struct told *told = sink;

    (void)level;
    assert_string_equal(event, "connection.refused");
    told->lines++;
    for (; fields->key != NULL; fields++) {
        if (strcmp(fields->key, "count") == 0)
            told->count = fields->number;
    }
}

static void one_line_a_minute_and_cause(void **state)
{
    struct told told = { 0 };
    const struct log log = { .write = on_line, .sink = &told, .level_min = LOG_DEBUG };
    struct refused_log refused = { .log = &log, .port = "public" };
    struct address address;

    (void)state;
    assert_true(address_parse("10.0.0.1:1", &address));
    for (uint64_t now_ms = 5000; now_ms < 5000 + REFUSED_LOG_PERIOD_MS; now_ms += 10)
        refused_log_add(&refused, TURNSTILE_FULL, &address, "", now_ms);
    assert_int_equal(told.lines, 1);
    refused_log_add(&refused, TURNSTILE_TIMEOUT, &address, "", 5000);
    assert_int_equal(told.lines, 2);
    refused_log_tick(&refused, 5000 + REFUSED_LOG_PERIOD_MS);
    assert_int_equal(told.lines, 3);
    assert_int_equal(told.count, REFUSED_LOG_PERIOD_MS / 10 - 1);
    refused_log_tick(&refused, 5000 + 9 * REFUSED_LOG_PERIOD_MS);
    assert_int_equal(told.lines, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_has_a_share_and_its_own_oldest_unproven_one_goes),
        cmocka_unit_test(a_64_of_ipv6_is_one_address_and_a_proxy_has_no_share),
        cmocka_unit_test(when_all_places_are_taken_the_oldest_unproven_one_goes),
        cmocka_unit_test(what_did_something_whole_goes_last),
        cmocka_unit_test(a_part_is_kept_for_addresses_that_proved_themselves),
        cmocka_unit_test(unproven_ones_have_limits_of_their_own),
        cmocka_unit_test(addresses_that_come_and_go_push_out_no_known_one),
        cmocka_unit_test(handshakes_take_no_more_than_their_share_of_the_loop),
        cmocka_unit_test(an_address_has_tokens_and_another_is_not_held_up_by_it),
        cmocka_unit_test(a_stranger_does_not_wait_for_a_crowd_of_a_known_address),
        cmocka_unit_test(the_port_has_tokens_and_known_addresses_come_first),
        cmocka_unit_test(when_too_many_wait_the_oldest_of_the_busiest_address_goes),
        cmocka_unit_test(ranges_are_read_strictly),
        cmocka_unit_test(one_line_a_minute_and_cause),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
