#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/rep_message.h"
#include "runtime/base/check.h"

static struct rep_message full_message(void)
{
    struct rep_message m = {
        .type = REP_MSG_APPEND,
        .shard = 9,
        .generation = 1,
        .config = 2,
        .epoch = 3,
        .owner = 4,
        .cut_id = 5,
        .refused = true,
        .votes = true,
        .prev_index = 6,
        .prev_hash = { { 7 } },
        .commit_index = 8,
        .retain_index = 9,
        .round = 10,
        .matched_index = 11,
        .applied_index = 12,
        .outcome = { { 13 } },
        .last_dot = { 14, 15, 16 },
        .apply_version = 17,
        .entry_count = 2,
    };

    vector_append(&m.vector, 3, 4);
    m.entries = mem_zalloc(2 * sizeof m.entries[0]);
    m.entries[0] =
        entry_new(ENTRY_OP, 7, (struct dot){ 3, 4, 1 }, 1, m.prev_hash, SLICE_LITERAL("a"));
    m.entries[1] = entry_new(ENTRY_CHECK, 8, (struct dot){ 3, 4, 2 }, 1, m.entries[0]->hash,
                             SLICE_LITERAL(""));
    return m;
}

static void every_field_comes_back(void **state)
{
    struct rep_message m = full_message();
    struct rep_message back = { 0 };
    struct buf one = { 0 };
    struct buf two = { 0 };
    (void)state;

    rep_message_encode(&m, &one);
    assert_int_equal(rep_message_decode(buf_slice(&one), &back), ERR_OK);
    assert_true(back.refused && back.votes && back.round == 10 && back.apply_version == 17);
    assert_true(back.entry_count == 2 && back.last_dot.counter == 16);
    assert_int_equal(vector_compare(&m.vector, &back.vector), VECTOR_EQUAL);
    rep_message_encode(&back, &two);
    assert_true(slice_equal(buf_slice(&one), buf_slice(&two)));
    rep_message_deinit(&m);
    rep_message_deinit(&back);
    buf_deinit(&one);
    buf_deinit(&two);
}

static void cut_or_extended_bytes_are_refused_without_a_leak(void **state)
{
    struct rep_message m = full_message();
    struct rep_message back = { 0 };
    struct buf buf = { 0 };
    (void)state;

    rep_message_encode(&m, &buf);
    for (size_t size = 0; size < buf.size; size++)
        assert_int_equal(rep_message_decode((struct slice){ buf.data, size }, &back), ERR_CORRUPT);
    buf_put_u8(&buf, 0);
    assert_int_equal(rep_message_decode(buf_slice(&buf), &back), ERR_CORRUPT);
    assert_null(back.entries);
    rep_message_deinit(&m);
    buf_deinit(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_comes_back),
        cmocka_unit_test(cut_or_extended_bytes_are_refused_without_a_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
