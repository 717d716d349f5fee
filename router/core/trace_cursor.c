#include "router/core/trace_cursor.h"

#include "router/core/refusal.h"

#define UID_DIGITS   32u
#define SHARD_DIGITS 4u /* A UID begins with the shard where the item was minted. */

static bool hex_value(uint8_t c, uint32_t *ret_value)
{
    if (c >= '0' && c <= '9')
        *ret_value = (uint32_t)(c - '0');
    else if (c >= 'a' && c <= 'f')
        *ret_value = (uint32_t)(c - 'a') + 10u;
    else
        return false;
    return true;
}

static bool uid_shard(struct slice uid, uint32_t *ret_shard)
{
    uint32_t shard = 0, digit;

    if (uid.size != UID_DIGITS)
        return false;
    for (size_t i = 0; i < uid.size; i++) {
        if (!hex_value(uid.data[i], &digit))
            return false;
        if (i < SHARD_DIGITS)
            shard = shard << 4 | digit;
    }
    *ret_shard = shard;
    return true;
}

/* Decimal digits up to `end` or the text's end. */
static bool read_number(struct slice text, size_t *at, char end, uint32_t *ret_number)
{
    uint64_t number = 0;
    size_t from = *at;

    while (*at < text.size && text.data[*at] >= '0' && text.data[*at] <= '9' && number < UINT32_MAX)
        number = number * 10 + (uint64_t)(text.data[(*at)++] - '0');
    if (*at == from || number > UINT32_MAX)
        return false;
    if (end != 0 && (*at == text.size || text.data[(*at)++] != (uint8_t)end))
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

static bool cursor_parse(struct slice text, uint32_t shard_count, struct trace_cursor *cursor)
{
    size_t at = 0;

    return read_number(text, &at, '.', &cursor->step) &&
           read_number(text, &at, '.', &cursor->shard) &&
           read_number(text, &at, 0, &cursor->other) && at == text.size && cursor->step > 0 &&
           cursor->shard < shard_count && cursor->other < shard_count;
}

err trace_cursor_begin(const Holdfast__V1__TraceItemRequest *request, uint32_t shard_count,
                       struct arena *arena, struct trace_cursor *ret_cursor,
                       Holdfast__V1__ErrorDetail *ret_detail)
{
    struct slice uid = slice_from_text(request->item_uid);
    struct slice text = slice_from_text(request->cursor);
    struct trace_cursor cursor = { 0 };

    if (!uid_shard(uid, &cursor.shard)) {
        refusal_make_field(arena, ret_detail,
                           &(struct refusal_field){ "item_uid", "32 hex digits, lower case", uid },
                           "a field is not an item's UID");
        return ERR_INVALID;
    }
    cursor.other = cursor.shard;
    if (text.size > 0 && !cursor_parse(text, shard_count, &cursor)) {
        refusal_make_field(
            arena, ret_detail,
            &(struct refusal_field){ "cursor", "next_cursor of the page before", text },
            "a field is not a cursor");
        return ERR_INVALID;
    }
    *ret_cursor = cursor;
    return ERR_OK;
}

char *trace_cursor_print(const struct trace_cursor *cursor, struct arena *arena)
{
    return arena_printf(arena, "%u.%u.%u", cursor->step, cursor->shard, cursor->other);
}
