#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/arena.h"
#include "runtime/base/base64.h"
#include "runtime/base/buf.h"
#include "runtime/base/check.h"
#include "runtime/base/err.h"
#include "runtime/base/hash.h"
#include "runtime/base/id.h"
#include "runtime/base/utf8.h"

static void numbers_come_back_as_written(void **state)
{
    struct buf buf = { 0 };
    (void)state;

    buf_put_u8(&buf, 0xab);
    buf_put_u16(&buf, 0x1234);
    buf_put_u32(&buf, 0xdeadbeef);
    buf_put_u64(&buf, UINT64_MAX - 1);
    buf_put_u32_be(&buf, 1);
    buf_put_u32_be(&buf, 7);
    buf_put_bytes(&buf, SLICE_LITERAL("sword"));
    buf_put_short(&buf, SLICE_LITERAL("ax"));
    struct reader reader = reader_from(buf_slice(&buf));
    assert_int_equal(read_u8(&reader), 0xab);
    assert_int_equal(read_u16(&reader), 0x1234);
    assert_int_equal(read_u32(&reader), 0xdeadbeef);
    assert_true(read_u64(&reader) == UINT64_MAX - 1);
    assert_true(read_u64_be(&reader) == (UINT64_C(1) << 32) + 7);
    assert_true(slice_equal(read_bytes(&reader, 5), SLICE_LITERAL("sword")));
    assert_int_equal(read_u8(&reader), 2);
    assert_true(slice_equal(read_raw(&reader, 2), SLICE_LITERAL("ax")));
    assert_int_equal(reader_finish(&reader), ERR_OK);
    buf_deinit(&buf);
}

static void short_read_is_corrupt_and_yields_zero(void **state)
{
    struct reader reader = reader_from(SLICE_LITERAL("abc"));
    (void)state;

    assert_int_equal(read_u32(&reader), 0);
    assert_int_equal(read_u8(&reader), 0);
    assert_int_equal(reader_finish(&reader), ERR_CORRUPT);
}

static void length_over_the_limit_is_corrupt(void **state)
{
    struct buf buf = { 0 };
    (void)state;

    buf_put_bytes(&buf, SLICE_LITERAL("too long"));
    struct reader reader = reader_from(buf_slice(&buf));
    read_bytes(&reader, 7);
    assert_true(reader.bad);
    buf_deinit(&buf);
}

static void big_endian_keys_sort_like_numbers(void **state)
{
    struct buf a = { 0 };
    struct buf b = { 0 };
    (void)state;

    buf_put_u32_be(&a, 255);
    buf_put_u32_be(&b, 256);
    assert_true(slice_compare(buf_slice(&a), buf_slice(&b)) < 0);
    buf_deinit(&a);
    buf_deinit(&b);
}

static void a_prefix_may_be_all_or_nothing(void **state)
{
    (void)state;
    assert_true(slice_begins_with(SLICE_LITERAL("match:1"), SLICE_LITERAL("match:")));
    assert_true(slice_begins_with(SLICE_LITERAL("match:"), SLICE_LITERAL("match:")));
    assert_true(slice_begins_with((struct slice){ 0 }, (struct slice){ 0 }));
    assert_false(slice_begins_with(SLICE_LITERAL("matc"), SLICE_LITERAL("match:")));
    assert_false(slice_begins_with(SLICE_LITERAL("Match:1"), SLICE_LITERAL("match:")));
}

static void arena_survives_large_blocks_and_resets(void **state)
{
    struct arena arena = { 0 };
    (void)state;

    memset(arena_alloc(&arena, 100000), 1, 100000);
    char *text = arena_printf(&arena, "%d items", 12);
    assert_string_equal(text, "12 items");
    arena_reset(&arena);
    assert_true(arena.total_bytes == 0);
    arena_zalloc(&arena, 10);
    arena_deinit(&arena);
}

static void uuid_v7_keeps_time_and_text(void **state)
{
    const uint8_t random[10] = { 255, 1, 255, 3, 4, 5, 6, 7, 8, 9 };
    struct uuid made = uuid_v7_make(1790000000123, random);
    struct uuid parsed;
    char text[UUID_TEXT_SIZE];
    (void)state;

    assert_true(uuid_is_v7(&made));
    assert_true(uuid_v7_ms(&made) == 1790000000123);
    uuid_print(&made, text);
    assert_int_equal(uuid_parse(slice_from_text(text), &parsed), ERR_OK);
    assert_memory_equal(&made, &parsed, sizeof made);
    for (size_t i = 0; i < UUID_TEXT_SIZE - 1; i++) {
        char kept = text[i];
        text[i] = kept == '-' ? '0' : 'g';
        assert_int_equal(uuid_parse(slice_from_text(text), &parsed), ERR_INVALID);
        text[i] = kept;
    }
}

static void chain_depends_on_every_part(void **state)
{
    struct hash128 zero = { { 0 } };
    struct hash128 one = hash_chain(zero, SLICE_LITERAL("a"), SLICE_LITERAL("bc"));
    struct hash128 two = hash_chain(one, SLICE_LITERAL("a"), SLICE_LITERAL("bc"));
    (void)state;

    assert_false(hash128_equal(one, two));
    assert_true(hash128_equal(one, hash_chain(zero, SLICE_LITERAL("ab"), SLICE_LITERAL("c"))));
}

/* Whatever the way it is computed: a chain on disk must hash alike in every build. */
static void chain_is_the_hash_of_what_it_holds_one_after_the_other(void **state)
{
    struct hash128 before = { { 7, 1, 2 } };
    struct buf whole = { 0 };
    uint8_t bytes[1200];
    (void)state;

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 31);
    for (size_t size = 0; size <= sizeof bytes; size++) {
        struct slice a = { bytes, size / 3 };
        struct slice b = { bytes + size / 3, size - size / 3 };
        buf_clear(&whole);
        buf_append(&whole, before.bytes, sizeof before.bytes);
        buf_append(&whole, bytes, size);
        assert_true(hash128_equal(hash_chain(before, a, b), hash_u128(buf_slice(&whole))));
    }
    buf_deinit(&whole);
}

static void timeouts_are_unknown_outcomes(void **state)
{
    (void)state;
    assert_int_equal(err_retry(ERR_TIMEOUT), RETRY_UNKNOWN_OUTCOME);
    assert_int_equal(err_retry(ERR_DISCONNECTED), RETRY_UNKNOWN_OUTCOME);
    assert_int_equal(err_retry(ERR_UNAVAILABLE), RETRY_SAME);
    assert_string_equal(err_name(ERR_TIMEOUT), "ERR_TIMEOUT");
}

static void compact_numbers_have_one_form(void **state)
{
    static const uint64_t numbers[] = { 0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX };
    static const char *const others[] = { "\x80", "\x81\x00",
                                          "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
                                          "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x01" };
    static const size_t sizes[] = { 1, 2, 10, 11 };
    struct buf buf = { 0 };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        buf_put_compact(&buf, numbers[i]);
    assert_int_equal(buf.size, 1 + 1 + 1 + 2 + 2 + 3 + 5 + 10);
    struct reader reader = reader_from(buf_slice(&buf));
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        assert_true(read_compact(&reader) == numbers[i]);
    assert_int_equal(reader_finish(&reader), ERR_OK);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        reader = reader_from((struct slice){ (const uint8_t *)others[i], sizes[i] });
        (void)read_compact(&reader);
        assert_true(reader.bad);
    }
    buf_deinit(&buf);
}

static void a_pool_gives_an_arena_what_another_gave_back(void **state)
{
    struct arena_pool pool = { 0 };
    struct arena one = { .pool = &pool };
    struct arena two = { .pool = &pool };
    (void)state;

    void *first = arena_alloc(&one, 100);
    (void)arena_alloc(&one, 100000); /* A block of its own size: not for the pool. */
    arena_reset(&one);
    assert_int_equal(pool.count, 1);
    assert_ptr_equal(arena_alloc(&two, 100), first);
    assert_int_equal(pool.count, 0);
    assert_ptr_not_equal(arena_alloc(&one, 100), first);
    arena_reset(&one);
    arena_deinit(&two);
    arena_deinit(&one);
    arena_pool_deinit(&pool);
}

static void base64_comes_back_for_every_length(void **state)
{
    (void)state;

    for (size_t size = 0; size < 40; size++) {
        for (int padded = 0; padded < 2; padded++) {
            uint8_t bytes[40], back[48];
            struct buf text = { 0 };
            size_t back_size = SIZE_MAX;
            for (size_t i = 0; i < size; i++)
                bytes[i] = (uint8_t)(i * 37 + size);
            base64_encode((struct slice){ bytes, size }, padded, &text);
            assert_true(base64_size_max(text.size) <= sizeof back);
            assert_true(base64_decode(buf_slice(&text), back, &back_size));
            assert_int_equal(back_size, size);
            assert_memory_equal(back, bytes, size);
            assert_true(!padded || text.size % 4 == 0);
            buf_deinit(&text);
        }
    }
}

static void a_text_is_cut_to_the_room_that_it_has(void **state)
{
    char room[4] = "xyz";
    (void)state;

    text_copy(room, sizeof room, SLICE_LITERAL("sword"));
    assert_string_equal(room, "swo");
    text_copy(room, sizeof room, SLICE_LITERAL("axe"));
    assert_string_equal(room, "axe");
    text_copy(room, sizeof room, (struct slice){ 0 });
    assert_string_equal(room, "");
    text_copy(room, 1, SLICE_LITERAL("axe"));
    assert_string_equal(room, "");
    assert_null(text_or_null(""));
    assert_string_equal(text_or_null("axe"), "axe");
}

static void texts_are_copied_without_their_ends(void **state)
{
    struct arena arena = { 0 };
    struct buf buf = { 0 };
    const char *axe = "axe";
    (void)state;

    buf_put_text(&buf, "sw");
    buf_put_text(&buf, "");
    buf_put_text(&buf, "ord");
    assert_true(slice_equal(buf_slice(&buf), SLICE_LITERAL("sword")));
    assert_string_equal(arena_copy_text(&arena, axe), "axe");
    assert_ptr_not_equal(arena_copy_text(&arena, axe), axe);
    assert_string_equal(arena_copy_text(&arena, NULL), "");
    arena_deinit(&arena);
    buf_deinit(&buf);
}

static void short_numbers_and_hashes_come_back_as_written(void **state)
{
    struct hash128 hash = hash_u128(SLICE_LITERAL("sword"));
    struct buf buf = { 0 };
    uint8_t bytes[2];
    (void)state;

    store_u16(bytes, 0xfedc);
    assert_int_equal(bytes[0], 0xdc); /* Little-endian, as the rest. */
    assert_int_equal(load_u16(bytes), 0xfedc);
    buf_put_hash(&buf, hash);
    assert_int_equal(buf.size, sizeof hash.bytes);
    struct reader reader = reader_from(buf_slice(&buf));
    assert_true(hash128_equal(read_hash(&reader), hash));
    assert_int_equal(reader_finish(&reader), ERR_OK);
    reader = reader_from((struct slice){ buf.data, buf.size - 1 });
    assert_true(hash128_equal(read_hash(&reader), (struct hash128){ { 0 } }));
    assert_int_equal(reader_finish(&reader), ERR_CORRUPT);
    buf_deinit(&buf);
}

static void visible_is_ascii_from_the_first_mark_to_the_last(void **state)
{
    (void)state;

    assert_true(ascii_is_visible(SLICE_LITERAL("!az09~")));
    assert_true(ascii_is_visible((struct slice){ 0 }));
    assert_false(ascii_is_visible(SLICE_LITERAL("a b")));
    assert_false(ascii_is_visible(SLICE_LITERAL("a\x7f")));
    assert_false(ascii_is_visible(SLICE_LITERAL("a\n")));
    assert_false(ascii_is_visible(SLICE_LITERAL("\xc3\xa4")));
}

static void a_cut_text_ends_with_a_whole_character(void **state)
{
    static const struct {
        const char *text;
        size_t max, size;
    } cuts[] = {
        { "abc", 3, 3 },
        { "abcd", 3, 3 },
        { "a\xc3\xa4", 2, 1 },
        { "\xe2\x82\xac", 2, 0 },
        { "\xf0\x9f\x8e\xae", 3, 0 },
        { "\x80\x80\x80\x80\x80\x80", 5, 2 },
        { "a", 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cuts); i++)
        assert_int_equal(utf8_cut(slice_from_text(cuts[i].text), cuts[i].max).size, cuts[i].size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_back_as_written),
        cmocka_unit_test(short_read_is_corrupt_and_yields_zero),
        cmocka_unit_test(length_over_the_limit_is_corrupt),
        cmocka_unit_test(big_endian_keys_sort_like_numbers),
        cmocka_unit_test(a_prefix_may_be_all_or_nothing),
        cmocka_unit_test(arena_survives_large_blocks_and_resets),
        cmocka_unit_test(uuid_v7_keeps_time_and_text),
        cmocka_unit_test(chain_depends_on_every_part),
        cmocka_unit_test(chain_is_the_hash_of_what_it_holds_one_after_the_other),
        cmocka_unit_test(timeouts_are_unknown_outcomes),
        cmocka_unit_test(compact_numbers_have_one_form),
        cmocka_unit_test(a_pool_gives_an_arena_what_another_gave_back),
        cmocka_unit_test(base64_comes_back_for_every_length),
        cmocka_unit_test(a_text_is_cut_to_the_room_that_it_has),
        cmocka_unit_test(texts_are_copied_without_their_ends),
        cmocka_unit_test(short_numbers_and_hashes_come_back_as_written),
        cmocka_unit_test(visible_is_ascii_from_the_first_mark_to_the_last),
        cmocka_unit_test(a_cut_text_ends_with_a_whole_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
