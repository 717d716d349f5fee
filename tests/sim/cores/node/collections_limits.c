/* Each limit of documents (docs/documents.md), at it and beside it, and what else is refused: with
 * its code, its field, and what was expected. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/document/call.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/node/collections.h"

#define KIND(name)       HOLDFAST__V1__PATCH_KIND__PATCH_KIND_##name
#define DURABILITY(name) HOLDFAST__V1__DOCUMENT_DURABILITY__DOCUMENT_DURABILITY_##name

/* The shelves by policy, as room_collections makes them. */
enum { WHOLE, LEAVES, TAGS, ROOMS, STATS };

/* A call that holds every limit, until one of its fields is set otherwise. */
struct form {
    const char *entity, *collection, *key, *op_id, *json, *context;
    bool has_ttl;
    int64_t ttl_ms;
    uint32_t durability;
};

static struct form form_of(struct hall *h, uint32_t shelf)
{
    static const char *const texts[] = { "1", "{\"a\":1}", "[\"a\"]", "1", "{}" };

    return (struct form){ .entity = "guild:7",
                          .collection = h->shelves[shelf].name,
                          .key = arena_printf(&h->sim->arena, "limit%" PRIu64, h->ops),
                          .op_id = hall_op_id(h, h->pair.now_ms),
                          .json = texts[shelf],
                          .context = "" };
}

static err put(struct hall *h, const struct form *form)
{
    Holdfast__V1__PutDocumentRequest request = HOLDFAST__V1__PUT_DOCUMENT_REQUEST__INIT;

    request.entity = text_lend(form->entity);
    request.op_id = text_lend(form->op_id);
    request.collection = text_lend(form->collection);
    request.key = text_lend(form->key);
    request.json = text_lend(form->json);
    request.context = text_lend(form->context);
    request.durability = (Holdfast__V1__DocumentDurability)form->durability;
    request.ttl_ms = form->ttl_ms;
    if (form->has_ttl)
        request._ttl_ms_case = HOLDFAST__V1__PUT_DOCUMENT_REQUEST___TTL_MS_TTL_MS;
    return hall_call(h, 0, METHOD_PUT_DOCUMENT, &request.base);
}

static err delete_one(struct hall *h, const struct form *form)
{
    Holdfast__V1__DeleteDocumentRequest request = HOLDFAST__V1__DELETE_DOCUMENT_REQUEST__INIT;

    request.entity = text_lend(form->entity);
    request.op_id = text_lend(form->op_id);
    request.collection = text_lend(form->collection);
    request.key = text_lend(form->key);
    return hall_call(h, 0, METHOD_DELETE_DOCUMENT, &request.base);
}

static err get(struct hall *h, const struct form *form, const Holdfast__V1__Document **ret_document)
{
    Holdfast__V1__GetDocumentRequest request = HOLDFAST__V1__GET_DOCUMENT_REQUEST__INIT;

    request.entity = text_lend(form->entity);
    request.collection = text_lend(form->collection);
    request.key = text_lend(form->key);
    request.context = text_lend(form->context);
    err e = hall_call(h, 0, METHOD_GET_DOCUMENT, &request.base);

    if (e == ERR_OK && ret_document != NULL) {
        const Holdfast__V1__GetDocumentResponse *told = (void *)arena_unpack(
            &h->sim->arena, &holdfast__v1__get_document_response__descriptor, h->pair.begun.answer);
        *ret_document = told->document;
    }
    return e;
}

static err patch(struct hall *h, const struct form *form, const struct step *steps, size_t count)
{
    Holdfast__V1__UpdateDocumentRequest request = HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__INIT;
    Holdfast__V1__PatchList list = HOLDFAST__V1__PATCH_LIST__INIT;

    list.n_steps = count;
    list.steps = arena_messages(&h->sim->arena, &holdfast__v1__patch_step__descriptor, count);
    for (size_t i = 0; i < count; i++) {
        list.steps[i]->kind = steps[i].kind;
        list.steps[i]->path = text_lend(steps[i].path);
        list.steps[i]->json = text_lend(steps[i].json);
    }
    request.entity = text_lend(form->entity);
    request.op_id = text_lend(form->op_id);
    request.collection = text_lend(form->collection);
    request.key = text_lend(form->key);
    request.edit_case = HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__EDIT_PATCH;
    request.patch = &list;
    return hall_call(h, 0, METHOD_UPDATE_DOCUMENT, &request.base);
}

/* Refused with that code and field, or carried out. */
static void judge(struct hall *h, err e, bool well, Holdfast__V1__ErrorCode code, const char *field)
{
    if (!well) {
        hall_refused(h, e, code, field);
        return;
    }
    PROMISE(h->sim, e == ERR_OK, "what holds the limit of %s is refused: %s %s",
            field != NULL ? field : "", h->sim->detail.message, h->sim->detail.limit);
    h->sim->counts.collections_at_limits++;
}

static char *text_of(struct hall *h, const char *prefix, uint64_t size)
{
    uint64_t begun = strlen(prefix);
    char *text = arena_alloc(&h->sim->arena, size + begun + 1);

    memset(text, 'x', size + begun);
    memcpy(text, prefix, begun);
    text[size > begun ? size : begun] = 0;
    return text;
}

/* ---- names ---- */

static void names_turn(struct hall *h)
{
    static const struct {
        const char *text;
        bool entity, key, collection;
    } cases[] = {
        { "a:b", true, true, false },      { "a:", false, true, false },
        { ":a", false, true, false },      { "ab", false, true, false },
        { "abc", false, true, false },     { "a:\x01", false, false, false },
        { "a:\xff", false, false, false }, { "a\nb", false, false, false },
        { "", false, false, false },       { "A", false, true, false },
        { "a-b", false, true, false },
    };
    uint64_t at = rsim_between(h->sim, 0, ARRAY_SIZE(cases) - 1);
    struct form form = form_of(h, WHOLE);

    form.entity = cases[at].text;
    judge(h, put(h, &form), cases[at].entity, CODE(INVALID_ARGUMENT), "entity");
    form = form_of(h, WHOLE);
    form.key = cases[at].text;
    judge(h, put(h, &form), cases[at].key, CODE(INVALID_ARGUMENT), "key");
    form = form_of(h, WHOLE);
    form.collection = cases[at].text;
    bool known = cases[at].collection || strcmp(form.collection, "abc") == 0 ||
                 strcmp(form.collection, "ab") == 0;

    hall_refused(h, put(h, &form), known ? CODE(NOT_FOUND) : CODE(INVALID_ARGUMENT), "collection");
}

static void sizes_turn(struct hall *h)
{
    struct form form = form_of(h, WHOLE);
    uint64_t size = rsim_about(h->sim, 128);

    form.entity = text_of(h, "guild:", size);
    judge(h, put(h, &form), size <= 128, CODE(INVALID_ARGUMENT), "entity");
    judge(h, get(h, &form, NULL), size <= 128, CODE(INVALID_ARGUMENT), "entity");
    form = form_of(h, WHOLE);
    size = rsim_about(h->sim, 200);
    form.key = text_of(h, form.key, size);
    judge(h, put(h, &form), size <= 200, CODE(INVALID_ARGUMENT), "key");
    judge(h, delete_one(h, &form), size <= 200, CODE(INVALID_ARGUMENT), "key");
    form = form_of(h, WHOLE);
    size = rsim_about(h->sim, 64);
    form.collection = text_of(h, "", size);
    hall_refused(h, put(h, &form), size <= 64 ? CODE(NOT_FOUND) : CODE(INVALID_ARGUMENT),
                 "collection");
}

/* A name that is not defined: the caller is told of the nearest, or that this member does not know
 * all of them yet. */
static void unknown_turn(struct hall *h)
{
    struct form form = form_of(h, WHOLE);

    h->shelves[LEAVES].deleted = true;
    shelf_define(h, &h->shelves[LEAVES]);
    form.collection = rsim_chance(h->sim, 50) ? "whol" : "leave";
    bool near = form.collection[0] == 'w';

    hall_refused(h, put(h, &form), CODE(NOT_FOUND), "collection");
    PROMISE(h->sim, strcmp(h->sim->detail.value, form.collection) == 0, "another name is told");
    PROMISE(h->sim,
            (strstr(h->sim->detail.message, "whole") != NULL) == near &&
                strstr(h->sim->detail.message, "leaves") == NULL,
            "the nearest name is told otherwise: %s", h->sim->detail.message);
    h->pair.rules.complete = false;
    hall_refused(h, put(h, &form), CODE(UNAVAILABLE), NULL);
    PROMISE(h->sim, h->pair.refusal.retry_after_ms > 0, "no wait is told");
    form.collection = h->shelves[WHOLE].name;
    judge(h, put(h, &form), true, 0, "collection");
    h->pair.rules.complete = true;
    h->shelves[LEAVES].deleted = false;
    shelf_define(h, &h->shelves[LEAVES]);
}

/* ---- times, op ids, durability ---- */

static void ends_turn(struct hall *h)
{
    static const int64_t ends[] = { 1000, 31536000000 };
    struct form form = form_of(h, WHOLE);
    const Holdfast__V1__Document *told = NULL;

    form.has_ttl = true;
    form.ttl_ms = rsim_chance(h->sim, 20)
                      ? (int64_t)rsim_between(h->sim, 0, 1) - 1
                      : (int64_t)rsim_about(h->sim, (uint64_t)RSIM_PICK(h->sim, ends));
    bool well = form.ttl_ms >= ends[0] && form.ttl_ms <= ends[1];

    judge(h, put(h, &form), well, CODE(INVALID_ARGUMENT), "ttl_ms");
    if (!well)
        return;
    PROMISE(h->sim, get(h, &form, &told) == ERR_OK && told != NULL, "it is not there");
    PROMISE(h->sim, told->expires_at_ms == (int64_t)h->pair.now_ms + form.ttl_ms, "another end");
}

static void op_ids_turn(struct hall *h)
{
    static const char *const bad[] = { "", "key:", "nothing",
                                       "018bcfe5-6800-7000-8000-0000000000" };
    const struct step step = { KIND(INCREMENT), "/n", "1" };
    struct form form = form_of(h, WHOLE);
    uint64_t late_ms = rsim_about(h->sim, 900000), early_ms = rsim_about(h->sim, 1000);

    form.op_id = RSIM_PICK(h->sim, bad);
    hall_refused(h, put(h, &form), CODE(INVALID_ARGUMENT), "op_id");
    form = form_of(h, STATS);
    form.op_id = hall_op_id(h, h->pair.now_ms - late_ms);
    judge(h, patch(h, &form, &step, 1), late_ms <= 900000, CODE(OPERATION_EXPIRED), "op_id");
    form.op_id = hall_op_id(h, h->pair.now_ms + early_ms);
    judge(h, patch(h, &form, &step, 1), early_ms <= 1000, CODE(UNAVAILABLE), NULL);
    form.op_id = arena_printf(&h->sim->arena, "key:%" PRIu64, h->ops);
    hall_refused(h, patch(h, &form, &step, 1), CODE(INVALID_ARGUMENT), "op_id");
    judge(h, delete_one(h, &form), true, 0, "op_id");
    form.op_id = hall_op_id(h, h->pair.now_ms - 2000000);
    judge(h, delete_one(h, &form), true, 0, "op_id");
    form.collection = h->shelves[WHOLE].name;
    judge(h, put(h, &form), true, 0, "op_id");
}

static void durability_turn(struct hall *h)
{
    uint32_t asked = (uint32_t)rsim_between(h->sim, 0, 5);
    struct form form = form_of(h, WHOLE);
    struct shelf *shelf = &h->shelves[WHOLE];

    shelf->durability = (Holdfast__V1__DocumentDurability)rsim_between(h->sim, 0, 2);
    shelf_define(h, shelf);
    uint32_t least = shelf->durability != 0 ? shelf->durability : DURABILITY(ONE);

    form.durability = asked;
    if (asked != DURABILITY(MAJORITY))
        judge(h, put(h, &form), asked == 0 || (asked >= least && asked < DURABILITY(MAJORITY)),
              CODE(INVALID_ARGUMENT), "durability");
    shelf->durability = 0;
    shelf_define(h, shelf);
}

/* ---- documents ---- */

static void bytes_turn(struct hall *h)
{
    struct form form = form_of(h, rsim_chance(h->sim, 50) ? WHOLE : ROOMS);
    struct shelf *shelf =
        &h->shelves[strcmp(form.collection, h->shelves[WHOLE].name) == 0 ? WHOLE : ROOMS];
    uint64_t limit = rsim_chance(h->sim, 5) ? 65536 : rsim_between(h->sim, 10, 60);
    uint64_t size = rsim_about(h->sim, limit);
    char *json = text_of(h, "\"", size);

    shelf->bytes_max = (uint32_t)limit;
    shelf_define(h, shelf);
    json[size - 1] = '"';
    form.json = json;
    judge(h, put(h, &form), size <= limit, CODE(INVALID_ARGUMENT), "json");
    if (size > limit)
        PROMISE(
            h->sim,
            strcmp(h->sim->detail.limit, arena_printf(&h->sim->arena, "at most %" PRIu64, limit)) ==
                    0 &&
                strcmp(h->sim->detail.value, arena_printf(&h->sim->arena, "%" PRIu64, size)) == 0,
            "%" PRIu64 " of %" PRIu64 " bytes are told as %s, %s", size, limit,
            h->sim->detail.value, h->sim->detail.limit);
    shelf->bytes_max = 0;
    shelf_define(h, shelf);
}

/* Objects in one another; the innermost has a number. */
static char *nested(struct hall *h, uint64_t depth)
{
    char *text = arena_alloc(&h->sim->arena, depth * 6 + 2), *at = text;

    for (uint64_t i = 0; i < depth; i++, at += 5)
        memcpy(at, "{\"a\":", 5);
    *at++ = '1';
    memset(at, '}', depth);
    at[depth] = 0;
    return text;
}

static void depth_turn(struct hall *h)
{
    uint64_t depth = rsim_about(h->sim, 64), above = rsim_between(h->sim, 1, 60);
    struct form form = form_of(h, rsim_chance(h->sim, 50) ? WHOLE : LEAVES);
    const Holdfast__V1__Document *told = NULL;

    form.json = nested(h, depth);
    judge(h, put(h, &form), depth <= 64, CODE(INVALID_ARGUMENT), "json");
    if (depth <= 64)
        PROMISE(h->sim,
                get(h, &form, &told) == ERR_OK && told != NULL &&
                    strcmp(told->json, form.json) == 0,
                "what is nested deep is not told as it was given");
    /* A leaf that is an array counts with the names above it. */
    form = form_of(h, LEAVES);
    char *path = arena_alloc(&h->sim->arena, 2 * above + 1);
    uint64_t inner = rsim_about(h->sim, 64 - above + 1) - 1;
    char *value = text_of(h, "", 2 * inner + 1);

    for (uint64_t i = 0; i < above; i++)
        memcpy(path + 2 * i, "/a", 2);
    path[2 * above] = 0;
    memset(value, '[', inner);
    value[inner] = '1';
    memset(value + inner + 1, ']', inner);
    judge(h, patch(h, &form, &(struct step){ KIND(SET), path, value }, 1), above + inner <= 64,
          CODE(INVALID_ARGUMENT), "patch");
}

/* So many leaves, or elements, each once. */
static char *many(struct hall *h, bool leaves, uint64_t from, uint64_t count)
{
    struct buf out = { 0 };

    for (uint64_t i = 0; i < count; i++)
        buf_printf(&out, "%s\"n%05" PRIu64 "\"%s", i == 0 ? leaves ? "{" : "[" : ",", from + i,
                   leaves ? ":1" : "");
    buf_printf(&out, leaves ? "}" : "]");
    char *text = arena_printf(&h->sim->arena, "%.*s", (int)out.size, (const char *)out.data);

    buf_deinit(&out);
    return text;
}

static void counts_turn(struct hall *h)
{
    uint64_t count = rsim_about(h->sim, 64);
    bool leaves = rsim_chance(h->sim, 50);
    struct form form = form_of(h, leaves ? LEAVES : TAGS);
    struct step *steps = arena_zalloc(&h->sim->arena, 65 * sizeof *steps);

    form.json = many(h, leaves, 0, count);
    judge(h, put(h, &form), count <= 64, CODE(INVALID_ARGUMENT), "json");
    form = form_of(h, WHOLE);
    count = rsim_chance(h->sim, 30) ? 0 : count;
    for (uint64_t i = 0; i < count; i++)
        steps[i] = (struct step){ KIND(SET), "/a", "1" };
    judge(h, patch(h, &form, steps, count), count >= 1 && count <= 64, CODE(INVALID_ARGUMENT),
          "patch");
}

static void check_capacity(struct hall *h, const char *what, int64_t most, int64_t value)
{
    const Holdfast__V1__ErrorDetail__Capacity *told = h->pair.refusal.capacity;

    PROMISE(h->sim,
            told != NULL && strcmp(told->what, what) == 0 && told->max == most &&
                strtoll(h->sim->detail.limit, NULL, 10) == most &&
                strtoll(h->sim->detail.value, NULL, 10) == value,
            "%" PRId64 " %s of %" PRId64 " are told as %s of %s", value, what, most,
            h->sim->detail.value, h->sim->detail.limit);
}

/* What a document may have in all. */
static void parts_turn(struct hall *h)
{
    static const struct step steps[] = { { KIND(SET), "/n00000", "2" },
                                         { KIND(SET), "/more", "1" } };
    struct form form = form_of(h, LEAVES);
    uint32_t full = 1024 / 64;

    for (uint32_t i = 0; i < full; i++) {
        Holdfast__V1__UpdateDocumentRequest request = HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__INIT;

        request.entity = text_lend(form.entity);
        request.op_id = hall_op_id(h, h->pair.now_ms);
        request.collection = text_lend(form.collection);
        request.key = text_lend(form.key);
        request.edit_case = HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__EDIT_MERGE;
        request.merge = many(h, true, i * 64u, 64);
        judge(h, hall_call(h, 0, METHOD_UPDATE_DOCUMENT, &request.base), true, 0, "merge");
    }
    form.op_id = hall_op_id(h, h->pair.now_ms);
    judge(h, patch(h, &form, &steps[0], 1), true, 0, "patch");
    form.op_id = hall_op_id(h, h->pair.now_ms);
    hall_refused(h, patch(h, &form, &steps[1], 1), CODE(CAPACITY_FULL), NULL);
    check_capacity(h, "fields", 1024, 1025);
}

static void siblings_turn(struct hall *h)
{
    struct form form = form_of(h, ROOMS);

    for (uint32_t i = 0; i < MERGE_SIBLINGS_MAX; i++) {
        form.op_id = hall_op_id(h, h->pair.now_ms);
        judge(h, put(h, &form), true, 0, "siblings");
    }
    judge(h, put(h, &form), true, 0, "an attempt"); /* It is there. */
    form.op_id = hall_op_id(h, h->pair.now_ms);
    hall_refused(h, put(h, &form), CODE(CAPACITY_FULL), NULL);
    check_capacity(h, "siblings", 16, 17);
    judge(h, delete_one(h, &form), true, 0, "siblings");
}

static void paths_turn(struct hall *h)
{
    uint64_t size = rsim_about(h->sim, 255);
    char *name = text_of(h, "", size);
    struct arena *arena = &h->sim->arena;
    const struct step leaf = { KIND(SET), arena_printf(arena, "/%s", name), "1" };
    const struct step element = { KIND(ADD), "", arena_printf(arena, "\"%s\"", name) };
    const struct step count = { KIND(INCREMENT), leaf.path, "3" };
    struct form form = form_of(h, LEAVES);

    judge(h, patch(h, &form, &leaf, 1), size <= 255, CODE(INVALID_ARGUMENT), "patch");
    form = form_of(h, LEAVES);
    form.json = arena_printf(arena, "{\"%s\":1}", name);
    judge(h, put(h, &form), size <= 255, CODE(INVALID_ARGUMENT), "json");
    form = form_of(h, TAGS);
    judge(h, patch(h, &form, &element, 1), size <= 255, CODE(INVALID_ARGUMENT), "patch");
    form = form_of(h, TAGS);
    form.json = arena_printf(arena, "[\"%s\"]", name);
    judge(h, put(h, &form), size <= 255, CODE(INVALID_ARGUMENT), "json");
    form = form_of(h, STATS);
    judge(h, patch(h, &form, &count, 1), size <= 255, CODE(INVALID_ARGUMENT), "patch");
    form = form_of(h, WHOLE);
    size = rsim_about(h->sim, 512);
    const struct step deep = { KIND(SET), text_of(h, "/", size), "1" };

    judge(h, patch(h, &form, &deep, 1), size <= 512, CODE(INVALID_ARGUMENT), "patch");
}

/* ---- what is none ---- */

static void puts_turn(struct hall *h)
{
    static const struct {
        uint32_t shelf;
        const char *json;
        bool well;
    } cases[] = {
        { WHOLE, "", false },           { WHOLE, "{", false },
        { WHOLE, "null", true },        { LEAVES, "{}", true },
        { LEAVES, "[]", false },        { LEAVES, "1", false },
        { LEAVES, "{\"\":1}", false },  { LEAVES, "{\"a\":{\"\":1}}", false },
        { LEAVES, "{\"a\":{}}", true }, { LEAVES, "{\"a\":null}", true },
        { TAGS, "{}", true },           { TAGS, "[1]", false },
        { TAGS, "[\"\"]", false },      { TAGS, "[\"a\",null]", false },
        { TAGS, "[]", true },           { TAGS, "[\"b\",\"a\"]", true },
        { ROOMS, "}", false },          { ROOMS, "[]", true },
        { STATS, "{\"n\":1}", false },
    };
    uint64_t at = rsim_between(h->sim, 0, ARRAY_SIZE(cases) - 1);
    struct form form = form_of(h, cases[at].shelf);

    form.json = cases[at].json;
    judge(h, put(h, &form), cases[at].well, CODE(INVALID_ARGUMENT), "json");
}

static void steps_turn(struct hall *h)
{
    static const struct {
        uint32_t shelf;
        struct step step;
        const char *field; /* NULL: carried out. */
    } cases[] = {
        { LEAVES, { KIND(SET), "", "1" }, "patch" },
        { LEAVES, { KIND(SET), "/", "1" }, "patch" },
        { LEAVES, { KIND(SET), "a/b", "1" }, "patch" },
        { LEAVES, { KIND(SET), "/~", "1" }, "patch" },
        { LEAVES, { KIND(SET), "/a//b", "1" }, "patch" },
        { LEAVES, { KIND(SET), "/a", "{\"\":1}" }, "patch" },
        { LEAVES, { KIND(SET), "/a", "{" }, "patch" },
        { LEAVES, { KIND(SET), "/a", "null" }, NULL },
        { LEAVES, { KIND(INCREMENT), "/a", "1" }, "patch" },
        { LEAVES, { KIND(UNSPECIFIED), "/a", "1" }, "patch" },
        { LEAVES, { KIND(REMOVE), "/a", "" }, NULL },
        { LEAVES, { KIND(REMOVE), "/a", "1" }, "patch" },
        { LEAVES, { KIND(SET), "/a", "" }, "patch" },
        { TAGS, { KIND(ADD), "/a", "\"a\"" }, "patch" },
        { TAGS, { KIND(DISCARD), "/a", "\"a\"" }, "patch" },
        { TAGS, { KIND(ADD), "", "\"\"" }, "patch" },
        { TAGS, { KIND(ADD), "", "1" }, "patch" },
        { TAGS, { KIND(ADD), "", "" }, "patch" },
        { TAGS, { KIND(SET), "", "\"a\"" }, "patch" },
        { TAGS, { KIND(DISCARD), "", "\"a\"" }, NULL },
        { ROOMS, { KIND(SET), "/a", "1" }, "patch" },
        { STATS, { KIND(INCREMENT), "/", "1" }, "patch" },
        { STATS, { KIND(INCREMENT), "", "1" }, "patch" },
        { STATS, { KIND(INCREMENT), "ab", "1" }, "patch" },
        { STATS, { KIND(INCREMENT), "/a/b", "1" }, "patch" },
        { STATS, { KIND(INCREMENT), "/a~0", "1" }, "patch" },
        { STATS, { KIND(INCREMENT), "/a", "1.5" }, "patch" },
        { STATS, { KIND(INCREMENT), "/a", "" }, "patch" },
        { STATS, { KIND(INCREMENT), "/a", "140737488355328" }, NULL },
        { STATS, { KIND(INCREMENT), "/a", "-140737488355328" }, NULL },
        { STATS, { KIND(INCREMENT), "/a", "140737488355329" }, "patch[0]" },
        { STATS, { KIND(INCREMENT), "/a", "-140737488355329" }, "patch[0]" },
        { STATS, { KIND(SET), "/a", "1" }, "patch" },
        { WHOLE, { KIND(INCREMENT), "/a", "1" }, NULL },
        { WHOLE, { KIND(INCREMENT), "/a", "\"1\"" }, "patch" },
        { WHOLE, { KIND(INCREMENT), "/a", "1.5" }, "patch" },
        { WHOLE, { KIND(MAX), "/a", "\"1\"" }, "patch" },
        { WHOLE, { KIND(MAX), "/a", "-2" }, NULL },
        { WHOLE, { KIND(SET), "/a", "" }, "patch" },
        { WHOLE, { KIND(REMOVE), "/a", "1" }, "patch" },
        { WHOLE, { KIND(APPEND), "/a", "1" }, NULL },
        { WHOLE, { KIND(SET), "a", "1" }, "patch" },
        { WHOLE, { KIND(SET), "/a", "[" }, "patch" },
    };
    uint64_t at = rsim_between(h->sim, 0, ARRAY_SIZE(cases) - 1);
    struct form form = form_of(h, cases[at].shelf);

    judge(h, patch(h, &form, &cases[at].step, 1), cases[at].field == NULL, CODE(INVALID_ARGUMENT),
          cases[at].field);
}

static void contexts_turn(struct hall *h)
{
    struct form form = form_of(h, WHOLE);
    const char *const bad[] = {
        "d1.", "x", "d2.AAAA", "d1.A*", "d1.AAAA", text_of(h, "d1.", 700), text_of(h, "d1.", 701)
    };

    judge(h, put(h, &form), true, 0, "context");
    char *own = arena_copy_text(&h->sim->arena, h->pair.begun.context);
    form.context = own;
    judge(h, get(h, &form, NULL), true, 0, "context");
    uint64_t at = rsim_between(h->sim, 0, strlen(own) - 1);

    own[at] = own[at] == 'A' ? 'B' : 'A';
    judge(h, get(h, &form, NULL), false, CODE(INVALID_ARGUMENT), "context");
    form.context = RSIM_PICK(h->sim, bad);
    judge(h, get(h, &form, NULL), false, CODE(INVALID_ARGUMENT), "context");
    form.op_id = hall_op_id(h, h->pair.now_ms);
    judge(h, put(h, &form), false, CODE(INVALID_ARGUMENT), "context");
}

static void messages_turn(struct hall *h)
{
    static const uint32_t methods[] = { METHOD_PUT_DOCUMENT, METHOD_GET_DOCUMENT,
                                        METHOD_DELETE_DOCUMENT, METHOD_UPDATE_DOCUMENT,
                                        METHOD_LIST_DOCUMENTS };
    struct document_context context = pair_context(&h->pair, 0);
    Holdfast__V1__UpdateDocumentRequest none = HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__INIT;
    struct form form = form_of(h, WHOLE);
    struct document_begun begun = { 0 };

    h->pair.refusal = (struct refusal){ 0 };
    err e = document_method_find(RSIM_PICK(h->sim, methods))
                ->begin(&context, SLICE_LITERAL("\x0a\xff"), &begun);

    PROMISE(h->sim, e != ERR_OK && h->pair.refusal.code == CODE(INVALID_ARGUMENT),
            "what is no message is taken");
    none.entity = text_lend(form.entity);
    none.op_id = text_lend(form.op_id);
    none.collection = text_lend(form.collection);
    none.key = text_lend(form.key);
    judge(h, hall_call(h, 0, METHOD_UPDATE_DOCUMENT, &none.base), false, CODE(INVALID_ARGUMENT),
          "edit");
}

/* ---- members and shards ---- */

/* A shard that is full takes no new document; what it has is written and deleted. */
static void full_turn(struct hall *h)
{
    struct form form = form_of(h, WHOLE), other = form_of(h, WHOLE);

    judge(h, put(h, &form), true, 0, "documents");
    h->pair.full = true;
    form.op_id = hall_op_id(h, h->pair.now_ms);
    judge(h, put(h, &form), true, 0, "documents");
    hall_refused(h, put(h, &other), CODE(CAPACITY_FULL), NULL);
    check_capacity(h, "documents", 65536, (int64_t)h->pair.replicas[0]->store.count);
    judge(h, delete_one(h, &other), true, 0, "documents");
    judge(h, delete_one(h, &form), true, 0, "documents");
    h->pair.full = false;
}

static err list(struct hall *h, uint32_t page_size, const char *prefix, const char *cursor)
{
    Holdfast__V1__ListDocumentsRequest request = HOLDFAST__V1__LIST_DOCUMENTS_REQUEST__INIT;

    request.entity = text_lend("list:1");
    request.collection = h->shelves[WHOLE].name;
    request.page_size = page_size;
    request.prefix = text_lend(prefix);
    request.cursor = text_lend(cursor);
    return hall_call(h, 0, METHOD_LIST_DOCUMENTS, &request.base);
}

/* It takes in what it lacks first: no answer, and nothing is written. */
static void syncing_turn(struct hall *h)
{
    struct merge_replica *replica = h->pair.replicas[0];
    struct form form = form_of(h, WHOLE);

    replica->syncing = true;
    hall_refused(h, put(h, &form), CODE(UNAVAILABLE), NULL);
    hall_refused(h, get(h, &form, NULL), CODE(UNAVAILABLE), NULL);
    PROMISE(h->sim, strstr(h->sim->detail.message, "lacks") != NULL, "%s", h->sim->detail.message);
    hall_refused(h, list(h, 0, "", ""), CODE(UNAVAILABLE), NULL);
    PROMISE(h->sim, h->pair.refusal.retry_after_ms > 0, "no wait is told");
    replica->syncing = false;
    judge(h, put(h, &form), true, 0, "syncing");
}

static void pages_turn(struct hall *h)
{
    uint64_t size = rsim_about(h->sim, 100), prefix = rsim_about(h->sim, 200);
    uint64_t count = rsim_about(h->sim, 20);
    const Holdfast__V1__ListDocumentsResponse *told;
    struct form form = form_of(h, WHOLE);

    judge(h, list(h, (uint32_t)size, "", ""), size <= 100, CODE(INVALID_ARGUMENT), "page_size");
    judge(h, list(h, 0, text_of(h, "", prefix), ""), prefix <= 200, CODE(INVALID_ARGUMENT),
          "prefix");
    judge(h, list(h, 0, "a\x01", ""), false, CODE(INVALID_ARGUMENT), "prefix");
    judge(h, list(h, 0, "", "rubbish"), false, CODE(INVALID_ARGUMENT), "cursor");
    form.entity = "list:1";
    for (uint64_t i = 0; i < count; i++) {
        form.key = arena_printf(&h->sim->arena, "k%02" PRIu64, i);
        form.op_id = hall_op_id(h, h->pair.now_ms);
        judge(h, put(h, &form), true, 0, "page_size");
    }
    judge(h, list(h, 0, "k", ""), true, 0, "page_size");
    told = (void *)arena_unpack(&h->sim->arena, &holdfast__v1__list_documents_response__descriptor,
                                h->pair.begun.answer);
    PROMISE(h->sim,
            told->n_documents == (count < 20 ? count : 20) &&
                (told->next_cursor[0] != 0) == (count > 20),
            "%zu of %" PRIu64 " documents are listed", told->n_documents, count);
    if (count > 20)
        judge(h, list(h, 0, "k0", told->next_cursor), false, CODE(INVALID_ARGUMENT), "cursor");
    for (uint64_t i = 0; i < count; i++) {
        form.key = arena_printf(&h->sim->arena, "k%02" PRIu64, i);
        judge(h, delete_one(h, &form), true, 0, "page_size");
    }
}

/* So many calls wait for the disk. */
static void pending_turn(struct hall *h)
{
    struct document_context context = pair_context(&h->pair, 0);
    Holdfast__V1__PutDocumentRequest request = HOLDFAST__V1__PUT_DOCUMENT_REQUEST__INIT;
    struct form form = form_of(h, WHOLE);
    struct document_begun begun = { 0 };
    err e = ERR_OK;

    request.entity = text_lend(form.entity);
    request.collection = text_lend(form.collection);
    request.key = text_lend(form.key);
    request.json = text_lend("1");
    for (uint32_t i = 0; i <= MERGE_PENDING_MAX; i++) {
        PROMISE(h->sim, e == ERR_OK, "call %u is refused", i);
        h->pair.refusal = (struct refusal){ 0 };
        request.op_id = hall_op_id(h, h->pair.now_ms);
        e = document_method_find(METHOD_PUT_DOCUMENT)
                ->begin(&context, arena_pack(&h->sim->arena, &request.base), &begun);
    }
    PROMISE(h->sim,
            e != ERR_OK && h->pair.refusal.code == CODE(THROTTLED) &&
                h->pair.refusal.retry_after_ms > 0,
            "calls wait beyond their limit");
    hall_exchange(h);
}

/* ---- all ---- */

void hall_limits(struct hall *h)
{
    static void (*const turns[])(struct hall * h) = {
        names_turn,      sizes_turn,    unknown_turn, ends_turn,    op_ids_turn,
        durability_turn, bytes_turn,    depth_turn,   counts_turn,  siblings_turn,
        paths_turn,      puts_turn,     steps_turn,   puts_turn,    steps_turn,
        contexts_turn,   messages_turn, full_turn,    syncing_turn, pages_turn,
    };

    for (uint32_t i = 0; i < SHELVES; i++) {
        h->shelves[i].deleted = false;
        h->shelves[i].ttl_ms = h->shelves[i].bytes_max = 0;
        h->shelves[i].durability = 0;
        shelf_define(h, &h->shelves[i]);
    }
    h->pair.now_ms += 10;
    for (uint32_t i = 0; i < LIMITS_TURNS; i++)
        RSIM_PICK(h->sim, turns)(h);
    if (rsim_chance(h->sim, 10))
        parts_turn(h);
    if (rsim_chance(h->sim, 10))
        pending_turn(h);
}
