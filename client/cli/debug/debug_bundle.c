#include "client/cli/debug/debug_bundle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

void bundle_miss(struct bundle *bundle, const char *name, const char *format, ...)
{
    char why[512];
    va_list list;

    va_start(list, format);
    vsnprintf(why, sizeof why, format, list);
    va_end(list);
    buf_printf(&bundle->errors, "%s: %s\n", name, why);
    bundle->errors_count++;
}

void bundle_add(struct bundle *bundle, const char *name, struct buf *text)
{
    scrub_secrets(&bundle->scrub, text);
    if (bundle->bytes + text->size > BUNDLE_BYTES_MAX) {
        bundle_miss(bundle, name, "left out: all parts together would have more than %u MiB",
                    BUNDLE_BYTES_MAX >> 20);
    } else if (!bundle->broken) {
        err e = archive_add(bundle->archive, name, buf_slice(text));
        if (e == ERR_TOO_LARGE)
            bundle_miss(bundle, name, "left out: its name is too long for the archive");
        bundle->broken = e != ERR_OK && e != ERR_TOO_LARGE;
        bundle->bytes += text->size;
    }
    buf_deinit(text);
}

void bundle_add_json(struct bundle *bundle, const char *name, json_t *value)
{
    struct buf text = { 0 };

    scrub_json(&bundle->scrub, value);
    char *dumped = json_dumps(value, JSON_INDENT(1));
    CHECK(dumped != NULL);
    buf_printf(&text, "%s\n", dumped);
    free(dumped);
    json_decref(value);
    bundle_add(bundle, name, &text);
}
