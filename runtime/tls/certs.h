/*
 * certs: a certificate authority of the cluster's own and certificates for its processes, for
 * development and for clusters without an issuer. EC P-256, valid as client and as server
 * (DESIGN section 11). Blocks; not for event loops.
 *
 * Files: <directory>/ca.crt, ca.key, <name>.crt, <name>.key; PEM, keys readable by the owner only.
 * Idempotent: what is there and valid for another CERTS_RENEW_DAYS stays untouched.
 */
#ifndef RUNTIME_TLS_CERTS_H
#define RUNTIME_TLS_CERTS_H

#include "runtime/tls/tls_config.h"

#define CERTS_CA_DAYS       3650u
#define CERTS_LEAF_DAYS     397u
#define CERTS_RENEW_DAYS    30u /* Renewed when less than this is left. */
#define CERTS_SAN_COUNT_MAX 32u
#define CERTS_NAME_SIZE_MAX 63u
#define CERTS_PATH_SIZE     512u

/* Makes the directory if needed (mode 0700) and the CA. *ret_made: false if it was there.
 * ERR_IO, ERR_INVALID (the files there are no usable CA; they are not overwritten). */
NODISCARD err certs_make_ca(const char *directory, const char *cluster, bool *ret_made,
                            struct tls_error *ret_error);

struct certs_leaf {
    const char *name; /* File stem and common name: letters, digits, '-', '_', '.'. */
    /* NULL-terminated DNS names or IP addresses beside localhost, 127.0.0.1 and ::1; or NULL. */
    const char *const *sans;
    const char *uri; /* One URI among the names: its identity. NULL: none. */
    /* For tests. 0, 0: from an hour ago, for CERTS_LEAF_DAYS. */
    uint64_t not_before_ms;
    uint64_t not_after_ms;
};

/* Under the CA of the directory; made again when absent, expiring, of another CA, or lacking one
 * of the names. ERR_NOT_FOUND: no CA there. */
NODISCARD err certs_make_leaf(const char *directory, const struct certs_leaf *leaf, bool *ret_made,
                              struct tls_error *ret_error);

#endif
