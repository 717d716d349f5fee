#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "node/io/view/event_news.h"

#define SHARDS 5u
#define LIFE   7u

typedef Holdfast__Internal__V1__ListEventNewsResponse answer;

static void count(void *user)
{
    ++*(uint32_t *)user;
}

/* To be freed. */
static answer *ask(struct event_news *news, uint64_t life, uint64_t after, bool wanted_any)
{
    Holdfast__Internal__V1__ListEventNewsRequest request =
        HOLDFAST__INTERNAL__V1__LIST_EVENT_NEWS_REQUEST__INIT;
    uint8_t bytes[64];
    struct buf out = { 0 };

    request.life = life;
    request.after = after;
    size_t size = holdfast__internal__v1__list_event_news_request__pack(&request, bytes);
    assert_int_equal(event_news_append(news, (struct slice){ bytes, size }, &out), wanted_any);
    answer *said =
        holdfast__internal__v1__list_event_news_response__unpack(NULL, out.size, out.data);
    assert_non_null(said);
    assert_int_equal(said->life, LIFE);
    buf_deinit(&out);
    return said;
}

static void done(answer *said)
{
    holdfast__internal__v1__list_event_news_response__free_unpacked(said, NULL);
}

static void shards_are_told_once_and_again_when_there_is_more(void **state)
{
    struct event_news *news = event_news_new(SHARDS, LIFE);
    (void)state;

    event_news_note(news, 3);
    event_news_note(news, 1);
    event_news_note(news, 3);
    answer *said = ask(news, LIFE, 0, true);
    assert_int_equal(said->n_shards, 2);
    assert_int_equal(said->shards[0], 1);
    assert_int_equal(said->shards[1], 3);
    uint64_t now = said->now;
    done(said);
    said = ask(news, LIFE, now, false);
    assert_int_equal(said->n_shards, 0);
    assert_int_equal(said->now, now);
    done(said);
    event_news_note(news, 1);
    said = ask(news, LIFE, now, true);
    assert_int_equal(said->n_shards, 1);
    assert_int_equal(said->shards[0], 1);
    done(said);
    event_news_free(news);
}

/* Also what was said of a node before it was restarted. */
static void who_knows_another_life_is_told_all(void **state)
{
    struct event_news *news = event_news_new(SHARDS, LIFE);
    (void)state;

    answer *said = ask(news, LIFE + 1, 900, true);
    assert_int_equal(said->n_shards, 0);
    done(said);
    event_news_note(news, 4);
    said = ask(news, LIFE + 1, 900, true);
    assert_int_equal(said->n_shards, 1);
    done(said);
    said = ask(news, LIFE, 900, true); /* Nor has this one given that number. */
    assert_int_equal(said->n_shards, 1);
    done(said);
    event_news_free(news);
}

/* Notes wake no loop while no router waits. */
static void only_who_waits_is_called(void **state)
{
    struct event_news *news = event_news_new(SHARDS, LIFE);
    uint32_t calls = 0;
    (void)state;

    event_news_set_listener(news, count, &calls);
    event_news_note(news, 0);
    assert_int_equal(calls, 0);
    answer *said = ask(news, LIFE, 0, true);
    event_news_note(news, 0);
    assert_int_equal(calls, 0);
    done(ask(news, LIFE, said->now + 1, false));
    done(said);
    event_news_note(news, 0);
    assert_int_equal(calls, 1);
    event_news_note(news, 0);
    assert_int_equal(calls, 1);
    event_news_free(news);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_are_told_once_and_again_when_there_is_more),
        cmocka_unit_test(who_knows_another_life_is_told_all),
        cmocka_unit_test(only_who_waits_is_called),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
