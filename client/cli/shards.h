/* shards: every shard as AdminService.ListShards tells it, all pages in one array. */
#ifndef CLIENT_CLI_SHARDS_H
#define CLIENT_CLI_SHARDS_H

#include "client/cli/output.h"

/* Never NULL; the caller's to decref. *ret_code is not 0 when a page could not be had. */
json_t *shards_read(const struct arguments *arguments, int *ret_code);

#endif
