#include "runtime/link/frame.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"

#define LENGTH_SIZE 4u

void frame_encode(struct buf *out, const struct frame *frame)
{
    CHECK(frame->body.size <= UINT32_MAX - FRAME_HEADER_SIZE);
    uint8_t *p = buf_reserve(out, FRAME_HEADER_SIZE + frame->body.size);

    store_u32(p, (uint32_t)(FRAME_HEADER_SIZE - LENGTH_SIZE + frame->body.size));
    p[4] = frame->kind;
    p[5] = frame->priority;
    store_u16(p + 6, frame->method);
    store_u64(p + 8, frame->request_id);
    store_u32(p + 16, frame->deadline_ms);
    store_u16(p + 20, frame->status);
    store_u16(p + 22, 0);
    memcpy(p + 24, frame->trace, FRAME_TRACE_SIZE);
    if (frame->body.size > 0)
        memcpy(p + FRAME_HEADER_SIZE, frame->body.data, frame->body.size);
    out->size += FRAME_HEADER_SIZE + frame->body.size;
}

void frame_decoder_init(struct frame_decoder *decoder, uint32_t body_size_max)
{
    *decoder = (struct frame_decoder){ .body_max = body_size_max };
}

void frame_decoder_deinit(struct frame_decoder *decoder)
{
    buf_deinit(&decoder->in);
    frame_decoder_reset(decoder);
}

void frame_decoder_reset(struct frame_decoder *decoder)
{
    buf_clear(&decoder->in);
    decoder->at = 0;
    decoder->error[0] = 0;
    decoder->bad = false;
}

uint8_t *frame_decoder_reserve(struct frame_decoder *decoder, size_t size)
{
    struct buf *in = &decoder->in;

    /* What is left is at most part of one frame; it moves to the front only when it must. */
    if (decoder->at == in->size)
        buf_clear(in);
    else if (in->capacity - in->size < size)
        buf_consume(in, decoder->at);
    else
        return in->data + in->size;
    decoder->at = 0;
    return buf_reserve(in, size);
}

void frame_decoder_commit(struct frame_decoder *decoder, size_t size)
{
    CHECK(size <= decoder->in.capacity - decoder->in.size);
    decoder->in.size += size;
}

static err check_header(struct frame_decoder *decoder, uint32_t length, const uint8_t *p)
{
    if (length < FRAME_HEADER_SIZE - LENGTH_SIZE) {
        snprintf(decoder->error, sizeof decoder->error, "frame length %u is below %u", length,
                 FRAME_HEADER_SIZE - LENGTH_SIZE);
        return ERR_CORRUPT;
    }
    if (p[4] == 0 || p[4] >= FRAME_KIND_END) {
        snprintf(decoder->error, sizeof decoder->error, "frame kind %u is unknown", p[4]);
        return ERR_CORRUPT;
    }
    if (load_u16(p + 22) != 0) {
        snprintf(decoder->error, sizeof decoder->error, "frame reserved field is %u, not 0",
                 load_u16(p + 22));
        return ERR_CORRUPT;
    }
    if (length - (FRAME_HEADER_SIZE - LENGTH_SIZE) > decoder->body_max) {
        snprintf(decoder->error, sizeof decoder->error, "frame body of %u bytes; the limit is %u",
                 length - (FRAME_HEADER_SIZE - LENGTH_SIZE), decoder->body_max);
        return ERR_TOO_LARGE;
    }
    return ERR_OK;
}

err frame_decoder_next(struct frame_decoder *decoder, struct frame *ret_frame)
{
    size_t left = decoder->in.size - decoder->at;

    if (decoder->bad)
        return ERR_CORRUPT;
    if (left < FRAME_HEADER_SIZE)
        return ERR_NEED;
    const uint8_t *p = decoder->in.data + decoder->at;
    uint32_t length = load_u32(p);
    err e = check_header(decoder, length, p);
    if (e != ERR_OK) {
        decoder->bad = true;
        return e;
    }
    if (left - LENGTH_SIZE < length)
        return ERR_NEED;
    ret_frame->kind = p[4];
    ret_frame->priority = p[5];
    ret_frame->method = load_u16(p + 6);
    ret_frame->request_id = load_u64(p + 8);
    ret_frame->deadline_ms = load_u32(p + 16);
    ret_frame->status = load_u16(p + 20);
    memcpy(ret_frame->trace, p + 24, FRAME_TRACE_SIZE);
    ret_frame->body =
        (struct slice){ p + FRAME_HEADER_SIZE, length - (FRAME_HEADER_SIZE - LENGTH_SIZE) };
    decoder->at += LENGTH_SIZE + length;
    return ERR_OK;
}

void hello_encode(struct buf *out, const struct hello *hello)
{
    buf_put_u16(out, hello->protocol_version);
    buf_put_u8(out, hello->role);
    buf_put_u64(out, hello->replica_id);
    buf_put_bytes(out, slice_from_text(hello->cluster_id));
    buf_put_bytes(out, slice_from_text(hello->name));
    buf_put_u64(out, hello->life);
    buf_put_u32(out, hello->abilities);
}

/* Text that may go to a log: printable ASCII. */
static bool take_text(struct slice from, char ret_text[HELLO_TEXT_SIZE_MAX + 1])
{
    for (size_t i = 0; i < from.size; i++) {
        if (from.data[i] < 0x20 || from.data[i] > 0x7e)
            return false;
        ret_text[i] = (char)from.data[i];
    }
    ret_text[from.size] = 0;
    return true;
}

err hello_decode(struct slice body, struct hello *ret_hello)
{
    struct reader reader = reader_from(body);

    ret_hello->protocol_version = read_u16(&reader);
    ret_hello->role = read_u8(&reader);
    ret_hello->replica_id = read_u64(&reader);
    struct slice cluster = read_bytes(&reader, HELLO_TEXT_SIZE_MAX);
    struct slice name = read_bytes(&reader, HELLO_TEXT_SIZE_MAX);
    ret_hello->life = 0;
    if (!reader.bad && reader_left(&reader) > 0)
        ret_hello->life = read_u64(&reader);
    ret_hello->abilities = 0;
    if (!reader.bad && reader_left(&reader) > 0)
        ret_hello->abilities = read_u32(&reader);
    if (reader.bad || ret_hello->role == 0 || ret_hello->role >= ROLE_END)
        return ERR_CORRUPT;
    if (!take_text(cluster, ret_hello->cluster_id) || !take_text(name, ret_hello->name))
        return ERR_CORRUPT;
    return ERR_OK;
}
