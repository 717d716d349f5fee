/*
 * tls_resumption: short handshakes for clients that come back: tickets, whose keys mbedtls renews
 * by itself, and a cache for clients that take no tickets.
 */
#ifndef RUNTIME_TLS_TLS_RESUMPTION_H
#define RUNTIME_TLS_TLS_RESUMPTION_H

#include "runtime/tls/tls_private.h"

void tls_resumption_init(struct tls_config *config);
/* After the configuration's defaults. ERR_NO_MEMORY. */
NODISCARD err tls_resumption_start(struct tls_config *config);
void tls_resumption_deinit(struct tls_config *config);

static inline uint64_t tls_resumed(const struct tls_config *config)
{
    return config->resumed;
}

#endif
