/*
 * codec_bench: nanoseconds for the codec work of one grant at the router: decode the JSON request
 * and encode the JSON response, in both forms, and decode the response's protobuf. Prints one line
 * of JSON.
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
    "{\"write\":{\"version\":\"12\",\"replicasFsynced\":2,\"asOf\":\"c1.AAcAAAAHAAAAAwAB4kA\"},"
    "\"ledgerSeq\":\"12\",\"balances\":[{\"currency\":\"gold\","
    "\"amount\":\"100250\"}]}";
static const char plain_request[] =
    "{\"playerId\":\"p123456\",\"opId\":\"0192f8a3-7c1e-7abc-8def-0123456789ab\",\"authority\":"
    "\"session:AAECAwQFBgcICQoLDA0ODxAREhMUFRYX\",\"currencies\":{\"gold\":250},"
    "\"reason\":\"match_reward\"}";
static const char plain_response[] =
    "{\"write\":{\"version\":12,\"replicasFsynced\":2,\"asOf\":\"c1.AAcAAAAHAAAAAwAB4kA\"},"
    "\"ledgerSeq\":12,\"balances\":{\"gold\":100250}}";

struct bench {
    struct json_codec codec;
    struct arena arena;
    struct codec_scope scope;
    struct buf out;
};

static double decode_ns(struct bench *bench, enum json_form form, struct slice json)
{
    ProtobufCMessage *message;
    uint64_t begin = clock_ns();

    bench->scope.form = form;
    for (unsigned i = 0; i < ROUNDS; i++) {
        arena_reset(&bench->arena);
        CHECK(json_decode(&bench->codec, &holdfast__v1__grant_request__descriptor, json,
                          &bench->scope, &message) == ERR_OK);
    }
    return (double)(clock_ns() - begin) / ROUNDS;
}

static double encode_ns(struct bench *bench, enum json_form form, struct slice json)
{
    ProtobufCMessage *message;

    bench->scope.form = form;
    CHECK(json_decode(&bench->codec, &holdfast__v1__grant_response__descriptor, json, &bench->scope,
                      &message) == ERR_OK);
    uint64_t begin = clock_ns();
    for (unsigned i = 0; i < ROUNDS; i++) {
        buf_clear(&bench->out);
        json_encode(&bench->codec, form, message, &bench->out);
    }
    double ns = (double)(clock_ns() - begin) / ROUNDS;
    CHECK(slice_equal(buf_slice(&bench->out), json));
    return ns;
}

static double proto_ns(struct bench *bench, struct slice json)
{
    ProtobufCMessage *message;
    struct buf proto = { 0 };

    bench->scope.form = JSON_CANONICAL;
    CHECK(json_decode(&bench->codec, &holdfast__v1__grant_response__descriptor, json, &bench->scope,
                      &message) == ERR_OK);
    proto_encode(message, &proto);
    uint64_t begin = clock_ns();
    for (unsigned i = 0; i < ROUNDS; i++) {
        arena_reset(&bench->arena);
        CHECK(proto_decode(&holdfast__v1__grant_response__descriptor, buf_slice(&proto),
                           &bench->scope, &message) == ERR_OK);
    }
    double ns = (double)(clock_ns() - begin) / ROUNDS;
    buf_deinit(&proto);
    return ns;
}

int main(void)
{
    static struct bench bench;

    bench.scope.arena = &bench.arena;
    json_codec_init(&bench.codec);
    printf("{\"json_decode_request_ns\":%.0f",
           decode_ns(&bench, JSON_CANONICAL, SLICE_LITERAL(request)));
    printf(",\"json_encode_response_ns\":%.0f",
           encode_ns(&bench, JSON_CANONICAL, SLICE_LITERAL(response)));
    printf(",\"plain_decode_request_ns\":%.0f",
           decode_ns(&bench, JSON_PLAIN, SLICE_LITERAL(plain_request)));
    printf(",\"plain_encode_response_ns\":%.0f",
           encode_ns(&bench, JSON_PLAIN, SLICE_LITERAL(plain_response)));
    printf(",\"proto_decode_response_ns\":%.0f}\n", proto_ns(&bench, SLICE_LITERAL(response)));
    buf_deinit(&bench.out);
    arena_deinit(&bench.arena);
    json_codec_deinit(&bench.codec);
    return 0;
}
