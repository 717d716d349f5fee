/* The model keeps every change that counted, and looks through all of them each time. */
#include "tests/sim/favorites/rate.h"

#include <string.h>

#include "idl/error_code.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/player/player.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

#define DEFAULT_LIMIT     30u
#define DEFAULT_PERIOD_MS 60000u

bool rate_runs(const struct sim *sim)
{
    return favorite_runs(sim) && (sim->seed * 0x9e3779b97f4a7c15u) >> 62 == 3;
}

uint32_t rate_rules(struct sim *sim, uint32_t shard, const char *subject,
                    struct sim_rule ret_rules[SIM_RULES_MAX + 1])
{
    uint32_t count = definition_rules(sim, shard, subject, ret_rules);

    for (uint32_t i = 0; i < count; i++) {
        if (!ret_rules[i].flags)
            return count;
    }
    ret_rules[count] = (struct sim_rule){ .limit = DEFAULT_LIMIT, .period_ms = DEFAULT_PERIOD_MS };
    return count + 1;
}

static bool is_in_force(const struct favorites_sim *favorites, const struct rate_use_seen *use,
                        const struct sim_rule *rule)
{
    const struct collections_life *life = &favorites->lives[use->life];

    for (uint32_t i = 0; i < life->rule_count[use->place]; i++) {
        const struct sim_rule *other = &life->rules[use->place][i];
        if (other->number == rule->number && other->generation == rule->generation &&
            other->revision == rule->revision)
            return true;
    }
    return false;
}

static bool is_of(const struct rate_use_seen *use, const struct edge_step *edge)
{
    return use->shard == edge->shard && use->player == edge->player && use->number == edge->number;
}

/* The first change from which on the rule was in force at each of them. */
static uint32_t first_under(const struct favorites_sim *favorites, const struct edge_step *edge,
                            const struct sim_rule *rule)
{
    for (uint32_t i = favorites->use_count; i > 0; i--) {
        const struct rate_use_seen *use = &favorites->uses[i - 1];
        if (is_of(use, edge) && !is_in_force(favorites, use, rule))
            return i;
    }
    return 0;
}

/* How long the player has to wait for that rule, or is flagged by it; 0: it has room now. */
static uint64_t wait_for_rule(const struct favorites_sim *favorites, const struct edge_step *edge,
                              const struct sim_rule *rule, uint64_t now_ms)
{
    uint64_t since_ms = 0;
    uint32_t used = 0;

    for (uint32_t i = first_under(favorites, edge, rule); i < favorites->use_count; i++) {
        const struct rate_use_seen *use = &favorites->uses[i];
        if (!is_of(use, edge) || (rule->flags && !use->makes))
            continue;
        if (used == 0 || use->at_ms >= since_ms + rule->period_ms) {
            since_ms = use->at_ms;
            used = 0;
        }
        used++;
    }
    if (used < rule->limit || now_ms >= since_ms + rule->period_ms)
        return 0;
    return since_ms + rule->period_ms - now_ms;
}

/* For the slowest of the rules that are in force. */
static uint64_t wait_of(const struct change *c, const struct edge_step *edge,
                        const struct collections_life *life)
{
    const struct favorites_sim *favorites = c->sim->favorites;
    uint64_t longest_ms = 0;

    for (uint32_t i = 0; i < life->rule_count[edge->place]; i++) {
        if (life->rules[edge->place][i].flags)
            continue;
        uint64_t wait_ms =
            wait_for_rule(favorites, edge, &life->rules[edge->place][i], c->entry->owner_ms);
        longest_ms = wait_ms > longest_ms ? wait_ms : longest_ms;
    }
    return longest_ms;
}

/* Another version of some rule was in force when the player changed something last. */
static bool begins_anew(const struct favorites_sim *favorites, const struct edge_step *edge,
                        const struct collections_life *life)
{
    for (uint32_t i = favorites->use_count; i > 0; i--) {
        const struct rate_use_seen *use = &favorites->uses[i - 1];
        if (is_of(use, edge))
            return !is_in_force(favorites, use, &life->rules[edge->place][0]);
    }
    return false;
}

/* How old the player's record is, which may begin with this entry. */
static uint64_t age_of(const struct change *c)
{
    struct arena *arena = &c->sim->oracle->arena;
    struct player player;
    struct row_key key;
    struct slice row = { 0 };

    row_key_player(&key, c->op.entity);
    (void)state_find(applier_state(c->shard->applier), row_key_slice(&key), &row);
    if (row.size == 0 || player_decode(row, c->op.entity, arena, &player) != ERR_OK)
        return 0;
    return c->entry->owner_ms - player.created_at_ms;
}

uint32_t rate_flag(const struct change *c, const struct edge_step *edge)
{
    const struct collections_life *life = favorite_life_at(c->sim, edge->shard, c->entry->index);
    uint32_t flag = 0;

    CHECK(life != NULL);
    for (uint32_t i = 0; i < life->rule_count[edge->place]; i++) {
        const struct sim_rule *rule = &life->rules[edge->place][i];
        if (!rule->flags)
            continue;
        if (rule->age_ms > 0 && age_of(c) < rule->age_ms)
            return HOLDFAST__V1__FLAG_REASON__FLAG_REASON_ACCOUNT_AGE;
        if (rule->age_ms == 0 &&
            wait_for_rule(c->sim->favorites, edge, rule, c->entry->owner_ms) > 0)
            flag = HOLDFAST__V1__FLAG_REASON__FLAG_REASON_VELOCITY;
    }
    return flag;
}

void rate_used(const struct change *c, const struct edge_step *edge, bool makes)
{
    struct favorites_sim *favorites = c->sim->favorites;
    const struct collections_life *life = favorite_life_at(c->sim, edge->shard, c->entry->index);

    CHECK(life != NULL);
    uint64_t wait_ms = wait_of(c, edge, life);
    if (wait_ms > 0)
        model_fail(c, "an edge changes past a rate rule, before its time by ms", wait_ms);
    c->sim->counts.rates_over += begins_anew(favorites, edge, life);
    if (favorites->use_count == favorites->use_capacity) {
        favorites->use_capacity = favorites->use_capacity * 2 + 64;
        favorites->uses =
            mem_realloc(favorites->uses, sizeof *favorites->uses * favorites->use_capacity);
    }
    favorites->uses[favorites->use_count++] = (struct rate_use_seen){
        .shard = edge->shard,
        .player = edge->player,
        .place = edge->place,
        .number = edge->number,
        .index = c->entry->index,
        .at_ms = c->entry->owner_ms,
        .makes = makes,
        .life = (uint32_t)(life - favorites->lives),
    };
}

void rate_refused(const struct change *c, const struct op_model *op, const struct edge_step *edge)
{
    const struct collections_life *life = favorite_life_at(c->sim, edge->shard, c->entry->index);
    const Holdfast__Internal__V1__Refusal *detail = (const void *)arena_unpack(
        &c->sim->oracle->arena, &holdfast__internal__v1__refusal__descriptor, c->outcome->body);

    CHECK(life != NULL && detail != NULL);
    uint64_t wait_ms = wait_of(c, edge, life);
    c->sim->counts.rates_refused++;
    c->sim->counts.rates_of_several += life->rule_count[edge->place] > 1;
    if (wait_ms == 0)
        model_fail_op(c, op, "is refused by a rate rule, and all of them have room");
    else if (detail->retry_after_ms != wait_ms)
        model_fail(c, "a rate rule tells another time to wait, ms", detail->retry_after_ms);
    sim_say(c->sim, "RATE     s%u p%u in %llu: refused for %llu ms", edge->shard, edge->player,
            (unsigned long long)edge->number, (unsigned long long)wait_ms);
}
