/* `holdfast status`: a page for people, with names, and with shards only where one must look. */
#include "client/cli/top/status_page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"

#define NODE_1 "4503599627370497"
#define NODE_2 "4503599627370498"
#define NODE_3 "4503599627370499"

static json_t *parse(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);

    CHECK(value != NULL);
    return value;
}

struct answers {
    json_t *cluster, *shards, *servers;
    struct buf page;
};

static json_t *cluster_of(const char *third_node, const char *more)
{
    char text[2048];

    snprintf(text, sizeof text,
             "{\"clusterId\":\"c-1\",\"shardCount\":64,\"nodes\":["
             "{\"replicaId\":\"" NODE_1 "\",\"name\":\"node-1\",\"live\":true,\"shardsOwned\":22,"
             "\"shardsHeld\":64,\"residentBytes\":\"35651584\",\"version\":\"0.1.0\","
             "\"zone\":\"a\",\"address\":\"10.0.0.1:7401\"},"
             "{\"replicaId\":\"" NODE_2 "\",\"name\":\"node-2\",\"live\":true,\"shardsHeld\":64,"
             "\"residentBytes\":\"35651584\",\"version\":\"0.1.0\"},%s]%s}",
             third_node, more);
    return parse(text);
}

static json_t *shard_of(uint32_t number, const char *third_state, const char *more)
{
    char text[1024];

    snprintf(text, sizeof text,
             "{\"shard\":%u,\"owner\":\"" NODE_1 "\",\"phase\":\"stable\",\"sessions\":\"2\",%s,"
             "\"replicas\":[{\"replicaId\":\"" NODE_1 "\",\"state\":\"ok\",\"commitIndex\":\"300\","
             "\"appliedIndex\":\"300\"},{\"replicaId\":\"" NODE_2 "\",\"state\":\"ok\","
             "\"commitIndex\":\"299\",\"appliedIndex\":\"299\"},{\"replicaId\":\"" NODE_3 "\","
             "\"state\":\"%s\",\"commitIndex\":\"95\",\"appliedIndex\":\"95\"}]}",
             number, more, third_state);
    return parse(text);
}

#define THIRD_UP                                                                                   \
    "{\"replicaId\":\"" NODE_3 "\",\"name\":\"node-3\",\"live\":true,\"residentBytes\":\"1024\","  \
    "\"version\":\"0.1.0\"}"
#define THIRD_AWAY "{\"replicaId\":\"" NODE_3 "\",\"shardsHeld\":64}"

static const char *print(struct answers *answers, bool every_shard)
{
    buf_clear(&answers->page);
    status_print(&(struct status_answers){ answers->cluster, answers->shards, answers->servers },
                 every_shard, &answers->page);
    buf_put_u8(&answers->page, 0);
    return (const char *)answers->page.data;
}

static void forget(struct answers *answers)
{
    json_decref(answers->cluster);
    json_decref(answers->shards);
    json_decref(answers->servers);
    buf_deinit(&answers->page);
}

static void has(const char *page, const char *text)
{
    if (strstr(page, text) == NULL)
        fail_msg("no \"%s\" in:\n%s", text, page);
}

static uint32_t lines(const char *page)
{
    uint32_t count = 0;

    for (; *page != 0; page++)
        count += *page == '\n';
    return count;
}

static void all_is_well_on_one_screen_without_ids(void **state)
{
    struct answers answers = {
        .cluster = cluster_of(THIRD_UP, ",\"coordinator\":\"coordinator\""),
        .shards = json_array(),
        .servers = parse("[{\"name\":\"gs-1\",\"incarnation\":\"1-7\",\"state\":\"live\"}]"),
    };
    (void)state;

    for (uint32_t i = 0; i < 64; i++)
        json_array_append_new(answers.shards, shard_of(i, "ok", "\"serving\":true"));
    const char *page = print(&answers, false);
    has(page, "cluster       c-1\nversion       0.1.0\nnodes         3 of 3 up\n"
              "shards        64 of 64 served\n"
              "replicas      192 of 192 up to date; 0 behind; largest lag 205 entries\n"
              "coordinator   coordinator\ngame servers  1 live, 0 expiring; 128 sessions\n");
    has(page, "node-1  up     22     64    34MiB");
    has(page, "gs-1");
    assert_null(strstr(page, "SHARD "));
    assert_null(strstr(page, NODE_1));
    assert_true(lines(page) < 24);
    page = print(&answers, true);
    has(page,
        "63     node-1  yes     stable  2         node-1, node-2 1 behind, node-3 205 behind");
    assert_null(strstr(page, NODE_1));
    assert_true(lines(page) > 64);
    forget(&answers);
}

static void sessions_hold_only_while_a_server_lives(void **state)
{
    struct answers answers = {
        .cluster = cluster_of(THIRD_UP, ",\"coordinator\":\"coordinator\""),
        .shards = json_array(),
        .servers = parse("[]"),
    };
    struct status_summary summary;
    (void)state;

    json_array_append_new(answers.shards, shard_of(0, "ok", "\"serving\":true"));
    has(print(&answers, false), "game servers  0 live, 0 expiring; 0 sessions, 2 lapsed\n");
    status_count(&(struct status_answers){ answers.cluster, answers.shards, NULL }, &summary);
    assert_int_equal(summary.sessions, 0);
    assert_int_equal(summary.sessions_lapsed, 2);
    json_t *expiring = parse("[{\"name\":\"gs\",\"incarnation\":\"1-7\",\"state\":\"expiring\"}]");
    status_count(&(struct status_answers){ answers.cluster, answers.shards, expiring }, &summary);
    assert_int_equal(summary.sessions, 2); /* Not every shard has freed its players. */
    json_decref(expiring);
    forget(&answers);
}

static void what_is_wrong_is_shown_and_nothing_else(void **state)
{
    struct answers answers = { .cluster = cluster_of(THIRD_AWAY, ",\"nodesDoubting\":2"),
                               .shards = json_array() };
    struct status_summary summary;
    (void)state;

    json_array_append_new(answers.shards, shard_of(0, "ok", "\"serving\":true"));
    json_array_append_new(answers.shards, shard_of(1, "unreachable", "\"serving\":true"));
    json_array_append_new(answers.shards, shard_of(2, "ok", "\"serving\":false"));
    json_array_append_new(answers.shards, shard_of(3, "catching_up", "\"serving\":true"));
    json_array_append_new(answers.shards, shard_of(4, "quarantined", "\"serving\":true"));
    json_t *moving = shard_of(5, "ok", "\"serving\":true");
    json_object_set_new(moving, "phase", json_string("joint"));
    json_array_append_new(answers.shards, moving);
    const char *page = print(&answers, false);
    has(page, "ETCD WAS RESTORED FROM A BACKUP: 2 nodes know a newer one.");
    has(page, "nodes         2 of 3 up\nshards        5 of 64 served; 6 were listed; 1 changing "
              "members\n"
              "replicas      15 of 18 up to date; 1 behind, 1 unreachable, 1 DAMAGED OR "
              "QUARANTINED; largest lag 205 entries\ncoordinator   NONE IS ELECTED\n");
    has(page, "5 shards to look at:\nSHARD");
    has(page, "\n1      node-1  yes     stable  2         node-1, node-2 1 behind, " NODE_3
              " unreachable\n");
    has(page, "\n2      node-1  NO ");
    has(page, NODE_3 " catching_up 205 behind\n");
    has(page, "\n5      node-1  yes     joint ");
    assert_null(strstr(page, "\n0      node-1"));
    status_count(&(struct status_answers){ answers.cluster, answers.shards, NULL }, &summary);
    json_t *machine = status_json(&summary);
    assert_int_equal(json_integer_value(json_object_get(machine, "nodesUp")), 2);
    assert_int_equal(json_integer_value(json_object_get(machine, "replicasBehind")), 1);
    assert_true(json_is_false(json_object_get(machine, "coordinatorElected")));
    json_decref(machine);
    forget(&answers);
}

static void a_broken_cluster_is_told_in_bounds(void **state)
{
    struct answers answers = { .cluster = cluster_of(THIRD_AWAY, ""), .shards = json_array() };
    (void)state;

    for (uint32_t i = 0; i < 4096; i++)
        json_array_append_new(answers.shards, shard_of(i, "unreachable", "\"serving\":false"));
    const char *page = print(&answers, false);
    has(page, "4096 shards to look at:");
    has(page, "and 4064 more: --shards lists all\n");
    assert_true(lines(page) < 60);
    assert_true(lines(print(&answers, true)) > 4096);
    forget(&answers);
}

static void odd_answers_do_no_harm(void **state)
{
    struct answers answers = {
        .cluster = parse("{\"nodes\":[{\"name\":\"\\u001b[2J\\u009b\\u202e\",\"live\":true},{}]}"),
        .shards = parse("[{},{\"replicas\":[{}],\"serving\":true}]"),
        .servers = parse("[{\"name\":\"\\u001b[31m\"}]"),
    };
    (void)state;

    const char *page = print(&answers, false);
    has(page, "nodes         0 of 2 up, 1 silent");
    has(page, "?[2J??");
    assert_null(strchr(page, '\x1b'));
    forget(&answers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_well_on_one_screen_without_ids),
        cmocka_unit_test(sessions_hold_only_while_a_server_lives),
        cmocka_unit_test(what_is_wrong_is_shown_and_nothing_else),
        cmocka_unit_test(a_broken_cluster_is_told_in_bounds),
        cmocka_unit_test(odd_answers_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
