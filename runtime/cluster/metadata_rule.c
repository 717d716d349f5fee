#include "runtime/cluster/metadata_rule.h"

#include <string.h>

#include "idl/limit.h"
#include "runtime/base/utf8.h"

#define HTTPS "https://"

bool metadata_title_is_good(struct slice title)
{
    return title.size <= LIMIT_METADATA_TITLE_BYTES && utf8_is_clean(title);
}

bool metadata_url_is_good(struct slice url)
{
    if (url.size == 0)
        return true;
    if (url.size > LIMIT_METADATA_URL_BYTES || !slice_begins_with(url, SLICE_LITERAL(HTTPS)) ||
        !ascii_is_visible(url) || url.size == sizeof HTTPS - 1 || url.data[sizeof HTTPS - 1] == '/')
        return false;
    for (size_t i = 0; i < url.size; i++) {
        if (strchr("\"'<>\\`", url.data[i]) != NULL)
            return false;
    }
    return true;
}
