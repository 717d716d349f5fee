#include "node/core/shard/answer_sizes.h"

#include "node/core/codec/proto_scan.h"
#include "runtime/base/hash.h"

/* Fields that every read numbers alike, and of which its answer's size depends. */
#define FIELD_ID        1u
#define FIELD_PAGE_SIZE 10u
#define FIELD_INCLUDE   12u

static uint64_t name_of(uint32_t method, struct slice request)
{
    struct reader reader = reader_from(request);
    struct proto_field field;
    uint64_t name = method;

    while (proto_scan_next(&reader, &field)) {
        bool counts = field.number == FIELD_ID ||
                      (field.number >= FIELD_PAGE_SIZE && field.number <= FIELD_INCLUDE);
        if (!counts)
            continue;
        name = name * 0x9e3779b97f4a7c15u + field.number;
        name ^= field.is_bytes ? hash_u64(field.bytes) : field.varint;
    }
    return name;
}

void answer_sizes_note(struct answer_sizes *sizes, uint32_t method, struct slice request,
                       size_t bytes)
{
    uint64_t read = name_of(method, request);

    sizes->places[read % ANSWER_SIZES_COUNT].read = read;
    sizes->places[read % ANSWER_SIZES_COUNT].bytes =
        bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

size_t answer_sizes_find(const struct answer_sizes *sizes, uint32_t method, struct slice request)
{
    uint64_t read = name_of(method, request);
    uint64_t place = read % ANSWER_SIZES_COUNT;

    return sizes->places[place].read == read ? sizes->places[place].bytes : 0;
}
