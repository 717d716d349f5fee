/* h1: HTTP/1.1 and 1.0 (RFC 9112), with llhttp. Private to runtime/http. */
#ifndef RUNTIME_HTTP_H1_H
#define RUNTIME_HTTP_H1_H

#include "runtime/http/http_state.h"

extern const struct http_protocol h1_protocol;

#endif
