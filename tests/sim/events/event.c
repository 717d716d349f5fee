/* The model of events: what each entry has to leave, and what retention takes; answers:
 * event_told.c. */
#include "tests/sim/events/event.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "node/core/definition/definition.h"
#include "node/core/handler/event.h"
#include "runtime/base/check.h"
#include "tests/sim/model/definition.h"
#include "tests/sim/events/event_model.h"
#include "tests/sim/favorites/favorite_model.h"

#define KIND(name)        HOLDFAST__V1__EVENT_KIND__EVENT_KIND_##name
#define ACTS_PER_THOUSAND 250u
#define WANTED_MAX        512u /* Of one entry. */
#define ROWS_MAX          100000u

bool event_runs(const struct sim *sim)
{
    return (sim->seed * 0xd1342543de82ef95u) >> 63 != 0 && !sim_without(sim, WITHOUT_definitions);
}

struct events_sim *events_of(struct sim *sim)
{
    if (sim->event_log == NULL)
        sim->event_log = mem_zalloc(sizeof *sim->event_log);
    return sim->event_log;
}

void event_free_all(struct sim *sim)
{
    for (uint32_t i = 0; sim->event_log != NULL && i < SIM_SHARDS_MAX; i++)
        free(sim->event_log->shards[i].seen);
    free(sim->event_log);
    sim->event_log = NULL;
}

/* ---- requests ---- */
void event_wish_of(const struct sim *sim, const struct sim_op *op, struct event_wish *ret_wish)
{
    static const char *const prefixes[] = { "", "", "player:", "player:p1", "definition:", "" };
    const struct shard_events *shard =
        sim->event_log != NULL ? &sim->event_log->shards[op->player] : NULL;

    *ret_wish = (struct event_wish){
        .prefix = prefixes[op->twist % ARRAY_SIZE(prefixes)],
        .entity = op->twist % ARRAY_SIZE(prefixes) == 5 ? "player:p1" : "",
        .limit = 1 + op->amount % 20,
        .ledgers = op->others[1] % 5 == 1 || op->others[1] % 5 == 2,
        .sessions = op->others[1] % 5 == 2 || op->others[1] % 5 == 3,
    };
    if (op->mode == 0 || shard == NULL || op->mode > shard->count)
        return;
    ret_wish->has_after = true;
    ret_wish->passed = op->others[1] % 2 == 0 ? op->mode + 1u : 0;
    event_place_print(&shard->seen[op->mode - 1].place, ret_wish->after);
}

/* A place that some answer has told before: readers know no other. */
uint32_t event_choose_place(struct sim *sim, uint32_t shard)
{
    const struct shard_events *events = &events_of(sim)->shards[shard];
    uint32_t known = events->count;

    while (known > 0 && events->seen[known - 1].index > events->told_index)
        known--;
    return known == 0 ? 0 : (uint32_t)sim_between(sim, 0, known);
}

void event_act(struct sim *sim, uint32_t server)
{
    if (!event_runs(sim) || !sim->servers[server].registered || sim->quiet ||
        !sim_chance(sim, ACTS_PER_THOUSAND))
        return;
    uint32_t shard = (uint32_t)sim_between(sim, 0, sim->shard_count - 1);
    struct sim_op *op = op_new(sim, server, shard, METHOD_LIST_SHARD_EVENTS);

    op->mode = event_choose_place(sim, shard);
    op->twist = (uint32_t)sim_between(sim, 0, 999);
    op->amount = (uint32_t)sim_between(sim, 0, 999);
    op->others[1] = (uint32_t)sim_between(sim, 0, 999);
    op_call(sim, op);
}

/* ---- what an entry has to leave ---- */
struct wanted {
    struct change *c;
    struct event_seen list[WANTED_MAX];
    bool met[WANTED_MAX];
    uint32_t count;
};

static void want(struct wanted *wanted, const struct event_seen *event)
{
    CHECK(wanted->count < WANTED_MAX);
    wanted->list[wanted->count++] = *event;
}

static void want_of_player(struct wanted *wanted, uint32_t number, Holdfast__V1__EventKind kind,
                           uint64_t told, bool flag)
{
    struct event_seen event = { .kind = kind, .player = number, .number = told, .flag = flag };
    char entity[32];

    player_entity(number, entity);
    snprintf(event.entity, sizeof event.entity, "%s", entity);
    want(wanted, &event);
}

static void want_ledger(struct wanted *wanted, uint32_t number, struct player_events *before)
{
    const struct player_model *player = &wanted->c->sim->oracle->players[number];

    for (uint64_t seq = before->entries + 1; seq <= player->entry_count; seq++)
        want_of_player(wanted, number, KIND(LEDGER), seq, false);
    before->entries = player->entry_count;
}

/* A steal that takes the session from a server tells its own beginning alone. */
static void want_session(struct wanted *wanted, uint32_t number, struct player_events *before)
{
    const struct player_model *player = &wanted->c->sim->oracle->players[number];

    if (player->fence != before->fence)
        want_of_player(wanted, number, KIND(SESSION), player->fence, true);
    else if (incarnation_is_none(player->incarnation) && !incarnation_is_none(before->holder))
        want_of_player(wanted, number, KIND(SESSION), player->fence, false);
    before->fence = player->fence;
    before->holder = player->incarnation;
}

static void want_edges(struct wanted *wanted)
{
    const struct change *c = wanted->c;
    const struct favorites_sim *favorites = c->sim->favorites;

    uint32_t count = favorites != NULL ? favorites->step_count : 0, first = count;

    while (first > 0 && favorites->steps[first - 1].shard == c->number &&
           favorites->steps[first - 1].index == c->entry->index)
        first--;
    for (uint32_t i = first; i < count; i++) {
        const struct edge_step *step = &favorites->steps[i];
        if (step->is_counter || step->by_erasure)
            continue; /* Additions leave no events, nor do steps of an erasure. */
        const struct edge_step *was = favorite_edge_at(c->sim, step, c->entry->index - 1);
        if (step->decided || (was != NULL && was->favorited) != step->favorited)
            want_of_player(wanted, step->player, KIND(FAVORITE), step->ver, step->favorited);
    }
}

static void want_erasures(struct wanted *wanted)
{
    const struct change *c = wanted->c;
    const struct favorites_sim *favorites = c->sim->favorites;

    if (favorites == NULL || favorites->erasure_count == 0)
        return;
    const struct erasure_seen *seen = &favorites->erasures[favorites->erasure_count - 1];
    if (seen->shard == c->number && seen->index == c->entry->index && seen->told)
        want_of_player(wanted, seen->player, KIND(ERASURE), seen->number, false);
}

static struct definition_events *definition_get(struct shard_events *shard, uint64_t number)
{
    for (uint32_t i = 0; i < shard->definition_count; i++) {
        if (shard->definitions[i].number == number)
            return &shard->definitions[i];
    }
    CHECK(shard->definition_count < EVENT_DEFINITIONS);
    struct definition_events *added = &shard->definitions[shard->definition_count++];

    *added = (struct definition_events){ .number = number };
    return added;
}

static const char *kind_name(const defined *given)
{
    switch ((int)given->body->kind_case) {
    case HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY:
        return "currency";
    case HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER:
        return "counter";
    case HOLDFAST__V1__DEFINITION_BODY__KIND_COLLECTION:
        return "collection";
    case HOLDFAST__V1__DEFINITION_BODY__KIND_RATE_RULE:
        return "rate_rule";
    default:
        return "event_retention";
    }
}

/* What stands after the entry is another version than before, or is gone; of one shard each. */
static void want_definition(struct wanted *wanted, const defined *given)
{
    struct change *c = wanted->c;
    struct definition_events *before =
        definition_get(&events_of(c->sim)->shards[c->number], given->number);
    struct event_seen event = { .kind = KIND(DEFINITION), .number = given->version };
    struct sim_definition row = { 0 };

    bool stands = definition_row(c->sim, c->number, given->number, &row);
    bool news = stands ? !before->stands || row.version != before->row.version ||
                             row.body != before->row.body
                       : before->stands;
    *before = (struct definition_events){ given->number, stands, row };
    event.flag = !stands;
    snprintf(event.entity, sizeof event.entity, "definition:%s/%s", kind_name(given), given->name);
    if (news && given->number % c->sim->shard_count == c->number)
        want(wanted, &event);
}

static void want_definitions(struct wanted *wanted)
{
    const Holdfast__Internal__V1__DefineRequest *request = (const void *)wanted->c->request;

    for (size_t i = 0; wanted->c->op.method == METHOD_DEFINE && i < request->n_definitions; i++)
        want_definition(wanted, request->definitions[i]);
}

static void want_all(struct wanted *wanted)
{
    const struct change *c = wanted->c;

    for (uint32_t i = 0; i < c->sim->player_count; i++) {
        if (c->sim->player_shard[i] != c->number)
            continue;
        want_ledger(wanted, i, &events_of(c->sim)->players[i]);
        want_session(wanted, i, &events_of(c->sim)->players[i]);
    }
    want_edges(wanted);
    want_erasures(wanted);
    want_definitions(wanted);
}

/* ---- what it left ---- */
static void seen_add(struct shard_events *shard, const struct event_seen *event)
{
    if (shard->count == shard->capacity) {
        shard->capacity = shard->capacity * 2 + 64;
        shard->seen = mem_realloc(shard->seen, sizeof *shard->seen * shard->capacity);
    }
    shard->seen[shard->count++] = *event;
}

/* A row as the model has it. False: it cannot be read. */
static bool seen_read(struct change *c, struct slice key, struct slice value,
                      struct event_seen *ret_event)
{
    struct arena *arena = &c->sim->oracle->arena;
    struct event_row row;
    struct event_place place;

    if (event_key_parse(key, &place) != ERR_OK || event_row_decode(value, &row) != ERR_OK)
        return false;
    const Holdfast__V1__Event *told = event_tell(arena, c->number, &place, &row);
    if (told == NULL)
        return false;
    *ret_event = (struct event_seen){
        .index = c->entry->index, .place = place, .kind = told->kind, .at_ms = row.at_ms
    };
    snprintf(ret_event->entity, sizeof ret_event->entity, "%s", told->entity);
    event_told_number(told, &ret_event->number, &ret_event->flag);
    return true;
}

static bool is_same(const struct event_seen *a, const struct event_seen *b)
{
    return a->kind == b->kind && a->number == b->number && a->flag == b->flag &&
           strcmp(a->entity, b->entity) == 0;
}

static bool meet(struct wanted *wanted, struct event_seen *event)
{
    for (uint32_t i = 0; i < wanted->count; i++) {
        if (!wanted->met[i] && is_same(&wanted->list[i], event)) {
            wanted->met[i] = true;
            event->player = wanted->list[i].player;
            return true;
        }
    }
    return false;
}

static void count_event(struct sim *sim, Holdfast__V1__EventKind kind)
{
    sim->counts.events_of_ledgers += kind == KIND(LEDGER);
    sim->counts.events_of_edges += kind == KIND(FAVORITE);
    sim->counts.events_of_sessions += kind == KIND(SESSION);
    sim->counts.events_of_definitions += kind == KIND(DEFINITION);
}

static bool look_at(void *user, struct slice key, struct slice value)
{
    struct wanted *wanted = user;
    struct change *c = wanted->c;
    struct event_seen event;

    if (!seen_read(c, key, value, &event)) {
        model_fail(c, "an event cannot be read, of entry", c->entry->index);
        return false;
    }
    if (event.place.epoch != c->entry->dot.epoch || event.place.counter != c->entry->dot.counter)
        model_fail(c, "an event of an entry that there is not, counter", event.place.counter);
    else if (event.at_ms != c->entry->owner_ms)
        model_fail(c, "an event has another time than its entry", event.at_ms);
    else if (!meet(wanted, &event))
        sim_fail(c->sim, c->number,
                 "entry %" PRIu64 ": an event that nothing calls for: %s, %" PRIu64,
                 c->entry->index, event.entity, event.number);
    seen_add(&events_of(c->sim)->shards[c->number], &event);
    count_event(c->sim, event.kind);
    return c->sim->failure[0] == '\0';
}

static void visit(struct change *c, const struct event_place *after, uint32_t limit,
                  bool (*each)(void *user, struct slice key, struct slice value), void *user)
{
    struct shard_events *shard = &events_of(c->sim)->shards[c->number];
    struct state *state = applier_state(c->shard->applier);
    const uint8_t letter = TABLE_EVENT;
    struct state_range range = { .prefix = { &letter, 1 }, .limit = limit };
    struct row_key key;

    if (!shard->loaded)
        CHECK(state_load_range(state, state_load_generation(state), &range, range.after, true));
    shard->loaded = true;
    if (after != NULL) {
        event_row_key(&key, after);
        range.after = row_key_slice(&key);
    }
    CHECK(state_range_visit(state, &range, &c->shard->need, each, user) == ERR_OK);
}

static void check_left(struct change *c, struct wanted *wanted)
{
    const struct event_place before = { c->entry->dot.epoch, c->entry->dot.counter - 1,
                                        UINT32_MAX };

    if (applier_meta(c->shard->applier)->apply_version < EVENT_APPLY_VERSION)
        wanted->count = 0;
    visit(c, &before, ROWS_MAX, look_at, wanted);
    for (uint32_t i = 0; i < wanted->count && c->sim->failure[0] == '\0'; i++) {
        if (!wanted->met[i])
            sim_fail(c->sim, c->number, "entry %" PRIu64 " is told by no event: %s, %" PRIu64,
                     c->entry->index, wanted->list[i].entity, wanted->list[i].number);
    }
}

/* ---- what it took ---- */
static bool take_first(void *user, struct slice key, struct slice value)
{
    (void)value;
    (void)!event_key_parse(key, user);
    return false;
}

static void check_trimmed(struct change *c)
{
    struct shard_events *shard = &events_of(c->sim)->shards[c->number];
    const Holdfast__Internal__V1__TrimEventsRequest *request = (const void *)c->request;
    struct event_place first = { 0 };
    uint64_t keep_ms, events_max;
    uint32_t removed = 0;

    definition_retention(c->sim, c->number, &keep_ms, &events_max);
    visit(c, NULL, 1, take_first, &first);
    for (;; removed++) {
        bool left = shard->gone < shard->count;
        struct event_seen *oldest = left ? &shard->seen[shard->gone] : NULL;
        bool goes = left && (oldest->at_ms + keep_ms <= c->entry->owner_ms ||
                             shard->count - shard->gone > events_max);
        if (!left || event_place_compare(&oldest->place, &first) == 0) {
            if (goes && removed < request->rows_max)
                model_fail(c, "an event stays that is too old, or one too many", oldest->index);
            break;
        }
        if (!goes || removed == request->rows_max) {
            model_fail(c, "an event goes that retention keeps, of entry", oldest->index);
            break;
        }
        oldest->gone_index = c->entry->index;
        shard->gone++;
    }
    c->sim->counts.events_trimmed += removed;
}

void event_check(struct change *c)
{
    struct wanted *wanted;

    if (c->sim->failure[0] != '\0')
        return;
    wanted = mem_zalloc(sizeof *wanted);
    wanted->c = c;
    want_all(wanted);
    check_left(c, wanted);
    free(wanted);
    if (c->op.method == METHOD_TRIM_EVENTS && c->sim->failure[0] == '\0')
        check_trimmed(c);
    const struct shard_events *shard = &events_of(c->sim)->shards[c->number];
    uint64_t counted = applier_meta(c->shard->applier)->events.count;
    if (c->sim->failure[0] == '\0' && counted != shard->count - shard->gone)
        model_fail(c, "the shard counts its events as", counted);
}
