/* What three members in one process tell of their clocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "node/io/mergeable/mergers_fixture.h"

typedef Holdfast__Internal__V1__GetNodeClockResponse clock_response;

/* NULL: refused. */
static clock_response *clock_of(struct world *w, uint32_t place, uint32_t shard)
{
    Holdfast__Internal__V1__GetNodeClockRequest request =
        HOLDFAST__INTERNAL__V1__GET_NODE_CLOCK_REQUEST__INIT;
    struct buf out = { 0 };
    uint8_t bytes[16];

    request.shard = shard;
    struct slice asked = { bytes,
                           holdfast__internal__v1__get_node_clock_request__pack(&request, bytes) };
    clock_response *response = NULL;

    if (mergers_clock(w->members[place].mergers, asked, &out))
        response =
            holdfast__internal__v1__get_node_clock_response__unpack(NULL, out.size, out.data);
    buf_deinit(&out);
    return response;
}

static void free_clock(clock_response *response)
{
    holdfast__internal__v1__get_node_clock_response__free_unpacked(response, NULL);
}

static void a_member_tells_its_writes_and_what_the_others_lack(void **state)
{
    struct world *w = *state;
    uint64_t held = 0;

    assert_int_equal(world_put(w, 0, "a", "1"), REPLY_OK);
    assert_int_equal(world_put(w, 0, "b", "1"), REPLY_OK);
    world_eventually(w, 1, "a", 1);
    world_eventually(w, 1, "b", 1);
    clock_response *response = clock_of(w, 1, SHARD);

    assert_non_null(response);
    assert_string_equal(response->clock->state, "ok");
    assert_int_equal(response->clock->n_peers, 2);
    for (size_t i = 0; i < response->clock->n_actors; i++)
        held += response->clock->actors[i]->up_to + response->clock->actors[i]->above;
    assert_int_equal(held, 2);
    for (size_t i = 0; i < response->clock->n_peers; i++) {
        assert_int_equal(response->clock->peers[i]->lacked_here, 0);
        assert_in_range(response->clock->peers[i]->lacked_there, 0, 2);
    }
    free_clock(response);
}

static void a_shard_without_documents_is_empty_and_one_that_is_not_there_is_refused(void **state)
{
    struct world *w = *state;
    clock_response *response = clock_of(w, 0, SHARD);

    assert_non_null(response);
    assert_string_equal(response->clock->state, "empty");
    assert_int_equal(response->clock->n_actors, 0);
    free_clock(response);
    response = clock_of(w, 0, 0);
    assert_string_equal(response->clock->state, "no_member");
    free_clock(response);
    assert_null(clock_of(w, 0, 4));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_member_tells_its_writes_and_what_the_others_lack),
        TEST(a_shard_without_documents_is_empty_and_one_that_is_not_there_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
