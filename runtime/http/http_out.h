/*
 * http_out: the plain bytes that a connection has to send: a buffer, and behind it large bodies
 * that were taken over as they are, since to copy megabytes holds up the loop. For runtime/http.
 */
#ifndef RUNTIME_HTTP_HTTP_OUT_H
#define RUNTIME_HTTP_HTTP_OUT_H

#include "runtime/http/http_state.h"

/* Whether its body is taken over: it is large, and not much smaller than its buffer. */
bool http_out_takes(const struct http_answer *answer);
/* Where the next bytes are appended. */
struct buf *http_out_end(struct http_conn *conn);
/* Appends `bytes`. Large ones are taken over, which leaves the buffer empty. */
void http_out_give(struct http_conn *conn, struct buf *bytes);
/* The first bytes to send, all in one buffer: conn->out. It is empty if there are none. */
struct buf *http_out_first(struct http_conn *conn);
size_t http_out_bytes(const struct http_conn *conn);
void http_out_deinit(struct http_conn *conn);

#endif
