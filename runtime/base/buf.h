/*
 * buf: a growable byte buffer, a bounds-checked writer into it, and a bounds-checked reader over
 * bytes. Integers on the wire and on disk are little-endian; keys are big-endian (`_be`), so that
 * bytes sort like numbers.
 */
#ifndef RUNTIME_BASE_BUF_H
#define RUNTIME_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/err.h"

/* Borrowed bytes. */
struct slice {
    const uint8_t *data;
    size_t size;
};

struct buf {
    uint8_t *data;
    size_t size;
    size_t capacity;
};

#define SLICE_LITERAL(s) ((struct slice){ (const uint8_t *)(s), sizeof(s) - 1 })

struct slice slice_from_text(const char *text);
/* For fields of text of protobuf-c messages, which want text that may be changed and never change
 * it: the text is borrowed. */
static inline char *text_lend(const char *text)
{
    return (char *)(uintptr_t)text;
}
/* For options that may be left out: NULL for an empty text. */
static inline const char *text_or_null(const char *text)
{
    return text[0] != 0 ? text : NULL;
}
/* Copies what fits in front of a NUL; `capacity` counts the NUL and is not 0. */
void text_copy(char *ret_text, size_t capacity, struct slice text);
bool slice_equal(struct slice a, struct slice b);
bool slice_begins_with(struct slice bytes, struct slice prefix);
/* Orders like memcmp, a shorter prefix first. */
int slice_compare(struct slice a, struct slice b);

/* Bytes that are not in one piece yet: `put` appends them, `size` of them. */
struct buf_source {
    void (*put)(const void *user, struct buf *out);
    const void *user;
    size_t size;
};

/* A zeroed struct buf is a valid empty one. deinit leaves it so again. */
void buf_deinit(struct buf *buf);
void buf_clear(struct buf *buf);
/* Room for `extra` more bytes; returns where they begin. */
uint8_t *buf_reserve(struct buf *buf, size_t extra);
void buf_append(struct buf *buf, const void *data, size_t size);
/* Removes the first `size` bytes. size <= buf->size. */
void buf_consume(struct buf *buf, size_t size);
struct slice buf_slice(const struct buf *buf);

void buf_put_u8(struct buf *buf, uint8_t v);
void buf_put_u16(struct buf *buf, uint16_t v);
void buf_put_u32(struct buf *buf, uint32_t v);
void buf_put_u64(struct buf *buf, uint64_t v);
void buf_put_u16_be(struct buf *buf, uint16_t v);
void buf_put_u32_be(struct buf *buf, uint32_t v);
/* In as few bytes as the number needs: seven bits each, the lowest first. It is protobuf's varint.
 */
void buf_put_compact(struct buf *buf, uint64_t v);
/* u32 length, then the bytes. */
void buf_put_bytes(struct buf *buf, struct slice bytes);
/* u8 length, then the bytes: at most UINT8_MAX of them (CHECK). */
void buf_put_short(struct buf *buf, struct slice bytes);
/* The text without its NUL. */
void buf_put_text(struct buf *buf, const char *text);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

uint16_t load_u16(const uint8_t *p);
uint32_t load_u32(const uint8_t *p);
uint64_t load_u64(const uint8_t *p);
void store_u16(uint8_t *p, uint16_t v);
void store_u32(uint8_t *p, uint32_t v);
void store_u64(uint8_t *p, uint64_t v);

/* A reader never reads past its end: the first short read sets `bad`, and every later read
 * returns zero or an empty slice. Check `bad` once, at the end. */
struct reader {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
};

struct reader reader_from(struct slice bytes);
size_t reader_left(const struct reader *reader);
uint8_t read_u8(struct reader *reader);
uint16_t read_u16(struct reader *reader);
uint32_t read_u32(struct reader *reader);
uint64_t read_u64(struct reader *reader);
uint16_t read_u16_be(struct reader *reader);
uint64_t read_u64_be(struct reader *reader);
/* Borrowed from what the reader reads. */
struct slice read_raw(struct reader *reader, size_t size);
/* What buf_put_compact wrote; any longer form of the same number is bad. */
uint64_t read_compact(struct reader *reader);
/* u32 length, then the bytes; longer than `size_max` is bad. */
struct slice read_bytes(struct reader *reader, size_t size_max);
/* ERR_CORRUPT when a read ran short or bytes are left over. */
NODISCARD err reader_finish(const struct reader *reader);

#endif
