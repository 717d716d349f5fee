/*
 * backup_fuzz: the files of a backup. The first byte picks which: a manifest, a manifest whose
 * checksum is made right, the list of a shard's chunks, rows.
 */
#include <stdio.h>
#include <string.h>

#include "client/backup/shard_writer.h"
#include "runtime/base/check.h"
#include "tests/fuzz/fuzz.h"

#define NUMBER 3u /* Of the backup whose list it is. */

enum kind { KIND_MANIFEST, KIND_MANIFEST_SUMMED, KIND_LIST, KIND_ROWS, KIND_END };

static void check_manifest(struct slice text)
{
    struct backup_error why = { "" };
    struct manifest manifest;
    struct buf again = { 0 };

    if (manifest_decode(text, &manifest, &why) != ERR_OK) {
        CHECK(why.text[0] != 0);
        return;
    }
    manifest_encode(&manifest, &again);
    CHECK(slice_equal(buf_slice(&again), text));
    for (uint32_t i = 0; i < manifest.use_count; i++)
        CHECK(manifest.uses[i].number < manifest.number);
    buf_deinit(&again);
    manifest_deinit(&manifest);
}

static void check_summed(struct slice text)
{
    struct buf whole = { 0 };
    char hash[33];

    buf_append(&whole, text.data, text.size);
    hash_print(hash_u128(text), hash);
    buf_printf(&whole, "end %s\n", hash);
    check_manifest(buf_slice(&whole));
    buf_deinit(&whole);
}

static void check_list(struct slice bytes)
{
    struct chunk_list list;
    struct buf again = { 0 };

    if (chunk_list_decode(bytes, NUMBER, &list) != ERR_OK)
        return;
    chunk_list_encode(&list, &again);
    CHECK(slice_equal(buf_slice(&again), bytes));
    for (uint32_t i = 0; i < list.count; i++) {
        CHECK(list.chunks[i].number >= 1 && list.chunks[i].number <= NUMBER);
        CHECK(list.chunks[i].raw_size >= 1 && list.chunks[i].raw_size <= CHUNK_RAW_BYTES_MAX);
    }
    buf_deinit(&again);
    chunk_list_deinit(&list);
}

static void check_rows(struct slice bytes)
{
    struct reader reader = reader_from(bytes);
    struct slice key, value;
    size_t size = 0;

    while (backup_row_next(&reader, &key, &value)) {
        CHECK(key.size > 0);
        size += 8 + key.size + value.size;
    }
    CHECK(reader.bad || size == bytes.size);
}

void fuzz_one(struct slice input)
{
    if (input.size == 0)
        return;
    struct slice rest = { input.data + 1, input.size - 1 };

    switch (input.data[0] % KIND_END) {
    case KIND_MANIFEST:
        check_manifest(rest);
        break;
    case KIND_MANIFEST_SUMMED:
        check_summed(rest);
        break;
    case KIND_LIST:
        check_list(rest);
        break;
    default:
        check_rows(rest);
        break;
    }
}

static void seed_manifest(struct fuzz_seeds *seeds)
{
    struct manifest manifest;
    struct buf text = { 0 };

    manifest_init(&manifest, 2);
    manifest.number = NUMBER;
    snprintf(manifest.cluster_id, sizeof manifest.cluster_id, "cluster");
    snprintf(manifest.software, sizeof manifest.software, "0.1.0");
    buf_printf(&manifest.policy, "{\"version\":\"1\"}");
    manifest_add_use(&manifest, 1, hash_u128(SLICE_LITERAL("x")));
    row_digest_add(&manifest.shards[1].state.rows, SLICE_LITERAL("key"), SLICE_LITERAL("value"));
    manifest_encode(&manifest, &text);
    fuzz_seed_add_kind(seeds, "manifest", KIND_MANIFEST, buf_slice(&text));
    text.size -= sizeof "end 0123456789abcdef0123456789abcdef\n" - 1;
    fuzz_seed_add_kind(seeds, "manifest-summed", KIND_MANIFEST_SUMMED, buf_slice(&text));
    buf_deinit(&text);
    manifest_deinit(&manifest);
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    struct chunk_list list = { 0 };
    struct buf bytes = { 0 };

    seed_manifest(seeds);
    buf_printf(&list.meta, "meta");
    chunk_list_add(&list, &(struct chunk){ .number = 1, .packed_size = 7, .raw_size = 9 });
    chunk_list_add(&list, &(struct chunk){ .number = NUMBER, .packed_size = 1, .raw_size = 1 });
    chunk_list_encode(&list, &bytes);
    fuzz_seed_add_kind(seeds, "list", KIND_LIST, buf_slice(&bytes));
    buf_clear(&bytes);
    buf_put_bytes(&bytes, SLICE_LITERAL("key"));
    buf_put_bytes(&bytes, SLICE_LITERAL("value"));
    fuzz_seed_add_kind(seeds, "rows", KIND_ROWS, buf_slice(&bytes));
    buf_deinit(&bytes);
    chunk_list_deinit(&list);
}
