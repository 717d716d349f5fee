#include "client/cli/console/connection.h"

#include <stdio.h>

#include "client/cli/console/options.h"

err connection_new(const struct arguments *arguments, const char *endpoint,
                   enum connection_form form, struct client **ret_client)
{
    struct client_options options = { .endpoint = endpoint,
                                      .api_key = text_or_null(option_text(arguments, &option_key)),
                                      .ca_file = text_or_null(option_text(arguments, &option_ca)),
                                      .plain_json = form == CONNECTION_PLAIN };

    if (option_number(arguments, &option_deadline_ms, 1, DEADLINE_MS_MAX, &options.deadline_ms) !=
        ERR_OK)
        return ERR_INVALID;
    if (client_new(&options, ret_client) != ERR_OK) {
        fprintf(stderr, "holdfast: --endpoint names no router\n");
        return ERR_INVALID;
    }
    return ERR_OK;
}
