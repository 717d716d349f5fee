#include "node/store/orphan_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct entry *an_entry(void)
{
    static const uint8_t body[] = "grant a sword";

    return entry_new(
        ENTRY_OP,
        &(struct entry_head){ .index = 7, .dot = { 3, 11, 2 }, .owner_ms = 1790000000000 },
        (struct slice){ body, sizeof body });
}

static void drop(const struct log_orphan *orphan)
{
    if (orphan->entry != NULL)
        entry_unref((struct entry *)(uintptr_t)orphan->entry);
}

static void what_was_encoded_is_read_back_record_after_record(void **state)
{
    struct entry *entry = an_entry();
    struct buf bytes = { 0 };
    struct log_orphan read;
    size_t size;

    (void)state;
    orphan_encode(&(struct log_orphan){ 5, 7, 6, 1790000001234, entry }, &bytes);
    size_t first = bytes.size;
    orphan_encode(&(struct log_orphan){ 5, 8, 6, 1790000001235, NULL }, &bytes);
    assert_int_equal(orphan_decode(buf_slice(&bytes), &read, &size), ERR_OK);
    assert_int_equal(size, first);
    assert_int_equal(read.shard, 5);
    assert_int_equal(read.index, 7);
    assert_int_equal(read.keep_index, 6);
    assert_int_equal(read.unix_ms, 1790000001234);
    assert_int_equal(read.entry->dot.owner, 11);
    assert_true(hash128_equal(read.entry->hash, entry->hash));
    drop(&read);
    struct slice rest = { bytes.data + first, bytes.size - first };
    assert_int_equal(orphan_decode(rest, &read, &size), ERR_OK);
    assert_int_equal(size, ORPHAN_HEADER_BYTES);
    assert_int_equal(read.index, 8);
    assert_null(read.entry);
    entry_unref(entry);
    buf_deinit(&bytes);
}

static void half_a_record_is_told_from_a_wrong_one(void **state)
{
    struct entry *entry = an_entry();
    struct buf bytes = { 0 };
    struct log_orphan read;
    size_t size;

    (void)state;
    orphan_encode(&(struct log_orphan){ 5, 7, 6, 1790000001234, entry }, &bytes);
    for (size_t cut = 0; cut < bytes.size; cut++)
        assert_int_equal(orphan_decode((struct slice){ bytes.data, cut }, &read, &size), ERR_NEED);
    for (size_t at = 0; at < bytes.size; at++) {
        bytes.data[at] ^= 0x10;
        err e = orphan_decode(buf_slice(&bytes), &read, &size);
        assert_true(e == ERR_CORRUPT || e == ERR_NEED);
        bytes.data[at] ^= 0x10;
    }
    entry_unref(entry);
    buf_deinit(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_encoded_is_read_back_record_after_record),
        cmocka_unit_test(half_a_record_is_told_from_a_wrong_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
