/* The model of edges, and what game servers ask of them; answers: favorite_told.c. */
#include "tests/sim/favorites/favorite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "node/core/favorite/favorite_row.h"
#include "runtime/base/check.h"
#include "tests/sim/favorites/favorite_model.h"
#include "tests/sim/favorites/rate.h"
#include "tests/sim/favorites/review.h"
#include "tests/sim/servers/workload.h"

#define ACTS_PER_THOUSAND 700u
#define UNDEFINED_ASKED   20u  /* Of a thousand: though no shard may have a collection. */
#define READS             450u /* Of a thousand. */
#define COUNTERS          600u /* Likewise, in runs with counters. */
#define REVIEWS           250u /* Likewise, in runs with reviews. */
#define FEW_COUNTERS      100u
#define ERASURES          250u /* Likewise, in runs with erasures. */
#define BURST_MAX         FAVORITE_TARGETS
#define VER_STEP_MS       64u
#define VER_SPREAD        40u
#define VER_BITS          0xffffffu

bool favorite_runs(const struct sim *sim)
{
    return (sim->seed * 0x9e3779b97f4a7c15u) >> 63 != 0 && !sim_without(sim, WITHOUT_definitions) &&
           !sim_without(sim, WITHOUT_favorites);
}

struct favorites_sim *favorites_of(struct sim *sim)
{
    if (sim->favorites == NULL)
        sim->favorites = mem_zalloc(sizeof *sim->favorites);
    return sim->favorites;
}

void favorite_free_all(struct sim *sim)
{
    if (sim->favorites != NULL) {
        free(sim->favorites->steps);
        free(sim->favorites->lives);
        free(sim->favorites->uses);
        free(sim->favorites->shares);
        free(sim->favorites->erasures);
    }
    free(sim->favorites);
    sim->favorites = NULL;
}

/* ---- requests ---- */
char *favorite_collection(const struct sim_op *op)
{
    static const char *const names[] = { "likes", "",          "",          "",
                                         "",      "favorites", "favorites", "favorites" };

    return request_text(names[op->amount % ARRAY_SIZE(names)]);
}

char *favorite_target(const struct sim_op *op)
{
    static const char *const names[FAVORITE_TARGETS] = { "t0", "t1", "t2", "t3" };

    return request_text(names[op->target % FAVORITE_TARGETS]);
}

uint64_t favorite_ver(const struct sim_op *op)
{
    return op->others[1];
}

bool favorite_place(const struct sim *sim, const struct sim_op *op, char ret_place[64])
{
    const struct favorites_sim *favorites = sim->favorites;

    if (favorites == NULL || op->mode == 0 || op->mode > favorites->step_count)
        return false;
    const struct edge_step *step = &favorites->steps[op->mode - 1];

    snprintf(ret_place, 64, "%llu:t%u", (unsigned long long)step->at_ms, step->target);
    return true;
}

/* Calls come in any order, so a later one has the higher `ver` most of the time alone. */
static void ask_change(struct sim *sim, uint32_t server, uint32_t player, uint32_t target)
{
    bool gone = sim_chance(sim, 300);
    uint32_t ver = (uint32_t)(sim->now_ms / VER_STEP_MS) & VER_BITS;
    struct sim_op *op = op_new(sim, server, player, gone ? METHOD_UNFAVORITE : METHOD_FAVORITE);

    while (strchr(op->id, ':') != NULL && strncmp(op->id, "key:", 4) != 0)
        sim_op_id(sim, op->id); /* Others are kept for ever, and not taken. */
    op->target = target;
    if (sim_chance(sim, 600))
        op->others[1] = 1 + ver + (uint32_t)sim_between(sim, 0, VER_SPREAD);
    op_call(sim, op);
}

static void ask_read(struct sim *sim, uint32_t server, uint32_t player, uint32_t method)
{
    const struct favorites_sim *favorites = favorites_of(sim);
    bool of_shard = method == METHOD_GET_PARTIALS || method == METHOD_LIST_BY_TARGET ||
                    method == METHOD_GET_SHARD_TOP;
    uint32_t about = of_shard ? (uint32_t)sim_between(sim, 0, sim->shard_count - 1) : player;
    struct sim_op *op = op_new(sim, server, about, method);

    op->target = (uint32_t)sim_between(sim, 0, FAVORITE_TARGETS - 1);
    if (favorites->step_count > 0 && sim_chance(sim, 500))
        op->mode = (uint32_t)sim_between(sim, 1, favorites->step_count);
    op_call(sim, op);
}

bool favorite_is_defined(const struct sim *sim)
{
    const struct favorites_sim *favorites = sim->favorites;

    return favorites != NULL && favorites->life_count > 0 &&
           favorites->lives[favorites->life_count - 1].now[0].number > 0;
}

void favorite_act(struct sim *sim, uint32_t server)
{
    static const uint32_t reads[] = { METHOD_LIST_FAVORITES,   METHOD_LIST_FAVORITES,
                                      METHOD_BATCH_GET_STATUS, METHOD_GET_PARTIALS,
                                      METHOD_LIST_BY_TARGET,   METHOD_GET_SHARD_TOP };

    if (!favorite_runs(sim) || !sim->servers[server].registered || sim->quiet ||
        !sim_chance(sim, ACTS_PER_THOUSAND))
        return;
    if (!favorite_is_defined(sim) && !sim_chance(sim, UNDEFINED_ASKED))
        return;
    uint32_t player = (uint32_t)sim_between(sim, 0, sim->player_count - 1);

    if (erasure_runs(sim) && sim_chance(sim, ERASURES)) {
        erasure_act(sim, server, player);
        return;
    }
    if (review_runs(sim) && sim_chance(sim, REVIEWS)) {
        review_act(sim, server);
        return;
    }
    if (counter_runs(sim) && sim_chance(sim, review_runs(sim) ? FEW_COUNTERS : COUNTERS)) {
        counter_act(sim, server, player);
        return;
    }
    if (sim_chance(sim, READS)) {
        ask_read(sim, server, player, reads[sim_between(sim, 0, ARRAY_SIZE(reads) - 1)]);
        return;
    }
    uint32_t target = (uint32_t)sim_between(sim, 0, FAVORITE_TARGETS - 1);

    /* Some at one moment: lists have ties. */
    for (uint64_t i = sim_between(sim, 1, BURST_MAX); i > 0; i--)
        ask_change(sim, server, player, target++ % FAVORITE_TARGETS);
}

/* ---- the model ---- */
uint32_t favorite_place_of_name(const char *collection)
{
    return strcmp(collection, "likes") == 0;
}

const struct collections_life *favorite_life_at(const struct sim *sim, uint32_t shard,
                                                uint64_t index)
{
    const struct favorites_sim *favorites = sim->favorites;

    for (uint32_t i = favorites != NULL ? favorites->life_count : 0; i > 0; i--) {
        const struct collections_life *life = &favorites->lives[i - 1];
        if (life->shard == shard && life->index <= index)
            return life;
    }
    return NULL;
}

const struct sim_collection *favorite_life(const struct sim *sim, uint32_t shard,
                                           const char *collection, uint64_t index)
{
    const struct collections_life *life = favorite_life_at(sim, shard, index);
    uint32_t place = favorite_place_of_name(collection);

    return life != NULL && life->now[place].number > 0 ? &life->now[place] : NULL;
}

void favorite_defined(struct sim *sim, uint32_t shard, uint64_t index)
{
    static const char *const names[FAVORITE_COLLECTIONS] = { "favorites", "likes" };
    struct favorites_sim *favorites = favorites_of(sim);

    if (!favorite_runs(sim))
        return;
    if (favorites->life_count == favorites->life_capacity) {
        favorites->life_capacity = favorites->life_capacity * 2 + 64;
        favorites->lives =
            mem_realloc(favorites->lives, sizeof *favorites->lives * favorites->life_capacity);
    }
    struct collections_life *life = &favorites->lives[favorites->life_count++];

    *life = (struct collections_life){ .shard = shard, .index = index };
    for (uint32_t i = 0; i < FAVORITE_COLLECTIONS; i++) {
        (void)definition_collection(sim, shard, names[i], &life->now[i]);
        life->rule_count[i] = rate_rules(sim, shard, names[i], life->rules[i]);
    }
    for (uint32_t i = 0; i < COUNTER_NAMES; i++)
        (void)definition_counter(sim, shard, counter_names[i], &life->counters[i]);
}

const struct edge_step *favorite_edge_at(const struct sim *sim, const struct edge_step *edge,
                                         uint64_t index)
{
    const struct favorites_sim *favorites = sim->favorites;

    for (uint32_t i = favorites != NULL ? favorites->step_count : 0; i > 0; i--) {
        const struct edge_step *step = &favorites->steps[i - 1];
        if (step->shard == edge->shard && step->number == edge->number &&
            step->player == edge->player && step->target == edge->target && step->index <= index)
            return step;
    }
    return NULL;
}

static bool stands(const struct sim *sim, const struct edge_step *edge, uint64_t index)
{
    const struct edge_step *step = favorite_edge_at(sim, edge, index);

    return step != NULL && step->favorited;
}

bool favorite_step_counts(const struct edge_step *step)
{
    return step->favorited && step->flag == 0 && !step->withdrawn;
}

uint64_t favorite_count_at(const struct sim *sim, const struct edge_step *edge, uint64_t index)
{
    struct edge_step of = *edge;
    uint64_t count = 0;

    for (of.player = 0; of.player < sim->player_count; of.player++) {
        const struct edge_step *step = favorite_edge_at(sim, &of, index);
        if (step != NULL && favorite_step_counts(step))
            count += step->is_counter ? (uint64_t)step->value : 1;
    }
    return count;
}

/* Each addition stays in its hour, until what its player added is taken out of the total. */
static void counter_hours(const struct sim *sim, const struct edge_step *edge, uint64_t index,
                          struct hours *hours)
{
    const struct favorites_sim *favorites = sim->favorites;

    for (uint32_t i = 0; favorites != NULL && i < favorites->step_count; i++) {
        const struct edge_step *step = &favorites->steps[i];
        if (!step->is_counter || step->shard != edge->shard || step->number != edge->number ||
            step->target != edge->target || step->index > index)
            continue;
        const struct edge_step *last = favorite_edge_at(sim, step, index);
        if (last->favorited && !last->withdrawn && last->life == step->life)
            hours_add_many(hours, hour_of(step->at_ms), (uint64_t)step->amount);
    }
}

void favorite_hours_at(const struct sim *sim, const struct edge_step *edge, uint64_t index,
                       struct hours *ret_hours)
{
    struct edge_step of = *edge;

    *ret_hours = (struct hours){ 0 };
    counter_hours(sim, edge, index, ret_hours);
    for (of.player = 0; of.player < sim->player_count; of.player++) {
        const struct edge_step *step = favorite_edge_at(sim, &of, index);
        if (step != NULL && favorite_step_counts(step) && !step->is_counter)
            hours_add(ret_hours, hour_of(step->at_ms));
    }
}

uint32_t favorite_edges_at(const struct sim *sim, const struct edge_step *edge, uint64_t index)
{
    struct edge_step of = *edge;
    uint32_t count = 0;

    for (of.target = 0; of.target < FAVORITE_TARGETS; of.target++)
        count += stands(sim, &of, index);
    return count;
}

void favorite_step_add(struct favorites_sim *favorites, const struct edge_step *step)
{
    if (favorites->step_count == favorites->step_capacity) {
        favorites->step_capacity = favorites->step_capacity * 2 + 64;
        favorites->steps =
            mem_realloc(favorites->steps, sizeof *favorites->steps * favorites->step_capacity);
    }
    favorites->steps[favorites->step_count++] = *step;
}

uint32_t favorite_target_of(const char *target)
{
    CHECK(target[0] == 't' && target[1] >= '0' && target[2] == '\0');
    CHECK((uint32_t)(target[1] - '0') < FAVORITE_TARGETS);
    return (uint32_t)(target[1] - '0');
}

/* What the entry does to the edge; `flag`: what rules flag it for, if it is made. False: nothing,
 * since a higher `ver` was here before. */
static bool step_on(const struct favorite_deed *deed, const struct sim_collection *collection,
                    uint64_t now_ms, uint32_t flag, struct edge_step *edge)
{
    uint64_t ver = edge->ver + 1;

    if (deed->has_ver && deed->ver > edge->ver)
        ver = deed->ver;
    else if (deed->has_ver && !collection->last_write)
        return false;
    if (!deed->favorite || !edge->favorited)
        edge->at_ms = now_ms;
    review_follows(edge, deed->favorite, flag, now_ms);
    edge->decided = false;
    edge->favorited = deed->favorite;
    edge->ver = ver;
    return true;
}

static void check_told(const struct change *c, const struct favorite_deed *deed,
                       const struct edge_step *edge, bool applied)
{
    const Holdfast__V1__FavoriteStatus *status = deed->status;

    if (deed->applied != applied)
        model_fail(c, "an edge's call is told as applied, or not", deed->applied);
    if (status == NULL || (status->favorited != 0) != edge->favorited || status->ver != edge->ver ||
        status->created_at_ms != (edge->favorited ? (int64_t)edge->at_ms : 0))
        model_fail(c, "an edge is told otherwise, its ver is", edge->ver);
    if (deed->edges != favorite_edges_at(c->sim, edge, c->entry->index))
        model_fail(c, "a player's edges are told as", deed->edges);
}

static struct slice row_of(const struct change *c, const struct row_key *key)
{
    struct slice value = { 0 };

    (void)state_find(applier_state(c->shard->applier), row_key_slice(key), &value);
    return value;
}

/* The rows after every entry: the edge, its player's count, and the target's. */
void favorite_check_rows(const struct change *c, const struct edge_step *edge)
{
    const char *const names[FAVORITE_TARGETS] = { "t0", "t1", "t2", "t3" };
    struct slice target = slice_from_text(names[edge->target]);
    struct favorites_row own = { 0 };
    struct partial_row partial = { 0 };
    struct row_key key;
    struct hours hours;

    row_key_partial(&key, edge->number, target);
    struct slice value = row_of(c, &key);
    if (value.size > 0 && partial_row_decode(value, &partial) != ERR_OK)
        model_fail(c, "a count cannot be read, of target", edge->target);
    if (partial.count != favorite_count_at(c->sim, edge, c->entry->index))
        model_fail(c, "the edges to a target are counted as", partial.count);
    favorite_hours_at(c->sim, edge, c->entry->index, &hours);
    if (memcmp(&hours, &partial.hours, sizeof hours) != 0)
        model_fail(c, "edges are counted in other hours than they were made in, of target",
                   edge->target);
    row_key_favorites(&key, c->op.entity, edge->number);
    value = row_of(c, &key);
    if (value.size > 0 && favorites_row_decode(value, &own) != ERR_OK)
        model_fail(c, "a player's count cannot be read, of target", edge->target);
    if (own.edges != favorite_edges_at(c->sim, edge, c->entry->index))
        model_fail(c, "the edges of a player are counted as", own.edges);
    review_check_rows(c, edge, own.flagged);
}

static void count_deed(const struct change *c, const struct edge_step *before,
                       const struct favorite_deed *deed, bool applied)
{
    struct sim_counts *counts = &c->sim->counts;

    counts->favorites_late += !applied;
    if (!applied)
        return;
    counts->favorites_made += deed->favorite && !before->favorited;
    counts->favorites_kept += deed->favorite && before->favorited;
    counts->favorites_gone += !deed->favorite && before->favorited;
    counts->favorites_never += !deed->favorite && before->ver == 0;
}

/* Edges of this collection's name under another number stand: none of them is met. */
static void count_former(const struct change *c, const struct edge_step *edge, uint32_t place)
{
    const struct favorites_sim *favorites = c->sim->favorites;

    for (uint32_t i = 0; i < favorites->step_count; i++) {
        const struct edge_step *step = &favorites->steps[i];
        if (!step->is_counter && step->shard == edge->shard && step->place == place &&
            step->number != edge->number && step->player == edge->player &&
            step->target == edge->target) {
            c->sim->counts.favorites_again++;
            return;
        }
    }
}

/* The edge that a call is about, as it stands before. */
static struct edge_step edge_of(const struct change *c, const struct favorite_deed *deed,
                                const struct sim_collection *collection)
{
    const struct edge_step edge = {
        .shard = c->number,
        .number = collection->number,
        .place = favorite_place_of_name(deed->collection),
        .player = model_player_number(c),
        .target = favorite_target_of(deed->target),
    };
    const struct edge_step *before = favorite_edge_at(c->sim, &edge, c->entry->index);

    return before != NULL ? *before : edge;
}

void favorite_throttled(const struct change *c, const struct op_model *op,
                        const struct favorite_deed *deed)
{
    const struct sim_collection *collection =
        favorite_life(c->sim, c->number, deed->collection, c->entry->index);

    if (collection == NULL) {
        model_fail_op(c, op, "is refused by a rate rule, and its collection is not defined");
        return;
    }
    struct edge_step edge = edge_of(c, deed, collection);

    rate_refused(c, op, &edge);
    if (!step_on(deed, collection, c->entry->owner_ms, 0, &edge))
        model_fail_op(c, op, "is refused by a rate rule, and would change nothing");
}

void favorite_carried_out(struct change *c, const struct favorite_deed *deed)
{
    const struct sim_collection *collection =
        favorite_life(c->sim, c->number, deed->collection, c->entry->index);
    struct favorites_sim *favorites = favorites_of(c->sim);

    if (collection == NULL) {
        model_fail(c, "an edge of a collection that is not defined, entry", c->entry->index);
        return;
    }
    struct edge_step edge = edge_of(c, deed, collection);
    const struct edge_step was = edge;

    if (erasure_blocks(c))
        model_fail(c, "an edge of a player that is erased changes, entry", c->entry->index);
    edge.by_erasure = false;
    uint32_t flag = rate_flag(c, &edge);
    bool applied = step_on(deed, collection, c->entry->owner_ms, flag, &edge);
    bool made = edge.favorited && !was.favorited;

    if (made && favorite_edges_at(c->sim, &edge, c->entry->index) >= collection->edges_max)
        model_fail(c, "an edge above the collection's maximum of", collection->edges_max);
    edge.index = c->entry->index;
    edge.dot = (struct source_dot){ c->entry->dot.epoch, c->entry->dot.counter };
    count_former(c, &edge, edge.place);
    if (applied) {
        rate_used(c, &edge, made);
        favorite_step_add(favorites, &edge);
    }
    count_deed(c, &was, deed, applied);
    review_followed(c, &was, &edge);
    check_told(c, deed, &edge, applied);
    favorite_check_rows(c, &edge);
    sim_say(c->sim, "EDGE     s%u p%u to t%u in %llu: %s, ver %llu%s%s", c->number, edge.player,
            edge.target, (unsigned long long)edge.number, edge.favorited ? "stands" : "gone",
            (unsigned long long)edge.ver, edge.flag > 0 ? ", flagged" : "",
            applied ? "" : ", as before");
}

void favorite_refused(const struct change *c, const struct op_model *op, const char *collection,
                      const Holdfast__Internal__V1__Refusal *detail)
{
    const struct sim_collection *life =
        favorite_life(c->sim, c->number, collection, c->entry->index);
    struct edge_step edge = { .shard = c->number, .player = model_player_number(c) };

    if (detail->code == CODE(NOT_FOUND)) {
        c->sim->counts.favorites_unknown++;
        if (life != NULL)
            model_fail_op(c, op, "is refused for a collection that is defined");
    }
    if (detail->code != CODE(CAPACITY_FULL))
        return;
    c->sim->counts.favorites_full++;
    edge.number = life != NULL ? life->number : 0;
    if (life == NULL || favorite_edges_at(c->sim, &edge, c->entry->index) < life->edges_max)
        model_fail_op(c, op, "is refused for want of room, and there is some");
}

/* ---- all rows, added up ---- */
struct edge_sums {
    uint64_t standing, gone;   /* By their own rows. */
    uint64_t listed, buried;   /* By their players' lists. */
    uint64_t favorers;         /* By their targets. */
    uint64_t counted, partial; /* By both counts. */
    uint64_t waiting,
        reviews; /* Edges that stand and do not count, by their own rows; by theirs. */
    struct counter_sums counters;
    uint64_t counted_gone;
};

static void add_row(struct sim *sim, uint32_t shard, const struct state_write *write,
                    struct edge_sums *sums)
{
    struct slice value = { write->value->bytes, write->value->size };
    struct favorite_row row = { 0 };
    struct favorites_row own = { 0 };
    struct favorite_key key;
    struct partial_row partial = { 0 };
    err e = ERR_OK;

    sums->reviews += write->key.data[0] == TABLE_REVIEW;
    if (favorite_key_parse(write->key, &key) != ERR_OK)
        return;
    switch ((int)write->key.data[0]) {
    case TABLE_FAVORITE:
        e = favorite_row_decode(value, &row);
        break;
    case TABLE_FAVORITES:
        e = favorites_row_decode(value, &own);
        break;
    case TABLE_PARTIAL:
        e = partial_row_decode(value, &partial);
        break;
    case TABLE_ADDED:
    case TABLE_ADDER:
        e = counter_row_add(write->key, value, &sums->counters);
        break;
    case TABLE_FAVORED:
        sums->listed += key.part == FAVORED_EDGES;
        sums->buried += key.part == FAVORED_GONE;
        break;
    default:
        sums->favorers++;
        break;
    }
    if (e != ERR_OK)
        sim_fail(sim, shard, "a row of edges of table %c cannot be read", write->key.data[0]);
    sums->standing += row.favorited;
    sums->waiting += row.favorited && !favorite_edge_counts(&row);
    sums->gone += row.ver > 0 && !row.favorited;
    sums->counted += own.edges;
    sums->counted_gone += own.gone;
    sums->partial += partial.count;
}

/* Edges that stand; of those, how many are withdrawn, wait for a review, and count. */
struct standing {
    uint64_t all, withdrawn, waiting, counted;
};

static struct standing standing_in(const struct sim *sim, uint32_t shard)
{
    const struct favorites_sim *favorites = sim->favorites;
    struct standing standing = { 0 };

    for (uint32_t i = 0; i < favorites->step_count; i++) {
        const struct edge_step *step = &favorites->steps[i];
        if (step->shard != shard || !step->favorited || step->is_counter ||
            favorite_edge_at(sim, step, UINT64_MAX) != step)
            continue;
        standing.all++;
        standing.withdrawn += step->withdrawn;
        standing.waiting += step->flag > 0;
        standing.counted += favorite_step_counts(step);
    }
    return standing;
}

static void check_shard(struct sim *sim, uint32_t shard)
{
    struct state *state = applier_state(sim->oracle->shards[shard].applier);
    const struct state_write *writes;
    struct edge_sums sums = { 0 };
    uint32_t count;

    CHECK(state_checkpoint_begin(state, &writes, &count));
    for (uint32_t i = 0; i < count; i++) {
        if (writes[i].value != NULL)
            add_row(sim, shard, &writes[i], &sums);
    }
    state_checkpoint_end(state, false);
    const struct standing wanted = standing_in(sim, shard);
    counter_check_sums(sim, shard, &sums.counters);
    sums.counted -= sums.counters.targets;
    sums.partial -= sums.counters.adders_value;
    if (sums.standing != wanted.all || sums.listed != wanted.all ||
        sums.favorers != wanted.all - wanted.withdrawn || sums.counted != wanted.all ||
        sums.partial != wanted.counted)
        sim_fail(sim, shard,
                 "%llu edges stand: %llu rows say so, %llu in lists, %llu with targets, counted "
                 "as %llu and %llu",
                 (unsigned long long)wanted.all, (unsigned long long)sums.standing,
                 (unsigned long long)sums.listed, (unsigned long long)sums.favorers,
                 (unsigned long long)sums.counted, (unsigned long long)sums.partial);
    if (sums.waiting != wanted.waiting || sums.reviews != wanted.waiting)
        sim_fail(sim, shard, "%llu edges wait for a review: %llu rows say so, %llu are in the list",
                 (unsigned long long)wanted.waiting, (unsigned long long)sums.waiting,
                 (unsigned long long)sums.reviews);
    if (sums.gone != sums.buried || sums.gone != sums.counted_gone)
        sim_fail(sim, shard, "%llu edges are gone, %llu in lists, counted as %llu",
                 (unsigned long long)sums.gone, (unsigned long long)sums.buried,
                 (unsigned long long)sums.counted_gone);
}

void favorite_sum_up(struct sim *sim)
{
    if (sim->favorites == NULL || sim->failure[0] != '\0')
        return;
    for (uint32_t i = 0; i < sim->shard_count; i++)
        check_shard(sim, i);
}
