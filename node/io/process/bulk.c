#include "node/io/process/bulk.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

void bulk_init(struct bulk *bulk, uint32_t open_max)
{
    CHECK(open_max > 0);
    *bulk = (struct bulk){ .open_max = open_max, .allowed = open_max };
}

void bulk_deinit(struct bulk *bulk)
{
    while (bulk->first != NULL) {
        struct bulk_call *call = bulk->first;
        bulk->first = call->next;
        free(call);
    }
    *bulk = (struct bulk){ 0 };
}

static bool has_room(struct bulk *bulk, uint64_t now_ms)
{
    if (bulk->open < bulk->allowed)
        return true;
    if (now_ms < bulk->answered_ms + BULK_STALLED_MS)
        return false;
    bulk->answered_ms = now_ms;
    bulk->allowed = bulk->open + bulk->open_max;
    return true;
}

static void pass(struct bulk *bulk, uint64_t now_ms)
{
    if (bulk->open++ == 0)
        bulk->answered_ms = now_ms;
}

bool bulk_pass(struct bulk *bulk, uint64_t now_ms)
{
    if (bulk->first != NULL || !has_room(bulk, now_ms))
        return false;
    pass(bulk, now_ms);
    return true;
}

void bulk_answered(struct bulk *bulk, uint64_t now_ms)
{
    CHECK(bulk->open > 0);
    bulk->open--;
    bulk->answered_ms = now_ms;
    if (bulk->open < bulk->open_max)
        bulk->allowed = bulk->open_max;
}

bool bulk_wait(struct bulk *bulk, const struct bulk_call *call, struct slice request)
{
    if (bulk->bytes + request.size > BULK_BYTES_MAX)
        return false;
    struct bulk_call *copy = mem_alloc(sizeof *copy + request.size);

    *copy = *call;
    copy->next = NULL;
    copy->size = request.size;
    if (request.size > 0)
        memcpy(copy->bytes, request.data, request.size);
    if (bulk->last != NULL && bulk->first != NULL)
        bulk->last->next = copy;
    else
        bulk->first = copy;
    bulk->last = copy;
    bulk->count++;
    bulk->bytes += request.size;
    return true;
}

struct bulk_call *bulk_take(struct bulk *bulk, uint64_t now_ms)
{
    struct bulk_call *call = bulk->first;

    if (call == NULL || !has_room(bulk, now_ms))
        return NULL;
    bulk->first = call->next;
    bulk->count--;
    bulk->bytes -= call->size;
    pass(bulk, now_ms);
    return call;
}
