/*
 * http_waiting: the bytes that wait to be sent: counted for each connection, for the server, and
 * for its budget; and which clients are too slow to read them. For runtime/http and runtime/rpc.
 */
#ifndef RUNTIME_HTTP_HTTP_WAITING_H
#define RUNTIME_HTTP_HTTP_WAITING_H

#include "runtime/http/http_state.h"

#define STRANGER_BYTES_FREE   4096u
#define SLOW_READER_BYTES_MIN 65536u

/* The exchanges' `out` grew or shrank by so much. */
void http_waiting_grew(struct http_conn *conn, size_t size);
void http_waiting_shrank(struct http_conn *conn, size_t size);
/* Of `out`, what TLS made of it, and with libuv. */
size_t http_waiting_of(const struct http_conn *conn);
/* After `out` or `sending` changed: counts http_waiting_of for the server. */
void http_waiting_count(struct http_conn *conn);
/* The client took so much. */
void http_waiting_drained(struct http_conn *conn, size_t size);
/* The connection is closed: what waited is sent no more. */
void http_waiting_forget(struct http_conn *conn);
/* A request on it had a valid key: it waits as no stranger's any more. */
void http_waiting_prove(struct http_conn *conn);

/* Answers fill half of the memory that all connections have for them: a connection that holds more
 * than an equal part, and took next to nothing for a second, is closed, so that others are not
 * refused for its sake. Once they fill all of it, its time to read is over. Those that had no valid
 * key yet have an eighth of it together: past that, one of them is closed that holds more than
 * STRANGER_BYTES_FREE. */
bool http_waiting_is_slow(const struct http_conn *conn);
/* Whether there is room for a long answer to a caller who may have shown no key. */
bool http_waiting_fits(const struct http_exchange *exchange, size_t size);

#endif
