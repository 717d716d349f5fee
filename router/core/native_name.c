#include "router/core/native_name.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "runtime/base/hash.h"
#include "runtime/cluster/caller_name.h"

#define HASH_BYTES 17u /* ":0123456789abcdef" */

const char *native_name(struct arena *arena, const char *name, bool any)
{
    const char *prefix = any ? "cert:any:" : "cert:";
    char *text = arena_printf(arena, "%s%s", prefix, name);

    for (char *c = text + strlen(prefix); *c != 0; c++) {
        if (!isalnum((unsigned char)*c) && strchr("._-", *c) == NULL)
            *c = '_';
    }
    if (strlen(text) <= CALLER_NAME_BYTES_MAX)
        return text;
    return arena_printf(arena, "%.*s:%016" PRIx64, (int)(CALLER_NAME_BYTES_MAX - HASH_BYTES), text,
                        hash_u64(slice_from_text(name)));
}
