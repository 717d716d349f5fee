#include "node/core/codec/canonical_order.h"

#include <stdbool.h>
#include <string.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/profile.pb-c.h"
#include "runtime/base/check.h"

#define DEPTH_MAX 8u /* No message of the API nests deeper. */

/* The key of a map's entry; NULL: lists of this type are no maps. */
static const char *key_of(const ProtobufCMessage *entry)
{
    if (entry->descriptor == &holdfast__v1__currency_amount__descriptor)
        return ((const Holdfast__V1__CurrencyAmount *)(const void *)entry)->currency;
    if (entry->descriptor == &holdfast__v1__section_edit__descriptor)
        return ((const Holdfast__V1__SectionEdit *)(const void *)entry)->name;
    return NULL;
}

static bool is_map(const ProtobufCFieldDescriptor *field)
{
    return field->descriptor == &holdfast__v1__currency_amount__descriptor ||
           field->descriptor == &holdfast__v1__section_edit__descriptor;
}

/* By insertion: lists are short, and mostly in order. */
static void sort(ProtobufCMessage **entries, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        ProtobufCMessage *entry = entries[i];
        size_t at = i;

        for (; at > 0 && strcmp(key_of(entries[at - 1]), key_of(entry)) > 0; at--)
            entries[at] = entries[at - 1];
        entries[at] = entry;
    }
}

static bool is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    uint32_t kind;

    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0)
        return true;
    memcpy(&kind, (const char *)message + field->quantifier_offset, sizeof kind);
    return kind == field->id;
}

static void order(ProtobufCMessage *message, uint32_t depth);

static void order_list(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                       uint32_t depth)
{
    ProtobufCMessage **entries;
    size_t count;

    memcpy(&count, (const char *)message + field->quantifier_offset, sizeof count);
    memcpy(&entries, (const char *)message + field->offset, sizeof entries);
    if (is_map(field))
        sort(entries, count);
    for (size_t i = 0; i < count; i++)
        order(entries[i], depth + 1);
}

static void order(ProtobufCMessage *message, uint32_t depth)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;

    CHECK(depth <= DEPTH_MAX);
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        ProtobufCMessage *inner;

        if (field->type != PROTOBUF_C_TYPE_MESSAGE || !is_set(message, field))
            continue;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            order_list(message, field, depth);
            continue;
        }
        memcpy(&inner, (const char *)message + field->offset, sizeof inner);
        if (inner != NULL)
            order(inner, depth + 1);
    }
}

void canonical_order(ProtobufCMessage *message)
{
    order(message, 0);
}
