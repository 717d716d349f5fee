#include "node/core/player/session.h"

#include <string.h>

#include "runtime/base/check.h"

bool session_is_live(const struct session *session, const struct meta *meta)
{
    return session->state != SESSION_FREE && !meta_is_expired(meta, session->incarnation);
}

bool session_is_current(const struct session *session, const struct meta *meta,
                        struct incarnation incarnation, uint64_t fence)
{
    if (!session_is_live(session, meta) || session->fence != fence)
        return false;
    return incarnation_compare(session->incarnation, incarnation) == 0;
}

bool session_has_claim(const struct session *session)
{
    return !incarnation_is_none(session->claim.incarnation);
}

uint64_t session_due_ms(const struct session *session)
{
    uint64_t due_ms = 0;

    if (session->state == SESSION_GRANTED)
        due_ms = session->acquired_at_ms + SESSION_UNUSED_MS;
    if (session_has_claim(session) && (due_ms == 0 || session->claim.deadline_ms < due_ms))
        due_ms = session->claim.deadline_ms;
    return due_ms;
}

uint32_t session_claim_left_ms(const struct session *session, uint64_t now_unix_ms)
{
    if (!session_has_claim(session) || session->claim.deadline_ms <= now_unix_ms)
        return 0;
    uint64_t left_ms = session->claim.deadline_ms - now_unix_ms;
    return left_ms < SESSION_GRACE_MS_MAX ? (uint32_t)left_ms : SESSION_GRACE_MS_MAX;
}

void session_encode(const struct session *session, struct buf *out)
{
    const struct claim *claim = &session->claim;
    bool claimed = session_has_claim(session);

    buf_put_u8(out, (uint8_t)((uint8_t)session->state | (claimed ? 0x80u : 0)));
    buf_put_u64(out, session->fence);
    if (session->state != SESSION_FREE) {
        buf_put_u64(out, session->incarnation.generation);
        buf_put_u64(out, session->incarnation.revision);
        buf_put_u64(out, session->acquired_at_ms);
        buf_put_u64(out, session->timer_ms);
    }
    if (claimed) {
        CHECK(session->state != SESSION_FREE);
        buf_put_u64(out, claim->incarnation.generation);
        buf_put_u64(out, claim->incarnation.revision);
        buf_put_u64(out, claim->deadline_ms);
        buf_put_bytes(out, claim->op_id);
        buf_put_u32(out, claim->attempt);
        buf_append(out, claim->payload.bytes, sizeof claim->payload.bytes);
    }
}

static void claim_decode(struct reader *reader, struct claim *claim)
{
    claim->incarnation.generation = read_u64(reader);
    claim->incarnation.revision = read_u64(reader);
    claim->deadline_ms = read_u64(reader);
    claim->op_id = read_bytes(reader, OP_ID_BYTES_MAX);
    claim->attempt = read_u32(reader);
    struct slice payload = read_raw(reader, sizeof claim->payload.bytes);
    if (payload.size == sizeof claim->payload.bytes)
        memcpy(claim->payload.bytes, payload.data, payload.size);
}

void session_decode(struct reader *reader, struct session *ret_session)
{
    struct session session;
    uint8_t first = read_u8(reader);

    memset(&session, 0, sizeof session);
    if ((first & 0x7f) > SESSION_HELD)
        reader->bad = true;
    session.state = (enum session_state)(first & 0x7f);
    session.fence = read_u64(reader);
    if (session.state != SESSION_FREE) {
        session.incarnation.generation = read_u64(reader);
        session.incarnation.revision = read_u64(reader);
        session.acquired_at_ms = read_u64(reader);
        session.timer_ms = read_u64(reader);
    }
    if ((first & 0x80) != 0) {
        claim_decode(reader, &session.claim);
        if (session.state == SESSION_FREE || !session_has_claim(&session))
            reader->bad = true; /* Against a holder only, and by somebody. */
    }
    *ret_session = session;
}
