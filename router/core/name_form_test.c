/* Names of users: what a claim, a release and a search are for nodes, and each refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/admin.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "router/core/name_form.h"
#include "router/core/form_fixture.h"
#include "router/core/route.h"
#include "runtime/base/check.h"

typedef Holdfast__V1__ExecuteTransactionRequest execute_request;

static const execute_request *claim(struct form_fixture *f, const char *player, const char *name,
                                    const char *tag)
{
    Holdfast__V1__ClaimNameRequest request = HOLDFAST__V1__CLAIM_NAME_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = text_lend("claim:name");
    request.attempt = 2;
    request.authority = text_lend("session:1-2-3");
    request._if_version_case = HOLDFAST__V1__CLAIM_NAME_REQUEST___IF_VERSION_IF_VERSION;
    request.if_version = 7;
    request.name = text_lend(name);
    request.tag = text_lend(tag);
    return form_make(f, METHOD_CLAIM_NAME, &request.base);
}

static const execute_request *renames(struct form_fixture *f, const char *name, const char *old,
                                      uint64_t number)
{
    Holdfast__V1__ClaimNameRequest request = HOLDFAST__V1__CLAIM_NAME_REQUEST__INIT;
    Holdfast__V1__NameBinding replaces = HOLDFAST__V1__NAME_BINDING__INIT;

    request.player_id = text_lend("ada");
    request.op_id = text_lend("claim:rename");
    request.authority = text_lend("unheld");
    request.name = text_lend(name);
    request.tag = text_lend("1");
    request.replaces = &replaces;
    replaces.name = text_lend(old);
    replaces.tag = text_lend("1");
    replaces.number = number;
    return form_make(f, METHOD_CLAIM_NAME, &request.base);
}

static const execute_request *release(struct form_fixture *f, const char *player, uint64_t number)
{
    Holdfast__V1__ReleaseNameRequest request = HOLDFAST__V1__RELEASE_NAME_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = text_lend("claim:release");
    request.authority = text_lend("unheld");
    request.name = text_lend("Ada");
    request.tag = text_lend("1");
    request.number = number;
    return form_make(f, METHOD_RELEASE_NAME, &request.base);
}

static const Holdfast__V1__SectionEdit *edit_at(const execute_request *execute, size_t place,
                                                const char *player)
{
    const Holdfast__V1__TransactionPatch *patch = execute->changes[place]->patch;

    assert_int_equal(execute->changes[place]->change_case,
                     HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_PATCH);
    assert_string_equal(patch->player_id, player);
    return patch->edit;
}

static void a_claim_wants_a_free_name_and_a_player_without_one(void **state)
{
    struct form_fixture *f = *state;
    const execute_request *made = claim(f, "ada", "Ada \xc3\xa9", "12Ab");
    static const char entity[] = "user-name:ada \xc3\xa9#12ab";

    assert_non_null(made);
    assert_string_equal(made->player_id, "ada");
    assert_string_equal(made->op_id, "claim:name");
    assert_int_equal(made->attempt, 2);
    assert_string_equal(made->authority, "session:1-2-3");
    assert_int_equal(made->if_version, 7);
    assert_int_equal(made->n_others, 1);
    assert_string_equal(made->others[0]->player_id, entity);
    assert_string_equal(made->others[0]->authority, "unheld");
    assert_int_equal(made->n_checks, 1);
    assert_string_equal(made->checks[0]->player_id, "ada");
    assert_string_equal(made->checks[0]->section->name, "hf_name");
    assert_int_equal(made->checks[0]->section->version, 0);
    assert_int_equal(made->n_changes, 3);
    const Holdfast__V1__SectionEdit *holder = edit_at(made, 0, entity);
    const Holdfast__V1__SectionEdit *beside = edit_at(made, 1, entity);

    assert_string_equal(holder->name, "holder");
    assert_string_equal(holder->replace,
                        "{\"name\":\"Ada \xc3\xa9\",\"playerId\":\"ada\",\"tag\":\"12Ab\"}");
    assert_true(holder->_if_version_case != 0 && holder->if_version == 0);
    assert_int_equal(strlen(beside->name), 3 + 32);
    assert_true(beside->_if_version_case != 0 && beside->if_version == 0);
    assert_string_equal(edit_at(made, 2, "ada")->replace,
                        "{\"name\":\"Ada \xc3\xa9\",\"tag\":\"12Ab\"}");
}

/* A retry is the same operation. */
static void one_claim_has_one_form(void **state)
{
    struct form_fixture *f = *state;
    const execute_request *first = claim(f, "ada", "Ada", "1"),
                          *second = claim(f, "ada", "Ada", "1");
    uint8_t bytes[2][2048];
    size_t size = holdfast__v1__execute_transaction_request__pack(first, bytes[0]);

    assert_int_equal(holdfast__v1__execute_transaction_request__pack(second, bytes[1]), size);
    assert_memory_equal(bytes[0], bytes[1], size);
    assert_string_not_equal(edit_at(first, 1, "user-name:ada#1")->name,
                            edit_at(claim(f, "bob", "Ada", "1"), 1, "user-name:ada#1")->name);
}

static void a_release_wants_the_number_of_both_sections_of_the_name(void **state)
{
    struct form_fixture *f = *state;
    const execute_request *made = release(f, "ada", 5);

    assert_non_null(made);
    assert_int_equal(made->n_checks, 0);
    assert_int_equal(made->n_changes, 3);
    for (size_t i = 0; i < 2; i++) {
        const Holdfast__V1__SectionEdit *edit = edit_at(made, i, "user-name:ada#1");

        assert_int_equal(edit->edit_case, HOLDFAST__V1__SECTION_EDIT__EDIT_DELETE);
        assert_true(edit->_if_version_case != 0);
        assert_int_equal(edit->if_version, 5);
    }
    assert_int_equal(edit_at(made, 2, "ada")->edit_case, HOLDFAST__V1__SECTION_EDIT__EDIT_DELETE);
    assert_string_equal(edit_at(made, 1, "user-name:ada#1")->name,
                        edit_at(claim(f, "ada", "Ada", "1"), 1, "user-name:ada#1")->name);
    assert_null(release(f, "ada", 0));
    assert_string_equal(f->detail.field, "number");
}

static void a_rename_is_a_release_and_a_claim_at_once(void **state)
{
    struct form_fixture *f = *state;
    const execute_request *made = renames(f, "Bea", "Ada", 5);

    assert_non_null(made);
    assert_string_equal(made->op_id, "claim:rename");
    assert_int_equal(made->n_others, 2);
    assert_string_equal(made->others[0]->player_id, "user-name:ada#1");
    assert_string_equal(made->others[1]->player_id, "user-name:bea#1");
    assert_int_equal(made->n_checks, 1);
    assert_string_equal(made->checks[0]->player_id, "user-name:ada#1");
    assert_string_equal(made->checks[0]->section->name,
                        edit_at(release(f, "ada", 5), 1, "user-name:ada#1")->name);
    assert_int_equal(made->checks[0]->section->version, 5);
    assert_int_equal(made->n_changes, 5);
    for (size_t i = 0; i < 4; i++) {
        bool old = i < 2;
        const Holdfast__V1__SectionEdit *edit =
            edit_at(made, i, old ? "user-name:ada#1" : "user-name:bea#1");

        assert_int_equal(edit->edit_case, old ? HOLDFAST__V1__SECTION_EDIT__EDIT_DELETE
                                              : HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE);
        assert_true(edit->_if_version_case != 0);
        assert_int_equal(edit->if_version, old ? 5 : 0);
    }
    const Holdfast__V1__SectionEdit *own = edit_at(made, 4, "ada");

    assert_string_equal(own->replace, "{\"name\":\"Bea\",\"tag\":\"1\"}");
    assert_int_equal(own->_if_version_case, 0);
}

static void a_name_is_written_in_another_way(void **state)
{
    struct form_fixture *f = *state;
    const execute_request *made = renames(f, "ADA", "Ada", 5);

    assert_non_null(made);
    assert_int_equal(made->n_others, 1);
    assert_int_equal(made->checks[0]->section->version, 5);
    assert_int_equal(made->n_changes, 3);
    for (size_t i = 0; i < 2; i++) {
        const Holdfast__V1__SectionEdit *edit = edit_at(made, i, "user-name:ada#1");

        assert_int_equal(edit->edit_case, HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE);
        assert_true(edit->_if_version_case != 0);
        assert_int_equal(edit->if_version, 5);
    }
    assert_string_equal(edit_at(made, 2, "ada")->replace, "{\"name\":\"ADA\",\"tag\":\"1\"}");
}

static void a_rename_names_what_it_replaces(void **state)
{
    struct form_fixture *f = *state;

    assert_null(renames(f, "Bea", "a#b", 5));
    assert_string_equal(f->detail.field, "replaces.name");
    assert_null(renames(f, "Bea", "Ada", 0));
    assert_string_equal(f->detail.field, "replaces.number");
    assert_null(renames(f, "b#a", "Ada", 5));
    assert_string_equal(f->detail.field, "name");
}

static void what_is_no_name_is_refused(void **state)
{
    static const struct {
        const char *name, *tag, *field;
    } cases[] = {
        { "", "1", "name" },          { "a#b", "1", "name" },
        { " ada", "1", "name" },      { "ada ", "1", "name" },
        { "a\nb", "1", "name" },      { "a\x7f", "1", "name" },
        { "a\xc2\x80", "1", "name" }, { "012345678901234567890123456789012", "1", "name" },
        { "ada", "", "tag" },         { "ada", "123456789", "tag" },
        { "ada", "1 2", "tag" },      { "ada", "\xc3\xa9", "tag" },
    };
    struct form_fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_null(claim(f, "ada", cases[i].name, cases[i].tag));
        assert_int_equal(f->detail.code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INVALID_ARGUMENT);
        assert_string_equal(f->detail.field, cases[i].field);
    }
    assert_non_null(claim(f, "ada", "01234567890123456789012345678901", "12345678"));
    assert_non_null(claim(f, "ada", "\xc2\xa0", "Z"));
}

static void a_search_reads_the_holder(void **state)
{
    Holdfast__V1__FindByNameRequest request = HOLDFAST__V1__FIND_BY_NAME_REQUEST__INIT;
    Holdfast__V1__FindByNameResponse found = HOLDFAST__V1__FIND_BY_NAME_RESPONSE__INIT;
    Holdfast__V1__GetProfileResponse answer = HOLDFAST__V1__GET_PROFILE_RESPONSE__INIT;
    Holdfast__V1__Profile profile = HOLDFAST__V1__PROFILE__INIT;
    Holdfast__V1__Section holder = HOLDFAST__V1__SECTION__INIT, *sections[] = { &holder };
    struct form_fixture *f = *state;

    request.name = text_lend("ADA");
    request.tag = text_lend("1");
    const Holdfast__V1__GetProfileRequest *made = form_make(f, METHOD_FIND_BY_NAME, &request.base);

    assert_non_null(made);
    assert_string_equal(made->player_id, "user-name:ada#1");
    assert_string_equal(made->include[0], "sections.holder");
    assert_true(made->settled);
    answer.as_of = text_lend("c1.x");
    assert_int_equal(name_form_found(&answer, &f->arena, &found), ERR_OK);
    assert_string_equal(found.player_id, "");
    assert_string_equal(found.as_of, "c1.x");
    answer.profile = &profile;
    profile.n_sections = 1;
    profile.sections = sections;
    holder.version = 3;
    holder.last_write_at_ms = 17;
    holder.json = text_lend("{\"name\":\"Ada\",\"playerId\":\"ann\",\"tag\":\"1\"}");
    assert_int_equal(name_form_found(&answer, &f->arena, &found), ERR_OK);
    assert_string_equal(found.player_id, "ann");
    assert_string_equal(found.name, "Ada");
    assert_int_equal(found.number, 3);
    assert_int_equal(found.claimed_at_ms, 17);
    holder.json = text_lend("{\"playerId\":\"ann\"}");
    assert_int_equal(name_form_found(&answer, &f->arena, &found), ERR_CORRUPT);
    holder.json = text_lend("{");
    assert_int_equal(name_form_found(&answer, &f->arena, &found), ERR_CORRUPT);
}

static void a_conflict_names_what_stands_in_the_way(void **state)
{
    static const struct {
        uint32_t method;
        const char *field, *limit, *told;
    } cases[] = {
        { METHOD_CLAIM_NAME, "checks[0]", "0", "player_id" },
        { METHOD_CLAIM_NAME, "checks[0]", "5", "replaces.number" },
        { METHOD_CLAIM_NAME, "checks", "5", "replaces.number" }, /* Of an earlier apply version. */
        { METHOD_CLAIM_NAME, "changes", "", "name" },
        { METHOD_RELEASE_NAME, "changes", "", "number" },
        { METHOD_CLAIM_NAME, "if_version", "", "if_version" },
    };
    struct form_fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;

        detail.code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_VERSION_CONFLICT;
        detail.field = text_lend(cases[i].field);
        detail.limit = text_lend(cases[i].limit);
        node_form_tell(method_find(cases[i].method), NULL, &f->arena, &detail);
        assert_string_equal(detail.field, cases[i].told);
    }
}

/* Else a caller could bind a name to two players, or to none. */
static void callers_write_no_name_otherwise(void **state)
{
    Holdfast__V1__UpdateProfileRequest update = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT;
    Holdfast__V1__RepairPlayerRequest repair = HOLDFAST__V1__REPAIR_PLAYER_REQUEST__INIT;
    Holdfast__V1__ExecuteTransactionRequest execute =
        HOLDFAST__V1__EXECUTE_TRANSACTION_REQUEST__INIT;
    Holdfast__V1__TransactionPlayer other = HOLDFAST__V1__TRANSACTION_PLAYER__INIT,
                                    *others[] = { &other };
    struct form_fixture *f = *state;
    struct route_entity entity;

    update.op_id = repair.op_id = text_lend("claim:x");
    repair.player_id = text_lend("user-name:ada#1");
    update.player_id = text_lend("user-name:ada#1");
    assert_int_equal(route_find_entity(method_find(METHOD_UPDATE_PROFILE), &update.base, &f->arena,
                                       &entity, &f->detail),
                     ERR_INVALID);
    assert_string_equal(f->detail.field, "player_id");
    assert_int_equal(route_find_entity(method_find(METHOD_REPAIR_PLAYER), &repair.base, &f->arena,
                                       &entity, &f->detail),
                     ERR_OK);
    update.player_id = text_lend("user-nam");
    assert_int_equal(route_find_entity(method_find(METHOD_UPDATE_PROFILE), &update.base, &f->arena,
                                       &entity, &f->detail),
                     ERR_OK);
    execute.n_others = 1;
    execute.others = others;
    other.player_id = text_lend("user-name:ada#1");
    assert_null(form_make(f, METHOD_EXECUTE_TRANSACTION, &execute.base));
    assert_string_equal(f->detail.field, "others[0].player_id");
    other.player_id = text_lend("bob");
    assert_ptr_equal(form_make(f, METHOD_EXECUTE_TRANSACTION, &execute.base), &execute.base);
}

/* Else a player could lose its name, or have two, and roles that it was not given. */
static void callers_write_no_section_of_user_service(void **state)
{
    Holdfast__V1__SectionEdit edit = HOLDFAST__V1__SECTION_EDIT__INIT, *edits[] = { &edit };
    Holdfast__V1__UpdateProfileRequest update = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT,
                                       *updates[] = { &update };
    Holdfast__V1__BatchUpdateProfileRequest batch =
        HOLDFAST__V1__BATCH_UPDATE_PROFILE_REQUEST__INIT;
    Holdfast__V1__EndSessionRequest end = HOLDFAST__V1__END_SESSION_REQUEST__INIT;
    Holdfast__V1__TransactionPatch patch = HOLDFAST__V1__TRANSACTION_PATCH__INIT;
    Holdfast__V1__TransactionChange change = HOLDFAST__V1__TRANSACTION_CHANGE__INIT,
                                    *changes[] = { &change };
    Holdfast__V1__ExecuteTransactionRequest execute =
        HOLDFAST__V1__EXECUTE_TRANSACTION_REQUEST__INIT;
    const struct {
        uint32_t method;
        const ProtobufCMessage *request;
        const char *field;
    } cases[] = {
        { METHOD_UPDATE_PROFILE, &update.base, "edits[0].name" },
        { METHOD_BATCH_UPDATE_PROFILE, &batch.base, "requests[0].edits[0].name" },
        { METHOD_END_SESSION, &end.base, "edits[0].name" },
        { METHOD_EXECUTE_TRANSACTION, &execute.base, "changes[0].patch.edit.name" },
    };
    struct form_fixture *f = *state;

    update.n_edits = end.n_edits = batch.n_requests = execute.n_changes = 1;
    update.edits = end.edits = edits;
    batch.requests = updates;
    execute.changes = changes;
    change.change_case = HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_PATCH;
    change.patch = &patch;
    patch.edit = &edit;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        edit.name = text_lend("hf_name");
        assert_null(form_make(f, cases[i].method, cases[i].request));
        assert_string_equal(f->detail.field, cases[i].field);
        assert_string_equal(f->detail.value, "hf_name");
        edit.name = text_lend("h_name");
        assert_non_null(form_make(f, cases[i].method, cases[i].request));
    }
}

/* Every field of every method that writes, but the home, that names a player. */
static void no_write_reaches_a_name_as_another_player(void **state)
{
    static const char *const expected[] = { "to_player_id", "other_player_id", "to_player_ids[0]" };
    struct form_fixture *f = *state;
    uint32_t found[ARRAY_SIZE(expected)] = { 0 }, count = 0;

    for (uint32_t id = 1; id <= METHOD_ID_MAX; id++) {
        const struct method_info *method = method_find(id);
        const ProtobufCMessageDescriptor *descriptor = method != NULL ? method->request : NULL;
        bool writes = method != NULL && (method->writes || method->scopes == METHOD_SCOPES_WRITE);

        for (unsigned i = 0; writes && i < descriptor->n_fields; i++) {
            const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
            char name[] = "user-name:ada#1", *list[] = { name }, **listed = list, *text = name;
            size_t one = 1;

            if (strstr(field->name, "player_id") == NULL || strcmp(field->name, "player_id") == 0 ||
                field->type != PROTOBUF_C_TYPE_STRING)
                continue;
            ProtobufCMessage *message = arena_zalloc(&f->arena, descriptor->sizeof_message);
            char *base = (char *)message;

            protobuf_c_message_init(descriptor, message);
            if (field->label == PROTOBUF_C_LABEL_REPEATED) {
                memcpy(base + field->quantifier_offset, &one, sizeof one);
                memcpy(base + field->offset, &listed, sizeof listed);
            } else {
                memcpy(base + field->offset, &text, sizeof text);
            }
            assert_null(form_make(f, id, message));
            for (size_t j = 0; j < ARRAY_SIZE(expected); j++)
                found[j] += strcmp(f->detail.field, expected[j]) == 0;
            count++;
        }
    }
    assert_true(found[0] >= 4 && found[2] >= 1 && count >= 5);
}

/* The other shard's record of a claim names the name's entity. */
static void a_record_about_a_name_can_be_repaired(void **state)
{
    Holdfast__V1__RepairRowRequest request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;
    Holdfast__V1__ChannelRecord record = HOLDFAST__V1__CHANNEL_RECORD__INIT;
    struct form_fixture *f = *state;
    char name[] = "user-name:ada#1", *players[] = { name };

    record.player_ids = players;
    record.n_player_ids = 1;
    request.record = &record;
    assert_non_null(form_make(f, METHOD_REPAIR_ROW, &request.base));
}

static void a_swap_and_a_document_name_no_name(void **state)
{
    Holdfast__V1__SwapRequest swap = HOLDFAST__V1__SWAP_REQUEST__INIT;
    Holdfast__V1__SwapSide a = HOLDFAST__V1__SWAP_SIDE__INIT, b = HOLDFAST__V1__SWAP_SIDE__INIT;
    Holdfast__V1__PutDocumentRequest put = HOLDFAST__V1__PUT_DOCUMENT_REQUEST__INIT;
    struct form_fixture *f = *state;
    struct route_entity entity;

    swap.a = &a;
    swap.b = &b;
    a.player_id = text_lend("ada");
    b.player_id = text_lend("user-name:ada#1");
    assert_null(form_make(f, METHOD_SWAP, &swap.base));
    assert_string_equal(f->detail.field, "b.player_id");
    put.op_id = text_lend("x:1");
    put.entity = text_lend("player:user-name:ada#1");
    assert_int_equal(route_find_entity(method_find(METHOD_PUT_DOCUMENT), &put.base, &f->arena,
                                       &entity, &f->detail),
                     ERR_INVALID);
    assert_string_equal(f->detail.field, "entity");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, form_setup, form_teardown)
        TEST(a_claim_wants_a_free_name_and_a_player_without_one),
        TEST(one_claim_has_one_form),
        TEST(a_release_wants_the_number_of_both_sections_of_the_name),
        TEST(a_rename_is_a_release_and_a_claim_at_once),
        TEST(a_name_is_written_in_another_way),
        TEST(a_rename_names_what_it_replaces),
        TEST(what_is_no_name_is_refused),
        TEST(a_search_reads_the_holder),
        TEST(a_conflict_names_what_stands_in_the_way),
        TEST(callers_write_no_name_otherwise),
        TEST(no_write_reaches_a_name_as_another_player),
        TEST(callers_write_no_section_of_user_service),
        TEST(a_record_about_a_name_can_be_repaired),
        TEST(a_swap_and_a_document_name_no_name),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
