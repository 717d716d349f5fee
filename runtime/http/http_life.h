/*
 * http_life: the life of an exchange on its connection: new, to the handlers, and free again.
 * Private to runtime/http.
 */
#ifndef RUNTIME_HTTP_HTTP_LIFE_H
#define RUNTIME_HTTP_HTTP_LIFE_H

#include "runtime/http/http_state.h"

/* In no connection's list yet. */
struct http_exchange *http_exchange_new(struct http_conn *conn);
/* Back to the free list. Not in any connection's list any more. */
void http_exchange_free(struct http_exchange *exchange);
/* The memory of the free list. */
void http_exchanges_deinit(struct http_server *server);

/* To its connection's exchanges under way, the last, and out of them. */
void http_exchange_add(struct http_exchange *exchange);
void http_exchange_remove(struct http_exchange *exchange);

/* The head is whole. False: it was answered already; over HTTP/1.1 the exchange may be gone. */
bool http_exchange_greet(struct http_exchange *exchange);
/* To the handlers. */
void http_exchange_hand(struct http_exchange *exchange);
void http_exchange_refuse(struct http_exchange *exchange, const struct http_refusal *refusal);
/* The client gave up on this one: tell the handlers if they know of it, else free it. */
void http_exchange_cancel(struct http_exchange *exchange);

#endif
