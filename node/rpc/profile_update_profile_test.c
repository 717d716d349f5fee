#include "node/rpc/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

struct update {
    Holdfast__V1__UpdateProfileRequest request;
    Holdfast__V1__SectionEdit edit;
    Holdfast__V1__SectionEdit *edits[2];
};

static void update_init(struct update *update, const char *name)
{
    holdfast__v1__update_profile_request__init(&update->request);
    holdfast__v1__section_edit__init(&update->edit);
    update->edit.name = text_lend(name);
    update->edits[0] = &update->edit;
    update->edits[1] = &update->edit;
    update->request.player_id = (char *)"ann";
    update->request.edits = update->edits;
    update->request.n_edits = 1;
}

static Holdfast__V1__UpdateProfileResponse *send(struct fixture *f, struct update *update)
{
    update->request.op_id = fixture_op_id(f);
    update->request.authority = fixture_authority(f, "unheld");
    return fixture_mutate(f, METHOD_UPDATE_PROFILE, &update->request.base);
}

static Holdfast__V1__UpdateProfileResponse *replace(struct fixture *f, const char *name,
                                                    const char *json)
{
    struct update update;

    update_init(&update, name);
    update.edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    update.edit.replace = text_lend(json);
    return send(f, &update);
}

static Holdfast__V1__UpdateProfileResponse *merge(struct fixture *f, const char *name,
                                                  const char *json)
{
    struct update update;

    update_init(&update, name);
    update.edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_MERGE;
    update.edit.merge = text_lend(json);
    return send(f, &update);
}

static Holdfast__V1__Profile *profile(struct fixture *f)
{
    Holdfast__V1__GetProfileRequest request = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;

    request.player_id = (char *)"ann";
    Holdfast__V1__GetProfileResponse *response = fixture_read(f, METHOD_GET_PROFILE, &request.base);
    assert_non_null(response);
    return response->profile;
}

static void edits_make_change_and_remove_sections(void **state)
{
    struct fixture *f = *state;

    Holdfast__V1__UpdateProfileResponse *response = replace(f, "quests", " {\"b\":1, \"a\":[ ]} ");
    assert_non_null(response);
    assert_int_equal(response->sections[0]->version, 1);
    assert_string_equal(profile(f)->sections[0]->json, "{\"a\":[],\"b\":1}");
    response = merge(f, "quests", "{\"b\":null,\"c\":{\"d\":2}}");
    assert_int_equal(response->sections[0]->version, 2);
    assert_int_equal(response->write->version, 2);
    assert_string_equal(profile(f)->sections[0]->json, "{\"a\":[],\"c\":{\"d\":2}}");
    assert_non_null(merge(f, "pets", "{\"cat\":1}"));
    assert_int_equal(profile(f)->n_sections, 2);
    struct update update;
    Holdfast__V1__DeleteSection delete = HOLDFAST__V1__DELETE_SECTION__INIT;
    update_init(&update, "quests");
    update.edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_DELETE;
    update.edit.delete_ = &delete;
    assert_non_null(send(f, &update));
    assert_int_equal(profile(f)->n_sections, 1);
    assert_string_equal(profile(f)->sections[0]->name, "pets");
    assert_int_equal(profile(f)->sections[0]->last_write_at_ms, (int64_t)f->now_ms);
}

/* Else an if_version of before the deletion could match what was written after it. */
static void a_section_made_anew_has_no_version_it_had_before(void **state)
{
    struct fixture *f = *state;
    struct update update;
    Holdfast__V1__DeleteSection delete = HOLDFAST__V1__DELETE_SECTION__INIT;

    assert_non_null(replace(f, "quests", "{}"));
    assert_non_null(replace(f, "quests", "{}"));
    assert_int_equal(profile(f)->sections[0]->version, 2);
    for (uint64_t version = 3; version < 6; version++) {
        update_init(&update, "quests");
        update.edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_DELETE;
        update.edit.delete_ = &delete;
        assert_non_null(send(f, &update));
        fixture_restart(f);
        assert_non_null(replace(f, "quests", "{}"));
        assert_int_equal(profile(f)->sections[0]->version, version);
    }
}

static void edits_work_on_sections_that_left_memory(void **state)
{
    struct fixture *f = *state;

    assert_non_null(replace(f, "quests", "{\"a\":1}"));
    fixture_checkpoint(f);
    fixture_evict(f, 0);
    assert_non_null(merge(f, "quests", "{\"b\":2}"));
    assert_true(f->need_rounds > 0);
    assert_string_equal(profile(f)->sections[0]->json, "{\"a\":1,\"b\":2}");
}

static void steps_are_all_or_nothing_and_the_refusal_names_the_step(void **state)
{
    struct fixture *f = *state;
    struct update update;
    Holdfast__V1__PatchList list = HOLDFAST__V1__PATCH_LIST__INIT;
    Holdfast__V1__PatchStep first = HOLDFAST__V1__PATCH_STEP__INIT;
    Holdfast__V1__PatchStep second = HOLDFAST__V1__PATCH_STEP__INIT;
    Holdfast__V1__PatchStep *steps[] = { &first, &second };

    assert_non_null(replace(f, "mmr", "{\"solo\":9223372036854775800}"));
    first.kind = HOLDFAST__V1__PATCH_KIND__PATCH_KIND_SET;
    first.path = (char *)"/duo";
    first.json = (char *)"1";
    second.kind = HOLDFAST__V1__PATCH_KIND__PATCH_KIND_INCREMENT;
    second.path = (char *)"/solo";
    second.json = (char *)"8";
    list.steps = steps;
    list.n_steps = 2;
    update_init(&update, "mmr");
    update.edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_PATCH;
    update.edit.patch = &list;
    assert_null(send(f, &update));
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    assert_string_equal(f->error->field, "edits[\"mmr\"].patch.steps[1].path");
    assert_string_equal(profile(f)->sections[0]->json, "{\"solo\":9223372036854775800}");
    second.json = (char *)"7";
    assert_non_null(send(f, &update));
    assert_string_equal(profile(f)->sections[0]->json, "{\"duo\":1,\"solo\":9223372036854775807}");
}

static void a_merge_removes_paths_after_it(void **state)
{
    struct fixture *f = *state;
    struct update update;
    char *paths[] = { (char *)"/list/0", (char *)"/list/0", (char *)"/made/x", (char *)"/no/such" };

    assert_non_null(replace(f, "quests", "{\"list\":[1,2,3],\"null\":1}"));
    update_init(&update, "quests");
    update.edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_MERGE;
    update.edit.merge = (char *)"{\"made\":{\"x\":1,\"y\":2},\"null\":null}";
    update.edit.remove = paths;
    update.edit.n_remove = ARRAY_SIZE(paths);
    fixture_checkpoint(f);
    fixture_evict(f, 0);
    assert_non_null(send(f, &update));
    assert_string_equal(profile(f)->sections[0]->json, "{\"list\":[3],\"made\":{\"y\":2}}");
    update.edit.name = (char *)"absent";
    assert_non_null(send(f, &update));
    assert_string_equal(profile(f)->sections[0]->json, "{\"made\":{\"y\":2}}");
    update.edit.merge = (char *)"5";
    assert_non_null(send(f, &update));
    assert_string_equal(profile(f)->sections[0]->json, "5");
}

static void assert_remove_refused(struct fixture *f, struct update *update, const char *field,
                                  const char *limit, const char *value)
{
    assert_null(send(f, update));
    assert_false(f->recorded);
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    assert_string_equal(f->error->field, field);
    assert_string_equal(f->error->limit, limit);
    assert_string_equal(f->error->value, value);
}

static void paths_to_remove_are_checked_before_the_log(void **state)
{
    struct fixture *f = *state;
    struct update update;
    Holdfast__V1__DeleteSection delete = HOLDFAST__V1__DELETE_SECTION__INIT;
    char *paths[LIMIT_PATCH_STEPS + 1];

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        paths[i] = (char *)"/x";
    update_init(&update, "quests");
    update.edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_MERGE;
    update.edit.merge = (char *)"{}";
    update.edit.remove = paths;
    update.edit.n_remove = LIMIT_PATCH_STEPS + 1;
    assert_remove_refused(f, &update, "edits[\"quests\"].remove", "at most 64 paths", "65");
    update.edit.n_remove = LIMIT_PATCH_STEPS;
    assert_non_null(send(f, &update));
    paths[1] = (char *)"x";
    assert_remove_refused(f, &update, "edits[\"quests\"].remove[1]",
                          "a JSON Pointer of at most 512 bytes and 64 parts", "x");
    update.edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    update.edit.replace = (char *)"{}";
    assert_remove_refused(f, &update, "edits[\"quests\"].remove", "no paths without merge", "/x");
    update.edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_DELETE;
    update.edit.delete_ = &delete;
    assert_remove_refused(f, &update, "edits[\"quests\"].remove", "no paths without merge", "/x");
}

static void an_element_is_added_once_and_discarded_wherever_it_is(void **state)
{
    struct fixture *f = *state;
    struct update update;
    Holdfast__V1__PatchList list = HOLDFAST__V1__PATCH_LIST__INIT;
    Holdfast__V1__PatchStep step = HOLDFAST__V1__PATCH_STEP__INIT;
    Holdfast__V1__PatchStep *steps[] = { &step };

    step.kind = HOLDFAST__V1__PATCH_KIND__PATCH_KIND_ADD;
    step.path = (char *)"/badges";
    list.steps = steps;
    list.n_steps = 1;
    update_init(&update, "quests");
    update.edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_PATCH;
    update.edit.patch = &list;
    for (int i = 0; i < 3; i++) {
        step.json = (char *)(i < 2 ? "{\"b\":1,\"a\":2}" : "{\"a\":2, \"b\":1}");
        assert_non_null(send(f, &update));
    }
    assert_string_equal(profile(f)->sections[0]->json, "{\"badges\":[{\"a\":2,\"b\":1}]}");
    step.path = (char *)"";
    assert_null(send(f, &update));
    assert_true(f->recorded);
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    assert_string_equal(f->error->limit, "an array, or nothing, at the path");
    step.path = (char *)"/badges";
    step.kind = HOLDFAST__V1__PATCH_KIND__PATCH_KIND_DISCARD;
    step.json = (char *)"{\"a\":2,  \"b\":1}";
    assert_non_null(send(f, &update));
    assert_non_null(send(f, &update));
    assert_string_equal(profile(f)->sections[0]->json, "{\"badges\":[]}");
    step.kind = (Holdfast__V1__PatchKind)(HOLDFAST__V1__PATCH_KIND__PATCH_KIND_DISCARD + 1);
    assert_null(send(f, &update));
    assert_string_equal(f->error->field, "edits[\"quests\"].patch.steps[0].kind");
    assert_string_equal(f->error->value, "8");
}

static Holdfast__V1__UpdateProfileResponse *guarded(struct fixture *f, bool deletes,
                                                    uint64_t if_version)
{
    Holdfast__V1__DeleteSection delete = HOLDFAST__V1__DELETE_SECTION__INIT;
    struct update update;

    update_init(&update, "quests");
    update.edit.edit_case = deletes ? HOLDFAST__V1__SECTION_EDIT__EDIT_DELETE
                                    : HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    if (deletes)
        update.edit.delete_ = &delete;
    else
        update.edit.replace = (char *)"{}";
    update.edit._if_version_case = HOLDFAST__V1__SECTION_EDIT___IF_VERSION_IF_VERSION;
    update.edit.if_version = if_version;
    return send(f, &update);
}

static void assert_stale(struct fixture *f, bool deletes, uint64_t if_version, const char *current)
{
    assert_null(guarded(f, deletes, if_version));
    assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
    assert_string_equal(f->error->field, "edits[\"quests\"].if_version");
    assert_string_equal(f->error->value, current);
}

/* A section's if_version means the same before, at and after a delete. */
static void no_if_version_of_before_a_delete_fits_after_it(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(guarded(f, true, 0)->sections[0]->version, 0); /* There was none. */
    assert_int_equal(guarded(f, false, 0)->sections[0]->version, 1);
    assert_int_equal(guarded(f, false, 1)->sections[0]->version, 2);
    assert_stale(f, true, 1, "2");
    assert_stale(f, true, 0, "2");
    assert_int_equal(guarded(f, true, 2)->sections[0]->version, 0);
    for (uint64_t before = 1; before <= 3; before++) {
        assert_stale(f, false, before, "0");
        assert_stale(f, true, before, "0");
    }
    assert_int_equal(guarded(f, false, 0)->sections[0]->version, 3);
    assert_stale(f, false, 1, "3");
    assert_stale(f, false, 2, "3");
    assert_stale(f, false, 0, "3");
    /* Nor does one section's version fit what stands under another's name after a delete. */
    assert_int_equal(guarded(f, true, 3)->sections[0]->version, 0);
    assert_int_equal(replace(f, "pets", "{}")->sections[0]->version, 4);
}

static void versions_and_schemas_guard_a_section(void **state)
{
    struct fixture *f = *state;
    struct update update;

    update_init(&update, "quests");
    update.edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    update.edit.replace = (char *)"{}";
    update.edit.schema_version = 3;
    assert_non_null(send(f, &update));
    update.edit._if_version_case = HOLDFAST__V1__SECTION_EDIT___IF_VERSION_IF_VERSION;
    update.edit.if_version = 2;
    assert_null(send(f, &update));
    assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
    assert_string_equal(f->error->value, "1");
    update.edit.if_version = 1;
    assert_non_null(send(f, &update));
    update.edit.if_version = 0; /* There must be no such section. */
    assert_null(send(f, &update));
    assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
    assert_string_equal(f->error->value, "2");
    update_init(&update, "absent");
    update.edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    update.edit.replace = (char *)"{}";
    update.edit._if_version_case = HOLDFAST__V1__SECTION_EDIT___IF_VERSION_IF_VERSION;
    assert_non_null(send(f, &update));
    update_init(&update, "quests");
    update.edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    update.edit.replace = (char *)"{}";
    update.edit.schema_version = 2;
    assert_null(send(f, &update));
    assert_int_equal(f->error->code, ERROR(SCHEMA_TOO_NEW));
    assert_string_equal(f->error->limit, "at least 3");
    assert_string_equal(f->error->value, "2");
}

static const char *field_of(struct fixture *f, const char *name)
{
    return arena_printf(&f->arena, "edits[\"%s\"].name", name);
}

static void names_and_documents_are_checked_before_the_log(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = { "", "Quests", "a-b", "wallet", "inventory", "ledger" };
    struct update update;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        assert_null(replace(f, names[i], "{}"));
        assert_false(f->recorded);
        assert_string_equal(f->error->field, i == 0 ? "edits[0].name" : field_of(f, names[i]));
    }
    assert_null(replace(f, "quests", "{\"a\":1,\"a\":2}"));
    assert_string_equal(f->error->field, "edits[\"quests\"].replace");
    assert_string_equal(f->error->limit, "JSON without duplicate members");
    char *large = malloc(SECTION_BYTES_MAX + 2);
    memset(large, '1', SECTION_BYTES_MAX + 1);
    large[0] = '"';
    large[SECTION_BYTES_MAX] = '"';
    large[SECTION_BYTES_MAX + 1] = 0;
    assert_null(replace(f, "quests", large));
    assert_string_equal(f->error->value, "262145");
    large[SECTION_BYTES_MAX - 1] = '"';
    large[SECTION_BYTES_MAX] = 0;
    assert_non_null(replace(f, "quests", large));
    free(large);
    update_init(&update, "pets");
    assert_null(send(f, &update));
    assert_string_equal(f->error->field, "edits[\"pets\"]");
    update.edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    update.edit.replace = (char *)"{}";
    update.request.n_edits = 2;
    assert_null(send(f, &update));
    assert_string_equal(f->error->field, "edits[\"pets\"]");
    update.request.n_edits = 0;
    assert_null(send(f, &update));
    assert_string_equal(f->error->field, "edits");
}

/* The total may not pass what fits one frame; a section may not grow past its limit by merges. */
static void a_profile_has_a_size_and_a_number_of_sections_at_most(void **state)
{
    struct fixture *f = *state;
    char name[16];
    char *large = malloc(SECTION_BYTES_MAX + 1);

    memset(large, '1', SECTION_BYTES_MAX);
    memcpy(large, "{\"a\":\"", 6);
    memcpy(large + SECTION_BYTES_MAX - 2, "\"}", 3);
    for (int i = 0; i < 12; i++) {
        (void)snprintf(name, sizeof name, "big%d", i);
        assert_non_null(replace(f, name, large));
    }
    assert_null(replace(f, "one_more", "1"));
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    assert_string_equal(f->error->capacity->what, "profile_bytes");
    assert_int_equal(f->error->capacity->max, 3145728);
    assert_string_equal(f->error->limit, "3145728");
    assert_string_equal(f->error->value, "3145729");
    assert_null(merge(f, "big0", "{\"b\":1}"));
    assert_string_equal(f->error->capacity->what, "section_bytes");
    assert_string_equal(f->error->limit, "262144");
    free(large);
    assert_non_null(replace(f, "big0", "1"));
    for (int i = 12; i < 64; i++) {
        (void)snprintf(name, sizeof name, "s%d", i);
        assert_non_null(replace(f, name, "1"));
    }
    assert_null(replace(f, "one_more", "1"));
    assert_string_equal(f->error->limit, "64");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(edits_make_change_and_remove_sections),
        FIXTURE_TEST(a_section_made_anew_has_no_version_it_had_before),
        FIXTURE_TEST(edits_work_on_sections_that_left_memory),
        FIXTURE_TEST(steps_are_all_or_nothing_and_the_refusal_names_the_step),
        FIXTURE_TEST(a_merge_removes_paths_after_it),
        FIXTURE_TEST(paths_to_remove_are_checked_before_the_log),
        FIXTURE_TEST(an_element_is_added_once_and_discarded_wherever_it_is),
        FIXTURE_TEST(no_if_version_of_before_a_delete_fits_after_it),
        FIXTURE_TEST(versions_and_schemas_guard_a_section),
        FIXTURE_TEST(names_and_documents_are_checked_before_the_log),
        FIXTURE_TEST(a_profile_has_a_size_and_a_number_of_sections_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
