/* shards: every shard as AdminService.ListShards tells it, all pages in one array. */
#ifndef CLIENT_CLI_CONSOLE_SHARDS_H
#define CLIENT_CLI_CONSOLE_SHARDS_H

#include "client/cli/console/output.h"

/* The caller's to decref. NULL: a page could not be had, and *ret_code is the exit code. */
json_t *shards_read(const struct arguments *arguments, int *ret_code);

#endif
