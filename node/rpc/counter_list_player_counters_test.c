/* ListPlayerCounters and BatchGetPlayerCounters: what a player added, as its own reads tell it. */
#include <stdio.h>
#include <string.h>

#include "node/rpc/fixture_counter.h"

#define TEXT_SIZE 256u

static int setup(void **state)
{
    int failed = fixture_setup(state);

    if (failed == 0)
        fixture_define_plays(*state);
    return failed;
}

static int teardown(void **state)
{
    fixture_check_counters(*state);
    return fixture_teardown(state);
}

#define COUNTER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void make_some(struct fixture *f)
{
    assert_int_equal(fixture_add(f, "ann", "pong", 4), 4);
    assert_int_equal(fixture_add(f, "bob", "doom", 9), 9);
    f->now_ms += 1000;
    assert_int_equal(fixture_add(f, "ann", "chess", 1), 1);
    assert_int_equal(fixture_add(f, "ann", "zork", 3), 3);
    f->now_ms += 1000;
    assert_int_equal(fixture_add(f, "ann", "pong", 2), 6);
    assert_int_equal(fixture_add(f, "anna", "chess", 8), 8); /* Her name begins like ann's. */
}

/* All pages: "chess=1 pong=6 | zork=3 | "; `between` runs after each. */
static void walk(struct fixture *f, uint32_t size, void (*between)(struct fixture *f),
                 char ret_text[TEXT_SIZE])
{
    Holdfast__V1__ListPlayerCountersRequest request =
        HOLDFAST__V1__LIST_PLAYER_COUNTERS_REQUEST__INIT;
    char cursor[TEXT_SIZE] = "";
    size_t at = 0;

    ret_text[0] = '\0';
    do {
        request.player_id = text_lend("ann");
        request.counter = text_lend("plays");
        request.page_size = size;
        request.cursor = cursor;
        const Holdfast__V1__ListPlayerCountersResponse *response =
            fixture_read(f, METHOD_LIST_PLAYER_COUNTERS, &request.base);
        assert_non_null(response);
        for (size_t i = 0; i < response->n_counters; i++)
            at += (size_t)snprintf(ret_text + at, TEXT_SIZE - at, "%s=%lld ",
                                   response->counters[i]->target_id,
                                   (long long)response->counters[i]->value);
        at += (size_t)snprintf(ret_text + at, TEXT_SIZE - at, "| ");
        assert_true(response->n_counters > 0 || cursor[0] == '\0');
        snprintf(cursor, sizeof cursor, "%s", response->next_cursor);
        if (between != NULL)
            between(f);
    } while (cursor[0] != '\0');
}

static void values_come_by_target(void **state)
{
    struct fixture *f = *state;
    char text[TEXT_SIZE];

    make_some(f);
    walk(f, 0, NULL, text);
    assert_string_equal(text, "chess=1 pong=6 zork=3 | ");
    fixture_restart(f);
    walk(f, 1, NULL, text);
    assert_string_equal(text, "chess=1 | pong=6 | zork=3 | ");
    walk(f, 3, NULL, text);
    assert_string_equal(text, "chess=1 pong=6 zork=3 | ");
}

static void insert(struct fixture *f)
{
    char target[16];

    f->now_ms++;
    snprintf(target, sizeof target, "a%u", (unsigned)(f->now_ms % 1000));
    assert_int_equal(fixture_add(f, "ann", target, 1), 1);
}

static void pages_stay_where_they_are_while_targets_come(void **state)
{
    struct fixture *f = *state;
    char text[TEXT_SIZE];

    make_some(f);
    walk(f, 2, insert, text);
    assert_string_equal(text, "chess=1 pong=6 | zork=3 | ");
}

static void values_are_told_in_the_order_of_the_request(void **state)
{
    struct fixture *f = *state;
    char *targets[] = { text_lend("zork"), text_lend("doom"), text_lend("pong") };
    Holdfast__V1__BatchGetPlayerCountersRequest request =
        HOLDFAST__V1__BATCH_GET_PLAYER_COUNTERS_REQUEST__INIT;

    make_some(f);
    request.player_id = text_lend("ann");
    request.counter = text_lend("plays");
    request.target_ids = targets;
    request.n_target_ids = 3;
    const Holdfast__V1__BatchGetPlayerCountersResponse *response =
        fixture_read(f, METHOD_BATCH_GET_PLAYER_COUNTERS, &request.base);
    assert_int_equal(response->n_counters, 3);
    assert_string_equal(response->counters[0]->target_id, "zork");
    assert_int_equal(response->counters[0]->value, 3);
    assert_string_equal(response->counters[1]->target_id, "doom");
    assert_int_equal(response->counters[1]->value, 0); /* Another player's. */
    assert_int_equal(response->counters[1]->added_at_ms, 0);
    assert_int_equal(response->counters[2]->value, 6);
    assert_int_equal(response->counters[2]->added_at_ms, f->now_ms);
    assert_true(response->as_of[0] != '\0');
}

static void targets_come_1_to_200_and_each_once(void **state)
{
    struct fixture *f = *state;
    static char names[201][8];
    static char *targets[201];
    Holdfast__V1__BatchGetPlayerCountersRequest request =
        HOLDFAST__V1__BATCH_GET_PLAYER_COUNTERS_REQUEST__INIT;

    for (uint32_t i = 0; i < 201; i++) {
        snprintf(names[i], sizeof names[i], "t%u", i);
        targets[i] = names[i];
    }
    request.player_id = text_lend("ann");
    request.counter = text_lend("plays");
    request.target_ids = targets;
    request.n_target_ids = 200;
    assert_non_null(fixture_read(f, METHOD_BATCH_GET_PLAYER_COUNTERS, &request.base));
    request.n_target_ids = 201;
    assert_null(fixture_read(f, METHOD_BATCH_GET_PLAYER_COUNTERS, &request.base));
    assert_string_equal(f->error->field, "target_ids");
    request.n_target_ids = 0;
    assert_null(fixture_read(f, METHOD_BATCH_GET_PLAYER_COUNTERS, &request.base));
    request.n_target_ids = 3;
    targets[2] = targets[0];
    assert_null(fixture_read(f, METHOD_BATCH_GET_PLAYER_COUNTERS, &request.base));
    assert_string_equal(f->error->field, "target_ids[2]");
}

static void counters_do_not_mix(void **state)
{
    struct fixture *f = *state;
    char text[TEXT_SIZE];

    fixture_define_counter(f, &(struct fixture_counter){ 12, 30, "wins", 0, 0, false });
    assert_non_null(fixture_addition(
        f, &(struct fixture_addition){ "ann", "tetris", 5, "wins", NULL, "unheld" }));
    walk(f, 0, NULL, text);
    assert_string_equal(text, "| ");
    make_some(f);
    walk(f, 0, NULL, text);
    assert_string_equal(text, "chess=1 pong=6 zork=3 | ");
    assert_int_equal(fixture_part(f, "wins", "tetris"), 5);
    assert_int_equal(fixture_part(f, "wins", "pong"), 0);
}

static void bad_pages_are_refused(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ListPlayerCountersRequest request =
        HOLDFAST__V1__LIST_PLAYER_COUNTERS_REQUEST__INIT;

    make_some(f);
    request.player_id = text_lend("ann");
    request.counter = text_lend("plays");
    request.page_size = 201;
    assert_null(fixture_read(f, METHOD_LIST_PLAYER_COUNTERS, &request.base));
    assert_string_equal(f->error->field, "page_size");
    request.page_size = 2;
    request.cursor = text_lend("a\nb");
    assert_null(fixture_read(f, METHOD_LIST_PLAYER_COUNTERS, &request.base));
    assert_string_equal(f->error->field, "cursor");
    request.cursor = text_lend("");
    request.counter = text_lend("play");
    assert_null(fixture_read(f, METHOD_LIST_PLAYER_COUNTERS, &request.base));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    assert_non_null(strstr(f->error->message, "did you mean plays?"));
    request.counter = text_lend("");
    assert_null(fixture_read(f, METHOD_LIST_PLAYER_COUNTERS, &request.base));
    assert_string_equal(f->error->field, "counter");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        COUNTER_TEST(values_come_by_target),
        COUNTER_TEST(pages_stay_where_they_are_while_targets_come),
        COUNTER_TEST(values_are_told_in_the_order_of_the_request),
        COUNTER_TEST(targets_come_1_to_200_and_each_once),
        COUNTER_TEST(counters_do_not_mix),
        COUNTER_TEST(bad_pages_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
