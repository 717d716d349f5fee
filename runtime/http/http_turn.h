/*
 * http_turn: how much of what waits for a client is encrypted in one round of the loop, so that a
 * short answer never waits for the whole of a long one. Private to runtime/http.
 */
#ifndef RUNTIME_HTTP_HTTP_TURN_H
#define RUNTIME_HTTP_HTTP_TURN_H

#include "runtime/http/http_state.h"

/* A round begins. */
void http_turn_begin(struct http_server *server);
/* The next plain bytes of a connection to encrypt; some wait. They stay until http_turn_end. */
struct slice http_turn_take(struct http_conn *conn);
/* They are encrypted. */
void http_turn_end(struct http_conn *conn);

#endif
