/* Batches: what their elements share, and what their answers come to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "holdfast/internal/v1/refusal.pb-c.h"
#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/profile.pb-c.h"
#include "idl/error_code.h"
#include "router/core/scatter.h"
#include "router/rpc/fake/plain_router.h"
#include "runtime/base/check.h"

struct fixture {
    struct plain_router plain;
    struct request request;
    struct arena arena;
    uint32_t scopes; /* Of the caller's key. */
    unsigned answers;
    Holdfast__V1__ErrorCode code; /* Of the answer; UNSPECIFIED: success. */
    char field[64];
    struct buf response; /* Encoded. */
};

static void reply_encoded(struct request *request, struct slice response)
{
    struct fixture *f = request->origin;

    f->answers++;
    f->code = CODE(UNSPECIFIED);
    buf_clear(&f->response);
    buf_append(&f->response, response.data, response.size);
}

static void fail_request(struct request *request, const Holdfast__V1__ErrorDetail *detail)
{
    struct fixture *f = request->origin;

    f->answers++;
    f->code = detail->code;
    CHECK(strlen(detail->field) < sizeof f->field);
    memcpy(f->field, detail->field, strlen(detail->field) + 1);
}

static const struct request_door door = { .reply_encoded = reply_encoded, .fail = fail_request };

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);

    plain_router_init(&f->plain, 4, &(struct router_options){ .in_flight_max = 10 });
    f->scopes = SCOPES_ALL;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    plain_router_deinit(&f->plain);
    arena_deinit(&f->arena);
    buf_deinit(&f->response);
    free(f);
    return 0;
}

static void dispatch(struct fixture *f, uint32_t method, const ProtobufCMessage *message)
{
    f->request = (struct request){ .door = &door,
                                   .origin = f,
                                   .method = method_find(method),
                                   .message = message,
                                   .arena = &f->arena,
                                   .deadline_ms = loop_now_ms(f->plain.loop) + 5000,
                                   .scopes = f->scopes,
                                   .peer = "test" };
    router_dispatch(&f->plain.router, &f->request);
}

static void make_grant(Holdfast__V1__GrantRequest *grant, char *player)
{
    static char op_id[] = "admin:1";

    holdfast__v1__grant_request__init(grant);
    grant->player_id = player;
    grant->op_id = op_id;
}

static void a_batch_answers_by_place_whatever_the_order_and_the_outcomes(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest grants[4], *list[4];
    Holdfast__V1__BatchGrantRequest batch;
    Holdfast__V1__BatchGrantResponse *answer;
    Holdfast__V1__GrantResponse granted;
    Holdfast__Internal__V1__Refusal refused = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;
    char players[4][4] = { "a", "b", "", "d" };
    uint8_t ok[16], refusal[32];
    size_t ok_size, refusal_size;

    holdfast__v1__batch_grant_request__init(&batch);
    for (int i = 0; i < 4; i++) {
        make_grant(&grants[i], players[i]);
        list[i] = &grants[i];
    }
    batch.requests = list;
    batch.n_requests = 4;
    dispatch(f, METHOD_BATCH_GRANT, &batch.base);
    assert_int_equal(f->plain.fake.call_count, 3);
    assert_int_equal(router_in_flight(&f->plain.router), 4);
    assert_int_equal(f->plain.fake.calls[0].method, METHOD_GRANT);
    assert_int_equal(f->plain.fake.calls[0].priority, ADMISSION_BULK);

    holdfast__v1__grant_response__init(&granted);
    granted.ledger_seq = 9;
    ok_size = holdfast__v1__grant_response__pack(&granted, ok);
    refused.code = CODE(TXN_CONFLICT); /* As an older node would say it: without a wait. */
    refusal_size = holdfast__internal__v1__refusal__pack(&refused, refusal);
    fake_cluster_answer(&f->plain.fake, 2, WIRE_OK, (struct slice){ ok, ok_size });
    fake_cluster_answer(&f->plain.fake, 0, WIRE_REFUSED, (struct slice){ refusal, refusal_size });
    assert_int_equal(f->answers, 0);
    fake_cluster_answer(&f->plain.fake, 1, WIRE_OK, (struct slice){ ok, ok_size });
    assert_int_equal(f->answers, 1);
    answer = holdfast__v1__batch_grant_response__unpack(NULL, f->response.size, f->response.data);
    assert_int_equal(answer->n_results, 4);
    assert_int_equal(answer->results[0]->error->code, CODE(TXN_CONFLICT));
    assert_true(answer->results[0]->error->retry_after_ms > 0);
    assert_int_equal(answer->results[0]->error->action, HOLDFAST__V1__ACTION__ACTION_RETRY_SAME);
    assert_string_equal(answer->results[0]->error->entity, "player:a");
    assert_string_equal(answer->results[0]->error->op_id, grants[0].op_id);
    assert_int_equal(answer->results[1]->response->ledger_seq, 9);
    assert_string_equal(answer->results[2]->error->field, "player_id");
    assert_int_equal(answer->results[2]->error->action, HOLDFAST__V1__ACTION__ACTION_FIX);
    assert_string_equal(answer->results[2]->error->entity, ""); /* It named none. */
    assert_int_equal(answer->results[3]->response->ledger_seq, 9);
    holdfast__v1__batch_grant_response__free_unpacked(answer, NULL);
    assert_int_equal(router_in_flight(&f->plain.router), 0);
}

/* Each player's owner gets whole requests; a key's scopes are asked of what the batch shares. */
static void a_batch_shares_its_fields_with_its_elements(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest grants[2], *list[2] = { &grants[0], &grants[1] };
    Holdfast__V1__BatchGrantRequest batch = HOLDFAST__V1__BATCH_GRANT_REQUEST__INIT;
    char players[2][2] = { "a", "b" }, op[] = "match:m:1", authority[] = "system:payments";

    for (int i = 0; i < 2; i++) {
        holdfast__v1__grant_request__init(&grants[i]);
        grants[i].player_id = players[i];
    }
    batch.requests = list;
    batch.n_requests = 2;
    batch.op_id = op;
    batch.authority = authority;
    f->scopes = SCOPE_GAME;
    dispatch(f, METHOD_BATCH_GRANT, &batch.base);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->code, CODE(PERMISSION_DENIED));
    assert_int_equal(f->plain.fake.call_count, 0);

    f->scopes = SCOPE_PAYMENTS;
    dispatch(f, METHOD_BATCH_GRANT, &batch.base);
    assert_int_equal(f->plain.fake.call_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        Holdfast__V1__GrantRequest *arrived = holdfast__v1__grant_request__unpack(
            NULL, f->plain.fake.calls[i].body.size, f->plain.fake.calls[i].body.data);
        assert_string_equal(arrived->player_id, players[i]);
        assert_string_equal(arrived->op_id, "match:m:1");
        assert_string_equal(arrived->authority, "system:payments");
        holdfast__v1__grant_request__free_unpacked(arrived, NULL);
        fake_cluster_answer(&f->plain.fake, i, WIRE_OK, (struct slice){ 0 });
    }
    assert_int_equal(f->code, CODE(UNSPECIFIED));
}

static void a_batch_with_one_operation_twice_is_refused_as_a_whole(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest grant, other, *list[3] = { &grant, &other, &grant };
    Holdfast__V1__BatchGrantRequest batch = HOLDFAST__V1__BATCH_GRANT_REQUEST__INIT;
    char player[] = "42", second[] = "43";

    make_grant(&grant, player);
    make_grant(&other, second);
    batch.requests = list;
    batch.n_requests = 3;
    dispatch(f, METHOD_BATCH_GRANT, &batch.base);
    assert_int_equal(f->code, CODE(INVALID_ARGUMENT));
    assert_string_equal(f->field, "requests[2].op_id");
    assert_int_equal(f->plain.fake.call_count, 0);
    assert_int_equal(router_in_flight(&f->plain.router), 0);
}

/* Four answers of 1 MiB: three have room. */
static void answers_beyond_the_limit_of_a_batch_are_told_apart_and_none_is_cut(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetProfileRequest reads[4], *list[4];
    Holdfast__V1__BatchGetProfileRequest batch = HOLDFAST__V1__BATCH_GET_PROFILE_REQUEST__INIT;
    Holdfast__V1__GetProfileResponse one = HOLDFAST__V1__GET_PROFILE_RESPONSE__INIT;
    Holdfast__V1__Profile profile = HOLDFAST__V1__PROFILE__INIT;
    Holdfast__V1__Section section = HOLDFAST__V1__SECTION__INIT, *sections[1] = { &section };
    char players[4][2] = { "a", "b", "c", "d" };

    for (int i = 0; i < 4; i++) {
        holdfast__v1__get_profile_request__init(&reads[i]);
        reads[i].player_id = players[i];
        list[i] = &reads[i];
    }
    batch.requests = list;
    batch.n_requests = 4;
    dispatch(f, METHOD_BATCH_GET_PROFILE, &batch.base);
    section.json = mem_zalloc(1024 * 1024 + 1);
    memset(section.json, '1', 1024 * 1024);
    profile.sections = sections;
    profile.n_sections = 1;
    one.profile = &profile;
    size_t size = holdfast__v1__get_profile_response__get_packed_size(&one);
    uint8_t *bytes = mem_zalloc(size);
    holdfast__v1__get_profile_response__pack(&one, bytes);
    for (uint32_t i = 0; i < 4; i++)
        fake_cluster_answer(&f->plain.fake, i, WIRE_OK, (struct slice){ bytes, size });
    free(bytes);
    free(section.json);
    Holdfast__V1__BatchGetProfileResponse *answer =
        holdfast__v1__batch_get_profile_response__unpack(NULL, f->response.size, f->response.data);
    assert_int_equal(answer->n_results, 4);
    assert_int_equal(answer->failed, 1);
    assert_int_equal(answer->results[3]->error->code, CODE(UNAVAILABLE));
    assert_true(answer->results[3]->error->retry_after_ms > 0);
    assert_int_equal(strlen(answer->results[2]->response->profile->sections[0]->json), 1024 * 1024);
    holdfast__v1__batch_get_profile_response__free_unpacked(answer, NULL);
}

/* Of `bytes`, to the element at that place. */
static void answer_profile(struct fixture *f, uint32_t place, size_t bytes)
{
    Holdfast__V1__GetProfileResponse one = HOLDFAST__V1__GET_PROFILE_RESPONSE__INIT;
    Holdfast__V1__Profile profile = HOLDFAST__V1__PROFILE__INIT;
    Holdfast__V1__Section section = HOLDFAST__V1__SECTION__INIT;
    Holdfast__V1__Section *sections[] = { &section };

    section.json = mem_zalloc(bytes + 1);
    memset(section.json, '1', bytes);
    profile.sections = sections;
    profile.n_sections = 1;
    one.profile = &profile;
    size_t size = holdfast__v1__get_profile_response__get_packed_size(&one);
    uint8_t *packed = mem_zalloc(size);
    holdfast__v1__get_profile_response__pack(&one, packed);
    fake_cluster_answer(&f->plain.fake, place, WIRE_OK, (struct slice){ packed, size });
    free(packed);
    free(section.json);
}

#define READS 40u

static void read_many(struct fixture *f, uint32_t count)
{
    static Holdfast__V1__GetProfileRequest reads[READS], *list[READS];
    static Holdfast__V1__BatchGetProfileRequest batch;

    holdfast__v1__batch_get_profile_request__init(&batch);
    for (uint32_t i = 0; i < count; i++) {
        holdfast__v1__get_profile_request__init(&reads[i]);
        reads[i].player_id = (char *)"a";
        list[i] = &reads[i];
    }
    batch.requests = list;
    batch.n_requests = count;
    admission_init(&f->plain.router.admission, 1000);
    dispatch(f, METHOD_BATCH_GET_PROFILE, &batch.base);
}

static void a_batch_of_reads_that_is_given_up_has_no_outcome(void **state)
{
    struct fixture *f = *state;

    read_many(f, 2);
    router_cancel(&f->plain.router, &f->request);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->code, CODE(CANCELED));
}

static void an_element_without_room_in_the_budget_is_throttled_and_all_is_given_back(void **state)
{
    struct fixture *f = *state;
    struct budget answers;

    budget_init(&answers, 200000);
    f->plain.router.options.answers = &answers;
    read_many(f, 3);
    answer_profile(f, 0, 100000);
    assert_true(budget_held(&answers) > 100000);
    answer_profile(f, 1, 100000);
    answer_profile(f, 2, 1000);
    Holdfast__V1__BatchGetProfileResponse *answer =
        holdfast__v1__batch_get_profile_response__unpack(NULL, f->response.size, f->response.data);
    assert_int_equal(answer->failed, 1);
    assert_int_equal(answer->results[1]->error->code, CODE(THROTTLED));
    assert_true(answer->results[1]->error->retry_after_ms > 0);
    assert_non_null(answer->results[2]->response);
    holdfast__v1__batch_get_profile_response__free_unpacked(answer, NULL);
    budget_deinit(&answers);
}

static void a_batch_of_reads_asks_for_no_more_than_its_answer_has_room_for(void **state)
{
    struct fixture *f = *state;

    read_many(f, READS);
    assert_int_equal(f->plain.fake.call_count, 32);
    answer_profile(f, 0, 1000);
    assert_int_equal(f->plain.fake.call_count, READS); /* They are small: all at once. */
    for (uint32_t i = 1; i < READS; i++)
        answer_profile(f, i, 1000);
    assert_int_equal(f->answers, 1);

    read_many(f, READS);
    for (uint32_t i = 0; i < 4; i++)
        answer_profile(f, READS + i, 1000000);
    for (uint32_t i = 4; i < 32; i++)
        answer_profile(f, READS + i, 1000);
    assert_int_equal(f->plain.fake.call_count, READS + 32);
    assert_int_equal(f->answers, 2);
    Holdfast__V1__BatchGetProfileResponse *answer =
        holdfast__v1__batch_get_profile_response__unpack(NULL, f->response.size, f->response.data);
    assert_int_equal(answer->failed, 1 + READS - 32);
    holdfast__v1__batch_get_profile_response__free_unpacked(answer, NULL);
}

/* Another caller's, perhaps: what is asked for in vain costs nodes as much. */
static void a_batch_of_reads_begins_with_few_after_another_had_large_answers(void **state)
{
    struct fixture *f = *state;

    read_many(f, 1);
    answer_profile(f, 0, SCATTER_ANSWERS_BYTES_MAX / 3);
    read_many(f, READS);
    assert_int_equal(f->plain.fake.call_count, 1 + 2);
    answer_profile(f, 1, 10); /* These are small. */
    assert_int_equal(f->plain.fake.call_count, 1 + READS);
    for (uint32_t i = 2; i <= READS; i++)
        answer_profile(f, i, 10);
    assert_int_equal(f->answers, 2);
    read_many(f, 2); /* More than one is too large for a batch: alone it is asked for. */
    answer_profile(f, READS + 1, SCATTER_ANSWERS_BYTES_MAX);
    answer_profile(f, READS + 2, 10);
    read_many(f, 2);
    assert_int_equal(f->plain.fake.call_count, 1 + READS + 2 + 1);
    answer_profile(f, READS + 3, 10);
    answer_profile(f, READS + 4, 10);
    assert_int_equal(f->answers, 4);
}

static void an_empty_batch_is_answered_at_once(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__BatchGrantRequest batch;

    holdfast__v1__batch_grant_request__init(&batch);
    dispatch(f, METHOD_BATCH_GRANT, &batch.base);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->response.size, 0);
}

static void mail_for_many_is_an_operation_of_each(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__DeliverMailRequest mail = HOLDFAST__V1__DELIVER_MAIL_REQUEST__INIT;
    Holdfast__V1__MailDelivery made = HOLDFAST__V1__MAIL_DELIVERY__INIT;
    char *players[] = { (char *)"ann", (char *)"", (char *)"bob" };
    uint8_t ok[16];

    mail.to_player_ids = players;
    mail.n_to_player_ids = ARRAY_SIZE(players);
    mail.op_id = (char *)"season:3";
    mail.text = (char *)"gl";
    dispatch(f, METHOD_DELIVER_MAIL, &mail.base);
    assert_int_equal(f->plain.fake.call_count, 2);
    assert_int_equal(f->plain.fake.calls[1].method, METHOD_DELIVER_TO_PLAYER);
    Holdfast__Internal__V1__DeliverToPlayerRequest *sent =
        holdfast__internal__v1__deliver_to_player_request__unpack(
            NULL, f->plain.fake.calls[1].body.size, f->plain.fake.calls[1].body.data);
    assert_string_equal(sent->player_id, "bob");
    assert_string_equal(sent->op_id, "season:3");
    assert_string_equal(sent->text, "gl");
    holdfast__internal__v1__deliver_to_player_request__free_unpacked(sent, NULL);
    made.ledger_seq = 4;
    size_t size = holdfast__v1__mail_delivery__pack(&made, ok);
    fake_cluster_answer(&f->plain.fake, 1, WIRE_OK, (struct slice){ ok, size });
    fake_cluster_answer(&f->plain.fake, 0, WIRE_OK, (struct slice){ ok, size });
    Holdfast__V1__DeliverMailResponse *answer =
        holdfast__v1__deliver_mail_response__unpack(NULL, f->response.size, f->response.data);
    assert_int_equal(answer->n_results, 3);
    assert_int_equal(answer->failed, 1);
    assert_int_equal(answer->results[0]->response->ledger_seq, 4);
    assert_string_equal(answer->results[1]->error->field, "to_player_ids");
    assert_int_equal(answer->results[2]->response->ledger_seq, 4);
    holdfast__v1__deliver_mail_response__free_unpacked(answer, NULL);
}

static void both_sides_of_a_swap_go_to_the_player_of_the_first(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__SwapRequest swap = HOLDFAST__V1__SWAP_REQUEST__INIT;
    Holdfast__V1__SwapSide a = HOLDFAST__V1__SWAP_SIDE__INIT, b = HOLDFAST__V1__SWAP_SIDE__INIT;

    swap.op_id = (char *)"claim:deal";
    swap.a = &a;
    swap.b = &b;
    b.player_id = (char *)"bob";
    dispatch(f, METHOD_SWAP, &swap.base);
    assert_int_equal(f->plain.fake.call_count, 0);
    assert_string_equal(f->field, "a.player_id");
    a.player_id = (char *)"ann";
    dispatch(f, METHOD_SWAP, &swap.base);
    assert_int_equal(f->plain.fake.call_count, 1);
    assert_int_equal(f->plain.fake.calls[0].method, METHOD_SWAP_GOODS);
    Holdfast__Internal__V1__SwapGoodsRequest *sent =
        holdfast__internal__v1__swap_goods_request__unpack(NULL, f->plain.fake.calls[0].body.size,
                                                           f->plain.fake.calls[0].body.data);
    assert_string_equal(sent->player_id, "ann");
    assert_string_equal(sent->other_player_id, "bob");
    holdfast__internal__v1__swap_goods_request__free_unpacked(sent, NULL);
    fake_cluster_answer(&f->plain.fake, 0, WIRE_OK, (struct slice){ 0 });
    assert_int_equal(f->answers, 2);
    assert_int_equal(f->code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNSPECIFIED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_batch_answers_by_place_whatever_the_order_and_the_outcomes),
        TEST(a_batch_shares_its_fields_with_its_elements),
        TEST(a_batch_with_one_operation_twice_is_refused_as_a_whole),
        TEST(answers_beyond_the_limit_of_a_batch_are_told_apart_and_none_is_cut),
        TEST(a_batch_of_reads_that_is_given_up_has_no_outcome),
        TEST(an_element_without_room_in_the_budget_is_throttled_and_all_is_given_back),
        TEST(a_batch_of_reads_asks_for_no_more_than_its_answer_has_room_for),
        TEST(a_batch_of_reads_begins_with_few_after_another_had_large_answers),
        TEST(an_empty_batch_is_answered_at_once),
        TEST(mail_for_many_is_an_operation_of_each),
        TEST(both_sides_of_a_swap_go_to_the_player_of_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
