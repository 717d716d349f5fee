/* Large answers leave in parts: what passes them, and what a peer may not do with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/link/link_fixture.h"
#include "runtime/link/link_private.h"

#define LIMIT_MS 60000u
#define LARGE    3000000u
#define CLOSING  600000u /* More than the credit, and sent within the time that closing has. */

static char certs[64];
static uint8_t bytes[LARGE];

struct arrival {
    uint32_t *count; /* Of all answers. */
    uint32_t place;  /* Of this one among them; 0: it has not come. */
    size_t size;
    bool same;
};

static void done(void *user, err result, const struct frame *response)
{
    struct arrival *arrival = user;

    assert_int_equal(result, ERR_OK);
    arrival->place = ++*arrival->count;
    arrival->size = response->body.size;
    arrival->same = memcmp(response->body.data, bytes, response->body.size) == 0;
}

static struct fixture *make(const struct fixture_mode *mode, uint32_t client_abilities)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    struct fixture_end *ends[2] = { &f->client, &f->server };

    f->mode = mode;
    assert_int_equal(loop_new(&f->loop), ERR_OK);
    for (int i = 0; i < 2; i++) {
        struct link_hub_options options = fixture_options(mode, f->loop, certs);
        options.self.replica_id = 1 + (uint64_t)i;
        fixture_end_init(ends[i], &options);
        fixture_options_deinit(&options);
    }
    f->client.hub->self.abilities = client_abilities;
    f->listener = fixture_listen(&f->server, mode, 0);
    f->dialled = fixture_dial(&f->client, mode, link_listener_port(f->listener), false);
    assert_true(loop_run_until(f->loop, fixture_both_ready, f, LIMIT_MS));
    return f;
}

static void drop(struct fixture *f)
{
    fixture_end_deinit(&f->client);
    fixture_end_deinit(&f->server);
    loop_free(f->loop);
    free(f);
}

static bool two_held(void *user)
{
    struct fixture *f = user;
    return f->server.held_count == 2;
}

static bool two_came(void *user)
{
    uint32_t *count = user;
    return *count == 2;
}

/* The server answers the first of two calls with a large body, and at once the other. */
static void answer_two(struct fixture *f, struct arrival arrivals[2], uint32_t *count)
{
    *count = 0;
    for (int i = 0; i < 2; i++) {
        arrivals[i] = (struct arrival){ .count = count };
        struct call_request request = {
            .method = METHOD_HOLD, .deadline_ms = LIMIT_MS, .done = done, .user = &arrivals[i]
        };
        assert_int_equal(call_start(f->client.calls, f->client.link, &request, NULL), ERR_OK);
    }
    assert_true(loop_run_until(f->loop, two_held, f, LIMIT_MS));
    for (int i = 0; i < 2; i++)
        assert_int_equal(call_answer(f->server.calls, &f->server.held[i], FRAME_STATUS_OK,
                                     (struct slice){ bytes, i == 0 ? LARGE : 10 }),
                         ERR_OK);
    assert_true(loop_run_until(f->loop, two_came, count, LIMIT_MS));
    assert_true(arrivals[0].size == LARGE && arrivals[0].same);
    assert_true(arrivals[1].size == 10 && arrivals[1].same);
}

/* No byte of credit is lost: the server has it, or the client owes it. It may be on its way. */
static bool credit_is_whole(void *user)
{
    const struct fixture *f = user;
    return f->server.link->out.credit + f->client.link->parts_taken == OUT_CREDIT_BYTES;
}

static void a_small_answer_passes_a_large_one(void **state)
{
    struct fixture *f = make(*state, HELLO_TAKES_PARTS);
    struct arrival arrivals[2];
    uint32_t count;

    answer_two(f, arrivals, &count);
    assert_int_equal(arrivals[1].place, 1);
    assert_true(loop_run_until(f->loop, credit_is_whole, f, LIMIT_MS));
    drop(f);
}

static void an_older_peer_gets_whole_answers_in_their_order(void **state)
{
    struct fixture *f = make(*state, 0);
    struct arrival arrivals[2];
    uint32_t count;

    answer_two(f, arrivals, &count);
    assert_int_equal(arrivals[0].place, 1);
    drop(f);
}

static bool client_closed(void *user)
{
    struct fixture *f = user;
    return f->client.closed > 0;
}

/* The client's link ends, for that reason, when the server sends that frame. */
static void frame_ends_the_link(const struct fixture_mode *mode, const struct frame *frame,
                                const char *why)
{
    struct fixture *f = make(mode, HELLO_TAKES_PARTS);

    (void)out_queue_push(&f->server.link->out, frame);
    link_mark_dirty(f->server.link);
    assert_true(loop_run_until(f->loop, client_closed, f, LIMIT_MS));
    assert_int_equal(f->client.reason, LINK_CLOSED_ERROR);
    assert_non_null(strstr(f->client.text, why));
    drop(f);
}

static void parts_without_credit_end_the_link(void **state)
{
    const struct frame part = { .kind = FRAME_PART, .body = { bytes, OUT_CREDIT_BYTES + 1 } };

    frame_ends_the_link(*state, &part, "more parts than there is credit for");
}

static void parts_carry_responses_alone(void **state)
{
    struct buf inner = { 0 };

    frame_encode(&inner, &(struct frame){ .kind = FRAME_MESSAGE, .body = { bytes, 10 } });
    const struct frame part = { .kind = FRAME_PART, .body = buf_slice(&inner) };
    frame_ends_the_link(*state, &part, "a part of what is no response");
    buf_deinit(&inner);
}

static void a_malformed_frame_in_parts_ends_the_link(void **state)
{
    uint8_t ones[FRAME_HEADER_SIZE];

    memset(ones, 0xff, sizeof ones);
    const struct frame part = { .kind = FRAME_PART, .body = { ones, sizeof ones } };

    frame_ends_the_link(*state, &part, "frame kind 255 is unknown");
}

static void credit_for_what_was_not_sent_ends_the_link(void **state)
{
    const struct frame credit = { .kind = FRAME_CREDIT, .request_id = 1 };

    frame_ends_the_link(*state, &credit, "more credit than there were parts");
}

static bool one_held(void *user)
{
    struct fixture *f = user;
    return f->server.held_count == 1;
}

static bool one_came(void *user)
{
    uint32_t *count = user;
    return *count == 1;
}

/* Closing lets what waits leave, so credit counts until then. */
static void a_link_that_closes_sends_its_large_answers(void **state)
{
    struct fixture *f = make(*state, HELLO_TAKES_PARTS);
    uint32_t count = 0;
    struct arrival arrival = { .count = &count };
    struct call_request request = {
        .method = METHOD_HOLD, .deadline_ms = LIMIT_MS, .done = done, .user = &arrival
    };

    assert_int_equal(call_start(f->client.calls, f->client.link, &request, NULL), ERR_OK);
    assert_true(loop_run_until(f->loop, one_held, f, LIMIT_MS));
    assert_int_equal(call_answer(f->server.calls, &f->server.held[0], FRAME_STATUS_OK,
                                 (struct slice){ bytes, CLOSING }),
                     ERR_OK);
    link_close(f->server.link);
    assert_true(loop_run_until(f->loop, one_came, &count, LIMIT_MS));
    assert_true(arrival.size == CLOSING && arrival.same);
    drop(f);
}

static int set_up(void **state)
{
    (void)state;
    fixture_certs_make(certs);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 251);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fixture_certs_remove(certs);
    return 0;
}

typedef void (*test_case)(void **state);

static const struct {
    const char *name;
    test_case run;
} cases[] = {
#define CASE(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }
    CASE(a_small_answer_passes_a_large_one),
    CASE(an_older_peer_gets_whole_answers_in_their_order),
    CASE(parts_without_credit_end_the_link),
    CASE(parts_carry_responses_alone),
    CASE(a_malformed_frame_in_parts_ends_the_link),
    CASE(credit_for_what_was_not_sent_ends_the_link),
    CASE(a_link_that_closes_sends_its_large_answers),
#undef CASE
};

int main(void)
{
    struct CMUnitTest tests[ARRAY_SIZE(cases) * FIXTURE_MODES];
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        for (size_t mode = 0; mode < FIXTURE_MODES; mode++)
            tests[count++] =
                (struct CMUnitTest){ .name = cases[i].name,
                                     .test_func = cases[i].run,
                                     .initial_state = (void *)(uintptr_t)&fixture_modes[mode] };
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
