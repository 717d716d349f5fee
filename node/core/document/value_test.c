/* Documents as leaves and back: what is written is read, byte by byte, whatever its names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "node/core/codec/json_canon.h"
#include "node/core/document/value.h"
#include "runtime/base/check.h"

#define OBJECTS 4000u

static uint64_t draw_state;

static uint32_t draw(uint32_t below)
{
    draw_state = draw_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(draw_state >> 33) % below;
}

/* Names that are each other's beginnings, around the slash, and escaped. */
static json_t *drawn(uint32_t depth)
{
    static const char *const names[] = { "a",  "a!",  "a/b", "a0", "ab", "~",
                                         "a~", "~/~", "\"q", "\n", "0",  "\xc3\xa9" };
    json_t *object = json_object();
    uint32_t count = 1 + draw(4);

    for (uint32_t i = 0; i < count; i++) {
        const char *name = names[draw(draw(2) == 0 ? 5 : ARRAY_SIZE(names))];
        json_t *member = depth < 3 && draw(2) == 0 ? drawn(depth + 1) : json_integer(draw(1000));

        if (draw(8) == 0) {
            json_decref(member);
            member = draw(2) == 0 ? json_object() : json_pack("[s,n,{s:f}]", "x", "y", 0.5);
        }
        assert_int_equal(json_object_set_new(object, name, member), 0);
    }
    return object;
}

static int by_path(const void *a, const void *b)
{
    const struct merge_edit *left = a, *right = b;

    return slice_compare(left->path, right->path);
}

/* As a replica has it that took the edits. */
static void take(struct value_edits *edits, struct merge_record *record)
{
    qsort(edits->list, edits->count, sizeof *edits->list, by_path);
    record->policy = MERGE_POLICY_MERGE;
    for (uint32_t i = 0; i < edits->count; i++) {
        const struct merge_cell_form form = { .path = edits->list[i].path,
                                              .value = edits->list[i].value,
                                              .dot = { 1, i + 1 },
                                              .hlc = 1 };
        merge_record_add(record, merge_cell_new(&form));
    }
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    uint32_t tried = 0;

    for (draw_state = 1; tried < OBJECTS;) {
        struct arena arena = { 0 };
        struct merge_record record = { 0 };
        struct buf expected = { 0 };
        struct value_edits *edits = arena_zalloc(&arena, sizeof *edits);
        json_t *object = drawn(0);

        edits->arena = &arena;
        if (value_leaves(edits, (struct slice){ 0 }, object, false) == ERR_OK) {
            tried++;
            take(edits, &record);
            assert_int_equal(json_canon_write(object, &expected), ERR_OK);
            buf_put_u8(&expected, 0);
            assert_string_equal(value_document(&record, false, 1, &arena)->json,
                                (char *)expected.data);
        }
        json_decref(object);
        buf_deinit(&expected);
        merge_record_deinit(&record);
        arena_deinit(&arena);
    }
}

/* An array of `depth` levels at a path of `names` names. */
static err leaf_at(uint32_t names, uint32_t depth)
{
    struct arena arena = { 0 };
    struct value_edits *edits = arena_zalloc(&arena, sizeof *edits);
    json_t *value = json_integer(1);
    struct buf path = { 0 };

    edits->arena = &arena;
    for (uint32_t i = 0; i < names; i++)
        buf_printf(&path, i == 0 ? "a" : "/a");
    for (uint32_t i = 0; i < depth; i++) {
        json_t *outer = json_array();
        json_array_append_new(outer, value);
        value = outer;
    }
    err e = value_leaves(edits, buf_slice(&path), value, false);

    json_decref(value);
    buf_deinit(&path);
    arena_deinit(&arena);
    return e;
}

/* A path's names and what stands at it nest together: a reader would be told half a document. */
static void a_leaf_deep_inside_is_refused(void **state)
{
    (void)state;
    assert_int_equal(leaf_at(JSON_DEPTH_MAX, 0), ERR_OK);
    assert_int_equal(leaf_at(JSON_DEPTH_MAX + 1, 0), ERR_INVALID);
    assert_int_equal(leaf_at(JSON_DEPTH_MAX - 1, 1), ERR_OK);
    assert_int_equal(leaf_at(JSON_DEPTH_MAX - 1, 2), ERR_INVALID);
    assert_int_equal(leaf_at(1, JSON_DEPTH_MAX - 1), ERR_OK);
    assert_int_equal(leaf_at(1, JSON_DEPTH_MAX), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_leaf_deep_inside_is_refused),
    };
    return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
