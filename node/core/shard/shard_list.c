#include <stdlib.h>

#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"

static void list_remove(struct call_list *list, struct call *call)
{
    CHECK(list->count > 0);
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        list->first = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
    else
        list->last = call->previous;
    list->count--;
}

static void list_append(struct call_list *list, struct call *call)
{
    call->previous = list->last;
    call->next = NULL;
    if (list->last != NULL)
        list->last->next = call;
    else
        list->first = call;
    list->last = call;
    list->count++;
}

struct call *call_new(struct shard *shard, const struct shard_event *event)
{
    struct call *call = shard->free_calls;

    CHECK(event->call != 0);
    if (call != NULL)
        shard->free_calls = call->next;
    else
        call = mem_zalloc(sizeof *call);
    call->place = CALL_PROPOSED;
    call->id = event->call;
    call->method = event->method;
    call->deadline_ms = event->deadline_ms;
    call->blocked = false;
    call->claimed = false;
    call->starved = false;
    call->reserved = 0;
    call->index = 0;
    call->round = 0;
    call->at_least = (struct dot){ 0 };
    call->entity = (struct slice){ 0 };
    call->destination = 0;
    call->seq = 0;
    buf_clear(&call->request);
    buf_clear(&call->answer);
    list_append(&shard->calls[CALL_PROPOSED], call);
    shard->call_count++;
    return call;
}

#define KEEP_BYTES_MAX 65536u /* Of a call's buffers, for the next call. */

static void buf_trim(struct buf *buf)
{
    if (buf->capacity > KEEP_BYTES_MAX)
        buf_deinit(buf);
}

void call_free(struct shard *shard, struct call *call)
{
    if (call->reserved > 0) /* Its caller gets another answer, or has gone. */
        budget_give(shard->answers, call->reserved);
    call->reserved = 0;
    buf_trim(&call->request);
    buf_trim(&call->answer);
    list_remove(&shard->calls[call->place], call);
    CHECK(shard->call_count > 0);
    shard->call_count--;
    call->next = shard->free_calls;
    shard->free_calls = call;
}

void call_move(struct shard *shard, struct call *call, enum call_place place)
{
    list_remove(&shard->calls[call->place], call);
    call->place = place;
    list_append(&shard->calls[place], call);
}

struct call *call_find(struct shard *shard, uint64_t id)
{
    for (int place = 0; place < CALL_PLACES; place++) {
        for (struct call *c = shard->calls[place].first; c != NULL; c = c->next) {
            if (c->id == id)
                return c;
        }
    }
    return NULL;
}
