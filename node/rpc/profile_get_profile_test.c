#include "node/rpc/fixture.h"

#include <string.h>

static void replace(struct fixture *f, const char *name, const char *json)
{
    Holdfast__V1__UpdateProfileRequest request = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT;
    Holdfast__V1__SectionEdit edit = HOLDFAST__V1__SECTION_EDIT__INIT;
    Holdfast__V1__SectionEdit *edits[] = { &edit };

    edit.name = (char *)(uintptr_t)name;
    edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    edit.replace = (char *)(uintptr_t)json;
    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.edits = edits;
    request.n_edits = 1;
    assert_non_null(fixture_mutate(f, METHOD_UPDATE_PROFILE, &request.base));
}

static void an_unknown_player_has_version_zero(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetProfileRequest request = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;

    request.player_id = (char *)"stranger";
    Holdfast__V1__GetProfileResponse *response = fixture_read(f, METHOD_GET_PROFILE, &request.base);
    assert_non_null(response);
    assert_int_equal(response->profile->version, 0);
    assert_string_equal(response->profile->player_id, "stranger");
    assert_int_equal(response->as_of->counter, 2);
}

static void a_profile_is_read_whole_or_by_section_also_from_the_database(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetProfileRequest request = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;
    char *names[] = { (char *)"pets", (char *)"none" };

    assert_non_null(fixture_grant(f, "ann", "unheld", 7));
    replace(f, "quests", "{}");
    replace(f, "pets", "[1]");
    fixture_restart(f);
    request.player_id = (char *)"ann";
    Holdfast__V1__GetProfileResponse *response = fixture_read(f, METHOD_GET_PROFILE, &request.base);
    assert_int_equal(response->profile->version, 3);
    assert_int_equal(response->profile->created_at_ms, (int64_t)FIXTURE_START_MS);
    assert_int_equal(response->profile->n_sections, 2);
    assert_string_equal(response->profile->sections[0]->json, "[1]");
    assert_string_equal(response->profile->balances[0]->currency, "gold");
    request.sections = names;
    request.n_sections = 2;
    response = fixture_read(f, METHOD_GET_PROFILE, &request.base);
    assert_int_equal(response->profile->n_sections, 1);
    assert_string_equal(response->profile->sections[0]->name, "pets");
}

static void names_are_checked(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetProfileRequest request = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;
    char *names[] = { (char *)"Pets" };

    request.player_id = (char *)"ann";
    request.sections = names;
    request.n_sections = 1;
    assert_null(fixture_read(f, METHOD_GET_PROFILE, &request.base));
    assert_string_equal(f->error->field, "sections[0]");
    request.n_sections = 0;
    request.player_id = (char *)"";
    assert_null(fixture_read(f, METHOD_GET_PROFILE, &request.base));
    assert_string_equal(f->error->field, "player_id");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(an_unknown_player_has_version_zero),
        FIXTURE_TEST(a_profile_is_read_whole_or_by_section_also_from_the_database),
        FIXTURE_TEST(names_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
