/* The conformance test of links: every case runs over every transport, with and without TLS. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/link/link_fixture.h"

#define LIMIT_MS      60000u
#define STRANGERS     60u
#define STRANGERS_MAX 5u

static char certs[64];

struct outcome {
    uint32_t count;
    err result;
    uint16_t status;
    struct buf body;
    uint32_t wrong;
};

static void done(void *user, err result, const struct frame *response)
{
    struct outcome *o = user;
    o->count++;
    o->result = result;
    if (response == NULL)
        return;
    o->status = response->status;
    buf_clear(&o->body);
    buf_append(&o->body, response->body.data, response->body.size);
}

static bool is_done(void *user)
{
    struct outcome *o = user;
    return o->count > 0;
}

static struct fixture *make(const struct fixture_mode *mode)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    f->mode = mode;
    assert_int_equal(loop_new(&f->loop), ERR_OK);
    return f;
}

static void set_up_end(struct fixture *f, struct fixture_end *end, uint32_t body_size_max,
                       uint32_t out_bytes_max)
{
    struct link_hub_options options = fixture_options(f->mode, f->loop, certs);
    options.body_size_max = body_size_max;
    options.out_bytes_max = out_bytes_max;
    options.self.replica_id = end == &f->server ? 2 : 1;
    snprintf(options.self.name, sizeof options.self.name, end == &f->server ? "srv" : "cli");
    fixture_end_init(end, &options);
    fixture_options_deinit(&options);
}

static void join(struct fixture *f, bool paced)
{
    f->listener = fixture_listen(&f->server, f->mode, 0);
    f->dialled = fixture_dial(&f->client, f->mode, link_listener_port(f->listener), paced);
    assert_true(loop_run_until(f->loop, fixture_both_ready, f, LIMIT_MS));
}

static struct fixture *make_joined(void **state)
{
    struct fixture *f = make(*state);
    set_up_end(f, &f->client, 0, 0);
    set_up_end(f, &f->server, 0, 0);
    join(f, false);
    return f;
}

static void drop(struct fixture *f)
{
    fixture_end_deinit(&f->client);
    fixture_end_deinit(&f->server);
    loop_free(f->loop);
    free(f);
}

static struct call_request request_of(uint16_t method, struct slice body, struct outcome *outcome)
{
    return (struct call_request){
        .method = method, .deadline_ms = LIMIT_MS, .body = body, .done = done, .user = outcome
    };
}

static void call_is_answered_and_both_know_the_other(void **state)
{
    struct fixture *f = make_joined(state);
    struct outcome o = { 0 };
    struct call_request request = request_of(METHOD_ECHO, SLICE_LITERAL("hello"), &o);
    assert_int_equal(f->client.peer.replica_id, 2);
    assert_string_equal(f->server.peer.name, "cli");
    assert_int_equal(call_start(f->client.calls, f->client.link, &request, NULL), ERR_OK);
    assert_true(loop_run_until(f->loop, is_done, &o, LIMIT_MS));
    assert_int_equal(o.result, ERR_OK);
    assert_true(slice_equal(buf_slice(&o.body), SLICE_LITERAL("hello")));
    struct call_request unknown = request_of(999, SLICE_LITERAL(""), &o);
    o.count = 0;
    assert_int_equal(call_start(f->server.calls, f->server.link, &unknown, NULL), ERR_OK);
    assert_true(loop_run_until(f->loop, is_done, &o, LIMIT_MS));
    assert_int_equal(o.result, ERR_UNAVAILABLE);
    buf_deinit(&o.body);
    drop(f);
}

static void largest_body_passes_and_a_larger_one_is_refused_here(void **state)
{
    struct fixture *f = make_joined(state);
    struct outcome o = { 0 };
    uint8_t *body = mem_alloc(FRAME_BODY_SIZE_MAX + 1);
    for (size_t i = 0; i < FRAME_BODY_SIZE_MAX; i++)
        body[i] = (uint8_t)(i * 2654435761u >> 13);
    struct slice bytes = { body, FRAME_BODY_SIZE_MAX };
    struct call_request request = request_of(METHOD_ECHO, bytes, &o);
    assert_int_equal(call_start(f->client.calls, f->client.link, &request, NULL), ERR_OK);
    assert_true(loop_run_until(f->loop, is_done, &o, LIMIT_MS));
    assert_int_equal(o.result, ERR_OK);
    assert_true(slice_equal(buf_slice(&o.body), bytes));
    request.body.size++;
    assert_int_equal(call_start(f->client.calls, f->client.link, &request, NULL), ERR_TOO_LARGE);
    free(body);
    buf_deinit(&o.body);
    drop(f);
}

static bool server_lost(void *user)
{
    struct fixture *f = user;
    return f->server.closed > 0 && f->client.closed > 0;
}

static void body_over_the_receivers_limit_ends_the_link_with_the_reason(void **state)
{
    struct fixture *f = make(*state);
    struct outcome o = { 0 };
    static uint8_t body[1001];
    set_up_end(f, &f->client, 0, 0);
    set_up_end(f, &f->server, 1000, 0);
    join(f, false);
    struct call_request request = request_of(METHOD_ECHO, (struct slice){ body, 1001 }, &o);
    assert_int_equal(call_start(f->client.calls, f->client.link, &request, NULL), ERR_OK);
    assert_true(loop_run_until(f->loop, server_lost, f, LIMIT_MS));
    assert_int_equal(f->server.reason, LINK_CLOSED_ERROR);
    assert_string_equal(f->server.text, "frame body of 1001 bytes; the limit is 1000");
    assert_int_equal(o.count, 1);
    assert_int_equal(o.result, ERR_DISCONNECTED);
    drop(f);
}

static bool both_refused(void *user)
{
    struct fixture *f = user;
    return f->client.logged[0] != 0 && f->server.logged[0] != 0;
}

static void hello_of_another_cluster_or_version_is_refused_naming_both(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct fixture *f = make(*state);
        set_up_end(f, &f->client, 0, 0);
        struct link_hub_options options = fixture_options(f->mode, f->loop, certs);
        if (i == 0)
            snprintf(options.self.cluster_id, sizeof options.self.cluster_id, "green");
        else
            options.self.protocol_version = LINK_PROTOCOL_VERSION + 1;
        fixture_end_init(&f->server, &options);
        fixture_options_deinit(&options);
        f->listener = fixture_listen(&f->server, f->mode, 0);
        f->dialled = fixture_dial(&f->client, f->mode, link_listener_port(f->listener), false);
        assert_true(loop_run_until(f->loop, both_refused, f, LIMIT_MS));
        assert_non_null(
            strstr(f->client.logged, i == 0 ? "ours=blue theirs=green" : "ours=1 theirs=2"));
        assert_non_null(
            strstr(f->server.logged, i == 0 ? "ours=green theirs=blue" : "ours=2 theirs=1"));
        assert_int_equal(f->client.ready + f->server.ready, 0);
        drop(f);
    }
}

/* Ten thousand calls at once, each answered with its own body. */
struct storm {
    uint32_t answered;
    uint32_t wrong;
};
struct storm_call {
    struct storm *storm;
    uint32_t number;
};

#define STORM_CALLS 10000u

static void storm_done(void *user, err result, const struct frame *response)
{
    struct storm_call *call = user;
    call->storm->answered++;
    if (result != ERR_OK || response->body.size != 200 ||
        load_u32(response->body.data) != call->number)
        call->storm->wrong++;
}

static bool storm_over(void *user)
{
    struct storm *storm = user;
    return storm->answered == STORM_CALLS;
}

static void ten_thousand_calls_at_once_each_get_their_own_answer(void **state)
{
    for (int paced = 0; paced < 2; paced++) {
        struct fixture *f = make(*state);
        struct storm storm = { 0 };
        struct storm_call *calls = mem_zalloc(STORM_CALLS * sizeof *calls);
        uint8_t body[200] = { 0 };
        set_up_end(f, &f->client, 0, 0);
        set_up_end(f, &f->server, 0, 0);
        join(f, paced == 1);
        for (uint32_t i = 0; i < STORM_CALLS; i++) {
            calls[i] = (struct storm_call){ &storm, i };
            store_u32(body, i);
            struct call_request request =
                request_of(METHOD_ECHO, (struct slice){ body, 200 }, NULL);
            request.done = storm_done;
            request.user = &calls[i];
            assert_int_equal(call_start(f->client.calls, f->client.link, &request, NULL), ERR_OK);
        }
        assert_int_equal(calls_open(f->client.calls), STORM_CALLS);
        assert_true(loop_run_until(f->loop, storm_over, &storm, LIMIT_MS));
        assert_int_equal(storm.wrong, 0);
        assert_int_equal(calls_open(f->client.calls), 0);
        assert_int_equal(calls_requests_open(f->server.calls), 0);
        /* Coalesced: far fewer writes than frames. */
        assert_true(link_hub_stats(f->client.hub).writes < STORM_CALLS / 10);
        free(calls);
        drop(f);
    }
}

static bool two_held(void *user)
{
    struct fixture *f = user;
    return f->server.held_count == 2;
}

static bool server_cancelled(void *user)
{
    struct fixture *f = user;
    return f->server.cancels == 1;
}

static void cancelled_call_is_never_told_and_its_late_answer_is_ignored(void **state)
{
    struct fixture *f = make_joined(state);
    struct outcome cancelled = { 0 }, kept = { 0 };
    uint64_t call;
    struct call_request first = request_of(METHOD_HOLD, SLICE_LITERAL("a"), &cancelled);
    struct call_request second = request_of(METHOD_HOLD, SLICE_LITERAL("b"), &kept);
    assert_int_equal(call_start(f->client.calls, f->client.link, &first, &call), ERR_OK);
    assert_int_equal(call_start(f->client.calls, f->client.link, &second, NULL), ERR_OK);
    assert_true(loop_run_until(f->loop, two_held, f, LIMIT_MS));
    assert_true(call_cancel(f->client.calls, call));
    assert_false(call_cancel(f->client.calls, call));
    assert_true(loop_run_until(f->loop, server_cancelled, f, LIMIT_MS));
    for (int i = 0; i < 2; i++)
        assert_int_equal(call_answer(f->server.calls, &f->server.held[i], 7, SLICE_LITERAL("x")),
                         ERR_OK);
    assert_true(loop_run_until(f->loop, is_done, &kept, LIMIT_MS));
    assert_int_equal(kept.status, 7);
    assert_int_equal(cancelled.count, 0);
    buf_deinit(&kept.body);
    drop(f);
}

static void deadline_ends_a_call_with_unknown_outcome(void **state)
{
    struct fixture *f = make_joined(state);
    struct outcome o = { 0 };
    struct call_request request = request_of(METHOD_HOLD, SLICE_LITERAL(""), &o);
    request.deadline_ms = 20;
    assert_int_equal(call_start(f->client.calls, f->client.link, &request, NULL), ERR_OK);
    uint64_t start_ms = loop_now_ms(f->loop);
    assert_true(loop_run_until(f->loop, is_done, &o, LIMIT_MS));
    assert_int_equal(o.result, ERR_TIMEOUT);
    assert_true(loop_now_ms(f->loop) - start_ms >= 20);
    request.deadline_ms = 0;
    assert_int_equal(call_start(f->client.calls, f->client.link, &request, NULL), ERR_INVALID);
    drop(f);
}

static bool client_writable(void *user)
{
    struct fixture *f = user;
    return f->client.writable > 0;
}

struct expected {
    struct fixture *f;
    uint64_t messages;
};

static bool all_arrived(void *user)
{
    struct expected *e = user;
    return e->f->server.messages == e->messages;
}

static bool never(void *user)
{
    (void)user;
    return false;
}

static void slow_reader_fills_the_queue_and_nothing_is_lost(void **state)
{
    struct fixture *f = make(*state);
    static uint8_t body[65536];
    set_up_end(f, &f->client, 0, 1048576);
    set_up_end(f, &f->server, 0, 0);
    f->server.pause_when_ready = true;
    join(f, false);
    struct frame frame = { .kind = FRAME_MESSAGE, .body = { body, sizeof body } };
    err e = ERR_OK;
    for (int rounds = 0; rounds < 2000 && e == ERR_OK; rounds++) {
        while ((e = link_send(f->client.link, &frame)) == ERR_OK)
            frame.request_id++;
        /* Full for good only when the transport takes no more. */
        if (loop_run_until(f->loop, client_writable, f, 200))
            e = ERR_OK;
        f->client.writable = 0;
    }
    assert_int_equal(e, ERR_FULL);
    assert_false(loop_run_until(f->loop, never, NULL, 20));
    assert_true(f->server.messages < frame.request_id);
    link_resume(f->server.link);
    assert_true(loop_run_until(f->loop, client_writable, f, LIMIT_MS));
    assert_int_equal(link_send(f->client.link, &frame), ERR_OK);
    struct expected expected = { f, frame.request_id + 1 };
    assert_true(loop_run_until(f->loop, all_arrived, &expected, LIMIT_MS));
    assert_false(f->server.disorder);
    drop(f);
}

static bool server_closed(void *user)
{
    struct fixture *f = user;
    return f->server.closed > 0;
}

static void closing_delivers_what_was_sent_and_is_seen_as_orderly(void **state)
{
    struct fixture *f = make_joined(state);
    struct outcome o = { 0 };
    struct call_request request = request_of(METHOD_HOLD, SLICE_LITERAL(""), &o);
    struct frame message = { .kind = FRAME_MESSAGE };
    struct link_ref ref = link_ref(f->server.link);
    assert_int_equal(link_send(f->client.link, &message), ERR_OK);
    assert_int_equal(call_start(f->client.calls, f->client.link, &request, NULL), ERR_OK);
    link_close(f->client.link);
    assert_int_equal(f->client.closed, 1);
    assert_int_equal(f->client.reason, LINK_CLOSED_LOCAL);
    assert_int_equal(o.result, ERR_DISCONNECTED);
    assert_true(loop_run_until(f->loop, server_closed, f, LIMIT_MS));
    assert_int_equal(f->server.messages, 1);
    assert_int_equal(f->server.reason, LINK_CLOSED_BY_PEER);
    assert_null(link_find(f->server.hub, ref));
    if (f->server.held_count == 1)
        assert_int_equal(call_answer(f->server.calls, &f->server.held[0], 0, SLICE_LITERAL("")),
                         ERR_CLOSED);
    drop(f);
}

static bool dialled_again(void *user)
{
    struct fixture *f = user;
    return f->client.ready == 2 && f->server.ready == 2;
}

static void lost_link_is_dialled_again_and_is_another_connection(void **state)
{
    struct fixture *f = make_joined(state);
    struct outcome o = { 0 };
    struct link_ref before = link_ref(f->dialled);
    link_close(f->server.link);
    assert_true(loop_run_until(f->loop, dialled_again, f, LIMIT_MS));
    assert_int_equal(f->client.closed, 1);
    assert_int_equal(f->client.reason, LINK_CLOSED_BY_PEER);
    assert_true(link_ref(f->dialled).generation > before.generation);
    assert_null(link_find(f->client.hub, before));
    assert_ptr_equal(link_find(f->client.hub, link_ref(f->dialled)), f->dialled);
    struct call_request request = request_of(METHOD_ECHO, SLICE_LITERAL("again"), &o);
    assert_int_equal(call_start(f->client.calls, f->dialled, &request, NULL), ERR_OK);
    assert_true(loop_run_until(f->loop, is_done, &o, LIMIT_MS));
    assert_int_equal(o.result, ERR_OK);
    buf_deinit(&o.body);
    drop(f);
}

static bool shows_as_down(void *user)
{
    struct fixture *f = user;
    return link_hub_stats(f->client.hub).failures > 0 && !link_is_ready(f->dialled);
}

static void nobody_there_is_unavailable_and_shows_as_down(void **state)
{
    struct fixture *f = make_joined(state);
    struct outcome o = { 0 };
    uint16_t port = link_listener_port(f->listener);
    link_listener_close(f->listener);
    link_close(f->dialled);
    f->dialled = fixture_dial(&f->client, f->mode, port, false);
    assert_true(loop_run_until(f->loop, shows_as_down, f, LIMIT_MS));
    struct call_request request = request_of(METHOD_ECHO, SLICE_LITERAL(""), &o);
    assert_int_equal(call_start(f->client.calls, f->dialled, &request, NULL), ERR_UNAVAILABLE);
    assert_int_equal(o.count, 0);
    drop(f);
}

static bool failed_thrice(void *user)
{
    struct fixture *f = user;
    return link_hub_stats(f->client.hub).failures >= 3 &&
           link_hub_stats(f->server.hub).failures >= 1;
}

static void certificate_of_another_ca_never_becomes_a_link(void **state)
{
    struct fixture *f = make(*state);
    char other[80];
    if (!f->mode->tls) {
        loop_free(f->loop);
        free(f);
        return;
    }
    snprintf(other, sizeof other, "%s/other", certs);
    set_up_end(f, &f->server, 0, 0);
    struct link_hub_options options = fixture_options(f->mode, f->loop, other);
    fixture_end_init(&f->client, &options);
    fixture_options_deinit(&options);
    f->listener = fixture_listen(&f->server, f->mode, 0);
    f->dialled = fixture_dial(&f->client, f->mode, link_listener_port(f->listener), false);
    assert_true(loop_run_until(f->loop, failed_thrice, f, LIMIT_MS));
    assert_int_equal(f->client.ready + f->server.ready, 0);
    drop(f);
}

static bool garbage_seen(void *user)
{
    struct fixture *f = user;
    return link_hub_stats(f->server.hub).failures >= 1;
}

/* A TLS client at a plain port, or the other way round. */
static void peer_that_speaks_something_else_is_dropped(void **state)
{
    struct fixture *f = make(*state);
    static struct fixture_mode opposite;
    set_up_end(f, &f->server, 0, 0);
    opposite = (struct fixture_mode){ "opposite", f->mode->transport, f->mode->listens,
                                      !f->mode->tls, f->mode->busy };
    struct link_hub_options options = fixture_options(&opposite, f->loop, certs);
    fixture_end_init(&f->client, &options);
    fixture_options_deinit(&options);
    f->listener = fixture_listen(&f->server, f->mode, 0);
    f->dialled = fixture_dial(&f->client, &opposite, link_listener_port(f->listener), false);
    assert_true(loop_run_until(f->loop, garbage_seen, f, LIMIT_MS));
    assert_int_equal(f->client.ready + f->server.ready, 0);
    drop(f);
}

static int connect_bare(uint16_t port)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static bool crowd_met_the_limit(void *user)
{
    struct fixture *f = user;
    return link_hub_turnstile(f->server.hub)->refused[TURNSTILE_ADDRESS_CAP] >=
           STRANGERS - STRANGERS_MAX;
}

static bool strangers_are_gone(void *user)
{
    struct fixture *f = user;
    return link_hub_turnstile(f->server.hub)->unproven == 0;
}

/* Bare connections, and some that begin a TLS record and go no further: they put out one another.
 * A peer comes in all the while, an established link stays, and the log has a line a cause. */
static void strangers_take_no_place_from_peers(void **state)
{
    struct fixture *f = make(*state);
    struct link_hub_options options = fixture_options(f->mode, f->loop, certs);
    int strangers[STRANGERS];

    options.unproven_address_max = STRANGERS_MAX;
    options.link_count_max = 16;
    fixture_end_init(&f->server, &options);
    fixture_options_deinit(&options);
    set_up_end(f, &f->client, 0, 0);
    f->listener = fixture_listen(&f->server, f->mode, 0);
    for (uint32_t i = 0; i < STRANGERS; i++) {
        strangers[i] = connect_bare(link_listener_port(f->listener));
        if (f->mode->tls && i % 2 == 0)
            assert_int_equal(write(strangers[i], "\x16\x03\x01\x02", 4), 4);
    }
    assert_true(loop_run_until(f->loop, crowd_met_the_limit, f, LIMIT_MS));
    f->dialled = fixture_dial(&f->client, f->mode, link_listener_port(f->listener), false);
    assert_true(loop_run_until(f->loop, fixture_both_ready, f, LIMIT_MS));
    assert_in_range(link_hub_turnstile(f->server.hub)->unproven, 1, STRANGERS_MAX);
    assert_true(loop_run_until(f->loop, strangers_are_gone, f, LIMIT_MS));
    assert_int_equal(f->server.closed, 0);
    assert_int_equal(f->client.closed, 0);
    assert_in_range(f->server.refused_lines, 1, 2); /* address_cap, timeout. */
    for (uint32_t i = 0; i < STRANGERS; i++)
        close(strangers[i]);
    drop(f);
}

static const struct {
    const char *name;
    CMUnitTestFunction fn;
} cases[] = {
#define CASE(fn)                                                                                   \
    {                                                                                              \
#fn, fn                                                                                    \
    }
    CASE(call_is_answered_and_both_know_the_other),
    CASE(largest_body_passes_and_a_larger_one_is_refused_here),
    CASE(body_over_the_receivers_limit_ends_the_link_with_the_reason),
    CASE(hello_of_another_cluster_or_version_is_refused_naming_both),
    CASE(ten_thousand_calls_at_once_each_get_their_own_answer),
    CASE(cancelled_call_is_never_told_and_its_late_answer_is_ignored),
    CASE(deadline_ends_a_call_with_unknown_outcome),
    CASE(slow_reader_fills_the_queue_and_nothing_is_lost),
    CASE(closing_delivers_what_was_sent_and_is_seen_as_orderly),
    CASE(lost_link_is_dialled_again_and_is_another_connection),
    CASE(nobody_there_is_unavailable_and_shows_as_down),
    CASE(certificate_of_another_ca_never_becomes_a_link),
    CASE(peer_that_speaks_something_else_is_dropped),
    CASE(strangers_take_no_place_from_peers),
};

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[FIXTURE_MODES * ARRAY_SIZE(cases)];
    static char names[ARRAY_SIZE(tests)][120];
    size_t count = 0;

    fixture_certs_make(certs);
    for (size_t m = 0; m < FIXTURE_MODES; m++) {
        if (argc > 1 && strcmp(argv[1], fixture_modes[m].name) != 0)
            continue;
        for (size_t c = 0; c < ARRAY_SIZE(cases); c++, count++) {
            snprintf(names[count], sizeof names[count], "%s: %s", fixture_modes[m].name,
                     cases[c].name);
            tests[count] = (struct CMUnitTest){ .name = names[count], .test_func = cases[c].fn };
            tests[count].initial_state = (void *)(uintptr_t)&fixture_modes[m];
        }
    }
    int failed = _cmocka_run_group_tests("link", tests, count, NULL, NULL);
    fixture_certs_remove(certs);
    return failed;
}
