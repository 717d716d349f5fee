#include "runtime/cluster/authority_text.h"

#include <stdbool.h>
#include <string.h>

static bool starts_with(struct slice text, struct slice prefix, struct slice *ret_rest)
{
    if (text.size < prefix.size || memcmp(text.data, prefix.data, prefix.size) != 0)
        return false;
    *ret_rest = (struct slice){ text.data + prefix.size, text.size - prefix.size };
    return true;
}

enum authority_text_kind authority_text_read(struct slice text, struct slice *ret_rest)
{
    *ret_rest = (struct slice){ 0 };
    if (text.size == 0)
        return AUTHORITY_TEXT_NONE;
    if (starts_with(text, SLICE_LITERAL("session:"), ret_rest))
        return AUTHORITY_TEXT_SESSION;
    if (starts_with(text, SLICE_LITERAL("system:"), ret_rest))
        return AUTHORITY_TEXT_SYSTEM;
    return slice_equal(text, SLICE_LITERAL("unheld")) ? AUTHORITY_TEXT_UNHELD : AUTHORITY_TEXT_NONE;
}
