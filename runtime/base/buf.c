#include "runtime/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define BUF_CAPACITY_MIN 64u

struct slice slice_from_text(const char *text)
{
    return (struct slice){ (const uint8_t *)text, strlen(text) };
}

bool slice_equal(struct slice a, struct slice b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool slice_begins_with(struct slice bytes, struct slice prefix)
{
    return bytes.size >= prefix.size &&
           (prefix.size == 0 || memcmp(bytes.data, prefix.data, prefix.size) == 0);
}

int slice_compare(struct slice a, struct slice b)
{
    size_t shorter = a.size < b.size ? a.size : b.size;
    int order = shorter > 0 ? memcmp(a.data, b.data, shorter) : 0;

    if (order != 0)
        return order;
    return (a.size > b.size) - (a.size < b.size);
}

void text_copy(char *ret_text, size_t capacity, struct slice text)
{
    CHECK(capacity > 0);
    size_t used = text.size < capacity ? text.size : capacity - 1;

    if (used > 0)
        memcpy(ret_text, text.data, used);
    ret_text[used] = 0;
}

void buf_deinit(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf){ 0 };
}

void buf_clear(struct buf *buf)
{
    buf->size = 0;
}

uint8_t *buf_reserve(struct buf *buf, size_t extra)
{
    size_t needed = buf->size + extra;

    CHECK(needed >= buf->size);
    if (needed > buf->capacity) {
        size_t capacity = buf->capacity > 0 ? buf->capacity : BUF_CAPACITY_MIN;
        while (capacity < needed)
            capacity *= 2;
        buf->data = mem_realloc(buf->data, capacity);
        buf->capacity = capacity;
    }
    return buf->data + buf->size;
}

void buf_append(struct buf *buf, const void *data, size_t size)
{
    if (size == 0)
        return;
    memcpy(buf_reserve(buf, size), data, size);
    buf->size += size;
}

void buf_consume(struct buf *buf, size_t size)
{
    CHECK(size <= buf->size);
    if (size == 0)
        return;
    buf->size -= size;
    memmove(buf->data, buf->data + size, buf->size);
}

struct slice buf_slice(const struct buf *buf)
{
    return (struct slice){ buf->data, buf->size };
}

/* Written out: so the compiler makes one store of it, which it does not of a loop. */
void store_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

void store_u32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
    p[3] = (uint8_t)(v >> 24);
}

void store_u64(uint8_t *p, uint64_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
    p[3] = (uint8_t)(v >> 24);
    p[4] = (uint8_t)(v >> 32);
    p[5] = (uint8_t)(v >> 40);
    p[6] = (uint8_t)(v >> 48);
    p[7] = (uint8_t)(v >> 56);
}

uint16_t load_u16(const uint8_t *p)
{
    return (uint16_t)((unsigned)p[0] | (unsigned)p[1] << 8);
}

uint32_t load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t load_u64(const uint8_t *p)
{
    return (uint64_t)load_u32(p) | (uint64_t)load_u32(p + 4) << 32;
}

void buf_put_text(struct buf *buf, const char *text)
{
    buf_append(buf, text, strlen(text));
}

void buf_put_u8(struct buf *buf, uint8_t v)
{
    *buf_reserve(buf, 1) = v;
    buf->size++;
}

void buf_put_u16(struct buf *buf, uint16_t v)
{
    uint8_t bytes[2] = { (uint8_t)v, (uint8_t)(v >> 8) };
    buf_append(buf, bytes, sizeof bytes);
}

void buf_put_u32(struct buf *buf, uint32_t v)
{
    store_u32(buf_reserve(buf, 4), v);
    buf->size += 4;
}

void buf_put_u64(struct buf *buf, uint64_t v)
{
    store_u64(buf_reserve(buf, 8), v);
    buf->size += 8;
}

void buf_put_u16_be(struct buf *buf, uint16_t v)
{
    uint8_t bytes[2] = { (uint8_t)(v >> 8), (uint8_t)v };
    buf_append(buf, bytes, sizeof bytes);
}

void buf_put_u32_be(struct buf *buf, uint32_t v)
{
    buf_put_u16_be(buf, (uint16_t)(v >> 16));
    buf_put_u16_be(buf, (uint16_t)v);
}

void buf_put_compact(struct buf *buf, uint64_t v)
{
    uint8_t *at = buf_reserve(buf, 10);
    size_t size = 0;

    for (; v >= 0x80; v >>= 7)
        at[size++] = (uint8_t)(v | 0x80);
    at[size++] = (uint8_t)v;
    buf->size += size;
}

void buf_put_bytes(struct buf *buf, struct slice bytes)
{
    CHECK(bytes.size <= UINT32_MAX);
    buf_put_u32(buf, (uint32_t)bytes.size);
    buf_append(buf, bytes.data, bytes.size);
}

void buf_put_short(struct buf *buf, struct slice bytes)
{
    CHECK(bytes.size <= UINT8_MAX);
    buf_put_u8(buf, (uint8_t)bytes.size);
    buf_append(buf, bytes.data, bytes.size);
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    CHECK(length >= 0);
    char *at = (char *)buf_reserve(buf, (size_t)length + 1);
    va_start(args, format);
    vsnprintf(at, (size_t)length + 1, format, args);
    va_end(args);
    buf->size += (size_t)length;
}

struct reader reader_from(struct slice bytes)
{
    static const uint8_t nothing[1] = { 0 };
    const uint8_t *at = bytes.size > 0 ? bytes.data : nothing;
    return (struct reader){ at, at + bytes.size, false };
}

size_t reader_left(const struct reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

struct slice read_raw(struct reader *reader, size_t size)
{
    if (reader->bad || size > reader_left(reader)) {
        reader->bad = true;
        return (struct slice){ reader->end, 0 };
    }
    struct slice bytes = { reader->at, size };
    reader->at += size;
    return bytes;
}

uint8_t read_u8(struct reader *reader)
{
    struct slice b = read_raw(reader, 1);
    return b.size == 1 ? b.data[0] : 0;
}

uint16_t read_u16(struct reader *reader)
{
    struct slice b = read_raw(reader, 2);
    return b.size == 2 ? (uint16_t)((unsigned)b.data[0] | (unsigned)b.data[1] << 8) : 0;
}

uint32_t read_u32(struct reader *reader)
{
    struct slice b = read_raw(reader, 4);
    return b.size == 4 ? load_u32(b.data) : 0;
}

uint64_t read_u64(struct reader *reader)
{
    struct slice b = read_raw(reader, 8);
    return b.size == 8 ? load_u64(b.data) : 0;
}

uint16_t read_u16_be(struct reader *reader)
{
    struct slice b = read_raw(reader, 2);
    return b.size == 2 ? (uint16_t)((unsigned)b.data[0] << 8 | (unsigned)b.data[1]) : 0;
}

uint64_t read_u64_be(struct reader *reader)
{
    struct slice b = read_raw(reader, 8);
    uint64_t v = 0;
    for (size_t i = 0; i < b.size; i++)
        v = v << 8 | b.data[i];
    return v;
}

uint64_t read_compact(struct reader *reader)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = read_u8(reader);
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte >= 0x80)
            continue;
        if ((byte == 0 && shift > 0) || (shift == 63 && byte > 1))
            break;
        return v;
    }
    reader->bad = true;
    return 0;
}

struct slice read_bytes(struct reader *reader, size_t size_max)
{
    uint32_t size = read_u32(reader);
    if (size > size_max)
        reader->bad = true;
    return read_raw(reader, size);
}

err reader_finish(const struct reader *reader)
{
    return reader->bad || reader->at != reader->end ? ERR_CORRUPT : ERR_OK;
}
