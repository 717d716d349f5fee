#include "router/core/scatter.h"

#include <stdio.h>
#include <string.h>

#include "holdfast/v1/operation.pb-c.h"
#include "idl/error_code.h"
#include "router/core/refusal.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/cluster/authority_text.h"

/* Field 1 or 2 with wire type 2, length-delimited (protobuf encoding). */
#define TAG_RESULTS  0x0au
#define TAG_RESPONSE 0x0au
#define TAG_ERROR    0x12u
/* Field 2 with wire type 0. */
#define TAG_FAILED 0x10u

uint32_t scatter_limit(const struct method_info *method)
{
    return method->route == METHOD_SCATTER ? method->most : 0;
}

err scatter_split(const struct method_info *method, const ProtobufCMessage *message,
                  struct arena *arena, struct scatter_elements *ret_elements,
                  Holdfast__V1__ErrorDetail *ret_detail)
{
    const ProtobufCFieldDescriptor *field = &message->descriptor->fields[0];
    uint32_t limit = scatter_limit(method);
    struct scatter_elements elements;
    size_t count;

    CHECK(limit > 0 && field->descriptor == method_find(method->element)->request);
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

/* ---- shared fields ---- */

/* Where a field stands in a message, and how many bytes it takes there. */
struct place {
    size_t offset;
    size_t size;
};

static struct place place_of(const ProtobufCFieldDescriptor *field)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED || field->type == PROTOBUF_C_TYPE_STRING ||
        field->type == PROTOBUF_C_TYPE_MESSAGE)
        return (struct place){ field->offset, sizeof(void *) };
    if (field->type == PROTOBUF_C_TYPE_INT64)
        return (struct place){ field->offset, sizeof(int64_t) };
    CHECK(field->type == PROTOBUF_C_TYPE_UINT32 || field->type == PROTOBUF_C_TYPE_ENUM);
    return (struct place){ field->offset, sizeof(uint32_t) };
}

static bool is_empty(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    static const uint8_t zeros[sizeof(uint64_t)];
    const char *base = (const char *)message;
    const struct place place = place_of(field);

    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return memcmp(base + field->quantifier_offset, zeros, sizeof(size_t)) == 0;
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *text;

        memcpy(&text, base + place.offset, sizeof text);
        return text == NULL || text[0] == 0;
    }
    return memcmp(base + place.offset, zeros, place.size) == 0;
}

static const char *text_of(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const char *text;

    memcpy(&text, (const char *)message + field->offset, sizeof text);
    return text != NULL ? text : "";
}

/* One shared field on its way into the elements. */
struct shared {
    const ProtobufCFieldDescriptor *from; /* Of the batch. */
    const ProtobufCFieldDescriptor *to;   /* Of the element. */
    const ProtobufCMessage *batch;
};

static void share(const struct shared *shared, ProtobufCMessage *element)
{
    char *to = (char *)element;
    const char *from = (const char *)shared->batch;

    if (!is_empty(element, shared->to))
        return;
    memcpy(to + shared->to->offset, from + shared->from->offset, place_of(shared->from).size);
    if (shared->to->label == PROTOBUF_C_LABEL_REPEATED)
        memcpy(to + shared->to->quantifier_offset, from + shared->from->quantifier_offset,
               sizeof(size_t));
}

/* Tokens are secrets: the text is not repeated. */
static err authority_check(const struct shared *shared, struct arena *arena,
                           Holdfast__V1__ErrorDetail *ret_detail)
{
    struct slice text, rest;

    if (strcmp(shared->from->name, "authority") != 0)
        return ERR_OK;
    text = slice_from_text(text_of(shared->batch, shared->from));
    if (authority_text_read(text, &rest) != AUTHORITY_TEXT_NONE)
        return ERR_OK;
    refusal_make_field(arena, ret_detail,
                       &(struct refusal_field){
                           shared->from->name, AUTHORITY_TEXT_LIMIT,
                           slice_from_text(arena_printf(arena, "%zu other bytes", text.size)) },
                       "there is no such authority");
    return ERR_INVALID;
}

/* Without its elements the batch is what each of them may get. */
static err shared_check_size(const ProtobufCMessage *message, struct arena *arena,
                             Holdfast__V1__ErrorDetail *ret_detail)
{
    const ProtobufCFieldDescriptor *elements = &message->descriptor->fields[0];
    ProtobufCMessage *shared = arena_alloc(arena, message->descriptor->sizeof_message);

    memcpy(shared, message, message->descriptor->sizeof_message);
    memset((char *)shared + elements->quantifier_offset, 0, sizeof(size_t));
    size_t size = protobuf_c_message_get_packed_size(shared);
    if (size <= SCATTER_SHARED_BYTES_MAX)
        return ERR_OK;
    refusal_make_field(arena, ret_detail,
                       &(struct refusal_field){
                           "", arena_printf(arena, "at most %u bytes", SCATTER_SHARED_BYTES_MAX),
                           slice_from_text(arena_printf(arena, "%zu bytes", size)) },
                       "the fields beside `requests` are too large together");
    return ERR_INVALID;
}

err scatter_share(const struct method_info *method, const ProtobufCMessage *message,
                  struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail)
{
    const ProtobufCMessageDescriptor *element = method_find(method->element)->request;
    struct scatter_elements elements;
    err e = scatter_split(method, message, arena, &elements, ret_detail);

    if (e == ERR_OK)
        e = shared_check_size(message, arena, ret_detail);
    for (unsigned i = 1; e == ERR_OK && i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *from = &message->descriptor->fields[i];
        struct shared shared = {
            .from = from,
            .to = protobuf_c_message_descriptor_get_field_by_name(element, from->name),
            .batch = message,
        };

        CHECK(shared.to != NULL && shared.to->label == from->label &&
              shared.to->type == from->type);
        if (is_empty(message, from))
            continue;
        e = authority_check(&shared, arena, ret_detail);
        for (uint32_t at = 0; e == ERR_OK && at < elements.count; at++)
            share(&shared, elements.messages[at]);
    }
    return e;
}

/* ---- operations of one batch ---- */

struct operation {
    const char *player_id;
    const char *op_id; /* NULL: the place is free. */
};

static bool operation_equal(const struct operation *a, const struct operation *b)
{
    return strcmp(a->player_id, b->player_id) == 0 && strcmp(a->op_id, b->op_id) == 0;
}

/* Puts it into a table of `size` places, a power of two above their number. False: it is there. */
static bool operation_add(struct operation *table, size_t size, const struct operation *operation)
{
    uint64_t hash = hash_u64(slice_from_text(operation->player_id)) ^
                    hash_u64(slice_from_text(operation->op_id)) << 1;
    size_t place = (size_t)hash & (size - 1);

    for (; table[place].op_id != NULL; place = (place + 1) & (size - 1)) {
        if (operation_equal(&table[place], operation))
            return false;
    }
    table[place] = *operation;
    return true;
}

static err refuse_repeated(const struct method_info *method, struct arena *arena, uint32_t place,
                           const struct operation *operation, Holdfast__V1__ErrorDetail *ret_detail)
{
    struct refusal_field field = { arena_printf(arena, "requests[%u].op_id", place),
                                   "one request for each player and op_id",
                                   slice_from_text(operation->op_id) };

    if (method->id == METHOD_DELIVER_MAIL)
        field =
            (struct refusal_field){ arena_printf(arena, "to_player_ids[%u]", place),
                                    "each recipient once", slice_from_text(operation->player_id) };

    refusal_make_field(arena, ret_detail, &field,
                       method->id == METHOD_DELIVER_MAIL ? "an earlier recipient is the same player"
                                                         : "an earlier request of the batch is "
                                                           "the same player's operation");
    return ERR_INVALID;
}

err scatter_check_distinct(const struct method_info *method,
                           const struct scatter_elements *elements, struct arena *arena,
                           Holdfast__V1__ErrorDetail *ret_detail)
{
    const ProtobufCMessageDescriptor *type = method_find(method->element)->request;
    const ProtobufCFieldDescriptor *player_id =
        protobuf_c_message_descriptor_get_field_by_name(type, "player_id");
    const ProtobufCFieldDescriptor *op_id =
        protobuf_c_message_descriptor_get_field_by_name(type, "op_id");
    size_t size = 2;

    if (op_id == NULL) /* Reads. */
        return ERR_OK;
    CHECK(player_id != NULL);
    while (size <= 2 * (size_t)elements->count)
        size *= 2;
    struct operation *table = arena_zalloc(arena, size * sizeof *table);
    for (uint32_t i = 0; i < elements->count; i++) {
        const struct operation operation = { text_of(elements->messages[i], player_id),
                                             text_of(elements->messages[i], op_id) };

        /* What lacks one of them is refused by itself. */
        if (operation.player_id[0] == 0 || operation.op_id[0] == 0)
            continue;
        if (!operation_add(table, size, &operation))
            return refuse_repeated(method, arena, i, &operation, ret_detail);
    }
    return ERR_OK;
}

/* ---- answers ---- */

void scatter_overflow(const struct method_info *method, struct arena *arena,
                      Holdfast__V1__ErrorDetail *ret_detail)
{
    bool writes = method_find(method->element)->writes;

    refusal_make(arena, ret_detail, writes ? CODE(OUTCOME_UNKNOWN) : CODE(UNAVAILABLE),
                 "the batch's answer has no room for this one: its answers have at most %u bytes; "
                 "%sask for it by itself, or with fewer others",
                 SCATTER_ANSWERS_BYTES_MAX,
                 writes ? "it was carried out; under the same op_id " : "");
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

static uint32_t count_failed(const struct scatter_outcome *outcomes, uint32_t count)
{
    uint32_t failed = 0;

    for (uint32_t i = 0; i < count; i++)
        failed += outcomes[i].failed;
    return failed;
}

size_t scatter_joined_size(const struct scatter_outcome *outcomes, uint32_t count)
{
    uint32_t failed = count_failed(outcomes, count);
    size_t total = failed > 0 ? 1 + varint_size(failed) : 0;

    for (uint32_t i = 0; i < count; i++) {
        size_t size = result_size(&outcomes[i]);
        total += 1 + varint_size(size) + size;
    }
    return total;
}

void scatter_join(const struct scatter_outcome *outcomes, uint32_t count, struct buf *out)
{
    uint32_t failed = count_failed(outcomes, count);

    (void)buf_reserve(out, scatter_joined_size(outcomes, count));
    for (uint32_t i = 0; i < count; i++) {
        buf_put_u8(out, TAG_RESULTS);
        buf_put_compact(out, result_size(&outcomes[i]));
        buf_put_u8(out, outcomes[i].failed ? TAG_ERROR : TAG_RESPONSE);
        buf_put_compact(out, outcomes[i].bytes.size);
        buf_append(out, outcomes[i].bytes.data, outcomes[i].bytes.size);
    }
    if (failed > 0) {
        buf_put_u8(out, TAG_FAILED);
        buf_put_compact(out, failed);
    }
}

bool scatter_next(struct reader *response, struct scatter_outcome *ret_outcome)
{
    if (reader_left(response) == 0 || read_u8(response) != TAG_RESULTS)
        return false;
    struct slice bytes = read_raw(response, (size_t)read_compact(response));
    struct reader result = reader_from(bytes);
    uint8_t tag = read_u8(&result);

    ret_outcome->failed = tag == TAG_ERROR;
    ret_outcome->bytes = read_raw(&result, (size_t)read_compact(&result));
    return !response->bad && (tag == TAG_RESPONSE || tag == TAG_ERROR) &&
           reader_finish(&result) == ERR_OK;
}
