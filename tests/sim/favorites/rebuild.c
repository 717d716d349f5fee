#include "tests/sim/favorites/rebuild.h"

#include <stdio.h>
#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/favorite/recount_row.h"
#include "runtime/base/check.h"
#include "tests/sim/favorites/favorite.h"

typedef Holdfast__V1__RebuildCountsRequest rebuild_request;
typedef Holdfast__V1__RebuildCountsResponse rebuild_response;

#define EVERY       6u /* Of so many ticks of an owner one asks. */
#define DEADLINE_MS 4000u
#define SOON_MS     40u
#define LATE_MS     6000u
#define ROWS_MAX    3u /* So that most targets are under way for several entries. */
#define NO_CALLER   0u

/* Numbers of its own: kept seeds of other runs stay what they are. */
static uint64_t throw(const struct sim *sim, uint32_t shard, uint32_t what)
{
    uint64_t x = sim->seed * 0x9e3779b97f4a7c15u + sim->now_ms * 0xbf58476d1ce4e5b9u + shard * 31u +
                 what * 0x94d049bb133111ebu;

    x ^= x >> 31;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 29);
}

static bool rebuild_runs(const struct sim *sim)
{
    return favorite_runs(sim) && (sim->seed * 0xd6e8feb86659fd93u) >> 62 == 1;
}

/* As it stands in the log. The oracle has every row in memory. */
static bool read_row(const struct sim *sim, uint32_t shard, struct recount_row *ret_row)
{
    return recount_find(applier_state(sim->oracle->shards[shard].applier), NULL, ret_row) == ERR_OK;
}

static void send(struct sim *sim, struct sim_node *node, const rebuild_request *request,
                 uint64_t delay_ms)
{
    struct sim_event event = { .kind = EV_CALL, .node = node->id };

    buf_put_u8(&event.bytes, NO_CALLER);
    buf_put_u8(&event.bytes, 1);
    buf_put_u64(&event.bytes, 0);
    buf_put_u32(&event.bytes, METHOD_REBUILD_COUNTS);
    buf_put_u32(&event.bytes, DEADLINE_MS);
    size_t size = protobuf_c_message_get_packed_size(&request->base);
    protobuf_c_message_pack(&request->base, buf_reserve(&event.bytes, size + 1));
    event.bytes.size += size;
    sim_later(sim, delay_ms, &event);
}

/* The next step of the one that the log is in, or the first of a new one; now and then a step that
 * was carried out, and a copy that comes out long after. */
static void ask(struct sim *sim, struct sim_node *node, uint32_t shard)
{
    rebuild_request request = HOLDFAST__V1__REBUILD_COUNTS_REQUEST__INIT;
    struct recount_row row;
    char id[RECOUNT_ID_MAX + 1];

    if (!read_row(sim, shard, &row))
        row = (struct recount_row){ 0 };
    bool begins = row.id.size == 0 || row.done || throw(sim, shard, 1) % 40 == 0;
    if (begins)
        snprintf(id, sizeof id, "r%llu", (unsigned long long)sim->now_ms);
    else
        snprintf(id, sizeof id, "%.*s", (int)row.id.size, (const char *)row.id.data);
    bool totals = begins ? throw(sim, shard, 2) % 3 == 0 : row.part != RECOUNT_COUNTS;
    request.shard = shard;
    request.rebuild_id = id;
    request.part = totals ? HOLDFAST__V1__REBUILD_PART__REBUILD_PART_TOTALS
                          : HOLDFAST__V1__REBUILD_PART__REBUILD_PART_COUNTS;
    request.rows = 1 + (uint32_t)(throw(sim, shard, 3) % ROWS_MAX);
    request.step = begins ? 0 : row.step;
    if (request.step > 0 && throw(sim, shard, 4) % 10 == 0)
        request.step--;
    send(sim, node, &request, 1 + throw(sim, shard, 5) % SOON_MS);
    if (!sim->healing && throw(sim, shard, 6) % 20 == 0)
        send(sim, node, &request, 1 + throw(sim, shard, 7) % LATE_MS);
}

void rebuild_tick(struct sim *sim, struct sim_node *node)
{
    if (sim->quiet || !rebuild_runs(sim))
        return;
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        if (node->slots[i].shard != NULL && shard_serves(node->slots[i].shard) &&
            throw(sim, i, 0) % EVERY == 0)
            ask(sim, node, i);
    }
}

/* Nothing that is counted here was ever planted wrong: all that is computed again, step by step
 * while it changes, is what is kept. */
void rebuild_logged(struct change *c)
{
    struct recount_row row;

    if (c->outcome->kind != OUTCOME_COMMITTED)
        return;
    const rebuild_response *response = (const void *)arena_unpack(
        &c->sim->oracle->arena, &holdfast__v1__rebuild_counts_response__descriptor,
        c->outcome->body);
    CHECK(response != NULL);
    if (response->different > 0)
        model_fail(c, "a rebuild computes another count than is kept, which is",
                   response->n_differences > 0 ? response->differences[0]->kept : 0);
    if (response->left_alone > 0)
        model_fail(c, "a rebuild leaves targets alone:", response->left_alone);
    c->sim->counts.rebuild_steps++;
    c->sim->counts.rebuilds_done += response->done ? 1 : 0;
    if (!read_row(c->sim, c->number, &row))
        model_fail(c, "how far a rebuild has come cannot be read, at step", response->next_step);
    else
        c->sim->counts.rebuilds_under_way += row.under_way;
}

/* ---- a count that is planted wrong ---- */
#ifdef HOLDFAST_DEBUG_INJECT
#include "holdfast/debug/v1/debug.pb-c.h"
#include "node/core/repair/recount.h"
#include "runtime/base/hex.h"
#include "tests/sim/favorites/favorite_model.h"

#define TOO_MANY  3u
#define LOOK_MS   20u
#define LOOKS_MAX 400u

struct planted {
    uint32_t shard, player;
    struct favorite_key edge;
    uint64_t count; /* That is right. */
};

static struct sim_node *owner_of(struct sim *sim, uint32_t shard)
{
    for (uint32_t n = 0; n < sim->node_count; n++) {
        struct sim_node *node = &sim->nodes[n];
        if (node->up && node->slots[shard].shard != NULL && shard_serves(node->slots[shard].shard))
            return node;
    }
    return NULL;
}

static uint64_t count_now(const struct sim *sim, const struct planted *planted)
{
    struct partial_row row;

    if (partial_find(applier_state(sim->oracle->shards[planted->shard].applier), &planted->edge,
                     NULL, &row) != ERR_OK)
        return UINT64_MAX;
    return row.count;
}

/* The newest target that has edges, in a shard that knows rebuilds. */
static bool choose(const struct sim *sim, struct planted *ret_planted)
{
    static const char *const names[FAVORITE_TARGETS] = { "t0", "t1", "t2", "t3" };
    const struct favorites_sim *favorites = sim->favorites;

    for (uint32_t i = favorites != NULL ? favorites->step_count : 0; i > 0; i--) {
        const struct edge_step *step = &favorites->steps[i - 1];
        *ret_planted =
            (struct planted){ .shard = step->shard,
                              .player = step->player,
                              .edge = { .collection = step->number,
                                        .target = slice_from_text(names[step->target]) } };
        ret_planted->count = count_now(sim, ret_planted);
        if (applier_meta(sim->oracle->shards[step->shard].applier)->apply_version >=
                RECOUNT_APPLY_VERSION &&
            favorite_count_at(sim, step, UINT64_MAX) > 0)
            return true;
    }
    return false;
}

/* Its row with another count, in hex digits. */
static void inject(struct sim *sim, struct sim_node *owner, const struct planted *planted)
{
    Holdfast__Debug__V1__InjectRequest request = HOLDFAST__DEBUG__V1__INJECT_REQUEST__INIT;
    struct sim_event event = { .kind = EV_CALL, .node = owner->id };
    const uint8_t random[10] = { 2 };
    char entity[32], op_id[48], key_text[512];
    struct partial_row row;
    struct row_key key;
    struct buf value = { 0 }, text = { 0 };

    CHECK(partial_find(applier_state(sim->oracle->shards[planted->shard].applier), &planted->edge,
                       NULL, &row) == ERR_OK);
    row.count += TOO_MANY;
    partial_row_encode(&row, &value);
    row_key_partial(&key, planted->edge.collection, planted->edge.target);
    hex_print(key.bytes, key.size, key_text);
    hex_print(value.data, value.size, (char *)buf_reserve(&text, 2 * value.size + 1));
    player_entity(planted->player, entity);
    struct uuid uuid = uuid_v7_make(SIM_UNIX_MS + sim->now_ms + sim->clock_ms, random);
    uuid_print(&uuid, op_id);
    request.player_id = entity + strlen("player:");
    request.op_id = op_id;
    request.attempt = 1;
    request.authority = text_lend("system:admin");
    request.spoil_key = key_text;
    request.spoil_value = (char *)text.data;
    buf_put_u8(&event.bytes, NO_CALLER);
    buf_put_u8(&event.bytes, 1);
    buf_put_u64(&event.bytes, 0);
    buf_put_u32(&event.bytes, METHOD_DEBUG_INJECT);
    buf_put_u32(&event.bytes, DEADLINE_MS);
    size_t size = protobuf_c_message_get_packed_size(&request.base);
    protobuf_c_message_pack(&request.base, buf_reserve(&event.bytes, size + 1));
    event.bytes.size += size;
    sim_later(sim, 1, &event);
    buf_deinit(&value);
    buf_deinit(&text);
}

/* As CheckCounts does it, from end to end. */
static uint64_t compared(struct sim *sim, uint32_t shard)
{
    struct shard_oracle *oracle = &sim->oracle->shards[shard];
    struct recount_row row = { .id = SLICE_LITERAL("check"), .part = RECOUNT_COUNTS };
    struct arena arena = { 0 };
    struct recount recount = {
        .arena = &arena,
        .state = applier_state(oracle->applier),
        .need = &oracle->need,
        .shard_count = sim->shard_count,
        .hour = hour_of(SIM_UNIX_MS + sim->now_ms + sim->clock_ms),
        .rows = RECOUNT_ROWS_MAX,
        .row = &row,
        .told = arena_alloc(&arena, RECOUNT_TOLD_MAX * sizeof *recount.told),
    };

    for (uint32_t i = 0; i < LOOKS_MAX && !row.done; i++) {
        const struct recount before = recount;
        const struct recount_row begun = row;
        err e;
        while ((e = recount_step(&recount)) == ERR_NEED) {
            oracle_load_absent(oracle);
            recount = before;
            row = begun;
        }
        CHECK(e == ERR_OK);
    }
    uint64_t different = row.different;
    arena_deinit(&arena);
    return different;
}

/* Step after step, by its owner of then, until the log says that it is done. */
static void mend(struct sim *sim, uint32_t shard,
                 bool (*run_until)(struct sim *sim, uint64_t until_ms))
{
    rebuild_request request = HOLDFAST__V1__REBUILD_COUNTS_REQUEST__INIT;
    struct recount_row row = { 0 };

    request.shard = shard;
    request.rebuild_id = text_lend("mend");
    request.part = HOLDFAST__V1__REBUILD_PART__REBUILD_PART_COUNTS;
    request.rows = ROWS_MAX;
    for (uint32_t i = 0; i < LOOKS_MAX; i++) {
        struct sim_node *owner = owner_of(sim, shard);

        if (owner != NULL)
            send(sim, owner, &request, 1);
        if (!run_until(sim, sim->now_ms + LOOK_MS))
            return;
        if (owner == NULL || !read_row(sim, shard, &row))
            continue;
        bool mine = slice_equal(row.id, SLICE_LITERAL("mend"));
        if (mine && row.done)
            return;
        request.step = mine ? row.step : 0;
    }
}

void rebuild_damage_check(struct sim *sim, bool (*run_until)(struct sim *sim, uint64_t until_ms))
{
    struct planted planted;

    if (!rebuild_runs(sim) || sim->damaged || sim_without(sim, WITHOUT_damages) ||
        !choose(sim, &planted))
        return;
    struct sim_node *owner = owner_of(sim, planted.shard);
    if (owner == NULL)
        return;
    if (compared(sim, planted.shard) != 0) {
        sim_fail(sim, planted.shard, "counts differ from their edges when all is quiet");
        return;
    }
    sim->damaged = true; /* The models are no measure from here on. */
    inject(sim, owner, &planted);
    for (uint32_t i = 0; i < LOOKS_MAX && count_now(sim, &planted) == planted.count; i++) {
        if (!run_until(sim, sim->now_ms + LOOK_MS))
            return;
    }
    if (count_now(sim, &planted) == planted.count)
        return; /* The call was refused: its owner went. */
    if (compared(sim, planted.shard) != 1)
        sim_fail(sim, planted.shard, "a count that was planted wrong is not found by comparing");
    mend(sim, planted.shard, run_until);
    /* A call that waited for its pace may have changed what is counted meanwhile. */
    if (sim->failure[0] == '\0' && count_now(sim, &planted) != planted.count &&
        compared(sim, planted.shard) != 0)
        sim_fail(sim, planted.shard, "a count that was planted wrong is not mended");
    sim->counts.rebuilds_mended++;
}
#else
void rebuild_damage_check(struct sim *sim, bool (*run_until)(struct sim *sim, uint64_t until_ms))
{
    (void)sim;
    (void)run_until;
}
#endif
