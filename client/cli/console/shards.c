#include "client/cli/console/shards.h"

json_t *shards_read(const struct arguments *arguments, int *ret_code)
{
    return call_pages(arguments, "AdminService/ListShards", "shards", json_object(), ret_code);
}
