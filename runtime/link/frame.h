/*
 * frame: the one wire format between processes (DESIGN section 9). Pure: encodes into a buffer
 * and decodes from one; no I/O, safe on any bytes whatever.
 *
 *   offset 0 u32 length of all that follows     16 u32 deadline_ms or took_us
 *          4 u8 kind   5 u8 priority            20 u16 status or asker
 *                                               22 u16 0 (reserved, must be 0)
 *          6 u16 method   8 u64 request_id      24 16 bytes trace id    40 body
 * Integers are little-endian.
 */
#ifndef RUNTIME_LINK_FRAME_H
#define RUNTIME_LINK_FRAME_H

#include "runtime/base/buf.h"
#include "runtime/identity/identity.h"

#define FRAME_HEADER_SIZE   40u
#define FRAME_BODY_SIZE_MAX 4194304u /* Default limit of a body. */
#define FRAME_TRACE_SIZE    16u

enum frame_kind {
    FRAME_HELLO = 1, /* The first one, both ways; see struct hello. */
    FRAME_REQUEST,
    FRAME_RESPONSE,
    FRAME_CANCEL,  /* The caller of request_id lost interest. */
    FRAME_MESSAGE, /* One way; method and body are the user's. */
    FRAME_PING,
    FRAME_PONG,
    FRAME_PART,   /* The next bytes of the other stream of frames: large answers (out_queue.h). */
    FRAME_CREDIT, /* request_id more bytes of such parts may come. */
    FRAME_KIND_END
};

/* Status of a RESPONSE: 0 is success, others are the user's (holdfast.v1.ErrorCode); from 0xff00
 * on they belong to the transport. */
#define FRAME_STATUS_OK         0u
#define FRAME_STATUS_RESERVED   0xff00u
#define FRAME_STATUS_FORBIDDEN  0xfffdu /* Not for a process of that role; not carried out. */
#define FRAME_STATUS_NO_METHOD  0xfffeu /* No handler of such calls here. */
#define FRAME_STATUS_OVERLOADED 0xffffu /* Too many open requests; it was not carried out. */

struct frame {
    uint8_t kind;
    uint8_t priority; /* 0 is ordinary; greater is more urgent. For the user's queues. */
    uint16_t method;
    union {
        uint16_t status; /* RESPONSE. */
        uint16_t
            asker; /* REQUEST: stands for whose key asks; 0: not told (runtime/cluster/wire.h). */
    };
    union {
        uint32_t deadline_ms; /* REQUEST: what is left of the caller's time; 0: no deadline. */
        uint32_t took_us;     /* RESPONSE: from the request's arrival to this; 0: not told. */
    };
    uint64_t request_id;
    /* REQUEST, and of the RESPONSE to it; a MESSAGE may name that of one request it is about.
     * Zeros: none. Nothing is decided by it. */
    uint8_t trace[FRAME_TRACE_SIZE];
    struct slice body; /* Decoded: borrowed from the decoder until its next call. */
};

/* Appends. body.size <= UINT32_MAX - header (CHECK); limits are the caller's. */
void frame_encode(struct buf *out, const struct frame *frame);

/* Takes bytes in pieces of any size and gives frames. Bodies are not copied: they lie in its
 * buffer, which never holds more than one frame and one read. */
struct frame_decoder {
    struct buf in;
    size_t at; /* Consumed up to here. */
    uint32_t body_max;
    char error[96]; /* Why the stream is bad. */
    bool bad;
};

void frame_decoder_init(struct frame_decoder *decoder, uint32_t body_size_max);
void frame_decoder_deinit(struct frame_decoder *decoder);
/* Forgets all bytes: a new connection. */
void frame_decoder_reset(struct frame_decoder *decoder);
/* Where to read at least `size` bytes to; then say how many came. Invalidates earlier bodies. */
uint8_t *frame_decoder_reserve(struct frame_decoder *decoder, size_t size);
void frame_decoder_commit(struct frame_decoder *decoder, size_t size);
/* ERR_OK a frame; ERR_NEED more bytes; ERR_TOO_LARGE, ERR_CORRUPT: the stream is bad for good,
 * `error` names field, value and limit. */
NODISCARD err frame_decoder_next(struct frame_decoder *decoder, struct frame *ret_frame);

/* ---- the body of HELLO ---- */
#define LINK_PROTOCOL_VERSION 1u
#define HELLO_TEXT_SIZE_MAX   64u

/* What not every program of the cluster can yet, while it is upgraded. Numbers are never reused. */
enum hello_ability {
    HELLO_TAKES_CALLERS = 1u << 0,  /* A node: requests may name who asked (caller_name.h). */
    HELLO_TAKES_PARTS = 1u << 1,    /* Of every link: PART and CREDIT. */
    HELLO_TAKES_DOCUMENTS = 1u << 2 /* A node: messages of the mergeable class. */
};

struct hello {
    uint16_t protocol_version;
    uint8_t role;
    uint64_t replica_id; /* 0: none (routers, clients). */
    uint64_t life;       /* Greater after each start of the process; 0: an older program's. */
    uint32_t abilities;  /* Of enum hello_ability; an older program's are 0. */
    char cluster_id[HELLO_TEXT_SIZE_MAX + 1];
    char name[HELLO_TEXT_SIZE_MAX + 1];
};

void hello_encode(struct buf *out, const struct hello *hello);
/* ERR_CORRUPT: malformed. A newer version's extra fields are ignored. */
NODISCARD err hello_decode(struct slice body, struct hello *ret_hello);

#endif
