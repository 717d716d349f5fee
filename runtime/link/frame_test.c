#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/link/frame.h"

static struct frame sample(struct slice body)
{
    struct frame frame = { .kind = FRAME_REQUEST,
                           .priority = 3,
                           .method = 0x1234,
                           .status = 0xfedc,
                           .deadline_ms = 4000000000u,
                           .request_id = 0x0123456789abcdefu,
                           .trace = "0123456789abcde",
                           .body = body };
    return frame;
}

static void assert_same(const struct frame *a, const struct frame *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->priority, b->priority);
    assert_int_equal(a->method, b->method);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->deadline_ms, b->deadline_ms);
    assert_int_equal(a->request_id, b->request_id);
    assert_memory_equal(a->trace, b->trace, FRAME_TRACE_SIZE);
    assert_true(slice_equal(a->body, b->body));
}

static void feed(struct frame_decoder *decoder, const uint8_t *data, size_t size)
{
    memcpy(frame_decoder_reserve(decoder, size), data, size);
    frame_decoder_commit(decoder, size);
}

static void frame_survives_the_wire(void **state)
{
    (void)state;
    struct buf wire = { 0 };
    struct frame_decoder decoder;
    struct frame sent = sample(SLICE_LITERAL("body")), got;
    frame_encode(&wire, &sent);
    assert_int_equal(wire.size, FRAME_HEADER_SIZE + 4);
    assert_int_equal(load_u32(wire.data), FRAME_HEADER_SIZE);
    frame_decoder_init(&decoder, FRAME_BODY_SIZE_MAX);
    feed(&decoder, wire.data, wire.size);
    assert_int_equal(frame_decoder_next(&decoder, &got), ERR_OK);
    assert_same(&sent, &got);
    assert_int_equal(frame_decoder_next(&decoder, &got), ERR_NEED);
    frame_decoder_deinit(&decoder);
    buf_deinit(&wire);
}

static void input_torn_anywhere_gives_the_same_frames(void **state)
{
    (void)state;
    uint8_t body[300];
    struct buf wire = { 0 };
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (uint8_t)(i * 31);
    for (size_t i = 0; i < 20; i++) {
        struct frame frame = sample((struct slice){ body, i * 15 });
        frame.request_id = i;
        frame_encode(&wire, &frame);
    }
    for (size_t piece = 1; piece < 200; piece++) {
        struct frame_decoder decoder;
        struct frame got;
        uint64_t next = 0;
        frame_decoder_init(&decoder, sizeof body);
        for (size_t at = 0; at < wire.size; at += piece) {
            size_t size = wire.size - at < piece ? wire.size - at : piece;
            feed(&decoder, wire.data + at, size);
            err e;
            while ((e = frame_decoder_next(&decoder, &got)) == ERR_OK) {
                struct frame expected = sample((struct slice){ body, next * 15 });
                expected.request_id = next++;
                assert_same(&expected, &got);
            }
            assert_int_equal(e, ERR_NEED);
        }
        assert_int_equal(next, 20);
        frame_decoder_deinit(&decoder);
    }
    buf_deinit(&wire);
}

static void oversized_body_is_refused_from_its_header_alone(void **state)
{
    (void)state;
    static uint8_t body[101];
    struct buf wire = { 0 };
    struct frame_decoder decoder;
    struct frame sent = sample((struct slice){ body, 101 }), got;
    frame_encode(&wire, &sent);
    frame_decoder_init(&decoder, 100);
    feed(&decoder, wire.data, FRAME_HEADER_SIZE);
    assert_int_equal(frame_decoder_next(&decoder, &got), ERR_TOO_LARGE);
    assert_string_equal(decoder.error, "frame body of 101 bytes; the limit is 100");
    assert_int_equal(frame_decoder_next(&decoder, &got), ERR_CORRUPT);
    frame_decoder_deinit(&decoder);
    buf_deinit(&wire);
}

static void bad_headers_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint8_t value;
    } damage[] = { { 0, 35 }, { 4, 0 }, { 4, FRAME_KIND_END }, { 4, 255 }, { 22, 1 }, { 23, 9 } };
    for (size_t i = 0; i < ARRAY_SIZE(damage); i++) {
        struct buf wire = { 0 };
        struct frame_decoder decoder;
        struct frame sent = sample((struct slice){ NULL, 0 }), got;
        frame_encode(&wire, &sent);
        wire.data[damage[i].at] = damage[i].value;
        frame_decoder_init(&decoder, 100);
        feed(&decoder, wire.data, wire.size);
        assert_int_equal(frame_decoder_next(&decoder, &got), ERR_CORRUPT);
        assert_string_not_equal(decoder.error, "");
        frame_decoder_deinit(&decoder);
        buf_deinit(&wire);
    }
}

static void garbage_never_reads_outside_or_hangs(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 3000; round++) {
        struct frame_decoder decoder;
        struct frame got;
        uint8_t bytes[160];
        frame_decoder_init(&decoder, 64);
        for (size_t i = 0; i < sizeof bytes; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            bytes[i] = (uint8_t)(random % 7 == 0 ? random >> 32 : random % 3);
        }
        feed(&decoder, bytes, sizeof bytes);
        unsigned long sum = 0;
        for (int i = 0; i < 10 && frame_decoder_next(&decoder, &got) == ERR_OK; i++)
            for (size_t k = 0; k < got.body.size; k++)
                sum += got.body.data[k];
        assert_true(sum < 64 * 256 * 10);
        frame_decoder_deinit(&decoder);
    }
}

static void hello_survives_and_ignores_what_is_newer(void **state)
{
    (void)state;
    struct hello sent = { .protocol_version = 7,
                          .role = ROLE_ROUTER,
                          .replica_id = 42,
                          .life = 1700000000000,
                          .abilities = HELLO_TAKES_CALLERS,
                          .cluster_id = "blue",
                          .name = "router-1" };
    struct hello got;
    struct buf body = { 0 };
    hello_encode(&body, &sent);
    buf_append(&body, "later", 5);
    assert_int_equal(hello_decode(buf_slice(&body), &got), ERR_OK);
    assert_int_equal(got.protocol_version, 7);
    assert_int_equal(got.role, ROLE_ROUTER);
    assert_int_equal(got.replica_id, 42);
    assert_string_equal(got.cluster_id, "blue");
    assert_string_equal(got.name, "router-1");
    assert_int_equal(got.life, 1700000000000);
    assert_int_equal(got.abilities, HELLO_TAKES_CALLERS);
    /* An older program tells no abilities, and one before that no life. */
    const size_t older = body.size - 5 - sizeof got.abilities;
    const size_t oldest = older - sizeof got.life;
    for (size_t size = 0; size < body.size - 5; size++)
        assert_int_equal(hello_decode((struct slice){ body.data, size }, &got),
                         size == older || size == oldest ? ERR_OK : ERR_CORRUPT);
    assert_int_equal(hello_decode((struct slice){ body.data, older }, &got), ERR_OK);
    assert_true(got.life == 1700000000000 && got.abilities == 0);
    assert_int_equal(hello_decode((struct slice){ body.data, oldest }, &got), ERR_OK);
    assert_true(got.life == 0 && got.abilities == 0);
    buf_deinit(&body);
}

static void hello_with_unprintable_or_overlong_text_is_refused(void **state)
{
    (void)state;
    struct hello got;
    struct buf body = { 0 };
    struct hello sent = { .protocol_version = 1, .role = ROLE_NODE, .cluster_id = "a\nb" };
    hello_encode(&body, &sent);
    assert_int_equal(hello_decode(buf_slice(&body), &got), ERR_CORRUPT);
    store_u32(body.data + 11, HELLO_TEXT_SIZE_MAX + 1);
    assert_int_equal(hello_decode(buf_slice(&body), &got), ERR_CORRUPT);
    buf_deinit(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frame_survives_the_wire),
        cmocka_unit_test(input_torn_anywhere_gives_the_same_frames),
        cmocka_unit_test(oversized_body_is_refused_from_its_header_alone),
        cmocka_unit_test(bad_headers_are_refused),
        cmocka_unit_test(garbage_never_reads_outside_or_hangs),
        cmocka_unit_test(hello_survives_and_ignores_what_is_newer),
        cmocka_unit_test(hello_with_unprintable_or_overlong_text_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
