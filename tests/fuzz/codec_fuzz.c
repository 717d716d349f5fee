/*
 * codec_fuzz: untrusted bytes through json_codec and proto_codec. Whatever is taken must survive
 * the way through each form and back unchanged. The first byte picks a method's request, the second
 * the form: canonical JSON, protobuf or plain JSON.
 */
#include <stdio.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/codec/json_codec.h"
#include "runtime/codec/proto_codec.h"
#include "tests/fuzz/fuzz.h"

enum input_form { INPUT_JSON, INPUT_PROTO, INPUT_PLAIN_JSON, INPUT_FORMS };

struct form {
    struct buf json;
    struct buf plain;
    struct buf proto;
};

static void write_forms(struct json_codec *codec, const ProtobufCMessage *message,
                        struct form *ret_form)
{
    buf_clear(&ret_form->json);
    buf_clear(&ret_form->plain);
    buf_clear(&ret_form->proto);
    json_encode(codec, JSON_CANONICAL, message, &ret_form->json);
    json_encode(codec, JSON_PLAIN, message, &ret_form->plain);
    proto_encode(message, &ret_form->proto);
}

static void form_deinit(struct form *form)
{
    buf_deinit(&form->json);
    buf_deinit(&form->plain);
    buf_deinit(&form->proto);
}

static void check_same(const struct form *a, const struct form *b)
{
    CHECK(slice_equal(buf_slice(&a->json), buf_slice(&b->json)));
    CHECK(slice_equal(buf_slice(&a->plain), buf_slice(&b->plain)));
}

static void check_round_trips(struct json_codec *codec, ProtobufCMessage *message,
                              struct arena *arena)
{
    struct codec_scope scope = { .arena = arena,
                                 .size_bytes_max = 64u << 20,
                                 .memory_bytes_max = 256u << 20 };
    struct form first = { 0 };
    struct form again = { 0 };
    ProtobufCMessage *copy = NULL;

    write_forms(codec, message, &first);
    CHECK(json_decode(codec, message->descriptor, buf_slice(&first.json), &scope, &copy) == ERR_OK);
    write_forms(codec, copy, &again);
    check_same(&first, &again);
    scope.form = JSON_PLAIN;
    CHECK(json_decode(codec, message->descriptor, buf_slice(&first.plain), &scope, &copy) ==
          ERR_OK);
    write_forms(codec, copy, &again);
    check_same(&first, &again);
    CHECK(proto_decode(message->descriptor, buf_slice(&again.proto), &scope, &copy) == ERR_OK);
    write_forms(codec, copy, &again);
    check_same(&first, &again);
    form_deinit(&first);
    form_deinit(&again);
}

void fuzz_one(struct slice input)
{
    struct json_codec codec;
    struct arena arena = { 0 };
    struct codec_scope scope = { .arena = &arena };
    ProtobufCMessage *message = NULL;
    size_t count;
    const struct method_info *all = method_all(&count);
    err e;

    if (input.size < 2)
        return;
    const ProtobufCMessageDescriptor *type = all[input.data[0] % count].request;
    struct slice bytes = { input.data + 2, input.size - 2 };
    json_codec_init(&codec);
    unsigned form = input.data[1] % INPUT_FORMS;
    scope.form = form == INPUT_PLAIN_JSON ? JSON_PLAIN : JSON_CANONICAL;
    if (form != INPUT_PROTO)
        e = json_decode(&codec, type, bytes, &scope, &message);
    else
        e = proto_decode(type, bytes, &scope, &message);
    if (e == ERR_OK)
        check_round_trips(&codec, message, &arena);
    else
        CHECK(scope.error.message[0] != 0);
    arena_deinit(&arena);
    json_codec_deinit(&codec);
}

/* Another field of its oneof stands before it. */
static bool has_elder(const ProtobufCMessageDescriptor *type, unsigned place)
{
    const ProtobufCFieldDescriptor *field = &type->fields[place];

    for (unsigned i = 0; i < place; i++) {
        if ((field->flags & type->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
            field->quantifier_offset == type->fields[i].quantifier_offset)
            return true;
    }
    return false;
}

/* Appends an object with a value for each field; nested ones down to `depth`. */
static void put_example(const ProtobufCMessageDescriptor *type, unsigned depth, struct buf *out)
{
    const char *comma = "";

    buf_printf(out, "{");
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        bool nested = field->type == PROTOBUF_C_TYPE_MESSAGE;
        if (has_elder(type, i) || (nested && depth == 0))
            continue;
        bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
        buf_printf(out, "%s\"%s\":%s", comma, field->name, repeated ? "[" : "");
        if (nested)
            put_example(field->descriptor, depth - 1, out);
        else if (field->type == PROTOBUF_C_TYPE_STRING)
            buf_printf(out, "\"t\\u00e9\\n\"");
        else if (field->type == PROTOBUF_C_TYPE_BYTES)
            buf_printf(out, "\"AP8=\"");
        else if (field->type == PROTOBUF_C_TYPE_BOOL)
            buf_printf(out, "true");
        else
            buf_printf(out, "1");
        buf_printf(out, "%s", repeated ? "]" : "");
        comma = ",";
    }
    buf_printf(out, "}");
}

static void seed_method(struct fuzz_seeds *seeds, uint8_t place, const struct method_info *method)
{
    struct buf json = { 0 };
    struct buf proto = { 0 }, plain = { 0 };
    struct json_codec codec;
    struct arena arena = { 0 };
    struct codec_scope scope = { .arena = &arena };
    ProtobufCMessage *message;
    char name[32];

    json_codec_init(&codec);
    buf_put_u8(&json, place);
    buf_put_u8(&json, INPUT_JSON);
    put_example(method->request, 3, &json);
    (void)snprintf(name, sizeof name, "json-%u", (unsigned)method->id);
    fuzz_seed_add(seeds, name, buf_slice(&json));
    struct slice text = { json.data + 2, json.size - 2 };
    CHECK(json_decode(&codec, method->request, text, &scope, &message) == ERR_OK);
    buf_put_u8(&proto, place);
    buf_put_u8(&proto, INPUT_PROTO);
    proto_encode(message, &proto);
    (void)snprintf(name, sizeof name, "proto-%u", (unsigned)method->id);
    fuzz_seed_add(seeds, name, buf_slice(&proto));
    buf_put_u8(&plain, place);
    buf_put_u8(&plain, INPUT_PLAIN_JSON);
    json_encode(&codec, JSON_PLAIN, message, &plain);
    (void)snprintf(name, sizeof name, "plain-%u", (unsigned)method->id);
    fuzz_seed_add(seeds, name, buf_slice(&plain));
    arena_deinit(&arena);
    json_codec_deinit(&codec);
    buf_deinit(&json);
    buf_deinit(&proto);
    buf_deinit(&plain);
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    size_t count;
    const struct method_info *all = method_all(&count);

    for (size_t i = 0; i < count; i++)
        seed_method(seeds, (uint8_t)i, &all[i]);
}
