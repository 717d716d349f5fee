#include "runtime/rest/rest_tag.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/v1/counter.pb-c.h"
#include "holdfast/v1/definition.pb-c.h"
#include "holdfast/v1/favorites.pb-c.h"
#include "rest/rest_tables.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

/* ---- of an answer ---- */

/* Of a message that is set, with a field of that name and type; else NULL. */
static const void *find_value(const ProtobufCMessage *message, const char *name, ProtobufCType type)
{
    if (message == NULL)
        return NULL;
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    if (field == NULL || field->type != type || field->label == PROTOBUF_C_LABEL_REPEATED ||
        (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0)
        return NULL;
    return (const char *)message + field->offset;
}

static const ProtobufCMessage *find_message(const ProtobufCMessage *message, const char *name)
{
    const void *found = find_value(message, name, PROTOBUF_C_TYPE_MESSAGE);

    return found != NULL ? *(ProtobufCMessage *const *)found : NULL;
}

static bool tag_of_version(const ProtobufCMessage *message, char ret_tag[REST_TAG_BYTES])
{
    const void *found = find_value(message, "version", PROTOBUF_C_TYPE_UINT64);
    uint64_t version;

    if (found == NULL)
        return false;
    memcpy(&version, found, sizeof version);
    snprintf(ret_tag, REST_TAG_BYTES, "\"%" PRIu64 "\"", version);
    return true;
}

static bool is_set(const ProtobufCMessage *message, const char *name)
{
    const void *found = find_value(message, name, PROTOBUF_C_TYPE_BOOL);

    return found != NULL && *(const protobuf_c_boolean *)found;
}

static bool tag_of_count(const ProtobufCMessage *count, char ret_tag[REST_TAG_BYTES])
{
    const void *found = find_value(count, "count", PROTOBUF_C_TYPE_UINT64);
    uint64_t number;

    if (found == NULL || is_set(count, "stale"))
        return false;
    memcpy(&number, found, sizeof number);
    snprintf(ret_tag, REST_TAG_BYTES, "W/\"n%" PRIu64 "\"", number);
    return true;
}

/* A top list, of edges or of a counter. */
struct top {
    size_t count;
    Holdfast__V1__TopEntry *const *entries;
    const char *window;
    bool stale;
};

static bool find_top(const ProtobufCMessage *answer, struct top *ret_top)
{
    const Holdfast__V1__GetTopResponse *top = (const void *)answer;
    const Holdfast__V1__GetCounterTopResponse *counted = (const void *)answer;

    if (answer->descriptor == &holdfast__v1__get_top_response__descriptor)
        *ret_top = (struct top){ top->n_entries, top->entries, top->window, top->stale };
    else if (answer->descriptor == &holdfast__v1__get_counter_top_response__descriptor)
        *ret_top =
            (struct top){ counted->n_entries, counted->entries, counted->window, counted->stale };
    else
        return false;
    return true;
}

/* Of what is in the list, and of nothing else: as_of moves while the list stays. */
static bool tag_of_top(const ProtobufCMessage *answer, char ret_tag[REST_TAG_BYTES])
{
    struct hash128 hash = { 0 };
    uint8_t count[8];
    struct top top;

    if (!find_top(answer, &top) || top.stale)
        return false;
    for (size_t i = 0; i < top.count; i++) {
        store_u64(count, top.entries[i]->count);
        hash = hash_chain(hash, (struct slice){ count, sizeof count },
                          slice_from_text(top.entries[i]->target_id));
    }
    hash = hash_chain(hash, slice_from_text(top.window), (struct slice){ 0 });
    snprintf(ret_tag, REST_TAG_BYTES, "W/\"t%016" PRIx64 "\"", load_u64(hash.bytes));
    return true;
}

/* Settings that were deleted and made again begin at version 1, under another number. */
static bool tag_of_settings(const ProtobufCMessage *answer, char ret_tag[REST_TAG_BYTES])
{
    const Holdfast__V1__GetSettingsResponse *settings = (const void *)answer;

    if (answer->descriptor != &holdfast__v1__get_settings_response__descriptor)
        return false;
    snprintf(ret_tag, REST_TAG_BYTES, "W/\"s%" PRIx64 ".%" PRIx64 "\"", settings->number,
             settings->version);
    return true;
}

bool rest_tag_of(const ProtobufCMessage *answer, char ret_tag[REST_TAG_BYTES])
{
    const ProtobufCMessage *profile = find_message(answer, "profile");
    bool has_mail = find_message(profile, "mail") != NULL;

    if (tag_of_settings(answer, ret_tag) ||
        tag_of_version(find_message(answer, "write"), ret_tag) ||
        (!has_mail && tag_of_version(profile, ret_tag)) || tag_of_version(answer, ret_tag))
        return true;
    const void *found = find_value(answer, "as_of", PROTOBUF_C_TYPE_STRING);
    const char *as_of = found != NULL ? *(char *const *)found : NULL;
    if (as_of == NULL || as_of[0] == 0)
        return tag_of_top(answer, ret_tag) || tag_of_count(find_message(answer, "count"), ret_tag);
    CHECK(strlen(as_of) < AS_OF_TEXT_SIZE);
    snprintf(ret_tag, REST_TAG_BYTES, "W/\"%s\"", as_of);
    return true;
}

bool rest_tag_is_told(const ProtobufCMessage *request)
{
    const Holdfast__V1__ListFavoritesRequest *list = (const void *)request;
    const Holdfast__V1__GetTopRequest *top = (const void *)request;

    if (request->descriptor == &holdfast__v1__list_favorites_request__descriptor)
        return list->n_include == 0;
    return request->descriptor != &holdfast__v1__get_top_request__descriptor || top->n_include == 0;
}

/* ---- how long it is kept ---- */

static const uint32_t kept_s[METHOD_ID_MAX + 1] = {
#define KEPT_ROW(method, seconds) [METHOD_##method] = (seconds),
    REST_KEPT(KEPT_ROW)
#undef KEPT_ROW
};

/* One of the messages in a list. */
static bool has_stale_part(const ProtobufCMessage *answer)
{
    for (unsigned i = 0; i < answer->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &answer->descriptor->fields[i];
        if (field->type != PROTOBUF_C_TYPE_MESSAGE || field->label != PROTOBUF_C_LABEL_REPEATED)
            continue;
        size_t count =
            *(const size_t *)(const void *)((const char *)answer + field->quantifier_offset);
        ProtobufCMessage *const *parts =
            *(ProtobufCMessage *const *const *)(const void *)((const char *)answer + field->offset);
        for (size_t j = 0; j < count; j++) {
            if (is_set(parts[j], "stale"))
                return true;
        }
    }
    return false;
}

uint32_t rest_keep_s(enum method_id method, const ProtobufCMessage *request,
                     const ProtobufCMessage *answer)
{
    if (kept_s[method] == 0 || answer == NULL || is_set(request, "fresh") ||
        is_set(answer, "stale") || is_set(answer, "metadata_incomplete") ||
        is_set(find_message(answer, "count"), "stale") || has_stale_part(answer))
        return 0;
    return kept_s[method];
}

/* ---- of a request ---- */

static void skip_space(struct slice *text)
{
    while (text->size > 0 && (*text->data == ' ' || *text->data == '\t'))
        *text = (struct slice){ text->data + 1, text->size - 1 };
}

static struct slice without_weakness(struct slice tag)
{
    bool weak = tag.size >= 2 && tag.data[0] == 'W' && tag.data[1] == '/';

    return weak ? (struct slice){ tag.data + 2, tag.size - 2 } : tag;
}

/* `"7"`, past the comma behind it. False: no tag stands there. */
static bool take_tag(struct slice *text, struct slice *ret_tag)
{
    struct slice tag = without_weakness(*text);
    size_t size = 1;

    if (tag.size < 2 || tag.data[0] != '"')
        return false;
    while (size < tag.size && tag.data[size] != '"' && tag.data[size] > 0x20 &&
           tag.data[size] != 0x7F)
        size++;
    if (size == tag.size || tag.data[size] != '"')
        return false;
    *ret_tag = (struct slice){ tag.data, size + 1 };
    *text = (struct slice){ tag.data + size + 1, tag.size - size - 1 };
    skip_space(text);
    if (text->size == 0)
        return true;
    if (*text->data != ',')
        return false;
    *text = (struct slice){ text->data + 1, text->size - 1 };
    skip_space(text);
    return true;
}

bool rest_tags_are_sound(struct slice header)
{
    struct slice tag;

    if (slice_equal(header, SLICE_LITERAL("*")))
        return true;
    if (header.size == 0 || header.data[header.size - 1] == ',')
        return false;
    while (header.size > 0) {
        if (!take_tag(&header, &tag))
            return false;
    }
    return true;
}

bool rest_tags_have(struct slice header, const char *tag)
{
    struct slice wanted = without_weakness(slice_from_text(tag));
    struct slice each;

    if (slice_equal(header, SLICE_LITERAL("*")))
        return true;
    while (header.size > 0 && take_tag(&header, &each)) {
        if (slice_equal(each, wanted))
            return true;
    }
    return false;
}
