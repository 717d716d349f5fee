/* What calls of DocumentService are answered, at once or when what they wait for has come. */
#include <stdlib.h>
#include <string.h>

#include "node/io/mergeable/mergers_internal.h"
#include "runtime/base/check.h"

struct document_context mergers_context(struct mergers *mergers, uint32_t shard,
                                        struct slice entity, struct refusal *refusal)
{
    const struct merger *merger = &mergers->shards[shard];

    return (struct document_context){ .arena = &mergers->arena,
                                      .rules = &mergers->rules,
                                      .replica = merger->replica,
                                      .living = mergers->options.living,
                                      .now_ms = loop_wall_ms(),
                                      .no_disk = mergers_disk_is_behind(mergers),
                                      .full = merger->record_bytes > DOCUMENTS_BYTES_MAX ||
                                              merger->documents >= DOCUMENTS_MAX,
                                      .bytes_full = merger->record_bytes > DOCUMENTS_BYTES_MAX,
                                      .erased = mergers_hides(mergers, shard, entity),
                                      .refusal = refusal };
}

void mergers_answer(struct mergers *mergers, uint64_t call, enum reply_status status,
                    struct slice body)
{
    const struct shard_reply reply = { .call = call, .status = status };

    mergers->options.answer(mergers->options.user, call, &reply, body);
}

void mergers_refuse(struct mergers *mergers, uint64_t call, const struct refusal *refusal)
{
    mergers_answer(mergers, call, REPLY_REFUSED, refusal_pack(refusal, &mergers->arena));
}

void mergers_refuse_unavailable(struct mergers *mergers, uint64_t call, const char *message)
{
    mergers_refuse(
        mergers, call,
        &(struct refusal){ .code = CODE(UNAVAILABLE), .message = message, .retry_after_ms = 200 });
}

static void call_free(struct waiting_call *call)
{
    free(call->context);
    buf_deinit(&call->more);
    buf_deinit(&call->request);
    free(call);
}

static struct waiting_call *take(struct merger *merger, uint64_t ticket)
{
    for (struct waiting_call **at = &merger->calls; *at != NULL; at = &(*at)->next) {
        struct waiting_call *call = *at;
        if (call->ticket != ticket)
            continue;
        *at = call->next;
        return call;
    }
    return NULL;
}

static void answer_read(struct mergers *mergers, uint32_t shard, const struct waiting_call *call,
                        const struct merge_done *done)
{
    struct refusal refusal = { 0 };
    struct slice body;

    if (done->result != ERR_OK || done->record == NULL) {
        mergers_refuse_unavailable(mergers, call->id,
                                   done->result == ERR_NEED
                                       ? "no majority of the members has what the context has seen"
                                       : "a majority of the members did not answer in time");
        return;
    }
    struct slice entity =
        mergers_entity(mergers, method_find(METHOD_GET_DOCUMENT), buf_slice(&call->request));
    struct document_context context = mergers_context(mergers, shard, entity, &refusal);

    if (document_told(&context, buf_slice(&call->request), done->record, &body) == ERR_OK)
        mergers_answer(mergers, call->id, REPLY_OK, body);
    else
        mergers_refuse(mergers, call->id, &refusal);
}

void mergers_call_done(struct mergers *mergers, uint32_t shard, const struct merge_done *done)
{
    struct waiting_call *call = take(&mergers->shards[shard], done->ticket);
    struct buf body = { 0 };

    if (call == NULL) /* Cancelled, or a sweep. */
        return;
    arena_reset(&mergers->arena);
    if (call->is_read) {
        answer_read(mergers, shard, call, done);
    } else if (done->result == ERR_OK) {
        document_written(call->context, done->replicas, &body);
        buf_append(&body, call->more.data, call->more.size);
        mergers_answer(mergers, call->id, REPLY_OK, buf_slice(&body));
    } else {
        mergers_answer(mergers, call->id, REPLY_UNKNOWN, (struct slice){ 0 });
    }
    buf_deinit(&body);
    call_free(call);
}

void mergers_call_cancel(struct merger *merger, uint64_t id)
{
    for (struct waiting_call **at = &merger->calls; *at != NULL; at = &(*at)->next) {
        struct waiting_call *call = *at;
        if (call->id != id)
            continue;
        *at = call->next;
        call_free(call);
        return;
    }
}

void mergers_call_drop_all(struct merger *merger)
{
    while (merger->calls != NULL) {
        struct waiting_call *call = merger->calls;
        merger->calls = call->next;
        call_free(call);
    }
}
