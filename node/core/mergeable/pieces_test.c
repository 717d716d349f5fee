/* What no frame holds comes as it was sent, whatever the links lose, repeat or delay, and all who
 * wait for it have their turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "node/core/mergeable/pieces.h"

#define ENDS        3u
#define PIECE_BYTES 100u
#define WHOLE_MAX   150u
#define MESSAGE_MAX 1000u
#define ALL_MAX     2500u
#define HEAD_BYTES  65u /* With the step of a pull. */

struct packet {
    uint32_t from, to;
    struct buf bytes;
};

/* Three members, each with an id one above its place, and what is on its way between them. */
struct wire {
    struct pieces ends[ENDS];
    struct wire_end {
        struct wire *wire;
        uint32_t place;
    } users[ENDS];
    uint64_t now_ms;
    uint32_t count, come; /* Messages that came whole. */
    struct packet packets[64];
    uint64_t last_shard, last_id;
    uint32_t last_size;
};

static void on_send(void *user, uint64_t to, struct slice bytes)
{
    struct wire_end *end = user;
    struct wire *w = end->wire;
    struct packet *packet = &w->packets[w->count++];

    assert_true(w->count < 64);
    *packet = (struct packet){ .from = end->place, .to = (uint32_t)to - 1 };
    buf_append(&packet->bytes, bytes.data, bytes.size);
}

static int setup(void **state)
{
    static struct wire w;

    w = (struct wire){ .now_ms = 1000 };
    for (uint32_t i = 0; i < ENDS; i++) {
        w.users[i] = (struct wire_end){ &w, i };
        pieces_init(&w.ends[i], &(struct pieces_options){ .boot = 7,
                                                          .piece_bytes = PIECE_BYTES,
                                                          .whole_bytes_max = WHOLE_MAX,
                                                          .message_bytes_max = MESSAGE_MAX,
                                                          .all_bytes_max = ALL_MAX,
                                                          .send = on_send,
                                                          .user = &w.users[i] });
    }
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    struct wire *w = *state;

    for (uint32_t i = 0; i < ENDS; i++)
        pieces_deinit(&w->ends[i]);
    while (w->count > 0)
        buf_deinit(&w->packets[--w->count].bytes);
    return 0;
}

/* A part of a pull, or a request of one, of that shard and step, so large. */
static struct buf message_of(uint8_t kind, uint64_t shard, uint64_t id, uint32_t size)
{
    struct buf out = { 0 };

    buf_put_u8(&out, kind);
    buf_put_u64(&out, 1);
    buf_put_u64(&out, shard);
    for (uint32_t i = 0; i < 5; i++) /* From, boot, actor, config; the boot asked or asking. */
        buf_put_u64(&out, 5);
    buf_put_u64(&out, id);
    for (uint32_t i = HEAD_BYTES; i < size; i++)
        buf_put_u8(&out, (uint8_t)(shard * 31 + id * 7 + i));
    return out;
}

static void send(struct wire *w, uint32_t from, uint32_t to, struct buf message)
{
    pieces_send(&w->ends[from], to + 1, buf_slice(&message), w->now_ms);
    buf_deinit(&message);
}

static bool admit(struct wire *w, uint32_t at, uint32_t from, uint64_t shard, uint64_t id)
{
    struct buf request = message_of(MERGE_PULL, shard, id, HEAD_BYTES);
    bool served = pieces_admit(&w->ends[at], from + 1, buf_slice(&request), w->now_ms);

    buf_deinit(&request);
    return served;
}

static void must_be_as_sent(struct wire *w, struct slice whole)
{
    struct reader reader = reader_from(whole);
    struct merge_head head;

    assert_int_equal(merge_head_decode(&reader, &head), ERR_OK);
    (void)read_u64(&reader);
    w->last_shard = head.shard;
    w->last_id = read_u64(&reader);
    w->last_size = (uint32_t)whole.size;
    struct buf sent = message_of((uint8_t)head.kind, w->last_shard, w->last_id, w->last_size);

    assert_int_equal(whole.size, sent.size);
    assert_memory_equal(whole.data, sent.data, sent.size);
    buf_deinit(&sent);
    w->come++;
}

static void hand_over(struct wire *w, const struct packet *packet)
{
    struct pieces_came came;
    err e = pieces_take(&w->ends[packet->to], packet->from + 1, buf_slice(&packet->bytes),
                        w->now_ms, &came);

    assert_true(e == ERR_OK || e == ERR_NOT_FOUND);
    if (e == ERR_NOT_FOUND)
        must_be_as_sent(w, buf_slice(&packet->bytes));
    if (came.whole.size > 0)
        must_be_as_sent(w, buf_slice(&came.whole));
    buf_deinit(&came.whole);
}

static struct packet first(struct wire *w)
{
    struct packet packet = w->packets[0];

    assert_true(w->count > 0);
    w->count--;
    memmove(w->packets, w->packets + 1, w->count * sizeof w->packets[0]);
    return packet;
}

/* Until nothing more comes of it, or so many packets came. */
static void deliver(struct wire *w, uint32_t most)
{
    while (w->count > 0 && most-- > 0) {
        struct packet packet = first(w);

        hand_over(w, &packet);
        buf_deinit(&packet.bytes);
    }
}

static void lose_all(struct wire *w)
{
    while (w->count > 0)
        buf_deinit(&w->packets[--w->count].bytes);
}

static void pass(struct wire *w, uint64_t ms)
{
    w->now_ms += ms;
    for (uint32_t i = 0; i < ENDS; i++)
        pieces_tick(&w->ends[i], w->now_ms);
}

static void what_is_sent_comes_as_it_was(void **state)
{
    struct wire *w = *state;

    for (uint32_t size = WHOLE_MAX - 2; size <= MESSAGE_MAX; size++) {
        w->come = 0;
        send(w, 0, 1, message_of(size % 2 == 0 ? MERGE_CHUNK : MERGE_WRITE, 1, size, size));
        deliver(w, UINT32_MAX);
        assert_int_equal(w->come, 1);
        assert_int_equal(w->last_size, size);
    }
    send(w, 0, 1, message_of(MERGE_CHUNK, 1, 1, MESSAGE_MAX + 1));
    assert_int_equal(w->count, 0);
    assert_int_equal(w->ends[0].dropped, 1);
}

static void packets_may_be_lost_and_come_twice(void **state)
{
    struct wire *w = *state;

    for (uint32_t lost = 0; lost < 14; lost++) {
        w->come = 0;
        send(w, 0, 1, message_of(MERGE_CHUNK, 1, lost, 650));
        for (uint32_t i = 0; w->come == 0; i++) {
            assert_true(i < 40);
            if (w->count == 0)
                pass(w, PIECES_AGAIN_MS + 1);
            struct packet packet = first(w);

            for (uint32_t times = 0; i != lost && times < 2; times++)
                hand_over(w, &packet);
            buf_deinit(&packet.bytes);
        }
        deliver(w, UINT32_MAX);
        assert_int_equal(w->come, 1);
    }
}

/* A link of before lets go of the first piece of an earlier message. */
static void a_late_piece_does_not_take_the_place_of_a_later_message(void **state)
{
    struct wire *w = *state;

    send(w, 0, 1, message_of(MERGE_CHUNK, 1, 1, 650));
    struct packet late = first(w);

    hand_over(w, &late);
    deliver(w, UINT32_MAX);
    send(w, 0, 1, message_of(MERGE_CHUNK, 1, 2, 650));
    deliver(w, 5);
    hand_over(w, &late);
    buf_deinit(&late.bytes);
    deliver(w, UINT32_MAX);
    assert_int_equal(w->come, 2);
    assert_int_equal(w->last_id, 2);
}

/* All but the first one were dropped, and their shards began again. */
static void parts_of_several_pulls_come_in_turn(void **state)
{
    struct wire *w = *state;

    send(w, 0, 1, message_of(MERGE_CHUNK, 1, 1, 800));
    send(w, 0, 1, message_of(MERGE_CHUNK, 2, 1, 800));
    send(w, 0, 1, message_of(MERGE_CHUNK, 3, 1, 800));
    for (uint64_t shard = 1; shard <= 3; shard++) {
        while (w->come < shard)
            deliver(w, 1);
        assert_int_equal(w->last_shard, shard);
    }
    deliver(w, UINT32_MAX);
    assert_int_equal(w->come, 3);
    assert_int_equal(w->ends[0].dropped, 0);
}

static void a_request_whose_answer_is_on_its_way_is_not_served_again(void **state)
{
    struct wire *w = *state;
    struct buf other;

    assert_true(admit(w, 0, 1, 1, 1));
    send(w, 0, 1, message_of(MERGE_CHUNK, 1, 1, 800));
    assert_false(admit(w, 0, 1, 1, 1));
    assert_true(admit(w, 0, 1, 1, 2)); /* A later step: the asker has given the other one up. */
    assert_true(admit(w, 0, 2, 1, 1));
    other = message_of(MERGE_PULL, 1, 1, HEAD_BYTES);
    other.data[25] = 6; /* Of another process. */
    assert_true(pieces_admit(&w->ends[0], 2, buf_slice(&other), w->now_ms));
    buf_deinit(&other);
    send(w, 0, 1, message_of(MERGE_CHUNK, 1, 2, 800));
    lose_all(w);
    pass(w, PIECES_AGAIN_MS + 1);
    deliver(w, UINT32_MAX);
    assert_int_equal(w->come, 1);
    assert_int_equal(w->last_id, 2);
}

static void next_is(struct wire *w, uint32_t from, uint64_t shard)
{
    struct merge_step step;
    struct buf request;
    uint64_t peer;

    assert_true(pieces_request_next(&w->ends[0], &peer, &request));
    assert_int_equal(merge_step_decode(buf_slice(&request), &step), ERR_OK);
    assert_int_equal(peer, from + 1);
    assert_int_equal(step.shard, shard);
    buf_deinit(&request);
}

static void requests_wait_for_room_and_are_served_in_turn(void **state)
{
    struct wire *w = *state;
    struct buf request;
    uint64_t peer;

    send(w, 0, 1, message_of(MERGE_CHUNK, 1, 1, MESSAGE_MAX));
    send(w, 0, 1, message_of(MERGE_CHUNK, 2, 1, MESSAGE_MAX));
    for (uint32_t again = 0; again < 3; again++)
        for (uint64_t shard = 3; shard < 6; shard++)
            assert_false(admit(w, 0, 1, shard, 1));
    assert_false(admit(w, 0, 2, 9, 1));
    assert_int_equal(w->ends[0].request_count, 4);
    assert_false(pieces_request_next(&w->ends[0], &peer, &request));
    while (w->come < 1)
        deliver(w, 1);
    deliver(w, 1);    /* That it came. */
    next_is(w, 2, 9); /* Less is on its way to that one. */
    send(w, 0, 2, message_of(MERGE_CHUNK, 9, 1, MESSAGE_MAX));
    assert_false(pieces_request_next(&w->ends[0], &peer, &request));
    deliver(w, UINT32_MAX);
    for (uint64_t shard = 3; shard < 6; shard++)
        next_is(w, 1, shard);
    assert_int_equal(w->ends[0].request_bytes, 0);
    assert_true(admit(w, 0, 1, 7, 1));
}

static void requests_have_a_limit_and_an_end(void **state)
{
    struct wire *w = *state;

    send(w, 0, 1, message_of(MERGE_CHUNK, 1, 1, MESSAGE_MAX));
    send(w, 0, 1, message_of(MERGE_CHUNK, 2, 1, MESSAGE_MAX));
    for (uint64_t shard = 0; shard < PIECES_REQUESTS_MAX + 5; shard++)
        assert_false(admit(w, 0, 1, 10 + shard, 1));
    assert_int_equal(w->ends[0].request_count, PIECES_REQUESTS_MAX);
    assert_int_equal(w->ends[0].dropped, 5);
    lose_all(w);
    pass(w, PIECES_REQUEST_MS_MAX + 1);
    assert_int_equal(w->ends[0].request_count, 0);
    assert_int_equal(w->ends[0].request_bytes, 0);
}

/* What comes in has room for two of them. */
static void messages_that_come_in_are_given_room_in_turn(void **state)
{
    struct wire *w = *state;

    send(w, 0, 1, message_of(MERGE_CHUNK, 1, 1, MESSAGE_MAX));
    send(w, 2, 1, message_of(MERGE_CHUNK, 2, 1, MESSAGE_MAX));
    send(w, 0, 1, message_of(MERGE_WRITE, 3, 1, MESSAGE_MAX));
    send(w, 2, 1, message_of(MERGE_WRITE, 4, 1, MESSAGE_MAX - 700));
    lose_all(w);
    pass(w, PIECES_AGAIN_MS + 1); /* All begin again, 1 and 3 before 2 and 4. */
    deliver(w, UINT32_MAX);
    assert_int_equal(w->come, 2);
    assert_int_equal(w->last_shard, 3); /* 4 had room, but not before 2. */
    for (uint32_t i = 0; i < 4 && w->come < 4; i++) {
        pass(w, PIECES_AGAIN_MS + 1);
        deliver(w, UINT32_MAX);
    }
    assert_int_equal(w->come, 4);
}

static void what_waits_for_a_peer_that_is_away_goes(void **state)
{
    struct wire *w = *state;

    send(w, 0, 1, message_of(MERGE_CHUNK, 1, 1, MESSAGE_MAX));
    send(w, 0, 1, message_of(MERGE_CHUNK, 2, 1, MESSAGE_MAX));
    assert_false(admit(w, 0, 2, 3, 1));
    lose_all(w);
    pass(w, PIECES_QUIET_MS_MAX + 1);
    assert_int_equal(w->count, 0);
    next_is(w, 2, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_sent_comes_as_it_was),
        TEST(packets_may_be_lost_and_come_twice),
        TEST(a_late_piece_does_not_take_the_place_of_a_later_message),
        TEST(parts_of_several_pulls_come_in_turn),
        TEST(a_request_whose_answer_is_on_its_way_is_not_served_again),
        TEST(requests_wait_for_room_and_are_served_in_turn),
        TEST(requests_have_a_limit_and_an_end),
        TEST(messages_that_come_in_are_given_room_in_turn),
        TEST(what_waits_for_a_peer_that_is_away_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
