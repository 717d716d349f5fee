#include "node/core/rows/blob.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

struct blob *blob_new(struct slice bytes)
{
    CHECK(bytes.size <= STATE_VALUE_BYTES_MAX);
    struct blob *blob = mem_alloc(sizeof *blob + bytes.size);
    blob->refs = 1;
    blob->size = (uint32_t)bytes.size;
    if (bytes.size > 0)
        memcpy(blob->bytes, bytes.data, bytes.size);
    return blob;
}

struct blob *blob_ref(struct blob *blob)
{
    CHECK(blob->refs > 0);
    blob->refs++;
    return blob;
}

void blob_unref(struct blob *blob)
{
    if (blob == NULL)
        return;
    CHECK(blob->refs > 0);
    if (--blob->refs == 0)
        free(blob);
}

void need_add_key(struct need *need, struct slice key)
{
    CHECK(key.size > 0 && key.size <= STATE_KEY_BYTES_MAX);
    buf_put_bytes(&need->keys, key);
    need->key_count++;
}

void need_add_range(struct need *need, const struct state_range *range)
{
    CHECK(range->limit > 0);
    buf_put_bytes(&need->ranges, range->prefix);
    buf_put_bytes(&need->ranges, range->after);
    buf_put_u32(&need->ranges, range->limit);
    need->range_count++;
}

void need_clear(struct need *need)
{
    buf_clear(&need->keys);
    buf_clear(&need->ranges);
    need->key_count = 0;
    need->range_count = 0;
    need->load_generation = 0;
}

void need_deinit(struct need *need)
{
    buf_deinit(&need->keys);
    buf_deinit(&need->ranges);
    *need = (struct need){ 0 };
}
