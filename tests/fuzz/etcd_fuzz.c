/*
 * etcd_fuzz: what etcd's JSON gateway may answer. The first byte says which answer it is meant to
 * be; from STREAM on the bytes come as a stream of objects, in pieces of the second byte's size.
 */
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd_parse.h"
#include "tests/fuzz/fuzz.h"

enum kind { KIND_RANGE, KIND_TXN, KIND_LEASE, KIND_STATUS, KIND_WATCH, KIND_FAILURE, KIND_STREAM };

/* Every byte of what was parsed may be read. */
static uint64_t touch(struct slice bytes)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < bytes.size; i++)
        sum += bytes.data[i];
    return sum;
}

static void check_range(const struct etcd_range_result *range)
{
    for (size_t i = 0; i < range->kv_count; i++)
        CHECK(touch(range->kvs[i].key) + touch(range->kvs[i].value) < UINT64_MAX);
}

/* Recurses as deep as the parser lets a transaction nest. */
static void check_txn(const struct etcd_txn_result *txn, unsigned depth)
{
    CHECK(depth <= ETCD_TXN_DEPTH_MAX + 1);
    for (size_t i = 0; i < txn->op_count; i++) {
        if (txn->ops[i].kind == ETCD_OP_TXN)
            check_txn(txn->ops[i].txn, depth + 1);
        else if (txn->ops[i].kind == ETCD_OP_RANGE)
            check_range(&txn->ops[i].range);
    }
}

static void check_watch(struct slice json, struct arena *arena)
{
    struct etcd_watch_result watch;

    if (etcd_parse_watch(json, arena, &watch) != ERR_OK)
        return;
    for (size_t i = 0; i < watch.event_count; i++)
        CHECK(touch(watch.events[i].kv.key) + touch(watch.events[i].kv.value) < UINT64_MAX);
}

static void check_failure(struct slice json)
{
    struct etcd_failure failure;

    if (etcd_parse_failure(json, &failure) != ERR_OK)
        return;
    CHECK(memchr(failure.text, 0, sizeof failure.text) != NULL);
    CHECK(etcd_failure_err(&failure, true) != ERR_OK);
    CHECK(etcd_failure_err(&failure, false) != ERR_OK);
}

static void parse(uint8_t kind, struct slice json, struct arena *arena)
{
    struct etcd_range_result range;
    struct etcd_txn_result txn;
    struct etcd_lease_result lease;
    struct etcd_status_result status;

    switch (kind % KIND_STREAM) {
    case KIND_RANGE:
        if (etcd_parse_range(json, arena, &range) == ERR_OK)
            check_range(&range);
        break;
    case KIND_TXN:
        if (etcd_parse_txn(json, arena, &txn) == ERR_OK)
            check_txn(&txn, 0);
        break;
    case KIND_LEASE:
        (void)!etcd_parse_lease(json, &lease);
        break;
    case KIND_STATUS:
        (void)!etcd_parse_status(json, &status);
        break;
    case KIND_WATCH:
        check_watch(json, arena);
        break;
    default:
        check_failure(json);
        break;
    }
}

static void parse_stream(uint8_t kind, struct slice bytes, struct arena *arena)
{
    struct etcd_splitter splitter = { 0 };
    struct buf held = { 0 };
    bool bad = false;
    size_t piece = bytes.size > 0 ? bytes.data[0] + 1u : 1;

    for (size_t at = 1; at < bytes.size && !bad; at += piece) {
        struct slice object;
        size_t consumed;
        buf_append(&held, bytes.data + at, bytes.size - at < piece ? bytes.size - at : piece);
        while (etcd_splitter_step(&splitter, buf_slice(&held), &object, &consumed, &bad)) {
            CHECK(object.size > 0 && consumed >= object.size && consumed <= held.size);
            parse(kind, object, arena);
            buf_consume(&held, consumed);
        }
    }
    buf_deinit(&held);
}

void fuzz_one(struct slice input)
{
    struct arena arena = { 0 };

    if (input.size == 0)
        return;
    struct slice rest = { input.data + 1, input.size - 1 };
    if (input.data[0] < KIND_STREAM)
        parse(input.data[0], rest, &arena);
    else
        parse_stream((uint8_t)(input.data[0] - KIND_STREAM), rest, &arena);
    arena_deinit(&arena);
}

#define HEADER                                                                                     \
    "\"header\":{\"cluster_id\":\"14841639068965178418\",\"member_id\":\"1\","                     \
    "\"revision\":\"9\",\"raft_term\":\"2\"}"
#define KV                                                                                         \
    "{\"key\":\"YQ==\",\"create_revision\":\"2\",\"mod_revision\":\"3\","                          \
    "\"version\":\"4\",\"value\":\"AP8=\",\"lease\":\"9223372036854775807\"}"
#define WATCH                                                                                      \
    "{\"result\":{" HEADER ",\"watch_id\":\"1\",\"created\":true,"                                 \
    "\"compact_revision\":\"4\",\"canceled\":true,\"cancel_reason\":\"x\","                        \
    "\"events\":[{\"kv\":" KV "},{\"type\":\"DELETE\",\"kv\":{\"key\":\"YQ==\","                   \
    "\"mod_revision\":\"5\"},\"prev_kv\":" KV "}]}}"
#define ALIVE "{\"result\":{" HEADER ",\"ID\":\"7587\",\"TTL\":\"5\"}}"

void fuzz_seed(struct fuzz_seeds *seeds)
{
    fuzz_seed_add_kind(
        seeds, "range", KIND_RANGE,
        SLICE_LITERAL("{" HEADER ",\"kvs\":[" KV "," KV "],\"count\":\"5\",\"more\":true}"));
    fuzz_seed_add_kind(
        seeds, "txn", KIND_TXN,
        SLICE_LITERAL("{" HEADER ",\"succeeded\":true,\"responses\":[{\"response_txn\":{"
                      "\"succeeded\":true,\"responses\":[{\"response_delete_range\":{"
                      "\"deleted\":\"2\"}}]}},{\"response_put\":{\"header\":{}}},"
                      "{\"response_range\":{\"kvs\":[" KV "],\"count\":\"1\"}}]}"));
    fuzz_seed_add_kind(seeds, "grant", KIND_LEASE,
                       SLICE_LITERAL("{" HEADER ",\"ID\":\"7587\",\"TTL\":\"5\"}"));
    fuzz_seed_add_kind(seeds, "alive", KIND_LEASE, SLICE_LITERAL(ALIVE));
    fuzz_seed_add_kind(
        seeds, "status", KIND_STATUS,
        SLICE_LITERAL("{" HEADER ",\"version\":\"3.4.23\",\"dbSize\":\"24576\",\"leader\":\"1\"}"));
    fuzz_seed_add_kind(seeds, "watch", KIND_WATCH, SLICE_LITERAL(WATCH));
    fuzz_seed_add_kind(
        seeds, "failure", KIND_FAILURE,
        SLICE_LITERAL("{\"error\":\"etcdserver: requested lease not found\",\"code\":5,"
                      "\"message\":\"etcdserver: requested lease not found\"}"));
    fuzz_seed_add_kind(
        seeds, "stream-failure", KIND_FAILURE,
        SLICE_LITERAL("{\"error\":{\"grpc_code\":14,\"http_code\":503,\"message\":\"no leader\","
                      "\"http_status\":\"Service Unavailable\"}}"));
    fuzz_seed_add_kind(seeds, "stream-watch", KIND_STREAM + KIND_WATCH,
                       SLICE_LITERAL("\x05" WATCH "\n" WATCH "\n"));
    fuzz_seed_add_kind(seeds, "stream-alive", KIND_STREAM + KIND_LEASE,
                       SLICE_LITERAL("\xff" ALIVE "\n" ALIVE "\n"));
}
