#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/operation_service.pb-c.h"
#include "idl/scope.h"
#include "router/core/request_defaults.h"

struct fixture {
    struct arena arena;
    struct request_defaults defaults;
    Holdfast__V1__GrantRequest grant;
    Holdfast__V1__ErrorDetail detail;
};

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){ 0 };
    holdfast__v1__grant_request__init(&f.grant);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    arena_deinit(&f->arena);
    return 0;
}

static err apply(struct fixture *f, uint32_t method, ProtobufCMessage *message)
{
    return request_defaults_apply(&f->defaults, method_find(method), message, &f->arena,
                                  &f->detail);
}

static err apply_grant(struct fixture *f)
{
    return apply(f, METHOD_GRANT, &f->grant.base);
}

static char unheld[] = "unheld", mail[] = "system:mail";

static void a_body_goes_before_a_header_and_a_header_before_the_key(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(apply_grant(f), ERR_OK);
    assert_false(f->defaults.used);
    assert_string_equal(f->grant.authority, "");
    f->defaults.key_scope = SCOPE_PAYMENTS;
    assert_int_equal(apply_grant(f), ERR_OK);
    assert_true(f->defaults.used);
    assert_string_equal(f->grant.authority, "system:payments");
    assert_int_equal(apply_grant(f), ERR_OK);
    assert_false(f->defaults.used);
    f->grant.authority = text_lend(protobuf_c_empty_string);
    f->defaults.authority = SLICE_LITERAL("session:1-2-3");
    assert_int_equal(apply_grant(f), ERR_OK);
    assert_string_equal(f->grant.authority, "session:1-2-3");
    f->grant.authority = unheld;
    assert_int_equal(apply_grant(f), ERR_OK);
    assert_false(f->defaults.used);
    assert_string_equal(f->grant.authority, "unheld");
}

static void a_header_that_is_no_authority_is_refused_and_not_repeated(void **state)
{
    struct fixture *f = *state;

    f->defaults.authority = SLICE_LITERAL("1-2-3");
    assert_int_equal(apply_grant(f), ERR_INVALID);
    assert_string_equal(f->detail.field, "holdfast-authority");
    assert_string_equal(f->detail.limit, "session:<token>, system:<scope> or unheld");
    assert_string_equal(f->detail.value, "5 other bytes");
    assert_null(strstr(f->detail.message, "1-2-3"));
}

/* A batch gives each of its elements a copy: 128 bytes are the most. */
static void a_header_of_more_than_128_bytes_is_refused(void **state)
{
    struct fixture *f = *state;
    char text[129];

    memset(text, 'x', sizeof text);
    memcpy(text, "session:", strlen("session:"));
    f->defaults.authority = (struct slice){ (const uint8_t *)text, 129 };
    assert_int_equal(apply_grant(f), ERR_INVALID);
    assert_string_equal(f->detail.field, "holdfast-authority");
    assert_string_equal(f->detail.value, "129 other bytes");
    f->defaults.authority.size = 128;
    assert_int_equal(apply_grant(f), ERR_OK);
    assert_int_equal(strlen(f->grant.authority), 128);
}

static void the_other_players_of_a_swap_name_their_own(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__SwapGoodsRequest swap =
        HOLDFAST__INTERNAL__V1__SWAP_GOODS_REQUEST__INIT;

    f->defaults.authority = SLICE_LITERAL("unheld");
    assert_int_equal(apply(f, METHOD_SWAP, &swap.base), ERR_OK);
    assert_string_equal(swap.authority, "unheld");
    assert_string_equal(swap.other_authority, "");
}

static void a_delivery_is_one_operation_of_each_recipient(void **state)
{
    Holdfast__Internal__V1__DeliverToPlayersRequest all =
        HOLDFAST__INTERNAL__V1__DELIVER_TO_PLAYERS_REQUEST__INIT;
    Holdfast__Internal__V1__DeliverToPlayerRequest one =
        HOLDFAST__INTERNAL__V1__DELIVER_TO_PLAYER_REQUEST__INIT;
    Holdfast__Internal__V1__DeliverToPlayerRequest two = one, *list[] = { &one, &two };
    struct fixture *f = *state;

    all.requests = list;
    all.n_requests = 2;
    f->defaults.key_scope = SCOPE_MAIL;
    f->defaults.idempotency_key = SLICE_LITERAL("season-3");
    assert_int_equal(apply(f, METHOD_DELIVER_MAIL, &all.base), ERR_OK);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(list[i]->op_id, "key:season-3");
        assert_string_equal(list[i]->authority, "system:mail");
    }
    f->defaults.idempotency_key = SLICE_LITERAL("season-4");
    assert_int_equal(apply(f, METHOD_DELIVER_MAIL, &all.base), ERR_INVALID);
    assert_string_equal(f->detail.field, "op_id");
}

static void each_element_of_a_batch_is_completed(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__BatchGrantRequest batch = HOLDFAST__V1__BATCH_GRANT_REQUEST__INIT;
    Holdfast__V1__GrantRequest second = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__GrantRequest *list[] = { &f->grant, &second };

    batch.requests = list;
    batch.n_requests = 2;
    second.authority = mail;
    f->defaults.key_scope = SCOPE_MATCH;
    assert_int_equal(apply(f, METHOD_BATCH_GRANT, &batch.base), ERR_OK);
    assert_true(f->defaults.used);
    assert_string_equal(f->grant.authority, "system:match");
    assert_string_equal(second.authority, "system:mail");
}

static void assert_op_id(struct fixture *f, const char *header, const char *expected)
{
    f->grant.op_id = text_lend(protobuf_c_empty_string);
    f->defaults.idempotency_key = slice_from_text(header);
    assert_int_equal(apply_grant(f), ERR_OK);
    assert_true(f->defaults.used);
    assert_string_equal(f->grant.op_id, expected);
    assert_int_equal(apply_grant(f), ERR_OK); /* Both say the same. */
    assert_false(f->defaults.used);
}

static void the_header_fills_in_an_op_id(void **state)
{
    struct fixture *f = *state;

    assert_op_id(f, "order-17", "key:order-17");
    assert_op_id(f, "order:17", "key:order:17");
    assert_op_id(f, "\"order-17\"", "key:order-17");
    assert_op_id(f, "key:order-17", "key:order-17");
    assert_op_id(f, "receipt:GPA.1", "receipt:GPA.1");
    assert_op_id(f, "season:3", "season:3");
    assert_op_id(f, "receipt:", "key:receipt:");
    assert_op_id(f, "0192f8a3-7c1e-7abc-8def-0123456789ab", "0192f8a3-7c1e-7abc-8def-0123456789ab");
    /* Not version 7: it has no time in it. */
    assert_op_id(f, "0192f8a3-7c1e-4abc-8def-0123456789ab",
                 "key:0192f8a3-7c1e-4abc-8def-0123456789ab");
}

static void two_ids_for_one_operation_are_refused_and_both_named(void **state)
{
    struct fixture *f = *state;
    char claim[] = "claim:1";

    f->grant.op_id = claim;
    f->defaults.idempotency_key = SLICE_LITERAL("order-17");
    assert_int_equal(apply_grant(f), ERR_INVALID);
    assert_int_equal(f->detail.code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INVALID_ARGUMENT);
    assert_string_equal(f->detail.field, "op_id");
    assert_non_null(strstr(f->detail.limit, "key:order-17"));
    assert_string_equal(f->detail.value, "claim:1");
    assert_string_equal(f->grant.op_id, "claim:1");
}

static void a_header_that_can_be_no_op_id_is_refused(void **state)
{
    struct fixture *f = *state;
    char much[152];

    memset(much, 'a', sizeof much);
    f->defaults.idempotency_key = (struct slice){ (const uint8_t *)much, 151 };
    assert_int_equal(apply_grant(f), ERR_INVALID);
    assert_string_equal(f->detail.field, "idempotency-key");
    f->defaults.idempotency_key = SLICE_LITERAL("order 17");
    assert_int_equal(apply_grant(f), ERR_INVALID);
    f->defaults.idempotency_key = SLICE_LITERAL("order\x7f");
    assert_int_equal(apply_grant(f), ERR_INVALID);
    f->defaults.idempotency_key = SLICE_LITERAL("\"\"");
    assert_int_equal(apply_grant(f), ERR_INVALID);
    f->defaults.idempotency_key = SLICE_LITERAL("!order~");
    assert_int_equal(apply_grant(f), ERR_OK);
    assert_string_equal(f->grant.op_id, "key:!order~");
    f->grant.op_id = text_lend("");
    f->defaults.idempotency_key = (struct slice){ (const uint8_t *)much, 150 };
    assert_int_equal(apply_grant(f), ERR_OK);
}

static void a_batch_refuses_the_header_and_what_has_no_op_id_of_its_own_ignores_it(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__BatchGrantRequest batch = HOLDFAST__V1__BATCH_GRANT_REQUEST__INIT;
    Holdfast__V1__ResolveOperationRequest resolve = HOLDFAST__V1__RESOLVE_OPERATION_REQUEST__INIT;
    Holdfast__V1__GetOperationRequest get = HOLDFAST__V1__GET_OPERATION_REQUEST__INIT;

    f->defaults.idempotency_key = SLICE_LITERAL("order-17");
    f->defaults.authority = SLICE_LITERAL("unheld");
    assert_int_equal(apply(f, METHOD_BATCH_GRANT, &batch.base), ERR_INVALID);
    assert_string_equal(f->detail.field, "idempotency-key");
    assert_int_equal(apply(f, METHOD_RESOLVE_OPERATION, &resolve.base), ERR_OK);
    assert_string_equal(resolve.op_id, "");
    assert_int_equal(apply(f, METHOD_GET_OPERATION, &get.base), ERR_OK);
    assert_string_equal(get.op_id, "");
    assert_false(f->defaults.used);
}

/* A read, or what seals: the op_id is what they ask about. */
static bool asks_about_an_operation(const struct method_info *method)
{
    return (method->route != METHOD_MUTATION && method->route != METHOD_ROUTER) ||
           method->id == METHOD_RESOLVE_OPERATION;
}

static void every_method_that_is_one_operation_takes_the_header(void **state)
{
    struct fixture *f = *state;
    size_t count, taken = 0;
    const struct method_info *all = method_all(&count);

    for (size_t i = 0; i < count; i++) {
        const struct method_info *method = &all[i];
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field_by_name(method->request, "op_id");
        if (method->internal || field == NULL || asks_about_an_operation(method))
            continue;
        ProtobufCMessage *message = arena_zalloc(&f->arena, method->request->sizeof_message);
        protobuf_c_message_init(method->request, message);
        f->defaults.idempotency_key = SLICE_LITERAL("k-1");
        if (apply(f, method->id, message) != ERR_OK)
            fail_msg("%s: %s", method->name, f->detail.message);
        const char *told = *(char **)(void *)((char *)message + field->offset);
        if (strcmp(told, "key:k-1") != 0)
            fail_msg("%s takes no Idempotency-Key", method->name);
        taken++;
    }
    assert_true(taken > 20);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_body_goes_before_a_header_and_a_header_before_the_key),
        TEST(a_header_that_is_no_authority_is_refused_and_not_repeated),
        TEST(a_header_of_more_than_128_bytes_is_refused),
        TEST(the_other_players_of_a_swap_name_their_own),
        TEST(a_delivery_is_one_operation_of_each_recipient),
        TEST(each_element_of_a_batch_is_completed),
        TEST(the_header_fills_in_an_op_id),
        TEST(every_method_that_is_one_operation_takes_the_header),
        TEST(two_ids_for_one_operation_are_refused_and_both_named),
        TEST(a_header_that_can_be_no_op_id_is_refused),
        TEST(a_batch_refuses_the_header_and_what_has_no_op_id_of_its_own_ignores_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
