#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/io/report/node_ready.h"

#define SELF 7u

static struct shard_view follower_of(uint64_t owner)
{
    return (struct shard_view){ .shard = 3,
                                .held = true,
                                .role = REP_FOLLOWER,
                                .owner = owner,
                                .membership = { .count = 3, .members = { 5, 6, SELF } },
                                .applied_index = 10000,
                                .owner_commit_index = 10000,
                                .follows = true };
}

static bool ask(const struct shard_view *view, const char *reason)
{
    char text[NODE_READY_TEXT_BYTES] = "";
    bool ready = node_ready_view(view, SELF, text);

    assert_string_equal(text, reason);
    return ready;
}

static void a_follower_is_ready_once_it_is_close_to_what_its_owner_committed(void **state)
{
    struct shard_view view = follower_of(5);
    (void)state;

    view.follows = false; /* As after a start. */
    assert_false(ask(&view, "shard 3 does not follow its owner yet"));
    view.follows = true;
    view.owner_commit_index = 10000 + NODE_READY_LAG_MAX + 1;
    assert_false(ask(&view, "shard 3 is 1025 entries behind"));
    view.owner_commit_index = 10000 + NODE_READY_LAG_MAX;
    assert_true(ask(&view, ""));
    view.wants_snapshot = true; /* However few entries it lacks, no log has them. */
    assert_false(ask(&view, "shard 3 waits for a snapshot"));
    view.wants_snapshot = false;
    view.owner_silent_ms = 60000; /* A failover makes no node unready. */
    assert_true(ask(&view, ""));
}

static void an_owner_is_ready_when_it_serves(void **state)
{
    struct shard_view view = follower_of(SELF);
    (void)state;

    view.role = REP_SEALING;
    view.follows = false;
    assert_false(ask(&view, "shard 3 is about to be served"));
    view.role = REP_OWNER;
    view.serving = true;
    assert_false(ask(&view, "shard 3 waits for its first policy"));
    view.open = true;
    assert_true(ask(&view, ""));
}

static void learners_and_damaged_replicas_are_not_waited_for(void **state)
{
    struct shard_view learner = follower_of(5);
    struct shard_view damaged = { .shard = 3, .held = true, .role = REP_DAMAGED };
    (void)state;

    learner.membership.count = 2;
    learner.follows = false;
    assert_true(ask(&learner, ""));
    assert_true(ask(&damaged, ""));
}

/* A wiped disk holds no shards, and a new cluster has placed none yet. */
static void a_node_without_shards_is_ready(void **state)
{
    struct shard_views *views = shard_views_new(4);
    char reason[NODE_READY_TEXT_BYTES] = "";
    (void)state;

    assert_true(node_ready(views, SELF, reason));
    shard_views_publish_damaged(views, 2);
    assert_true(node_ready(views, SELF, reason));
    shard_views_free(views);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_follower_is_ready_once_it_is_close_to_what_its_owner_committed),
        cmocka_unit_test(an_owner_is_ready_when_it_serves),
        cmocka_unit_test(learners_and_damaged_replicas_are_not_waited_for),
        cmocka_unit_test(a_node_without_shards_is_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
