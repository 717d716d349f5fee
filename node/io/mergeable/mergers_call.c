/* The calls of DocumentService and PresenceService at this member. */
#include <string.h>

#include "idl/method.h"
#include "node/io/mergeable/mergers_internal.h"
#include "runtime/base/check.h"

/* Before what the core has put out is carried out: its answer may be among that. */
static void wait_for(struct merger *merger, const struct mergers_request *request,
                     const struct document_begun *begun)
{
    struct waiting_call *call = mem_zalloc(sizeof *call);

    call->id = request->call;
    call->ticket = begun->ticket;
    call->is_read = begun->context == NULL;
    if (call->is_read) {
        buf_append(&call->request, request->bytes.data, request->bytes.size);
    } else {
        call->context = strdup(begun->context);
        CHECK(call->context != NULL);
        buf_append(&call->more, begun->more.data, begun->more.size);
    }
    call->next = merger->calls;
    merger->calls = call;
}

err mergers_call(struct mergers *mergers, const struct mergers_request *request)
{
    const struct document_method *method = document_method_find(request->method);
    bool writes = method_find(request->method)->writes;
    struct refusal refusal = { 0 };
    struct document_begun begun = { 0 };

    if (method_goes_whole(method_find(request->method)))
        return mergers_batch(mergers, request);
    CHECK(request->shard < mergers->options.shard_count);
    if (mergers->stopping || !mergers_is_member(mergers, request->shard))
        return ERR_NOT_FOUND;
    if (!mergers_fits(mergers, writes))
        return ERR_FULL;
    arena_reset(&mergers->arena);
    mergers->calls++;
    if (mergers_backup_has(request->method)) {
        mergers_generation_follow(mergers, request->shard);
        if (writes && mergers_disk_is_full(mergers))
            mergers_refuse_unavailable(mergers, request->call, "this member's disk is full");
        else
            mergers_backup_call(mergers, request);
        return ERR_OK;
    }
    const char *bars = mergers_bars(mergers, request->shard, writes);
    if (bars != NULL) {
        mergers_refuse_unavailable(mergers, request->call, bars);
        return ERR_OK;
    }
    CHECK(method != NULL);
    CHECK(mergers_need(mergers, request->shard) != NULL);
    struct slice entity = mergers_entity(mergers, method_find(request->method), request->bytes);

    if (!mergers_disk_is_behind(mergers))
        mergers_erase(mergers, request->shard, entity);
    struct document_context context = mergers_context(mergers, request->shard, entity, &refusal);
    err e = method->begin(&context, request->bytes, &begun);

    if (e == ERR_OK && begun.ticket != 0)
        wait_for(&mergers->shards[request->shard], request, &begun);
    else if (e == ERR_OK)
        mergers_answer(mergers, request->call, REPLY_OK, begun.answer);
    else
        mergers_refuse(mergers, request->call, &refusal);
    mergers_drain(mergers, request->shard);
    return ERR_OK;
}

void mergers_cancel(struct mergers *mergers, uint32_t shard, uint64_t call)
{
    mergers_backup_cancel(mergers, call);
    mergers_call_cancel(&mergers->shards[shard], call);
}
