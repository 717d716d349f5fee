/* Answers about edges, held against the model as of the entry that they name. */
#include <stdio.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/page_cursor.h"
#include "runtime/base/check.h"
#include "tests/sim/favorites/favorite_model.h"

/* The collection as of the answer's entry; NULL: already failed. */
static const struct sim_collection *told_collection(const struct told *t, const char *name,
                                                    uint64_t index)
{
    const struct sim_collection *life = favorite_life(t->sim, t->call->shard, name, index);

    if (index > 0 && life == NULL)
        told_fail(t, "of a collection that is not defined", index, 0);
    return index > 0 ? life : NULL;
}

uint64_t told_subject(const struct told *t, const char *name, bool is_counter, uint64_t index)
{
    const struct sim_collection *collection =
        is_counter ? NULL : favorite_life(t->sim, t->call->shard, name, index);
    const struct sim_counter *counter =
        is_counter ? counter_life(t->sim, t->call->shard, name, index) : NULL;

    return collection != NULL ? collection->number : counter != NULL ? counter->number : 0;
}

static uint32_t player_of(const struct told *t)
{
    return (uint32_t)(told_player(t) - t->sim->oracle->players);
}

static void check_status(const struct told *t, const Holdfast__V1__FavoriteStatus *status,
                         const struct edge_step *edge)
{
    bool favorited = edge != NULL && edge->favorited;
    uint64_t ver = edge != NULL ? edge->ver : 0;

    if ((status->favorited != 0) != favorited)
        told_fail(t, "whether an edge stands", status->favorited != 0, favorited);
    if (status->ver != ver)
        told_fail(t, "the ver of an edge", status->ver, ver);
    if (status->created_at_ms != (favorited ? (int64_t)edge->at_ms : 0))
        told_fail(t, "since when an edge stands", (uint64_t)status->created_at_ms,
                  favorited ? edge->at_ms : 0);
}

void favorite_told_statuses(const struct told *t)
{
    const Holdfast__V1__BatchGetStatusRequest *request = (const void *)t->request;
    const Holdfast__V1__BatchGetStatusResponse *response = (const void *)t->response;
    uint64_t index = told_index(t);
    const struct sim_collection *collection = told_collection(t, request->collection, index);

    if (collection == NULL)
        return;
    CHECK(response->n_statuses == request->n_target_ids);
    for (size_t i = 0; i < response->n_statuses; i++) {
        struct edge_step edge = {
            .shard = t->call->shard,
            .number = collection->number,
            .player = player_of(t),
            .target = favorite_target_of(request->target_ids[i]),
        };
        CHECK(strcmp(response->statuses[i]->target_id, request->target_ids[i]) == 0);
        bool hidden = erasure_hides_at(t->sim, edge.shard, edge.player, index);
        check_status(t, response->statuses[i],
                     hidden ? NULL : favorite_edge_at(t->sim, &edge, index));
    }
    t->sim->counts.favorites_statuses++;
}

void favorite_told_partials(const struct told *t)
{
    const Holdfast__Internal__V1__GetPartialsRequest *request = (const void *)t->request;
    const Holdfast__Internal__V1__GetPartialsResponse *response = (const void *)t->response;
    uint64_t index = told_index(t);
    uint64_t number = told_subject(t, request->collection, request->is_counter, index);

    if (index == 0)
        return;
    if (number == 0 || response->collection_number != number)
        told_fail(t, "the collection's number", response->collection_number, number);
    CHECK(response->n_counts == request->n_target_ids);
    for (size_t i = 0; i < response->n_counts; i++) {
        struct edge_step edge = {
            .shard = t->call->shard,
            .number = number,
            .target = favorite_target_of(request->target_ids[i]),
        };
        uint64_t count = favorite_count_at(t->sim, &edge, index);
        if (response->counts[i] != count)
            told_fail(t, "how many edges lead to a target", response->counts[i], count);
        t->sim->counts.favorites_partials += count > 0;
        t->sim->counts.counters_partials += count > 0 && request->is_counter;
    }
}

/* Newest first, at one moment by target. */
static bool comes_before(const struct edge_step *a, uint64_t at_ms, uint32_t target)
{
    return a->at_ms > at_ms || (a->at_ms == at_ms && a->target < target);
}

/* Of the edges that stand, in order; returns how many. */
static uint32_t list_at(const struct told *t, uint64_t number, uint64_t index,
                        const struct edge_step *ret_edges[FAVORITE_TARGETS])
{
    struct edge_step edge = { .shard = t->call->shard, .number = number, .player = player_of(t) };
    uint32_t count = 0;

    if (erasure_hides_at(t->sim, edge.shard, edge.player, index))
        return 0;
    for (edge.target = 0; edge.target < FAVORITE_TARGETS; edge.target++) {
        const struct edge_step *found = favorite_edge_at(t->sim, &edge, index);
        if (found == NULL || !found->favorited)
            continue;
        uint32_t at = count++;
        for (; at > 0 && comes_before(found, ret_edges[at - 1]->at_ms, ret_edges[at - 1]->target);
             at--)
            ret_edges[at] = ret_edges[at - 1];
        ret_edges[at] = found;
    }
    return count;
}

/* How many of the list the pages before have shown. */
static uint32_t shown_before(const struct told *t, const char *cursor,
                             const struct edge_step *const *edges, uint32_t count)
{
    unsigned long long at_ms;
    unsigned target;
    uint32_t shown = 0;
    char *place;

    if (cursor[0] == '\0')
        return 0;
    CHECK(page_cursor_parse(t->request, &t->sim->oracle->arena, &place) == ERR_OK);
    CHECK(sscanf(place, "%llu:t%u", &at_ms, &target) == 2);
    while (shown < count && (comes_before(edges[shown], at_ms, target) ||
                             (edges[shown]->at_ms == at_ms && edges[shown]->target == target)))
        shown++;
    return shown;
}

static void check_page(const struct told *t, const struct edge_step *const *edges, uint32_t count)
{
    const Holdfast__V1__ListFavoritesRequest *request = (const void *)t->request;
    const Holdfast__V1__ListFavoritesResponse *response = (const void *)t->response;
    uint32_t wanted = count < request->page_size ? count : request->page_size;

    if (response->n_favorites != wanted) {
        told_fail(t, "the edges on a page", response->n_favorites, wanted);
        return;
    }
    if ((response->next_cursor[0] != '\0') != (count > wanted))
        told_fail(t, "whether there is another page", response->next_cursor[0] != '\0',
                  count > wanted);
    for (uint32_t i = 0; i < wanted; i++) {
        uint32_t target = favorite_target_of(response->favorites[i]->target_id);
        if (target != edges[i]->target)
            told_fail(t, "the next edge of a list", target, edges[i]->target);
        else
            check_status(t, response->favorites[i], edges[i]);
    }
}

void favorite_told_list(const struct told *t)
{
    const Holdfast__V1__ListFavoritesRequest *request = (const void *)t->request;
    const Holdfast__V1__ListFavoritesResponse *response = (const void *)t->response;
    const struct edge_step *edges[FAVORITE_TARGETS];
    uint64_t index = told_index(t);
    const struct sim_collection *collection = told_collection(t, request->collection, index);

    if (collection == NULL)
        return;
    uint32_t count = list_at(t, collection->number, index, edges);
    if (response->edges != count)
        told_fail(t, "how many edges a player has", response->edges, count);
    for (uint32_t i = 1; i < count; i++)
        t->sim->counts.favorites_ties += edges[i]->at_ms == edges[i - 1]->at_ms;
    uint32_t shown = shown_before(t, request->cursor, edges, count);
    t->sim->counts.favorites_lists += count > 0;
    t->sim->counts.favorites_pages += shown > 0;
    check_page(t, edges + shown, count - shown);
}

void favorite_told_by_target(const struct told *t)
{
    const Holdfast__V1__ListByTargetRequest *request = (const void *)t->request;
    const Holdfast__V1__ListByTargetResponse *response = (const void *)t->response;
    uint64_t index = told_index(t);
    const struct sim_collection *collection = told_collection(t, request->collection, index);
    size_t place = 0;

    if (collection == NULL)
        return;
    struct edge_step edge = {
        .shard = t->call->shard,
        .number = collection->number,
        .target = favorite_target_of(request->target_id),
    };
    for (edge.player = 0; edge.player < t->sim->player_count; edge.player++) {
        const struct edge_step *found = favorite_edge_at(t->sim, &edge, index);
        if (found == NULL || !found->favorited || found->withdrawn ||
            erasure_hides_at(t->sim, edge.shard, edge.player, index))
            continue;
        if (place == response->n_edges ||
            (uint32_t)(response->edges[place]->player_id[1] - '0') != edge.player ||
            response->edges[place]->created_at_ms != (int64_t)found->at_ms) {
            told_fail(t, "who favorited a target, at place", place, edge.player);
            return;
        }
        place++;
    }
    if (response->n_edges != place)
        told_fail(t, "how many favorited a target", response->n_edges, place);
    t->sim->counts.favorites_by_target += place > 0;
}
