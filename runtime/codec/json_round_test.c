/* json_round_test: every message of every method, filled by chance, through both forms of JSON and
 * back, and the table of shapes against the descriptors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/codec/json_codec.h"
#include "runtime/codec/json_shape.h"
#include "runtime/codec/proto_codec.h"

#define ROUNDS    40u
#define DEPTH_MAX 5u

struct dice {
    uint64_t state;
    struct arena *arena;
};

/* splitmix64 */
static uint64_t throw(struct dice * dice, uint64_t bound)
{
    uint64_t z = dice->state += 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (z ^ (z >> 31)) % bound;
}

static const char *const texts[] = {
    "a",
    "gold",
    "\xC3\xA9\xF0\x9F\x98\x80\n\"\\",
    "progression",
    "{\"a\":1}",
    "[1,2]",
    "null",
    "\"s\"",
    "7",
    " {}",
    "{}",
    "[]",
    "[ ]",
    "{",
    "-1e3",
    "true",
    "{\"x\":{\"y\":[1,\"\\u00e9\"]}}",
    "steal",
    "\x01",
    "truex",
};

static char *some_text(struct dice *dice)
{
    uint64_t n = throw(dice, ARRAY_SIZE(texts) + 2);

    return n < ARRAY_SIZE(texts) ? text_lend(texts[n])
                                 : arena_printf(dice->arena, "k%u", (unsigned) throw(dice, 1000));
}

static uint64_t some_number(struct dice *dice)
{
    static const uint64_t edges[] = { 0,          1,          40,        INT32_MAX,
                                      UINT32_MAX, 1ull << 53, INT64_MAX, (1ull << 53) + 1,
                                      UINT64_MAX, 1ull << 63 };

    return edges[throw(dice, ARRAY_SIZE(edges))];
}

static ProtobufCMessage *some_message(struct dice *dice, const ProtobufCMessageDescriptor *type,
                                      unsigned depth);

static void some_value(struct dice *dice, const ProtobufCFieldDescriptor *field, void *slot,
                       unsigned depth)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        *(char **)slot = some_text(dice);
        return;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)slot = some_message(dice, field->descriptor, depth + 1);
        return;
    case PROTOBUF_C_TYPE_BYTES: {
        char *text = some_text(dice);
        *(ProtobufCBinaryData *)slot = (ProtobufCBinaryData){ strlen(text), (uint8_t *)text };
        return;
    }
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)slot = (protobuf_c_boolean) throw(dice, 2);
        return;
    case PROTOBUF_C_TYPE_ENUM: {
        const ProtobufCEnumDescriptor *names = field->descriptor;
        *(int32_t *)slot =
            throw(dice, 8) == 0 ? 77 : names->values[throw(dice, names->n_values)].value;
        return;
    }
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        return;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        *(uint32_t *)slot = (uint32_t)some_number(dice);
        return;
    default:
        *(uint64_t *)slot = some_number(dice);
    }
}

static size_t size_of(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return 4;
    default:
        return 8;
    }
}

static void fill_field(struct dice *dice, const ProtobufCFieldDescriptor *field, char *message,
                       unsigned depth)
{
    uint32_t *quantifier = (uint32_t *)(void *)(message + field->quantifier_offset);
    char *slot = message + field->offset;

    if (field->type == PROTOBUF_C_TYPE_MESSAGE && depth >= DEPTH_MAX)
        return;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t count = throw(dice, 12) == 0 ? 20 : throw(dice, 4);
        char *list = arena_zalloc(dice->arena, (count + 1) * size_of(field));
        for (size_t i = 0; i < count; i++)
            some_value(dice, field, list + i * size_of(field), depth);
        *(void **)(void *)slot = list;
        *(size_t *)(void *)quantifier = count;
        return;
    }
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        if (*quantifier != 0)
            return;
        *quantifier = field->id;
    }
    some_value(dice, field, slot, depth);
}

static ProtobufCMessage *some_message(struct dice *dice, const ProtobufCMessageDescriptor *type,
                                      unsigned depth)
{
    ProtobufCMessage *message = arena_zalloc(dice->arena, type->sizeof_message);

    protobuf_c_message_init(type, message);
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (field->label == PROTOBUF_C_LABEL_REQUIRED || throw(dice, 2) == 0)
            fill_field(dice, field, (char *)message, depth);
    }
    return message;
}

static void assert_goes_round(struct json_codec *codec, const ProtobufCMessage *message,
                              enum json_form form, struct arena *arena)
{
    struct codec_scope scope = { .arena = arena, .memory_bytes_max = 64u << 20, .form = form };
    ProtobufCMessage *back = NULL;
    struct buf json = { 0 }, first = { 0 }, again = { 0 };

    json_encode(codec, form, message, &json);
    if (json_decode(codec, message->descriptor, buf_slice(&json), &scope, &back) != ERR_OK)
        fail_msg("%s: %s: %.*s", scope.error.field, scope.error.message, (int)json.size,
                 (char *)json.data);
    proto_encode(message, &first);
    proto_encode(back, &again);
    if (!slice_equal(buf_slice(&first), buf_slice(&again)))
        fail_msg("%s does not come back: %.*s", message->descriptor->name, (int)json.size,
                 (char *)json.data);
    buf_deinit(&json);
    buf_deinit(&first);
    buf_deinit(&again);
}

static void every_message_goes_round_in_both_forms(void **state)
{
    struct arena arena = { 0 };
    struct dice dice = { .arena = &arena, .state = 20261123 };
    struct json_codec codec;
    size_t count;
    const struct method_info *all = method_all(&count);

    (void)state;
    json_codec_init(&codec);
    for (size_t i = 0; i < 2 * count * ROUNDS; i++) {
        const struct method_info *method = &all[i / 2 % count];
        arena_reset(&arena);
        ProtobufCMessage *message =
            some_message(&dice, i % 2 == 0 ? method->request : method->response, 0);
        assert_goes_round(&codec, message, JSON_CANONICAL, &arena);
        assert_goes_round(&codec, message, JSON_PLAIN, &arena);
    }
    json_codec_deinit(&codec);
    arena_deinit(&arena);
}

/* Messages are found from the methods' own, through their fields. */
static const ProtobufCMessageDescriptor *find_type(const ProtobufCMessageDescriptor *type,
                                                   const char *name, unsigned depth)
{
    const ProtobufCMessageDescriptor *found = strcmp(type->name, name) == 0 ? type : NULL;

    for (unsigned i = 0; i < type->n_fields && depth > 0 && found == NULL; i++) {
        if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
            found = find_type(type->fields[i].descriptor, name, depth - 1);
    }
    return found;
}

static const ProtobufCFieldDescriptor *find_field(const char *message, const char *field)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    const ProtobufCMessageDescriptor *type = NULL;

    for (size_t i = 0; i < count && type == NULL; i++) {
        type = find_type(all[i].request, message, 6);
        if (type == NULL)
            type = find_type(all[i].response, message, 6);
    }
    return type != NULL ? protobuf_c_message_descriptor_get_field_by_name(type, field) : NULL;
}

static void every_shape_is_of_a_field_that_can_have_it(void **state)
{
    static const struct {
        const char *message, *field;
        enum json_shape shape;
    } rows[] = {
#define ROW(message, field, shape) { message, field, JSON_SHAPE_##shape },
        JSON_SHAPES(ROW)
#undef ROW
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const ProtobufCFieldDescriptor *field = find_field(rows[i].message, rows[i].field);
        if (field == NULL)
            fail_msg("there is no %s.%s", rows[i].message, rows[i].field);
        assert_true((field->label == PROTOBUF_C_LABEL_REPEATED) ==
                    (rows[i].shape == JSON_SHAPE_LIST));
        if (rows[i].shape == JSON_SHAPE_VERB)
            assert_int_equal(field->type, PROTOBUF_C_TYPE_ENUM);
        if (rows[i].shape == JSON_SHAPE_DOCUMENT || rows[i].shape == JSON_SHAPE_KEY ||
            rows[i].shape == JSON_SHAPE_OPERAND)
            assert_int_equal(field->type, PROTOBUF_C_TYPE_STRING);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_goes_round_in_both_forms),
        cmocka_unit_test(every_shape_is_of_a_field_that_can_have_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
