#include "node/rpc/fixture.h"

#include "holdfast/v1/backup.pb-c.h"

static Holdfast__V1__CutBackupResponse *cut(struct fixture *f, uint64_t id)
{
    Holdfast__V1__CutBackupRequest request = HOLDFAST__V1__CUT_BACKUP_REQUEST__INIT;

    request.cut = id;
    return fixture_mutate(f, METHOD_CUT_BACKUP, &request.base);
}

static void a_cut_only_rises_and_stays(void **state)
{
    struct fixture *f = *state;

    Holdfast__V1__CutBackupResponse *response = cut(f, 7);
    assert_non_null(response);
    assert_int_equal(response->cut, 7);
    response = cut(f, 3);
    assert_non_null(response);
    assert_int_equal(response->cut, 7);
    fixture_restart(f);
    assert_int_equal(applier_meta(f->applier)->cut_id, 7);
}

static void a_cut_far_ahead_would_use_up_the_ids(void **state)
{
    struct fixture *f = *state;

    assert_non_null(cut(f, 7));
    assert_null(cut(f, 7 + 1000001));
    assert_false(f->recorded);
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    assert_string_equal(f->error->field, "cut");
    assert_int_equal(applier_meta(f->applier)->cut_id, 7);
    assert_non_null(cut(f, 7 + 1000000));
    assert_int_equal(applier_meta(f->applier)->cut_id, 1000007);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_cut_only_rises_and_stays),
        FIXTURE_TEST(a_cut_far_ahead_would_use_up_the_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
