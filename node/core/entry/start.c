#include "node/core/entry/start.h"

#include <string.h>

#include "runtime/base/check.h"

static void members_encode(const uint64_t *members, uint32_t count, struct buf *out)
{
    CHECK(count <= MEMBERS_MAX);
    buf_put_u8(out, (uint8_t)count);
    for (uint32_t i = 0; i < count; i++)
        buf_put_u64(out, members[i]);
}

static err members_decode(struct reader *reader, uint64_t *ret_members, uint32_t *ret_count)
{
    uint64_t before = 0;
    uint32_t count = read_u8(reader);

    if (reader->bad || count > MEMBERS_MAX)
        return ERR_CORRUPT;
    for (uint32_t i = 0; i < count; i++) {
        ret_members[i] = read_u64(reader);
        if (reader->bad || ret_members[i] <= before)
            return ERR_CORRUPT;
        before = ret_members[i];
    }
    *ret_count = count;
    return ERR_OK;
}

void start_encode(const struct start *start, struct buf *out)
{
    const struct membership *m = &start->membership;

    buf_put_u64(out, start->base_index);
    buf_append(out, start->base_hash.bytes, sizeof start->base_hash.bytes);
    vector_encode(&start->base, out);
    buf_put_u64(out, m->config);
    members_encode(m->members, m->count, out);
    members_encode(m->new_members, m->new_count, out);
    buf_put_u64(out, start->generation);
    buf_put_u32(out, start->apply_version);
    if (m->learner != 0)
        buf_put_u64(out, m->learner);
}

err start_decode(struct slice bytes, struct start *ret_start)
{
    struct reader reader = reader_from(bytes);
    struct start start = { .base_index = read_u64(&reader) };
    struct membership *m = &start.membership;
    struct slice hash = read_raw(&reader, sizeof start.base_hash.bytes);

    if (reader.bad)
        return ERR_CORRUPT;
    memcpy(start.base_hash.bytes, hash.data, sizeof start.base_hash.bytes);
    if (vector_decode(&reader, &start.base) != ERR_OK)
        return ERR_CORRUPT;
    m->config = read_u64(&reader);
    if (members_decode(&reader, m->members, &m->count) != ERR_OK || m->count == 0)
        return ERR_CORRUPT;
    if (members_decode(&reader, m->new_members, &m->new_count) != ERR_OK)
        return ERR_CORRUPT;
    start.generation = read_u64(&reader);
    start.apply_version = read_u32(&reader);
    if (!reader.bad && reader_left(&reader) > 0) {
        m->learner = read_u64(&reader);
        if (m->learner == 0 || membership_has(m, m->learner))
            return ERR_CORRUPT;
    }
    if (reader_finish(&reader) != ERR_OK || vector_index(&start.base) != start.base_index)
        return ERR_CORRUPT;
    *ret_start = start;
    return ERR_OK;
}

static bool list_has(const uint64_t *members, uint32_t count, uint64_t replica)
{
    for (uint32_t i = 0; i < count; i++)
        if (members[i] == replica)
            return true;
    return false;
}

bool membership_has(const struct membership *membership, uint64_t replica)
{
    return list_has(membership->members, membership->count, replica) ||
           list_has(membership->new_members, membership->new_count, replica);
}

bool membership_names(const struct membership *membership, uint64_t replica)
{
    return membership->learner == replica || membership_has(membership, replica);
}

static bool majority(uint32_t bits, uint32_t count)
{
    uint32_t held = (uint32_t)__builtin_popcount(bits & ((1u << count) - 1u));

    return held >= count / 2 + 1;
}

bool membership_quorum(const struct membership *membership, uint32_t acks, uint32_t new_acks)
{
    if (membership->count == 0 || !majority(acks, membership->count))
        return false;
    return membership->new_count == 0 || majority(new_acks, membership->new_count);
}
