/* Consumers of events: made, told, listed and deleted. */
#include <stdio.h>
#include <string.h>

#include "holdfast/v1/events.pb-c.h"
#include "node/core/consumer/consumer.h"
#include "node/core/handler/event.h"
#include "node/core/rows/rows.h"
#include "node/rpc/fixture.h"
#include "runtime/base/check.h"

#define KIND(name) HOLDFAST__V1__EVENT_KIND__EVENT_KIND_##name

typedef Holdfast__V1__CreateConsumerRequest create_request;
typedef Holdfast__V1__CreateConsumerResponse create_response;

static const create_response *create(struct fixture *f, const char *name, const char *op_id)
{
    Holdfast__V1__EventKind kinds[] = { KIND(LEDGER), KIND(FAVORITE) };
    create_request request = HOLDFAST__V1__CREATE_CONSUMER_REQUEST__INIT;

    request.consumer = (char *)(uintptr_t)name;
    request.op_id = (char *)(uintptr_t)op_id;
    request.kinds = kinds;
    request.n_kinds = 2;
    request.entity_prefix = (char *)(uintptr_t) "player:";
    return fixture_mutate(f, METHOD_CREATE_CONSUMER, &request.base);
}

static const Holdfast__V1__EventConsumer *get(struct fixture *f, const char *name)
{
    Holdfast__V1__GetConsumerRequest request = HOLDFAST__V1__GET_CONSUMER_REQUEST__INIT;

    request.consumer = (char *)(uintptr_t)name;
    const Holdfast__V1__GetConsumerResponse *response =
        fixture_read(f, METHOD_GET_CONSUMER, &request.base);
    return response != NULL ? response->consumer : NULL;
}

static const Holdfast__V1__DeleteConsumerResponse *forget(struct fixture *f, const char *name,
                                                          uint64_t version)
{
    Holdfast__V1__DeleteConsumerRequest request = HOLDFAST__V1__DELETE_CONSUMER_REQUEST__INIT;

    request.consumer = (char *)(uintptr_t)name;
    request.version = version;
    return fixture_mutate(f, METHOD_DELETE_CONSUMER, &request.base);
}

static const Holdfast__V1__ListConsumersResponse *list(struct fixture *f, uint32_t size,
                                                       char *cursor)
{
    Holdfast__V1__ListConsumersRequest request = HOLDFAST__V1__LIST_CONSUMERS_REQUEST__INIT;

    request.page_size = size;
    request.cursor = cursor;
    const Holdfast__V1__ListConsumersResponse *response =
        fixture_read(f, METHOD_LIST_CONSUMERS, &request.base);
    assert_non_null(response);
    return response;
}

static void a_consumer_is_as_it_was_made(void **state)
{
    struct fixture *f = *state;

    f->caller = "key:search";
    const create_response *made = create(f, "search-index", "key:1");
    assert_non_null(made);
    assert_false(made->duplicate);
    uint64_t version = made->consumer->version;
    assert_true(version > 0);
    fixture_restart(f);
    const Holdfast__V1__EventConsumer *told = get(f, "search-index");
    assert_string_equal(told->name, "search-index");
    assert_int_equal(told->n_kinds, 2);
    assert_int_equal(told->kinds[0], KIND(LEDGER));
    assert_int_equal(told->kinds[1], KIND(FAVORITE));
    assert_string_equal(told->entity_prefix, "player:");
    assert_string_equal(told->entity, "");
    assert_string_equal(told->cursor, "");
    assert_string_equal(told->committed_by, "key:search");
    assert_int_equal(told->version, version);
    assert_int_equal(told->created_at_ms, f->now_ms);
    assert_int_equal(told->committed_at_ms, 0);
    assert_int_equal(told->caught_up_ms, 0);
}

static void a_repetition_is_the_same_consumer(void **state)
{
    struct fixture *f = *state;

    uint64_t version = create(f, "search", "key:1")->consumer->version;
    const create_response *again = create(f, "search", "key:1");
    assert_true(again->duplicate);
    assert_int_equal(again->consumer->version, version);
    assert_null(create(f, "search", "key:2"));
    assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
    create_request other = HOLDFAST__V1__CREATE_CONSUMER_REQUEST__INIT;
    other.consumer = (char *)(uintptr_t) "search";
    other.op_id = (char *)(uintptr_t) "key:1";
    assert_null(fixture_mutate(f, METHOD_CREATE_CONSUMER, &other.base));
    assert_int_equal(f->error->code, ERROR(OPERATION_ID_MISMATCH));
    assert_int_equal(get(f, "search")->version, version);
}

static void one_that_there_is_not_is_told(void **state)
{
    struct fixture *f = *state;

    assert_null(get(f, "none"));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    assert_false(forget(f, "none", 0)->deleted);
}

static void bad_requests_are_refused_before_the_log(void **state)
{
    struct fixture *f = *state;
    const char *const names[] = { "", "a b", "a/b", "\xc3\xa4" };
    char long_name[LIMIT_CONSUMER_NAME_BYTES + 2] = { 0 };
    create_request request = HOLDFAST__V1__CREATE_CONSUMER_REQUEST__INIT;
    Holdfast__V1__EventKind kinds[CONSUMER_KINDS_MAX + 1] = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        assert_null(create(f, names[i], "key:1"));
        assert_false(f->recorded);
        assert_string_equal(f->error->field, "consumer");
        assert_null(get(f, names[i]));
        assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    }
    memset(long_name, 'x', LIMIT_CONSUMER_NAME_BYTES + 1);
    assert_null(create(f, long_name, "key:1"));
    long_name[LIMIT_CONSUMER_NAME_BYTES] = '\0';
    assert_non_null(create(f, long_name, "key:1"));
    assert_null(create(f, "search", "no kind"));
    assert_string_equal(f->error->field, "op_id");
    request.consumer = (char *)(uintptr_t) "search";
    request.op_id = (char *)(uintptr_t) "key:1";
    request.kinds = kinds;
    request.n_kinds = 1;
    assert_null(fixture_mutate(f, METHOD_CREATE_CONSUMER, &request.base));
    assert_string_equal(f->error->field, "kinds[0]");
    request.n_kinds = CONSUMER_KINDS_MAX + 1;
    assert_null(fixture_mutate(f, METHOD_CREATE_CONSUMER, &request.base));
    assert_string_equal(f->error->field, "kinds");
    request.n_kinds = 0;
    request.entity = (char *)(uintptr_t) "noor";
    assert_null(fixture_mutate(f, METHOD_CREATE_CONSUMER, &request.base));
    assert_string_equal(f->error->field, "entity");
    request.entity = (char *)(uintptr_t) "player:noor";
    request.entity_prefix = request.entity;
    assert_null(fixture_mutate(f, METHOD_CREATE_CONSUMER, &request.base));
    assert_string_equal(f->error->field, "entity");
    request.entity_prefix = (char *)(uintptr_t) "";
    request.cursor = (char *)(uintptr_t) "AAAA";
    assert_null(fixture_mutate(f, METHOD_CREATE_CONSUMER, &request.base));
    assert_string_equal(f->error->field, "cursor");
    assert_false(f->recorded);
}

static void another_shards_consumer_is_refused(void **state)
{
    struct fixture *f = *state;
    uint32_t here = 0, elsewhere = 0;
    char name[24];

    fixture_deinit(f);
    fixture_init_shard(f, 2, 4);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "reader-%d", i);
        bool made = create(f, name, "key:1") != NULL;
        here += made;
        elsewhere += !made;
    }
    assert_true(here > 0 && here < 30);
    assert_true(elsewhere > 0);
}

static void a_shard_has_so_many_and_no_more(void **state)
{
    struct fixture *f = *state;
    char name[24];

    for (uint32_t i = 0; i < LIMIT_CONSUMERS; i++) {
        snprintf(name, sizeof name, "reader-%03u", i);
        assert_non_null(create(f, name, "key:1"));
    }
    fixture_restart(f);
    assert_null(create(f, "one-more", "key:1"));
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    assert_string_equal(f->error->limit, "64");
    assert_true(create(f, "reader-000", "key:1")->duplicate);
    assert_true(forget(f, "reader-000", 0)->deleted);
    assert_non_null(create(f, "one-more", "key:1"));
}

static void pages_list_each_once_without_cursors(void **state)
{
    struct fixture *f = *state;
    char name[24], cursor[LIMIT_CONSUMER_NAME_BYTES + 32] = { 0 };
    uint32_t seen = 0, pages = 0;

    for (uint32_t i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "reader-%u", i);
        assert_non_null(create(f, name, "key:1"));
    }
    do {
        const Holdfast__V1__ListConsumersResponse *page = list(f, 2, cursor);
        for (size_t i = 0; i < page->n_consumers; i++) {
            snprintf(name, sizeof name, "reader-%u", seen++);
            assert_string_equal(page->consumers[i]->name, name);
        }
        assert_int_equal(page->kept_ms, EVENT_KEEP_MS_DEFAULT);
        assert_true(strlen(page->next_cursor) < sizeof cursor);
        snprintf(cursor, sizeof cursor, "%s", page->next_cursor);
        pages++;
    } while (cursor[0] != '\0');
    assert_int_equal(seen, 5);
    assert_int_equal(pages, 3);
}

static void a_deleted_one_made_again_has_another_version(void **state)
{
    struct fixture *f = *state;

    uint64_t version = create(f, "search", "key:1")->consumer->version;
    assert_null(forget(f, "search", version + 7));
    assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
    assert_true(forget(f, "search", version)->deleted);
    assert_null(get(f, "search"));
    assert_true(create(f, "search", "key:1")->consumer->version > version);
}

static void one_that_cannot_be_read_is_told_and_holds_no_other_up(void **state)
{
    struct fixture *f = *state;
    struct state *rows = applier_state(f->applier);
    struct row_key key;

    assert_non_null(create(f, "a", "key:1"));
    assert_non_null(create(f, "b", "key:1"));
    consumer_row_key(&key, SLICE_LITERAL("a"));
    state_begin(rows);
    state_put(rows, row_key_slice(&key), SLICE_LITERAL("\x01nonsense"));
    state_commit(rows);
    assert_null(get(f, "a"));
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
    assert_null(forget(f, "a", 0));
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
    const Holdfast__V1__ListConsumersResponse *page = list(f, 0, (char *)(uintptr_t) "");
    assert_int_equal(page->n_consumers, 2);
    assert_int_equal(page->consumers[0]->version, 0);
    assert_true(page->consumers[1]->version > 0);
}

static void below_their_apply_version_there_are_none(void **state)
{
    struct fixture *f = *state;
    struct meta *meta = (struct meta *)(uintptr_t)applier_meta(f->applier);

    meta->apply_version = CONSUMER_APPLY_VERSION - 1;
    assert_null(create(f, "search", "key:1"));
    assert_false(f->recorded);
    assert_int_equal(f->error->code, ERROR(UNAVAILABLE));
    meta->apply_version = CONSUMER_APPLY_VERSION;
    assert_non_null(create(f, "search", "key:1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_consumer_is_as_it_was_made),
        FIXTURE_TEST(a_repetition_is_the_same_consumer),
        FIXTURE_TEST(one_that_there_is_not_is_told),
        FIXTURE_TEST(bad_requests_are_refused_before_the_log),
        FIXTURE_TEST(another_shards_consumer_is_refused),
        FIXTURE_TEST(a_shard_has_so_many_and_no_more),
        FIXTURE_TEST(pages_list_each_once_without_cursors),
        FIXTURE_TEST(a_deleted_one_made_again_has_another_version),
        FIXTURE_TEST(one_that_cannot_be_read_is_told_and_holds_no_other_up),
        FIXTURE_TEST(below_their_apply_version_there_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
