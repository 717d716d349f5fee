/*
 * json_codec_convert: one message from stdin to stdout through runtime/codec.
 *   json_codec_convert holdfast.v1.GrantRequest json proto <in >out
 * Forms are json (canonical), plain (JSON) and proto. Exit 1: refused, with the reason on stderr.
 */
#include <stdio.h>
#include <string.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/codec/json_codec.h"
#include "runtime/codec/proto_codec.h"

#define INPUT_MAX (8u << 20)

/* Messages are found from the methods' own, through their fields. */
static const ProtobufCMessageDescriptor *find(const ProtobufCMessageDescriptor *type,
                                              const char *name, unsigned depth)
{
    if (strcmp(type->name, name) == 0)
        return type;
    for (unsigned i = 0; i < type->n_fields && depth > 0; i++) {
        if (type->fields[i].type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        const ProtobufCMessageDescriptor *found = find(type->fields[i].descriptor, name, depth - 1);
        if (found != NULL)
            return found;
    }
    return NULL;
}

static const ProtobufCMessageDescriptor *type_of(const char *name)
{
    size_t count;
    const struct method_info *all = method_all(&count);

    for (size_t i = 0; i < count; i++) {
        const ProtobufCMessageDescriptor *found = find(all[i].request, name, 8);
        if (found == NULL)
            found = find(all[i].response, name, 8);
        if (found != NULL)
            return found;
    }
    return NULL;
}

static enum json_form form_of(const char *name)
{
    return strcmp(name, "plain") == 0 ? JSON_PLAIN : JSON_CANONICAL;
}

int main(int argc, char **argv)
{
    const ProtobufCMessageDescriptor *type = argc == 4 ? type_of(argv[1]) : NULL;
    struct json_codec codec;
    struct arena arena = { 0 };
    struct codec_scope scope = { .arena = &arena };
    struct buf in = { 0 };
    struct buf out = { 0 };
    ProtobufCMessage *message;
    err e;

    if (type == NULL) {
        fprintf(stderr, "json_codec_convert: type, from and to are needed\n");
        return 2;
    }
    json_codec_init(&codec);
    in.size = fread(buf_reserve(&in, INPUT_MAX), 1, INPUT_MAX, stdin);
    scope.form = form_of(argv[2]);
    if (strcmp(argv[2], "proto") != 0)
        e = json_decode(&codec, type, buf_slice(&in), &scope, &message);
    else
        e = proto_decode(type, buf_slice(&in), &scope, &message);
    if (e != ERR_OK) {
        fprintf(stderr, "%s: %s\n", scope.error.field, scope.error.message);
        return 1;
    }
    if (strcmp(argv[3], "proto") != 0)
        json_encode(&codec, form_of(argv[3]), message, &out);
    else
        proto_encode(message, &out);
    fwrite(out.data, 1, out.size, stdout);
    buf_deinit(&in);
    buf_deinit(&out);
    arena_deinit(&arena);
    json_codec_deinit(&codec);
    return 0;
}
