#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/backup/manifest.h"
#include "runtime/base/check.h"

static void fill(struct manifest *manifest)
{
    manifest_init(manifest, 2);
    manifest->number = 3;
    manifest->taken_at_ms = 1763741794000;
    snprintf(manifest->cluster_id, sizeof manifest->cluster_id, "a-b-c");
    snprintf(manifest->software, sizeof manifest->software, "0.1.0");
    manifest->cut = 1001;
    manifest->generation = 1;
    manifest->epoch = 7;
    manifest->apply_version = 1;
    buf_printf(&manifest->policy, "{\"version\":\"2\", \"currencies\":[]}");
    assert_int_equal(manifest_add_definition(manifest, SLICE_LITERAL("{\"name\":\"kills\"}")),
                     ERR_OK);
    assert_int_equal(manifest_add_definition(manifest, SLICE_LITERAL("{\"name\":\"wins\"}")),
                     ERR_OK);
    manifest_add_use(manifest, 1, hash_u128(SLICE_LITERAL("one")));
    manifest_add_use(manifest, 2, hash_u128(SLICE_LITERAL("two")));
    row_digest_add(&manifest->shards[0].state.rows, SLICE_LITERAL("key"), SLICE_LITERAL("value"));
    manifest->shards[0].state.pack = (struct manifest_file){ 99, hash_u128(SLICE_LITERAL("pack")) };
    manifest->shards[1].index = 12;
    manifest->shards[1].members_away = 1;
    row_digest_add(&manifest->shards[1].documents.rows, SLICE_LITERAL("k"), SLICE_LITERAL("v"));
    manifest->shards[1].state.list.bytes = UINT64_MAX;
}

static void encoded(struct buf *out)
{
    struct manifest manifest;

    fill(&manifest);
    manifest_encode(&manifest, out);
    manifest_deinit(&manifest);
}

static void a_manifest_reads_back_as_it_was_written(void **state)
{
    struct manifest manifest;
    struct backup_error why;
    struct buf text = { 0 };
    struct buf again = { 0 };
    (void)state;

    encoded(&text);
    assert_int_equal(manifest_decode(buf_slice(&text), &manifest, &why), ERR_OK);
    assert_int_equal(manifest.number, 3);
    assert_string_equal(manifest.cluster_id, "a-b-c");
    assert_true(manifest.has_definitions);
    assert_int_equal(manifest.definition_count, 2);
    assert_true(
        slice_equal(buf_slice(&manifest.definitions[1]), SLICE_LITERAL("{\"name\":\"wins\"}")));
    assert_int_equal(manifest.use_count, 2);
    assert_int_equal(manifest.shards[0].state.rows.count, 1);
    assert_int_equal(manifest.shards[1].index, 12);
    assert_true(manifest.has_documents);
    assert_int_equal(manifest.shards[1].members_away, 1);
    assert_int_equal(manifest.shards[1].documents.rows.count, 1);
    manifest_encode(&manifest, &again);
    assert_true(slice_equal(buf_slice(&text), buf_slice(&again)));
    manifest_deinit(&manifest);
    buf_deinit(&text);
    buf_deinit(&again);
}

static void a_manifest_of_before_there_were_documents_is_taken(void **state)
{
    struct manifest manifest;
    struct backup_error why;
    struct buf text = { 0 };
    (void)state;

    fill(&manifest);
    manifest.has_documents = manifest.has_definitions = false;
    manifest_encode(&manifest, &text);
    manifest_deinit(&manifest);
    assert_non_null(strstr((const char *)text.data, "holdfast-backup 1\n"));
    assert_int_equal(manifest_decode(buf_slice(&text), &manifest, &why), ERR_OK);
    assert_false(manifest.has_documents);
    assert_int_equal(manifest.shards[0].state.rows.count, 1);
    assert_int_equal(manifest.shards[1].documents.rows.count, 0);
    manifest_deinit(&manifest);
    buf_deinit(&text);
}

static void a_manifest_of_before_there_were_definitions_is_taken(void **state)
{
    struct manifest manifest;
    struct backup_error why;
    struct buf text = { 0 };
    (void)state;

    fill(&manifest);
    manifest.has_definitions = false;
    manifest_encode(&manifest, &text);
    manifest_deinit(&manifest);
    assert_non_null(strstr((const char *)text.data, "holdfast-backup 2\n"));
    assert_int_equal(manifest_decode(buf_slice(&text), &manifest, &why), ERR_OK);
    assert_true(manifest.has_documents);
    assert_false(manifest.has_definitions);
    assert_int_equal(manifest.definition_count, 0);
    assert_int_equal(manifest.shards[1].documents.rows.count, 1);
    manifest_deinit(&manifest);
    buf_deinit(&text);
}

static void more_definitions_than_a_cluster_has_are_not_taken(void **state)
{
    static const uint8_t long_text[MANIFEST_TEXT_MAX + 1];
    struct manifest manifest;
    (void)state;

    manifest_init(&manifest, 0);
    assert_int_equal(
        manifest_add_definition(&manifest, (struct slice){ long_text, sizeof long_text }),
        ERR_TOO_LARGE);
    for (uint32_t i = 0; i < MANIFEST_DEFINITIONS_MAX; i++)
        assert_int_equal(manifest_add_definition(&manifest, SLICE_LITERAL("{}")), ERR_OK);
    assert_int_equal(manifest_add_definition(&manifest, SLICE_LITERAL("{}")), ERR_TOO_LARGE);
    manifest_deinit(&manifest);
}

static void no_byte_of_a_manifest_can_change_unnoticed(void **state)
{
    struct manifest manifest;
    struct backup_error why;
    struct buf text = { 0 };
    (void)state;

    encoded(&text);
    for (size_t at = 0; at < text.size; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            text.data[at] ^= (uint8_t)(1u << bit);
            assert_int_not_equal(manifest_decode(buf_slice(&text), &manifest, &why), ERR_OK);
            text.data[at] ^= (uint8_t)(1u << bit);
        }
    }
    for (size_t size = 0; size < text.size; size++)
        assert_int_not_equal(manifest_decode((struct slice){ text.data, size }, &manifest, &why),
                             ERR_OK);
    buf_put_u8(&text, '\n');
    assert_int_not_equal(manifest_decode(buf_slice(&text), &manifest, &why), ERR_OK);
    buf_deinit(&text);
}

static void a_newer_format_is_refused_as_such(void **state)
{
    struct manifest manifest;
    struct backup_error why;
    (void)state;

    assert_int_equal(
        manifest_decode(SLICE_LITERAL("holdfast-backup 4\nwhatever\n"), &manifest, &why),
        ERR_INVALID);
    assert_non_null(strstr(why.text, "newer version"));
    assert_int_equal(manifest_decode(SLICE_LITERAL("something else\n"), &manifest, &why),
                     ERR_CORRUPT);
    assert_non_null(strstr(why.text, "no manifest"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_reads_back_as_it_was_written),
        cmocka_unit_test(a_manifest_of_before_there_were_documents_is_taken),
        cmocka_unit_test(a_manifest_of_before_there_were_definitions_is_taken),
        cmocka_unit_test(more_definitions_than_a_cluster_has_are_not_taken),
        cmocka_unit_test(no_byte_of_a_manifest_can_change_unnoticed),
        cmocka_unit_test(a_newer_format_is_refused_as_such),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
