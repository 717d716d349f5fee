/*
 * gzip: messages to gzip (RFC 1952) and back, by zlib. For untrusted input: the caller says how
 * much may come out, and nothing is made beyond that. Does no I/O; knows no protocol.
 *
 * zlib's two states (40 KiB to unpack, 270 KiB to pack) are made on first use and used again for
 * each message, so they cost nothing where nothing is packed. One gzip a thread.
 */
#ifndef RUNTIME_CODEC_GZIP_H
#define RUNTIME_CODEC_GZIP_H

#include "runtime/base/buf.h"

struct z_stream_s;

/* A zeroed one is valid. */
struct gzip {
    struct z_stream_s *inflater;
    struct z_stream_s *deflater;
};

void gzip_deinit(struct gzip *gzip);

/*
 * Appends to `out` what `packed` holds: exactly one gzip member, at most 4 GiB of it.
 *
 * ERR_TOO_LARGE: it holds more than `size_max`; found out by unpacking one byte beyond it.
 * ERR_INVALID: not one whole member; *ret_why is a static text that says what is wrong. On error
 * `out` is as before, its capacity aside.
 */
NODISCARD err gzip_decode(struct gzip *gzip, struct slice packed, size_t size_max, struct buf *out,
                          const char **ret_why);

/* Appends `plain` packed, for speed rather than size. False: it would not be smaller; `out` is as
 * before, its capacity aside. */
bool gzip_encode(struct gzip *gzip, struct slice plain, struct buf *out);

#endif
