/* h2: HTTP/2 (RFC 9113), with nghttp2. Private to runtime/http. */
#ifndef RUNTIME_HTTP_H2_H
#define RUNTIME_HTTP_H2_H

#include "runtime/http/http_state.h"

extern const struct http_protocol h2_protocol;

#endif
