/*
 * Requests about the limits of the API (node/rpc/fixture_limits.h), in any order, of one shard that
 * lives on: at either end of what is allowed none is refused for the limit; one beyond it is, and
 * the refusal names field, limit and value.
 */
#include <inttypes.h>

#include "node/rpc/fixture_edges.h"
#include "node/rpc/fixture_limits.h"
#include "tests/sim/cores/rsim.h"

#define REQUESTS 100u

static void ask(struct rsim *sim, struct fixture *f, const struct limit_row *row)
{
    uint64_t value = rsim_chance(sim, 50) ? row->largest : row->smallest;

    if (rsim_chance(sim, 50)) {
        if (value == row->largest)
            value++;
        else if (value > 0)
            value--;
    }
    bool beyond = value > row->largest || value < row->smallest;
    bool refused = limit_is_refused(f, row, value);

    PROMISE(sim, refused == beyond, "%s, %s %" PRIu64 ": %s", method_find(row->method)->name,
            row->path, value, beyond ? "not refused as it must" : "refused within its limit");
    PROMISE(sim, !refused || !method_find(row->method)->writes || !f->recorded,
            "%s: what is refused reached the log", method_find(row->method)->name);
    sim->counts.bounds_kept += !beyond;
    sim->counts.bounds_passed += beyond;
}

void room_bounds(struct rsim *sim)
{
    struct fixture_shards *shards = arena_zalloc(&sim->arena, sizeof *shards);

    fixture_shards_init(shards);
    fixture_define_favorites(&shards->shards[0]);
    for (uint32_t i = 0; i < REQUESTS; i++)
        ask(sim, &shards->shards[0], &limit_rows[rsim_between(sim, 0, limit_row_count - 1)]);
    fixture_shards_deinit(shards);
}
