#include "runtime/link/out_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"

#define LARGE 1000000u
#define TURN  262144u

static uint8_t bytes[LARGE];

static void push(struct out_queue *queue, uint8_t kind, size_t size)
{
    const struct frame frame = { .kind = kind, .body = { bytes, size } };

    assert_int_equal(out_queue_push(queue, &frame), FRAME_HEADER_SIZE + size);
}

/* Hands over once; the kinds of the frames that begin there, as letters. */
static void take(struct out_queue *queue, size_t max, char *ret_kinds)
{
    static const char letters[] = "?HQRCMPpL$";
    enum out_lane lane;
    struct slice next = out_queue_next(queue, max, &lane);

    for (size_t at = 0; at + FRAME_HEADER_SIZE <= next.size;
         at += 4u + (size_t)load_u32(next.data + at)) {
        size_t used = strlen(ret_kinds);
        ret_kinds[used] = letters[next.data[at + 4]];
        ret_kinds[used + 1] = 0;
    }
    out_queue_taken(queue, lane, next.size);
}

static void a_message_passes_all_answers_that_wait(void **state)
{
    struct out_queue queue = { 0 };
    char kinds[16] = "";

    (void)state;
    for (int i = 0; i < 5; i++)
        push(&queue, FRAME_RESPONSE, 200000);
    take(&queue, TURN, kinds);
    assert_string_equal(kinds, "R");
    push(&queue, FRAME_MESSAGE, 100);
    push(&queue, FRAME_PING, 0);
    take(&queue, TURN, kinds);
    assert_string_equal(kinds, "RMP");
    take(&queue, TURN, kinds);
    assert_string_equal(kinds, "RMPR");
    out_queue_clear(&queue);
}

static void a_frame_that_has_begun_is_finished_first_and_alone(void **state)
{
    struct out_queue queue = { 0 };
    enum out_lane lane;

    (void)state;
    push(&queue, FRAME_RESPONSE, LARGE);
    push(&queue, FRAME_RESPONSE, 10);
    struct slice next = out_queue_next(&queue, TURN, &lane);
    assert_int_equal(next.size, TURN);
    out_queue_taken(&queue, lane, next.size);
    push(&queue, FRAME_MESSAGE, 100);
    size_t left = LARGE + FRAME_HEADER_SIZE - TURN;
    while (left > 0) {
        next = out_queue_next(&queue, TURN, &lane);
        assert_int_equal(lane, OUT_CALLS);
        assert_int_equal(next.size, left < TURN ? left : TURN);
        out_queue_taken(&queue, lane, next.size);
        left -= next.size;
    }
    next = out_queue_next(&queue, TURN, &lane);
    assert_int_equal(lane, OUT_SYSTEM);
    out_queue_taken(&queue, lane, next.size);
    next = out_queue_next(&queue, TURN, &lane);
    assert_int_equal(next.size, FRAME_HEADER_SIZE + 10);
    out_queue_taken(&queue, lane, next.size);
    assert_int_equal(out_queue_bytes(&queue), 0);
    assert_int_equal(out_queue_next(&queue, TURN, &lane).size, 0);
    out_queue_clear(&queue);
}

static void each_lane_keeps_its_order(void **state)
{
    struct out_queue queue = { 0 };
    char kinds[16] = "";

    (void)state;
    push(&queue, FRAME_REQUEST, 10);
    push(&queue, FRAME_CANCEL, 0);
    push(&queue, FRAME_HELLO, 10);
    push(&queue, FRAME_MESSAGE, 10);
    push(&queue, FRAME_RESPONSE, 10);
    take(&queue, TURN, kinds);
    take(&queue, TURN, kinds);
    assert_string_equal(kinds, "HMQCR");
    assert_int_equal(out_queue_bytes(&queue), 0);
    out_queue_clear(&queue);
}

static void answers_are_counted_until_they_are_on_the_socket(void **state)
{
    struct budget budget;
    struct out_queue queue = { .budget = &budget };
    enum out_lane lane;

    (void)state;
    budget_init(&budget, LARGE);
    push(&queue, FRAME_RESPONSE, 1000);
    push(&queue, FRAME_MESSAGE, 1000);
    assert_int_equal(budget_held(&budget), 1000 + FRAME_HEADER_SIZE);
    out_queue_taken(&queue, OUT_SYSTEM, out_queue_next(&queue, TURN, &lane).size);
    out_queue_taken(&queue, OUT_CALLS, out_queue_next(&queue, TURN, &lane).size);
    assert_int_equal(out_queue_bytes(&queue), 0);
    assert_int_equal(budget_held(&budget), 1000 + FRAME_HEADER_SIZE);
    out_queue_written(&queue);
    assert_int_equal(budget_held(&budget), 0);
    out_queue_clear(&queue);
    budget_deinit(&budget);
}

static void a_lost_connection_gives_back_all_of_its_answers(void **state)
{
    struct budget budget;
    struct out_queue queue = { .budget = &budget };
    enum out_lane lane;

    (void)state;
    budget_init(&budget, LARGE);
    push(&queue, FRAME_RESPONSE, 5000);
    push(&queue, FRAME_RESPONSE, 7000);
    out_queue_taken(&queue, OUT_CALLS, out_queue_next(&queue, 1000, &lane).size);
    out_queue_clear(&queue);
    assert_int_equal(budget_held(&budget), 0);
    assert_int_equal(out_queue_bytes(&queue), 0);
    budget_deinit(&budget);
}

/* The kinds of the frames of one turn; a part is 'L'. */
static void take_turn(struct out_queue *queue, char *ret_kinds)
{
    enum out_lane lane;
    struct slice next = out_queue_next(queue, TURN, &lane);

    if (lane != OUT_LARGE) {
        take(queue, TURN, ret_kinds);
        return;
    }
    assert_in_range(next.size, 1, OUT_PART_BYTES);
    out_queue_taken(queue, lane, next.size);
    size_t used = strlen(ret_kinds);
    ret_kinds[used] = 'L';
    ret_kinds[used + 1] = 0;
}

static void small_answers_pass_a_large_one_that_has_begun(void **state)
{
    struct out_queue queue = { 0 };
    char kinds[32] = "";

    (void)state;
    out_queue_use_parts(&queue);
    push(&queue, FRAME_RESPONSE, LARGE);
    take_turn(&queue, kinds);
    push(&queue, FRAME_RESPONSE, 10);
    push(&queue, FRAME_MESSAGE, 10);
    take_turn(&queue, kinds);
    take_turn(&queue, kinds);
    assert_string_equal(kinds, "LMR");
    push(&queue, FRAME_RESPONSE, 10); /* Nor do many small ones stop the large one. */
    take_turn(&queue, kinds);
    take_turn(&queue, kinds);
    assert_string_equal(kinds, "LMRLR");
    out_queue_clear(&queue);
}

static void no_more_parts_leave_than_the_peer_gave_credit_for(void **state)
{
    struct out_queue queue = { 0 };
    struct buf stream = { 0 };
    enum out_lane lane;

    (void)state;
    out_queue_use_parts(&queue);
    push(&queue, FRAME_RESPONSE, LARGE);
    for (struct slice next; (next = out_queue_next(&queue, TURN, &lane)).size > 0;) {
        buf_append(&stream, next.data, next.size);
        out_queue_taken(&queue, lane, next.size);
    }
    assert_int_equal(stream.size, OUT_WINDOW_BYTES);
    push(&queue, FRAME_RESPONSE, 10); /* What is small needs none. */
    assert_int_equal(out_queue_next(&queue, TURN, &lane).size, FRAME_HEADER_SIZE + 10);
    assert_int_equal(lane, OUT_CALLS);
    out_queue_taken(&queue, lane, FRAME_HEADER_SIZE + 10);
    assert_false(out_queue_credit(&queue, OUT_WINDOW_BYTES + 1));
    while (out_queue_bytes(&queue) > 0) {
        assert_true(out_queue_credit(&queue, 1000));
        struct slice next = out_queue_next(&queue, TURN, &lane);
        assert_in_range(next.size, 1, 1000);
        buf_append(&stream, next.data, next.size);
        out_queue_taken(&queue, lane, next.size);
    }
    assert_int_equal(stream.size, FRAME_HEADER_SIZE + LARGE);
    assert_int_equal(load_u32(stream.data), FRAME_HEADER_SIZE - 4 + LARGE);
    assert_memory_equal(stream.data + FRAME_HEADER_SIZE, bytes, LARGE);
    buf_deinit(&stream);
    out_queue_clear(&queue);
}

static void a_peer_without_parts_gets_whole_frames(void **state)
{
    struct out_queue queue = { 0 };
    enum out_lane lane;

    (void)state;
    push(&queue, FRAME_RESPONSE, LARGE);
    (void)out_queue_next(&queue, TURN, &lane);
    assert_int_equal(lane, OUT_CALLS);
    assert_false(out_queue_credit(&queue, 1));
    out_queue_clear(&queue);
}

/* As much as ever goes through: nothing is lost, doubled or left counted. */
static void a_long_life_is_balanced(void **state)
{
    struct budget budget;
    struct out_queue queue = { .budget = &budget };
    uint64_t in = 0, out = 0, random = 1;
    enum out_lane lane;

    (void)state;
    budget_init(&budget, LARGE);
    out_queue_use_parts(&queue);
    for (int round = 0; round < 20000; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint32_t draw = (uint32_t)(random >> 33);
        if (draw % 3 != 0) {
            size_t size = draw % 16 == 1 ? draw % 100000 : draw % 300;
            push(&queue, (uint8_t)(FRAME_HELLO + draw % 7), size);
            in += size + FRAME_HEADER_SIZE;
        } else {
            struct slice next = out_queue_next(&queue, 1 + draw % 20000, &lane);
            out_queue_taken(&queue, lane, next.size);
            out += next.size;
            if (lane == OUT_LARGE && draw % 2 == 0)
                assert_true(out_queue_credit(&queue, next.size));
        }
        if (draw % 5 == 0)
            out_queue_written(&queue);
        assert_int_equal(out_queue_bytes(&queue), in - out);
    }
    while (out_queue_bytes(&queue) > 0) {
        (void)out_queue_credit(&queue, OUT_CREDIT_BYTES - queue.credit);
        struct slice next = out_queue_next(&queue, TURN, &lane);
        assert_true(next.size > 0);
        out_queue_taken(&queue, lane, next.size);
    }
    out_queue_written(&queue);
    assert_int_equal(budget_held(&budget), 0);
    out_queue_clear(&queue);
    budget_deinit(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_passes_all_answers_that_wait),
        cmocka_unit_test(a_frame_that_has_begun_is_finished_first_and_alone),
        cmocka_unit_test(each_lane_keeps_its_order),
        cmocka_unit_test(answers_are_counted_until_they_are_on_the_socket),
        cmocka_unit_test(a_lost_connection_gives_back_all_of_its_answers),
        cmocka_unit_test(small_answers_pass_a_large_one_that_has_begun),
        cmocka_unit_test(no_more_parts_leave_than_the_peer_gave_credit_for),
        cmocka_unit_test(a_peer_without_parts_gets_whole_frames),
        cmocka_unit_test(a_long_life_is_balanced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
