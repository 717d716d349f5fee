/* Roles and flags of a player: what is added stands, once, until it is removed or over. */
#include <stdio.h>
#include <string.h>

#include "holdfast/v1/user.pb-c.h"
#include "node/core/profile/user_flags.h"
#include "node/rpc/fixture.h"
#include "runtime/base/check.h"

typedef Holdfast__V1__SetUserFlagsRequest set_request;
typedef Holdfast__V1__SetUserFlagsResponse set_response;
typedef Holdfast__V1__GetUserFlagsResponse get_response;

/* A request with room for what tests put into it. */
struct asked {
    set_request request;
    Holdfast__V1__UserFlagWish wish, *wishes[1];
    char *adds[LIMIT_USER_ROLES + 1], *removes[2], *clears[2];
};

static void asked_init(struct fixture *f, struct asked *asked)
{
    holdfast__v1__set_user_flags_request__init(&asked->request);
    holdfast__v1__user_flag_wish__init(&asked->wish);
    asked->wishes[0] = &asked->wish;
    asked->request.player_id = text_lend("ann");
    asked->request.op_id = fixture_op_id(f);
    asked->request.authority = text_lend("system:admin");
    asked->request.add_roles = asked->adds;
    asked->request.remove_roles = asked->removes;
    asked->request.set_flags = asked->wishes;
    asked->request.clear_flags = asked->clears;
}

static void add_role(struct asked *asked, const char *role)
{
    asked->adds[asked->request.n_add_roles++] = text_lend(role);
}

static void remove_role(struct asked *asked, const char *role)
{
    asked->removes[asked->request.n_remove_roles++] = text_lend(role);
}

static void set_flag(struct asked *asked, const char *flag, uint64_t until_ms)
{
    asked->wish.name = text_lend(flag);
    asked->wish.until_ms = (int64_t)until_ms;
    asked->request.n_set_flags = 1;
}

static void clear_flag(struct asked *asked, const char *flag)
{
    asked->clears[asked->request.n_clear_flags++] = text_lend(flag);
}

static set_response *send(struct fixture *f, const struct asked *asked)
{
    return fixture_mutate(f, METHOD_SET_USER_FLAGS, &asked->request.base);
}

static const get_response *told(struct fixture *f)
{
    Holdfast__V1__GetUserFlagsRequest request = HOLDFAST__V1__GET_USER_FLAGS_REQUEST__INIT;

    request.player_id = text_lend("ann");
    const get_response *response = fixture_read(f, METHOD_GET_USER_FLAGS, &request.base);
    assert_non_null(response);
    return response;
}

/* "judge helper|premium": what GetUserFlags tells. */
static void assert_told(struct fixture *f, const char *expected)
{
    const get_response *response = told(f);
    char text[256] = "";
    size_t size = 0;

    for (size_t i = 0; i < response->n_roles; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%s", i > 0 ? " " : "",
                                 response->roles[i]->name);
    size += (size_t)snprintf(text + size, sizeof text - size, "|");
    for (size_t i = 0; i < response->n_flags; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%s", i > 0 ? " " : "",
                                 response->flags[i]->name);
    assert_string_equal(text, expected);
}

static void roles_and_flags_come_and_go_together(void **state)
{
    struct fixture *f = *state;
    struct asked asked;

    assert_told(f, "|");
    f->caller = "ops-1";
    asked_init(f, &asked);
    add_role(&asked, "judge");
    add_role(&asked, "helper");
    set_flag(&asked, "premium", 0);
    const set_response *response = send(f, &asked);
    assert_non_null(response);
    assert_int_equal(response->write->version, 1);
    assert_int_equal(response->n_roles, 2);
    assert_string_equal(response->roles[0]->name, "helper");
    assert_string_equal(response->roles[0]->by, "system:admin/ops-1");
    assert_int_equal(response->roles[0]->at_ms, f->now_ms);
    assert_string_equal(response->flags[0]->name, "premium");
    assert_told(f, "helper judge|premium");
    asked_init(f, &asked);
    remove_role(&asked, "judge");
    remove_role(&asked, "no_such");
    add_role(&asked, "author");
    clear_flag(&asked, "premium");
    assert_non_null(send(f, &asked));
    assert_told(f, "author helper|");
    fixture_restart(f);
    assert_told(f, "author helper|");
}

static void a_repetition_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct asked add, remove;

    asked_init(f, &add);
    add_role(&add, "judge");
    assert_non_null(send(f, &add));
    asked_init(f, &remove);
    remove_role(&remove, "judge");
    assert_non_null(send(f, &remove));
    const set_response *again = send(f, &add);
    assert_non_null(again);
    assert_true(again->write->duplicate);
    assert_int_equal(again->n_roles, 1); /* As it was told first. */
    assert_told(f, "|");
    add.adds[0] = text_lend("helper");
    assert_null(send(f, &add));
    assert_int_equal(f->error->code, ERROR(OPERATION_ID_MISMATCH));
}

static void a_flag_is_told_until_it_is_over(void **state)
{
    struct fixture *f = *state;
    struct asked asked;
    uint64_t until_ms = f->now_ms + 5000;

    asked_init(f, &asked);
    set_flag(&asked, "premium", until_ms);
    assert_non_null(send(f, &asked));
    assert_int_equal(told(f)->flags[0]->until_ms, until_ms);
    f->now_ms = until_ms - 1;
    assert_told(f, "|premium");
    f->now_ms = until_ms;
    assert_told(f, "|");
    asked_init(f, &asked);
    set_flag(&asked, "trial", 1); /* Over before it is set. */
    const set_response *response = send(f, &asked);
    assert_non_null(response);
    assert_int_equal(response->n_flags, 0);
    asked_init(f, &asked);
    set_flag(&asked, "premium", 0); /* It has no end from here on. */
    assert_non_null(send(f, &asked));
    assert_int_equal(told(f)->flags[0]->until_ms, 0);
}

static void payments_set_flags_and_give_no_role(void **state)
{
    struct fixture *f = *state;
    struct asked asked;

    asked_init(f, &asked);
    asked.request.authority = text_lend("system:payments");
    set_flag(&asked, "premium", 0);
    assert_non_null(send(f, &asked));
    asked_init(f, &asked);
    asked.request.authority = text_lend("system:payments");
    set_flag(&asked, "premium", 0);
    remove_role(&asked, "judge");
    assert_null(send(f, &asked));
    assert_int_equal(f->error->code, ERROR(PERMISSION_DENIED));
    assert_string_equal(f->error->field, "authority");
    asked_init(f, &asked);
    asked.request.authority = text_lend("system:match");
    set_flag(&asked, "premium", 0);
    assert_null(send(f, &asked));
    assert_int_equal(f->error->code, ERROR(PERMISSION_DENIED));
    asked_init(f, &asked);
    asked.request.authority = fixture_authority(f, "unheld");
    add_role(&asked, "judge");
    assert_null(send(f, &asked));
    assert_told(f, "|premium");
}

static void a_version_that_is_wanted_must_stand(void **state)
{
    struct fixture *f = *state;
    struct asked asked;

    for (uint64_t version = 0; version < 2; version++) {
        asked_init(f, &asked);
        asked.request._if_version_case =
            HOLDFAST__V1__SET_USER_FLAGS_REQUEST___IF_VERSION_IF_VERSION;
        asked.request.if_version = version;
        add_role(&asked, version == 0 ? "judge" : "helper");
        assert_non_null(send(f, &asked));
    }
    asked.request.op_id = fixture_op_id(f);
    assert_null(send(f, &asked));
    assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
    assert_string_equal(f->error->field, "if_version");
}

static void assert_invalid(struct fixture *f, const struct asked *asked, const char *field)
{
    assert_null(send(f, asked));
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    assert_string_equal(f->error->field, field);
    assert_false(f->recorded);
}

static void what_is_no_change_is_refused(void **state)
{
    struct fixture *f = *state;
    struct asked asked;

    asked_init(f, &asked);
    assert_invalid(f, &asked, "add_roles");
    add_role(&asked, "Judge");
    assert_invalid(f, &asked, "add_roles[0]");
    asked_init(f, &asked);
    add_role(&asked, "judge");
    remove_role(&asked, "helper");
    remove_role(&asked, "judge");
    assert_invalid(f, &asked, "remove_roles[1]");
    asked_init(f, &asked);
    set_flag(&asked, "premium", 0);
    asked.wish.until_ms = -1;
    assert_invalid(f, &asked, "set_flags[0].until_ms");
    asked.wish.until_ms = 0;
    clear_flag(&asked, "premium");
    assert_invalid(f, &asked, "clear_flags[0]");
    asked_init(f, &asked);
    set_flag(&asked, "", 0);
    assert_invalid(f, &asked, "set_flags[0].name");
    asked_init(f, &asked);
    for (uint32_t i = 0; i <= LIMIT_USER_ROLES; i++)
        add_role(&asked, arena_printf(&f->arena, "r%u", i));
    assert_invalid(f, &asked, "add_roles");
}

static void a_player_has_32_roles_at_most(void **state)
{
    struct fixture *f = *state;
    struct asked asked;

    asked_init(f, &asked);
    for (uint32_t i = 0; i < LIMIT_USER_ROLES; i++)
        add_role(&asked, arena_printf(&f->arena, "r%u", i));
    assert_non_null(send(f, &asked));
    asked_init(f, &asked);
    add_role(&asked, "one_more");
    assert_null(send(f, &asked));
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    assert_string_equal(f->error->field, "add_roles");
    asked_init(f, &asked);
    add_role(&asked, "one_more");
    remove_role(&asked, "r7");
    assert_non_null(send(f, &asked));
    assert_int_equal(told(f)->n_roles, LIMIT_USER_ROLES);
}

/* Else a game server could give a role. */
static void callers_write_them_in_no_other_way(void **state)
{
    Holdfast__V1__UpdateProfileRequest update = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT;
    Holdfast__V1__SectionEdit edit = HOLDFAST__V1__SECTION_EDIT__INIT, *edits[] = { &edit };
    struct fixture *f = *state;

    update.player_id = text_lend("ann");
    update.op_id = fixture_op_id(f);
    update.authority = fixture_authority(f, "unheld");
    update.n_edits = 1;
    update.edits = edits;
    edit.name = text_lend(USER_FLAGS_SECTION);
    edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    edit.replace = text_lend("{}");
    assert_null(fixture_mutate(f, METHOD_UPDATE_PROFILE, &update.base));
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    assert_non_null(strstr(f->error->limit, "typed"));
}

static void what_cannot_be_read_is_damage(void **state)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "{\"flags\":{},\"roles\":{\"judge\":{}}}",
        "{\"flags\":[],\"roles\":{}}",
        "{\"flags\":{\"x\":{\"atMs\":1,\"by\":\"\",\"untilMs\":\"1\"}},\"roles\":{}}",
        "x",
    };
    struct fixture *f = *state;
    struct asked asked;
    struct row_key key;

    asked_init(f, &asked);
    add_role(&asked, "judge");
    assert_non_null(send(f, &asked));
    row_key_section(&key, SLICE_LITERAL("player:ann"), SLICE_LITERAL(USER_FLAGS_SECTION));
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        Holdfast__V1__GetUserFlagsRequest request = HOLDFAST__V1__GET_USER_FLAGS_REQUEST__INIT;

        state_begin(applier_state(f->applier));
        state_put(applier_state(f->applier), row_key_slice(&key), slice_from_text(texts[i]));
        state_commit(applier_state(f->applier));
        request.player_id = text_lend("ann");
        assert_null(fixture_read(f, METHOD_GET_USER_FLAGS, &request.base));
        assert_int_equal(f->error->code, ERROR(QUARANTINED));
    }
    asked_init(f, &asked);
    add_role(&asked, "helper");
    assert_null(send(f, &asked));
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(roles_and_flags_come_and_go_together),
        FIXTURE_TEST(a_repetition_changes_nothing),
        FIXTURE_TEST(a_flag_is_told_until_it_is_over),
        FIXTURE_TEST(payments_set_flags_and_give_no_role),
        FIXTURE_TEST(a_version_that_is_wanted_must_stand),
        FIXTURE_TEST(what_is_no_change_is_refused),
        FIXTURE_TEST(a_player_has_32_roles_at_most),
        FIXTURE_TEST(callers_write_them_in_no_other_way),
        FIXTURE_TEST(what_cannot_be_read_is_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
