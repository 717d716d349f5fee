/*
 * http_server: listens, owns the connections and their time limits, starts and stops. HTTP/1.1 and
 * HTTP/2 on one port, plain or TLS. Knows nothing of RPC, which sits on top. For runtime/http and
 * runtime/rpc.
 */
#ifndef RUNTIME_HTTP_HTTP_SERVER_H
#define RUNTIME_HTTP_HTTP_SERVER_H

#include "runtime/http/http_state.h"

/* ERR_INVALID: the address; ERR_IO: it cannot be listened on, and the log says why. */
NODISCARD err http_server_init(struct http_server *server, const struct http_server_config *config);
/* After on_stopped. Every exchange must have been answered. */
void http_server_deinit(struct http_server *server);
uint16_t http_server_port(const struct http_server *server);
void http_server_set_tls(struct http_server *server, struct tls_config *tls);
/* Takes no more: no connection, and no request beyond those that have begun. */
void http_server_drain(struct http_server *server);
/* After http_server_drain: whether every request is answered, and every answer is with its client,
 * down to what the kernel keeps for it. */
bool http_server_is_drained(const struct http_server *server);
void http_server_stop(struct http_server *server, void (*on_stopped)(void *user), void *user);

#endif
