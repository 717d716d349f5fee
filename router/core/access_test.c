#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/favorites.pb-c.h"
#include "holdfast/v1/inventory.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "router/core/access.h"
#include "router/core/authority_walk.h"
#include "runtime/base/check.h"

struct asked {
    struct arena arena;
    Holdfast__V1__ErrorDetail detail;
};

static void asked_init(struct asked *asked)
{
    memset(asked, 0, sizeof *asked);
}

static err ask(struct asked *asked, const ProtobufCMessage *message, uint32_t scopes)
{
    return access_check_message(message, scopes, &asked->arena, &asked->detail);
}

static char payments[] = "system:payments", admin[] = "system:admin", root[] = "system:root",
            game[] = "system:game", named[] = "system:admin/0a1b2c3d4e5f",
            session[] = "session:1-2-3", unheld[] = "unheld", bare[] = "1-2-3";

static void a_system_authority_wants_the_scope_of_its_name(void **state)
{
    Holdfast__V1__GrantRequest grant;
    struct asked asked;
    (void)state;

    asked_init(&asked);
    holdfast__v1__grant_request__init(&grant);
    grant.authority = payments;
    assert_int_equal(ask(&asked, &grant.base, SCOPE_PAYMENTS), ERR_OK);
    assert_int_equal(ask(&asked, &grant.base, SCOPES_ALL), ERR_OK);
    assert_int_equal(ask(&asked, &grant.base, SCOPES_ALL & ~(unsigned)SCOPE_PAYMENTS),
                     ERR_PERMISSION);
    assert_int_equal(asked.detail.code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_PERMISSION_DENIED);
    assert_string_equal(asked.detail.limit, "scope payments");
    assert_int_equal(ask(&asked, &grant.base, SCOPE_GAME | SCOPE_READ), ERR_PERMISSION);
    assert_string_equal(asked.detail.message, "the authority \"system:payments\" wants an API key "
                                              "with the scope payments; this one has: game, read");
    assert_string_equal(asked.detail.field, "authority");
    grant.authority = admin;
    assert_int_equal(ask(&asked, &grant.base, SCOPE_PAYMENTS), ERR_PERMISSION);
    arena_deinit(&asked.arena);
}

static void only_who_settles_trades_posts_for_the_system(void **state)
{
    static char mail[] = "system:mail", match[] = "system:match";
    Holdfast__V1__PostReservationRequest post;
    Holdfast__V1__VoidReservationRequest give_back;
    struct asked asked;
    (void)state;

    asked_init(&asked);
    holdfast__v1__post_reservation_request__init(&post);
    holdfast__v1__void_reservation_request__init(&give_back);
    post.authority = mail;
    assert_int_equal(ask(&asked, &post.base, SCOPE_MAIL), ERR_PERMISSION);
    assert_string_equal(asked.detail.field, "authority");
    assert_string_equal(asked.detail.limit, "system:match or system:admin");
    post.authority = payments;
    assert_int_equal(ask(&asked, &post.base, SCOPE_PAYMENTS | SCOPE_GAME), ERR_PERMISSION);
    post.authority = match;
    assert_int_equal(ask(&asked, &post.base, SCOPE_MATCH), ERR_OK);
    assert_int_equal(ask(&asked, &post.base, SCOPE_MAIL), ERR_PERMISSION);
    post.authority = admin;
    assert_int_equal(ask(&asked, &post.base, SCOPE_ADMIN), ERR_OK);
    give_back.authority = mail;
    assert_int_equal(ask(&asked, &give_back.base, SCOPE_MAIL), ERR_OK);
    arena_deinit(&asked.arena);
}

static void a_scope_that_does_not_exist_is_nobodys(void **state)
{
    Holdfast__V1__GrantRequest grant;
    struct asked asked;
    (void)state;

    asked_init(&asked);
    holdfast__v1__grant_request__init(&grant);
    grant.authority = root;
    assert_int_equal(ask(&asked, &grant.base, SCOPE_GAME | SCOPE_ADMIN), ERR_INVALID);
    assert_string_equal(asked.detail.field, "authority");
    assert_string_equal(asked.detail.value, "system:root");
    grant.authority = game;
    assert_int_equal(ask(&asked, &grant.base, SCOPE_GAME | SCOPE_ADMIN), ERR_INVALID);
    grant.authority = named; /* As a ledger tells it. */
    assert_int_equal(ask(&asked, &grant.base, SCOPE_GAME | SCOPE_ADMIN), ERR_INVALID);
    assert_string_equal(asked.detail.field, "authority");
    assert_string_equal(asked.detail.value, "system:admin/0a1b2c3d4e5f");
    assert_non_null(strstr(asked.detail.message, "whose key"));
    arena_deinit(&asked.arena);
}

static void players_are_written_by_game_servers(void **state)
{
    Holdfast__V1__SpendRequest spend;
    struct asked asked;
    (void)state;

    asked_init(&asked);
    holdfast__v1__spend_request__init(&spend);
    assert_int_equal(ask(&asked, &spend.base, SCOPE_PAYMENTS), ERR_OK); /* The node asks for one. */
    spend.authority = bare;
    assert_int_equal(ask(&asked, &spend.base, SCOPE_PAYMENTS), ERR_OK); /* It says what is wrong. */
    spend.authority = session;
    assert_int_equal(ask(&asked, &spend.base, SCOPE_GAME), ERR_OK);
    assert_int_equal(ask(&asked, &spend.base, SCOPE_PAYMENTS | SCOPE_ADMIN), ERR_PERMISSION);
    spend.authority = unheld;
    assert_int_equal(ask(&asked, &spend.base, SCOPE_GAME), ERR_OK);
    assert_int_equal(ask(&asked, &spend.base, SCOPE_ADMIN), ERR_OK);
    assert_int_equal(ask(&asked, &spend.base, SCOPE_PAYMENTS | SCOPE_MAIL), ERR_PERMISSION);
    arena_deinit(&asked.arena);
}

/* What one may not say in a request of its own, one may not say in a part of another. */
static void parts_of_batches_and_other_participants_are_asked_too(void **state)
{
    Holdfast__V1__GrantRequest parts[2];
    Holdfast__V1__GrantRequest *list[2] = { &parts[0], &parts[1] };
    Holdfast__V1__BatchGrantRequest batch;
    Holdfast__Internal__V1__SwapGoodsRequest swap;
    Holdfast__V1__TransactionPlayer other;
    Holdfast__V1__TransactionPlayer *others[1] = { &other };
    Holdfast__V1__ExecuteTransactionRequest execute;
    struct asked asked;
    (void)state;

    asked_init(&asked);
    holdfast__v1__batch_grant_request__init(&batch);
    holdfast__v1__grant_request__init(&parts[0]);
    holdfast__v1__grant_request__init(&parts[1]);
    parts[1].authority = payments;
    batch.requests = list;
    batch.n_requests = 2;
    assert_int_equal(ask(&asked, &batch.base, SCOPE_GAME), ERR_PERMISSION);
    assert_int_equal(ask(&asked, &batch.base, SCOPE_PAYMENTS), ERR_OK);
    holdfast__internal__v1__swap_goods_request__init(&swap);
    swap.other_authority = admin;
    assert_int_equal(ask(&asked, &swap.base, SCOPE_GAME), ERR_PERMISSION);
    assert_string_equal(asked.detail.field, "other_authority");
    holdfast__v1__execute_transaction_request__init(&execute);
    holdfast__v1__transaction_player__init(&other);
    other.authority = admin;
    execute.others = others;
    execute.n_others = 1;
    assert_int_equal(ask(&asked, &execute.base, SCOPE_GAME), ERR_PERMISSION);
    assert_int_equal(ask(&asked, &execute.base, SCOPE_ADMIN), ERR_OK);
    arena_deinit(&asked.arena);
}

static void a_method_is_open_to_its_scopes(void **state)
{
    const struct method_info *policy = method_find(METHOD_SET_POLICY);
    struct asked asked;
    (void)state;

    asked_init(&asked);
    assert_int_equal(access_check_method(policy, SCOPE_ADMIN, &asked.arena, &asked.detail), ERR_OK);
    assert_int_equal(access_check_method(policy, SCOPES_ALL & ~(unsigned)SCOPE_ADMIN, &asked.arena,
                                         &asked.detail),
                     ERR_PERMISSION);
    assert_int_equal(
        access_check_method(method_find(METHOD_GRANT), SCOPE_READ, &asked.arena, &asked.detail),
        ERR_PERMISSION);
    assert_string_equal(asked.detail.value, "read");
    assert_string_equal(
        asked.detail.message,
        "holdfast.v1.LedgerService/Grant wants an API key with one of the scopes game, payments, "
        "mail, match, moderation, admin; this one has: read");
    assert_int_equal(access_check_method(method_find(METHOD_GET_BALANCES), SCOPE_READ, &asked.arena,
                                         &asked.detail),
                     ERR_OK);
    /* A dashboard of the cluster reads no players, and a support tool no cluster. */
    static const struct {
        uint32_t method, scope;
        err expected;
    } reads[] = {
        { METHOD_GET_PROFILE, SCOPE_READ_PLAYER, ERR_OK },
        { METHOD_GET_PROFILE, SCOPE_READ_OPS, ERR_PERMISSION },
        { METHOD_GET_SESSION, SCOPE_READ_OPS, ERR_PERMISSION },
        { METHOD_LIST_PLAYERS, SCOPE_READ_OPS, ERR_PERMISSION },
        { METHOD_GET_CLUSTER, SCOPE_READ_OPS, ERR_OK },
        { METHOD_GET_CLUSTER, SCOPE_READ_PLAYER, ERR_PERMISSION },
        { METHOD_LIST_INCIDENTS, SCOPE_READ_PLAYER, ERR_PERMISSION },
        { METHOD_GRANT, SCOPE_READ_PLAYER | SCOPE_READ_OPS, ERR_PERMISSION },
    };
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
        assert_int_equal(access_check_method(method_find(reads[i].method), reads[i].scope,
                                             &asked.arena, &asked.detail),
                         reads[i].expected);
    /* No key reaches what processes say to each other. */
    assert_int_equal(access_check_method(method_find(METHOD_EXPIRE_SERVER), SCOPES_ALL,
                                         &asked.arena, &asked.detail),
                     ERR_PERMISSION);
    arena_deinit(&asked.arena);
}

static bool names_an_authority(const ProtobufCMessageDescriptor *descriptor, unsigned depth)
{
    bool found = false;

    for (unsigned i = 0; depth < 4 && i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        found |= authority_is_field(field) || (field->type == PROTOBUF_C_TYPE_MESSAGE &&
                                               names_an_authority(field->descriptor, depth + 1));
    }
    return found;
}

/* Or it would write as the game: the authority in the message is what holds it to its purpose. Each
 * settles operations. */
static void a_key_for_one_purpose_writes_with_an_authority_alone(void **state)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        bool reads = (all[i].scopes & SCOPES_READ) != 0;

        if ((all[i].scopes & SCOPE_PAYMENTS) == 0 || reads || all[i].id == METHOD_RESOLVE_OPERATION)
            continue;
        if (!names_an_authority(all[i].request, 0))
            fail_msg("%s", all[i].name);
    }
}

static void a_players_token_opens_what_is_declared_and_nothing_else(void **state)
{
    size_t count, open = 0;
    const struct method_info *all = method_all(&count);
    struct asked asked;
    (void)state;

    asked_init(&asked);
    for (size_t i = 0; i < count; i++) {
        err e = access_check_player_method(&all[i], &asked.arena, &asked.detail);
        bool is_open = method_player_field(&all[i]) != NULL || method_is_public(&all[i]);
        assert_int_equal(e, is_open ? ERR_OK : ERR_PERMISSION);
        open += e == ERR_OK;
        if (e == ERR_OK)
            continue;
        assert_int_equal(asked.detail.code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_PERMISSION_DENIED);
        assert_string_equal(asked.detail.field, "authorization");
        assert_string_equal(asked.detail.limit, "an API key");
    }
    assert_true(open > 0 && open < count / 2);
    arena_deinit(&asked.arena);
}

static void a_players_token_is_for_its_own_player_alone(void **state)
{
    Holdfast__V1__GetBalancesRequest request;
    const struct method_info *method = method_find(METHOD_GET_BALANCES);
    char own[] = "ada", other[] = "eve", longer[] = "ada2", upper[] = "Ada";
    char *const others[] = { other, longer, upper };
    struct access_player player = { "ada", true };
    struct asked asked;
    (void)state;

    asked_init(&asked);
    holdfast__v1__get_balances_request__init(&request);
    request.player_id = own;
    assert_int_equal(
        access_check_player(method, &player, &request.base, &asked.arena, &asked.detail), ERR_OK);
    assert_false(player.filled);
    for (size_t i = 0; i < 3; i++) {
        request.player_id = others[i];
        assert_int_equal(
            access_check_player(method, &player, &request.base, &asked.arena, &asked.detail),
            ERR_PERMISSION);
        assert_false(player.filled);
        assert_int_equal(asked.detail.code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_PERMISSION_DENIED);
        assert_string_equal(asked.detail.field, "player_id");
        assert_string_equal(asked.detail.limit, "the token's own player, or none");
        assert_string_equal(asked.detail.value, others[i]);
    }
    holdfast__v1__get_balances_request__init(&request);
    assert_int_equal(
        access_check_player(method, &player, &request.base, &asked.arena, &asked.detail), ERR_OK);
    assert_true(player.filled);
    assert_string_equal(request.player_id, "ada");
    arena_deinit(&asked.arena);
}

static void what_is_public_is_about_no_player(void **state)
{
    Holdfast__V1__GetCountRequest request = HOLDFAST__V1__GET_COUNT_REQUEST__INIT;
    struct access_player player = { "ada", true };
    struct asked asked;
    (void)state;

    asked_init(&asked);
    assert_int_equal(access_check_player(method_find(METHOD_GET_COUNT), &player, &request.base,
                                         &asked.arena, &asked.detail),
                     ERR_OK);
    assert_false(player.filled);
    assert_string_equal(request.target_id, "");
    arena_deinit(&asked.arena);
}

/* Outcomes of other typed keys are kept for good: a player could fill the disk with them. */
static void a_players_operation_is_called_by_what_is_forgotten_in_time(void **state)
{
    static const char *const good[] = { "", "01890a5d-ac96-774b-bcce-b302099a8057", "key:a",
                                        "key:receipt:1" };
    static const char *const bad[] = { "receipt:1", "claim:1",  "match:m:1",
                                       "admin:1",   "season:1", "keys:1" };
    Holdfast__V1__FavoriteRequest request = HOLDFAST__V1__FAVORITE_REQUEST__INIT;
    Holdfast__V1__GetBalancesRequest read = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;
    struct asked asked;
    (void)state;

    asked_init(&asked);
    assert_int_equal(access_check_player_op(&read.base, &asked.arena, &asked.detail), ERR_OK);
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        request.op_id = text_lend(good[i]);
        assert_int_equal(access_check_player_op(&request.base, &asked.arena, &asked.detail),
                         ERR_OK);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        request.op_id = text_lend(bad[i]);
        assert_int_equal(access_check_player_op(&request.base, &asked.arena, &asked.detail),
                         ERR_PERMISSION);
        assert_string_equal(asked.detail.field, "op_id");
        assert_string_equal(asked.detail.value, bad[i]);
    }
    arena_deinit(&asked.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_system_authority_wants_the_scope_of_its_name),
        cmocka_unit_test(only_who_settles_trades_posts_for_the_system),
        cmocka_unit_test(a_scope_that_does_not_exist_is_nobodys),
        cmocka_unit_test(players_are_written_by_game_servers),
        cmocka_unit_test(parts_of_batches_and_other_participants_are_asked_too),
        cmocka_unit_test(a_method_is_open_to_its_scopes),
        cmocka_unit_test(a_key_for_one_purpose_writes_with_an_authority_alone),
        cmocka_unit_test(a_players_token_opens_what_is_declared_and_nothing_else),
        cmocka_unit_test(a_players_token_is_for_its_own_player_alone),
        cmocka_unit_test(what_is_public_is_about_no_player),
        cmocka_unit_test(a_players_operation_is_called_by_what_is_forgotten_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
