/*
 * frame_fuzz: frames of the links between processes, and what links read out of them: hellos and
 * ownership hints. The first byte says how large the pieces are that the bytes come in; 0: the
 * rest is the body of one hello.
 */
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"
#include "runtime/link/frame.h"
#include "tests/fuzz/fuzz.h"

#define BODY_MAX 65536u

static void check_hello(struct slice body)
{
    struct hello hello = { 0 };
    struct hello again = { 0 };
    struct buf bytes = { 0 };

    if (hello_decode(body, &hello) != ERR_OK)
        return;
    CHECK(strcmp(identity_role_name(hello.role), "unknown") != 0);
    hello_encode(&bytes, &hello);
    /* An older program's ends before its abilities, or its life, which are then written as 0. */
    size_t same = bytes.size <= body.size ? bytes.size : body.size;
    size_t without = bytes.size - same;
    CHECK(memcmp(bytes.data, body.data, same) == 0);
    CHECK(without == 0 || hello.abilities == 0);
    CHECK(without == 0 || without == sizeof hello.abilities ||
          (without == sizeof hello.abilities + sizeof hello.life && hello.life == 0));
    CHECK(hello_decode(buf_slice(&bytes), &again) == ERR_OK);
    CHECK(strcmp(again.name, hello.name) == 0 && again.replica_id == hello.replica_id);
    buf_deinit(&bytes);
}

static void check_hint(struct slice body)
{
    struct wire_hint hint;
    struct buf bytes = { 0 };

    if (wire_hint_decode(body, &hint) != ERR_OK || body.size == 0)
        return;
    wire_hint_encode(&hint, &bytes);
    CHECK(slice_equal(buf_slice(&bytes), body));
    buf_deinit(&bytes);
}

/* Encoding a frame gives back the bytes that it was read from. */
static size_t check_frame(const struct frame *frame, struct slice rest)
{
    struct buf bytes = { 0 };

    CHECK(frame->kind > 0 && frame->kind < FRAME_KIND_END && frame->body.size <= BODY_MAX);
    frame_encode(&bytes, frame);
    CHECK(bytes.size <= rest.size && memcmp(bytes.data, rest.data, bytes.size) == 0);
    if (frame->kind == FRAME_HELLO)
        check_hello(frame->body);
    if (frame->kind == FRAME_RESPONSE)
        check_hint(frame->body);
    size_t size = bytes.size;
    buf_deinit(&bytes);
    return size;
}

static err take_frames(struct frame_decoder *decoder, struct slice whole, size_t *at)
{
    struct frame frame;
    err e;

    while ((e = frame_decoder_next(decoder, &frame)) == ERR_OK)
        *at += check_frame(&frame, (struct slice){ whole.data + *at, whole.size - *at });
    return e;
}

void fuzz_one(struct slice input)
{
    struct frame_decoder decoder;
    size_t at = 0;
    err e = ERR_NEED;

    if (input.size == 0)
        return;
    size_t piece = input.data[0];
    struct slice whole = { input.data + 1, input.size - 1 };
    if (piece == 0) {
        check_hello(whole);
        return;
    }
    frame_decoder_init(&decoder, BODY_MAX);
    for (size_t given = 0; given < whole.size && e == ERR_NEED; given += piece) {
        size_t size = whole.size - given < piece ? whole.size - given : piece;
        memcpy(frame_decoder_reserve(&decoder, size), whole.data + given, size);
        frame_decoder_commit(&decoder, size);
        e = take_frames(&decoder, whole, &at);
    }
    CHECK(e == ERR_NEED || (decoder.error[0] != 0 && decoder.bad));
    frame_decoder_deinit(&decoder);
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    struct hello hello = { .protocol_version = LINK_PROTOCOL_VERSION,
                           .role = ROLE_NODE,
                           .replica_id = 7,
                           .cluster_id = "0d9b1f5e-8f4a-4e0f-9f0a-1f2e3d4c5b6a",
                           .name = "node-1" };
    struct wire_hint hint = { .owner = 3, .epoch = 9 };
    struct buf body = { 0 };
    struct buf bytes = { 0 };

    hello_encode(&body, &hello);
    fuzz_seed_add_kind(seeds, "hello-body", 0, buf_slice(&body));
    frame_encode(&bytes, &(struct frame){ .kind = FRAME_HELLO, .body = buf_slice(&body) });
    frame_encode(&bytes, &(struct frame){ .kind = FRAME_REQUEST,
                                          .priority = 2,
                                          .method = 20,
                                          .request_id = 1,
                                          .deadline_ms = 5000,
                                          .trace = { 1, 2, 3 },
                                          .body = SLICE_LITERAL("\x0a\x02"
                                                                "42") });
    buf_clear(&body);
    wire_hint_encode(&hint, &body);
    frame_encode(&bytes, &(struct frame){ .kind = FRAME_RESPONSE,
                                          .status = WIRE_NOT_OWNER,
                                          .request_id = 1,
                                          .body = buf_slice(&body) });
    for (uint8_t kind = FRAME_CANCEL; kind < FRAME_KIND_END; kind++)
        frame_encode(&bytes, &(struct frame){ .kind = kind, .request_id = kind });
    fuzz_seed_add_kind(seeds, "whole", 255, buf_slice(&bytes));
    fuzz_seed_add_kind(seeds, "pieces", 3, buf_slice(&bytes));
    buf_deinit(&bytes);
    buf_deinit(&body);
}
