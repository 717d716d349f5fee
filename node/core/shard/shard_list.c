#include <stdlib.h>

#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/base/watched_memory.h"

#define RECORD_BYTES 12u

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

static void list_insert(struct call_list *list, struct call *call, struct call *behind)
{
    call->previous = behind;
    call->next = behind != NULL ? behind->next : list->first;
    if (behind != NULL)
        behind->next = call;
    else
        list->first = call;
    if (call->next != NULL)
        call->next->previous = call;
    else
        list->last = call;
    list->count++;
}

/* ---- what calls wait for ---- */

static uint64_t hash_of_record(uint32_t destination, uint64_t seq)
{
    uint8_t bytes[RECORD_BYTES];

    store_u32(bytes, destination);
    store_u64(bytes + sizeof destination, seq);
    return hash_u64((struct slice){ bytes, sizeof bytes });
}

static uint64_t hash_of_id(uint64_t id)
{
    return hash_u64((struct slice){ (const uint8_t *)&id, sizeof id });
}

static bool waits_for_something(enum call_place place)
{
    return place == CALL_QUEUED || place == CALL_STEALING || place == CALL_SENDING;
}

static void place_leave(struct shard *shard, struct call *call)
{
    row_waiter_end(&call->waiter);
    if (waits_for_something(call->place))
        link_table_remove(&shard->calls_by_what, &call->by_what);
    list_remove(&shard->calls[call->place], call);
}

static void place_enter(struct shard *shard, struct call *call, enum call_place place,
                        struct call *behind)
{
    call->place = place;
    list_insert(&shard->calls[place], call, behind);
    if (waits_for_something(place))
        link_table_add(&shard->calls_by_what, &call->by_what,
                       place == CALL_SENDING ? hash_of_record(call->destination, call->seq)
                                             : hash_u64(call->entity));
}

static struct call *call_of(struct hash_link *link)
{
    return link != NULL ? CONTAINER_OF(link, struct call, by_what) : NULL;
}

static struct call *next_of_hash(const struct shard *shard, uint64_t hash, const struct call *after)
{
    return call_of(after != NULL ? hash_link_next(&after->by_what)
                                 : link_table_first(&shard->calls_by_what, hash));
}

struct call *call_of_player(struct shard *shard, enum call_place place, struct slice entity,
                            const struct call *after)
{
    uint64_t hash = hash_u64(entity);
    struct call *call = next_of_hash(shard, hash, after);

    while (call != NULL && (call->place != place || !slice_equal(call->entity, entity)))
        call = next_of_hash(shard, hash, call);
    return call;
}

struct call *call_of_record(struct shard *shard, uint32_t destination, uint64_t seq,
                            const struct call *after)
{
    uint64_t hash = hash_of_record(destination, seq);
    struct call *call = next_of_hash(shard, hash, after);

    while (call != NULL &&
           (call->place != CALL_SENDING || call->destination != destination || call->seq != seq))
        call = next_of_hash(shard, hash, call);
    return call;
}

/* ---- calls ---- */

struct call *call_new(struct shard *shard, const struct shard_event *event)
{
    struct call *call = shard->free_calls;

    CHECK(event->call != 0);
    if (call != NULL) {
        memory_hand_out(call, sizeof *call);
        shard->free_calls = call->next;
        shard->free_count--;
    } else {
        call = mem_zalloc(sizeof *call);
    }
    call->id = event->call;
    call->method = event->method;
    call->deadline_ms = event->deadline_ms;
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
    place_enter(shard, call, CALL_PROPOSED, shard->calls[CALL_PROPOSED].last);
    link_table_add(&shard->calls_by_id, &call->by_id, hash_of_id(call->id));
    shard->call_count++;
    return call;
}

/* For the next calls. A node has many shards: no budget counts this memory. */
#define CALLS_KEPT     256u
#define KEEP_BYTES_MAX 1024u /* Of each buffer. */

static void buf_trim(struct buf *buf)
{
    if (buf->capacity > KEEP_BYTES_MAX)
        buf_deinit(buf);
}

void call_forget(struct shard *shard, struct call *call)
{
    if (call->id == 0)
        return;
    link_table_remove(&shard->calls_by_id, &call->by_id);
    call->id = 0;
}

static void call_keep(struct shard *shard, struct call *call)
{
    if (shard->free_count == CALLS_KEPT) {
        buf_deinit(&call->request);
        buf_deinit(&call->answer);
        free(call);
        return;
    }
    buf_trim(&call->request);
    buf_trim(&call->answer);
    call->next = shard->free_calls;
    shard->free_calls = call;
    shard->free_count++;
    memory_forbid(call, sizeof *call);
}

void call_free(struct shard *shard, struct call *call)
{
    if (call->reserved > 0) /* Its caller gets another answer, or has gone. */
        budget_give(shard->answers, call->reserved);
    call->reserved = 0;
    call_forget(shard, call);
    place_leave(shard, call);
    CHECK(shard->call_count > 0);
    shard->call_count--;
    call_keep(shard, call);
}

void call_move(struct shard *shard, struct call *call, enum call_place place)
{
    place_leave(shard, call);
    place_enter(shard, call, place, shard->calls[place].last);
}

void call_move_sorted(struct shard *shard, struct call *call, enum call_place place,
                      bool (*comes_before)(const struct call *a, const struct call *b))
{
    place_leave(shard, call);
    struct call *behind = shard->calls[place].last;
    while (behind != NULL && comes_before(call, behind))
        behind = behind->previous;
    place_enter(shard, call, place, behind);
}

static bool by_index(const struct call *a, const struct call *b)
{
    return a->index < b->index;
}

void call_lag(struct shard *shard, struct call *call, uint64_t index)
{
    call->index = index;
    call_move_sorted(shard, call, CALL_LAGGING, by_index);
}

struct call *call_find(struct shard *shard, uint64_t id)
{
    struct hash_link *link = link_table_first(&shard->calls_by_id, hash_of_id(id));

    while (link != NULL && CONTAINER_OF(link, struct call, by_id)->id != id)
        link = hash_link_next(link);
    return link != NULL ? CONTAINER_OF(link, struct call, by_id) : NULL;
}
