#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/refusal.pb-c.h"
#include "idl/error_code.h"
#include "router/rpc/call/caller.h"
#include "router/rpc/fake/fake_cluster.h"
#include "runtime/base/check.h"

struct told {
    uint32_t count;
    bool failed;
    Holdfast__V1__ErrorCode code;
    Holdfast__V1__Action action;
    char holder[16];
    char body[64];
    struct caller_call *free_too; /* Freed in `done`, as a request's arena would be. */
};

struct fixture {
    struct loop *loop;
    struct fake_cluster *fake;
    struct caller *caller;
    struct told told;
    uint32_t calls_wanted;
};

static void done(struct caller_call *call, const struct caller_result *result)
{
    struct told *told = call->user;

    told->count++;
    told->failed = result->detail != NULL;
    told->code = told->failed ? result->detail->code : CODE(UNSPECIFIED);
    told->action = told->failed ? result->detail->action : 0;
    if (told->failed && result->detail->about != NULL && result->detail->about->holder != NULL)
        snprintf(told->holder, sizeof told->holder, "%s",
                 result->detail->about->holder->incarnation);
    CHECK(result->body.size < sizeof told->body);
    if (result->body.size > 0)
        memcpy(told->body, result->body.data, result->body.size);
    told->body[result->body.size] = 0;
    free(told->free_too);
    told->free_too = NULL;
}

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);

    CHECK(loop_new(&f->loop) == ERR_OK);
    f->fake = mem_zalloc(sizeof *f->fake);
    fake_cluster_init(f->fake, 4);
    f->caller = caller_new(&(struct caller_options){
        .loop = f->loop, .map = f->fake->map, .port = fake_cluster_port(f->fake), .seed = 7 });
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    caller_free(f->caller);
    fake_cluster_deinit(f->fake);
    free(f->fake);
    loop_free(f->loop);
    free(f);
    return 0;
}

static struct caller_call *start_method(struct fixture *f, uint16_t method, uint32_t shard,
                                        uint32_t budget_ms)
{
    struct caller_call *call = mem_zalloc(sizeof *call);

    *call = (struct caller_call){ .method = method,
                                  .priority = 1,
                                  .shard = shard,
                                  .deadline_ms = loop_now_ms(f->loop) + budget_ms,
                                  .body = SLICE_LITERAL("request"),
                                  .done = done,
                                  .user = &f->told };
    caller_start(f->caller, call);
    return call;
}

static struct caller_call *start(struct fixture *f, uint32_t shard, uint32_t budget_ms)
{
    return start_method(f, METHOD_GRANT, shard, budget_ms);
}

static bool was_told(void *user)
{
    return ((struct fixture *)user)->told.count > 0;
}

static bool calls_came(void *user)
{
    struct fixture *f = user;

    return f->fake->call_count >= f->calls_wanted;
}

static bool second_call_came(void *user)
{
    return ((struct fixture *)user)->fake->call_count >= 2;
}

static void a_call_goes_to_the_owner_and_its_answer_is_told_once(void **state)
{
    struct fixture *f = *state;

    fake_cluster_set_owner(f->fake, 2, 3, 5);
    f->told.free_too = start(f, 2, 1000);
    assert_int_equal(f->fake->call_count, 1);
    assert_int_equal(f->fake->calls[0].node, 3);
    assert_int_equal(f->fake->calls[0].method, METHOD_GRANT);
    assert_in_range(f->fake->calls[0].deadline_ms, 1, 1000);
    fake_cluster_answer(f->fake, 0, WIRE_OK, SLICE_LITERAL("answer"));
    assert_int_equal(f->told.count, 1);
    assert_false(f->told.failed);
    assert_string_equal(f->told.body, "answer");
    assert_int_equal(caller_stats(f->caller).open, 0);
}

/* Behind a cut the owner says nothing for long: another member takes documents, too. */
static void what_any_member_takes_is_sent_to_the_next_that_is_reached(void **state)
{
    struct fixture *f = *state;

    fake_cluster_set_owner(f->fake, 2, 3, 5);
    f->fake->down[1] = true;
    f->told.free_too = start_method(f, METHOD_PUT_DOCUMENT, 2, 10000);
    assert_int_equal(f->fake->calls[0].node, 3);
    assert_in_range(f->fake->calls[0].deadline_ms, 1, 1500);
    fake_cluster_fail(f->fake, 0, ERR_TIMEOUT);
    assert_true(loop_run_until(f->loop, second_call_came, f, 5000));
    assert_int_equal(f->fake->calls[1].node, 2);
    fake_cluster_answer(f->fake, 1, WIRE_OK, SLICE_LITERAL("written"));
    assert_string_equal(f->told.body, "written");
    assert_false(f->told.failed);
}

/* While a cluster is upgraded. */
static void a_member_of_an_earlier_version_is_passed_over(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__Refusal refusal = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;
    uint8_t bytes[64];

    refusal.code = CODE(UNIMPLEMENTED);
    f->told.free_too = start_method(f, METHOD_PUT_DOCUMENT, 2, 10000);
    fake_cluster_answer(
        f->fake, 0, WIRE_REFUSED,
        (struct slice){ bytes, holdfast__internal__v1__refusal__pack(&refusal, bytes) });
    assert_int_equal(f->told.count, 0);
    assert_true(loop_run_until(f->loop, second_call_came, f, 5000));
    assert_int_equal(f->fake->calls[1].node, 2);
    fake_cluster_answer(f->fake, 1, WIRE_OK, SLICE_LITERAL("written"));
    assert_false(f->told.failed);
}

/* Each has said so: another round would not help. */
static void what_no_member_knows_is_told_so(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__Refusal refusal = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;
    uint8_t bytes[64];

    refusal.code = CODE(UNIMPLEMENTED);
    f->told.free_too = start_method(f, METHOD_PUT_DOCUMENT, 2, 10000);
    for (uint32_t i = 0; i < CLUSTER_MEMBERS_MAX; i++) {
        f->calls_wanted = i + 1;
        assert_true(loop_run_until(f->loop, calls_came, f, 5000));
        fake_cluster_answer(
            f->fake, i, WIRE_REFUSED,
            (struct slice){ bytes, holdfast__internal__v1__refusal__pack(&refusal, bytes) });
    }
    assert_int_equal(f->told.count, 1);
    assert_int_equal(f->told.code, CODE(UNIMPLEMENTED));
}

/* The asked one answers: cancelled, the call could have been carried out, and once more elsewhere.
 */
static void a_new_owner_leaves_a_member_s_call_alone(void **state)
{
    struct fixture *f = *state;

    fake_cluster_set_owner(f->fake, 1, 2, 1);
    f->told.free_too = start_method(f, METHOD_PUT_DOCUMENT, 1, 10000);
    assert_int_equal(f->fake->calls[0].node, 2);
    fake_cluster_set_owner(f->fake, 1, 3, 2);
    caller_shard_changed(f->caller, 1);
    assert_int_equal(f->fake->call_count, 1);
    assert_false(f->fake->calls[0].cancelled);
    fake_cluster_answer(f->fake, 0, WIRE_OK, SLICE_LITERAL("written"));
    assert_string_equal(f->told.body, "written");
}

static void what_no_member_can_be_asked_for_ends_without_a_call(void **state)
{
    struct fixture *f = *state;

    for (uint64_t node = 1; node <= 3; node++)
        f->fake->down[node] = true;
    f->told.free_too = start_method(f, METHOD_GET_DOCUMENT, 2, 100);
    assert_true(loop_run_until(f->loop, was_told, f, 5000));
    assert_int_equal(f->told.code, CODE(DEADLINE_EXCEEDED));
    assert_int_equal(f->fake->call_count, 0);
}

static void a_hint_is_followed_without_waiting(void **state)
{
    struct fixture *f = *state;
    struct buf hint = { 0 };

    f->told.free_too = start(f, 0, 1000);
    wire_hint_encode(&(struct wire_hint){ 2, 9 }, &hint);
    fake_cluster_answer(f->fake, 0, WIRE_NOT_OWNER, buf_slice(&hint));
    buf_deinit(&hint);
    assert_int_equal(f->fake->call_count, 2);
    assert_int_equal(f->fake->calls[1].node, 2);
    assert_memory_equal(f->fake->calls[1].body.data, "request", 7);
    fake_cluster_answer(f->fake, 1, WIRE_OK, SLICE_LITERAL("x"));
    assert_int_equal(f->told.count, 1);
}

static void a_new_owner_takes_a_sent_call_over_at_once(void **state)
{
    struct fixture *f = *state;

    f->told.free_too = start(f, 1, 1000);
    fake_cluster_set_owner(f->fake, 1, 2, 2);
    caller_shard_changed(f->caller, 1);
    assert_true(f->fake->calls[0].cancelled);
    assert_int_equal(f->fake->call_count, 2);
    assert_int_equal(f->fake->calls[1].node, 2);
    fake_cluster_answer(f->fake, 1, WIRE_OK, SLICE_LITERAL("x"));
    assert_int_equal(f->told.count, 1);
}

static void a_link_that_comes_up_drives_what_waits_for_it(void **state)
{
    struct fixture *f = *state;

    f->fake->down[1] = true;
    f->told.free_too = start(f, 1, 10000);
    assert_int_equal(f->fake->call_count, 0);
    f->fake->down[1] = false;
    caller_node_ready(f->caller, 1);
    assert_int_equal(f->fake->call_count, 1);
    fake_cluster_answer(f->fake, 0, WIRE_OK, SLICE_LITERAL("x"));
    assert_int_equal(f->told.count, 1);
}

static void unavailable_is_tried_again_after_a_pause(void **state)
{
    struct fixture *f = *state;

    f->told.free_too = start(f, 1, 10000);
    fake_cluster_answer(f->fake, 0, WIRE_UNAVAILABLE, (struct slice){ 0 });
    assert_int_equal(f->fake->call_count, 1);
    assert_true(loop_run_until(f->loop, second_call_came, f, 60000));
    fake_cluster_answer(f->fake, 1, WIRE_OK, SLICE_LITERAL("x"));
    assert_int_equal(f->told.count, 1);
    assert_int_equal(caller_stats(f->caller).waits, 1);
}

static void a_refusal_is_told_as_callers_get_it(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__Refusal refusal = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;
    uint8_t packed[32];

    refusal.code = CODE(SESSION_LOCKED);
    refusal.holder = text_lend("1-100");
    refusal.final = true;
    size_t size = holdfast__internal__v1__refusal__pack(&refusal, packed);
    f->told.free_too = start(f, 0, 1000);
    fake_cluster_answer(f->fake, 0, WIRE_REFUSED, (struct slice){ packed, size });
    assert_true(f->told.failed);
    assert_int_equal(f->told.code, CODE(SESSION_LOCKED));
    assert_int_equal(f->told.action, HOLDFAST__V1__ACTION__ACTION_RAISE_ATTEMPT);
    assert_string_equal(f->told.holder, "1-100");
}

static void without_an_owner_it_ends_at_the_deadline_with_nothing_sent(void **state)
{
    struct fixture *f = *state;

    f->fake->down[1] = true;
    f->told.free_too = start(f, 0, 60);
    assert_true(loop_run_until(f->loop, was_told, f, 60000));
    assert_int_equal(f->told.code, CODE(DEADLINE_EXCEEDED));
    assert_int_equal(f->fake->call_count, 0);
}

static void a_deadline_in_the_past_is_told_later_and_not_from_inside(void **state)
{
    struct fixture *f = *state;

    f->told.free_too = start(f, 0, 0);
    assert_int_equal(f->told.count, 0);
    assert_true(loop_run_until(f->loop, was_told, f, 60000));
    assert_int_equal(f->told.code, CODE(DEADLINE_EXCEEDED));
}

static void a_lost_link_never_becomes_a_failure(void **state)
{
    struct fixture *f = *state;

    f->told.free_too = start(f, 0, 60);
    f->fake->down[1] = true;
    fake_cluster_fail(f->fake, 0, ERR_DISCONNECTED);
    assert_int_equal(f->told.count, 0);
    assert_true(loop_run_until(f->loop, was_told, f, 60000));
    assert_int_equal(f->told.code, CODE(OUTCOME_UNKNOWN));
    assert_int_equal(caller_stats(f->caller).unknown, 1);
}

static void a_cancelled_call_is_never_told(void **state)
{
    struct fixture *f = *state;
    struct caller_call *call = start(f, 0, 1000);

    caller_cancel(call);
    free(call);
    assert_true(f->fake->calls[0].cancelled);
    caller_shard_changed(f->caller, 0);
    assert_int_equal(f->told.count, 0);
    assert_int_equal(caller_stats(f->caller).open, 0);
}

/* A hundred calls wait for one shard; each that ends starts another on the same shard. */
static struct caller *again_caller;
static uint32_t again_left;

static void done_and_again(struct caller_call *call, const struct caller_result *result)
{
    (void)result;
    if (again_left == 0)
        return;
    again_left--;
    caller_start(again_caller, call);
}

static void calls_started_while_a_shard_is_driven_wait_their_turn(void **state)
{
    struct fixture *f = *state;
    struct caller_call *calls = mem_zalloc(100 * sizeof *calls);

    f->fake->down[1] = true;
    again_caller = f->caller;
    again_left = 100;
    for (int i = 0; i < 100; i++) {
        calls[i] = (struct caller_call){ .method = METHOD_GRANT,
                                         .shard = 3,
                                         .deadline_ms = loop_now_ms(f->loop) + 10000,
                                         .done = done_and_again };
        caller_start(f->caller, &calls[i]);
    }
    f->fake->down[1] = false;
    caller_node_ready(f->caller, 1);
    assert_int_equal(f->fake->call_count, 100);
    for (uint32_t i = 0; i < f->fake->call_count; i++)
        fake_cluster_answer(f->fake, i, WIRE_OK, (struct slice){ 0 });
    assert_int_equal(f->fake->call_count, 200);
    assert_int_equal(caller_stats(f->caller).open, 0);
    free(calls);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_call_goes_to_the_owner_and_its_answer_is_told_once),
        TEST(what_any_member_takes_is_sent_to_the_next_that_is_reached),
        TEST(what_no_member_knows_is_told_so),
        TEST(a_new_owner_leaves_a_member_s_call_alone),
        TEST(a_member_of_an_earlier_version_is_passed_over),
        TEST(what_no_member_can_be_asked_for_ends_without_a_call),
        TEST(a_hint_is_followed_without_waiting),
        TEST(a_new_owner_takes_a_sent_call_over_at_once),
        TEST(a_link_that_comes_up_drives_what_waits_for_it),
        TEST(unavailable_is_tried_again_after_a_pause),
        TEST(a_refusal_is_told_as_callers_get_it),
        TEST(without_an_owner_it_ends_at_the_deadline_with_nothing_sent),
        TEST(a_deadline_in_the_past_is_told_later_and_not_from_inside),
        TEST(a_lost_link_never_becomes_a_failure),
        TEST(a_cancelled_call_is_never_told),
        TEST(calls_started_while_a_shard_is_driven_wait_their_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
