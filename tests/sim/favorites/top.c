/* The model of totals: what homes log, by the requests alone. */
#include "tests/sim/favorites/top.h"

#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/top/top.h"
#include "runtime/base/check.h"
#include "tests/sim/favorites/favorite_model.h"

typedef Holdfast__Internal__V1__TakePartialsRequest take_request;
typedef Holdfast__Internal__V1__GetShardTopRequest top_request;
typedef Holdfast__Internal__V1__GetShardTopResponse top_response;

static const char *const names[FAVORITE_TARGETS] = { "t0", "t1", "t2", "t3" };

/* What a home has of one source. The newest of each holds. */
struct share_model {
    uint32_t home, source, target;
    uint64_t number;
    uint64_t index; /* Of the home's entry. */
    uint64_t count;
    struct hours hours;
};

struct tops_sim {
    struct source_dot logged[SIM_SHARDS_MAX][SIM_SHARDS_MAX]; /* By home and source. */
    struct share_model *shares;
    uint32_t share_count, share_capacity;
};

static struct tops_sim *tops_of(struct sim *sim)
{
    struct favorites_sim *favorites = favorites_of(sim);

    if (favorites->tops == NULL)
        favorites->tops = mem_zalloc(sizeof *favorites->tops);
    return favorites->tops;
}

void top_free_all(struct sim *sim)
{
    if (sim->favorites == NULL || sim->favorites->tops == NULL)
        return;
    free(sim->favorites->tops->shares);
    free(sim->favorites->tops);
    sim->favorites->tops = NULL;
}

/* ---- the model ---- */
/* A target of a collection, in its home. */
struct about {
    uint32_t home, target;
    uint64_t number;
};

static const struct share_model *share_at(const struct tops_sim *tops, const struct about *about,
                                          uint32_t source, uint64_t index)
{
    for (uint32_t i = tops->share_count; i > 0; i--) {
        const struct share_model *share = &tops->shares[i - 1];
        if (share->home == about->home && share->source == source &&
            share->target == about->target && share->number == about->number &&
            share->index <= index)
            return share;
    }
    return NULL;
}

/* The sum of all shares, as of an entry of the home. */
static uint64_t total_at(const struct sim *sim, const struct about *about, uint64_t index,
                         struct hours *ret_hours)
{
    const struct hours none = { 0 };
    uint64_t total = 0;

    *ret_hours = none;
    for (uint32_t source = 0; source < sim->shard_count; source++) {
        const struct share_model *share = share_at(sim->favorites->tops, about, source, index);
        if (share == NULL)
            continue;
        total += share->count;
        hours_replace(ret_hours, &none, &share->hours);
    }
    return total;
}

static void share_add(struct tops_sim *tops, const struct share_model *share)
{
    if (tops->share_count == tops->share_capacity) {
        tops->share_capacity = tops->share_capacity * 2 + 64;
        tops->shares = mem_realloc(tops->shares, sizeof *tops->shares * tops->share_capacity);
    }
    tops->shares[tops->share_count++] = *share;
}

/* ---- the log ---- */
static bool stands_in(const struct change *c, const struct row_key *key)
{
    struct slice value;

    return state_find(applier_state(c->shard->applier), row_key_slice(key), &value) ==
           STATE_PRESENT;
}

static void check_place(const struct change *c, const struct about *about, char window,
                        uint64_t count)
{
    struct row_key key;

    if (count == 0)
        return;
    row_key_rank_prefix(&key, about->number, window);
    row_key_rank_add(&key, count, slice_from_text(names[about->target]));
    if (!stands_in(c, &key))
        model_fail(c, "a total has no place in a list, of target", about->target);
}

/* The oracle has every row in memory: one that is missing there is none. */
static bool read_tally(struct shard_oracle *shard, const struct about *about, struct tally_row *row)
{
    const struct top_key of = { .collection = about->number,
                                .target = slice_from_text(names[about->target]) };

    return tally_find(applier_state(shard->applier), &of, NULL, row) != ERR_CORRUPT;
}

/* The rows after every entry. */
static void check_tally(const struct change *c, const struct about *about)
{
    struct tally_row row;
    struct hours hours;
    uint64_t total = total_at(c->sim, about, c->entry->index, &hours);

    if (!read_tally(c->shard, about, &row)) {
        model_fail(c, "a total cannot be read, of target", about->target);
        return;
    }
    if (row.count != total)
        model_fail(c, "the total of a target is not the sum of its shares, but", row.count);
    if (memcmp(&row.hours, &hours, sizeof hours) != 0)
        model_fail(c, "the hours of a total are not those of its shares, of target", about->target);
    if (row.day > row.week || row.week > row.count)
        model_fail(c, "a window has more than the whole, of target", about->target);
    check_place(c, about, TOP_DAY, row.day);
    check_place(c, about, TOP_WEEK, row.week);
    check_place(c, about, TOP_ALL, row.count);
}

/* What the source had when its entry of that dot was applied. */
static const struct edge_step *step_of(const struct sim *sim, uint32_t source,
                                       const struct pull_item *item)
{
    for (uint32_t i = 0; i < sim->favorites->step_count; i++) {
        const struct edge_step *step = &sim->favorites->steps[i];
        if (step->shard == source && step->number == item->collection &&
            step->dot.epoch == item->dot.epoch && step->dot.counter == item->dot.counter &&
            slice_equal(slice_from_text(names[step->target]), item->target))
            return step;
    }
    return NULL;
}

static void take_item(struct change *c, uint32_t source, const struct pull_item *item)
{
    const struct edge_step *step = step_of(c->sim, source, item);
    struct tops_sim *tops = tops_of(c->sim);
    struct hours hours;

    if (step == NULL) {
        model_fail(c, "an item is of no change of its source, s", source);
        return;
    }
    favorite_hours_at(c->sim, step, step->index, &hours);
    if (item->count != favorite_count_at(c->sim, step, step->index))
        model_fail(c, "an item is not what its source had, but", item->count);
    if (memcmp(&hours, &item->hours, sizeof hours) != 0)
        model_fail(c, "an item has other hours than its source had, of target", step->target);
    const struct about about = { c->number, step->target, item->collection };
    const struct share_model *before = share_at(tops, &about, source, UINT64_MAX);
    c->sim->counts.pulls_lowered += before != NULL && before->count > item->count;
    c->sim->counts.pulls_logged++;
    share_add(tops, &(struct share_model){ .home = c->number,
                                           .source = source,
                                           .target = step->target,
                                           .number = item->collection,
                                           .index = c->entry->index,
                                           .count = item->count,
                                           .hours = hours });
}

static void take_part(struct change *c, const Holdfast__Internal__V1__PulledPart *part,
                      bool *touched)
{
    struct source_dot *logged = &tops_of(c->sim)->logged[c->number][part->source];
    const struct source_dot after = { part->after_epoch, part->after_counter };
    const struct source_dot to = { part->to_epoch, part->to_counter };
    const struct source_dot before = *logged; /* What one entry changed is taken together. */
    struct reader reader = reader_from((struct slice){ part->items.data, part->items.len });
    struct pull_item item;

    if (source_dot_is_above(after, *logged))
        return;
    while (pull_item_next(&reader, &item)) {
        touched[favorite_target_of(
            (const char[]){ (char)item.target.data[0], (char)item.target.data[1], '\0' })] = true;
        if (!source_dot_is_above(item.dot, before)) {
            c->sim->counts.pulls_known++;
            continue;
        }
        take_item(c, part->source, &item);
        if (source_dot_is_above(item.dot, *logged))
            *logged = item.dot;
    }
    if (source_dot_is_above(to, *logged))
        *logged = to;
}

void top_logged(struct change *c)
{
    const take_request *request = (const void *)c->request;
    const struct favorites_sim *favorites = favorites_of(c->sim);
    bool touched[FAVORITE_TARGETS] = { false };

    if (c->outcome->kind != OUTCOME_COMMITTED)
        return;
    for (size_t i = 0; i < request->n_parts; i++)
        take_part(c, request->parts[i], touched);
    for (uint32_t i = 0; i < favorites->step_count; i++) {
        const struct about about = { c->number, favorites->steps[i].target,
                                     favorites->steps[i].number };
        if (touched[about.target] && target_home(about.number, slice_from_text(names[about.target]),
                                                 c->sim->shard_count) == c->number)
            check_tally(c, &about);
    }
}

/* What its source has of it is removed, so the home has to know that there is none. */
static void check_forgotten(const struct change *c, const struct edge_step *step)
{
    const char *name = names[step->target];
    const struct about about = { target_home(step->number, slice_from_text(name),
                                             c->sim->shard_count),
                                 step->target, step->number };
    const struct share_model *share = share_at(tops_of(c->sim), &about, c->number, UINT64_MAX);
    struct row_key key;

    row_key_partial(&key, step->number, slice_from_text(name));
    if (stands_in(c, &key))
        return;
    if (share != NULL && share->count > 0)
        model_fail(c, "a count is forgotten that its home has not logged, of target", step->target);
    if (favorite_count_at(c->sim, step, c->entry->index) > 0)
        model_fail(c, "a count is forgotten while edges lead to target", step->target);
}

void top_forgotten(struct change *c)
{
    const struct favorites_sim *favorites = favorites_of(c->sim);

    if (c->outcome->kind != OUTCOME_COMMITTED)
        return;
    const Holdfast__Internal__V1__ForgetPartialsResponse *response = (const void *)arena_unpack(
        &c->sim->oracle->arena, &holdfast__internal__v1__forget_partials_response__descriptor,
        c->outcome->body);
    CHECK(response != NULL);
    c->sim->counts.pulls_forgotten += response->forgotten;
    for (uint32_t i = 0; i < favorites->step_count; i++) {
        if (favorites->steps[i].shard == c->number)
            check_forgotten(c, &favorites->steps[i]);
    }
}

/* ---- answers ---- */
static uint64_t counted(const top_request *request, uint64_t total, const struct hours *hours,
                        uint32_t hour)
{
    if (request->window == HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_24H)
        return hours_sum(hours, hour, HOURS_DAY);
    if (request->window == HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_7D)
        return hours_sum(hours, hour, HOURS_MAX);
    return total;
}

/* Whether the answer is what the totals were, in the windows that end with `hour`. */
static bool is_list(const struct told *t, uint64_t number, uint64_t index, uint32_t hour)
{
    const top_request *request = (const void *)t->request;
    const top_response *response = (const void *)t->response;
    uint64_t counts[FAVORITE_TARGETS];
    uint32_t place = 0;

    for (uint32_t i = 0; i < FAVORITE_TARGETS; i++) {
        const struct about about = { t->call->shard, i, number };
        struct hours hours;
        uint64_t total = total_at(t->sim, &about, index, &hours);
        counts[i] = counted(request, total, &hours, hour);
    }
    for (; place < request->limit; place++) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < FAVORITE_TARGETS; i++)
            best = counts[i] > counts[best] ? i : best;
        if (counts[best] == 0)
            break;
        if (place == response->n_entries || response->entries[place]->count != counts[best] ||
            strcmp(response->entries[place]->target_id, names[best]) != 0)
            return false;
        counts[best] = 0;
    }
    return place == response->n_entries;
}

void top_told_list(const struct told *t)
{
    const top_request *request = (const void *)t->request;
    const top_response *response = (const void *)t->response;
    uint64_t index = told_index(t);
    uint64_t number = told_subject(t, request->collection, request->is_counter, index);
    uint32_t hour = hour_of((uint64_t)response->at_ms);

    if (index == 0)
        return;
    if (number == 0 || response->collection_number != number) {
        told_fail(t, "a list of a collection of number", response->collection_number, number);
        return;
    }
    (void)tops_of(t->sim);
    /* The owner's clock may be behind the newest entry. */
    if (!is_list(t, number, index, hour) && !is_list(t, number, index, hour + 1))
        told_fail(t, "a top list that the totals do not give, of length", response->n_entries,
                  index);
    t->sim->counts.tops += response->n_entries > 0;
    t->sim->counts.counters_tops += response->n_entries > 0 && request->is_counter;
    t->sim->counts.tops_of_hours +=
        response->n_entries > 0 && request->window == HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_24H;
}

/* ---- at rest ---- */
/* Of the newest step of a shard's edges to a target: whether its home has what it has. */
static bool is_pulled(const struct sim *sim, const struct edge_step *step)
{
    const struct about about = { target_home(step->number, slice_from_text(names[step->target]),
                                             sim->shard_count),
                                 step->target, step->number };
    const struct share_model *share =
        sim->favorites->tops != NULL
            ? share_at(sim->favorites->tops, &about, step->shard, UINT64_MAX)
            : NULL;
    struct hours hours;

    favorite_hours_at(sim, step, UINT64_MAX, &hours);
    return share != NULL && share->count == favorite_count_at(sim, step, UINT64_MAX) &&
           memcmp(&share->hours, &hours, sizeof hours) == 0;
}

static bool is_newest(const struct favorites_sim *favorites, uint32_t place)
{
    const struct edge_step *step = &favorites->steps[place];

    for (uint32_t i = place + 1; i < favorites->step_count; i++) {
        const struct edge_step *other = &favorites->steps[i];
        if (other->shard == step->shard && other->number == step->number &&
            other->target == step->target)
            return false;
    }
    return true;
}

/* A step that only raised a `ver` leaves the partial as it is: what counts is what stands. */
uint32_t top_pending(const struct sim *sim)
{
    const struct favorites_sim *favorites = sim->favorites;
    uint32_t pending = 0;

    if (favorites == NULL || !favorite_runs(sim))
        return 0;
    for (uint32_t i = 0; i < favorites->step_count; i++) {
        const struct edge_step *step = &favorites->steps[i];
        if (!is_newest(favorites, i) || is_pulled(sim, step))
            continue;
        struct about about = { target_home(step->number, slice_from_text(names[step->target]),
                                           sim->shard_count),
                               step->target, step->number };
        if (applier_meta(sim->oracle->shards[about.home].applier)->apply_version <
            TOP_APPLY_VERSION)
            continue; /* Its replicas were not known to be of this version when it started. */
        bool none = favorites->tops == NULL ||
                    share_at(favorites->tops, &about, step->shard, UINT64_MAX) == NULL;
        pending += !none || favorite_count_at(sim, step, UINT64_MAX) > 0;
    }
    return pending;
}

/* ---- what is left of targets without edges ---- */
/* Which target a row of totals or of partial counts is of; false: another row. */
static bool row_target(const struct state_write *write, struct changed_row *ret_of)
{
    struct slice value = { write->value->bytes, write->value->size };
    struct favorite_key edge;
    struct top_key top;

    switch ((int)write->key.data[0]) {
    case TABLE_PARTIAL:
        if (favorite_key_parse(write->key, &edge) != ERR_OK)
            return false;
        *ret_of = (struct changed_row){ .collection = edge.collection, .target = edge.target };
        return true;
    case TABLE_CHANGED:
    case TABLE_EMPTIED:
        return changed_row_decode(write->key, value, ret_of) == ERR_OK;
    case TABLE_SHARE:
    case TABLE_TALLY:
    case TABLE_RANK:
        if (top_key_parse(write->key, &top) != ERR_OK)
            return false;
        *ret_of = (struct changed_row){ .collection = top.collection, .target = top.target };
        return true;
    default:
        return false;
    }
}

static bool is_of_home(const struct state_write *write)
{
    return write->key.data[0] == TABLE_SHARE || write->key.data[0] == TABLE_TALLY ||
           write->key.data[0] == TABLE_RANK;
}

/* Whether edges lead to a target: from one shard, or from any for a row of its home. */
static bool has_edges(const struct sim *sim, uint32_t shard, const struct changed_row *of,
                      bool anywhere)
{
    struct edge_step edge = { .number = of->collection,
                              .target = (uint32_t)(of->target.data[1] - '0') };

    for (edge.shard = 0; edge.shard < sim->shard_count; edge.shard++) {
        if ((anywhere || edge.shard == shard) && favorite_count_at(sim, &edge, UINT64_MAX) > 0)
            return true;
    }
    return false;
}

/* Nothing is pulled to a home whose replicas were not known to be of this version. */
static bool is_pulled_to(const struct sim *sim, const struct changed_row *of)
{
    uint32_t home = target_home(of->collection, of->target, sim->shard_count);

    return applier_meta(sim->oracle->shards[home].applier)->apply_version >= TOP_APPLY_VERSION;
}

static uint32_t left_in(const struct sim *sim, uint32_t shard)
{
    struct state *state = applier_state(sim->oracle->shards[shard].applier);
    const struct state_write *writes;
    struct changed_row of;
    uint32_t count, left = 0;

    CHECK(state_checkpoint_begin(state, &writes, &count));
    for (uint32_t i = 0; i < count; i++) {
        if (writes[i].value != NULL && row_target(&writes[i], &of) && is_pulled_to(sim, &of))
            left += !has_edges(sim, shard, &of, is_of_home(&writes[i]));
    }
    state_checkpoint_end(state, false);
    return left;
}

uint32_t top_left(const struct sim *sim)
{
    uint32_t left = 0;

    if (sim->favorites == NULL || !favorite_runs(sim))
        return 0;
    for (uint32_t i = 0; i < sim->shard_count; i++)
        left += left_in(sim, i);
    return left;
}

void top_check_rows(struct sim *sim)
{
    const struct favorites_sim *favorites = sim->favorites;

    if (favorites == NULL || favorites->tops == NULL || sim->failure[0] != '\0')
        return;
    for (uint32_t i = 0; i < favorites->tops->share_count; i++) {
        const struct share_model *share = &favorites->tops->shares[i];
        const struct about about = { share->home, share->target, share->number };
        struct hours hours;
        struct tally_row row;
        uint64_t total = total_at(sim, &about, UINT64_MAX, &hours);
        if (!read_tally(&sim->oracle->shards[share->home], &about, &row) || row.count != total)
            sim_fail(sim, share->home, "the total of t%u in %llu is not %llu", share->target,
                     (unsigned long long)share->number, (unsigned long long)total);
    }
}
