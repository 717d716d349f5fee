#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd_parse.h"

#define HEADER                                                                                     \
    "\"header\":{\"cluster_id\":\"14841639068965178418\",\"member_id\":\"1\",\"revision\":\"9\"}"

static void range_yields_every_field(void **state)
{
    struct arena arena = { 0 };
    struct etcd_range_result range;
    (void)state;

    err e = etcd_parse_range(
        SLICE_LITERAL("{" HEADER ",\"kvs\":[{\"key\":\"YQ==\",\"create_revision\":\"2\","
                      "\"mod_revision\":\"3\",\"version\":\"4\",\"value\":\"AP8=\","
                      "\"lease\":\"9223372036854775807\"}],\"count\":\"5\",\"more\":true}"),
        &arena, &range);
    assert_int_equal(e, ERR_OK);
    assert_true(range.header.cluster_id == 14841639068965178418u && range.header.revision == 9);
    assert_true(range.kv_count == 1 && range.total == 5 && range.more);
    assert_true(slice_equal(range.kvs[0].key, SLICE_LITERAL("a")));
    assert_true(slice_equal(range.kvs[0].value, SLICE_LITERAL("\0\xff")));
    assert_true(range.kvs[0].lease == INT64_MAX && range.kvs[0].create_revision == 2);
    arena_deinit(&arena);
}

static void absent_fields_are_zero(void **state)
{
    struct arena arena = { 0 };
    struct etcd_range_result range;
    struct etcd_txn_result txn;
    (void)state;

    assert_int_equal(etcd_parse_range(SLICE_LITERAL("{" HEADER "}"), &arena, &range), ERR_OK);
    assert_true(range.kv_count == 0 && range.total == 0 && !range.more);
    assert_int_equal(etcd_parse_txn(SLICE_LITERAL("{" HEADER "}"), &arena, &txn), ERR_OK);
    assert_true(!txn.succeeded && txn.op_count == 0);
    arena_deinit(&arena);
}

static void nested_transaction_is_read_inside_out(void **state)
{
    struct arena arena = { 0 };
    struct etcd_txn_result txn;
    (void)state;

    err e = etcd_parse_txn(
        SLICE_LITERAL("{" HEADER ",\"succeeded\":true,\"responses\":["
                      "{\"response_txn\":{\"succeeded\":true,\"responses\":["
                      "{\"response_delete_range\":{\"deleted\":\"2\"}}]}},"
                      "{\"response_put\":{\"header\":{}}},"
                      "{\"response_range\":{\"kvs\":[{\"key\":\"YQ==\"}],\"count\":\"1\"}}]}"),
        &arena, &txn);
    assert_int_equal(e, ERR_OK);
    assert_int_equal(txn.op_count, 3);
    assert_int_equal(txn.ops[0].kind, ETCD_OP_TXN);
    assert_true(txn.ops[0].txn->succeeded && txn.ops[0].txn->ops[0].deleted == 2);
    assert_int_equal(txn.ops[1].kind, ETCD_OP_PUT);
    assert_true(txn.ops[2].kind == ETCD_OP_RANGE && txn.ops[2].range.kv_count == 1);
    arena_deinit(&arena);
}

static void transactions_show_what_their_ranges_found(void **state)
{
    struct arena arena = { 0 };
    struct etcd_txn_result txn;
    (void)state;

    err e = etcd_parse_txn(
        SLICE_LITERAL("{" HEADER ",\"responses\":["
                      "{\"response_range\":{\"kvs\":[{\"key\":\"YQ==\",\"value\":\"Yg==\"}]}},"
                      "{\"response_range\":{}}]}"),
        &arena, &txn);
    assert_int_equal(e, ERR_OK);
    assert_true(etcd_txn_shows(&txn, 0, SLICE_LITERAL("b")));
    assert_false(etcd_txn_shows(&txn, 0, SLICE_LITERAL("c")));
    assert_false(etcd_txn_shows(&txn, 0, (struct slice){ 0 }));
    assert_true(etcd_txn_shows(&txn, 1, (struct slice){ 0 }));
    assert_false(etcd_txn_shows(&txn, 1, SLICE_LITERAL("b")));
    assert_false(etcd_txn_shows(&txn, 2, (struct slice){ 0 }));
    arena_deinit(&arena);
}

static void malformed_answers_are_corrupt(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "nonsense",
        "{}", /* Without a revision this is no answer of etcd's. */
        "{" HEADER ",\"kvs\":{}}",
        "{" HEADER ",\"kvs\":[1]}",
        "{" HEADER ",\"kvs\":[{\"key\":7}]}",
        "{" HEADER ",\"kvs\":[{\"key\":\"YQ=\"}]}",
        "{" HEADER ",\"kvs\":[{\"key\":\"Y*==\"}]}",
        "{" HEADER ",\"count\":\"12x\"}",
        "{" HEADER ",\"count\":\"9223372036854775808\"}",
        "{" HEADER ",\"count\":1.5}",
        "{" HEADER ",\"more\":\"yes\"}",
        "{\"header\":[]}",
    };
    struct arena arena = { 0 };
    struct etcd_range_result range;
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        if (etcd_parse_range(slice_from_text(bad[i]), &arena, &range) != ERR_CORRUPT)
            fail_msg("accepted: %s", bad[i]);
    }
    arena_deinit(&arena);
}

static void too_deep_a_transaction_is_corrupt(void **state)
{
    struct arena arena = { 0 };
    struct etcd_txn_result txn;
    struct buf json = { 0 };
    (void)state;

    buf_printf(&json, "{" HEADER);
    for (int i = 0; i < ETCD_TXN_DEPTH_MAX; i++)
        buf_printf(&json, ",\"responses\":[{\"response_txn\":{\"succeeded\":true");
    for (int i = 0; i < ETCD_TXN_DEPTH_MAX; i++)
        buf_printf(&json, "}}]");
    buf_printf(&json, "}");
    assert_int_equal(etcd_parse_txn(buf_slice(&json), &arena, &txn), ERR_CORRUPT);
    buf_deinit(&json);
    arena_deinit(&arena);
}

static void watch_events_and_compaction(void **state)
{
    struct arena arena = { 0 };
    struct etcd_watch_result watch;
    (void)state;

    err e = etcd_parse_watch(
        SLICE_LITERAL("{\"result\":{" HEADER ",\"events\":[{\"kv\":{\"key\":\"YQ==\","
                      "\"mod_revision\":\"8\"}},{\"type\":\"DELETE\",\"kv\":{\"key\":\"Yg==\","
                      "\"mod_revision\":\"9\"}}]}}"),
        &arena, &watch);
    assert_int_equal(e, ERR_OK);
    assert_true(watch.event_count == 2 && !watch.events[0].deleted && watch.events[1].deleted);
    e = etcd_parse_watch(SLICE_LITERAL("{\"result\":{" HEADER ",\"canceled\":true,"
                                       "\"compact_revision\":\"40\"}}"),
                         &arena, &watch);
    assert_int_equal(e, ERR_OK);
    assert_true(watch.canceled && watch.compact_revision == 40);
    e = etcd_parse_watch(SLICE_LITERAL("{\"error\":{\"grpc_code\":14}}"), &arena, &watch);
    assert_int_equal(e, ERR_CORRUPT);
    arena_deinit(&arena);
}

/* Whatever may have been carried out is an unknown outcome. */
static void failures_are_classified(void **state)
{
    static const struct {
        const char *json;
        err writes, reads;
    } rows[] = {
        { "{\"error\":\"etcdserver: request timed out\",\"code\":14}", ERR_DISCONNECTED,
          ERR_UNAVAILABLE },
        { "{\"error\":\"etcdserver: leader changed\",\"message\":\"x\",\"code\":14}",
          ERR_DISCONNECTED, ERR_UNAVAILABLE },
        { "{\"error\":\"etcdserver: duplicate key given in txn request\",\"code\":3}", ERR_INVALID,
          ERR_INVALID },
        { "{\"error\":\"etcdserver: requested lease not found\",\"code\":5}", ERR_NOT_FOUND,
          ERR_NOT_FOUND },
        { "{\"error\":\"etcdserver: too many requests\",\"code\":8}", ERR_FULL, ERR_FULL },
        { "{\"error\":\"etcdserver: mvcc: database space exceeded\",\"code\":8}", ERR_TIMEOUT,
          ERR_FULL },
        { "{\"error\":{\"grpc_code\":11,\"message\":\"compacted\"}}", ERR_NOT_FOUND,
          ERR_NOT_FOUND },
        { "{\"code\":16,\"message\":\"invalid auth token\"}", ERR_PERMISSION, ERR_PERMISSION },
        { "{\"code\":2,\"message\":\"?\"}", ERR_DISCONNECTED, ERR_UNAVAILABLE },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct etcd_failure failure;
        assert_int_equal(etcd_parse_failure(slice_from_text(rows[i].json), &failure), ERR_OK);
        assert_string_equal(err_name(etcd_failure_err(&failure, false)), err_name(rows[i].writes));
        assert_string_equal(err_name(etcd_failure_err(&failure, true)), err_name(rows[i].reads));
    }
}

static void status_tells_sizes_and_what_is_wrong(void **state)
{
    struct etcd_status_result status;
    (void)state;

    assert_int_equal(etcd_parse_status(
                         SLICE_LITERAL("{\"header\":{\"cluster_id\":\"7\"},\"version\":\"3.6.9\","
                                       "\"dbSize\":\"20480\",\"dbSizeQuota\":\"2147483648\","
                                       "\"leader\":\"9\",\"errors\":[\"memberID:9 alarm:NOSPACE \","
                                       "\"etcdserver: no leader\"]}"),
                         &status),
                     ERR_OK);
    assert_int_equal(status.database_bytes, 20480);
    assert_int_equal(status.quota_bytes, 2147483648u);
    assert_string_equal(status.errors, "memberID:9 alarm:NOSPACE ; etcdserver: no leader");

    struct buf many = { 0 };
    buf_printf(&many, "{\"header\":{\"cluster_id\":\"7\"},\"errors\":[\"x\"");
    for (int i = 0; i < 200; i++)
        buf_printf(&many, ",\"alarm %d\"", i);
    buf_printf(&many, "]}");
    assert_int_equal(etcd_parse_status(buf_slice(&many), &status), ERR_OK);
    assert_true(strlen(status.errors) < sizeof status.errors);
    assert_int_equal(strncmp(status.errors, "x; alarm 0; ", 12), 0);
    buf_deinit(&many);
}

static void lease_ids_above_two_to_the_53_are_exact(void **state)
{
    struct etcd_lease_result lease;
    (void)state;

    assert_int_equal(etcd_parse_lease(SLICE_LITERAL("{" HEADER ",\"ID\":\"7587883212345678901\","
                                                    "\"TTL\":\"5\"}"),
                                      &lease),
                     ERR_OK);
    assert_true(lease.lease_id == 7587883212345678901 && lease.ttl_s == 5);
    assert_int_equal(
        etcd_parse_lease(SLICE_LITERAL("{\"result\":{" HEADER ",\"ID\":\"5\"}}"), &lease), ERR_OK);
    assert_true(lease.lease_id == 5 && lease.ttl_s == 0);
}

/* Fed byte by byte, with braces inside of strings. */
static void stream_is_split_into_objects(void **state)
{
    static const char stream[] = "{\"a\":\"}{\\\"\"}\n {\"b\":[{}]}\r\n{\"c\"";
    static const char *const expected[] = { "{\"a\":\"}{\\\"\"}", "{\"b\":[{}]}" };
    struct etcd_splitter splitter = { 0 };
    struct buf buf = { 0 };
    struct slice object;
    size_t consumed, found = 0;
    bool bad;
    (void)state;

    for (size_t i = 0; i < sizeof stream - 1; i++) {
        buf_append(&buf, stream + i, 1);
        if (!etcd_splitter_step(&splitter, buf_slice(&buf), &object, &consumed, &bad)) {
            assert_false(bad);
            continue;
        }
        assert_true(found < 2 && slice_equal(object, slice_from_text(expected[found])));
        found++;
        buf_consume(&buf, consumed);
    }
    assert_int_equal(found, 2);
    splitter = (struct etcd_splitter){ 0 };
    assert_false(etcd_splitter_step(&splitter, SLICE_LITERAL("<html>"), &object, &consumed, &bad));
    assert_true(bad);
    buf_deinit(&buf);
}

/* Any single changed byte gives a result or ERR_CORRUPT: the sanitizers judge. */
static void damaged_answers_do_no_harm(void **state)
{
    static const char json[] = "{" HEADER ",\"succeeded\":true,\"responses\":[{\"response_range\":"
                               "{\"kvs\":[{\"key\":\"YWJj\",\"lease\":\"77\"}],\"count\":\"1\"}}]}";
    struct arena arena = { 0 };
    (void)state;

    for (size_t i = 0; i < sizeof json - 1; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            char damaged[sizeof json];
            struct etcd_txn_result txn;
            memcpy(damaged, json, sizeof json);
            damaged[i] = (char)(damaged[i] ^ (1 << bit));
            struct slice bytes = { (const uint8_t *)damaged, sizeof json - 1 };
            err e = etcd_parse_txn(bytes, &arena, &txn);
            assert_true(e == ERR_OK || e == ERR_CORRUPT);
            arena_reset(&arena);
        }
    }
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(range_yields_every_field),
        cmocka_unit_test(absent_fields_are_zero),
        cmocka_unit_test(nested_transaction_is_read_inside_out),
        cmocka_unit_test(transactions_show_what_their_ranges_found),
        cmocka_unit_test(malformed_answers_are_corrupt),
        cmocka_unit_test(too_deep_a_transaction_is_corrupt),
        cmocka_unit_test(watch_events_and_compaction),
        cmocka_unit_test(failures_are_classified),
        cmocka_unit_test(status_tells_sizes_and_what_is_wrong),
        cmocka_unit_test(lease_ids_above_two_to_the_53_are_exact),
        cmocka_unit_test(stream_is_split_into_objects),
        cmocka_unit_test(damaged_answers_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
