/* connection: how verbs reach a router: --endpoint, --key, --ca and --deadline-ms. */
#ifndef CLIENT_CLI_CONSOLE_CONNECTION_H
#define CLIENT_CLI_CONSOLE_CONNECTION_H

#include "client/cli/console/arguments.h"
#include "client/sdk/client.h"

/* `form`: of the JSON that calls take and give.
 * `endpoint` is one URL, as --endpoint may name several. ERR_INVALID: used wrongly, which was told
 * on standard error. */
enum connection_form { CONNECTION_CANONICAL, CONNECTION_PLAIN };
NODISCARD err connection_new(const struct arguments *arguments, const char *endpoint,
                             enum connection_form form, struct client **ret_client);

#endif
