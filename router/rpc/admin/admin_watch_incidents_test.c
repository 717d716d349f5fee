/* A stream of incidents, with nodes that answer when the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/admin.pb-c.h"
#include "idl/error_code.h"
#include "router/rpc/fake/fake_cluster.h"
#include "router/rpc/router.h"
#include "runtime/base/check.h"

#define NODES    3u
#define PATIENCE 20000u /* A bound only. */
#define LIFE     9u

static const struct log silent = { .level_min = LOG_ERROR };
/* One stream's end, as a client sees it. */
struct watcher {
    struct request request;
    struct arena arena;
    uint32_t messages, incidents, gaps;
    uint64_t lost;
    size_t unreachable; /* In the last message. */
    char cursor[256];   /* Of the last message. */
    uint64_t numbers[64];
    bool full; /* Has no room. */
    bool unwelcome;
    bool ended;
    Holdfast__V1__ErrorCode code;
};

struct fixture {
    struct loop *loop;
    struct fake_cluster *fake;
    struct router router;
    struct watcher reader;
    uint32_t calls_wanted, messages_wanted;
};

static void refuse_reply(struct request *request, const ProtobufCMessage *response)
{
    (void)request;
    (void)response;
    fail_msg("a stream is no unary answer");
}

static void fail_request(struct request *request, const Holdfast__V1__ErrorDetail *detail)
{
    struct watcher *reader = request->origin;

    reader->ended = true;
    reader->code = detail->code;
    arena_deinit(&reader->arena);
}

static bool stream_send(struct request *request, const ProtobufCMessage *message)
{
    struct watcher *reader = request->origin;
    const Holdfast__V1__WatchIncidentsResponse *said = (const void *)message;

    assert_false(reader->ended);
    reader->messages++;
    for (size_t i = 0; i < said->n_incidents; i++)
        reader->numbers[(reader->incidents + i) % ARRAY_SIZE(reader->numbers)] =
            said->incidents[i]->number;
    reader->incidents += (uint32_t)said->n_incidents;
    for (size_t i = 0; i < said->n_gaps; i++)
        reader->lost += said->gaps[i]->lost;
    reader->gaps += (uint32_t)said->n_gaps;
    reader->unreachable = said->n_unreachable;
    (void)snprintf(reader->cursor, sizeof reader->cursor, "%s", said->next_cursor);
    return !reader->full;
}

static bool is_welcome(const struct request *request)
{
    return !((const struct watcher *)request->origin)->unwelcome;
}

static const struct request_door door = { .reply = refuse_reply,
                                          .fail = fail_request,
                                          .stream_send = stream_send,
                                          .is_welcome = is_welcome };

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);

    CHECK(loop_new(&f->loop) == ERR_OK);
    f->fake = mem_zalloc(sizeof *f->fake);
    fake_cluster_init(f->fake, 4);
    router_init(&f->router, &(struct router_options){ .loop = f->loop,
                                                      .log = &silent,
                                                      .cluster = "test",
                                                      .map = f->fake->map,
                                                      .port = fake_cluster_port(f->fake),
                                                      .in_flight_max = 1000 });
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    router_end_streams(&f->router);
    assert_int_equal(router_in_flight(&f->router), 0);
    router_deinit(&f->router);
    fake_cluster_deinit(f->fake);
    free(f->fake);
    loop_free(f->loop);
    free(f);
    return 0;
}

static void watch(struct fixture *f, struct watcher *reader, const char *cursor,
                  uint32_t heartbeat_ms)
{
    Holdfast__V1__WatchIncidentsRequest *message;

    *reader = (struct watcher){ .arena = { 0 } };
    message = arena_alloc(&reader->arena, sizeof *message);
    holdfast__v1__watch_incidents_request__init(message);
    message->cursor = text_lend(cursor);
    message->heartbeat_ms = heartbeat_ms;
    reader->request = (struct request){
        .door = &door,
        .origin = reader,
        .method = method_find(METHOD_WATCH_INCIDENTS),
        .message = &message->base,
        .arena = &reader->arena,
        .deadline_ms = UINT64_MAX,
        .scopes = SCOPES_ALL,
        .peer = "test",
    };
    router_dispatch(&f->router, &reader->request);
}

static bool has_calls(void *user)
{
    const struct fixture *f = user;
    return f->fake->call_count >= f->calls_wanted;
}

static void await_calls(struct fixture *f, uint32_t count)
{
    f->calls_wanted = count;
    assert_true(loop_run_until(f->loop, has_calls, f, PATIENCE));
    assert_int_equal(f->fake->call_count, count);
}

static bool has_messages(void *user)
{
    const struct fixture *f = user;
    return f->reader.messages >= f->messages_wanted;
}

static void await_messages(struct fixture *f, uint32_t count)
{
    f->messages_wanted = count;
    assert_true(loop_run_until(f->loop, has_messages, f, PATIENCE));
}

/* The node's answer: `count` incidents up to `last`. */
static void answer(struct fixture *f, uint32_t place, uint64_t life, uint64_t last, uint32_t count)
{
    Holdfast__Internal__V1__ListNodeIncidentsResponse page =
        HOLDFAST__INTERNAL__V1__LIST_NODE_INCIDENTS_RESPONSE__INIT;
    Holdfast__V1__Incident list[8], *pointers[8];
    uint8_t bytes[512];

    CHECK(count <= ARRAY_SIZE(list));
    for (uint32_t i = 0; i < count; i++) {
        holdfast__v1__incident__init(&list[i]);
        list[i].number = last - count + i + 1;
        pointers[i] = &list[i];
    }
    page.life = life;
    page.last = last;
    page.incidents = pointers;
    page.n_incidents = count;
    size_t size = holdfast__internal__v1__list_node_incidents_response__pack(&page, bytes);
    fake_cluster_answer(f->fake, place, WIRE_OK, (struct slice){ bytes, size });
}

static Holdfast__Internal__V1__ListNodeIncidentsRequest *question(const struct fixture *f,
                                                                  uint32_t place)
{
    const struct fake_call *call = &f->fake->calls[place];
    Holdfast__Internal__V1__ListNodeIncidentsRequest *asked =
        holdfast__internal__v1__list_node_incidents_request__unpack(NULL, call->body.size,
                                                                    call->body.data);

    assert_int_equal(call->method, METHOD_LIST_NODE_INCIDENTS);
    assert_non_null(asked);
    return asked;
}

static void check_asked_after(const struct fixture *f, uint32_t place, uint64_t after)
{
    Holdfast__Internal__V1__ListNodeIncidentsRequest *asked = question(f, place);

    assert_int_equal(asked->after, after);
    assert_true(asked->wait_ms > 0 && asked->wait_ms < f->fake->calls[place].deadline_ms);
    holdfast__internal__v1__list_node_incidents_request__free_unpacked(asked, NULL);
}

static void what_a_node_tells_is_sent_on_at_once(void **state)
{
    struct fixture *f = *state;

    watch(f, &f->reader, "", 0);
    assert_int_equal(f->reader.messages, 1); /* It listens. */
    await_calls(f, NODES);
    answer(f, 1, LIFE, 2, 2);
    assert_int_equal(f->reader.messages, 2);
    assert_int_equal(f->reader.incidents, 2);
    assert_int_equal(f->reader.numbers[1], 2);
    assert_string_equal(f->reader.cursor, "2.9.2");
    await_calls(f, NODES + 1);
    assert_int_equal(f->fake->calls[NODES].node, 2);
    check_asked_after(f, NODES, 2);
    answer(f, 0, LIFE, 0, 0); /* An empty page is not sent. */
    assert_int_equal(f->reader.messages, 2);
}

static void a_cursor_goes_on_where_a_stream_ended(void **state)
{
    struct fixture *f = *state;

    watch(f, &f->reader, "1.9.5,3.9.7", 0);
    await_calls(f, NODES);
    check_asked_after(f, 0, 5);
    check_asked_after(f, 1, 0);
    check_asked_after(f, 2, 7);
    answer(f, 2, LIFE + 1, 4, 1); /* Restarted since. */
    assert_int_equal(f->reader.incidents, 1);
    assert_int_equal(f->reader.gaps, 1);
    assert_int_equal(f->reader.lost, 0);
    assert_string_equal(f->reader.cursor, "1.9.5,3.10.4");
}

static void a_reader_who_is_behind_makes_nobody_ask(void **state)
{
    struct fixture *f = *state;

    watch(f, &f->reader, "", 1000);
    await_calls(f, NODES);
    f->reader.full = true;
    answer(f, 0, LIFE, 1, 1);
    answer(f, 1, LIFE, 1, 1); /* There is no room for it: let go. */
    assert_int_equal(f->reader.incidents, 1);
    f->reader.full = false;
    uint32_t messages = f->reader.messages;
    (void)loop_run_until(f->loop, has_calls, (f->calls_wanted = NODES + 1, f), 1500);
    assert_int_equal(f->fake->call_count, NODES);
    assert_int_equal(f->reader.messages, messages);
    router_writable(&f->router, &f->reader.request);
    await_calls(f, NODES + 2);
    for (uint32_t i = NODES; i < NODES + 2; i++)
        check_asked_after(f, i, f->fake->calls[i].node == 1 ? 1 : 0);
}

static void a_node_that_is_silent_is_named_until_it_speaks(void **state)
{
    struct fixture *f = *state;

    f->fake->down[3] = true;
    watch(f, &f->reader, "", 0);
    await_messages(f, 2);
    assert_int_equal(f->reader.unreachable, 1);
    fake_cluster_fail(f->fake, 0, ERR_DISCONNECTED);
    assert_int_equal(f->reader.messages, 3);
    assert_int_equal(f->reader.unreachable, 2);
    f->fake->down[3] = false;
    await_calls(f, 4);
    assert_true(f->fake->calls[3].node == 3 || f->fake->calls[3].node == 1);
    answer(f, 3, LIFE, 0, 0);
    assert_int_equal(f->reader.messages, 4);
    assert_int_equal(f->reader.unreachable, 1);
}

static void heartbeats_come_when_nothing_happens(void **state)
{
    struct fixture *f = *state;

    watch(f, &f->reader, "1.9.5", 1000);
    await_messages(f, 3);
    assert_int_equal(f->reader.incidents, 0);
    assert_string_equal(f->reader.cursor, "1.9.5");
}

static void streams_end_when_the_router_stops_or_the_reader_goes(void **state)
{
    struct fixture *f = *state;
    struct watcher second;

    watch(f, &f->reader, "", 0);
    watch(f, &second, "", 0);
    await_calls(f, 2 * NODES);
    assert_int_equal(router_in_flight(&f->router), 2);
    router_cancel(&f->router, &second.request);
    assert_true(second.ended);
    router_end_streams(&f->router);
    assert_true(f->reader.ended);
    assert_int_equal(f->reader.code, CODE(UNAVAILABLE));
    for (uint32_t i = 0; i < 2 * NODES; i++)
        assert_true(f->fake->calls[i].cancelled);
    watch(f, &second, "", 0);
    assert_int_equal(second.code, CODE(UNAVAILABLE));
    assert_int_equal(second.messages, 0);
}

static bool is_ended(void *user)
{
    return ((struct fixture *)user)->reader.ended;
}

static void a_deadline_ends_the_stream(void **state)
{
    struct fixture *f = *state;

    watch(f, &f->reader, "", 0);
    f->reader.request.deadline_ms = loop_now_ms(f->loop) + 1;
    assert_true(loop_run_until(f->loop, is_ended, f, PATIENCE));
    assert_int_equal(f->reader.code, CODE(DEADLINE_EXCEEDED));
}

static void a_revoked_key_ends_the_stream(void **state)
{
    struct fixture *f = *state;

    watch(f, &f->reader, "", 0);
    await_calls(f, NODES);
    f->reader.full = true; /* Also of one that reads nothing. */
    answer(f, 0, LIFE, 1, 1);
    f->reader.unwelcome = true;
    assert_true(loop_run_until(f->loop, is_ended, f, PATIENCE));
    assert_int_equal(f->reader.code, CODE(UNAUTHENTICATED));
}

static void too_many_streams_and_bad_requests_are_refused(void **state)
{
    struct fixture *f = *state;
    struct watcher *many = mem_zalloc(64 * sizeof *many);

    watch(f, &f->reader, "1.2", 0);
    assert_int_equal(f->reader.code, CODE(INVALID_ARGUMENT));
    watch(f, &f->reader, "", 999);
    assert_int_equal(f->reader.code, CODE(INVALID_ARGUMENT));
    for (uint32_t i = 0; i < 64; i++)
        watch(f, &many[i], "", 0);
    watch(f, &f->reader, "", 0);
    assert_int_equal(f->reader.code, CODE(THROTTLED));
    router_cancel(&f->router, &many[9].request);
    watch(f, &f->reader, "", 0);
    assert_false(f->reader.ended);
    router_end_streams(&f->router);
    free(many);
}

static void a_door_without_streams_refuses(void **state)
{
    static const struct request_door unary = { .reply = refuse_reply, .fail = fail_request };
    struct fixture *f = *state;
    Holdfast__V1__WatchIncidentsRequest message = HOLDFAST__V1__WATCH_INCIDENTS_REQUEST__INIT;

    f->reader.request = (struct request){ .door = &unary,
                                          .origin = &f->reader,
                                          .method = method_find(METHOD_WATCH_INCIDENTS),
                                          .message = &message.base,
                                          .arena = &f->reader.arena };
    router_dispatch(&f->router, &f->reader.request);
    assert_int_equal(f->reader.code, CODE(UNIMPLEMENTED));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_a_node_tells_is_sent_on_at_once),
        TEST(a_cursor_goes_on_where_a_stream_ended),
        TEST(a_reader_who_is_behind_makes_nobody_ask),
        TEST(a_node_that_is_silent_is_named_until_it_speaks),
        TEST(heartbeats_come_when_nothing_happens),
        TEST(streams_end_when_the_router_stops_or_the_reader_goes),
        TEST(a_deadline_ends_the_stream),
        TEST(a_revoked_key_ends_the_stream),
        TEST(too_many_streams_and_bad_requests_are_refused),
        TEST(a_door_without_streams_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
