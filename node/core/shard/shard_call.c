#include "idl/method.h"
#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"

#include "holdfast/v1/session.pb-c.h"

#define THROTTLED_RETRY_MS 50u
/* Disks do not get room by themselves; another node may have the shard by then. */
#define FULL_RETRY_MS 1000u

static void refuse_throttled(struct shard *shard, const struct shard_event *event, const char *what,
                             struct shard_out *out)
{
    struct refusal refusal = { 0 };

    (void)refuse(&shard->arena, &refusal, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_THROTTLED, "",
                 "shard %u has %s; nothing was done", shard->number, what);
    refusal.retry_after_ms = THROTTLED_RETRY_MS;
    reply_event_refused(out, event->call, &refusal);
}

static void refuse_full(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    struct refusal refusal = { 0 };

    (void)refuse(&shard->arena, &refusal, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_THROTTLED, "",
                 "shard %u takes no writes: %s; nothing was done", shard->number, shard->full);
    refusal.retry_after_ms = FULL_RETRY_MS;
    shard->stats.refused_full++;
    reply_event_refused(out, event->call, &refusal);
}

static void reply_event_elsewhere(struct shard *shard, const struct shard_event *event,
                                  struct shard_out *out)
{
    reply_elsewhere(shard, call_new(shard, event), REPLY_NOT_OWNER, out);
}

/* Why an operation was not proposed. */
static void refuse_unproposed(struct shard *shard, const struct shard_event *event, size_t size,
                              err why, struct shard_out *out)
{
    struct refusal refusal = { 0 };

    if (why == ERR_FULL) {
        refuse_throttled(shard, event, "too many operations on their way", out);
    } else if (why == ERR_TOO_LARGE) {
        (void)refuse(&shard->arena, &refusal, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INVALID_ARGUMENT,
                     "request", "the operation has %zu bytes; at most %u fit one log entry", size,
                     ENTRY_BODY_BYTES_MAX);
        reply_event_refused(out, event->call, &refusal);
    } else {
        reply_event_elsewhere(shard, event, out);
    }
}

/* `later`: what was left out of it (shard_yield_deliver). */
static void mutation_begin(struct shard *shard, const struct shard_event *event,
                           struct slice request, struct slice later, struct shard_out *out)
{
    struct refusal refusal = { 0 };
    uint64_t index;

    buf_clear(&shard->scratch);
    applier_set_log(shard->applier, rep_apply_version(shard->rep), rep_epoch(shard->rep));
    const struct applier_asked asked = { event->method, request, event->unix_ms, &shard->arena };
    err e = applier_prepare(shard->applier, &asked, &shard->scratch, &refusal);
    if (e != ERR_OK) {
        shard->stats.refused++;
        reply_event_refused(out, event->call, &refusal);
        return;
    }
    struct slice body = buf_slice(&shard->scratch);
    /* What no entry takes is refused at once. */
    if (body.size <= ENTRY_BODY_BYTES_MAX && shard_yield_begin(shard, event, body))
        return;
    e = shard_propose(shard, body, event, &index, out);
    if (e != ERR_OK) {
        refuse_unproposed(shard, event, body.size, e, out);
        return;
    }
    struct call *call = call_new(shard, event);
    call->index = index;
    buf_append(&call->answer, later.data, later.size);
    if (event->method == METHOD_START_SESSION || event->method == METHOD_RESOLVE_OPERATION)
        shard_call_keep_body(call, body);
}

static void write_begin(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    struct buf later = { 0 };
    struct slice request;

    if (!shard_yield_deliver(shard, event, &request, &later, out))
        mutation_begin(shard, event, request, buf_slice(&later), out);
    buf_deinit(&later);
}

void shard_call_begin(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    const struct method_info *method = method_find(event->method);

    CHECK(method != NULL);
    if (shard->call_count >= shard->limits.waiting_calls_max) {
        refuse_throttled(shard, event, "too many calls waiting", out);
        return;
    }
    if (method->route == METHOD_READ || method->route == METHOD_SHARD ||
        method->route == METHOD_GATHER) {
        shard_read_begin(shard, event, out);
        return;
    }
    CHECK(method->route == METHOD_MUTATION || method->route == METHOD_SHARD_WRITE);
    bool is_policy = event->method == METHOD_APPLY_POLICY;
    if (is_policy ? !shard_serves(shard) : !shard_is_open(shard)) {
        reply_event_elsewhere(shard, event, out);
        return;
    }
    if (shard->full[0] != 0) {
        refuse_full(shard, event, out);
        return;
    }
    /* What its caller was told already stands in the log before the question. */
    if (event->method == METHOD_RESOLVE_OPERATION && shard->lanes.settles.items > 0)
        (void)!shard_settles_log(shard, event, &(uint64_t){ 0 }, out);
    write_begin(shard, event, out);
}

/* Then the tick chooses again: upkeep and erasures get their turn. */
#define DUE_CHAIN_MAX 64u

/* What applier_due has put into `scratch`. */
static void propose_due(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    uint64_t index;

    if (shard_propose(shard, buf_slice(&shard->scratch), event, &index, out) == ERR_OK)
        shard->due_index = index;
}

void shard_propose_due(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    uint64_t next_ms;

    if (!shard_serves(shard) || shard->due_index != 0 || event->now_ms < shard->due_next_ms)
        return;
    shard->due_chain = 0;
    buf_clear(&shard->scratch);
    bool due = applier_due(shard->applier, event->unix_ms, &shard->scratch, &next_ms);
    /* A wall clock may be set back meanwhile. */
    shard->due_next_ms = event->now_ms;
    if (next_ms > event->unix_ms)
        shard->due_next_ms += next_ms - event->unix_ms;
    if (due)
        propose_due(shard, event, out);
}

void shard_due_applied(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    shard->due_index = 0;
    shard->due_next_ms = 0;
    if (!shard_serves(shard) || shard->due_chain == DUE_CHAIN_MAX)
        return;
    shard->due_chain++;
    buf_clear(&shard->scratch);
    if (applier_due_at_once(shard->applier, event->unix_ms, &shard->scratch))
        propose_due(shard, event, out);
}
