#include "node/core/replication/sim/sim_queue.h"

#include <stdlib.h>

#include "runtime/base/check.h"

#define SLOTS_MIN 256u

uint64_t sim_random_next(struct sim_random *random)
{
    uint64_t z = (random->state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t sim_random_between(struct sim_random *random, uint64_t low, uint64_t high)
{
    CHECK(low <= high);
    return low + sim_random_next(random) % (high - low + 1);
}

bool sim_random_chance(struct sim_random *random, uint32_t per_thousand)
{
    return sim_random_next(random) % 1000 < per_thousand;
}

/* ---- lists of slots ---- */
static void list_add(struct sim_queue *queue, struct sim_list *list, uint32_t slot)
{
    queue->next[slot - 1] = 0;
    if (list->last != 0)
        queue->next[list->last - 1] = slot;
    else
        list->first = slot;
    list->last = slot;
}

static uint32_t list_take(struct sim_queue *queue, struct sim_list *list)
{
    uint32_t slot = list->first;

    list->first = queue->next[slot - 1];
    if (list->first == 0)
        list->last = 0;
    return slot;
}

static uint32_t slot_new(struct sim_queue *queue)
{
    uint32_t slot = queue->free_first;

    if (slot != 0) {
        queue->free_first = queue->next[slot - 1];
        return slot;
    }
    if (queue->slot_count == queue->slot_capacity) {
        queue->slot_capacity = queue->slot_capacity > 0 ? queue->slot_capacity * 2 : SLOTS_MIN;
        queue->events = mem_realloc(queue->events, queue->slot_capacity * sizeof queue->events[0]);
        queue->next = mem_realloc(queue->next, queue->slot_capacity * sizeof queue->next[0]);
    }
    return ++queue->slot_count;
}

/* ---- the wheel ---- */
static void wheel_add(struct sim_queue *queue, uint32_t slot)
{
    uint32_t place = (uint32_t)queue->events[slot - 1].at_ms % SIM_QUEUE_MS;

    list_add(queue, &queue->wheel[place], slot);
    queue->busy[place / 64] |= 1ull << place % 64;
}

/* Before anything is added for the same milliseconds: what is far was added first. */
static void move_near(struct sim_queue *queue)
{
    struct sim_list far = queue->far;

    queue->far = (struct sim_list){ 0 };
    queue->far_next_ms = UINT64_MAX;
    while (far.first != 0) {
        uint32_t slot = list_take(queue, &far);
        uint64_t at_ms = queue->events[slot - 1].at_ms;
        if (at_ms < queue->now_ms + SIM_QUEUE_MS) {
            wheel_add(queue, slot);
            continue;
        }
        list_add(queue, &queue->far, slot);
        if (at_ms < queue->far_next_ms)
            queue->far_next_ms = at_ms;
    }
}

/* The first millisecond that holds anything; UINT64_MAX: the wheel is empty. */
static uint64_t wheel_next_ms(const struct sim_queue *queue)
{
    uint32_t from = (uint32_t)queue->now_ms % SIM_QUEUE_MS;
    uint64_t word = queue->busy[from / 64] & ~0ull << from % 64;

    for (uint32_t i = 0; i <= SIM_QUEUE_MS / 64; i++) {
        uint32_t at = (from / 64 + i) % (SIM_QUEUE_MS / 64);
        if (i > 0)
            word = queue->busy[at];
        if (word != 0) {
            uint32_t place = at * 64 + (uint32_t)__builtin_ctzll(word);
            return queue->now_ms + (place - from) % SIM_QUEUE_MS;
        }
    }
    return UINT64_MAX;
}

void sim_queue_push(struct sim_queue *queue, const struct sim_event *event)
{
    CHECK(event->at_ms >= queue->now_ms);
    if (queue->wheel == NULL) {
        queue->wheel = mem_zalloc(SIM_QUEUE_MS * sizeof queue->wheel[0]);
        queue->far_next_ms = UINT64_MAX;
    }
    uint32_t slot = slot_new(queue);
    queue->events[slot - 1] = *event;
    queue->count++;
    if (event->at_ms < queue->now_ms + SIM_QUEUE_MS) {
        wheel_add(queue, slot);
        return;
    }
    list_add(queue, &queue->far, slot);
    if (event->at_ms < queue->far_next_ms)
        queue->far_next_ms = event->at_ms;
}

/* What is popped next, as far as it is known now: it is on its way while its predecessor is dealt
 * with. */
static void fetch_next(const struct sim_queue *queue, const struct sim_list *list)
{
    uint64_t next_ms = list->first == 0 ? wheel_next_ms(queue) : 0;

    if (next_ms == UINT64_MAX)
        return;
    if (list->first == 0)
        list = &queue->wheel[next_ms % SIM_QUEUE_MS];
    const char *event = (const char *)&queue->events[list->first - 1];
    __builtin_prefetch(event);
    __builtin_prefetch(event + sizeof queue->events[0] - 1);
}

bool sim_queue_pop(struct sim_queue *queue, uint64_t until_ms, struct sim_event *ret_event)
{
    if (queue->count == 0)
        return false;
    uint64_t next_ms = wheel_next_ms(queue);
    if (queue->far_next_ms < next_ms)
        next_ms = queue->far_next_ms;
    if (next_ms > until_ms)
        return false;
    queue->now_ms = next_ms;
    if (queue->far_next_ms < next_ms + SIM_QUEUE_MS)
        move_near(queue);
    uint32_t place = (uint32_t)next_ms % SIM_QUEUE_MS;
    uint32_t slot = list_take(queue, &queue->wheel[place]);
    if (queue->wheel[place].first == 0)
        queue->busy[place / 64] &= ~(1ull << place % 64);
    *ret_event = queue->events[slot - 1];
    queue->events[slot - 1].bytes = (struct buf){ 0 };
    queue->next[slot - 1] = queue->free_first;
    queue->free_first = slot;
    queue->count--;
    fetch_next(queue, &queue->wheel[place]);
    return true;
}

struct buf sim_queue_bytes(struct sim_queue *queue)
{
    struct buf bytes = { 0 };

    if (queue->spare_count > 0)
        return queue->spare[--queue->spare_count];
    (void)buf_reserve(&bytes, SIM_QUEUE_BYTES_SPARE);
    return bytes;
}

void sim_queue_bytes_back(struct sim_queue *queue, struct buf *bytes)
{
    if (bytes->capacity != SIM_QUEUE_BYTES_SPARE || queue->spare_count == SIM_QUEUE_SPARE_MAX) {
        buf_deinit(bytes);
        return;
    }
    if (queue->spare == NULL)
        queue->spare = mem_alloc(SIM_QUEUE_SPARE_MAX * sizeof queue->spare[0]);
    buf_clear(bytes);
    queue->spare[queue->spare_count++] = *bytes;
    *bytes = (struct buf){ 0 };
}

void sim_queue_deinit(struct sim_queue *queue)
{
    while (queue->spare_count > 0)
        buf_deinit(&queue->spare[--queue->spare_count]);
    free(queue->spare);
    for (uint32_t i = 0; i < queue->slot_count; i++)
        buf_deinit(&queue->events[i].bytes);
    free(queue->events);
    free(queue->next);
    free(queue->wheel);
    *queue = (struct sim_queue){ 0 };
}
