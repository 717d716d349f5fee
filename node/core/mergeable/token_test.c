/* A context holds for one record of one shard, generation and erasure, and cannot be made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/mergeable/token.h"
#include "runtime/base/hash.h"

static void sign(void *user, struct slice message, uint8_t ret_mac[MERGE_TOKEN_MAC_BYTES])
{
    (void)user;
    struct hash128 hash = hash_chain((struct hash128){ { 7 } }, message, (struct slice){ 0 });
    memcpy(ret_mac, hash.bytes, MERGE_TOKEN_MAC_BYTES);
}

static const struct merge_mac mac = { .sign = sign };

struct made {
    struct merge_key *keys[2];
    struct merge_place place;
    struct merge_token token;
    struct buf bytes;
};

static int setup(void **state)
{
    static struct made made;

    made = (struct made){ .place = { .shard = 3, .generation = 5, .erasure = 2 } };
    assert_int_equal(merge_key_new(SLICE_LITERAL("player:ann"), SLICE_LITERAL("a"), &made.keys[0]),
                     ERR_OK);
    assert_int_equal(merge_key_new(SLICE_LITERAL("player:ann"), SLICE_LITERAL("b"), &made.keys[1]),
                     ERR_OK);
    made.place.key = made.keys[0];
    made.token = (struct merge_token){ .hlc = 77, .count = 2 };
    made.token.entries[0] = (struct causal_entry){ .actor = 4, .upto = 9 };
    made.token.entries[1] = (struct causal_entry){ .actor = 6, .upto = 1 };
    made.token.own[0] = (struct merge_dot){ .actor = 8, .counter = 3 };
    made.token.own_count = 1;
    merge_token_seal(&mac, &made.place, &made.token, &made.bytes);
    *state = &made;
    return 0;
}

static int teardown(void **state)
{
    struct made *made = *state;

    buf_deinit(&made->bytes);
    merge_key_unref(made->keys[0]);
    merge_key_unref(made->keys[1]);
    return 0;
}

static err opened(const struct made *made, struct slice bytes)
{
    struct merge_token token;

    return merge_token_open(&mac, &made->place, bytes, &token);
}

static void what_was_sealed_is_opened(void **state)
{
    struct made *made = *state;
    struct merge_token token;

    assert_int_equal(merge_token_open(&mac, &made->place, buf_slice(&made->bytes), &token), ERR_OK);
    assert_int_equal(token.hlc, 77);
    assert_int_equal(token.count, 2);
    assert_int_equal(token.entries[0].actor, 4);
    assert_int_equal(token.entries[0].upto, 9);
    assert_int_equal(token.entries[1].actor, 6);
    assert_int_equal(token.entries[1].upto, 1);
    assert_int_equal(token.own_count, 1);
    assert_true(merge_dot_equal(token.own[0], made->token.own[0]));
}

static void an_erasure_ends_contexts_and_a_later_one_is_not_known_yet(void **state)
{
    struct made *made = *state;

    made->place.erasure = 3; /* The context is of before. */
    assert_int_equal(opened(made, buf_slice(&made->bytes)), ERR_STALE_EPOCH);
    made->place.erasure = 1; /* This replica has not heard of it. */
    assert_int_equal(opened(made, buf_slice(&made->bytes)), ERR_UNAVAILABLE);
    made->place.erasure = 2;
    assert_int_equal(opened(made, buf_slice(&made->bytes)), ERR_OK);
}

static void another_generation_ends_contexts(void **state)
{
    struct made *made = *state;

    made->place.generation = 6;
    assert_int_equal(opened(made, buf_slice(&made->bytes)), ERR_STALE_EPOCH);
    made->place.generation = 4;
    assert_int_equal(opened(made, buf_slice(&made->bytes)), ERR_STALE_EPOCH);
}

static void another_record_or_shard_has_other_contexts(void **state)
{
    struct made *made = *state;

    made->place.key = made->keys[1];
    assert_int_equal(opened(made, buf_slice(&made->bytes)), ERR_INVALID);
    made->place.key = made->keys[0];
    made->place.shard = 4;
    assert_int_equal(opened(made, buf_slice(&made->bytes)), ERR_INVALID);
}

/* A generation stands before what is signed: a restored cluster has another key. */
static void no_bit_and_no_length_can_be_changed(void **state)
{
    struct made *made = *state;

    for (size_t i = 0; i < made->bytes.size * 8; i++) {
        made->bytes.data[i / 8] ^= (uint8_t)(1u << i % 8);
        assert_int_equal(opened(made, buf_slice(&made->bytes)),
                         i / 8 - 1 < sizeof(uint64_t) ? ERR_STALE_EPOCH : ERR_INVALID);
        made->bytes.data[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    for (size_t size = 0; size < made->bytes.size; size++)
        assert_int_equal(opened(made, (struct slice){ made->bytes.data, size }), ERR_INVALID);
    buf_put_u8(&made->bytes, 0);
    assert_int_equal(opened(made, buf_slice(&made->bytes)), ERR_INVALID);
}

/* Signed, and still no context: entries rise, and none is 0. */
static void entries_that_make_no_sense_are_refused(void **state)
{
    struct made *made = *state;
    static const struct causal_entry wrong[] = {
        { .actor = 4, .upto = 1 },
        { .actor = 3, .upto = 1 },
        { .actor = 0, .upto = 1 },
        { .actor = 6, .upto = 0 },
        { .actor = 6, .upto = MCLOCK_COUNTER_MAX + 1 },
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        made->token.entries[1] = wrong[i];
        buf_clear(&made->bytes);
        merge_token_seal(&mac, &made->place, &made->token, &made->bytes);
        assert_int_equal(opened(made, buf_slice(&made->bytes)), ERR_INVALID);
    }
    made->token.entries[1] = (struct causal_entry){ .actor = 5, .upto = MCLOCK_COUNTER_MAX };
    buf_clear(&made->bytes);
    merge_token_seal(&mac, &made->place, &made->token, &made->bytes);
    assert_int_equal(opened(made, buf_slice(&made->bytes)), ERR_OK);
}

static void as_many_entries_as_there_may_be_fit(void **state)
{
    struct made *made = *state;

    made->token.count = MERGE_TOKEN_ENTRIES_MAX;
    for (uint32_t i = 0; i < made->token.count; i++)
        made->token.entries[i] =
            (struct causal_entry){ .actor = UINT64_MAX - 100 + i, .upto = MCLOCK_COUNTER_MAX };
    made->token.own_count = MERGE_TOKEN_OWN_MAX;
    for (uint32_t i = 0; i < made->token.own_count; i++)
        made->token.own[i] = (struct merge_dot){ UINT64_MAX - i, MCLOCK_COUNTER_MAX };
    buf_clear(&made->bytes);
    merge_token_seal(&mac, &made->place, &made->token, &made->bytes);
    assert_true(made->bytes.size <= MERGE_TOKEN_BYTES_MAX);
    assert_int_equal(opened(made, buf_slice(&made->bytes)), ERR_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_sealed_is_opened),
        TEST(an_erasure_ends_contexts_and_a_later_one_is_not_known_yet),
        TEST(another_generation_ends_contexts),
        TEST(another_record_or_shard_has_other_contexts),
        TEST(no_bit_and_no_length_can_be_changed),
        TEST(entries_that_make_no_sense_are_refused),
        TEST(as_many_entries_as_there_may_be_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
