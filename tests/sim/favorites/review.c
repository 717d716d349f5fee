/* The model of reviews. What an edge waits for is kept with its steps (favorite_model.h). */
#include "tests/sim/favorites/review.h"

#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "idl/error_code.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/favorites/rate.h"
#include "tests/sim/servers/workload.h"

#define MODERATION HOLDFAST__V1__FLAG_REASON__FLAG_REASON_MODERATION
#define REJECTED   HOLDFAST__V1__FLAG_REASON__FLAG_REASON_REJECTED
#define KNOWN      800u /* Of a thousand: about an edge that was there once. */

bool review_runs(const struct sim *sim)
{
    return rate_runs(sim) && (sim->seed * 0x9e3779b97f4a7c15u) >> 60 > 12;
}

/* ---- requests ---- */
void review_act(struct sim *sim, uint32_t server)
{
    static const uint32_t methods[] = { METHOD_ACCEPT_EDGES, METHOD_ACCEPT_EDGES,
                                        METHOD_REJECT_EDGES, METHOD_FLAG_EDGES,
                                        METHOD_LIST_FLAGGED_EDGES };
    const struct favorites_sim *favorites = favorites_of(sim);
    uint32_t method = methods[sim_between(sim, 0, ARRAY_SIZE(methods) - 1)];
    bool lists = method == METHOD_LIST_FLAGGED_EDGES;
    uint32_t last = lists ? sim->shard_count : sim->player_count;
    uint32_t about = (uint32_t)sim_between(sim, 0, last - 1);
    uint32_t target = (uint32_t)sim_between(sim, 0, FAVORITE_TARGETS - 1);

    if (!lists && favorites->step_count > 0 && sim_chance(sim, KNOWN)) {
        const struct edge_step *step =
            &favorites->steps[sim_between(sim, 0, favorites->step_count - 1)];
        about = step->player;
        target = step->target;
    }
    struct sim_op *op = op_new(sim, server, about, method);

    op->target = target;
    if (!lists)
        op->authority = BY_SYSTEM;
    op_call(sim, op);
}

/* ---- the model ---- */
void review_follows(struct edge_step *edge, bool favorite, uint32_t flag, uint64_t now_ms)
{
    bool kept = edge->flag == MODERATION || edge->flag == REJECTED;

    if (favorite && !edge->favorited) {
        edge->flag = edge->flag > 0 ? edge->flag : flag;
        edge->flagged_at_ms = edge->flag > 0 ? now_ms : 0;
    } else if (!favorite) {
        edge->flag = kept ? edge->flag : 0;
        edge->flagged_at_ms = 0;
    }
}

static bool waits(const struct edge_step *step)
{
    return step->favorited && !step->is_counter && step->flag > 0;
}

void review_followed(const struct change *c, const struct edge_step *was,
                     const struct edge_step *now)
{
    struct sim_counts *counts = &c->sim->counts;

    counts->reviews_gone += waits(was) && !now->favorited;
    if (was->favorited || !waits(now))
        return;
    counts->reviews_flagged++;
    counts->reviews_young += now->flag == HOLDFAST__V1__FLAG_REASON__FLAG_REASON_ACCOUNT_AGE;
    counts->reviews_fast += now->flag == HOLDFAST__V1__FLAG_REASON__FLAG_REASON_VELOCITY;
    counts->reviews_again += was->flag > 0;
}

/* Of the whole shard, as of an index. */
static uint64_t waiting_at(const struct sim *sim, uint32_t shard, uint64_t index,
                           uint64_t *ret_since_ms)
{
    const struct favorites_sim *favorites = sim->favorites;
    uint64_t count = 0;

    *ret_since_ms = 0;
    for (uint32_t i = 0; favorites != NULL && i < favorites->step_count; i++) {
        const struct edge_step *step = &favorites->steps[i];
        if (step->shard != shard || step->index > index || !waits(step) ||
            favorite_edge_at(sim, step, index) != step)
            continue;
        if (count++ == 0 || step->flagged_at_ms < *ret_since_ms)
            *ret_since_ms = step->flagged_at_ms;
    }
    return count;
}

/* Of those, how many are of players that are erased: they are not listed. */
static uint64_t hidden_at(const struct sim *sim, uint32_t shard, uint64_t index)
{
    const struct favorites_sim *favorites = sim->favorites;
    uint64_t count = 0;

    for (uint32_t i = 0; favorites != NULL && i < favorites->step_count; i++) {
        const struct edge_step *step = &favorites->steps[i];
        count += step->shard == shard && step->index <= index && waits(step) &&
                 favorite_edge_at(sim, step, index) == step &&
                 erasure_hides_at(sim, shard, step->player, index);
    }
    return count;
}

void review_check_rows(const struct change *c, const struct edge_step *edge, uint32_t flagged)
{
    const struct meta *meta = applier_meta(c->shard->applier);
    struct edge_step of = *edge;
    uint64_t since_ms;
    uint32_t own = 0;

    for (of.target = 0; of.target < FAVORITE_TARGETS; of.target++) {
        const struct edge_step *step = favorite_edge_at(c->sim, &of, c->entry->index);
        own += step != NULL && waits(step);
    }
    if (flagged != own)
        model_fail(c, "the flagged edges of a player are counted as", flagged);
    if (meta->review_count != waiting_at(c->sim, c->number, c->entry->index, &since_ms))
        model_fail(c, "the edges of a shard that wait are counted as", meta->review_count);
    if (meta->review_since_ms != since_ms)
        model_fail(c, "the first edge of a shard is told to wait since", meta->review_since_ms);
}

/* The edge as it stands before the entry. */
static struct edge_step edge_of(const struct change *c, uint64_t number, const char *collection,
                                uint32_t target)
{
    const struct edge_step edge = {
        .shard = c->number,
        .number = number,
        .place = favorite_place_of_name(collection),
        .player = model_player_number(c),
        .target = target,
    };
    const struct edge_step *before = favorite_edge_at(c->sim, &edge, c->entry->index);

    return before != NULL ? *before : edge;
}

static void decide(struct change *c, const struct review_deed *deed, struct edge_step *edge)
{
    struct sim_counts *counts = &c->sim->counts;

    if (deed->method == METHOD_ACCEPT_EDGES) {
        counts->reviews_accepted++;
        edge->flag = 0;
        edge->flagged_at_ms = 0;
    } else if (deed->method == METHOD_REJECT_EDGES) {
        counts->reviews_rejected++;
        edge->favorited = false;
        edge->at_ms = c->entry->owner_ms;
        edge->ver++;
        edge->flag = REJECTED;
        edge->flagged_at_ms = 0;
    } else {
        counts->reviews_by_hand++;
        edge->flag = MODERATION;
        edge->flagged_at_ms = c->entry->owner_ms;
    }
    edge->decided = true;
    edge->by_erasure = false;
    edge->index = c->entry->index;
    edge->dot = (struct source_dot){ c->entry->dot.epoch, c->entry->dot.counter };
    favorite_step_add(favorites_of(c->sim), edge);
    sim_say(c->sim, "REVIEW   s%u p%u to t%u in %llu: %s", c->number, edge->player, edge->target,
            (unsigned long long)edge->number,
            deed->method == METHOD_ACCEPT_EDGES   ? "accepted"
            : deed->method == METHOD_REJECT_EDGES ? "rejected"
                                                  : "flagged");
}

/* One edge that is named. */
static uint32_t decide_named(struct change *c, const struct op_model *op,
                             const struct review_deed *deed, struct edge_step *edge)
{
    if (!edge->favorited || (deed->method != METHOD_FLAG_EDGES && edge->flag == 0)) {
        model_fail_op(c, op, "decides about an edge that is not there, or not flagged");
        return 0;
    }
    if (deed->method == METHOD_FLAG_EDGES && edge->flag > 0)
        return 0;
    decide(c, deed, edge);
    return 1;
}

/* All edges of the player, the newest first, at one moment by target. */
static uint32_t flag_all(struct change *c, const struct review_deed *deed, uint64_t number)
{
    struct edge_step edges[FAVORITE_TARGETS];
    uint32_t count = 0, changed = 0;

    for (uint32_t target = 0; target < FAVORITE_TARGETS; target++) {
        struct edge_step edge = edge_of(c, number, deed->collection, target);
        if (!edge.favorited)
            continue;
        uint32_t at = count++;
        for (; at > 0 && edges[at - 1].at_ms < edge.at_ms; at--)
            edges[at] = edges[at - 1];
        edges[at] = edge;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (edges[i].flag > 0)
            continue;
        decide(c, deed, &edges[i]);
        changed++;
    }
    return changed;
}

void review_carried_out(struct change *c, const struct op_model *op, const struct review_deed *deed)
{
    const struct sim_collection *collection =
        favorite_life(c->sim, c->number, deed->collection, c->entry->index);
    uint32_t edges = 0;
    uint64_t since_ms;

    if (erasure_blocks(c))
        model_fail_op(c, op, "reviews edges of a player that is erased");
    if (c->op.authority.scope.size != 5)
        model_fail_op(c, op, "reviews under a scope that may not");
    if (collection == NULL) {
        model_fail_op(c, op, "reviews a collection that is not defined");
        return;
    }
    struct edge_step edge = edge_of(c, collection->number, deed->collection, 0);

    if (deed->targets == NULL)
        edges = flag_all(c, deed, collection->number);
    for (size_t i = 0; deed->targets != NULL && i < deed->count; i++) {
        edge =
            edge_of(c, collection->number, deed->collection, favorite_target_of(deed->targets[i]));
        edges += decide_named(c, op, deed, &edge);
        favorite_check_rows(c, &edge);
    }
    for (edge.target = 0; deed->targets == NULL && edge.target < FAVORITE_TARGETS; edge.target++)
        favorite_check_rows(c, &edge);
    if (deed->edges != edges)
        model_fail(c, "a review tells another number of edges,", deed->edges);
    if (deed->waiting != waiting_at(c->sim, c->number, c->entry->index, &since_ms))
        model_fail(c, "a review tells that others wait,", deed->waiting);
}

void review_refused(const struct change *c, const struct op_model *op,
                    const struct review_deed *deed, const Holdfast__Internal__V1__Refusal *detail)
{
    const struct sim_collection *collection =
        favorite_life(c->sim, c->number, deed->collection, c->entry->index);
    bool wrong = false;

    if (detail->code != CODE(NOT_FOUND))
        return;
    c->sim->counts.reviews_untrue++;
    if (collection == NULL)
        return;
    for (size_t i = 0; deed->targets != NULL && i < deed->count; i++) {
        const struct edge_step edge =
            edge_of(c, collection->number, deed->collection, favorite_target_of(deed->targets[i]));
        wrong |= !edge.favorited || (deed->method != METHOD_FLAG_EDGES && edge.flag == 0);
    }
    if (!wrong)
        model_fail_op(c, op, "is refused, and all its edges may be decided");
}

/* ---- answers ---- */
void review_told_list(const struct told *t)
{
    const Holdfast__V1__ListFlaggedEdgesRequest *request = (const void *)t->request;
    const Holdfast__V1__ListFlaggedEdgesResponse *response = (const void *)t->response;
    uint64_t index = told_index(t), since_ms;

    if (index == 0)
        return;
    uint64_t waiting = waiting_at(t->sim, t->call->shard, index, &since_ms);
    uint64_t hidden = hidden_at(t->sim, t->call->shard, index), told = waiting - hidden;
    if (response->waiting != waiting)
        told_fail(t, "how many edges wait for a review", response->waiting, waiting);
    if (hidden == 0 || waiting <= request->page_size) {
        if (response->n_edges != (told < request->page_size ? told : request->page_size))
            told_fail(t, "the flagged edges on a page", response->n_edges, told);
    } else if (response->n_edges > told) {
        told_fail(t, "the flagged edges of players that are not erased", response->n_edges, told);
    }
    for (size_t i = 0; i < response->n_edges; i++) {
        const Holdfast__V1__FlaggedEdge *one = response->edges[i];
        const struct edge_step edge = {
            .shard = t->call->shard,
            .number = one->collection_number,
            .player = model_player_of_id(one->player_id),
            .target = favorite_target_of(one->target_id),
        };
        const struct edge_step *step = favorite_edge_at(t->sim, &edge, index);
        if (step == NULL || !waits(step) || (uint32_t)one->reason != step->flag ||
            one->created_at_ms != (int64_t)step->at_ms ||
            one->flagged_at_ms != (int64_t)step->flagged_at_ms)
            told_fail(t, "an edge is told as flagged otherwise than it is, at place", i, 0);
        if (erasure_hides_at(t->sim, edge.shard, edge.player, index))
            told_fail(t, "an edge of an erased player is told as flagged, at place", i, 0);
        if (i == 0 && hidden == 0 && one->flagged_at_ms != (int64_t)since_ms)
            told_fail(t, "the first that waits", (uint64_t)one->flagged_at_ms, since_ms);
    }
    t->sim->counts.reviews_lists += response->n_edges > 0;
}
