#include "node/core/definition/player_rate.h"

#include <inttypes.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

#define ROW_VERSION 1u

/* ---- the row ---- */
void rate_row_encode(const struct rate_row *row, struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
    for (uint32_t i = 0; i < row->count; i++) {
        const struct rate_use *use = &row->list[i];
        buf_put_u64(out, use->number);
        buf_put_u64(out, use->generation);
        buf_put_u64(out, use->revision);
        buf_put_u64(out, use->since_ms);
        buf_put_u32(out, use->used);
    }
}

err rate_row_decode(struct slice value, struct rate_row *ret_row)
{
    struct reader reader = reader_from(value);
    struct rate_row row = { 0 };

    reader.bad |= read_u8(&reader) != ROW_VERSION;
    while (!reader.bad && reader_left(&reader) > 0 && row.count < RATE_USES_MAX) {
        struct rate_use *use = &row.list[row.count++];
        use->number = read_u64(&reader);
        use->generation = read_u64(&reader);
        use->revision = read_u64(&reader);
        use->since_ms = read_u64(&reader);
        use->used = read_u32(&reader);
        reader.bad |= use->used == 0;
    }
    if (row.count == 0 || reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    *ret_row = row;
    return ERR_OK;
}

/* What holds while no rule refuses. */
static void default_add(const struct rate_subject *subject, struct rate_rules *rules)
{
    for (uint32_t i = 0; i < rules->count; i++) {
        if (!rules->list[i].flags)
            return;
    }
    CHECK(rules->count < RATE_USES_MAX);
    rules->list[rules->count++] = (struct rate_rule){
        .limit = subject->default_limit,
        .period_ms = subject->default_period_ms,
    };
}

err player_rate_load(struct apply_context *context, const struct rate_subject *subject,
                     struct player_rate *ret_rate)
{
    struct row_key key;
    struct slice value = { 0 };

    *ret_rate = (struct player_rate){ .subject = *subject };
    if (context->version < RATE_APPLY_VERSION)
        return ERR_OK;
    err e = rate_rules_find(context, subject->name, &ret_rate->rules);
    if (e == ERR_OK && subject->default_limit > 0)
        default_add(subject, &ret_rate->rules);
    row_key_rate(&key, context->op->entity, subject->number);
    enum state_found found = row_find(context->state, &key, context->need, &value);
    if (e != ERR_OK || found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_PRESENT && rate_row_decode(value, &ret_rate->row) != ERR_OK)
        return ERR_CORRUPT;
    return ERR_OK;
}

/* ---- taking ---- */

/* The window of that rule in which `now_ms` lies; one that has just begun has no change yet. A
 * window cannot begin after the entry, but where the row is damaged: then another one begins. */
static struct rate_use window_of(const struct rate_row *row, const struct rate_rule *rule,
                                 uint64_t now_ms)
{
    for (uint32_t i = 0; i < row->count; i++) {
        const struct rate_use *use = &row->list[i];
        if (use->number == rule->number && use->generation == rule->generation &&
            use->revision == rule->revision && use->since_ms <= now_ms &&
            now_ms - use->since_ms < rule->period_ms)
            return *use;
    }
    return (struct rate_use){ rule->number, rule->generation, rule->revision, now_ms, 0 };
}

static const char *rule_text(struct arena *arena, const struct rate_rule *rule)
{
    if (rule->name.size == 0)
        return "what holds where no rate rule is defined";
    return arena_printf(arena, "the rate rule %s", arena_text(arena, rule->name));
}

static err refuse_rate(struct apply_context *context, const struct player_rate *rate,
                       const struct rate_rule *rule, uint32_t wait_ms)
{
    struct arena *arena = context->arena;
    err e = refuse(arena, context->refusal, CODE(THROTTLED), "player_id",
                   "the player changed %s %" PRIu32 " times within %" PRIu32 " ms: %s",
                   arena_text(arena, rate->subject.name), rule->limit, rule->period_ms,
                   rule_text(arena, rule));

    context->refusal->limit =
        arena_printf(arena, "%" PRIu32 " in %" PRIu32 " ms", rule->limit, rule->period_ms);
    context->refusal->retry_after_ms = wait_ms;
    context->refusal->transient = true;
    context->refusal->by_rate = true;
    return e;
}

/* Takes one change from the window, where the rule counts it, into the row. False: none is left, of
 * a rule that refuses. */
static bool take(const struct rate_rule *rule, const struct rate_use *window, bool makes,
                 struct rate_row *row)
{
    struct rate_use use = *window;
    bool full = !rule->flags && use.used >= rule->limit;

    if (rule->age_ms > 0)
        return true;
    if (!rule->flags || (makes && use.used < rule->limit))
        use.used++;
    if (use.used > 0)
        row->list[row->count++] = use;
    return !full;
}

err player_rate_take(struct apply_context *context, const struct player_rate *rate, bool makes)
{
    struct rate_row row = { 0 };
    const struct rate_rule *full = NULL;
    uint64_t now_ms = context->owner_ms;
    uint32_t wait_ms = 0;
    struct row_key key;

    for (uint32_t i = 0; i < rate->rules.count; i++) {
        const struct rate_rule *rule = &rate->rules.list[i];
        const struct rate_use window = window_of(&rate->row, rule, now_ms);
        uint32_t left_ms = rule->period_ms - (uint32_t)(now_ms - window.since_ms);
        if (!take(rule, &window, makes, &row) && left_ms > wait_ms) {
            full = rule;
            wait_ms = left_ms;
        }
    }
    if (full != NULL)
        return refuse_rate(context, rate, full, wait_ms);
    row_key_rate(&key, context->op->entity, rate->subject.number);
    if (row.count == 0) { /* No rule, and no default: what was counted before is over. */
        if (rate->row.count > 0)
            state_delete(context->state, row_key_slice(&key));
        return ERR_OK;
    }
    buf_clear(context->scratch);
    rate_row_encode(&row, context->scratch);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
    return ERR_OK;
}

/* A player without a record begins with this entry. */
static bool is_younger(const struct apply_context *context, uint64_t age_ms)
{
    uint64_t since_ms = context->player->created_at_ms, now_ms = context->owner_ms;

    return since_ms == 0 || since_ms > now_ms || now_ms - since_ms < age_ms;
}

enum rate_flag player_rate_flag(const struct apply_context *context, const struct player_rate *rate)
{
    enum rate_flag flag = RATE_FLAGS_NOTHING;

    for (uint32_t i = 0; i < rate->rules.count; i++) {
        const struct rate_rule *rule = &rate->rules.list[i];
        if (!rule->flags)
            continue;
        if (rule->age_ms > 0 && is_younger(context, rule->age_ms))
            return RATE_FLAGS_YOUNG;
        if (rule->age_ms == 0 && window_of(&rate->row, rule, context->owner_ms).used >= rule->limit)
            flag = RATE_FLAGS_FAST;
    }
    return flag;
}
