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

#include "runtime/tls/tls_san.h"
#include "runtime/base/err.h"
#include "runtime/tls/tls_options.h"

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
/* Fills up to `max` of the URIs and DNS names in the own certificate, and returns how many there
 * are, which may be more. Borrowed from the configuration. */
size_t tls_config_own_sans(const struct tls_config *config, struct tls_san *ret_sans, size_t max);
/* Milliseconds since 1970 at which the own certificate expires; 0: none. For warnings. */
uint64_t tls_config_expires_ms(const struct tls_config *config);

#endif
