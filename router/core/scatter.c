#include "router/core/scatter.h"

#include <stdio.h>
#include <string.h>

#include "router/core/refusal.h"
#include "runtime/base/check.h"

/* Field 1 or 2 with wire type 2, length-delimited (protobuf encoding). */
#define TAG_RESULTS  0x0au
#define TAG_RESPONSE 0x0au
#define TAG_ERROR    0x12u

uint32_t scatter_limit(const struct method_info *method)
{
    return method->route == METHOD_SCATTER ? method->most : 0;
}

err scatter_split(const struct method_info *method, const ProtobufCMessage *message,
                  struct arena *arena, struct scatter_elements *ret_elements,
                  Holdfast__V1__ErrorDetail *ret_detail)
{
    const ProtobufCFieldDescriptor *field = &method->request->fields[0];
    uint32_t limit = scatter_limit(method);
    struct scatter_elements elements;
    size_t count;

    CHECK(limit > 0 && message->descriptor == method->request);
    CHECK(field->id == 1 && field->label == PROTOBUF_C_LABEL_REPEATED);
    memcpy(&count, (const char *)message + field->quantifier_offset, sizeof count);
    memcpy(&elements.messages, (const char *)message + field->offset, sizeof elements.messages);
    if (count > limit) {
        char limit_text[24];
        char count_text[24];

        (void)snprintf(limit_text, sizeof limit_text, "at most %u", limit);
        (void)snprintf(count_text, sizeof count_text, "%zu", count);
        refusal_make_field(
            arena, ret_detail,
            &(struct refusal_field){ field->name, limit_text, slice_from_text(count_text) },
            "a batch has too many elements");
        return ERR_INVALID;
    }
    elements.count = (uint32_t)count;
    *ret_elements = elements;
    return ERR_OK;
}

static size_t varint_size(uint64_t v)
{
    size_t size = 1;

    for (; v >= 0x80; v >>= 7)
        size++;
    return size;
}

/* Of the Result message, without its own tag and length. */
static size_t result_size(const struct scatter_outcome *outcome)
{
    return 1 + varint_size(outcome->bytes.size) + outcome->bytes.size;
}

size_t scatter_joined_size(const struct scatter_outcome *outcomes, uint32_t count)
{
    size_t total = 0;

    for (uint32_t i = 0; i < count; i++) {
        size_t size = result_size(&outcomes[i]);
        total += 1 + varint_size(size) + size;
    }
    return total;
}

void scatter_join(const struct scatter_outcome *outcomes, uint32_t count, struct buf *out)
{
    (void)buf_reserve(out, scatter_joined_size(outcomes, count));
    for (uint32_t i = 0; i < count; i++) {
        buf_put_u8(out, TAG_RESULTS);
        buf_put_compact(out, result_size(&outcomes[i]));
        buf_put_u8(out, outcomes[i].failed ? TAG_ERROR : TAG_RESPONSE);
        buf_put_compact(out, outcomes[i].bytes.size);
        buf_append(out, outcomes[i].bytes.data, outcomes[i].bytes.size);
    }
}
