#include "node/io/process/asker_shares.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/base/check.h"

#define MIB    1048576u
#define GREEDY 2u
#define MODEST 3u
#define METHOD 7u

static struct asker_shares *shares;
static uint64_t left_position; /* All up to there have left. */
static uint32_t looks;
static uint64_t now_ms;

static bool has_left(void *user, const struct link_mark *mark)
{
    (void)user;
    looks++;
    return mark->position <= left_position;
}

static int set_up(void **state)
{
    (void)state;
    shares = asker_shares_new(&(struct asker_shares_options){ .has_left = has_left });
    left_position = 0;
    looks = 0;
    now_ms = 1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    asker_shares_free(shares);
    return 0;
}

static struct asked call_of(uint16_t asker, bool reads)
{
    return (struct asked){ .asker = asker, .method = METHOD, .reads = reads };
}

static enum asker_verdict begin(struct asked *asked)
{
    const struct asker_limits limits = { .places = 3, .bytes = 4 * MIB };

    return asker_begin(shares, asked, &limits, now_ms);
}

static void answered(struct asked *asked, uint64_t bytes, uint64_t position)
{
    asker_end(shares, asked, bytes, &(struct link_mark){ .position = position });
}

/* Its answers are known to be large from here on. */
static void read_once(uint16_t asker, uint64_t bytes)
{
    struct asked asked = call_of(asker, true);

    assert_int_equal(begin(&asked), ASKER_ADMITTED);
    answered(&asked, bytes, 0);
    now_ms++;
}

static void an_asker_has_its_places_and_others_theirs(void **state)
{
    struct asked greedy[4], modest = call_of(MODEST, false), untold = call_of(0, true);

    (void)state;
    for (int i = 0; i < 4; i++) {
        greedy[i] = call_of(GREEDY, i % 2 == 0);
        assert_int_equal(begin(&greedy[i]), i < 3 ? ASKER_ADMITTED : ASKER_HOLDS_PLACES);
    }
    assert_int_equal(asker_places(shares, GREEDY), 3);
    assert_int_equal(begin(&modest), ASKER_ADMITTED);
    assert_int_equal(begin(&untold), ASKER_ADMITTED);
    asker_end(shares, &untold, 0, NULL);
    asker_end(shares, &greedy[0], 0, NULL);
    assert_int_equal(begin(&greedy[3]), ASKER_ADMITTED);
    for (int i = 1; i < 4; i++)
        asker_end(shares, &greedy[i], 0, NULL);
    asker_end(shares, &modest, 0, NULL);
    assert_int_equal(asker_places(shares, GREEDY), 0);
    assert_int_equal(asker_places(shares, MODEST), 0);
}

static void reads_known_to_be_large_share_bytes_and_writes_do_not(void **state)
{
    struct asked first = call_of(GREEDY, true), second = first, write = call_of(GREEDY, false);
    struct asked other = call_of(MODEST, true);

    (void)state;
    read_once(GREEDY, 3 * MIB);
    assert_int_equal(begin(&first), ASKER_ADMITTED);
    assert_int_equal(asker_bytes(shares, GREEDY), 3 * MIB);
    assert_int_equal(begin(&second), ASKER_HOLDS_BYTES);
    assert_int_equal(asker_places(shares, GREEDY), 1); /* The one refused holds none. */
    assert_int_equal(begin(&write), ASKER_ADMITTED);
    assert_int_equal(begin(&other), ASKER_ADMITTED);
    asker_end(shares, &write, 3 * MIB, &(struct link_mark){ .position = 9 });
    asker_end(shares, &other, 0, NULL);
    asker_end(shares, &first, 0, NULL); /* Cancelled: nothing was learnt, nothing stays. */
    assert_int_equal(asker_bytes(shares, GREEDY), 0);
    assert_int_equal(begin(&first), ASKER_ADMITTED);
    asker_end(shares, &first, 0, NULL);
}

static void an_answer_counts_until_it_has_left(void **state)
{
    struct asked first = call_of(GREEDY, true), second = first;

    (void)state;
    assert_int_equal(begin(&first), ASKER_ADMITTED); /* A first burst is not known to be large. */
    answered(&first, 3 * MIB, 10);
    assert_int_equal(asker_places(shares, GREEDY), 0);
    assert_int_equal(asker_bytes(shares, GREEDY), 3 * MIB);
    assert_int_equal(begin(&second), ASKER_HOLDS_BYTES);
    left_position = 10;
    assert_int_equal(begin(&second), ASKER_HOLDS_BYTES); /* Not looked for twice at one time. */
    assert_int_equal(looks, 1);
    now_ms++;
    assert_int_equal(begin(&second), ASKER_ADMITTED);
    assert_int_equal(asker_bytes(shares, GREEDY), 3 * MIB); /* What is expected of the second. */
    answered(&second, 5, 20);
    assert_int_equal(asker_bytes(shares, GREEDY), 0); /* A small one is not waited for. */
}

static void more_than_can_be_kept_do_not_count_once_answered(void **state)
{
    struct asked asked;

    (void)state;
    for (uint32_t i = 0; i < ASKER_LEAVING_MAX + 2; i++) {
        asked = call_of((uint16_t)(10 + i), true);
        assert_int_equal(begin(&asked), ASKER_ADMITTED);
        answered(&asked, MIB, 1 + i);
    }
    assert_int_equal(asker_bytes(shares, 10), MIB);
    assert_int_equal(asker_bytes(shares, 10 + ASKER_LEAVING_MAX), 0);
    left_position = 1; /* The first has left: there is room for one. */
    asked = call_of(9, true);
    assert_int_equal(begin(&asked), ASKER_ADMITTED);
    answered(&asked, MIB, 99999);
    assert_int_equal(asker_bytes(shares, 10), 0);
    assert_int_equal(asker_bytes(shares, 9), MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_asker_has_its_places_and_others_theirs, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(reads_known_to_be_large_share_bytes_and_writes_do_not,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_answer_counts_until_it_has_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(more_than_can_be_kept_do_not_count_once_answered, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
