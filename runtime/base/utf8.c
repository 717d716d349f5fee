#include "runtime/base/utf8.h"

#include <string.h>

#include "runtime/base/check.h"

static bool tail(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

/* RFC 3629 section 4: the second byte's range depends on the first. */
static bool second_fits(uint8_t first, uint8_t second)
{
    switch (first) {
    case 0xE0:
        return second >= 0xA0 && second <= 0xBF;
    case 0xED:
        return second >= 0x80 && second <= 0x9F;
    case 0xF0:
        return second >= 0x90 && second <= 0xBF;
    case 0xF4:
        return second >= 0x80 && second <= 0x8F;
    default:
        return tail(second);
    }
}

size_t utf8_char_size(struct slice text)
{
    uint8_t first = text.data[0];

    if (first < 0x80)
        return 1;
    size_t size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (first < 0xC2 || first > 0xF4 || text.size < size)
        return 0;
    if (!second_fits(first, text.data[1]))
        return 0;
    for (size_t i = 2; i < size; i++) {
        if (!tail(text.data[i]))
            return 0;
    }
    return size;
}

bool ascii_is_visible(struct slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < 0x21 || text.data[i] > 0x7e)
            return false;
    }
    return true;
}

bool utf8_valid(struct slice text)
{
    size_t at = 0;

    while (at < text.size) {
        uint64_t word;
        if (text.size - at >= sizeof word) {
            memcpy(&word, text.data + at, sizeof word);
            if ((word & 0x8080808080808080u) == 0) {
                at += sizeof word;
                continue;
            }
        }
        size_t size = utf8_char_size((struct slice){ text.data + at, text.size - at });
        if (size == 0)
            return false;
        at += size;
    }
    return true;
}

struct slice utf8_cut(struct slice text, size_t max)
{
    if (text.size <= max)
        return text;
    text.size = max;
    for (unsigned i = 0; i < 3 && text.size > 0 && tail(text.data[text.size]); i++)
        text.size--;
    return text;
}

size_t utf8_put(uint8_t *at, uint32_t c)
{
    CHECK(c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF));
    if (c < 0x80) {
        at[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        at[0] = (uint8_t)(0xC0 | c >> 6);
        at[1] = (uint8_t)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        at[0] = (uint8_t)(0xE0 | c >> 12);
        at[1] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
        at[2] = (uint8_t)(0x80 | (c & 0x3F));
        return 3;
    }
    at[0] = (uint8_t)(0xF0 | c >> 18);
    at[1] = (uint8_t)(0x80 | (c >> 12 & 0x3F));
    at[2] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
    at[3] = (uint8_t)(0x80 | (c & 0x3F));
    return 4;
}

/* Neither a control character nor one that hides or reorders what stands beside it. */
static bool char_printable(const uint8_t *at, size_t size)
{
    if (size == 1)
        return at[0] >= 0x20 && at[0] != 0x7F;
    if (size == 2) /* U+0080 to U+009F */
        return at[0] != 0xC2 || at[1] >= 0xA0;
    if (size == 3) {
        uint32_t c = (at[0] & 0x0Fu) << 12 | (at[1] & 0x3Fu) << 6 | (at[2] & 0x3Fu);
        return !(c >= 0x200B && c <= 0x200F) && !(c >= 0x2028 && c <= 0x202E) &&
               !(c >= 0x2060 && c <= 0x206F) && c != 0xFEFF;
    }
    return size == 4;
}

void utf8_snippet(char *ret_text, size_t capacity, struct slice text)
{
    size_t used = 0;
    size_t at = 0;

    CHECK(capacity > 4);
    while (at < text.size) {
        size_t size = utf8_char_size((struct slice){ text.data + at, text.size - at });
        bool printable = char_printable(text.data + at, size);
        size_t width = printable ? size : 1;
        size_t taken = size > 0 ? size : 1;
        if (used + width + (at + taken < text.size ? 4 : 1) > capacity) {
            memcpy(ret_text + used, "...", 4);
            return;
        }
        if (printable)
            memcpy(ret_text + used, text.data + at, width);
        else
            ret_text[used] = '?';
        used += width;
        at += taken;
    }
    ret_text[used] = 0;
}

bool utf8_is_clean(struct slice text)
{
    if (!utf8_valid(text))
        return false;
    for (size_t i = 0; i < text.size; i++) {
        bool is_c1 = text.data[i] == 0xC2 && i + 1 < text.size && text.data[i + 1] < 0xA0;
        if (text.data[i] < 0x20 || text.data[i] == 0x7F || is_c1)
            return false;
    }
    return true;
}
