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
/* Splits a request target into path and query. False: not one of ours. */
bool h1_head_set_target(struct http_exchange *exchange, struct slice target);

#endif
