#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"

static struct shard_reply *reply_add(struct shard_out *out)
{
    if (out->reply_count == out->reply_capacity) {
        out->reply_capacity = out->reply_capacity > 0 ? out->reply_capacity * 2 : 16;
        out->replies = mem_realloc(out->replies, sizeof *out->replies * out->reply_capacity);
    }
    struct shard_reply *reply = &out->replies[out->reply_count++];
    *reply = (struct shard_reply){ .offset = (uint32_t)out->bytes.size };
    return reply;
}

bool reply_reserve(struct shard *shard, struct call *call, enum budget_kind kind, size_t size)
{
    if (shard->answers == NULL)
        return true;
    if (call->reserved > 0)
        budget_commit(shard->answers, call->reserved, size);
    else if (!budget_reserve(shard->answers, kind, size))
        return false;
    call->reserved = (uint32_t)size;
    return true;
}

/* What was reserved for the call becomes what its reply holds. */
static uint32_t hold(struct shard *shard, struct call *call, size_t size)
{
    uint32_t reserved = call->reserved;

    call->reserved = 0;
    if (shard->answers == NULL)
        return 0;
    budget_commit(shard->answers, reserved, size);
    return (uint32_t)size;
}

void reply_bytes(struct shard *shard, struct call *call, enum reply_status status,
                 struct slice body, struct shard_out *out)
{
    if (call->id != 0) {
        struct shard_reply *reply = reply_add(out);
        reply->call = call->id;
        reply->status = status;
        reply->size = (uint32_t)body.size;
        reply->held = hold(shard, call, body.size);
        buf_append(&out->bytes, body.data, body.size);
    }
    call_free(shard, call);
}

void reply_event_refused(struct shard_out *out, uint64_t id, const struct refusal *refusal)
{
    struct shard_reply *reply = reply_add(out);

    reply->call = id;
    reply->status = REPLY_REFUSED;
    refusal_encode(refusal, &out->bytes);
    reply->size = (uint32_t)out->bytes.size - reply->offset;
}

/*
 * What was proposed may yet commit under the new owner, a pending steal or transfer may yet be
 * decided there, and a session whose profile is being read is granted already: the outcome is
 * unknown to the caller, who repeats it there under the same op_id. The rest was not carried out
 * here.
 */
static bool is_in_the_log(const struct call *call)
{
    return call->place == CALL_PROPOSED || call->place == CALL_STEALING ||
           call->place == CALL_SENDING || call->place == CALL_ANSWERING ||
           call->place == CALL_FETCHING;
}

void reply_refusal(struct shard *shard, struct call *call, const struct refusal *refusal,
                   struct shard_out *out)
{
    CHECK(call->place == CALL_PROPOSED || !is_in_the_log(call));
    if (call->id != 0)
        reply_event_refused(out, call->id, refusal);
    call_free(shard, call);
}

void reply_elsewhere(struct shard *shard, struct call *call, enum reply_status status,
                     struct shard_out *out)
{
    if (call->id != 0) {
        struct shard_reply *reply = reply_add(out);
        reply->call = call->id;
        reply->status = status;
        reply->owner = rep_owner(shard->rep);
        reply->epoch = rep_epoch(shard->rep);
    }
    call_free(shard, call);
}

void reply_deposed(struct shard *shard, struct shard_out *out)
{
    for (int place = 0; place < CALL_PLACES; place++) {
        struct call *call;
        while ((call = shard->calls[place].first) != NULL)
            reply_elsewhere(shard, call, is_in_the_log(call) ? REPLY_UNKNOWN : REPLY_NOT_OWNER,
                            out);
    }
}
