#include "router/core/admission.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/cluster/authority_text.h"

#define ROOM_SHARE 16u

static const uint32_t share_percent[ADMISSION_PRIORITY_COUNT] = {
    [ADMISSION_BULK] = 60,
    [ADMISSION_ORDINARY] = 85,
    [ADMISSION_URGENT] = 100,
};

void admission_init(struct admission *admission, uint32_t in_flight_max)
{
    CHECK(in_flight_max > 0);
    *admission = (struct admission){ .in_flight_max = in_flight_max };
}

/* Bulk may fill 60 %, ordinary calls 85 %, urgent ones all of in_flight_max; at least 1. */
static uint32_t limit_of(const struct admission *admission, enum admission_priority priority)
{
    uint64_t limit = (uint64_t)admission->in_flight_max * share_percent[priority] / 100;

    return limit == 0 ? 1 : (uint32_t)limit;
}

static bool has_room(const struct admission *admission, enum admission_priority priority,
                     uint32_t weight)
{
    return admission->in_flight == 0 ||
           (uint64_t)admission->in_flight + weight <= limit_of(admission, priority);
}

static void refuse(struct admission *admission, enum admission_priority priority,
                   uint32_t *ret_retry_after_ms)
{
    uint64_t span_ms = ADMISSION_RETRY_AFTER_MS_MAX - ADMISSION_RETRY_AFTER_MS_MIN;
    uint64_t load = (uint64_t)admission->in_flight * span_ms / admission->in_flight_max;

    admission->refused[priority]++;
    *ret_retry_after_ms =
        ADMISSION_RETRY_AFTER_MS_MIN + (uint32_t)(load < span_ms ? load : span_ms);
}

bool admission_enter(struct admission *admission, enum admission_priority priority, uint32_t weight,
                     uint32_t *ret_retry_after_ms)
{
    uint32_t room = limit_of(admission, priority) / ROOM_SHARE;

    if (!has_room(admission, priority, weight)) {
        admission->refused_weight[priority] = weight < room ? weight : room;
        refuse(admission, priority, ret_retry_after_ms);
        return false;
    }
    admission->in_flight += weight;
    return true;
}

bool admission_is_full(struct admission *admission, enum admission_priority priority,
                       uint32_t *ret_retry_after_ms)
{
    uint32_t weight = admission->refused_weight[priority];

    if (has_room(admission, priority, weight > 0 ? weight : 1))
        return false;
    refuse(admission, priority, ret_retry_after_ms);
    return true;
}

bool admission_takes_none(const struct admission *admission)
{
    return !has_room(admission, ADMISSION_URGENT, 1);
}

uint32_t admission_share(const struct admission *admission, enum admission_priority priority,
                         uint32_t percent)
{
    uint64_t share = (uint64_t)limit_of(admission, priority) * percent / 100;

    return share == 0 ? 1 : (uint32_t)share;
}

void admission_leave(struct admission *admission, uint32_t weight)
{
    CHECK(admission->in_flight >= weight);
    admission->in_flight -= weight;
}

static bool has_system_authority(const ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(message->descriptor, 4);
    struct slice rest;
    const char *text;

    if (field == NULL || field->type != PROTOBUF_C_TYPE_STRING ||
        strcmp(field->name, "authority") != 0)
        return false;
    memcpy(&text, (const char *)message + field->offset, sizeof text);
    return authority_text_read(slice_from_text(text), &rest) == AUTHORITY_TEXT_SYSTEM;
}

enum admission_priority admission_priority_max(const struct method_info *method)
{
    switch (method->priority) {
    case METHOD_PRIORITY_BULK:
        return ADMISSION_BULK;
    case METHOD_PRIORITY_URGENT:
    case METHOD_PRIORITY_AUTHORITY:
        return ADMISSION_URGENT;
    case METHOD_PRIORITY_ORDINARY:
        break;
    }
    return ADMISSION_ORDINARY;
}

enum admission_priority admission_priority_of(const struct method_info *method,
                                              const ProtobufCMessage *message)
{
    if (method->priority == METHOD_PRIORITY_AUTHORITY && !has_system_authority(message))
        return ADMISSION_ORDINARY;
    return admission_priority_max(method);
}
