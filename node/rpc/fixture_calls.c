#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/rpc/fixture.h"
#include "runtime/base/check.h"

static char *text_of(const char *text)
{
    return text_lend(text);
}

char *fixture_authority(struct fixture *f, const char *text)
{
    if (strcmp(text, "unheld") == 0 || strncmp(text, "system:", 7) == 0)
        return text_of(text);
    return arena_printf(&f->arena, "session:%s", text);
}

char *fixture_start(struct fixture *f, const char *player, const char *server,
                    Holdfast__V1__StartMode mode, const char *op_id)
{
    Holdfast__V1__StartSessionRequest request = HOLDFAST__V1__START_SESSION_REQUEST__INIT;

    request.player_id = text_of(player);
    request.op_id = text_of(op_id);
    request.incarnation = text_of(server);
    request.mode = mode;
    Holdfast__V1__StartSessionResponse *response =
        fixture_mutate(f, METHOD_START_SESSION, &request.base);
    return response != NULL ? response->token : NULL;
}

void *fixture_end(struct fixture *f, const char *player, const char *token)
{
    Holdfast__V1__EndSessionRequest request = HOLDFAST__V1__END_SESSION_REQUEST__INIT;

    request.player_id = text_of(player);
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, token);
    return fixture_mutate(f, METHOD_END_SESSION, &request.base);
}

Holdfast__V1__GrantResponse *fixture_grant(struct fixture *f, const char *player, const char *token,
                                           int64_t gold)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };

    amount.currency = text_of("gold");
    amount.amount = gold;
    request.player_id = text_of(player);
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, token);
    request.currencies = amounts;
    request.n_currencies = 1;
    return fixture_mutate(f, METHOD_GRANT, &request.base);
}

void fixture_expire(struct fixture *f, const char *server, const char *lowest_live)
{
    Holdfast__Internal__V1__ExpireServerRequest request =
        HOLDFAST__INTERNAL__V1__EXPIRE_SERVER_REQUEST__INIT;

    request.incarnation = text_of(server);
    request.lowest_live = text_of(lowest_live);
    assert_non_null(fixture_mutate(f, METHOD_EXPIRE_SERVER, &request.base));
}

int64_t fixture_balance(struct fixture *f, const char *player, const char *currency)
{
    Holdfast__V1__GetBalancesRequest request = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;

    request.player_id = text_of(player);
    Holdfast__V1__GetBalancesResponse *response =
        fixture_read(f, METHOD_GET_BALANCES, &request.base);
    assert_non_null(response);
    for (size_t i = 0; i < response->n_balances; i++) {
        if (strcmp(response->balances[i]->currency, currency) == 0)
            return response->balances[i]->amount;
    }
    return 0;
}

Holdfast__V1__GetSessionResponse *fixture_session(struct fixture *f, const char *player)
{
    Holdfast__V1__GetSessionRequest request = HOLDFAST__V1__GET_SESSION_REQUEST__INIT;

    request.player_id = text_of(player);
    Holdfast__V1__GetSessionResponse *response = fixture_read(f, METHOD_GET_SESSION, &request.base);
    assert_non_null(response);
    return response;
}

Holdfast__Internal__V1__OperationRecord *fixture_operation(struct fixture *f, const char *player,
                                                           const char *op_id)
{
    Holdfast__V1__GetOperationRequest request = HOLDFAST__V1__GET_OPERATION_REQUEST__INIT;

    request.entity = arena_printf(&f->arena, "player:%s", player);
    request.op_id = text_of(op_id);
    Holdfast__Internal__V1__OperationAnswer *response =
        fixture_read(f, METHOD_GET_OPERATION, &request.base);
    assert_non_null(response);
    return response->operation;
}

Holdfast__Internal__V1__OperationRecord *fixture_seal(struct fixture *f, const char *player,
                                                      const char *op_id)
{
    Holdfast__V1__ResolveOperationRequest request = HOLDFAST__V1__RESOLVE_OPERATION_REQUEST__INIT;

    request.entity = arena_printf(&f->arena, "player:%s", player);
    request.op_id = text_of(op_id);
    request.seal = true;
    Holdfast__Internal__V1__OperationAnswer *response =
        fixture_mutate(f, METHOD_RESOLVE_OPERATION, &request.base);
    assert_non_null(response);
    return response->operation;
}
