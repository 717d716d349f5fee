/* BatchGetTargetMetadata over shards and a coordinator of the test's making. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/favorites.pb-c.h"
#include "router/rpc/fake/fake_router.h"
#include "router/rpc/metadata/metadata_gather.h"
#include "runtime/base/check.h"

#define TARGETS     8u
#define DEADLINE_MS 5000u

typedef Holdfast__V1__BatchGetTargetMetadataRequest get_request;
typedef Holdfast__V1__BatchGetTargetMetadataResponse get_response;

static int setup(void **state)
{
    CHECK(fake_router_setup(state) == 0);
    struct fixture *f = *state;

    metas_free(f->router.metas);
    f->router.options.metadata_memo_bytes = 1u << 20;
    f->router.options.metadata_age_ms = DEADLINE_MS;
    f->router.options.metadata_timeout_ms = DEADLINE_MS;
    f->router.metas = metas_new(&f->router);
    fake_cluster_elect(f->fake);
    return 0;
}

/* Of the first `count` targets. */
static void ask(struct fixture *f, size_t count)
{
    static char names[TARGETS][24], *targets[TARGETS];
    get_request message = HOLDFAST__V1__BATCH_GET_TARGET_METADATA_REQUEST__INIT;

    for (size_t i = 0; i < count; i++) {
        (void)snprintf(names[i], sizeof names[i], "t%zu", i);
        targets[i] = names[i];
    }
    message.target_ids = targets;
    message.n_target_ids = count;
    fake_router_call(f, METHOD_BATCH_GET_TARGET_METADATA, &message.base, DEADLINE_MS, NULL);
}

/* A shard tells a kilobyte of each target that it is asked for. */
static void answer(struct fixture *f, uint32_t place)
{
    static char attributes[1025];
    static uint8_t packed[16384];
    Holdfast__V1__TargetMetadata metadata[TARGETS], *list[TARGETS];
    get_response response = HOLDFAST__V1__BATCH_GET_TARGET_METADATA_RESPONSE__INIT;
    const struct slice body = f->fake->calls[place].body;

    memset(attributes, 'a', sizeof attributes - 1);
    get_request *asked =
        holdfast__v1__batch_get_target_metadata_request__unpack(NULL, body.size, body.data);
    assert_non_null(asked);
    for (size_t i = 0; i < asked->n_target_ids; i++) {
        holdfast__v1__target_metadata__init(&metadata[i]);
        metadata[i].target_id = asked->target_ids[i];
        metadata[i].attributes = attributes;
        list[i] = &metadata[i];
    }
    response.metadata = list;
    response.n_metadata = asked->n_target_ids;
    const size_t size = holdfast__v1__batch_get_target_metadata_response__pack(&response, packed);
    holdfast__v1__batch_get_target_metadata_request__free_unpacked(asked, NULL);
    fake_cluster_answer(f->fake, place, WIRE_OK, (struct slice){ packed, size });
}

static void answer_all(struct fixture *f)
{
    for (uint32_t i = 0; i < f->fake->call_count; i++) {
        if (f->fake->calls[i].open && f->fake->calls[i].method == METHOD_FIND_DEFINITIONS)
            fake_cluster_answer(f->fake, i, WIRE_OK, (struct slice){ 0 });
        else if (f->fake->calls[i].open)
            answer(f, i);
    }
}

static void assert_told(const struct fixture *f, size_t count, bool incomplete)
{
    get_response *told = holdfast__v1__batch_get_target_metadata_response__unpack(
        NULL, f->response.size, f->response.data);

    assert_non_null(told);
    assert_int_equal(told->n_metadata, count);
    assert_int_equal(told->metadata_incomplete, incomplete);
    holdfast__v1__batch_get_target_metadata_response__free_unpacked(told, NULL);
}

static void what_is_known_counts_while_it_waits_for_the_rest(void **state)
{
    struct fixture *f = *state;
    struct budget answers;

    budget_init(&answers, 20000); /* Three quarters of it are for reads. */
    f->router.options.answers = &answers;
    ask(f, TARGETS - 2);
    answer_all(f);
    assert_told(f, TARGETS - 2, false);
    assert_int_equal(budget_held(&answers), 0);
    ask(f, TARGETS - 1);
    assert_int_equal(f->answers, 1);
    assert_true(budget_held(&answers) > (TARGETS - 2) * 1024);
    answer_all(f);
    assert_told(f, TARGETS - 1, false);
    budget_take(&answers, 10000);
    ask(f, TARGETS);
    assert_int_equal(f->answers, 3); /* At once, what there is. */
    assert_told(f, TARGETS - 1, true);
    budget_give(&answers, 10000);
    budget_deinit(&answers);
    answer_all(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_known_counts_while_it_waits_for_the_rest, setup,
                                        fake_router_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
