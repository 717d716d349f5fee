/* http_peer: who is at the other end, as text. */
#ifndef RUNTIME_HTTP_HTTP_PEER_H
#define RUNTIME_HTTP_HTTP_PEER_H

#include <uv.h>

#define HTTP_PEER_SIZE 64u

/* "10.0.0.1:5123", "[::1]:5123"; "?:0" when the connection is gone. */
void http_peer_print(const uv_tcp_t *tcp, char ret[HTTP_PEER_SIZE]);

#endif
