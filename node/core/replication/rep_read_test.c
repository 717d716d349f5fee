#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/replication/sim/rep_narrative.h"

static void read_is_answered_by_a_round_of_its_own(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    assert_int_equal(rep_sim_read(sim, 1), ERR_OK);
    rep_sim_run(sim, 20);
    assert_true(sim->reads_answered == 1);
    assert_int_equal(rep_sim_read(sim, 2), ERR_NOT_OWNER);
    end(sim);
}

static void many_reads_share_a_round_and_late_ones_join_the_next(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    isolate(sim, 1, true);
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(rep_sim_read(sim, 1), ERR_OK);
    rep_sim_run(sim, 5); /* The round is open, and its messages are lost. */
    assert_int_equal(rep_sim_read(sim, 1), ERR_OK);
    assert_true(sim->nodes[0].reads[9].round == 1);
    assert_true(sim->nodes[0].reads[10].round == 2);
    isolate(sim, 1, false);
    rep_sim_run(sim, 100);
    assert_true(sim->counts.rounds == 2 && sim->reads_answered == 11);
    end(sim);
}

static void cut_off_owner_answers_no_read(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    isolate(sim, 1, true);
    promote(sim, 2, 3);
    rep_sim_run(sim, 100);
    propose(sim, 2, 1);
    rep_sim_run(sim, 50);
    assert_int_equal(rep_sim_read(sim, 1), ERR_OK);
    rep_sim_run(sim, 500);
    assert_true(sim->reads_answered == 0);
    isolate(sim, 1, false);
    rep_sim_run(sim, 200);
    assert_true(sim->reads_answered == 0 && role(sim, 1) == REP_FOLLOWER);
    end(sim);
}

static void only_member_confirms_by_itself(void **state)
{
    struct rep_sim *sim = begin(1);
    (void)state;

    promote(sim, 1, 1);
    assert_int_equal(rep_sim_read(sim, 1), ERR_OK);
    rep_sim_run(sim, 10);
    assert_true(sim->reads_answered == 1);
    end(sim);
}

static void no_read_before_start_is_committed(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    rep_sim_hold_disk(sim, 3, true);
    rep_sim_crash(sim, 2);
    propose(sim, 1, 1); /* With 3 on its way to the disk. */
    rep_sim_run(sim, 10);
    assert_int_equal(role(sim, 1), REP_OWNER);
    struct membership m = rep_sim_members(1, 3);
    rep_sim_record(sim, 1, &m);
    rep_sim_run(sim, 200);
    assert_true(role(sim, 1) != REP_OWNER);
    assert_int_equal(rep_sim_read(sim, 1), ERR_NOT_OWNER);
    end(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_is_answered_by_a_round_of_its_own),
        cmocka_unit_test(many_reads_share_a_round_and_late_ones_join_the_next),
        cmocka_unit_test(cut_off_owner_answers_no_read),
        cmocka_unit_test(only_member_confirms_by_itself),
        cmocka_unit_test(no_read_before_start_is_committed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
