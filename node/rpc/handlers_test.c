#include "node/rpc/fixture.h"

#include <string.h>

#include "node/rpc/fixture_counter.h"
#include "node/rpc/fixture_edges.h"
#include "node/rpc/handlers.h"

static bool belongs_to_a_shard(enum method_route route)
{
    return route == METHOD_MUTATION || route == METHOD_READ || route == METHOD_SHARD ||
           route == METHOD_GATHER || route == METHOD_SHARD_WRITE || route == METHOD_OWNER;
}

static void every_method_of_a_shard_has_one_handler_of_its_kind(void **state)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        const struct handler *handler = handler_find(node_handlers(), all[i].id);
        assert_int_equal(handler != NULL, belongs_to_a_shard(all[i].route));
        if (handler == NULL)
            continue;
        bool reads = all[i].route == METHOD_READ || all[i].route == METHOD_SHARD ||
                     all[i].route == METHOD_GATHER;
        assert_int_equal(handler->method, all[i].id);
        assert_int_equal(handler->read != NULL, reads);
        assert_int_equal(handler->handle != NULL, !reads);
        const ProtobufCFieldDescriptor *authority =
            protobuf_c_message_descriptor_get_field_by_name(all[i].request, "authority");
        assert_int_equal(authority != NULL, handler->admits != 0);
    }
}

/* Of the rows of `need`, as the database has them. */
static void load(struct fixture *f, const struct need *need)
{
    struct reader reader = reader_from(buf_slice(&need->keys));

    while (reader_left(&reader) > 0) {
        struct slice key = read_bytes(&reader, STATE_KEY_BYTES_MAX);
        struct slice value = { 0 };
        bool found = false;
        for (uint32_t i = 0; i < f->row_count && !found; i++) {
            found = slice_equal(buf_slice(&f->rows[i].key), key);
            value = buf_slice(&f->rows[i].value);
        }
        assert_true(state_load(applier_state(f->applier), need->load_generation, key,
                               found ? &value : NULL));
    }
}

/* A footprint that misses a row costs a second round; this shows that prefetching suffices. */
static void prefetching_the_footprint_is_enough_for_apply(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    struct need need = { 0 };
    struct buf body = { 0 };

    assert_non_null(fixture_grant(f, "ann", "unheld", 5));
    fixture_restart(f);
    gold.currency = (char *)"gold";
    gold.amount = 5;
    request.player_id = (char *)"ann";
    request.op_id = (char *)"claim:1";
    request.authority = fixture_authority(f, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    assert_true(fixture_prepare(f, METHOD_SPEND, &request.base, &body));
    applier_footprint(f->applier, buf_slice(&body), &need);
    assert_int_equal(need.key_count, 2);
    load(f, &need);
    uint64_t rounds = f->need_rounds;
    fixture_commit(f, buf_slice(&body));
    assert_int_equal(f->outcome.kind, OUTCOME_COMMITTED);
    assert_int_equal(f->need_rounds, rounds);
    need_deinit(&need);
    buf_deinit(&body);
}

/* The operation's rows are loaded as they are told ahead; nothing is left for apply to ask for. */
static void applies_as_foreseen(struct fixture *f, uint32_t method, const ProtobufCMessage *request)
{
    struct need need = { 0 };
    struct buf body = { 0 };

    assert_true(fixture_prepare(f, method, request, &body));
    struct entry *entry = entry_new(
        ENTRY_OP,
        &(struct entry_head){ .index = f->entry_count + 1u, .dot = { 1, 1, 1 }, .owner_ms = 1 },
        buf_slice(&body));
    applier_foresee(f->applier, entry, &need);
    entry_unref(entry);
    assert_true(need.key_count > 0);
    load(f, &need);
    need_clear(&need);
    applier_footprint(f->applier, buf_slice(&body), &need);
    assert_int_equal(need.key_count, 0);
    uint64_t rounds = f->need_rounds;
    fixture_commit(f, buf_slice(&body));
    assert_int_equal(f->outcome.kind, OUTCOME_COMMITTED);
    assert_int_equal(f->need_rounds, rounds);
    need_deinit(&need);
    buf_deinit(&body);
}

static void rows_under_numbers_are_foreseen_once_the_names_are_known(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__FavoriteRequest made = HOLDFAST__V1__FAVORITE_REQUEST__INIT;
    Holdfast__V1__UnfavoriteRequest gone = HOLDFAST__V1__UNFAVORITE_REQUEST__INIT;
    Holdfast__V1__AddToCounterRequest added = HOLDFAST__V1__ADD_TO_COUNTER_REQUEST__INIT;

    fixture_define_favorites(f);
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    fixture_restart(f);
    assert_non_null(fixture_favorite(f, "bob", "chess"));
    made.player_id = gone.player_id = (char *)"ann";
    made.op_id = (char *)"key:1";
    made.target_id = gone.target_id = (char *)"zork";
    applies_as_foreseen(f, METHOD_FAVORITE, &made.base);
    fixture_restart(f);
    assert_non_null(fixture_favorite(f, "bob", "tetris"));
    gone.op_id = (char *)"key:2";
    applies_as_foreseen(f, METHOD_UNFAVORITE, &gone.base);
    fixture_define_plays(f);
    fixture_restart(f);
    assert_int_equal(fixture_add(f, "bob", "chess", 1), 1);
    added.player_id = (char *)"ann";
    added.op_id = (char *)"key:3";
    added.authority = fixture_authority(f, "system:match");
    added.counter = (char *)"plays";
    added.target_id = (char *)"zork";
    added.amount = 5;
    applies_as_foreseen(f, METHOD_ADD_TO_COUNTER, &added.base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_of_a_shard_has_one_handler_of_its_kind),
        FIXTURE_TEST(prefetching_the_footprint_is_enough_for_apply),
        FIXTURE_TEST(rows_under_numbers_are_foreseen_once_the_names_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
