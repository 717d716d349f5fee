/*
 * codec_bench: nanoseconds for the codec work of one grant at the router: decode the JSON request,
 * encode the JSON response, decode the response's protobuf. Prints one line of JSON.
 */
#include <stdio.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "load_stat.h"
#include "runtime/base/check.h"
#include "runtime/codec/json_codec.h"
#include "runtime/codec/proto_codec.h"

#define ROUNDS 300000u

static const char request[] =
    "{\"playerId\":\"p123456\",\"opId\":\"0192f8a3-7c1e-7abc-8def-0123456789ab\",\"authority\":"
    "\"session:AAECAwQFBgcICQoLDA0ODxAREhMUFRYX\",\"currencies\":[{\"currency\":"
    "\"gold\",\"amount\":\"250\"}],\"reason\":\"match_reward\"}";
static const char response[] =
    "{\"write\":{\"version\":\"12\",\"dot\":{\"epoch\":\"7\",\"owner\":\"3\",\"counter\":"
    "\"123456\"},\"replicasFsynced\":2},\"ledgerSeq\":\"12\",\"balances\":[{\"currency\":\"gold\","
    "\"amount\":\"100250\"}]}";

int main(void)
{
    struct json_codec codec;
    struct arena arena = { 0 };
    struct codec_scope scope = { .arena = &arena };
    struct buf out = { 0 };
    struct buf proto = { 0 };
    ProtobufCMessage *message;
    uint64_t begin;

    json_codec_init(&codec);
    begin = clock_ns();
    for (unsigned i = 0; i < ROUNDS; i++) {
        arena_reset(&arena);
        CHECK(json_decode(&codec, &holdfast__v1__grant_request__descriptor, SLICE_LITERAL(request),
                          &scope, &message) == ERR_OK);
    }
    double decode_ns = (double)(clock_ns() - begin) / ROUNDS;

    CHECK(json_decode(&codec, &holdfast__v1__grant_response__descriptor, SLICE_LITERAL(response),
                      &scope, &message) == ERR_OK);
    begin = clock_ns();
    for (unsigned i = 0; i < ROUNDS; i++) {
        buf_clear(&out);
        json_encode(&codec, message, &out);
    }
    double encode_ns = (double)(clock_ns() - begin) / ROUNDS;
    CHECK(slice_equal(buf_slice(&out), SLICE_LITERAL(response)));

    proto_encode(message, &proto);
    begin = clock_ns();
    for (unsigned i = 0; i < ROUNDS; i++) {
        arena_reset(&arena);
        CHECK(proto_decode(&holdfast__v1__grant_response__descriptor, buf_slice(&proto), &scope,
                           &message) == ERR_OK);
    }
    double proto_ns = (double)(clock_ns() - begin) / ROUNDS;

    printf("{\"json_decode_request_ns\":%.0f,\"json_encode_response_ns\":%.0f,"
           "\"proto_decode_response_ns\":%.0f}\n",
           decode_ns, encode_ns, proto_ns);
    buf_deinit(&out);
    buf_deinit(&proto);
    arena_deinit(&arena);
    json_codec_deinit(&codec);
    return 0;
}
