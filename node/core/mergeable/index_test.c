#include "node/core/mergeable/index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"

#define ACTORS   3u
#define COUNTERS 2000u

/* What the index should have, said again without it. */
struct model {
    struct dot_index index;
    bool has[ACTORS][COUNTERS + 1];
    struct merge_key *keys[2];
    uint32_t count, told;
    uint64_t random;
    struct merge_dot last;
};

static uint64_t draw(struct model *m, uint64_t below)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (m->random >> 33) % below;
}

static struct merge_key *key_of(struct model *m, uint64_t counter)
{
    return m->keys[counter % 2];
}

static void add(struct model *m, uint64_t actor, uint64_t counter)
{
    dot_index_add(&m->index, (struct merge_dot){ actor + 1, counter }, key_of(m, counter));
    m->count += !m->has[actor][counter];
    m->has[actor][counter] = true;
}

static void on_dot(void *user, struct merge_dot dot, struct merge_key *key)
{
    struct model *m = user;

    assert_true(m->has[dot.actor - 1][dot.counter]);
    assert_ptr_equal(key, key_of(m, dot.counter));
    assert_true(dot.actor > m->last.actor ||
                (dot.actor == m->last.actor && dot.counter > m->last.counter));
    m->last = dot;
    m->told++;
}

static void compare(struct model *m)
{
    m->told = 0;
    m->last = (struct merge_dot){ 0 };
    dot_index_each(&m->index, on_dot, m);
    assert_int_equal(m->told, m->count);
    assert_int_equal(m->index.dot_count, m->count);
    for (uint64_t actor = 0; actor < ACTORS; actor++) {
        for (uint64_t counter = 1; counter <= COUNTERS; counter++)
            assert_int_equal(dot_index_find(&m->index, (struct merge_dot){ actor + 1, counter }) !=
                                 NULL,
                             m->has[actor][counter]);
    }
}

static bool is_gone(void *user, struct merge_dot dot, const struct merge_key *key)
{
    struct model *m = user;

    assert_ptr_equal(key, key_of(m, dot.counter));
    if (draw(m, 10) < 3)
        return false;
    m->has[dot.actor - 1][dot.counter] = false;
    m->count--;
    return true;
}

static uint64_t is_asked_upto(void *user, uint64_t actor)
{
    (void)user;
    return actor * COUNTERS / (ACTORS + 1);
}

static int setup(void **state)
{
    struct model *m = mem_zalloc(sizeof *m);

    m->random = 7;
    dot_index_init(&m->index, ACTORS * COUNTERS);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(merge_key_new(SLICE_LITERAL("guild:1"),
                                       i == 0 ? SLICE_LITERAL("a") : SLICE_LITERAL("b"),
                                       &m->keys[i]),
                         ERR_OK);
    *state = m;
    return 0;
}

static int teardown(void **state)
{
    struct model *m = *state;

    dot_index_deinit(&m->index);
    for (uint32_t i = 0; i < 2; i++)
        merge_key_unref(m->keys[i]);
    free(m);
    return 0;
}

static void test_it_has_what_was_added_and_not_pruned_in_whatever_order(void **state)
{
    struct model *m = *state;

    for (uint32_t round = 0; round < 8; round++) {
        for (uint32_t i = 0; i < 900; i++)
            add(m, draw(m, ACTORS), 1 + draw(m, COUNTERS));
        for (uint64_t counter = 1; round % 2 == 0 && counter <= 600; counter++)
            add(m, round % ACTORS, counter);
        compare(m);
        dot_index_prune(&m->index,
                        &(struct dot_pruning){ .gone = is_gone,
                                               .upto = round % 3 == 0 ? NULL : is_asked_upto,
                                               .user = m });
        compare(m);
    }
}

static void test_above_the_limit_the_lowest_of_the_longest_go(void **state)
{
    struct model *m = *state;

    m->index.dots_max = 700;
    for (uint64_t counter = COUNTERS; counter > COUNTERS - 600; counter--)
        add(m, 0, counter);
    for (uint64_t counter = 1; counter <= 500; counter++)
        add(m, 1, counter);
    /* The first had most until both had 350. */
    assert_int_equal(m->index.dot_count, 700);
    for (uint64_t counter = COUNTERS - 599; counter <= COUNTERS; counter++)
        assert_int_equal(dot_index_find(&m->index, (struct merge_dot){ 1, counter }) != NULL,
                         counter > COUNTERS - 350);
    for (uint64_t counter = 1; counter <= 500; counter++)
        assert_int_equal(dot_index_find(&m->index, (struct merge_dot){ 2, counter }) != NULL,
                         counter > 150);
}

static void test_its_bytes_say_the_same(void **state)
{
    struct model *m = *state;
    struct buf bytes = { 0 };
    struct dot_index read;

    for (uint32_t i = 0; i < 1500; i++)
        add(m, draw(m, ACTORS), 1 + draw(m, COUNTERS));
    dot_index_encode(&m->index, &bytes);
    dot_index_init(&read, ACTORS * COUNTERS);
    struct reader reader = reader_from(buf_slice(&bytes));

    assert_int_equal(dot_index_decode(&read, &reader), ERR_OK);
    struct buf again = { 0 };

    dot_index_encode(&read, &again);
    assert_true(slice_equal(buf_slice(&bytes), buf_slice(&again)));
    dot_index_deinit(&read);
    buf_deinit(&bytes);
    buf_deinit(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_it_has_what_was_added_and_not_pruned_in_whatever_order,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_above_the_limit_the_lowest_of_the_longest_go, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_its_bytes_say_the_same, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
