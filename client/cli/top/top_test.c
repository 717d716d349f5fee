#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/cli/top/top_alerts.h"
#include "client/cli/top/top_page.h"
#include "client/cli/top/top_view.h"
#include "runtime/base/check.h"

#define CLUSTER                                                                                    \
    "{'clusterId':'c1','shardCount':4,'shardsServing':4,'coordinator':'co',"                       \
    "'nodes':[{'replicaId':'7','name':'node-b','live':true,'shardsOwned':1,'shardsHeld':4},"       \
    "{'replicaId':'5','name':'node-a','live':true,'shardsOwned':3,'shardsHeld':4}]}"
#define ROUTER(at, answered, failed)                                                               \
    "'router':{'name':'r','life':'1','atUs':'" at "','answered':'" answered "','failed':'" failed  \
    "','buckets':['" answered "'],'inFlight':3}"
#define NODE(replica, at, more)                                                                    \
    "{'replicaId':'" replica "','life':'9','atUs':'" at "','shardsOwned':2,'shardsHeld':4,"        \
    "'sessions':'10','residentBytes':'104857600','diskState':'ok',"                                \
    "'diskFreeBytes':'10737418240'," more "}"
#define GRANT(ok, refused, unknown, buckets)                                                       \
    "{'method':'holdfast.v1.LedgerService/Grant','ok':'" ok "','refused':'" refused                \
    "','elsewhere':'1000','unknown':'" unknown "','buckets':[" buckets "]}"

struct fixture {
    struct top_facts *before, *after;
    struct top_view view;
    struct buf text;
};

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);

    f->before = top_facts_new();
    f->after = top_facts_new();
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    top_facts_free(f->before);
    top_facts_free(f->after);
    buf_deinit(&f->text);
    free(f);
    return 0;
}

static void assert_near(double value, double expected)
{
    double difference = value > expected ? value - expected : expected - value;

    if (difference > 1e-6)
        fail_msg("%f is not %f", value, expected);
}

/* JSON with ' for ". */
static json_t *parse(const char *text)
{
    struct buf json = { 0 };

    for (; *text != 0; text++)
        buf_put_u8(&json, *text == '\'' ? '"' : (uint8_t)*text);
    json_t *value = json_loadb((const char *)json.data, json.size, 0, NULL);
    buf_deinit(&json);
    assert_non_null(value);
    return value;
}

static void take(struct top_facts *facts, const char *cluster, const char *load,
                 const char *processes)
{
    json_t *one = parse(cluster), *two = parse(load);
    json_t *three = processes != NULL ? parse(processes) : NULL;

    top_facts_take(facts, one, two, three);
    json_decref(one);
    json_decref(two);
    json_decref(three);
}

/* A cluster of two: within two seconds node-a answers 200 grants, node-b restarts. */
static void two_looks(struct fixture *f)
{
    take(f->before, CLUSTER,
         "{" ROUTER("1000000", "100", "0") ",'nodes':[" NODE(
             "5", "5000000",
             "'methods':[" GRANT(
                 "100", "5", "0",
                 "'0','50','55'") "],"
                                  "'logSyncs':'10','logSyncUs':'1000','commitBuckets':['0','0','10'"
                                  "],"
                                  "'shards':[{'proposed':'7'},{'shard':2,'proposed':'50','reads':'"
                                  "10'}]") "," NODE("7", "90000000",
                                                    "'methods':[" GRANT("900", "0", "0",
                                                                        "'900'") "]") "]}",
         NULL);
    take(f->after, CLUSTER,
         "{" ROUTER("3000000", "500", "1") ",'nodes':[" NODE(
             "5", "7000000",
             "'methods':[" GRANT(
                 "300", "9", "2",
                 "'0','150','160','1'") ","
                                        "{'method':'holdfast.internal.v1.NodeService/"
                                        "TakeCut','ok':'20','buckets':['20']}],"
                                        "'logSyncs':'110','logSyncUs':'151000','commitBuckets':['0'"
                                        ",'0','100','10'],"
                                        "'replicasLag':'12','transfersOpen':'3','transfersOldestMs'"
                                        ":'1500',"
                                        "'shards':[{'proposed':'9'},{'shard':2,'proposed':'150','"
                                        "reads':'110'}]") ","
                                                          "{'replicaId':'7','life':'10','atUs':'"
                                                          "100','methods':[" GRANT("4", "0", "0",
                                                                                   "'4'") "]}"
                                                                                          "]}",
         "{'processes':[{'role':'router'},{'role':'coordinator','audit':'balanced'}]}");
}

static void make_view(struct fixture *f, enum top_sort sort)
{
    top_view_make(f->before, f->after, sort, &f->view);
    top_alerts_find(&f->view);
}

static void rates_are_what_came_between_two_looks(void **state)
{
    struct fixture *f = *state;

    two_looks(f);
    make_view(f, TOP_BY_RATE);
    const struct top_view *view = &f->view;
    assert_near(view->requests, 200);
    assert_near(view->failed, 0.5);
    assert_int_equal(view->node_count, 2);
    assert_string_equal(view->nodes[0].node->name, "node-a");
    /* 200 + 4 + 2 grants and 20 reads; what was asked elsewhere is no answer. */
    assert_near(view->nodes[0].calls, 113);
    assert_near(view->nodes[0].fsync, 1.5);
    /* 90 of the new ones within 128 to 256 us, 10 within 512. */
    assert_near(view->nodes[0].commit_p50, 0.128 + 0.128 * 50 / 90);
    assert_near(view->nodes[0].commit_p99, 0.256 + 0.256 * 9 / 10);
    assert_int_equal(view->method_count, 2);
    assert_string_equal(view->methods[0].name, "LedgerService/Grant");
    assert_near(view->methods[0].rate, 103);
    assert_near(view->methods[0].refused, 2);
    assert_near(view->methods[0].unknown, 1);
    assert_int_equal(view->shard_count, 2);
    assert_int_equal(view->shards[0].shard, 2);
    assert_near(view->shards[0].writes, 50);
    assert_near(view->shards[0].reads, 50);
    assert_string_equal(view->shards[0].owner_name, "node-a");
    assert_int_equal(view->transfers_oldest_ms, 1500);
}

static void a_process_that_was_restarted_has_no_rates_yet(void **state)
{
    struct fixture *f = *state;

    two_looks(f);
    make_view(f, TOP_BY_RATE);
    assert_string_equal(f->view.nodes[1].node->name, "node-b");
    assert_true(f->view.nodes[1].calls < 0 && f->view.nodes[1].commit_p50 < 0);
    /* Another router. */
    f->before->router.life = 77;
    make_view(f, TOP_BY_RATE);
    assert_true(f->view.requests < 0 && f->view.p99 < 0);
}

static void rows_are_put_in_the_order_that_was_asked_for(void **state)
{
    struct fixture *f = *state;

    two_looks(f);
    make_view(f, TOP_BY_LATENCY);
    assert_string_equal(f->view.methods[0].name, "LedgerService/Grant");
    make_view(f, TOP_BY_NAME);
    assert_string_equal(f->view.nodes[0].node->name, "node-a");
    assert_string_equal(f->view.methods[1].name, "NodeService/TakeCut");
}

static void a_page_is_what_people_see(void **state)
{
    static const char page[] =
        "holdfast c1   shards 4 of 4 served   coordinator co   audit balanced\n"
        "router r   requests/s 200   failed/s 0.5   p50 0.03ms   p99 0.06ms   in flight 3\n"
        "sessions 10   transfers in flight 3, oldest 1.5s   players held back 0\n"
        "! HoldfastRequestsFailing: 0.5 of 200 requests a second fail\n"
        "\n"
        "NODE             OWNED  HELD  CALLS/S COMMIT50 COMMIT99    FSYNC     LAG DISKFREE   "
        "MEMORY STATE\n"
        "node-a               2     4      113   0.20ms   0.49ms   1.50ms      12    10GiB   "
        "100MiB ok\n"
        "node-b               0     0        -        -        -        -       0       0B       "
        "0B\n"
        "\n"
        "METHOD AT THE NODES                   CALLS/S      P50      P99  REFUSED/S  UNKNOWN/S\n"
        "LedgerService/Grant                       103   0.13ms   0.25ms        2.0        1.0\n"
        "NodeService/TakeCut                        10   0.03ms   0.06ms        0.0        0.0\n"
        "\n"
        "SHARD   OWNER             WRITES/S   READS/S\n"
        "2       node-a                  50        50\n"
        "0       node-a                 1.0       0.0\n";
    struct fixture *f = *state;
    struct top_page_options options = { .width = 100, .height = 40 };

    two_looks(f);
    make_view(f, TOP_BY_RATE);
    top_page_print(&f->view, &options, &f->text);
    buf_put_u8(&f->text, 0);
    assert_string_equal((const char *)f->text.data, page);
}

static void a_page_keeps_to_its_window(void **state)
{
    struct fixture *f = *state;

    two_looks(f);
    f->view.facts = f->after;
    make_view(f, TOP_BY_RATE);
    for (uint32_t width = 1; width < 130; width += 3) {
        for (uint32_t height = 8; height < 30; height++) {
            struct top_page_options options = { .width = width,
                                                .height = height,
                                                .help = height % 2 == 0,
                                                .why = "no answer in time" };
            uint32_t lines = 0, column = 0;

            buf_clear(&f->text);
            top_page_print(&f->view, &options, &f->text);
            for (size_t i = 0; i < f->text.size; i++) {
                column = f->text.data[i] == '\n' ? 0 : column + 1;
                lines += f->text.data[i] == '\n';
                assert_true(column <= width);
            }
            assert_true(lines <= height);
        }
    }
}

/* Whatever a node calls itself, the cursor stays where it is. */
static void names_cannot_move_the_cursor(void **state)
{
    struct fixture *f = *state;
    struct top_page_options options = { .width = 100, .height = 40, .why = "\033[2J\n\r" };

    two_looks(f);
    snprintf(f->after->nodes[0].name, TOP_NAME_BYTES, "\033[31m\nx");
    snprintf(f->after->cluster_id, TOP_NAME_BYTES, "\xc3\xa4\x9b");
    make_view(f, TOP_BY_RATE);
    top_page_print(&f->view, &options, &f->text);
    for (size_t i = 0; i < f->text.size; i++)
        assert_true(f->text.data[i] == '\n' ||
                    (f->text.data[i] >= 0x20 && f->text.data[i] <= 0x7e));
}

static bool has_alert(const struct top_view *view, const char *name)
{
    for (uint32_t i = 0; i < view->alert_count; i++) {
        if (strcmp(view->alerts[i].alert, name) == 0)
            return true;
    }
    return false;
}

/* Every alert that is told is one of the rules', with a runbook. */
static void what_is_wrong_is_told_by_the_names_of_the_alerts(void **state)
{
    static const char *const expected[] = {
        "HoldfastShardsUnserved", "HoldfastNoCoordinator",      "HoldfastAuditImbalance",
        "HoldfastTransfersStuck", "HoldfastSlowRequests",       "HoldfastRequestsFailing",
        "HoldfastNodeMissing",    "HoldfastDiskFull",           "HoldfastDiskLow",
        "HoldfastApplyBehind",    "HoldfastReplicaQuarantined", "HoldfastSlowDisk",
    };
    struct fixture *f = *state;

    two_looks(f);
    f->after->shards_serving = 3;
    f->after->coordinator[0] = 0;
    snprintf(f->after->audit, sizeof f->after->audit, "imbalanced");
    memset(&f->after->router.latency, 0, sizeof f->after->router.latency);
    f->after->router.latency.buckets[12] = 1000;
    f->after->nodes[0].transfers_oldest_ms = 10001;
    f->after->nodes[0].sync_us += 10000000;
    f->after->nodes[0].unapplied = 20001;
    f->after->nodes[0].shards_quarantined = 1;
    snprintf(f->after->nodes[0].disk_state, sizeof f->after->nodes[0].disk_state, "full");
    snprintf(f->after->nodes[1].disk_state, sizeof f->after->nodes[1].disk_state, "low");
    f->after->nodes[1].live = false;
    make_view(f, TOP_BY_RATE);
    assert_int_equal(f->view.alert_count, ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        char path[512];
        if (!has_alert(&f->view, expected[i]))
            fail_msg("%s is not told", expected[i]);
        snprintf(path, sizeof path, HOLDFAST_RUNBOOKS "/%s.md", expected[i]);
        assert_int_equal(access(path, R_OK), 0);
    }
}

static void what_is_not_known_is_null_in_json(void **state)
{
    struct fixture *f = *state;

    two_looks(f);
    make_view(f, TOP_BY_RATE);
    json_t *page = top_page_json(&f->view, NULL);
    const json_t *nodes = json_object_get(page, "nodes");
    assert_near(json_real_value(json_object_get(json_array_get(nodes, 0), "callsPerS")), 113);
    assert_true(json_is_null(json_object_get(json_array_get(nodes, 1), "callsPerS")));
    assert_string_equal(json_string_value(json_object_get(page, "audit")), "balanced");
    json_decref(page);
}

/* An older router, nodes that do not answer, fields of other types: nothing is made up. */
static void answers_of_other_shapes_are_taken_as_far_as_they_go(void **state)
{
    struct fixture *f = *state;
    struct top_page_options options = { .width = 80, .height = 24 };

    take(f->before, "{}", "{}", NULL);
    take(f->after, "{'nodes':[{'replicaId':'7','live':true}],'shardCount':'x'}",
         "{'nodes':[{},3,{'methods':7,'shards':[{'shard':99999}]}],'router':[]}", "[]");
    make_view(f, TOP_BY_RATE);
    assert_true(f->view.requests < 0);
    assert_int_equal(f->view.shard_count, 0);
    assert_true(has_alert(&f->view, "HoldfastNodeMissing"));
    top_page_print(&f->view, &options, &f->text);
    assert_true(f->text.size > 0);
}

static const char *targets_of(struct fixture *f, struct top_targets *targets)
{
    struct top_page_options options = { .width = 100, .height = 40, .targets = targets };
    const char *table;

    buf_clear(&f->text);
    top_page_print(&f->view, &options, &f->text);
    buf_put_u8(&f->text, 0);
    table = strstr((const char *)f->text.data, "collection favorites");
    assert_non_null(table);
    return table;
}

static void take_targets(struct top_targets *targets, const char *answer)
{
    json_t *list = parse(answer);

    top_targets_take(targets, list, "");
    json_decref(list);
}

static void the_targets_that_gain_the_most_come_first(void **state)
{
    static const char first[] =
        "collection favorites                      IN 24 HOURS    GAINS/S\n"
        "old                                                90          -\n"
        "calm                                               10          -\n";
    static const char second[] =
        "collection favorites                      IN 24 HOURS    GAINS/S\n"
        "viral                                              40         20\n"
        "calm                                               11        0.5\n"
        "old                                                80        0.0\n";
    struct fixture *f = *state;
    struct top_targets targets;

    two_looks(f);
    make_view(f, TOP_BY_RATE);
    top_targets_init(&targets, "collection", "favorites");
    take_targets(&targets, "{'asOfFromMs':'1000','entries':[{'targetId':'old','count':'90'},"
                           "{'targetId':'calm','count':'10'}]}");
    assert_string_equal(targets_of(f, &targets), first);
    /* A router that remembers its list says no more than it did. */
    take_targets(&targets, "{'asOfFromMs':'1000','entries':[]}");
    assert_string_equal(targets_of(f, &targets), first);
    take_targets(&targets, "{'asOfFromMs':'3000','entries':[{'targetId':'old','count':'80'},"
                           "{'targetId':'viral','count':'40'},{'targetId':'calm','count':'11'}]}");
    assert_string_equal(targets_of(f, &targets), second);
    top_targets_take(&targets, NULL, "no collection of that name");
    assert_non_null(
        strstr(targets_of(f, &targets), "! an older list: no collection of that name\n"));
    json_t *page = top_page_json(&f->view, &targets);
    const json_t *told = json_object_get(page, "targets");
    assert_int_equal(json_array_size(json_object_get(told, "rows")), 3);
    assert_near(
        json_real_value(json_object_get(json_array_get(json_object_get(told, "rows"), 0), "perS")),
        20);
    json_decref(page);
    top_targets_deinit(&targets);
}

/* A full list leaves out what has less than its last one: that much the newcomer had at most. */
static void a_newcomer_to_a_full_list_gains_what_it_has_above_the_last(void **state)
{
    struct fixture *f = *state;
    struct top_targets targets;
    json_t *list = json_pack("{s:s, s:[]}", "asOfFromMs", "1000", "entries");

    for (int i = 0; i < (int)TOP_TARGETS_MAX + 5; i++) {
        char id[16];
        snprintf(id, sizeof id, "g%d", i);
        json_array_append_new(json_object_get(list, "entries"),
                              json_pack("{s:s, s:i}", "targetId", id, "count", 100));
    }
    top_targets_init(&targets, "collection", "favorites");
    top_targets_take(&targets, list, "");
    json_decref(list);
    assert_int_equal(targets.after->target_count, TOP_TARGETS_MAX);
    assert_int_equal(targets.row_count, TOP_TARGET_ROWS_MAX);
    take_targets(&targets, "{'asOfFromMs':'2000','entries':[{'targetId':'viral','count':'130'}]}");
    assert_string_equal(targets.rows[0].target->id, "viral");
    assert_near(targets.rows[0].rate, 30);
    assert_int_equal(targets.row_count, 1);
    top_targets_deinit(&targets);
    (void)f;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rates_are_what_came_between_two_looks),
        TEST(a_process_that_was_restarted_has_no_rates_yet),
        TEST(rows_are_put_in_the_order_that_was_asked_for),
        TEST(a_page_is_what_people_see),
        TEST(a_page_keeps_to_its_window),
        TEST(names_cannot_move_the_cursor),
        TEST(what_is_wrong_is_told_by_the_names_of_the_alerts),
        TEST(what_is_not_known_is_null_in_json),
        TEST(the_targets_that_gain_the_most_come_first),
        TEST(a_newcomer_to_a_full_list_gains_what_it_has_above_the_last),
        TEST(answers_of_other_shapes_are_taken_as_far_as_they_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
