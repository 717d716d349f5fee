#include "node/rpc/fixture.h"

#include <string.h>

#define MODE(name) HOLDFAST__V1__START_MODE__START_MODE_##name

static void *end_with(struct fixture *f, const char *token, const char *json)
{
    Holdfast__V1__EndSessionRequest request = HOLDFAST__V1__END_SESSION_REQUEST__INIT;
    Holdfast__V1__SectionEdit edit = HOLDFAST__V1__SECTION_EDIT__INIT;
    Holdfast__V1__SectionEdit *edits[] = { &edit };

    edit.name = (char *)"quests";
    edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    edit.replace = text_lend(json);
    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, token);
    request.edits = edits;
    request.n_edits = 1;
    return fixture_mutate(f, METHOD_END_SESSION, &request.base);
}

static void the_last_save_and_the_release_are_one_entry(void **state)
{
    struct fixture *f = *state;
    char *token = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));

    Holdfast__V1__EndSessionResponse *response = end_with(f, token, "{\"saved\":1}");
    assert_non_null(response);
    assert_int_equal(response->sections[0]->version, 1);
    assert_string_equal(fixture_session(f, "ann")->state, "free");
    assert_int_equal(applier_meta(f->applier)->session_count, 0);
    assert_int_equal(fixture_pass(f, 100000), 0);
}

static void a_save_that_is_refused_keeps_the_session(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__EndSessionRequest request = HOLDFAST__V1__END_SESSION_REQUEST__INIT;
    Holdfast__V1__SectionEdit edit = HOLDFAST__V1__SECTION_EDIT__INIT;
    Holdfast__V1__SectionEdit *edits[] = { &edit };
    char *token = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));

    edit.name = (char *)"quests";
    edit._if_version_case = HOLDFAST__V1__SECTION_EDIT___IF_VERSION_IF_VERSION;
    edit.if_version = 9;
    edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    edit.replace = (char *)"{}";
    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, token);
    request.edits = edits;
    request.n_edits = 1;
    assert_null(fixture_mutate(f, METHOD_END_SESSION, &request.base));
    assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
    assert_string_equal(fixture_session(f, "ann")->state, "granted");
}

/* The deposed holder's last save must not overwrite the new holder's state. */
static void a_fenced_server_saves_nothing(void **state)
{
    struct fixture *f = *state;
    char *old = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));

    fixture_expire(f, SERVER_A, "");
    char *new = fixture_start(f, "ann", SERVER_B, MODE(FAIL), fixture_op_id(f));
    assert_null(end_with(f, old, "{\"stale\":1}"));
    assert_int_equal(f->error->code, ERROR(SESSION_LOST));
    assert_true(f->outcome.stale_write);
    assert_string_equal(fixture_session(f, "ann")->incarnation, SERVER_B);
    assert_non_null(end_with(f, new, "{}"));
}

static void only_a_session_can_end_itself(void **state)
{
    struct fixture *f = *state;

    assert_null(fixture_end(f, "ann", "unheld"));
    assert_int_equal(f->error->code, ERROR(PERMISSION_DENIED));
    assert_null(fixture_end(f, "ann", "system:admin"));
    assert_int_equal(f->error->code, ERROR(PERMISSION_DENIED));
    assert_null(fixture_end(f, "ann", SERVER_A "-1"));
    assert_int_equal(f->error->code, ERROR(SESSION_LOST));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(the_last_save_and_the_release_are_one_entry),
        FIXTURE_TEST(a_save_that_is_refused_keeps_the_session),
        FIXTURE_TEST(a_fenced_server_saves_nothing),
        FIXTURE_TEST(only_a_session_can_end_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
