#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <pthread.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/loop/work.h"

#define JOBS 200

struct shop {
    struct loop *loop;
    pthread_t thread;
    int done;
    bool elsewhere;
};

struct piece {
    struct shop *shop;
    uint64_t number, square;
    pthread_t by;
    bool ended;
};

static void run(void *user)
{
    struct piece *piece = user;

    piece->square = piece->number * piece->number;
    piece->by = pthread_self();
}

static void done(void *user)
{
    struct piece *piece = user;

    CHECK(!piece->ended);
    piece->ended = true;
    piece->shop->done++;
    piece->shop->elsewhere |= pthread_equal(pthread_self(), piece->shop->thread) == 0;
}

static bool all_done(void *user)
{
    return ((struct shop *)user)->done == JOBS;
}

static void setup(struct shop *shop)
{
    *shop = (struct shop){ .thread = pthread_self() };
    assert_int_equal(loop_new(&shop->loop), ERR_OK);
}

/* Each is run by another thread, and told of here, once, after it has run. */
static void each_runs_beside_the_loop(void **state)
{
    static struct piece pieces[JOBS];
    struct shop shop;

    (void)state;
    setup(&shop);
    for (uint64_t i = 0; i < JOBS; i++) {
        pieces[i] = (struct piece){ .shop = &shop, .number = i };
        work_start(shop.loop, &(struct work){ .run = run, .done = done, .user = &pieces[i] });
        assert_int_equal(shop.done, 0);
    }
    assert_true(loop_run_until(shop.loop, all_done, &shop, 10000));
    assert_false(shop.elsewhere);
    for (uint64_t i = 0; i < JOBS; i++) {
        assert_int_equal(pieces[i].square, i * i);
        assert_true(pthread_equal(pieces[i].by, shop.thread) == 0);
    }
    loop_free(shop.loop);
}

static void loop_free_waits_for_it(void **state)
{
    struct shop shop;
    struct piece piece = { .shop = &shop, .number = 7 };

    (void)state;
    setup(&shop);
    work_start(shop.loop, &(struct work){ .run = run, .done = done, .user = &piece });
    loop_free(shop.loop);
    assert_true(piece.ended);
    assert_int_equal(piece.square, 49);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_runs_beside_the_loop),
        cmocka_unit_test(loop_free_waits_for_it),
    };
    return cmocka_run_group_tests_name("work", tests, NULL, NULL);
}
