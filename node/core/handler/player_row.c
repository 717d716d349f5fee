#include "node/core/handler/player_row.h"

#include "node/core/rows/rows.h"

err player_row_load(struct state *state, struct arena *arena, struct slice entity,
                    struct need *need, struct player *ret_player)
{
    struct row_key key;
    struct slice row;

    player_init(ret_player, entity);
    row_key_player(&key, entity);
    switch (row_find(state, &key, need, &row)) {
    case STATE_MISSING:
        return ERR_NEED;
    case STATE_ABSENT:
        return ERR_OK;
    case STATE_PRESENT:
        break;
    }
    return player_decode(arena_copy(arena, row), entity, arena, ret_player);
}

err player_row_apply(struct apply_context *context, struct slice entity, struct player *ret_player)
{
    err e = player_row_load(context->state, context->arena, entity, context->need, ret_player);

    return e == ERR_CORRUPT ? apply_damaged(context, entity, PLAYER_DAMAGE) : e;
}

err player_row_read(struct read_context *context, struct player *ret_player)
{
    err e =
        player_row_load(context->state, context->arena, context->entity, context->need, ret_player);

    return e == ERR_CORRUPT ? read_damaged(context, PLAYER_DAMAGE) : e;
}
