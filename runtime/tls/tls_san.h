/* tls_san: the alternative names of a certificate (RFC 5280 section 4.2.1.6). */
#ifndef RUNTIME_TLS_TLS_SAN_H
#define RUNTIME_TLS_TLS_SAN_H

#include <stdbool.h>

#include "runtime/base/buf.h"

struct mbedtls_x509_crt;

/* One alternative name of a certificate, as it stands there: any bytes. */
struct tls_san {
    bool is_uri; /* Else a DNS name. */
    struct slice text;
};

/* DNS names and URIs, `max` at most; how many there are. Borrowed from the certificate; NULL has
 * none. */
size_t tls_sans_of(const struct mbedtls_x509_crt *crt, struct tls_san *ret_sans, size_t max);

#endif
