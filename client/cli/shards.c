#include "client/cli/shards.h"

#define PAGES_MAX 64

json_t *shards_read(const struct arguments *arguments, int *ret_code)
{
    json_t *shards = json_array();
    const char *cursor = "";
    json_t *page = NULL;

    for (int i = 0; i < PAGES_MAX && cursor != NULL; i++) {
        json_t *next = call_json(arguments, "AdminService/ListShards",
                                 json_pack("{s:s}", "cursor", cursor), ret_code);
        json_decref(page);
        page = next;
        if (page == NULL)
            break;
        json_array_extend(shards, json_object_get(page, "shards"));
        cursor = json_string_value(json_object_get(page, "nextCursor"));
    }
    json_decref(page);
    return shards;
}
