/* Increments of a counter's document: what tells a repetition from another operation, how many are
 * told apart, and what their errors name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/document/fixture.h"
#include "node/core/document/methods.h"
#include "runtime/base/check.h"

#define OP        "018bcfe5-6800-7000-8000-00000000000"
#define WINDOW_MS 900000u
#define OPEN_MAX  1024u

static int setup(void **state)
{
    struct pair *pair = calloc(1, sizeof *pair);
    Holdfast__Internal__V1__DefinitionVersion version =
        HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__DocumentsBody documents = HOLDFAST__V1__DOCUMENTS_BODY__INIT;

    pair_init(pair);
    documents.policy = HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_COUNTER;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_DOCUMENTS;
    body.documents = &documents;
    version.number = 5;
    version.version = 1;
    version.name = text_lend("stats");
    version.body = &body;
    assert_int_equal(document_rules_take(&pair->rules, arena_pack(&pair->arena, &version.base)),
                     ERR_OK);
    pair->rules.complete = true;
    *state = pair;
    return 0;
}

static int teardown(void **state)
{
    struct pair *pair = *state;

    pair_deinit(pair);
    free(pair);
    return 0;
}

/* One or two increments. */
struct count {
    const char *op_id;
    const char *paths[2];
    const char *amounts[2];
};

static err count_at(struct pair *pair, int member, const struct count *count)
{
    Holdfast__V1__UpdateDocumentRequest request = HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__INIT;
    Holdfast__V1__PatchList list = HOLDFAST__V1__PATCH_LIST__INIT;
    Holdfast__V1__PatchStep all[2], *steps[2];

    for (size_t i = 0; i < 2 && count->paths[i] != NULL; i++) {
        holdfast__v1__patch_step__init(&all[i]);
        all[i].kind = HOLDFAST__V1__PATCH_KIND__PATCH_KIND_INCREMENT;
        all[i].path = text_lend(count->paths[i]);
        all[i].json = text_lend(count->amounts[i]);
        steps[i] = &all[i];
        list.n_steps = i + 1;
    }
    list.steps = steps;
    request.entity = text_lend("guild:7");
    request.op_id = text_lend(count->op_id);
    request.collection = text_lend("stats");
    request.key = text_lend("week");
    request.edit_case = HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__EDIT_PATCH;
    request.patch = &list;
    return pair_call(pair, member, METHOD_UPDATE_DOCUMENT, &request.base);
}

static err one(struct pair *pair, const char *op_id, const char *path, const char *amount)
{
    return count_at(pair, 0, &(struct count){ op_id, { path }, { amount } });
}

static void shows(struct pair *pair, int member, const char *json)
{
    Holdfast__V1__GetDocumentRequest request = HOLDFAST__V1__GET_DOCUMENT_REQUEST__INIT;

    request.entity = text_lend("guild:7");
    request.collection = text_lend("stats");
    request.key = text_lend("week");
    assert_int_equal(pair_call(pair, member, METHOD_GET_DOCUMENT, &request.base), ERR_OK);
    const Holdfast__V1__GetDocumentResponse *got = (const void *)arena_unpack(
        &pair->arena, &holdfast__v1__get_document_response__descriptor, pair->begun.answer);
    assert_non_null(got);
    assert_string_equal(got->document->json, json);
}

static void assert_another(struct pair *pair, err e)
{
    assert_int_not_equal(e, ERR_OK);
    assert_int_equal(pair->refusal.code, CODE(OPERATION_ID_MISMATCH));
    assert_string_equal(pair->refusal.field, "op_id");
}

static void a_repetition_counts_once_and_another_operation_is_refused(void **state)
{
    struct pair *pair = *state;
    const struct count both = { OP "2", { "/wins", "/games" }, { "1", "3" } };

    assert_int_equal(one(pair, OP "1", "/wins", "2"), ERR_OK);
    assert_int_equal(one(pair, OP "1", "/wins", "2"), ERR_OK);
    assert_another(pair, one(pair, OP "1", "/wins", "3"));
    assert_another(pair, one(pair, OP "1", "/games", "2"));
    assert_int_equal(count_at(pair, 0, &both), ERR_OK);
    assert_int_equal(count_at(pair, 0, &both), ERR_OK);
    assert_another(pair, one(pair, OP "2", "/wins", "1"));
    shows(pair, 0, "{\"games\":3,\"wins\":3}");
    /* The member that heard of it knows, too. */
    fixture_exchange(pair->replicas, pair->now_ms);
    assert_another(pair, count_at(pair, 1, &(struct count){ OP "1", { "/wins" }, { "9" } }));
    assert_int_equal(count_at(pair, 1, &both), ERR_OK);
    shows(pair, 1, "{\"games\":3,\"wins\":3}");
}

static void too_large_an_increment_is_named_as_it_was_sent(void **state)
{
    struct pair *pair = *state;
    const struct count large = { OP "1", { "/wins", "/games" }, { "1", "-140737488355329" } };

    assert_int_not_equal(count_at(pair, 0, &large), ERR_OK);
    assert_int_equal(pair->refusal.code, CODE(INVALID_ARGUMENT));
    assert_string_equal(pair->refusal.field, "patch[1]");
    assert_string_equal(pair->refusal.value, "-140737488355329");
    assert_non_null(strstr(pair->refusal.message, "/games"));
    assert_non_null(strstr(pair->refusal.limit, "140737488355328"));
}

static void beyond_what_is_told_apart_the_error_says_when(void **state)
{
    struct pair *pair = *state;
    char op_id[40];

    for (unsigned i = 0; i < OPEN_MAX; i++) {
        (void)snprintf(op_id, sizeof op_id, "018bcfe5-6800-7000-8000-%012u", i);
        assert_int_equal(one(pair, op_id, "/n", "1"), ERR_OK);
    }
    pair->now_ms += 60000;
    assert_int_not_equal(one(pair, OP "a", "/n", "1"), ERR_OK);
    assert_int_equal(pair->refusal.code, CODE(THROTTLED));
    assert_string_equal(pair->refusal.limit, "1024");
    assert_true(pair->refusal.retry_after_ms >= WINDOW_MS - 60000);
    assert_true(pair->refusal.retry_after_ms <= WINDOW_MS - 60000 + 10000);
    assert_non_null(strstr(pair->refusal.message, "900000 ms"));
    /* One of them, again, is told as it was. */
    assert_int_equal(one(pair, op_id, "/n", "1"), ERR_OK);
    shows(pair, 0, "{\"n\":1024}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_repetition_counts_once_and_another_operation_is_refused),
        TEST(too_large_an_increment_is_named_as_it_was_sent),
        TEST(beyond_what_is_told_apart_the_error_says_when),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
