/*
 * http_answer: how the handlers answer an exchange. Each call may free it, as http_exchange.h says.
 * For runtime/http and runtime/rpc.
 */
#ifndef RUNTIME_HTTP_HTTP_ANSWER_H
#define RUNTIME_HTTP_HTTP_ANSWER_H

#include "runtime/http/http_exchange.h"

/* The whole answer. Everything in it is copied, but for a large body that is given. */
void http_answer(struct http_exchange *exchange, const struct http_answer *answer);
void http_answer_begin(struct http_exchange *exchange, const struct http_answer *answer);
/* False: more than stream_bytes_max wait now; on_writable will be called. */
bool http_answer_send(struct http_exchange *exchange, struct slice bytes);
void http_answer_end(struct http_exchange *exchange, const struct http_field *trailers,
                     size_t trailer_count);

#endif
