/*
 * h2_frames: writes HTTP/2 frames, right or wrong, for fuzz targets and their seeds. Header blocks
 * are literals without indexing (RFC 7541 section 6.2.2), so that they need no state.
 */
#ifndef TESTS_FUZZ_H2_FRAMES_H
#define TESTS_FUZZ_H2_FRAMES_H

#include "runtime/base/buf.h"

enum h2_type {
    H2_DATA,
    H2_HEADERS,
    H2_PRIORITY,
    H2_RST_STREAM,
    H2_SETTINGS,
    H2_PUSH_PROMISE,
    H2_PING,
    H2_GOAWAY,
    H2_WINDOW_UPDATE,
    H2_CONTINUATION
};
#define H2_END_STREAM  1u
#define H2_END_HEADERS 4u

struct h2_frame {
    uint8_t type;
    uint8_t flags;
    uint32_t stream;
    struct slice payload;
};

void h2_put_preface(struct buf *out);
/* The payload's first 16 MiB; the length field is right. */
void h2_put_frame(struct buf *out, const struct h2_frame *frame);
/* One field of a header block. */
void h2_put_field(struct buf *out, struct slice name, struct slice value);
/* The pseudo headers of a POST to `path`, and its content type. */
void h2_put_post(struct buf *out, struct slice path, struct slice content_type);

#endif
