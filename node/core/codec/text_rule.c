#include "node/core/codec/text_rule.h"

#include <string.h>

#include "runtime/base/check.h"

#define VALUE_BYTES_MAX 64u
#define PLAYER_KIND     "player:"

/* Bytes of the sequence at the front of `text`; 0 when it is not UTF-8, or a control character. */
static size_t sequence_size(struct slice text)
{
    uint8_t c = text.data[0];
    size_t size = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    uint32_t point = size == 1 ? c : c & (0xffu >> (size + 1));
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };

    if ((c >= 0x80 && c < 0xc2) || c > 0xf4 || size > text.size)
        return 0;
    for (size_t i = 1; i < size; i++) {
        if ((text.data[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (text.data[i] & 0x3fu);
    }
    if (point < least[size] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        return 0;
    if (point < 0x20 || (point >= 0x7f && point < 0xa0))
        return 0;
    return size;
}

bool text_is_clean(struct slice text)
{
    while (text.size > 0) {
        size_t size = sequence_size(text);
        if (size == 0)
            return false;
        text.data += size;
        text.size -= size;
    }
    return true;
}

bool text_is_name(struct slice text, size_t size_max)
{
    if (text.size == 0 || text.size > size_max)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_')
            return false;
    }
    return true;
}

const char *text_shorten(struct arena *arena, struct slice text)
{
    static const char digits[] = "0123456789abcdef";
    char *copy = arena_alloc(arena, VALUE_BYTES_MAX + 1);
    size_t size = 0;

    while (text.size > 0) {
        size_t taken = sequence_size(text);
        size_t width = taken > 0 ? taken : sizeof "\\xff" - 1;
        if (size + width > VALUE_BYTES_MAX)
            break;
        if (taken > 0) {
            memcpy(copy + size, text.data, taken);
        } else {
            const char escape[] = { '\\', 'x', digits[text.data[0] >> 4],
                                    digits[text.data[0] & 15] };
            memcpy(copy + size, escape, sizeof escape);
            taken = 1;
        }
        size += width;
        text = (struct slice){ text.data + taken, text.size - taken };
    }
    copy[size] = 0;
    return copy;
}

const char *text_shorten_ascii(struct arena *arena, struct slice text)
{
    size_t size = text.size < VALUE_BYTES_MAX ? text.size : VALUE_BYTES_MAX;
    char *copy = arena_alloc(arena, size + 1);

    for (size_t i = 0; i < size; i++)
        copy[i] = (char)(text.data[i] >= 0x20 && text.data[i] < 0x7f ? text.data[i] : '?');
    copy[size] = 0;
    return copy;
}

err player_id_check(struct slice id)
{
    if (id.size == 0 || id.size > PLAYER_ID_BYTES_MAX)
        return ERR_INVALID;
    return text_is_clean(id) ? ERR_OK : ERR_INVALID;
}

err entity_parse(struct slice entity, const char **ret_why)
{
    size_t kind = strlen(PLAYER_KIND);

    if (entity.size < kind || memcmp(entity.data, PLAYER_KIND, kind) != 0) {
        *ret_why = "an entity with its kind: player:<player_id>";
        return ERR_INVALID;
    }
    if (player_id_check((struct slice){ entity.data + kind, entity.size - kind }) != ERR_OK) {
        *ret_why = "player:<player_id>, the id 1 to 100 bytes of UTF-8, no control characters";
        return ERR_INVALID;
    }
    return ERR_OK;
}

struct slice entity_of_player(struct arena *arena, const char *id)
{
    size_t kind = strlen(PLAYER_KIND);
    size_t size = strlen(id);
    uint8_t *bytes = arena_alloc(arena, kind + size + 1);

    CHECK(kind + size <= ENTITY_BYTES_MAX);
    memcpy(bytes, PLAYER_KIND, kind);
    memcpy(bytes + kind, id, size);
    return (struct slice){ bytes, kind + size };
}
