#include "router/rpc/call/said_refusal.h"

#include "idl/error_code.h"
#include "runtime/codec/proto_codec.h"

const Holdfast__Internal__V1__Refusal *said_refusal(struct slice bytes, struct arena *arena)
{
    struct codec_scope scope = { .arena = arena };
    ProtobufCMessage *message;

    if (proto_decode(&holdfast__internal__v1__refusal__descriptor, bytes, &scope, &message) !=
        ERR_OK)
        return NULL;
    return (const Holdfast__Internal__V1__Refusal *)(const void *)message;
}

bool said_refusal_passes(const Holdfast__Internal__V1__Refusal *refusal)
{
    return refusal->code == CODE(UNIMPLEMENTED) ||
           (refusal->code == CODE(UNAVAILABLE) && !refusal->final);
}
