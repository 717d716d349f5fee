/* UserService at one member that is alone, and at two that were apart: what one call writes, what
 * is shown of it, and each refusal with its field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/document/backup_rows.h"
#include "node/core/document/fixture.h"
#include "node/core/document/methods.h"
#include "node/core/document/user.h"
#include "node/core/mergeable/disk.h"
#include "node/core/mergeable/pending.h"
#include "node/core/mergeable/rounds.h"
#include "runtime/base/check.h"

#define OP "018bcfe5-6800-7000-8000-000000000001"

typedef Holdfast__V1__UpsertUserRequest upsert_request;

static int setup(void **state)
{
    struct pair *f = calloc(1, sizeof *f);

    pair_init(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    pair_deinit(*state);
    free(*state);
    return 0;
}

/* ---- calls ---- */

static upsert_request asked(void)
{
    upsert_request request = HOLDFAST__V1__UPSERT_USER_REQUEST__INIT;

    request.player_id = text_lend("ada");
    request.op_id = text_lend(OP);
    return request;
}

static err upsert(struct pair *f, int member, const upsert_request *request)
{
    return pair_call(f, member, METHOD_UPSERT_USER, &request->base);
}

/* What the write tells of the user. */
static const Holdfast__V1__User *told(struct pair *f)
{
    const Holdfast__V1__UpsertUserResponse *response = (void *)arena_unpack(
        &f->arena, &holdfast__v1__upsert_user_response__descriptor, f->begun.more);

    assert_non_null(response);
    assert_non_null(response->user);
    assert_true(f->begun.ticket != 0);
    return response->user;
}

static err ask(struct pair *f, int member, const char *context)
{
    Holdfast__V1__GetUserRequest request = HOLDFAST__V1__GET_USER_REQUEST__INIT;

    request.player_id = text_lend("ada");
    request.context = text_lend(context);
    return pair_call(f, member, METHOD_GET_USER, &request.base);
}

static const Holdfast__V1__GetUserResponse *get(struct pair *f, int member)
{
    assert_int_equal(ask(f, member, ""), ERR_OK);
    const Holdfast__V1__GetUserResponse *response = (void *)arena_unpack(
        &f->arena, &holdfast__v1__get_user_response__descriptor, f->begun.answer);

    assert_non_null(response);
    return response;
}

static void refused(struct pair *f, const upsert_request *request, Holdfast__V1__ErrorCode code,
                    const char *field)
{
    uint32_t rows = f->replicas[0]->store.count;
    uint64_t counter = f->replicas[0]->counter;

    assert_int_not_equal(upsert(f, 0, request), ERR_OK);
    assert_int_equal(f->refusal.code, code);
    assert_string_equal(f->refusal.field, field);
    assert_non_null(f->refusal.message);
    /* Neither of the two records is written. */
    assert_int_equal(f->replicas[0]->store.count, rows);
    assert_int_equal(f->replicas[0]->counter, counter);
}

/* ---- tests ---- */

static void a_login_is_one_call_and_tells_the_user(void **state)
{
    struct pair *f = *state;
    upsert_request request = asked();

    assert_null(get(f, 0)->user);
    request.display_name = text_lend("Ada");
    request.attributes = text_lend("{\"rank\": 3, \"of\": {\"guild\": \"g7\"}}");
    request.settings = text_lend("{\"volume\": {\"music\": 3, \"voice\": 5}}");
    request.connection = text_lend("game");
    request.status = text_lend("{\"in\": \"plaza\"}");
    request.incarnation = text_lend("1-10");
    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    const Holdfast__V1__User *user = told(f);

    assert_string_equal(user->player_id, "ada");
    assert_string_equal(user->display_name, "Ada");
    assert_string_equal(user->attributes, "{\"of\":{\"guild\":\"g7\"},\"rank\":3}");
    assert_string_equal(user->settings, "{\"volume\":{\"music\":3,\"voice\":5}}");
    assert_int_equal(user->created_at_ms, PAIR_BEGINS_MS);
    assert_int_equal(user->last_seen_at_ms, PAIR_BEGINS_MS);
    assert_int_equal(user->n_connections, 1);
    assert_string_equal(user->connections[0]->status, "{\"in\":\"plaza\"}");
    assert_int_equal(f->replicas[0]->store.count, 2);
    assert_string_equal(get(f, 0)->user->settings, user->settings);
}

static void a_later_call_changes_what_it_names(void **state)
{
    struct pair *f = *state;
    upsert_request request = asked();

    request.display_name = text_lend("Ada");
    request.settings = text_lend("{\"volume\": {\"music\": 3, \"voice\": 5}}");
    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    assert_int_equal(told(f)->last_seen_at_ms, 0); /* It named no connection. */
    f->now_ms += 1000;
    request = asked();
    request.settings = text_lend("{\"volume\": {\"music\": 0, \"voice\": null}}");
    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    const Holdfast__V1__User *user = told(f);

    assert_string_equal(user->display_name, "Ada");
    assert_string_equal(user->settings, "{\"volume\":{\"music\":0}}");
    assert_string_equal(user->attributes, "");
    assert_int_equal(user->created_at_ms, PAIR_BEGINS_MS);
}

static void connections_come_and_go_in_one_call(void **state)
{
    struct pair *f = *state;
    upsert_request request = asked();
    char *gone[] = { text_lend("old"), text_lend("none") };

    request.connection = text_lend("old");
    request.ttl_ms = 60000;
    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    f->now_ms += 1000;
    request.connection = text_lend("new");
    request.n_disconnect = 2;
    request.disconnect = gone;
    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    assert_int_equal(told(f)->n_connections, 1);
    assert_string_equal(told(f)->connections[0]->connection, "new");
    request = asked();
    gone[0] = text_lend("new");
    request.n_disconnect = 1;
    request.disconnect = gone;
    f->now_ms += 1000;
    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    assert_int_equal(told(f)->n_connections, 0);
    assert_int_equal(told(f)->last_seen_at_ms, PAIR_BEGINS_MS + 2000);
}

/* The sixteenth is taken away in the call that sets another one. */
static void a_connection_that_goes_makes_room(void **state)
{
    struct pair *f = *state;
    upsert_request request = asked();
    char name[8] = "c", *gone[] = { text_lend("ca") };

    request.ttl_ms = 60000;
    for (char i = 0; i < (char)PRESENCE_CONNECTIONS_MAX; i++) {
        name[1] = (char)('a' + i);
        request.connection = name;
        assert_int_equal(upsert(f, 0, &request), ERR_OK);
    }
    request.connection = text_lend("more");
    refused(f, &request, CODE(CAPACITY_FULL), "");
    assert_string_equal(f->refusal.value, "17");
    request.n_disconnect = 1;
    request.disconnect = gone;
    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    assert_int_equal(told(f)->n_connections, PRESENCE_CONNECTIONS_MAX);
}

static void a_repetition_changes_nothing_of_the_record(void **state)
{
    struct pair *f = *state;
    upsert_request first = asked(), second = asked();

    first.settings = text_lend("{\"a\": 1, \"b\": 1}");
    assert_int_equal(upsert(f, 0, &first), ERR_OK);
    second.op_id = text_lend("018bcfe5-6800-7000-8000-000000000002");
    second.settings = text_lend("{\"a\": 2}");
    assert_int_equal(upsert(f, 0, &second), ERR_OK);
    assert_int_equal(upsert(f, 0, &first), ERR_OK);
    assert_string_equal(told(f)->settings, "{\"a\":2,\"b\":1}");
}

static void both_sides_of_a_cut_stand(void **state)
{
    struct pair *f = *state;
    upsert_request left = asked(), right = asked();

    left.settings = text_lend("{\"music\": 0}");
    left.connection = text_lend("game");
    left.incarnation = text_lend("1-10");
    assert_int_equal(upsert(f, 0, &left), ERR_OK);
    f->now_ms++;
    right.op_id = text_lend("018bcfe5-6800-7000-8000-000000000002");
    right.settings = text_lend("{\"voice\": 5}");
    right.display_name = text_lend("Ada");
    right.connection = text_lend("phone");
    right.ttl_ms = 60000;
    assert_int_equal(upsert(f, 1, &right), ERR_OK);
    fixture_exchange(f->replicas, f->now_ms);
    for (int member = 0; member < 2; member++) {
        const Holdfast__V1__User *user = get(f, member)->user;

        assert_string_equal(user->settings, "{\"music\":0,\"voice\":5}");
        assert_string_equal(user->display_name, "Ada");
        assert_int_equal(user->n_connections, 2);
        assert_string_equal(user->connections[0]->connection, "phone");
    }
}

/* Of both records: the member that lacks either says so, and another one is asked. */
static void a_context_asks_for_what_was_seen(void **state)
{
    static const char *const bad[] = { "d1.AAAA", "d1.AAAA~" };
    struct pair *f = *state;
    Holdfast__V1__SetPresenceRequest set = HOLDFAST__V1__SET_PRESENCE_REQUEST__INIT;
    upsert_request request = asked();

    set.player_id = text_lend("ada");
    set.op_id = text_lend(OP);
    set.connection = text_lend("phone");
    set.ttl_ms = 60000;
    request.settings = text_lend("{\"a\": 1}");
    for (int of_presence = 0; of_presence < 2; of_presence++) {
        if (of_presence)
            assert_int_equal(pair_call(f, 0, METHOD_SET_PRESENCE, &set.base), ERR_OK);
        else
            assert_int_equal(upsert(f, 0, &request), ERR_OK);
        char *context = arena_printf(&f->arena, "%s", get(f, 0)->context);

        assert_int_equal(ask(f, 0, context), ERR_OK);
        assert_int_not_equal(ask(f, 1, context), ERR_OK);
        assert_int_equal(f->refusal.code, CODE(UNAVAILABLE));
        fixture_exchange(f->replicas, f->now_ms);
        assert_int_equal(ask(f, 1, context), ERR_OK);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_not_equal(ask(f, 0, bad[i]), ERR_OK);
        assert_string_equal(f->refusal.field, "context");
    }
}

static void an_erased_user_is_not_told_and_not_written(void **state)
{
    struct pair *f = *state;
    upsert_request request = asked();

    request.display_name = text_lend("Ada");
    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    f->erased = true;
    assert_null(get(f, 0)->user);
    assert_int_not_equal(upsert(f, 0, &request), ERR_OK);
    assert_int_equal(f->refusal.code, CODE(QUARANTINED));
    f->erased = false;
    assert_string_equal(get(f, 0)->user->display_name, "Ada");
}

static void a_backup_has_a_user(void **state)
{
    struct pair *f = *state;
    struct document_context from = pair_context(f, 0), to = pair_context(f, 1);
    struct backup_page page = { 0 };
    upsert_request request = asked();
    uint64_t next;

    request.settings = text_lend("{\"a\": 1}");
    request.connection = text_lend("web");
    request.ttl_ms = 60000;
    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    assert_int_equal(backup_rows_read(&from, (struct slice){ 0 }, BACKUP_ROWS_BYTES_MAX, &page),
                     ERR_OK);
    const struct backup_part part = { .actor = 77, .rows = buf_slice(&page.rows) };

    assert_int_equal(backup_rows_put(&to, &part, &next), ERR_OK);
    buf_deinit(&page.rows);
    const Holdfast__V1__User *user = get(f, 1)->user;

    assert_string_equal(user->settings, "{\"a\":1}");
    assert_string_equal(user->connections[0]->connection, "web");
}

/* ---- refusals ---- */

static void refusals_name_the_field(void **state)
{
    static const struct {
        const char *name, *attributes, *settings, *connection, *status, *incarnation, *disconnect;
        int64_t ttl_ms;
        const char *field;
        int code;
    } cases[] = {
        { .field = "" }, /* Nothing but the player. */
        { .name = "a\x01", .field = "display_name" },
        { .name = "0123456789012345678901234567890123456789012345678901234567890123x",
          .field = "display_name" },
        { .attributes = "[1]", .field = "attributes" },
        { .attributes = "{", .field = "attributes" },
        { .settings = "7", .field = "settings" },
        { .settings = "{\"\": 1}", .field = "settings" },
        { .connection = "game \x7f", .ttl_ms = 5000, .field = "connection" },
        { .connection = "game", .field = "ttl_ms" },
        { .connection = "game", .ttl_ms = 999, .field = "ttl_ms" },
        { .connection = "game", .ttl_ms = 86400001, .field = "ttl_ms" },
        { .connection = "game", .ttl_ms = 5000, .incarnation = "1-10", .field = "ttl_ms" },
        { .connection = "game", .incarnation = "seven", .field = "incarnation" },
        { .connection = "game", .ttl_ms = 5000, .status = "{", .field = "status" },
        { .name = "Ada", .ttl_ms = 5000, .field = "connection" },
        { .name = "Ada", .status = "1", .field = "connection" },
        { .disconnect = "a b", .field = "disconnect" },
        { .connection = "game", .ttl_ms = 5000, .disconnect = "game", .field = "disconnect" },
        { .connection = "game",
          .incarnation = "1-9",
          .field = "incarnation",
          .code = CODE(SERVER_EXPIRED) },
    };
    struct pair *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        upsert_request request = asked();
        char *gone = text_lend(cases[i].disconnect != NULL ? cases[i].disconnect : "");

#define GIVE(field, text)                                                                          \
    if ((text) != NULL)                                                                            \
    request.field = text_lend(text)
        GIVE(display_name, cases[i].name);
        GIVE(attributes, cases[i].attributes);
        GIVE(settings, cases[i].settings);
        GIVE(connection, cases[i].connection);
        GIVE(status, cases[i].status);
        GIVE(incarnation, cases[i].incarnation);
#undef GIVE
        request.ttl_ms = cases[i].ttl_ms;
        request.n_disconnect = gone[0] != 0;
        request.disconnect = &gone;
        if (i == 0) { /* There is a user, or to make one would be something. */
            request.display_name = text_lend("Ada");
            assert_int_equal(upsert(f, 0, &request), ERR_OK);
            request.display_name = text_lend("");
        }
        refused(f, &request,
                cases[i].code != 0 ? (Holdfast__V1__ErrorCode)cases[i].code
                                   : CODE(INVALID_ARGUMENT),
                cases[i].field);
    }
}

static void refusals_of_ids_name_the_field(void **state)
{
    struct pair *f = *state;
    upsert_request request = asked();

    request.display_name = text_lend("Ada");
    request.op_id = text_lend("");
    refused(f, &request, CODE(INVALID_ARGUMENT), "op_id");
    request = asked();
    request.player_id = text_lend("");
    refused(f, &request, CODE(INVALID_ARGUMENT), "player_id");
}

/* It was answered, and the answer got lost; or the first attempt was at another member. */
static void a_repetition_of_what_made_the_user_alone_is_no_mistake(void **state)
{
    struct pair *f = *state;
    upsert_request request = asked(), other = asked();

    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    f->now_ms += 1000;
    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    assert_int_equal(told(f)->created_at_ms, PAIR_BEGINS_MS);
    fixture_exchange(f->replicas, f->now_ms);
    assert_int_equal(upsert(f, 1, &request), ERR_OK);
    assert_int_equal(told(f)->created_at_ms, PAIR_BEGINS_MS);
    other.op_id = text_lend("018bcfe5-6800-7000-8000-000000000002");
    refused(f, &other, CODE(INVALID_ARGUMENT), ""); /* The user is there: it gives nothing. */
}

static char *leaves(struct pair *f, uint32_t count)
{
    struct buf patch = { 0 };

    for (uint32_t i = 0; i < count; i++)
        buf_printf(&patch, "%c\"a%" PRIu32 "\":1", i == 0 ? '{' : ',', i);
    buf_put_u8(&patch, '}');
    char *text = arena_text(&f->arena, buf_slice(&patch));

    buf_deinit(&patch);
    return text;
}

/* Whether the member that is asked knows the user or not. */
static void as_many_leaves_fit_at_any_member(void **state)
{
    struct pair *f = *state;
    upsert_request request = asked();

    request.connection = text_lend("game");
    request.ttl_ms = 5000;
    request.settings = leaves(f, USER_LEAVES_MAX + 1);
    refused(f, &request, CODE(INVALID_ARGUMENT), "");
    request.settings = leaves(f, USER_LEAVES_MAX);
    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    request.op_id = text_lend("018bcfe5-6800-7000-8000-000000000002");
    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    request.settings = leaves(f, USER_LEAVES_MAX + 1);
    refused(f, &request, CODE(INVALID_ARGUMENT), "");
}

/* One row is left, and the user and the presence are two. */
static void the_last_row_is_not_half_a_user(void **state)
{
    struct pair *f = *state;
    struct merge_store *store = &f->replicas[0]->store;
    upsert_request request = asked();

    for (uint32_t i = 0; i + 1 < DOCUMENT_ROWS_MAX; i++) {
        uint8_t name[8];
        struct merge_key *key;

        store_u64(name, __builtin_bswap64(i)); /* In this order rows are appended. */
        assert_int_equal(
            merge_key_new(SLICE_LITERAL("guild:1"), (struct slice){ name, sizeof name }, &key),
            ERR_OK);
        causal_raise(&merge_store_make(store, key)->recent, 77, i + 1);
        merge_key_unref(key);
    }
    request.connection = text_lend("game");
    request.ttl_ms = 5000;
    refused(f, &request, CODE(CAPACITY_FULL), "");
    request.connection = text_lend("");
    request.ttl_ms = 0;
    assert_int_equal(upsert(f, 0, &request), ERR_OK);
}

/* One write has 64 leaves, and a record 64 KiB. */
static void a_patch_and_a_record_have_their_limits(void **state)
{
    struct pair *f = *state;
    upsert_request request = asked();

    request.settings = leaves(f, 65);
    refused(f, &request, CODE(INVALID_ARGUMENT), "settings");
    assert_string_equal(f->refusal.limit, "at most 64 leaves or steps in one write");
    char *large = arena_alloc(&f->arena, 70000);

    memset(large, 'x', 66000);
    memcpy(large, "{\"a\":\"", 6);
    memcpy(large + 66000, "\"}", 3);
    request.settings = large;
    refused(f, &request, CODE(CAPACITY_FULL), "");
    assert_string_equal(f->refusal.limit, "65536");
}

/* Neither is written where there is room for one of the two. */
static void a_full_shard_takes_no_new_user(void **state)
{
    struct pair *f = *state;
    upsert_request request = asked();

    request.settings = text_lend("{\"a\": 1}");
    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    f->full = true;
    assert_int_equal(upsert(f, 0, &request), ERR_OK); /* It stands. */
    request.connection = text_lend("web");
    request.ttl_ms = 5000;
    refused(f, &request, CODE(CAPACITY_FULL), "");
    request = asked(); /* A logout takes away alone. */
    request.op_id = text_lend("018bcfe5-6800-7000-8000-000000000003");
    char *gone[] = { text_lend("game") };

    request.disconnect = gone;
    request.n_disconnect = 1;
    request.settings = text_lend("{\"a\": 2}");
    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    assert_string_equal(told(f)->settings, "{\"a\":2}");
}

static void two_calls_have_to_fit_among_those_that_wait(void **state)
{
    struct pair *f = *state;
    upsert_request request = asked();

    while (f->replicas[0]->pending_count + 1 < MERGE_PENDING_MAX) {
        struct merge_pending *pending = merge_pending_new(f->replicas[0], PAIR_BEGINS_MS, 0);

        assert_non_null(pending);
        pending->durability = MERGE_ONE;
        pending->log_position = UINT64_MAX;
    }
    request.connection = text_lend("web");
    request.ttl_ms = 5000;
    refused(f, &request, CODE(THROTTLED), "");
    assert_true(f->refusal.retry_after_ms > 0);
}

static void a_display_name_is_cleared_by_saying_so(void **state)
{
    struct pair *f = *state;
    upsert_request request = asked();

    request.display_name = text_lend("Ada");
    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    request.clear_display_name = true;
    refused(f, &request, CODE(INVALID_ARGUMENT), "display_name");
    request.display_name = text_lend("");
    request.op_id = text_lend("018bcfe5-6800-7000-8000-000000000002");
    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    assert_string_equal(told(f)->display_name, "");
    assert_string_equal(get(f, 0)->user->display_name, "");
    assert_int_not_equal(get(f, 0)->user->created_at_ms, 0);
}

/* The message says what is missing, and begins with no empty field. */
static void a_call_that_gives_nothing_is_told_what_it_may_give(void **state)
{
    struct pair *f = *state;
    upsert_request request = asked();

    assert_int_equal(upsert(f, 0, &request), ERR_OK);
    request.op_id = text_lend("018bcfe5-6800-7000-8000-000000000002");
    refused(f, &request, CODE(INVALID_ARGUMENT), "");
    assert_memory_equal(f->refusal.message, "expected at least one of display_name, ", 39);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(a_login_is_one_call_and_tells_the_user),
        TEST(a_later_call_changes_what_it_names),
        TEST(connections_come_and_go_in_one_call),
        TEST(a_connection_that_goes_makes_room),
        TEST(a_repetition_changes_nothing_of_the_record),
        TEST(both_sides_of_a_cut_stand),
        TEST(a_context_asks_for_what_was_seen),
        TEST(an_erased_user_is_not_told_and_not_written),
        TEST(a_backup_has_a_user),
        TEST(refusals_name_the_field),
        TEST(refusals_of_ids_name_the_field),
        TEST(a_repetition_of_what_made_the_user_alone_is_no_mistake),
        TEST(as_many_leaves_fit_at_any_member),
        TEST(the_last_row_is_not_half_a_user),
        TEST(a_patch_and_a_record_have_their_limits),
        TEST(a_full_shard_takes_no_new_user),
        TEST(two_calls_have_to_fit_among_those_that_wait),
        TEST(a_display_name_is_cleared_by_saying_so),
        TEST(a_call_that_gives_nothing_is_told_what_it_may_give),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
