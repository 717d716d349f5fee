#include "node/io/process/answer_put.h"

#include <inttypes.h>
#include <stdio.h>

#include "node/core/handler/handler.h"
#include "runtime/cluster/wire.h"

#define RETRY_UNREAD_MS 100u

static void answer_refused(struct calls *calls, const struct call_reply *reply,
                           const struct refusal *refusal)
{
    struct buf body = { 0 };

    refusal_encode(refusal, &body);
    (void)!call_answer(calls, reply, WIRE_REFUSED, buf_slice(&body));
    buf_deinit(&body);
}

/* The same would come of asking again: so the router is not to do that. */
static void refuse_large(struct calls *calls, const struct call_reply *reply, size_t bytes)
{
    char limit[24], value[24];

    snprintf(limit, sizeof limit, "%u bytes", FRAME_BODY_SIZE_MAX);
    snprintf(value, sizeof value, "%zu bytes", bytes);
    answer_refused(
        calls, reply,
        &(struct refusal){
            .code = reply->is_outcome ? HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN
                                      : HOLDFAST__V1__ERROR_CODE__ERROR_CODE_TOO_LARGE,
            .message = reply->is_outcome
                           ? "the answer is larger than a node may send; what was done stands"
                           : "the answer is larger than a node may send; ask for less at once",
            .limit = limit,
            .value = value,
        });
}

/* A router that reads its link too slowly for large answers. A read is refused, and not asked again
 * of another node. */
static void refuse_unread(struct calls *calls, const struct call_reply *reply)
{
    static const struct refusal refusal = {
        .code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_THROTTLED,
        .message = "answers on their way to this router fill its link; ask again, or for less",
        .retry_after_ms = RETRY_UNREAD_MS,
    };

    if (reply->is_outcome)
        (void)!call_answer(calls, reply, WIRE_UNKNOWN, (struct slice){ 0 });
    else
        answer_refused(calls, reply, &refusal);
}

enum answer_left answer_put(struct calls *calls, const struct call_reply *reply, uint16_t status,
                            struct slice body)
{
    /* No room ever comes for it, however fast the link is read. */
    err e =
        body.size > FRAME_BODY_SIZE_MAX ? ERR_TOO_LARGE : call_answer(calls, reply, status, body);

    switch (e) {
    case ERR_OK:
        return ANSWER_LEFT;
    case ERR_TOO_LARGE:
        refuse_large(calls, reply, body.size);
        return ANSWER_TOO_LARGE;
    case ERR_FULL:
        refuse_unread(calls, reply);
        return ANSWER_UNREAD;
    default:
        return ANSWER_GONE;
    }
}
