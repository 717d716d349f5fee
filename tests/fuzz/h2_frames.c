#include "tests/fuzz/h2_frames.h"

#define LENGTH_MAX 0xffffffu

void h2_put_preface(struct buf *out)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

    buf_append(out, preface, sizeof preface - 1);
}

void h2_put_frame(struct buf *out, const struct h2_frame *frame)
{
    size_t size = frame->payload.size < LENGTH_MAX ? frame->payload.size : LENGTH_MAX;

    buf_put_u8(out, (uint8_t)(size >> 16));
    buf_put_u16_be(out, (uint16_t)size);
    buf_put_u8(out, frame->type);
    buf_put_u8(out, frame->flags);
    buf_put_u32_be(out, frame->stream);
    buf_append(out, frame->payload.data, size);
}

/* An integer with a prefix of seven bits (RFC 7541 section 5.1), then the bytes, not packed. */
static void put_text(struct buf *out, struct slice text)
{
    size_t size = text.size;

    if (size < 127) {
        buf_put_u8(out, (uint8_t)size);
    } else {
        buf_put_u8(out, 127);
        for (size -= 127; size >= 128; size >>= 7)
            buf_put_u8(out, (uint8_t)(size | 128));
        buf_put_u8(out, (uint8_t)size);
    }
    buf_append(out, text.data, text.size);
}

void h2_put_field(struct buf *out, struct slice name, struct slice value)
{
    buf_put_u8(out, 0);
    put_text(out, name);
    put_text(out, value);
}

void h2_put_post(struct buf *out, struct slice path, struct slice content_type)
{
    h2_put_field(out, SLICE_LITERAL(":method"), SLICE_LITERAL("POST"));
    h2_put_field(out, SLICE_LITERAL(":scheme"), SLICE_LITERAL("http"));
    h2_put_field(out, SLICE_LITERAL(":authority"), SLICE_LITERAL("x"));
    h2_put_field(out, SLICE_LITERAL(":path"), path);
    h2_put_field(out, SLICE_LITERAL("content-type"), content_type);
    h2_put_field(out, SLICE_LITERAL("te"), SLICE_LITERAL("trailers"));
}
