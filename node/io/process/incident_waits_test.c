#include "node/io/process/incident_waits.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "node/io/view/incidents.h"
#include "runtime/base/check.h"

#define LIFE      9u
#define PATIENCE  60000u /* A bound only. */
#define ADDERS    4u
#define ADDED_PER 500u

struct fixture {
    struct loop *loop;
    struct incidents *incidents;
    struct incident_waits *waits;
    uint32_t answers, given_up;
    uint64_t last_request;
    size_t in_page; /* Incidents of the last answer. */
    uint64_t last;  /* Number of the last incident told. */
    uint64_t told;  /* Incidents in all answers. */
};

static bool list(void *user, struct slice request, struct buf *out)
{
    struct fixture *f = user;

    incidents_arm(f->incidents);
    return incidents_append(f->incidents, request, out);
}

static void answer(void *user, const struct call_reply *reply, bool known, struct slice body)
{
    struct fixture *f = user;

    f->last_request = reply->request_id;
    if (!known) {
        f->given_up++;
        return;
    }
    Holdfast__Internal__V1__ListNodeIncidentsResponse *page =
        holdfast__internal__v1__list_node_incidents_response__unpack(NULL, body.size, body.data);
    assert_non_null(page);
    f->answers++;
    f->in_page = page->n_incidents;
    for (size_t i = 0; i < page->n_incidents; i++)
        assert_int_equal(page->incidents[i]->number, f->last + i + 1);
    f->told += page->n_incidents;
    f->last = page->last;
    holdfast__internal__v1__list_node_incidents_response__free_unpacked(page, NULL);
}

static void added(void *user)
{
    incident_waits_added(user);
}

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);

    CHECK(loop_new(&f->loop) == ERR_OK);
    f->incidents = incidents_new(LIFE, 7);
    f->waits = incident_waits_new(&(struct incident_waits_options){
        .loop = f->loop, .list = list, .answer = answer, .user = f });
    incidents_set_listener(f->incidents, added, f->waits);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    incident_waits_free(f->waits);
    incidents_free(f->incidents);
    loop_free(f->loop);
    free(f);
    return 0;
}

static void add(struct incidents *incidents)
{
    const struct incident incident = { .kind = INCIDENT_RECONCILED, .unix_ms = 5, .what = "x" };

    incidents_add(incidents, &incident);
}

static void ask(struct fixture *f, uint64_t id, uint64_t link, uint32_t wait_ms)
{
    Holdfast__Internal__V1__ListNodeIncidentsRequest request =
        HOLDFAST__INTERNAL__V1__LIST_NODE_INCIDENTS_REQUEST__INIT;
    struct call_reply reply = { .request_id = id, .link.generation = link };
    uint8_t bytes[64];

    request.life = LIFE;
    request.after = f->last;
    request.page_size = 100;
    request.wait_ms = wait_ms;
    size_t size = protobuf_c_message_pack(&request.base, bytes);
    incident_waits_ask(f->waits, &reply, (struct slice){ bytes, size });
}

static bool is_answered(void *user)
{
    return ((struct fixture *)user)->answers > 0;
}

static void an_answer_waits_for_an_incident(void **state)
{
    struct fixture *f = *state;

    ask(f, 1, 1, PATIENCE);
    assert_int_equal(f->answers, 0);
    add(f->incidents);
    assert_true(loop_run_until(f->loop, is_answered, f, PATIENCE));
    assert_int_equal(f->in_page, 1);
    assert_int_equal(f->last, 1);
}

static void what_is_there_already_is_told_at_once(void **state)
{
    struct fixture *f = *state;

    add(f->incidents);
    ask(f, 1, 1, PATIENCE);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->in_page, 1);
}

static void a_wait_ends_and_a_question_without_one_does_not_wait(void **state)
{
    struct fixture *f = *state;

    ask(f, 1, 1, 0);
    assert_int_equal(f->answers, 1);
    f->answers = 0;
    ask(f, 2, 1, 1);
    assert_true(loop_run_until(f->loop, is_answered, f, PATIENCE));
    assert_int_equal(f->in_page, 0);
}

static void who_has_gone_is_forgotten(void **state)
{
    struct fixture *f = *state;

    ask(f, 1, 1, PATIENCE);
    ask(f, 2, 1, PATIENCE);
    ask(f, 3, 2, PATIENCE);
    assert_true(incident_waits_cancel(
        f->waits, &(struct call_reply){ .request_id = 2, .link.generation = 1 }));
    assert_int_equal(f->last_request, 2);
    assert_false(incident_waits_cancel(
        f->waits, &(struct call_reply){ .request_id = 3, .link.generation = 1 }));
    incident_waits_cancel_link(f->waits, 1);
    assert_int_equal(f->given_up, 2);
    add(f->incidents);
    assert_true(loop_run_until(f->loop, is_answered, f, PATIENCE));
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->last_request, 3);
}

static void beyond_the_limit_nobody_waits(void **state)
{
    struct fixture *f = *state;

    for (uint32_t i = 0; i < INCIDENT_WAITS_MAX; i++)
        ask(f, i, 1, PATIENCE);
    assert_int_equal(f->answers, 0);
    ask(f, INCIDENT_WAITS_MAX, 1, PATIENCE);
    assert_int_equal(f->answers, 1);
    incident_waits_cancel_link(f->waits, 1);
    assert_int_equal(f->given_up, INCIDENT_WAITS_MAX);
}

static void *adder(void *user)
{
    struct fixture *f = user;

    for (uint32_t i = 0; i < ADDED_PER; i++)
        add(f->incidents);
    return NULL;
}

/* Asked again after each answer, as a watcher does; no incident is slept through. */
static void incidents_of_other_threads_wake_whoever_waits(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[ADDERS];

    for (uint32_t i = 0; i < ADDERS; i++)
        CHECK(pthread_create(&threads[i], NULL, adder, f) == 0);
    while (f->told < ADDERS * ADDED_PER) {
        f->answers = 0;
        ask(f, 1, 1, PATIENCE);
        assert_true(loop_run_until(f->loop, is_answered, f, PATIENCE));
    }
    for (uint32_t i = 0; i < ADDERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    assert_int_equal(f->told, ADDERS * ADDED_PER);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_answer_waits_for_an_incident),
        TEST(what_is_there_already_is_told_at_once),
        TEST(a_wait_ends_and_a_question_without_one_does_not_wait),
        TEST(who_has_gone_is_forgotten),
        TEST(beyond_the_limit_nobody_waits),
        TEST(incidents_of_other_threads_wake_whoever_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
