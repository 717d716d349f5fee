#include "router/core/online_merge.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "idl/limit.h"
#include "runtime/base/check.h"
#include "runtime/cluster/incarnation.h"

#define HLC_COUNT_BITS 16u

typedef Holdfast__Internal__V1__ListNodeOnlineResponse said_by_node;
typedef Holdfast__Internal__V1__OnlineRow online_row;

/* ---- cursors ---- */

/* Takes the number in front of the next dot. */
static bool take_number(const char **text, uint64_t *ret_number)
{
    const char *dot = strchr(*text, '.');

    if (dot == NULL ||
        decimal_parse((struct slice){ (const uint8_t *)*text, (size_t)(dot - *text) },
                      ret_number) != ERR_OK)
        return false;
    *text = dot + 1;
    return true;
}

err online_cursor_parse(const char *text, struct arena *arena, struct online_cursor *ret_cursor)
{
    struct online_cursor cursor = { .player_id = "" };
    uint64_t begun;

    if (text[0] == 0) {
        *ret_cursor = cursor;
        return ERR_OK;
    }
    cursor.upwards = text[0] == 'u';
    if (text[0] != 'd' && text[0] != 'u')
        return ERR_INVALID;
    text++;
    if (!take_number(&text, &begun) || begun == 0 || begun > INT64_MAX ||
        !take_number(&text, &cursor.at) || strlen(text) > LIMIT_PLAYER_ID_BYTES)
        return ERR_INVALID;
    cursor.begun_ms = (int64_t)begun;
    cursor.player_id = arena_printf(arena, "%s", text);
    *ret_cursor = cursor;
    return ERR_OK;
}

char *online_cursor_print(const struct online_cursor *cursor, struct arena *arena)
{
    return arena_printf(arena, "%c%" PRId64 ".%" PRIu64 ".%s", cursor->upwards ? 'u' : 'd',
                        cursor->begun_ms, cursor->at, cursor->player_id);
}

/* ---- the order ---- */

/* Below 0: a comes first on the way down. */
static int order(uint64_t a_at, const char *a, uint64_t b_at, const char *b)
{
    if (a_at != b_at)
        return a_at > b_at ? -1 : 1;
    return strcmp(a, b);
}

static int order_down(const void *a, const void *b)
{
    const online_row *const *left = a, *const *right = b;

    return order((*left)->at, (*left)->player->player_id, (*right)->at,
                 (*right)->player->player_id);
}

static int order_up(const void *a, const void *b)
{
    return order_down(b, a);
}

/* Whether the row comes behind that place. */
static bool is_behind(const struct online_merge *merge, const online_row *row, uint64_t at,
                      const char *player_id)
{
    int compared = order(row->at, row->player->player_id, at, player_id);

    return merge->cursor.upwards ? compared < 0 : compared > 0;
}

/* ---- the page ---- */

void online_merge_init(struct online_merge *merge, const struct online_cursor *cursor,
                       uint32_t limit, struct arena *arena)
{
    *merge = (struct online_merge){ .arena = arena, .cursor = *cursor, .limit = limit };
}

static bool makes_sense(const struct online_merge *merge, const said_by_node *said)
{
    if (said->n_rows > merge->limit + 1 || said->now_ms <= ONLINE_CLOCK_MS)
        return false;
    for (size_t i = 0; i < said->n_rows; i++) {
        if (said->rows[i]->player == NULL || said->rows[i]->player->player_id[0] == 0)
            return false;
    }
    return true;
}

static void add_rows(struct online_merge *merge, const said_by_node *said)
{
    if (merge->count + said->n_rows > merge->capacity) {
        size_t capacity = (merge->count + said->n_rows) * 2;
        const online_row **rows = arena_alloc(merge->arena, capacity * sizeof(const online_row *));

        for (size_t i = 0; i < merge->count; i++)
            rows[i] = merge->rows[i];
        merge->rows = rows;
        merge->capacity = capacity;
    }
    for (size_t i = 0; i < said->n_rows; i++)
        merge->rows[merge->count++] = said->rows[i];
}

/* The least far that some node looked. */
static void add_bound(struct online_merge *merge, const said_by_node *said)
{
    int compared = order(said->at, said->player_id, merge->at,
                         merge->player_id != NULL ? merge->player_id : "");

    if (!said->more)
        return;
    if (!merge->more || (merge->cursor.upwards ? compared > 0 : compared < 0)) {
        merge->at = said->at;
        merge->player_id = said->player_id;
    }
    merge->more = true;
}

err online_merge_add(struct online_merge *merge, const said_by_node *said)
{
    if (!makes_sense(merge, said))
        return ERR_CORRUPT;
    add_rows(merge, said);
    add_bound(merge, said);
    merge->players += said->count;
    if (merge->now_ms == 0 || said->now_ms < merge->now_ms)
        merge->now_ms = said->now_ms;
    if (said->counted_ms > 0 && (merge->counted_ms == 0 || said->counted_ms < merge->counted_ms))
        merge->counted_ms = said->counted_ms;
    return ERR_OK;
}

static enum online_end go_on(const struct online_merge *merge, uint64_t at, const char *player_id,
                             struct online_cursor *ret_next)
{
    *ret_next = (struct online_cursor){
        .upwards = merge->cursor.upwards,
        .begun_ms = merge->cursor.begun_ms > 0 ? merge->cursor.begun_ms : merge->now_ms,
        .at = at,
        .player_id = player_id,
    };
    return ONLINE_MORE;
}

/* Cuts off what is behind the place up to which all nodes have looked, and behind the limit. True:
 * the limit came first. */
static bool cut(struct online_merge *merge)
{
    while (merge->more && merge->count > 0 &&
           is_behind(merge, merge->rows[merge->count - 1], merge->at, merge->player_id))
        merge->count--;
    if (merge->count <= merge->limit)
        return false;
    merge->count = merge->limit;
    return true;
}

enum online_end online_merge_finish(struct online_merge *merge, struct online_cursor *ret_next)
{
    const struct online_cursor *cursor = &merge->cursor;

    if (merge->count > 0)
        qsort(merge->rows, merge->count, sizeof(const online_row *),
              cursor->upwards ? order_up : order_down);
    if (cut(merge)) {
        const online_row *last = merge->count > 0 ? merge->rows[merge->count - 1] : NULL;

        return go_on(merge, last != NULL ? last->at : cursor->at,
                     last != NULL ? last->player->player_id : cursor->player_id, ret_next);
    }
    if (merge->more)
        return go_on(merge, merge->at, merge->player_id, ret_next);
    if (cursor->upwards || cursor->begun_ms == 0)
        return ONLINE_END;
    *ret_next = (struct online_cursor){
        .upwards = true,
        .begun_ms = cursor->begun_ms,
        .at = (uint64_t)(cursor->begun_ms - ONLINE_CLOCK_MS) << HLC_COUNT_BITS,
        .player_id = "",
    };
    return ONLINE_TURN;
}
