#include "idl/scope.h"

#include <string.h>

#include "runtime/base/check.h"

static const struct scope_info scopes_known[] = {
#define SCOPE_ROW(enumerator, bit, name, meaning) { SCOPE_##enumerator, name, meaning },
    SCOPE_TABLE(SCOPE_ROW)
#undef SCOPE_ROW
};

uint32_t scope_find(struct slice name)
{
    for (size_t i = 0; i < ARRAY_SIZE(scopes_known); i++) {
        if (slice_equal(name, slice_from_text(scopes_known[i].name)))
            return scopes_known[i].scope;
    }
    return 0;
}

void scopes_print(uint32_t scopes, char ret_text[SCOPES_TEXT_SIZE])
{
    size_t size = 0;

    for (size_t i = 0; i < ARRAY_SIZE(scopes_known); i++) {
        size_t length = strlen(scopes_known[i].name);

        if ((scopes & scopes_known[i].scope) == 0)
            continue;
        CHECK(size + length + 2 < SCOPES_TEXT_SIZE);
        if (size > 0) {
            ret_text[size++] = ',';
            ret_text[size++] = ' ';
        }
        memcpy(ret_text + size, scopes_known[i].name, length);
        size += length;
    }
    ret_text[size] = 0;
}

static struct slice trim(struct slice text)
{
    while (text.size > 0 && text.data[0] == ' ')
        text = (struct slice){ text.data + 1, text.size - 1 };
    while (text.size > 0 && text.data[text.size - 1] == ' ')
        text.size--;
    return text;
}

err scopes_parse(struct slice text, uint32_t *ret_scopes, struct slice *ret_bad)
{
    uint32_t scopes = 0;
    size_t at = 0;

    while (at <= text.size) {
        const uint8_t *comma = at < text.size ? memchr(text.data + at, ',', text.size - at) : NULL;
        size_t end = comma != NULL ? (size_t)(comma - text.data) : text.size;
        struct slice name = trim((struct slice){ text.data + at, end - at });
        uint32_t scope = scope_find(name);

        if (scope == 0) {
            *ret_bad = name;
            return ERR_INVALID;
        }
        scopes |= scope;
        at = end + 1;
    }
    *ret_scopes = scopes;
    return ERR_OK;
}

const struct scope_info *scope_all(size_t *ret_count)
{
    *ret_count = ARRAY_SIZE(scopes_known);
    return scopes_known;
}
