#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "node/io/report/node_load.h"

static Holdfast__Internal__V1__GetNodeLoadResponse *ask(const struct node_load_sources *sources)
{
    struct buf out = { 0 };

    node_load_append(sources, &out);
    Holdfast__Internal__V1__GetNodeLoadResponse *answer =
        holdfast__internal__v1__get_node_load_response__unpack(NULL, out.size, out.data);
    buf_deinit(&out);
    assert_non_null(answer);
    assert_non_null(answer->load);
    return answer;
}

static void a_node_that_starts_tells_who_it_is(void **state)
{
    const struct node_load_sources sources = { .replica_id = 17, .life = 5 };

    (void)state;
    Holdfast__Internal__V1__GetNodeLoadResponse *answer = ask(&sources);
    assert_int_equal(answer->load->replica_id, 17);
    assert_int_equal(answer->load->life, 5);
    assert_true(answer->load->at_us > 0 && answer->load->resident_bytes > 0);
    assert_string_equal(answer->load->disk_state, "ok");
    assert_int_equal(answer->load->n_methods, 0);
    assert_int_equal(answer->load->n_shards, 0);
    holdfast__internal__v1__get_node_load_response__free_unpacked(answer, NULL);
}

static void methods_that_were_called_are_told_with_their_latencies(void **state)
{
    struct metrics *metrics = metrics_new();
    struct node_metrics *node = node_metrics_new(metrics);
    const struct node_load_sources sources = { .replica_id = 17, .metrics = node };

    (void)state;
    node_metrics_call(node, METHOD_GRANT, REPLY_OK, 60);
    node_metrics_call(node, METHOD_GRANT, REPLY_OK, 200);
    node_metrics_call(node, METHOD_GRANT, REPLY_REFUSED, 65);
    node_metrics_call(node, METHOD_GET_PROFILE, REPLY_NOT_OWNER, UINT32_MAX);
    histogram_observe(node_metrics_commits(node), 100);
    Holdfast__Internal__V1__GetNodeLoadResponse *answer = ask(&sources);
    const Holdfast__V1__NodeLoad *load = answer->load;
    assert_int_equal(load->n_methods, 2);
    assert_string_equal(load->methods[0]->method, "holdfast.v1.ProfileService/GetProfile");
    assert_int_equal(load->methods[0]->elsewhere, 1);
    assert_int_equal(load->methods[1]->ok, 2);
    assert_int_equal(load->methods[1]->refused, 1);
    assert_int_equal(load->methods[1]->n_buckets, 3);
    assert_int_equal(load->methods[1]->buckets[0], 1);
    assert_int_equal(load->methods[1]->buckets[1], 1);
    assert_int_equal(load->methods[1]->buckets[2], 1);
    assert_int_equal(load->n_commit_buckets, 2);
    assert_int_equal(load->commit_buckets[1], 1);
    holdfast__internal__v1__get_node_load_response__free_unpacked(answer, NULL);
    node_metrics_free(node);
    metrics_free(metrics);
}

static void damaged_shards_are_held_and_not_owned(void **state)
{
    struct shard_views *views = shard_views_new(4);
    const struct node_load_sources sources = { .replica_id = 17, .views = views };

    (void)state;
    shard_views_publish_damaged(views, 2);
    Holdfast__Internal__V1__GetNodeLoadResponse *answer = ask(&sources);
    assert_int_equal(answer->load->shards_held, 1);
    assert_int_equal(answer->load->shards_owned, 0);
    assert_int_equal(answer->load->n_shards, 0);
    holdfast__internal__v1__get_node_load_response__free_unpacked(answer, NULL);
    shard_views_free(views);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_starts_tells_who_it_is),
        cmocka_unit_test(methods_that_were_called_are_told_with_their_latencies),
        cmocka_unit_test(damaged_shards_are_held_and_not_owned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
