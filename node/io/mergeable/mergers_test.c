/*
 * Three members in one process, each with a disk of its own, and a network that may be cut: what is
 * acknowledged is there after restarts, damage, cuts and changes of members.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/internal/v1/refusal.pb-c.h"
#include "holdfast/v1/document.pb-c.h"
#include "holdfast/v1/presence.pb-c.h"
#include "idl/error_code.h"
#include "idl/method.h"
#include "node/core/codec/proto_scan.h"
#include "node/io/mergeable/mergers_fixture.h"
#include "node/store/merge_db.h"
#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"
#include "runtime/cluster/placement.h"

static void what_needs_no_documents_pays_nothing(void **state)
{
    struct world *w = *state;
    struct mergers_stats stats;

    mergers_stats_get(w->members[0].mergers, &stats);
    assert_int_equal(stats.replicas, 0);
    world_stop(w, 0);
    assert_false(merge_db_exists(w->members[0].directory));
}

static void a_write_is_everywhere_and_survives_a_restart_of_all(void **state)
{
    struct world *w = *state;

    assert_int_equal(world_put(w, 0, "a", "1"), REPLY_OK);
    world_eventually(w, 1, "a", 1);
    world_eventually(w, 2, "a", 1);
    assert_int_equal(world_put(w, 3, "a", "1"), REPLY_NOT_OWNER);
    for (uint32_t i = 0; i < 3; i++)
        world_stop(w, i);
    for (uint32_t i = 0; i < 3; i++)
        world_start(w, i);
    world_eventually(w, 2, "a", 1);
    assert_int_equal(
        world_count(w, 0, "a", HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_ANY), 1);
}

static void both_sides_of_a_cut_write_and_all_come_to_be_equal(void **state)
{
    struct world *w = *state;
    struct mergers_stats stats;

    assert_int_equal(world_put(w, 0, "other", "0"), REPLY_OK);
    world_eventually(w, 2, "other", 1);
    w->cut = 3;
    assert_int_equal(world_put(w, 0, "a", "1"), REPLY_OK);
    assert_int_equal(world_put(w, 2, "a", "2"), REPLY_OK);
    world_stop(w, 2); /* What it alone has is on its disk. */
    world_start(w, 2);
    assert_int_equal(
        world_count(w, 2, "a", HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_ANY), 1);
    w->cut = 0;
    for (uint32_t i = 0; i < 3; i++)
        world_eventually(w, i, "a", 2);
    mergers_stats_get(w->members[0].mergers, &stats);
    assert_true(stats.repair_bytes > 0);
}

static void a_database_that_is_damaged_is_filled_from_the_others(void **state)
{
    struct world *w = *state;
    char path[TEST_DIRECTORY_BYTES + 64];

    assert_int_equal(world_put(w, 0, "a", "1"), REPLY_OK);
    world_eventually(w, 1, "a", 1);
    world_stop(w, 1);
    snprintf(path, sizeof path, "%s/CURRENT", w->members[1].directory);
    FILE *file = fopen(path, "w");
    fputs("MANIFEST-999999\n", file);
    fclose(file);
    world_start(w, 1);
    world_eventually(w, 1, "a", 1);
    assert_int_equal(
        world_count(w, 1, "a", HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_MAJORITY),
        1);
}

static void lacking(struct world *w, uint32_t place, uint32_t wanted)
{
    uint64_t end_ms = loop_now_ms(w->loop) + PATIENCE_MS;

    while (mergers_lacking(w->members[place].mergers, SHARD) != wanted) {
        if (loop_now_ms(w->loop) > end_ms)
            fail_msg("%u lack documents, not %u", mergers_lacking(w->members[place].mergers, SHARD),
                     wanted);
        w->answered.is_there = false;
        (void)loop_run_until(w->loop, world_has_answer, w, 50);
    }
}

/* The fourth member is to take the place of the third one. */
static void a_removed_member_gives_what_it_alone_has_and_then_holds_nothing(void **state)
{
    struct world *w = *state;
    struct mergers_stats stats;

    assert_int_equal(world_put(w, 0, "b", "1"), REPLY_OK);
    world_eventually(w, 2, "b", 1);
    w->cut = 3;
    assert_int_equal(world_put(w, 2, "a", "1"), REPLY_OK);
    w->record.membership.new_count = 3;
    memcpy(w->record.membership.new_members, (uint64_t[]){ 1, 2, 4 }, 3 * sizeof(uint64_t));
    world_tell_all(w);
    w->record.membership = (struct membership){ .config = w->record.membership.config,
                                                .count = 3,
                                                .members = { 1, 2, 4 } };
    world_tell_all(w);
    world_stop(w, 2);
    world_start(w, 2);
    w->cut = 0;
    world_eventually(w, 3, "a", 1);
    world_eventually(w, 0, "a", 1);
    uint64_t end_ms = loop_now_ms(w->loop) + PATIENCE_MS;
    do {
        mergers_stats_get(w->members[2].mergers, &stats);
        uint32_t replicas = stats.replicas;
        mergers_stats_get(w->members[0].mergers, &stats);
        if (replicas == 0 && stats.departing == 0)
            break;
        if (loop_now_ms(w->loop) > end_ms)
            fail_msg("the removed member keeps its replica");
        w->answered.is_there = false;
        (void)loop_run_until(w->loop, world_has_answer, w, 50);
    } while (true);
    /* It is a member again within one process: what its former replica said holds no more. */
    uint64_t former_boot = w->heard_boots[2];

    w->record.membership.new_count = 3;
    memcpy(w->record.membership.new_members, (uint64_t[]){ 1, 2, 3 }, 3 * sizeof(uint64_t));
    world_tell_all(w);
    lacking(w, 0, 0);
    w->record.membership = (struct membership){ .config = w->record.membership.config,
                                                .count = 3,
                                                .members = { 1, 2, 3 } };
    world_tell_all(w);
    world_eventually(w, 2, "a", 1);
    assert_int_equal(world_put(w, 2, "c", "1"), REPLY_OK);
    world_eventually(w, 0, "c", 1);
    assert_true(w->heard_boots[2] > former_boot);
}

static bool log_has_room(void *user)
{
    (void)user;
    return true;
}

static void database_rests(void *user, bool rests)
{
    (void)user;
    (void)rests;
}

static bool is_full(void *user)
{
    return space_state(user) == SPACE_FULL;
}

/* The router brings a write that is UNAVAILABLE to another member. */
static void a_full_disk_ends_writes_and_no_reads(void **state)
{
    struct world *w = *state;
    struct member *full = &w->members[0];

    assert_int_equal(world_put(w, 0, "a", "1"), REPLY_OK);
    world_stop(w, 0);
    full->space = space_new(&(struct space_options){ .loop = w->loop,
                                                     .log = &world_log,
                                                     .log_path = w->directory,
                                                     .db_path = w->directory,
                                                     .free_min = UINT64_MAX / 8,
                                                     .log_has_room = log_has_room,
                                                     .database_rests = database_rests });
    assert_true(loop_run_until(w->loop, is_full, full->space, PATIENCE_MS));
    world_start(w, 0);
    assert_int_equal(world_count_any(w, 0, "a"), 1);
    assert_int_equal(world_listed(w, 0), 1);
    assert_int_equal(world_put(w, 0, "b", "1"), REPLY_REFUSED);
    world_refused_as(w, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE);
    assert_int_equal(
        world_count(w, 0, "a", HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_MAJORITY),
        0);
    world_refused_as(w, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE);
    assert_int_equal(world_put(w, 1, "b", "1"), REPLY_OK);
    world_stop(w, 0);
    space_free(full->space);
    full->space = NULL;
}

static void an_erased_entity_is_shown_by_no_read_and_an_undo_brings_it_back(void **state)
{
    struct world *w = *state;

    assert_int_equal(world_put(w, 0, "a", "1"), REPLY_OK);
    world_eventually(w, 1, "a", 1);
    world_erased(w, 0, 5, true, false);
    assert_int_equal(world_count_any(w, 0, "a"), 0);
    assert_int_equal(
        world_count(w, 0, "a", HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_MAJORITY),
        0);
    assert_int_equal(world_listed(w, 0), 0);
    assert_int_equal(world_put(w, 0, "a", "2"), REPLY_REFUSED);
    assert_int_equal(world_count_any(w, 1, "a"), 1); /* It has not heard of it. */
    world_erased(w, 0, 5, false, false);
    assert_int_equal(world_count_any(w, 0, "a"), 1);
    assert_int_equal(world_listed(w, 0), 1);
    assert_int_equal(world_put(w, 0, "b", "1"), REPLY_OK);
}

static void what_is_purged_comes_back_from_no_sleeper_and_no_disk(void **state)
{
    struct world *w = *state;

    assert_int_equal(world_put(w, 0, "a", "1"), REPLY_OK);
    world_eventually(w, 2, "a", 1);
    w->cut = 3;
    assert_int_equal(world_put(w, 2, "slept", "1"), REPLY_OK);
    for (uint32_t i = 0; i < 2; i++) {
        world_erased(w, i, 5, true, true);
        world_erased(w, i, 5, false, true);
    }
    assert_int_equal(world_count_any(w, 0, "a"), 0);
    assert_int_equal(world_put(w, 0, "new", "1"), REPLY_OK); /* Its life after the purge. */
    w->cut = 0;
    world_eventually(w, 2, "new",
                     1); /* Which says what is purged, before the sleeper's own log does. */
    assert_int_equal(world_count_any(w, 2, "a"), 0);
    assert_int_equal(world_count_any(w, 2, "slept"), 0);
    for (uint32_t i = 0; i < 3; i++) {
        world_stop(w, i);
        erasures_free(w->members[i].erasures);
        w->members[i].erasures = erasures_new(4);
    }
    for (uint32_t i = 0; i < 3; i++)
        world_start(w, i);
    for (uint32_t i = 0; i < 3; i++) {
        world_eventually(w, i, "new", 1);
        assert_int_equal(world_listed(w, i), 1);
    }
}

/* Whose documents no call asks for. */
static void a_member_that_is_asked_for_nothing_purges_too(void **state)
{
    struct world *w = *state;
    struct mergers_stats stats;
    uint64_t end_ms = loop_now_ms(w->loop) + PATIENCE_MS;

    assert_int_equal(world_put(w, 0, "a", "1"), REPLY_OK);
    world_erased(w, 0, 5, false, true);
    do {
        if (loop_now_ms(w->loop) > end_ms)
            fail_msg("the record is kept");
        w->answered.is_there = false;
        (void)loop_run_until(w->loop, world_has_answer, w, 50);
        mergers_stats_get(w->members[0].mergers, &stats);
    } while (stats.record_bytes > 0 || stats.records[MERGE_POLICY_VECTOR] > 0);
}

/* Under steady writes the members are hardly ever equal. */
static void members_that_follow_each_other_are_not_apart_for_long(void **state)
{
    struct world *w = *state;
    struct mergers_stats stats = { 0 };
    uint64_t begin_ms = loop_now_ms(w->loop);
    char json[24];

    for (uint32_t i = 0; loop_now_ms(w->loop) < begin_ms + WRITES_MS; i++) {
        snprintf(json, sizeof json, "%u", i);
        (void)world_put(w, i % 3, i % 2 == 0 ? "a" : "b", json);
        w->answered.is_there = false;
        (void)loop_run_until(w->loop, world_has_answer, w, 5);
    }
    mergers_stats_get(w->members[0].mergers, &stats);
    assert_in_range(stats.apart_ms, 0, WRITES_MS - 2000);
}

static void begin_joint(struct world *w)
{
    w->record.membership.new_count = 3;
    memcpy(w->record.membership.new_members, (uint64_t[]){ 1, 2, 4 }, 3 * sizeof(uint64_t));
    world_tell_all(w);
}

static void old_members_are_not_left_before_a_new_one_has_their_documents(void **state)
{
    struct world *w = *state;

    assert_int_equal(mergers_lacking(w->members[0].mergers, SHARD), 0);
    assert_int_equal(world_put(w, 0, "a", "1"), REPLY_OK);
    world_eventually(w, 2, "a", 1);
    assert_int_equal(mergers_lacking(w->members[0].mergers, SHARD), 0);
    w->cut = 4;
    begin_joint(w);
    assert_int_equal(mergers_lacking(w->members[0].mergers, SHARD), 3);
    lacking(w, 0, 1); /* Those that stay ask each other, too. */
    w->cut = 0;
    lacking(w, 0, 0);
    world_stop(w, 0); /* And the third one leaves: of three that had it, two are away. */
    w->record.membership = (struct membership){ .config = w->record.membership.config,
                                                .count = 3,
                                                .members = { 1, 2, 4 } };
    world_stop(w, 1);
    world_stop(w, 2);
    world_tell_all(w);
    assert_int_equal(
        world_count(w, 3, "a", HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_ANY), 1);
}

static void a_shard_without_documents_is_not_waited_for(void **state)
{
    struct world *w = *state;

    struct mergers_stats stats;

    begin_joint(w);
    lacking(w, 0, 0);
    mergers_stats_get(w->members[0].mergers, &stats);
    assert_int_equal(stats.replicas, 0);
}

/* It said that there were none: the old members were left, and what they alone had with them. */
static void an_owner_without_documents_asks_the_others_for_theirs(void **state)
{
    struct world *w = *state;

    w->cut = 1;
    assert_int_equal(world_put(w, 1, "a", "1"), REPLY_OK);
    world_eventually(w, 2, "a", 1);
    begin_joint(w);
    assert_int_equal(mergers_lacking(w->members[0].mergers, SHARD), 3);
    w->cut = 0;
    lacking(w, 0, 0);
    assert_int_equal(world_count_any(w, 3, "a"), 1);
}

static void an_owner_that_hears_of_no_member_does_not_wait_for_ever(void **state)
{
    struct world *w = *state;

    world_stop(w, 0);
    w->leave_wait_ms = 1500;
    world_start(w, 0);
    w->cut = 1;
    begin_joint(w);
    assert_int_equal(mergers_lacking(w->members[0].mergers, SHARD), 3);
    lacking(w, 0, 0);
}

static void a_member_whose_program_knows_no_documents_is_not_waited_for(void **state)
{
    struct world *w = *state;

    assert_int_equal(world_put(w, 0, "a", "1"), REPLY_OK);
    world_eventually(w, 1, "a", 1);
    w->cut = w->old = 4;
    begin_joint(w);
    lacking(w, 0, 0);
}

static void a_member_that_is_away_is_not_waited_for_for_ever(void **state)
{
    struct world *w = *state;

    world_stop(w, 0);
    w->leave_wait_ms = 1500;
    world_start(w, 0);
    assert_int_equal(world_put(w, 0, "a", "1"), REPLY_OK);
    w->cut = 4;
    begin_joint(w);
    assert_int_equal(mergers_lacking(w->members[0].mergers, SHARD), 3);
    lacking(w, 0, 0);
}

/* The others took its messages for those of its former process. */
static void a_member_that_lost_its_disk_and_its_time_is_heard(void **state)
{
    struct world *w = *state;

    world_stop(w, 0);
    world_start(w, 0);
    assert_int_equal(world_put(w, 0, "a", "1"), REPLY_OK);
    world_eventually(w, 1, "a", 1);
    uint64_t former_boot = w->heard_boots[0];

    world_stop(w, 0);
    test_directory_remove(w->members[0].directory);
    w->boot = 0;
    world_start(w, 0);
    assert_int_equal(world_put(w, 0, "b", "1"), REPLY_OK);
    world_eventually(w, 1, "b", 1);
    world_eventually(w, 0, "a", 1);
    assert_true(w->heard_boots[0] > former_boot);
    world_stop(w, 0);
    world_start(w, 0); /* As low, by its clock; its disk knows better. */
    assert_int_equal(world_put(w, 0, "c", "1"), REPLY_OK);
    world_eventually(w, 1, "c", 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_needs_no_documents_pays_nothing),
        TEST(a_write_is_everywhere_and_survives_a_restart_of_all),
        TEST(both_sides_of_a_cut_write_and_all_come_to_be_equal),
        TEST(a_database_that_is_damaged_is_filled_from_the_others),
        TEST(a_removed_member_gives_what_it_alone_has_and_then_holds_nothing),
        TEST(a_full_disk_ends_writes_and_no_reads),
        TEST(an_erased_entity_is_shown_by_no_read_and_an_undo_brings_it_back),
        TEST(what_is_purged_comes_back_from_no_sleeper_and_no_disk),
        TEST(a_member_that_is_asked_for_nothing_purges_too),
        TEST(members_that_follow_each_other_are_not_apart_for_long),
        TEST(old_members_are_not_left_before_a_new_one_has_their_documents),
        TEST(a_shard_without_documents_is_not_waited_for),
        TEST(an_owner_without_documents_asks_the_others_for_theirs),
        TEST(an_owner_that_hears_of_no_member_does_not_wait_for_ever),
        TEST(a_member_whose_program_knows_no_documents_is_not_waited_for),
        TEST(a_member_that_is_away_is_not_waited_for_for_ever),
        TEST(a_member_that_lost_its_disk_and_its_time_is_heard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
