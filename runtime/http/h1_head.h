/*
 * h1_head: finds the end of an HTTP/1.1 head in received bytes, and refuses what parsers are known
 * to read differently, before llhttp sees it: folded lines, bare CR or LF, blanks before a colon,
 * ambiguous lengths (RFC 9112 sections 2.2, 5 and 6.3). Private to runtime/http.
 */
#ifndef RUNTIME_HTTP_H1_HEAD_H
#define RUNTIME_HTTP_H1_HEAD_H

#include "runtime/http/http_exchange.h"

enum h1_head { H1_HEAD_PARTIAL, H1_HEAD_WHOLE, H1_HEAD_BAD };

/* @ret_size  with H1_HEAD_WHOLE: bytes up to and including the empty line. */
enum h1_head h1_head_scan(struct slice bytes, size_t *ret_size);
/* Host, Content-Length and Transfer-Encoding of a parsed head. NULL, or what is wrong with it. */
const char *h1_head_check(const struct http_exchange *exchange);
/* A field's value in the whole lines of a head that may be cut short, too long or malformed. For
 * the answer to such a head, and for nothing else. False: it is not there. */
bool h1_head_find(struct slice head, const char *name, struct slice *ret_value);
/* Follows a chunked body as strictly as RFC 9112 section 7.1 has it, since llhttp takes any two
 * bytes for the line end behind a chunk's data. Zeroed is the start. */
struct h1_chunks {
    enum h1_chunk_state {
        CHUNK_SIZE_FIRST, /* The first digit of a size. */
        CHUNK_SIZE,
        CHUNK_EXTENSION,
        CHUNK_SIZE_LF,
        CHUNK_DATA,
        CHUNK_DATA_CR,
        CHUNK_DATA_LF,
        CHUNK_TRAILER_FIRST, /* A trailer's first byte, or the end's CR. */
        CHUNK_TRAILER,
        CHUNK_TRAILER_LF,
        CHUNK_END_LF,
        CHUNK_END
    } state;
    uint64_t left; /* Of the chunk. */
};
/* Takes bytes up to the body's end; *ret_used of them. False: malformed. */
bool h1_chunks_scan(struct h1_chunks *chunks, struct slice bytes, size_t *ret_used);
/* Splits a request target into path and query. False: not one of ours. */
bool h1_head_set_target(struct http_exchange *exchange, struct slice target);

#endif
