/* ListPlayerCounters: what a player added; a page may begin behind any target. */
#include "idl/page_cursor.h"
#include "tests/sim/favorites/counter.h"
#include "tests/sim/favorites/favorite.h"
#include "tests/sim/servers/workload.h"

#define PAGE_SIZE_MAX 3u

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ListPlayerCountersRequest request =
        HOLDFAST__V1__LIST_PLAYER_COUNTERS_REQUEST__INIT;
    struct sim_op place = *op;
    struct arena arena = { 0 };

    (void)sim;
    request.player_id = parts->player;
    request.read = request_read(op, parts);
    request.counter = counter_name(op);
    request.page_size = 1 + op->amount / 8 % PAGE_SIZE_MAX;
    place.target = op->mode - 1;
    if (op->mode > 0)
        request.cursor = page_cursor_print(&request.base, favorite_target(&place), &arena);
    request_pack(&request.base, out);
    arena_deinit(&arena);
}

const struct workload_row workload_list_player_counters = {
    .method = METHOD_LIST_PLAYER_COUNTERS,
    .encode = encode,
    .rule = { .told = counter_told_list },
};
