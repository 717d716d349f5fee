#include "node/io/cluster/peers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/base/check.h"

static const struct log silent = { .level_min = LOG_ERROR };

/* Two nodes on one loop; the one with the higher id dials. */
struct fixture {
    struct loop *loop;
    struct side {
        struct link_hub *hub;
        struct calls *calls;
        struct peers *peers;
    } sides[2];
};

static void on_message(void *user, uint64_t from, struct slice bytes, const uint8_t *trace)
{
    (void)user;
    (void)from;
    (void)bytes;
    (void)trace;
}

static void side_open(struct fixture *f, uint64_t self)
{
    struct side *side = &f->sides[self - 1];
    struct link_hub_options hub = {
        .loop = f->loop,
        .log = &silent,
        .self = { .role = ROLE_NODE,
                  .replica_id = self,
                  .cluster_id = "01890a5d-ac96-774b-bcce-b302099a8057",
                  .name = "test" },
    };

    assert_int_equal(link_hub_new(&hub, &side->hub), ERR_OK);
    assert_int_equal(
        calls_new(&(struct calls_options){ .hub = side->hub, .loop = f->loop }, &side->calls),
        ERR_OK);
    assert_int_equal(peers_new(&(struct peers_options){ .loop = f->loop,
                                                        .hub = side->hub,
                                                        .log = &silent,
                                                        .self = self,
                                                        .listen = "127.0.0.1:0",
                                                        .calls = side->calls,
                                                        .message = on_message },
                               &side->peers),
                     ERR_OK);
}

static void side_close(struct side *side)
{
    peers_free(side->peers);
    link_hub_free(side->hub);
    calls_free(side->calls);
    *side = (struct side){ 0 };
}

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);

    assert_int_equal(loop_new(&f->loop), ERR_OK);
    side_open(f, 1);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 2; i++) {
        if (f->sides[i].hub != NULL)
            side_close(&f->sides[i]);
    }
    loop_free(f->loop);
    free(f);
    return 0;
}

static bool never(void *user)
{
    (void)user;
    return false;
}

/* As node 1 sees node 2. */
static bool is_linked(void *user)
{
    struct fixture *f = user;
    return peers_link(f->sides[0].peers, 2) != NULL;
}

static bool is_parted(void *user)
{
    return !is_linked(user);
}

static void who_was_never_met_is_silent_and_who_left_is_closed(void **state)
{
    struct fixture *f = *state;
    uint64_t closed_ms = 0, silent_ms = 0;
    char address[64];

    assert_false(peers_health(f->sides[0].peers, 2, &closed_ms, &silent_ms));
    peers_set_address(f->sides[0].peers, 2, "127.0.0.1:1"); /* The other is to dial. */
    (void)loop_run_until(f->loop, never, NULL, 60);
    assert_true(peers_health(f->sides[0].peers, 2, &closed_ms, &silent_ms));
    assert_int_equal(closed_ms, 0);
    assert_in_range(silent_ms, 40, 60000);

    side_open(f, 2);
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", peers_port(f->sides[0].peers));
    peers_set_address(f->sides[1].peers, 1, address);
    assert_true(loop_run_until(f->loop, is_linked, f, 10000));
    assert_true(peers_health(f->sides[0].peers, 2, &closed_ms, &silent_ms));
    assert_int_equal(closed_ms, 0);

    side_close(&f->sides[1]);
    assert_true(loop_run_until(f->loop, is_parted, f, 10000));
    (void)loop_run_until(f->loop, never, NULL, 60);
    assert_true(peers_health(f->sides[0].peers, 2, &closed_ms, &silent_ms));
    assert_in_range(closed_ms, 40, 60000);
    assert_int_equal(silent_ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_was_never_met_is_silent_and_who_left_is_closed, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
