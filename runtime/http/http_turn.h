/*
 * http_turn: what one connection may have of a round of the loop: requests that are looked at, and
 * bytes of answers that are encrypted. So one request never waits for all of a crowd's, nor a short
 * answer for the whole of a long one. Private to runtime/http.
 */
#ifndef RUNTIME_HTTP_HTTP_TURN_H
#define RUNTIME_HTTP_HTTP_TURN_H

#include "runtime/http/http_state.h"

/* A round begins. */
void http_turn_begin(struct http_server *server);
/* Whether a connection that has had `had` requests in this round leaves its others for the next. */
bool http_turn_is_over(struct http_server *server, uint64_t had);
/* It waits for a round in which it may go on, behind those that wait already. */
void http_turn_wait(struct http_conn *conn);
/* It waits no more; also if it did not. */
void http_turn_leave(struct http_conn *conn);
/* The next that may go on in this round, which waits no more; NULL: no other may. */
struct http_conn *http_turn_next(struct http_server *server);
/* The next plain bytes of a connection to encrypt; some wait. They stay until http_turn_end. */
struct slice http_turn_take(struct http_conn *conn);
/* They are encrypted. */
void http_turn_end(struct http_conn *conn);

#endif
