#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/refusal.pb-c.h"
#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "idl/error_code.h"
#include "idl/error_tell.h"
#include "router/core/node_form.h"
#include "runtime/base/check.h"

#define ANNA "anna"
#define BERT "bert"
#define CLEO "cleo"

typedef Holdfast__Internal__V1__Refusal node_refusal;

struct said {
    Holdfast__V1__ErrorCode code;
    const char *player, *field;
};

static node_refusal refusal_of(const struct said *said)
{
    node_refusal refusal = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;
    static Holdfast__V1__ErrorDetail__Funds funds;

    holdfast__v1__error_detail__funds__init(&funds);
    funds.currency = text_lend("gold");
    refusal.code = said->code;
    refusal.player_id = text_lend(said->player);
    refusal.field = text_lend(said->field);
    refusal.message = text_lend("why");
    refusal.value = text_lend("01890a5d-ac96-774b-bcce-b302099a8057");
    refusal.final = true;
    if (said->code == CODE(INSUFFICIENT_FUNDS))
        refusal.funds = &funds;
    return refusal;
}

static void tells(uint32_t method, const ProtobufCMessage *message, const struct said *said,
                  const char *field)
{
    struct arena arena = { 0 };
    const node_refusal refusal = refusal_of(said);
    Holdfast__V1__ErrorDetail detail = error_tell(&refusal, &arena);

    node_form_tell(method_find(method), message, &arena, &detail);
    assert_string_equal(detail.field, field);
    assert_string_equal(detail.about->player_id, said->player);
    if (said->code == CODE(SESSION_LOST)) {
        assert_string_equal(detail.entity, arena_printf(&arena, "player:%s", said->player));
    } else {
        assert_string_equal(detail.entity, ""); /* The home's, which the router fills in. */
    }
    arena_deinit(&arena);
}

/* ANNA's session and BERT's are two; a game server that follows `action` must drop the right one.
 */
static void a_swap_names_the_side(void **state)
{
    static const struct {
        struct said said;
        const char *field;
    } cases[] = {
        { { CODE(SESSION_LOST), ANNA, "authority" }, "a.authority" },
        { { CODE(SESSION_LOST), BERT, "authority" }, "b.authority" },
        { { CODE(SESSION_LOCKED), BERT, "authority" }, "b.authority" },
        { { CODE(TXN_CONFLICT), ANNA, "player_id" }, "a.player_id" },
        { { CODE(TXN_CONFLICT), BERT, "player_id" }, "b.player_id" },
        { { CODE(INSUFFICIENT_FUNDS), ANNA, "changes" }, "a.gives.currencies[\"gold\"].amount" },
        { { CODE(INSUFFICIENT_FUNDS), BERT, "changes" }, "b.gives.currencies[\"gold\"].amount" },
        { { CODE(ITEM_NOT_HELD), BERT, "changes" }, "b.gives.item_uids" },
        { { CODE(CAPACITY_FULL), BERT, "changes" }, "a.gives" },
        { { CODE(CAPACITY_FULL), ANNA, "changes" }, "b.gives" },
        { { CODE(QUARANTINED), BERT, "" }, "" },
    };
    Holdfast__Internal__V1__SwapGoodsRequest request =
        HOLDFAST__INTERNAL__V1__SWAP_GOODS_REQUEST__INIT;

    (void)state;
    request.player_id = text_lend(ANNA);
    request.other_player_id = text_lend(BERT);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        tells(METHOD_SWAP, &request.base, &cases[i].said, cases[i].field);
}

static void a_transaction_names_the_place(void **state)
{
    static const struct {
        struct said said;
        const char *field;
    } cases[] = {
        { { CODE(SESSION_LOST), ANNA, "authority" }, "authority" },
        { { CODE(SESSION_LOST), BERT, "authority" }, "others[0].authority" },
        { { CODE(SESSION_LOST), CLEO, "authority" }, "others[1].authority" },
        { { CODE(PERMISSION_DENIED), CLEO, "authority" }, "others[1].authority" },
        { { CODE(TXN_CONFLICT), BERT, "player_id" }, "others[0].player_id" },
        { { CODE(INSUFFICIENT_FUNDS), BERT, "checks[0]" }, "checks[0]" },
        { { CODE(INSUFFICIENT_FUNDS), CLEO, "checks[0]" }, "checks[1]" },
        { { CODE(VERSION_CONFLICT), BERT, "checks[1]" }, "checks[2]" },
        { { CODE(VERSION_CONFLICT), ANNA, "checks[0]" }, "checks[3]" },
        { { CODE(VERSION_CONFLICT), ANNA, "checks[7]" }, "checks[7]" }, /* There is none. */
        { { CODE(INSUFFICIENT_FUNDS), CLEO, "changes" }, "changes" },
    };
    static const char *const checked[] = { BERT, CLEO, BERT, ANNA };
    Holdfast__V1__TransactionPlayer players[2], *others[2];
    Holdfast__V1__TransactionCheck checks[ARRAY_SIZE(checked)], *list[ARRAY_SIZE(checked)];
    Holdfast__V1__ExecuteTransactionRequest request =
        HOLDFAST__V1__EXECUTE_TRANSACTION_REQUEST__INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        holdfast__v1__transaction_player__init(&players[i]);
        players[i].player_id = text_lend(i == 0 ? BERT : CLEO);
        others[i] = &players[i];
    }
    for (size_t i = 0; i < ARRAY_SIZE(checked); i++) {
        holdfast__v1__transaction_check__init(&checks[i]);
        checks[i].player_id = text_lend(checked[i]);
        list[i] = &checks[i];
    }
    request.player_id = text_lend(ANNA);
    request.n_others = ARRAY_SIZE(others);
    request.others = others;
    request.n_checks = ARRAY_SIZE(checked);
    request.checks = list;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        tells(METHOD_EXECUTE_TRANSACTION, &request.base, &cases[i].said, cases[i].field);
}

static void others_know_of_no_transaction(void **state)
{
    const node_refusal refusal = refusal_of(
        &(struct said){ .code = CODE(SESSION_LOST), .player = BERT, .field = "authority" });
    struct arena arena = { 0 };

    (void)state;
    Holdfast__V1__ErrorDetail detail = error_tell(&refusal, &arena);
    node_form_tell(method_find(METHOD_CLAIM_NAME), NULL, &arena, &detail);
    assert_null(detail.about);
    assert_string_equal(detail.entity, "");
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_swap_names_the_side),
        cmocka_unit_test(a_transaction_names_the_place),
        cmocka_unit_test(others_know_of_no_transaction),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
