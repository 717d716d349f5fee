#include "runtime/base/field_key.h"

#include <stdio.h>

#include "runtime/base/check.h"
#include "runtime/base/nearest.h"

const char *field_key_print(struct slice key, size_t place, char ret_text[FIELD_KEY_BYTES])
{
    char shown[NEAREST_SHOWN_BYTES];
    size_t size = 0;

    _Static_assert(FIELD_KEY_BYTES > 2 * NEAREST_SHOWN_BYTES + 4, "room for brackets and quotes");
    if (key.size == 0) {
        snprintf(ret_text, FIELD_KEY_BYTES, "[%zu]", place);
        return ret_text;
    }
    ret_text[size++] = '[';
    ret_text[size++] = '"';
    for (const char *at = nearest_show(key, shown); *at != 0; at++) {
        if (*at == '"' || *at == '\\')
            ret_text[size++] = '\\';
        ret_text[size++] = *at;
    }
    ret_text[size++] = '"';
    ret_text[size++] = ']';
    ret_text[size] = 0;
    CHECK(size < FIELD_KEY_BYTES);
    return ret_text;
}
