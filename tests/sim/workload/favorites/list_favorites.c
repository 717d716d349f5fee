/* ListFavorites: a player's edges, the newest first; a page may begin behind any edge that was. */
#include "idl/page_cursor.h"
#include "tests/sim/favorites/favorite.h"
#include "tests/sim/servers/workload.h"

#define PAGE_SIZE_MAX 3u

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ListFavoritesRequest request = HOLDFAST__V1__LIST_FAVORITES_REQUEST__INIT;
    struct arena arena = { 0 };
    char place[64];

    request.player_id = parts->player;
    request.read = request_read(op, parts);
    request.collection = favorite_collection(op);
    request.page_size = 1 + op->amount / 8 % PAGE_SIZE_MAX;
    if (favorite_place(sim, op, place))
        request.cursor = page_cursor_print(&request.base, place, &arena);
    request_pack(&request.base, out);
    arena_deinit(&arena);
}

const struct workload_row workload_list_favorites = {
    .method = METHOD_LIST_FAVORITES,
    .encode = encode,
    .rule = { .told = favorite_told_list },
};
