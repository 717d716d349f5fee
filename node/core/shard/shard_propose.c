/* The way into the log: rep steps, and what is proposed asks for its rows. */
#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"

err shard_rep_step(struct shard *shard, const struct rep_event *event, struct shard_out *out)
{
    err e = rep_step(shard->rep, event, &out->rep);

    if (out->rep.rounds_done > shard->rounds_done) {
        shard->rounds_done = out->rep.rounds_done;
        shard->rounds_index = out->rep.rounds_index;
        shard->rounds_ms = out->rep.rounds_ms;
        shard->rounds_unix_ms = out->rep.rounds_unix_ms;
        shard->stats.rounds++;
    }
    return e;
}

err shard_propose(struct shard *shard, struct slice body, const struct shard_event *event,
                  uint64_t *ret_index, struct shard_out *out)
{
    struct rep_event proposal = {
        .type = REP_PROPOSE,
        .now_ms = event->now_ms,
        .unix_ms = event->unix_ms,
        .kind = ENTRY_OP,
        .body = body,
    };
    if (shard->full[0] != 0)
        return ERR_FULL;
    err e = shard_rep_step(shard, &proposal, out);

    if (e != ERR_OK)
        return e;
    *ret_index = out->rep.proposed_index;
    shard->flush_wanted = true;
    shard->stats.proposed++;
    applier_footprint(shard->applier, body, &shard->need);
    shard_ask_rows(shard, out);
    return ERR_OK;
}

void shard_call_keep_body(struct call *call, struct slice body)
{
    struct op op;

    buf_append(&call->request, body.data, body.size);
    CHECK(op_decode(buf_slice(&call->request), &op) == ERR_OK);
    call->entity = op.entity;
}

bool shard_call_propose(struct shard *shard, struct call *call, const struct shard_event *event,
                        struct shard_out *out)
{
    uint64_t index;
    err e = shard_propose(shard, buf_slice(&call->request), event, &index, out);

    if (e != ERR_OK) {
        /* A steal, or a seal of a transfer, stands in the log already, and may be decided there. */
        bool stands = call->place == CALL_STEALING || call->place == CALL_SENDING;
        reply_elsewhere(shard, call, stands ? REPLY_UNKNOWN : REPLY_NOT_OWNER, out);
        return false;
    }
    call->index = index;
    call_move(shard, call, CALL_PROPOSED);
    return true;
}
