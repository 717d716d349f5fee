/* What is done in tops.h: edges are made and taken away, hours pass, owners change, nodes pull. */
#include "tests/sim/cores/node/tops.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/rpc/fixture_shards.h"
#include "runtime/base/check.h"
#include "runtime/base/hex.h"
#include "runtime/cluster/placement.h"

#define FEW        14u
#define TURNS      90u
#define MANY_IN    14u /* One seed in so many has more targets than a page. */
#define CALLS_MAX  4096u
#define ROUNDS_END 16u
#define START_HOUR 486200u
#define HASTE      900u /* The number of the first rate rule. */

const char *const tops_collections[TOPS_COLLECTIONS] = { "favorites", "likes" };

static bool chance(struct tops *t, uint32_t per_hundred)
{
    return rsim_chance(t->sim, per_hundred);
}

static uint32_t below(struct tops *t, uint32_t count)
{
    return (uint32_t)rsim_between(t->sim, 0, count - 1);
}

uint64_t tops_number(uint32_t collection)
{
    return 7 + collection;
}

uint32_t tops_count(const struct tops_spot *spot)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < TOPS_PLAYERS; i++)
        count += spot->made_ms[i] > 0;
    return count;
}

struct fixture *tops_shard(struct tops *t, uint32_t shard)
{
    struct fixture *f = &t->shards[shard];

    f->now_ms = t->now_ms + t->skew_ms[shard];
    return f;
}

/* ---- edges ---- */

static void change(struct tops *t, uint32_t shard, uint32_t collection, struct tops_target *target)
{
    struct fixture *f = tops_shard(t, shard);
    struct tops_spot *spot = &target->spots[collection][shard];
    uint32_t player = below(t, TOPS_PLAYERS);
    bool gone = spot->made_ms[player] > 0 && chance(t, 70);
    const struct fixture_edge edge = { .player = t->players[shard][player],
                                       .target = target->name,
                                       .collection = tops_collections[collection],
                                       .gone = gone };

    PROMISE(t->sim, fixture_edge(f, &edge) != NULL, "an edge is refused: %s", f->error->message);
    if (gone || spot->made_ms[player] == 0) {
        spot->changed = (struct source_dot){ f->epoch, f->counter };
        spot->changed_ms = f->now_ms;
        spot->kept = true;
        spot->made_ms[player] = gone ? 0 : f->now_ms;
    }
    arena_reset(&f->arena);
}

static void change_some(struct tops *t)
{
    uint32_t shard = below(t, t->shard_count), collection = below(t, TOPS_COLLECTIONS);

    for (uint64_t i = rsim_between(t->sim, 1, 6); i > 0; i--)
        change(t, shard, collection, &t->targets[below(t, t->target_count)]);
}

/* All edges to a target go. */
static void empty(struct tops *t)
{
    struct tops_target *target = &t->targets[below(t, t->target_count)];
    uint32_t collection = below(t, TOPS_COLLECTIONS);

    for (uint32_t shard = 0; shard < t->shard_count; shard++) {
        struct tops_spot *spot = &target->spots[collection][shard];
        while (tops_count(spot) > 0)
            change(t, shard, collection, target);
    }
}

/* ---- time and owners ---- */

/* Where clocks differ an hour never ends between them. */
static void pass_hours(struct tops *t)
{
    uint64_t hours = chance(t, 70)   ? rsim_between(t->sim, 1, 3)
                     : chance(t, 50) ? rsim_about(t->sim, HOURS_DAY)
                                     : rsim_about(t->sim, HOURS_MAX);

    t->now_ms += hours * HOUR_MS;
    t->sim->counts.tops_hours++;
    for (uint32_t i = 0; i < t->shard_count && !t->damaged; i++) {
        tops_tell_list(t, i); /* Places are those of before. */
        tops_tell_list(t, i);
    }
}

static void pass(struct tops *t)
{
    t->now_ms += rsim_between(t->sim, 1, 1500);
}

/* Homes have one owner, for a moment two, or none. */
static void give_homes(struct tops *t)
{
    for (uint32_t i = 0; i < t->shard_count; i++) {
        if (chance(t, 60))
            continue;
        uint64_t who = rsim_between(t->sim, 0, 9);
        for (uint32_t n = 0; n < TOPS_NODES; n++)
            t->owned[n][i] = who == n || who == n + 2 || who == n + 4 || who == 8;
    }
}

static void trouble(struct tops *t)
{
    struct fixture *f = tops_shard(t, below(t, t->shard_count));

    switch (rsim_between(t->sim, 0, 3)) {
    case 0:
        fixture_next_epoch(f);
        break;
    case 1:
        fixture_checkpoint(f);
        break;
    case 2:
        fixture_restart(f);
        break;
    default:
        fixture_checkpoint(f);
        fixture_evict(f, 0);
        break;
    }
}

/* ---- rounds of a node ---- */

struct open_call {
    uint64_t token;
    bool ok;
    struct slice answer;
};

struct round {
    struct tops *t;
    struct puller *puller;
    struct open_call open[PULLER_WINDOW];
    uint32_t open_count;
    bool faulty;
};

static void answer_one(struct round *round)
{
    uint32_t place = below(round->t, round->open_count);
    const struct open_call call = round->open[place];

    round->open[place] = round->open[--round->open_count];
    puller_answered(round->puller, call.token, call.ok, call.answer);
    if (round->faulty && chance(round->t, 10)) /* A copy of it comes late. */
        puller_answered(round->puller, call.token, true, call.answer);
}

/* The call is lost, or its answer is, or neither. */
static void carry(struct round *round, const struct pull_call *call)
{
    struct tops *t = round->t;
    struct open_call *open = &round->open[round->open_count++];
    bool lost = round->faulty && chance(t, 6);

    PROMISE(t->sim, call->token != 0, "a call without a token");
    PROMISE(t->sim, round->open_count <= PULLER_WINDOW, "too many calls at once");
    *open = (struct open_call){ .token = call->token };
    if (!lost)
        open->ok = tops_answer(t, call, &open->answer);
    PROMISE(t->sim, lost || open->ok, "a call of method %u is refused", call->method);
    if (round->faulty && chance(t, 6))
        open->ok = false;
    if (round->faulty && chance(t, 10)) /* Others change what is pulled meanwhile. */
        change_some(t);
}

/* After a round without failures, which took no time: no home is older than that, unless one round
 * was not enough for all. */
static void check_age(struct tops *t, uint32_t node)
{
    bool more = t->begin_ms[node] - t->now_ms == PULLER_AGAIN_MS;

    for (uint32_t i = 0; i < t->shard_count && !more && !t->damaged; i++) {
        PROMISE(t->sim,
                !t->owned[node][i] || puller_pulled_ms(t->pullers[node], i) >= (int64_t)t->now_ms,
                "home %u is older than the round that has ended", i);
    }
}

static void pull_round(struct tops *t, uint32_t node, bool faulty)
{
    struct round round = { .t = t, .puller = t->pullers[node], .faulty = faulty };
    struct pull_call call;
    uint32_t calls = 0;

    if (chance(t, 50))
        puller_watch(round.puller, t->now_ms);
    puller_begin(round.puller, t->now_ms, t->now_ms, t->owned[node]);
    for (;;) {
        while (round.open_count < PULLER_WINDOW && puller_next(round.puller, &call)) {
            carry(&round, &call);
            PROMISE(t->sim, ++calls < CALLS_MAX, "a round never ends");
            if (round.open_count == PULLER_WINDOW || chance(t, 30))
                answer_one(&round);
        }
        if (round.open_count == 0)
            break;
        answer_one(&round);
    }
    PROMISE(t->sim, !puller_is_busy(round.puller), "a round has no calls out, and goes on");
    t->begin_ms[node] = puller_next_ms(round.puller);
    PROMISE(
        t->sim, t->begin_ms[node] > t->now_ms && t->begin_ms[node] <= t->now_ms + PULLER_EVERY_MS,
        "the next round is to begin in %" PRId64 " ms", (int64_t)(t->begin_ms[node] - t->now_ms));
    if (!faulty)
        check_age(t, node);
    t->sim->counts.tops_rounds++;
}

/* What a node says that is in a home: every change of before is logged there. */
static void check_pulled(struct tops *t, uint32_t node, uint32_t home)
{
    int64_t pulled_ms = puller_pulled_ms(t->pullers[node], home);

    for (uint32_t i = 0; i < t->target_count && !t->damaged; i++) {
        const struct tops_target *target = &t->targets[i];
        for (uint32_t c = 0; c < TOPS_COLLECTIONS; c++) {
            for (uint32_t s = 0; s < t->shard_count && target->home[c] == home; s++) {
                const struct tops_spot *spot = &target->spots[c][s];
                PROMISE(t->sim,
                        (int64_t)spot->changed_ms >= pulled_ms ||
                            !source_dot_is_above(spot->changed, t->logged[home][s]),
                        "\"%s\" changed in shard %u before its home was pulled, and is not in it",
                        target->name, s);
            }
        }
    }
}

static void pull(struct tops *t, bool faulty)
{
    uint32_t node = below(t, TOPS_NODES);

    pass(t);
    if (t->now_ms < t->begin_ms[node])
        t->now_ms = t->begin_ms[node];
    pull_round(t, node, faulty);
    for (uint32_t i = 0; i < t->shard_count; i++)
        check_pulled(t, node, i);
}

static void pull_badly(struct tops *t)
{
    pull(t, true);
}

static void pull_well(struct tops *t)
{
    pull(t, false);
}

/* ---- damage ---- */

static bool is_of_player(uint8_t letter)
{
    return letter == TABLE_FAVORITE || letter == TABLE_FAVORITES || letter == TABLE_FAVORED;
}

/* Of an edge that is gone no other row tells: it would be forgotten. */
static bool is_spoilable(const struct fixture_row *row)
{
    const uint8_t letter = row->key.data[0];
    struct favorite_row edge;

    if (letter == TABLE_FAVORITE)
        return favorite_row_decode(buf_slice(&row->value), &edge) == ERR_OK && edge.favorited;
    return is_of_player(letter) || letter == TABLE_FAVORER || letter == TABLE_PARTIAL ||
           letter == TABLE_CHANGED || letter == TABLE_NEWEST || letter == TABLE_EMPTIED ||
           letter == TABLE_PULLED || letter == TABLE_SHARE || letter == TABLE_TALLY ||
           letter == TABLE_RANK;
}

static const void *repair_player(struct tops *t, struct fixture *f, struct slice key, char *text)
{
    struct favorite_key edge;

    PROMISE(t->sim, favorite_key_parse(key, &edge) == ERR_OK, "a key of an edge is none");
    const char *player =
        arena_text(&t->sim->arena, (struct slice){ edge.entity.data + 7, edge.entity.size - 7 });
    Holdfast__V1__RepairPlayerRequest *request = fixture_repair_request(f, player);

    fixture_contain(f, player);
    request->rows = &text;
    request->n_rows = 1;
    const void *told = fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base);
    if (told != NULL)
        fixture_release(f, player);
    return told;
}

static const void *repair_row(struct fixture *f, char *text)
{
    Holdfast__V1__RepairRowRequest request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;

    request.reason = text_lend("disk");
    request.shard = f->shard;
    request.key = text;
    return fixture_mutate(f, METHOD_REPAIR_ROW, &request.base);
}

/* A row cannot be read; homes pull past it, and then it is repaired. One that was written again
 * meanwhile needs no repair. */
static void spoil(struct tops *t)
{
    struct fixture *f = tops_shard(t, below(t, t->shard_count));
    struct state *state = applier_state(f->applier);
    struct slice found;

    fixture_checkpoint(f);
    if (!t->damaged || f->row_count == 0)
        return;
    const struct fixture_row *row = &f->rows[below(t, f->row_count)];
    if (!is_spoilable(row))
        return;
    struct slice key = arena_copy(&t->sim->arena, buf_slice(&row->key));
    struct slice value = buf_slice(&row->value);
    CHECK(state_load(state, state_load_generation(state), key, &value));
    state_begin(state);
    state_put(state, key, SLICE_LITERAL("\x7f?"));
    state_commit(state);
    if (chance(t, 40))
        pull_well(t);
    f = tops_shard(t, f->shard);
    bool spoilt = state_find(state, key, &found) == STATE_PRESENT && found.size == 2;
    char *text = arena_zalloc(&t->sim->arena, 2 * key.size + 1);
    hex_print(key.data, key.size, text);
    const void *told =
        is_of_player(key.data[0]) ? repair_player(t, f, key, text) : repair_row(f, text);
    PROMISE(t->sim, told != NULL || !spoilt, "a repair of table %c is refused: %s", key.data[0],
            f->error->message);
    (void)applier_take_damage(f->applier);
    t->sim->counts.tops_repaired++;
}

/* ---- a run ---- */

static void turn(struct tops *t)
{
    static void (*const deeds[])(struct tops *) = {
        change_some, change_some, change_some, empty,      pull_badly,     pull_well,   spoil,
        trouble,     pass,        pass_hours,  give_homes, tops_take_bare, tops_back_up
    };

    RSIM_PICK(t->sim, deeds)(t);
    if (!t->damaged && chance(t, 40))
        tops_tell_list(t, below(t, t->shard_count));
}

/* The last node takes over all homes; hours pass while nothing else does. */
static void come_to_rest(struct tops *t)
{
    for (uint32_t i = 0; i < t->shard_count; i++) {
        t->owned[0][i] = true;
        t->owned[1][i] = false;
    }
    for (uint32_t i = 0; i < ROUNDS_END; i++) {
        if (i == ROUNDS_END / 2)
            pass_hours(t);
        t->now_ms += PULLER_EVERY_MS;
        pull_round(t, 0, false);
    }
    pull_round(t, 1, false);
    for (uint32_t i = 0; i < t->shard_count; i++) {
        PROMISE(t->sim, puller_pulled_ms(t->pullers[0], i) >= (int64_t)t->now_ms,
                "home %u is behind, and nothing is in its way", i);
        check_pulled(t, 0, i);
        tops_tell_list(t, i);
        tops_check_rows(t, i);
    }
    PROMISE(t->sim, puller_behind_ms(t->pullers[0], t->now_ms + 7) <= 7, "a home is behind");
    PROMISE(t->sim, puller_behind_ms(t->pullers[1], t->now_ms) == 0, "a node without homes");
}

/* Edges change as often as they like here: what rate rules let pass is judged in clusters. */
void tops_define(struct tops *t, uint32_t shard)
{
    for (uint32_t c = 0; c < TOPS_COLLECTIONS; c++) {
        const struct fixture_collection collection = {
            tops_number(c), 10 + 2 * c, tops_collections[c], POLICY_LAST, 0, false
        };
        const struct fixture_rate_rule haste = {
            HASTE + c, 11 + 2 * c, c == 0 ? "haste" : "hurry", tops_collections[c], 1000000,
            1000,      false
        };
        fixture_define(&t->shards[shard], &collection);
        fixture_define_rate(&t->shards[shard], &haste);
    }
}

void tops_begin_nodes(struct tops *t)
{
    for (uint32_t i = 0; i < TOPS_NODES; i++) {
        puller_free(t->pullers[i]);
        t->pullers[i] = puller_new(t->shard_count);
        t->begin_ms[i] = 0;
    }
    give_homes(t);
}

static void name_players(struct tops *t, uint32_t shard)
{
    char entity[32];
    uint32_t found = 0;

    for (uint32_t i = 0; found < TOPS_PLAYERS; i++) {
        snprintf(t->players[shard][found], sizeof t->players[shard][found], "p%u", i);
        snprintf(entity, sizeof entity, "player:%s", t->players[shard][found]);
        found += shard_of_entity(slice_from_text(entity), t->shard_count) == shard;
    }
}

static void start(struct tops *t)
{
    static const uint32_t counts[] = { 1, 2, 4, 4, 8 };

    t->shard_count = rsim_between(t->sim, 1, MANY_IN) > 1 ? RSIM_PICK(t->sim, counts) : TOPS_SHARDS;
    bool many = rsim_between(t->sim, 1, MANY_IN) == 1;
    t->target_count = many ? TOPS_TARGETS : FEW;
    if (many)
        t->shard_count = 1; /* Its home has more to be told than a page holds. */
    t->damaged = chance(t, 25);
    t->targets = mem_zalloc(t->target_count * sizeof *t->targets);
    t->now_ms = ((uint64_t)START_HOUR + below(t, 24)) * HOUR_MS + HOUR_MS / 4;
    bool skewed = chance(t, 50);
    for (uint32_t i = 0; i < t->shard_count; i++) {
        fixture_init_shard(&t->shards[i], i, t->shard_count);
        tops_define(t, i);
        name_players(t, i);
        t->skew_ms[i] = skewed ? rsim_between(t->sim, 0, 5000) : 0;
    }
    for (uint32_t i = 0; i < t->target_count; i++) {
        struct tops_target *target = &t->targets[i];
        snprintf(target->name, sizeof target->name, "t%u", i);
        for (uint32_t c = 0; c < TOPS_COLLECTIONS; c++)
            target->home[c] =
                target_home(tops_number(c), slice_from_text(target->name), t->shard_count);
    }
    tops_begin_nodes(t);
}

void room_tops(struct rsim *sim)
{
    struct tops *t = mem_zalloc(sizeof *t);

    t->sim = sim;
    start(t);
    for (uint32_t i = 0; i < t->target_count && t->target_count > FEW; i++)
        change(t, below(t, t->shard_count), 0, &t->targets[i]);
    for (uint32_t i = 0; i < TURNS; i++)
        turn(t);
    come_to_rest(t);
    tops_tell_refused(t);
    for (uint32_t i = 0; i < TOPS_NODES; i++)
        puller_free(t->pullers[i]);
    for (uint32_t i = 0; i < t->shard_count; i++)
        fixture_deinit(&t->shards[i]);
    tops_backup_free(t);
    free(t->targets);
    free(t);
}
