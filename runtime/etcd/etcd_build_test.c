#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/etcd/etcd_build.h"

static void assert_built(struct buf *json, const char *expected)
{
    buf_put_u8(json, 0);
    assert_string_equal((const char *)json->data, expected);
    buf_deinit(json);
}

static void transaction_prints_compares_and_branches(void **state)
{
    struct etcd_txn *txn = etcd_txn_new();
    struct buf json = { 0 };
    (void)state;

    etcd_txn_compare(txn, SLICE_LITERAL("a"), ETCD_MOD_REVISION, ETCD_EQUAL, 7);
    etcd_txn_compare(txn, SLICE_LITERAL("b"), ETCD_LEASE, ETCD_NOT_EQUAL, 8);
    etcd_txn_put(txn, ETCD_THEN, SLICE_LITERAL("a"), SLICE_LITERAL("v"), INT64_MAX);
    etcd_txn_get(txn, ETCD_ELSE, SLICE_LITERAL("a"));
    etcd_build_txn(txn, &json);
    assert_built(&json, "{\"compare\":[{\"key\":\"YQ==\",\"result\":\"EQUAL\",\"target\":\"MOD\","
                        "\"mod_revision\":\"7\"},{\"key\":\"Yg==\",\"result\":\"NOT_EQUAL\","
                        "\"target\":\"LEASE\",\"lease\":\"8\"}],\"success\":[{\"request_put\":"
                        "{\"key\":\"YQ==\",\"value\":\"dg==\",\"lease\":\"9223372036854775807\"}}],"
                        "\"failure\":[{\"request_range\":{\"key\":\"YQ==\"}}]}");
    etcd_txn_free(txn);
}

static void nested_transaction_is_an_operation(void **state)
{
    struct etcd_txn *outer = etcd_txn_new();
    struct etcd_txn *inner = etcd_txn_new();
    struct buf json = { 0 };
    (void)state;

    etcd_txn_delete(inner, ETCD_THEN, SLICE_LITERAL("a"));
    etcd_txn_nest(outer, ETCD_THEN, inner);
    etcd_build_txn(outer, &json);
    assert_built(&json, "{\"compare\":[],\"success\":[{\"request_txn\":{\"compare\":[],\"success\":"
                        "[{\"request_delete_range\":{\"key\":\"YQ==\"}}],\"failure\":[]}}],"
                        "\"failure\":[]}");
    etcd_txn_free(outer);
}

static void prefix_ends_behind_its_last_key(void **state)
{
    struct etcd_range range = { .key = SLICE_LITERAL("a\xff"), .prefix = true };
    struct buf json = { 0 };
    (void)state;

    etcd_build_range(&range, &json);
    assert_built(&json, "{\"key\":\"Yf8=\",\"range_end\":\"Yg==\"}");
    range.after = SLICE_LITERAL("a\xff"
                                "b");
    etcd_build_range(&range, &json);
    assert_built(&json, "{\"key\":\"Yf9iAA==\",\"range_end\":\"Yg==\"}");
    range.after = SLICE_LITERAL("");
    range.key = SLICE_LITERAL("\xff\xff");
    etcd_build_range(&range, &json);
    assert_built(&json, "{\"key\":\"//8=\",\"range_end\":\"AA==\"}");
    range.key = SLICE_LITERAL("");
    etcd_build_range(&range, &json);
    assert_built(&json, "{\"key\":\"AA==\",\"range_end\":\"AA==\"}");
}

/* Somebody else's, whom we allow no such key. */
static void a_page_may_begin_behind_a_key_of_any_length(void **state)
{
    static uint8_t long_key[ETCD_KEY_MAX + 1000];
    struct etcd_range range = { .key = SLICE_LITERAL("a"), .after = { long_key, sizeof long_key } };
    struct buf json = { 0 };
    (void)state;

    etcd_build_range(&range, &json);
    assert_true(json.size > sizeof long_key * 4 / 3);
    buf_deinit(&json);
}

static void watch_and_lease_bodies(void **state)
{
    struct buf json = { 0 };
    (void)state;

    etcd_build_watch(SLICE_LITERAL("k"), false, 12, &json);
    assert_built(&json, "{\"create_request\":{\"key\":\"aw==\",\"start_revision\":\"12\","
                        "\"progress_notify\":true}}");
    etcd_build_lease_grant(0, 5, &json);
    assert_built(&json, "{\"TTL\":\"5\"}");
    etcd_build_lease_id(7587883212345678901, &json);
    assert_built(&json, "{\"ID\":\"7587883212345678901\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transaction_prints_compares_and_branches),
        cmocka_unit_test(nested_transaction_is_an_operation),
        cmocka_unit_test(prefix_ends_behind_its_last_key),
        cmocka_unit_test(a_page_may_begin_behind_a_key_of_any_length),
        cmocka_unit_test(watch_and_lease_bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
