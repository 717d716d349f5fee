#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/replication/rep_internal.h"
#include "node/core/replication/sim/rep_narrative.h"

static struct entry *start_of_version(const struct rep *rep, uint64_t epoch, uint32_t version)
{
    uint64_t last = rep_last_index(rep);
    struct start start = { .base_index = last,
                           .base_hash = rep_log_hash(rep, last),
                           .base = *rep_vector(rep),
                           .membership = { .count = 1, .members = { 1 } },
                           .apply_version = version };
    struct buf body = { 0 };

    start_encode(&start, &body);
    struct entry *entry = entry_new(ENTRY_START,
                                    &(struct entry_head){ .index = last + 1,
                                                          .dot = { epoch, 1, 1 },
                                                          .prev_hash = rep_log_hash(rep, last) },
                                    buf_slice(&body));
    buf_deinit(&body);
    return entry;
}

static struct entry *start_after(const struct rep *rep, uint64_t epoch)
{
    return start_of_version(rep, epoch, 1);
}

static void push_version(struct rep *rep, uint64_t epoch, uint32_t version)
{
    struct entry *entry = start_of_version(rep, epoch, version);

    rep_log_push(rep, entry);
    entry_unref(entry);
}

/* Forty owners in a row that committed nothing, all overruled: the vector has folded epochs that
 * are cut off again. */
static void truncation_below_the_folded_epochs_restores_the_vector(void **state)
{
    struct rep_image image = { .votes = true, .promise = { 1, 100, 1 } };
    struct rep_limits limits = rep_limits_default();
    struct rep *rep = rep_new(1, 1, &limits, &image);
    struct rep_out out = { 0 };
    struct vector early = { 0 };
    (void)state;

    for (uint64_t epoch = 1; epoch <= 40; epoch++) {
        struct entry *entry = start_after(rep, epoch);
        rep_log_push(rep, entry);
        entry_unref(entry);
        if (epoch == 3)
            early = *rep_vector(rep);
    }
    assert_true(rep_vector(rep)->folded_index > 3);
    rep_log_truncate(rep, 3, &out);
    assert_int_equal(vector_compare(rep_vector(rep), &early), VECTOR_EQUAL);
    rep_log_check(rep);
    assert_int_equal(out.write_count, 41); /* The orphans, then the truncation. */
    assert_int_equal(out.writes[40].type, REP_WRITE_TRUNCATE);
    rep_out_deinit(&out);
    rep_free(rep);
}

static void truncated_entry_is_not_durable_by_an_earlier_ticket(void **state)
{
    struct rep_image image = { .votes = true, .promise = { 1, 100, 1 } };
    struct rep_limits limits = rep_limits_default();
    struct rep *rep = rep_new(1, 1, &limits, &image);
    struct rep_out out = { 0 };
    (void)state;

    struct entry *orphan = start_after(rep, 1);
    rep_log_push(rep, orphan);
    rep_log_write(rep, &out); /* Ticket 1. */
    rep->ticket_step = 0;
    rep_log_truncate(rep, 0, &out); /* Ticket 2, like what follows. */
    struct entry *entry = start_after(rep, 2);
    rep_log_push(rep, entry);
    rep_log_write(rep, &out);
    rep_log_persisted(rep, 1);
    assert_true(rep->durable_index == 0);
    rep_log_persisted(rep, 2);
    assert_true(rep->durable_index == 1);
    entry_unref(orphan);
    entry_unref(entry);
    rep_out_deinit(&out);
    rep_free(rep);
}

/* The owner that overruled it may have taken in a member with an earlier program since, which could
 * not apply entries of that version. */
static void start_that_is_truncated_raises_no_version(void **state)
{
    struct rep_image image = {
        .votes = true, .promise = { 1, 100, 1 }, .apply_version = 1, .apply_version_max = 4
    };
    struct rep_limits limits = rep_limits_default();
    struct rep *rep = rep_new(1, 1, &limits, &image);
    struct rep_out out = { 0 };
    (void)state;

    push_version(rep, 1, 2);
    assert_int_equal(rep_apply_version(rep), 2);
    rep_log_truncate(rep, 0, &out);
    assert_int_equal(rep_apply_version(rep), 1); /* As the database says. */
    push_version(rep, 2, 2);
    push_version(rep, 3, 3);
    push_version(rep, 4, 4);
    rep_log_truncate(rep, 2, &out);
    assert_int_equal(rep_apply_version(rep), 3); /* As the log says that is left. */
    rep->commit_index = 1;
    rep_log_applied(rep, 1);
    rep_log_truncate(rep, 1, &out);
    assert_int_equal(rep_apply_version(rep), 2); /* What was applied stays in force. */
    rep_log_check(rep);
    rep_out_deinit(&out);
    rep_free(rep);
}

static void applied_entries_leave_memory_and_committed_ones_stay(void **state)
{
    struct rep_sim *sim = begin(1);
    struct rep *rep;
    (void)state;

    sim->limits.recent_bytes_max = 4096;
    restart_all(sim);
    promote(sim, 1, 1);
    sim->faults.apply_ms_max = 100000; /* Nothing is applied for a while. */
    rep = rep_sim_rep(sim, 1);
    propose(sim, 1, 1);
    rep_sim_run(sim, 20);
    propose(sim, 1, 300);
    rep_sim_run(sim, 20);
    assert_true(commit_index(sim, 1) == 302);
    for (uint64_t index = 2; index <= 302; index++)
        assert_non_null(rep_entry(rep, index));
    struct rep_out out = { 0 };
    struct rep_event event = { .type = REP_APPLIED, .index = 302 };
    assert_int_equal(rep_step(rep, &event, &out), ERR_OK);
    assert_null(rep_entry(rep, 100));
    assert_non_null(rep_entry(rep, 302));
    rep_out_deinit(&out);
    end(sim);
}

static void log_survives_a_crash_up_to_what_was_durable(void **state)
{
    struct rep_sim *sim = begin(1);
    (void)state;

    promote(sim, 1, 1);
    propose(sim, 1, 3);
    rep_sim_run(sim, 20);
    rep_sim_hold_disk(sim, 1, true);
    propose(sim, 1, 3);
    rep_sim_run(sim, 20);
    assert_true(last_index(sim, 1) == 7);
    rep_sim_crash(sim, 1);
    rep_sim_hold_disk(sim, 1, false);
    rep_sim_restart(sim, 1);
    assert_true(last_index(sim, 1) == 4);
    promote(sim, 1, 1);
    assert_true(commit_index(sim, 1) == 5);
    end(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truncation_below_the_folded_epochs_restores_the_vector),
        cmocka_unit_test(truncated_entry_is_not_durable_by_an_earlier_ticket),
        cmocka_unit_test(start_that_is_truncated_raises_no_version),
        cmocka_unit_test(applied_entries_leave_memory_and_committed_ones_stay),
        cmocka_unit_test(log_survives_a_crash_up_to_what_was_durable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
