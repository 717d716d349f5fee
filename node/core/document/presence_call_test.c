/* PresenceService at one member that is alone, and at two that were apart: who is shown, for how
 * long, and each refusal with its field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/document/fixture.h"
#include "node/core/document/methods.h"
#include "node/core/document/presence.h"
#include "node/core/mergeable/disk.h"
#include "node/core/mergeable/rounds.h"
#include "runtime/base/check.h"

#define OP "018bcfe5-6800-7000-8000-000000000001"

static int setup(void **state)
{
    struct pair *f = calloc(1, sizeof *f);

    pair_init(f);
    living_put(&f->living, (struct incarnation){ 1, 20 }, false);
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

struct put {
    const char *connection, *status, *incarnation;
    int64_t ttl_ms;
};

static err set(struct pair *f, int member, struct put put)
{
    Holdfast__V1__SetPresenceRequest request = HOLDFAST__V1__SET_PRESENCE_REQUEST__INIT;

    request.player_id = text_lend("ada");
    request.op_id = text_lend(OP);
    request.connection = text_lend(put.connection);
    request.status = text_lend(put.status != NULL ? put.status : "");
    request.incarnation = text_lend(put.incarnation != NULL ? put.incarnation : "");
    request.ttl_ms = put.ttl_ms;
    return pair_call(f, member, METHOD_SET_PRESENCE, &request.base);
}

static err clear(struct pair *f, int member, const char *connection)
{
    Holdfast__V1__ClearPresenceRequest request = HOLDFAST__V1__CLEAR_PRESENCE_REQUEST__INIT;

    request.player_id = text_lend("ada");
    request.op_id = text_lend(OP);
    request.connection = text_lend(connection);
    return pair_call(f, member, METHOD_CLEAR_PRESENCE, &request.base);
}

static err ask(struct pair *f, int member, const char *context)
{
    Holdfast__V1__GetPresenceRequest request = HOLDFAST__V1__GET_PRESENCE_REQUEST__INIT;

    request.player_id = text_lend("ada");
    request.context = text_lend(context);
    return pair_call(f, member, METHOD_GET_PRESENCE, &request.base);
}

/* NULL: she is not online. */
static const Holdfast__V1__Presence *get(struct pair *f, int member)
{
    assert_int_equal(ask(f, member, ""), ERR_OK);
    const Holdfast__V1__GetPresenceResponse *got = (void *)arena_unpack(
        &f->arena, &holdfast__v1__get_presence_response__descriptor, f->begun.answer);

    assert_non_null(got);
    return got->presence;
}

/* Her connections in their order, a blank behind each. */
static void shows(struct pair *f, int member, const char *expected)
{
    const Holdfast__V1__Presence *presence = get(f, member);
    struct buf text = { 0 };

    for (size_t i = 0; presence != NULL && i < presence->n_connections; i++) {
        const char *connection = presence->connections[i]->connection;

        buf_append(&text, connection, strlen(connection));
        buf_put_u8(&text, ' ');
    }
    buf_put_u8(&text, 0);
    assert_string_equal((const char *)buf_slice(&text).data, expected);
    buf_deinit(&text);
}

static void refused(struct pair *f, err e, Holdfast__V1__ErrorCode code, const char *field)
{
    assert_int_not_equal(e, ERR_OK);
    assert_int_equal(f->refusal.code, code);
    assert_non_null(f->refusal.message);
    if (field != NULL)
        assert_string_equal(f->refusal.field, field);
}

static void end_server(struct pair *f, uint64_t revision)
{
    living_put(&f->living, (struct incarnation){ 1, revision }, true);
}

static uint32_t cells(struct pair *f)
{
    return f->replicas[0]->store.rows[0].record.count;
}

/* ---- tests ---- */

static void several_connections_are_shown_the_latest_first(void **state)
{
    struct pair *f = *state;

    shows(f, 0, "");
    assert_int_equal(set(f, 0, (struct put){ "phone", "", NULL, 60000 }), ERR_OK);
    assert_true(f->begun.ticket != 0 && f->begun.context[0] == 'd');
    f->now_ms += 5;
    assert_int_equal(set(f, 0, (struct put){ "game:1", "{\"b\":1, \"a\":[2]}", "1-10", 0 }),
                     ERR_OK);
    const Holdfast__V1__Presence *presence = get(f, 0);

    assert_int_equal(presence->n_connections, 2);
    assert_string_equal(presence->player_id, "ada");
    assert_int_equal(presence->last_set_at_ms, PAIR_BEGINS_MS + 5);
    const Holdfast__V1__PresenceConnection *game = presence->connections[0];
    const Holdfast__V1__PresenceConnection *phone = presence->connections[1];

    assert_string_equal(game->connection, "game:1");
    assert_string_equal(game->status, "{\"a\":[2],\"b\":1}");
    assert_string_equal(game->incarnation, "1-10");
    assert_int_equal(game->expires_at_ms, 0);
    assert_string_equal(phone->status, "");
    assert_int_equal(phone->expires_at_ms, PAIR_BEGINS_MS + 60000);
    assert_int_equal(phone->set_at_ms, PAIR_BEGINS_MS);
    f->now_ms += 5;
    assert_int_equal(set(f, 0, (struct put){ "phone", "1", NULL, 60000 }), ERR_OK);
    shows(f, 0, "phone game:1 ");
    assert_int_equal(cells(f), 2);
}

static void a_server_that_ended_takes_its_own_along_without_a_write(void **state)
{
    struct pair *f = *state;

    assert_int_equal(set(f, 0, (struct put){ "a", "", "1-10", 0 }), ERR_OK);
    f->now_ms++;
    assert_int_equal(set(f, 0, (struct put){ "b", "", "1-20", 0 }), ERR_OK);
    f->now_ms += 400ull * 24 * 3600 * 1000; /* No renewal. */
    shows(f, 0, "b a ");
    end_server(f, 20);
    shows(f, 0, "a ");
    assert_int_equal(cells(f), 2);
    refused(f, set(f, 0, (struct put){ "b", "", "1-20", 0 }), CODE(SERVER_EXPIRED), "incarnation");
    assert_string_equal(f->refusal.value, "1-20");
    assert_int_equal(set(f, 0, (struct put){ "a", "", "1-10", 0 }), ERR_OK);
    assert_int_equal(cells(f), 1); /* A write takes the dead part away. */
    assert_int_equal(set(f, 0, (struct put){ "c", "", "1-999", 0 }), ERR_OK); /* Not told of yet. */
    shows(f, 0, "c a ");
}

static void what_is_not_set_again_in_its_time_is_gone(void **state)
{
    struct pair *f = *state;

    assert_int_equal(set(f, 0, (struct put){ "phone", "", NULL, 1000 }), ERR_OK);
    f->now_ms += 999;
    assert_int_equal(set(f, 0, (struct put){ "phone", "", NULL, 1000 }), ERR_OK);
    f->now_ms += 999;
    shows(f, 0, "phone ");
    f->now_ms += 1;
    shows(f, 0, "");
}

static void one_or_all_are_cleared(void **state)
{
    static const char *const names[] = { "a", "b", "c" };
    struct pair *f = *state;

    for (int i = 0; i < 3; i++)
        assert_int_equal(set(f, 0, (struct put){ names[i], "", "1-10", 0 }), ERR_OK);
    assert_int_equal(clear(f, 0, "b"), ERR_OK);
    assert_int_equal(cells(f), 2);
    assert_int_equal(clear(f, 0, "none"), ERR_OK);
    assert_int_equal(cells(f), 2);
    assert_int_equal(clear(f, 0, ""), ERR_OK);
    shows(f, 0, "");
}

/* Where no document more has room, players still leave. */
static void what_is_not_there_is_cleared_in_a_full_shard_too(void **state)
{
    struct pair *f = *state;

    f->full = true;
    assert_int_equal(clear(f, 0, "game"), ERR_OK);
    assert_int_equal(clear(f, 0, ""), ERR_OK);
    assert_int_equal(f->replicas[0]->store.count, 0);
}

static void both_sides_of_a_cut_stand(void **state)
{
    struct pair *f = *state;

    assert_int_equal(set(f, 0, (struct put){ "old", "", "1-10", 0 }), ERR_OK);
    fixture_exchange(f->replicas, f->now_ms);
    f->now_ms++;
    assert_int_equal(set(f, 0, (struct put){ "left", "", "1-10", 0 }), ERR_OK);
    assert_int_equal(clear(f, 0, "old"), ERR_OK);
    f->now_ms++;
    assert_int_equal(set(f, 1, (struct put){ "right", "", "1-20", 0 }), ERR_OK);
    const char *context = f->begun.context;

    assert_int_equal(ask(f, 1, context), ERR_OK);
    refused(f, ask(f, 0, context), CODE(UNAVAILABLE), NULL); /* The router asks the other. */
    fixture_exchange(f->replicas, f->now_ms);
    assert_int_equal(ask(f, 0, context), ERR_OK);
    shows(f, 0, "right left ");
    shows(f, 1, "right left ");
}

static void there_are_limits(void **state)
{
    struct pair *f = *state;
    char status[1100], name[] = "c0";

    memset(status, '1', sizeof status);
    status[0] = status[1024] = '"';
    status[1023] = '"';
    status[1024] = 0;
    assert_int_equal(set(f, 0, (struct put){ "long", status, "1-10", 0 }), ERR_OK);
    status[1023] = '1';
    status[1024] = '"';
    status[1025] = 0;
    refused(f, set(f, 0, (struct put){ "long", status, "1-10", 0 }), CODE(INVALID_ARGUMENT),
            "status");
    assert_string_equal(f->refusal.value, "1025");
    for (int i = 0; i < 15; i++) {
        name[1] = (char)('a' + i);
        assert_int_equal(set(f, 0, (struct put){ name, "", i < 8 ? "1-10" : "1-20", 0 }), ERR_OK);
    }
    refused(f, set(f, 0, (struct put){ "more", "", "1-10", 0 }), CODE(CAPACITY_FULL), NULL);
    assert_string_equal(f->refusal.limit, "16");
    assert_int_equal(set(f, 0, (struct put){ "ca", "", "1-20", 0 }), ERR_OK); /* In its place. */
    end_server(f, 10); /* Those of a dead server count no more. */
    assert_int_equal(set(f, 0, (struct put){ "more", "", "1-20", 0 }), ERR_OK);
    assert_int_equal(cells(f), 9);
    assert_int_equal(clear(f, 0, ""), ERR_OK);
    f->full = true;
    /* Her row is there. */
    assert_int_equal(set(f, 0, (struct put){ "more", "", "1-20", 0 }), ERR_OK);
}

static void bad_requests_are_refused_with_their_field(void **state)
{
    struct pair *f = *state;
    static const struct {
        struct put put;
        const char *field;
    } bad[] = {
        { { "", "", "1-10", 0 }, "connection" },
        { { "a/b", "", "1-10", 0 }, "connection" },
        { { "01234567890123456789012345678901234567890123456789012345678901234", "", "1-10", 0 },
          "connection" },
        { { "a", "{", "1-10", 0 }, "status" },
        { { "a", "", "1-10", 5000 }, "ttl_ms" },
        { { "a", "", "", 0 }, "ttl_ms" },
        { { "a", "", "", 999 }, "ttl_ms" },
        { { "a", "", "", 86400001 }, "ttl_ms" },
        { { "a", "", "", -1 }, "ttl_ms" },
        { { "a", "", "ten", 0 }, "incarnation" },
    };
    Holdfast__V1__SetPresenceRequest request = HOLDFAST__V1__SET_PRESENCE_REQUEST__INIT;
    char deep[401] = "";

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        refused(f, set(f, 0, bad[i].put), CODE(INVALID_ARGUMENT), bad[i].field);
    memset(deep, '[', 200);
    memset(deep + 200, ']', 200);
    refused(f, set(f, 0, (struct put){ "a", deep, "1-10", 0 }), CODE(INVALID_ARGUMENT), "status");
    refused(f, clear(f, 0, "a b"), CODE(INVALID_ARGUMENT), "connection");
    refused(f, ask(f, 0, "d1.nonsense"), CODE(INVALID_ARGUMENT), "context");
    request.connection = text_lend("a");
    request.ttl_ms = 5000;
    refused(f, pair_call(f, 0, METHOD_SET_PRESENCE, &request.base), CODE(INVALID_ARGUMENT),
            "player_id");
    request.player_id = text_lend("ada");
    refused(f, pair_call(f, 0, METHOD_SET_PRESENCE, &request.base), CODE(INVALID_ARGUMENT),
            "op_id");
    assert_int_equal(f->replicas[0]->store.count, 0);
}

static void the_sweep_takes_the_dead_and_no_others(void **state)
{
    struct pair *f = *state;
    struct document_context context = pair_context(f, 0);
    struct merge_key *key = NULL;

    assert_int_equal(set(f, 0, (struct put){ "a", "", "1-10", 0 }), ERR_OK);
    assert_int_equal(set(f, 0, (struct put){ "b", "", "1-20", 0 }), ERR_OK);
    assert_int_equal(set(f, 0, (struct put){ "c", "", NULL, 1000 }), ERR_OK);
    assert_int_equal(presence_sweep(&context, NULL, &key), ERR_NOT_FOUND);
    end_server(f, 10);
    assert_int_equal(presence_sweep(&context, NULL, &key), ERR_OK);
    assert_int_equal(cells(f), 2);
    assert_int_equal(presence_sweep(&context, key, &(struct merge_key *){ NULL }), ERR_NOT_FOUND);
    assert_int_equal(presence_sweep(&context, NULL, &(struct merge_key *){ NULL }), ERR_NOT_FOUND);
    shows(f, 0, "c b ");
    merge_key_unref(key);
}

/* What another build, or a disk, says under a presence's name. */
static void a_part_that_cannot_be_read_is_not_shown_and_goes(void **state)
{
    struct pair *f = *state;
    struct document_context context = pair_context(f, 0);
    const struct merge_edit edit = { .path = slice_from_text("x"),
                                     .value = slice_from_text("\xff") };
    struct merge_write write = {
        .policy = MERGE_POLICY_MERGE, .durability = MERGE_MEMORY, .edit_count = 1, .edits = &edit
    };
    struct merge_refusal refusal;
    struct merge_written written;

    assert_int_equal(set(f, 0, (struct put){ "a", "", "1-10", 0 }), ERR_OK);
    write.key = merge_key_ref(f->replicas[0]->store.rows[0].key);
    assert_int_equal(merge_write(f->replicas[0], f->now_ms, &write, &written, &refusal), ERR_OK);
    assert_int_equal(cells(f), 2);
    shows(f, 0, "a ");
    assert_int_equal(presence_sweep(&context, NULL, &(struct merge_key *){ NULL }), ERR_OK);
    assert_int_equal(cells(f), 1);
    merge_key_unref(write.key);
    merge_key_unref(write.key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(several_connections_are_shown_the_latest_first, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_server_that_ended_takes_its_own_along_without_a_write,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_set_again_in_its_time_is_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(one_or_all_are_cleared, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_there_is_cleared_in_a_full_shard_too, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(both_sides_of_a_cut_stand, setup, teardown),
        cmocka_unit_test_setup_teardown(there_are_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_requests_are_refused_with_their_field, setup, teardown),
        cmocka_unit_test_setup_teardown(the_sweep_takes_the_dead_and_no_others, setup, teardown),
        cmocka_unit_test_setup_teardown(a_part_that_cannot_be_read_is_not_shown_and_goes, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
