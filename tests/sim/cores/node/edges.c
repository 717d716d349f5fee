/*
 * Edges from players to targets in one shard, by the promises of favorites.proto and
 * docs/favorites.md: which call applies, what `ver` stands after it, when an edge was made, how
 * many there are, who has them, in lists of any page while edges change; collections that are
 * defined, narrowed, deleted and made again; and targets that are gone, up to the last that is
 * remembered.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "node/core/codec/arena_proto.h"
#include "node/rpc/fixture_edges.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define PLAYERS   4u
#define FEW       12u   /* Targets of most seeds. */
#define TARGETS   1060u /* Of those that forget some. */
#define GONE_MAX  1000u
#define VER_MAX   9007199254740991ull
#define NAMES     2u
#define LIVES     10u
#define HASTE     900u /* The number of the first rate rule. */
#define TURNS     160u
#define CALLS     48u
#define PAGES_MAX 1200u
#define CROWD_IN  12u /* One seed in so many has more targets than are remembered. */
#define STATUSES  200u

/* Sorted; one begins as another does. */
static const char *const players[PLAYERS] = { "an", "ann", "anna", "bob" };
static const char *const names[NAMES] = { "favorites", "likes" };

struct edge {
    bool favorited;
    uint64_t ver, at_ms; /* ver 0: nothing is known of it. */
};

/* A collection from its definition to its deletion. */
struct life {
    uint64_t number;
    uint32_t edges_max;
    bool last_write;
    struct edge edges[PLAYERS][TARGETS];
};

struct call {
    uint32_t player, target, name;
    bool gone, unnamed, has_ver, has_if_ver, has_if_version;
    uint64_t ver, if_ver, if_version;
    char *op_id;
    const char *bad_target, *bad_collection; /* In place of the others. */
    const char *wrong;                       /* The field that is malformed. */
};

struct done {
    struct call call;
    struct edge edge;
    uint64_t version;
    bool applied;
    uint32_t edges;
};

struct edges_world {
    struct rsim *sim;
    struct fixture f;
    uint64_t revision, numbers, versions[PLAYERS];
    struct life *lives[LIVES];
    uint32_t life_count;
    struct life *now[NAMES]; /* NULL: it is not defined. */
    const char *targets[TARGETS];
    uint32_t target_count;
    struct done done[CALLS];
    uint32_t done_count;
};

static bool chance(struct edges_world *w, uint32_t per_hundred)
{
    return rsim_chance(w->sim, per_hundred);
}

static uint32_t below(struct edges_world *w, uint32_t count)
{
    return (uint32_t)rsim_between(w->sim, 0, count - 1);
}

static char *repeated(struct edges_world *w, char letter, size_t size)
{
    char *text = arena_zalloc(&w->sim->arena, size + 1);

    memset(text, letter, size);
    return text;
}

static uint32_t count_edges(const struct edges_world *w, const struct life *life, uint32_t player)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < w->target_count; i++)
        count += life->edges[player][i].favorited;
    return count;
}

/* ---- collections ---- */

static void define(struct edges_world *w, uint32_t name)
{
    struct life *life = w->now[name];
    bool deletes = life != NULL && chance(w, 30);

    if (life == NULL) {
        if (w->life_count == LIVES)
            return;
        life = w->lives[w->life_count++] = mem_zalloc(sizeof *life);
        life->number = ++w->numbers;
    }
    bool by_default = chance(w, 20);
    life->edges_max = by_default ? COLLECTION_EDGES_DEFAULT : (uint32_t)rsim_between(w->sim, 2, 7);
    life->last_write = chance(w, 40);
    w->revision += rsim_between(w->sim, 1, 3);
    const struct fixture_collection collection = {
        .number = life->number,
        .revision = w->revision,
        .name = names[name],
        .policy = life->last_write ? POLICY_LAST : POLICY_HIGHEST,
        .edges_max = by_default ? 0 : life->edges_max,
        .deleted = deletes,
    };
    fixture_define(&w->f, &collection);
    w->now[name] = deletes ? NULL : life;
}

/* Edges change as often as they like here: what rate rules let pass is judged in clusters. */
static void hasten(struct edges_world *w, uint32_t name)
{
    fixture_define_rate(&w->f, &(struct fixture_rate_rule){ HASTE + name, ++w->revision,
                                                            name == 0 ? "haste" : "hurry",
                                                            names[name], 1000000, 1000, false });
}

/* ---- calls ---- */

static void choose_fault(struct edges_world *w, struct call *call)
{
    char *const ids[] = { text_lend("claim:x"),      text_lend("match:1"), text_lend("receipt:s:1"),
                          text_lend("key:"),         text_lend("nothing"), text_lend("season:x"),
                          text_lend("transfer:a:1"), text_lend("") };
    const char *const targets[] = { "", "a\nb", repeated(w, 't', 129), "\x7f" };
    const char *const collections[] = { "Favorites", "a-b", repeated(w, 'c', 65) };

    switch (rsim_between(w->sim, 0, 4)) {
    case 0:
        call->op_id = RSIM_PICK(w->sim, ids);
        call->wrong = "op_id";
        break;
    case 1:
        call->bad_target = RSIM_PICK(w->sim, targets);
        call->wrong = "target_id";
        break;
    case 2:
        call->bad_collection = RSIM_PICK(w->sim, collections);
        call->wrong = "collection";
        break;
    case 3:
        call->has_ver = true;
        call->ver = chance(w, 50) ? 0 : VER_MAX + 1;
        call->wrong = "ver";
        break;
    default:
        call->has_if_ver = true;
        call->if_ver = VER_MAX + 1;
        call->wrong = "if_ver";
        break;
    }
}

static struct call choose_call(struct edges_world *w)
{
    struct call call = { .player = below(w, PLAYERS),
                         .target = below(w, w->target_count),
                         .name = below(w, NAMES),
                         .gone = chance(w, 45),
                         .unnamed = chance(w, 50) };
    const struct life *life = w->now[call.name];
    uint64_t stands = life != NULL ? life->edges[call.player][call.target].ver : 0;

    call.op_id = arena_text(&w->sim->arena, slice_from_text(fixture_op_id(&w->f)));
    if (chance(w, 30))
        call.op_id = arena_printf(&w->sim->arena, "key:%" PRIu64, rsim_next(w->sim));
    if (chance(w, 50)) {
        call.has_ver = true;
        call.ver =
            chance(w, 70) && stands > 0 ? rsim_about(w->sim, stands) : rsim_between(w->sim, 1, 9);
        if (chance(w, 3))
            call.ver = VER_MAX - rsim_between(w->sim, 0, 1);
        call.ver = call.ver == 0 ? 1 : call.ver > VER_MAX ? VER_MAX : call.ver;
    }
    if (chance(w, 25)) {
        call.has_if_ver = true;
        call.if_ver = stands > 0 && chance(w, 40) ? rsim_about(w->sim, stands) : stands;
        call.if_ver = call.if_ver > VER_MAX ? VER_MAX : call.if_ver;
    }
    if (chance(w, 15)) {
        call.has_if_version = true;
        call.if_version = w->versions[call.player];
        if (chance(w, 40))
            call.if_version = rsim_about(w->sim, call.if_version + 1);
    }
    if (chance(w, 4))
        choose_fault(w, &call);
    return call;
}

/* The first may be meant without its name. */
static const char *collection_of(const struct call *call)
{
    if (call->bad_collection != NULL)
        return call->bad_collection;
    return call->name == 0 && call->unnamed ? "" : names[call->name];
}

/* Both requests have the same fields. */
#define FILL(request, call)                                                                        \
    do {                                                                                           \
        (request)->player_id = text_lend(players[(call)->player]);                                 \
        (request)->op_id = (call)->op_id;                                                          \
        (request)->target_id = text_lend((call)->bad_target != NULL ? (call)->bad_target           \
                                                                    : w->targets[(call)->target]); \
        (request)->collection = text_lend(collection_of(call));                                    \
        (request)->_ver_case = (call)->has_ver ? 12 : 0;                                           \
        (request)->ver = (call)->ver;                                                              \
        (request)->_if_ver_case = (call)->has_if_ver ? 13 : 0;                                     \
        (request)->if_ver = (call)->if_ver;                                                        \
        (request)->_if_version_case = (call)->has_if_version ? 5 : 0;                              \
        (request)->if_version = (call)->if_version;                                                \
    } while (false)

/* What both methods answer. */
struct told {
    const Holdfast__V1__WriteInfo *write;
    const Holdfast__V1__FavoriteStatus *status;
    bool applied;
    uint32_t edges;
};

/* False: refused. */
static bool send(struct edges_world *w, const struct call *call, struct told *ret_told)
{
    Holdfast__V1__FavoriteRequest make = HOLDFAST__V1__FAVORITE_REQUEST__INIT;
    Holdfast__V1__UnfavoriteRequest take = HOLDFAST__V1__UNFAVORITE_REQUEST__INIT;

    if (call->gone) {
        FILL(&take, call);
        const Holdfast__V1__UnfavoriteResponse *told =
            fixture_mutate(&w->f, METHOD_UNFAVORITE, &take.base);
        if (told == NULL)
            return false;
        *ret_told = (struct told){ told->write, told->status, told->applied != 0, told->edges };
        return true;
    }
    FILL(&make, call);
    const Holdfast__V1__FavoriteResponse *told = fixture_mutate(&w->f, METHOD_FAVORITE, &make.base);
    if (told == NULL)
        return false;
    *ret_told = (struct told){ told->write, told->status, told->applied != 0, told->edges };
    return true;
}

/* Why the call has to be refused; false: it has not. */
struct cause {
    Holdfast__V1__ErrorCode code;
    const char *field;
    uint64_t limit, value; /* Of numbers alone. */
    bool numbers;
};

static bool has_cause(struct edges_world *w, const struct call *call, struct cause *ret_cause)
{
    const struct life *life = w->now[call->name];
    uint64_t version = w->versions[call->player];

    if (call->wrong != NULL) {
        *ret_cause = (struct cause){ CODE(INVALID_ARGUMENT), call->wrong, 0, 0, false };
        return true;
    }
    if (life == NULL) {
        *ret_cause = (struct cause){ CODE(NOT_FOUND), "collection", 0, 0, false };
        return true;
    }
    if (call->has_if_version && call->if_version != version) {
        *ret_cause =
            (struct cause){ CODE(VERSION_CONFLICT), "if_version", call->if_version, version, true };
        return true;
    }
    const struct edge *edge = &life->edges[call->player][call->target];
    if (call->has_if_ver && call->if_ver != edge->ver) {
        *ret_cause =
            (struct cause){ CODE(VERSION_CONFLICT), "if_ver", call->if_ver, edge->ver, true };
        return true;
    }
    uint32_t edges = count_edges(w, life, call->player);
    bool late = call->has_ver && call->ver <= edge->ver && !life->last_write;
    if (!call->gone && !edge->favorited && !late && edges >= life->edges_max) {
        *ret_cause =
            (struct cause){ CODE(CAPACITY_FULL), "target_id", life->edges_max, edges, true };
        return true;
    }
    return false;
}

static void check_refused(struct edges_world *w, const struct call *call, const struct cause *cause)
{
    const Holdfast__Internal__V1__Refusal *error = w->f.error;

    /* Where definitions are not in memory, apply decides, and looks at the player first. */
    if (cause->code == CODE(NOT_FOUND) && w->f.recorded && error->code == CODE(VERSION_CONFLICT) &&
        call->has_if_version && call->if_version != w->versions[call->player])
        return;
    PROMISE(w->sim, error->code == cause->code && strcmp(error->field, cause->field) == 0,
            "an edge's call is refused with %d for \"%s\", not %d for \"%s\"", (int)error->code,
            error->field, (int)cause->code, cause->field);
    PROMISE(w->sim, w->f.recorded == cause->numbers || cause->code == CODE(NOT_FOUND),
            "a refusal is logged, or not: %s", error->message);
    if (cause->code == CODE(INVALID_ARGUMENT))
        PROMISE(w->sim, error->limit[0] != 0, "no limit of \"%s\" is told", error->field);
    if (cause->numbers)
        PROMISE(w->sim,
                strtoull(error->limit, NULL, 10) == cause->limit &&
                    strtoull(error->value, NULL, 10) == cause->value,
                "\"%s\" is refused with the limit %s and the value %s", error->field, error->limit,
                error->value);
    if (call->wrong == NULL)
        w->sim->counts.edges_refused++;
}

/* Of what is gone, one too many is remembered no more: the one that went first. */
static void forget(struct edges_world *w, struct life *life, uint32_t player)
{
    struct edge *oldest = NULL;
    uint32_t gone = 0, place = 0;

    for (uint32_t i = 0; i < w->target_count; i++) {
        struct edge *edge = &life->edges[player][i];
        if (edge->ver == 0 || edge->favorited)
            continue;
        gone++;
        if (oldest != NULL &&
            (edge->at_ms > oldest->at_ms ||
             (edge->at_ms == oldest->at_ms && strcmp(w->targets[i], w->targets[place]) > 0)))
            continue;
        oldest = edge;
        place = i;
    }
    if (gone < GONE_MAX)
        return;
    *oldest = (struct edge){ 0 };
    w->sim->counts.edges_forgotten++;
}

/* What it does to the edge. False: a call with this `ver` or a higher one was here before. */
static bool carry_out(struct edges_world *w, const struct call *call)
{
    struct life *life = w->now[call->name];
    struct edge *edge = &life->edges[call->player][call->target];
    uint64_t ver = edge->ver < VER_MAX ? edge->ver + 1 : VER_MAX;

    if (call->has_ver && call->ver > edge->ver)
        ver = call->ver;
    else if (call->has_ver && !life->last_write)
        return false;
    if (call->gone) {
        *edge = (struct edge){ 0 };
        forget(w, life, call->player);
    }
    if (call->gone || !edge->favorited)
        edge->at_ms = w->f.now_ms;
    edge->favorited = !call->gone;
    edge->ver = ver;
    return true;
}

static void check_status(struct edges_world *w, const Holdfast__V1__FavoriteStatus *told,
                         const char *target, const struct edge *edge)
{
    PROMISE(w->sim,
            strcmp(told->target_id, target) == 0 && (told->favorited != 0) == edge->favorited &&
                told->ver == edge->ver &&
                (uint64_t)told->created_at_ms == (edge->favorited ? edge->at_ms : 0),
            "the edge to \"%s\" is told with ver %" PRIu64 ", since %" PRId64, told->target_id,
            told->ver, told->created_at_ms);
}

static void check_done(struct edges_world *w, const struct done *done, const struct told *told,
                       bool again)
{
    PROMISE(w->sim, told->write->version == done->version && (told->write->duplicate != 0) == again,
            "the player's version is told as %" PRIu64, told->write->version);
    PROMISE(w->sim, told->applied == done->applied, "a call is told as applied, or not");
    PROMISE(w->sim, told->edges == done->edges, "%u edges are told, not %u", told->edges,
            done->edges);
    check_status(w, told->status, w->targets[done->call.target], &done->edge);
}

static void ask(struct edges_world *w)
{
    const struct call call = choose_call(w);
    struct cause cause;
    struct told told;
    bool refuse = has_cause(w, &call, &cause);
    bool is_done = send(w, &call, &told);

    PROMISE(w->sim, is_done != refuse, "a call is %s: %s", is_done ? "done" : "refused",
            is_done ? "" : w->f.error->message);
    if (!is_done) {
        check_refused(w, &call, &cause);
        return;
    }
    struct done *done = &w->done[w->done_count++ % CALLS];
    done->call = call;
    done->applied = carry_out(w, &call);
    done->edge = w->now[call.name]->edges[call.player][call.target];
    done->edges = count_edges(w, w->now[call.name], call.player);
    done->version = ++w->versions[call.player];
    check_done(w, done, &told, false);
    w->sim->counts.edges_changed++;
}

/* The same call once more, or another one under its id. */
static void ask_again(struct edges_world *w)
{
    uint32_t count = w->done_count < CALLS ? w->done_count : CALLS;
    struct told told;

    if (count == 0)
        return;
    const struct done *done = &w->done[below(w, count)];
    struct call call = done->call;
    if (w->now[call.name] == NULL)
        return; /* Refused before the log. */
    if (chance(w, 60)) {
        PROMISE(w->sim, send(w, &call, &told), "a repetition is refused: %s", w->f.error->message);
        check_done(w, done, &told, true);
        return;
    }
    if (chance(w, 50))
        call.gone = !call.gone;
    else
        call.target = (call.target + 1) % w->target_count;
    PROMISE(w->sim, !send(w, &call, &told), "another call is taken for a repetition");
    PROMISE(w->sim, w->f.error->code == CODE(OPERATION_ID_MISMATCH), "%s", w->f.error->message);
}

/* ---- reads ---- */

/* Whether a read of a collection that is not defined is refused so. */
static bool is_undefined(struct edges_world *w, uint32_t name, const void *told)
{
    PROMISE(w->sim, (told == NULL) == (w->now[name] == NULL), "a read is refused, or not");
    if (told != NULL)
        return false;
    PROMISE(w->sim,
            w->f.error->code == CODE(NOT_FOUND) && strcmp(w->f.error->field, "collection") == 0,
            "%s", w->f.error->message);
    return true;
}

/* Whether the first comes before the second: the newest first, then by target. */
static bool is_newer(const struct edges_world *w, const struct edge *edges, uint32_t a, uint32_t b)
{
    if (edges[a].at_ms != edges[b].at_ms)
        return edges[a].at_ms > edges[b].at_ms;
    return strcmp(w->targets[a], w->targets[b]) < 0;
}

/* A place in a list: behind that edge. `at_ms` 0: before all. */
struct place {
    uint64_t at_ms;
    const char *target;
};

static bool is_behind(const struct edges_world *w, const struct edge *edge, uint32_t target,
                      const struct place *place)
{
    if (place->at_ms == 0 || edge->at_ms != place->at_ms)
        return place->at_ms == 0 || edge->at_ms < place->at_ms;
    return strcmp(w->targets[target], place->target) > 0;
}

/* TARGETS: there is none. */
static uint32_t next_listed(const struct edges_world *w, const struct edge *edges,
                            const struct place *place)
{
    uint32_t best = TARGETS;

    for (uint32_t i = 0; i < w->target_count; i++) {
        if (edges[i].favorited && is_behind(w, &edges[i], i, place) &&
            (best == TARGETS || is_newer(w, edges, i, best)))
            best = i;
    }
    return best;
}

/* A cursor names a place between edges: what changes meanwhile does not move it. */
static void tell_list(struct edges_world *w)
{
    Holdfast__V1__ListFavoritesRequest request = HOLDFAST__V1__LIST_FAVORITES_REQUEST__INIT;
    uint32_t player = below(w, PLAYERS), name = below(w, NAMES), pages = 0;
    struct place place = { 0 };

    request.player_id = text_lend(players[player]);
    request.collection = text_lend(names[name]);
    request.page_size = chance(w, 20) ? 200 : (uint32_t)rsim_between(w->sim, 0, 4);
    for (;;) {
        const Holdfast__V1__ListFavoritesResponse *told =
            fixture_read(&w->f, METHOD_LIST_FAVORITES, &request.base);
        if (is_undefined(w, name, told))
            return;
        const struct edge *edges = w->now[name]->edges[player];
        uint32_t size = request.page_size > 0 ? request.page_size : 50;
        PROMISE(w->sim, told->edges == count_edges(w, w->now[name], player), "%u edges are listed",
                told->edges);
        for (size_t i = 0; i < told->n_favorites; i++) {
            uint32_t next = next_listed(w, edges, &place);
            PROMISE(w->sim, next < TARGETS, "an edge is listed that there is not");
            check_status(w, told->favorites[i], w->targets[next], &edges[next]);
            place = (struct place){ edges[next].at_ms, w->targets[next] };
        }
        bool more = next_listed(w, edges, &place) < TARGETS;
        PROMISE(w->sim, told->n_favorites == size || (!more && told->n_favorites < size),
                "a page of %zu edges", told->n_favorites);
        PROMISE(w->sim, (told->next_cursor[0] != 0) == more, "a list goes on, or ends");
        PROMISE(w->sim, ++pages < PAGES_MAX, "a list never ends");
        if (!more)
            return;
        request.cursor = arena_text(&w->sim->arena, slice_from_text(told->next_cursor));
        w->sim->counts.edges_paged++;
        if (chance(w, 30))
            ask(w);
        if (w->now[name] == NULL)
            return;
    }
}

static void tell_refused_sizes(struct edges_world *w)
{
    Holdfast__V1__ListFavoritesRequest list = HOLDFAST__V1__LIST_FAVORITES_REQUEST__INIT;
    Holdfast__V1__ListByTargetRequest by = HOLDFAST__V1__LIST_BY_TARGET_REQUEST__INIT;

    list.player_id = text_lend("ann");
    list.page_size = 201;
    PROMISE(w->sim, fixture_read(&w->f, METHOD_LIST_FAVORITES, &list.base) == NULL,
            "a page of 201 edges");
    PROMISE(w->sim, strcmp(w->f.error->field, "page_size") == 0, "%s", w->f.error->message);
    by.shard = w->f.shard;
    by.target_id = text_lend("t");
    by.page_size = 1001;
    PROMISE(w->sim, fixture_read(&w->f, METHOD_LIST_BY_TARGET, &by.base) == NULL,
            "a page of 1001 edges");
    PROMISE(w->sim, strcmp(w->f.error->field, "page_size") == 0, "%s", w->f.error->message);
    by.page_size = 1000;
    by.target_id = repeated(w, 't', 129);
    PROMISE(w->sim, fixture_read(&w->f, METHOD_LIST_BY_TARGET, &by.base) == NULL,
            "a target of 129 bytes");
    PROMISE(w->sim, strcmp(w->f.error->field, "target_id") == 0, "%s", w->f.error->message);
}

static void tell_target(struct edges_world *w)
{
    Holdfast__V1__ListByTargetRequest request = HOLDFAST__V1__LIST_BY_TARGET_REQUEST__INIT;
    uint32_t target = below(w, w->target_count), name = below(w, NAMES), at = 0, pages = 0;

    request.shard = w->f.shard;
    request.target_id = text_lend(w->targets[target]);
    request.collection = text_lend(names[name]);
    request.page_size = chance(w, 20) ? 1000 : (uint32_t)rsim_between(w->sim, 0, 2);
    for (;;) {
        const Holdfast__V1__ListByTargetResponse *told =
            fixture_read(&w->f, METHOD_LIST_BY_TARGET, &request.base);
        if (is_undefined(w, name, told))
            return;
        const struct life *life = w->now[name];
        uint32_t size = request.page_size > 0 ? request.page_size : 500;
        for (size_t i = 0; i < told->n_edges; i++, at++) {
            while (at < PLAYERS && !life->edges[at][target].favorited)
                at++;
            PROMISE(w->sim,
                    at < PLAYERS && strcmp(told->edges[i]->player_id, players[at]) == 0 &&
                        (uint64_t)told->edges[i]->created_at_ms == life->edges[at][target].at_ms,
                    "\"%s\" is told to have an edge", told->edges[i]->player_id);
        }
        while (at < PLAYERS && !life->edges[at][target].favorited)
            at++;
        PROMISE(w->sim, told->n_edges == size || at == PLAYERS, "a page of %zu", told->n_edges);
        PROMISE(w->sim, told->n_edges <= size && (told->next_cursor[0] != 0) == (at < PLAYERS),
                "a list goes on, or ends");
        PROMISE(w->sim, ++pages < PAGES_MAX, "a list never ends");
        if (at == PLAYERS)
            return;
        request.cursor = told->next_cursor;
    }
}

/* Statuses of one player, or this shard's counts: both of some targets, in their order. */
static void tell_from(struct edges_world *w, uint32_t player, uint32_t first, uint32_t count)
{
    Holdfast__V1__BatchGetStatusRequest statuses = HOLDFAST__V1__BATCH_GET_STATUS_REQUEST__INIT;
    Holdfast__Internal__V1__GetPartialsRequest partials =
        HOLDFAST__INTERNAL__V1__GET_PARTIALS_REQUEST__INIT;
    uint32_t name = below(w, NAMES);
    char *targets[STATUSES];

    for (uint32_t i = 0; i < count; i++)
        targets[i] = text_lend(w->targets[(first + i) % w->target_count]);
    statuses.player_id = text_lend(players[player]);
    statuses.collection = partials.collection = text_lend(names[name]);
    statuses.target_ids = partials.target_ids = targets;
    statuses.n_target_ids = partials.n_target_ids = count;
    partials.shard = w->f.shard;
    const Holdfast__V1__BatchGetStatusResponse *told =
        fixture_read(&w->f, METHOD_BATCH_GET_STATUS, &statuses.base);
    if (is_undefined(w, name, told))
        return;
    const struct life *life = w->now[name];
    PROMISE(w->sim, told->n_statuses == count, "%zu statuses", told->n_statuses);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t target = (first + i) % w->target_count;
        check_status(w, told->statuses[i], w->targets[target], &life->edges[player][target]);
    }
    const Holdfast__Internal__V1__GetPartialsResponse *counts =
        fixture_read(&w->f, METHOD_GET_PARTIALS, &partials.base);
    PROMISE(w->sim, counts != NULL && counts->n_counts == count, "counts are refused, or missing");
    PROMISE(w->sim,
            counts->collection_number == life->number && counts->at_ms == (int64_t)w->f.now_ms,
            "counts of the collection %" PRIu64 " at %" PRId64, counts->collection_number,
            counts->at_ms);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t wanted = 0;
        for (uint32_t k = 0; k < PLAYERS; k++)
            wanted += life->edges[k][(first + i) % w->target_count].favorited;
        PROMISE(w->sim, counts->counts[i] == wanted, "%" PRIu64 " edges are counted, not %" PRIu64,
                counts->counts[i], wanted);
    }
}

static void tell_some(struct edges_world *w)
{
    uint32_t count = w->target_count < STATUSES || chance(w, 80)
                         ? (uint32_t)rsim_between(w->sim, 1, 5)
                         : STATUSES;

    tell_from(w, below(w, PLAYERS), below(w, w->target_count), count);
}

/* None, too many, one that no game may name, one twice. */
static void tell_wrong(struct edges_world *w)
{
    Holdfast__V1__BatchGetStatusRequest request = HOLDFAST__V1__BATCH_GET_STATUS_REQUEST__INIT;
    uint32_t which = below(w, 4), place = below(w, 5) + 1;
    char *targets[STATUSES + 1];

    for (uint32_t i = 0; i <= STATUSES; i++)
        targets[i] = arena_printf(&w->sim->arena, "s%u", i);
    request.player_id = text_lend("ann");
    request.target_ids = targets;
    request.n_target_ids = which == 0 ? 0 : which == 1 ? STATUSES + 1 : 6;
    if (which == 2)
        targets[place] = text_lend("");
    if (which == 3)
        targets[place] = targets[below(w, place)];
    PROMISE(w->sim, fixture_read(&w->f, METHOD_BATCH_GET_STATUS, &request.base) == NULL,
            "statuses that have to be refused");
    const char *field =
        which < 2 ? "target_ids" : arena_printf(&w->sim->arena, "target_ids[%u]", place);
    PROMISE(w->sim,
            w->f.error->code == CODE(INVALID_ARGUMENT) && strcmp(w->f.error->field, field) == 0,
            "%s of \"%s\"", w->f.error->message, w->f.error->field);
}

/* ---- turns ---- */

static void name_targets(struct edges_world *w)
{
    static const char *const few[FEW - 1] = { "a", "ab",  "abc", "b:1",          "B",
                                              "0", "t/t", "t t", "\xc3\xa4\xc3", "\xe2\x82\xac",
                                              "zz" };

    w->target_count = rsim_between(w->sim, 1, CROWD_IN) == 1 ? TARGETS : FEW;
    for (uint32_t i = 0; i < w->target_count; i++)
        w->targets[i] = i < FEW - 1 ? few[i] : arena_printf(&w->sim->arena, "g%u", i);
    w->targets[8] = "\xc3\xa4\xc3\xa4";
    w->targets[FEW - 1] = repeated(w, 'l', TARGET_ID_MAX);
}

/* So many unfavorited that the first of them are forgotten. */
static void crowd(struct edges_world *w)
{
    struct call call = { .player = below(w, PLAYERS), .gone = true };
    struct told told;

    for (uint32_t i = 0; i < GONE_MAX + 8; i++) {
        w->f.now_ms += i % 3 == 0;
        call.target = FEW + i;
        call.op_id = fixture_op_id(&w->f);
        PROMISE(w->sim, send(w, &call, &told), "%s", w->f.error->message);
        (void)carry_out(w, &call);
        w->versions[call.player]++;
        arena_reset(&w->f.arena);
    }
    for (uint32_t i = 0; i < w->target_count; i += STATUSES / 2)
        tell_from(w, call.player, i, STATUSES);
}

static void turn(struct edges_world *w)
{
    static void (*const deeds[])(struct edges_world *) = {
        ask, ask,       ask,       ask,         ask,       ask,       ask_again,
        ask, tell_list, tell_list, tell_target, tell_some, tell_some, tell_wrong
    };

    if (chance(w, 60)) /* Else at the same moment: lists have ties. */
        w->f.now_ms += rsim_between(w->sim, 1, 30);
    if (chance(w, 3))
        define(w, below(w, NAMES));
    RSIM_PICK(w->sim, deeds)(w);
    if (chance(w, 4))
        fixture_checkpoint(&w->f);
    if (chance(w, 8))
        fixture_evict(&w->f, 0);
    if (chance(w, 3))
        fixture_restart(&w->f);
    if (chance(w, 2))
        fixture_next_epoch(&w->f);
    arena_reset(&w->f.arena);
}

void room_edges(struct rsim *sim)
{
    struct edges_world *w = mem_zalloc(sizeof *w);

    w->sim = sim;
    fixture_init_shard(&w->f, (uint32_t)rsim_between(sim, 0, 3), 4);
    name_targets(w);
    tell_list(w);
    for (uint32_t i = 0; i < NAMES; i++) {
        define(w, i);
        hasten(w, i);
    }
    if (w->target_count == TARGETS)
        crowd(w);
    for (uint32_t i = 0; i < TURNS; i++)
        turn(w);
    tell_refused_sizes(w);
    fixture_check_edges(&w->f);
    fixture_deinit(&w->f);
    for (uint32_t i = 0; i < w->life_count; i++)
        free(w->lives[i]);
    free(w);
}
