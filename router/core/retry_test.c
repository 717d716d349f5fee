#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "idl/error_code.h"
#include "router/core/retry.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"

/* Tells the story of one call in virtual time, one line per action. */
struct story {
    struct retry_call call;
    uint64_t now_ms;
    struct route_target route;
    char text[2048];
    size_t size;
};

static void note(struct story *story, const struct retry_action *action)
{
    char line[160] = "";

    switch (action->type) {
    case RETRY_ACTION_NONE:
        (void)snprintf(line, sizeof line, "%llu none\n", (unsigned long long)story->now_ms);
        break;
    case RETRY_ACTION_SEND:
        (void)snprintf(line, sizeof line, "%llu %ssend to %llu in %llu, %u ms\n",
                       (unsigned long long)story->now_ms, action->cancel ? "cancel, " : "",
                       (unsigned long long)action->target.owner,
                       (unsigned long long)action->target.epoch, action->budget_ms);
        break;
    case RETRY_ACTION_WAIT:
        (void)snprintf(line, sizeof line, "%llu wait until %llu\n",
                       (unsigned long long)story->now_ms, (unsigned long long)action->due_ms);
        break;
    case RETRY_ACTION_PASS_ON:
        (void)snprintf(line, sizeof line, "%llu pass on\n", (unsigned long long)story->now_ms);
        break;
    case RETRY_ACTION_GIVE_UP:
        (void)snprintf(line, sizeof line, "%llu give up: %d\n", (unsigned long long)story->now_ms,
                       (int)action->code);
        break;
    }
    CHECK(story->size + strlen(line) < sizeof story->text);
    memcpy(story->text + story->size, line, strlen(line) + 1);
    story->size += strlen(line);
}

static void step(struct story *story, struct retry_event event)
{
    struct retry_action action;

    event.now_ms = story->now_ms;
    event.route = story->route;
    event.random = 0; /* Every pause is the shortest, 5 ms. */
    action = retry_step(&story->call, &event);
    note(story, &action);
}

static void start(struct story *story, bool mutation)
{
    *story = (struct story){ .now_ms = 100, .route = { 1, 7 } };
    retry_init(&story->call, mutation, 1100);
    step(story, (struct retry_event){ .type = RETRY_EVENT_START });
}

static void answer(struct story *story, uint32_t status)
{
    step(story, (struct retry_event){ .type = RETRY_EVENT_ANSWERED, .status = status });
}

static void not_owner(struct story *story, uint64_t owner, uint64_t epoch)
{
    step(story, (struct retry_event){ .type = RETRY_EVENT_ANSWERED,
                                      .status = WIRE_NOT_OWNER,
                                      .hint = { owner, epoch } });
}

static void refuse(struct story *story, Holdfast__V1__ErrorCode code, bool final)
{
    step(story, (struct retry_event){ .type = RETRY_EVENT_ANSWERED,
                                      .status = WIRE_REFUSED,
                                      .refusal_code = code,
                                      .refusal_final = final });
}

static void lose(struct story *story, err failure)
{
    step(story, (struct retry_event){ .type = RETRY_EVENT_FAILED, .failure = failure });
}

static void wake(struct story *story)
{
    story->now_ms = story->call.due_ms;
    step(story, (struct retry_event){ .type = RETRY_EVENT_WAKE });
}

static void route_changed(struct story *story, uint64_t owner, uint64_t epoch)
{
    story->route = (struct route_target){ owner, epoch };
    step(story, (struct retry_event){ .type = RETRY_EVENT_ROUTE_CHANGED });
}

static void an_answer_is_passed_on(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    story.now_ms = 103;
    answer(&story, WIRE_OK);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "103 pass on\n");
}

static void a_refusal_is_passed_on(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    refuse(&story, CODE(INSUFFICIENT_FUNDS), true);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "100 pass on\n");
}

static void a_refusal_that_may_pass_is_tried_again(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    refuse(&story, CODE(UNAVAILABLE), false);
    wake(&story);
    answer(&story, WIRE_OK);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "100 wait until 105\n"
                                    "105 send to 1 in 7, 995 ms\n"
                                    "105 pass on\n");
}

/* It has no op_id, and could delete what was made since. */
static void what_is_sent_once_is_not_repeated_once_it_may_be_done(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    story.call.once = true;
    answer(&story, WIRE_UNAVAILABLE); /* Nothing was done. */
    wake(&story);
    route_changed(&story, 2, 8); /* The answer may come yet. */
    lose(&story, ERR_DISCONNECTED);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "100 wait until 105\n"
                                    "105 send to 1 in 7, 995 ms\n"
                                    "105 none\n"
                                    "105 give up: 17\n");
}

static void a_newer_hint_is_followed_at_once(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    story.now_ms = 101;
    not_owner(&story, 2, 8);
    answer(&story, WIRE_OK);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "101 send to 2 in 8, 999 ms\n"
                                    "101 pass on\n");
}

static void a_stale_hint_waits_and_asks_the_map(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    not_owner(&story, 2, 6);
    wake(&story);
    answer(&story, WIRE_OK);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "100 wait until 105\n"
                                    "105 send to 1 in 7, 995 ms\n"
                                    "105 pass on\n");
}

/* Two nodes that name each other must not make the router spin. */
static void hints_that_point_at_each_other_wait_in_between(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    not_owner(&story, 2, 8);
    not_owner(&story, 1, 7);
    wake(&story);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "100 send to 2 in 8, 1000 ms\n"
                                    "100 wait until 105\n"
                                    "105 send to 1 in 7, 995 ms\n");
}

static void no_owner_waits_until_the_map_names_one(void **state)
{
    struct story story = { .now_ms = 100 };
    (void)state;

    retry_init(&story.call, true, 1100);
    step(&story, (struct retry_event){ .type = RETRY_EVENT_START });
    wake(&story);
    story.now_ms = 107;
    route_changed(&story, 3, 1);
    assert_string_equal(story.text, "100 wait until 105\n"
                                    "105 wait until 110\n"
                                    "107 send to 3 in 1, 993 ms\n");
}

static void a_link_that_is_down_is_tried_again(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    step(&story, (struct retry_event){ .type = RETRY_EVENT_NOT_SENT, .failure = ERR_UNAVAILABLE });
    story.now_ms = 102;
    route_changed(&story, 1, 7); /* The link became ready. */
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "100 wait until 105\n"
                                    "102 send to 1 in 7, 998 ms\n");
    assert_false(story.call.maybe_done);
    assert_int_equal(story.call.sent, 1);
}

static void a_replaced_owner_is_not_waited_for(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    story.now_ms = 150;
    route_changed(&story, 1, 8); /* The same owner again: its answer will come. */
    route_changed(&story, 2, 9);
    answer(&story, WIRE_UNAVAILABLE); /* Not serving yet. */
    wake(&story);
    answer(&story, WIRE_OK);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "150 none\n"
                                    "150 cancel, send to 2 in 9, 950 ms\n"
                                    "150 wait until 155\n"
                                    "155 send to 2 in 9, 945 ms\n"
                                    "155 pass on\n");
}

/* The cancelled attempt may be carried out all the same. */
static void a_call_taken_from_its_owner_has_an_unknown_outcome_until_answered(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    route_changed(&story, 2, 9);
    answer(&story, WIRE_UNAVAILABLE);
    story.route = (struct route_target){ 0, 0 };
    story.call.due_ms = 1100;
    wake(&story);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "100 cancel, send to 2 in 9, 1000 ms\n"
                                    "100 wait until 105\n"
                                    "1100 give up: 17\n");
}

static void a_map_newer_than_the_hint_wins(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    not_owner(&story, 2, 8);
    answer(&story, WIRE_UNAVAILABLE);
    story.route = (struct route_target){ 3, 9 };
    wake(&story);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "100 send to 2 in 8, 1000 ms\n"
                                    "100 wait until 105\n"
                                    "105 send to 3 in 9, 995 ms\n");
}

static void a_lost_link_repeats_a_mutation_and_never_calls_it_failed(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    story.now_ms = 200;
    lose(&story, ERR_DISCONNECTED);
    wake(&story);
    answer(&story, WIRE_UNAVAILABLE); /* "Not carried out" speaks of the second attempt only. */
    story.now_ms = 1099;
    wake(&story);
    story.now_ms = 1100;
    lose(&story, ERR_TIMEOUT);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "200 wait until 205\n"
                                    "205 send to 1 in 7, 895 ms\n"
                                    "205 wait until 210\n"
                                    "210 send to 1 in 7, 890 ms\n"
                                    "1100 give up: 17\n");
    assert_int_equal(CODE(OUTCOME_UNKNOWN), 17);
}

static void an_unknown_outcome_is_asked_for_again(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    answer(&story, WIRE_UNKNOWN);
    wake(&story);
    answer(&story, WIRE_OK);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "100 wait until 105\n"
                                    "105 send to 1 in 7, 995 ms\n"
                                    "105 pass on\n");
}

static void a_timeout_of_a_mutation_is_an_unknown_outcome(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    story.now_ms = 1100;
    lose(&story, ERR_TIMEOUT);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "1100 give up: 17\n");
}

static void a_timeout_of_a_read_is_unavailable(void **state)
{
    struct story story;
    (void)state;

    start(&story, false);
    story.now_ms = 1100;
    lose(&story, ERR_TIMEOUT);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "1100 give up: 18\n");
    assert_int_equal(CODE(UNAVAILABLE), 18);
}

static void a_mutation_never_sent_is_a_deadline_exceeded(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    step(&story, (struct retry_event){ .type = RETRY_EVENT_NOT_SENT, .failure = ERR_UNAVAILABLE });
    story.route = (struct route_target){ 0, 0 };
    story.call.due_ms = 1100;
    wake(&story);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "100 wait until 105\n"
                                    "1100 give up: 23\n");
    assert_int_equal(CODE(DEADLINE_EXCEEDED), 23);
}

static void a_mutation_surely_not_carried_out_is_unavailable(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    story.now_ms = 1098;
    answer(&story, WIRE_UNAVAILABLE);
    wake(&story);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "1098 wait until 1100\n"
                                    "1100 give up: 18\n");
}

/* THROTTLED says "nothing was done", which is not known of the attempt before. */
static void a_refusal_before_the_log_does_not_hide_an_earlier_attempt(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    lose(&story, ERR_DISCONNECTED);
    wake(&story);
    refuse(&story, CODE(THROTTLED), false);
    wake(&story);
    refuse(&story, CODE(OPERATION_EXPIRED), false);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "100 wait until 105\n"
                                    "105 send to 1 in 7, 995 ms\n"
                                    "105 wait until 110\n"
                                    "110 send to 1 in 7, 990 ms\n"
                                    "110 give up: 17\n");
}

/* Its place in the queue was lost with the owner; asked again, it waited until its time was over.
 */
static void a_wait_that_outlives_its_owner_ends_with_the_name_of_the_holder(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    lose(&story, ERR_DISCONNECTED);
    wake(&story);
    story.now_ms = 1050;
    refuse(&story, CODE(SESSION_LOCKED), false);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "100 wait until 105\n"
                                    "105 send to 1 in 7, 995 ms\n"
                                    "1050 pass on\n");
}

static void a_stored_refusal_settles_an_earlier_attempt(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    lose(&story, ERR_DISCONNECTED);
    wake(&story);
    refuse(&story, CODE(SESSION_LOST), true);
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "100 wait until 105\n"
                                    "105 send to 1 in 7, 995 ms\n"
                                    "105 pass on\n");
}

static void a_request_too_large_to_send_gives_up(void **state)
{
    struct story story;
    (void)state;

    start(&story, true);
    step(&story, (struct retry_event){ .type = RETRY_EVENT_NOT_SENT, .failure = ERR_TOO_LARGE });
    assert_string_equal(story.text, "100 send to 1 in 7, 1000 ms\n"
                                    "100 give up: 1\n");
}

/* xorshift64* */
static uint64_t next(uint64_t *seed, uint64_t below)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return (*seed * 2685821657736338717u >> 33) % below;
}

/* What a node, a link or the map may do next to a call that was sent. */
static void invent(struct retry_event *event, uint64_t *seed)
{
    static const enum retry_event_type types[] = { RETRY_EVENT_NOT_SENT, RETRY_EVENT_ANSWERED,
                                                   RETRY_EVENT_FAILED, RETRY_EVENT_ROUTE_CHANGED };

    event->now_ms += next(seed, 20);
    event->type = types[next(seed, ARRAY_SIZE(types))];
    event->failure = next(seed, 2) ? ERR_DISCONNECTED : ERR_CLOSED;
    if (event->type == RETRY_EVENT_NOT_SENT)
        event->failure = ERR_FULL;
    event->status = (uint32_t)(WIRE_REFUSED + next(seed, 4));
    event->refusal_final = next(seed, 4) == 0;
    event->refusal_code = next(seed, 2) ? CODE(THROTTLED) : CODE(SESSION_LOST);
}

static bool leaves_unknown(const struct retry_event *event)
{
    return (event->type == RETRY_EVENT_FAILED && event->failure == ERR_DISCONNECTED) ||
           (event->type == RETRY_EVENT_ANSWERED && event->status == WIRE_UNKNOWN);
}

/* One call until it has ended. `unknown` is kept by what happened, not by what the call says. */
static void tell_a_random_story(uint64_t *seed)
{
    struct retry_call call;
    struct retry_event event = { .type = RETRY_EVENT_START, .now_ms = 1000 };
    bool unknown = false;

    retry_init(&call, true, 1000 + next(seed, 500));
    call.once = next(seed, 4) == 0;
    for (int steps = 0;; steps++) {
        struct retry_action action;

        assert_true(steps < 2000);
        event.random = (uint32_t)next(seed, 1000000);
        event.route.owner = next(seed, 3);
        event.route.epoch += next(seed, 2);
        event.hint = (struct route_target){ next(seed, 3), next(seed, 20) };
        action = retry_step(&call, &event);
        if (call.once && action.type == RETRY_ACTION_SEND)
            assert_false(unknown || action.cancel);
        unknown = unknown || action.cancel;
        if (action.type == RETRY_ACTION_GIVE_UP) {
            assert_int_equal(unknown, action.code == CODE(OUTCOME_UNKNOWN));
            return;
        }
        if (action.type == RETRY_ACTION_PASS_ON) {
            assert_true(event.status == WIRE_OK || !unknown || event.refusal_final);
            return;
        }
        if (action.type == RETRY_ACTION_WAIT) {
            assert_in_range(action.due_ms, event.now_ms, event.now_ms + RETRY_DELAY_MS_MAX);
            assert_true(action.due_ms <= call.deadline_ms);
            event.now_ms = action.due_ms;
            event.type = RETRY_EVENT_WAKE;
            continue;
        }
        assert_true(event.now_ms < call.deadline_ms || action.type == RETRY_ACTION_NONE);
        invent(&event, seed);
        unknown = unknown || leaves_unknown(&event);
    }
}

/* Whatever happens, in whatever order: the call ends by its deadline, waits are at most 50 ms, and
 * once an attempt may have been carried out nothing else than that outcome or OUTCOME_UNKNOWN. */
static void random_stories_end_in_time_and_never_lie(void **state)
{
    uint64_t seed = 12345;
    (void)state;

    for (int run = 0; run < 20000; run++)
        tell_a_random_story(&seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_passed_on),
        cmocka_unit_test(a_refusal_is_passed_on),
        cmocka_unit_test(a_refusal_that_may_pass_is_tried_again),
        cmocka_unit_test(what_is_sent_once_is_not_repeated_once_it_may_be_done),
        cmocka_unit_test(a_newer_hint_is_followed_at_once),
        cmocka_unit_test(a_stale_hint_waits_and_asks_the_map),
        cmocka_unit_test(hints_that_point_at_each_other_wait_in_between),
        cmocka_unit_test(no_owner_waits_until_the_map_names_one),
        cmocka_unit_test(a_link_that_is_down_is_tried_again),
        cmocka_unit_test(a_replaced_owner_is_not_waited_for),
        cmocka_unit_test(a_call_taken_from_its_owner_has_an_unknown_outcome_until_answered),
        cmocka_unit_test(a_map_newer_than_the_hint_wins),
        cmocka_unit_test(a_lost_link_repeats_a_mutation_and_never_calls_it_failed),
        cmocka_unit_test(an_unknown_outcome_is_asked_for_again),
        cmocka_unit_test(a_timeout_of_a_mutation_is_an_unknown_outcome),
        cmocka_unit_test(a_timeout_of_a_read_is_unavailable),
        cmocka_unit_test(a_mutation_never_sent_is_a_deadline_exceeded),
        cmocka_unit_test(a_mutation_surely_not_carried_out_is_unavailable),
        cmocka_unit_test(a_refusal_before_the_log_does_not_hide_an_earlier_attempt),
        cmocka_unit_test(a_wait_that_outlives_its_owner_ends_with_the_name_of_the_holder),
        cmocka_unit_test(a_stored_refusal_settles_an_earlier_attempt),
        cmocka_unit_test(a_request_too_large_to_send_gives_up),
        cmocka_unit_test(random_stories_end_in_time_and_never_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
