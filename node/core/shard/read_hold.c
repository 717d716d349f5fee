#include "node/core/shard/read_hold.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

static struct read_hold *find(const struct read_holds *holds, struct slice entity)
{
    for (uint32_t i = 0; i < holds->count; i++) {
        if (slice_equal(buf_slice(&holds->list[i].entity), entity))
            return &holds->list[i];
    }
    return NULL;
}

static bool is_active(const struct read_holds *holds, const struct read_hold *hold, uint64_t now_ms)
{
    return hold->reader_count > 0 && now_ms < hold->since_ms + holds->ms_max;
}

static void end(struct read_holds *holds, struct read_hold *hold, uint64_t now_ms)
{
    uint64_t lasted_ms = now_ms - hold->since_ms;
    uint64_t from_ms = hold->rest_ms > now_ms ? hold->rest_ms : now_ms;
    uint64_t owed_ms_max = (uint64_t)READ_HOLD_OWED_MAX * holds->ms_max;

    CHECK(holds->active > 0 && now_ms >= hold->since_ms);
    holds->active--;
    holds->ended++;
    hold->reader_count = 0;
    if (lasted_ms > holds->ms_max)
        lasted_ms = holds->ms_max;
    holds->held_ms += lasted_ms;
    /* One that was shorter than the clock can tell is not for nothing. */
    hold->rest_ms = from_ms + READ_HOLD_REST * (lasted_ms > 0 ? lasted_ms : 1);
    if (hold->rest_ms > now_ms + owed_ms_max)
        hold->rest_ms = now_ms + owed_ms_max;
}

static void drop(struct read_holds *holds, struct read_hold *hold)
{
    CHECK(hold->reader_count == 0 && holds->count > 0);
    struct buf bytes = hold->entity;
    *hold = holds->list[--holds->count];
    buf_clear(&bytes);
    holds->list[holds->count] = (struct read_hold){ .entity = bytes };
}

void read_holds_clear(struct read_holds *holds)
{
    for (uint32_t i = 0; i < holds->count; i++) {
        buf_clear(&holds->list[i].entity);
        holds->list[i] = (struct read_hold){ .entity = holds->list[i].entity };
    }
    holds->count = 0;
    holds->active = 0;
}

void read_holds_deinit(struct read_holds *holds)
{
    for (uint32_t i = 0; i < holds->capacity; i++)
        buf_deinit(&holds->list[i].entity);
    free(holds->list);
    *holds = (struct read_holds){ 0 };
}

static bool rests(const struct read_holds *holds, const struct read_hold *hold, bool urgent,
                  uint64_t now_ms)
{
    uint64_t owed = urgent ? READ_HOLD_OWED_URGENT : READ_HOLD_OWED;

    return hold->rest_ms > now_ms + owed * holds->ms_max;
}

bool read_holds_may(const struct read_holds *holds, struct slice entity, bool urgent,
                    uint64_t now_ms)
{
    const struct read_hold *hold = find(holds, entity);

    if (hold == NULL)
        return holds->count < READ_HOLDS_MAX;
    if (is_active(holds, hold, now_ms))
        return hold->reader_count < READ_HOLD_READERS_MAX;
    return !rests(holds, hold, urgent, now_ms);
}

static struct read_hold *add(struct read_holds *holds, struct slice entity)
{
    if (holds->count == READ_HOLDS_MAX)
        return NULL;
    if (holds->count == holds->capacity) {
        uint32_t capacity = holds->capacity > 0 ? holds->capacity * 2 : 16;
        holds->list = mem_realloc(holds->list, sizeof *holds->list * capacity);
        memset(holds->list + holds->capacity, 0,
               sizeof *holds->list * (capacity - holds->capacity));
        holds->capacity = capacity;
    }
    struct read_hold *hold = &holds->list[holds->count++];
    buf_append(&hold->entity, entity.data, entity.size);
    return hold;
}

static struct read_holder *holder_find(struct read_hold *hold, uint64_t reader)
{
    for (uint32_t i = 0; i < hold->reader_count; i++) {
        if (hold->readers[i].reader == reader)
            return &hold->readers[i];
    }
    return NULL;
}

bool read_holds_take(struct read_holds *holds, const struct read_ask *ask, uint64_t now_ms)
{
    struct read_hold *hold = find(holds, ask->entity);

    CHECK(ask->reader != 0 && ask->pass_count <= READ_HOLD_PASS_MAX);
    if (hold == NULL)
        hold = add(holds, ask->entity);
    if (hold == NULL)
        return false;
    if (hold->reader_count > 0 && !is_active(holds, hold, now_ms))
        end(holds, hold, now_ms);
    if (hold->reader_count == 0) {
        if (rests(holds, hold, ask->urgent, now_ms))
            return false;
        hold->since_ms = now_ms;
        holds->active++;
        holds->taken++;
    }
    struct read_holder *holder = holder_find(hold, ask->reader);
    if (holder == NULL && hold->reader_count == READ_HOLD_READERS_MAX)
        return false;
    if (holder == NULL)
        holder = &hold->readers[hold->reader_count++];
    holder->reader = ask->reader;
    holder->pass_count = ask->pass_count;
    memcpy(holder->pass, ask->pass, sizeof *ask->pass * ask->pass_count);
    return true;
}

bool read_holds_held(const struct read_holds *holds, struct slice entity, uint64_t reader,
                     uint64_t now_ms)
{
    struct read_hold *hold = find(holds, entity);

    return hold != NULL && is_active(holds, hold, now_ms) && holder_find(hold, reader) != NULL;
}

void read_holds_release(struct read_holds *holds, struct slice entity, uint64_t reader,
                        uint64_t now_ms)
{
    struct read_hold *hold = find(holds, entity);
    struct read_holder *holder = hold != NULL ? holder_find(hold, reader) : NULL;

    if (holder == NULL)
        return;
    CHECK(hold->reader_count <= READ_HOLD_READERS_MAX);
    *holder = hold->readers[hold->reader_count - 1];
    if (hold->reader_count > 1)
        hold->reader_count--;
    else
        end(holds, hold, now_ms);
}

void read_holds_step(struct read_holds *holds, uint64_t now_ms)
{
    for (uint32_t i = holds->count; i-- > 0;) {
        struct read_hold *hold = &holds->list[i];
        if (hold->reader_count > 0 && !is_active(holds, hold, now_ms))
            end(holds, hold, now_ms);
        if (hold->reader_count == 0 && hold->rest_ms <= now_ms)
            drop(holds, hold);
    }
    CHECK(holds->active <= holds->count);
}

/* A transaction that one of them waits for need not wait for any: they would wait in a ring. */
bool read_holds_stop(const struct read_holds *holds, struct slice entity, const struct txn_ref *txn,
                     uint64_t now_ms)
{
    if (holds->active == 0)
        return false;
    const struct read_hold *hold = find(holds, entity);
    if (hold == NULL || !is_active(holds, hold, now_ms))
        return false;
    for (uint32_t i = 0; i < hold->reader_count && txn != NULL; i++) {
        const struct read_holder *holder = &hold->readers[i];
        for (uint32_t j = 0; j < holder->pass_count; j++) {
            const struct txn_ref *pass = &holder->pass[j];
            if (pass->home == txn->home && pass->destination == txn->destination &&
                pass->seq == txn->seq)
                return false;
        }
    }
    return true;
}
