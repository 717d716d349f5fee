/*
 * admin_client: many calls to one router over one connection, for verbs that ask much. What fails
 * is the caller's to tell: nothing is printed here.
 */
#ifndef CLIENT_CLI_CONSOLE_ADMIN_CLIENT_H
#define CLIENT_CLI_CONSOLE_ADMIN_CLIENT_H

#include <jansson.h>

#include "client/cli/console/arguments.h"

#define ADMIN_WHY_BYTES 256u

struct admin_client;

/* `endpoint` is copied. ERR_INVALID: used wrongly, which was said on standard error. */
NODISCARD err admin_client_new(const struct arguments *arguments, const char *endpoint,
                               struct admin_client **ret_client);
/* NULL is allowed. */
void admin_client_free(struct admin_client *client);

/* The answer, to decref, or NULL: then admin_client_why says why. Takes `request`. */
json_t *admin_call(struct admin_client *client, const char *method, json_t *request);
/* Of the last call that failed. */
const char *admin_client_why(const struct admin_client *client);
/* How long the last call took. */
uint32_t admin_client_took_ms(const struct admin_client *client);

/* All pages of `method`, whose answers have their rows under `rows`. Fewer than there are if a page
 * fails (*ret_whole is false) or there are too many pages. Takes `request`. Never NULL. */
json_t *admin_list(struct admin_client *client, const char *method, const char *rows,
                   json_t *request, bool *ret_whole);

#endif
