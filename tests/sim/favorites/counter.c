/* The model of counters, and what game servers ask of them; answers: counter_told.c. */
#include "tests/sim/favorites/counter.h"

#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "node/core/counter/counter_row.h"
#include "runtime/base/check.h"
#include "tests/sim/favorites/favorite_model.h"
#include "tests/sim/servers/workload.h"

#define READS     350u /* Of a thousand. */
#define BY_GAME   500u
#define FEW       600u /* So that values rise to their maximum. */
#define BURST_MAX 6u

const char *const counter_names[COUNTER_NAMES] = { "d1", "d3" };

bool counter_runs(const struct sim *sim)
{
    return favorite_runs(sim) && (sim->seed * 0x9e3779b97f4a7c15u) >> 62 == 3;
}

/* ---- requests ---- */
char *counter_name(const struct sim_op *op)
{
    return request_text(counter_names[op->amount % 4 == 0]);
}

bool counter_is_asked(const struct sim_op *op)
{
    return op->mode == UINT32_MAX;
}

static void ask_add(struct sim *sim, uint32_t server, uint32_t player)
{
    struct sim_op *op = op_new(sim, server, player, METHOD_ADD_TO_COUNTER);

    op->target = (uint32_t)sim_between(sim, 0, FAVORITE_TARGETS - 1);
    if (sim_chance(sim, BY_GAME))
        op->authority = BY_SYSTEM;
    else
        server_sign(sim, op);
    op_call(sim, op);
}

static void ask_read(struct sim *sim, uint32_t server, uint32_t player, uint32_t method)
{
    bool of_shard = method == METHOD_GET_PARTIALS || method == METHOD_GET_SHARD_TOP;
    uint32_t about = of_shard ? (uint32_t)sim_between(sim, 0, sim->shard_count - 1) : player;
    struct sim_op *op = op_new(sim, server, about, method);

    op->target = (uint32_t)sim_between(sim, 0, FAVORITE_TARGETS - 1);
    op->mode = of_shard ? UINT32_MAX : (uint32_t)sim_between(sim, 0, FAVORITE_TARGETS);
    op_call(sim, op);
}

void counter_act(struct sim *sim, uint32_t server, uint32_t player)
{
    static const uint32_t reads[] = { METHOD_LIST_PLAYER_COUNTERS, METHOD_BATCH_GET_PLAYER_COUNTERS,
                                      METHOD_GET_PARTIALS, METHOD_GET_SHARD_TOP };

    if (sim_chance(sim, READS)) {
        ask_read(sim, server, player, reads[sim_between(sim, 0, ARRAY_SIZE(reads) - 1)]);
        return;
    }
    for (uint64_t i = sim_between(sim, 1, BURST_MAX); i > 0; i--)
        ask_add(sim, server, sim_chance(sim, FEW) ? player % 2 : player);
}

/* ---- the model ---- */
const struct sim_counter *counter_life(const struct sim *sim, uint32_t shard, const char *name,
                                       uint64_t index)
{
    const struct favorites_sim *favorites = sim->favorites;
    uint32_t place = strcmp(name, counter_names[1]) == 0;

    CHECK(strcmp(name, counter_names[place]) == 0);
    for (uint32_t i = favorites != NULL ? favorites->life_count : 0; i > 0; i--) {
        const struct collections_life *life = &favorites->lives[i - 1];
        if (life->shard == shard && life->index <= index)
            return life->counters[place].number > 0 ? &life->counters[place] : NULL;
    }
    return NULL;
}

static struct slice row_of(const struct change *c, const struct row_key *key)
{
    struct slice value = { 0 };

    (void)state_find(applier_state(c->shard->applier), row_key_slice(key), &value);
    return value;
}

/* What the player added stands with the player and with the target. */
static void check_row(const struct change *c, const struct row_key *key,
                      const struct edge_step *step)
{
    struct added_row row = { 0 };
    struct slice value = row_of(c, key);

    if (value.size > 0 && added_row_decode(value, &row) != ERR_OK)
        model_fail(c, "an addition cannot be read, to target", step->target);
    if (row.value != step->value || row.at_ms != step->at_ms)
        model_fail(c, "what a player added stands in a row as", (uint64_t)row.value);
}

static void check_rows(const struct change *c, const struct edge_step *step)
{
    const char name[] = { 't', (char)('0' + step->target), '\0' };
    struct row_key key;

    row_key_added_prefix(&key, c->op.entity, step->number);
    row_key_added_add(&key, slice_from_text(name));
    check_row(c, &key, step);
    row_key_adder_prefix(&key, step->number, slice_from_text(name));
    row_key_adder_add(&key, c->op.entity);
    check_row(c, &key, step);
    favorite_check_rows(c, step);
}

void counter_carried_out(struct change *c, const Holdfast__V1__AddToCounterResponse *told)
{
    const Holdfast__V1__AddToCounterRequest *request = (const void *)c->request;
    const struct sim_counter *life =
        counter_life(c->sim, c->number, request->counter, c->entry->index);

    if (life == NULL) {
        model_fail(c, "an addition to a counter that is not defined, entry", c->entry->index);
        return;
    }
    struct edge_step step = {
        .shard = c->number,
        .number = life->number,
        .place = strcmp(request->counter, counter_names[1]) == 0,
        .player = model_player_number(c),
        .target = favorite_target_of(request->target_id),
        .is_counter = true,
    };
    const struct edge_step *before = favorite_edge_at(c->sim, &step, c->entry->index);
    if (erasure_blocks(c))
        model_fail(c, "a player that is erased adds, entry", c->entry->index);
    step.life = before != NULL ? before->life : 0;
    step.value = (before != NULL ? before->value : 0) + request->amount;
    step.amount = request->amount;
    step.favorited = true;
    step.at_ms = c->entry->owner_ms;
    step.index = c->entry->index;
    step.dot = (struct source_dot){ c->entry->dot.epoch, c->entry->dot.counter };
    if (step.amount > life->add_max)
        model_fail(c, "an addition above the counter's add_max of", (uint64_t)life->add_max);
    if (step.value > life->value_max)
        model_fail(c, "a value above the counter's max_value of", (uint64_t)life->value_max);
    favorite_step_add(favorites_of(c->sim), &step);
    if (told->value != step.value)
        model_fail(c, "what a player added is told as", (uint64_t)told->value);
    if (told->targets != favorite_edges_at(c->sim, &step, c->entry->index))
        model_fail(c, "a player's targets are told as", told->targets);
    check_rows(c, &step);
    c->sim->counts.counters_added++;
    sim_say(c->sim, "ADD      s%u p%u to t%u in %llu: %lld, now %lld", c->number, step.player,
            step.target, (unsigned long long)step.number, (long long)step.amount,
            (long long)step.value);
}

void counter_refused(const struct change *c, const struct op_model *op,
                     const Holdfast__Internal__V1__Refusal *detail)
{
    const Holdfast__V1__AddToCounterRequest *request = (const void *)c->request;
    const struct sim_counter *life =
        counter_life(c->sim, c->number, request->counter, c->entry->index);

    if (detail->code == CODE(NOT_FOUND)) {
        c->sim->counts.counters_unknown++;
        if (life != NULL)
            model_fail_op(c, op, "is refused for a counter that is defined");
    }
    if (detail->code != CODE(CAPACITY_FULL))
        return;
    c->sim->counts.counters_full++;
    const struct edge_step step = {
        .shard = c->number,
        .number = life != NULL ? life->number : 0,
        .player = model_player_number(c),
        .target = favorite_target_of(request->target_id),
    };
    const struct edge_step *stands = favorite_edge_at(c->sim, &step, c->entry->index);
    int64_t value = stands != NULL ? stands->value : 0;
    if (life == NULL ||
        (request->amount <= life->add_max && value + request->amount <= life->value_max))
        model_fail_op(c, op, "is refused for want of room, and there is some");
}

/* ---- all rows, added up ---- */
err counter_row_add(struct slice key, struct slice value, struct counter_sums *sums)
{
    bool of_player = key.data[0] == TABLE_ADDED;
    struct added_row row = { 0 };

    err e = added_row_decode(value, &row);
    *(of_player ? &sums->targets : &sums->adders) += 1;
    *(of_player ? &sums->value : &sums->adders_value) += (uint64_t)row.value;
    return e;
}

void counter_check_sums(struct sim *sim, uint32_t shard, const struct counter_sums *sums)
{
    const struct favorites_sim *favorites = sim->favorites;
    uint64_t targets = 0, value = 0, adders = 0, adders_value = 0;

    for (uint32_t i = 0; i < favorites->step_count; i++) {
        const struct edge_step *step = &favorites->steps[i];
        if (!step->is_counter || step->shard != shard ||
            favorite_edge_at(sim, step, UINT64_MAX) != step || !step->favorited)
            continue;
        targets++;
        value += (uint64_t)step->value;
        adders += !step->withdrawn;
        adders_value += step->withdrawn ? 0 : (uint64_t)step->value;
    }
    if (sums->targets != targets || sums->adders != adders || sums->value != value ||
        sums->adders_value != adders_value)
        sim_fail(
            sim, shard,
            "players added %llu to %llu targets; by their rows %llu to %llu, by their targets' "
            "%llu by %llu",
            (unsigned long long)value, (unsigned long long)targets, (unsigned long long)sums->value,
            (unsigned long long)sums->targets, (unsigned long long)sums->adders_value,
            (unsigned long long)sums->adders);
}
