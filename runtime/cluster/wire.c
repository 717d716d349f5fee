#include "runtime/cluster/wire.h"

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

const char *wire_status_name(uint32_t status)
{
    static const char *const names[WIRE_STATUS_END] = {
        [WIRE_OK] = "ok",
        [WIRE_REFUSED] = "refused",
        [WIRE_UNKNOWN] = "unknown",
        [WIRE_NOT_OWNER] = "not owner",
        [WIRE_UNAVAILABLE] = "unavailable",
    };
    return status < WIRE_STATUS_END ? names[status] : "unknown status";
}
