#include "node/rpc/fixture.h"

#include <string.h>

#include "node/rpc/handlers.h"

static bool belongs_to_a_shard(enum method_route route)
{
    return route == METHOD_MUTATION || route == METHOD_READ || route == METHOD_SHARD ||
           route == METHOD_SHARD_WRITE || route == METHOD_OWNER;
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
        bool reads = all[i].route == METHOD_READ || all[i].route == METHOD_SHARD;
        assert_int_equal(handler->method, all[i].id);
        assert_int_equal(handler->read != NULL, reads);
        assert_int_equal(handler->handle != NULL, !reads);
        const ProtobufCFieldDescriptor *authority =
            protobuf_c_message_descriptor_get_field_by_name(all[i].request, "authority");
        assert_int_equal(authority != NULL, handler->admits != 0);
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
    struct reader reader = reader_from(buf_slice(&need.keys));
    while (reader_left(&reader) > 0) {
        struct slice key = read_bytes(&reader, STATE_KEY_BYTES_MAX);
        struct slice value = { 0 };
        bool found = false;
        for (uint32_t i = 0; i < f->row_count && !found; i++) {
            found = slice_equal(buf_slice(&f->rows[i].key), key);
            value = buf_slice(&f->rows[i].value);
        }
        assert_true(state_load(applier_state(f->applier), need.load_generation, key,
                               found ? &value : NULL));
    }
    uint64_t rounds = f->need_rounds;
    fixture_commit(f, buf_slice(&body));
    assert_int_equal(f->outcome.kind, OUTCOME_COMMITTED);
    assert_int_equal(f->need_rounds, rounds);
    need_deinit(&need);
    buf_deinit(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_of_a_shard_has_one_handler_of_its_kind),
        FIXTURE_TEST(prefetching_the_footprint_is_enough_for_apply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
