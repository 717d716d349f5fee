#include "router/core/event_cursor_text.h"

#include "router/core/refusal.h"

#define TOLD_MAX 64u /* Of a text that is no cursor. */

err event_cursor_parse(struct slice text, uint32_t shard_count, struct arena *arena,
                       struct event_cursor *ret_cursor, Holdfast__V1__ErrorDetail *ret_detail)
{
    event_cursor_init(ret_cursor, shard_count, arena);
    if (text.size == 0)
        return ERR_OK;
    if (event_cursor_decode(text, shard_count, arena, ret_cursor) == ERR_OK)
        return ERR_OK;
    struct slice told = { text.data, text.size < TOLD_MAX ? text.size : TOLD_MAX };
    refusal_make_field(
        arena, ret_detail,
        &(struct refusal_field){ "cursor", "next_cursor of an answer of this cluster", told },
        "not a cursor of this cluster's events");
    return ERR_INVALID;
}
