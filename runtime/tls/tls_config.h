/*
 * tls_config: keys, certificates and rules of TLS (mbedtls 2.28, so TLS 1.2), shared by many
 * sessions. Immutable: to reload certificates make a new one and use it for new sessions; old
 * sessions hold the old one (DESIGN section 11).
 *
 * Inside a cluster both sides demand a certificate of the cluster's own CA, and that alone is
 * membership: host names are not compared unless server_name is given.
 */
#ifndef RUNTIME_TLS_TLS_CONFIG_H
#define RUNTIME_TLS_TLS_CONFIG_H

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
    /* NULL or the names offered or accepted, in order of preference. A server that shares none
     * with a client that offers some refuses it. */
    const char *alpn[TLS_ALPN_COUNT_MAX + 1];
    /* Client: compare with the DNS names of the server's certificate and send as SNI; or NULL. */
    const char *server_name;
};

struct tls_config;

/* Copies everything it needs. ERR_INVALID: a field is missing or unreadable PEM, or key and
 * certificate do not belong together; ERR_IO: a file cannot be read; ERR_TOO_LARGE. ret_error
 * names the field, the file and the reason. */
NODISCARD err tls_config_new(const struct tls_options *options, struct tls_config **ret_config,
                             struct tls_error *ret_error);
/* One more owner; any thread. Returns its argument. */
struct tls_config *tls_config_hold(struct tls_config *config);
/* One owner less; the last one frees. Any thread. NULL is allowed. */
void tls_config_free(struct tls_config *config);

enum tls_side tls_config_side(const struct tls_config *config);
/* The PEM texts, NUL-terminated, for libraries that bring their own TLS (nng, curl). NULL when
 * absent. Valid as long as the config. */
const char *tls_config_ca_pem(const struct tls_config *config);
const char *tls_config_cert_pem(const struct tls_config *config);
const char *tls_config_key_pem(const struct tls_config *config);
/* Milliseconds since 1970 at which the own certificate expires; 0: none. For warnings. */
uint64_t tls_config_expires_ms(const struct tls_config *config);

#endif
