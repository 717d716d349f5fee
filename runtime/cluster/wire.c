#include "runtime/cluster/wire.h"

#define ASKERS 65534u

uint16_t wire_asker(uint64_t name)
{
    return (uint16_t)(WIRE_ASKER_PLAYERS + 1 + (name ^ name >> 32) % ASKERS);
}

void wire_hint_encode(const struct wire_hint *hint, struct buf *out)
{
    buf_put_u64(out, hint->owner);
    buf_put_u64(out, hint->epoch);
}

err wire_hint_decode(struct slice body, struct wire_hint *ret_hint)
{
    if (body.size == 0) {
        *ret_hint = (struct wire_hint){ 0 };
        return ERR_OK;
    }
    if (body.size != WIRE_HINT_SIZE)
        return ERR_CORRUPT;
    struct reader reader = reader_from(body);

    ret_hint->owner = read_u64(&reader);
    ret_hint->epoch = read_u64(&reader);
    return reader_finish(&reader);
}
