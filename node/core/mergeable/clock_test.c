/* A clock against a set of dots, each of which is in it or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/mergeable/clock.h"

#define ACTORS   3u
#define COUNTERS 200u

/* What a clock should hold. */
struct set {
    bool dots[ACTORS][COUNTERS + 1], closed[ACTORS], named[ACTORS];
};

struct pair {
    struct mclock clock;
    struct set set;
};

static uint64_t random_state;

static uint64_t next(uint64_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % below;
}

static void add(struct pair *pair, uint32_t actor, uint64_t counter)
{
    assert_int_equal(mclock_add(&pair->clock, (struct merge_dot){ actor + 1, counter }), ERR_OK);
    pair->set.named[actor] = true;
    pair->set.dots[actor][counter] |= !pair->set.closed[actor];
}

static void close_actor(struct pair *pair, uint32_t actor)
{
    if (!pair->set.named[actor])
        return;
    mclock_close(&pair->clock, actor + 1);
    pair->set.closed[actor] = true;
}

/* Dots of `b` that `a` does not cover, one by one. */
static uint64_t lacked(const struct pair *a, const struct pair *b)
{
    uint64_t count = 0;

    for (uint32_t actor = 0; actor < ACTORS; actor++) {
        for (uint64_t counter = 1; counter <= COUNTERS; counter++)
            count += b->set.dots[actor][counter] && !a->set.dots[actor][counter] &&
                     !a->set.closed[actor];
    }
    return count;
}

static void check(const struct pair *pair)
{
    for (uint32_t actor = 0; actor < ACTORS; actor++) {
        const bool *dots = pair->set.dots[actor];
        bool closed = pair->set.closed[actor];
        uint64_t top = 0, floor = 0, held = 0;

        for (uint64_t counter = 1; counter <= COUNTERS; counter++) {
            struct merge_dot dot = { actor + 1, counter };
            assert_int_equal(mclock_holds(&pair->clock, dot), dots[counter]);
            assert_int_equal(mclock_covers(&pair->clock, dot), dots[counter] || closed);
            top = dots[counter] ? counter : top;
            held += dots[counter];
            floor += dots[counter] && floor == counter - 1;
        }
        const struct mclock_actor *entry = mclock_find(&pair->clock, actor + 1);
        assert_int_equal(entry != NULL, pair->set.named[actor]);
        if (entry == NULL)
            continue;
        assert_int_equal(mclock_top(entry), top);
        assert_int_equal(entry->base + mclock_above(entry), held);
        assert_true(mclock_floor(&pair->clock, actor + 1) == (closed ? UINT64_MAX : floor));
    }
}

/* All that `inner` holds of the actor is in `outer`. */
static bool within(const struct set *inner, const struct set *outer, uint32_t actor)
{
    for (uint64_t counter = 1; counter <= COUNTERS; counter++) {
        if (inner->dots[actor][counter] && !outer->dots[actor][counter])
            return false;
    }
    return true;
}

static void join(struct pair *pair, const struct pair *other, enum mclock_closings closings)
{
    assert_int_equal(mclock_join(&pair->clock, &other->clock, closings), ERR_OK);
    for (uint32_t actor = 0; actor < ACTORS; actor++) {
        bool fits = within(&pair->set, &other->set, actor);
        for (uint64_t counter = 1; counter <= COUNTERS; counter++)
            pair->set.dots[actor][counter] |=
                other->set.dots[actor][counter] && !pair->set.closed[actor];
        pair->set.named[actor] |= other->set.named[actor];
        pair->set.closed[actor] |=
            other->set.closed[actor] && (fits || closings == MCLOCK_CLOSE_ALL);
    }
}

static void check_both(const struct pair *a, const struct pair *b)
{
    bool includes = true, exceeds = false, lacks = false;

    for (uint32_t actor = 0; actor < ACTORS; actor++) {
        for (uint64_t counter = 1; counter <= COUNTERS; counter++)
            includes &=
                !b->set.dots[actor][counter] || a->set.dots[actor][counter] || a->set.closed[actor];
        exceeds |=
            b->set.closed[actor] && !a->set.closed[actor] && !within(&a->set, &b->set, actor);
        lacks |= b->set.closed[actor] && !a->set.closed[actor];
        assert_int_equal(mclock_agrees(&a->clock, &b->clock, actor + 1),
                         within(&a->set, &b->set, actor) && within(&b->set, &a->set, actor));
    }
    assert_int_equal(mclock_includes(&a->clock, &b->clock), includes);
    assert_int_equal(mclock_exceeds_closed(&a->clock, &b->clock), exceeds);
    assert_int_equal(mclock_lacks_closing(&a->clock, &b->clock), lacks);
    assert_int_equal(mclock_lacks(&a->clock, &b->clock), lacked(a, b));
    assert_int_equal(mclock_lacks(&b->clock, &a->clock), lacked(b, a));
}

static void check_coded(const struct pair *pair)
{
    struct pair again = { .set = pair->set };
    struct buf bytes = { 0 };

    mclock_encode(&pair->clock, &bytes);
    struct reader reader = reader_from(buf_slice(&bytes));
    assert_int_equal(mclock_decode(&reader, &again.clock), ERR_OK);
    assert_int_equal(reader_finish(&reader), ERR_OK);
    check(&again);
    mclock_deinit(&again.clock);
    for (size_t size = 0; size < bytes.size; size++) {
        reader = reader_from((struct slice){ bytes.data, size });
        assert_int_equal(mclock_decode(&reader, &again.clock), ERR_CORRUPT);
    }
    buf_deinit(&bytes);
}

static void one_story(void)
{
    struct pair pairs[2] = { 0 };
    uint64_t most = 1 + next(COUNTERS);

    for (uint32_t step = 0; step < 60; step++) {
        struct pair *pair = &pairs[next(2)];
        uint32_t actor = (uint32_t)next(ACTORS);
        uint64_t floor = mclock_floor(&pair->clock, actor + 1);
        uint64_t die = next(20);

        if (die == 0)
            close_actor(pair, actor);
        else if (die == 1)
            join(pair, &pairs[pair == &pairs[0]], next(2) ? MCLOCK_CLOSE_AGREED : MCLOCK_CLOSE_ALL);
        else if (die < 8)
            add(pair, actor, floor < most ? floor + 1 : most); /* In order. */
        else
            add(pair, actor, 1 + next(most));
        check(pair);
        if (step % 8 == 0)
            check_both(&pairs[0], &pairs[1]);
    }
    check_coded(&pairs[0]);
    mclock_deinit(&pairs[0].clock);
    mclock_deinit(&pairs[1].clock);
}

static void a_clock_is_a_set_of_dots(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 150; i++)
        one_story();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_clock_is_a_set_of_dots) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
