/*
 * document_fuzz: players' own JSON documents: their canonical form, merge patches and typed steps.
 * Three texts separated by NUL: a document, a patch, a step's value; before them the kind of the
 * step, and the length of its path, which follows.
 */
#include <stdlib.h>
#include <string.h>

#include "node/core/codec/json_canon.h"
#include "node/core/codec/json_edit.h"
#include "runtime/base/check.h"
#include "tests/fuzz/fuzz.h"

struct texts {
    struct slice path, document, patch, value;
    Holdfast__V1__PatchKind kind;
};

static struct slice take_text(struct slice *rest)
{
    const uint8_t *nul = rest->size > 0 ? memchr(rest->data, 0, rest->size) : NULL;
    struct slice text = *rest;

    *rest = (struct slice){ 0 };
    if (nul != NULL) {
        text.size = (size_t)(nul - text.data);
        *rest = (struct slice){ nul + 1, (size_t)(text.data + rest->size - nul) };
    }
    return text;
}

static bool split(struct slice input, struct texts *ret_texts)
{
    struct reader reader = reader_from(input);

    ret_texts->kind = (Holdfast__V1__PatchKind)(read_u8(&reader) % 8);
    ret_texts->path = read_raw(&reader, read_u8(&reader));
    struct slice rest = read_raw(&reader, reader_left(&reader));
    const uint8_t *end = rest.data + rest.size;
    if (reader.bad || rest.size == 0)
        return false;
    ret_texts->document = take_text(&rest);
    rest = (struct slice){ rest.data, rest.data != NULL ? (size_t)(end - rest.data) : 0 };
    ret_texts->patch = take_text(&rest);
    rest = (struct slice){ rest.data, rest.data != NULL ? (size_t)(end - rest.data) : 0 };
    ret_texts->value = rest;
    return true;
}

/* The canonical form is its own canonical form. Returns the parsed text, NULL when refused. */
static json_t *check_canon(struct slice text)
{
    struct buf first = { 0 };
    struct buf second = { 0 };
    const char *why = NULL;
    json_t *value = json_canon_parse(text, &why);

    if (json_canon(text, &first, &why) == ERR_OK) {
        CHECK(value != NULL);
        CHECK(json_canon(buf_slice(&first), &second, &why) == ERR_OK);
        CHECK(slice_equal(buf_slice(&first), buf_slice(&second)));
    } else {
        CHECK(why != NULL && value == NULL);
    }
    buf_deinit(&first);
    buf_deinit(&second);
    return value;
}

/* What an edit makes may be too deep or too large, but never of another form. */
static void check_result(const json_t *document)
{
    struct buf first = { 0 };
    const char *why = NULL;

    if (document != NULL && json_canon_write(document, &first) == ERR_OK) {
        json_t *again = json_canon_parse(buf_slice(&first), &why);
        CHECK(again != NULL);
        json_decref(again);
    }
    buf_deinit(&first);
}

static json_t *step(json_t *document, const struct texts *texts, json_t *value)
{
    const char *why = NULL;
    bool removes = texts->kind == HOLDFAST__V1__PATCH_KIND__PATCH_KIND_REMOVE;

    if (texts->kind == HOLDFAST__V1__PATCH_KIND__PATCH_KIND_UNSPECIFIED ||
        texts->kind > HOLDFAST__V1__PATCH_KIND__PATCH_KIND_DISCARD || (value == NULL && !removes))
        return document;
    if (json_pointer_check(texts->path) != ERR_OK)
        return document;
    if (json_patch_step(&document, texts->kind, texts->path, removes ? NULL : value, &why) ==
        ERR_INVALID)
        CHECK(why != NULL);
    return document;
}

void fuzz_one(struct slice input)
{
    struct texts texts = { 0 };

    if (!split(input, &texts))
        return;
    json_t *document = check_canon(texts.document);
    json_t *patch = check_canon(texts.patch);
    json_t *value = check_canon(texts.value);
    if (document != NULL)
        document = step(document, &texts, value);
    check_result(document);
    if (patch != NULL)
        document = json_merge(document, patch);
    check_result(document);
    json_decref(document);
    json_decref(patch);
    json_decref(value);
}

static void seed(struct fuzz_seeds *seeds, const char *name, uint8_t kind, const char *path,
                 struct slice texts)
{
    struct buf bytes = { 0 };

    buf_put_u8(&bytes, kind);
    buf_put_u8(&bytes, (uint8_t)strlen(path));
    buf_append(&bytes, path, strlen(path));
    buf_append(&bytes, texts.data, texts.size);
    fuzz_seed_add(seeds, name, buf_slice(&bytes));
    buf_deinit(&bytes);
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    static const char *const names[] = { "step-1", "step-2", "step-3", "step-4",
                                         "step-5", "step-6", "step-7" };
    struct slice texts = SLICE_LITERAL(
        "{\"a\":{\"b\":[1,2.5,-0,1e300,\"\\u00e9\\ud83d\\ude00\"],\"c~/\":5},\"t\":true}\0"
        "{\"a\":{\"b\":null,\"d\":{\"e\":[]}},\"t\":[false]}\0"
        "{\"xp\":9007199254740993}");

    for (uint8_t i = 0; i < ARRAY_SIZE(names); i++)
        seed(seeds, names[i], (uint8_t)(i + 1), "/a/b/0", texts);
    seed(seeds, "escape", 1, "/a/c~0~1", texts);
    seed(seeds, "append", 4, "/a/b/-", texts);
    seed(seeds, "whole", 1, "",
         SLICE_LITERAL("[]\0[1]\0"
                       "5"));
    seed(seeds, "number", 3, "/n",
         SLICE_LITERAL("{\"n\":9223372036854775807}\0{}\0"
                       "1"));
}
