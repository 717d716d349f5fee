/* Siblings that no answer holds together are told part by part, each once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "holdfast/v1/document.pb-c.h"
#include "idl/error_code.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/document/fixture.h"
#include "node/core/document/shown.h"
#include "node/core/mergeable/absorb.h"

#define SIBLINGS 7u

/* Of two actors, the later dots of one written before the earlier ones, as a restore may give them.
 */
static void make(struct merge_record *record, uint64_t expires_ms)
{
    static uint8_t value[MERGE_VALUE_BYTES_MAX];

    *record = (struct merge_record){ .policy = MERGE_POLICY_VECTOR };
    for (uint32_t i = 0; i < SIBLINGS; i++)
        merge_record_add(record, merge_cell_new(&(struct merge_cell_form){
                                     .value = { value, sizeof value },
                                     .dot = { 5 + i % 2, 1 + i / 2 },
                                     .hlc = (uint64_t)(100 - i) << 16,
                                     .expires_ms = i == 0 ? expires_ms : 0 }));
}

/* As the context of an answer does. */
static void see(struct merge_token *token, const struct merge_record *record)
{
    for (uint32_t i = 0; i < record->count; i++) {
        struct merge_dot dot = record->cells[i]->dot;
        struct causal_entry *entry = &token->entries[dot.actor - 5];

        *entry = (struct causal_entry){ dot.actor,
                                        entry->upto > dot.counter ? entry->upto : dot.counter };
    }
    token->count = token->entries[1].actor != 0 ? 2 : 1;
}

static void each_part_has_what_the_context_has_not_seen(void **state)
{
    struct merge_token seen = { 0 };
    struct merge_record record;
    struct shown shown;
    uint32_t told = 0;
    (void)state;

    make(&record, 0);
    do {
        assert_true(shown_part(&record, 1000, &seen, &shown));
        assert_in_range(shown.record.count, 1, 2);
        told += shown.record.count;
        assert_int_equal(shown.unseen, SIBLINGS - told);
        see(&seen, &shown.record);
        merge_record_deinit(&shown.record);
    } while (shown.unseen > 0);
    assert_int_equal(told, SIBLINGS);
    /* Its caller has seen all, and asks again. */
    assert_true(shown_part(&record, 1000, &seen, &shown));
    assert_int_equal(shown.record.count, 2);
    assert_int_equal(shown.unseen, 0);
    merge_record_deinit(&shown.record);
    merge_record_deinit(&record);
}

static void what_has_expired_is_told_in_no_part(void **state)
{
    struct merge_record record;
    struct shown shown;
    (void)state;

    make(&record, 1000);
    assert_true(shown_part(&record, 1000, NULL, &shown));
    assert_int_equal(shown.record.count + shown.unseen, SIBLINGS - 1);
    merge_record_deinit(&shown.record);
    assert_true(shown_part(&record, 999, NULL, &shown));
    assert_int_equal(shown.record.count + shown.unseen, SIBLINGS);
    merge_record_deinit(&shown.record);
    merge_record_deinit(&record);
}

static void what_one_answer_holds_is_told_whole(void **state)
{
    static uint8_t value[SHOWN_BYTES_MAX / 4];
    struct merge_record record = { .policy = MERGE_POLICY_VECTOR };
    struct shown shown;
    (void)state;

    for (uint32_t i = 0; i < 4; i++)
        merge_record_add(&record, merge_cell_new(&(struct merge_cell_form){
                                      .value = { value, sizeof value }, .dot = { 5, 1 + i } }));
    assert_false(shown_part(&record, 0, NULL, &shown));
    merge_record_add(&record, merge_cell_new(&(struct merge_cell_form){ .value = { value, 1 },
                                                                        .dot = { 6, 1 } }));
    assert_true(shown_part(&record, 0, NULL, &shown));
    assert_int_equal(shown.unseen, 1);
    merge_record_deinit(&shown.record);
    record.policy = MERGE_POLICY_MERGE;
    assert_false(shown_part(&record, 0, NULL, &shown));
    merge_record_deinit(&record);
}

/* ---- calls ---- */

static void define(struct pair *pair, uint64_t number, const char *name,
                   Holdfast__V1__DocumentPolicy policy)
{
    Holdfast__Internal__V1__DefinitionVersion version =
        HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__DocumentsBody documents = HOLDFAST__V1__DOCUMENTS_BODY__INIT;

    documents.policy = policy;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_DOCUMENTS;
    body.documents = &documents;
    version.number = number;
    version.version = 1;
    version.name = text_lend(name);
    version.body = &body;
    assert_int_equal(document_rules_take(&pair->rules, arena_pack(&pair->arena, &version.base)),
                     ERR_OK);
}

static int setup(void **state)
{
    static struct pair pair;

    pair_init(&pair);
    define(&pair, 1, "prefs", HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_LAST_WRITE);
    define(&pair, 2, "settings", HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_MERGE);
    define(&pair, 3, "rooms", HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_VECTOR);
    pair.rules.complete = true;
    *state = &pair;
    return 0;
}

static int teardown(void **state)
{
    pair_deinit(*state);
    return 0;
}

static err put_as(struct pair *pair, const char *collection, const char *json, const char *op_id)
{
    Holdfast__V1__PutDocumentRequest request = HOLDFAST__V1__PUT_DOCUMENT_REQUEST__INIT;

    request.entity = text_lend("player:7");
    request.op_id = text_lend(op_id);
    request.collection = text_lend(collection);
    request.key = text_lend("k");
    request.json = text_lend(json);
    return pair_call(pair, 0, METHOD_PUT_DOCUMENT, &request.base);
}

static err put(struct pair *pair, const char *collection, const char *json)
{
    return put_as(pair, collection, json, "key:put");
}

static void shows(struct pair *pair, const char *collection, const char *json)
{
    Holdfast__V1__GetDocumentRequest request = HOLDFAST__V1__GET_DOCUMENT_REQUEST__INIT;

    request.entity = text_lend("player:7");
    request.collection = text_lend(collection);
    request.key = text_lend("k");
    assert_int_equal(pair_call(pair, 0, METHOD_GET_DOCUMENT, &request.base), ERR_OK);
    const Holdfast__V1__GetDocumentResponse *got = (void *)arena_unpack(
        &pair->arena, &holdfast__v1__get_document_response__descriptor, pair->begun.answer);

    assert_string_equal(got->document->json, json);
}

static void a_shard_that_has_all_bytes_lets_no_document_grow(void **state)
{
    struct pair *pair = *state;

    assert_int_equal(put(pair, "prefs", "\"1234\""), ERR_OK);
    pair->bytes_full = true;
    assert_int_equal(put(pair, "prefs", "\"12345\""), ERR_CONFLICT);
    assert_int_equal(pair->refusal.code, CODE(CAPACITY_FULL));
    assert_string_equal(pair->refusal.limit, "67108864");
    assert_int_equal(put(pair, "prefs", "\"4321\""), ERR_OK);
    shows(pair, "prefs", "\"4321\"");
}

/* Without a context each would be a sibling more. */
static void a_shard_that_has_all_bytes_takes_no_sibling(void **state)
{
    struct pair *pair = *state;

    assert_int_equal(put_as(pair, "rooms", "\"1234\"", "key:one"), ERR_OK);
    pair->bytes_full = true;
    assert_int_equal(put_as(pair, "rooms", "\"1\"", "key:two"), ERR_CONFLICT);
    assert_int_equal(pair->refusal.code, CODE(CAPACITY_FULL));
}

/* Leaves of a MiB, as sides of a cut made them. */
static void take_large(struct pair *pair, uint32_t leaves)
{
    static uint8_t value[MERGE_VALUE_BYTES_MAX];
    struct merge_record record = { .policy = MERGE_POLICY_MERGE };
    const struct document_rule *rule = document_rules_find(&pair->rules, SLICE_LITERAL("settings"));
    struct merge_key *key;
    const uint8_t paths[] = "abcdefgh";

    memset(value, 'x', sizeof value);
    value[0] = value[sizeof value - 1] = '"';
    assert_int_equal(merge_key_new(SLICE_LITERAL("player:7"),
                                   document_row_name(&pair->arena, rule, SLICE_LITERAL("k")), &key),
                     ERR_OK);
    for (uint32_t i = 0; i < leaves; i++)
        merge_record_add(&record, merge_cell_new(&(struct merge_cell_form){
                                      .path = { paths + i, 1 },
                                      .value = { value, sizeof value },
                                      .dot = { merge_actor_make(0, 999 + i), 1 },
                                      .hlc = 1ull << 16 }));
    assert_int_equal(merge_absorb_logged(pair->replicas[0],
                                         &(struct merge_incoming){ .key = key, .record = &record }),
                     ERR_OK);
    merge_record_deinit(&record);
    merge_key_unref(key);
}

static void a_document_that_no_answer_holds_is_left_out_of_a_list(void **state)
{
    struct pair *pair = *state;
    Holdfast__V1__ListDocumentsRequest list = HOLDFAST__V1__LIST_DOCUMENTS_REQUEST__INIT;

    list.entity = text_lend("player:7");
    list.collection = text_lend("settings");
    for (uint32_t leaves = 3; leaves <= 4; leaves++) {
        take_large(pair, leaves);
        assert_int_equal(pair_call(pair, 0, METHOD_LIST_DOCUMENTS, &list.base), ERR_OK);
        const Holdfast__V1__ListDocumentsResponse *page = (void *)arena_unpack(
            &pair->arena, &holdfast__v1__list_documents_response__descriptor, pair->begun.answer);
        assert_int_equal(page->n_documents, 1);
        assert_int_equal(page->documents[0]->omitted_bytes > 0, leaves == 4);
        assert_int_equal(strlen(page->documents[0]->json) == 4, leaves == 4);
    }
    /* What replaces it needs not have read it. */
    assert_int_equal(put(pair, "settings", "{\"a\":1}"), ERR_OK);
    shows(pair, "settings", "{\"a\":1}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_has_what_the_context_has_not_seen),
        cmocka_unit_test(what_has_expired_is_told_in_no_part),
        cmocka_unit_test(what_one_answer_holds_is_told_whole),
        cmocka_unit_test_setup_teardown(a_shard_that_has_all_bytes_lets_no_document_grow, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_shard_that_has_all_bytes_takes_no_sibling, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_document_that_no_answer_holds_is_left_out_of_a_list,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
