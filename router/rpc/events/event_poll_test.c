/* EventService/Poll over shards of the test's making. */
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

#define SHARDS     4u
#define LIFE       7u
#define EVENTS_MAX 8u

struct fixture {
    struct plain_ask ask; /* First: it is the origin of the request. */
    struct plain_router plain;
    uint32_t first; /* Of the calls to nodes: that to shard 0. */
    Holdfast__V1__PollResponse *page;
    const char *entity; /* That the next Poll is about; NULL: all. */
    const char *prefix; /* Likewise. */
};

static void reply(struct request *request, const ProtobufCMessage *response)
{
    struct fixture *f = request->origin;

    f->page = plain_message_copy(response, &f->ask.arena);
    f->ask.answers++;
}

static const struct request_door door = { .reply = reply, .fail = plain_ask_fail };

static int setup(void **state)
{
    static const struct log silent = { .level_min = LOG_ERROR + 1 };
    struct fixture *f = mem_zalloc(sizeof *f);

    plain_router_init(&f->plain, SHARDS,
                      &(struct router_options){ .log = &silent, .in_flight_max = 10 });
    f->plain.door = &door;
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

static void poll(struct fixture *f, uint32_t page_size, uint32_t wait_ms)
{
    Holdfast__V1__PollRequest message = HOLDFAST__V1__POLL_REQUEST__INIT;

    message.page_size = page_size;
    if (f->entity != NULL)
        message.entity = text_lend(f->entity);
    if (f->prefix != NULL)
        message.entity_prefix = text_lend(f->prefix);
    if (f->page != NULL)
        message.cursor = f->page->next_cursor;
    f->page = NULL;
    f->first = f->plain.fake.call_count;
    plain_router_send(&f->plain, &f->ask, METHOD_POLL, &message.base, wait_ms);
}

/* The events `first` to `last` of a shard: numbers in the last byte of a place. */
struct said {
    uint8_t first, last;
    bool more, gap;
};

/* The place of the call that asks that shard, and what it asks; to be freed. */
static uint32_t call_of(struct fixture *f, uint32_t shard,
                        Holdfast__Internal__V1__ListShardEventsRequest **ret_asked)
{
    for (uint32_t i = f->first; i < f->plain.fake.call_count; i++) {
        struct slice body = f->plain.fake.calls[i].body;
        *ret_asked =
            holdfast__internal__v1__list_shard_events_request__unpack(NULL, body.size, body.data);
        assert_non_null(*ret_asked);
        if ((*ret_asked)->shard == shard)
            return i;
        holdfast__internal__v1__list_shard_events_request__free_unpacked(*ret_asked, NULL);
    }
    fail_msg("shard %u is not asked", shard);
    return 0;
}

/* Answers the call of that shard, which knows the events up to `known`; 0: it knows nothing. */
static void shard_says(struct fixture *f, uint32_t shard, uint8_t known, struct said said)
{
    Holdfast__Internal__V1__ListShardEventsResponse answer =
        HOLDFAST__INTERNAL__V1__LIST_SHARD_EVENTS_RESPONSE__INIT;
    Holdfast__V1__Event events[EVENTS_MAX], *list[EVENTS_MAX];
    char seqs[EVENTS_MAX][2 * EVENT_CURSOR_PLACE_BYTES + 1];
    uint8_t place[EVENT_CURSOR_PLACE_BYTES] = { 0 };
    uint8_t bytes[2048];

    Holdfast__Internal__V1__ListShardEventsRequest *asked = NULL;
    uint32_t call = call_of(f, shard, &asked);
    assert_int_equal(asked->after.len, known > 0 ? EVENT_CURSOR_PLACE_BYTES : 0);
    assert_int_equal(known > 0 ? asked->after.data[EVENT_CURSOR_PLACE_BYTES - 1] : 0, known);
    assert_int_equal(asked->life, known > 0 ? LIFE : 0);
    holdfast__internal__v1__list_shard_events_request__free_unpacked(asked, NULL);
    for (uint8_t i = said.first; i <= said.last && said.last > 0; i++) {
        size_t at = answer.n_events++;
        holdfast__v1__event__init(&events[at]);
        place[EVENT_CURSOR_PLACE_BYTES - 1] = i;
        hex_print(place, sizeof place, seqs[at]);
        events[at].seq = seqs[at];
        events[at].shard = shard;
        list[at] = &events[at];
    }
    place[EVENT_CURSOR_PLACE_BYTES - 1] = said.last > 0 ? said.last : known;
    answer.events = list;
    answer.life = LIFE;
    answer.next = (ProtobufCBinaryData){ sizeof place, place };
    answer.more = said.more;
    answer.gap = said.gap;
    size_t size = holdfast__internal__v1__list_shard_events_response__pack(&answer, bytes);
    fake_cluster_answer(&f->plain.fake, call, WIRE_OK, (struct slice){ bytes, size });
}

static void a_page_has_the_events_of_all_shards_and_the_next_one_goes_on(void **state)
{
    struct fixture *f = *state;

    poll(f, 100, 5000);
    assert_int_equal(f->plain.fake.call_count, SHARDS);
    for (uint32_t i = 0; i < SHARDS; i++)
        shard_says(f, i, 0, (struct said){ 1, 2, false, false });
    assert_int_equal(f->ask.answers, 1);
    assert_int_equal(f->page->n_events, 2 * SHARDS);
    assert_false(f->page->more);
    poll(f, 100, 5000);
    for (uint32_t i = 0; i < SHARDS; i++)
        shard_says(f, i, 2, (struct said){ 3, 3, i == 1, i == 2 });
    assert_int_equal(f->page->n_events, SHARDS);
    assert_true(f->page->more);
    assert_int_equal(f->page->n_gaps, 1);
    assert_int_equal(f->page->gaps[0]->shard, 2);
}

/* And the shard that came short comes first in the next one. */
static void what_has_no_room_is_told_in_the_next_page(void **state)
{
    struct fixture *f = *state;

    poll(f, 3, 5000);
    for (uint32_t i = 0; i < SHARDS; i++)
        shard_says(f, i, 0, (struct said){ 1, i == 1 ? 2 : 1, false, i >= 2 });
    assert_int_equal(f->page->n_events, 3);
    assert_true(f->page->more);
    assert_int_equal(f->page->n_gaps, 0); /* They are told with those shards' events. */
    poll(f, 3, 5000);
    shard_says(f, 0, 1, (struct said){ 0 });
    shard_says(f, 1, 2, (struct said){ 0 });
    shard_says(f, 2, 0, (struct said){ 1, 1, false, true });
    shard_says(f, 3, 0, (struct said){ 1, 1, false, true });
    assert_int_equal(f->page->n_events, 2);
    assert_int_equal(f->page->events[0]->shard, 2);
    assert_int_equal(f->page->n_gaps, 2);
    assert_false(f->page->more);
    poll(f, 1, 5000); /* Of an answer with two events the first alone has room. */
    shard_says(f, 0, 1, (struct said){ 2, 3, false, false });
    for (uint32_t i = 1; i < SHARDS; i++)
        shard_says(f, i, i == 1 ? 2 : 1, (struct said){ 0 });
    assert_int_equal(f->page->n_events, 1);
    assert_true(f->page->more);
    poll(f, 1, 5000);
    shard_says(f, 0, 2, (struct said){ 3, 3, false, false });
    for (uint32_t i = 1; i < SHARDS; i++)
        shard_says(f, i, i == 1 ? 2 : 1, (struct said){ 0 });
    assert_int_equal(f->page->n_events, 1);
    assert_false(f->page->more);
}

/* And of the others the cursor says what it said before. */
static void one_players_events_are_asked_of_one_shard(void **state)
{
    struct fixture *f = *state;
    uint32_t shard = shard_of_entity(SLICE_LITERAL("player:noor"), SHARDS);
    Holdfast__Internal__V1__ListShardEventsRequest *asked = NULL;

    f->entity = "player:noor";
    poll(f, 100, 5000);
    assert_int_equal(f->plain.fake.call_count, 1);
    (void)call_of(f, shard, &asked);
    assert_string_equal(asked->entity, "player:noor");
    assert_int_equal(asked->limit, 100);
    holdfast__internal__v1__list_shard_events_request__free_unpacked(asked, NULL);
    shard_says(f, shard, 0, (struct said){ 1, 2, false, false });
    assert_int_equal(f->ask.answers, 1);
    assert_int_equal(f->page->n_events, 2);
    assert_int_equal(f->page->n_unreachable_shards, 0);
    f->entity = NULL;
    poll(f, 100, 5000);
    assert_int_equal(f->plain.fake.call_count, 1 + SHARDS);
    for (uint32_t i = 0; i < SHARDS; i++)
        shard_says(f, i, i == shard ? 2 : 0, (struct said){ 3, 3, false, false });
    assert_int_equal(f->page->n_events, SHARDS);
}

static void definitions_are_asked_of_all_shards(void **state)
{
    struct fixture *f = *state;

    f->entity = "definition:collection/favorites";
    poll(f, 100, 5000);
    assert_int_equal(f->plain.fake.call_count, SHARDS);
    for (uint32_t i = 0; i < SHARDS; i++)
        shard_says(f, i, 0, (struct said){ 0 });
    assert_int_equal(f->ask.answers, 1);
}

static void an_entity_that_can_have_no_events_is_refused(void **state)
{
    struct fixture *f = *state;
    const char *const bad[] = { "noor", "player:", "definition", "Player:noor" };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        f->entity = bad[i];
        poll(f, 100, 5000);
        assert_int_equal(f->ask.code, CODE(INVALID_ARGUMENT));
    }
    f->entity = "player:noor";
    f->prefix = "player:";
    poll(f, 100, 5000);
    assert_int_equal(f->ask.code, CODE(INVALID_ARGUMENT));
    assert_int_equal(f->plain.fake.call_count, 0);
}

static bool is_answered(void *user)
{
    return ((const struct fixture *)user)->ask.answers > 0;
}

static void a_shard_that_is_silent_keeps_its_place(void **state)
{
    struct fixture *f = *state;

    fake_cluster_set_owner(&f->plain.fake, 2, 2, 2);
    f->plain.fake.down[2] = true;
    poll(f, 100, 300);
    for (uint32_t i = 0; i < SHARDS; i++) {
        if (i != 2)
            shard_says(f, i, 0, (struct said){ 1, 1, false, false });
    }
    (void)loop_run_until(f->plain.loop, is_answered, f, 5000);
    assert_int_equal(f->ask.answers, 1);
    assert_int_equal(f->page->n_unreachable_shards, 1);
    assert_int_equal(f->page->unreachable_shards[0], 2);
    f->plain.fake.down[2] = false;
    poll(f, 100, 5000);
    for (uint32_t i = 0; i < SHARDS; i++)
        shard_says(f, i, i == 2 ? 0 : 1, (struct said){ 0 });
    assert_int_equal(f->page->n_unreachable_shards, 0);
}

static void no_answer_at_all_is_an_error(void **state)
{
    struct fixture *f = *state;

    f->plain.fake.down[1] = true;
    poll(f, 100, 300);
    (void)loop_run_until(f->plain.loop, is_answered, f, 5000);
    assert_int_equal(f->ask.answers, 1);
    assert_true(f->ask.code == CODE(UNAVAILABLE) || f->ask.code == CODE(DEADLINE_EXCEEDED));
}

static void a_caller_that_goes_away_asks_no_longer(void **state)
{
    struct fixture *f = *state;

    poll(f, 100, 5000);
    shard_says(f, 0, 0, (struct said){ 1, 1, false, false });
    router_cancel(&f->plain.router, &f->ask.request);
    assert_int_equal(f->ask.code, CODE(CANCELED));
    for (uint32_t i = 1; i < SHARDS; i++)
        assert_true(f->plain.fake.calls[i].cancelled);
}

static void an_answer_that_cannot_be_read_is_a_bug(void **state)
{
    struct fixture *f = *state;

    poll(f, 100, 5000);
    fake_cluster_answer(&f->plain.fake, 1, WIRE_OK, SLICE_LITERAL("\xff\xff"));
    assert_int_equal(f->ask.answers, 1);
    assert_int_equal(f->ask.code, CODE(INTERNAL));
}

#define POLL_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        POLL_TEST(a_page_has_the_events_of_all_shards_and_the_next_one_goes_on),
        POLL_TEST(what_has_no_room_is_told_in_the_next_page),
        POLL_TEST(one_players_events_are_asked_of_one_shard),
        POLL_TEST(definitions_are_asked_of_all_shards),
        POLL_TEST(an_entity_that_can_have_no_events_is_refused),
        POLL_TEST(a_shard_that_is_silent_keeps_its_place),
        POLL_TEST(no_answer_at_all_is_an_error),
        POLL_TEST(a_caller_that_goes_away_asks_no_longer),
        POLL_TEST(an_answer_that_cannot_be_read_is_a_bug),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
