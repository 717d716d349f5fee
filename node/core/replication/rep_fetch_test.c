#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/replication/sim/rep_narrative.h"

/* Replicas 1, 2 and 3 of five hold `count` entries; 4 and 5 hold only START. */
static struct rep_sim *begin_uneven(uint32_t count)
{
    struct rep_sim *sim = begin(5);

    sim->limits.append_entries_max = 4;
    sim->limits.recent_bytes_max = 4096;
    restart_all(sim);
    promote(sim, 1, 5);
    isolate(sim, 4, true);
    isolate(sim, 5, true);
    for (uint32_t i = 0; i < count; i += 10) {
        propose(sim, 1, 10);
        rep_sim_run(sim, 40);
    }
    rep_sim_run(sim, 200);
    rep_sim_crash(sim, 1);
    isolate(sim, 4, false);
    isolate(sim, 5, false);
    rep_sim_cut(sim, 4, 5, false);
    return sim;
}

static void run_until(struct rep_sim *sim, uint64_t id, enum rep_role wanted)
{
    uint64_t until_ms = sim->now_ms + 5000;

    while (role(sim, id) != wanted && rep_sim_one(sim, until_ms))
        ;
    assert_int_equal(role(sim, id), wanted);
}

static void greatest_log_is_fetched_in_parts_some_from_disk(void **state)
{
    struct rep_sim *sim = begin_uneven(200);
    (void)state;

    promote(sim, 4, 5);
    run_until(sim, 4, REP_OWNER);
    assert_true(commit_index(sim, 4) == 202);
    assert_true(sim->counts.log_reads > 0);
    end(sim);
}

static void another_member_serves_when_the_source_dies(void **state)
{
    struct rep_sim *sim = begin_uneven(50);
    struct membership m = rep_sim_members(1, 5);
    (void)state;

    rep_sim_record(sim, 4, &m);
    run_until(sim, 4, REP_ADOPTING);
    rep_sim_crash(sim, 2); /* One of the two who have it. */
    run_until(sim, 4, REP_OWNER);
    assert_true(commit_index(sim, 4) == 52);
    end(sim);
}

static void adoption_goes_on_when_the_source_comes_back(void **state)
{
    struct rep_sim *sim = begin_uneven(50);
    struct membership m = rep_sim_members(1, 5);
    (void)state;

    rep_sim_record(sim, 4, &m);
    run_until(sim, 4, REP_ADOPTING);
    rep_sim_crash(sim, 2);
    rep_sim_crash(sim, 3);
    rep_sim_run(sim, 1000);
    assert_true(role(sim, 4) != REP_OWNER); /* No majority without them. */
    rep_sim_restart(sim, 3);
    run_until(sim, 4, REP_OWNER);
    assert_true(commit_index(sim, 4) == 52);
    end(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greatest_log_is_fetched_in_parts_some_from_disk),
        cmocka_unit_test(another_member_serves_when_the_source_dies),
        cmocka_unit_test(adoption_goes_on_when_the_source_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
