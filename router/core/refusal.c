#include "router/core/refusal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "idl/error_code.h"
#include "idl/error_rule.h"
#include "runtime/base/utf8.h"

void refusal_make(struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail,
                  Holdfast__V1__ErrorCode code, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    holdfast__v1__error_detail__init(ret_detail);
    ret_detail->code = code;
    ret_detail->message = arena_copy_text(arena, text);
}

const char *refusal_show(struct arena *arena, struct slice value, size_t max)
{
    return (const char *)arena_copy(arena, utf8_cut(value, max)).data;
}

void refusal_make_field(struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail,
                        const struct refusal_field *field, const char *message)
{
    const char *value = refusal_show(arena, field->value, REFUSAL_VALUE_BYTES_MAX);

    refusal_make(arena, ret_detail, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INVALID_ARGUMENT,
                 "%s: %s: expected %s%s%s%s", field->field, message, field->limit,
                 value[0] != 0 ? ", got \"" : "", value, value[0] != 0 ? "\"" : "");
    ret_detail->field = arena_copy_text(arena, field->field);
    ret_detail->limit = arena_copy_text(arena, field->limit);
    ret_detail->value = text_lend(value);
}

void refusal_make_shard(struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail,
                        const char *field, uint32_t shard, uint32_t shard_count)
{
    const struct refusal_field told = {
        .field = field,
        .limit = arena_printf(arena, "0 to %" PRIu32, shard_count - 1),
        .value = slice_from_text(arena_printf(arena, "%" PRIu32, shard)),
    };

    refusal_make_field(arena, ret_detail, &told, "there is no such shard");
}

void refusal_tell_version(struct arena *arena, Holdfast__V1__ErrorDetail *detail, uint64_t current)
{
    Holdfast__V1__ErrorDetail__About *about = arena_alloc(arena, sizeof *about);
    Holdfast__V1__ErrorDetail__Version *version = arena_alloc(arena, sizeof *version);

    holdfast__v1__error_detail__version__init(version);
    version->current = current;
    holdfast__v1__error_detail__about__init(about);
    about->fact_case = HOLDFAST__V1__ERROR_DETAIL__ABOUT__FACT_VERSION;
    about->version = version;
    detail->about = about;
}

bool refusal_may_be_stale(Holdfast__V1__ErrorCode code)
{
    return code == CODE(UNAVAILABLE) || code == CODE(DEADLINE_EXCEEDED) || code == CODE(THROTTLED);
}

struct slice refusal_bytes(struct arena *arena, const Holdfast__V1__ErrorDetail *detail)
{
    const Holdfast__V1__ErrorDetail whole = error_complete(detail);
    size_t size = holdfast__v1__error_detail__get_packed_size(&whole);
    uint8_t *data = arena_alloc(arena, size + 1);

    holdfast__v1__error_detail__pack(&whole, data);
    return (struct slice){ data, size };
}
