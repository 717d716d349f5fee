#include "node/core/mergeable/key.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

err merge_key_new(struct slice entity, struct slice name, struct merge_key **ret_key)
{
    if (entity.size == 0 || entity.size > MERGE_ENTITY_BYTES_MAX || name.size == 0 ||
        name.size > MERGE_NAME_BYTES_MAX)
        return ERR_INVALID;
    struct merge_key *key = mem_alloc(sizeof *key + entity.size + name.size);

    *key = (struct merge_key){ .refs = 1,
                               .entity_size = (uint32_t)entity.size,
                               .name_size = (uint32_t)name.size };
    memcpy(key->bytes, entity.data, entity.size);
    memcpy(key->bytes + entity.size, name.data, name.size);
    *ret_key = key;
    return ERR_OK;
}

struct merge_key *merge_key_ref(struct merge_key *key)
{
    key->refs++;
    return key;
}

void merge_key_unref(struct merge_key *key)
{
    if (key == NULL)
        return;
    CHECK(key->refs > 0);
    if (--key->refs == 0)
        free(key);
}

struct slice merge_key_entity(const struct merge_key *key)
{
    return (struct slice){ key->bytes, key->entity_size };
}

struct slice merge_key_name(const struct merge_key *key)
{
    return (struct slice){ key->bytes + key->entity_size, key->name_size };
}

int merge_key_compare(const struct merge_key *a, const struct merge_key *b)
{
    if (a == b)
        return 0;
    if (a == NULL || b == NULL)
        return a == NULL ? -1 : 1;
    int order = slice_compare(merge_key_entity(a), merge_key_entity(b));

    return order != 0 ? order : slice_compare(merge_key_name(a), merge_key_name(b));
}

void merge_key_encode(const struct merge_key *key, struct buf *out)
{
    buf_put_u8(out, (uint8_t)key->entity_size);
    buf_append(out, key->bytes, key->entity_size);
    buf_put_u8(out, (uint8_t)key->name_size);
    buf_append(out, key->bytes + key->entity_size, key->name_size);
}

err merge_key_decode(struct reader *reader, struct merge_key **ret_key)
{
    struct slice entity = read_raw(reader, read_u8(reader));
    struct slice name = read_raw(reader, read_u8(reader));

    if (reader->bad || merge_key_new(entity, name, ret_key) != ERR_OK)
        return ERR_CORRUPT;
    return ERR_OK;
}
