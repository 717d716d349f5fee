/* What a node finds of counts that are not what they count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "node/core/top/drift.h"
#include "runtime/base/arena.h"
#include "runtime/codec/proto_codec.h"

#define SHARDS 3u

struct world {
    struct drift *drift;
    uint64_t now_ms;
    bool owned[SHARDS];
    uint32_t shard; /* That was asked last. */
    Holdfast__V1__RebuildPart part;
    uint32_t rows;
    bool from_start;
};

static int setup(void **state)
{
    static struct world w;

    w = (struct world){ .drift = drift_new(SHARDS),
                        .now_ms = 5000,
                        .owned = { true, false, true } };
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    drift_free(((struct world *)*state)->drift);
    return 0;
}

static bool next(struct world *w)
{
    struct arena arena = { 0 };
    struct codec_scope scope = { .arena = &arena };
    ProtobufCMessage *message;
    struct slice bytes;

    if (!drift_next(w->drift, w->now_ms, w->owned, &w->shard, &bytes))
        return false;
    assert_int_equal(proto_decode(&holdfast__internal__v1__check_counts_request__descriptor, bytes,
                                  &scope, &message),
                     ERR_OK);
    const Holdfast__Internal__V1__CheckCountsRequest *request = (const void *)message;
    assert_int_equal(request->shard, w->shard);
    w->part = request->part;
    w->rows = request->rows;
    w->from_start = request->place.len == 0;
    arena_deinit(&arena);
    return true;
}

static void answer(struct world *w, uint64_t kept, uint64_t computed, bool more)
{
    Holdfast__Internal__V1__CheckCountsResponse response =
        HOLDFAST__INTERNAL__V1__CHECK_COUNTS_RESPONSE__INIT;
    Holdfast__V1__CountDifference one = HOLDFAST__V1__COUNT_DIFFERENCE__INIT;
    Holdfast__V1__CountDifference *all[] = { &one };
    uint8_t place[] = { 7 };
    struct buf body = { 0 };

    one.kept = kept;
    one.computed = computed;
    response.targets = 10;
    response.different = kept != computed;
    response.n_differences = response.different;
    response.differences = all;
    response.place = (ProtobufCBinaryData){ more ? 1 : 0, place };
    proto_encode(&response.base, &body);
    drift_answered(w->drift, true, buf_slice(&body));
    buf_deinit(&body);
    w->now_ms += DRIFT_EVERY_MS;
}

static void shards_are_compared_in_turn_counts_before_totals(void **state)
{
    struct world *w = *state;

    for (uint32_t i = 0; i < 4; i++) {
        assert_true(next(w));
        assert_int_equal(w->shard, i / 2 == 0 ? 0 : 2);
        assert_int_equal(w->part, 1 + i % 2);
        assert_true(w->from_start);
        assert_int_equal(w->rows, DRIFT_ROWS);
        answer(w, 1, 1, true);
        assert_true(next(w));
        assert_false(w->from_start);
        answer(w, 1, 1, false);
    }
    assert_int_equal(drift_stats(w->drift).passes, 2);
    assert_int_equal(drift_stats(w->drift).targets, 80);
    assert_int_equal(drift_stats(w->drift).different, 0);
}

static void one_call_is_out_and_one_a_second_is_made(void **state)
{
    struct world *w = *state;

    assert_true(next(w));
    w->now_ms += 10 * DRIFT_EVERY_MS;
    assert_false(next(w));
    answer(w, 1, 1, true);
    assert_true(next(w));
    answer(w, 1, 1, true);
    w->now_ms -= 1;
    assert_false(next(w));
}

static void what_is_found_is_told_at_once_and_until_a_pass_finds_it_no_more(void **state)
{
    struct world *w = *state;

    assert_true(next(w));
    answer(w, 9, 4, true);
    assert_int_equal(drift_stats(w->drift).different, 1);
    assert_int_equal(drift_stats(w->drift).largest, 5);
    for (uint32_t i = 0; i < 5; i++) { /* The rest of the pass, another shard, half of the next. */
        assert_true(next(w));
        answer(w, 1, 1, false);
        assert_int_equal(drift_stats(w->drift).different, 1);
    }
    assert_true(next(w));
    answer(w, 1, 1, false);
    assert_int_equal(drift_stats(w->drift).different, 0);
    assert_int_equal(drift_stats(w->drift).largest, 0);
}

static void what_another_node_owns_is_its_to_tell(void **state)
{
    struct world *w = *state;

    assert_true(next(w));
    answer(w, 9, 4, true);
    w->owned[0] = false;
    assert_true(next(w));
    assert_int_equal(w->shard, 2);
    assert_int_equal(drift_stats(w->drift).different, 0);
    answer(w, 1, 1, true);
    w->owned[2] = false;
    assert_false(next(w));
}

static void a_call_that_fails_begins_again_with_another_shard(void **state)
{
    struct world *w = *state;

    assert_true(next(w));
    drift_answered(w->drift, false, (struct slice){ 0 });
    w->now_ms += DRIFT_EVERY_MS;
    assert_true(next(w));
    assert_int_equal(w->shard, 2);
    drift_answered(w->drift, true, SLICE_LITERAL("\xff\xff"));
    assert_int_equal(drift_stats(w->drift).failed, 2);
    w->now_ms += DRIFT_EVERY_MS;
    assert_true(next(w));
    assert_int_equal(w->shard, 0);
    assert_true(w->from_start);
}

#define DRIFT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DRIFT_TEST(shards_are_compared_in_turn_counts_before_totals),
        DRIFT_TEST(one_call_is_out_and_one_a_second_is_made),
        DRIFT_TEST(what_is_found_is_told_at_once_and_until_a_pass_finds_it_no_more),
        DRIFT_TEST(what_another_node_owns_is_its_to_tell),
        DRIFT_TEST(a_call_that_fails_begins_again_with_another_shard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
