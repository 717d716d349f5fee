#include "node/rpc/fixture.h"

#include <string.h>

#define MODE(name) HOLDFAST__V1__START_MODE__START_MODE_##name

static Holdfast__Internal__V1__RenewTokensRequest renewal(Holdfast__Internal__V1__RenewToken *token,
                                                          Holdfast__Internal__V1__RenewToken **list)
{
    Holdfast__Internal__V1__RenewTokensRequest request =
        HOLDFAST__INTERNAL__V1__RENEW_TOKENS_REQUEST__INIT;

    holdfast__internal__v1__renew_token__init(token);
    token->position = 17;
    token->player_id = (char *)"ann";
    token->fence = 1;
    list[0] = token;
    request.incarnation = (char *)SERVER_A;
    request.tokens = list;
    request.n_tokens = 1;
    return request;
}

/* Commits what the owner proposes after a renewal; returns how many entries. */
static uint32_t hold(struct fixture *f, const Holdfast__Internal__V1__RenewTokensRequest *request)
{
    uint8_t packed[256];
    struct buf bodies = { 0 };
    uint32_t count = 0;

    size_t size = protobuf_c_message_pack(&request->base, packed);
    applier_renew_holds(f->applier, (struct slice){ packed, size }, &bodies);
    struct reader reader = reader_from(buf_slice(&bodies));
    for (; reader_left(&reader) > 0; count++)
        fixture_commit(f, read_bytes(&reader, 1024));
    assert_false(reader.bad);
    buf_deinit(&bodies);
    return count;
}

static void a_renewal_holds_what_was_granted(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__RenewToken token;
    Holdfast__Internal__V1__RenewToken *list[1];
    Holdfast__Internal__V1__RenewTokensRequest request = renewal(&token, list);

    assert_non_null(fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f)));
    Holdfast__Internal__V1__RenewTokensResponse *response =
        fixture_read(f, METHOD_RENEW_TOKENS, &request.base);
    assert_int_equal(response->n_lost, 0);
    assert_int_equal(response->n_release_requested, 0);
    assert_int_equal(hold(f, &request), 1);
    assert_string_equal(fixture_session(f, "ann")->state, "held");
    assert_int_equal(hold(f, &request), 0);
    assert_int_equal(fixture_pass(f, 60000), 0);
}

static void what_is_not_current_is_lost(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__RenewToken token;
    Holdfast__Internal__V1__RenewToken *list[1];
    Holdfast__Internal__V1__RenewTokensRequest request = renewal(&token, list);

    Holdfast__Internal__V1__RenewTokensResponse *response =
        fixture_read(f, METHOD_RENEW_TOKENS, &request.base);
    assert_int_equal(response->n_lost, 1);
    assert_int_equal(response->lost[0], 17);
    assert_non_null(fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f)));
    token.fence = 2;
    response = fixture_read(f, METHOD_RENEW_TOKENS, &request.base);
    assert_int_equal(response->n_lost, 1);
    token.fence = 1;
    fixture_expire(f, SERVER_A, "");
    response = fixture_read(f, METHOD_RENEW_TOKENS, &request.base);
    assert_int_equal(response->n_lost, 1);
    assert_int_equal(hold(f, &request), 0);
}

static void a_holder_is_told_that_another_asks_and_how_long_it_has(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__RenewToken token;
    Holdfast__Internal__V1__RenewToken *list[1];
    Holdfast__Internal__V1__RenewTokensRequest request = renewal(&token, list);

    assert_non_null(fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f)));
    assert_null(fixture_start(f, "ann", SERVER_B, MODE(STEAL), fixture_op_id(f)));
    f->now_ms += 1200;
    fixture_restart(f);
    Holdfast__Internal__V1__RenewTokensResponse *response =
        fixture_read(f, METHOD_RENEW_TOKENS, &request.base);
    assert_int_equal(response->n_lost, 0);
    assert_int_equal(response->n_release_requested, 1);
    assert_int_equal(response->release_requested[0]->position, 17);
    assert_int_equal(response->release_requested[0]->remaining_ms, 3800);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_renewal_holds_what_was_granted),
        FIXTURE_TEST(what_is_not_current_is_lost),
        FIXTURE_TEST(a_holder_is_told_that_another_asks_and_how_long_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
