#include "idl/as_of.h"

#include <string.h>

#include "runtime/base/base64.h"
#include "runtime/base/check.h"

#define CHECK_BYTES 3u
#define BYTES_MAX   48u /* Above what four compact numbers and the checksum take. */

static const char prefix[] = "c1.";

/* FNV-1a of 32 bits, the lower 24. */
static void put_check(struct slice bytes, uint8_t ret_check[CHECK_BYTES])
{
    uint32_t hash = 0x811c9dc5u;

    for (size_t i = 0; i < bytes.size; i++)
        hash = (hash ^ bytes.data[i]) * 0x01000193u;
    for (unsigned i = 0; i < CHECK_BYTES; i++)
        ret_check[i] = (uint8_t)(hash >> 8 * i);
}

void as_of_print(const struct as_of *as_of, char ret_text[AS_OF_TEXT_SIZE])
{
    struct buf bytes = { 0 };
    struct buf text = { 0 };
    uint8_t check[CHECK_BYTES];

    ret_text[0] = 0;
    if (as_of->epoch == 0 || as_of->owner == 0 || as_of->counter == 0)
        return;
    buf_put_compact(&bytes, as_of->shard);
    buf_put_compact(&bytes, as_of->epoch);
    buf_put_compact(&bytes, as_of->owner);
    buf_put_compact(&bytes, as_of->counter);
    put_check(buf_slice(&bytes), check);
    buf_append(&bytes, check, sizeof check);
    base64_encode_url(buf_slice(&bytes), &text);
    CHECK(sizeof prefix + text.size <= AS_OF_TEXT_SIZE);
    memcpy(ret_text, prefix, sizeof prefix - 1);
    memcpy(ret_text + sizeof prefix - 1, text.data, text.size);
    ret_text[sizeof prefix - 1 + text.size] = 0;
    buf_deinit(&bytes);
    buf_deinit(&text);
}

err as_of_parse(struct slice text, struct as_of *ret_as_of)
{
    uint8_t bytes[BYTES_MAX];
    uint8_t check[CHECK_BYTES];
    size_t size;

    if (text.size < sizeof prefix || text.size >= AS_OF_TEXT_SIZE ||
        memcmp(text.data, prefix, sizeof prefix - 1) != 0)
        return ERR_INVALID;
    struct slice rest = { text.data + sizeof prefix - 1, text.size - (sizeof prefix - 1) };
    if (base64_size_max(rest.size) > sizeof bytes || !base64_decode(rest, bytes, &size) ||
        size <= CHECK_BYTES)
        return ERR_INVALID;
    struct slice numbers = { bytes, size - CHECK_BYTES };
    put_check(numbers, check);
    if (memcmp(check, bytes + numbers.size, sizeof check) != 0)
        return ERR_INVALID;
    struct reader reader = reader_from(numbers);
    uint64_t shard = read_compact(&reader);
    struct as_of as_of = { .epoch = read_compact(&reader) };
    as_of.owner = read_compact(&reader);
    as_of.counter = read_compact(&reader);
    if (reader_finish(&reader) != ERR_OK || shard > UINT32_MAX || as_of.epoch == 0 ||
        as_of.owner == 0 || as_of.counter == 0)
        return ERR_INVALID;
    as_of.shard = (uint32_t)shard;
    *ret_as_of = as_of;
    return ERR_OK;
}
