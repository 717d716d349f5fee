/*
 * h2_fuzz: an HTTP/2 connection made of frames: the preface and the lengths are right, so that the
 * fuzzer spends its time behind them. The first byte says what the handlers do, then frames:
 * [type][flags][stream][u16 size][payload]; a type from 128 on is carried at once with the next.
 */
#include "runtime/base/check.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/h2_frames.h"
#include "tests/fuzz/http_drive.h"

#define WAITS_FOR_NEXT 128u

static void send_all(struct drive *drive, struct reader *reader)
{
    struct buf bytes = { 0 };

    h2_put_preface(&bytes);
    h2_put_frame(&bytes, &(struct h2_frame){ .type = H2_SETTINGS });
    while (reader_left(reader) >= 5) {
        uint8_t type = read_u8(reader);
        struct h2_frame frame = { .type = type % WAITS_FOR_NEXT };
        frame.flags = read_u8(reader);
        frame.stream = read_u8(reader);
        size_t size = read_u16(reader);
        size_t left = reader_left(reader);
        frame.payload = read_raw(reader, size < left ? size : left);
        h2_put_frame(&bytes, &frame);
        if (type < WAITS_FOR_NEXT) {
            drive_send(drive, buf_slice(&bytes));
            buf_clear(&bytes);
        }
    }
    drive_send(drive, buf_slice(&bytes));
    buf_deinit(&bytes);
}

void fuzz_one(struct slice input)
{
    struct reader reader = reader_from(input);
    struct drive *drive = drive_open((enum drive_answer)(read_u8(&reader) % DRIVE_ANSWER_END));

    send_all(drive, &reader);
    drive_close(drive);
}

static void put(struct buf *out, uint8_t type, uint8_t flags, uint8_t stream, struct slice payload)
{
    buf_put_u8(out, type);
    buf_put_u8(out, flags);
    buf_put_u8(out, stream);
    buf_put_u16(out, (uint16_t)payload.size);
    buf_append(out, payload.data, payload.size);
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    static const char *const names[] = { "reply", "fail", "keep", "stream" };
    struct slice path = SLICE_LITERAL("/holdfast.v1.LedgerService/GetBalances");
    struct slice body = SLICE_LITERAL("\0\0\0\0\4\x0a\2"
                                      "42");
    struct buf head = { 0 };
    struct buf all = { 0 };

    h2_put_post(&head, path, SLICE_LITERAL("application/grpc"));
    for (uint8_t i = 0; i < DRIVE_ANSWER_END; i++) {
        buf_clear(&all);
        buf_put_u8(&all, i);
        put(&all, H2_HEADERS, H2_END_HEADERS, 1, buf_slice(&head));
        put(&all, H2_DATA, H2_END_STREAM, 1, body);
        fuzz_seed_add(seeds, names[i], buf_slice(&all));
    }
    put(&all, H2_SETTINGS, 0, 0, SLICE_LITERAL("\0\4\0\0\0\1\0\3\0\0\0\1"));
    put(&all, H2_PING, 0, 0, SLICE_LITERAL("12345678"));
    put(&all, H2_WINDOW_UPDATE, 0, 0, SLICE_LITERAL("\0\0\1\0"));
    put(&all, H2_HEADERS, 0, 3, (struct slice){ head.data, head.size / 2 });
    put(&all, H2_CONTINUATION, H2_END_HEADERS, 3,
        (struct slice){ head.data + head.size / 2, head.size - head.size / 2 });
    put(&all, H2_PRIORITY, 0, 3, SLICE_LITERAL("\0\0\0\1\5"));
    put(&all, H2_DATA, 0, 3, (struct slice){ body.data, 3 });
    put(&all, H2_RST_STREAM, 0, 3, SLICE_LITERAL("\0\0\0\x8"));
    put(&all, H2_GOAWAY, 0, 0, SLICE_LITERAL("\0\0\0\3\0\0\0\0bye"));
    fuzz_seed_add(seeds, "all", buf_slice(&all));
    buf_deinit(&head);
    buf_deinit(&all);
}
