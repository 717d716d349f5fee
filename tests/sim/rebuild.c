#include "tests/sim/rebuild.h"

#include <stdio.h>

#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/favorite/recount_row.h"
#include "runtime/base/check.h"
#include "tests/sim/favorite.h"

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
