#include "node/io/cluster/peers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/base/check.h"

static const struct log silent = { .level_min = LOG_ERROR };

#define SIDES 3

/* Nodes on one loop; the one with the higher id dials. */
struct fixture {
    struct loop *loop;
    struct side {
        struct link_hub *hub;
        struct calls *calls;
        struct peers *peers;
    } sides[SIDES];
};

static void on_message(void *user, uint64_t from, struct slice bytes, const uint8_t *trace)
{
    (void)user;
    (void)from;
    (void)bytes;
    (void)trace;
}

/* `place`: of the side, from 0; more than one may say that it is the same replica. */
static void place_open(struct fixture *f, int place, uint64_t self, uint64_t life, const char *name)
{
    struct side *side = &f->sides[place];
    struct link_hub_options hub = {
        .loop = f->loop,
        .log = &silent,
        .self = { .role = ROLE_NODE,
                  .replica_id = self,
                  .life = life,
                  .cluster_id = "01890a5d-ac96-774b-bcce-b302099a8057" },
    };

    snprintf(hub.self.name, sizeof hub.self.name, "%s", name);

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

static void side_open(struct fixture *f, uint64_t self)
{
    place_open(f, (int)self - 1, self, 1, self == 1 ? "one" : "two");
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

    for (int i = 0; i < SIDES; i++) {
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
    peers_set_address(f->sides[0].peers, 2, "two", "127.0.0.1:1"); /* The other is to dial. */
    (void)loop_run_until(f->loop, never, NULL, 60);
    assert_true(peers_health(f->sides[0].peers, 2, &closed_ms, &silent_ms));
    assert_int_equal(closed_ms, 0);
    assert_in_range(silent_ms, 40, 60000);

    side_open(f, 2);
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", peers_port(f->sides[0].peers));
    peers_set_address(f->sides[1].peers, 1, "one", address);
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

/* The side of that place dials node 1, as its record would have it do. */
static void dial_one(struct fixture *f, int place)
{
    char address[64];

    (void)snprintf(address, sizeof address, "127.0.0.1:%u", peers_port(f->sides[0].peers));
    peers_set_address(f->sides[place].peers, 1, "one", address);
}

static uint64_t refused(const struct fixture *f, enum link_refusal why)
{
    return link_hub_stats(f->sides[0].hub).refused[why];
}

static bool was_refused(void *user)
{
    const struct fixture *f = user;

    return refused(f, LINK_REFUSED_SECOND) + refused(f, LINK_REFUSED_REPLICA) +
               refused(f, LINK_REFUSED_UNREGISTERED) + refused(f, LINK_REFUSED_SIDE) >
           0;
}

static void a_replica_that_etcd_does_not_know_is_refused_until_it_does(void **state)
{
    struct fixture *f = *state;

    side_open(f, 2);
    dial_one(f, 1);
    assert_true(loop_run_until(f->loop, was_refused, f, 10000));
    assert_true(refused(f, LINK_REFUSED_UNREGISTERED) > 0);
    assert_null(peers_link(f->sides[0].peers, 2));
    peers_set_address(f->sides[0].peers, 2, "other", "127.0.0.1:1");
    (void)loop_run_until(f->loop, never, NULL, 300);
    assert_true(refused(f, LINK_REFUSED_REPLICA) > 0);
    peers_set_address(f->sides[0].peers, 2, "two", "127.0.0.1:1");
    assert_true(loop_run_until(f->loop, is_linked, f, 10000));
}

/* A second process says that it is replica 2: the older link stays, and outlives it. */
static void hello_alone_takes_no_link_over(void **state)
{
    struct fixture *f = *state;

    peers_set_address(f->sides[0].peers, 2, "two", "127.0.0.1:1");
    side_open(f, 2);
    dial_one(f, 1);
    assert_true(loop_run_until(f->loop, is_linked, f, 10000));
    const struct link *older = peers_link(f->sides[0].peers, 2);

    place_open(f, 2, 2, 1, "two");
    dial_one(f, 2);
    assert_true(loop_run_until(f->loop, was_refused, f, 10000));
    assert_true(refused(f, LINK_REFUSED_SECOND) > 0);
    assert_ptr_equal(peers_link(f->sides[0].peers, 2), older);
    side_close(&f->sides[2]);
    (void)loop_run_until(f->loop, never, NULL, 100);
    assert_ptr_equal(peers_link(f->sides[0].peers, 2), older);
    assert_non_null(peers_link(f->sides[1].peers, 1));

    side_close(&f->sides[1]); /* And once the true one has gone, another may come. */
    assert_true(loop_run_until(f->loop, is_parted, f, 10000));
    side_open(f, 2);
    dial_one(f, 1);
    assert_true(loop_run_until(f->loop, is_linked, f, 10000));
}

static bool life_is_two(void *user)
{
    struct fixture *f = user;
    struct link *link = peers_link(f->sides[0].peers, 2);

    return link != NULL && link_peer_hello(link)->life == 2;
}

static void a_later_life_of_the_replica_replaces_its_link_at_once(void **state)
{
    struct fixture *f = *state;

    peers_set_address(f->sides[0].peers, 2, "two", "127.0.0.1:1");
    side_open(f, 2);
    dial_one(f, 1);
    assert_true(loop_run_until(f->loop, is_linked, f, 10000));
    place_open(f, 2, 2, 2, "two");
    dial_one(f, 2);
    assert_true(loop_run_until(f->loop, life_is_two, f, 10000));
    (void)loop_run_until(f->loop, never, NULL, 300); /* The earlier one dials again, in vain. */
    assert_true(life_is_two(f));
    assert_true(refused(f, LINK_REFUSED_SECOND) > 0);
}

static bool side_is_wrong(void *user)
{
    const struct fixture *f = user;

    return link_hub_stats(f->sides[1].hub).refused[LINK_REFUSED_SIDE] > 0;
}

static void ignore_ready(void *user, struct link *link, const struct hello *peer)
{
    (void)user;
    (void)link;
    (void)peer;
}

static void ignore_frame(void *user, struct link *link, const struct frame *frame)
{
    (void)user;
    (void)link;
    (void)frame;
}

static void ignore_closed(void *user, struct link *link, enum link_close_reason reason,
                          const char *text)
{
    (void)user;
    (void)link;
    (void)reason;
    (void)text;
}

/* One link a pair: node 1 is dialled by node 2, and never dials it. */
static void the_replica_with_the_lesser_id_does_not_dial(void **state)
{
    struct fixture *f = *state;
    char address[64];
    struct link *link;

    side_open(f, 2);
    peers_set_address(f->sides[1].peers, 1, "one", "127.0.0.1:1");
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", peers_port(f->sides[1].peers));
    assert_int_equal(
        link_dial(f->sides[0].hub,
                  &(struct link_dial_options){ .transport = LINK_PEER,
                                               .address = address,
                                               .handlers = { .ready = ignore_ready,
                                                             .frame = ignore_frame,
                                                             .closed = ignore_closed } },
                  &link),
        ERR_OK);
    assert_true(loop_run_until(f->loop, side_is_wrong, f, 10000));
}

/* Over a long life: nodes that were replaced make room for those that replaced them. */
static void more_replicas_than_there_is_room_for_replace_those_without_a_link(void **state)
{
    struct fixture *f = *state;
    uint64_t closed_ms, silent_ms, first = 1000;

    peers_set_address(f->sides[0].peers, 2, "two", "127.0.0.1:1");
    side_open(f, 2);
    dial_one(f, 1);
    assert_true(loop_run_until(f->loop, is_linked, f, 10000));
    for (uint64_t i = 0; i < PEERS_MAX - 1; i++)
        peers_set_address(f->sides[0].peers, first + i, "gone", "127.0.0.1:1");
    assert_true(peers_health(f->sides[0].peers, first, &closed_ms, &silent_ms));
    for (uint64_t i = 0; i < 3 * PEERS_MAX; i++) {
        uint64_t next = first + PEERS_MAX + i;
        peers_set_address(f->sides[0].peers, next, "new", "127.0.0.1:1");
        assert_true(peers_health(f->sides[0].peers, next, &closed_ms, &silent_ms));
    }
    assert_false(peers_health(f->sides[0].peers, first, &closed_ms, &silent_ms));
    assert_true(is_linked(f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            more_replicas_than_there_is_room_for_replace_those_without_a_link, setup, teardown),
        cmocka_unit_test_setup_teardown(who_was_never_met_is_silent_and_who_left_is_closed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_replica_that_etcd_does_not_know_is_refused_until_it_does,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(hello_alone_takes_no_link_over, setup, teardown),
        cmocka_unit_test_setup_teardown(a_later_life_of_the_replica_replaces_its_link_at_once,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(the_replica_with_the_lesser_id_does_not_dial, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
