#include "router/core/session_guard.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "idl/error_code.h"
#include "idl/method.h"
#include "router/core/authority_walk.h"

#define NO_SESSION "session:18446744073709551615-18446744073709551615-18446744073709551615"

struct fixture {
    struct arena arena;
    struct session_secrets secrets;
    struct session_guard guard;
    Holdfast__V1__ErrorDetail detail;
};

static int setup(void **state)
{
    static struct fixture f;
    struct token_secret_record record = { .current = { 9 } };

    f = (struct fixture){ 0 };
    session_secrets_init(&f.secrets, "test", &record);
    f.guard.secrets = &f.secrets;
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    arena_deinit(&f->arena);
    return 0;
}

static char *token_of(struct fixture *f, const char *player, const char *plain, const char *prefix)
{
    char text[SESSION_TOKEN_TEXT_SIZE];
    struct session_token token;

    assert_int_equal(session_token_parse(slice_from_text(plain), &token), ERR_OK);
    session_token_print(&f->secrets, slice_from_text(player), &token, text);
    return arena_printf(&f->arena, "%s%s", prefix, text);
}

static void guard(struct fixture *f, const ProtobufCMessage *message, bool changed)
{
    struct session_guard_found found;

    assert_int_equal(session_guard_message(&f->guard, message, &f->arena, &found, &f->detail),
                     ERR_OK);
    assert_int_equal(found.changed, changed);
}

static void both_sides_show_tokens_of_their_own(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__SwapGoodsRequest swap;
    char ada[] = "ada", bob[] = "bob";

    holdfast__internal__v1__swap_goods_request__init(&swap);
    swap.player_id = ada;
    swap.other_player_id = bob;
    swap.authority = token_of(f, "ada", "1-2-3", "session:");
    swap.other_authority = token_of(f, "bob", "1-5-6", "session:");
    guard(f, &swap.base, true);
    assert_string_equal(swap.authority, "session:1-2-3");
    assert_string_equal(swap.other_authority, "session:1-5-6");
    /* The one's is not the other's. */
    swap.authority = token_of(f, "ada", "1-2-3", "session:");
    swap.other_authority = swap.authority;
    guard(f, &swap.base, true);
    assert_string_equal(swap.authority, "session:1-2-3");
    assert_string_equal(swap.other_authority, NO_SESSION);
    assert_int_equal(f->guard.refused[SESSION_GUARD_WRONG_MAC], 1);
}

static void every_player_of_a_transaction_is_asked(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ExecuteTransactionRequest request;
    Holdfast__V1__TransactionPlayer other, *others[] = { &other };
    char ada[] = "ada", bob[] = "bob", numbers[] = "session:1-5-6";

    holdfast__v1__execute_transaction_request__init(&request);
    holdfast__v1__transaction_player__init(&other);
    request.player_id = ada;
    request.authority = token_of(f, "ada", "1-2-3", "session:");
    other.player_id = bob;
    other.authority = numbers;
    request.others = others;
    request.n_others = 1;
    guard(f, &request.base, true);
    assert_string_equal(request.authority, "session:1-2-3");
    assert_string_equal(other.authority, NO_SESSION);
    assert_int_equal(f->guard.refused[SESSION_GUARD_NO_MAC], 1);
}

static void other_authorities_and_other_texts_stay(void **state)
{
    static const char *const texts[] = { "",        "unheld",          "system:payments",
                                         "session", "session:1-2-3-4", "session:" };
    struct fixture *f = *state;
    Holdfast__V1__EndSessionRequest end;
    char ada[] = "ada";

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        holdfast__v1__end_session_request__init(&end);
        end.player_id = ada;
        end.authority = arena_printf(&f->arena, "%s", texts[i]);
        guard(f, &end.base, false);
        assert_string_equal(end.authority, texts[i]);
    }
}

static void without_a_secret_no_token_is_believed(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__EndSessionRequest end;
    char ada[] = "ada", numbers[] = "session:1-2-3";
    struct session_guard_found found;

    holdfast__v1__end_session_request__init(&end);
    end.player_id = ada;
    end.authority = numbers;
    f->secrets.count = 0;
    assert_int_equal(session_guard_message(&f->guard, &end.base, &f->arena, &found, &f->detail),
                     ERR_UNAVAILABLE);
    assert_int_equal(f->detail.code, CODE(UNAVAILABLE));
}

static void an_answer_gets_the_mac_and_keeps_the_rest(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__StartSessionResponse response, *back;
    Holdfast__V1__WriteInfo write;
    char plain[] = "1-2-3", name[] = "c1.abc";
    uint8_t packed[128];
    struct slice whole;

    holdfast__v1__start_session_response__init(&response);
    holdfast__v1__write_info__init(&write);
    write.version = UINT64_MAX;
    write.as_of = name;
    response.write = &write;
    response.token = plain;
    response.fence = 3;
    response.stolen = true;
    size_t size = holdfast__v1__start_session_response__pack(&response, packed);
    assert_int_equal(session_guard_sign(&f->guard, SLICE_LITERAL("ada"),
                                        (struct slice){ packed, size }, &f->arena, &whole),
                     ERR_OK);
    back = holdfast__v1__start_session_response__unpack(NULL, whole.size, whole.data);
    assert_non_null(back);
    assert_string_equal(back->token, token_of(f, "ada", "1-2-3", ""));
    assert_int_equal(back->fence, 3);
    assert_true(back->stolen);
    assert_true(back->write->version == UINT64_MAX);
    holdfast__v1__start_session_response__free_unpacked(back, NULL);
    for (size_t cut = 1; cut < size;
         cut++) /* Of a damaged answer nothing is read behind its end. */
        (void)!session_guard_sign(&f->guard, SLICE_LITERAL("ada"), (struct slice){ packed, cut },
                                  &f->arena, &whole);
}

/* A field that is not seen would let numbers pass that many can read. */
static void beside_each_authority_stands_its_player(void **state)
{
    size_t count;
    const struct method_info *methods = method_all(&count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        const ProtobufCMessageDescriptor *request = methods[i].request;

        if (methods[i].route != METHOD_MUTATION)
            continue;
        for (unsigned n = 0; n < request->n_fields; n++) {
            if (authority_is_field(&request->fields[n]))
                assert_non_null(authority_player_field(request, &request->fields[n]));
        }
    }
    const ProtobufCMessageDescriptor *player = &holdfast__v1__transaction_player__descriptor;
    assert_non_null(authority_player_field(
        player, protobuf_c_message_descriptor_get_field_by_name(player, "authority")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_sides_show_tokens_of_their_own, setup, teardown),
        cmocka_unit_test_setup_teardown(every_player_of_a_transaction_is_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(other_authorities_and_other_texts_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_secret_no_token_is_believed, setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_gets_the_mac_and_keeps_the_rest, setup, teardown),
        cmocka_unit_test(beside_each_authority_stands_its_player),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
