#include "runtime/rest/rest_text.h"

#include <string.h>

#include "runtime/base/hex.h"

struct slice rest_text_take(struct slice *list, char separator)
{
    const uint8_t *end = list->size > 0 ? memchr(list->data, separator, list->size) : NULL;
    struct slice item = *list;

    if (end == NULL) {
        *list = (struct slice){ 0 };
        return item;
    }
    item.size = (size_t)(end - item.data);
    *list = (struct slice){ end + 1, list->size - item.size - 1 };
    return item;
}

bool rest_text_decode(struct slice text, bool in_query, struct arena *arena, struct slice *ret)
{
    uint8_t *out = arena_alloc(arena, text.size + 1);
    size_t size = 0;

    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (c == '+' && in_query)
            c = ' ';
        if (c == '%') {
            int high = i + 2 < text.size ? hex_digit(text.data[i + 1]) : -1;
            int low = i + 2 < text.size ? hex_digit(text.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (uint8_t)(high << 4 | low);
            i += 2;
        }
        out[size++] = c;
    }
    out[size] = 0;
    *ret = (struct slice){ out, size };
    return true;
}

void rest_text_put_json(struct slice text, struct buf *out)
{
    buf_put_u8(out, '"');
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (c < 0x20) {
            buf_printf(out, "\\u%04x", (unsigned)c);
            continue;
        }
        if (c == '"' || c == '\\')
            buf_put_u8(out, '\\');
        buf_put_u8(out, c);
    }
    buf_put_u8(out, '"');
}
