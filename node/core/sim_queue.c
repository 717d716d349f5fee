#include "node/core/sim_queue.h"

#include <stdlib.h>

#include "runtime/base/check.h"

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

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    if (a->at_ms != b->at_ms)
        return a->at_ms < b->at_ms;
    return a->sequence < b->sequence;
}

static void swap(struct sim_event *a, struct sim_event *b)
{
    struct sim_event kept = *a;

    *a = *b;
    *b = kept;
}

void sim_queue_push(struct sim_queue *queue, const struct sim_event *event)
{
    if (queue->count == queue->capacity) {
        queue->capacity = queue->capacity > 0 ? queue->capacity * 2 : 64;
        queue->events = mem_realloc(queue->events, queue->capacity * sizeof queue->events[0]);
    }
    uint32_t at = queue->count++;
    queue->events[at] = *event;
    queue->events[at].sequence = ++queue->sequence;
    while (at > 0 && before(&queue->events[at], &queue->events[(at - 1) / 2])) {
        swap(&queue->events[at], &queue->events[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

bool sim_queue_pop(struct sim_queue *queue, uint64_t until_ms, struct sim_event *ret_event)
{
    uint32_t at = 0;

    if (queue->count == 0 || queue->events[0].at_ms > until_ms)
        return false;
    *ret_event = queue->events[0];
    queue->events[0] = queue->events[--queue->count];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= queue->count)
            return true;
        if (child + 1 < queue->count && before(&queue->events[child + 1], &queue->events[child]))
            child++;
        if (!before(&queue->events[child], &queue->events[at]))
            return true;
        swap(&queue->events[child], &queue->events[at]);
        at = child;
    }
}

void sim_queue_deinit(struct sim_queue *queue)
{
    for (uint32_t i = 0; i < queue->count; i++)
        buf_deinit(&queue->events[i].bytes);
    free(queue->events);
    *queue = (struct sim_queue){ 0 };
}
