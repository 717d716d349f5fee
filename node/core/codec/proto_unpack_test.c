/* Beside the library: what one pass tells of a message is what the library tells, for every
 * method's request and answer, filled at random, and for the same bytes spoiled. */
#include "node/core/codec/proto_unpack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/mailbox.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"

#define METHODS_MAX 1000u
#define ROUNDS      12u
#define SPOILED     24u
#define DEPTH       3u
#define COUNT_MAX   4u

static uint64_t seed = 1;

static uint64_t next_number(void)
{
    uint64_t z = (seed += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Small ones and large ones, so that a varint has any length. */
static uint64_t any_value(void)
{
    return next_number() >> next_number() % 64;
}

static void fill(struct arena *arena, ProtobufCMessage *message, unsigned depth);

static void fill_pointer(struct arena *arena, const ProtobufCFieldDescriptor *field, void *member,
                         unsigned depth)
{
    void *value = NULL;

    if (field->type == PROTOBUF_C_TYPE_STRING)
        value = arena_printf(arena, "%.*s", (int)(next_number() % 9), "abcdefgh");
    else if (depth > 0)
        value = arena_message(arena, field->descriptor);
    if (field->type == PROTOBUF_C_TYPE_MESSAGE && value != NULL)
        fill(arena, value, depth - 1);
    memcpy(member, &value, sizeof value);
}

static void fill_one(struct arena *arena, const ProtobufCFieldDescriptor *field, void *member,
                     unsigned depth)
{
    uint64_t value = any_value();
    uint32_t small = (uint32_t)value;
    protobuf_c_boolean yes = (protobuf_c_boolean)(value & 1);

    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        fill_pointer(arena, field, member, depth);
        break;
    case PROTOBUF_C_TYPE_BYTES: {
        ProtobufCBinaryData data = { value % 5, arena_zalloc(arena, 5) };
        memcpy(member, &data, sizeof data);
        break;
    }
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        memcpy(member, &value, sizeof value);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        memcpy(member, &yes, sizeof yes);
        break;
    default:
        memcpy(member, &small, sizeof small);
        break;
    }
}

static void fill_list(struct arena *arena, const ProtobufCFieldDescriptor *field, uint8_t *message,
                      unsigned depth)
{
    size_t size =
        field->type == PROTOBUF_C_TYPE_BYTES ? sizeof(ProtobufCBinaryData) : sizeof(uint64_t);
    size_t count = next_number() % COUNT_MAX;
    uint8_t *list = arena_zalloc(arena, (count + 1) * size);

    if (field->type == PROTOBUF_C_TYPE_MESSAGE && depth == 0)
        return;
    if (field->type == PROTOBUF_C_TYPE_INT32 || field->type == PROTOBUF_C_TYPE_UINT32 ||
        field->type == PROTOBUF_C_TYPE_ENUM || field->type == PROTOBUF_C_TYPE_BOOL)
        size = sizeof(uint32_t);
    for (size_t i = 0; i < count; i++)
        fill_one(arena, field, list + i * size, depth);
    memcpy(message + field->quantifier_offset, &count, sizeof count);
    memcpy(message + field->offset, &list, sizeof list);
}

static void fill(struct arena *arena, ProtobufCMessage *message, unsigned depth)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    uint8_t *bytes = (uint8_t *)message;
    uint32_t chosen = 1;

    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        bool oneof = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
        uint32_t there = oneof ? field->id : 1;
        if (next_number() % 3 == 0)
            continue;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            fill_list(arena, field, bytes, depth);
            continue;
        }
        if (oneof)
            memcpy(&chosen, bytes + field->quantifier_offset, sizeof chosen);
        if (oneof && (chosen != 0 || depth == 0))
            continue;
        fill_one(arena, field, bytes + field->offset, depth);
        if (field->quantifier_offset != 0)
            memcpy(bytes + field->quantifier_offset, &there, sizeof there);
    }
}

/* Packed again: fields that are there, what they hold, and what is unknown. */
static void both_read(const ProtobufCMessageDescriptor *type, struct slice bytes, bool sound)
{
    struct arena arena = { 0 };
    ProtobufCMessage *library = protobuf_c_message_unpack(type, NULL, bytes.size, bytes.data);
    ProtobufCMessage *own = proto_unpack(&arena, type, bytes);

    assert_true(IMPLIES(sound, library != NULL && own != NULL));
    assert_true(IMPLIES(own != NULL, library != NULL));
    if (own != NULL) {
        struct slice a = arena_pack(&arena, own);
        struct slice b = arena_pack(&arena, library);
        assert_true(slice_equal(a, b));
    }
    protobuf_c_message_free_unpacked(library, NULL);
    arena_deinit(&arena);
}

static void try_type(const ProtobufCMessageDescriptor *type)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct arena arena = { 0 };
        ProtobufCMessage *message = arena_message(&arena, type);
        fill(&arena, message, DEPTH);
        struct slice bytes = arena_pack(&arena, message);
        uint8_t *spoiled = (uint8_t *)(uintptr_t)bytes.data;
        both_read(type, bytes, true);
        for (unsigned i = 0; i < SPOILED && bytes.size > 0; i++) {
            uint8_t *at = &spoiled[next_number() % bytes.size];
            uint8_t was = *at;
            *at ^= (uint8_t)(1u << next_number() % 8);
            both_read(type, bytes, false);
            both_read(type, (struct slice){ bytes.data, next_number() % bytes.size }, false);
            *at = was;
        }
        arena_deinit(&arena);
    }
}

static void every_message_reads_as_the_library_reads_it(void **state)
{
    uint32_t tried = 0;
    (void)state;

    for (uint32_t id = 0; id < METHODS_MAX; id++) {
        const struct method_info *method = method_find(id);
        if (method == NULL)
            continue;
        try_type(method->request);
        try_type(method_answer(method));
        tried++;
    }
    assert_true(tried > 50);
}

/* Its rules hold: the last text counts, an unknown field is kept. */
static void what_programs_do_not_write_is_left_to_the_library(void **state)
{
    static const uint8_t twice[] = { 0x1a, 2, 0x10, 1, 0x1a, 2, 0x10, 2 }; /* A list of two. */
    static const uint8_t unknown[] = { 0xf8, 0x3f, 1 };
    static const uint8_t other_wire[] = { 0x08, 1 };
    static const uint8_t text_again[] = { 0x0a, 1, 'a', 0x0a, 2, 'b', 'c' };
    const ProtobufCMessageDescriptor *mail = &holdfast__v1__mail__descriptor;
    struct arena arena = { 0 };
    (void)state;

    both_read(mail, (struct slice){ twice, sizeof twice }, true);
    both_read(mail, (struct slice){ text_again, sizeof text_again }, true);
    both_read(mail, (struct slice){ 0 }, true);
    assert_null(proto_unpack(&arena, mail, (struct slice){ unknown, sizeof unknown }));
    assert_null(proto_unpack(&arena, mail, (struct slice){ other_wire, sizeof other_wire }));
    assert_non_null(arena_unpack(&arena, mail, (struct slice){ unknown, sizeof unknown }));
    assert_null(arena_unpack(&arena, mail, (struct slice){ other_wire, sizeof other_wire }));
    const Holdfast__V1__Mail *read =
        (const void *)arena_unpack(&arena, mail, (struct slice){ text_again, sizeof text_again });
    assert_string_equal(read->mail_id, "bc");
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_reads_as_the_library_reads_it),
        cmocka_unit_test(what_programs_do_not_write_is_left_to_the_library),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
