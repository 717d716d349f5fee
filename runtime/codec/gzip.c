#include "runtime/codec/gzip.h"

#include <stdlib.h>

#define ZLIB_CONST
#include <zlib.h>

#include "runtime/base/check.h"

#define WINDOW_BITS_GZIP (15 + 16) /* zlib: with gzip's header and trailer. */
#define MEMORY_LEVEL     8
#define CHUNK_BYTES      65536u

static struct z_stream_s *stream_new(void)
{
    return mem_zalloc(sizeof(struct z_stream_s));
}

void gzip_deinit(struct gzip *gzip)
{
    if (gzip->inflater != NULL)
        (void)inflateEnd(gzip->inflater);
    if (gzip->deflater != NULL)
        (void)deflateEnd(gzip->deflater);
    free(gzip->inflater);
    free(gzip->deflater);
    *gzip = (struct gzip){ 0 };
}

static struct z_stream_s *inflater_get(struct gzip *gzip)
{
    if (gzip->inflater != NULL) {
        CHECK(inflateReset(gzip->inflater) == Z_OK);
        return gzip->inflater;
    }
    gzip->inflater = stream_new();
    CHECK(inflateInit2(gzip->inflater, WINDOW_BITS_GZIP) == Z_OK);
    return gzip->inflater;
}

static struct z_stream_s *deflater_get(struct gzip *gzip)
{
    if (gzip->deflater != NULL) {
        CHECK(deflateReset(gzip->deflater) == Z_OK);
        return gzip->deflater;
    }
    gzip->deflater = stream_new();
    CHECK(deflateInit2(gzip->deflater, Z_BEST_SPEED, Z_DEFLATED, WINDOW_BITS_GZIP, MEMORY_LEVEL,
                       Z_DEFAULT_STRATEGY) == Z_OK);
    return gzip->deflater;
}

/* One step; *ret_result is zlib's. Takes no more than one byte beyond `size_max`. */
static void inflate_some(struct z_stream_s *stream, size_t size_max, struct buf *out,
                         int *ret_result)
{
    size_t room = size_max - (size_t)stream->total_out;

    room = room < CHUNK_BYTES ? room + 1 : CHUNK_BYTES;
    stream->next_out = buf_reserve(out, room);
    stream->avail_out = (uInt)room;
    *ret_result = inflate(stream, Z_NO_FLUSH);
    out->size += room - stream->avail_out;
}

static const char *why_after(const struct z_stream_s *stream)
{
    if (stream->avail_in >= 2 && stream->next_in[0] == 0x1F && stream->next_in[1] == 0x8B)
        return "a second gzip member behind the first";
    return "more bytes behind the gzip stream";
}

err gzip_decode(struct gzip *gzip, struct slice packed, size_t size_max, struct buf *out,
                const char **ret_why)
{
    struct z_stream_s *stream = inflater_get(gzip);
    size_t before = out->size;
    int result = Z_OK;

    CHECK(packed.size <= UINT32_MAX);
    stream->next_in = packed.data;
    stream->avail_in = (uInt)packed.size;
    while (result == Z_OK && stream->total_out <= size_max)
        inflate_some(stream, size_max, out, &result);
    if (stream->total_out <= size_max && result == Z_STREAM_END && stream->avail_in == 0)
        return ERR_OK;
    out->size = before;
    if (stream->total_out > size_max)
        return ERR_TOO_LARGE;
    CHECK(result != Z_MEM_ERROR); /* As anywhere else where memory is out. */
    if (result == Z_STREAM_END)
        *ret_why = why_after(stream);
    else if (result == Z_BUF_ERROR)
        *ret_why = "the gzip stream ends too soon";
    else
        *ret_why = "not a gzip stream, or a corrupt one";
    return ERR_INVALID;
}

bool gzip_encode(struct gzip *gzip, struct slice plain, struct buf *out)
{
    struct z_stream_s *stream;

    if (plain.size < 2 || plain.size > UINT32_MAX)
        return false;
    stream = deflater_get(gzip);
    stream->next_in = plain.data;
    stream->avail_in = (uInt)plain.size;
    stream->next_out = buf_reserve(out, plain.size - 1);
    stream->avail_out = (uInt)(plain.size - 1);
    if (deflate(stream, Z_FINISH) != Z_STREAM_END)
        return false;
    out->size += (size_t)stream->total_out;
    return true;
}
