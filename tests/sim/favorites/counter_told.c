/* Answers about counters, held against the model as of the entry that they name. */
#include <string.h>

#include "idl/page_cursor.h"
#include "runtime/base/check.h"
#include "tests/sim/favorites/counter.h"
#include "tests/sim/favorites/favorite_model.h"

/* The counter as of the answer's entry; NULL: already failed. */
static const struct sim_counter *told_counter(const struct told *t, const char *name,
                                              uint64_t index)
{
    const struct sim_counter *life = counter_life(t->sim, t->call->shard, name, index);

    if (index > 0 && life == NULL)
        told_fail(t, "of a counter that is not defined", index, 0);
    return index > 0 ? life : NULL;
}

static void check_value(const struct told *t, const Holdfast__V1__PlayerCounter *told,
                        uint64_t number, uint64_t index)
{
    const struct edge_step of = {
        .shard = t->call->shard,
        .number = number,
        .player = (uint32_t)(told_player(t) - t->sim->oracle->players),
        .target = favorite_target_of(told->target_id),
    };
    const struct edge_step *step = erasure_hides_at(t->sim, of.shard, of.player, index)
                                       ? NULL
                                       : favorite_edge_at(t->sim, &of, index);
    int64_t value = step != NULL ? step->value : 0;
    uint64_t at_ms = step != NULL ? step->at_ms : 0;

    if (told->value != value)
        told_fail(t, "what a player added to a target", (uint64_t)told->value, (uint64_t)value);
    if (told->added_at_ms != (int64_t)at_ms)
        told_fail(t, "when a player added to a target", (uint64_t)told->added_at_ms, at_ms);
}

void counter_told_values(const struct told *t)
{
    const Holdfast__V1__BatchGetPlayerCountersRequest *request = (const void *)t->request;
    const Holdfast__V1__BatchGetPlayerCountersResponse *response = (const void *)t->response;
    uint64_t index = told_index(t);
    const struct sim_counter *counter = told_counter(t, request->counter, index);

    if (counter == NULL)
        return;
    CHECK(response->n_counters == request->n_target_ids);
    for (size_t i = 0; i < response->n_counters; i++) {
        CHECK(strcmp(response->counters[i]->target_id, request->target_ids[i]) == 0);
        check_value(t, response->counters[i], counter->number, index);
        t->sim->counts.counters_values += response->counters[i]->value > 0;
    }
}

/* Targets with a value, behind the one at which the cursor stands, in order; returns how many. */
static uint32_t list_at(const struct told *t, uint64_t number, uint64_t index, uint32_t from,
                        uint32_t ret_targets[FAVORITE_TARGETS])
{
    struct edge_step of = {
        .shard = t->call->shard,
        .number = number,
        .player = (uint32_t)(told_player(t) - t->sim->oracle->players),
    };
    uint32_t count = 0;

    if (erasure_hides_at(t->sim, of.shard, of.player, index))
        return 0;
    for (of.target = from; of.target < FAVORITE_TARGETS; of.target++) {
        const struct edge_step *step = favorite_edge_at(t->sim, &of, index);
        if (step != NULL && step->favorited)
            ret_targets[count++] = of.target;
    }
    return count;
}

static uint32_t place_of(const struct told *t, const char *cursor)
{
    char *place;

    if (cursor[0] == '\0')
        return 0;
    CHECK(page_cursor_parse(t->request, &t->sim->oracle->arena, &place) == ERR_OK);
    return favorite_target_of(place) + 1;
}

void counter_told_list(const struct told *t)
{
    const Holdfast__V1__ListPlayerCountersRequest *request = (const void *)t->request;
    const Holdfast__V1__ListPlayerCountersResponse *response = (const void *)t->response;
    uint64_t index = told_index(t);
    const struct sim_counter *counter = told_counter(t, request->counter, index);
    uint32_t targets[FAVORITE_TARGETS];

    if (counter == NULL)
        return;
    uint32_t all = list_at(t, counter->number, index, 0, targets);
    if (response->targets != all)
        told_fail(t, "to how many targets a player added", response->targets, all);
    uint32_t from = place_of(t, request->cursor);
    uint32_t count = list_at(t, counter->number, index, from, targets);
    uint32_t wanted = count < request->page_size ? count : request->page_size;
    if (response->n_counters != wanted) {
        told_fail(t, "the values on a page", response->n_counters, wanted);
        return;
    }
    if ((response->next_cursor[0] != '\0') != (count > wanted))
        told_fail(t, "whether there is another page", response->next_cursor[0] != '\0',
                  count > wanted);
    for (uint32_t i = 0; i < wanted; i++) {
        uint32_t target = favorite_target_of(response->counters[i]->target_id);
        if (target != targets[i])
            told_fail(t, "the next value of a list", target, targets[i]);
        check_value(t, response->counters[i], counter->number, index);
    }
    t->sim->counts.counters_lists += all > 0;
    t->sim->counts.counters_pages += from > 0 && wanted > 0;
}
