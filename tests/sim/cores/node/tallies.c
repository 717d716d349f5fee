/*
 * What players add to counters, and what is erased of them (counters.proto, erasure.proto;
 * docs/counters.md, docs/erasure.md): an addition is carried out once, within the bounds that
 * stand; at every moment a total is what players added who are not erased, and a count of edges
 * likewise; who is erased is in no answer, until all of it is back as it was, or gone for good.
 */
#include <inttypes.h>
#include <string.h>

#include "holdfast/v1/counter.pb-c.h"
#include "holdfast/v1/erasure.pb-c.h"
#include "idl/error_code.h"
#include "node/core/codec/arena_proto.h"
#include "node/rpc/fixture_counter.h"
#include "node/rpc/fixture_edges.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define PLAYERS   3u
#define TARGETS   7u
#define COUNTERS  2u
#define TURNS     90u
#define DONE_MAX  16u
#define SETTLE_MS 3000u /* All steps of an erasure are done by then. */
#define VALUE_MAX 9007199254740991ll
#define REPEAT_MS 30000u

static const char *const players[PLAYERS] = { "an", "ann", "bob" };
static const char *const targets[TARGETS] = { "a", "ab", "b", "b:1", "chess", "go", "pong" };
static const char *const names[COUNTERS] = { "plays", "wins" };

struct sum {
    int64_t value;
    uint64_t at_ms;
};

struct adder {
    bool erased;
    uint64_t number;   /* Of the last erasure; 0: there was none. */
    uint64_t purge_ms; /* While it is erased. */
    struct sum values[COUNTERS][TARGETS];
    bool edges[TARGETS];
};

struct added {
    uint32_t player, counter, target;
    int64_t amount;
    char *op_id;
    int64_t value; /* As it was told. */
    uint32_t targets;
    uint64_t at_ms;
};

struct tally {
    struct rsim *sim;
    struct fixture f;
    struct adder players[PLAYERS];
    uint64_t numbers[COUNTERS]; /* 0: it is not defined. */
    int64_t value_max[COUNTERS], add_max[COUNTERS];
    uint64_t number, revision;
    struct added done[DONE_MAX];
    uint32_t done_count;
};

static uint32_t below(struct tally *t, uint32_t count)
{
    return (uint32_t)rsim_between(t->sim, 0, count - 1);
}

static uint32_t targets_of(const struct adder *player, uint32_t counter)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < TARGETS; i++)
        count += player->values[counter][i].value > 0;
    return count;
}

static bool refused_with(struct tally *t, Holdfast__V1__ErrorCode code)
{
    return t->f.error != NULL && t->f.error->code == code;
}

/* ---- time ---- */

/* What was to be purged by now is gone: all that is kept of the player here. */
static void pass(struct tally *t, uint64_t ms)
{
    bool purged = true;

    (void)fixture_pass(&t->f, ms);
    while (purged) {
        purged = false;
        for (uint32_t i = 0; i < PLAYERS; i++) {
            struct adder *player = &t->players[i];

            if (!player->erased || player->purge_ms > t->f.now_ms)
                continue;
            *player = (struct adder){ .number = player->number };
            purged = true;
            t->sim->counts.tallies_purged++;
        }
        if (purged)
            (void)fixture_pass(&t->f, SETTLE_MS);
    }
}

/* ---- definitions ---- */

static void define(struct tally *t, uint32_t counter)
{
    bool deletes = t->numbers[counter] != 0 && rsim_chance(t->sim, 25);

    if (t->numbers[counter] == 0) {
        t->numbers[counter] = ++t->number;
        for (uint32_t i = 0; i < PLAYERS; i++)
            memset(t->players[i].values[counter], 0, sizeof t->players[i].values[counter]);
    }
    t->value_max[counter] = rsim_chance(t->sim, 30) ? 0 : (int64_t)rsim_between(t->sim, 5, 60);
    t->add_max[counter] = rsim_chance(t->sim, 30) ? 0 : (int64_t)rsim_between(t->sim, 1, 20);
    fixture_define_counter(&t->f, &(struct fixture_counter){ t->numbers[counter], ++t->revision,
                                                             names[counter], t->value_max[counter],
                                                             t->add_max[counter], deletes });
    if (t->value_max[counter] == 0)
        t->value_max[counter] = VALUE_MAX;
    if (t->add_max[counter] == 0)
        t->add_max[counter] = VALUE_MAX;
    if (deletes)
        t->numbers[counter] = 0;
}

/* ---- additions ---- */

static const Holdfast__V1__AddToCounterResponse *add(struct tally *t, const struct added *a)
{
    return fixture_addition(&t->f, &(struct fixture_addition){ players[a->player],
                                                               targets[a->target], a->amount,
                                                               names[a->counter], a->op_id, NULL });
}

/* 0: it is carried out. */
static Holdfast__V1__ErrorCode cause_of(const struct tally *t, const struct added *a)
{
    const struct adder *player = &t->players[a->player];
    int64_t value = player->values[a->counter][a->target].value;

    if (a->amount < 1 || a->amount > VALUE_MAX)
        return CODE(INVALID_ARGUMENT);
    if (t->numbers[a->counter] == 0)
        return CODE(NOT_FOUND);
    if (player->erased)
        return CODE(QUARANTINED);
    if (a->amount > t->add_max[a->counter] || value + a->amount > t->value_max[a->counter])
        return CODE(CAPACITY_FULL);
    return 0;
}

static int64_t amount_of(struct tally *t, uint32_t counter, int64_t value)
{
    int64_t left = t->value_max[counter] - value;
    int64_t most = left < t->add_max[counter] ? left : t->add_max[counter];

    if (rsim_chance(t->sim, 5))
        return rsim_chance(t->sim, 50) ? 0 : VALUE_MAX + 1;
    if (rsim_chance(t->sim, 30) && most > 0 && most < 100) /* About the bound that is nearest. */
        return (int64_t)rsim_about(t->sim, (uint64_t)most);
    return (int64_t)rsim_between(t->sim, 1, 9);
}

static void add_turn(struct tally *t)
{
    struct added a = { below(t, PLAYERS), below(t, COUNTERS), below(t, TARGETS), 0, NULL, 0, 0, 0 };
    struct adder *player = &t->players[a.player];
    struct sum *value = &player->values[a.counter][a.target];

    a.amount = amount_of(t, a.counter, value->value);
    a.op_id = arena_text(&t->sim->arena, slice_from_text(fixture_op_id(&t->f)));
    Holdfast__V1__ErrorCode code = cause_of(t, &a);
    const Holdfast__V1__AddToCounterResponse *told = add(t, &a);

    PROMISE(t->sim, (told != NULL) == (code == 0),
            "%" PRId64 " to %" PRId64 " of at most %" PRId64 ", %" PRId64 " at once: %s", a.amount,
            value->value, t->value_max[a.counter], t->add_max[a.counter],
            told != NULL ? "added" : t->f.error->message);
    PROMISE(t->sim, told != NULL || refused_with(t, code), "an addition is refused with %d, not %d",
            told != NULL ? 0 : (int)t->f.error->code, (int)code);
    t->sim->counts.tallies_refused += told == NULL;
    if (told == NULL)
        return;
    value->value += a.amount;
    value->at_ms = t->f.now_ms;
    a.value = value->value;
    a.targets = targets_of(player, a.counter);
    a.at_ms = t->f.now_ms;
    PROMISE(t->sim, told->value == a.value && told->targets == a.targets,
            "an addition comes to %" PRId64 " of %u targets", told->value, told->targets);
    t->done[t->done_count++ % DONE_MAX] = a;
    t->sim->counts.tallies_added++;
}

/* Whatever became of the counter and of the player since. */
static void repeat_turn(struct tally *t)
{
    uint32_t count = t->done_count < DONE_MAX ? t->done_count : DONE_MAX;

    if (count == 0)
        return;
    struct added a = t->done[below(t, count)];
    bool other = rsim_chance(t->sim, 25);

    if (t->f.now_ms - a.at_ms > REPEAT_MS || t->numbers[a.counter] == 0)
        return;
    a.amount += other;
    const Holdfast__V1__AddToCounterResponse *told = add(t, &a);

    if (other) {
        PROMISE(t->sim, told == NULL && refused_with(t, CODE(OPERATION_ID_MISMATCH)),
                "another addition under an op_id of before");
        return;
    }
    PROMISE(t->sim, told != NULL && t->f.outcome.duplicate, "a repetition is refused: %s",
            told == NULL ? t->f.error->message : "no duplicate");
    PROMISE(t->sim, told->value == a.value && told->targets == a.targets,
            "a repetition is told as %" PRId64 " of %u, not %" PRId64 " of %u", told->value,
            told->targets, a.value, a.targets);
}

static void edge_turn(struct tally *t)
{
    uint32_t place = below(t, PLAYERS), target = below(t, TARGETS);
    struct adder *player = &t->players[place];
    bool gone = rsim_chance(t->sim, 30);
    const Holdfast__V1__FavoriteResponse *told =
        gone ? fixture_unfavorite(&t->f, players[place], targets[target])
             : fixture_favorite(&t->f, players[place], targets[target]);

    PROMISE(t->sim, (told != NULL) == !player->erased, "an edge of a player who is %s: %s",
            player->erased ? "erased" : "not erased", told != NULL ? "changed" : "refused");
    PROMISE(t->sim, told != NULL || refused_with(t, CODE(QUARANTINED)), "refused with %d",
            told != NULL ? 0 : (int)t->f.error->code);
    if (told != NULL)
        player->edges[target] = !gone;
}

/* ---- erasures ---- */

static void erase_turn(struct tally *t)
{
    Holdfast__V1__ErasePlayerRequest request = HOLDFAST__V1__ERASE_PLAYER_REQUEST__INIT;
    uint32_t place = below(t, PLAYERS);
    struct adder *player = &t->players[place];
    int64_t grace_ms = rsim_chance(t->sim, 20) ? 0 : (int64_t)rsim_between(t->sim, 1, 20000);

    request.player_id = text_lend(players[place]);
    request.op_id = fixture_op_id(&t->f);
    request.authority = text_lend("system:admin");
    request._grace_ms_case = HOLDFAST__V1__ERASE_PLAYER_REQUEST___GRACE_MS_GRACE_MS;
    request.grace_ms = grace_ms;
    const Holdfast__V1__ErasePlayerResponse *told =
        fixture_mutate(&t->f, METHOD_ERASE_PLAYER, &request.base);

    PROMISE(t->sim, told != NULL, "an erasure is refused: %s", t->f.error->message);
    PROMISE(t->sim,
            player->erased ? told->erasure->number == player->number
                           : told->erasure->number > player->number,
            "an erasure has the number %" PRIu64 " after %" PRIu64, told->erasure->number,
            player->number);
    PROMISE(t->sim, told->erasure->purge_at_ms == (int64_t)t->f.now_ms + grace_ms,
            "%" PRId64 " ms to the purge, not %" PRId64,
            told->erasure->purge_at_ms - (int64_t)t->f.now_ms, grace_ms);
    player->number = told->erasure->number;
    player->erased = true;
    player->purge_ms = t->f.now_ms + (uint64_t)grace_ms;
}

/* A player who is being put back is not erased again meanwhile. */
static void erased_meanwhile(struct tally *t, uint32_t place)
{
    Holdfast__V1__ErasePlayerRequest request = HOLDFAST__V1__ERASE_PLAYER_REQUEST__INIT;

    request.player_id = text_lend(players[place]);
    request.op_id = fixture_op_id(&t->f);
    request.authority = text_lend("system:admin");
    PROMISE(t->sim,
            fixture_mutate(&t->f, METHOD_ERASE_PLAYER, &request.base) == NULL &&
                refused_with(t, CODE(QUARANTINED)),
            "a player who is being put back is erased");
}

/* To the last millisecond before the purge. While it is put back, the player's writes wait. */
static void undo_turn(struct tally *t)
{
    Holdfast__V1__RestorePlayerRequest request = HOLDFAST__V1__RESTORE_PLAYER_REQUEST__INIT;
    uint32_t place = below(t, PLAYERS);
    struct adder *player = &t->players[place];

    if (player->erased && rsim_chance(t->sim, 30) && player->purge_ms > t->f.now_ms + 1)
        pass(t, player->purge_ms - t->f.now_ms - 1);
    request.player_id = text_lend(players[place]);
    request.op_id = fixture_op_id(&t->f);
    request.authority = text_lend("system:admin");
    bool told = fixture_mutate(&t->f, METHOD_RESTORE_PLAYER, &request.base) != NULL;

    PROMISE(t->sim, told == player->erased, "an erasure that %s is undone: %s",
            player->erased ? "stands" : "does not stand", told ? "yes" : t->f.error->message);
    PROMISE(t->sim, told || refused_with(t, CODE(NOT_FOUND)), "refused with %d",
            told ? 0 : (int)t->f.error->code);
    if (!told)
        return;
    PROMISE(t->sim,
            fixture_favorite(&t->f, players[place], targets[0]) == NULL &&
                refused_with(t, CODE(QUARANTINED)),
            "a player who is being put back writes");
    erased_meanwhile(t, place);
    player->erased = false;
    pass(t, SETTLE_MS);
    t->sim->counts.tallies_undone++;
}

/* ---- what is told ---- */

static void values_check(struct tally *t, uint32_t place, uint32_t counter)
{
    Holdfast__V1__BatchGetPlayerCountersRequest request =
        HOLDFAST__V1__BATCH_GET_PLAYER_COUNTERS_REQUEST__INIT;
    const struct adder *player = &t->players[place];
    char *ids[TARGETS];

    for (uint32_t i = 0; i < TARGETS; i++)
        ids[i] = text_lend(targets[TARGETS - 1 - i]);
    request.player_id = text_lend(players[place]);
    request.counter = text_lend(names[counter]);
    request.target_ids = ids;
    request.n_target_ids = rsim_between(t->sim, 1, TARGETS);
    const Holdfast__V1__BatchGetPlayerCountersResponse *told =
        fixture_read(&t->f, METHOD_BATCH_GET_PLAYER_COUNTERS, &request.base);

    PROMISE(t->sim, (told != NULL) == (t->numbers[counter] != 0), "values are told, or not");
    for (size_t i = 0; told != NULL && i < request.n_target_ids; i++) {
        const struct sum *value = &player->values[counter][TARGETS - 1 - i];
        int64_t wanted = player->erased ? 0 : value->value;

        PROMISE(t->sim,
                strcmp(told->counters[i]->target_id, ids[i]) == 0 &&
                    told->counters[i]->value == wanted &&
                    (wanted == 0 || told->counters[i]->added_at_ms == (int64_t)value->at_ms),
                "%s of %s is told as %" PRId64 ", not %" PRId64, ids[i], players[place],
                told->counters[i]->value, wanted);
    }
}

static void list_check(struct tally *t, uint32_t place, uint32_t counter)
{
    Holdfast__V1__ListPlayerCountersRequest request =
        HOLDFAST__V1__LIST_PLAYER_COUNTERS_REQUEST__INIT;
    const struct adder *player = &t->players[place];
    uint32_t at = 0, wanted = player->erased ? 0 : targets_of(player, counter), listed = 0;

    request.player_id = text_lend(players[place]);
    request.counter = text_lend(names[counter]);
    request.page_size = (uint32_t)rsim_between(t->sim, 1, 4);
    do {
        const Holdfast__V1__ListPlayerCountersResponse *told =
            fixture_read(&t->f, METHOD_LIST_PLAYER_COUNTERS, &request.base);

        PROMISE(t->sim, told != NULL && told->n_counters <= request.page_size, "no page");
        PROMISE(t->sim, told->targets == wanted, "%u targets are told, and %u are", told->targets,
                wanted);
        PROMISE(t->sim, told->next_cursor[0] == '\0' || told->n_counters == request.page_size,
                "a page that is not full");
        for (size_t i = 0; i < told->n_counters; i++, at++, listed++) {
            while (at < TARGETS && player->values[counter][at].value == 0)
                at++;
            PROMISE(t->sim, at < TARGETS && strcmp(told->counters[i]->target_id, targets[at]) == 0,
                    "the list has %s", told->counters[i]->target_id);
            PROMISE(t->sim, told->counters[i]->value == player->values[counter][at].value,
                    "the list has another value");
        }
        request.cursor = arena_text(&t->sim->arena, slice_from_text(told->next_cursor));
    } while (request.cursor[0] != '\0');
    PROMISE(t->sim, listed == wanted, "%u are listed of %u", listed, wanted);
}

/* All that is kept is exported, also of who is erased: additions to what is defined, and edges. */
static void export_check(struct tally *t, uint32_t place)
{
    Holdfast__V1__ExportPlayerRequest request = HOLDFAST__V1__EXPORT_PLAYER_REQUEST__INIT;
    const struct adder *player = &t->players[place];
    uint32_t values = 0, edges = 0, stand = 0, defined = 0;

    request.player_id = text_lend(players[place]);
    request.page_size = (uint32_t)rsim_between(t->sim, 1, 5);
    do {
        const Holdfast__V1__ExportPlayerResponse *told =
            fixture_read(&t->f, METHOD_EXPORT_PLAYER, &request.base);

        PROMISE(t->sim, told != NULL && told->n_rows <= request.page_size, "no page");
        for (size_t i = 0; i < told->n_rows; i++) {
            const Holdfast__V1__ExportedRow *row = told->rows[i];

            edges += row->row_case == HOLDFAST__V1__EXPORTED_ROW__ROW_EDGE && row->edge->favorited;
            for (uint32_t c = 0; c < COUNTERS; c++) {
                if (row->row_case != HOLDFAST__V1__EXPORTED_ROW__ROW_COUNTER ||
                    t->numbers[c] != row->number)
                    continue;
                uint32_t at = 0;
                while (at < TARGETS && strcmp(targets[at], row->counter->target_id) != 0)
                    at++;
                PROMISE(t->sim,
                        at < TARGETS && strcmp(row->name, names[c]) == 0 &&
                            row->counter->value == player->values[c][at].value,
                        "%s has %" PRId64 " in an export", row->counter->target_id,
                        row->counter->value);
                values++;
            }
        }
        PROMISE(t->sim, (told->erasure == NULL) == (player->number == 0), "the erasure is told");
        request.cursor = arena_text(&t->sim->arena, slice_from_text(told->next_cursor));
    } while (request.cursor[0] != '\0');
    for (uint32_t i = 0; i < TARGETS; i++)
        stand += player->edges[i];
    for (uint32_t c = 0; c < COUNTERS; c++)
        defined += t->numbers[c] != 0 ? targets_of(player, c) : 0;
    PROMISE(t->sim, edges == stand && values == defined,
            "an export has %u edges of %u, and %u values of %u", edges, stand, values, defined);
}

/* Of who is not erased. Exact once an erasure's steps are done. */
static void totals_check(struct tally *t)
{
    pass(t, SETTLE_MS);
    for (uint32_t i = 0; i < TARGETS; i++) {
        uint64_t edges = 0;

        for (uint32_t c = 0; c < COUNTERS; c++) {
            uint64_t total = 0;

            for (uint32_t p = 0; p < PLAYERS; p++)
                total += t->players[p].erased ? 0 : (uint64_t)t->players[p].values[c][i].value;
            PROMISE(t->sim,
                    t->numbers[c] == 0 || fixture_part(&t->f, names[c], targets[i]) == total,
                    "%s has a total of %" PRIu64 ", not %" PRIu64, targets[i],
                    fixture_part(&t->f, names[c], targets[i]), total);
        }
        for (uint32_t p = 0; p < PLAYERS; p++)
            edges += !t->players[p].erased && t->players[p].edges[i];
        PROMISE(t->sim, fixture_partial(&t->f, "favorites", targets[i]) == edges,
                "%s has %" PRIu64 " edges, not %" PRIu64, targets[i],
                fixture_partial(&t->f, "favorites", targets[i]), edges);
    }
}

static void read_turn(struct tally *t)
{
    uint32_t place = below(t, PLAYERS), counter = below(t, COUNTERS);

    values_check(t, place, counter);
    if (t->numbers[counter] != 0)
        list_check(t, place, counter);
    if (rsim_chance(t->sim, 40))
        export_check(t, place);
    const Holdfast__V1__FavoriteStatus *status =
        fixture_status(&t->f, players[place], targets[counter]);

    PROMISE(t->sim,
            status != NULL && (status->favorited != 0) ==
                                  (!t->players[place].erased && t->players[place].edges[counter]),
            "an edge of %s is told as it is not", players[place]);
}

static void turn(struct tally *t)
{
    uint64_t what = rsim_between(t->sim, 0, 99);

    if (what < 45)
        add_turn(t);
    else if (what < 53)
        repeat_turn(t);
    else if (what < 65)
        edge_turn(t);
    else if (what < 78)
        read_turn(t);
    else if (what < 83)
        erase_turn(t);
    else if (what < 89)
        undo_turn(t);
    else if (what < 92)
        define(t, below(t, COUNTERS));
    else if (what < 96)
        totals_check(t);
    else if (rsim_chance(t->sim, 50))
        fixture_restart(&t->f);
    else
        fixture_evict(&t->f, 0);
}

void room_tallies(struct rsim *sim)
{
    struct tally *t = arena_zalloc(&sim->arena, sizeof *t);

    t->sim = sim;
    t->number = 100;
    t->revision = 100;
    fixture_init_shard(&t->f, 0, 1);
    fixture_define_favorites(&t->f);
    fixture_define_haste(&t->f);
    applier_set_erasure_rows(t->f.applier, (uint32_t)rsim_between(sim, 1, 8));
    for (uint32_t c = 0; c < COUNTERS; c++)
        define(t, c);
    for (uint32_t i = 0; i < TURNS; i++) {
        turn(t);
        pass(t, rsim_chance(sim, 80) ? rsim_between(sim, 1, 30) : rsim_between(sim, 100, 4000));
    }
    totals_check(t);
    for (uint32_t p = 0; p < PLAYERS; p++)
        export_check(t, p);
    fixture_deinit(&t->f);
}
