/* DocumentService at one member that is alone, and at two that were apart: what each method does
 * under each policy, and each refusal with its field. */
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
#include "node/core/mergeable/disk.h"
#include "node/core/mergeable/rounds.h"
#include "node/core/mergeable/tally.h"
#include "node/core/mergeable/write.h"
#include "runtime/base/check.h"

#define OP         "018bcfe5-6800-7000-8000-00000000000"
#define STEPS_MAX  65u
#define KIND(name) HOLDFAST__V1__PATCH_KIND__PATCH_KIND_##name

struct fixture {
    struct pair pair;
    Holdfast__V1__GetDocumentResponse *got;
};

static void define(struct fixture *f, uint64_t number, const char *name,
                   Holdfast__V1__DocumentPolicy policy, uint32_t bytes_max)
{
    Holdfast__Internal__V1__DefinitionVersion version =
        HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__DocumentsBody documents = HOLDFAST__V1__DOCUMENTS_BODY__INIT;

    documents.policy = policy;
    documents.bytes_max = bytes_max;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_DOCUMENTS;
    body.documents = &documents;
    version.number = number;
    version.version = 1;
    version.name = text_lend(name);
    version.body = &body;
    assert_int_equal(document_rules_take(&f->pair.rules, arena_pack(&f->pair.arena, &version.base)),
                     ERR_OK);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    pair_init(&f->pair);
    define(f, 1, "prefs", HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_LAST_WRITE, 0);
    define(f, 2, "settings", HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_MERGE, 100);
    define(f, 3, "tags", HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_SET, 0);
    define(f, 4, "rooms", HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_VECTOR, 0);
    define(f, 5, "stats", HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_COUNTER, 0);
    f->pair.rules.complete = true;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pair_deinit(&f->pair);
    free(f);
    return 0;
}

/* ---- calls ---- */

struct put {
    const char *collection, *json, *context;
    int64_t ttl_ms;    /* 0: none is said. */
    const char *op_id; /* NULL: always the same. */
};

static err put(struct fixture *f, int member, const struct put *put)
{
    Holdfast__V1__PutDocumentRequest request = HOLDFAST__V1__PUT_DOCUMENT_REQUEST__INIT;

    request.entity = text_lend("player:7");
    request.op_id = text_lend(put->op_id != NULL ? put->op_id : OP "1");
    request.collection = text_lend(put->collection);
    request.key = text_lend("k");
    request.json = text_lend(put->json);
    request.context = text_lend(put->context != NULL ? put->context : "");
    if (put->ttl_ms != 0)
        request._ttl_ms_case = HOLDFAST__V1__PUT_DOCUMENT_REQUEST___TTL_MS_TTL_MS;
    request.ttl_ms = put->ttl_ms;
    return pair_call(&f->pair, member, METHOD_PUT_DOCUMENT, &request.base);
}

static const Holdfast__V1__Document *get(struct fixture *f, int member, const char *collection,
                                         const char *context)
{
    Holdfast__V1__GetDocumentRequest request = HOLDFAST__V1__GET_DOCUMENT_REQUEST__INIT;

    request.entity = text_lend("player:7");
    request.collection = text_lend(collection);
    request.key = text_lend("k");
    request.context = text_lend(context);
    if (pair_call(&f->pair, member, METHOD_GET_DOCUMENT, &request.base) != ERR_OK)
        return NULL;
    f->got = (void *)arena_unpack(&f->pair.arena, &holdfast__v1__get_document_response__descriptor,
                                  f->pair.begun.answer);
    assert_non_null(f->got);
    return f->got->document;
}

static void shows(struct fixture *f, int member, const char *collection, const char *json)
{
    const Holdfast__V1__Document *document = get(f, member, collection, "");

    if (json == NULL) {
        assert_null(document);
        return;
    }
    assert_non_null(document);
    assert_string_equal(document->json, json);
    assert_string_equal(document->key, "k");
}

static err merge(struct fixture *f, const char *collection, const char *patch)
{
    Holdfast__V1__UpdateDocumentRequest request = HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__INIT;

    request.entity = text_lend("player:7");
    request.op_id = text_lend(OP "2");
    request.collection = text_lend(collection);
    request.key = text_lend("k");
    request.edit_case = HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__EDIT_MERGE;
    request.merge = text_lend(patch);
    return pair_call(&f->pair, 0, METHOD_UPDATE_DOCUMENT, &request.base);
}

struct step {
    Holdfast__V1__PatchKind kind;
    const char *path, *json, *op_id;
};

static err steps_at(struct fixture *f, int member, const char *collection, const struct step *said,
                    size_t count)
{
    Holdfast__V1__UpdateDocumentRequest request = HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__INIT;
    Holdfast__V1__PatchList list = HOLDFAST__V1__PATCH_LIST__INIT;
    Holdfast__V1__PatchStep all[STEPS_MAX], *steps[STEPS_MAX];

    for (size_t i = 0; i < count; i++) {
        holdfast__v1__patch_step__init(&all[i]);
        all[i].kind = said[i].kind;
        all[i].path = text_lend(said[i].path);
        all[i].json = text_lend(said[i].json);
        steps[i] = &all[i];
    }
    list.n_steps = count;
    list.steps = steps;
    request.entity = text_lend("player:7");
    request.op_id = text_lend(said->op_id != NULL ? said->op_id : OP "3");
    request.collection = text_lend(collection);
    request.key = text_lend("k");
    request.edit_case = HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__EDIT_PATCH;
    request.patch = &list;
    return pair_call(&f->pair, member, METHOD_UPDATE_DOCUMENT, &request.base);
}

static err step_at(struct fixture *f, int member, const char *collection, struct step said)
{
    return steps_at(f, member, collection, &said, 1);
}

static err step(struct fixture *f, const char *collection, struct step said)
{
    return step_at(f, 0, collection, said);
}

static err delete (struct fixture *f, const char *collection, const char *op_id)
{
    Holdfast__V1__DeleteDocumentRequest gone = HOLDFAST__V1__DELETE_DOCUMENT_REQUEST__INIT;

    gone.entity = text_lend("player:7");
    gone.op_id = text_lend(op_id);
    gone.collection = text_lend(collection);
    gone.key = text_lend("k");
    return pair_call(&f->pair, 0, METHOD_DELETE_DOCUMENT, &gone.base);
}

static void refused(struct fixture *f, err e, Holdfast__V1__ErrorCode code, const char *field)
{
    assert_int_not_equal(e, ERR_OK);
    assert_int_equal(f->pair.refusal.code, code);
    assert_non_null(f->pair.refusal.message);
    if (field != NULL)
        assert_string_equal(f->pair.refusal.field, field);
}

/* ---- tests ---- */

static void a_document_is_written_read_and_deleted(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__DeleteDocumentRequest gone = HOLDFAST__V1__DELETE_DOCUMENT_REQUEST__INIT;

    shows(f, 0, "prefs", NULL);
    assert_int_equal(put(f, 0, &(struct put){ "prefs", "{\"b\":1, \"a\":[2]}", NULL, 0, NULL }),
                     ERR_OK);
    assert_true(f->pair.begun.ticket != 0 && f->pair.begun.context[0] == 'd');
    shows(f, 0, "prefs", "{\"a\":[2],\"b\":1}");
    gone.entity = text_lend("player:7");
    gone.op_id = text_lend(OP "4");
    gone.collection = text_lend("prefs");
    gone.key = text_lend("k");
    assert_int_equal(pair_call(&f->pair, 0, METHOD_DELETE_DOCUMENT, &gone.base), ERR_OK);
    shows(f, 0, "prefs", NULL);
    assert_true(f->got->context[0] == 'd'); /* It has seen that there is none. */
}

static void
writes_that_did_not_know_of_each_other_are_siblings_until_one_has_seen_both(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(put(f, 0, &(struct put){ "rooms", "\"left\"", NULL, 0, NULL }), ERR_OK);
    f->pair.now_ms++;
    assert_int_equal(put(f, 1, &(struct put){ "rooms", "\"right\"", NULL, 0, OP "8" }), ERR_OK);
    fixture_exchange(f->pair.replicas, f->pair.now_ms);
    for (int member = 0; member < 2; member++) {
        const Holdfast__V1__Document *document = get(f, member, "rooms", "");
        assert_int_equal(document->n_siblings, 2);
        assert_string_equal(document->json, "\"right\"");
        assert_string_equal(document->siblings[1]->json, "\"left\"");
    }
    const char *context = f->got->context;
    assert_int_equal(put(f, 0, &(struct put){ "rooms", "\"both\"", context, 0, NULL }), ERR_OK);
    fixture_exchange(f->pair.replicas, f->pair.now_ms);
    shows(f, 1, "rooms", "\"both\"");
    assert_int_equal(f->got->document->n_siblings, 0);
}

/* A write answers what its caller had seen, and itself: not what stood beside it. */
static void a_write_that_saw_no_sibling_replaces_its_own_alone(void **state)
{
    struct fixture *f = *state;
    const char *context;

    assert_int_equal(put(f, 0, &(struct put){ "rooms", "\"castle\"", NULL, 0, NULL }), ERR_OK);
    f->pair.now_ms++;
    assert_int_equal(put(f, 0, &(struct put){ "rooms", "\"harbour\"", NULL, 0, OP "8" }), ERR_OK);
    f->pair.now_ms++;
    context = arena_text(&f->pair.arena, slice_from_text(f->pair.begun.context));
    assert_int_equal(put(f, 0, &(struct put){ "rooms", "\"pier\"", context, 0, OP "9" }), ERR_OK);
    assert_int_equal(get(f, 0, "rooms", "")->n_siblings, 2);
    assert_string_equal(f->got->document->json, "\"pier\"");
    assert_string_equal(f->got->document->siblings[1]->json, "\"castle\"");
}

static void leaves_of_both_sides_stand(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(
        put(f, 0, &(struct put){ "settings", "{\"a\":{\"x\":1,\"y\":2}}", NULL, 0, NULL }), ERR_OK);
    fixture_exchange(f->pair.replicas, f->pair.now_ms);
    assert_int_equal(merge(f, "settings", "{\"a\":{\"x\":7,\"y\":null},\"b/c\":true}"), ERR_OK);
    shows(f, 0, "settings", "{\"a\":{\"x\":7},\"b/c\":true}");
    assert_int_equal(put(f, 1, &(struct put){ "settings", "{\"z\":0}", NULL, 0, NULL }), ERR_OK);
    fixture_exchange(f->pair.replicas, f->pair.now_ms);
    shows(f, 0, "settings", "{\"a\":{\"x\":7},\"b/c\":true,\"z\":0}");
    shows(f, 1, "settings", "{\"a\":{\"x\":7},\"b/c\":true,\"z\":0}");
    assert_int_equal(step(f, "settings", (struct step){ KIND(SET), "/a", "{\"n\":{}}", NULL }),
                     ERR_OK);
    shows(f, 0, "settings", "{\"a\":{\"n\":{}},\"b/c\":true,\"z\":0}");
}

static void an_empty_object_or_set_takes_everything_away(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(put(f, 0, &(struct put){ "settings", "{\"a\":1}", NULL, 0, NULL }), ERR_OK);
    assert_int_equal(put(f, 0, &(struct put){ "settings", "{}", NULL, 0, OP "2" }), ERR_OK);
    shows(f, 0, "settings", NULL);
    assert_int_equal(put(f, 0, &(struct put){ "settings", "{}", NULL, 0, OP "3" }), ERR_OK);
    assert_int_equal(put(f, 0, &(struct put){ "settings", "{\"b\":{}}", NULL, 0, OP "4" }), ERR_OK);
    shows(f, 0, "settings", "{\"b\":{}}");
    assert_int_equal(put(f, 0, &(struct put){ "tags", "[\"a\"]", NULL, 0, NULL }), ERR_OK);
    assert_int_equal(put(f, 0, &(struct put){ "tags", "[]", NULL, 0, OP "2" }), ERR_OK);
    shows(f, 0, "tags", NULL);
    assert_int_equal(put(f, 0, &(struct put){ "tags", "[\"a\"]", NULL, 0, OP "3" }), ERR_OK);
    assert_int_equal(put(f, 0, &(struct put){ "tags", "{}", NULL, 0, OP "4" }), ERR_OK);
    shows(f, 0, "tags", NULL);
}

static void steps_of_leaves_are_carried_out_one_after_the_other(void **state)
{
    static const struct {
        struct step steps[2];
        const char *left; /* NULL: nothing. */
    } cases[] = {
        { { { KIND(SET), "/o/x", "1", NULL }, { KIND(REMOVE), "/o", "", NULL } }, NULL },
        { { { KIND(SET), "/o/x", "1", NULL }, { KIND(SET), "/o", "2", NULL } }, "{\"o\":2}" },
        { { { KIND(SET), "/o", "2", NULL }, { KIND(SET), "/o/x", "1", NULL } },
          "{\"o\":{\"x\":1}}" },
        { { { KIND(REMOVE), "/o", "", NULL }, { KIND(SET), "/o/x", "1", NULL } },
          "{\"o\":{\"x\":1}}" },
        { { { KIND(SET), "/o/y", "1", NULL }, { KIND(SET), "/o", "{\"x\":3}", NULL } },
          "{\"o\":{\"x\":3}}" },
        { { { KIND(SET), "/o", "2", NULL }, { KIND(REMOVE), "/o/x", "", NULL } }, "{\"o\":2}" },
        { { { KIND(SET), "/o/x", "1", NULL }, { KIND(SET), "/o-", "2", NULL } },
          "{\"o\":{\"x\":1,\"y\":3},\"o-\":2}" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(put(f, 0, &(struct put){ "settings", "{\"o\":{\"y\":3}}", NULL, 0, NULL }),
                         ERR_OK);
        assert_int_equal(steps_at(f, 0, "settings", cases[i].steps, 2), ERR_OK);
        shows(f, 0, "settings", cases[i].left);
    }
}

static void sets_and_counters_are_changed_by_steps(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(put(f, 0, &(struct put){ "tags", "[\"b\",\"a\"]", NULL, 0, NULL }), ERR_OK);
    assert_int_equal(step(f, "tags", (struct step){ KIND(DISCARD), "", "\"b\"", NULL }), ERR_OK);
    assert_int_equal(step(f, "tags", (struct step){ KIND(ADD), "", "\"c\"", OP "5" }), ERR_OK);
    shows(f, 0, "tags", "[\"a\",\"c\"]");
    const struct step kill = { KIND(INCREMENT), "/kills", "3", OP "6" };
    assert_int_equal(step(f, "stats", kill), ERR_OK);
    assert_int_equal(step(f, "stats", kill), ERR_OK); /* A retry. */
    shows(f, 0, "stats", "{\"kills\":3}");
}

static void a_last_write_is_edited_as_a_whole(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(merge(f, "prefs", "{\"a\":1,\"b\":{\"c\":2}}"), ERR_OK);
    assert_int_equal(step(f, "prefs", (struct step){ KIND(INCREMENT), "/b/c", "40", NULL }),
                     ERR_OK);
    shows(f, 0, "prefs", "{\"a\":1,\"b\":{\"c\":42}}");
}

/* The first member took it, and its answer came too late: the router asked the other one. */
static void a_step_that_is_sent_again_is_done_once(void **state)
{
    const struct step increment = { KIND(INCREMENT), "/n", "1", NULL };
    const struct step removal = { KIND(REMOVE), "/n", "", OP "5" };
    const struct step steps[] = { increment, removal };
    const char *const shown[] = { "{\"a\":1,\"n\":6}", "{\"a\":1}" };
    struct fixture *f = *state;

    assert_int_equal(put(f, 0, &(struct put){ "prefs", "{\"a\":1,\"n\":5}", NULL, 0, NULL }),
                     ERR_OK);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(step(f, "prefs", steps[i]), ERR_OK);
        fixture_exchange(f->pair.replicas, f->pair.now_ms);
        assert_int_equal(step_at(f, 1, "prefs", steps[i]), ERR_OK);
        assert_true(f->pair.begun.ticket != 0 && f->pair.begun.context[0] == 'd');
        shows(f, 1, "prefs", shown[i]);
        fixture_exchange(f->pair.replicas, f->pair.now_ms);
        fixture_exchange(
            (struct merge_replica *const[]){ f->pair.replicas[1], f->pair.replicas[0] },
            f->pair.now_ms);
        shows(f, 0, "prefs", shown[i]);
    }
    /* Another step is another operation, though its caller says the same op_id. */
    struct step other = increment;

    other.path = "/a";
    assert_int_equal(step(f, "prefs", other), ERR_OK);
    shows(f, 0, "prefs", "{\"a\":2}");
}

static void a_sibling_that_is_sent_again_is_not_refused(void **state)
{
    struct fixture *f = *state;
    char json[16], op_id[64];

    for (unsigned i = 0; i < MERGE_SIBLINGS_MAX; i++) {
        snprintf(json, sizeof json, "%u", i);
        snprintf(op_id, sizeof op_id, "018bcfe5-6800-7000-8000-0000000001%02x", i);
        assert_int_equal(put(f, 0, &(struct put){ "rooms", json, NULL, 0, op_id }), ERR_OK);
    }
    assert_int_equal(put(f, 0, &(struct put){ "rooms", json, NULL, 0, op_id }), ERR_OK);
    assert_non_null(get(f, 0, "rooms", ""));
    assert_int_equal(f->got->document->n_siblings, MERGE_SIBLINGS_MAX);
}

/* The first member was cut off after it took the write, so it was sent to the other one. */
static void the_latest_attempt_says_when_a_sibling_ends(void **state)
{
    struct fixture *f = *state;
    struct put sibling = { "rooms", "1", NULL, 20000, NULL };
    struct merge_written written;
    struct merge_key *key = NULL;

    for (int first = 0; first < 2; first++) {
        assert_int_equal(put(f, first, &sibling), ERR_OK);
        f->pair.now_ms += 15000;
        assert_int_equal(put(f, 1 - first, &sibling), ERR_OK);
        fixture_exchange(f->pair.replicas, f->pair.now_ms);
        f->pair.now_ms += 10000;
        assert_int_equal(merge_sweep(f->pair.replicas[0], f->pair.now_ms, NULL, &key, &written),
                         ERR_NOT_FOUND);
        shows(f, 0, "rooms", "1");
        shows(f, 1, "rooms", "1");
        assert_int_equal(delete (f, "rooms", OP "9"), ERR_OK);
        fixture_exchange(f->pair.replicas, f->pair.now_ms);
    }
}

static void what_expired_is_not_shown(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(put(f, 0, &(struct put){ "prefs", "1", NULL, 5000, NULL }), ERR_OK);
    shows(f, 0, "prefs", "1");
    assert_int_equal(f->got->document->expires_at_ms, PAIR_BEGINS_MS + 5000);
    f->pair.now_ms += 5000;
    shows(f, 0, "prefs", NULL);
}

static void a_context_is_of_its_document_and_of_the_cluster(void **state)
{
    struct fixture *f = *state;
    char *context;

    assert_int_equal(put(f, 0, &(struct put){ "prefs", "1", NULL, 0, NULL }), ERR_OK);
    context = arena_text(&f->pair.arena, slice_from_text(f->pair.begun.context));
    /* The other one has not heard of it. */
    assert_null(get(f, 1, "prefs", context));
    assert_int_equal(f->pair.refusal.code, CODE(UNAVAILABLE));
    fixture_exchange(f->pair.replicas, f->pair.now_ms);
    assert_non_null(get(f, 1, "prefs", context));
    assert_null(get(f, 1, "tags", context));
    assert_int_equal(f->pair.refusal.code, CODE(INVALID_ARGUMENT));
    size_t size = strlen(context);
    for (size_t i = 0; i < size; i++) {
        char stood = context[i];
        context[i] = stood == 'A' ? 'B' : 'A';
        assert_null(get(f, 1, "prefs", context));
        assert_int_equal(f->pair.refusal.code, CODE(INVALID_ARGUMENT));
        assert_string_equal(f->pair.refusal.field, "context");
        context[i] = stood;
    }
}

static void bad_input_is_refused_with_its_field(void **state)
{
    struct fixture *f = *state;
    char deep[200];

    memset(deep, '[', 100);
    memset(deep + 100, ']', 99);
    deep[199] = 0;
    refused(f, put(f, 0, &(struct put){ "pref", "1", NULL, 0, NULL }), CODE(NOT_FOUND),
            "collection");
    assert_non_null(strstr(f->pair.refusal.message, "prefs"));
    refused(f, put(f, 0, &(struct put){ "A", "1", NULL, 0, NULL }), CODE(INVALID_ARGUMENT),
            "collection");
    refused(f, put(f, 0, &(struct put){ "prefs", "{", NULL, 0, NULL }), CODE(INVALID_ARGUMENT),
            "json");
    refused(f, put(f, 0, &(struct put){ "prefs", deep, NULL, 0, NULL }), CODE(INVALID_ARGUMENT),
            "json");
    refused(f, put(f, 0, &(struct put){ "prefs", "1", "rubbish", 0, NULL }), CODE(INVALID_ARGUMENT),
            "context");
    refused(f, put(f, 0, &(struct put){ "prefs", "1", NULL, 999, NULL }), CODE(INVALID_ARGUMENT),
            "ttl_ms");
    refused(f, put(f, 0, &(struct put){ "prefs", "1", NULL, DOCUMENT_TTL_MS_MAX + 1, NULL }),
            CODE(INVALID_ARGUMENT), "ttl_ms");
    refused(f, put(f, 0, &(struct put){ "settings", "[]", NULL, 0, NULL }), CODE(INVALID_ARGUMENT),
            "json");
    refused(f, put(f, 0, &(struct put){ "tags", "[1]", NULL, 0, NULL }), CODE(INVALID_ARGUMENT),
            "json");
    refused(f, put(f, 0, &(struct put){ "tags", "[\"b\",\"\u00e9\",\"\u00e9\"]", NULL, 0, NULL }),
            CODE(INVALID_ARGUMENT), "json");
    assert_string_equal(f->pair.refusal.message,
                        "json: expected strings that differ, got \"\u00e9\"");
    refused(f, put(f, 0, &(struct put){ "prefs", "", NULL, 0, NULL }), CODE(INVALID_ARGUMENT),
            "json");
    assert_non_null(strstr(f->pair.refusal.message, "absent, empty and null are none"));
    refused(f, step(f, "settings", (struct step){ KIND(SET), "/a//b", "1", NULL }),
            CODE(INVALID_ARGUMENT), "patch");
    assert_string_equal(f->pair.refusal.value, "a//b");
    refused(f, put(f, 0, &(struct put){ "stats", "{}", NULL, 0, NULL }), CODE(INVALID_ARGUMENT),
            "json");
    refused(f, merge(f, "rooms", "{}"), CODE(INVALID_ARGUMENT), "merge");
    refused(f, merge(f, "settings", "{}"), CODE(INVALID_ARGUMENT), "merge");
    refused(f, step(f, "tags", (struct step){ KIND(INCREMENT), "", "1", NULL }),
            CODE(INVALID_ARGUMENT), "patch");
    refused(f, step(f, "stats", (struct step){ KIND(INCREMENT), "/a", "1", "key:x" }),
            CODE(INVALID_ARGUMENT), "op_id");
    refused(
        f,
        step(f, "stats",
             (struct step){ KIND(INCREMENT), "/a", "1", "018bcfd0-0000-7000-8000-000000000001" }),
        CODE(OPERATION_EXPIRED), "op_id");
}

static void a_step_has_the_operand_of_its_kind(void **state)
{
    static const struct {
        const char *collection;
        struct step step;
    } cases[] = {
        { "prefs", { KIND(INCREMENT), "/n", "\"1\"", NULL } },
        { "prefs", { KIND(INCREMENT), "/n", "1.5", NULL } },
        { "prefs", { KIND(INCREMENT), "/n", "", NULL } },
        { "prefs", { KIND(MAX), "/n", "\"x\"", NULL } },
        { "prefs", { KIND(SET), "/n", "", NULL } },
        { "prefs", { KIND(APPEND), "/n", "", NULL } },
        { "prefs", { KIND(REMOVE), "/n", "1", NULL } },
        { "settings", { KIND(SET), "/n", "", NULL } },
        { "settings", { KIND(REMOVE), "/n", "1", NULL } },
        { "stats", { KIND(INCREMENT), "/n", "\"1\"", NULL } },
        { "stats", { KIND(INCREMENT), "/n", "1.5", NULL } },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        refused(f, step(f, cases[i].collection, cases[i].step), CODE(INVALID_ARGUMENT), "patch");
        shows(f, 0, cases[i].collection, NULL);
    }
}

static void a_sum_was_written_when_its_latest_increment_was(void **state)
{
    static const char *const ids[] = { OP "4", OP "5", OP "6" };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        const struct step increment = { KIND(INCREMENT), "/n", "1", ids[i] };

        f->pair.now_ms += 3000;
        assert_int_equal(step(f, "stats", increment), ERR_OK);
        assert_int_equal(get(f, 0, "stats", "")->written_at_ms, f->pair.now_ms);
    }
}

/* From a queue that was away for long, under any id: it counts nothing. */
static void a_counter_is_deleted_under_an_old_id(void **state)
{
    static const char *const ids[] = { "018bcfd0-0000-7000-8000-000000000001", "key:x" };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        const struct step increment = { KIND(INCREMENT), "/n", "1", NULL };

        assert_int_equal(step(f, "stats", increment), ERR_OK);
        assert_int_equal(delete (f, "stats", ids[i]), ERR_OK);
        shows(f, 0, "stats", NULL);
    }
}

/* Until no attempt of an increment can come any more, the deletes remember it. */
static void deletes_of_a_counter_remember_so_many_increments(void **state)
{
    struct fixture *f = *state;
    char op_id[40];

    for (unsigned i = 0; i <= MERGE_SPENT_MAX; i++) {
        const struct step increment = { KIND(INCREMENT), "/n", "1", op_id };

        snprintf(op_id, sizeof op_id, "018bcfe5-6800-7000-8000-%012u", i);
        assert_int_equal(step(f, "stats", increment), ERR_OK);
        if (i % 64 == 63)
            fixture_exchange(f->pair.replicas, f->pair.now_ms);
        if (i % 512 == 511)
            assert_int_equal(delete (f, "stats", "key:x"), ERR_OK);
    }
    refused(f, delete (f, "stats", "key:x"), CODE(THROTTLED), NULL);
    shows(f, 0, "stats", "{\"n\":1}");
}

/* As many deletes wait for a member that is away. */
static void deleted_documents_leave_room_for_others(void **state)
{
    struct fixture *f = *state;
    struct merge_store *store = &f->pair.replicas[0]->store;

    for (uint32_t i = 0; i < DOCUMENT_ROWS_MAX; i++) {
        uint8_t name[8];
        struct merge_key *key;

        if (i == DOCUMENTS_MAX)
            assert_int_equal(put(f, 0, &(struct put){ "prefs", "1", NULL, 0, NULL }), ERR_OK);
        store_u64(name, __builtin_bswap64(i)); /* In this order rows are appended. */
        assert_int_equal(
            merge_key_new(SLICE_LITERAL("guild:1"), (struct slice){ name, sizeof name }, &key),
            ERR_OK);
        causal_raise(&merge_store_make(store, key)->recent, 77, i + 1);
        merge_key_unref(key);
    }
    refused(f, put(f, 0, &(struct put){ "settings", "{\"a\":1}", NULL, 0, NULL }),
            CODE(CAPACITY_FULL), NULL);
}

static void the_documents_of_a_deleted_collection_go(void **state)
{
    const struct step increment = { KIND(INCREMENT), "/n", "1", NULL };
    struct fixture *f = *state;
    struct document_context context = { .arena = &f->pair.arena,
                                        .rules = &f->pair.rules,
                                        .replica = f->pair.replicas[0],
                                        .now_ms = f->pair.now_ms,
                                        .refusal = &f->pair.refusal };
    struct merge_key *key = NULL;
    uint32_t dropped = 0;

    assert_int_equal(put(f, 0, &(struct put){ "settings", "{\"a\":1}", NULL, 0, NULL }), ERR_OK);
    assert_int_equal(put(f, 0, &(struct put){ "prefs", "1", NULL, 0, NULL }), ERR_OK);
    assert_int_equal(step(f, "stats", increment), ERR_OK);
    assert_int_equal(document_sweep_deleted(&context, NULL, &key), ERR_NOT_FOUND);
    f->pair.rules.list[1].deleted = f->pair.rules.list[4].deleted = true;
    f->pair.rules.deleted_count = 2;
    while (document_sweep_deleted(&context, NULL, &key) == ERR_OK) {
        merge_key_unref(key);
        dropped++;
    }
    assert_int_equal(dropped, 2);
    fixture_exchange(f->pair.replicas, f->pair.now_ms);
    f->pair.rules.list[1].deleted = f->pair.rules.list[4].deleted = false;
    for (int member = 0; member < 2; member++) {
        shows(f, member, "settings", NULL);
        shows(f, member, "stats", NULL);
        shows(f, member, "prefs", "1");
    }
}

static void a_name_is_not_unknown_before_all_definitions_are_read(void **state)
{
    struct fixture *f = *state;

    f->pair.rules.complete = false;
    refused(f, put(f, 0, &(struct put){ "later", "1", NULL, 0, NULL }), CODE(UNAVAILABLE), NULL);
    assert_int_equal(put(f, 0, &(struct put){ "prefs", "1", NULL, 0, NULL }), ERR_OK);
    f->pair.rules.complete = true;
    refused(f, put(f, 0, &(struct put){ "later", "1", NULL, 0, NULL }), CODE(NOT_FOUND),
            "collection");
}

static void too_large_is_told_by_limit_and_value(void **state)
{
    struct fixture *f = *state;
    char json[130];

    memset(json, 'x', sizeof json);
    json[0] = '{';
    json[1] = '"';
    memcpy(json + 120, "\":1}", 5);
    refused(f, put(f, 0, &(struct put){ "settings", json, NULL, 0, NULL }), CODE(INVALID_ARGUMENT),
            NULL);
    assert_non_null(strstr(f->pair.refusal.limit, "100"));
    assert_string_equal(f->pair.refusal.value, "119");
    json[70] = '"';
    memcpy(json + 71, ":1}", 4);
    assert_int_equal(put(f, 0, &(struct put){ "settings", json, NULL, 0, NULL }), ERR_OK);
    refused(f, merge(f, "settings", "{\"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\":1}"),
            CODE(CAPACITY_FULL), NULL);
}

/* A later version of the definition, or the other side of a cut, put it above the limit. */
static void what_is_above_its_limit_may_shrink(void **state)
{
    const char *fields = "{\"aaaaaaaaaaaaaaaa\":1,\"bbbbbbbbbbbbbbbb\":{\"x\":22,\"y\":3}}";
    struct fixture *f = *state;

    assert_int_equal(put(f, 0, &(struct put){ "settings", fields, NULL, 0, NULL }), ERR_OK);
    assert_int_equal(put(f, 0, &(struct put){ "prefs", fields, NULL, 0, NULL }), ERR_OK);
    document_rules_clear(&f->pair.rules);
    define(f, 1, "prefs", HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_LAST_WRITE, 10);
    define(f, 2, "settings", HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_MERGE, 10);
    refused(f, merge(f, "settings", "{\"c\":1}"), CODE(CAPACITY_FULL), NULL);
    refused(f, put(f, 0, &(struct put){ "prefs", "{\"bbbbbbbb\":1}", NULL, 0, NULL }),
            CODE(INVALID_ARGUMENT), "json");
    assert_int_equal(merge(f, "settings", "{\"none\":null}"), ERR_OK);
    assert_int_equal(merge(f, "settings", "{\"aaaaaaaaaaaaaaaa\":null}"), ERR_OK);
    assert_int_equal(merge(f, "settings", "{\"bbbbbbbbbbbbbbbb\":{\"x\":2}}"), ERR_OK);
    shows(f, 0, "settings", "{\"bbbbbbbbbbbbbbbb\":{\"x\":2,\"y\":3}}");
    assert_int_equal(merge(f, "prefs", "{\"aaaaaaaaaaaaaaaa\":null}"), ERR_OK);
    shows(f, 0, "prefs", "{\"bbbbbbbbbbbbbbbb\":{\"x\":22,\"y\":3}}");
}

static void a_majority_that_is_not_near_is_unavailable(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__PutDocumentRequest request = HOLDFAST__V1__PUT_DOCUMENT_REQUEST__INIT;

    request.entity = text_lend("player:7");
    request.op_id = text_lend(OP "1");
    request.collection = text_lend("prefs");
    request.key = text_lend("k");
    request.json = text_lend("1");
    request.durability = HOLDFAST__V1__DOCUMENT_DURABILITY__DOCUMENT_DURABILITY_MAJORITY;
    refused(f, pair_call(&f->pair, 0, METHOD_PUT_DOCUMENT, &request.base), CODE(UNAVAILABLE), NULL);
    assert_true(f->pair.refusal.retry_after_ms > 0);
    shows(f, 0, "prefs", NULL);
    request.durability = HOLDFAST__V1__DOCUMENT_DURABILITY__DOCUMENT_DURABILITY_MEMORY;
    refused(f, pair_call(&f->pair, 0, METHOD_PUT_DOCUMENT, &request.base), CODE(INVALID_ARGUMENT),
            "durability");
}

static void a_list_walks_one_collection_by_prefix(void **state)
{
    struct fixture *f = *state;
    static const char *const keys[] = { "a", "ab", "ab1", "ab2", "ab3", "ac", "b" };
    Holdfast__V1__ListDocumentsRequest list = HOLDFAST__V1__LIST_DOCUMENTS_REQUEST__INIT;
    char seen[64] = "";

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        Holdfast__V1__PutDocumentRequest request = HOLDFAST__V1__PUT_DOCUMENT_REQUEST__INIT;
        request.entity = text_lend("player:7");
        request.op_id = text_lend(OP "1");
        request.collection = text_lend("prefs");
        request.key = text_lend(keys[i]);
        request.json = text_lend("1");
        assert_int_equal(pair_call(&f->pair, 0, METHOD_PUT_DOCUMENT, &request.base), ERR_OK);
    }
    assert_int_equal(put(f, 0, &(struct put){ "rooms", "1", NULL, 0, NULL }), ERR_OK);
    list.entity = text_lend("player:7");
    list.collection = text_lend("prefs");
    list.prefix = text_lend("ab");
    list.page_size = 3;
    for (int pages = 0; pages < 3; pages++) {
        assert_int_equal(pair_call(&f->pair, 0, METHOD_LIST_DOCUMENTS, &list.base), ERR_OK);
        const Holdfast__V1__ListDocumentsResponse *page =
            (void *)arena_unpack(&f->pair.arena, &holdfast__v1__list_documents_response__descriptor,
                                 f->pair.begun.answer);
        for (size_t i = 0; i < page->n_documents; i++) {
            size_t size = strlen(seen);
            snprintf(seen + size, sizeof seen - size, "%s ", page->documents[i]->key);
        }
        list.cursor = page->next_cursor;
        if (list.cursor[0] == 0)
            break;
    }
    assert_string_equal(seen, "ab ab1 ab2 ab3 ");
    list.cursor = text_lend("rubbish");
    refused(f, pair_call(&f->pair, 0, METHOD_LIST_DOCUMENTS, &list.base), CODE(INVALID_ARGUMENT),
            "cursor");
    list.cursor = text_lend("");
    list.page_size = 101;
    refused(f, pair_call(&f->pair, 0, METHOD_LIST_DOCUMENTS, &list.base), CODE(INVALID_ARGUMENT),
            "page_size");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_document_is_written_read_and_deleted),
        TEST(writes_that_did_not_know_of_each_other_are_siblings_until_one_has_seen_both),
        TEST(a_write_that_saw_no_sibling_replaces_its_own_alone),
        TEST(leaves_of_both_sides_stand),
        TEST(an_empty_object_or_set_takes_everything_away),
        TEST(steps_of_leaves_are_carried_out_one_after_the_other),
        TEST(sets_and_counters_are_changed_by_steps),
        TEST(a_last_write_is_edited_as_a_whole),
        TEST(a_step_that_is_sent_again_is_done_once),
        TEST(a_sibling_that_is_sent_again_is_not_refused),
        TEST(the_latest_attempt_says_when_a_sibling_ends),
        TEST(what_expired_is_not_shown),
        TEST(a_context_is_of_its_document_and_of_the_cluster),
        TEST(bad_input_is_refused_with_its_field),
        TEST(a_step_has_the_operand_of_its_kind),
        TEST(a_sum_was_written_when_its_latest_increment_was),
        TEST(a_counter_is_deleted_under_an_old_id),
        TEST(deletes_of_a_counter_remember_so_many_increments),
        TEST(deleted_documents_leave_room_for_others),
        TEST(the_documents_of_a_deleted_collection_go),
        TEST(a_name_is_not_unknown_before_all_definitions_are_read),
        TEST(too_large_is_told_by_limit_and_value),
        TEST(what_is_above_its_limit_may_shrink),
        TEST(a_majority_that_is_not_near_is_unavailable),
        TEST(a_list_walks_one_collection_by_prefix),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
