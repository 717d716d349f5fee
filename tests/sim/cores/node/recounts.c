/*
 * Counts of targets that are wrong, by the promises of RebuildCounts and CheckCounts: each wrong
 * one is told once with what is kept and what it comes to, and no right one is, whatever changes
 * meanwhile and however few rows a step looks at; a rebuild stores what it tells, a dry run and a
 * check change nothing; a step that comes again is carried out once, and no other one is.
 */
#include <inttypes.h>
#include <string.h>

#include "idl/error_code.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/favorite/favorite.h"
#include "node/core/top/top.h"
#include "node/rpc/fixture_counter.h"
#include "node/rpc/fixture_edges.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define PLAYERS   9u
#define TARGETS   5u
#define TURNS     14u
#define CHANGES   8u
#define STEPS_MAX 2000u
#define COUNTS    HOLDFAST__V1__REBUILD_PART__REBUILD_PART_COUNTS
#define TOTALS    HOLDFAST__V1__REBUILD_PART__REBUILD_PART_TOTALS

typedef Holdfast__V1__RebuildCountsRequest rebuild_request;
typedef Holdfast__V1__RebuildCountsResponse rebuild_response;
typedef Holdfast__Internal__V1__CheckCountsRequest check_request;
typedef Holdfast__Internal__V1__CheckCountsResponse check_response;

/* One name is the beginning of another. */
static const char *const targets[TARGETS] = { "chess", "pong", "pong2", "tetris", "zork" };
static const char *const players[PLAYERS] = { "ann", "bea", "cid", "dan", "eve",
                                              "fay", "gus", "hal", "ida" };

/* What is kept of a target: how many have it as a favourite, or what was added to "plays". */
enum what { EDGES, PLAYS, WHATS };
static const uint64_t numbers[WHATS] = { 7, 9 };
static const char *const names[WHATS] = { "favorites", "plays" };

struct counted {
    uint64_t right, kept;
    bool lost; /* Its row. */
};

struct recounts_world {
    struct rsim *sim;
    struct fixture f;
    bool edges[PLAYERS][TARGETS];
    struct counted counted[WHATS][TARGETS];
    uint64_t ids;
};

/* What steps told, and what they had to tell. */
struct tally {
    uint64_t different, kept, computed, targets;
};

static uint32_t below(struct recounts_world *w, uint32_t count)
{
    return (uint32_t)rsim_between(w->sim, 0, count - 1);
}

static bool is_right(const struct counted *counted)
{
    return !counted->lost && counted->kept == counted->right;
}

/* ---- changes ---- */

static void change_edge(struct recounts_world *w, uint32_t target)
{
    struct counted *counted = &w->counted[EDGES][target];
    uint32_t player = below(w, PLAYERS);
    bool *edge = &w->edges[player][target];

    const void *told = *edge ? fixture_unfavorite(&w->f, players[player], targets[target])
                             : fixture_favorite(&w->f, players[player], targets[target]);
    PROMISE(w->sim, told != NULL, "an edge is refused");
    *edge = !*edge;
    counted->kept = counted->right = *edge ? counted->right + 1 : counted->right - 1;
}

static void change_plays(struct recounts_world *w, uint32_t target)
{
    struct counted *counted = &w->counted[PLAYS][target];
    int64_t amount = (int64_t)rsim_between(w->sim, 1, 5);

    PROMISE(w->sim, fixture_add(&w->f, players[below(w, PLAYERS)], targets[target], amount) > 0,
            "an addition is refused");
    counted->kept = counted->right += (uint64_t)amount;
}

/* Of what is right: what is not is to be found as it is. */
static void change(struct recounts_world *w)
{
    uint32_t target = below(w, TARGETS);

    w->f.now_ms += rsim_between(w->sim, 1, 900000);
    if (rsim_chance(w->sim, 60) && is_right(&w->counted[EDGES][target]))
        change_edge(w, target);
    else if (is_right(&w->counted[PLAYS][target]))
        change_plays(w, target);
}

static void store(struct fixture *f, const struct row_key *key, const struct buf *value)
{
    struct state *state = applier_state(f->applier);

    state_begin(state);
    if (value == NULL)
        state_delete(state, row_key_slice(key));
    else
        state_put(state, row_key_slice(key), buf_slice(value));
    state_commit(state);
}

static void spoil(struct recounts_world *w)
{
    enum what what = (enum what)below(w, WHATS);
    uint32_t target = below(w, TARGETS);
    struct counted *counted = &w->counted[what][target];
    const struct favorite_key edge = { .collection = numbers[what],
                                       .target = slice_from_text(targets[target]) };
    struct partial_row row;
    struct row_key key;
    struct buf value = { 0 };

    if (counted->right == 0 || !is_right(counted))
        return;
    uint64_t told = what == EDGES ? fixture_partial(&w->f, names[what], targets[target])
                                  : fixture_part(&w->f, names[what], targets[target]);
    CHECK(told == counted->right); /* Its row is in memory now. */
    CHECK(partial_find(applier_state(w->f.applier), &edge, NULL, &row) == ERR_OK);
    row_key_partial(&key, edge.collection, edge.target);
    counted->lost = rsim_chance(w->sim, 25);
    counted->kept = counted->lost ? 0 : counted->right + rsim_between(w->sim, 1, 9);
    row.count = counted->kept;
    row.hours = (struct hours){ 0 };
    partial_row_encode(&row, &value);
    store(&w->f, &key, counted->lost ? NULL : &value);
    buf_deinit(&value);
    w->sim->counts.recounts_spoilt++;
}

static void disturb(struct recounts_world *w)
{
    if (rsim_chance(w->sim, 30))
        fixture_checkpoint(&w->f);
    if (rsim_chance(w->sim, 30))
        fixture_evict(&w->f, 0);
    if (rsim_chance(w->sim, 10))
        fixture_restart(&w->f);
    if (rsim_chance(w->sim, 10))
        fixture_next_epoch(&w->f);
}

/* ---- what is told ---- */

static struct counted *counted_of(struct recounts_world *w,
                                  const Holdfast__V1__CountDifference *one)
{
    for (uint32_t what = 0; what < WHATS; what++)
        for (uint32_t i = 0; i < TARGETS; i++)
            if (one->number == numbers[what] && strcmp(one->target_id, targets[i]) == 0)
                return &w->counted[what][i];
    rsim_broken(w->sim, "what differs is \"%s\" of %" PRIu64, one->target_id, one->number);
}

static void add(struct recounts_world *w, Holdfast__V1__CountDifference **list, size_t count,
                struct tally *tally)
{
    for (size_t i = 0; i < count; i++) {
        const struct counted *counted = counted_of(w, list[i]);

        PROMISE(w->sim, !is_right(counted), "a right count of \"%s\" is told", list[i]->target_id);
        PROMISE(w->sim, list[i]->kept == counted->kept && list[i]->computed == counted->right,
                "of \"%s\" %" PRIu64 " is told, not %" PRIu64 ", and %" PRIu64 ", not %" PRIu64,
                list[i]->target_id, list[i]->kept, counted->kept, list[i]->computed,
                counted->right);
        PROMISE(w->sim, !list[i]->unreadable, "what can be read is told as what cannot");
        tally->kept += list[i]->kept;
        tally->computed += list[i]->computed;
    }
}

/* Of all, or of one target of one of them. */
static struct tally expected(const struct recounts_world *w, const char *name, const char *target)
{
    struct tally tally = { 0 };

    for (uint32_t what = 0; what < WHATS; what++) {
        for (uint32_t i = 0; i < TARGETS; i++) {
            const struct counted *counted = &w->counted[what][i];
            if (is_right(counted) || (name != NULL && strcmp(name, names[what]) != 0) ||
                (target != NULL && strcmp(target, targets[i]) != 0))
                continue;
            tally.different++;
            tally.kept += counted->kept;
            tally.computed += counted->right;
        }
    }
    return tally;
}

static void compare(struct recounts_world *w, const struct tally *told, const struct tally *due)
{
    PROMISE(w->sim, told->different == due->different,
            "%" PRIu64 " differ, and %" PRIu64 " are told", due->different, told->different);
    PROMISE(w->sim, told->kept == due->kept && told->computed == due->computed,
            "differences are not told once each");
}

/* ---- a check ---- */

static void check_all(struct recounts_world *w)
{
    check_request request = HOLDFAST__INTERNAL__V1__CHECK_COUNTS_REQUEST__INIT;
    struct tally told = { 0 };
    struct buf place = { 0 };

    request.part = COUNTS;
    for (uint32_t steps = 0;; steps++) {
        PROMISE(w->sim, steps < STEPS_MAX, "a check does not end");
        request.rows = (uint32_t)(rsim_chance(w->sim, 20) ? 512 : rsim_between(w->sim, 1, 6));
        request.place = (ProtobufCBinaryData){ place.size, place.data };
        const check_response *response = fixture_read(&w->f, METHOD_CHECK_COUNTS, &request.base);
        PROMISE(w->sim, response != NULL, "a check is refused");
        told.different += response->different;
        told.targets += response->targets;
        add(w, response->differences, response->n_differences, &told);
        if (response->place.len == 0)
            break;
        buf_clear(&place);
        buf_append(&place, response->place.data, response->place.len);
        if (steps < CHANGES)
            change(w);
    }
    buf_deinit(&place);
    const struct tally due = expected(w, NULL, NULL);
    compare(w, &told, &due);
    w->sim->counts.recounts_checked++;
}

/* ---- a rebuild ---- */

static const rebuild_response *step(struct recounts_world *w, const rebuild_request *request)
{
    const rebuild_response *response = fixture_mutate(&w->f, METHOD_REBUILD_COUNTS, &request->base);

    PROMISE(w->sim, response != NULL, "step %" PRIu64 " of a rebuild is refused", request->step);
    PROMISE(w->sim, response->done || response->next_step == request->step + 1,
            "behind step %" PRIu64 " comes %" PRIu64, request->step, response->next_step);
    return response;
}

static void refuse_other_steps(struct recounts_world *w, rebuild_request request)
{
    request.step += rsim_between(w->sim, 1, 3);
    PROMISE(w->sim,
            fixture_mutate(&w->f, METHOD_REBUILD_COUNTS, &request.base) == NULL &&
                w->f.error->code == ERROR(VERSION_CONFLICT),
            "a step is left out");
}

static struct tally carry_out(struct recounts_world *w, rebuild_request request)
{
    struct tally told = { 0 };

    for (uint32_t steps = 0;; steps++) {
        PROMISE(w->sim, steps < STEPS_MAX, "a rebuild does not end");
        request.rows = (uint32_t)(rsim_chance(w->sim, 20) ? 0 : rsim_between(w->sim, 1, 6));
        const rebuild_response *response = step(w, &request);
        add(w, response->differences, response->n_differences, &told);
        told.different = response->different;
        told.targets = response->targets;
        PROMISE(w->sim, response->left_alone == 0, "what can be read is left alone");
        if (response->done)
            return told;
        if (rsim_chance(w->sim, 10))
            PROMISE(w->sim, step(w, &request)->different == told.different,
                    "a step that comes again counts again");
        request.step++;
        if (rsim_chance(w->sim, 10))
            refuse_other_steps(w, request);
        if (steps < CHANGES)
            change(w);
        disturb(w);
    }
}

static void check_kept(struct recounts_world *w)
{
    for (uint32_t i = 0; i < TARGETS; i++) {
        uint64_t edges = fixture_partial(&w->f, "favorites", targets[i]);
        uint64_t plays = fixture_part(&w->f, "plays", targets[i]);

        PROMISE(w->sim, edges == w->counted[EDGES][i].kept,
                "\"%s\" has %" PRIu64 " edges, not %" PRIu64, targets[i], edges,
                w->counted[EDGES][i].kept);
        PROMISE(w->sim, plays == w->counted[PLAYS][i].kept,
                "\"%s\" has %" PRIu64 " plays, not %" PRIu64, targets[i], plays,
                w->counted[PLAYS][i].kept);
    }
}

static void rebuild(struct recounts_world *w)
{
    rebuild_request request = HOLDFAST__V1__REBUILD_COUNTS_REQUEST__INIT;
    enum what what = (enum what)below(w, WHATS);
    const char *name = rsim_chance(w->sim, 40) ? names[what] : NULL;
    const char *target =
        name != NULL && rsim_chance(w->sim, 60) ? targets[below(w, TARGETS)] : NULL;

    request.rebuild_id = arena_printf(&w->sim->arena, "r%" PRIu64, ++w->ids);
    request.part = COUNTS;
    request.dry_run = rsim_chance(w->sim, 30);
    if (name != NULL)
        *(what == EDGES ? &request.collection : &request.counter) = text_lend(name);
    if (target != NULL)
        request.target_id = text_lend(target);
    const struct tally due = expected(w, name, target);
    const struct tally told = carry_out(w, request);
    compare(w, &told, &due);
    for (uint32_t i = 0; i < WHATS && !request.dry_run; i++) {
        for (uint32_t j = 0; j < TARGETS; j++) {
            if ((name != NULL && i != what) || (target != NULL && strcmp(target, targets[j]) != 0))
                continue;
            w->counted[i][j].kept = w->counted[i][j].right;
            w->counted[i][j].lost = false;
        }
    }
    w->sim->counts.recounts_rebuilt += due.different > 0 && !request.dry_run;
    check_kept(w);
}

/* ---- totals ---- */

/* 0: none, or none that is in memory. */
static uint64_t total_of(struct recounts_world *w, const struct top_key *of,
                         struct tally_row *ret_row)
{
    struct need unused = { 0 };

    *ret_row = (struct tally_row){ 0 };
    err e = tally_find(applier_state(w->f.applier), of, &unused, ret_row);
    need_deinit(&unused);
    return e == ERR_OK ? ret_row->count : 0;
}

/* All that is right is told to its home; then one total is spoilt, and made again. */
static void rebuild_totals(struct recounts_world *w)
{
    rebuild_request request = HOLDFAST__V1__REBUILD_COUNTS_REQUEST__INIT;
    uint32_t target = below(w, TARGETS);
    const struct top_key of = { .collection = 7, .target = slice_from_text(targets[target]) };
    struct tally_row row;
    struct row_key key;
    struct buf value = { 0 };
    uint64_t different = 0;

    fixture_take_totals(&w->f);
    request.part = TOTALS;
    uint64_t right = total_of(w, &of, &row);
    if (right > 0 && rsim_chance(w->sim, 70)) {
        row.count = right + rsim_between(w->sim, 1, 9);
        row_key_tally(&key, of.collection, of.target);
        tally_row_encode(&row, &value);
        store(&w->f, &key, &value);
        buf_deinit(&value);
        different = 1;
    }
    for (uint32_t round = 0; round < 2; round++) {
        uint64_t told = 0;

        request.step = 0;
        request.rebuild_id = arena_printf(&w->sim->arena, "r%" PRIu64, ++w->ids);
        for (const rebuild_response *response = NULL; response == NULL || !response->done;) {
            request.rows = (uint32_t)rsim_between(w->sim, 1, 9);
            response = step(w, &request);
            told = response->different;
            request.step++;
            PROMISE(w->sim, request.step < STEPS_MAX, "a rebuild does not end");
        }
        PROMISE(w->sim, (told > 0) == (round == 0 && different > 0),
                "%" PRIu64 " totals are told in round %u, and %" PRIu64 " differ", told, round,
                different);
    }
    if (right > 0 && total_of(w, &of, &row) > 0)
        PROMISE(w->sim, row.count == right, "the total is %" PRIu64 ", not %" PRIu64, row.count,
                right);
}

void room_recounts(struct rsim *sim)
{
    struct recounts_world *w = arena_zalloc(&sim->arena, sizeof *w);

    w->sim = sim;
    fixture_init_shard(&w->f, 0, 1);
    fixture_define_favorites(&w->f);
    fixture_define_haste(&w->f);
    fixture_define_plays(&w->f);
    for (uint32_t i = 0; i < 30; i++)
        change(w);
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        uint64_t what = rsim_between(sim, 0, 9);

        change(w);
        if (what < 4)
            spoil(w);
        else if (what < 6)
            check_all(w);
        else if (what < 9)
            rebuild(w);
        else
            disturb(w);
    }
    if (expected(w, NULL, NULL).different == 0)
        rebuild_totals(w);
    fixture_deinit(&w->f);
}
