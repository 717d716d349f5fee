/* The model of erasures, and what operators ask for. */
#include "tests/sim/model/erasure.h"

#include <string.h>

#include "idl/error_code.h"
#include "node/core/counter/counter_row.h"
#include "node/core/favorite/erasure_row.h"
#include "runtime/base/check.h"
#include "tests/sim/favorites/favorite_model.h"
#include "tests/sim/servers/workload.h"

#define STATE(name) HOLDFAST__V1__ERASURE_STATE__ERASURE_STATE_##name

bool erasure_runs(const struct sim *sim)
{
    return favorite_runs(sim) && (sim->seed * 0xda942042e4dd58b5u) >> 63 != 0;
}

void erasure_act(struct sim *sim, uint32_t server, uint32_t player)
{
    static const uint32_t asked[] = { METHOD_ERASE_PLAYER,   METHOD_ERASE_PLAYER,
                                      METHOD_RESTORE_PLAYER, METHOD_RESTORE_PLAYER,
                                      METHOD_GET_ERASURE,    METHOD_EXPORT_PLAYER };
    uint32_t method = asked[sim_between(sim, 0, ARRAY_SIZE(asked) - 1)];
    struct sim_op *op = op_new(sim, server, player, method);

    if (method == METHOD_ERASE_PLAYER || method == METHOD_RESTORE_PLAYER)
        op->authority = BY_SYSTEM;
    op_call(sim, op);
}

/* ---- the model ---- */
const struct erasure_seen *erasure_at(const struct sim *sim, uint32_t shard, uint32_t player,
                                      uint64_t index)
{
    const struct favorites_sim *favorites = sim->favorites;

    for (uint32_t i = favorites != NULL ? favorites->erasure_count : 0; i > 0; i--) {
        const struct erasure_seen *seen = &favorites->erasures[i - 1];
        if (seen->shard == shard && seen->player == player && seen->index <= index)
            return seen;
    }
    return NULL;
}

static bool hides(const struct erasure_seen *seen)
{
    return seen != NULL && (seen->state == STATE(WITHDRAWING) || seen->state == STATE(WITHDRAWN) ||
                            seen->state == STATE(PURGING));
}

bool erasure_hides_at(const struct sim *sim, uint32_t shard, uint32_t player, uint64_t index)
{
    return hides(erasure_at(sim, shard, player, index));
}

/* As it was before the entry. */
static struct erasure_seen erasure_before(const struct change *c)
{
    const struct erasure_seen *seen =
        erasure_at(c->sim, c->number, model_player_number(c), c->entry->index);

    if (seen != NULL)
        return *seen;
    return (struct erasure_seen){ .shard = c->number, .player = model_player_number(c) };
}

bool erasure_blocks(const struct change *c)
{
    const struct erasure_seen seen = erasure_before(c);
    bool restoring = seen.state == STATE(RESTORING);

    if (c->op.method == METHOD_ERASE_PLAYER)
        return restoring;
    switch (c->op.method) {
    case METHOD_FAVORITE:
    case METHOD_UNFAVORITE:
    case METHOD_ADD_TO_COUNTER:
    case METHOD_ACCEPT_EDGES:
    case METHOD_REJECT_EDGES:
    case METHOD_FLAG_EDGES:
        return restoring || hides(&seen);
    default:
        return false;
    }
}

static void seen_add(struct change *c, struct erasure_seen *seen)
{
    struct favorites_sim *favorites = favorites_of(c->sim);

    if (favorites->erasure_count == favorites->erasure_capacity) {
        favorites->erasure_capacity = favorites->erasure_capacity * 2 + 64;
        favorites->erasures = mem_realloc(favorites->erasures, sizeof *favorites->erasures *
                                                                   favorites->erasure_capacity);
    }
    seen->index = c->entry->index;
    favorites->erasures[favorites->erasure_count++] = *seen;
    sim_say(c->sim, "ERASURE  s%u p%u number %llu: state %d", seen->shard, seen->player,
            (unsigned long long)seen->number, (int)seen->state);
}

void erasure_begun(struct change *c, const Holdfast__V1__Erasure *told, uint64_t grace_ms)
{
    struct erasure_seen seen = erasure_before(c);
    const struct erasure_seen was = seen;
    bool marks = !hides(&was);

    if (was.state == STATE(RESTORING))
        model_fail(c, "a player is erased while an erasure is being undone, number", was.number);
    if (was.state != STATE(PURGING))
        seen.purge_at_ms = c->entry->owner_ms + grace_ms;
    if (marks) {
        seen.number = told->number;
        seen.state = STATE(WITHDRAWING);
        c->sim->counts.erasures_begun++;
        if (told->number <= was.number)
            model_fail(c, "the number of an erasure does not rise, it is", told->number);
        if (told->erased_at_ms != (int64_t)c->entry->owner_ms)
            model_fail(c, "a player is erased at another time", (uint64_t)told->erased_at_ms);
    }
    seen.told = marks;
    if (told->number != seen.number || told->state != seen.state ||
        told->purge_at_ms != (int64_t)seen.purge_at_ms)
        model_fail(c, "an erasure is told otherwise, its state as", (uint64_t)told->state);
    seen_add(c, &seen);
}

static bool can_be_undone(const struct erasure_seen *seen)
{
    return seen->state == STATE(WITHDRAWING) || seen->state == STATE(WITHDRAWN);
}

void erasure_undone(struct change *c, const Holdfast__V1__Erasure *told)
{
    struct erasure_seen seen = erasure_before(c);

    if (!can_be_undone(&seen))
        model_fail(c, "an erasure is undone that cannot be, its state was", (uint64_t)seen.state);
    seen.state = STATE(RESTORING);
    seen.told = true;
    if (told->number != seen.number || told->state != seen.state)
        model_fail(c, "an undone erasure is told otherwise, its state as", (uint64_t)told->state);
    c->sim->counts.erasures_undone++;
    seen_add(c, &seen);
}

void erasure_undo_refused(const struct change *c, const struct op_model *op, int code)
{
    const struct erasure_seen seen = erasure_before(c);

    if (code == (int)CODE(NOT_FOUND) && can_be_undone(&seen))
        model_fail_op(c, op, "finds no erasure to undo, and there is one");
}

/* ---- steps ---- */
static bool stands_in(const struct change *c, const struct row_key *key)
{
    struct slice value;

    return state_find(applier_state(c->shard->applier), row_key_slice(key), &value) ==
           STATE_PRESENT;
}

/* By the rows after the entry: whether the edge, or addition, is there, and with its target. */
static void look(const struct change *c, const struct edge_step *edge, bool *ret_there,
                 bool *ret_counts)
{
    const char name[] = { 't', (char)('0' + edge->target), '\0' };
    struct slice target = slice_from_text(name);
    struct row_key own, with_target;

    if (edge->is_counter) {
        row_key_added_prefix(&own, c->op.entity, edge->number);
        row_key_added_add(&own, target);
        row_key_adder_prefix(&with_target, edge->number, target);
        row_key_adder_add(&with_target, c->op.entity);
    } else {
        row_key_favorite(&own, c->op.entity, edge->number, target);
        row_key_favorer_prefix(&with_target, edge->number, target);
        row_key_favorer_add(&with_target, c->op.entity);
    }
    *ret_there = stands_in(c, &own);
    *ret_counts = stands_in(c, &with_target);
}

static bool is_there(const struct edge_step *step)
{
    return step->is_counter ? step->value > 0 : step->ver > 0;
}

/* It counts there, unless it waits for a review. */
static bool is_with_target(const struct edge_step *step)
{
    return step->favorited && !step->withdrawn;
}

/* What a step of a state may do to one edge. */
static void check_step(struct change *c, const struct erasure_seen *was,
                       const struct edge_step *edge, bool there, bool counted)
{
    if (there && !is_there(edge))
        model_fail(c, "a step of an erasure makes an edge to target", edge->target);
    if (!there && was->state != STATE(PURGING))
        model_fail(c, "an edge goes before the purge, to target", edge->target);
    if (counted && !is_with_target(edge) && was->state != STATE(RESTORING))
        model_fail(c, "an erased edge counts again, to target", edge->target);
    if (!counted && is_with_target(edge) && was->state != STATE(WITHDRAWING))
        model_fail(c, "an edge is taken out of a count in another state, to target", edge->target);
    if (counted && !edge->favorited)
        model_fail(c, "an edge counts that is gone, to target", edge->target);
}

static void step_add(struct change *c, const struct edge_step *before, bool there, bool counted)
{
    struct edge_step step = *before;

    step.index = c->entry->index;
    step.dot = (struct source_dot){ c->entry->dot.epoch, c->entry->dot.counter };
    step.by_erasure = true;
    step.amount = 0;
    step.decided = false;
    step.withdrawn = step.favorited && !counted;
    if (!there) {
        step.ver = step.at_ms = 0;
        step.value = 0;
        step.favorited = step.withdrawn = false;
        step.flag = 0;
        step.flagged_at_ms = 0;
        step.life++;
    }
    favorite_step_add(favorites_of(c->sim), &step);
    c->sim->counts.erasures_withdrawn += there && !counted;
    c->sim->counts.erasures_restored += there && counted;
    c->sim->counts.erasures_purged += !there;
}

/* Newest steps of the entry's player; how many of them changed. *ret_left: how many are not yet as
 * the state is to leave them. */
static uint32_t steps_look(struct change *c, const struct erasure_seen *was, uint32_t *ret_left)
{
    struct favorites_sim *favorites = favorites_of(c->sim);
    uint32_t count = favorites->step_count, changed = 0;

    *ret_left = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct edge_step step = favorites->steps[i];
        bool there, counted;
        if (step.shard != c->number || step.player != was->player || !is_there(&step) ||
            favorite_edge_at(c->sim, &step, UINT64_MAX) != &favorites->steps[i])
            continue;
        look(c, &step, &there, &counted);
        *ret_left += was->state == STATE(WITHDRAWING) && counted;
        *ret_left += was->state == STATE(RESTORING) && step.favorited && !counted;
        *ret_left += was->state == STATE(PURGING) && there;
        check_step(c, was, &step, there, counted);
        if (there && counted == is_with_target(&step))
            continue;
        changed++;
        step_add(c, &step, there, counted);
    }
    for (uint32_t i = count; i < favorites->step_count; i++)
        favorite_check_rows(c, &favorites->steps[i]);
    return changed;
}

static struct erasure_row row_of(struct change *c)
{
    struct erasure_row row;
    struct need unused = { 0 };

    if (erasure_find(applier_state(c->shard->applier), c->op.entity, &unused, &row) != ERR_OK)
        model_fail(c, "how far a player is erased cannot be read, entry", c->entry->index);
    need_deinit(&unused);
    return row;
}

/* Purged: windows of rates begin again. Outcomes stay, and what counts them. */
static void forget_rates(struct change *c, uint32_t player)
{
    struct favorites_sim *favorites = favorites_of(c->sim);

    for (uint32_t i = 0; i < favorites->use_count; i++) {
        if (favorites->uses[i].shard == c->number && favorites->uses[i].player == player)
            favorites->uses[i].player = UINT32_MAX;
    }
}

/* Which state may follow which. */
static void check_follows(struct change *c, const struct erasure_seen *was,
                          const struct erasure_row *row, uint32_t left)
{
    Holdfast__V1__ErasureState next = row->state;
    bool ends = (was->state == STATE(WITHDRAWING) && next == STATE(WITHDRAWN)) ||
                (was->state == STATE(RESTORING) && next == STATE(RESTORED)) ||
                (was->state == STATE(PURGING) && next == STATE(PURGED));
    bool purges = was->state == STATE(WITHDRAWN) && next == STATE(PURGING);

    if (!ends && !purges)
        model_fail(c, "an erasure goes on in a state that does not follow, it is", (uint64_t)next);
    if (ends && left > 0)
        model_fail(c, "an erasure ends a state before its rows are done, left", left);
    if (purges && c->entry->owner_ms < was->purge_at_ms)
        model_fail(c, "a purge begins before the grace period is over, at", c->entry->owner_ms);
}

void erasure_stepped(struct change *c, uint64_t number, uint32_t rows_max)
{
    struct erasure_seen seen = erasure_before(c);
    const struct erasure_seen was = seen;
    const struct erasure_row row = row_of(c);
    uint32_t left;

    uint32_t changed = steps_look(c, &was, &left);
    if (changed > rows_max)
        model_fail(c, "an entry of an erasure changes more than it may, edges", changed);
    c->sim->counts.erasures_in_parts += changed > 0 && left > 0;
    if (row.number != was.number || row.purge_at_ms != was.purge_at_ms)
        model_fail(c, "an erasure has another number after a step", row.number);
    if (row.state == was.state)
        return;
    if (number != was.number)
        model_fail(c, "a step of another erasure changes this one, of number", number);
    check_follows(c, &was, &row, left);
    seen.state = row.state;
    seen.told = row.state == STATE(PURGED);
    if (row.state == STATE(PURGED))
        forget_rates(c, was.player);
    c->sim->counts.erasures_over += row.state == STATE(PURGED);
    seen_add(c, &seen);
}

/* ---- answers ---- */
void erasure_told_state(const struct told *t)
{
    const Holdfast__V1__GetErasureResponse *response = (const void *)t->response;
    uint64_t index = told_index(t);
    const struct erasure_seen *seen = erasure_at(
        t->sim, t->call->shard, (uint32_t)(told_player(t) - t->sim->oracle->players), index);

    if (index == 0)
        return;
    if (response->erasure->number != (seen != NULL ? seen->number : 0))
        told_fail(t, "the number of an erasure", response->erasure->number,
                  seen != NULL ? seen->number : 0);
    if (seen != NULL && response->erasure->state != seen->state)
        told_fail(t, "the state of an erasure", response->erasure->state, seen->state);
}

/* The newest step, as of the answer, of which that row tells; NULL: there is none. */
static const struct edge_step *step_told(const struct told *t, const Holdfast__V1__ExportedRow *row,
                                         uint64_t index)
{
    bool is_edge = row->row_case == HOLDFAST__V1__EXPORTED_ROW__ROW_EDGE;
    const struct edge_step of = {
        .shard = t->call->shard,
        .number = row->number,
        .player = (uint32_t)(told_player(t) - t->sim->oracle->players),
        .target = favorite_target_of(is_edge ? row->edge->target_id : row->counter->target_id),
    };

    return favorite_edge_at(t->sim, &of, index);
}

static bool is_as_told(const Holdfast__V1__ExportedRow *row, const struct edge_step *step)
{
    if (step == NULL || !is_there(step))
        return false;
    if (row->row_case == HOLDFAST__V1__EXPORTED_ROW__ROW_COUNTER)
        return step->is_counter && row->counter->value == step->value &&
               row->counter->added_at_ms == (int64_t)step->at_ms;
    return !step->is_counter && (row->edge->favorited != 0) == step->favorited &&
           (uint32_t)row->flagged_for == step->flag &&
           row->flagged_at_ms == (int64_t)step->flagged_at_ms && row->edge->ver == step->ver &&
           (row->edge->favorited ? row->edge->created_at_ms : row->gone_at_ms) ==
               (int64_t)step->at_ms;
}

/* All that is kept, as of an entry: edges that are gone, too. */
static uint32_t kept_at(const struct told *t, uint64_t index)
{
    const struct favorites_sim *favorites = t->sim->favorites;
    uint32_t player = (uint32_t)(told_player(t) - t->sim->oracle->players), kept = 0;

    for (uint32_t i = 0; favorites != NULL && i < favorites->step_count; i++) {
        const struct edge_step *step = &favorites->steps[i];
        kept += step->shard == t->call->shard && step->player == player && is_there(step) &&
                favorite_edge_at(t->sim, step, index) == step;
    }
    return kept;
}

void erasure_told_export(const struct told *t)
{
    const Holdfast__V1__ExportPlayerResponse *response = (const void *)t->response;
    uint64_t index = told_index(t);
    uint32_t told = 0;

    if (index == 0)
        return;
    for (size_t i = 0; i < response->n_rows; i++) {
        const Holdfast__V1__ExportedRow *row = response->rows[i];
        if (row->row_case == HOLDFAST__V1__EXPORTED_ROW__ROW_RATE)
            continue;
        told++;
        if (!is_as_told(row, step_told(t, row, index)))
            told_fail(t, "an exported row is not as it stands, of number", row->number, i);
    }
    uint32_t kept = kept_at(t, index);
    if (response->next_cursor[0] == '\0' && told != kept)
        told_fail(t, "how much of a player is exported", told, kept);
    t->sim->counts.erasures_exported += told > 0;
}
