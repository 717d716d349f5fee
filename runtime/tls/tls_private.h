/* tls_private: what the files of this folder share; mbedtls stays behind it. */
#ifndef RUNTIME_TLS_TLS_PRIVATE_H
#define RUNTIME_TLS_TLS_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <mbedtls/ssl.h>
#include <mbedtls/ssl_cache.h>
#include <mbedtls/ssl_ticket.h>

#include "runtime/base/err.h"
#include "runtime/tls/tls_options.h"

struct tls_config {
    atomic_uint owners;
    enum tls_side side;
    mbedtls_ssl_config conf;
    mbedtls_x509_crt ca;
    mbedtls_x509_crt cert;
    mbedtls_pk_context key;
    struct buf ca_pem; /* With the NUL that mbedtls wants counted. */
    struct buf cert_pem;
    struct buf key_pem;
    const char *alpn[TLS_ALPN_COUNT_MAX + 1];
    struct buf alpn_text; /* What the pointers of alpn point into. */
    char *server_name;
    mbedtls_ssl_ticket_context tickets; /* Of resumption, as are these. */
    mbedtls_ssl_cache_context cache;
    uint64_t resumed; /* Tickets and sessions that were taken. */
};

/* The kernel's generator: no state, so any thread may use it. For mbedtls's f_rng. */
int tls_random(void *unused, unsigned char *ret_bytes, size_t size);

/* Fills ret_error like printf; cut off at its size. */
void tls_error_set(struct tls_error *ret_error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* mbedtls's own words for one of its codes. */
struct tls_error tls_error_of(int code);

/* The whole file and a NUL after it. ERR_IO, ERR_TOO_LARGE (TLS_PEM_SIZE_MAX), ERR_NOT_FOUND. */
NODISCARD err tls_file_read(const char *path, struct buf *ret_text, struct tls_error *ret_error);

uint64_t tls_time_ms(const mbedtls_x509_time *time);

/* Whether mbedtls does AES by this processor's own instructions here: then AES is faster than
 * ChaCha20, and takes the same time whatever the key and the text are. */
bool tls_has_fast_aes(void);

#endif
