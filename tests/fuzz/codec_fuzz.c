/*
 * codec_fuzz: untrusted bytes through json_codec and proto_codec. Whatever is taken must survive
 * the way there and back unchanged. The first byte picks a method's request, the second the form.
 */
#include <stdint.h>
#include <stdlib.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/codec/json_codec.h"
#include "runtime/codec/proto_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct form {
    struct buf json;
    struct buf proto;
};

static void write_forms(struct json_codec *codec, const ProtobufCMessage *message,
                        struct form *ret_form)
{
    buf_clear(&ret_form->json);
    buf_clear(&ret_form->proto);
    json_encode(codec, message, &ret_form->json);
    proto_encode(message, &ret_form->proto);
}

static void form_deinit(struct form *form)
{
    buf_deinit(&form->json);
    buf_deinit(&form->proto);
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
    CHECK(slice_equal(buf_slice(&first.json), buf_slice(&again.json)));
    CHECK(proto_decode(message->descriptor, buf_slice(&again.proto), &scope, &copy) == ERR_OK);
    write_forms(codec, copy, &again);
    CHECK(slice_equal(buf_slice(&first.json), buf_slice(&again.json)));
    form_deinit(&first);
    form_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_codec codec;
    struct arena arena = { 0 };
    struct codec_scope scope = { .arena = &arena };
    ProtobufCMessage *message = NULL;
    size_t count;
    const struct method_info *all = method_all(&count);
    err e;

    if (size < 2)
        return 0;
    const ProtobufCMessageDescriptor *type = all[data[0] % count].request;
    struct slice bytes = { data + 2, size - 2 };
    json_codec_init(&codec);
    if (data[1] % 2 == 0)
        e = json_decode(&codec, type, bytes, &scope, &message);
    else
        e = proto_decode(type, bytes, &scope, &message);
    if (e == ERR_OK)
        check_round_trips(&codec, message, &arena);
    else
        CHECK(scope.error.message[0] != 0);
    arena_deinit(&arena);
    json_codec_deinit(&codec);
    return 0;
}
