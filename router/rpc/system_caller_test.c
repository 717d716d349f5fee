/* Who acts as a system: what nodes are told of it, from each kind of caller. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "idl/error_code.h"
#include "router/rpc/fake/plain_router.h"
#include "runtime/base/check.h"
#include "runtime/cluster/caller_name.h"

#define KEY "0a1b2c3d4e5f"

struct fixture {
    struct plain_router plain;
    struct request request;
    struct arena arena;
    const char *author;
    uint32_t scopes;
    struct slice encoded; /* As it came; empty: as JSON. */
    unsigned answers;
    Holdfast__V1__ErrorCode code;
    char message[512];
};

static void reply_encoded(struct request *request, struct slice response)
{
    struct fixture *f = request->origin;

    (void)response;
    f->answers++;
    f->code = CODE(UNSPECIFIED);
}

static void fail_request(struct request *request, const Holdfast__V1__ErrorDetail *detail)
{
    struct fixture *f = request->origin;

    f->answers++;
    f->code = detail->code;
    CHECK(strlen(detail->message) < sizeof f->message);
    memcpy(f->message, detail->message, strlen(detail->message) + 1);
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

    plain_router_answer_all(&f->plain);
    plain_router_deinit(&f->plain);
    arena_deinit(&f->arena);
    free(f);
    return 0;
}

static void dispatch(struct fixture *f, uint32_t method, const ProtobufCMessage *message)
{
    plain_router_answer_all(&f->plain);
    f->request = (struct request){ .door = &door,
                                   .origin = f,
                                   .method = method_find(method),
                                   .message = message,
                                   .encoded = f->encoded,
                                   .arena = &f->arena,
                                   .deadline_ms = loop_now_ms(f->plain.loop) + 5000,
                                   .scopes = f->scopes,
                                   .key_id = f->author,
                                   .author = f->author,
                                   .peer = "test" };
    router_dispatch(&f->plain.router, &f->request);
}

/* Of the call at that place: whom the node is told; NULL: nothing stands behind the request. */
static const char *told(struct fixture *f, uint32_t place)
{
    const struct fake_call *call = &f->plain.fake.calls[place];
    struct slice name;
    const char *text = NULL;

    assert_true(place < f->plain.fake.call_count);
    ProtobufCMessage *message =
        plain_message_read(method_find(call->method)->request, call->body, &f->arena);
    assert_non_null(message);
    bool any = message->n_unknown_fields > 0;
    assert_int_equal(caller_name_take(message, &name), ERR_OK);
    if (any)
        text = arena_printf(&f->arena, "%.*s", (int)name.size, (const char *)name.data);
    return text;
}

static Holdfast__V1__GrantRequest grant_of(const char *authority)
{
    Holdfast__V1__GrantRequest grant = HOLDFAST__V1__GRANT_REQUEST__INIT;

    grant.player_id = text_lend("ann");
    grant.op_id = text_lend("claim:a");
    grant.authority = text_lend(authority);
    return grant;
}

static void the_key_of_a_system_goes_with_its_request(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest grant = grant_of("system:payments");

    f->author = KEY;
    dispatch(f, METHOD_GRANT, &grant.base);
    assert_string_equal(told(f, 0), KEY);
    grant = grant_of("unheld"); /* Of others there is nothing to tell. */
    dispatch(f, METHOD_GRANT, &grant.base);
    assert_null(told(f, 1));
}

static void without_a_key_the_node_is_told_that_there_is_none(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest grant = grant_of("system:payments");

    dispatch(f, METHOD_GRANT, &grant.base);
    assert_string_equal(told(f, 0), "");
}

/* Protobuf keeps fields that it does not know, and the bytes of a caller go to the node as they
 * came. */
static void a_name_that_a_caller_wrote_is_not_the_last_one(void **state)
{
    static const char *const authors[] = { KEY, "" };
    struct fixture *f = *state;

    for (uint32_t i = 0; i < 2; i++) {
        Holdfast__V1__GrantRequest grant = grant_of("system:admin");
        uint8_t bytes[128];
        size_t size = protobuf_c_message_pack(&grant.base, bytes);

        size += caller_name_put(SLICE_LITERAL("forged"), bytes + size);
        f->encoded = (struct slice){ bytes, size };
        f->author = authors[i];
        ProtobufCMessage *message =
            protobuf_c_message_unpack(&holdfast__v1__grant_request__descriptor, NULL, size, bytes);
        assert_int_equal(message->n_unknown_fields, 1);
        dispatch(f, METHOD_GRANT, message);
        assert_string_equal(told(f, i), authors[i]);
        plain_router_answer_all(&f->plain);
        protobuf_c_message_free_unpacked(message, NULL);
    }
}

static void a_text_that_names_a_key_is_refused(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest grant = grant_of("system:admin/" KEY);

    f->author = KEY;
    f->scopes = SCOPE_ADMIN;
    dispatch(f, METHOD_GRANT, &grant.base);
    assert_int_equal(f->plain.fake.call_count, 0);
    assert_int_equal(f->code, CODE(INVALID_ARGUMENT));
    assert_non_null(strstr(f->message, "whose key"));
}

static void each_element_of_a_batch_and_each_recipient_of_mail_has_it(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest first = grant_of(""), second = grant_of("");
    Holdfast__V1__GrantRequest *list[] = { &first, &second };
    Holdfast__V1__BatchGrantRequest batch = HOLDFAST__V1__BATCH_GRANT_REQUEST__INIT;
    Holdfast__V1__DeliverMailRequest mail = HOLDFAST__V1__DELIVER_MAIL_REQUEST__INIT;
    char *recipients[] = { text_lend("ann"), text_lend("bob") };

    f->author = KEY;
    second.player_id = text_lend("bob");
    batch.authority = text_lend("system:match");
    batch.requests = list;
    batch.n_requests = 2;
    dispatch(f, METHOD_BATCH_GRANT, &batch.base);
    assert_int_equal(f->plain.fake.call_count, 2);
    mail.to_player_ids = recipients;
    mail.n_to_player_ids = 2;
    mail.op_id = text_lend("claim:m");
    mail.authority = text_lend("system:mail");
    dispatch(f, METHOD_DELIVER_MAIL, &mail.base);
    assert_int_equal(f->plain.fake.call_count, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_string_equal(told(f, i), KEY);
}

static void a_system_that_acts_for_another_player_of_a_transaction_has_it(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ExecuteTransactionRequest request =
        HOLDFAST__V1__EXECUTE_TRANSACTION_REQUEST__INIT;
    Holdfast__V1__TransactionPlayer other = HOLDFAST__V1__TRANSACTION_PLAYER__INIT;
    Holdfast__V1__TransactionPlayer *others[] = { &other };

    f->author = KEY;
    request.player_id = text_lend("ann");
    request.op_id = text_lend("claim:t");
    request.authority = text_lend("unheld");
    other.player_id = text_lend("bob");
    other.authority = text_lend("system:match");
    request.others = others;
    request.n_others = 1;
    dispatch(f, METHOD_EXECUTE_TRANSACTION, &request.base);
    assert_string_equal(told(f, 0), KEY);
}

/* While the cluster is upgraded; such a node would keep the name as part of the request. */
static void an_older_node_gets_the_plain_request(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest grant = grant_of("system:payments");
    uint8_t plain[128];
    size_t size = protobuf_c_message_pack(&grant.base, plain);

    f->author = KEY;
    f->plain.fake.older[1] = true;
    dispatch(f, METHOD_GRANT, &grant.base);
    assert_int_equal(f->plain.fake.calls[0].node, 1);
    assert_int_equal(f->plain.fake.calls[0].body.size, size);
    assert_memory_equal(f->plain.fake.calls[0].body.data, plain, size);
    f->plain.fake.older[1] = false;
    dispatch(f, METHOD_GRANT, &grant.base);
    assert_string_equal(told(f, 1), KEY);
    assert_memory_equal(f->plain.fake.calls[1].body.data, plain, size);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_key_of_a_system_goes_with_its_request),
        TEST(without_a_key_the_node_is_told_that_there_is_none),
        TEST(a_name_that_a_caller_wrote_is_not_the_last_one),
        TEST(a_text_that_names_a_key_is_refused),
        TEST(each_element_of_a_batch_and_each_recipient_of_mail_has_it),
        TEST(a_system_that_acts_for_another_player_of_a_transaction_has_it),
        TEST(an_older_node_gets_the_plain_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
