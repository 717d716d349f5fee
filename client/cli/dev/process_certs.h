/* process_certs: certificates of a cluster's processes, each with its identity. Blocks. */
#ifndef CLIENT_CLI_DEV_PROCESS_CERTS_H
#define CLIENT_CLI_DEV_PROCESS_CERTS_H

#include "runtime/tls/certs.h"

struct process_cert {
    const char *directory; /* Of the CA, and where it is made. */
    const char *cluster;
    const char *who;
};

/* The certificate of `who` (certs_make_leaf):
 *   ROLE       ROLE.crt, holdfast://<cluster>/ROLE/ *: the role alone, with any name
 *   ROLE/NAME  NAME.crt, holdfast://<cluster>/ROLE/NAME; a client's NAME may have ?scopes=a+b
 *   other      that file, without an identity: for a public port
 * ret_file: its stem. ERR_INVALID also for what is no identity; ret_error says why. */
NODISCARD err process_certs_make(const struct process_cert *cert, bool *ret_made,
                                 char ret_file[CERTS_NAME_SIZE_MAX + 1],
                                 struct tls_error *ret_error);

#endif
