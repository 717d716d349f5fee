/* http_peer: who is at the other end, as text, and what it has not taken yet. */
#ifndef RUNTIME_HTTP_HTTP_PEER_H
#define RUNTIME_HTTP_HTTP_PEER_H

#include <uv.h>

#define HTTP_PEER_SIZE 64u

/* "10.0.0.1:5123", "[::1]:5123"; "?:0" when the connection is gone. */
void http_peer_print(const uv_tcp_t *tcp, char ret[HTTP_PEER_SIZE]);
/* Bytes with the kernel of which the other end has not said that it has them. */
size_t http_peer_owed(const uv_tcp_t *tcp);

#endif
