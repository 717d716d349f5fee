#include "router/rpc/request/list_page.h"

#include <string.h>

#include "idl/page_cursor.h"
#include "router/core/refusal.h"
#include "runtime/base/check.h"
#include "runtime/cluster/incarnation.h"

static uint32_t page_size_of(const ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, "page_size");
    uint32_t size;

    CHECK(field != NULL && field->type == PROTOBUF_C_TYPE_UINT32);
    memcpy(&size, (const char *)message + field->offset, sizeof size);
    return size;
}

static bool refuse_field(struct request *request, const struct refusal_field *field,
                         const char *message)
{
    Holdfast__V1__ErrorDetail detail;

    refusal_make_field(request->arena, &detail, field, message);
    request_fail(request, &detail);
    return false;
}

static bool refuse_cursor(struct request *request)
{
    const ProtobufCFieldDescriptor *cursor =
        protobuf_c_message_descriptor_get_field_by_name(request->message->descriptor, "cursor");
    const char *text;

    CHECK(cursor != NULL && cursor->type == PROTOBUF_C_TYPE_STRING);
    memcpy(&text, (const char *)request->message + cursor->offset, sizeof text);
    return refuse_field(
        request, &(struct refusal_field){ "cursor", PAGE_CURSOR_LIMIT, slice_from_text(text) },
        "not a cursor of this list");
}

void list_page_refuse(struct request *request)
{
    (void)refuse_cursor(request);
}

bool list_page_number(struct request *request, const struct list_page *page, uint64_t limit,
                      uint64_t *ret_number)
{
    *ret_number = 0;
    if (page->place[0] == 0)
        return true;
    return (decimal_parse(slice_from_text(page->place), ret_number) == ERR_OK &&
            *ret_number < limit) ||
           refuse_cursor(request);
}

bool list_page_begin(struct request *request, struct list_limits limits, struct list_page *ret_page)
{
    uint32_t size = page_size_of(request->message);
    struct arena *arena = request->arena;

    if (size > limits.size_max)
        return refuse_field(request,
                            &(struct refusal_field){
                                "page_size", arena_printf(arena, "1 to %u, or 0", limits.size_max),
                                slice_from_text(arena_printf(arena, "%u", size)) },
                            "the page is too large");
    ret_page->size = size > 0 ? size : limits.size_default;
    if (page_cursor_parse(request->message, arena, &ret_page->place) == ERR_OK)
        return true;
    return refuse_cursor(request);
}

char *list_page_next(const struct request *request, const char *place)
{
    return page_cursor_print(request->message, place, request->arena);
}
