/* Commits of consumers: where they stand, and what may move them. */
#include <stdio.h>
#include <string.h>

#include "holdfast/v1/events.pb-c.h"
#include "node/core/consumer/consumer.h"
#include "node/rpc/fixture.h"

typedef Holdfast__V1__CommitConsumerRequest commit_request;
typedef Holdfast__V1__CommitConsumerResponse commit_response;

#define CURSORS_MAX         8u
#define CURSOR_BYTES        256u
#define CONSUMER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

/* A cluster of one shard, so that a cursor has one place. */
static int setup(void **state)
{
    (void)fixture_setup(state);
    fixture_deinit(*state);
    fixture_init_shard(*state, 0, 1);
    return 0;
}

/* Text that outlives the fixture's calls. */
static char *printed(const struct event_cursor *cursor)
{
    static char texts[CURSORS_MAX][CURSOR_BYTES];
    static uint32_t count;
    struct arena arena = { 0 };
    char *text = texts[count++ % CURSORS_MAX];

    snprintf(text, CURSOR_BYTES, "%s", event_cursor_print(cursor, &arena));
    arena_deinit(&arena);
    return text;
}

/* The cursor of a reader that has seen that entry of the shard. */
static char *cursor_at(uint32_t life, uint8_t place, uint64_t passed_ms)
{
    struct arena arena = { 0 };
    struct event_cursor cursor;

    event_cursor_init(&cursor, 1, &arena);
    cursor.counts = true;
    cursor.known[0] = (struct event_known){
        .any = true, .life = life, .passed = place + 1u, .passed_ms = passed_ms
    };
    cursor.known[0].place[EVENT_CURSOR_PLACE_BYTES - 5] = place;
    char *text = printed(&cursor);
    arena_deinit(&arena);
    return text;
}

static uint64_t create(struct fixture *f)
{
    Holdfast__V1__CreateConsumerRequest request = HOLDFAST__V1__CREATE_CONSUMER_REQUEST__INIT;

    request.consumer = (char *)(uintptr_t) "search";
    request.op_id = (char *)(uintptr_t) "key:made";
    const Holdfast__V1__CreateConsumerResponse *made =
        fixture_mutate(f, METHOD_CREATE_CONSUMER, &request.base);
    assert_non_null(made);
    return made->consumer->version;
}

static commit_request commit_of(uint64_t version, const char *op_id, char *cursor)
{
    commit_request request = HOLDFAST__V1__COMMIT_CONSUMER_REQUEST__INIT;

    request.consumer = (char *)(uintptr_t) "search";
    request.op_id = (char *)(uintptr_t)op_id;
    request.version = version;
    request.cursor = cursor;
    return request;
}

static const commit_response *commit(struct fixture *f, const commit_request *request)
{
    return fixture_mutate(f, METHOD_COMMIT_CONSUMER, &request->base);
}

/* The place that stands committed: cursor_at's; 0: none. */
static uint8_t place_of(struct fixture *f)
{
    Holdfast__V1__GetConsumerRequest request = HOLDFAST__V1__GET_CONSUMER_REQUEST__INIT;
    struct event_cursor cursor;

    request.consumer = (char *)(uintptr_t) "search";
    const Holdfast__V1__GetConsumerResponse *told =
        fixture_read(f, METHOD_GET_CONSUMER, &request.base);
    assert_non_null(told);
    if (told->consumer->cursor[0] == '\0')
        return 0;
    assert_int_equal(
        event_cursor_decode(slice_from_text(told->consumer->cursor), 1, &f->arena, &cursor),
        ERR_OK);
    return cursor.known[0].place[EVENT_CURSOR_PLACE_BYTES - 5];
}

static void a_commit_stands_and_tells_who_when_and_how_far(void **state)
{
    struct fixture *f = *state;
    uint64_t version = create(f);
    commit_request request = commit_of(version, "key:1", cursor_at(7, 3, 1234));

    f->caller = "key:worker";
    f->now_ms += 5000;
    const commit_response *done = commit(f, &request);
    assert_non_null(done);
    assert_true(done->consumer->version > version);
    assert_int_equal(done->consumer->committed_at_ms, f->now_ms);
    assert_int_equal(done->consumer->caught_up_ms, 1234);
    assert_string_equal(done->consumer->committed_by, "key:worker");
    fixture_restart(f);
    assert_int_equal(place_of(f), 3);
}

static void a_worker_that_missed_a_commit_changes_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t version = create(f);
    commit_request first = commit_of(version, "key:1", cursor_at(7, 9, 1));

    assert_non_null(commit(f, &first));
    commit_request late = commit_of(version, "key:2", cursor_at(7, 11, 1));
    assert_null(commit(f, &late));
    assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
    assert_string_equal(f->error->field, "version");
    assert_int_equal(place_of(f), 9);
}

static void the_same_commit_again_is_found_under_its_op_id(void **state)
{
    struct fixture *f = *state;
    uint64_t version = create(f);
    commit_request request = commit_of(version, "key:1", cursor_at(7, 9, 1));

    uint64_t after = commit(f, &request)->consumer->version;
    const commit_response *again = commit(f, &request);
    assert_true(again->duplicate);
    assert_int_equal(again->consumer->version, after);
    commit_request other = commit_of(after, "key:1", cursor_at(7, 10, 1));
    assert_null(commit(f, &other));
    assert_int_equal(f->error->code, ERROR(OPERATION_ID_MISMATCH));
    commit_request next = commit_of(after, "key:2", cursor_at(7, 10, 1));
    assert_non_null(commit(f, &next));
    assert_null(commit(f, &request)); /* Late, and it sets nothing back. */
    assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
    assert_int_equal(place_of(f), 10);
}

/* Its first answer was lost, and another worker has used the consumer since. */
static void the_same_creation_after_a_commit_tells_what_stands(void **state)
{
    struct fixture *f = *state;
    commit_request first = commit_of(create(f), "key:1", cursor_at(7, 9, 1));
    uint64_t version = commit(f, &first)->consumer->version;

    assert_int_equal(create(f), version);
    assert_int_equal(place_of(f), 9);
    commit_request second = commit_of(version, "key:2", cursor_at(7, 10, 1));
    version = commit(f, &second)->consumer->version;
    fixture_restart(f);
    assert_int_equal(create(f), version);
    assert_int_equal(place_of(f), 10);
    commit_request other = commit_of(version, "key:made", cursor_at(7, 11, 1));
    assert_null(commit(f, &other));
    assert_int_equal(f->error->code, ERROR(OPERATION_ID_MISMATCH));
    assert_int_equal(place_of(f), 10);
}

static void it_goes_back_only_if_that_is_asked_for(void **state)
{
    struct fixture *f = *state;
    uint64_t version = create(f);
    commit_request request = commit_of(version, "key:1", cursor_at(7, 9, 1));

    version = commit(f, &request)->consumer->version;
    request = commit_of(version, "key:2", cursor_at(7, 8, 1));
    assert_null(commit(f, &request));
    assert_int_equal(f->error->code, ERROR(OUT_OF_RANGE));
    assert_int_equal(place_of(f), 9);
    request.rewind = true;
    version = commit(f, &request)->consumer->version;
    assert_int_equal(place_of(f), 8);
    request = commit_of(version, "key:3", (char *)(uintptr_t) "");
    assert_null(commit(f, &request)); /* From the oldest: that is said with `rewind` alone. */
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    request.rewind = true;
    assert_non_null(commit(f, &request));
    assert_int_equal(place_of(f), 0);
}

/* A restored shard begins another life: its places are not behind those of before. */
static void a_place_of_another_life_is_taken(void **state)
{
    struct fixture *f = *state;
    uint64_t version = create(f);
    commit_request request = commit_of(version, "key:1", cursor_at(7, 9, 1));

    version = commit(f, &request)->consumer->version;
    request = commit_of(version, "key:2", cursor_at(8, 1, 1));
    assert_non_null(commit(f, &request));
    assert_int_equal(place_of(f), 1);
}

static void bad_requests_are_refused_before_the_log(void **state)
{
    struct fixture *f = *state;
    uint64_t version = create(f);
    struct arena arena = { 0 };
    struct event_cursor of_two;

    commit_request request = commit_of(0, "key:1", cursor_at(7, 9, 1));
    assert_null(commit(f, &request));
    assert_string_equal(f->error->field, "version");
    request = commit_of(version, "", cursor_at(7, 9, 1));
    assert_null(commit(f, &request));
    assert_string_equal(f->error->field, "op_id");
    request = commit_of(version, "key:1", (char *)(uintptr_t) "no cursor");
    assert_null(commit(f, &request));
    assert_string_equal(f->error->field, "cursor");
    event_cursor_init(&of_two, 2, &arena);
    request = commit_of(version, "key:1", printed(&of_two));
    arena_deinit(&arena);
    assert_null(commit(f, &request));
    assert_string_equal(f->error->field, "cursor");
    assert_false(f->recorded);
    request = commit_of(version, "key:1", cursor_at(7, 9, 1));
    request.consumer = (char *)(uintptr_t) "none";
    assert_null(commit(f, &request));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    assert_int_equal(place_of(f), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONSUMER_TEST(a_commit_stands_and_tells_who_when_and_how_far),
        CONSUMER_TEST(a_worker_that_missed_a_commit_changes_nothing),
        CONSUMER_TEST(the_same_commit_again_is_found_under_its_op_id),
        CONSUMER_TEST(the_same_creation_after_a_commit_tells_what_stands),
        CONSUMER_TEST(it_goes_back_only_if_that_is_asked_for),
        CONSUMER_TEST(a_place_of_another_life_is_taken),
        CONSUMER_TEST(bad_requests_are_refused_before_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
