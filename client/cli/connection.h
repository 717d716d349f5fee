/* connection: how verbs reach a router: --endpoint, --key, --ca and --deadline-ms. */
#ifndef CLIENT_CLI_CONNECTION_H
#define CLIENT_CLI_CONNECTION_H

#include "client/cli/arguments.h"
#include "client/sdk/client.h"

/* `endpoint` is one URL, as --endpoint may name several. ERR_INVALID: used wrongly, which was told
 * on standard error. */
NODISCARD err connection_new(const struct arguments *arguments, const char *endpoint,
                             struct client **ret_client);

#endif
