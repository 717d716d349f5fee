/* A stream of events, with shards and nodes that answer when the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/events.pb-c.h"
#include "idl/error_code.h"
#include "router/core/event_cursor_text.h"
#include "router/rpc/fake/plain_router.h"
#include "runtime/base/check.h"
#include "runtime/base/hex.h"
#include "runtime/cluster/placement.h"

#define SHARDS    4u
#define NODES     3u
#define LIFE      7u
#define PATIENCE  60000u /* A bound only. */
#define STREAMS   65u
#define TOLD_MAX  64u
#define PLACE_END (EVENT_CURSOR_PLACE_BYTES - 1)

struct stream {
    struct plain_ask ask; /* First: it is the origin of the request. */
    uint32_t messages, events, gaps;
    size_t unreachable; /* In the last message. */
    uint32_t shards[TOLD_MAX];
    uint8_t places[TOLD_MAX]; /* The last byte of each event's. */
    char cursor[256];
    bool full, unwelcome;
};

struct fixture {
    struct plain_router plain;
    struct stream streams[STREAMS];
    struct stream *one;
    uint32_t wanted; /* Of whatever is waited for. */
    uint32_t shard;
};

static bool stream_send(struct request *request, const ProtobufCMessage *message)
{
    struct stream *stream = request->origin;
    const Holdfast__V1__SubscribeResponse *said = (const void *)message;

    assert_int_equal(stream->ask.answers, 0);
    stream->messages++;
    for (size_t i = 0; i < said->n_events; i++) {
        uint8_t place[EVENT_CURSOR_PLACE_BYTES];
        assert_in_range(stream->events, 0, TOLD_MAX - 1);
        assert_int_equal(hex_parse(slice_from_text(said->events[i]->seq), sizeof place, place),
                         ERR_OK);
        stream->shards[stream->events] = said->events[i]->shard;
        stream->places[stream->events++] = place[PLACE_END];
    }
    stream->gaps += (uint32_t)said->n_gaps;
    stream->unreachable = said->n_unreachable_shards;
    (void)snprintf(stream->cursor, sizeof stream->cursor, "%s", said->next_cursor);
    return !stream->full;
}

static void refuse_reply(struct request *request, const ProtobufCMessage *response)
{
    (void)request;
    (void)response;
    fail_msg("a stream is no unary answer");
}

static bool is_welcome(const struct request *request)
{
    return !((const struct stream *)request->origin)->unwelcome;
}

static const struct request_door door = { .reply = refuse_reply,
                                          .fail = plain_ask_fail,
                                          .stream_send = stream_send,
                                          .is_welcome = is_welcome };

static int setup(void **state)
{
    static const struct log silent = { .level_min = LOG_ERROR + 1 };
    struct fixture *f = mem_zalloc(sizeof *f);

    plain_router_init(&f->plain, SHARDS,
                      &(struct router_options){ .log = &silent, .in_flight_max = 1000 });
    f->plain.door = &door;
    f->one = &f->streams[0];
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    plain_router_deinit(&f->plain);
    free(f);
    return 0;
}

static void subscribe(struct fixture *f, struct stream *stream, const char *entity)
{
    Holdfast__V1__SubscribeRequest message = HOLDFAST__V1__SUBSCRIBE_REQUEST__INIT;

    message.entity = text_lend(entity);
    message.cursor = stream->cursor;
    message.heartbeat_ms = 60000; /* None while the test runs. */
    plain_router_send(&f->plain, &stream->ask, METHOD_SUBSCRIBE, &message.base, 10 * PATIENCE);
}

/* ---- what the router asks ---- */
static Holdfast__Internal__V1__ListShardEventsRequest *asked_of(const struct fake_call *call)
{
    Holdfast__Internal__V1__ListShardEventsRequest *asked =
        holdfast__internal__v1__list_shard_events_request__unpack(NULL, call->body.size,
                                                                  call->body.data);
    assert_non_null(asked);
    return asked;
}

/* The open question to that shard; FAKE_CALLS_MAX: there is none. */
static uint32_t question_find(const struct fixture *f, uint32_t shard)
{
    for (uint32_t i = 0; i < f->plain.fake.call_count; i++) {
        const struct fake_call *call = &f->plain.fake.calls[i];
        if (!call->open || call->method != METHOD_LIST_SHARD_EVENTS)
            continue;
        Holdfast__Internal__V1__ListShardEventsRequest *asked = asked_of(call);
        bool same = asked->shard == shard;
        holdfast__internal__v1__list_shard_events_request__free_unpacked(asked, NULL);
        if (same)
            return i;
    }
    return FAKE_CALLS_MAX;
}

static uint32_t news_find(const struct fixture *f, uint64_t node)
{
    for (uint32_t i = 0; i < f->plain.fake.call_count; i++) {
        const struct fake_call *call = &f->plain.fake.calls[i];
        if (call->open && call->method == METHOD_LIST_EVENT_NEWS && call->node == node)
            return i;
    }
    return FAKE_CALLS_MAX;
}

static bool shard_is_asked(void *user)
{
    struct fixture *f = user;
    return question_find(f, f->shard) < FAKE_CALLS_MAX;
}

static bool node_is_asked(void *user)
{
    struct fixture *f = user;
    return news_find(f, f->wanted) < FAKE_CALLS_MAX;
}

static bool has_events(void *user)
{
    struct fixture *f = user;
    return f->one->events >= f->wanted;
}

static bool has_messages(void *user)
{
    struct fixture *f = user;
    return f->one->messages >= f->wanted;
}

static bool has_ended(void *user)
{
    struct fixture *f = user;
    return f->one->ask.answers > 0;
}

static void await(struct fixture *f, bool (*done)(void *user), uint32_t wanted)
{
    f->wanted = wanted;
    assert_true(loop_run_until(f->plain.loop, done, f, PATIENCE));
}

/* The events `first` to `last` of a shard: numbers in the last byte of a place. */
struct said {
    uint8_t first, last;
    bool more, gap;
};

/* Answers the question to that shard, once it comes; of it is known what is up to `known`. */
static void shard_says(struct fixture *f, uint32_t shard, uint8_t known, struct said said)
{
    Holdfast__Internal__V1__ListShardEventsResponse answer =
        HOLDFAST__INTERNAL__V1__LIST_SHARD_EVENTS_RESPONSE__INIT;
    Holdfast__V1__Event events[8], *list[8];
    char seqs[8][2 * EVENT_CURSOR_PLACE_BYTES + 1];
    uint8_t place[EVENT_CURSOR_PLACE_BYTES] = { 0 };
    uint8_t bytes[2048];

    f->shard = shard;
    await(f, shard_is_asked, 0);
    uint32_t call = question_find(f, shard);
    Holdfast__Internal__V1__ListShardEventsRequest *asked = asked_of(&f->plain.fake.calls[call]);
    assert_int_equal(known > 0 ? asked->after.data[PLACE_END] : asked->after.len, known);
    holdfast__internal__v1__list_shard_events_request__free_unpacked(asked, NULL);
    for (uint8_t i = said.first; i <= said.last && said.last > 0; i++) {
        size_t at = answer.n_events++;
        holdfast__v1__event__init(&events[at]);
        place[PLACE_END] = i;
        hex_print(place, sizeof place, seqs[at]);
        events[at].seq = seqs[at];
        events[at].shard = shard;
        list[at] = &events[at];
    }
    place[PLACE_END] = said.last > 0 ? said.last : known;
    answer.events = list;
    answer.life = LIFE;
    answer.next = (ProtobufCBinaryData){ sizeof place, place };
    answer.more = said.more;
    answer.gap = said.gap;
    size_t size = holdfast__internal__v1__list_shard_events_response__pack(&answer, bytes);
    fake_cluster_answer(&f->plain.fake, call, WIRE_OK, (struct slice){ bytes, size });
}

static void all_say(struct fixture *f, uint8_t known, struct said said)
{
    for (uint32_t i = 0; i < SHARDS; i++)
        shard_says(f, i, known, said);
}

static Holdfast__Internal__V1__ListEventNewsRequest *news_asked(struct fixture *f, uint64_t node)
{
    await(f, node_is_asked, (uint32_t)node);
    const struct fake_call *call = &f->plain.fake.calls[news_find(f, node)];
    Holdfast__Internal__V1__ListEventNewsRequest *asked =
        holdfast__internal__v1__list_event_news_request__unpack(NULL, call->body.size,
                                                                call->body.data);
    assert_non_null(asked);
    return asked;
}

/* The node has news of one shard, once it is asked. */
static void node_says(struct fixture *f, uint64_t node, uint64_t now, uint32_t shard)
{
    Holdfast__Internal__V1__ListEventNewsResponse answer =
        HOLDFAST__INTERNAL__V1__LIST_EVENT_NEWS_RESPONSE__INIT;
    uint8_t bytes[64];

    await(f, node_is_asked, (uint32_t)node);
    answer.life = LIFE;
    answer.now = now;
    answer.shards = &shard;
    answer.n_shards = 1;
    size_t size = holdfast__internal__v1__list_event_news_response__pack(&answer, bytes);
    fake_cluster_answer(&f->plain.fake, news_find(f, node), WIRE_OK, (struct slice){ bytes, size });
}

/* ---- the tests ---- */
static void a_stream_tells_what_there_is_and_then_what_comes(void **state)
{
    struct fixture *f = *state;

    subscribe(f, f->one, "");
    assert_int_equal(f->one->messages, 1); /* At once, without events. */
    assert_true(f->one->cursor[0] != '\0');
    all_say(f, 0, (struct said){ 1, 2, false, false });
    await(f, has_events, 2 * SHARDS);
    for (uint32_t i = 0; i < SHARDS; i++)
        assert_int_equal(question_find(f, i), FAKE_CALLS_MAX);
    node_says(f, 2, 5, 3);
    shard_says(f, 3, 2, (struct said){ 3, 3, false, false });
    await(f, has_events, 2 * SHARDS + 1);
    assert_int_equal(f->one->shards[2 * SHARDS], 3);
    assert_int_equal(f->one->places[2 * SHARDS], 3);
    assert_int_equal(f->one->gaps, 0);
}

static void a_shard_that_has_more_is_asked_on_and_gaps_are_told(void **state)
{
    struct fixture *f = *state;

    subscribe(f, f->one, "");
    shard_says(f, 1, 0, (struct said){ 1, 4, true, false });
    shard_says(f, 1, 4, (struct said){ 6, 7, false, true });
    await(f, has_events, 6);
    assert_int_equal(f->one->gaps, 1);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(f->one->places[i], i < 4 ? i + 1 : i + 2);
}

/* The next rows of that shard: the filter left all of them out, and there are more. */
static void shard_passes_by(struct fixture *f, uint32_t shard, uint8_t up_to)
{
    Holdfast__Internal__V1__ListShardEventsResponse answer =
        HOLDFAST__INTERNAL__V1__LIST_SHARD_EVENTS_RESPONSE__INIT;
    uint8_t place[EVENT_CURSOR_PLACE_BYTES] = { 0 };
    static uint8_t padding[60000], bytes[61000];
    ProtobufCMessageUnknownField large = { .tag = 1000,
                                           .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                                           .len = sizeof padding,
                                           .data = padding };
    static const uint8_t length[] = { 0xdd, 0xd4, 0x03 }; /* 59,997: what follows it. */

    memcpy(padding, length, sizeof length);
    f->shard = shard;
    await(f, shard_is_asked, 0);
    place[PLACE_END] = up_to;
    answer.life = LIFE;
    answer.next = (ProtobufCBinaryData){ sizeof place, place };
    answer.more = true;
    answer.base.n_unknown_fields = 1;
    answer.base.unknown_fields = &large;
    size_t size = holdfast__internal__v1__list_shard_events_response__pack(&answer, bytes);
    fake_cluster_answer(&f->plain.fake, question_find(f, shard), WIRE_OK,
                        (struct slice){ bytes, size });
}

/* It asks on at once, however much says nothing: the next heartbeat is a minute away. */
static void a_filter_that_leaves_much_out_is_not_waited_for(void **state)
{
    struct fixture *f = *state;

    subscribe(f, f->one, "");
    for (uint32_t i = 0; i < SHARDS; i++) {
        if (i != 1)
            shard_says(f, i, 0, (struct said){ 0 });
    }
    for (uint8_t i = 1; i <= 30; i++)
        shard_passes_by(f, 1, i);
    shard_says(f, 1, 30, (struct said){ 31, 32, false, false });
    await(f, has_events, 2);
}

/* Through its cursor: nothing is left out, nothing comes twice. */
static void another_stream_goes_on_where_one_ended(void **state)
{
    struct fixture *f = *state;

    subscribe(f, f->one, "");
    all_say(f, 0, (struct said){ 1, 3, false, false });
    await(f, has_events, 3 * SHARDS);
    router_cancel(&f->plain.router, &f->one->ask.request);
    assert_int_equal(f->one->ask.code, CODE(CANCELED));
    subscribe(f, f->one, "");
    all_say(f, 3, (struct said){ 4, 4, false, false });
    await(f, has_events, 4 * SHARDS);
}

/* And nothing is kept for it meanwhile. */
static void a_slow_reader_is_not_read_for(void **state)
{
    struct fixture *f = *state;

    f->one->full = true;
    subscribe(f, f->one, "");
    node_says(f, 1, 5, 0);
    node_says(f, 1, 6, 1); /* So the first has been seen. */
    for (uint32_t i = 0; i < SHARDS; i++)
        assert_int_equal(question_find(f, i), FAKE_CALLS_MAX);
    assert_int_equal(f->one->messages, 1);
    f->one->full = false;
    router_writable(&f->plain.router, &f->one->ask.request);
    all_say(f, 0, (struct said){ 1, 1, false, false });
    await(f, has_events, SHARDS);
}

/* An answer that comes too late for it is asked for again. */
static void what_a_reader_has_no_room_for_comes_later(void **state)
{
    struct fixture *f = *state;

    subscribe(f, f->one, "");
    f->shard = SHARDS - 1;
    await(f, shard_is_asked, 0);
    f->one->full = true;
    shard_says(f, 0, 0, (struct said){ 1, 1, false, false });
    await(f, has_events, 1);
    for (uint32_t i = 1; i < SHARDS; i++)
        shard_says(f, i, 0, (struct said){ 1, 1, false, false });
    f->one->full = false;
    router_writable(&f->plain.router, &f->one->ask.request);
    for (uint32_t i = 1; i < SHARDS; i++)
        shard_says(f, i, 0, (struct said){ 1, 2, false, false });
    await(f, has_events, 1 + 2 * (SHARDS - 1));
}

static void a_shard_that_is_silent_is_named_and_keeps_its_place(void **state)
{
    struct fixture *f = *state;

    fake_cluster_set_owner(&f->plain.fake, 2, 2, 2);
    f->plain.fake.down[2] = true;
    subscribe(f, f->one, "");
    for (uint32_t i = 0; i < SHARDS; i++) {
        if (i != 2)
            shard_says(f, i, 0, (struct said){ 1, 1, false, false });
    }
    await(f, has_events, SHARDS - 1);
    while (f->one->unreachable == 0)
        await(f, has_messages, f->one->messages + 1);
    assert_int_equal(f->one->unreachable, 1);
    f->plain.fake.down[2] = false;
    shard_says(f, 2, 0, (struct said){ 1, 1, false, false });
    await(f, has_events, SHARDS);
    assert_int_equal(f->one->unreachable, 0);
}

static void one_players_events_are_asked_of_one_shard(void **state)
{
    struct fixture *f = *state;
    uint32_t shard = shard_of_entity(SLICE_LITERAL("player:noor"), SHARDS);

    subscribe(f, f->one, "player:noor");
    shard_says(f, shard, 0, (struct said){ 1, 1, false, false });
    await(f, has_events, 1);
    node_says(f, 1, 5, (shard + 1) % SHARDS);
    node_says(f, 1, 6, shard);
    shard_says(f, shard, 1, (struct said){ 2, 2, false, false });
    await(f, has_events, 2);
    for (uint32_t i = 0; i < f->plain.fake.call_count; i++) {
        if (f->plain.fake.calls[i].method != METHOD_LIST_SHARD_EVENTS)
            continue;
        Holdfast__Internal__V1__ListShardEventsRequest *asked = asked_of(&f->plain.fake.calls[i]);
        assert_int_equal(asked->shard, shard);
        assert_string_equal(asked->entity, "player:noor");
        holdfast__internal__v1__list_shard_events_request__free_unpacked(asked, NULL);
    }
}

/* A node that was away is asked for all that it serves. */
static void nodes_are_asked_once_for_all_streams(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__ListEventNewsRequest *asked;
    uint32_t questions = 0;

    for (uint32_t i = 0; i < 3; i++)
        subscribe(f, &f->streams[i], "");
    node_says(f, 2, 9, 0);
    asked = news_asked(f, 2);
    assert_int_equal(asked->life, LIFE);
    assert_int_equal(asked->after, 9);
    holdfast__internal__v1__list_event_news_request__free_unpacked(asked, NULL);
    for (uint32_t i = 0; i < f->plain.fake.call_count; i++)
        questions +=
            f->plain.fake.calls[i].open && f->plain.fake.calls[i].method == METHOD_LIST_EVENT_NEWS;
    assert_int_equal(questions, NODES);
    fake_cluster_fail(&f->plain.fake, news_find(f, 2), ERR_UNAVAILABLE);
    asked = news_asked(f, 2);
    assert_int_equal(asked->life, 0);
    assert_int_equal(asked->after, 0);
    holdfast__internal__v1__list_event_news_request__free_unpacked(asked, NULL);
    for (uint32_t i = 0; i < 3; i++)
        router_cancel(&f->plain.router, &f->streams[i].ask.request);
    for (uint32_t node = 1; node <= NODES; node++)
        assert_int_equal(news_find(f, node), FAKE_CALLS_MAX);
}

static void so_many_streams_and_no_more(void **state)
{
    struct fixture *f = *state;

    for (uint32_t i = 0; i < STREAMS; i++)
        subscribe(f, &f->streams[i], "");
    assert_int_equal(f->streams[STREAMS - 2].ask.answers, 0);
    assert_int_equal(f->streams[STREAMS - 1].ask.answers, 1);
    assert_int_equal(f->streams[STREAMS - 1].ask.code, CODE(THROTTLED));
    router_cancel(&f->plain.router, &f->one->ask.request);
    subscribe(f, &f->streams[STREAMS - 1], "");
    assert_int_equal(f->streams[STREAMS - 1].ask.answers, 0);
}

static void a_router_that_stops_ends_them(void **state)
{
    struct fixture *f = *state;

    subscribe(f, &f->streams[0], "");
    subscribe(f, &f->streams[1], "");
    router_end_streams(&f->plain.router);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(f->streams[i].ask.code, CODE(UNAVAILABLE));
    subscribe(f, &f->streams[2], "");
    assert_int_equal(f->streams[2].ask.code, CODE(UNAVAILABLE));
}

static void a_key_that_is_revoked_hears_no_more(void **state)
{
    struct fixture *f = *state;

    subscribe(f, f->one, "");
    f->one->unwelcome = true;
    await(f, has_ended, 0);
    assert_int_equal(f->one->ask.code, CODE(UNAUTHENTICATED));
}

static void an_answer_that_cannot_be_read_is_a_bug(void **state)
{
    struct fixture *f = *state;

    subscribe(f, f->one, "");
    f->shard = 1;
    await(f, shard_is_asked, 0);
    fake_cluster_answer(&f->plain.fake, question_find(f, 1), WIRE_OK, SLICE_LITERAL("\xff\xff"));
    await(f, has_ended, 0);
    assert_int_equal(f->one->ask.code, CODE(INTERNAL));
}

static void bad_requests_are_refused(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__SubscribeRequest message = HOLDFAST__V1__SUBSCRIBE_REQUEST__INIT;

    message.heartbeat_ms = 999;
    plain_router_send(&f->plain, &f->one->ask, METHOD_SUBSCRIBE, &message.base, PATIENCE);
    assert_int_equal(f->one->ask.code, CODE(INVALID_ARGUMENT));
    message.heartbeat_ms = 0;
    message.cursor = text_lend("nonsense");
    plain_router_send(&f->plain, &f->one->ask, METHOD_SUBSCRIBE, &message.base, PATIENCE);
    assert_int_equal(f->one->ask.code, CODE(INVALID_ARGUMENT));
    subscribe(f, f->one, "pony:1");
    assert_int_equal(f->one->ask.code, CODE(INVALID_ARGUMENT));
    assert_int_equal(f->plain.fake.call_count, 0);
}

#define STREAM_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STREAM_TEST(a_stream_tells_what_there_is_and_then_what_comes),
        STREAM_TEST(a_shard_that_has_more_is_asked_on_and_gaps_are_told),
        STREAM_TEST(a_filter_that_leaves_much_out_is_not_waited_for),
        STREAM_TEST(another_stream_goes_on_where_one_ended),
        STREAM_TEST(a_slow_reader_is_not_read_for),
        STREAM_TEST(what_a_reader_has_no_room_for_comes_later),
        STREAM_TEST(a_shard_that_is_silent_is_named_and_keeps_its_place),
        STREAM_TEST(one_players_events_are_asked_of_one_shard),
        STREAM_TEST(nodes_are_asked_once_for_all_streams),
        STREAM_TEST(so_many_streams_and_no_more),
        STREAM_TEST(a_router_that_stops_ends_them),
        STREAM_TEST(a_key_that_is_revoked_hears_no_more),
        STREAM_TEST(an_answer_that_cannot_be_read_is_a_bug),
        STREAM_TEST(bad_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
