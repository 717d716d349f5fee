#include "node/io/process/answer_put.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "holdfast/internal/v1/refusal.pb-c.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"
#include "runtime/link/link_fixture.h"

#define LIMIT_MS 10000u

static char certs[TEST_DIRECTORY_BYTES];

struct told {
    bool done;
    uint16_t status;
    Holdfast__Internal__V1__Refusal *refusal;
};

static void answered(void *user, err result, const struct frame *response)
{
    struct told *told = user;

    assert_int_equal(result, ERR_OK);
    told->done = true;
    told->status = response->status;
    if (response->status == WIRE_REFUSED)
        told->refusal =
            holdfast__internal__v1__refusal__unpack(NULL, response->body.size, response->body.data);
}

static bool is_held(void *user)
{
    struct fixture *f = user;

    return f->server.held_count == 1;
}

static bool is_told(void *user)
{
    struct told *told = user;

    return told->done;
}

static void end_init(struct fixture *f, struct fixture_end *end)
{
    struct link_hub_options options = fixture_options(f->mode, f->loop, certs);

    options.self.replica_id = end == &f->server ? 2 : 1;
    fixture_end_init(end, &options);
    fixture_options_deinit(&options);
}

/* What a caller is told of an answer of so many bytes; *ret_left what the node is told. */
static struct told answer(size_t bytes, bool is_outcome, enum answer_left *ret_left)
{
    struct fixture f = { .mode = &fixture_modes[0] };
    struct told told = { 0 };
    uint8_t *body = mem_zalloc(bytes);

    assert_int_equal(loop_new(&f.loop), ERR_OK);
    end_init(&f, &f.client);
    end_init(&f, &f.server);
    f.listener = fixture_listen(&f.server, f.mode, 0);
    f.dialled = fixture_dial(&f.client, f.mode, link_listener_port(f.listener), false);
    assert_true(loop_run_until(f.loop, fixture_both_ready, &f, LIMIT_MS));
    const struct call_request request = {
        .method = METHOD_HOLD, .deadline_ms = LIMIT_MS, .done = answered, .user = &told
    };

    assert_int_equal(call_start(f.client.calls, f.client.link, &request, NULL), ERR_OK);
    assert_true(loop_run_until(f.loop, is_held, &f, LIMIT_MS));
    f.server.held[0].is_outcome = is_outcome;
    *ret_left =
        answer_put(f.server.calls, &f.server.held[0], WIRE_OK, (struct slice){ body, bytes });
    assert_int_equal(calls_requests_open(f.server.calls), 0);
    assert_true(loop_run_until(f.loop, is_told, &told, LIMIT_MS));
    free(body);
    fixture_end_deinit(&f.client);
    fixture_end_deinit(&f.server);
    loop_free(f.loop);
    return told;
}

static void an_answer_as_large_as_a_link_takes_leaves(void **state)
{
    enum answer_left left;
    (void)state;

    struct told told = answer(FRAME_BODY_SIZE_MAX, false, &left);
    assert_int_equal(left, ANSWER_LEFT);
    assert_int_equal(told.status, WIRE_OK);
}

static void a_larger_one_of_a_read_is_refused_by_the_limit(void **state)
{
    enum answer_left left;
    (void)state;

    struct told told = answer(FRAME_BODY_SIZE_MAX + 1, false, &left);
    assert_int_equal(left, ANSWER_TOO_LARGE);
    assert_int_equal(told.status, WIRE_REFUSED);
    assert_int_equal(told.refusal->code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_TOO_LARGE);
    assert_string_equal(told.refusal->limit, "4194304 bytes");
    assert_string_equal(told.refusal->value, "4194305 bytes");
    holdfast__internal__v1__refusal__free_unpacked(told.refusal, NULL);
}

static void a_larger_one_of_a_write_is_no_failure(void **state)
{
    enum answer_left left;
    (void)state;

    struct told told = answer(FRAME_BODY_SIZE_MAX + 1, true, &left);
    assert_int_equal(left, ANSWER_TOO_LARGE);
    assert_int_equal(told.refusal->code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN);
    assert_false(told.refusal->final);
    holdfast__internal__v1__refusal__free_unpacked(told.refusal, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_as_large_as_a_link_takes_leaves),
        cmocka_unit_test(a_larger_one_of_a_read_is_refused_by_the_limit),
        cmocka_unit_test(a_larger_one_of_a_write_is_no_failure),
    };

    fixture_certs_make(certs);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fixture_certs_remove(certs);
    return failed;
}
