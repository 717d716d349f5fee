#include "node/rpc/fixture.h"

#include <string.h>

#define MODE(name) HOLDFAST__V1__START_MODE__START_MODE_##name

static Holdfast__V1__StartSessionRequest request_of(struct fixture *f, const char *server)
{
    Holdfast__V1__StartSessionRequest request = HOLDFAST__V1__START_SESSION_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.incarnation = text_lend(server);
    return request;
}

static void the_answer_carries_the_profile_as_it_stands(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__StartSessionRequest request = request_of(f, SERVER_A);

    assert_non_null(fixture_grant(f, "ann", "unheld", 12));
    Holdfast__V1__StartSessionResponse *response =
        fixture_mutate(f, METHOD_START_SESSION, &request.base);
    assert_non_null(response);
    assert_string_equal(response->token, SERVER_A "-1");
    assert_int_equal(response->fence, 1);
    assert_false(response->stolen);
    assert_int_equal(response->profile->version, 2);
    assert_int_equal(response->profile->balances[0]->amount, 12);
    assert_non_null(fixture_grant(f, "ann", response->token, 5));
    response = fixture_mutate(f, METHOD_START_SESSION, &request.base);
    assert_true(response->write->duplicate);
    assert_int_equal(response->write->version, 2);
    assert_int_equal(response->profile->version, 3);
    assert_int_equal(response->profile->balances[0]->amount, 17);
}

static void mint_three(struct fixture *f)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item, &item, &item };

    item.kind = (char *)"sword";
    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.items = items;
    request.n_items = 3;
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
}

static void the_answer_carries_what_is_asked_for_also_when_it_is_asked_again(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__StartSessionRequest request = request_of(f, SERVER_A);
    char *words[] = { (char *)"items", (char *)"mail" };

    assert_non_null(fixture_grant(f, "ann", "unheld", 12));
    mint_three(f);
    request.include = words;
    request.n_include = 2;
    for (int i = 0; i < 2; i++) {
        fixture_restart(f);
        Holdfast__V1__StartSessionResponse *response =
            fixture_mutate(f, METHOD_START_SESSION, &request.base);
        assert_int_equal(response->write->duplicate, i);
        assert_int_equal(response->profile->items->n_items, 3);
        assert_int_equal(response->profile->mail->total, 0);
        assert_int_equal(response->profile->n_balances, 0);
    }
}

static void edit(struct fixture *f, const char *name)
{
    Holdfast__V1__UpdateProfileRequest request = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT;
    Holdfast__V1__SectionEdit section = HOLDFAST__V1__SECTION_EDIT__INIT;
    Holdfast__V1__SectionEdit *edits[] = { &section };

    section.name = text_lend(name);
    section.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    section.replace = (char *)"{}";
    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.edits = edits;
    request.n_edits = 1;
    assert_non_null(fixture_mutate(f, METHOD_UPDATE_PROFILE, &request.base));
}

/* As a request stands in a log that an older version wrote. */
static void sections_that_an_older_version_asked_for_are_read(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__StartSessionRequest request = request_of(f, SERVER_A);
    uint8_t name[] = "\x06quests";
    ProtobufCMessageUnknownField sections = {
        .tag = 13, .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, .len = 7, .data = name
    };

    assert_non_null(fixture_grant(f, "ann", "unheld", 12));
    edit(f, "quests");
    edit(f, "pets");
    request.base.n_unknown_fields = 1;
    request.base.unknown_fields = &sections;
    Holdfast__V1__StartSessionResponse *response =
        fixture_mutate(f, METHOD_START_SESSION, &request.base);
    assert_int_equal(response->profile->n_sections, 1);
    assert_string_equal(response->profile->sections[0]->name, "quests");
    assert_int_equal(response->profile->n_balances, 1);
}

static void a_late_duplicate_of_an_ended_session_gets_no_profile(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__StartSessionRequest request = request_of(f, SERVER_A);

    Holdfast__V1__StartSessionResponse *response =
        fixture_mutate(f, METHOD_START_SESSION, &request.base);
    assert_non_null(fixture_end(f, "ann", response->token));
    response = fixture_mutate(f, METHOD_START_SESSION, &request.base);
    assert_true(response->write->duplicate);
    assert_null(response->profile);
}

static void a_held_player_is_locked_for_others(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__StartSessionRequest request = request_of(f, SERVER_B);

    assert_non_null(fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f)));
    assert_null(fixture_mutate(f, METHOD_START_SESSION, &request.base));
    assert_int_equal(f->error->code, ERROR(SESSION_LOCKED));
    assert_string_equal(f->error->holder, SERVER_A);
    assert_true(f->error->final);
    assert_false(f->outcome.waits);
    assert_int_equal(applier_meta(f->applier)->session_count, 1);
}

static void the_same_server_asking_again_gets_a_new_session(void **state)
{
    struct fixture *f = *state;

    char *first = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));
    char *second = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));
    assert_string_equal(second, SERVER_A "-2");
    assert_null(fixture_grant(f, "ann", first, 1));
    assert_int_equal(f->error->code, ERROR(SESSION_LOST));
    assert_non_null(fixture_grant(f, "ann", second, 1));
    assert_int_equal(applier_meta(f->applier)->session_count, 1);
}

static void an_expired_server_gets_no_session(void **state)
{
    struct fixture *f = *state;

    fixture_expire(f, SERVER_A, "");
    assert_null(fixture_start(f, "ann", SERVER_A, MODE(STEAL), fixture_op_id(f)));
    assert_int_equal(f->error->code, ERROR(SERVER_EXPIRED));
    assert_true(f->error->final);
    assert_non_null(fixture_start(f, "ann", SERVER_B, MODE(FAIL), fixture_op_id(f)));
}

static void fields_are_checked(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__StartSessionRequest request = request_of(f, "7");
    char *words[] = { (char *)"wallet" };

    assert_null(fixture_mutate(f, METHOD_START_SESSION, &request.base));
    assert_string_equal(f->error->field, "incarnation");
    request.incarnation = (char *)SERVER_A;
    request.grace_ms = 60001;
    assert_null(fixture_mutate(f, METHOD_START_SESSION, &request.base));
    assert_string_equal(f->error->field, "grace_ms");
    request.grace_ms = 0;
    request.mode = (Holdfast__V1__StartMode)9;
    assert_null(fixture_mutate(f, METHOD_START_SESSION, &request.base));
    assert_string_equal(f->error->field, "mode");
    request.mode = MODE(FAIL);
    request.include = words;
    request.n_include = 1;
    assert_null(fixture_mutate(f, METHOD_START_SESSION, &request.base));
    assert_string_equal(f->error->field, "include[0]");
    request.n_include = 0;
    request.player_id = (char *)"a\nb";
    assert_null(fixture_mutate(f, METHOD_START_SESSION, &request.base));
    assert_string_equal(f->error->field, "player_id");
    assert_string_equal(f->error->value, "a\\x0ab");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(the_answer_carries_the_profile_as_it_stands),
        FIXTURE_TEST(the_answer_carries_what_is_asked_for_also_when_it_is_asked_again),
        FIXTURE_TEST(sections_that_an_older_version_asked_for_are_read),
        FIXTURE_TEST(a_late_duplicate_of_an_ended_session_gets_no_profile),
        FIXTURE_TEST(a_held_player_is_locked_for_others),
        FIXTURE_TEST(the_same_server_asking_again_gets_a_new_session),
        FIXTURE_TEST(an_expired_server_gets_no_session),
        FIXTURE_TEST(fields_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
