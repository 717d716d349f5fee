#include "runtime/cluster/shard_change.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct shard_record stable(void)
{
    return (struct shard_record){ .generation = 1,
                                  .epoch = 10,
                                  .owner = 2,
                                  .config = 4,
                                  .phase = SHARD_STABLE,
                                  .member_count = 3,
                                  .members = { 1, 2, 3 } };
}

/* Whatever is made can be written, and read again as it was. */
static void must_be_writable(const struct shard_record *record)
{
    struct shard_record back;
    struct buf json = { 0 };

    assert_int_equal(shard_record_validate(record, NULL), ERR_OK);
    shard_record_encode(record, &json);
    assert_int_equal(shard_record_decode(buf_slice(&json), &back, NULL), ERR_OK);
    assert_memory_equal(&back, record, sizeof back);
    buf_deinit(&json);
}

static void one_replica_takes_the_place_of_another(void **state)
{
    struct shard_record now = stable();

    (void)state;
    assert_int_equal(shard_change_begin(&now, 7, 2, &now, NULL), ERR_OK);
    must_be_writable(&now);
    assert_true(now.epoch == 11 && now.config == 4 && now.learner == 7 && now.leaving == 2);
    assert_true(now.phase == SHARD_STABLE && now.member_count == 3);
    assert_true(shard_change_is_open(&now));
    assert_false(shard_record_has_member(&now, 7));
    assert_int_equal(shard_change_join(&now, &now, NULL), ERR_OK);
    must_be_writable(&now);
    assert_true(now.epoch == 12 && now.config == 5 && now.phase == SHARD_JOINT);
    assert_true(now.new_member_count == 3 && now.new_members[0] == 1 && now.new_members[2] == 7);
    assert_true(now.learner == 0 && now.leaving == 0 && now.owner == 2);
    /* The owner is the one who goes. */
    assert_int_equal(shard_change_leave(&now, 7, &now, NULL), ERR_OK);
    must_be_writable(&now);
    assert_true(now.epoch == 13 && now.config == 6 && now.phase == SHARD_STABLE);
    assert_true(now.owner == 7 && now.member_count == 3 && !shard_record_has_member(&now, 2));
    assert_false(shard_change_is_open(&now));
}

static void change_that_is_given_up_leaves_the_members_as_they_were(void **state)
{
    struct shard_record now = stable();

    (void)state;
    assert_int_equal(shard_change_begin(&now, 7, 1, &now, NULL), ERR_OK);
    struct shard_record learning = now;
    assert_int_equal(shard_change_abort(&now, 0, &now, NULL), ERR_OK);
    assert_true(now.epoch == 12 && now.config == 5 && now.learner == 0 && now.owner == 2);
    must_be_writable(&now);
    assert_int_equal(shard_change_join(&learning, &now, NULL), ERR_OK);
    now.owner = 7; /* It failed over to the one who came. */
    assert_int_equal(shard_change_abort(&now, 7, &now, NULL), ERR_INVALID);
    assert_int_equal(shard_change_abort(&now, 3, &now, NULL), ERR_OK);
    assert_true(now.owner == 3 && now.member_count == 3 && shard_record_has_member(&now, 1));
    must_be_writable(&now);
}

static void removal_alone_needs_no_learner(void **state)
{
    struct shard_record now = stable();

    (void)state;
    assert_int_equal(shard_change_begin(&now, 0, 3, &now, NULL), ERR_OK);
    must_be_writable(&now);
    assert_true(now.phase == SHARD_JOINT && now.new_member_count == 2 && now.config == 5);
    assert_int_equal(shard_change_leave(&now, 0, &now, NULL), ERR_OK);
    assert_true(now.member_count == 2 && now.owner == 2);
}

static void what_makes_no_sense_is_refused_with_a_reason(void **state)
{
    const struct shard_record now = stable();
    struct shard_record alone = {
        .generation = 1, .epoch = 1, .owner = 1, .config = 1, .member_count = 1, .members = { 1 }
    };
    struct shard_record next = { 0 };
    struct record_error why = { "" };

    (void)state;
    assert_int_equal(shard_change_begin(&now, 0, 0, &next, &why), ERR_INVALID);
    assert_int_equal(shard_change_begin(&now, 3, 1, &next, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "3 is a member already"));
    assert_int_equal(shard_change_begin(&now, 7, 8, &next, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "8 is no member"));
    assert_int_equal(shard_change_begin(&alone, 0, 1, &next, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "only member"));
    assert_int_equal(shard_change_join(&now, &next, &why), ERR_CONFLICT);
    assert_int_equal(shard_change_leave(&now, 1, &next, &why), ERR_CONFLICT);
    assert_int_equal(shard_change_abort(&now, 1, &next, &why), ERR_CONFLICT);
    assert_int_equal(next.epoch, 0);
    assert_int_equal(shard_change_begin(&now, 7, 1, &next, &why), ERR_OK);
    assert_int_equal(shard_change_begin(&next, 8, 1, &next, &why), ERR_CONFLICT);
    assert_non_null(strstr(why.text, "under way"));
}

static void record_with_a_learner_that_counts_is_refused(void **state)
{
    struct shard_record record = stable();

    (void)state;
    record.learner = 3;
    assert_int_equal(shard_record_validate(&record, NULL), ERR_INVALID);
    record.learner = 7;
    record.leaving = 8;
    assert_int_equal(shard_record_validate(&record, NULL), ERR_INVALID);
    record.leaving = 3;
    assert_int_equal(shard_record_validate(&record, NULL), ERR_OK);
    record.learner = 0;
    assert_int_equal(shard_record_validate(&record, NULL), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_replica_takes_the_place_of_another),
        cmocka_unit_test(change_that_is_given_up_leaves_the_members_as_they_were),
        cmocka_unit_test(removal_alone_needs_no_learner),
        cmocka_unit_test(what_makes_no_sense_is_refused_with_a_reason),
        cmocka_unit_test(record_with_a_learner_that_counts_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
