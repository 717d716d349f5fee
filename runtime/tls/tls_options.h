/* tls_options: what a TLS configuration is made of, and why one cannot be made. */
#ifndef RUNTIME_TLS_TLS_OPTIONS_H
#define RUNTIME_TLS_TLS_OPTIONS_H

#include "runtime/base/buf.h"

#define TLS_PEM_SIZE_MAX   1048576u /* Bytes of one PEM file. */
#define TLS_ALPN_COUNT_MAX 8u
#define TLS_ERROR_SIZE     256u

/* Why something failed, for a log line. Empty when nothing did. */
struct tls_error {
    char text[TLS_ERROR_SIZE];
};

enum tls_side { TLS_CLIENT, TLS_SERVER };

/* Either a path or the PEM text itself; both empty: absent. */
struct tls_pem {
    const char *path;
    struct slice text;
};

struct tls_options {
    enum tls_side side;
    struct tls_pem ca;   /* Whose certificates the peer must show. */
    struct tls_pem cert; /* Own certificate (chain). */
    struct tls_pem key;
    /* The peer must prove itself by a certificate under `ca`. A client without it trusts anyone
     * and is for tests only; a public server sets it to false. */
    bool verify_peer;
    /* Server: clients that come back resume their session (RFC 5077 tickets, and a cache of
     * sessions), for a fraction of the cost. Not with verify_peer: a certificate is then looked at
     * each time. All its sessions must be of one thread. */
    bool resumption;
    /* NULL or the names offered or accepted, in order of preference. A server that shares none
     * with a client that offers some refuses it. */
    const char *alpn[TLS_ALPN_COUNT_MAX + 1];
    /* Client: compare with the DNS names of the server's certificate and send as SNI; or NULL. */
    const char *server_name;
};

#endif
