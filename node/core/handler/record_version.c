#include "node/core/handler/record_version.h"

uint64_t record_version_next(const struct apply_context *context, uint64_t stands)
{
    uint64_t index = context->meta->versions_above + context->meta->applied_index + 1;

    return index > stands ? index : stands + 1;
}
