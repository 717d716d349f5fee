#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/cluster/cluster_record.h"

static struct shard_record joint_shard(void)
{
    return (struct shard_record){ .generation = 1,
                                  .epoch = 7,
                                  .owner = UINT64_MAX,
                                  .config = 3,
                                  .phase = SHARD_JOINT,
                                  .member_count = 2,
                                  .members = { UINT64_MAX, 5 },
                                  .new_member_count = 3,
                                  .new_members = { UINT64_MAX, 5, 9 } };
}

static void shard_record_comes_back_as_written(void **state)
{
    struct shard_record in = joint_shard();
    struct shard_record out;
    struct buf json = { 0 };
    (void)state;

    shard_record_encode(&in, &json);
    assert_int_equal(shard_record_decode(buf_slice(&json), &out, NULL), ERR_OK);
    assert_memory_equal(&in, &out, sizeof in);
    buf_deinit(&json);
}

static void replica_ids_are_decimal_strings(void **state)
{
    struct shard_record in = joint_shard();
    struct buf json = { 0 };
    (void)state;

    shard_record_encode(&in, &json);
    buf_put_u8(&json, 0);
    assert_non_null(strstr((char *)json.data, "\"owner\":\"18446744073709551615\""));
    buf_deinit(&json);
}

static void other_records_come_back_as_written(void **state)
{
    struct cluster_record cluster = { .cluster_id = "018f2f3e-0000-7000-8000-000000000001",
                                      .generation = 2,
                                      .shard_count = 64,
                                      .replication_factor = 3,
                                      .created_by = "coordinator-0",
                                      .policy_seed = "{\"version\":\"1\"}" };
    struct node_record node = { .replica_id = UINT64_MAX - 4,
                                .name = "node-0",
                                .address = "10.0.0.1:7000",
                                .peer_address = "[::1]:7001",
                                .zone = "",
                                .version = "0.1.0",
                                .started_at_ms = 1714564800123 };
    struct server_record server = { .name = "place 1/job \"2\"",
                                    .ttl_ms = 10000,
                                    .state = SERVER_EXPIRING,
                                    .lease_id = INT64_MAX };
    struct coordinator_record leader = { .name = "c-0", .address = "c-0.svc:7200" };
    static struct cluster_record cluster_out;
    struct node_record node_out;
    struct server_record server_out;
    struct coordinator_record leader_out;
    struct buf json = { 0 };
    (void)state;

    node_record_mark_damaged(&node, 0);
    node_record_mark_damaged(&node, 13);
    node_record_mark_damaged(&node, 13);
    assert_int_equal(node.damaged_shards, 2);
    node_record_mark_quarantined(&node, CLUSTER_SHARDS_MAX - 1);
    assert_true(node_record_is_quarantined(&node, CLUSTER_SHARDS_MAX - 1));
    assert_false(node_record_may_own(&node, CLUSTER_SHARDS_MAX - 1));
    assert_false(node_record_may_own(&node, 13));
    assert_true(node_record_may_own(&node, 14));

    cluster_record_encode(&cluster, &json);
    assert_int_equal(cluster_record_decode(buf_slice(&json), &cluster_out, NULL), ERR_OK);
    assert_memory_equal(&cluster, &cluster_out, sizeof cluster);
    buf_clear(&json);
    node_record_encode(&node, &json);
    assert_int_equal(node_record_decode(buf_slice(&json), &node_out, NULL), ERR_OK);
    assert_memory_equal(&node, &node_out, sizeof node);
    buf_clear(&json);
    server_record_encode(&server, &json);
    assert_int_equal(server_record_decode(buf_slice(&json), &server_out, NULL), ERR_OK);
    assert_string_equal(server_out.name, server.name);
    assert_true(server_out.lease_id == INT64_MAX && server_out.state == SERVER_EXPIRING);
    assert_true(server_out.held_since_ms == 0);
    buf_clear(&json);
    server.state = SERVER_LIVE;
    server.held_since_ms = UINT64_MAX;
    server_record_encode(&server, &json);
    assert_int_equal(server_record_decode(buf_slice(&json), &server_out, NULL), ERR_OK);
    assert_true(server_out.held_since_ms == UINT64_MAX);
    buf_clear(&json);
    coordinator_record_encode(&leader, &json);
    assert_int_equal(coordinator_record_decode(buf_slice(&json), &leader_out, NULL), ERR_OK);
    assert_memory_equal(&leader, &leader_out, sizeof leader);
    buf_deinit(&json);
}

static void bad_shard_records_are_refused_by_field(void **state)
{
    static const struct {
        const char *json;
        const char *why;
    } bad[] = {
#define HEAD "{\"generation\":\"1\",\"epoch\":\"1\",\"config\":\"1\","
        { "", "not JSON" },
        { "[]", "not a JSON object" },
        { "{}", "generation: missing" },
        { "{\"generation\":1}", "generation: not a decimal string" },
        { "{\"generation\":\"01\"}", "generation: \"01\"" },
        { "{\"generation\":\"18446744073709551616\"}", "generation: \"18446744073709551616\"" },
        { HEAD "\"owner\":\"4\",\"phase\":\"stable\",\"members\":[\"1\"],\"new_members\":[]}",
          "owner: 4 is no member" },
        { HEAD "\"owner\":\"1\",\"phase\":\"odd\",\"members\":[\"1\"],\"new_members\":[]}",
          "phase: unknown value \"odd\"" },
        { HEAD "\"owner\":\"1\",\"phase\":\"stable\",\"members\":[\"1\",\"1\"],"
               "\"new_members\":[]}",
          "members: 1 stands twice" },
        { HEAD "\"owner\":\"1\",\"phase\":\"stable\",\"members\":[],\"new_members\":[]}",
          "members: empty" },
        { HEAD "\"owner\":\"1\",\"phase\":\"stable\",\"members\":[\"1\"],\"new_members\":[\"2\"]}",
          "while stable" },
        { HEAD "\"owner\":\"1\",\"phase\":\"joint\",\"members\":[\"1\"],\"new_members\":[\"1\"]}",
          "at most one each and not none" },
        { HEAD "\"owner\":\"1\",\"phase\":\"joint\",\"members\":[\"1\"],"
               "\"new_members\":[\"1\",\"2\",\"3\"]}",
          "2 added" },
        { HEAD "\"owner\":\"1\",\"phase\":\"stable\",\"members\":[\"1\",\"2\",\"3\",\"4\",\"5\","
               "\"6\",\"7\",\"8\"],\"new_members\":[]}",
          "members: 8 items, at most 7" },
#undef HEAD
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct shard_record record = { .epoch = 99 };
        struct record_error why = { "" };
        err e = shard_record_decode(slice_from_text(bad[i].json), &record, &why);
        assert_int_equal(e, ERR_INVALID);
        if (strstr(why.text, bad[i].why) == NULL)
            fail_msg("row %zu: \"%s\" lacks \"%s\"", i, why.text, bad[i].why);
        assert_int_equal(record.epoch, 99);
    }
}

static void limits_of_other_records_are_named(void **state)
{
    struct cluster_record cluster = { .cluster_id = "018f2f3e-0000-7000-8000-000000000001",
                                      .generation = 1,
                                      .shard_count = 48,
                                      .replication_factor = 3,
                                      .created_by = "c" };
    struct node_record node = { .replica_id = 1,
                                .name = "n",
                                .address = "host:70000",
                                .peer_address = "host:1",
                                .version = "1" };
    struct record_error why;
    (void)state;

    assert_int_equal(cluster_record_validate(&cluster, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "shard_count: 48"));
    assert_int_equal(node_record_validate(&node, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "address: port \"70000\""));
    memcpy(node.address, "h:1", 4);
    memcpy(node.name, "a\nb", 4);
    assert_int_equal(node_record_validate(&node, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "control character 0x0a"));
}

static void huge_record_is_refused_unparsed(void **state)
{
    static char text[CLUSTER_RECORD_SIZE_MAX + 2];
    struct shard_record record;
    struct record_error why;
    (void)state;

    memset(text, ' ', sizeof text - 1);
    assert_int_equal(shard_record_decode(slice_from_text(text), &record, &why), ERR_TOO_LARGE);
    assert_non_null(strstr(why.text, "at most 16384"));
}

static void unknown_fields_are_ignored(void **state)
{
    struct coordinator_record record;
    (void)state;

    assert_int_equal(
        coordinator_record_decode(
            SLICE_LITERAL("{\"name\":\"c\",\"address\":\"h:1\",\"later\":[1]}"), &record, NULL),
        ERR_OK);
}

static void incarnations_parse_print_and_order(void **state)
{
    struct incarnation a, b;
    char text[INCARNATION_TEXT_SIZE];
    static const char *const bad[] = { "",      "-",    "1",    "1-",
                                       "-1",    "01-1", "1-0",  "0-1",
                                       "1-1-1", "1-+1", "1 -1", "1-18446744073709551616" };
    (void)state;

    assert_int_equal(incarnation_parse(SLICE_LITERAL("2-18446744073709551615"), &a), ERR_OK);
    incarnation_print(a, text);
    assert_string_equal(text, "2-18446744073709551615");
    assert_int_equal(incarnation_parse(SLICE_LITERAL("3-1"), &b), ERR_OK);
    assert_true(incarnation_compare(a, b) < 0 && incarnation_compare(b, a) > 0);
    assert_int_equal(incarnation_compare(a, a), 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(incarnation_parse(slice_from_text(bad[i]), &a), ERR_INVALID);
}

static void keys_parse_to_what_made_them(void **state)
{
    struct incarnation inc = { 1, 42 };
    struct cluster_key key = cluster_key_shard("prod-1", 4095);
    struct cluster_key_parts parts;
    (void)state;

    assert_string_equal(key.text, "/holdfast/prod-1/shards/4095");
    parts = cluster_key_parse("prod-1", cluster_key_slice(&key));
    assert_true(parts.kind == CLUSTER_KEY_SHARD && parts.shard == 4095);
    key = cluster_key_node("prod-1", UINT64_MAX);
    parts = cluster_key_parse("prod-1", cluster_key_slice(&key));
    assert_true(parts.kind == CLUSTER_KEY_NODE && parts.replica_id == UINT64_MAX);
    key = cluster_key_server_known("prod-1", inc);
    assert_string_equal(key.text, "/holdfast/prod-1/gs/known/1-42");
    parts = cluster_key_parse("prod-1", cluster_key_slice(&key));
    assert_true(parts.kind == CLUSTER_KEY_SERVER_KNOWN && parts.incarnation.revision == 42);
    key = cluster_key_server_live("prod-1", inc);
    assert_int_equal(cluster_key_parse("prod-1", cluster_key_slice(&key)).kind,
                     CLUSTER_KEY_SERVER_LIVE);
    assert_int_equal(cluster_key_parse("prod", cluster_key_slice(&key)).kind, CLUSTER_KEY_UNKNOWN);
    key = cluster_key_policy("prod-1");
    assert_int_equal(cluster_key_parse("prod-1", cluster_key_slice(&key)).kind, CLUSTER_KEY_POLICY);
    assert_int_equal(
        cluster_key_parse("prod-1", SLICE_LITERAL("/holdfast/prod-1/shards/4096")).kind,
        CLUSTER_KEY_UNKNOWN);
    assert_false(cluster_name_valid("Prod"));
    assert_false(cluster_name_valid(""));
    assert_false(cluster_name_valid("a/b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shard_record_comes_back_as_written),
        cmocka_unit_test(replica_ids_are_decimal_strings),
        cmocka_unit_test(other_records_come_back_as_written),
        cmocka_unit_test(bad_shard_records_are_refused_by_field),
        cmocka_unit_test(limits_of_other_records_are_named),
        cmocka_unit_test(huge_record_is_refused_unparsed),
        cmocka_unit_test(unknown_fields_are_ignored),
        cmocka_unit_test(incarnations_parse_print_and_order),
        cmocka_unit_test(keys_parse_to_what_made_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
