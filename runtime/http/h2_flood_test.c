#include "runtime/http/h2_flood.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define PER_S   10u
#define BURST   40u /* Control frames. */
#define RESETS  200u

enum { DATA = 0, HEADERS = 1, PING = 6, WINDOW_UPDATE = 8, UNKNOWN = 0xfa };

static const struct h2_rates rates = { 1000, PER_S, PER_S };

static void put(struct buf *out, unsigned type, unsigned flags, unsigned size)
{
    const uint8_t head[9] = { 0, (uint8_t)(size >> 8), (uint8_t)size, (uint8_t)type,
                              (uint8_t)flags };

    buf_append(out, head, sizeof head);
    for (unsigned i = 0; i < size; i++)
        buf_put_u8(out, 0xff); /* Would be a huge frame if it were read as a head. */
}

/* How many frames of that kind are taken behind the preface, whole or byte by byte. */
static unsigned taken(unsigned type, unsigned flags, unsigned size, bool in_pieces)
{
    struct h2_flood flood = { 0 };
    struct buf one = { 0 };
    unsigned count = 0;
    bool good = h2_flood_receive(&flood, &rates, SLICE_LITERAL(PREFACE));

    put(&one, type, flags, size);
    while (good && count < 1000) {
        if (in_pieces) {
            for (size_t i = 0; i < one.size && good; i++)
                good = h2_flood_receive(&flood, &rates, (struct slice){ one.data + i, 1 });
        } else {
            good = h2_flood_receive(&flood, &rates, buf_slice(&one));
        }
        count += good;
    }
    buf_deinit(&one);
    return count;
}

static void frames_for_nothing_are_counted(void **state)
{
    (void)state;
    for (int pieces = 0; pieces < 2; pieces++) {
        assert_int_equal(taken(PING, 0, 8, pieces), BURST);
        assert_int_equal(taken(UNKNOWN, 0, 0, pieces), BURST);
        assert_int_equal(taken(UNKNOWN, 0, 300, pieces), BURST);
        assert_int_equal(taken(WINDOW_UPDATE, 0, 4, pieces), BURST);
        assert_int_equal(taken(DATA, 0, 0, pieces), BURST);
        assert_int_equal(taken(DATA, 1, 0, pieces), 1000);
        assert_int_equal(taken(DATA, 0, 10, pieces), 1000);
        assert_int_equal(taken(DATA, 8, 1, pieces), BURST); /* Padding alone. */
        assert_int_equal(taken(DATA, 8, 300, pieces), 1000);
        assert_int_equal(taken(HEADERS, 4, 20, pieces), 1000);
    }
}

/* Two for each frame that was sent to the client. */
static void window_updates_that_were_earned_are_free(void **state)
{
    struct h2_flood flood = { 0 };
    struct buf update = { 0 };
    unsigned count = 0;
    (void)state;

    put(&update, WINDOW_UPDATE, 0, 4);
    (void)h2_flood_receive(&flood, &rates, SLICE_LITERAL(PREFACE));
    for (unsigned i = 0; i < 100; i++)
        h2_flood_sent_data(&flood);
    while (h2_flood_receive(&flood, &rates, buf_slice(&update)))
        count++;
    assert_int_equal(count, 200 + BURST);
    buf_deinit(&update);
}

static void resets_and_refusals_have_their_rates(void **state)
{
    struct h2_flood flood = { 0 };
    const struct h2_rates later = { 2000, PER_S, PER_S };
    unsigned count = 0;
    (void)state;

    while (h2_flood_reset(&flood, &rates))
        count++;
    assert_int_equal(count, RESETS);
    for (count = 0; h2_flood_reset(&flood, &later); count++)
        ;
    assert_int_equal(count, PER_S);
    for (count = 0; h2_flood_refused(&flood, &rates); count++)
        ;
    assert_int_equal(count, BURST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_for_nothing_are_counted),
        cmocka_unit_test(window_updates_that_were_earned_are_free),
        cmocka_unit_test(resets_and_refusals_have_their_rates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
