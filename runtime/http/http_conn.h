/*
 * http_conn: one connection: its socket, TLS, which HTTP it speaks, and what is read and written.
 * For runtime/http and runtime/rpc.
 *
 *     read -> (TLS) -> detect -> protocol->receive -> handlers
 *     answer -> out, or protocol->fill -> once a round: (TLS) -> one write
 */
#ifndef RUNTIME_HTTP_HTTP_CONN_H
#define RUNTIME_HTTP_HTTP_CONN_H

#include "runtime/http/http_state.h"

#define HTTP_FULL_REST_MS_MAX 250u

/* Takes one connection off the listener. */
void http_conn_accept(struct http_server *server);
/* Takes over a connected socket. */
void http_conn_adopt(struct http_server *server, int fd);
/* Something waits in `out` or in the HTTP/2 session: write at the end of the round. */
void http_conn_mark_dirty(struct http_conn *conn);
void http_conn_flush(struct http_conn *conn);
/* Cancels what is under way and closes; the memory goes once libuv has let go. */
void http_conn_close(struct http_conn *conn);
/* Sends what waits, then closes, letting the client read to the end. */
void http_conn_close_soon(struct http_conn *conn);
/* The handshake of the connection that has this place may begin. For handshakes.h. */
void http_conn_shake(void *server, struct turnstile_place *place);
/* Enforces the time limits. */
void http_conn_tick(struct http_conn *conn, uint64_t now_ms);
/* Reads on, after what was held back has been parsed. */
void http_conn_resume(struct http_conn *conn);
/* Reads no more for so long; 0: until the other connections have had their turn. */
void http_conn_rest(struct http_conn *conn, uint32_t rest_ms);
/* Its rest is over, and its turn has come: http_turn_next. */
void http_conn_go_on(struct http_conn *conn);
/* The exchange's caller may call, by a valid key: its connection keeps its place, and is not put
 * out for one of which this is not known. */
void http_exchange_prove(const struct http_exchange *exchange);
/*
 * The request is about to be refused, since the process takes no call at all now. Its connection
 * rests for `retry_after_ms`, HTTP_FULL_REST_MS_MAX at most: a caller that asks again at once would
 * take processor time from those whose calls are under way. A connection of HTTP/2 never rests so:
 * it has many callers.
 */
void http_exchange_full(const struct http_exchange *exchange, uint32_t retry_after_ms);
/*
 * The request is about to be refused, since its answer has no room now. If its client has sent
 * others behind it (a proxy, whose connection has many callers, does not), they rest as long, and
 * are under way one by one until one is answered.
 */
void http_exchange_lacks_room(const struct http_exchange *exchange, uint32_t retry_after_ms);

#endif
