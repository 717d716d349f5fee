#include "router/rpc/counts/rank_request.h"

#include <stddef.h>
#include <string.h>

#include "router/core/count_ask.h"
#include "router/rpc/counts/count_gather.h"

/* In the request's arena. A gather knows its own part, and gives it back. */
struct rank {
    struct top_ask list;
    struct count_ask one;
    const char *target;
    struct rank_told told;
    void (*reply)(struct request *request, const struct rank_told *told);
};

static struct rank *rank_of(const void *part, size_t offset)
{
    return (struct rank *)((uintptr_t)part - offset);
}

static void total_told(struct request *request, const struct count_ask *ask,
                       const struct count_told *told)
{
    struct rank *rank = rank_of(ask, offsetof(struct rank, one));

    rank->told.counts = true;
    rank->told.count = told->known.count;
    rank->told.stale |= told->stale;
    rank->reply(request, &rank->told);
}

static void find(struct rank *rank, const struct top_told *top)
{
    for (size_t i = 0; i < top->count && rank->told.rank == 0; i++) {
        if (strcmp(top->places[i].target, rank->target) != 0)
            continue;
        rank->told.rank = (uint32_t)i + 1;
        rank->told.count = top->places[i].count;
    }
    /* A list that is not full has every target that counts something. */
    rank->told.counts = rank->told.rank > 0 || top->count < TOP_LIMIT_MAX;
}

static void list_told(struct request *request, const struct top_ask *ask,
                      const struct top_told *top)
{
    struct rank *rank = rank_of(ask, offsetof(struct rank, list));

    rank->told.listed = (uint32_t)top->count;
    rank->told.last_count = top->count > 0 ? top->places[top->count - 1].count : 0;
    rank->told.window = top_window_name(ask->window);
    rank->told.from_ms = top->from_ms;
    rank->told.to_ms = top->to_ms;
    rank->told.stale = top->stale;
    find(rank, top);
    if (rank->told.counts || ask->window != HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_ALL)
        rank->reply(request, &rank->told);
    else
        counts_ask(request, &rank->one, false, total_told);
}

void rank_request_ask(struct request *request, const struct rank_fields *fields,
                      void (*reply)(struct request *request, const struct rank_told *told))
{
    const uint32_t limit = TOP_LIMIT_MAX;
    struct rank *rank = arena_zalloc(request->arena, sizeof *rank);
    Holdfast__V1__ErrorDetail detail;

    rank->target = fields->target;
    rank->reply = reply;
    rank->one =
        (struct count_ask){ fields->collection, &rank->target, 1, true, fields->is_counter };
    if (count_ask_check(&rank->one, request->arena, &detail) != ERR_OK) {
        request_fail(request, &detail);
        return;
    }
    const struct top_ask *list =
        top_request_ask(request, &(struct top_fields){ fields->collection, fields->window, &limit,
                                                       fields->is_counter });

    if (list == NULL)
        return;
    rank->list = *list;
    tops_ask(request, &rank->list, list_told);
}
